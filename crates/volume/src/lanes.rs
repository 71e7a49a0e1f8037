//! The members of an open volume together: what is done to each of them alike.

use core::ops::Range;
use core::time::Duration;

use format::superblock::Superblock;
use units::Clock;

use crate::Error;
use crate::heads::{Heads, Unreadable};
use crate::lane::Lane;
use crate::membership::Membership;

/// How long to look at one member before looking at the others again.
const LOOK: Duration = Duration::from_millis(1);

/// The members that are there, by number.
#[derive(Debug)]
pub(crate) struct Lanes {
    lanes: Vec<Option<Lane>>,
    /// Where the next wait begins.
    turn: usize,
}

/// Why something could not be done with all members.
#[derive(Debug)]
pub(crate) struct Failed {
    /// The member that cannot be written any more; `None` where it is not one member's fault.
    pub(crate) member: Option<u8>,
    pub(crate) error: Error,
}

impl Lanes {
    /// Puts opened members at their places.
    pub(crate) fn assemble(opened: Vec<Lane>) -> Result<Self, Error> {
        let membership = membership_of(opened.iter())?;
        let mut lanes = Vec::new();
        lanes.resize_with(membership.numbers().count(), || None);
        for lane in opened {
            let number = usize::from(lane.superblock().member);
            *lanes.get_mut(number).expect("assembled") = Some(lane);
        }
        Ok(Self { lanes, turn: 0 })
    }

    pub(crate) fn membership(&self) -> Membership {
        membership_of(self.lanes.iter().flatten()).expect("they were assembled before")
    }

    pub(crate) fn get(&self, member: u8) -> Option<&Lane> {
        self.lanes.get(usize::from(member))?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, member: u8) -> Option<&mut Lane> {
        self.lanes.get_mut(usize::from(member))?.as_mut()
    }

    /// Puts a newcomer at its place.
    pub(crate) fn insert(&mut self, lane: Lane) {
        let number = usize::from(lane.superblock().member);
        let places = self.lanes.len().max(number + 1);
        self.lanes.resize_with(places, || None);
        *self.lanes.get_mut(number).expect("a place for it") = Some(lane);
    }

    /// Takes a member out.
    pub(crate) fn remove(&mut self, member: u8) -> Option<Lane> {
        self.lanes.get_mut(usize::from(member))?.take()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.iter().flatten()
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = (u8, &mut Lane)> {
        (0..).zip(&mut self.lanes).filter_map(|(member, lane)| Some((member, lane.as_mut()?)))
    }

    /// Bit m stands for member m.
    pub(crate) fn bits(&self) -> u32 {
        let present = self.iter().map(|lane| 1_u32 << lane.superblock().member);
        present.fold(0, |bits, bit| bits | bit)
    }

    /// Does the same to every member, in order; the first that fails is named.
    pub(crate) fn each(
        &mut self,
        mut work: impl FnMut(u8, &mut Lane) -> Result<(), Error>,
    ) -> Result<(), Failed> {
        self.iter_mut().try_for_each(|(member, lane)| {
            work(member, lane).map_err(|error| Failed { member: Some(member), error })
        })
    }

    /// Makes every completed write durable, synchronously.
    pub(crate) fn flush(&mut self) -> Result<(), Failed> {
        self.each(|_, lane| Ok(lane.device_mut().flush()?))
    }

    /// Writes the superblocks that follow from those of now.
    pub(crate) fn store(
        &mut self,
        change: impl Fn(&Superblock) -> Superblock,
    ) -> Result<(), Failed> {
        self.store_on(|_| true, change)
    }

    /// The same on some of them.
    pub(crate) fn store_on(
        &mut self,
        is_meant: impl Fn(u8) -> bool,
        change: impl Fn(&Superblock) -> Superblock,
    ) -> Result<(), Failed> {
        self.each(|member, lane| {
            if !is_meant(member) {
                return Ok(());
            }
            let next = change(lane.superblock());
            lane.store(next)
        })
    }

    /// The same for a change of what all members agree on: the newest superblock with it, one
    /// generation later, on every one of them.
    pub(crate) fn store_alike(
        &mut self,
        change: impl FnOnce(&mut Superblock),
    ) -> Result<(), Failed> {
        let newest = self.iter().map(Lane::superblock).max_by_key(|own| own.generation);
        let mut next = newest.expect("a volume has members").successor();
        change(&mut next);
        self.store(|own| next.on_member_of(own))
    }

    /// Takes completions of all members and starts the flushes that are due. With a wait it returns
    /// as soon as something completed, or after a while.
    pub(crate) fn poll(
        &mut self,
        wait: Option<Duration>,
        enough: usize,
        clock: &dyn Clock,
    ) -> Result<(), Failed> {
        let now_ns = clock.boottime_ns();
        let mut reaped = 0;
        self.each(|_, lane| {
            reaped += lane.reap(None, now_ns)?;
            Ok(())
        })?;
        let busy = self.iter().filter(|lane| lane.is_busy()).count();
        if let Some(wait) = wait.filter(|_| reaped == 0 && busy > 0) {
            // Members complete independently: wait on one in turn, shortly if there are others.
            self.turn = self.turn.wrapping_add(1) % busy;
            let wait = if busy == 1 { wait } else { wait.min(LOOK) };
            let turn = self.turn;
            let waiting = self.iter_mut().filter(|(_, lane)| lane.is_busy()).nth(turn);
            if let Some((member, lane)) = waiting {
                let reaped = lane.reap(Some(wait), clock.boottime_ns());
                reaped.map_err(|error| Failed { member: Some(member), error: error.into() })?;
            }
        }
        let now_ns = clock.boottime_ns();
        self.each(|_, lane| {
            lane.start_flush(enough, now_ns);
            Ok(())
        })
    }

    /// Starts discarding slots on the members that take it; gives the bytes of all.
    pub(crate) fn discard(
        &mut self,
        slots: &Range<u64>,
        place: (u64, u64),
        clock: &dyn Clock,
    ) -> u64 {
        let now_ns = clock.boottime_ns();
        self.iter_mut().map(|(_, lane)| lane.discard(slots.clone(), place, now_ns)).sum()
    }

    /// The sequences whose slots members discard at this moment.
    pub(crate) fn discarding(&self) -> impl Iterator<Item = &Range<u64>> {
        self.iter().filter_map(Lane::discarding)
    }

    /// Somebody waits for such discards: from now on a member that does not answer is late.
    pub(crate) fn await_discards(
        &mut self,
        is_meant: impl Fn(&Range<u64>) -> bool,
        clock: &dyn Clock,
    ) {
        let now_ns = clock.boottime_ns();
        for (_, lane) in self.iter_mut() {
            if lane.discarding().is_some_and(&is_meant) {
                lane.await_discard(now_ns);
            }
        }
    }

    /// Stripes below this number are durable on every member; `None`: all of them.
    pub(crate) fn durable_below(&self) -> Option<u64> {
        self.iter().filter_map(Lane::durable_below).min()
    }

    /// Writes and flushes under way.
    pub(crate) fn in_flight(&self) -> usize {
        self.iter().map(Lane::in_flight).sum()
    }

    /// Reads through the members' writers.
    pub(crate) fn with_heads<T>(
        &self,
        membership: &Membership,
        run: impl FnOnce(&Heads<'_>) -> T,
    ) -> T {
        let read = |member: u8, offset: u64, into: &mut [u8]| {
            let lane = self.get(member).ok_or(Unreadable)?;
            lane.device().read_at(offset, into).map_err(|_| Unreadable)
        };
        run(&Heads::new(&read, membership))
    }
}

fn membership_of<'a>(lanes: impl Iterator<Item = &'a Lane>) -> Result<Membership, Error> {
    Membership::assemble(lanes.map(|lane| lane.superblock().clone()).collect())
}
