//! `wirespool fleet status`.

use ::fleet::{Event, Fault, Report, Taken, reports, reports_json};
use ::sensors::Standings;
use clap::Args;

use super::asked::{FleetFlags, ask, names};
use crate::failure::{Outcome, Verdict};
use crate::stdout;

/// Show how all sensors stand.
///
/// A line for each: whether it answers, its version, whether a recorder runs, packets lost since
/// that began, free memory between capture and disks, how far back its packets reach, its clock
/// against that of this machine with the uncertainty of the way, and findings. What is wrong comes
/// below, with the sensor's name.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool fleet status
  wirespool fleet status --json --sensor-deadline 5s

Exit code 1 when something is wrong with a sensor, or it does not answer; 3 when none
answered.")]
pub(super) struct Flags {
    /// Report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    fleet: FleetFlags,
}

pub(super) fn run(flags: &Flags) -> Outcome {
    let network = flags.fleet.network()?;
    let names = names(&network);
    let mut standings = vec![None; names.len()];
    let limits = flags.fleet.limits(None);
    let parts = ask(&Standings(&network), (&names, &limits), &mut |event| {
        if let Event::Item(sensor, stands) = event {
            *standings.get_mut(sensor).expect("each has one") = Some(stands.0);
        }
        Ok(Taken::More)
    })?;
    let report = |(part, standing): (::fleet::Part, Option<::fleet::Standing>)| Report {
        sensor: part.sensor,
        outcome: part.outcome.and_then(|_| standing.ok_or(Fault::Stopped)),
    };
    let all: Vec<Report> = parts.into_iter().zip(standings).map(report).collect();
    let text = if flags.json { reports_json(&all) } else { reports(&all, stdout::width()) };
    stdout::print(&text)?;
    anyhow::ensure!(all.iter().any(|report| report.outcome.is_ok()), "no sensor answered");
    Ok(Verdict::clean_if(all.iter().all(Report::is_well)))
}
