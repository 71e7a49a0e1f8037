use format::head::HEAD_BYTES;
use units::{Epoch, Sequence};

use super::*;
use crate::recorded::{data_stripes, pool, recorded};

/// The packets of each stretch without damage that a backlog makes of one stretch.
fn all_of(backlog: &mut Backlog, held: (Sequence, StripeId), from: &mut ReadBack<'_>) -> Vec<u64> {
    let (mut all, mut packets) = (Vec::new(), 0);
    loop {
        match backlog.next(held, from) {
            Step::Stripe(stripe) => packets += stripe.packets,
            Step::End => {
                all.push(core::mem::take(&mut packets));
                backlog.end_current();
            }
            Step::NotNow => return all,
            step @ Step::GiveUp(_) => panic!("{step:?}"),
        }
    }
}

#[test]
fn what_cannot_be_read_is_named_and_not_handed_over() {
    let folder = tempfile::tempdir().unwrap();
    let volume = recorded(folder.path());
    let open = || volume::open_reader(&volume, &[]).ok();
    let reader = open().unwrap();
    let all = data_stripes(&reader);
    let span = reader.span().unwrap();
    // A row of one stripe, and two slots that nothing can be read of.
    let mut bytes = std::fs::read(&volume).unwrap();
    let slot = |sequence| usize::try_from(reader.geometry().slot_offset(sequence)).unwrap();
    let (bad, gone) = (all[2].stripe, [all[5].stripe, all[6].stripe]);
    bytes[slot(bad.sequence) + 3 * HEAD_BYTES..][..8].fill(0xff);
    for stripe in gone {
        bytes[slot(stripe.sequence)..][..reader.piece_bytes()].fill(0);
    }
    std::fs::write(&volume, bytes).unwrap();
    let packets = |stripes: &[crate::late::Skipped]| -> u64 {
        stripes.iter().map(|stripe| stripe.packets).sum()
    };
    let expected = [packets(&all[..2]), packets(&all[3..5]), 0, packets(&all[7..])];
    let held = (span.tail, span.acknowledged);
    let stretch = |first: StripeId| Stretch {
        first,
        last: span.acknowledged,
        epoch: Epoch(1),
        packets: 0,
        times: Times::NONE,
        is_counted: false,
        is_given_up: false,
    };
    let mut from = ReadBack::new(&open, pool());
    let mut backlog = Backlog::default();
    backlog.add(stretch(StripeId { sequence: span.tail, sub: 0 }));
    assert_eq!(all_of(&mut backlog, held, &mut from), expected);
    assert_eq!(backlog.unreadable(), 3);

    // A stretch that begins inside of what is lost.
    let mut backlog = Backlog::default();
    backlog.add(stretch(gone[1].after()));
    assert_eq!(all_of(&mut backlog, held, &mut from), [0, packets(&all[7..])]);

    // Damage in front of a stretch is none of its own, also in the same slot.
    let mut backlog = Backlog::default();
    backlog.add(stretch(bad.after()));
    assert_eq!(all_of(&mut backlog, held, &mut from), expected[1..]);
    assert_eq!(backlog.unreadable(), 2);

    // Of what a segment has nothing is read again, whatever became of the indexer.
    let mut backlog = Backlog::default();
    backlog.add(stretch(all[7].stripe));
    assert!(matches!(backlog.next(held, &mut from), Step::Stripe(_)));
    backlog.closed(all[7].stripe);
    backlog.again(None);
    assert_eq!(all_of(&mut backlog, held, &mut from), [packets(&all[8..])]);
}
