//! What a recorder does between a mount and a crash: stripes, flushes, waits, an orderly stop; and
//! members that get into trouble meanwhile.

use core::time::Duration;

use device::{Crash, Fault, MUTATIONS, Operation, Rule};
use format::head::{HEAD_BYTES, Kind, StripeId, Totals};
use units::{EachSequence, MemberId, Sequence, Timestamp};
use volume::Error;
use writer::{Filled, FilledColumn, Returning, Writer};

use crate::check::{Look, Verdict, broken};
use crate::content::{ENCRYPTED, fill_body, packets_of};
use crate::history::{History, at, bits_of, numbers};
use crate::plan::Mode;
use crate::truth::{Fate, Pending};

const FLUSHES: &[Operation] = &[Operation::Flush];

impl History {
    /// Writes until a crash or an orderly stop.
    pub(crate) fn record(&mut self, writer: Writer) -> Verdict {
        let mut writer = writer;
        for _ in 0..if self.paused.is_some() { self.random.below(6) } else { 0 } {
            if let Err(error) = self.append(&mut writer)? {
                return broken(format!("who has taken over cannot go on: {error}"));
            }
        }
        self.resume(&writer)?;
        self.is_fatal = false;
        for member in numbers(bits_of(writer.membership().present())) {
            writer.discard_ahead(MemberId(member), self.plan.discards && self.random.percent(80));
        }
        if self.random.percent(50) {
            let after = self.random.below(40 * u64::from(self.plan.members()));
            let crashes = self.choose_crashes();
            self.disks.arm(after, crashes);
        }
        self.write_faults();
        let steps = self.random.below(50) + 5;
        let share_of_appends = 30 + self.random.below(50);
        for number in 0..steps {
            let present = bits_of(writer.membership().present());
            let result = self.step(&mut writer, (share_of_appends, number))?;
            if self.disks.has_crashed() {
                drop(writer);
                self.crashed("crashes while writing");
                self.doubt_epoch(present);
                return Ok(());
            }
            if let Err(error) = result {
                drop(writer);
                return self.ended(&error);
            }
            self.look_beside(&writer)?;
        }
        self.counters.add("bytes discarded", writer.counters().discarded_bytes);
        self.end(writer)
    }

    /// The writer gives up: nothing but the loss of a member that it needs may make it.
    fn ended(&mut self, error: &Error) -> Verdict {
        if !self.is_fatal || !matches!(error, Error::TooFewLeft { .. }) {
            return broken(format!("the writer ends: {error}"));
        }
        self.say(|| format!("the writer ends: {error}"));
        self.counters.add("writers that end with a member they need", 1);
        // What it sent arrives, or the power goes as well.
        self.disks.settle(&mut self.random);
        self.disks.clear_rules();
        let crashes = self.choose_crashes();
        self.disks.crash(&crashes, &mut self.random);
        self.counters.add("crashes", 1);
        self.counters.add("crashes behind a failed flush", 1);
        Ok(())
    }

    fn end(&mut self, mut writer: Writer) -> Verdict {
        if self.random.percent(25) {
            let drained = writer.drain(self.disks.timeline());
            self.acknowledge(writer.acknowledged());
            let present = bits_of(writer.membership().present());
            let epoch = writer.epoch();
            self.truth.stop = writer.next();
            let closed = drained.and_then(|()| writer.stop(self.disks.timeline()));
            if writer.epoch() != epoch {
                // A member left meanwhile, and the stop is in the epoch without it.
                self.truth.stop = StripeId { sequence: writer.next().sequence - 1, sub: u16::MAX };
            }
            drop(writer);
            if self.disks.has_crashed() {
                self.crashed("crashes while stopping");
                self.doubt_epoch(present);
                return Ok(());
            }
            if let Err(error) = closed {
                return self.ended(&error);
            }
            self.counters.add("orderly stops", 1);
            self.say(|| "an orderly stop".to_owned());
            self.doubt_epoch(present);
            self.stopped = present == self.everybody() && self.troubled == 0;
        } else if self.pause(writer) {
            return Ok(());
        }
        let crashes = self.choose_crashes();
        self.disks.crash(&crashes, &mut self.random);
        self.counters.add("crashes", 1);
        self.counters.add("crashes between calls", 1);
        Ok(())
    }

    /// An epoch without the members in trouble may have begun, unseen.
    fn doubt_epoch(&mut self, present: u32) {
        if self.troubled | self.bad != 0 {
            self.truth.decided_unseen(present & !self.troubled);
        }
    }

    /// One thing that a recorder does. The outer error is a broken promise, the inner one the
    /// writer's.
    fn step(
        &mut self,
        writer: &mut Writer,
        (share_of_appends, number): (u64, u64),
    ) -> Verdict<Result<(), Error>> {
        let clock = self.disks.timeline().clone();
        // A recorder begins with what the one before has left undone.
        let is_left = number == 0 && writer.left_to_erase() > 0;
        let done = match self.random.below(100) {
            dice if is_left && dice < 70 => self.erase_all(writer)?,
            dice if dice < share_of_appends => self.append(writer)?,
            dice if dice < share_of_appends + 4 => writer.drain(&clock),
            dice if dice < share_of_appends + 6 => {
                self.trouble(writer);
                Ok(())
            }
            dice if dice < share_of_appends + 10 => self.take_back(writer)?,
            dice if dice < share_of_appends + 13 => self.erase(writer)?,
            dice if dice < share_of_appends + 14 => self.rival_tries(writer)?,
            dice if dice % 2 == 0 => writer.poll(None, &clock),
            _ => writer.poll(Some(Duration::ZERO), &clock),
        };
        clock.advance_by(self.random.below(9_000_000));
        // Nothing is asked of anybody for a while, and nothing else happens.
        if self.random.percent(2) && self.disks.in_flight() == 0 {
            clock.advance_by(self.random.below(6_000_000_000));
        }
        if self.random.percent(1) {
            let hours = i64::try_from(self.random.below(48)).expect("small") - 24;
            clock.jump_realtime(hours * 3_600_000_000_000);
            self.counters.add("fault: clock jumps", 1);
        }
        self.acknowledge(writer.acknowledged());
        self.truth.joined = bits_of(writer.membership().present());
        self.note_stripe(writer.acknowledged());
        Ok(done)
    }

    pub(crate) fn append(&mut self, writer: &mut Writer) -> Verdict<Result<(), Error>> {
        if !writer.has_room_in_window() && self.random.percent(80) {
            return Ok(Ok(()));
        }
        let full = self.plan.geometry.rows_per_slot() - 1;
        let rows = match self.random.below(10) {
            0 => 0,
            1..6 => full,
            _ => u16::try_from(self.random.below(u64::from(full) + 1)).expect("rows of a piece"),
        };
        // A heartbeat has no rows; unpadded stripes may leave a single row of a slot.
        let rows = if rows > 0 && self.random.percent(60) { writer.plan(rows).rows } else { rows };
        let kind = if rows == 0 {
            Kind::Heartbeat
        } else {
            self.random.pick(&[Kind::Data, Kind::Data, Kind::Index])
        };
        let framed = if self.plan.is_encrypted { ENCRYPTED } else { 0 };
        let mark = self.random.next() & !ENCRYPTED | framed;
        let Some(filled) = self.fill(kind, rows, mark) else { return Ok(Ok(())) };
        let holders = bits_of(writer.membership().present()) & !self.bad & !self.troubled;
        let pending = Pending { kind, rows, mark, holders };
        self.truth.pending = Some(pending);
        let before = bits_of(writer.membership().present());
        let astray = self.send_astray(before, (writer.next().sequence, rows, writer.plan(0).room));
        let appended = writer.append(filled, self.disks.timeline());
        let lost_by = astray.map_or(0, |astray| self.settle_astray(astray));
        match appended {
            Ok(appended) => {
                let known = self.truth.facts.get(&appended.stripe);
                if known.is_some_and(|fact| fact.fate != Fate::Dead)
                    || appended.stripe <= self.truth.acknowledged
                {
                    return broken(format!("sequence {} is used again", appended.stripe));
                }
                let mut fact = pending.into_fact();
                // Who was expelled during the call may or may not have it.
                fact.holders &= bits_of(writer.membership().present()) | !before;
                fact.bad_heads |= lost_by;
                fact.bad_rows.iter_mut().for_each(|members| *members |= lost_by);
                if kind == Kind::Index && self.random.percent(50) {
                    writer.set_newest_index(appended.stripe);
                }
                self.truth.facts.insert(appended.stripe, fact);
                self.truth.pending = None;
                let acknowledged = writer.acknowledged();
                self.say(|| {
                    let id = appended.stripe;
                    format!("{kind:?} {id} of {rows} rows; acknowledged {acknowledged}")
                });
                self.counters.add("stripes", 1);
                self.note_stripe(appended.stripe);
                Ok(Ok(()))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    /// Appends what is not to arrive.
    pub(crate) fn append_nowhere(&mut self, writer: &mut Writer) -> Result<(), Error> {
        let rows = self.plan.geometry.rows_per_slot() - 1;
        let framed = if self.plan.is_encrypted { ENCRYPTED } else { 0 };
        let Some(filled) = self.fill(Kind::Data, rows, framed) else { return Ok(()) };
        if !writer.has_room_in_window() {
            return Ok(());
        }
        writer.append(filled, self.disks.timeline()).map(drop)
    }

    /// Gives up a part of the ring, or erases what was given up.
    fn erase(&mut self, writer: &mut Writer) -> Verdict<Result<(), Error>> {
        let clock = self.disks.timeline().clone();
        let erasable = writer.erasable();
        let done = match self.random.below(6) {
            0 => {
                let before = erasable.start + self.random.below(erasable.end - erasable.start + 1);
                self.say(|| format!("gives up what lies before {before}"));
                self.truth.giving_up = before.max(self.truth.giving_up);
                let done = writer.give_up_before(before, &clock);
                if !self.disks.has_crashed() {
                    self.truth.given_up = writer.superblock().given_up_before;
                }
                self.counters.add("given up", 1);
                match done {
                    Ok(()) if self.random.percent(50) => return self.erase_all(writer),
                    done => done,
                }
            }
            1 => writer.note_erased(&clock),
            2 => return self.erase_all(writer),
            _ => writer.erase_next(&clock).map(drop),
        };
        Ok(done)
    }

    /// Afterwards nothing is left of it on any member.
    fn erase_all(&mut self, writer: &mut Writer) -> Verdict<Result<(), Error>> {
        let clock = self.disks.timeline().clone();
        loop {
            let more = writer.erase_next(&clock);
            // `drain` waits for writes alone: that a discard is complete shows in a poll.
            let polled = more.and_then(|more| writer.poll_at_once(&clock).map(|()| more));
            let drained = polled.and_then(|more| writer.drain(&clock).map(|()| more));
            match drained {
                Ok(true) if !self.disks.has_crashed() => {}
                Ok(_) => break,
                Err(error) => return Ok(Err(error)),
            }
        }
        let present = bits_of(writer.membership().present()) & !self.troubled;
        let is_certain = self.plan.is_undamaged() && !self.disks.has_crashed();
        for member in numbers(if is_certain { present } else { 0 }) {
            self.check_erased(writer, member)?;
        }
        Ok(writer.note_erased(&clock))
    }

    fn check_erased(&mut self, writer: &Writer, member: u8) -> Verdict {
        let geometry = self.plan.geometry;
        // A crash may have left in a slot what came after, and no mount kept: that is not old.
        let handed = self.truth.facts.last_key_value().map_or(Sequence(0), |(id, _)| id.sequence);
        let newest = writer.acknowledged().sequence.max(handed);
        let mut slot = vec![0; usize::try_from(geometry.piece_bytes).expect("at most 2 MiB")];
        let oldest = (newest + 2).saturating_sub(geometry.slots).max(geometry.first_sequence());
        for sequence in (oldest..writer.superblock().given_up_before).each() {
            let offset = geometry.slot_offset(sequence);
            for device in self.disks.readers(1 << member) {
                let read = device.read_at(offset, &mut slot);
                let end = slot.len() - 4;
                let rows = slot.get(HEAD_BYTES..end).unwrap_or_default();
                if read.is_err() || rows.iter().any(|&byte| byte != 0) {
                    return broken(format!("EXPIRED: {sequence} is left on {member} ({read:?})"));
                }
            }
            self.counters.add("slots erased", 1);
        }
        Ok(())
    }

    fn fill(&self, kind: Kind, rows: u16, mark: u64) -> Option<Filled> {
        let data_columns = if rows == 0 { 0 } else { self.plan.geometry.data_columns };
        let body = HEAD_BYTES..HEAD_BYTES * (1 + usize::from(rows));
        let mut columns = Vec::new();
        for column in 0..data_columns {
            let mut buffer = self.pool.take()?;
            fill_body((kind, mark, column), buffer.get_mut(body.clone())?);
            columns.push(FilledColumn { buffer, packets: packets_of(kind, rows) });
        }
        let packets = u64::from(packets_of(kind, rows)) * u64::from(data_columns);
        let totals = Totals { packets, ..Totals::default() };
        let (time_min, time_max) = (Timestamp::MAX, Timestamp::MIN);
        let extra_blocks = false;
        Some(Filled { columns, kind, rows, totals, time_min, time_max, extra_blocks })
    }

    /// A reader beside the writer: it shows what is acknowledged and nothing else.
    fn look_beside(&mut self, writer: &Writer) -> Verdict {
        let is_racing = self.disks.is_gradual() && self.disks.in_flight() > 0;
        if self.random.below(if is_racing { 50 } else { 150 }) > 0 {
            return Ok(());
        }
        self.counters.add("readers beside writes that show row by row", u64::from(is_racing));
        let present = bits_of(writer.membership().present());
        let readable = self.with_superblock(present & !self.troubled);
        let lost = (present & !readable).count_ones();
        if lost > u32::from(self.plan.geometry.parity_columns) {
            return Ok(());
        }
        let reader = match self.reader(readable) {
            Ok(reader) => reader,
            Err(error) => return broken(format!("a reader cannot open beside: {error}")),
        };
        let shown = reader.span().map(|span| span.acknowledged);
        if shown > Some(self.truth.acknowledged) {
            let known = self.truth.acknowledged;
            return broken(format!("a reader beside shows {shown:?}, acknowledged is {known}"));
        }
        self.counters.add("readers beside a writer", 1);
        let scene = self.scene(readable);
        Look::new(&mut self.truth, (&reader, &self.disks), scene, &mut self.counters)
            .read()
            .map_err(at("beside"))?;
        Ok(())
    }

    /// A member that recording went on without is there again, well, and is taken back.
    fn take_back(&mut self, writer: &mut Writer) -> Verdict<Result<(), Error>> {
        let present = bits_of(writer.membership().present());
        let left = writer.expelled().iter().map(|expelled| expelled.member);
        let away: Vec<u8> = numbers(bits_of(left) & !present & !self.bad).collect();
        if away.is_empty() || !writer.has_let_go() {
            return Ok(Ok(()));
        }
        let member = self.random.pick(&away);
        self.disks.come_back(member);
        let device = self.disks.devices(1 << member, &mut self.random).remove(0);
        let taken = Returning::open(device)
            .and_then(|returning| writer.take_back(returning, self.disks.timeline()));
        self.say(|| format!("member {member} is there again: {taken:?}"));
        if self.disks.has_crashed() {
            return Ok(Ok(()));
        }
        if let Err(error) = taken {
            return broken(format!("member {member} is not taken back: {error}"));
        }
        let present = bits_of(writer.membership().present());
        if present & (1 << member) != 0 {
            self.counters.add("members taken back while recording", 1);
            self.troubled &= !(1 << member);
            self.truth.take_part(present, writer.acknowledged().sequence);
        }
        Ok(Ok(()))
    }

    /// A member fails, stalls or vanishes; at most as many as may be absent.
    fn trouble(&mut self, writer: &Writer) {
        let present = bits_of(writer.membership().present());
        if !matches!(self.plan.mode, Mode::Honest { .. } | Mode::Rot { .. }) {
            return;
        }
        if self.plan.geometry.parity_columns == 0 && !self.is_fatal {
            return self.fail_for_good(present);
        }
        let well = present & !self.troubled;
        let bearable = numbers(well).filter(|&member| self.may_lack(well, 1 << member));
        let candidates: Vec<u8> = bearable.collect();
        if candidates.is_empty() || present.count_ones() < 2 {
            return;
        }
        let member = self.random.pick(&candidates);
        self.troubled |= 1 << member;
        self.say(|| format!("member {member} gets into trouble"));
        self.truth.doubt(member, self.truth.acknowledged.sequence);
        let disk = self.disks.get(member);
        match self.random.below(5) {
            4 => {
                disk.add_rule(Rule::new(Fault::FlushForgets, FLUSHES).times(1));
                self.counters.add("fault: a flush fails and forgets", 1);
            }
            0 => {
                disk.add_rule(Rule::new(Fault::Error, MUTATIONS));
                self.counters.add("fault: member fails", 1);
            }
            1 => {
                disk.add_rule(Rule::new(Fault::Error, MUTATIONS).times(1));
                self.counters.add("fault: one failed write or flush", 1);
            }
            2 => {
                disk.vanish(Crash::Rows { seed: self.cycle });
                self.counters.add("fault: member vanishes", 1);
            }
            _ => {
                disk.stall(3_600_000_000_000);
                self.counters.add("fault: member stalls", 1);
            }
        }
    }

    /// Without parity one failed flush is the end: what it should have covered is not acknowledged,
    /// though reads show it and the next flush succeeds.
    fn fail_for_good(&mut self, present: u32) {
        if self.random.percent(70) {
            return;
        }
        let candidates: Vec<u8> = numbers(present).collect();
        let member = self.random.pick(&candidates);
        self.is_fatal = true;
        self.say(|| format!("a flush of member {member} will fail, which no writer survives"));
        self.disks.get(member).add_rule(Rule::new(Fault::FlushForgets, FLUSHES).times(1));
        self.counters.add("fault: a flush fails and forgets, without parity", 1);
    }
}
