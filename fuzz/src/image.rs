//! An image of a volume whose superblocks and heads say anything: reading, verifying, salvaging and
//! mounting it end, with what is there or an error, and what a mount goes on with can be read.
//!
//! The input: edits of twelve bytes each to an image that is whole: where, how, with which bytes.
//! Checksums, identities and MACs are put right behind them, else no edit would come further. A
//! volume's key lies in its superblocks, so the maker of an image can do the same.

use core::ops::ControlFlow;
use std::sync::OnceLock;

use device::{Device, Modelled, Pool, ReadAt};
use format::checksum::crc32c;
use format::geometry::{Geometry, PIECE_BYTES_MIN};
use format::head::{HEAD_BYTES, HeadKey, Kind, VolumeId};
use format::piece::{EncodedInterface, InterfaceFields, PacketParts, PieceBuilder, Statistics};
use format::superblock::{MemberEntry, SUPERBLOCK_COPIES, copy_offset};
use units::{InterfaceId, ManualClock, Sequence, Timestamp};
use volume::{CreateOptions, Identity, Reader, create, salvage};
use wire::LinkType;
use writer::{Filled, FilledColumn, Opener, mount, verify};

const SIZE: u64 = 5 << 20;
const KEY: HeadKey = HeadKey([2; 32]);
const STRIPES: u8 = 90;
/// Places in a superblock and in a head: docs/format.md.
const SUPERBLOCK_CRC: usize = 12;
const HEAD_COMMON: usize = 32;
const HEAD_CID: usize = 1072;
const HEAD_CRC: usize = 3684;
const HEAD_MAC: usize = 3688;

struct Template {
    disk: Modelled,
    geometry: Geometry,
}

fn clock() -> ManualClock {
    ManualClock::new(Timestamp(1_795_171_222_000_000_000))
}

/// A volume that was recorded into for more than a lap, and closed.
fn template() -> &'static Template {
    static TEMPLATE: OnceLock<Template> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let disk = Modelled::instant(SIZE);
        let identity = Identity {
            volume_id: VolumeId([1; 16]),
            head_key: KEY,
            members: vec![MemberEntry::new([3; 16], String::new())],
            spares: Vec::new(),
            created: Timestamp(0),
        };
        let options = CreateOptions { piece_bytes: PIECE_BYTES_MIN, ..CreateOptions::default() };
        let made = create(&mut [Box::new(disk.clone()) as Box<dyn Device>], &options, &identity);
        let geometry = made.expect("a volume can be made").geometry;
        record(&disk, STRIPES);
        Template { disk, geometry }
    })
}

/// Mounts, appends stripes with packets and without, and closes; false where it cannot.
fn record(disk: &Modelled, stripes: u8) -> bool {
    let clock = clock();
    let mounted = mount(vec![Box::new(disk.clone())], &Opener::alone(&clock));
    let Ok((mut writer, _)) = mounted else { return false };
    let piece_bytes = writer.geometry().piece_bytes as usize;
    let data_columns = writer.geometry().data_columns;
    let pool = Pool::new(8 * usize::from(data_columns).max(4), piece_bytes).expect("memory");
    for number in 0..stripes {
        let wanted = [1, 3, 2, 1][usize::from(number % 4)];
        let rows = writer.plan(wanted).rows;
        let columns = (0..data_columns).map(|_| {
            loop {
                match pool.take() {
                    Some(buffer) => break Some(buffer),
                    None => writer.poll(None, &clock).ok()?,
                }
            }
        });
        let Some(mut columns) = columns.collect::<Option<Vec<_>>>() else { return false };
        let filled = if number % 5 == 4 || data_columns > 1 {
            for column in &mut columns {
                format::local::fill_with_padding(&mut column[HEAD_BYTES..]);
            }
            Filled::without_packets(columns, Kind::Index, rows)
        } else {
            let Some(column) = columns.pop() else { return false };
            with_packets(column, rows, number)
        };
        if writer.append(filled, &clock).is_err() {
            return false;
        }
        clock.advance_nanos(30_000_000);
        if writer.poll(None, &clock).is_err() {
            return false;
        }
    }
    writer.drain(&clock).is_ok() && writer.close(&clock).is_ok()
}

fn with_packets(mut column: device::Buffer, rows: u16, number: u8) -> Filled {
    let fields = InterfaceFields {
        id: InterfaceId(0),
        link_type: LinkType::ETHERNET,
        snaplen: 0,
        name: "i",
        recording: "",
        options: &[],
    };
    let interface = EncodedInterface::new(&fields);
    let mut builder = PieceBuilder::new(HEAD_BYTES * (1 + usize::from(rows)).max(4));
    let timestamp = Timestamp(i64::from(number));
    let bytes = [number; 50];
    let parts =
        PacketParts { timestamp, original_len: 60, parts: [&bytes, &[], &[]], options: &[] };
    if usize::from(rows) >= 3 {
        while builder.contents().packets < 20 && builder.push(&mut column, &interface, &parts) {}
        builder.finish(&mut column, &[Statistics::default()], &mut Vec::new(), rows);
    } else {
        let end = HEAD_BYTES * (1 + usize::from(rows));
        format::local::fill_with_padding(&mut column[HEAD_BYTES..end]);
    }
    let contents = builder.contents();
    let totals = format::head::Totals {
        packets: contents.packets.into(),
        captured_bytes: contents.captured_bytes,
        ..Default::default()
    };
    Filled {
        columns: vec![FilledColumn { buffer: column, packets: contents.packets }],
        kind: Kind::Data,
        rows,
        totals,
        time_min: contents.time_min,
        time_max: contents.time_max,
        extra_blocks: false,
    }
}

fn superblock_put_right(page: &mut [u8; HEAD_BYTES]) {
    page[SUPERBLOCK_CRC..SUPERBLOCK_CRC + 4].fill(0);
    let crc = crc32c(page);
    page[SUPERBLOCK_CRC..SUPERBLOCK_CRC + 4].copy_from_slice(&crc.to_le_bytes());
}

fn head_put_right(page: &mut [u8; HEAD_BYTES]) {
    let cid = blake3::hash(&page[HEAD_COMMON..HEAD_CID]);
    page[HEAD_CID..HEAD_CID + 32].copy_from_slice(cid.as_bytes());
    page[HEAD_MAC..HEAD_MAC + 16].fill(0);
    page[HEAD_CRC..HEAD_CRC + 4].fill(0);
    let crc = crc32c(page);
    page[HEAD_CRC..HEAD_CRC + 4].copy_from_slice(&crc.to_le_bytes());
    let mac = blake3::keyed_hash(&KEY.0, page);
    page[HEAD_MAC..HEAD_MAC + 16].copy_from_slice(&mac.as_bytes()[..16]);
}

/// Changes the image as one edit says.
fn edit(disk: &Modelled, geometry: &Geometry, edit: &[u8; 12]) {
    let [kind, which, low, high, value @ ..] = *edit;
    let field = usize::from(u16::from_le_bytes([low, high]));
    let width = 1 << (kind >> 4 & 3);
    let change = |page: &mut [u8; HEAD_BYTES], bound: usize| {
        let at = field % bound;
        let place = page.iter_mut().skip(at).zip(value).take(width);
        match kind >> 6 {
            0 => place.for_each(|(to, from)| *to = from),
            1 => place.for_each(|(to, from)| *to ^= from),
            2 => place.for_each(|(to, _)| *to = 0xff),
            _ => place.for_each(|(to, from)| *to = to.wrapping_add(from)),
        }
    };
    match kind & 3 {
        // All copies say the same, or one says something else.
        0 => (0..SUPERBLOCK_COPIES).for_each(|copy| {
            disk.damage(copy_offset(copy, SIZE), |page| {
                change(page, 600);
                page[10] = copy;
                superblock_put_right(page);
            });
        }),
        1 => disk.damage(copy_offset(which % SUPERBLOCK_COPIES, SIZE), |page| {
            change(page, 600);
            superblock_put_right(page);
        }),
        2 => {
            let offset =
                geometry.slot_offset(Sequence(u64::from(which))) + u64::from(value[7] & 3) * 4096;
            disk.damage(offset, |page| {
                change(page, 1200);
                head_put_right(page);
            });
        }
        _ => {
            let offset =
                geometry.slot_offset(Sequence(u64::from(which))) + u64::from(value[7] & 3) * 4096;
            disk.damage(offset, |page| change(page, HEAD_BYTES));
        }
    }
}

/// # Panics
/// Reading or mounting the image does.
pub fn run(input: &[u8]) {
    let Template { disk, geometry } = template();
    let disk = disk.snapshot();
    for bytes in input.as_chunks::<12>().0.iter().take(16) {
        edit(&disk, geometry, bytes);
    }
    let readers = || vec![Box::new(disk.clone()) as Box<dyn ReadAt>];
    if let Ok(reader) = Reader::open(readers()) {
        read(&reader);
    }
    if let Ok(salvaged) = salvage(readers()) {
        read(&salvaged.reader);
    }
    if record(&disk, 3) {
        let reader = Reader::open(readers()).expect("what was mounted and closed can be read");
        assert!(reader.span().is_some(), "what was appended is acknowledged");
        read(&reader);
    }
}

/// Everything that a reader can be asked for.
fn read(reader: &Reader) {
    let report = verify(reader, &mut |_, _| ControlFlow::Continue(()));
    assert!(report.damage.len() < 100_000, "damage is of rows that there are");
    let Some(span) = reader.span() else { return };
    let slots = reader.geometry().slots;
    assert!(span.acknowledged.sequence - span.tail.min(span.acknowledged.sequence) <= slots);
    if let Some(index) = reader.newest_index() {
        drop(reader.directory(index));
        drop(reader.index(index));
    }
    let mut buffer = vec![0; reader.piece_bytes()];
    for sequence in [span.tail, span.acknowledged.sequence, span.acknowledged.sequence + 1] {
        drop(reader.leading_heads(sequence));
        let Ok(slot) = reader.slot(sequence, 0, &mut buffer) else { continue };
        for stripe in &slot.stripes {
            let packets = format::piece::packets(Reader::body(&stripe.head, &buffer));
            assert!(packets.count() < 10_000, "a piece has few blocks");
        }
    }
}
