use units::{Sequence, Timestamp};

use super::*;
use crate::recorded::{PACKETS, data_stripes, pool, recorded};

fn skip(skips: &Skips, stripes: &[Skipped]) {
    let mut skips = skips.lock().unwrap();
    for skipped in stripes {
        skips.push(*skipped);
    }
}

/// The stripe that was read, with what lies in its pieces.
fn packets_of(step: &Step) -> Option<(StripeId, u64)> {
    let Step::Read(stripe) = step else { return None };
    let bodies = stripe.pieces.iter().map(|piece| &piece.buffer[piece.body.clone()]);
    let packets = bodies.flat_map(|body| format::piece::packets(body).map(Result::unwrap)).count();
    assert!(stripe.is_late && usize::try_from(stripe.packets) == Ok(packets));
    Some((stripe.id, stripe.packets))
}

#[test]
fn what_there_was_no_time_for_is_read_when_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let volume = recorded(folder.path());
    let open = || volume::open_reader(&volume, &[]).ok();
    let all = data_stripes(&open().unwrap());
    assert!(all.len() > 10, "{} stripes", all.len());
    let skips = Skips::default();
    let (mut late, mut from) = (Late::new(Arc::clone(&skips)), ReadBack::new(&open, pool()));
    assert_eq!(late.first(), None);
    skip(&skips, &all);
    let first = late.first().unwrap();
    // Nothing is read before it is durable.
    let before = StripeId { sequence: first.sequence - 1, sub: 0 };
    assert!(matches!(late.next(before, &mut from), Step::NotNow));

    let last = all.last().unwrap().stripe;
    for skipped in &all[..5] {
        let step = late.next(last, &mut from);
        assert_eq!(packets_of(&step), Some((skipped.stripe, skipped.packets)));
        assert!(late.first() > Some(skipped.stripe), "it does not wait any more");
    }
    let sum = |stripes: &[Skipped]| stripes.iter().map(|skipped| skipped.packets).sum::<u64>();
    // The segment ends: two more are left without rows, the others wait for the next.
    let left = late.end_segment(all[6].stripe);
    let times = Times { min: all[5].times.min, max: all[6].times.max };
    assert_eq!((left.packets, left.times), (sum(&all[5..7]), times));
    let rest = core::iter::from_fn(|| packets_of(&late.next(last, &mut from)));
    assert!(rest.eq(all[7..].iter().map(|skipped| (skipped.stripe, skipped.packets))));
    assert_eq!((late.first(), late.end_segment(last), sum(&all)), (None, Left::NONE, PACKETS));
}

#[test]
fn what_is_given_back_waits_in_its_place_and_without_memory_nothing_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let volume = recorded(folder.path());
    let open = || volume::open_reader(&volume, &[]).ok();
    let all = data_stripes(&open().unwrap());
    let skips = Skips::default();
    skip(&skips, &all[..3]);
    let pool = pool();
    let (mut late, mut from) = (Late::new(skips), ReadBack::new(&open, pool.clone()));
    let last = all.last().unwrap().stripe;
    assert_eq!(late.first(), Some(all[0].stripe));
    let Step::Read(stripe) = late.next(last, &mut from) else { panic!() };
    let held = pool.take();
    assert!(held.is_some() && matches!(late.next(last, &mut from), Step::NotNow));
    late.skip(&stripe);
    drop((stripe, held));
    let order = core::iter::from_fn(|| packets_of(&late.next(last, &mut from)));
    assert!(order.map(|(stripe, _)| stripe).eq(all[..3].iter().map(|skipped| skipped.stripe)));
}

#[test]
fn what_cannot_be_read_stays_without_rows_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let volume = recorded(folder.path());
    let open = || volume::open_reader(&volume, &[]).ok();
    let reader = open().unwrap();
    let all = data_stripes(&reader);
    let offset = reader.geometry().slot_offset(all[1].stripe.sequence) + 5 * 4096;
    let mut bytes = std::fs::read(&volume).unwrap();
    bytes[usize::try_from(offset).unwrap()] ^= 1;
    std::fs::write(&volume, bytes).unwrap();

    let skips = Skips::default();
    skip(&skips, &all[..3]);
    let (mut late, mut from) = (Late::new(skips), ReadBack::new(&open, pool()));
    let last = all.last().unwrap().stripe;
    assert!(late.first().is_some());
    assert!(packets_of(&late.next(last, &mut from)).is_some());
    assert!(matches!(late.next(last, &mut from), Step::Unreadable));
    assert!(packets_of(&late.next(last, &mut from)).is_some());
    assert!(matches!(late.next(last, &mut from), Step::NotNow));
    assert_eq!(late.end_segment(last).packets, all[1].packets);
}

fn at(sequence: u64) -> StripeId {
    StripeId { sequence: Sequence(sequence), sub: 0 }
}

/// A stripe of three packets, which came at the time of its number.
fn three(sequence: u64) -> Skipped {
    let time = Timestamp(sequence.cast_signed());
    Skipped::new(at(sequence), 3, Times { min: time, max: time })
}

fn bytes(late: &Late) -> usize {
    let skips = late.skips.lock().unwrap();
    let lists = [&skips.0, &late.waiting.0, &late.lost.0];
    lists.iter().map(|list| list.capacity() * size_of::<Skipped>()).sum()
}

#[test]
fn a_million_stripes_left_out_keep_within_a_mebibyte_and_none_of_their_packets_is_forgotten() {
    const COUNT: u64 = 1_000_000;
    let (skips, open) = (Skips::default(), || None);
    let (mut late, mut from) = (Late::new(Arc::clone(&skips)), ReadBack::new(&open, pool()));
    let push = |numbers: core::ops::Range<u64>| {
        let mut skips = skips.lock().unwrap();
        numbers.for_each(|number| skips.push(three(number)));
    };
    // The thread hangs, looks once, and hangs again.
    push(0..COUNT / 2);
    assert!(skips.lock().unwrap().len() == SKIPPED_MAX && late.is_waiting());
    push(COUNT / 2..COUNT);
    assert!(late.first() == Some(at(0)) && late.is_waiting());
    assert!(bytes(&late) <= 1 << 20, "{} bytes", bytes(&late));
    // The oldest are still known one by one, and wait to be read.
    assert_eq!(late.waiting.0[SKIPPED_MAX - 3], three(4093));
    assert!(matches!(late.next(at(COUNT), &mut from), Step::NotNow));
    let left = late.end_segment(at(COUNT));
    let times = Times { min: Timestamp(0), max: Timestamp(COUNT.cast_signed() - 1) };
    assert_eq!((left.packets, left.times), (3 * COUNT, times));
    assert_eq!((late.first(), late.end_segment(at(COUNT))), (None, Left::NONE));
}

#[test]
fn stripes_that_come_in_any_order_are_kept_in_theirs_also_where_the_list_is_full() {
    let mut list = SkipList::default();
    let numbers = (0..20_000_u64).map(|number| number * 7919 % 20_000);
    numbers.for_each(|number| list.push(three(number)));
    assert!(list.0.iter().is_sorted_by_key(|skipped| skipped.stripe));
    assert!(list.len() == SKIPPED_MAX && list.0[0].stripe == at(0));
    let newest = list.0.iter().map(|skipped| skipped.through.unwrap_or(skipped.stripe)).max();
    assert_eq!(newest, Some(at(19_999)));
    let mut left = Left::NONE;
    list.end_segment(at(20_000), &mut left);
    assert_eq!((left.packets, list.len()), (60_000, 0));
    // Sums keep to what a number can say.
    (0..=SKIPPED_MAX).for_each(|_| list.push(Skipped { packets: u64::MAX, ..three(1) }));
    assert_eq!(list.0[SKIPPED_MAX - 1].packets, u64::MAX);
}

#[test]
fn a_range_is_not_read_and_counts_in_every_segment_that_has_a_part_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let volume = recorded(folder.path());
    let open = || volume::open_reader(&volume, &[]).ok();
    let all = data_stripes(&open().unwrap());
    let skips = Skips::default();
    let (mut late, mut from) = (Late::new(Arc::clone(&skips)), ReadBack::new(&open, pool()));
    // One that is known by itself, and the others, with one that was handed over between them.
    let mut range = all[2];
    all[3..].iter().for_each(|other| range.merge(other));
    assert_eq!((range.stripe, range.through), (all[2].stripe, Some(all.last().unwrap().stripe)));
    skip(&skips, &[all[0], range]);
    let last = all.last().unwrap().stripe;
    assert!(late.is_waiting());
    assert!(packets_of(&late.next(last, &mut from)).is_some());
    assert!(matches!(
        late.next(StripeId { sequence: Sequence(0), sub: 0 }, &mut from),
        Step::Unreadable
    ));
    assert!(matches!(late.next(last, &mut from), Step::NotNow));
    // Nothing is left to be read, but packets to be reported.
    assert!(!late.is_waiting());
    assert_eq!(late.first(), Some(all[2].stripe));
    let whole = Left { packets: range.packets, times: range.times };
    assert_eq!(late.end_segment(all[1].stripe), Left::NONE, "it begins behind this one");
    for middle in &all[2..all.len() - 1] {
        assert_eq!(late.end_segment(middle.stripe), whole);
        // The next segment begins where this one ended, and cannot claim to lack nothing.
        assert_eq!(late.first(), Some(middle.stripe.after()));
        assert!(matches!(late.next(last, &mut from), Step::NotNow), "nor is its rest read");
    }
    assert_eq!((late.end_segment(last), late.end_segment(last)), (whole, Left::NONE));
    assert_eq!(late.first(), None);
}

#[test]
fn what_cannot_be_read_counts_in_its_own_segment() {
    let (skips, open) = (Skips::default(), || None);
    let (mut late, _) = (Late::new(Arc::clone(&skips)), ReadBack::new(&open, pool()));
    skip(&skips, &[three(5), three(9)]);
    assert!(late.is_waiting());
    (0..2).for_each(|_| drop(late.lose_first()));
    assert_eq!(late.end_segment(at(7)).packets, 3);
    assert_eq!((late.first(), late.end_segment(at(9)).packets), (Some(at(9)), 3));
}
