//! The extract job: the packets of the sessions that match, verified and merged by time.
//!
//! Rows are taken part by part, the parts by their earliest times; pieces that may have packets
//! before the next part are read when its rows are known, those with the earliest packets first,
//! and packets leave in the order of time when no piece can have an earlier one.
//! Which rows those are is found out first where it takes a look at all of them: for whole
//! sessions, for named ones, for what is around them.

use core::ops::ControlFlow;

use found::Explain;
use packet_output::Target;
use packet_output::{Finished, Outputs};
use units::{Clock, Times};

use crate::archive::Archive;
use crate::met::NamesMet;
use crate::packet_reader::PacketReader;
use crate::packet_writer::{PacketWriter, Progress, Telling};
use crate::request::Request;
use crate::stopwatch::Stopwatch;
use crate::walk::Notes;
use crate::{Error, Options};
use manifest::Manifest;

/// Result of an [`extract`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExtractReport {
    /// Packets written.
    pub packets: u64,
    /// Those of them whose link layer is made, because a pcap file holds one link type.
    pub rewritten_packets: u64,
    /// Everything that can be checked later.
    pub manifest: Manifest,
    /// Cost of the query.
    pub explain: Explain,
    /// Every reader of the output went away before its end.
    pub reader_gone: bool,
    /// The interfaces and recordings that it met.
    pub met: NamesMet,
}

/// Writes the packets of the sessions that match. `progress` is asked after every piece and may
/// stop the run in order.
pub fn extract(
    options: &Options,
    request: &Request<'_>,
    target: Target<'_>,
    clock: &dyn Clock,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<ExtractReport, Error> {
    let watch = Stopwatch::start(clock);
    let mut archive = Archive::open(options, clock.realtime())?;
    run(&mut archive, watch, request, target, Telling { progress, losses: None })
}

/// As [`extract`], from an archive that is open.
pub(crate) fn run<'a>(
    archive: &mut Archive,
    mut watch: Stopwatch<'a>,
    request: &Request<'_>,
    target: Target<'_>,
    telling: Telling<'a>,
) -> Result<ExtractReport, Error> {
    let mut notes = Notes::default();
    notes.explain.open_ns = watch.lap();
    let outputs = Outputs::begin(target, request.contents())?;
    let writer = PacketWriter::new(request, archive.expired, outputs, telling);
    let writer = writer.with_memory(archive.merge);
    let is_everything = request.is_everything() && !writer.is_by_session();
    let mut packets = PacketReader::new(request, writer, watch);
    let flow = if is_everything {
        packets.everything(archive, &mut notes)?
    } else {
        packets.sessions(archive, request, &mut notes)?
    };
    let volume = archive.volume();
    let done = packets.finish(flow, &mut notes)?;
    notes.completeness.erased_through = archive.erased_through(&done.times);
    // Packets around sessions are asked for by their times, others by those of the query.
    let (from, to) = request.query.time_range();
    let asked = if request.around.is_some() { done.times.clone() } else { from..=to };
    // Around what was forgotten there may have been some: it was in the times of the query.
    let mut searched = Times::of(from, to);
    searched.add(&Times::of(*asked.start(), *asked.end()));
    notes.completeness.forget_but(&searched);
    // A run of slots is asked for what lies there, whatever the times.
    if request.slots.is_none() {
        notes.completeness.add_standing(&archive.standing(&asked));
    }
    let notes = notes.settled(archive);
    let rewritten_packets = done.outputs.rewritten_packets();
    let Finished { outputs, reader_gone } = done.outputs.finish(&notes.completeness.to_string())?;
    let Notes { mut completeness, explain, met } = notes;
    // What the reader of a pipe did not take is missing, however much was found.
    completeness.stopped |= reader_gone;
    let (pieces, clocks) = done.pieces.finish();
    let manifest = Manifest {
        case: request.case.clone(),
        query: request.query_text.to_owned(),
        asked: request.asked(),
        made: archive.now,
        volume,
        from: *done.times.start(),
        to: *done.times.end(),
        rows: done.rows,
        outputs,
        pieces,
        clocks,
        completeness,
    };
    let packets = manifest.outputs.iter().map(|output| output.packets).sum();
    Ok(ExtractReport { packets, rewritten_packets, manifest, explain, reader_gone, met })
}
