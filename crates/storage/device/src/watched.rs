//! Watches a member while it is written to: every write's latency by place, the writes that took
//! too long, and whether the medium still gives what it was qualified for.
//!
//! Memory is fixed: a histogram, cells over the surface, the newest slow writes. The rate of a
//! medium shows only while enough writes wait for it, as many as a qualification keeps under way;
//! in between it waits for packets. So what was guaranteed is tested within stretches of full load
//! alone, by the recursion that it was found with: more than the pool waits, if so much as was
//! guaranteed arrives.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use stage::lock;
use units::Histogram;

use crate::clock::monotonic_ns;
use crate::{Completion, Device, Error, Shared, to_u64};

/// From so many writes under way on the medium has a full load: a qualification fills with as many.
const DEPTH_LOADED: usize = 8;
/// Places of the surface that are distinguished.
const CELLS: usize = 64;
/// Slow writes that are kept until the caller reads them; of more, only the count.
const SLOW_KEPT: usize = 64;
/// Writes under way for which there is space from the beginning.
const FLIGHTS: usize = 256;
/// Shortfalls within a stretch are forgiven when the medium has borne so many pools at full load.
const POOLS_TO_RECOVER: u64 = 4;

/// What a medium was qualified for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promise {
    /// The highest constant arrival, in bytes a second.
    pub bytes_per_s: u64,
    /// Of which at most so many bytes wait.
    pub pool_bytes: u64,
}

/// A write that took longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlowWrite {
    /// Byte offset at which the write begins.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
    /// From submission to completion.
    pub latency_ns: u64,
    /// Writes under way when it was submitted, itself included.
    pub depth: u32,
    /// How long ago it was done.
    pub ago_ns: u64,
}

/// Writes at one place of the surface: a 64th of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cell {
    /// Number of writes.
    pub writes: u64,
    /// Bytes of these writes.
    pub bytes: u64,
    /// Their latencies, added up.
    pub latency_ns_sum: u64,
    /// The longest latency.
    pub latency_ns_max: u64,
}

/// What a watched medium did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    /// Writes that were done.
    pub writes: u64,
    /// Bytes of these writes.
    pub bytes: u64,
    /// Latencies of these writes.
    pub latency: Histogram,
    /// Most writes under way at once.
    pub depth_max: u32,
    /// Time at full load.
    pub loaded_ns: u64,
    /// Bytes done meanwhile.
    pub loaded_bytes: u64,
    /// Writes above the limit.
    pub slow: u64,
    /// Stretches of full load in which the medium gave less than was promised.
    pub broken: u64,
    /// The last one is not made up for.
    pub is_broken: bool,
    /// The most that would have waited in any stretch.
    pub backlog_bytes_max: u64,
    /// By place, from the first byte on.
    pub cells: Vec<Cell>,
}

#[derive(Debug)]
struct State {
    watch: Watch,
    slow_limit_ns: u64,
    promise: Option<Promise>,
    size_bytes: u64,
    stretch: Option<Stretch>,
    /// The newest slow writes, by the time they were done.
    slow: Vec<(SlowWrite, u64)>,
}

/// A time of full load that goes on.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    last_ns: u64,
    backlog: u64,
    bytes: u64,
    is_broken: bool,
}

/// A write under way.
#[derive(Debug, Clone, Copy)]
struct Flight {
    token: u64,
    offset: u64,
    len: u64,
    depth: u32,
}

/// A device that is watched.
#[derive(Debug)]
pub struct Watched {
    inner: Box<dyn Device>,
    state: Arc<Mutex<State>>,
    flights: Vec<Flight>,
}

/// Reads what a watched device did, wherever that works.
#[derive(Debug, Clone)]
pub struct WatchReader(Arc<Mutex<State>>);

impl WatchReader {
    /// What it did so far.
    pub fn read(&self) -> Watch {
        lock(&self.0).watch.clone()
    }

    /// Appends the slow writes since the last time, the oldest first; of very many the newest.
    pub fn take_slow(&self, into: &mut Vec<SlowWrite>) {
        let now_ns = monotonic_ns();
        let mut state = lock(&self.0);
        into.extend(
            state.slow.drain(..).map(|(slow, done_ns)| SlowWrite {
                ago_ns: now_ns.saturating_sub(done_ns),
                ..slow
            }),
        );
    }
}

impl Watched {
    /// Watches a device. Writes that take longer than `slow_limit_ns` are kept; 0 keeps none.
    pub fn new(inner: Box<dyn Device>, slow_limit_ns: u64, promise: Option<Promise>) -> Self {
        let watch = Watch {
            writes: 0,
            bytes: 0,
            latency: Histogram::default(),
            depth_max: 0,
            loaded_ns: 0,
            loaded_bytes: 0,
            slow: 0,
            broken: 0,
            is_broken: false,
            backlog_bytes_max: 0,
            cells: vec![Cell::default(); CELLS],
        };
        let state = State {
            watch,
            slow_limit_ns,
            promise,
            size_bytes: inner.size_bytes(),
            stretch: None,
            slow: Vec::with_capacity(SLOW_KEPT),
        };
        let state = Arc::new(Mutex::new(state));
        Self { inner, state, flights: Vec::with_capacity(FLIGHTS) }
    }

    /// A reader that outlives this device.
    pub fn reader(&self) -> WatchReader {
        WatchReader(Arc::clone(&self.state))
    }
}

impl State {
    fn done(&mut self, flight: Flight, latency_ns: u64, now_ns: u64) {
        let Flight { offset, len, depth, .. } = flight;
        self.watch.writes += 1;
        self.watch.bytes += len;
        self.watch.latency.add(latency_ns);
        let place = u128::from(offset) * to_u128(CELLS) / u128::from(self.size_bytes.max(1));
        let place = usize::try_from(place).unwrap_or(CELLS).min(CELLS - 1);
        let cell = self.watch.cells.get_mut(place).expect("a place within the surface");
        cell.writes += 1;
        cell.bytes += len;
        cell.latency_ns_sum += latency_ns;
        cell.latency_ns_max = cell.latency_ns_max.max(latency_ns);
        if self.slow_limit_ns == 0 || latency_ns <= self.slow_limit_ns {
            return;
        }
        self.watch.slow += 1;
        if self.slow.len() == SLOW_KEPT {
            self.slow.remove(0);
        }
        self.slow.push((SlowWrite { offset, len, latency_ns, depth, ago_ns: 0 }, now_ns));
    }

    /// Time has gone on, and `bytes` were done; `in_flight` writes are left.
    fn step(&mut self, now_ns: u64, bytes: u64, in_flight: usize) {
        if let Some(stretch) = &mut self.stretch {
            let ns = now_ns.saturating_sub(stretch.last_ns);
            stretch.last_ns = now_ns;
            stretch.bytes += bytes;
            self.watch.loaded_ns += ns;
            self.watch.loaded_bytes += bytes;
            if let Some(promise) = self.promise {
                let arrived = u128::from(promise.bytes_per_s) * u128::from(ns) / 1_000_000_000;
                let waits = stretch.backlog.saturating_add(u64::try_from(arrived).unwrap_or(0));
                self.watch.backlog_bytes_max = self.watch.backlog_bytes_max.max(waits);
                stretch.backlog = waits.saturating_sub(bytes);
                if waits > promise.pool_bytes && !stretch.is_broken {
                    stretch.is_broken = true;
                    self.watch.broken += 1;
                    self.watch.is_broken = true;
                }
                let is_enough =
                    stretch.bytes >= promise.pool_bytes.saturating_mul(POOLS_TO_RECOVER);
                if !stretch.is_broken && is_enough {
                    self.watch.is_broken = false;
                }
            }
        }
        match (&self.stretch, in_flight >= DEPTH_LOADED) {
            (None, true) => {
                let stretch = Stretch { last_ns: now_ns, backlog: 0, bytes: 0, is_broken: false };
                self.stretch = Some(stretch);
            }
            // What waited was taken.
            (Some(_), false) => self.stretch = None,
            _ => {}
        }
    }
}

fn to_u128(value: usize) -> u128 {
    u128::from(to_u64(value))
}

impl Device for Watched {
    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    fn submit_write(&mut self, token: u64, offset: u64, data: Shared, len: usize) {
        let depth = u32::try_from(self.flights.len() + 1).unwrap_or(u32::MAX);
        self.flights.push(Flight { token, offset, len: to_u64(len), depth });
        if self.flights.len() == DEPTH_LOADED {
            lock(&self.state).step(monotonic_ns(), 0, DEPTH_LOADED);
        }
        self.inner.submit_write(token, offset, data, len);
    }

    fn submit_flush(&mut self, token: u64) {
        self.inner.submit_flush(token);
    }

    fn submit_discard(&mut self, token: u64, offset: u64, len: u64) {
        self.inner.submit_discard(token, offset, len);
    }

    fn submit_read(&mut self, token: u64, offset: u64, len: usize) {
        self.inner.submit_read(token, offset, len);
    }

    fn reap(&mut self, wait: Option<Duration>, out: &mut Vec<Completion>) {
        let first = out.len();
        self.inner.reap(wait, out);
        if out.len() == first {
            return;
        }
        let now_ns = monotonic_ns();
        let mut state = lock(&self.state);
        state.watch.depth_max =
            state.watch.depth_max.max(u32::try_from(self.flights.len()).unwrap_or(u32::MAX));
        let mut bytes = 0;
        for completion in out.iter().skip(first) {
            let place = self.flights.iter().position(|flight| flight.token == completion.token);
            let Some(place) = place else { continue };
            let flight = self.flights.swap_remove(place);
            bytes += flight.len;
            state.done(flight, completion.latency_ns, now_ns);
        }
        state.step(now_ns, bytes, self.flights.len());
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        self.inner.read_at(offset, into)
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.inner.write_at(offset, data)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.inner.flush()
    }

    fn notes(&self) -> &[String] {
        self.inner.notes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Modelled, Pool};

    const MS: u64 = 1_000_000;

    fn watched(promise: Option<Promise>, slow_limit_ns: u64) -> Watched {
        Watched::new(Box::new(Modelled::instant(64 << 20)), slow_limit_ns, promise)
    }

    fn flight(offset: u64) -> Flight {
        Flight { token: 1, offset, len: 4096, depth: 3 }
    }

    #[test]
    fn writes_are_counted_by_place_and_the_slow_ones_kept() {
        let mut device = watched(None, 5 * MS);
        let reader = device.reader();
        let data = Pool::new(1, 8192).unwrap().take().unwrap().freeze();
        device.submit_write(1, 0, data.clone(), 8192);
        device.submit_write(2, 63 << 20, data, 4096);
        device.submit_flush(3);
        device.reap(None, &mut Vec::new());
        let watch = reader.read();
        assert_eq!((watch.writes, watch.bytes, watch.depth_max), (2, 12288, 2));
        assert_eq!((watch.cells[0].bytes, watch.cells[63].writes), (8192, 1));
        let mut state = lock(&device.state);
        for latency_ms in [4, 5, 6] {
            state.done(flight(1 << 20), latency_ms * MS, 0);
        }
        drop(state);
        let mut slow = Vec::new();
        reader.take_slow(&mut slow);
        let found: Vec<_> = slow.iter().map(|it| (it.offset, it.latency_ns, it.depth)).collect();
        assert_eq!((found, reader.read().slow), (vec![(1 << 20, 6 * MS, 3)], 1));
        slow.clear();
        reader.take_slow(&mut slow);
        assert!(slow.is_empty());
    }

    #[test]
    fn of_very_many_slow_writes_the_newest_are_kept_in_fixed_memory() {
        let device = watched(None, 1);
        let mut state = lock(&device.state);
        let room = state.slow.capacity();
        (0..1000).for_each(|at| state.done(flight(at * 4096), 2, at));
        assert_eq!((state.slow.len(), state.slow.capacity()), (SLOW_KEPT, room));
        assert_eq!((state.watch.slow, state.slow[SLOW_KEPT - 1].0.offset), (1000, 999 * 4096));
    }

    /// Stretches of full load by milliseconds and bytes: what the watch makes of them.
    fn loads(stretches: &[&[(u64, u64)]]) -> Watch {
        let promise = Promise { bytes_per_s: 100_000_000, pool_bytes: 10_000_000 };
        let device = watched(Some(promise), 0);
        let mut state = lock(&device.state);
        let mut now_ns = 0;
        for stretch in stretches {
            state.step(now_ns, 0, DEPTH_LOADED);
            for (ms, bytes) in *stretch {
                now_ns += ms * MS;
                state.step(now_ns, *bytes, DEPTH_LOADED);
            }
            // It waits for packets.
            state.step(now_ns, 0, 1);
            now_ns += 5000 * MS;
        }
        state.watch.clone()
    }

    #[test]
    fn a_medium_that_gives_what_was_promised_never_breaks_it() {
        // A stall of 90 ms leaves 9 MB waiting, and the pool has 10.
        let steady: Vec<_> = (0..100).map(|_| (10, 1_000_000)).collect();
        let stall = [(90, 1_000_000), (10, 9_000_000)];
        let watch = loads(&[&steady, &stall, &stall, &stall]);
        assert_eq!((watch.broken, watch.is_broken), (0, false));
        assert_eq!(watch.backlog_bytes_max, 9_000_000);
        assert_eq!((watch.loaded_ns, watch.loaded_bytes), (1300 * MS, 130_000_000));
    }

    #[test]
    fn a_stall_above_the_pool_or_a_slower_medium_breaks_it_once_a_stretch() {
        let stall = [(110, 1_000_000), (10, 1_000_000), (10, 1_000_000)];
        assert_eq!(loads(&[&stall]).broken, 1);
        // A tenth slower: it takes a second to miss the pool.
        let slower: Vec<_> = (0..300).map(|_| (10, 900_000)).collect();
        let watch = loads(&[&slower[..90]]);
        assert_eq!((watch.broken, watch.is_broken), (0, false));
        let watch = loads(&[&slower, &slower]);
        assert_eq!((watch.broken, watch.is_broken), (2, true));
        // Made up for by a long stretch at the old rate, not by a short one.
        let steady: Vec<_> = (0..100).map(|_| (10, 1_000_000)).collect();
        assert!(loads(&[&slower, &steady[..10]]).is_broken);
        assert!(!loads(&[&slower, &steady]).is_broken);
    }

    /// Nanoseconds that a write takes, eight under way, on a disk that takes no time.
    fn ns_per_write(device: &mut dyn Device) -> u64 {
        const WRITES: u64 = 400_000;
        let data = Pool::new(1, 8192).unwrap().take().unwrap().freeze();
        let mut done = Vec::with_capacity(16);
        let begin_ns = monotonic_ns();
        for batch in 0..WRITES / 8 {
            for at in 0..8 {
                device.submit_write(batch * 8 + at, at * 8192, data.clone(), 8192);
            }
            device.reap(None, &mut done);
            done.clear();
        }
        (monotonic_ns() - begin_ns) / WRITES
    }

    #[test]
    #[ignore = "measures: cargo test --release -p device -- --ignored --nocapture what_watching"]
    fn what_watching_costs() {
        for _ in 0..7 {
            let plain = ns_per_write(&mut Modelled::instant(1 << 20));
            let inner = Box::new(Modelled::instant(1 << 20));
            let promise = Promise { bytes_per_s: 1 << 30, pool_bytes: 1 << 30 };
            let watched = ns_per_write(&mut Watched::new(inner, 1 << 40, Some(promise)));
            println!("a write: {plain} ns, watched {watched} ns");
        }
    }
}
