//! What a reader must find of the packets that were recorded.

use std::collections::BTreeMap;

use format::directory::{Gap, SegmentEntry, Summary};
use format::head::{HEAD_BYTES, Kind, StripeId};
use format::piece::packets;
use index::IndexKeys;
use units::number::to_u64;
use units::{EachSequence, Sequence, Timestamp};
use volume::{Error, Reader, RowsWanted, Slot};

use crate::check::{Verdict, broken};
use crate::recorder::link::{Offered, content};

/// Where a packet lies, and when it came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kept {
    pub(crate) stripe: StripeId,
    pub(crate) timestamp: Timestamp,
    /// On the clock that is never set.
    pub(crate) at_ns: i64,
}

/// What a reader found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// First sequence that it gives out; `None`: it shows nothing.
    pub(crate) tail: Option<Sequence>,
    pub(crate) packets: BTreeMap<u64, (StripeId, Timestamp)>,
    /// Losses that are stored, oldest first.
    pub(crate) gaps: Vec<(StripeId, Gap)>,
    /// Segments whose index can be read.
    pub(crate) segments: Vec<Summary>,
    /// Pieces of which rows were read by themselves as well.
    pub(crate) by_rows: u64,
}

/// Reads everything; no wrong byte, no packet twice, and indexes that say what was put into them.
pub(crate) fn read_all(reader: &Reader) -> Verdict<Found> {
    let mut found = Found::default();
    let Some(span) = reader.span() else { return Ok(found) };
    found.tail = Some(span.tail);
    let mut buffer = vec![0; reader.piece_bytes()];
    for sequence in (span.tail..=span.acknowledged.sequence).each() {
        for column in 0..reader.membership().geometry_at(sequence).data_columns {
            read_slot(reader, (sequence, column), &mut buffer, &mut found)?;
        }
    }
    found.segments = read_indexes(reader, span.tail)?;
    Ok(found)
}

/// Queries read most pieces by some of their rows: those are the rows of the piece that was read
/// whole, and of no other.
fn check_rows(reader: &Reader, (slot, column): (&Slot, u8), buffer: &[u8]) -> Verdict<u64> {
    let data = slot.stripes.iter().filter(|it| it.head.stripe.kind == Kind::Data);
    let whole: Vec<_> = data.filter(|it| it.bad_rows.is_empty()).map(|it| &it.head).collect();
    let wanted = whole.iter().map(|head| {
        let rows = 0..head.stripe.rows;
        RowsWanted { stripe: head.stripe.stripe, column, rows: Vec::from([rows]) }
    });
    let wanted: Vec<RowsWanted> = wanted.collect();
    let mut count = 0;
    for (head, rows) in whole.into_iter().zip(reader.rows(&wanted)) {
        let Some(rows) = rows else { continue };
        let body = Reader::body(head, buffer);
        let is_it = |(first, bytes): &(u16, Vec<u8>)| {
            let begin = usize::from(*first) * HEAD_BYTES;
            body.get(begin..begin + bytes.len()) == Some(bytes)
        };
        if rows.head.piece.column != column || !rows.runs.iter().all(is_it) {
            let id = head.stripe.stripe;
            return broken(format!("WRONG BYTES: rows of {id}, column {column}, are of another"));
        }
        count += 1;
    }
    Ok(count)
}

fn read_slot(
    reader: &Reader,
    (sequence, column): (Sequence, u8),
    buffer: &mut [u8],
    found: &mut Found,
) -> Verdict {
    let slot = match reader.slot(sequence, column, buffer) {
        Ok(slot) => slot,
        Err(Error::Overwritten(_) | Error::Damaged(_)) => return Ok(()),
        Err(error) => return broken(format!("slot {sequence}: {error}")),
    };
    found.by_rows += check_rows(reader, (&slot, column), buffer)?;
    for piece in slot.stripes.iter().filter(|it| it.head.stripe.kind == Kind::Data) {
        if !piece.bad_rows.is_empty() {
            continue;
        }
        let id = piece.head.stripe.stripe;
        let mut walk = packets(Reader::body(&piece.head, buffer));
        for packet in walk.by_ref() {
            let Ok(packet) = packet else {
                return broken(format!("WRONG BYTES: stripe {id} holds a block that is none"));
            };
            let Some(number) = packet.data.first_chunk().map(|it| u64::from_le_bytes(*it)) else {
                return broken(format!(
                    "WRONG BYTES: stripe {id} holds a packet that was not sent"
                ));
            };
            if packet.data != content(number) {
                return broken(format!("WRONG BYTES: packet {number} in {id}"));
            }
            if let Some((other, _)) = found.packets.insert(number, (id, packet.timestamp)) {
                return broken(format!("WRONG BYTES: packet {number} is in {other} and {id}"));
            }
        }
        found.gaps.extend(walk.gaps().iter().map(|gap| (id, gap.clone())));
    }
    Ok(())
}

/// Every segment that a directory names says in its file which one it is.
fn read_indexes(reader: &Reader, tail: Sequence) -> Verdict<Vec<Summary>> {
    let Some(newest) = reader.newest_index() else { return Ok(Vec::new()) };
    let Some(directory) = reader.directory(newest) else { return Ok(Vec::new()) };
    let mut segments = Vec::new();
    let in_ring = |entry: &&SegmentEntry| entry.index.sequence >= tail;
    for SegmentEntry { summary, index, .. } in directory.iter().filter(in_ring) {
        let Ok(file) = reader.index(*index) else { continue };
        let keys = IndexKeys::new(reader.keyring().cloned());
        let parquet = keys.open(file.parquet).unwrap_or_default();
        let says = format!("{} to {}, ", summary.first, summary.last);
        if !parquet.starts_with(says.as_bytes()) {
            let (text, _) = parquet.split_at(parquet.len().min(40));
            let text = String::from_utf8_lossy(text);
            return broken(format!("WRONG BYTES: the index at {index} of {says} has {text}"));
        }
        segments.push(*summary);
    }
    Ok(segments)
}

/// A segment that says that all its packets have rows keeps queries from looking at the stripes
/// that it covers: there must be no packet in them that it has no row for. `packets` are all that
/// ever were in the ring, in any order, by their stripes.
pub(crate) fn check_claims(
    (found, tail): (&Found, Sequence),
    packets: &(impl Iterator<Item = StripeId> + Clone),
) -> Verdict<u64> {
    let held = found.segments.iter().filter(|it| !it.unindexed && it.first.sequence >= tail);
    let mut count = 0;
    for Summary { first, last, packets: indexed, .. } in held {
        let covered = packets.clone().filter(|stripe| (first..=last).contains(&stripe)).count();
        if to_u64(covered) > *indexed {
            return broken(format!(
                "STATEMENT: the index of {first} to {last} says that it is of {indexed} packets, \
                 and {covered} were there"
            ));
        }
        count += 1;
    }
    Ok(count)
}

/// What a recording has promised by a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Promise {
    /// The first so many packets that were handed to it are stored: after a crash the next mount
    /// shows them ...
    pub(crate) stored: usize,
    /// ... but for at most so many that found no space.
    pub(crate) dropped: u64,
    /// What an answer has promised besides, while it is not known how many found no space.
    pub(crate) told: usize,
}

/// The packets of a recording that must be there, judged by a reader behind it.
pub(crate) fn check_promise(
    (offered, start): (&[Offered], Sequence),
    (first, dropped): (usize, u64),
    found: &Found,
) -> Verdict<u64> {
    // What the ring has taken back already is no loss.
    let has_lapped = found.tail.is_none_or(|tail| tail > start);
    let lowest = offered.iter().position(|it| found.packets.contains_key(&it.number));
    let skip = if has_lapped { lowest.unwrap_or(offered.len()) } else { 0 };
    let owed = offered.iter().take(first).skip(skip);
    let missing: Vec<u64> =
        owed.filter(|it| !found.packets.contains_key(&it.number)).map(|it| it.number).collect();
    let count = to_u64(missing.len());
    if count > dropped {
        let first = missing.first();
        return broken(format!(
            "LOST: {count} of {} are missing, {dropped} were dropped; the first {first:?}",
            offered.len()
        ));
    }
    Ok(count)
}

/// Packets that were seen on the disks must stay until the ring takes them.
pub(crate) fn check_kept(
    kept: &BTreeMap<u64, Kept>,
    (found, from): (&Found, Sequence),
    may_lack: impl Fn(&Kept) -> bool,
) -> Verdict {
    let lost = kept.iter().find(|(number, kept)| {
        let is_there = found.packets.get(number).is_some_and(|(id, _)| *id == kept.stripe);
        kept.stripe.sequence >= from && !is_there && !may_lack(kept)
    });
    match lost {
        None => Ok(()),
        Some((number, kept)) => {
            let first = found.packets.first_key_value().map(|(number, _)| number);
            let newest = found.packets.last_key_value().map(|(number, _)| number);
            broken(format!("LOST: packet {number} of {kept:?}; there are {first:?} to {newest:?}"))
        }
    }
}
