//! The segments that the ring's own directories name.

use core::ops::RangeInclusive;

use format::directory::SegmentEntry;
use format::head::{Kind, StripeId};
use index::Catalog;
use units::{Sequence, Timestamp};
use volume::Reader;

/// All of time.
pub(crate) const ALWAYS: RangeInclusive<Timestamp> = Timestamp::MIN..=Timestamp::MAX;

/// What the directories say.
pub(crate) struct Segments {
    /// Segments of which the ring holds something, oldest first.
    pub(crate) entries: Vec<SegmentEntry>,
    /// The INDEX stripe at which the chain of directories broke off, and why.
    pub(crate) broken: Option<(StripeId, volume::Error)>,
}

/// Where an INDEX was forgotten on request: the one before it.
pub(crate) fn forgotten(reader: &Reader, at: StripeId) -> Option<StripeId> {
    let heads = reader.heads(at.sequence)?;
    let first = heads.first().filter(|head| head.stripe.kind == Kind::Void)?;
    Some(first.stripe.index)
}

/// Follows the directories from the newest INDEX back to the tail.
pub(crate) fn read(reader: &Reader) -> Segments {
    let tail = reader.span().map_or(Sequence(0), |span| span.tail);
    let mut catalog = Catalog::new(reader.superblock().volume_id, tail, None);
    let mut broken = None;
    let mut next = reader.newest_index();
    while let Some(at) = next {
        match reader.index(at) {
            Ok(file) if catalog.add(&file.directory) => next = catalog.older_directory(),
            Ok(_) => break,
            Err(error) => {
                // On over it: its head names the INDEX before.
                let Some(before) = forgotten(reader, at) else {
                    broken = Some((at, error));
                    break;
                };
                next = Some(before).filter(|it| *it < at && it.sequence >= tail);
            }
        }
    }
    Segments { entries: catalog.select(&ALWAYS), broken }
}
