//! The packets that a recorder acknowledges, as it does: reads the volume like any reader, looks
//! again and again for what is new, and hands it out in the order of the ring.

use core::ops::ControlFlow;

use completeness::{Completeness, Disorder};
use format::head::StripeId;
use packet_output::MergeMemory;
use packet_output::Outputs;
use packet_output::Target;
use query::Query;
use units::{NANOS_PER_SECOND, Sequence, Sleep};

use crate::archive::Archive;
use crate::packet_writer::{PacketWriter, Progress, Telling};
use crate::request::Request;
use crate::slots::Place;
use crate::walk::{Notes, each_data_stripe};
use crate::{Error, Options};

/// Between two looks: opening a volume reads a few heads.
const LOOK_NS: i64 = NANOS_PER_SECOND / 10;

/// Hands out all packets acknowledged from now on, as far as they pass the request's filter and
/// pattern, until `go_on` says that it is enough or the reader of the output goes away. Says what
/// was missing: losses while recording, and what the ring overwrote before it was read.
pub fn follow(
    options: &Options,
    request: &Request<'_>,
    target: Target<'_>,
    clock: &dyn Sleep,
    go_on: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Completeness, Error> {
    assert!(*request.query == Query::all(), "what is new has no sessions yet");
    let mut seen = newest(&Archive::without_index(options, clock.realtime())?);
    let outputs = Outputs::begin(target, request.contents())?;
    let mut progress = |_: &Progress| ControlFlow::Continue(());
    let telling = Telling { progress: &mut progress, losses: None };
    let packets = PacketWriter::new(request, units::Timestamp::MIN, outputs, telling);
    // All that is found in one look is handed out with it.
    let most_bytes = options.merge.ring_order_bytes;
    let mut packets = packets.with_memory(MergeMemory { most_bytes, ..options.merge });
    let mut notes = Notes::default();
    while go_on().is_continue() && !packets.is_gone() {
        let archive = Archive::without_index(options, clock.realtime())?;
        packets.expire(archive.expired);
        let newest = newest(&archive);
        if newest <= seen {
            clock.sleep_until(clock.boottime_ns() + LOOK_NS);
            continue;
        }
        let first = seen.map_or(Sequence(0), |seen| seen.sequence);
        if seen.is_some() && archive.tail() > first.next() {
            notes.completeness.retired_pieces += archive.tail() - first;
        }
        let places = archive.places().filter(|place| place.sequence >= first);
        let places: Vec<Place> = places.collect();
        let is_new = |stripe| Some(stripe) > seen && Some(stripe) <= newest;
        let flow =
            each_data_stripe(&archive, &places, &mut notes, &is_new, &mut |stripe, notes| {
                packets.piece(stripe, None, notes)
            })?;
        packets.hand_out()?;
        if flow.is_break() {
            break;
        }
        seen = newest;
    }
    let done = packets.finish(ControlFlow::Continue(()), &mut notes)?;
    // What comes while it is recorded comes in the order of the ring, as documented.
    notes.completeness.disorder = Disorder::default();
    done.outputs.finish(&notes.completeness.to_string())?;
    Ok(notes.completeness)
}

/// The last stripe that is acknowledged; `None` where there is none.
fn newest(archive: &Archive) -> Option<StripeId> {
    archive.span().map(|span| span.acknowledged)
}
