//! Crashes at random moments of a random workload on a modelled disk: what was acknowledged is
//! there, whole and in place; what comes back was written; the ring goes on.

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

use device::{Crash, Fault, MUTATIONS, Modelled, Pool, Rule};
use format::head::{HEAD_BYTES, HeadKey, Kind, StripeId, Totals, VolumeId};
use units::{ManualClock, Timestamp};
use volume::{
    CreateOptions, Filled, Identity, Reader, Writer, create, geometry_for, mount, verify,
};

const PIECE_BYTES: u32 = 32 << 10;

/// `SplitMix64`.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// What the test knows: every stripe submitted, by place, with its rows and the first bytes of its
/// body.
#[derive(Default)]
struct Truth {
    submitted: BTreeMap<StripeId, (u16, u64)>,
    acknowledged: StripeId,
}

struct Run {
    disk: Modelled,
    clock: ManualClock,
    pool: Pool,
    rng: Rng,
    truth: Truth,
}

impl Run {
    fn new(seed: u64, slots: u64) -> Self {
        let options = CreateOptions { piece_bytes: PIECE_BYTES };
        let mut size = (4 << 20) + slots * u64::from(PIECE_BYTES);
        while geometry_for(size, &options).map_or(true, |(geometry, _)| geometry.slots < slots) {
            size += 4096;
        }
        let disk = Modelled::instant(size);
        let identity = Identity {
            volume_id: VolumeId([1; 16]),
            head_key: HeadKey([2; 32]),
            member_uuid: [3; 16],
            created: Timestamp(0),
        };
        create(&mut disk.clone(), &options, &identity, "modelled").unwrap();
        Self {
            disk: disk.with_reordering(seed),
            clock: ManualClock::new(Timestamp(1)),
            pool: Pool::new(64, PIECE_BYTES as usize).unwrap(),
            rng: Rng(seed),
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
        let Some(mut column) = self.pool.take().filter(|_| writer.has_room_in_window()) else {
            return;
        };
        let full = u64::from(PIECE_BYTES / 4096 - 1);
        let rows = if self.rng.below(2) == 0 { full } else { self.rng.below(full) } as u16;
        // Unpadded stripes may leave a single row of a slot.
        let rows = if self.rng.below(3) == 0 { rows } else { writer.plan(rows).rows };
        let mark = self.rng.next();
        let body = &mut column[HEAD_BYTES..HEAD_BYTES * (1 + usize::from(rows))];
        body.fill(mark as u8);
        if rows > 0 {
            body[..8].copy_from_slice(&mark.to_le_bytes());
        }
        let filled = Filled {
            column,
            kind: if rows == 0 { Kind::Heartbeat } else { Kind::Data },
            rows,
            totals: Totals::default(),
            time_min: Timestamp::MAX,
            time_max: Timestamp::MIN,
        };
        let appended = writer.append(filled, &self.clock).unwrap();
        self.truth.submitted.insert(appended.stripe, (rows, mark));
    }

    fn crash(&mut self) {
        let seed = self.rng.next();
        let crash = match self.rng.below(5) {
            0 => Crash::Kill,
            1 => Crash::LoseAll,
            2 => Crash::Rows { seed },
            3 => Crash::Writes { seed },
            _ => Crash::Sectors { seed },
        };
        self.disk = self.disk.crash(crash).with_reordering(seed);
    }

    /// Mounts; sometimes the mount itself fails at a random write and crashes again.
    fn remount(&mut self) -> Writer {
        while self.rng.below(3) == 0 {
            let failing = Rule::new(Fault::Error, MUTATIONS).after(self.rng.below(20));
            self.disk.add_rule(failing);
            match mount(Box::new(self.disk.clone()), &self.clock) {
                Ok((writer, _)) => {
                    self.disk.clear_rules();
                    return writer;
                }
                Err(_) => self.crash(),
            }
        }
        mount(Box::new(self.disk.clone()), &self.clock).unwrap().0
    }

    /// Everything acknowledged that the ring still holds is there; all that is shown was written.
    fn check(&mut self) {
        let reader = Reader::open(Box::new(self.disk.clone())).unwrap();
        let Some(span) = reader.span() else {
            assert!(self.truth.submitted.is_empty(), "only a new volume has nothing to show");
            return;
        };
        let mut buffer = vec![0; PIECE_BYTES as usize];
        let mut dead = Vec::new();
        for (&stripe, &(rows, mark)) in &self.truth.submitted {
            let wanted = stripe <= self.truth.acknowledged && stripe.sequence >= span.tail;
            let found = reader.slot(stripe.sequence, &mut buffer).ok();
            let found = found.and_then(|slot| slot.stripes.get(usize::from(stripe.sub)).cloned());
            let Some(found) = found.filter(|found| !found.head.stripe.kind.closes_slot()) else {
                assert!(!wanted, "{stripe} was acknowledged and is gone");
                dead.push(stripe);
                continue;
            };
            assert_eq!((found.head.stripe.rows, found.bad_rows), (rows, vec![]), "{stripe}");
            if rows > 0 {
                let body = Reader::body(&found.head, &buffer);
                assert_eq!(body[..8], mark.to_le_bytes(), "{stripe} holds something else");
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
            writer.close(&self.clock).unwrap();
            let (_, recovery) = mount(Box::new(self.disk.snapshot()), &self.clock).unwrap();
            assert!(recovery.clean && recovery.voided == 0, "{recovery:?}");
        }
        self.crash();
    }
}

#[test]
fn nothing_acknowledged_is_lost_in_any_crash() {
    for seed in 0..300 {
        let mut run = Run::new(seed, 16 + seed % 30);
        for cycle in 0..12 {
            let caught = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| run.cycle()));
            assert!(caught.is_ok(), "seed {seed}, cycle {cycle}");
        }
    }
}
