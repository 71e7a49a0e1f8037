//! Who gets the next place of a service, when more is asked of it than it does at a time.
//!
//! A place goes to who has the fewest, and among those to who waits for a turn longest: one who
//! asks much waits behind own requests, and others do not. One may have a share of the places and a
//! share of the queue. When the queue is full, the newest of the longest share makes room for one
//! who has fewer in it.
//!
//! Memory is bounded by the places and the queue: who neither has a place nor waits is forgotten.
//! No clock and no thread here: the caller locks, and hands over the places that [`Turns::grant`]
//! gives. Called by `server`.

use std::collections::{BTreeMap, VecDeque};

/// How many may have a place and wait, all together and each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Places.
    pub running: usize,
    /// Places of one.
    pub own_running: usize,
    /// As many wait at most.
    pub waiting: usize,
    /// As many of one.
    pub own_waiting: usize,
}

impl Limits {
    /// Half of everything for each who asks.
    pub const fn shared(running: usize, waiting: usize) -> Self {
        let (own_running, own_waiting) = (running.div_ceil(2), waiting.div_ceil(2));
        Self { running, own_running, waiting, own_waiting }
    }

    /// Everything for each who asks.
    pub const fn of_one(running: usize, waiting: usize) -> Self {
        Self { running, own_running: running, waiting, own_waiting: waiting }
    }
}

/// Why one may not even wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Full {
    /// Too many of the same who asks wait.
    Own,
    /// Too many wait, and nobody has more in the queue.
    All,
}

/// Requests that were refused or pushed out of the queue, since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Refusals {
    /// Beyond the share of who asked.
    pub own: u64,
    /// Beyond the room for all.
    pub all: u64,
}

/// Names one who waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket(u64);

/// The places, and those who wait for one: by name, with what a place is handed over by.
#[derive(Debug)]
pub struct Turns<W> {
    limits: Limits,
    by_name: BTreeMap<String, Share<W>>,
    running: usize,
    waiting: usize,
    /// Of tickets and of turns.
    newest: u64,
    refusals: Refusals,
}

#[derive(Debug)]
struct Share<W> {
    running: usize,
    /// The oldest first.
    waiting: VecDeque<(u64, W)>,
    /// Since when it waits for its turn.
    turn: u64,
}

impl<W> Turns<W> {
    /// All places are free.
    pub fn new(limits: Limits) -> Self {
        let by_name = BTreeMap::new();
        let refusals = Refusals::default();
        Self { limits, by_name, running: 0, waiting: 0, newest: 0, refusals }
    }

    /// The bounds.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Places that are taken.
    pub fn running(&self) -> usize {
        self.running
    }

    /// Those who wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Names that have a place or wait.
    pub fn names(&self) -> usize {
        self.by_name.len()
    }

    /// What did not even wait, or not until its turn.
    pub fn refusals(&self) -> Refusals {
        self.refusals
    }

    /// Puts `waiter` into the queue of `name`. [`Self::grant`] gives it a place, at once if one is
    /// free. Also the waiter that was pushed out for it, if there is one.
    ///
    /// # Errors
    /// When there is no room in the queue.
    pub fn ask(&mut self, name: &str, waiter: W) -> Result<(Ticket, Option<W>), Full> {
        let pushed_out = self.make_room(name)?;
        self.newest += 1;
        let turn = self.newest;
        let share = self.by_name.entry(name.to_owned());
        let share = share.or_insert(Share { running: 0, waiting: VecDeque::new(), turn });
        if share.waiting.is_empty() {
            share.turn = turn;
        }
        share.waiting.push_back((turn, waiter));
        self.waiting += 1;
        Ok((Ticket(turn), pushed_out))
    }

    /// Takes who waits out of the queue, if it is there: it has left, or waited too long.
    pub fn leave(&mut self, name: &str, ticket: Ticket) {
        let Some(share) = self.by_name.get_mut(name) else { return };
        let before = share.waiting.len();
        share.waiting.retain(|(number, _)| *number != ticket.0);
        self.waiting -= before - share.waiting.len();
        self.forget_idle(name);
    }

    /// Who gets a free place, if somebody waits who may have it: [`Self::end`] gives it back.
    pub fn grant(&mut self) -> Option<(String, W)> {
        if self.running >= self.limits.running {
            return None;
        }
        let may =
            |share: &Share<W>| !share.waiting.is_empty() && share.running < self.limits.own_running;
        let asking = self.by_name.iter_mut().filter(|(_, share)| may(share));
        let (name, share) = asking.min_by_key(|(_, share)| (share.running, share.turn))?;
        let (_, waiter) = share.waiting.pop_front()?;
        self.newest += 1;
        share.turn = self.newest;
        share.running += 1;
        self.running += 1;
        self.waiting -= 1;
        Some((name.clone(), waiter))
    }

    /// A place of `name` is free again.
    pub fn end(&mut self, name: &str) {
        let share = self.by_name.get_mut(name).expect("who has a place is known");
        share.running -= 1;
        self.running -= 1;
        self.forget_idle(name);
    }

    /// Who gets a place at once takes no room.
    fn make_room(&mut self, name: &str) -> Result<Option<W>, Full> {
        let limits = self.limits;
        let own = self.by_name.get(name);
        let (own_running, own) = own.map_or((0, 0), |own| (own.running, own.waiting.len()));
        let has_place = self.running < limits.running && own_running < limits.own_running;
        if has_place && own == 0 {
            return Ok(None);
        }
        if own > 0 && own >= limits.own_waiting {
            self.refusals.own += 1;
            return Err(Full::Own);
        }
        if self.waiting < limits.waiting {
            return Ok(None);
        }
        self.refusals.all += 1;
        let longest = self.by_name.values_mut().max_by_key(|share| share.waiting.len());
        let longest = longest.filter(|share| share.waiting.len() > own + 1).ok_or(Full::All)?;
        let pushed_out = longest.waiting.pop_back().map(|(_, waiter)| waiter);
        self.waiting -= 1;
        Ok(pushed_out)
    }

    fn forget_idle(&mut self, name: &str) {
        let is_idle = |share: &Share<W>| share.running == 0 && share.waiting.is_empty();
        if self.by_name.get(name).is_some_and(is_idle) {
            self.by_name.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(limits: Limits) -> Turns<usize> {
        Turns::new(limits)
    }

    /// Who has got places by now.
    fn granted(turns: &mut Turns<usize>) -> Vec<String> {
        core::iter::from_fn(|| turns.grant()).map(|(name, _)| name).collect()
    }

    #[test]
    fn one_who_asks_much_leaves_places_and_queue_to_others() {
        let mut turns = turns(Limits::shared(4, 64));
        let mut refused = 0;
        for number in 0..90 {
            refused += usize::from(turns.ask("a", number) == Err(Full::Own));
            granted(&mut turns);
        }
        assert_eq!((turns.running(), turns.waiting(), refused), (2, 32, 56));
        assert_eq!(turns.refusals(), Refusals { own: 56, all: 0 });
        turns.ask("b", 0).unwrap();
        assert_eq!(granted(&mut turns), ["b"]);
    }

    #[test]
    fn places_go_round_by_name_however_many_each_asks_for() {
        let mut turns = turns(Limits::shared(1, 32));
        turns.ask("first", 0).unwrap();
        assert_eq!(granted(&mut turns), ["first"]);
        for number in 0..6 {
            turns.ask("a", number).unwrap();
        }
        for number in 0..2 {
            turns.ask("b", number).unwrap();
        }
        turns.ask("c", 0).unwrap();
        let mut order = vec!["first".to_owned()];
        while let Some(last) = order.last().cloned() {
            turns.end(&last);
            let next = granted(&mut turns);
            assert!(next.len() <= 1, "{next:?}");
            if next.is_empty() {
                break;
            }
            order.extend(next);
        }
        assert_eq!(order.concat(), "firstabcabaaaa");
        assert_eq!((turns.names(), turns.running(), turns.waiting()), (0, 0, 0));
    }

    #[test]
    fn a_full_queue_takes_one_who_has_fewer_in_it() {
        let mut turns = turns(Limits::shared(2, 8));
        for name in ["a", "b"] {
            for number in 0..5 {
                turns.ask(name, number).unwrap();
                granted(&mut turns);
            }
        }
        assert_eq!((turns.running(), turns.waiting()), (2, 8));
        let (_, pushed_out) = turns.ask("c", 0).unwrap();
        assert_eq!(pushed_out, Some(4), "the newest of the longest: of b");
        assert_eq!(turns.ask("b", 9), Err(Full::All), "it would have as many as the longest");
        turns.end("a");
        assert_eq!(granted(&mut turns), ["a"], "its turn came before that of c");
        turns.end("a");
        assert_eq!(granted(&mut turns), ["c"]);
    }

    #[test]
    fn a_queue_of_none_still_has_its_places() {
        let mut turns = turns(Limits::shared(2, 0));
        turns.ask("a", 0).unwrap();
        assert_eq!(granted(&mut turns), ["a"]);
        assert_eq!(turns.ask("a", 1), Err(Full::All));
        turns.ask("b", 0).unwrap();
        assert_eq!(granted(&mut turns), ["b"]);
        assert_eq!(turns.ask("c", 0), Err(Full::All));
    }

    #[test]
    fn who_leaves_takes_no_turn_and_is_forgotten() {
        let mut turns = turns(Limits::of_one(1, 16));
        turns.ask("a", 0).unwrap();
        granted(&mut turns);
        let (ticket, _) = turns.ask("b", 0).unwrap();
        let (of_a, _) = turns.ask("a", 1).unwrap();
        turns.leave("b", ticket);
        turns.leave("b", ticket);
        assert_eq!((turns.names(), turns.waiting()), (1, 1));
        turns.end("a");
        assert_eq!(granted(&mut turns), ["a"]);
        // It has its place, and gives it back by `end` alone.
        turns.leave("a", of_a);
        assert_eq!((turns.running(), turns.waiting()), (1, 0));
        turns.end("a");
        assert_eq!((turns.names(), turns.running()), (0, 0));
    }
}
