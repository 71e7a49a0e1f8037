//! Other writers on the same disks, as another machine has them: one that tries to open the volume
//! while another writes, and one that was paused, and comes back when another has taken over.

use std::sync::{Mutex, PoisonError};

use device::Timeline;
use units::{Clock, Sleep, Timestamp};
use volume::Error;
use writer::{Opener, Writer, mount};

use crate::check::{Verdict, broken};
use crate::history::{History, bits_of, opener};

/// How often a recorder looks after its members at least.
const POLL_NS: i64 = 50_000_000;

/// Time in which a writer goes on with what it does.
struct Beside<'a> {
    timeline: &'a Timeline,
    writer: Mutex<(&'a mut Writer, Result<(), Error>)>,
}

impl Clock for Beside<'_> {
    fn realtime(&self) -> Timestamp {
        self.timeline.realtime()
    }

    fn boottime_ns(&self) -> i64 {
        self.timeline.boottime_ns()
    }

    fn boot(&self) -> u64 {
        self.timeline.boot()
    }
}

impl Sleep for Beside<'_> {
    fn sleep_until(&self, until_ns: i64) {
        let mut beside = stage::lock(&self.writer);
        let (writer, result) = &mut *beside;
        while self.boottime_ns() < until_ns {
            self.timeline.sleep_until(until_ns.min(self.boottime_ns() + POLL_NS));
            if result.is_ok() {
                *result = writer.poll(None, self.timeline);
            }
        }
    }
}

impl History {
    /// Another process tries to open the volume: it must see that there is a writer, and leave it
    /// alone. What the writer says meanwhile is the inner result.
    pub(crate) fn rival_tries(&mut self, writer: &mut Writer) -> Verdict<Result<(), Error>> {
        // A member in trouble would hold the rival up for longer than it waits, and a fault that is
        // meant for the writer would be the rival's.
        if self.troubled != 0 || self.is_fatal {
            return Ok(Ok(()));
        }
        let timeline = self.disks.timeline().clone();
        let readable = self.with_superblock(self.everybody());
        let devices = self.disks.devices_elsewhere(readable, &mut self.random);
        let stranger = Opener { is_gone: &|_| false, ..opener(&mut self.random, &timeline) };
        let beside = Beside { timeline: &timeline, writer: Mutex::new((writer, Ok(()))) };
        let tried = mount(devices, &Opener { clock: &beside, ..stranger });
        let (_, result) = beside.writer.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.say(|| format!("a rival tries: {:?}", tried.as_ref().map(drop)));
        match tried {
            _ if self.disks.has_crashed() => Ok(Ok(())),
            Ok(_) => broken("two have the volume open for writing".to_owned()),
            Err(Error::Claimed { .. }) => {
                self.counters.add("rivals refused", 1);
                Ok(result)
            }
            Err(_) if self.bad != 0 || result.is_err() => Ok(result),
            Err(error) => broken(format!("a rival is refused for the wrong reason: {error}")),
        }
    }

    /// The writer stops answering, with nothing on its way to any disk; what was on its way would
    /// have arrived. `false`: this is no moment for it.
    pub(crate) fn pause(&mut self, mut writer: Writer) -> bool {
        if self.troubled != 0 || !self.random.percent(10) {
            drop(writer);
            return false;
        }
        // The crash that may be due does not come.
        self.disks.settle(&mut self.random);
        self.disks.clear_rules();
        let done = writer.drain(&self.disks.timeline().clone());
        let is_idle = done.is_ok() && self.disks.in_flight() == 0;
        self.acknowledge(writer.acknowledged());
        if is_idle {
            self.counters.add("writers paused", 1);
            self.say(|| "the writer is paused".to_owned());
            self.paused = Some(writer);
            self.disks.change_machine();
        }
        is_idle
    }

    /// The one that was paused goes on, while `writer` has taken over: it must find that out before
    /// it writes anything to the members that the other one has. On one that lost the other's claim
    /// nothing is to be seen, and what is written there until the others say so is mended from
    /// them.
    pub(crate) fn resume(&mut self, writer: &Writer) -> Verdict {
        let Some(mut paused) = self.paused.take() else { return Ok(()) };
        let taken = bits_of(writer.membership().present()) & !self.bad;
        let timeline = self.disks.timeline().clone();
        let before = self.writes(taken);
        let mut said = None;
        for _ in 0..200 {
            let done = match self.random.below(3) {
                0 => self.append_nowhere(&mut paused),
                1 => paused.poll(None, &timeline),
                _ => paused.drain(&timeline),
            };
            timeline.advance_by(self.random.below(9_000_000));
            if let Err(error) = done {
                said = Some(error);
                break;
            }
        }
        let (after, crashed) = (self.writes(taken), self.disks.has_crashed());
        match said {
            _ if crashed => Ok(()),
            _ if before != after => {
                broken(format!("a writer that was taken over writes: {before:?} to {after:?}"))
            }
            Some(Error::TakenOver { .. }) => {
                self.counters.add("paused writers that stop", 1);
                Ok(())
            }
            Some(error) => broken(format!("a paused writer stops for the wrong reason: {error}")),
            None => broken("a writer that was taken over goes on".to_owned()),
        }
    }

    /// What was sent to each of these members so far, flushes apart.
    fn writes(&self, members: u32) -> Vec<u64> {
        let work = self.disks.among(members).map(|(_, disk)| disk.work());
        work.map(|work| work.writes).collect()
    }
}
