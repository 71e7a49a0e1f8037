//! A volume whose packets only recipients can read: what is appended comes back with an identity,
//! through losses, repairs, new members and restarts, and does not without.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::as_conversions,
    reason = "a test may stop at once"
)]

mod changed;

use core::ops::ControlFlow;
use std::sync::Arc;

use device::{Crash, Device, Modelled, Pool, ROW_SIZE, ReadAt, Timeline, Timing};
use encryption::{Identities, Keyring};
use format::geometry::PIECE_BYTES_MIN;
use format::head::{HEAD_BYTES, HeadKey, Kind, StripeId, VolumeId};
use format::key_row::key_row_offsets;
use format::pcapng::{Blocks, ByteOrder};
use format::piece::LEAD_BYTES;
use format::superblock::{MemberEntry, Spare};
use units::{Clock, EachSequence, MemberId, Random, Sleep, Timestamp};
use volume::{CreateOptions, Error, Identity, Reader, RowsWanted, create_for};
use writer::{Filled, FilledColumn, Opener, Writer, mount, resilver, verify};

const SIZE: u64 = 8 << 20;
const SECRET: &str = "AGE-SECRET-KEY-1GQ9778VQXMMJVE8SK7J6VT8UJ4HDQAJUVSFCWCM02D8GEWQ72PVQ2Y5J33";
const PUBLIC: &str = "age1t7rxyev2z3rw82stdlrrepyc39nvn86l5078zqkf5uasdy86jp6svpy7pa";
const OTHER: &str = "AGE-SECRET-KEY-184JMZMVQH3E6U0PSL869004Y3U2NYV7R30EU99CSEDNPH02YUVFSZW44VU";
/// What no sector of a disk may show.
const CANARY: &[u8] = b"canary, canary, canary";

#[derive(Clone)]
struct Ring {
    timeline: Timeline,
    disks: Vec<Modelled>,
    pool: Pool,
    appended: Vec<(StripeId, u8)>,
    mark: u8,
    starts: u64,
}

impl Ring {
    fn new(data_columns: u8, parity_columns: u8) -> Self {
        Self::of((data_columns, parity_columns), &[PUBLIC.to_owned()])
    }

    fn of((data_columns, parity_columns): (u8, u8), recipients: &[String]) -> Self {
        let timeline = Timeline::new(Timestamp(1));
        let members = data_columns + parity_columns;
        let disks: Vec<Modelled> = (0..members).map(|seed| disk(&timeline, seed)).collect();
        let entry = |number: u8| MemberEntry::new([number + 1; 16], String::new());
        let identity = Identity {
            volume_id: VolumeId([1; 16]),
            head_key: HeadKey([2; 32]),
            members: (0..members).map(entry).collect(),
            spares: Vec::new(),
            created: Timestamp(0),
        };
        let piece_bytes = PIECE_BYTES_MIN * 8;
        let options = CreateOptions { piece_bytes, parity_columns, ..CreateOptions::default() };
        create_for(&mut boxed(&disks), &options, &identity, recipients).unwrap();
        let pool = Pool::new(64, usize::try_from(piece_bytes).unwrap()).unwrap();
        Self { timeline, disks, pool, appended: Vec::new(), mark: 0, starts: 0 }
    }

    /// The same on other disks.
    fn with(&self, disks: Vec<Modelled>) -> Self {
        Self { disks, ..self.clone() }
    }

    fn mount(&mut self) -> (Writer, Arc<Keyring>) {
        let keyring = Arc::new(Keyring::new([1; 16], None));
        let mut writer = mount(boxed(&self.disks), &Opener::alone(&self.timeline)).unwrap().0;
        self.starts += 1;
        let mut random = Random::new(self.starts);
        let random = move || {
            let mut key = [0; 32];
            random.fill(&mut key);
            Ok(key)
        };
        writer.seal_with(Box::new(random), Arc::clone(&keyring)).unwrap();
        (writer, keyring)
    }

    fn append(&mut self, writer: &mut Writer, rows: u16) -> Result<(), Error> {
        self.mark = self.mark.wrapping_add(1);
        let rows = writer.plan(rows).rows;
        let columns = (0..writer.geometry().data_columns).map(|column| {
            let mut buffer = self.pool.take().unwrap();
            fill(&mut buffer[HEAD_BYTES..HEAD_BYTES * (1 + usize::from(rows))], self.mark, column);
            FilledColumn { buffer, packets: 0 }
        });
        let none = Filled::without_packets(Vec::new(), Kind::Data, rows);
        let filled = Filled { columns: columns.collect(), ..none };
        let appended = writer.append(filled, &self.timeline)?;
        // The indexer reads what was appended as it was.
        for (column, shared) in (0..).zip(&appended.columns) {
            let mut expected = vec![0; appended.len - HEAD_BYTES];
            fill(&mut expected, self.mark, column);
            assert_eq!(&shared[HEAD_BYTES..appended.len], expected);
        }
        self.appended.push((appended.stripe, self.mark));
        Ok(())
    }

    fn append_some(&mut self, writer: &mut Writer) {
        for rows in [3, 31, 5, 9, 31, 17, 20] {
            self.append(writer, rows).unwrap();
        }
        writer.drain(&self.timeline).unwrap();
    }

    /// Everything that the ring holds comes back from these disks.
    fn check(&self, disks: &[Modelled]) {
        let reader = unlocked(disks, SECRET);
        let tail = reader.span().unwrap().tail;
        let held: Vec<_> = self.appended.iter().filter(|(it, _)| it.sequence >= tail).collect();
        assert!(!held.is_empty());
        let mut buffer = vec![0; reader.piece_bytes()];
        for (stripe, mark) in held {
            for column in 0..reader.geometry().data_columns {
                let slot = reader.slot(stripe.sequence, column, &mut buffer).unwrap();
                let piece = &slot.stripes[usize::from(stripe.sub)];
                assert_eq!((&*piece.bad_rows, piece.is_locked), (&[][..], false), "{stripe}");
                let body = Reader::body(&piece.head, &buffer);
                let mut expected = vec![0; body.len()];
                fill(&mut expected, *mark, column);
                assert_eq!(body, expected, "{stripe}.{column}");
                let rows = piece.head.stripe.rows;
                let rows = Vec::from([0..1, rows - 1..rows]);
                let wanted = RowsWanted { stripe: *stripe, column, rows };
                let Some(read) = reader.rows(&[wanted]).pop().unwrap() else { continue };
                for (first, bytes) in read.runs {
                    let begin = usize::from(first) * HEAD_BYTES;
                    let part = &expected[begin..begin + bytes.len()];
                    assert_eq!(bytes[..bytes.len() - 4], part[..bytes.len() - 4], "{stripe}");
                }
            }
        }
        assert_eq!(shown_to(disks, OTHER), 0, "another identity reads nothing");
        assert_canaries_are_hidden(disks);
    }
}

/// A body as columns have it before they are encrypted: padding at both ends, text in between.
fn fill(body: &mut [u8], mark: u8, column: u8) {
    let (lead, rest) = body.split_at_mut(LEAD_BYTES);
    let end = rest.len() - 12;
    let (content, tail) = rest.split_at_mut(end);
    format::local::fill_with_padding(lead);
    format::local::fill_with_padding(content);
    format::local::fill_with_padding(tail);
    let end = content.len() - 4;
    for text in content[8..end].chunks_mut(CANARY.len()) {
        text.copy_from_slice(&CANARY[..text.len()]);
    }
    content[8..10].copy_from_slice(&[mark, column]);
}

fn disk(timeline: &Timeline, seed: u8) -> Modelled {
    Modelled::new(SIZE, Timing::instant(), timeline, u64::from(seed))
}

fn boxed(disks: &[Modelled]) -> Vec<Box<dyn Device>> {
    disks.iter().map(|disk| Box::new(disk.clone()) as Box<dyn Device>).collect()
}

fn reader_on(disks: &[Modelled]) -> Reader {
    let readers = disks.iter().map(|disk| Box::new(disk.clone()) as Box<dyn ReadAt>);
    Reader::open(readers.collect()).unwrap()
}

fn unlocked(disks: &[Modelled], secret: &str) -> Reader {
    let mut reader = reader_on(disks);
    let identities = Identities::parse(secret.as_bytes(), &|| None).unwrap();
    reader.unlock(Arc::new(Keyring::new([1; 16], Some(identities))));
    reader
}

/// Data stripes that this identity can read in column 0.
fn shown_to(disks: &[Modelled], secret: &str) -> usize {
    let reader = unlocked(disks, secret);
    let span = reader.span().unwrap();
    let mut buffer = vec![0; reader.piece_bytes()];
    let mut shown = 0;
    for sequence in (span.tail..=span.acknowledged.sequence).each() {
        let slot = reader.slot(sequence, 0, &mut buffer).unwrap();
        let data = slot.stripes.iter().filter(|it| it.head.stripe.kind == Kind::Data);
        shown += data.filter(|it| it.bad_rows.is_empty()).count();
    }
    shown
}

fn assert_canaries_are_hidden(disks: &[Modelled]) {
    for disk in disks {
        let mut row = [0; ROW_SIZE];
        for at in (0..SIZE).step_by(ROW_SIZE) {
            ReadAt::read_at(disk, at, &mut row).unwrap();
            let found = row.windows(CANARY.len()).any(|part| part == CANARY);
            assert!(!found, "byte {at}");
        }
    }
}

#[test]
fn what_was_appended_comes_back_with_an_identity_and_with_members_lost() {
    for (data, parity) in [(1, 0), (2, 0), (2, 1), (2, 2), (3, 2)] {
        let mut ring = Ring::new(data, parity);
        let (mut writer, _) = ring.mount();
        ring.append_some(&mut writer);
        writer.close(&ring.timeline).unwrap();
        ring.check(&ring.disks);
        for lost in 0..parity {
            let mut left = ring.disks.clone();
            (0..=lost).for_each(|_| drop(left.remove(0)));
            ring.check(&left);
        }
        let report = verify(&reader_on(&ring.disks), &mut |_, _| ControlFlow::Continue(()));
        assert_eq!(report.damage, Vec::new(), "no key is needed to verify");
    }
}

/// Each opening makes a key of its own; the recorder knows those that it made and no other.
#[test]
fn a_writer_cannot_read_what_an_earlier_one_wrote() {
    let mut ring = Ring::new(2, 1);
    let mut ends = Vec::new();
    for _ in 0..3 {
        let (mut writer, keyring) = ring.mount();
        ring.append_some(&mut writer);
        let mut own = reader_on(&ring.disks);
        own.unlock(keyring);
        let acknowledged = own.span().unwrap().acknowledged;
        let mut buffer = vec![0; own.piece_bytes()];
        for (stripe, _) in ring.appended.iter().filter(|(it, _)| *it <= acknowledged) {
            let slot = own.slot(stripe.sequence, 1, &mut buffer).unwrap();
            let piece = &slot.stripes[usize::from(stripe.sub)];
            let is_earlier = ends.last().is_some_and(|end| stripe <= end);
            assert_eq!(piece.is_locked, is_earlier, "{stripe}");
        }
        ends.push(writer.acknowledged());
        writer.close(&ring.timeline).unwrap();
    }
    assert_eq!(reader_on(&ring.disks).key_log().keys().count(), 3);
    ring.check(&ring.disks);
}

/// A key is used for an hour.
#[test]
fn keys_change_with_the_hours() {
    let mut ring = Ring::new(1, 1);
    let (mut writer, keyring) = ring.mount();
    for _ in 0..5 {
        ring.append_some(&mut writer);
        ring.timeline.sleep_until(ring.timeline.boottime_ns() + 1_900_000_000_000);
    }
    writer.drain(&ring.timeline).unwrap();
    let ids: Vec<u64> = writer.key_log().keys().map(|key| key.id).collect();
    assert_eq!(ids, [1, 2, 3]);
    assert!(keyring.key(1).is_none(), "forgotten");
    assert!(keyring.key(2).is_some() && keyring.key(3).is_some());
    writer.close(&ring.timeline).unwrap();
    ring.check(&ring.disks);
}

/// One end of one member is enough, and the next writer makes the others whole.
#[test]
fn keys_survive_at_any_end_of_any_member() {
    let mut ring = Ring::new(2, 1);
    let (mut writer, _) = ring.mount();
    ring.append_some(&mut writer);
    writer.close(&ring.timeline).unwrap();
    let offsets = key_row_offsets(0, SIZE);
    for (member, end) in [(0, 0), (0, 1), (2, 0), (2, 1)] {
        let disks: Vec<Modelled> = ring.disks.iter().map(Modelled::snapshot).collect();
        for (number, disk) in disks.iter().enumerate() {
            for (place, offset) in offsets.into_iter().enumerate() {
                if (number, place) != (member, end) {
                    disk.damage(offset, |row| row[60] ^= 1);
                }
            }
        }
        ring.check(&disks);
        let (writer, _) = mount(boxed(&disks), &Opener::alone(&ring.timeline)).unwrap();
        writer.close(&ring.timeline).unwrap();
        for (keep, own) in disks.iter().enumerate() {
            let mut rows = [[0; ROW_SIZE]; 2];
            rows.iter_mut()
                .zip(offsets)
                .for_each(|(row, at)| ReadAt::read_at(own, at, row).unwrap());
            assert_eq!(rows[0], rows[1], "member {keep}");
            assert_ne!(rows[0], [0; ROW_SIZE]);
        }
    }
}

/// A member that comes new has all keys, also when it is the last that is left of the first ones.
#[test]
fn a_new_member_gets_the_keys() {
    let mut ring = Ring::new(1, 1);
    let (mut writer, _) = ring.mount();
    ring.append_some(&mut writer);
    for member in [0, 1] {
        let blank = disk(&ring.timeline, 9 + member);
        let spare = Spare { uuid: [50 + member; 16], path: String::new() };
        writer.replace((MemberId(member), spare), Box::new(blank.clone()), &ring.timeline).unwrap();
        ring.disks[usize::from(member)] = blank;
        let disks = ring.disks.clone();
        let open = |writer: &Writer| {
            let disks = disks.iter().map(|disk| Box::new(disk.clone()) as Box<dyn ReadAt>);
            writer.reader(disks.collect())
        };
        let report =
            resilver(&mut writer, &open, &ring.timeline, &mut |_, _| ControlFlow::Continue(()));
        assert_eq!(report.unwrap().lost, Vec::new());
        ring.append_some(&mut writer);
    }
    writer.close(&ring.timeline).unwrap();
    ring.check(&ring.disks);
    for lost in [0, 1] {
        ring.check(&[ring.disks[1 - lost].clone()]);
    }
}

/// What is acknowledged can be decrypted wherever the power goes.
#[test]
fn a_crash_leaves_no_stripe_without_its_key() {
    let mut ring = Ring::new(2, 1);
    let mut writer = ring.mount().0;
    for turn in 0..40 {
        ring.append(&mut writer, 5).unwrap();
        if turn % 3 == 0 {
            writer.drain(&ring.timeline).unwrap();
        }
        let acknowledged = writer.acknowledged();
        let seed = turn;
        let crash = if turn % 2 == 0 { Crash::Sectors { seed } } else { Crash::LoseAll };
        let crashed: Vec<Modelled> = ring.disks.iter().map(|disk| disk.crash(crash)).collect();
        let (recovered, _) = mount(boxed(&crashed), &Opener::alone(&ring.timeline)).unwrap();
        recovered.close(&ring.timeline).unwrap();
        let reader = unlocked(&crashed, SECRET);
        let mut buffer = vec![0; reader.piece_bytes()];
        for (stripe, _) in ring.appended.iter().filter(|(it, _)| *it <= acknowledged) {
            let slot = reader.slot(stripe.sequence, 0, &mut buffer).unwrap();
            let piece = &slot.stripes[usize::from(stripe.sub)];
            assert_eq!(piece.bad_rows, Vec::<u16>::new(), "{stripe} after {turn}");
        }
    }
}

/// The pieces of an encrypted volume read as pcapng: one block that nobody shows.
#[test]
fn an_encrypted_piece_is_one_block_of_a_local_type() {
    let mut ring = Ring::new(1, 0);
    let (mut writer, _) = ring.mount();
    ring.append_some(&mut writer);
    writer.close(&ring.timeline).unwrap();
    let reader = reader_on(&ring.disks);
    let span = reader.span().unwrap();
    let piece_bytes = reader.piece_bytes();
    for sequence in (span.tail..=span.acknowledged.sequence).each() {
        let mut slot = vec![0; piece_bytes];
        let offset = reader.geometry().slot_offset(sequence);
        ReadAt::read_at(&ring.disks[0], offset, &mut slot).unwrap();
        let blocks = Blocks::new(&slot, ByteOrder::Little);
        let types: Vec<u32> = blocks.map(|block| block.unwrap().1.block_type).collect();
        assert!(types.iter().all(|it| [0x0a0d_0d0a, 0x8000_5750].contains(it)), "{types:x?}");
    }
}

/// A changed sector is damage as everywhere; one that was changed with its checksums, which anybody
/// can compute who has the disk, does not pass the tag.
#[test]
fn a_recipient_that_is_none_of_the_volume_reads_nothing() {
    let mut ring = Ring::new(1, 0);
    let (mut writer, _) = ring.mount();
    ring.append_some(&mut writer);
    writer.close(&ring.timeline).unwrap();
    assert_eq!(shown_to(&ring.disks, OTHER), 0);
    assert!(shown_to(&ring.disks, SECRET) >= 7);
}
