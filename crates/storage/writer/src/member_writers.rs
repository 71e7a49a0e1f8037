//! The members of an open volume together: what is done to each of them alike.

use core::ops::Range;
use core::time::Duration;
use std::cell::RefCell;
use std::collections::BTreeSet;

use device::{Pool, Row};
use format::claim::CLAIM_OFFSET;
use format::superblock::{SUPERBLOCK_BYTES, SUPERBLOCK_COPIES, Superblock};
use units::{Clock, MemberId, Sequence};
use volume::check_own_seat;
use volume::heads::{Expected, Heads, Unreadable};
use volume::{Error, Membership, superblocks};

use crate::claim::Kept;
use crate::member_writer::MemberWriter;
use crate::steps::{RENEWAL, Step, of_superblock};

/// How long to wait at once where only the members can bring something new.
pub(crate) const WAIT: Duration = Duration::from_millis(100);
/// How long to look at one member before looking at the others again.
const LOOK: Duration = Duration::from_millis(1);

/// A place that could not be read: member, offset, and bytes.
type UnreadPlace = (MemberId, u64, usize);

/// Places of one member that are kept of those that could not be read: some tell whether it reads
/// again.
const UNREAD_MAX: usize = 16;

/// The members that are there, by number.
#[derive(Debug)]
pub(crate) struct MemberWriters {
    /// By number.
    members: Vec<Option<MemberWriter>>,
    /// Where the next wait begins.
    turn: usize,
    /// A member that answers nothing for this long, while others do, has failed.
    patience_ns: i64,
    /// When too few members last answered for it to be the fault of any of them.
    all_silent_ns: i64,
    /// When it was last looked who answers.
    looked_ns: i64,
    /// What is claimed on every member, also on those that come later.
    kept: Option<Kept>,
    /// Another writer has the volume: nothing more is sent.
    is_taken_over: bool,
}

/// Why something could not be done with all members.
#[derive(Debug)]
pub(crate) struct Failed {
    /// The member that cannot be written any more; `None` where it is not one member's fault.
    pub(crate) member: Option<MemberId>,
    pub(crate) error: Error,
}

impl Failed {
    /// What is not one member's fault.
    pub(crate) fn of_nobody(error: impl Into<Error>) -> Self {
        Self { member: None, error: error.into() }
    }

    /// What came of a member: its own failure, or that another writer has the volume.
    fn of(member: MemberId, error: Error) -> Self {
        let is_taken_over = matches!(error, Error::TakenOver { .. });
        Self { member: (!is_taken_over).then_some(member), error }
    }
}

impl MemberWriters {
    /// Puts opened members at their places.
    pub(crate) fn assemble(opened: Vec<MemberWriter>) -> Result<Self, Error> {
        let membership = membership_of(opened.iter())?;
        let mut members = Vec::new();
        members.resize_with(membership.numbers().count(), || None);
        for writer in opened {
            let number = writer.superblock().member.place();
            *members.get_mut(number).expect("assembled") = Some(writer);
        }
        Ok(Self {
            members,
            turn: 0,
            patience_ns: i64::MAX,
            all_silent_ns: i64::MIN,
            looked_ns: i64::MAX,
            kept: None,
            is_taken_over: false,
        })
    }

    /// From now on the writer waits no longer for a member than for the others.
    pub(crate) fn set_patience(&mut self, patience_ns: i64) {
        self.patience_ns = patience_ns;
    }

    pub(crate) fn membership(&self) -> Membership {
        membership_of(self.members.iter().flatten()).expect("they were assembled before")
    }

    /// Lets those go that the others have no seat for: who knew of the change that gave them one is
    /// not there any more.
    pub(crate) fn remove_strangers(&mut self) -> Vec<(MemberId, Error)> {
        let own = self.members.iter().flatten().map(MemberWriter::superblock);
        let Some(newest) = own.clone().max_by_key(|own| own.newness()).cloned() else {
            return Vec::new();
        };
        let stranger = |own: &Superblock| {
            check_own_seat(&newest, 0, own).err().map(|error| (own.member, error))
        };
        let strangers: Vec<(MemberId, Error)> = own.filter_map(stranger).collect();
        for (member, _) in &strangers {
            self.remove(*member);
        }
        strangers
    }

    pub(crate) fn get(&self, member: MemberId) -> Option<&MemberWriter> {
        self.members.get(member.place())?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, member: MemberId) -> Option<&mut MemberWriter> {
        self.members.get_mut(member.place())?.as_mut()
    }

    /// The members are claimed.
    pub(crate) fn keep(&mut self, kept: Kept) {
        self.kept = Some(kept);
    }

    /// Reads the superblocks again, now that no other process writes; gives the members that cannot
    /// be read.
    pub(crate) fn reload(&mut self) -> Result<Vec<(MemberId, Error)>, Error> {
        let mut devices: Vec<_> = self.iter_mut().map(|(_, writer)| writer.device_mut()).collect();
        let loaded = superblocks::load_all(&mut devices);
        let mut failed = Vec::new();
        for ((member, writer), loaded) in self.iter_mut().zip(loaded) {
            match loaded {
                Ok(superblock) => writer.reloaded(superblock),
                Err(error) => failed.push((member, error)),
            }
        }
        for (member, _) in &failed {
            self.remove(*member);
        }
        if self.iter().next().is_some() {
            membership_of(self.iter())?;
        }
        Ok(failed)
    }

    /// The claims of all members, read at the same time.
    pub(crate) fn read_claims(
        &mut self,
        clock: &dyn Clock,
    ) -> Result<Vec<(MemberId, Row)>, Failed> {
        let offsets: &[u64] = &[CLAIM_OFFSET];
        let places: Vec<(MemberId, &[u64])> =
            self.iter().map(|writer| (writer.superblock().member, offsets)).collect();
        self.read_ahead(Expected { places: &places, len: device::ROW_SIZE }, clock)?;
        let mut rows = Vec::new();
        let read = self.each(|member, writer| {
            rows.push((member, writer.read_claim()?));
            Ok(())
        });
        self.iter_mut().for_each(|(_, writer)| writer.forget());
        read.map(|()| rows)
    }

    /// Renews the claims that are due, and waits for it.
    pub(crate) fn renew(&mut self, clock: &dyn Clock) -> Result<(), Failed> {
        let now_ns = clock.boottime_ns();
        self.iter_mut().for_each(|(_, writer)| writer.renew(now_ns));
        self.run(clock, |_| Vec::new())
    }

    /// Gives the members up in order: the next writer need not wait.
    pub(crate) fn give_up(&mut self, clock: &dyn Clock) -> Result<(), Failed> {
        if self.kept.is_none() {
            return Ok(());
        }
        self.run(clock, |_| {
            vec![Step::CompareClaim, Step::CompareSuperblock, Step::EndClaim, Step::Flush]
        })
    }

    /// Puts a newcomer at its place.
    ///
    /// # Panics
    /// When the others are not claimed.
    pub(crate) fn insert(&mut self, mut writer: MemberWriter) -> Result<(), Error> {
        writer.pass_over(self.kept.as_ref().expect("a volume is claimed before it changes"))?;
        let number = writer.superblock().member.place();
        let places = self.members.len().max(number + 1);
        self.members.resize_with(places, || None);
        *self.members.get_mut(number).expect("a place for it") = Some(writer);
        Ok(())
    }

    /// Takes a member out.
    pub(crate) fn remove(&mut self, member: MemberId) -> Option<MemberWriter> {
        self.members.get_mut(member.place())?.take()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &MemberWriter> {
        self.members.iter().flatten()
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = (MemberId, &mut MemberWriter)> {
        MemberId::all()
            .zip(&mut self.members)
            .filter_map(|(member, writer)| Some((member, writer.as_mut()?)))
    }

    /// Bit m stands for member m.
    pub(crate) fn bits(&self) -> u32 {
        let present = self.iter().map(|writer| writer.superblock().member.bit());
        present.fold(0, |bits, bit| bits | bit)
    }

    /// Does the same to every member, in order; the first that fails is named.
    pub(crate) fn each(
        &mut self,
        mut work: impl FnMut(MemberId, &mut MemberWriter) -> Result<(), Error>,
    ) -> Result<(), Failed> {
        self.iter_mut().try_for_each(|(member, writer)| {
            work(member, writer).map_err(|error| Failed::of(member, error))
        })
    }

    /// Does on each member the steps that `of` gives for it, all members at the same time, until
    /// all have done theirs that have not failed meanwhile.
    fn carry_out(
        &mut self,
        clock: &dyn Clock,
        of: impl Fn(&MemberWriter) -> Vec<Step>,
    ) -> Result<(), Failed> {
        let now_ns = clock.boottime_ns();
        for (_, writer) in self.iter_mut().filter(|(_, writer)| !writer.has_failed()) {
            let steps = of(writer);
            writer.begin(steps, now_ns);
        }
        while self.iter().any(MemberWriter::has_steps) {
            self.wait(clock)?;
        }
        Ok(())
    }

    /// Takes what has come; a member that has failed is to do nothing more.
    fn wait(&mut self, clock: &dyn Clock) -> Result<(), Failed> {
        match self.advance(Some(WAIT), usize::MAX, clock) {
            Err(Failed { member: Some(member), error }) => {
                self.get_mut(member).expect("it is one of them").fail(error);
                Ok(())
            }
            other => other,
        }
    }

    /// The next member that has failed and that no caller has heard of.
    pub(crate) fn failure(&mut self) -> Result<(), Failed> {
        let failed = self.iter_mut().find_map(|(member, writer)| {
            writer.take_failure().map(|error| Failed { member: Some(member), error })
        });
        failed.map_or(Ok(()), Err)
    }

    /// Does steps on every member; the first that fails is named.
    pub(crate) fn run(
        &mut self,
        clock: &dyn Clock,
        of: impl Fn(&MemberWriter) -> Vec<Step>,
    ) -> Result<(), Failed> {
        self.carry_out(clock, of)?;
        self.failure()
    }

    /// Makes every completed write durable.
    pub(crate) fn flush(&mut self, clock: &dyn Clock) -> Result<(), Failed> {
        self.run(clock, |_| vec![Step::Flush])
    }

    /// A member that has answered nothing for too long while the others did. Where too few did, as
    /// when a controller or the whole machine stands still, it is not the member's fault; then its
    /// time begins when enough of them answer again, for they do not all do so at once.
    fn stalled(&mut self, clock: &dyn Clock) -> Option<Failed> {
        let now_ns = clock.boottime_ns();
        // There was no look for so long: this process was paused, or the machine was. What was
        // under way then has not been asked for since.
        let unlooked_ns = now_ns.saturating_sub(core::mem::replace(&mut self.looked_ns, now_ns));
        if unlooked_ns >= self.patience_ns / 2 {
            self.all_silent_ns = now_ns;
        }
        let silent_ns = |writer: &MemberWriter| {
            writer
                .oldest_ns()
                .map_or(0, |since| now_ns.saturating_sub(since.max(self.all_silent_ns)))
        };
        let is_late =
            |writer: &&MemberWriter| silent_ns(writer) >= self.patience_ns && !writer.has_failed();
        let late = self.iter().find(is_late)?.superblock();
        let (member, needed) = (late.member, usize::from(late.geometry.data_columns));
        let answering =
            self.iter().filter(|writer| silent_ns(writer) < self.patience_ns / 2).count();
        if answering < needed {
            self.all_silent_ns = now_ns;
            return None;
        }
        Some(Failed { member: Some(member), error: Error::Stalled { member } })
    }

    /// Writes the superblocks that follow from those of now.
    pub(crate) fn store(
        &mut self,
        clock: &dyn Clock,
        change: impl Fn(&Superblock) -> Superblock,
    ) -> Result<(), Failed> {
        self.store_on(clock, |_| true, change)
    }

    /// The same on some of them.
    pub(crate) fn store_on(
        &mut self,
        clock: &dyn Clock,
        is_meant: impl Fn(MemberId) -> bool,
        change: impl Fn(&Superblock) -> Superblock,
    ) -> Result<(), Failed> {
        let meant = self.iter().map(MemberWriter::superblock).filter(|own| is_meant(own.member));
        let next: Vec<Superblock> = meant.map(change).collect();
        if next.is_empty() {
            return Ok(());
        }
        let pages = Pool::new(next.len() * usize::from(SUPERBLOCK_COPIES), SUPERBLOCK_BYTES)
            .map_err(Failed::of_nobody)?;
        for own in &next {
            self.get_mut(own.member).expect("it is one of them").issue(own.clone());
        }
        self.carry_out(clock, |writer| {
            let own = next.iter().find(|next| next.member == writer.superblock().member);
            let size_bytes = writer.device().size_bytes();
            let store = own.map(|own| of_superblock(own, size_bytes, &pages));
            // What is written over must be what was written last.
            store.map_or_else(Vec::new, |store| RENEWAL.into_iter().chain(store).collect())
        })?;
        for next in next {
            let writer = self.get_mut(next.member).expect("it is one of them");
            if !writer.has_failed() {
                writer.stored(next);
            }
        }
        self.failure()
    }

    /// The same for a change of what all members agree on: the newest superblock with it, one
    /// generation later, on every one of them.
    pub(crate) fn store_alike(
        &mut self,
        clock: &dyn Clock,
        change: impl FnOnce(&mut Superblock),
    ) -> Result<(), Failed> {
        let newest = self.iter().map(MemberWriter::superblock).max_by_key(|own| own.generation);
        let mut next = newest.expect("a volume has members").successor();
        change(&mut next);
        self.store(clock, |own| next.on_member_of(own))
    }

    /// Takes completions of all members and starts the flushes that are due; the first member that
    /// has failed or is late is named. With a wait it returns as soon as something completed, or
    /// after a while.
    pub(crate) fn poll(
        &mut self,
        wait: Option<Duration>,
        enough: usize,
        clock: &dyn Clock,
    ) -> Result<(), Failed> {
        self.failure()?;
        self.advance(wait, enough, clock)
    }

    fn advance(
        &mut self,
        wait: Option<Duration>,
        enough: usize,
        clock: &dyn Clock,
    ) -> Result<(), Failed> {
        if self.is_taken_over {
            return Err(Failed::of_nobody(Error::Stopped));
        }
        let advanced = self.advance_once(wait, enough, clock);
        if let Err(Failed { error: Error::TakenOver { .. }, .. }) = &advanced {
            self.is_taken_over = true;
            self.iter_mut().for_each(|(_, writer)| writer.cease());
        }
        advanced
    }

    fn advance_once(
        &mut self,
        wait: Option<Duration>,
        enough: usize,
        clock: &dyn Clock,
    ) -> Result<(), Failed> {
        let now_ns = clock.boottime_ns();
        let mut reaped = 0;
        self.each(|_, writer| {
            reaped += writer.reap(None, now_ns)?;
            writer.renew(now_ns);
            Ok(())
        })?;
        let busy = self.iter().filter(|writer| writer.is_busy()).count();
        if let Some(wait) = wait.filter(|_| reaped == 0 && busy > 0) {
            // Members complete independently: wait on one in turn, shortly if there are others.
            self.turn = self.turn.wrapping_add(1) % busy;
            let wait = if busy == 1 { wait } else { wait.min(LOOK) };
            let turn = self.turn;
            let waiting = self.iter_mut().filter(|(_, writer)| writer.is_busy()).nth(turn);
            if let Some((member, writer)) = waiting {
                let reaped = writer.reap(Some(wait), clock.boottime_ns());
                reaped.map_err(|error| Failed::of(member, error))?;
            }
        }
        let now_ns = clock.boottime_ns();
        self.each(|_, writer| {
            writer.start_flush(enough, now_ns);
            Ok(())
        })?;
        self.stalled(clock).map_or(Ok(()), Err)
    }

    /// Starts discarding slots on the members that take it; gives the bytes of all.
    pub(crate) fn discard(
        &mut self,
        slots: &Range<Sequence>,
        place: (u64, u64),
        clock: &dyn Clock,
    ) -> u64 {
        let now_ns = clock.boottime_ns();
        self.iter_mut().map(|(_, writer)| writer.discard(slots.clone(), place, now_ns)).sum()
    }

    /// The sequences whose slots members discard at this moment.
    pub(crate) fn discarding(&self) -> impl Iterator<Item = &Range<Sequence>> {
        self.iter().filter_map(MemberWriter::discarding)
    }

    /// A caller waits for such discards: from now on a member that does not answer is late.
    pub(crate) fn await_discards(
        &mut self,
        is_meant: impl Fn(&Range<Sequence>) -> bool,
        clock: &dyn Clock,
    ) {
        let now_ns = clock.boottime_ns();
        for (_, writer) in self.iter_mut() {
            if writer.discarding().is_some_and(&is_meant) {
                writer.await_discard(now_ns);
            }
        }
    }

    /// Stripes below this number are durable on every member; `None`: all of them.
    pub(crate) fn durable_below(&self) -> Option<u64> {
        self.iter().filter_map(MemberWriter::durable_below).min()
    }

    /// Writes and flushes under way.
    pub(crate) fn in_flight(&self) -> usize {
        self.iter().map(MemberWriter::in_flight).sum()
    }

    /// Reads through the members' writers, all of them at the same time.
    ///
    /// A place that cannot be read looks as if nothing were there, and a mount overwrites where it
    /// finds nothing. So a member of which reads failed must still give its superblock: if it does
    /// not, the member has failed, and is named. If the failure has passed, the whole look is done
    /// once more, and that counts.
    pub(crate) fn with_heads<T>(
        &mut self,
        membership: &Membership,
        clock: &dyn Clock,
        run: impl Fn(&Heads<'_>) -> T,
    ) -> Result<T, Failed> {
        let (found, failed) = self.with_heads_once(membership, clock, &run)?;
        if failed.is_empty() {
            return Ok(found);
        }
        self.prove_readable(&failed, clock)?;
        if !failed.iter().any(|place| self.reads_again(*place)) {
            return Ok(found);
        }
        let (found, failed) = self.with_heads_once(membership, clock, &run)?;
        self.prove_readable(&failed, clock)?;
        Ok(found)
    }

    /// Gives the places, too, that could not be read: some of each member that has any.
    fn with_heads_once<T>(
        &mut self,
        membership: &Membership,
        clock: &dyn Clock,
        run: &impl Fn(&Heads<'_>) -> T,
    ) -> Result<(T, Vec<UnreadPlace>), Failed> {
        let (writers, failed) = (RefCell::new((self, Ok(()))), RefCell::new(Vec::new()));
        let read = |member: MemberId, offset: u64, into: &mut [u8]| {
            let (writers, _) = &*writers.borrow();
            let writer =
                writers.get(member).filter(|writer| !writer.has_failed()).ok_or(Unreadable)?;
            writer.read_at(offset, into).map_err(|_| {
                note_unread(&mut failed.borrow_mut(), (member, offset, into.len()));
                Unreadable
            })
        };
        let fetch = |expected: Expected<'_>| {
            let (writers, so_far) = &mut *writers.borrow_mut();
            if so_far.is_ok() {
                *so_far = writers.read_ahead(expected, clock);
            }
        };
        let found = run(&Heads::new(&read, membership).fetched_by(&fetch));
        let (writers, so_far) = writers.into_inner();
        writers.iter_mut().for_each(|(_, writer)| writer.forget());
        so_far?;
        writers.failure().map(|()| (found, failed.into_inner()))
    }

    /// Whether a place that could not be read can be read now.
    fn reads_again(&self, (member, offset, len): UnreadPlace) -> bool {
        let writer = self.get(member).filter(|writer| !writer.has_failed());
        writer.is_some_and(|writer| writer.read_at(offset, &mut vec![0; len]).is_ok())
    }

    /// Reads the superblocks of these members: one that gives no copy of it has failed.
    fn prove_readable(&mut self, failed: &[UnreadPlace], clock: &dyn Clock) -> Result<(), Failed> {
        let members: BTreeSet<MemberId> = failed.iter().map(|(member, ..)| *member).collect();
        let copies: Vec<(MemberId, Vec<u64>)> = members
            .into_iter()
            .filter_map(|member| {
                let size_bytes = self.get(member)?.device().size_bytes();
                Some((member, superblocks::offsets(size_bytes).collect()))
            })
            .collect();
        let places: Vec<(MemberId, &[u64])> = copies.iter().map(|(it, at)| (*it, &**at)).collect();
        self.read_ahead(Expected { places: &places, len: SUPERBLOCK_BYTES }, clock)?;
        let proved = copies.iter().try_for_each(|(member, copies)| {
            let Some(writer) = self.get(*member) else { return Ok(()) };
            let mut page = [0; SUPERBLOCK_BYTES];
            let mut read = copies.iter().map(|&copy| writer.read_at(copy, &mut page));
            let first = read.next().expect("a superblock has copies");
            let failed = first.err().filter(|_| !read.any(|it| it.is_ok()));
            failed.map_or(Ok(()), |error| Err(Failed::of(*member, error)))
        });
        self.iter_mut().for_each(|(_, writer)| writer.forget());
        proved.and_then(|()| self.failure())
    }

    /// Members that do not answer, while none does, are not waited for any longer: the thread that
    /// asks them hears it.
    fn read_ahead(&mut self, expected: Expected<'_>, clock: &dyn Clock) -> Result<(), Failed> {
        let Expected { places, len } = expected;
        let now_ns = clock.boottime_ns();
        for &(member, offsets) in places {
            if let Some(writer) = self.get_mut(member).filter(|writer| !writer.has_failed()) {
                writer.read_ahead(offsets, len, now_ns);
            }
        }
        let until_ns = now_ns.saturating_add(self.patience_ns.saturating_mul(2));
        while self.iter().any(MemberWriter::is_reading) && clock.boottime_ns() < until_ns {
            self.wait(clock)?;
        }
        Ok(())
    }
}

fn note_unread(failed: &mut Vec<UnreadPlace>, place: UnreadPlace) {
    let of_member = failed.iter().filter(|(member, ..)| *member == place.0).count();
    if of_member < UNREAD_MAX {
        failed.push(place);
    }
}

fn membership_of<'a>(writers: impl Iterator<Item = &'a MemberWriter>) -> Result<Membership, Error> {
    Membership::assemble(writers.map(|writer| writer.superblock().clone()).collect())
}
