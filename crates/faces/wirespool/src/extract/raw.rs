//! `wirespool extract --raw`.

use core::ops::RangeInclusive;
use std::path::PathBuf;

use ::evidence::OutputSummary;
use ::manifest::{Asked, Manifest};
use ::raw::{Copied, Copying};
use anyhow::Context as _;
use host::{StopFlag, SystemClock};
use query::Query;
use units::{ByteSize, Clock as _, Timestamp};

use super::places::Places;
use crate::evidence::maker;
use crate::failure::{Outcome, Usage, Verdict};
use crate::progress::{Progress, say_lines};
use crate::reading::ReadingFlags;
use crate::selection::{CaseFlags, SelectionFlags};
use crate::{arguments, output_file, stdout};

/// What is asked for.
pub(super) struct RawAsked<'a> {
    pub(super) query: &'a [String],
    pub(super) selection: &'a SelectionFlags,
    pub(super) reading: &'a ReadingFlags,
    pub(super) case: &'a CaseFlags,
}

/// Copies the ciphertext of the query's times.
pub(super) fn run(asked: &RawAsked<'_>, volume: PathBuf, places: &Places<'_>) -> Outcome {
    if let Some(flag) = asked.selection.given_besides_query() {
        let text = format!("--raw opens nothing, so that {flag} has no meaning with it");
        return Err(Usage(text).into());
    }
    let text = asked.query.join(" ");
    let times = times_of(&arguments::query(&text)?)?;
    let mut options = asked.reading.options(volume)?;
    let manifest = places.begin()?;
    let mut output = output_file::create_named(places.file, places.force)?;
    asked.reading.catch_up(&mut options);
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("extract");
    let made = SystemClock.realtime();
    let copying = Copying { options: &options, times: &times, made };
    let mut pipe = stdout::bytes();
    let out: &mut dyn std::io::Write = match &mut output {
        Some(output) => output,
        None => &mut pipe,
    };
    let copied = ::raw::copy(copying, out, &mut |done, total| {
        progress.share(done, total, &|_| format!("{done} of {total} slots"));
        stop.flow()
    });
    progress.finish();
    let copied = copied.with_context(|| page::safe::path(&options.volume))?;
    output.map(host::Output::finish).transpose()?;
    let names = places.names();
    let of = manifest_of(asked, (text, times, made), copied);
    if let Some(statement) = manifest {
        places.finish(statement, &|key| session_view::manifest_json(&of, maker(), &names, key))?;
    }
    let [output] = &*of.outputs else { unreachable!("a raw extract is one file") };
    let packets = page::text::plural(output.packets, "packet");
    let bytes = ByteSize(output.bytes);
    say_lines(&format!("{bytes} with {packets}, encrypted, {}", of.completeness));
    Ok(Verdict::of(of.completeness.state()))
}

fn manifest_of(
    asked: &RawAsked<'_>,
    (query, times, made): (String, RangeInclusive<Timestamp>, Timestamp),
    copied: Copied,
) -> Manifest {
    let output = OutputSummary {
        file: None,
        link_type: None,
        packets: copied.packets,
        bytes: copied.bytes,
        sha256: copied.hashes.sha256,
        blake3: copied.hashes.blake3,
    };
    Manifest {
        case: asked.case.info(),
        query,
        asked: Asked { is_raw: true, ..Asked::default() },
        made,
        volume: copied.volume,
        from: *times.start(),
        to: *times.end(),
        rows: 0,
        outputs: vec![output],
        pieces: copied.pieces,
        clocks: Vec::new(),
        completeness: copied.completeness,
    }
}

/// The times that a query asks for, if it asks for nothing else.
fn times_of(query: &Query) -> Result<RangeInclusive<Timestamp>, Usage> {
    let (from, to) = query.packet_time_range();
    let bounds = arguments::bounds(&(from..=to));
    let [there, back] =
        [bounds.join(" and "), bounds.iter().rev().cloned().collect::<Vec<_>>().join(" and ")];
    let is_it = |text: &str| Query::parse(text, from).is_ok_and(|plain| plain == *query);
    if is_it(&there) || is_it(&back) {
        return Ok(from..=to);
    }
    let text = "--raw takes packets by their times alone, because sessions are encrypted: give \
                before and after, or '' for all, and the rest of the query to decrypt";
    Err(Usage(text.to_owned()))
}
