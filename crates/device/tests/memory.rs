//! The disk in memory against a naive model, and the wrappers around it.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(clippy::indexing_slicing, reason = "helpers of tests")]
#![expect(clippy::as_conversions, reason = "rows of a small disk")]
#![expect(clippy::cast_possible_truncation, reason = "rows of a small disk")]

use std::collections::BTreeMap;
use std::time::Duration;

use device::{Completion, Crash, Device, Error, Fault, Faulty, Latched, Memory, Pool, Shared};
use proptest::prelude::*;

const ROW: u64 = 4096;
const ROWS: u64 = 8;

/// A row whose sectors all hold one number.
fn row_of(tag: u64) -> [u8; 4096] {
    let mut row = [0; 4096];
    for word in row.chunks_exact_mut(8) {
        word.copy_from_slice(&tag.to_le_bytes());
    }
    row
}

fn buffer(tags: &[u64]) -> Shared {
    let mut buffer = Pool::new(1, tags.len() * 4096).unwrap().take().unwrap();
    for (row, &tag) in buffer.chunks_exact_mut(4096).zip(tags) {
        row.copy_from_slice(&row_of(tag));
    }
    buffer.freeze()
}

/// The numbers in the eight sectors of a row; every sector holds one number throughout.
fn tags_at(device: &dyn Device, row: u64) -> Vec<u64> {
    let mut bytes = [0; 4096];
    device.read_at(row * ROW, &mut bytes).unwrap();
    let tags = bytes.chunks_exact(512).map(|sector| {
        let tag: [u8; 8] = sector[..8].try_into().unwrap();
        assert!(sector.chunks_exact(8).all(|word| word == tag));
        u64::from_le_bytes(tag)
    });
    tags.collect()
}

fn reap(device: &mut dyn Device) -> Vec<Completion> {
    let mut completions = Vec::new();
    device.reap(Some(Duration::ZERO), &mut completions);
    completions
}

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
    fn run(&mut self, memory: &mut Memory, step: &Step) {
        self.last_tag += 1;
        let tag = self.last_tag;
        match *step {
            Step::Submit { row, rows } if !self.is_busy(row, rows) => {
                let data = buffer(&vec![tag; rows as usize]);
                memory.submit_write(tag, row * ROW, data, (rows * ROW) as usize);
                self.submitted[row as usize..(row + rows) as usize].fill(tag);
                self.in_flight.insert(tag, Pending::Write { row, rows, tag });
            }
            Step::Write { row } if !self.is_busy(row, 1) => {
                memory.write_at(row * ROW, &row_of(tag)).unwrap();
                self.submitted[row as usize] = tag;
                self.completed[row as usize] = tag;
            }
            Step::SubmitFlush => {
                memory.submit_flush(tag);
                self.in_flight.insert(tag, Pending::Flush { covers: self.completed });
            }
            Step::Flush => {
                memory.flush().unwrap();
                let covers = self.completed;
                self.make_durable(&covers);
            }
            Step::Reap => {
                for completion in reap(memory) {
                    completion.result.unwrap();
                    self.complete(completion.token);
                }
            }
            Step::Submit { .. } | Step::Write { .. } => {}
        }
    }

    fn check_crashes(&self, memory: &Memory, seed: u64) {
        let (killed, lost) = (memory.crash(Crash::Kill), memory.crash(Crash::LoseAll));
        let (whole, torn) =
            (memory.crash(Crash::Rows { seed }), memory.crash(Crash::Sectors { seed }));
        for row in 0..ROWS {
            let (newest, durable) = (self.submitted[row as usize], self.durable[row as usize]);
            assert_eq!(tags_at(memory, row), [self.completed[row as usize]; 8]);
            assert_eq!(tags_at(&killed, row), [newest; 8]);
            assert_eq!(tags_at(&lost, row), [durable; 8]);
            let found = tags_at(&whole, row);
            assert!(found.iter().all(|&tag| tag == found[0] && tag >= durable && tag <= newest));
            let found = tags_at(&torn, row);
            assert!(found.iter().all(|&tag| tag >= durable && tag <= newest));
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
        let mut memory = Memory::new(ROWS * ROW);
        if let Some(seed) = reordering {
            memory = memory.with_reordering(seed);
        }
        let mut model = Model::default();
        for step in &steps {
            model.run(&mut memory, step);
            prop_assert_eq!(memory.in_flight(), model.in_flight.len());
        }
        model.check_crashes(&memory, seed);
    }
}

#[test]
fn crashes_lose_and_tear_at_some_seed() {
    let mut memory = Memory::new(ROWS * ROW);
    memory.submit_write(1, 0, buffer(&[1, 2, 3, 4]), 4 * 4096);
    assert_eq!(reap(&mut memory).len(), 1);
    let found = |crash| -> Vec<Vec<u64>> {
        let crashed = memory.crash(crash);
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
    let mut memory = Memory::new(ROWS * ROW);
    memory.submit_write(1, 0, buffer(&[1]), 4096);
    memory.submit_flush(2);
    assert_eq!(reap(&mut memory).len(), 2);
    assert_eq!(tags_at(&memory.crash(Crash::LoseAll), 0), [0; 8]);
    memory.flush().unwrap();
    assert_eq!(tags_at(&memory.crash(Crash::LoseAll), 0), [1; 8]);
}

#[test]
fn a_snapshot_goes_its_own_way() {
    let mut memory = Memory::new(ROWS * ROW);
    memory.write_at(0, &row_of(1)).unwrap();
    let (mut snapshot, handle) = (memory.snapshot(), memory.clone());
    snapshot.write_at(0, &row_of(2)).unwrap();
    handle.damage(ROW, |row| row.copy_from_slice(&row_of(3)));
    assert_eq!((tags_at(&memory, 0)[0], tags_at(&memory, 1)[0]), (1, 3));
    assert_eq!((tags_at(&snapshot, 0)[0], tags_at(&snapshot, 1)[0]), (2, 0));
}

#[test]
fn planned_failures_come_once_or_for_good() {
    for persistent in [false, true] {
        let mut memory = Memory::new(ROWS * ROW);
        memory.fail_at(1, persistent);
        let results = [
            memory.write_at(0, &row_of(1)).is_ok(),
            memory.write_at(ROW, &row_of(1)).is_ok(),
            memory.flush().is_ok(),
        ];
        assert_eq!(results, [true, false, !persistent]);
        assert_eq!(tags_at(&memory, 1), [0; 8]);
        let operations = memory.operations();
        assert_eq!((operations.writes, operations.flushes, operations.reads), (2, 1, 1));
        assert_eq!((operations.mutations(), operations.written_bytes), (3, 8192));
    }
}

#[test]
fn a_failed_sync_refuses_every_later_write() {
    let memory = Memory::new(ROWS * ROW);
    memory.fail_at(1, false);
    let mut device = Latched::new(Box::new(memory.clone()));
    device.write_at(0, &row_of(1)).unwrap();
    let cause = device.flush().unwrap_err();
    let latched = Error::Latched { cause: Box::new(cause) };
    device.submit_write(1, 0, buffer(&[2]), 4096);
    device.submit_flush(2);
    assert_eq!(device.in_flight(), 2);
    let completions = reap(&mut device);
    assert_eq!(completions.iter().map(|done| done.token).collect::<Vec<_>>(), [1, 2]);
    assert!(completions.iter().all(|done| done.result == Err(latched.clone())));
    assert_eq!(device.write_at(0, &row_of(3)), Err(latched.clone()));
    assert_eq!(device.flush(), Err(latched));
    assert_eq!((memory.operations().mutations(), device.in_flight()), (2, 0));
    assert_eq!(tags_at(&device, 0), [1; 8]);
}

#[test]
fn a_flush_that_ends_after_a_failed_write_does_not_count() {
    let memory = Memory::new(ROWS * ROW);
    memory.fail_at(0, false);
    let mut device = Latched::new(Box::new(memory));
    device.submit_write(1, 0, buffer(&[1]), 4096);
    device.submit_flush(2);
    let completions = reap(&mut device);
    assert!(matches!(completions[0].result, Err(Error::Io { .. })));
    assert!(matches!(completions[1].result, Err(Error::Latched { .. })));
}

/// One write of rows 1, 2, 3, 4 at row 2 under a fault; gives its result and all rows.
fn faulty_write(fault: Fault, synchronous: bool) -> (Result<(), Error>, Vec<u64>, u64) {
    let memory = Memory::new(ROWS * ROW);
    let mut device = Faulty::new(Box::new(memory.clone()), BTreeMap::from([(0, fault)]));
    let data = buffer(&[1, 2, 3, 4]);
    let (result, latency_ns) = if synchronous {
        (device.write_at(2 * ROW, &data), 0)
    } else {
        device.submit_write(7, 2 * ROW, data, 4 * 4096);
        assert_eq!(device.in_flight(), 1);
        let [only] = <[Completion; 1]>::try_from(reap(&mut device)).unwrap();
        assert_eq!((only.token, device.in_flight()), (7, 0));
        (only.result, only.latency_ns)
    };
    device.write_at(0, &row_of(9)).unwrap();
    let mut bytes = vec![0; (ROWS * ROW) as usize];
    Device::read_at(&memory, 0, &mut bytes).unwrap();
    let rows = bytes.chunks_exact(4096).map(|row| {
        let sum: u64 = row.iter().map(|&byte| u64::from(byte)).sum();
        sum / 512
    });
    (result, rows.collect(), latency_ns)
}

#[test]
fn every_fault_does_what_it_says() {
    for synchronous in [false, true] {
        let check = |fault, succeeds: bool, rows: [u64; 8]| {
            let (result, found, _) = faulty_write(fault, synchronous);
            assert_eq!((result.is_ok(), found), (succeeds, rows.to_vec()), "{fault:?}");
        };
        check(Fault::Error, false, [9, 0, 0, 0, 0, 0, 0, 0]);
        check(Fault::Short { rows: 2 }, false, [9, 0, 1, 2, 0, 0, 0, 0]);
        check(Fault::Lost, true, [9, 0, 0, 0, 0, 0, 0, 0]);
        check(Fault::Misdirected { rows: 1 }, true, [9, 0, 0, 1, 2, 3, 4, 0]);
        check(Fault::Slow { latency_ns: 5 }, true, [9, 0, 1, 2, 3, 4, 0, 0]);
        check(Fault::LyingFlush, true, [9, 0, 1, 2, 3, 4, 0, 0]);
        check(Fault::BitRot { bit: 4 * 4096 * 8 + 1 }, true, [9, 0, 1, 2, 3, 4, 0, 0]);
        let torn = (0..8).map(|seed| faulty_write(Fault::Torn { seed }, synchronous).1);
        let shapes: std::collections::BTreeSet<Vec<u64>> = torn.collect();
        assert!(shapes.len() > 3, "{shapes:?}");
    }
    assert_eq!(faulty_write(Fault::Slow { latency_ns: 5 }, false).2, 5);
}

#[test]
fn bit_rot_changes_one_bit() {
    let memory = Memory::new(ROWS * ROW);
    let script = BTreeMap::from([(0, Fault::BitRot { bit: 8 * 100 + 3 })]);
    let mut device = Faulty::new(Box::new(memory.clone()), script);
    device.write_at(0, &[0; 4096]).unwrap();
    let mut row = [0; 4096];
    device.read_at(0, &mut row).unwrap();
    assert_eq!(row[100], 8);
    assert_eq!(row.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
}

#[test]
fn flushes_fail_once_or_lie() {
    let memory = Memory::new(ROWS * ROW);
    let script = BTreeMap::from([(1, Fault::Error), (2, Fault::LyingFlush)]);
    let mut device = Faulty::new(Box::new(memory.clone()), script);
    device.write_at(0, &row_of(1)).unwrap();
    assert!(device.flush().is_err());
    device.submit_flush(5);
    assert_eq!(reap(&mut device)[0].result, Ok(()));
    assert_eq!(tags_at(&memory.crash(Crash::LoseAll), 0), [0; 8]);
    device.flush().unwrap();
    assert_eq!(tags_at(&memory.crash(Crash::LoseAll), 0), [1; 8]);
}

#[test]
fn scripts_are_reproducible_and_know_every_fault() {
    let script = Faulty::script(7, 10_000, 10);
    assert_eq!(script, Faulty::script(7, 10_000, 10));
    assert!((800..1200).contains(&script.len()), "{}", script.len());
    let kinds: std::collections::HashSet<_> = script.values().map(std::mem::discriminant).collect();
    assert_eq!(kinds.len(), 8);
}
