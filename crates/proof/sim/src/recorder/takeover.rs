//! A recorder whose machine stands still for so long that another one opens the volume, and that
//! goes on then: it must find that out before it writes anything.

use core::time::Duration;
use std::sync::Arc;

use volume::Error;
use writer::{Filled, mount};

use crate::check::{Verdict, broken};
use crate::history::bits;
use crate::recorder::fate::Fate;
use crate::recorder::turns::Turns;

/// How often it is looked whether the recorder is at rest.
const LOOKS: u64 = 50;

/// The threads that write to the members, the ring writer first. Where one of them is between its
/// look at the clock and its write, that write may come too late: docs/format.md, Claim.
const WRITERS: [&str; 5] = ["ring", "resilver", "spare", "expiry", "scrub"];

impl Fate {
    /// The recorder is paused, another machine has the volume for a while, and the recorder goes
    /// on. From then on only that matters.
    pub(crate) fn take_over(&mut self) -> Verdict {
        // A member in trouble would hold the other one up.
        if self.hurt != 0 || !self.is_at_rest() {
            return Ok(());
        }
        // Nothing else runs until that is over.
        stage::stand_on(None);
        let done = self.another_has_it();
        stage::stand_on(Some(Arc::<Turns>::clone(&self.turns)));
        done
    }

    /// No thread of the recorder is about to write, and nothing is on its way.
    fn is_at_rest(&self) -> bool {
        (0..LOOKS).any(|_| {
            stage::sleep(Duration::from_millis(1));
            self.turns.are_waiting(&WRITERS) && self.rack.in_flight() == 0
        })
    }

    fn another_has_it(&mut self) -> Verdict {
        let disks = bits(self.rack.seats().into_iter().map(|(_, disk)| disk));
        let timeline = self.timeline.clone();
        let tried = mount(self.rack.devices_elsewhere(disks), &self.stranger(&timeline));
        self.say(&format!("another takes over: {:?}", tried.as_ref().map(drop)));
        let mut writer = match tried {
            _ if self.rack.has_crashed() => return Ok(()),
            Err(Error::Claimed { .. }) => {
                return broken("a recorder that stands still has its claim renewed".to_owned());
            }
            Err(_) => {
                self.counters.add("recorder: takeovers that find too little", 1);
                return Ok(());
            }
            Ok((writer, _)) => writer,
        };
        for _ in 0..self.random.below(4) {
            timeline.advance_by(self.random.below(2_000_000_000));
            let done = writer.append(Filled::heartbeat(), &timeline);
            if let Err(error) = done.and_then(|_| writer.drain(&timeline)) {
                return self.unless_crashed(format!("who has taken over cannot write: {error}"));
            }
        }
        // It ends in order, or is killed.
        if self.random.percent(50)
            && let Err(error) = writer.close(&timeline)
        {
            return self.unless_crashed(format!("who has taken over cannot end: {error}"));
        }
        self.rack.arrive();
        if !self.rack.has_crashed() {
            self.counters.add("recorder: taken over while it stood still", 1);
            self.taken_over = Some(self.rack.writes());
        }
        Ok(())
    }

    fn unless_crashed(&self, what: String) -> Verdict {
        if self.rack.has_crashed() { Ok(()) } else { broken(what) }
    }

    /// The recorder has ended: since another one had the volume, nothing was written.
    pub(crate) fn judge_takeover(&self) -> Verdict {
        let Some(before) = &self.taken_over else { return Ok(()) };
        let after = self.rack.writes();
        if *before == after || self.rack.has_crashed() {
            return Ok(());
        }
        broken(format!("a recorder that was taken over writes: {before:?} to {after:?}"))
    }
}
