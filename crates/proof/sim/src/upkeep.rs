//! What is done to a volume besides recording: members get back what they missed, and damage is
//! repaired from parity. Either may crash.

use core::ops::ControlFlow;

use format::head::StripeId;
use units::{MemberId, Sequence};
use volume::{Error, Reader};
use writer::{Finding, Outcome, Owner, ScrubOptions, Writer, resilver, scrub};

use crate::check::{Verdict, broken, is_damaged};
use crate::history::{History, bits, bits_of, numbers, opener};
use crate::plan::Mode;
use crate::truth::Fate;

impl History {
    /// Gives members at hand back what they missed. `None`: a crash came.
    pub(crate) fn resilver(&mut self, mut writer: Writer) -> Verdict<Option<Writer>> {
        let present = bits_of(writer.membership().present());
        let has_gap = self.truth.gaps.keys().any(|&member| present & (1 << member) != 0);
        // It reads with a thread for each member, which could not share one time in one order.
        if !has_gap || self.plan.takes_time || !self.random.percent(30) {
            return Ok(Some(writer));
        }
        self.arm_sometimes();
        let timeline = self.disks.timeline().clone();
        let open = |writer: &Writer| writer.reader(self.disks.readers(present));
        let proceed = &mut |_, _| ControlFlow::Continue(());
        let done = resilver(&mut writer, &open, &timeline, proceed);
        self.say(|| format!("resilver: {done:?}"));
        if self.disks.has_crashed() {
            drop(writer);
            self.crashed("crashes in a resilver");
            self.doubt_damaged(self.truth.gaps.keys().copied().collect());
            return Ok(None);
        }
        self.disks.settle(&mut self.random);
        self.acknowledge(writer.acknowledged());
        match done {
            Ok(report) if report.lost.is_empty() && report.waits_for.is_empty() => {
                self.counters.add("resilvers that made all whole", 1);
                // Nor larger: a mount that found an old watermark makes it so.
                self.doubt_damaged(self.truth.gaps.keys().copied().collect());
                self.made_whole(present, writer.repairable().start);
                Ok(Some(writer))
            }
            Ok(report) => {
                let whole = present == self.everybody() && self.plan.is_undamaged();
                if whole && !report.lost.is_empty() {
                    return broken(format!("LOST: with everybody there: {:?}", report.lost));
                }
                self.doubt_damaged(self.truth.gaps.keys().copied().collect());
                self.counters.add("resilvers that lack something", 1);
                Ok(Some(writer))
            }
            Err(error) if self.bad == 0 => broken(format!("a resilver fails: {error}")),
            Err(_) => {
                drop(writer);
                self.counters.add("resilvers that a bad member ends", 1);
                Ok(None)
            }
        }
    }

    /// The members in `present` hold everything from `first` on that K others had. What lies below
    /// the ring is about to overwrite.
    fn made_whole(&mut self, present: u32, first: Sequence) {
        let geometry = self.plan.geometry;
        let data = u32::from(geometry.data_columns);
        let healed: Vec<u8> = numbers(present & !self.bad).collect();
        let gaps = self.truth.gaps.clone();
        for (&id, fact) in &mut self.truth.facts {
            let sources = fact.columns(&geometry, (id.sequence, None), present, self.bad).good;
            for &member in &healed {
                let was_gap = gaps.get(&member);
                let was_gap = was_gap.is_some_and(|gap| gap.contains(&id.sequence));
                // The gap may be smaller than known here: what was damaged may be so still.
                let bit = 1 << member;
                let has_sources = fact.fate == Fate::Kept && sources.count_ones() >= data;
                let was_gap = was_gap && id.sequence >= first;
                if was_gap && has_sources && !is_damaged(fact, bit) {
                    fact.holders |= bit;
                }
            }
        }
        self.truth.gaps.retain(|member, _| !healed.contains(member));
    }

    /// Repairs a volume that no process has mounted.
    pub(crate) fn scrub(&mut self) -> Verdict {
        if !matches!(self.plan.mode, Mode::Rot { .. }) || !self.random.percent(15) {
            return Ok(());
        }
        self.arm_sometimes();
        let done = self.claim_and_scrub();
        if self.disks.has_crashed() {
            self.crashed("crashes in a scrub");
            self.doubt_damaged(numbers(self.everybody()).collect());
            return Ok(());
        }
        self.disks.settle(&mut self.random);
        let findings = match done {
            Ok(findings) => findings,
            Err(Error::Quorum { .. }) => return Ok(()),
            Err(error) => return broken(format!("a scrub fails: {error}")),
        };
        self.counters.add("scrubs", 1);
        self.say(|| format!("scrub: {findings:?}"));
        for finding in &findings {
            self.check_finding(finding)?;
        }
        Ok(())
    }

    fn claim_and_scrub(&mut self) -> Result<Vec<Finding>, Error> {
        let everybody = self.everybody();
        let timeline = self.disks.timeline().clone();
        let opener = opener(&mut self.random, &timeline);
        let mut owner = Owner::claim(self.disks.devices(everybody, &mut self.random), &opener)?;
        let reader = Reader::open(self.disks.readers(everybody))?;
        let in_turn = ScrubOptions { slots_ahead: 0 };
        let proceed = &mut |_, _| ControlFlow::Continue(());
        let findings = scrub(&reader, Some(&mut owner), in_turn, proceed)?.findings;
        owner.give_up()?;
        Ok(findings)
    }

    /// What is repaired is good again; what is lost was damaged beyond parity.
    fn check_finding(&mut self, finding: &Finding) -> Verdict {
        let (id, member) = (finding.damage.stripe, finding.damage.member);
        let parity = u32::from(self.plan.geometry.parity_columns);
        let everybody = self.everybody();
        let Some(fact) = self.truth.facts.get_mut(&id) else { return Ok(()) };
        let bit = member.map_or(0, MemberId::bit);
        match &finding.outcome {
            Outcome::Repaired => {
                self.counters.add("scrub: pieces repaired", 1);
                fact.bad_heads &= !bit;
                fact.bad_rows.iter_mut().for_each(|members| *members &= !bit);
                Ok(())
            }
            Outcome::Lost | Outcome::Partly { .. } if fact.damaged_columns() <= parity => {
                let sure = fact.fate == Fate::Kept && fact.holders == everybody;
                let what = format!("LOST: a scrub gives up {id} on {member:?}: {finding:?}");
                if sure { broken(what) } else { Ok(()) }
            }
            Outcome::Failed(error) => broken(format!("a repair of {id} fails: {error}")),
            _ => Ok(()),
        }
    }

    /// What was damaged on these members may be repaired by now, wholly or in part.
    fn doubt_damaged(&mut self, members: Vec<u8>) {
        self.truth.doubt_damaged(StripeId::default(), bits(members.into_iter()));
    }

    fn arm_sometimes(&mut self) {
        if self.random.percent(40) {
            let after = self.random.below(30);
            let crashes = self.choose_crashes();
            self.disks.arm(after, crashes);
        }
    }
}
