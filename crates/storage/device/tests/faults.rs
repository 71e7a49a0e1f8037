//! What each fault means, on a modelled disk and around any device; and latching.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(clippy::indexing_slicing, reason = "helpers of tests")]
#![expect(clippy::as_conversions, reason = "rows of a small disk")]
#![expect(clippy::cast_possible_truncation, reason = "rows of a small disk")]

mod rows;

use std::collections::BTreeSet;
use std::time::Duration;

use device::{
    Completion, Crash, Device, Error, Fault, Faulty, Latched, MUTATIONS, Modelled, OPERATIONS,
    Operation, Rule,
};
use rows::{ROW, ROWS, buffer, reap, row_of, tags_at};

const ALL_ROWS: u64 = ROWS * ROW;

/// A disk with a rule, as a modelled disk or as a wrapper around one; and a handle on the disk
/// itself.
fn faulty(rule: Rule, wrapped: bool, seed: u64) -> (Box<dyn Device>, Modelled) {
    let disk = Modelled::instant(ALL_ROWS).with_reordering(seed);
    if wrapped {
        return (Box::new(Faulty::new(Box::new(disk.clone()), vec![rule], seed)), disk);
    }
    disk.add_rule(rule);
    (Box::new(disk.clone()), disk)
}

/// The number that each row holds, eight times over unless a bit has flipped.
fn all_rows(disk: &Modelled) -> Vec<u64> {
    let mut bytes = vec![0; ALL_ROWS as usize];
    Device::read_at(disk, 0, &mut bytes).unwrap();
    let sum = |row: &[u8]| row.iter().map(|&byte| u64::from(byte)).sum::<u64>() / 512;
    bytes.chunks_exact(4096).map(sum).collect()
}

/// One write of rows 1, 2, 3, 4 at row 2 under a fault; its result and all rows.
fn write_under(fault: Fault, (wrapped, submitted): (bool, bool), seed: u64) -> (bool, Vec<u64>) {
    let rule = Rule::new(fault, MUTATIONS).times(1);
    let (mut device, disk) = faulty(rule, wrapped, seed);
    let data = buffer(&[1, 2, 3, 4]);
    let result = if submitted {
        device.submit_write(7, 2 * ROW, data, 4 * 4096);
        assert_eq!(device.in_flight(), 1);
        let mut done = Vec::new();
        device.reap(Some(Duration::from_secs(1)), &mut done);
        let [only] = <[Completion; 1]>::try_from(done).unwrap();
        assert_eq!((only.token, device.in_flight()), (7, 0));
        only.result
    } else {
        device.write_at(2 * ROW, &data)
    };
    device.write_at(0, &row_of(9)).unwrap();
    (result.is_ok(), all_rows(&disk))
}

#[test]
fn every_fault_of_a_write_does_what_it_says() {
    for way in [(false, false), (false, true), (true, false), (true, true)] {
        let check = |fault, succeeds: bool, rows: [u64; 8]| {
            assert_eq!(write_under(fault, way, 1), (succeeds, rows.to_vec()), "{fault:?} {way:?}");
        };
        check(Fault::Error, false, [9, 0, 0, 0, 0, 0, 0, 0]);
        check(Fault::NoSpace, false, [9, 0, 0, 0, 0, 0, 0, 0]);
        check(Fault::Short { rows: 2 }, false, [9, 0, 1, 2, 0, 0, 0, 0]);
        check(Fault::Lost, true, [9, 0, 0, 0, 0, 0, 0, 0]);
        check(Fault::OtherDisk, true, [9, 0, 0, 0, 0, 0, 0, 0]);
        check(Fault::Misdirected { rows: 1 }, true, [9, 0, 0, 1, 2, 3, 4, 0]);
        check(Fault::Misdirected { rows: 3 }, true, [9, 2, 3, 4, 0, 0, 0, 0]);
        check(Fault::Slow { latency_ns: 5 }, true, [9, 0, 1, 2, 3, 4, 0, 0]);
        check(Fault::LyingFlush, true, [9, 0, 1, 2, 3, 4, 0, 0]);
        let torn: BTreeSet<_> = (0..16).map(|seed| write_under(Fault::Torn, way, seed).1).collect();
        assert!(torn.len() > 5, "{torn:?}");
        for rows in torn {
            assert!(rows[2..6].iter().zip(1..).all(|(&row, tag)| row == 0 || row == tag));
        }
    }
}

#[test]
fn rot_flips_one_bit_on_writing_on_reading_and_at_rest() {
    let ones = |row: &[u8]| row.iter().map(|byte| byte.count_ones()).sum::<u32>();
    for wrapped in [false, true] {
        for operation in [&[Operation::Write], &[Operation::Read]] {
            let rule = Rule::new(Fault::BitRot, operation).times(1);
            let (mut device, _) = faulty(rule, wrapped, 3);
            device.write_at(0, &[0; 4096]).unwrap();
            let mut row = [0; 4096];
            device.read_at(0, &mut row).unwrap();
            assert_eq!(ones(&row), 1, "{operation:?}");
            device.read_at(0, &mut row).unwrap();
            let stays = u32::from(operation == &[Operation::Write]);
            assert_eq!(ones(&row), stays, "a bit that flips on the way flips once");
        }
    }
    let disk = Modelled::instant(ALL_ROWS);
    disk.rot(ROW);
    let mut bytes = vec![0; ALL_ROWS as usize];
    Device::read_at(&disk, 0, &mut bytes).unwrap();
    assert_eq!((ones(&bytes), ones(&bytes[4096..8192])), (1, 1));
}

#[test]
fn reads_fail_or_come_from_elsewhere() {
    for wrapped in [false, true] {
        let reads: &[Operation] = &[Operation::Read];
        let (mut device, _) = faulty(Rule::new(Fault::Error, reads).times(1), wrapped, 0);
        device.write_at(ROW, &row_of(5)).unwrap();
        let mut row = [0; 4096];
        assert!(matches!(device.read_at(ROW, &mut row), Err(Error::Io { .. })));
        assert_eq!(tags_at(device.as_ref(), 1), [5; 8]);
        let misdirected = Rule::new(Fault::Misdirected { rows: 1 }, reads).times(1);
        let (mut device, _) = faulty(misdirected, wrapped, 0);
        device.write_at(ROW, &row_of(5)).unwrap();
        assert_eq!(tags_at(device.as_ref(), 0), [5; 8]);
        assert_eq!(tags_at(device.as_ref(), 0), [0; 8]);
    }
}

#[test]
fn rules_choose_by_place_by_count_and_by_chance() {
    let struck = |rule: Rule| -> Vec<u64> {
        let (mut device, _) = faulty(rule, false, 11);
        (0..ROWS).filter(|row| device.write_at(row * ROW, &row_of(1)).is_err()).collect()
    };
    let rule = || Rule::new(Fault::Error, MUTATIONS);
    assert_eq!(struck(rule()), (0..ROWS).collect::<Vec<_>>());
    assert_eq!(struck(rule().times(2)), [0, 1]);
    assert_eq!(struck(rule().after(5)), [5, 6, 7]);
    assert_eq!(struck(rule().within(ROW..2 * ROW + 1)), [1, 2]);
    assert_eq!(struck(rule().within(3 * ROW..6 * ROW).after(1).times(1)), [4]);
    assert!(struck(Rule::new(Fault::Error, &[Operation::Read])).is_empty());
    let disk = Modelled::instant(ALL_ROWS);
    disk.add_rule(rule().one_in(10));
    let failures = (0..10_000).filter(|_| disk.clone().flush().is_err()).count();
    assert!((850..1150).contains(&failures), "{failures}");
}

#[test]
fn flushes_fail_once_or_lie() {
    for wrapped in [false, true] {
        let (mut device, disk) =
            faulty(Rule::new(Fault::Error, &[Operation::Flush]).times(1), wrapped, 0);
        device.write_at(0, &row_of(1)).unwrap();
        assert!(device.flush().is_err());
        device.flush().unwrap();
        assert_eq!(tags_at(&disk.crash(Crash::LoseAll), 0), [1; 8]);
        let lying = Rule::new(Fault::LyingFlush, &[Operation::Flush]).times(1);
        let (mut device, disk) = faulty(lying, wrapped, 0);
        device.write_at(0, &row_of(1)).unwrap();
        device.submit_flush(5);
        assert_eq!(reap(device.as_mut())[0].result, Ok(()));
        assert_eq!(tags_at(&disk.crash(Crash::LoseAll), 0), [0; 8]);
        device.flush().unwrap();
        assert_eq!(tags_at(&disk.crash(Crash::LoseAll), 0), [1; 8]);
    }
}

#[test]
fn a_write_to_the_wrong_disk_arrives_there() {
    let (mut disk, other) = (Modelled::instant(ALL_ROWS), Modelled::instant(ALL_ROWS));
    disk.set_other(&other);
    disk.add_rule(Rule::new(Fault::OtherDisk, MUTATIONS).times(1));
    disk.write_at(ROW, &row_of(4)).unwrap();
    assert_eq!((tags_at(&disk, 1), tags_at(&other, 1)), (vec![0; 8], vec![4; 8]));
}

#[test]
fn a_spoilt_row_is_unreadable_until_it_is_written() {
    let mut disk = Modelled::instant(ALL_ROWS);
    disk.write_at(0, &buffer(&[1, 2, 3])).unwrap();
    disk.spoil(ROW);
    let mut bytes = [0; 3 * 4096];
    assert!(matches!(Device::read_at(&disk, 0, &mut bytes), Err(Error::Io { offset: 4096, .. })));
    assert_eq!(tags_at(&disk, 2), [3; 8]);
    disk.write_at(ROW, &row_of(7)).unwrap();
    assert_eq!(tags_at(&disk, 1), [7; 8]);
}

#[test]
fn a_vanished_disk_fails_everything_and_comes_back_stale() {
    let mut disk = Modelled::instant(ALL_ROWS);
    disk.write_at(0, &row_of(1)).unwrap();
    disk.flush().unwrap();
    disk.write_at(0, &row_of(2)).unwrap();
    disk.submit_write(1, ROW, buffer(&[3]), 4096);
    disk.vanish(Crash::LoseAll);
    disk.submit_write(2, ROW, buffer(&[4]), 4096);
    disk.submit_flush(3);
    let mut completions = reap(&mut disk);
    completions.sort_by_key(|done| done.token);
    assert_eq!(completions.iter().map(|done| done.token).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(completions.iter().all(|done| matches!(done.result, Err(Error::Io { errno: 19, .. }))));
    assert!(Device::read_at(&disk, 0, &mut [0; 4096]).is_err());
    assert!(disk.write_at(0, &row_of(9)).is_err() && disk.flush().is_err());
    disk.come_back();
    assert!(disk.write_at(0, &row_of(9)).is_err() && disk.flush().is_err(), "it was open before");
    let disk = disk.clone();
    assert_eq!((tags_at(&disk, 0), tags_at(&disk, 1)), (vec![1; 8], vec![0; 8]));
}

#[test]
fn a_rolled_back_disk_holds_what_it_held_then() {
    let mut disk = Modelled::instant(ALL_ROWS);
    disk.write_at(0, &row_of(1)).unwrap();
    let then = disk.snapshot();
    disk.write_at(0, &row_of(2)).unwrap();
    disk.flush().unwrap();
    disk.roll_back(&then);
    assert_eq!(tags_at(&disk, 0), [1; 8]);
    assert_eq!(tags_at(&disk.crash(Crash::LoseAll), 0), [0; 8], "the cache came back too");
}

#[test]
fn a_killed_writer_leaves_a_volatile_cache() {
    let mut disk = Modelled::instant(ALL_ROWS);
    disk.submit_write(1, 0, buffer(&[1]), 4096);
    let mut killed = disk.crash(Crash::Kill);
    assert_eq!(tags_at(&killed, 0), [1; 8]);
    assert_eq!(tags_at(&killed.crash(Crash::LoseAll), 0), [0; 8]);
    killed.flush().unwrap();
    assert_eq!(tags_at(&killed.crash(Crash::LoseAll), 0), [1; 8]);
}

#[test]
fn some_crash_leaves_whole_writes_and_beginnings_of_writes() {
    let mut disk = Modelled::instant(ALL_ROWS);
    disk.write_at(0, &buffer(&[1, 2, 3, 4])).unwrap();
    disk.write_at(4 * ROW, &buffer(&[5, 6, 7, 8])).unwrap();
    let found: BTreeSet<Vec<u64>> = (0..200)
        .map(|seed| {
            let crashed = disk.crash(Crash::Writes { seed });
            let tags: Vec<u64> = (0..ROWS).flat_map(|row| tags_at(&crashed, row)).collect();
            for write in tags.chunks(32) {
                let arrived = write.iter().take_while(|&&tag| tag > 0).count();
                assert!(write[arrived..].iter().all(|&tag| tag == 0), "a write has one end");
            }
            tags
        })
        .collect();
    let arrived = |tags: &[u64]| tags.iter().filter(|&&tag| tag > 0).count();
    for (first, second) in [(0, 0), (0, 32), (32, 0), (32, 32)] {
        assert!(
            found
                .iter()
                .any(|tags| { (arrived(&tags[..32]), arrived(&tags[32..])) == (first, second) })
        );
    }
    assert!(found.iter().any(|tags| arrived(&tags[..32]) % 8 > 0), "rows are torn");
}

#[test]
fn faults_can_be_switched_while_a_device_works_elsewhere() {
    let mut device = Faulty::new(Box::new(Modelled::instant(ALL_ROWS)), Vec::new(), 0);
    let switch = device.switch();
    device.write_at(0, &row_of(1)).unwrap();
    switch.add(Rule::new(Fault::Error, OPERATIONS));
    assert!(device.write_at(0, &row_of(2)).is_err() && device.flush().is_err());
    assert!(device.read_at(0, &mut [0; 4096]).is_err());
    switch.clear();
    assert_eq!(tags_at(&device, 0), [1; 8]);
}

#[test]
fn a_slow_device_holds_its_completion_back_for_real() {
    let mut device = Faulty::new(Box::new(Modelled::instant(ALL_ROWS)), Vec::new(), 0);
    let slow = Fault::Slow { latency_ns: 30_000_000 };
    device.switch().add(Rule::new(slow, &[Operation::Write]).times(1));
    device.submit_write(1, 0, buffer(&[1]), 4096);
    device.submit_flush(2);
    let mut done = Vec::new();
    device.reap(Some(Duration::from_secs(9)), &mut done);
    assert_eq!((done.len(), done[0].token, device.in_flight()), (1, 2, 1));
    device.reap(None, &mut done);
    assert_eq!(done.len(), 1);
    device.reap(Some(Duration::from_secs(9)), &mut done);
    assert_eq!((done.len(), done[1].token, device.in_flight()), (2, 1, 0));
    assert!(done[1].latency_ns >= 30_000_000);
}

#[test]
fn a_failed_sync_refuses_every_later_write() {
    let disk = Modelled::instant(ALL_ROWS);
    disk.add_rule(Rule::new(Fault::Error, MUTATIONS).after(1).times(1));
    let mut device = Latched::new(Box::new(disk.clone()));
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
    assert_eq!((disk.work().mutations(), device.in_flight()), (2, 0));
    assert_eq!(tags_at(&device, 0), [1; 8]);
}

#[test]
fn a_flush_that_ends_after_a_failed_write_does_not_count() {
    let disk = Modelled::instant(ALL_ROWS);
    disk.add_rule(Rule::new(Fault::Error, MUTATIONS).times(1));
    let mut device = Latched::new(Box::new(disk));
    device.submit_write(1, 0, buffer(&[1]), 4096);
    device.submit_flush(2);
    let completions = reap(&mut device);
    assert!(matches!(completions[0].result, Err(Error::Io { .. })));
    assert!(matches!(completions[1].result, Err(Error::Latched { .. })));
}

#[test]
fn what_a_failed_flush_forgot_is_shown_until_the_cache_is_gone() {
    let (mut kept, mut gone) = (0, 0);
    for seed in 0..40 {
        let flush: &[Operation] = &[Operation::Flush];
        let rule = Rule::new(Fault::FlushForgets, flush).after(1).times(1);
        let (mut device, disk) = faulty(rule, false, seed);
        device.write_at(0, &row_of(1)).unwrap();
        device.flush().unwrap();
        device.write_at(0, &row_of(2)).unwrap();
        device.flush().unwrap_err();
        device.flush().unwrap();
        // A process that dies takes nothing along.
        for disk in [disk.clone(), disk.crash(Crash::Kill)] {
            assert_eq!(all_rows(&disk)[0], 2, "{seed}");
        }
        let after = disk.crash(Crash::LoseAll);
        disk.forget_cached();
        assert_eq!(all_rows(&disk), all_rows(&after), "{seed}");
        match all_rows(&disk)[0] {
            1 => gone += 1,
            2 => kept += 1,
            other => panic!("{other}"),
        }
        // What is written anew is as good as ever.
        device.write_at(0, &row_of(3)).unwrap();
        device.flush().unwrap();
        disk.forget_cached();
        assert_eq!(all_rows(&disk)[0], 3);
        assert_eq!(disk.strikes(), 1);
    }
    assert!(kept > 3 && gone > 10, "{kept} and {gone}");
}

#[test]
fn a_write_in_flight_becomes_visible_row_by_row_and_is_not_durable_before_its_time() {
    let mut seen = BTreeSet::new();
    for seed in 0..100 {
        let disk = Modelled::instant(ALL_ROWS).with_reordering(seed);
        disk.show_gradually();
        let mut device: Box<dyn Device> = Box::new(disk.clone());
        device.submit_write(7, 2 * ROW, buffer(&[8, 8, 8]), 3 * 4096);
        for _ in 0..4 {
            let rows = all_rows(&disk);
            assert!(rows[2..5].iter().all(|&row| row <= 8), "{rows:?}");
            seen.insert(rows[2..5].to_vec());
        }
        assert!(all_rows(&disk.crash(Crash::LoseAll)).iter().all(|&row| row == 0));
        assert_eq!(all_rows(&disk.crash(Crash::Kill))[2..5], [8, 8, 8]);
        let mut done = Vec::new();
        device.reap(Some(Duration::from_secs(1)), &mut done);
        assert_eq!(all_rows(&disk)[2..5], [8, 8, 8]);
    }
    let whole = |row: &u64| *row == 0 || *row == 8;
    assert!(seen.iter().filter(|rows| rows.iter().all(whole)).count() == 8, "{seen:?}");
    assert!(seen.iter().any(|rows| !rows.iter().all(whole)), "rows are seen in part");
}

#[test]
fn who_hangs_is_left_after_a_while_and_answers_later() {
    let rule = Rule::new(Fault::Hangs { ns: 3_600_000_000_000 }, &[Operation::Read]).times(1);
    let (device, disk) = faulty(rule, false, 0);
    let mut row = [0; 4096];
    assert!(matches!(device.read_at(0, &mut row), Err(Error::Silent { .. })));
    assert!(disk.timeline().now_ns() < 60_000_000_000);
    disk.timeline().advance_to(disk.answers_from_ns());
    device.read_at(0, &mut row).unwrap();
}
