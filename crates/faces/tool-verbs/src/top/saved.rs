//! Packets of a line, as a file.

use core::ops::ControlFlow;
use std::path::{Path, PathBuf};

use ::extract::Request;
use ::packet_output::Target;
use ::trace::Output as PcapngOutput;
use anyhow::Context;
use capture::Packet;
use host::{Output, SystemClock};
use query::Query;
use talkers::{Moment, Talkers};
use units::Clock;

use crate::failure::of_extract;
use verbs::top::feed::between;

/// A name with the time of writing; the file of an earlier second is not replaced.
fn path() -> PathBuf {
    let now = SystemClock.realtime().to_string();
    let time: String = now.chars().take(19).filter(char::is_ascii_alphanumeric).collect();
    PathBuf::from(format!("top-{time}.pcapng"))
}

fn said(packets: u64, path: &Path, what: &str) -> String {
    format!(
        "{} {what} written to {}",
        page::text::plural(packets, "packet"),
        page::safe::path(path)
    )
}

/// What is still held of the sessions that a query selects.
pub(super) fn from_memory(talkers: &Talkers, text: &str) -> anyhow::Result<String> {
    let query = Query::parse(text, SystemClock.realtime()).context(text.to_owned())?;
    let path = path();
    let file = Output::create(&path, false)?;
    let mut output = PcapngOutput::new(file, text, talkers.interfaces())?;
    let (mut count, mut first) = (0, None);
    for kept in talkers.packets(&query) {
        first.get_or_insert(kept.timestamp);
        count += 1;
        let packet = Packet {
            timestamp: kept.timestamp,
            interface: kept.interface.get(),
            original_len: kept.original_len,
            outbound: None,
            head: kept.data,
            tag: None,
            tail: &[],
            options: &[],
        };
        output.packet(&packet, None);
        output.flush()?;
    }
    output.finish(&[], SystemClock.realtime())?.finish()?;
    let since = first.map_or_else(String::new, |first| {
        format!("since {}, as far as they are held,", page::text::clock_time(first))
    });
    Ok(said(count, &path, &since))
}

/// What a volume has of the sessions that a query selects, in the windows that end at a moment.
pub(super) fn from_volume(
    options: &::extract::Options,
    text: &str,
    at: Moment,
) -> anyhow::Result<String> {
    let text = in_windows(text, at);
    let query = Query::parse(&text, SystemClock.realtime()).context(text.clone())?;
    let path = path();
    let mut file = Output::create(&path, false)?;
    let target = Target::Pcapng(&mut file);
    let request = Request::new(&query, &text);
    let go_on = &mut |_: &::extract::Progress| ControlFlow::Continue(());
    let report = ::extract::extract(options, &request, target, &SystemClock, go_on);
    let report = report.map_err(|error| of_extract(&options.volume, error))?;
    file.finish()?;
    Ok(said(report.packets, &path, &format!("of {} s", window())))
}

/// The longest window, in seconds.
fn window() -> i64 {
    talkers::WINDOWS.into_iter().max().unwrap_or(0)
}

/// A query and the times of the windows that end at a moment.
pub(super) fn in_windows(text: &str, at: Moment) -> String {
    let times = between(&(at.plus(1 - window()).0..=at.0));
    if text.trim().is_empty() { times } else { format!("({text}) and {times}") }
}
