//! What a modelled disk holds, against a naive model: after writes, flushes and crashes.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(clippy::indexing_slicing, reason = "helpers of tests")]
#![expect(clippy::as_conversions, reason = "rows of a small disk")]
#![expect(clippy::cast_possible_truncation, reason = "rows of a small disk")]

mod rows;

use std::collections::BTreeMap;

use device::{Crash, Device, Modelled};
use proptest::prelude::*;
use rows::{ROW, ROWS, buffer, reap, row_of, tags_at};

#[derive(Debug, Clone)]
enum Step {
    Submit { row: u64, rows: u64 },
    Write { row: u64 },
    SubmitFlush,
    Flush,
    Reap,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..ROWS, 1..4_u64)
            .prop_map(|(row, rows)| Step::Submit { row, rows: rows.min(ROWS - row) }),
        1 => (0..ROWS).prop_map(|row| Step::Write { row }),
        2 => Just(Step::SubmitFlush),
        1 => Just(Step::Flush),
        4 => Just(Step::Reap),
    ]
}

/// Per row, the newest number that is submitted, completed and durable.
#[derive(Default, Clone)]
struct Model {
    submitted: [u64; ROWS as usize],
    completed: [u64; ROWS as usize],
    durable: [u64; ROWS as usize],
    in_flight: BTreeMap<u64, Pending>,
    last_tag: u64,
}

#[derive(Clone)]
enum Pending {
    Write { row: u64, rows: u64, tag: u64 },
    Flush { covers: [u64; ROWS as usize] },
}

impl Model {
    fn is_busy(&self, row: u64, rows: u64) -> bool {
        self.in_flight.values().any(|pending| match pending {
            Pending::Write { row: other, rows: count, .. } => {
                row < other + count && *other < row + rows
            }
            Pending::Flush { .. } => false,
        })
    }

    fn make_durable(&mut self, covers: &[u64; ROWS as usize]) {
        for (durable, &covered) in self.durable.iter_mut().zip(covers) {
            *durable = covered.max(*durable);
        }
    }

    fn complete(&mut self, token: u64) {
        match self.in_flight.remove(&token).unwrap() {
            Pending::Write { row, rows, tag } => {
                self.completed[row as usize..(row + rows) as usize].fill(tag);
            }
            Pending::Flush { covers } => self.make_durable(&covers),
        }
    }

    /// Overlapping writes in flight have no order, so the steps never make any.
    fn run(&mut self, disk: &mut Modelled, step: &Step) {
        self.last_tag += 1;
        let tag = self.last_tag;
        match *step {
            Step::Submit { row, rows } if !self.is_busy(row, rows) => {
                let data = buffer(&vec![tag; rows as usize]);
                disk.submit_write(tag, row * ROW, data, (rows * ROW) as usize);
                self.submitted[row as usize..(row + rows) as usize].fill(tag);
                self.in_flight.insert(tag, Pending::Write { row, rows, tag });
            }
            Step::Write { row } if !self.is_busy(row, 1) => {
                disk.write_at(row * ROW, &row_of(tag)).unwrap();
                self.submitted[row as usize] = tag;
                self.completed[row as usize] = tag;
            }
            Step::SubmitFlush => {
                disk.submit_flush(tag);
                self.in_flight.insert(tag, Pending::Flush { covers: self.completed });
            }
            Step::Flush => {
                disk.flush().unwrap();
                let covers = self.completed;
                self.make_durable(&covers);
            }
            Step::Reap => {
                for completion in reap(disk) {
                    completion.result.unwrap();
                    self.complete(completion.token);
                }
            }
            Step::Submit { .. } | Step::Write { .. } => {}
        }
    }

    fn check_crashes(&self, disk: &Modelled, seed: u64) {
        let (killed, lost) = (disk.crash(Crash::Kill), disk.crash(Crash::LoseAll));
        let (whole, torn) = (disk.crash(Crash::Rows { seed }), disk.crash(Crash::Sectors { seed }));
        let by_writes = disk.crash(Crash::Writes { seed });
        for row in 0..ROWS {
            let (newest, durable) = (self.submitted[row as usize], self.durable[row as usize]);
            assert_eq!(tags_at(disk, row), [self.completed[row as usize]; 8]);
            assert_eq!(tags_at(&killed, row), [newest; 8]);
            assert_eq!(tags_at(&lost, row), [durable; 8]);
            let found = tags_at(&whole, row);
            assert!(found.iter().all(|&tag| tag == found[0] && tag >= durable && tag <= newest));
            for crashed in [&torn, &by_writes, &killed.crash(Crash::Sectors { seed })] {
                let found = tags_at(crashed, row);
                assert!(found.iter().all(|&tag| tag >= durable && tag <= newest));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_crash_keeps_what_a_flush_covered_and_invents_nothing(
        steps in prop::collection::vec(step(), 1..60),
        reordering in any::<Option<u64>>(),
        seed in any::<u64>(),
    ) {
        let mut disk = Modelled::instant(ROWS * ROW);
        if let Some(seed) = reordering {
            disk = disk.with_reordering(seed);
        }
        let mut model = Model::default();
        for step in &steps {
            model.run(&mut disk, step);
            prop_assert_eq!(disk.in_flight(), model.in_flight.len());
        }
        model.check_crashes(&disk, seed);
    }
}

#[test]
fn crashes_lose_and_tear_at_some_seed() {
    let mut disk = Modelled::instant(ROWS * ROW);
    disk.submit_write(1, 0, buffer(&[1, 2, 3, 4]), 4 * 4096);
    assert_eq!(reap(&mut disk).len(), 1);
    let found = |crash| -> Vec<Vec<u64>> {
        let crashed = disk.crash(crash);
        (0..4).map(|row| tags_at(&crashed, row)).collect()
    };
    let whole: Vec<_> = (0..64).map(|seed| found(Crash::Rows { seed })).collect();
    assert!(whole.iter().any(|rows| rows[0][0] == 0 && rows[1][0] == 2));
    let torn = (0..64).map(|seed| found(Crash::Sectors { seed }));
    assert!(torn.into_iter().any(|rows| rows[3].contains(&0) && rows[3].contains(&4)));
    assert_eq!(found(Crash::Rows { seed: 9 }), found(Crash::Rows { seed: 9 }));
}

#[test]
fn a_flush_does_not_cover_what_is_in_flight() {
    let mut disk = Modelled::instant(ROWS * ROW);
    disk.submit_write(1, 0, buffer(&[1]), 4096);
    disk.submit_flush(2);
    assert_eq!(reap(&mut disk).len(), 2);
    assert_eq!(tags_at(&disk.crash(Crash::LoseAll), 0), [0; 8]);
    disk.flush().unwrap();
    assert_eq!(tags_at(&disk.crash(Crash::LoseAll), 0), [1; 8]);
}

#[test]
fn a_snapshot_goes_its_own_way() {
    let mut disk = Modelled::instant(ROWS * ROW);
    disk.write_at(0, &row_of(1)).unwrap();
    let (mut snapshot, handle) = (disk.snapshot(), disk.clone());
    snapshot.write_at(0, &row_of(2)).unwrap();
    handle.damage(ROW, |row| row.copy_from_slice(&row_of(3)));
    assert_eq!((tags_at(&disk, 0)[0], tags_at(&disk, 1)[0]), (1, 3));
    assert_eq!((tags_at(&snapshot, 0)[0], tags_at(&snapshot, 1)[0]), (2, 0));
}
