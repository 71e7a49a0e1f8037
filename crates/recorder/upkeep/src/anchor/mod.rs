//! Anchors: what a volume holds, stripe by stripe, and whether it still does.
//!
//! An anchor lists the identity of each acknowledged stripe and the hash of each body. The identity
//! is a hash over the common part of a stripe's heads, which names the identity of the stripe
//! before: so stripes are a chain, and a stripe cannot be changed, taken out or put in without
//! changing all that follow it. Who writes to the members can do that; the list, kept where they
//! cannot write, shows it. Bodies are hashed as they lie on the members: no key is needed.

mod check;
mod slots;

use core::ops::ControlFlow;
use std::io;
use std::path::{Path, PathBuf};

use evidence::{Body, Listed, list_header};
use format::head::{StripeId, VolumeId};
use units::{EachSequence, Epoch, Timestamp};
use volume::{Reader, Span};

pub use self::check::{AnchorFindings, AnchorToCheck, AnchorVerdict, StripeRange, check_anchors};
use self::slots::{SlotState, Slots};
use crate::{Error, Progress};

/// What an anchor is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AnchorOptions<'a> {
    /// Bodies are read and hashed; else the heads alone.
    pub contents: bool,
    /// What an anchor before lists, by stripe and column, and is left out.
    pub previous: Option<&'a [Listed]>,
}

/// What an anchor says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Anchored {
    /// Of this volume.
    pub volume: VolumeId,
    /// Opening of the volume that wrote the newest stripe.
    pub epoch: Epoch,
    /// First stripe that is listed.
    pub first: StripeId,
    /// Newest acknowledged stripe.
    pub newest: StripeId,
    /// Its identity.
    pub newest_cid: [u8; 32],
    /// When it was sealed.
    pub newest_sealed: Timestamp,
    /// Records in the list.
    pub records: u64,
    /// Pieces of them that could not be read.
    pub unreadable: u64,
    /// BLAKE3 of the list.
    pub list_blake3: [u8; 32],
}

/// Lists the acknowledged stripes of a volume; `write` takes the bytes of the list. May run beside
/// a recorder: the list ends with what was acknowledged when it began.
///
/// # Errors
/// When the volume cannot be read or holds nothing, `write` fails, or the previous anchor is of
/// another volume or of stripes that were changed since.
pub fn anchor(
    (path, members): (&Path, &[PathBuf]),
    options: AnchorOptions<'_>,
    write: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    progress: Progress<'_>,
) -> Result<Anchored, Error> {
    let reader = crate::open(path, members)?;
    let nothing = || Error::NothingToAnchor { path: path.to_path_buf() };
    let span = reader.span().ok_or_else(nothing)?;
    let newest = options.previous.and_then(|records| Some(records.last()?.stripe));
    if let Some((records, newest)) = options.previous.zip(newest)
        && !check_previous(&reader, span, records)
    {
        return Err(Error::OtherThanAnchored { path: path.to_path_buf(), newest });
    }
    let after = newest.map_or(StripeId::default(), StripeId::after);
    let from = span.tail.max(after.sequence);
    let to = span.acknowledged.sequence;
    let mut hasher = blake3::Hasher::new();
    let mut put = |bytes: &[u8]| {
        hasher.update(bytes);
        write(bytes).map_err(Error::List)
    };
    put(&list_header(reader.superblock().volume_id))?;
    let mut slots = Slots::new(&reader);
    let (mut records, mut unreadable) = (0, 0);
    let mut ends: Option<(StripeId, slots::Found)> = None;
    for sequence in (from..=to).each() {
        let (found, _state) = slots.read(sequence, options.contents);
        for found in found.into_iter().filter(|it| it.listed.stripe >= after) {
            put(&found.listed.encode())?;
            records += 1;
            unreadable += u64::from(found.listed.body == Body::Unreadable);
            let first = ends.map_or(found.listed.stripe, |(first, _)| first);
            ends = Some((first, found));
        }
        if progress(slots.bytes(sequence - from + 1), slots.bytes(to - from + 1)).is_break() {
            return Err(Error::BrokenOff);
        }
    }
    let (first, newest) = ends.ok_or_else(nothing)?;
    Ok(Anchored {
        volume: reader.superblock().volume_id,
        epoch: newest.epoch,
        first,
        newest: newest.listed.stripe,
        newest_cid: newest.listed.cid,
        newest_sealed: newest.sealed,
        records,
        unreadable,
        list_blake3: *hasher.finalize().as_bytes(),
    })
}

/// The volume has what a previous anchor saw as its newest stripe, or the ring has passed it. Of
/// slots that were erased since, as `forget` does, the stripe before counts.
fn check_previous(reader: &Reader, span: Span, records: &[Listed]) -> bool {
    if records.last().is_some_and(|newest| newest.stripe > span.acknowledged) {
        return false;
    }
    let mut slots = Slots::new(reader);
    for Listed { stripe, cid, .. } in records.iter().rev() {
        if stripe.sequence < span.tail {
            break;
        }
        let (found, state) = slots.read(stripe.sequence, false);
        let now = found.iter().find(|it| it.listed.stripe == *stripe);
        if now.is_some_and(|now| now.listed.cid == *cid) {
            break;
        }
        if !found.iter().any(|it| it.is_erased) {
            return now.is_none() && state != SlotState::Read;
        }
    }
    true
}

/// Whether a job goes on.
fn goes_on(flow: ControlFlow<()>) -> Result<(), Error> {
    if flow.is_break() { Err(Error::BrokenOff) } else { Ok(()) }
}
