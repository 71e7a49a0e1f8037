//! Crashes at random moments of a random workload on modelled disks, with members that are absent
//! for a while: what was acknowledged is there, whole and in place; what comes back was written;
//! the ring goes on.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "a test may stop at once"
)]

use std::collections::BTreeMap;

use core::ops::ControlFlow;
use core::time::Duration;

use device::{Crash, Device, Fault, MUTATIONS, Modelled, Pool, ReadAt, Rule};
use format::head::{HEAD_BYTES, HeadKey, Kind, StripeId, Totals, VolumeId};
use format::superblock::{MemberEntry, TimeKnown};
use units::{ManualClock, Random, Timestamp};
use volume::{CreateOptions, Error, Identity, Layout, Reader, create, geometry_for};
use writer::{Filled, FilledColumn, Opener, Writer, mount, verify};

const PIECE_BYTES: u32 = 32 << 10;

/// What the test knows: every stripe submitted, by place, with its rows and the first bytes of its
/// bodies.
#[derive(Default)]
struct Truth {
    submitted: BTreeMap<StripeId, (u16, u64)>,
    acknowledged: StripeId,
}

/// Every seventh ring goes over its members in two zones, with extents of two slots.
fn layout(seed: u64) -> Layout {
    let extent_bytes = Some(2 * u64::from(PIECE_BYTES));
    let levelled = Layout { zones: 2, extent_bytes, ..Layout::default() };
    if seed % 7 == 3 { levelled } else { Layout::default() }
}

/// Data and parity columns.
#[derive(Clone, Copy, Debug)]
struct Shape(u8, u8);

struct Run {
    shape: Shape,
    disks: Vec<Modelled>,
    clock: ManualClock,
    pool: Pool,
    rng: Random,
    truth: Truth,
}

impl Run {
    fn new(shape: Shape, seed: u64, slots: u64) -> Self {
        let members = usize::from(shape.0 + shape.1);
        let options = CreateOptions {
            piece_bytes: PIECE_BYTES,
            parity_columns: shape.1,
            layout: layout(seed),
            max_age_ns: 0,
            qualified: None,
            time: TimeKnown::default(),
        };
        let mut size = (4 << 20) + slots * u64::from(PIECE_BYTES);
        let fits = |size| {
            geometry_for(size, members, &options).is_ok_and(|(geometry, _)| geometry.slots >= slots)
        };
        while !fits(size) {
            size += 4096;
        }
        let disks: Vec<Modelled> = (0..members).map(|_| Modelled::instant(size)).collect();
        let entry = |member: usize| MemberEntry::new([member as u8 + 1; 16], String::new());
        let identity = Identity {
            volume_id: VolumeId([1; 16]),
            head_key: HeadKey([2; 32]),
            members: (0..members).map(entry).collect(),
            spares: Vec::new(),
            created: Timestamp(0),
        };
        create(&mut boxed(&disks), &options, &identity).unwrap();
        let reordering = disks.into_iter().zip(seed..);
        Self {
            shape,
            disks: reordering.map(|(disk, seed)| disk.with_reordering(seed)).collect(),
            clock: ManualClock::new(Timestamp(1)),
            pool: Pool::new(64 * members, PIECE_BYTES as usize).unwrap(),
            rng: Random::new(seed),
            truth: Truth::default(),
        }
    }

    fn write_some(&mut self, writer: &mut Writer) {
        for _ in 0..self.rng.below(60) {
            match self.rng.below(10) {
                0..6 => self.append(writer),
                6 => writer.drain(&self.clock).unwrap(),
                _ => writer.poll(Some(Duration::ZERO), &self.clock).unwrap(),
            }
            self.clock.advance_nanos(7_000_000);
            self.truth.acknowledged = writer.acknowledged();
        }
    }

    fn append(&mut self, writer: &mut Writer) {
        if !writer.has_room_in_window() {
            return;
        }
        let full = u64::from(PIECE_BYTES / 4096 - 1);
        let rows = if self.rng.below(2) == 0 { full } else { self.rng.below(full) } as u16;
        // Unpadded stripes may leave a single row of a slot.
        let rows = if self.rng.below(3) == 0 { rows } else { writer.plan(rows).rows };
        let mark = self.rng.next();
        let column = |number: u8| {
            let mut buffer = self.pool.take().unwrap();
            let body = &mut buffer[HEAD_BYTES..HEAD_BYTES * (1 + usize::from(rows))];
            body.fill(mark as u8);
            if rows > 0 {
                body[..8].copy_from_slice(&(mark ^ u64::from(number)).to_le_bytes());
            }
            FilledColumn { buffer, packets: 0 }
        };
        let filled = Filled {
            columns: (0..if rows > 0 { self.shape.0 } else { 0 }).map(column).collect(),
            kind: if rows == 0 { Kind::Heartbeat } else { Kind::Index },
            rows,
            totals: Totals::default(),
            time_min: Timestamp::MAX,
            time_max: Timestamp::MIN,
            extra_blocks: false,
        };
        let appended = writer.append(filled, &self.clock).unwrap();
        self.truth.submitted.insert(appended.stripe, (rows, mark));
    }

    fn crash(&mut self) {
        let kind = self.rng.below(5);
        for disk in &mut self.disks {
            let seed = self.rng.next();
            let crash = match kind {
                0 => Crash::Kill,
                1 => Crash::LoseAll,
                2 => Crash::Rows { seed },
                3 => Crash::Writes { seed },
                _ => Crash::Sectors { seed },
            };
            *disk = disk.crash(crash).with_reordering(seed);
        }
    }

    /// The members at hand for one mount: all, or without up to as many as there is parity.
    fn at_hand(&mut self) -> Vec<Modelled> {
        let mut disks = self.disks.clone();
        for _ in 0..self.rng.below(2 * u64::from(self.shape.1) + 1).min(u64::from(self.shape.1)) {
            if self.rng.below(2) == 0 {
                disks.remove(self.rng.below(disks.len() as u64) as usize);
            }
        }
        disks
    }

    /// Mounts; sometimes the mount itself fails at a random write and crashes again.
    fn remount(&mut self) -> Writer {
        loop {
            let disks = self.at_hand();
            let crashes = self.rng.below(3) == 0;
            if crashes {
                let after = self.rng.below(20);
                let failing = Rule::new(Fault::Error, MUTATIONS).after(after);
                for disk in &disks {
                    disk.add_rule(failing.clone());
                }
            }
            let mounted = mount(boxed(&disks), &Opener::alone(&self.clock));
            disks.iter().for_each(Modelled::clear_rules);
            match mounted {
                Ok((writer, _)) => return writer,
                // Those that were absent from the newest epoch must not decide alone.
                Err(Error::Quorum { .. }) if disks.len() < self.disks.len() => {}
                Err(error) => {
                    assert!(crashes, "{error}");
                    self.crash();
                }
            }
        }
    }

    /// Everything acknowledged that the ring still holds is there; all that is shown was written.
    fn check(&mut self) {
        let readers = self.disks.iter().map(|disk| Box::new(disk.clone()) as Box<dyn ReadAt>);
        let reader = Reader::open(readers.collect()).unwrap();
        let Some(span) = reader.span() else {
            assert!(self.truth.submitted.is_empty(), "only a new volume has nothing to show");
            return;
        };
        let mut buffer = vec![0; PIECE_BYTES as usize];
        let mut dead = Vec::new();
        for (&stripe, &(rows, mark)) in &self.truth.submitted {
            for column in 0..self.shape.0 {
                let wanted = stripe <= self.truth.acknowledged && stripe.sequence >= span.tail;
                let found = reader.slot(stripe.sequence, column, &mut buffer).ok();
                let found =
                    found.and_then(|slot| slot.stripes.get(usize::from(stripe.sub)).cloned());
                let Some(found) = found.filter(|found| !found.head.stripe.kind.closes_slot())
                else {
                    assert!(!wanted, "{stripe} was acknowledged and is gone");
                    dead.push(stripe);
                    continue;
                };
                assert_eq!((found.head.stripe.rows, found.bad_rows), (rows, vec![]), "{stripe}");
                if rows > 0 {
                    let body = Reader::body(&found.head, &buffer);
                    let mark = mark ^ u64::from(column);
                    assert_eq!(body[..8], mark.to_le_bytes(), "{stripe} holds something else");
                }
            }
        }
        // What left no trace may never come back, and its sequence may be used again.
        self.truth.submitted.retain(|stripe, _| !dead.contains(stripe));
        let report = verify(&reader, &mut |_, _| ControlFlow::Continue(()));
        assert_eq!(report.damage, vec![], "verify is clean");
    }

    fn cycle(&mut self) {
        let mut writer = self.remount();
        let tail = writer.tail();
        self.truth.submitted.retain(|stripe, _| stripe.sequence >= tail);
        self.check();
        self.write_some(&mut writer);
        if self.rng.below(4) == 0 {
            writer.drain(&self.clock).unwrap();
            self.truth.acknowledged = writer.acknowledged();
            let all = writer.membership().present().count() == self.disks.len();
            writer.close(&self.clock).unwrap();
            let copies: Vec<Modelled> = self.disks.iter().map(Modelled::snapshot).collect();
            if all {
                let (_, recovery) = mount(boxed(&copies), &Opener::alone(&self.clock)).unwrap();
                assert!(recovery.clean && recovery.voided == 0, "{recovery:?}");
            }
        }
        self.crash();
    }
}

fn boxed(disks: &[Modelled]) -> Vec<Box<dyn Device>> {
    disks.iter().map(|disk| Box::new(disk.clone()) as Box<dyn Device>).collect()
}

#[test]
fn nothing_acknowledged_is_lost_in_any_crash() {
    let shapes = [(1, 0), (2, 0), (1, 1), (1, 2), (2, 1), (4, 2), (3, 2)];
    for seed in 0..48 {
        let (data, parity) = shapes[seed as usize % shapes.len()];
        let mut run = Run::new(Shape(data, parity), seed, 16 + seed % 30);
        for cycle in 0..12 {
            let caught = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| run.cycle()));
            assert!(caught.is_ok(), "seed {seed} of {data}+{parity}, cycle {cycle}");
        }
    }
}

/// Where each of several mounts in a row is cut short.
#[derive(Clone, Copy, Debug)]
enum CutShort {
    /// After so many writes and flushes.
    After(u64),
    /// So many before its last.
    BeforeEnd(u64),
    Anywhere,
}

impl Run {
    /// How many writes and flushes of a disk a mount takes now.
    fn mutations_of_a_mount(&self) -> u64 {
        let copies: Vec<Modelled> = self.disks.iter().map(Modelled::snapshot).collect();
        let before = copies[0].work().mutations();
        drop(mount(boxed(&copies), &Opener::alone(&self.clock)).unwrap());
        copies[0].work().mutations() - before
    }

    /// A mount that comes to nothing.
    fn crash_in_mount(&mut self, cut: CutShort) {
        let all = self.mutations_of_a_mount();
        let after = match cut {
            CutShort::After(count) => count.min(all - 1),
            CutShort::BeforeEnd(count) => all.saturating_sub(1 + count),
            CutShort::Anywhere => self.rng.below(all),
        };
        for disk in &self.disks {
            disk.add_rule(Rule::new(Fault::Error, MUTATIONS).after(after));
        }
        let cut_short = mount(boxed(&self.disks), &Opener::alone(&self.clock));
        assert!(cut_short.is_err(), "{cut:?} of {all} cuts it short");
        self.crash();
    }
}

/// Bytes of heads, slots and superblocks that a mount may read of a member (ARCHITECTURE.md,
/// Numbers).
fn read_bytes_max(slots: u64, window: u64) -> u64 {
    let probes = 9 * (u64::from(slots.ilog2()) + 1);
    let heads = probes + 4 * window + 1 + 2 * (4 * window + 4);
    let whole = 5 * window + 2;
    // Superblocks and claims are read several times.
    4096 * (heads + 64) + u64::from(PIECE_BYTES) * whole
}

/// More crashes inside of mounts than any window reaches: what was acknowledged before is there,
/// and the mount after them costs no more reads than one after a single crash may.
#[test]
fn mounts_that_crash_one_after_the_other_lose_nothing_and_stay_in_their_bounds() {
    let cuts = [
        CutShort::BeforeEnd(0),
        CutShort::BeforeEnd(1),
        CutShort::BeforeEnd(4),
        CutShort::BeforeEnd(8),
        CutShort::After(2),
        CutShort::Anywhere,
        CutShort::Anywhere,
    ];
    let shapes = [(1, 0), (2, 1), (2, 0), (1, 1), (4, 2)];
    for seed in 0..12 {
        let (cut, shape) = (cuts[seed as usize % cuts.len()], shapes[seed as usize % shapes.len()]);
        let mut run = Run::new(Shape(shape.0, shape.1), 1000 + seed, 64 + 20 * (seed % 3));
        // Full laps, too.
        for _ in 0..=8 * (seed % 2) {
            let mut writer = run.remount();
            let tail = writer.tail();
            run.truth.submitted.retain(|stripe, _| stripe.sequence >= tail);
            run.check();
            run.write_some(&mut writer);
            writer.drain(&run.clock).unwrap();
            run.truth.acknowledged = writer.acknowledged();
            run.write_some(&mut writer);
            drop(writer);
            run.crash();
        }
        let readers = run.disks.iter().map(|disk| Box::new(disk.clone()) as Box<dyn ReadAt>);
        let reader = Reader::open(readers.collect()).unwrap();
        let window = u64::from(reader.superblock().window);
        let slots = reader.geometry().slots;
        drop(reader);
        for _ in 0..3 * window + 4 {
            run.crash_in_mount(cut);
        }
        let before = run.disks[0].work().read_bytes;
        let (writer, recovery) = mount(boxed(&run.disks), &Opener::alone(&run.clock)).unwrap();
        let read = run.disks[0].work().read_bytes - before;
        let what = format!("seed {seed}, {shape:?}, W = {window}, {cut:?}: {recovery:?}");
        assert!(!recovery.scanned_all, "{what}");
        assert!(read <= read_bytes_max(slots, window), "{read} bytes read; {what}");
        assert!(writer.acknowledged() >= run.truth.acknowledged, "{what}");
        let tail = writer.tail();
        run.truth.submitted.retain(|stripe, _| stripe.sequence >= tail);
        let held = |stripe: &&StripeId| **stripe <= run.truth.acknowledged;
        assert!(run.truth.submitted.keys().filter(held).count() > 0, "something is held; {what}");
        run.check();
        drop(writer);
        run.cycle();
    }
}
