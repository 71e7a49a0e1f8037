use core::time::Duration;

use device::{
    Completion, Crash, Error as DeviceError, Fault, Modelled, Operation, Pool, ROW_SIZE, Rule,
    Timeline, Timing, ZoneProfile,
};
use parity::Codec;
use units::{Clock as _, Random, Timestamp};

use super::*;
use crate::number::{real, to_u64, to_usize};

const COLUMN: u64 = 4 * 4096;
const STRIPES: u64 = 6;
const SIZE: u64 = STRIPES * COLUMN;

fn disks(count: usize) -> Vec<Modelled> {
    (0..count).map(|_| Modelled::instant(SIZE)).collect()
}

/// Drives members made of these disks.
fn with<T>(
    disks: &[Modelled],
    protection: Protection,
    job: impl FnOnce(&mut Members<'_, '_>) -> T,
) -> T {
    let mut writers = disks.to_vec();
    let lent: Vec<Lent<'_>> = disks
        .iter()
        .zip(&mut writers)
        .map(|(reader, writer)| Lent::new(reader, Some(writer)))
        .collect();
    let lent: Vec<&Lent<'_>> = lent.iter().collect();
    job(&mut Members::new(&lent, protection, COLUMN).unwrap())
}

/// What is written: random, and the same each time.
fn content(columns: u64) -> Vec<Vec<u8>> {
    let mut random = Random::new(7);
    let mut column = || {
        let mut bytes = vec![0; to_usize(COLUMN)];
        random.fill(&mut bytes);
        bytes
    };
    (0..columns).map(|_| column()).collect()
}

fn submit(members: &mut Members<'_, '_>, columns: &[Vec<u8>]) {
    let pool = Pool::new(columns.len(), to_usize(COLUMN)).unwrap();
    let writer = members.writer.as_mut().unwrap();
    for (token, column) in (0..).zip(columns) {
        let mut buffer = pool.take().unwrap();
        buffer.copy_from_slice(column);
        writer.submit_write(token, token * COLUMN, buffer.freeze(), column.len());
    }
}

fn reap_all(members: &mut Members<'_, '_>) -> Vec<Completion> {
    let writer = members.writer.as_mut().unwrap();
    let mut done = Vec::new();
    while writer.in_flight() > 0 {
        writer.reap(Some(Duration::from_millis(200)), &mut done);
    }
    done
}

fn on_disk(disk: &Modelled, stripe: u64) -> Vec<u8> {
    let mut bytes = vec![0; to_usize(COLUMN)];
    ReadAt::read_at(disk, stripe * COLUMN, &mut bytes).unwrap();
    bytes
}

#[test]
fn every_byte_lies_where_it_should_and_parity_is_the_parity() {
    for (count, protection) in [
        (1, Protection::None),
        (1, Protection::Checksums),
        (2, Protection::Parity),
        (3, Protection::None),
        (3, Protection::Checksums),
        (4, Protection::Parity),
        (5, Protection::DoubleParity),
    ] {
        let disks = disks(count);
        let data = count - protection.parity_columns();
        let columns = content(STRIPES * to_u64(data));
        with(&disks, protection, |members| {
            assert_eq!(members.reader.size_bytes(), to_u64(data) * SIZE);
            submit(members, &columns);
            let mut tokens: Vec<u64> =
                reap_all(members).into_iter().map(|done| done.token).collect();
            tokens.sort_unstable();
            assert!(tokens.into_iter().eq(0..to_u64(columns.len())), "each once, and no others");
            let mut read = vec![0; columns.len() * to_usize(COLUMN) - 2 * ROW_SIZE];
            members.reader.read_at(4096, &mut read).unwrap();
            let all = columns.concat();
            assert!(read == all[ROW_SIZE..all.len() - ROW_SIZE], "{count} members read");
            members.writer.as_mut().unwrap().flush().unwrap();
        });
        for (stripe, columns) in (0..).zip(columns.chunks(data)) {
            for (disk, column) in disks.iter().zip(columns) {
                assert!(on_disk(disk, stripe) == *column, "{count} members, stripe {stripe}");
            }
            check_parity(&disks[data..], stripe, columns);
        }
    }
}

/// Of everything but the row of the head, which stays as it was.
#[track_caller]
fn check_parity(disks: &[Modelled], stripe: u64, columns: &[Vec<u8>]) {
    let bodies: Vec<&[u8]> = columns.iter().map(|column| &column[ROW_SIZE..]).collect();
    let mut expected = [vec![0; bodies[0].len()], vec![0; bodies[0].len()]];
    let [p, q] = &mut expected;
    Codec::new().unwrap().encode(&bodies, Some(p), Some(q));
    for (disk, expected) in disks.iter().zip(&expected) {
        let found = on_disk(disk, stripe);
        assert!(found[ROW_SIZE..] == expected[..], "parity of stripe {stripe}");
        assert!(found[..ROW_SIZE] == [0; ROW_SIZE], "nothing but the body");
    }
}

#[test]
fn a_stripe_that_nobody_completes_is_written_with_its_parity() {
    let disks = disks(4);
    let columns = content(5);
    with(&disks, Protection::Parity, |members| {
        submit(members, &columns);
        assert_eq!(reap_all(members).len(), 5);
        members.writer.as_mut().unwrap().flush().unwrap();
    });
    assert!(on_disk(&disks[1], 1) == columns[4]);
    check_parity(&disks[3..], 1, &columns[3..]);
}

#[test]
fn nothing_of_a_stripe_is_written_before_it_was_protected() {
    let disks = disks(3);
    with(&disks, Protection::Parity, |members| {
        submit(members, &content(3));
        let writes: Vec<u64> = disks.iter().map(|disk| disk.work().writes).collect();
        assert_eq!(writes, [1, 1, 1], "the third column waits for its stripe");
        assert_eq!(members.writer.as_ref().unwrap().in_flight(), 3);
        reap_all(members);
    });
    assert_eq!(disks.iter().map(|disk| disk.work().writes).sum::<u64>(), 5);
}

#[test]
fn an_error_of_any_member_comes_out() {
    let error = |done: &Completion| matches!(done.result, Err(DeviceError::Io { .. }));
    for at in 0..5 {
        let disks = disks(5);
        disks[at].add_rule(Rule::new(Fault::Error, &[Operation::Write]).after(1).times(1));
        with(&disks, Protection::DoubleParity, |members| {
            submit(members, &content(STRIPES * 3));
            let done = reap_all(members);
            let flushed = members.writer.as_mut().unwrap().flush();
            let errors = done.iter().filter(|done| error(done)).count();
            assert_eq!(errors + usize::from(flushed.is_err()), 1, "member {at}");
        });
    }
}

#[test]
fn a_flush_is_of_all_members_at_once() {
    // A second of writes in each cache.
    let timeline = Timeline::new(Timestamp(0));
    let timing = Timing {
        profile: ZoneProfile::level(SIZE, real(SIZE)),
        cache_bytes: SIZE,
        ..Timing::instant()
    };
    let disks: Vec<Modelled> =
        (0..4).map(|seed| Modelled::new(SIZE, timing.clone(), &timeline, seed)).collect();
    with(&disks, Protection::Parity, |members| {
        submit(members, &content(STRIPES * 3));
        reap_all(members);
        let begin_ns = timeline.boottime_ns();
        members.writer.as_mut().unwrap().flush().unwrap();
        let took_ns = timeline.boottime_ns() - begin_ns;
        assert!((500_000_000..1_500_000_000).contains(&took_ns), "{took_ns} ns, not four seconds");
    });
    for disk in &disks {
        assert!(on_disk(&disk.crash(Crash::LoseAll), STRIPES - 1)[ROW_SIZE..] != [0; 3 * 4096]);
    }
    for at in 0..4 {
        disks[at].add_rule(Rule::new(Fault::Error, &[Operation::Flush]).times(1));
        with(&disks, Protection::Parity, |members| {
            assert!(members.writer.as_mut().unwrap().flush().is_err(), "member {at}");
            assert!(members.writer.as_mut().unwrap().flush().is_ok(), "all have answered");
        });
    }
}

#[test]
fn a_target_is_lent_to_several_in_turn() {
    let disks = disks(3);
    let mut writers = disks.clone();
    let lent: Vec<Lent<'_>> = disks
        .iter()
        .zip(&mut writers)
        .map(|(reader, writer)| Lent::new(reader, Some(writer)))
        .collect();
    let all: Vec<&Lent<'_>> = lent.iter().collect();
    let columns = content(4);
    let mut alone = Members::new(&all[..1], Protection::None, COLUMN).unwrap();
    let mut together = Members::new(&all, Protection::Parity, COLUMN).unwrap();
    submit(&mut together, &columns);
    reap_all(&mut together);
    submit(&mut alone, &columns[1..2]);
    reap_all(&mut alone);
    assert!(on_disk(&disks[0], 0) == columns[1] && on_disk(&disks[0], 1) == columns[2]);
    assert!(on_disk(&disks[1], 0) == columns[1]);
}
