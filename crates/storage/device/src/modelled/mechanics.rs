//! How long the operations of a disk take: the arm, the platter, the write cache.
//!
//! Operations are served in the order of their submission. So the time of each is known when it is
//! submitted, and nothing has to be stepped in between. Not modelled: reordering by the disk, read
//! ahead, and errors (`fault`).

use std::collections::VecDeque;

use units::Random;
use units::number::real;

use super::profile::{ZoneProfile, nanos};

/// The speeds of a disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// Rate of the medium by place.
    pub profile: ZoneProfile,
    /// Time for a jump of no distance. A jump to a share d of the surface takes
    /// `shortest + (longest - shortest) * sqrt(d)`; one that goes on where the last ended is none.
    pub seek_shortest_ns: u64,
    /// Time for a jump over the whole surface.
    pub seek_longest_ns: u64,
    /// Time of one turn; after a jump the wait is a random part of it. 0: no platter.
    pub revolution_ns: u64,
    /// Fixed time of every read and of every write into the cache.
    pub command_ns: u64,
    /// Writes are done when they lie here. 0: when they lie on the medium, and then for good.
    pub cache_bytes: u64,
    /// Rate into the cache.
    pub cache_bytes_per_s: f64,
}

impl Timing {
    /// A disk that takes no time: for tests of what is stored.
    pub fn instant() -> Self {
        Self {
            profile: ZoneProfile::level(u64::MAX, f64::INFINITY),
            seek_shortest_ns: 0,
            seek_longest_ns: 0,
            revolution_ns: 0,
            command_ns: 0,
            cache_bytes: u64::MAX,
            cache_bytes_per_s: f64::INFINITY,
        }
    }

    /// A disk of 7200 turns a minute with 256 MiB of cache: 1 ms to the next track, 16 ms over all.
    pub fn hard_disk(profile: ZoneProfile) -> Self {
        Self {
            profile,
            seek_shortest_ns: 1_000_000,
            seek_longest_ns: 16_000_000,
            revolution_ns: 8_333_333,
            command_ns: 50_000,
            cache_bytes: 256 << 20,
            cache_bytes_per_s: 550e6,
        }
    }

    /// A solid-state disk: 2 GB/s everywhere, 80 us a command, 1 GiB of cache.
    pub fn flash(capacity_bytes: u64) -> Self {
        Self {
            profile: ZoneProfile::level(capacity_bytes, 2e9),
            seek_shortest_ns: 0,
            seek_longest_ns: 0,
            revolution_ns: 0,
            command_ns: 80_000,
            cache_bytes: 1 << 30,
            cache_bytes_per_s: 3e9,
        }
    }

    fn seek_ns(&self, from: u64, to: u64) -> u64 {
        let range = real(self.seek_longest_ns.saturating_sub(self.seek_shortest_ns));
        let part = nanos(range * self.profile.share(from, to).sqrt() / 1e9);
        self.seek_shortest_ns + part
    }
}

/// The state of a disk's moving parts.
#[derive(Clone, Debug)]
pub(super) struct Mechanics {
    /// Byte behind the last access.
    position: u64,
    /// When the medium has done all it was given.
    free_ns: i64,
    /// When the link to the cache is free.
    link_free_ns: i64,
    /// Writes on their way from the cache to the medium: when they are there, and their bytes.
    destaging: VecDeque<(i64, u64)>,
    cached_bytes: u64,
    jumps: u64,
    random: Random,
}

impl Mechanics {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            position: 0,
            free_ns: 0,
            link_free_ns: 0,
            destaging: VecDeque::new(),
            cached_bytes: 0,
            jumps: 0,
            random: Random::new(seed),
        }
    }

    /// Jumps of the arm so far.
    pub(super) fn jumps(&self) -> u64 {
        self.jumps
    }

    /// When a read submitted at `now_ns` is done.
    pub(super) fn read(&mut self, timing: &Timing, now_ns: i64, (offset, len): (u64, u64)) -> i64 {
        self.access(timing, plus(now_ns, timing.command_ns), offset, len)
    }

    /// When a write submitted at `now_ns` is done.
    pub(super) fn write(&mut self, timing: &Timing, now_ns: i64, (offset, len): (u64, u64)) -> i64 {
        if len > timing.cache_bytes {
            return self.access(timing, now_ns, offset, len);
        }
        // The medium takes the first bytes while the last are still arriving.
        let begin_ns = plus(now_ns.max(self.link_free_ns), timing.command_ns);
        let mut arrived_ns = plus(begin_ns, nanos(real(len) / timing.cache_bytes_per_s));
        // The oldest writes leave the cache until there is space for this one.
        while let Some(&(done_ns, bytes)) = self.destaging.front() {
            if done_ns > arrived_ns && self.cached_bytes.saturating_add(len) <= timing.cache_bytes {
                break;
            }
            arrived_ns = arrived_ns.max(done_ns);
            self.cached_bytes -= bytes;
            self.destaging.pop_front();
        }
        self.link_free_ns = arrived_ns;
        self.free_ns = self.access(timing, begin_ns, offset, len).max(arrived_ns);
        self.destaging.push_back((self.free_ns, len));
        self.cached_bytes += len;
        arrived_ns
    }

    /// When a flush submitted at `now_ns` is done: everything submitted before lies on the medium.
    pub(super) fn flush(&mut self, timing: &Timing, now_ns: i64) -> i64 {
        plus(now_ns, timing.command_ns).max(self.free_ns)
    }

    /// When a discard submitted at `now_ns` is done: a note in the disk's tables.
    pub(super) fn discard(&mut self, timing: &Timing, now_ns: i64) -> i64 {
        plus(now_ns.max(self.link_free_ns), timing.command_ns)
    }

    /// Nothing moves for so long.
    pub(super) fn stall(&mut self, now_ns: i64, ns: u64) {
        if ns == 0 {
            return;
        }
        self.free_ns = plus(self.free_ns.max(now_ns), ns);
        self.link_free_ns = plus(self.link_free_ns.max(now_ns), ns);
        for (done_ns, _) in &mut self.destaging {
            *done_ns = plus(*done_ns, ns);
        }
    }

    /// Moves the arm to `offset` and passes `len` bytes; when that is done.
    fn access(&mut self, timing: &Timing, from_ns: i64, offset: u64, len: u64) -> i64 {
        let start_ns = from_ns.max(self.free_ns);
        let turn_ns = timing.revolution_ns;
        let wait_ns = if offset != self.position {
            self.jumps += 1;
            timing.seek_ns(self.position, offset) + self.random.below(turn_ns.max(1))
        } else if turn_ns > 0 && start_ns > self.free_ns {
            // The platter has turned on meanwhile; the next byte comes round again.
            let idle_ns = start_ns.saturating_sub(self.free_ns).unsigned_abs();
            idle_ns.next_multiple_of(turn_ns) - idle_ns
        } else {
            0
        };
        self.position = offset + len;
        self.free_ns = plus(start_ns, wait_ns + timing.profile.transfer_ns(offset, len));
        self.free_ns
    }
}

fn plus(at_ns: i64, ns: u64) -> i64 {
    at_ns.saturating_add_unsigned(ns)
}
