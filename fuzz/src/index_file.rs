//! A file of a segment's sessions: whatever it says, opening and reading it end with rows or an
//! error, in bounded memory.
//!
//! The input: a byte of flags, then edits of eight bytes each to a small file that is whole: where,
//! what, with which bytes. Checksums are put right behind them where bit 1 of the flags says so,
//! else no edit would come past them. With bit 0 the rest of the input is the file itself.

use core::ops::ControlFlow;
use std::sync::OnceLock;

use bytes::Bytes;
use format::checksum::crc32c;
use format::head::{StripeId, VolumeId};
use format::session_row::{PieceId, PieceSpan, SessionRow};
use index::{Columns, Needed, Segment, SegmentMeta};
use units::{Epoch, Sequence, Timestamp};
use wire::{Address, FiveTuple, Protocol};

/// Length of the Parquet footer and its magic.
const END: usize = 8;
/// The trailer of the filter in front of the footer, and places in it (docs/sessions.md, Filter).
const TRAILER: usize = 64;
const GROUPS: usize = 12;
const COLUMNS: usize = 16;
const TABLE_CRC: usize = 48;
const FOOTER_CRC: usize = 52;
const CRC: usize = 60;

fn row(number: u8) -> SessionRow {
    let address = |last| Address::V4([10, 0, 0, last].into());
    let tuple = FiveTuple {
        orig: address(number),
        resp: address(200),
        orig_port: 1000 + u16::from(number),
        resp_port: 443,
        proto: Protocol::TCP,
    };
    let start = Timestamp(1_795_171_222_000_000_000 + i64::from(number));
    let mut row = SessionRow::new(tuple, start);
    row.orig.packets = 1 + u64::from(number);
    row.names.sni = Some(format!("www{}.example", number % 3));
    row.names.dns_names = (0..number % 4).map(|at| format!("n{at}.example")).collect();
    row.names.http_path = vec!["/a/path".to_owned(); usize::from(number % 3)];
    let piece = PieceId { sequence: Sequence(70 + u64::from(number)), sub: 0, column: 0 };
    row.pieces = vec![PieceSpan { piece, begin: 4, end: 8 }; usize::from(number % 3)];
    row
}

/// A file of as many rows.
fn whole(rows: u8) -> &'static [u8] {
    static FILES: [OnceLock<Vec<u8>>; 3] = [const { OnceLock::new() }; 3];
    let (file, count) = match rows % 3 {
        0 => (&FILES[0], 0),
        1 => (&FILES[1], 3),
        _ => (&FILES[2], 40),
    };
    file.get_or_init(|| {
        let stripe = |sequence| StripeId { sequence: Sequence(sequence), sub: 0 };
        let meta = SegmentMeta::new(VolumeId([7; 16]), Epoch(3), stripe(70), stripe(90));
        let rows: Vec<SessionRow> = (0..count).map(row).collect();
        index::encode(&meta, &rows).expect("rows can be encoded").parquet
    })
}

/// A file with edits.
fn edited(flags: u8, edits: &[u8]) -> Vec<u8> {
    let mut file = whole(flags >> 2).to_vec();
    for edit in edits.as_chunks::<8>().0 {
        let [p0, p1, p2, op, value @ ..] = *edit;
        let footer = footer_at(&file).unwrap_or(0);
        let place = to_usize([p0, p1, p2, 0]);
        let region = if op & 0x80 == 0 { footer..file.len() } else { 0..file.len() };
        let at = region.start + place % (region.end - region.start).max(1);
        let count = 1 + usize::from(op >> 4 & 3);
        match op & 7 {
            // Bytes are others, have bits flipped, are all ones, go away or come in.
            0 | 1 => {
                file.iter_mut().skip(at).zip(value).take(count).for_each(|(to, from)| *to = from);
            }
            2 => file.iter_mut().skip(at).zip(value).take(count).for_each(|(to, from)| *to ^= from),
            3 => file.iter_mut().skip(at).take(count * 2).for_each(|to| *to = 0xff),
            4 => drop(file.drain(at..(at + count).min(file.len()))),
            5 => drop(file.splice(at..at, value.into_iter().take(count))),
            6 => {
                // A long number in place of a short one.
                let long = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, value[0] & 1];
                drop(file.splice(at..(at + 1).min(file.len()), long));
            }
            _ => file.truncate(at.max(END)),
        }
        // The footer keeps its end.
        let len = u32::try_from(file.len().saturating_sub(footer + END)).expect("it is small");
        if let Some(end) = file.len().checked_sub(END) {
            file[end..end + 4].copy_from_slice(&len.to_le_bytes());
            file[end + 4..].copy_from_slice(b"PAR1");
        }
    }
    if flags & 2 != 0 {
        put_right(&mut file);
    }
    file
}

fn to_usize(bytes: [u8; 4]) -> usize {
    usize::try_from(u32::from_le_bytes(bytes)).expect("addresses have at least 32 bits")
}

/// Where the footer begins.
fn footer_at(file: &[u8]) -> Option<usize> {
    let end = file.len().checked_sub(END)?;
    let len = u32::from_le_bytes(*file.get(end..)?.first_chunk()?);
    end.checked_sub(usize::try_from(len).ok()?)
}

/// Makes the checksums in front of the footer right, where its trailer is still there.
fn put_right(file: &mut [u8]) {
    let Some(footer) = footer_at(file).filter(|footer| *footer >= TRAILER) else { return };
    let trailer = footer - TRAILER;
    let number = |file: &[u8], at: usize| {
        let bytes = file.get(trailer + at..).and_then(<[u8]>::first_chunk);
        bytes.map_or(0, |bytes| to_usize(*bytes))
    };
    let table = number(file, GROUPS).saturating_mul(number(file, COLUMNS)).saturating_mul(4);
    let Some(table_at) = trailer.checked_sub(table) else { return };
    for (at, crc) in
        [(TABLE_CRC, crc32c(&file[table_at..trailer])), (FOOTER_CRC, crc32c(&file[footer..]))]
    {
        file[trailer + at..trailer + at + 4].copy_from_slice(&crc.to_le_bytes());
    }
    let crc = crc32c(&file[trailer..trailer + CRC]);
    file[trailer + CRC..footer].copy_from_slice(&crc.to_le_bytes());
}

/// # Panics
/// Reading the file does.
pub fn run(input: &[u8]) {
    let [flags, rest @ ..] = input else { return };
    let file = if flags & 1 == 1 { rest.to_vec() } else { edited(*flags, rest) };
    let bytes = Bytes::from(file);
    read(Segment::open(bytes.clone()).ok());
    read(Segment::open_in_parts(Box::new(bytes)).ok().flatten());
}

fn read(segment: Option<Segment>) {
    let Some(segment) = segment else { return };
    let times = Timestamp::MIN..=Timestamp::MAX;
    let summary = segment.summary();
    assert!(summary.is_in_range() && summary.sessions == segment.row_count());
    let mut rows = 0;
    let mut visit = |row, slice: SessionRow| {
        assert!(row < segment.row_count(), "rows are numbered within the segment");
        assert!(slice.pieces.iter().all(|span| span.begin <= span.end), "a place has an end");
        rows += 1;
        ControlFlow::Continue(())
    };
    // What cannot be read is an error, and that is all.
    drop(segment.rows(Columns::All, &times, &mut visit));
    let needed = Needed { hosts: vec![[10, 0, 0, 1].into()], ..Needed::default() };
    drop(segment.rows_with(&needed, Columns::Named(&["sni"]), &times, &mut visit));
    drop(segment.rows_at(&[0, 1, 30, 8192, u64::MAX], Columns::All, &mut visit));
    assert!(rows <= segment.row_count() * 2 + 5, "each reading gives a row once");
    let sizes = index::column_sizes(&segment);
    assert!(sizes.iter().map(|(_, size)| u128::from(*size)).sum::<u128>() < 1 << 40);
}
