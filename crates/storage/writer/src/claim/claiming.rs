//! Claiming a volume for writing, step by step.
//!
//! Each step reads or writes the claims of all members at hand, or says when the next one is due;
//! who drives it waits. So a test lets two of them take turns in every order.

use super::{Hold, Kept, Opener};
use crate::member_writers::{Failed, MemberWriters};
use device::Row;
use format::claim::{
    CLAIM_OFFSET, Claim, ClaimError, INTERVAL_ROTATING_MS, TURN_MAX, interval_ns, lease_ns,
    race_ns, yield_ns,
};
use units::MemberId;
use volume::Error;

/// What is to be done next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// Another step.
    Now,
    /// Another step, at this time.
    At(i64),
    /// The members are claimed.
    Taken,
}

enum Stage {
    Look,
    /// A writer may be alive; until then it would have moved.
    Watch {
        until_ns: i64,
        interval_ms: u32,
    },
    /// None is: the claim is to be written, and counts after a wait.
    Claim {
        looked_ns: i64,
        wait_ns: i64,
    },
    /// It is there, and must be at that time.
    Settle {
        until_ns: i64,
        count: u64,
    },
}

/// An opening of a volume for writing, up to where its claim stands.
pub(crate) struct Claiming<'a> {
    opener: &'a Opener<'a>,
    stage: Stage,
    /// Of each member, what lies there as far as this opener knows: what it found, and then its own
    /// claim.
    rows: Vec<(MemberId, Row)>,
    turn: u64,
    kept: Option<Kept>,
}

impl<'a> Claiming<'a> {
    pub(crate) fn new(opener: &'a Opener<'a>) -> Self {
        Self { opener, stage: Stage::Look, rows: Vec::new(), turn: 0, kept: None }
    }

    /// The whole of it, with its waits. Gives the members that cannot be read or written; it goes
    /// on without them.
    ///
    /// # Errors
    /// [`Error::Claimed`] where another process has the volume, [`Error::ClaimedMeanwhile`] where
    /// one else was faster.
    pub(crate) fn run(
        opener: &'a Opener<'a>,
        writers: &mut MemberWriters,
    ) -> Result<Vec<(MemberId, Error)>, Error> {
        let mut claiming = Self::new(opener);
        let mut failed = Vec::new();
        while writers.iter().next().is_some() {
            match claiming.step(writers) {
                Ok(Next::Now) => {}
                Ok(Next::At(until_ns)) => opener.clock.sleep_until(until_ns),
                Ok(Next::Taken) => break,
                Err(Failed { member: None, error }) => return Err(error),
                Err(Failed { member: Some(member), error }) => {
                    writers.remove(member);
                    claiming.rows.retain(|(other, _)| *other != member);
                    failed.push((member, error));
                }
            }
        }
        Ok(failed)
    }

    pub(crate) fn step(&mut self, writers: &mut MemberWriters) -> Result<Next, Failed> {
        let now_ns = self.opener.clock.boottime_ns();
        match self.stage {
            Stage::Look => self.look(writers, now_ns),
            Stage::Watch { until_ns, interval_ms } => {
                self.watch(writers, (until_ns, interval_ms), now_ns)
            }
            Stage::Claim { looked_ns, wait_ns } => self.claim(writers, looked_ns, wait_ns),
            Stage::Settle { until_ns, count } => self.settle(writers, (until_ns, count), now_ns),
        }
    }

    fn look(&mut self, writers: &mut MemberWriters, now_ns: i64) -> Result<Next, Failed> {
        self.rows = writers.read_claims(self.opener.clock)?;
        let mut slowest_ms = None;
        for (member, row) in &self.rows {
            let key = writers.get(*member).expect("it was read").superblock().head_key;
            let found = Claim::decode(row, &key);
            self.turn = self.turn.max(found.as_ref().map_or(0, |claim| claim.turn));
            slowest_ms = slowest_ms.max(self.interval_ms(found));
        }
        if self.turn > TURN_MAX / 2 {
            return Err(Failed::of_nobody(Error::Exhausted("openings")));
        }
        let Some(interval_ms) = slowest_ms else {
            self.stage =
                Stage::Claim { looked_ns: now_ns, wait_ns: race_ns(self.opener.interval_ms) };
            return Ok(Next::Now);
        };
        let until_ns = now_ns + lease_ns(interval_ms);
        self.stage = Stage::Watch { until_ns, interval_ms };
        Ok(Next::At(now_ns + interval_ns(interval_ms)))
    }

    /// How often a writer that may be alive renews what was found; `None` where there is none.
    fn interval_ms(&self, found: Result<Claim, ClaimError>) -> Option<u32> {
        match found {
            Err(ClaimError::Empty) => None,
            // Damage, or a later version: it is not known whose, nor how often it is renewed.
            Err(_) => Some(INTERVAL_ROTATING_MS),
            Ok(claim) if claim.is_given_up || (self.opener.is_gone)(&claim.claimant) => None,
            Ok(claim) => Some(claim.interval_ms),
        }
    }

    fn watch(
        &mut self,
        writers: &mut MemberWriters,
        (until_ns, interval_ms): (i64, u32),
        now_ns: i64,
    ) -> Result<Next, Failed> {
        for (member, row) in writers.read_claims(self.opener.clock)? {
            if self.rows.contains(&(member, row)) {
                continue;
            }
            let key = writers.get(member).expect("it was read").superblock().head_key;
            return match Claim::decode(&row, &key) {
                // It has just ended: who comes after it is still to be seen.
                Ok(claim) if claim.is_given_up => {
                    self.stage = Stage::Look;
                    Ok(Next::Now)
                }
                Ok(by) => Err(refused(by)),
                Err(_) => Err(Failed::of_nobody(Error::Contended { member })),
            };
        }
        if now_ns < until_ns {
            return Ok(Next::At(until_ns.min(now_ns + interval_ns(interval_ms))));
        }
        let wait_ns = yield_ns(interval_ms);
        self.stage = Stage::Claim { looked_ns: now_ns, wait_ns };
        Ok(Next::Now)
    }

    fn claim(
        &mut self,
        writers: &mut MemberWriters,
        looked_ns: i64,
        wait_ns: i64,
    ) -> Result<Next, Failed> {
        let Opener { clock, interval_ms, id, claimant, .. } = self.opener;
        let first = writers.iter().next().expect("a volume has members").superblock();
        let claim = Claim {
            volume_id: first.volume_id,
            member: MemberId(0),
            member_uuid: [0; 16],
            is_given_up: false,
            interval_ms: *interval_ms,
            id: *id,
            turn: self.turn + 1,
            count: 0,
            since: clock.realtime(),
            claimant: claimant.clone(),
        };
        let kept = Kept::new(claim, first.head_key);
        self.kept = Some(kept);
        self.write(writers, 0)?;
        let now_ns = clock.boottime_ns();
        // Late enough for another one to have looked, claimed and looked again in between: then it
        // is given the time to see this claim, and to stop.
        let is_late = now_ns.saturating_sub(looked_ns) >= race_ns(*interval_ms);
        let late_ns = if is_late { yield_ns(*interval_ms) } else { 0 };
        let until_ns = now_ns + wait_ns.max(late_ns);
        self.stage = Stage::Settle { until_ns, count: 0 };
        Ok(Next::At(until_ns.min(now_ns + interval_ns(self.opener.interval_ms))))
    }

    /// The claim must stand on every member; until its time it is renewed.
    fn settle(
        &mut self,
        writers: &mut MemberWriters,
        (until_ns, count): (i64, u64),
        now_ns: i64,
    ) -> Result<Next, Failed> {
        for (member, row) in writers.read_claims(self.opener.clock)? {
            if self.rows.contains(&(member, row)) {
                continue;
            }
            let own = writers.get(member).expect("it was read").superblock();
            return match Claim::decode(&row, &own.head_key) {
                Ok(by) if by.id != self.opener.id && by.turn > self.turn => {
                    self.withdraw(writers);
                    Err(Failed::of_nobody(Error::ClaimedMeanwhile { by: Box::new(by) }))
                }
                _ => {
                    let error = Error::NotTaken { member, offset: CLAIM_OFFSET };
                    Err(Failed { member: Some(member), error })
                }
            };
        }
        if now_ns < until_ns {
            self.write(writers, count + 1)?;
            self.stage = Stage::Settle { until_ns, count: count + 1 };
            return Ok(Next::At(until_ns.min(now_ns + interval_ns(self.opener.interval_ms))));
        }
        let kept = self.kept.as_ref().expect("it was written");
        for (member, row) in &self.rows {
            let writer = writers.get_mut(*member).expect("it was read");
            let hold = Hold::taken(kept, writer.superblock(), (row, count), now_ns);
            writer.hold(hold.map_err(Failed::of_nobody)?);
        }
        writers.keep(kept.clone());
        Ok(Next::Taken)
    }

    /// Writes the claim to every member.
    fn write(&mut self, writers: &mut MemberWriters, count: u64) -> Result<(), Failed> {
        let kept = self.kept.as_ref().expect("there is a claim");
        let rows = &mut self.rows;
        writers.each(|member, writer| {
            let own = writer.superblock();
            let claim = Claim { count, ..kept.on(own) };
            let row = claim.encode(&own.head_key);
            writer.write_claim(&row)?;
            rows.retain(|(other, _)| *other != member);
            rows.push((member, row));
            Ok(())
        })
    }

    /// Where the claim still stands it is taken back, so that no process waits for it.
    fn withdraw(&self, writers: &mut MemberWriters) {
        let Some(kept) = &self.kept else { return };
        for (member, row) in &self.rows {
            let Some(writer) = writers.get_mut(*member) else { continue };
            if writer.read_claim().is_ok_and(|found| found == *row) {
                let own = writer.superblock();
                let claim = Claim { is_given_up: true, ..kept.on(own) };
                let row = claim.encode(&own.head_key);
                // Who cannot write it leaves a claim that is not renewed.
                writer.write_claim(&row).unwrap_or_default();
            }
        }
    }
}

fn refused(by: Claim) -> Failed {
    Failed::of_nobody(Error::Claimed { by: Box::new(by) })
}
