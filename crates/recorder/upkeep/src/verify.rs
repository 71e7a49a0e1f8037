//! Reading a whole volume and checking every byte of it and every index in it.

use core::ops::ControlFlow;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use encryption::key_id_of;
use format::geometry::ROW_BYTES;
use format::head::{StripeId, VolumeId};
use index::{Columns, Segment};
use schemars::JsonSchema;
use serde::Serialize;
use units::MemberId;
use volume::{GivenUp, Reader, path_text};
use writer::{Damage, LostBody, ReadBack, ScrubOptions};

use crate::segments::{self, ALWAYS};
use crate::{Error, Progress};

/// What a verification found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Verification {
    /// The member that was read.
    #[serde(serialize_with = "path_text")]
    pub path: PathBuf,
    /// Id of the volume.
    pub volume_id: VolumeId,
    /// Nothing is damaged, and every member was read.
    #[serde(rename = "clean")]
    pub is_clean: bool,
    /// Everything was read; not so when it was broken off.
    #[serde(rename = "complete")]
    pub is_complete: bool,
    /// What was read, in numbers.
    #[serde(flatten)]
    pub read: ReadBack,
    /// Packets in the stripes that were read.
    pub packets: u64,
    /// Segment indexes that were joined, decoded and counted.
    pub indexes: u64,
    /// Session rows in them.
    pub sessions: u64,
    /// Stripes that the writer passed while they were waiting to be read.
    pub overwritten: u64,
    /// Superblock copies that are not as they should be: member, copy.
    #[serde(rename = "superblocks")]
    pub bad_copies: Vec<(MemberId, u8)>,
    /// Stripes that are not as they were acknowledged.
    pub damage: Vec<BadStripe>,
    /// Stripes whose parity does not follow from their data: only the data can be trusted.
    pub parity_wrong: Vec<StripeId>,
    /// Members that failed too often or for too long, and were not read to the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub given_up: Vec<GivenUp>,
    /// Indexes that cannot be read. Their packets are not concerned.
    pub index_damage: Vec<IndexDamage>,
}

/// A stripe that is not as it was acknowledged.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct BadStripe {
    /// The damaged stripe.
    pub stripe: StripeId,
    /// The member whose piece is damaged; `None` when no member has a readable head of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<MemberId>,
    /// The other members give back what is damaged.
    pub repairable: bool,
    /// Of a stripe without any head: whether its body is as it was sealed, as far as the head
    /// behind it says.
    #[serde(rename = "body_whole", skip_serializing_if = "Option::is_none")]
    pub is_body_whole: Option<bool>,
    /// Byte offset of its slot on the member.
    pub slot_offset: u64,
    /// Byte offsets of the rows of 4096 bytes that do not match; empty when the head is
    /// unreadable.
    pub row_offsets: Vec<u64>,
}

/// An index that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct IndexDamage {
    /// Its segment, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment: Option<StripeId>,
    /// First stripe of the index.
    #[serde(rename = "stripe")]
    pub index: StripeId,
    /// Byte offset of that slot on the member.
    pub slot_offset: u64,
    /// What is wrong with the index.
    pub reason: String,
}

/// Verifies everything that is acknowledged. May run beside a recorder: stripes that it passes
/// meanwhile are counted, not blamed.
pub fn verify(
    path: &Path,
    members: &[PathBuf],
    progress: Progress<'_>,
) -> Result<Verification, Error> {
    let reader = crate::open(path, members)?;
    let options = ScrubOptions::default();
    let report = writer::scrub(&reader, None, options, progress)
        .map_err(|source| Error::of_volume(path, source))?;
    let is_complete = report.is_complete;
    let ring = report.verified;
    let mut found = Verification {
        path: path.to_path_buf(),
        volume_id: reader.superblock().volume_id,
        is_clean: false,
        is_complete,
        read: ring.read,
        packets: ring.packets,
        indexes: 0,
        sessions: 0,
        overwritten: ring.overwritten,
        bad_copies: report
            .copies
            .iter()
            .filter(|bad| !bad.is_old)
            .map(|bad| (bad.member, bad.copy))
            .collect(),
        damage: report.findings.iter().map(|found| locate(&found.damage)).collect(),
        parity_wrong: ring.parity_wrong,
        given_up: ring.given_up,
        index_damage: Vec::new(),
    };
    if is_complete {
        verify_indexes(&reader, &mut found);
    }
    found.is_clean = found.damage.is_empty()
        && found.bad_copies.is_empty()
        && found.parity_wrong.is_empty()
        && found.index_damage.is_empty()
        && found.given_up.is_empty();
    Ok(found)
}

/// From rows of a stripe to bytes of the member.
pub(crate) fn locate(damage: &Damage) -> BadStripe {
    BadStripe {
        stripe: damage.stripe,
        member: damage.member,
        slot_offset: damage.slot_offset,
        row_offsets: damage.rows.iter().map(|&row| row_offset(damage, row)).collect(),
        repairable: damage.repairable,
        is_body_whole: damage.body.map(|body| body == LostBody::Whole),
    }
}

/// Byte offset of a body row on the member: body rows lie behind the row of the head.
pub(crate) fn row_offset(damage: &Damage, row: u16) -> u64 {
    let rows = u64::from(damage.first_row) + 1 + u64::from(row);
    damage.slot_offset + rows * u64::from(ROW_BYTES)
}

fn verify_indexes(reader: &Reader, verification: &mut Verification) {
    let found = segments::read(reader);
    let mut bad = |segment, index: StripeId, error: &dyn core::error::Error| {
        let slot_offset = reader.geometry().slot_offset(index.sequence);
        let reason = chain(error);
        verification.index_damage.push(IndexDamage { segment, index, slot_offset, reason });
    };
    if let Some((at, error)) = &found.broken {
        bad(None, *at, error);
    }
    for entry in &found.entries {
        let file = match reader.index(entry.index) {
            Ok(file) => file,
            Err(volume::Error::Overwritten(_)) => continue,
            Err(_) if segments::forgotten(reader, entry.index).is_some() => continue,
            Err(error) => {
                bad(Some(entry.summary.first), entry.index, &error);
                continue;
            }
        };
        if key_id_of(&file.parquet).is_some() {
            // Its checksums match; what is in it only a key shows.
            verification.indexes += 1;
            let rows = entry.summary.sessions;
            verification.sessions = verification.sessions.saturating_add(rows);
            continue;
        }
        match rows(Bytes::from(file.parquet)) {
            Ok(rows) => {
                verification.indexes += 1;
                verification.sessions = verification.sessions.saturating_add(rows);
            }
            Err(error) => bad(Some(entry.summary.first), entry.index, &error),
        }
    }
}

/// Decodes every column of every row.
fn rows(parquet: Bytes) -> index::Result<u64> {
    let mut count = 0;
    Segment::open(parquet)?.rows(Columns::All, &ALWAYS, &mut |_, _| {
        count += 1;
        ControlFlow::Continue(())
    })?;
    Ok(count)
}

fn chain(error: &dyn core::error::Error) -> String {
    let sources = core::iter::successors(error.source(), |error| error.source());
    sources.fold(error.to_string(), |text, source| format!("{text}: {source}"))
}
