//! What a mount reads and when a writer flushes.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may stop at once")]

use device::{Modelled, Pool};
use format::geometry::PIECE_BYTES_MIN;
use format::head::{HeadKey, Kind, VolumeId};
use format::recorded::Recorded;
use format::superblock::{MemberEntry, SUPERBLOCK_COPIES};
use units::{Clock, ManualClock, Timestamp};
use volume::{CreateOptions, Identity, Reader, create};
use writer::{Filled, Opener, Writer, mount};

/// A new volume with a window of 64 stripes, its disk and a clock.
fn new_volume() -> (Modelled, ManualClock) {
    let disk = Modelled::instant(16 << 20);
    let identity = Identity {
        volume_id: VolumeId([1; 16]),
        head_key: HeadKey([2; 32]),
        members: vec![MemberEntry::new([3; 16], String::new())],
        spares: Vec::new(),
        created: Timestamp(0),
    };
    let options = CreateOptions { piece_bytes: PIECE_BYTES_MIN, ..CreateOptions::default() };
    create(&mut [Box::new(disk.clone())], &options, &identity).unwrap();
    (disk, ManualClock::new(Timestamp(1)))
}

fn append(writer: &mut Writer, pool: &Pool, clock: &dyn Clock) {
    append_rows(writer, pool, writer.plan(0).room, clock);
}

fn append_rows(writer: &mut Writer, pool: &Pool, rows: u16, clock: &dyn Clock) {
    let mut column = pool.take().unwrap();
    format::local::fill_with_padding(&mut column[format::head::HEAD_BYTES..]);
    writer.append(Filled::without_packets(vec![column], Kind::Data, rows), clock).unwrap();
}

#[test]
fn the_first_mount_reads_superblocks_and_the_claim_alone() {
    let (disk, clock) = new_volume();
    let before = disk.work().reads;
    mount(vec![Box::new(disk.clone())], &Opener::alone(&clock)).unwrap();
    // The copies before the claim and behind it; the claim as it was, and as it stands.
    let opening = 2 * u64::from(SUPERBLOCK_COPIES) + 2;
    // Claim and superblock are compared before an epoch is prepared, and before it is joined.
    let comparisons = 2 * 2;
    assert_eq!(disk.work().reads - before, opening + comparisons);
}

#[test]
fn writes_wait_for_one_another_before_a_flush_but_not_for_long() {
    let (disk, clock) = new_volume();
    let pool = Pool::new(32, usize::try_from(PIECE_BYTES_MIN).unwrap()).unwrap();
    let mut writer = mount(vec![Box::new(disk.clone())], &Opener::alone(&clock)).unwrap().0;
    let window = usize::from(writer.superblock().window);
    assert_eq!(window, 64);
    let mounted = disk.work().flushes;
    let flushes = || disk.work().flushes - mounted;

    append(&mut writer, &pool, &clock);
    writer.poll(None, &clock).unwrap();
    assert_eq!((flushes(), writer.in_flight(), writer.unacknowledged()), (0, 0, 1));
    clock.advance_nanos(20_000_000);
    writer.poll(None, &clock).unwrap();
    writer.poll(None, &clock).unwrap();
    assert_eq!((flushes(), writer.unacknowledged()), (1, 0));

    (0..window / 4).for_each(|_| append(&mut writer, &pool, &clock));
    writer.poll(None, &clock).unwrap();
    assert_eq!((flushes(), writer.unacknowledged()), (2, 0));

    append(&mut writer, &pool, &clock);
    writer.drain(&clock).unwrap();
    assert_eq!((flushes(), writer.unacknowledged()), (3, 0));
}

/// A crash may leave the head that closes a slot and not the stripe behind it.
#[test]
fn the_head_that_closes_a_slot_says_nothing_of_the_stripe_behind_it() {
    let (disk, clock) = new_volume();
    let pool = Pool::new(4, usize::try_from(PIECE_BYTES_MIN).unwrap()).unwrap();
    let mut writer = mount(vec![Box::new(disk.clone())], &Opener::alone(&clock)).unwrap().0;
    let slot = writer.geometry().rows_per_slot();
    let first = writer.next();
    let stretch = Recorded::new(true, first, Timestamp(5), &[]);
    for (through, rows) in [(10, slot / 2), (20, slot - 1)] {
        writer.set_recorded(Recorded { through: Timestamp(through), ..stretch.clone() });
        append_rows(&mut writer, &pool, rows, &clock);
    }
    writer.drain(&clock).unwrap();
    let reader = Reader::open(vec![Box::new(disk)]).unwrap();
    let said = |sequence| {
        let heads = reader.leading_heads(sequence).into_iter();
        heads.map(|head| (head.stripe.kind, head.stripe.recorded.unwrap().through.0)).collect()
    };
    let (closed, behind): (Vec<_>, Vec<_>) = (said(first.sequence), said(first.sequence + 1));
    assert_eq!(closed, [(Kind::Data, 10), (Kind::Void, 10)]);
    assert_eq!(behind, [(Kind::Data, 20)]);
}
