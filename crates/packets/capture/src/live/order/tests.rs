//! Rings that are played by the rules of the kernel's: blocks that close when they are full or when
//! their time is over, packets that are stamped a moment before they are in the ring, a reader that
//! comes at odd times.

use std::collections::VecDeque;

use units::Random;

use super::*;

const MS: i64 = 1_000_000;
const PATIENCE: Patience =
    Patience { handover: Duration::from_millis(50), passing: Duration::from_millis(5) };

/// A packet: when it is stamped, by which clock it is wrong, and when it is in the ring.
#[derive(Clone, Copy, Debug)]
struct Played {
    stamp_ns: i64,
    in_ring_ns: i64,
}

/// A ring of which only the times of its packets are played.
#[derive(Default)]
struct PlayedRing {
    coming: VecDeque<Played>,
    /// Closed blocks, and when each was closed.
    closed: VecDeque<Vec<Played>>,
    open: Vec<Played>,
    opened_ns: i64,
    block_packets: usize,
    retire_ns: i64,
    /// When the blocks that wait were seen.
    seen: VecDeque<i64>,
    full_at: usize,
}

impl PlayedRing {
    /// What the kernel does up to this time.
    fn play(&mut self, now_ns: i64) {
        loop {
            let retired_ns = self.opened_ns + self.retire_ns;
            let next = self.coming.front().filter(|packet| packet.in_ring_ns <= now_ns).copied();
            let is_over = |at_ns: i64| !self.open.is_empty() && retired_ns <= at_ns;
            match next {
                Some(packet) if !is_over(packet.in_ring_ns) => {
                    if self.open.is_empty() {
                        self.opened_ns = packet.in_ring_ns;
                    }
                    self.coming.pop_front();
                    self.open.push(packet);
                    if self.open.len() == self.block_packets {
                        self.closed.push_back(core::mem::take(&mut self.open));
                    }
                }
                _ if is_over(now_ns) => self.closed.push_back(core::mem::take(&mut self.open)),
                _ => return,
            }
        }
    }

    /// As the queue of an interface does it.
    fn look(&mut self, lane: &mut Lane, now_ns: i64) {
        while self.seen.len() < self.closed.len() {
            self.seen.push_back(now_ns);
        }
        if lane.is_used_up() {
            lane.is_quiet = self.closed.is_empty() && self.open.is_empty();
            let records = lane.refill();
            if let Some((block, seen_ns)) = self.closed.pop_front().zip(self.seen.pop_front()) {
                records.extend(block.iter().map(|packet| record(packet.stamp_ns)));
                lane.seen_ns = seen_ns;
            }
        }
        lane.is_full = self.closed.len() >= self.full_at;
    }
}

fn record(stamp_ns: i64) -> Record {
    Record {
        timestamp: Timestamp(stamp_ns),
        interface: 0,
        original_len: 60,
        outbound: None,
        tag: None,
        bytes: 0..0,
        options: 0..0,
    }
}

/// A packet that was handed out.
#[derive(Clone, Copy, Debug)]
struct Given {
    ring: usize,
    stamp_ns: i64,
    at_ns: i64,
}

/// Plays until everything was handed out; the reader comes every so often, and when it is due.
fn given(rings: &mut [PlayedRing], mut pause_ns: impl FnMut() -> i64) -> Vec<Given> {
    let mut lanes: Vec<Lane> = rings.iter().map(|_| Lane::default()).collect();
    let (mut order, mut now_ns, mut all) = (Order::new(PATIENCE), 0, Vec::new());
    let total: usize = rings.iter().map(|ring| ring.coming.len()).sum();
    while all.len() < total {
        assert!(now_ns < 100_000 * MS, "{} of {total} came", all.len());
        for (ring, lane) in rings.iter_mut().zip(&mut lanes) {
            ring.play(now_ns);
            ring.look(lane, now_ns);
        }
        order.merge(&mut lanes, now_ns);
        for part in &order.parts {
            let stamps = lanes[part.lane].records(part).iter().map(|it| it.timestamp.0);
            all.extend(stamps.map(|stamp_ns| Given { ring: part.lane, stamp_ns, at_ns: now_ns }));
        }
        if order.parts.is_empty() {
            let next_ns = now_ns + pause_ns().max(1);
            now_ns = order.again_ns.map_or(next_ns, |again_ns| again_ns.min(next_ns));
        }
    }
    all
}

/// Packets at random times: now many, now few, now none for a while.
fn coming(random: &mut Random, packets: u64) -> VecDeque<Played> {
    let (mut stamp_ns, mut in_ring_ns) = (0, 0);
    let pauses = [1_000, 50_000, 3_000_000, 200_000_000];
    let mut pause = 1;
    (0..packets)
        .map(|_| {
            if random.below(20) == 0 {
                pause = pauses[usize::try_from(random.below(4)).unwrap()];
            }
            stamp_ns += 1 + i64::try_from(random.below(pause)).unwrap();
            let passing_ns = i64::try_from(random.below(4_000_000)).unwrap();
            in_ring_ns = in_ring_ns.max(stamp_ns + passing_ns);
            Played { stamp_ns, in_ring_ns: in_ring_ns.min(stamp_ns + 4 * MS) }
        })
        .collect()
}

fn ring(coming: VecDeque<Played>, block_packets: usize, retire_ns: i64) -> PlayedRing {
    PlayedRing { coming, block_packets, retire_ns, full_at: usize::MAX, ..PlayedRing::default() }
}

fn steady(count: i64, every_ns: i64, ahead_ns: i64) -> VecDeque<Played> {
    let at = |number| number * every_ns;
    (0..count).map(|it| Played { stamp_ns: at(it) + ahead_ns, in_ring_ns: at(it) }).collect()
}

fn is_in_order(all: &[Given]) -> bool {
    all.is_sorted_by_key(|given| given.stamp_ns)
}

#[test]
fn packets_of_any_rings_come_in_the_order_of_their_times_and_within_the_patience() {
    for seed in 0..2000 {
        let mut random = Random::new(seed);
        let mut rings: Vec<_> = (0..=random.below(5))
            .map(|_| {
                let packets = [0, 3, 300][usize::try_from(random.below(3)).unwrap()];
                let block = usize::try_from(1 + random.below(60)).unwrap();
                let retire_ns = MS * i64::try_from(1 + random.below(40)).unwrap();
                ring(coming(&mut random, packets), block, retire_ns)
            })
            .collect();
        let most_ns = MS * 10;
        let all = given(&mut rings, || i64::try_from(random.below(10_000_000)).unwrap());
        assert!(is_in_order(&all), "seed {seed}");
        // Passing, the block's time, the reader's pause, and the patience.
        let bound_ns = (4 + 41 + 50) * MS + most_ns;
        let late = all.iter().find(|given| given.at_ns > given.stamp_ns + bound_ns);
        assert!(late.is_none(), "seed {seed}: {late:?}");
    }
}

#[test]
fn a_ring_that_gives_nothing_holds_up_no_longer_than_the_patience() {
    // One says that it is empty; one that hangs has taken a packet and never closes its block.
    for (hung, wait_ns) in [(false, 5 * MS), (true, 50 * MS)] {
        let mut silent = ring(VecDeque::new(), 1000, i64::MAX / 2);
        if hung {
            silent.open.push(Played { stamp_ns: 0, in_ring_ns: 0 });
        }
        let mut rings = [ring(steady(1000, MS, 0), 10, 10 * MS), silent];
        let all = given(&mut rings, || MS / 10);
        let latest = all.iter().map(|given| given.at_ns - given.stamp_ns).max().unwrap();
        assert!(is_in_order(&all) && latest <= wait_ns + 11 * MS, "{hung}: {latest} ns");
    }
}

#[test]
fn a_ring_that_fills_goes_before_order() {
    let mut busy = ring(steady(1000, MS / 10, 0), 10, 10 * MS);
    busy.full_at = 3;
    let mut silent = ring(VecDeque::new(), 1000, i64::MAX / 2);
    silent.open.push(Played { stamp_ns: 0, in_ring_ns: 0 });
    let all = given(&mut [busy, silent], || MS / 10);
    let latest = all[..900].iter().map(|given| given.at_ns - given.stamp_ns).max().unwrap();
    // One block that is filled, and those that wait until the ring counts as full.
    assert!(latest <= 5 * MS, "{latest} ns");
}

#[test]
fn clocks_that_disagree_hold_up_no_longer_than_the_patience() {
    for ahead_ns in [-37_000 * MS, 37_000 * MS] {
        let mut rings = [
            ring(steady(3000, MS / 2, ahead_ns), 10, 10 * MS),
            ring(steady(3000, MS / 2, 0), 10, 10 * MS),
        ];
        let all = given(&mut rings, || MS / 10);
        for (number, ahead_ns) in [(0, ahead_ns), (1, 0)] {
            let mine: Vec<_> = all.iter().filter(|given| given.ring == number).copied().collect();
            assert!(is_in_order(&mine) && mine.len() == 3000);
            let waits = mine.iter().map(|given| given.at_ns - (given.stamp_ns - ahead_ns));
            assert!(waits.max().unwrap() <= (50 + 12) * MS, "{ahead_ns}");
        }
    }
}

#[test]
fn one_ring_is_handed_out_at_once_and_whole() {
    let mut lanes = [Lane::default()];
    lanes[0].refill().extend([3, 1, 2].map(record));
    lanes[0].seen_ns = 7;
    let mut order = Order::new(PATIENCE);
    order.merge(&mut lanes, 7);
    assert_eq!(order.parts, [Part { lane: 0, records: 0..3 }]);
    order.merge(&mut lanes, 7);
    assert_eq!((order.parts.len(), order.again_ns), (0, None));
}

#[test]
fn packets_that_alternate_are_runs_of_one_batch() {
    let mut lanes = [Lane::default(), Lane::default()];
    lanes[0].refill().extend([1, 2, 5, 9].map(record));
    lanes[1].refill().extend([3, 4, 6, 7].map(record));
    let mut order = Order::new(PATIENCE);
    order.merge(&mut lanes, 0);
    let parts: Vec<_> = order.parts.iter().map(|part| (part.lane, part.records.clone())).collect();
    assert_eq!(parts, [(0, 0..2), (1, 0..2), (0, 2..3), (1, 2..4)]);
}
