//! `wirespool diagnose tcp`.

use core::time::Duration;
use std::path::{Path, PathBuf};

use ::connections::{Handshakes, Live, Source, Watch};
use ::found::Event;
use clap::Args;
use findings::{Diagnosis, Unseen};
use host::{Output, StopFlag, SystemClock};
use machine_view::{Followed, Sampled, SocketSamples};

use super::report::{PageFlags, nanos, show, write_page};
use crate::arguments::{self, duration};
use crate::failure::{Outcome, of_extract};
use crate::output_file;
use crate::progress::Progress;
use crate::reading::ReadingFlags;
use crate::stdout;

/// Columns where there is no terminal.
const WIDTH: usize = 100;

/// Show why connections are slow, or fail.
///
/// Looks at every TCP socket of every network namespace: options that some connections lack and the
/// listener whose SYN cookies lost them; queues that overflow, losses, small windows, and who holds
/// a sender up; and at what their packets go through: queues and errors of interfaces, the
/// connection table, neighbours, UDP sockets and questions to DNS servers. Without root it sees its
/// own namespace, and names of its own processes only.
#[derive(Debug, Args)]
pub(super) struct Flags {
    /// Look at the handshakes in this volume instead of at this machine
    volume: Option<PathBuf>,
    /// Sessions of the volume to look at [default: all]
    #[arg(requires = "volume")]
    query: Vec<String>,
    /// How long to look
    #[arg(long = "for", value_name = "TIME", value_parser = duration, default_value = "10s",
          conflicts_with = "volume")]
    duration: Duration,
    /// Time between two looks
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s",
          conflicts_with = "volume")]
    interval: Duration,
    /// Look at this network namespace only
    #[arg(long, conflicts_with = "volume")]
    here: bool,
    /// Write a row for each socket and look into this Parquet file; `wirespool sql FILE` reads it
    #[arg(long, value_name = "FILE", conflicts_with = "volume", group = "written")]
    save: Option<PathBuf>,
    #[command(flatten)]
    page: PageFlags,
    /// Plot window, round trip and delivery rate of ten connections over time: pairs that should be
    /// alike and are not first, then those that sent most
    #[arg(long, conflicts_with_all = ["volume", "json"])]
    plot: bool,
    /// Report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: ReadingFlags,
}

pub(super) fn run(flags: &Flags) -> Outcome {
    if let Some(volume) = &flags.volume {
        let page = flags.page.begin()?;
        let report = recorded(flags, volume)?;
        if let Some(page) = page {
            write_page(page, &report, (None, None, None))?;
        }
        return show(&report, flags.json);
    }
    // The command reports what cannot be written before the user waits.
    let page = flags.page.begin()?;
    let save = output_file::create_named(flags.save.as_ref(), flags.page.force)?;
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("diagnose");
    let times = (nanos(flags.interval)?, nanos(flags.duration)?);
    let live = if flags.here { Live::own() } else { Live::default() };
    let followed = Followed::new(live, &SystemClock, flags.plot || page.is_some());
    let kept = save.map(SocketSamples::new).transpose()?;
    let mut sampled = Sampled::new(followed, kept, &SystemClock);
    let watch = sockets(&mut sampled, times, &stop, &mut progress)?;
    progress.finish();
    let (followed, kept) = sampled.finish()?;
    kept.map(Output::finish).transpose()?;
    let chosen = followed.chosen(&watch).unwrap_or_default();
    if flags.plot {
        let width = stdout::width().unwrap_or(WIDTH);
        let style = page::PlotStyle { width, is_terminal: stdout::is_terminal() };
        stdout::print_plot(&machine_view::socket_series(&chosen, style))?;
    }
    let report = connections::diagnose(&watch);
    if let Some(page) = page {
        write_page(page, &report, (Some(&chosen), None, None))?;
    }
    show(&report, flags.json)
}

/// What the handshakes of recorded sessions say.
fn recorded(flags: &Flags, volume: &Path) -> anyhow::Result<Diagnosis> {
    let text = flags.query.join(" ");
    let text = if text.is_empty() { "tcp".to_owned() } else { format!("tcp and ({text})") };
    let query = arguments::query(&text)?;
    let mut options = flags.reading.options(volume.to_path_buf())?;
    flags.reading.catch_up(&mut options);
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("diagnose");
    let mut handshakes = Handshakes::default();
    let found = ::extract::find(&options, &query, None, &SystemClock, &mut |event| {
        match event {
            Event::Found(found) => handshakes.take(&found.session),
            Event::Searched { parts, of } => progress.segments(parts, of),
        }
        stop.flow()
    });
    progress.finish();
    let found = found.map_err(|error| of_extract(volume, error))?;
    let mut report = handshakes.diagnose();
    if !found.completeness.is_complete() {
        let what = format!("a part of the volume: {}", found.completeness);
        let needs = "the packets that are missing".to_owned();
        report.unseen.push(Unseen { what, needs });
    }
    Ok(report)
}

/// Looks at them for a while.
pub(super) fn sockets(
    source: &mut dyn Source,
    times: (i64, i64),
    stop: &StopFlag,
    progress: &mut Progress,
) -> anyhow::Result<Watch> {
    let go_on = &mut |looks| {
        progress.text(&|| page::text::plural(looks, "look"));
        stop.flow()
    };
    Ok(connections::watch(source, &SystemClock, times, go_on)?)
}
