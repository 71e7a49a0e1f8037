use core::ops::ControlFlow;

use format::head::{StripeId, VolumeId};
use format::session_row::SessionRow;
use units::{Epoch, Random, Sequence};

use super::*;
use crate::columns::blank;
use crate::encode::GroupEncoder;
use crate::filter::Needed;
use crate::meta::SegmentMeta;
use crate::segment::{Columns, Segment};

/// What is asked for: sums of one column, of two, and times.
const SUMS: [&[&str]; 4] =
    [&["orig_packets", "resp_packets"], &["orig_frame_bytes"], &["duration_ns"], &["fragments"]];
const ROWS: usize = 40;
const GROUPS: usize = 6;
const ALWAYS: RangeInclusive<Timestamp> = Timestamp::MIN..=Timestamp::MAX;

/// Mostly small, at times of any size, so that sums overflow and counts do not fit.
fn value(random: &mut Random) -> u64 {
    let bits = if random.below(200) == 0 { 64 } else { random.below(12) };
    random.next().checked_shr(u32::try_from(64 - bits).unwrap()).unwrap_or(0)
}

/// Rows of a group: of some all are whole sessions.
fn rows(random: &mut Random, first: i64) -> Vec<SessionRow> {
    let one_in = [u64::MAX, 4, 40][usize::try_from(random.below(3)).unwrap()];
    let row = |at: usize| {
        let start = Timestamp(first + i64::try_from(at).unwrap());
        let mut row = SessionRow { start, end: start, session_start: start, ..blank() };
        (row.orig.packets, row.resp.packets) = (value(random), value(random));
        row.orig.frame_bytes = value(random);
        row.fragments = value(random);
        row.end = start.plus_nanos(i64::try_from(value(random) >> 2).unwrap());
        row.continues = random.below(one_in) == 0;
        row.session_start = start.plus_nanos(-i64::from(random.below(one_in) == 0));
        row
    };
    (0..ROWS).map(row).collect()
}

fn sum_of(row: &SessionRow, columns: &[&str]) -> u64 {
    let value = |name: &&str| match *name {
        "orig_packets" => row.orig.packets,
        "resp_packets" => row.resp.packets,
        "orig_frame_bytes" => row.orig.frame_bytes,
        "fragments" => row.fragments,
        _ => row.end.since(row.start).cast_unsigned(),
    };
    columns.iter().map(value).fold(0, u64::saturating_add)
}

fn is_part(row: &SessionRow) -> bool {
    row.continues || row.session_start < row.start
}

fn segment(groups: &[Vec<SessionRow>], has_bounds: fn(&Column) -> bool) -> Segment {
    let encoder = GroupEncoder::with_bounds(has_bounds).unwrap();
    let encode = |(number, rows): (usize, &Vec<SessionRow>)| {
        encoder.encode(number, &rows.iter().collect::<Vec<_>>()).unwrap()
    };
    let groups = groups.iter().enumerate().map(encode).collect();
    let stripe = |sequence| StripeId { sequence: Sequence(sequence), sub: 0 };
    let meta = SegmentMeta::new(VolumeId([1; 16]), Epoch(0), stripe(1), stripe(2));
    Segment::open(encoder.file(&meta, groups).unwrap().parquet.into()).unwrap()
}

/// Numbers of the rows that are read.
fn read(segment: &Segment, needed: &Needed) -> Vec<u64> {
    let mut numbers = Vec::new();
    let mut visit = |row, _| {
        numbers.push(row);
        ControlFlow::Continue(())
    };
    segment.rows_with(needed, Columns::Named(&[]), &ALWAYS, &mut visit).unwrap();
    numbers
}

#[test]
fn bounds_rule_out_no_row_that_may_be_needed() {
    let random = &mut Random::new(23);
    let (mut ruled_out, mut of_parts) = (0, 0);
    for _ in 0..40 {
        let mut first = 0;
        let mut group = || {
            first += 1 << 20;
            rows(random, first)
        };
        let groups: Vec<_> = (0..GROUPS).map(|_| group()).collect();
        let all: Vec<&SessionRow> = groups.iter().flatten().collect();
        let now = segment(&groups, are_stored);
        // As files of earlier versions are.
        let times_alone = segment(&groups, |column| TIME_COLUMNS.contains(&column.name));
        let none = segment(&groups, |_| false);
        for _ in 0..20 {
            let mut sum = || {
                let columns = SUMS[usize::try_from(random.below(4)).unwrap()];
                (columns, value(random).saturating_mul(2))
            };
            let sums: Vec<Sum> = (0..2).map(|_| sum()).collect();
            let may = |row: &SessionRow| {
                is_part(row) || sums.iter().all(|&(columns, least)| sum_of(row, columns) >= least)
            };
            let needed = Needed { sums: sums.clone(), ..Needed::default() };
            for segment in [&now, &times_alone, &none] {
                let read = read(segment, &needed);
                let missed = (0..).zip(&all).find(|(at, row)| may(row) && !read.contains(at));
                assert!(missed.is_none(), "{missed:?} of {sums:?}");
            }
            assert_eq!(times_alone.groups_with(&needed, &ALWAYS).unwrap().len(), GROUPS);
            let with = now.groups_with(&needed, &ALWAYS).unwrap();
            for (number, rows) in groups.iter().enumerate() {
                let most = |columns: &[&'static str]| {
                    // A count that does not fit says nothing.
                    let known = |sum| if i64::try_from(sum).is_ok() { sum } else { u64::MAX };
                    let of = |name| rows.iter().map(move |row| known(sum_of(row, &[name])));
                    let most = |name| of(name).max().unwrap();
                    columns.iter().map(|&name| most(name)).fold(0, u64::saturating_add)
                };
                let is_whole = !rows.iter().any(is_part);
                let is_less = sums.iter().any(|&(columns, least)| most(columns) < least);
                assert!(with.contains(&number) != (is_whole && is_less), "{number} of {sums:?}");
                ruled_out += usize::from(is_whole && is_less);
                of_parts += usize::from(!is_whole && is_less);
            }
        }
    }
    assert!(ruled_out > 150 && of_parts > 150, "{ruled_out} {of_parts}");
}
