//! Which sensors are asked, within which bounds, and how what they say together ends.

use core::time::Duration;
use std::path::{Path, PathBuf};

use ::fleet::{Asking, Event, Limits, Part, Taken, Transport, Whole};
use ::sensors::Network;
use anyhow::Context as _;
use clap::Args;
use host::{StopFlag, SystemClock};

use crate::arguments;
use crate::failure::{Faults, Usage, Verdict};
use crate::progress::say_lines;
use crate::remote::{PROGRAM, token};

/// Who is asked, where no flag says it.
const FILE: &str = "/etc/wirespool/fleet.toml";
/// Memory of what waits for its place, over all sensors.
pub(super) const MEMORY_BYTES: usize = 128 << 20;

/// Who is asked, and how long.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sensors")]
pub(super) struct FleetFlags {
    /// The file of sensors: `[sensor.NAME]` with `url`, and `token_file`, `ca`, `certificate`,
    /// `key`, `volume` where they are needed
    #[arg(long, value_name = "FILE", default_value = FILE)]
    fleet: PathBuf,
    /// Ask only these sensors, by name; may be given several times
    #[arg(long = "sensor", value_name = "NAME")]
    pub(super) sensors: Vec<String>,
    /// Leave a sensor behind that says nothing for so long; a search that finds nothing is silent,
    /// too
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = arguments::duration)]
    pub(super) sensor_deadline: Duration,
    /// End after so long, with what came until then
    #[arg(long, value_name = "TIME", value_parser = arguments::duration)]
    deadline: Option<Duration>,
    /// Ask a sensor a second time that has not said who it is after so long
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = arguments::duration)]
    hedge: Duration,
}

impl FleetFlags {
    pub(super) fn network(&self) -> anyhow::Result<Network> {
        let path = page::safe::path(&self.fleet);
        let text = host::read_input(&self.fleet).context("no sensors are named (--fleet)")?;
        let read = ::fleet::read(&text);
        let mut sensors = read.map_err(|error| {
            let lines = error.to_string();
            let lines = lines.lines().map(|line| format!("{path}: {line}"));
            Faults(lines.collect::<Vec<_>>().join("\n"))
        })?;
        for name in &self.sensors {
            if !sensors.iter().any(|sensor| sensor.name == *name) {
                let meant = query::nearest(name, sensors.iter().map(|sensor| &*sensor.name));
                let meant = query::did_you_mean(meant);
                let name = page::safe::printable(name);
                return Err(Usage(format!("{path} names no sensor {name:?}{meant}")).into());
            }
        }
        sensors.retain(|sensor| self.sensors.is_empty() || self.sensors.contains(&sensor.name));
        // Paths in the file are from where it lies.
        let folder = self.fleet.parent().unwrap_or(Path::new(""));
        for sensor in &mut sensors {
            let files =
                [&mut sensor.token_file, &mut sensor.ca, &mut sensor.certificate, &mut sensor.key];
            for file in files.into_iter().flatten() {
                *file = folder.join(&*file).to_string_lossy().into_owned();
            }
        }
        Ok(Network { sensors, silence: self.sensor_deadline, program: PROGRAM, token: token() })
    }

    pub(super) fn limits(&self, patience: Option<Duration>) -> Limits {
        Limits {
            silence: self.sensor_deadline,
            deadline: self.deadline,
            hedge: self.hedge,
            patience,
            memory_bytes: MEMORY_BYTES,
        }
    }
}

pub(super) fn names(network: &Network) -> Vec<String> {
    network.sensors.iter().map(|sensor| sensor.name.clone()).collect()
}

/// Asks all sensors until they have ended, or the user has had enough.
pub(super) fn ask<T: Transport>(
    transport: &T,
    (names, limits): (&[String], &Limits),
    take: &mut dyn FnMut(Event<T::Item>) -> anyhow::Result<Taken>,
) -> anyhow::Result<Vec<Part>> {
    let stop = StopFlag::install()?;
    let is_stopped = || stop.is_set();
    let asking = Asking { names, limits, clock: &SystemClock, is_stopped: &is_stopped };
    ::fleet::ask(transport, &asking, take)
}

/// No sensor answered: there is no answer.
pub(super) fn check_answered(whole: &Whole) -> anyhow::Result<()> {
    if whole.is_none() {
        say_lines(&whole.to_string());
        anyhow::bail!("no sensor answered");
    }
    Ok(())
}

/// The end of an answer.
pub(super) fn ended(whole: &Whole, is_shown: bool) -> Verdict {
    if is_shown || whole.needs_word() {
        say_lines(&whole.to_string());
    }
    Verdict::of(whole.state())
}
