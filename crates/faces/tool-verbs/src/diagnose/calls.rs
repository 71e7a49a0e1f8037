//! `wirespool diagnose calls`.

use core::time::Duration;
use std::ffi::OsString;
use std::path::PathBuf;

use ::calls::{Live, Whom};
use anyhow::Context;
use clap::Args;
use host::{StopFlag, SystemClock};

use super::io::{go_on, started};
use super::report::{PageFlags, nanos, write_page};
use crate::arguments::duration;
use crate::failure::{Outcome, Verdict};
use crate::progress::Progress;
use crate::stdout;

/// Show the slow system calls of processes, and what they wait for.
///
/// Follows each call by the kernel's tracepoints: how often it is made, how long it takes, which
/// file or socket it is for, what its thread waits for without a processor, and who has the
/// processor meanwhile. Calls that wait for something to do are kept apart. Finds what costs time:
/// files that are made durable, small reads and writes, files that are not there, locks, name
/// servers, processors that others have. Nothing is stopped, as strace(1) does at each call.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool diagnose calls --pid 4711              a process, its threads and children
  wirespool diagnose calls -- ./report --all       a program to its end, with what it starts
  wirespool diagnose calls --unit nginx.service --for 1m --html nginx.html
  wirespool diagnose calls --for 10s --json        all processes

Exit code 1 when something is wrong.")]
pub(super) struct CallsFlags {
    /// A process, with its threads and children; may be given several times
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["cgroup", "unit", "command"])]
    pid: Vec<u32>,
    /// The processes of a control group: a folder below /sys/fs/cgroup
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["unit", "command"])]
    cgroup: Option<PathBuf>,
    /// The processes of a unit of systemd
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    unit: Option<String>,
    /// How long to look
    #[arg(long = "for", value_name = "TIME", value_parser = duration, default_value = "10s",
          conflicts_with = "command")]
    duration: Duration,
    /// Report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    page: PageFlags,
    /// Run the program as this user [default: who called sudo; else as oneself]
    #[arg(long, value_name = "NAME", requires = "command")]
    user: Option<String>,
    /// A program that is run meanwhile; the watch ends with it
    #[arg(last = true)]
    command: Vec<OsString>,
}

pub(super) fn run(flags: &CallsFlags) -> Outcome {
    let whom = whom(flags)?;
    let stop = StopFlag::install()?;
    let page = flags.page.begin()?;
    let machine = Live::new(&whom);
    let mut machine = machine.context("cannot follow system calls, which takes")?;
    let mut program = started(&flags.command, flags.user.as_deref())?;
    let mut duration_ns = nanos(flags.duration)?;
    if let Some(program) = &program {
        (machine, duration_ns) = (machine.of_program(program.id()), i64::MAX);
    }
    let mut progress = Progress::new("diagnose");
    let watch = ::calls::watch(&mut machine, &SystemClock, duration_ns, &mut |events| {
        go_on(events, &mut program, (&stop, &mut progress))
    });
    progress.finish();
    let report = ::diagnose::calls::diagnose(&watch);
    if let Some(page) = page {
        write_page(page, &report, (None, None, Some(&watch)))?;
    }
    let text = if flags.json {
        machine_view::calls_json(&watch, &report)
    } else {
        let width = stdout::width();
        machine_view::diagnosis(&report, width) + "\n" + &machine_view::calls(&watch, width)
    };
    stdout::print(&text)?;
    Ok(Verdict::clean_if(report.is_clean()))
}

fn whom(flags: &CallsFlags) -> anyhow::Result<Whom> {
    let (found, whose) = match (&flags.cgroup, &flags.unit, flags.pid.first()) {
        _ if !flags.command.is_empty() => return Ok(Whom::Started),
        (Some(folder), ..) => (Whom::of_group(folder), format!("in {}", page::safe::path(folder))),
        (_, Some(unit), _) => (Whom::of_unit(unit), format!("of {}", page::safe::printable(unit))),
        (.., Some(number)) => (Whom::of_numbers(&flags.pid), number.to_string()),
        _ => return Ok(Whom::All),
    };
    found.with_context(|| format!("there is no process {whose}"))
}
