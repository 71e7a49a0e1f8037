//! Making a raw extract.

use core::ops::{ControlFlow, RangeInclusive};
use std::collections::BTreeSet;
use std::io::{self, Write};

use completeness::{Completeness, DamageKind};
use device::ReadAt;
use extract::{Hasher, Hashes, Options, needed};
use format::head::{Head, Kind, StripeHead, StripeId, VolumeId};
use format::session_row::PieceId;
use manifest::PieceRead;
use units::number::to_u64;
use units::{EachSequence, MemberId, Sequence, Timestamp};
use volume::{MemberAt, Reader, Slot, StripeInSlot};

use crate::Error;
use crate::form::{Heading, Sink};
use crate::noted::{Noted, Pending, taken};

/// What is to be copied.
#[derive(Clone, Copy, Debug)]
pub struct Copying<'a> {
    /// The volume, and whether a recorder runs; nothing else of it counts.
    pub options: &'a Options,
    /// Packets of these times.
    pub times: &'a RangeInclusive<Timestamp>,
    /// When that is: what has expired then is left out.
    pub made: Timestamp,
}

/// A raw extract that was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Copied {
    /// Id of the volume.
    pub volume: VolumeId,
    /// Bytes of the file.
    pub bytes: u64,
    /// Hashes of the file.
    pub hashes: Hashes,
    /// Packets in the stripes that were copied, as their heads count them: those before and after
    /// the times that lie in the same stripes are among them.
    pub packets: u64,
    /// The pieces with packets, each with the hash of its body as it lies on its member.
    pub pieces: Vec<PieceRead>,
    /// What is known to be missing, without a look at what is encrypted.
    pub completeness: Completeness,
}

/// Copies what an extract of some times reads: `progress` gets slots done and slots in all, and may
/// stop it. May run beside a recorder.
///
/// # Errors
/// When the volume is not encrypted, or was not at these times; when it cannot be read, or `out`
/// not be written; when it was stopped.
pub fn copy(
    copying: Copying<'_>,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Copied, Error> {
    let Copying { options, times, made } = copying;
    let members = Members::open(&volume::find_members(&options.volume, &options.members)?)?;
    let Members { noted, sizes, devices } = members;
    let mut reader = Reader::open(devices)?;
    let volume = reader.superblock().volume_id;
    if !reader.superblock().is_encrypted {
        return Err(Error::NotEncrypted);
    }
    let heading = Heading {
        volume_id: volume.0,
        made,
        from: *times.start(),
        to: *times.end(),
        is_recorded: options.is_recorded,
        sizes,
    };
    let mut hashed = Hashed { out, hasher: Hasher::default(), bytes: 0 };
    let sink = Sink::begin(&mut hashed, &heading).map_err(Error::Write)?;
    // Wrapped keys: whoever opens the copy reads them first.
    drop(reader.key_log());
    let found;
    (reader, found) = needed(reader, options, times, made);
    let mut walk = Walk {
        reader: &reader,
        noted: &noted,
        sink,
        completeness: found.completeness,
        pieces: Vec::new(),
        packets: 0,
        times,
    };
    walk.put_down()?;
    let slots: BTreeSet<Sequence> = found.slots.into_iter().flat_map(EachSequence::each).collect();
    let total = to_u64(slots.len());
    for (done, sequence) in (1..).zip(slots) {
        walk.slot(sequence)?;
        if progress(done, total).is_break() {
            return Err(Error::Stopped);
        }
    }
    for index in found.indexes {
        walk.index(index)?;
    }
    let Walk { sink, completeness, pieces, packets, .. } = walk;
    sink.finish().map_err(Error::Write)?;
    let Hashed { hasher, bytes, .. } = hashed;
    Ok(Copied { volume, bytes, hashes: hasher.finish(), packets, pieces, completeness })
}

/// The members at hand, by number.
struct Members {
    noted: Vec<(MemberId, Pending)>,
    sizes: Vec<u64>,
    devices: Vec<Box<dyn ReadAt>>,
}

impl Members {
    /// Those that cannot be opened are absent, as long as another one can.
    fn open(places: &[MemberAt]) -> Result<Self, Error> {
        let mut members = Self { noted: Vec::new(), sizes: Vec::new(), devices: Vec::new() };
        let mut failed = None;
        for MemberAt { member, path } in places {
            let device = match device::open_read(path) {
                Ok(device) => device,
                Err(error) => {
                    failed.get_or_insert(error);
                    continue;
                }
            };
            let pending = Pending::default();
            let seat = member.place();
            if members.sizes.len() <= seat {
                members.sizes.resize(seat + 1, 0);
            }
            *members.sizes.get_mut(seat).expect("just made") = device.size_bytes();
            members.devices.push(Box::new(Noted::new(device, &pending)));
            members.noted.push((*member, pending));
        }
        match failed {
            Some(error) if members.devices.is_empty() => Err(error.into()),
            _ => Ok(members),
        }
    }
}

/// An output that hashes what goes through it.
struct Hashed<'a> {
    out: &'a mut dyn Write,
    hasher: Hasher,
    bytes: u64,
}

impl Write for Hashed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.hasher.update(bytes.get(..count).unwrap_or_default());
        self.bytes += to_u64(count);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The way through the slots that are copied.
struct Walk<'a, 'o> {
    reader: &'a Reader,
    noted: &'a [(MemberId, Pending)],
    sink: Sink<'o>,
    completeness: Completeness,
    pieces: Vec<PieceRead>,
    packets: u64,
    times: &'a RangeInclusive<Timestamp>,
}

impl Walk<'_, '_> {
    /// What was read so far goes into the file.
    fn put_down(&mut self) -> Result<(), Error> {
        for (member, pending) in self.noted {
            for (offset, bytes) in taken(pending) {
                self.sink.record(*member, offset, &bytes).map_err(Error::Write)?;
            }
        }
        Ok(())
    }

    /// Reads a slot, from the other members where one is damaged, and puts down what was read.
    fn slot(&mut self, sequence: Sequence) -> Result<(), Error> {
        self.refuse_plain(sequence)?;
        let columns = self.reader.membership().geometry_at(sequence).data_columns;
        let columns: Vec<u8> = (0..columns).collect();
        let mut memory = vec![Vec::new(); columns.len()];
        let slots = self.reader.sealed_slots(sequence, &columns, &mut memory);
        for ((column, slot), bytes) in columns.iter().zip(slots).zip(&memory) {
            match slot {
                Ok(slot) => self.note(*column, &slot, bytes),
                // The ring went on over it: what heads say of these times says so.
                Err(volume::Error::Overwritten(_)) => {}
                Err(_) => {
                    let stripe = StripeId { sequence, sub: 0 };
                    self.completeness.add_damage(stripe, DamageKind::Missing);
                }
            }
        }
        self.put_down()
    }

    /// Packets that are not encrypted do not leave as such.
    fn refuse_plain(&self, sequence: Sequence) -> Result<(), Error> {
        let heads = self.reader.leading_heads(sequence);
        let has_packets = |head: &&StripeHead| head.kind == Kind::Data && head.totals.packets > 0;
        let mut stripes = heads.iter().map(|head| &head.stripe).filter(has_packets);
        match stripes.find(|head| head.key_id.is_none()) {
            Some(head) => Err(Error::Plain { from: head.time_min, to: head.time_max }),
            None => Ok(()),
        }
    }

    fn note(&mut self, column: u8, slot: &Slot, bytes: &[u8]) {
        for StripeInSlot { head, bad_rows, behind_damage, .. } in &slot.stripes {
            let stripe = &head.stripe;
            if *behind_damage {
                self.completeness.add_damage(stripe.stripe, DamageKind::Missing);
            }
            let is_wanted =
                stripe.time_min <= *self.times.end() && stripe.time_max >= *self.times.start();
            if stripe.kind != Kind::Data || stripe.totals.packets == 0 || !is_wanted {
                continue;
            }
            if !bad_rows.is_empty() {
                let rows = DamageKind::Rows(bad_rows.clone());
                self.completeness.add_damage(stripe.stripe, rows);
            }
            self.packets += if column == 0 { stripe.totals.packets } else { 0 };
            self.pieces.push(piece_read(head, column, Reader::body(head, bytes)));
        }
    }

    /// Reads the parts of an index, and puts down what was read.
    fn index(&mut self, at: StripeId) -> Result<(), Error> {
        // A damaged index is none: its packets are indexed again where the copy is opened.
        drop(self.reader.index(at));
        self.put_down()
    }
}

fn piece_read(head: &Head, column: u8, body: &[u8]) -> PieceRead {
    let StripeId { sequence, sub } = head.stripe.stripe;
    PieceRead {
        piece: PieceId { sequence, sub, column },
        body_crc: head.stripe.manifest.get(usize::from(column)).copied().unwrap_or_default(),
        cid: head.cid,
        packets: if column == 0 { head.stripe.totals.packets } else { 0 },
        blake3: *blake3::hash(body).as_bytes(),
    }
}
