//! What is looked at besides packets: disks, processors, sockets, recorders.

use ::connections::{Live as LiveTcp, Watch};
use ::diagnose::io::{IoWatch, Live as LiveIo, Target};
use ::vitals::profile::{By, Missing, Profiler, Row, Span, Summary};
use ::vitals::{Look, Vitals, vitals};
use findings::Unseen;
use host::SystemClock;
use units::{Clock, NANOS_PER_SECOND, Sleep};

use crate::failure::line;
use crate::recorder;
use crate::top::watcher::{GoOn, Watcher};

/// What disks are looked at for at a time.
const DISK_NS: i64 = 2 * NANOS_PER_SECOND;
const SOCKETS_NS: i64 = NANOS_PER_SECOND;
/// Samples a second of each processor: not a divisor of what programs do things at.
const HZ: u32 = 99;
/// Between two looks at the samples, so that processes that end soon keep their names.
const SAMPLES_NS: i64 = NANOS_PER_SECOND / 10;
/// Looks until what they saw is shown anew.
const SAMPLE_LOOKS: u32 = 10;

/// What processors worked at, by the groupings of the tab.
#[derive(Debug)]
pub struct Worked {
    /// By process, library and function.
    pub rows: [Vec<Row>; 3],
    /// All of them together.
    pub summary: Summary,
    /// Samples that are missing.
    pub missing: Missing,
    /// What could not be seen.
    pub unseen: Vec<Unseen>,
}

/// States of recorders now and a moment before, by the ids of their volumes.
pub type Recorders = [Vec<(String, String)>; 2];

/// One thread for each thing that is looked at.
#[derive(Debug)]
pub struct Watchers {
    /// Disks.
    pub disks: Watcher<IoWatch>,
    /// Processors, or why they cannot be sampled.
    pub processors: Watcher<Result<Worked, String>>,
    /// Sockets of TCP, or why they cannot be seen.
    pub sockets: Watcher<Result<Watch, String>>,
    /// Vital signs of the machine.
    pub vitals: Watcher<Vitals>,
    /// Recorders.
    pub recorders: Watcher<Recorders>,
}

impl Watchers {
    /// Starts all of them.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self {
            disks: Watcher::new("disks", || look_at_disks)?,
            processors: Watcher::new("processors", || {
                let mut profiler = Profiler::open(HZ, &SystemClock);
                move |go_on: GoOn<'_>| match &mut profiler {
                    Ok(profiler) => Ok(look_at_processors(profiler, go_on)),
                    Err(refused) => {
                        rest(NANOS_PER_SECOND);
                        Err(format!("samples take {refused}"))
                    }
                }
            })?,
            sockets: Watcher::new("sockets", || {
                let mut live = LiveTcp::default();
                move |go_on: GoOn<'_>| look_at_sockets(&mut live, go_on)
            })?,
            vitals: Watcher::new("vitals", || {
                let mut before = Look::now(&SystemClock);
                move |_: GoOn<'_>| {
                    rest(NANOS_PER_SECOND);
                    let now = Look::now(&SystemClock);
                    vitals(Some(&core::mem::replace(&mut before, now.clone())), &now)
                }
            })?,
            recorders: Watcher::new("recorders", || {
                let mut before = Vec::new();
                move |_: GoOn<'_>| look_at_recorders(&mut before)
            })?,
        })
    }
}

fn rest(ns: i64) {
    SystemClock.sleep_until(SystemClock.boottime_ns() + ns);
}

fn look_at_disks(go_on: GoOn<'_>) -> IoWatch {
    let mut live = LiveIo::new(Target::default());
    ::diagnose::io::watch(&mut live, &SystemClock, DISK_NS, &mut |_| go_on())
}

fn look_at_processors(profiler: &mut Profiler, go_on: GoOn<'_>) -> Worked {
    for _ in 0..SAMPLE_LOOKS {
        rest(SAMPLES_NS);
        profiler.look(&SystemClock);
        if go_on().is_break() {
            break;
        }
    }
    let unseen = profiler.unseen();
    let profile = profiler.profile();
    let rows = |by| profile.rows(by, Span::Recent);
    Worked {
        rows: [rows(By::Process), rows(By::Library), rows(By::Function)],
        summary: profile.summary(Span::Recent),
        missing: profiler.missing(),
        unseen,
    }
}

fn look_at_sockets(live: &mut LiveTcp, go_on: GoOn<'_>) -> Result<Watch, String> {
    let times = (SOCKETS_NS, SOCKETS_NS);
    let watch = ::connections::watch(live, &SystemClock, times, &mut |_| go_on());
    watch.map_err(|error| line(&error.into()))
}

fn look_at_recorders(before: &mut Vec<(String, String)>) -> Recorders {
    let now = recorder::states();
    let then = core::mem::replace(before, now.clone());
    rest(NANOS_PER_SECOND);
    [now, then]
}
