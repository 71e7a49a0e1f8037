//! Damage of single rows: found where it is, never hidden, never in the way of the rest.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "a test may stop at once"
)]

use core::ops::ControlFlow;

use device::{Fault, MUTATIONS, Modelled, Pool, Rule};
use format::checksum::body_crc;
use format::directory::{Summary, split};
use format::head::{HEAD_BYTES, Head, HeadKey, Kind, StripeId, VolumeId};
use format::pcapng::{Blocks, ByteOrder};
use format::superblock::{MemberEntry, SUPERBLOCK_COPIES, copy_offset};
use units::{EachSequence, ManualClock, Timestamp};
use volume::{CreateOptions, Error, Identity, Reader, create};
use writer::{Filled, LostBody, Opener, Writer, mount, verify};

const PIECE_BYTES: u32 = 32 << 10;
const ROWS: u16 = (PIECE_BYTES / 4096) as u16;

struct Ring {
    disk: Modelled,
    pool: Pool,
    clock: ManualClock,
}

impl Ring {
    fn new() -> Self {
        let disk = Modelled::instant(6 << 20);
        let identity = Identity {
            volume_id: VolumeId([1; 16]),
            head_key: HeadKey([2; 32]),
            members: vec![MemberEntry::new([3; 16], String::new())],
            spares: Vec::new(),
            created: Timestamp(0),
        };
        let options = CreateOptions { piece_bytes: PIECE_BYTES, ..CreateOptions::default() };
        create(&mut [Box::new(disk.clone())], &options, &identity).unwrap();
        let pool = Pool::new(16, PIECE_BYTES as usize).unwrap();
        Self { disk, pool, clock: ManualClock::new(Timestamp(1)) }
    }

    fn mount(&self) -> Writer {
        mount(vec![Box::new(self.disk.clone())], &Opener::alone(&self.clock)).unwrap().0
    }

    /// Appends a stripe of padding blocks, which any pcapng reader steps over.
    fn append(&self, writer: &mut Writer, rows: u16) -> StripeId {
        let mut column = self.pool.take().unwrap();
        let body = &mut column[HEAD_BYTES..HEAD_BYTES * (1 + usize::from(rows))];
        format::local::fill_with_padding(body);
        let filled = Filled::without_packets(vec![column], Kind::Data, rows);
        let appended = writer.append(filled, &self.clock).unwrap();
        writer.drain(&self.clock).unwrap();
        appended.stripe
    }

    /// Full stripes over more than two laps, short ones at the end, and an orderly stop.
    fn written() -> (Self, Vec<StripeId>) {
        let ring = Self::new();
        let mut writer = ring.mount();
        let full = 150;
        let mut stripes: Vec<_> = (0..full).map(|_| ring.append(&mut writer, ROWS - 1)).collect();
        stripes.extend([1, 2].map(|rows| ring.append(&mut writer, rows)));
        writer.close(&ring.clock).unwrap();
        (ring, stripes)
    }

    fn reader(&self) -> Reader {
        Reader::open(vec![Box::new(self.disk.clone())]).unwrap()
    }

    fn flip(&self, offset: u64) {
        self.disk.damage(offset, |row| row[100] ^= 4);
    }
}

#[test]
fn every_closed_slot_is_whole_pcapng_blocks_to_its_end() {
    let (ring, _) = Ring::written();
    let reader = ring.reader();
    let span = reader.span().unwrap();
    let mut buffer = vec![0; reader.piece_bytes()];
    for sequence in (span.tail..=span.acknowledged.sequence).each() {
        let slot = reader.slot(sequence, 0, &mut buffer).unwrap();
        let blocks = Blocks::new(&buffer, ByteOrder::Little);
        assert!(slot.closed && blocks.into_iter().all(|block| block.is_ok()), "slot of {sequence}");
    }
}

#[test]
fn a_damaged_row_is_named_and_the_others_are_read() {
    let (ring, stripes) = Ring::written();
    let victim = stripes[stripes.len() - 10];
    let slot_offset = ring.reader().geometry().slot_offset(victim.sequence);
    ring.flip(slot_offset + 3 * 4096);
    let reader = ring.reader();
    let mut buffer = vec![0; reader.piece_bytes()];
    let slot = reader.slot(victim.sequence, 0, &mut buffer).unwrap();
    assert_eq!(slot.stripes[0].bad_rows, [2]);
    let report = verify(&reader, &mut |_, _| ControlFlow::Continue(()));
    let found: Vec<_> = report.damage.iter().map(|found| (found.stripe, &found.rows[..])).collect();
    assert_eq!(found, [(victim, &[2][..])]);
}

#[test]
fn any_one_damaged_head_hides_only_its_own_stripe() {
    let (ring, stripes) = Ring::written();
    let reader = ring.reader();
    let (span, newest) = (reader.span().unwrap(), *stripes.last().unwrap());
    for sequence in (span.tail..newest.sequence).each() {
        let damaged = Ring { disk: ring.disk.snapshot(), ..Ring::new() };
        damaged.flip(reader.geometry().slot_offset(sequence));
        let reader = damaged.reader();
        assert_eq!(reader.span(), Some(span), "the head of {sequence} misleads the search");
        let report = verify(&reader, &mut |_, _| ControlFlow::Continue(()));
        let found: Vec<_> = report.damage.iter().map(|found| found.stripe).collect();
        assert_eq!(found, [StripeId { sequence, sub: 0 }]);
        // A writer goes on behind the newest stripe, not over it.
        let mut writer = damaged.mount();
        assert!(damaged.append(&mut writer, 1) > newest);
    }
}

/// Without parity, too: the head behind knows the checksum of the body. It says what the body is,
/// never makes it readable, and says nothing without a valid MAC.
#[test]
fn the_head_behind_a_lost_one_says_whether_that_body_is_as_it_was_sealed() {
    let (ring, stripes) = Ring::written();
    let geometry = *ring.reader().geometry();
    let slot_offset = |stripe: &StripeId| geometry.slot_offset(stripe.sequence);
    let full = slot_offset(&stripes[stripes.len() - 10]);
    // Two short ones share a slot.
    let short = slot_offset(&stripes[stripes.len() - 2]);
    for (head, behind) in [(full, full + u64::from(PIECE_BYTES)), (short, short + 2 * 4096)] {
        for (what, expected) in [
            ("nothing else", Some(LostBody::Whole)),
            ("the body", Some(LostBody::Altered)),
            ("the head behind", None),
        ] {
            let damaged = Ring { disk: ring.disk.snapshot(), ..Ring::new() };
            damaged.flip(head);
            let forged = |row: &mut [u8; 4096]| {
                // An attacker changes the body and the checksum of it, but does not have the key.
                let Head { mut stripe, piece, .. } =
                    Head::decode(row, Some(&HeadKey([2; 32]))).unwrap();
                stripe.previous_manifest[0] = body_crc(&[0; 4096]);
                *row = Head::new(stripe, piece).encode(&HeadKey([9; 32]));
            };
            match what {
                "the body" => damaged.flip(head + 4096),
                "the head behind" => {
                    damaged.disk.damage(behind, forged);
                    damaged.disk.damage(head + 4096, |row| row.fill(0));
                }
                _ => {}
            }
            let reader = damaged.reader();
            let report = verify(&reader, &mut |_, _| ControlFlow::Continue(()));
            let lost = report.damage.first().unwrap();
            assert_eq!((lost.member, lost.body), (None, expected), "{what} of {lost:?}");
            assert!(!lost.repairable);
            // A body that is whole is of a stripe whose times and packets are not known.
            let mut buffer = vec![0; reader.piece_bytes()];
            let slot = reader.slot(lost.stripe.sequence, 0, &mut buffer);
            let shown = slot.map_or_else(|_| Vec::new(), |slot| slot.stripes);
            assert!(shown.iter().all(|it| it.head.stripe.stripe != lost.stripe), "{what}");
        }
    }
}

#[test]
fn an_acknowledged_short_stripe_that_is_damaged_does_not_hide_the_next() {
    let ring = Ring::new();
    let mut writer = ring.mount();
    let stripes: Vec<_> = (0..3).map(|_| ring.append(&mut writer, 1)).collect();
    writer.close(&ring.clock).unwrap();
    let reader = ring.reader();
    ring.flip(reader.geometry().slot_offset(stripes[1].sequence) + 2 * 4096);
    let reader = ring.reader();
    let mut buffer = vec![0; reader.piece_bytes()];
    let slot = reader.slot(stripes[0].sequence, 0, &mut buffer).unwrap();
    let found: Vec<_> = slot.stripes.iter().map(|stripe| stripe.head.stripe.stripe.sub).collect();
    // The last one is the VOID of the orderly stop.
    assert_eq!((found, slot.stripes[1].behind_damage), (vec![0, 2, 3], true));
    let report = verify(&reader, &mut |_, _| ControlFlow::Continue(()));
    assert_eq!(report.damage.iter().map(|found| found.stripe).collect::<Vec<_>>(), [stripes[1]]);
}

#[test]
fn one_whole_superblock_copy_is_enough_and_none_is_too_few() {
    let (ring, _) = Ring::written();
    let span = ring.reader().span();
    for kept in 0..SUPERBLOCK_COPIES {
        let damaged = Ring { disk: ring.disk.snapshot(), ..Ring::new() };
        for copy in (0..SUPERBLOCK_COPIES).filter(|&copy| copy != kept) {
            damaged.flip(copy_offset(copy, 6 << 20));
        }
        assert_eq!(damaged.reader().span(), span, "copy {kept} alone");
        drop(damaged.mount());
        damaged.flip(copy_offset(kept, 6 << 20));
    }
    for copy in 0..SUPERBLOCK_COPIES {
        ring.flip(copy_offset(copy, 6 << 20));
    }
    let error = Reader::open(vec![Box::new(ring.disk.clone())]).unwrap_err();
    assert!(matches!(error, Error::NoSuperblock(_)), "{error}");
}

#[test]
fn a_failed_write_ends_the_writer_and_loses_nothing_acknowledged() {
    let ring = Ring::new();
    let mut writer = ring.mount();
    let kept = ring.append(&mut writer, 2);
    ring.disk.add_rule(Rule::new(Fault::Error, MUTATIONS));
    let column = ring.pool.take().unwrap();
    let filled = Filled::without_packets(vec![column], Kind::Heartbeat, 0);
    let failed = writer.append(filled, &ring.clock).and_then(|_| writer.drain(&ring.clock));
    assert!(matches!(failed, Err(Error::TooFewLeft { present: 0, needed: 1, .. })));
    assert!(writer.drain(&ring.clock).is_err(), "a latched member stays so");
    drop(writer);
    let disk = ring.disk.crash(device::Crash::LoseAll);
    let ring = Ring { disk, ..Ring::new() };
    drop(ring.mount());
    assert!(ring.reader().span().unwrap().acknowledged > kept);
    let mut buffer = vec![0; PIECE_BYTES as usize];
    let slot = ring.reader().slot(kept.sequence, 0, &mut buffer).unwrap();
    assert_eq!(slot.stripes[usize::from(kept.sub)].head.stripe.rows, 2);
}

#[test]
fn nothing_of_another_volume_is_believed() {
    let (ring, _) = Ring::written();
    let identity = Identity {
        volume_id: VolumeId([1; 16]),
        head_key: HeadKey([9; 32]),
        members: vec![MemberEntry::new([3; 16], String::new())],
        spares: Vec::new(),
        created: Timestamp(0),
    };
    let options = CreateOptions { piece_bytes: PIECE_BYTES, ..CreateOptions::default() };
    create(&mut [Box::new(ring.disk.clone())], &options, &identity).unwrap();
    assert_eq!(ring.reader().newest(), None, "old heads carry another key");
}

/// Without its own first part an index is damaged, whatever follows: a crash may leave a later one.
#[test]
fn an_index_that_is_gone_is_not_the_next_one() {
    let ring = Ring::new();
    let mut writer = ring.mount();
    let data = ring.append(&mut writer, 3);
    let mut index = |content: &[u8]| {
        let summary = Summary {
            first: data,
            last: data,
            time_min: Timestamp(1),
            time_max: Timestamp(2),
            sessions: 1,
            packets: 1,
            unindexed: false,
            gaps: false,
            unread: false,
        };
        let block = split(content, &summary, &[], 8 << 10).remove(0);
        let mut column = ring.pool.take().unwrap();
        column[HEAD_BYTES..HEAD_BYTES + block.len()].copy_from_slice(&block);
        let rows = (block.len() + 12).div_ceil(HEAD_BYTES);
        let rest = HEAD_BYTES + block.len()..HEAD_BYTES * (1 + rows);
        format::local::fill_with_padding(&mut column[rest]);
        let filled = Filled::without_packets(vec![column], Kind::Index, rows as u16);
        let place = writer.append(filled, &ring.clock).unwrap().stripe;
        writer.drain(&ring.clock).unwrap();
        place
    };
    let (first, second) = (index(b"the first"), index(b"the second"));
    writer.close(&ring.clock).unwrap();
    let reader = ring.reader();
    let file = |at: StripeId| ring.reader().index(at).map(|file| file.parquet);
    assert_eq!(file(first).unwrap(), b"the first");
    assert_eq!(file(second).unwrap(), b"the second");
    let head = reader.leading_heads(first.sequence);
    let head = head.iter().find(|head| head.stripe.stripe == first).unwrap();
    let row = u64::from(head.stripe.first_row);
    ring.flip(reader.geometry().slot_offset(first.sequence) + row * 4096);
    assert!(matches!(file(first), Err(Error::Damaged(at)) if at == first));
    assert_eq!(file(second).unwrap(), b"the second");
}
