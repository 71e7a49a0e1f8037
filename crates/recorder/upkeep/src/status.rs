//! A volume's redundancy now, by its superblocks and where its members are.

use std::path::{Path, PathBuf};

use format::head::VolumeId;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use units::{Epoch, MemberId, Sequence, Timestamp};
use volume::{Reader, Redundancy, path_text};

use crate::Error;
use crate::inspect::{MemberState, member_state};

/// A member and what it is good for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MemberStatus {
    /// Where it is, or was.
    #[serde(serialize_with = "path_text")]
    pub path: PathBuf,
    /// What it is good for. Reports have it in a word, and do not say which stripes it lacks.
    #[serde(serialize_with = "word", deserialize_with = "of_word")]
    #[schemars(with = "String")]
    pub state: MemberState,
    /// Bytes that it lacks.
    pub stale_bytes: u64,
}

/// A device that waits to take a member's place.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SpareStatus {
    /// Where it is, or was.
    #[serde(serialize_with = "path_text")]
    pub path: PathBuf,
    /// Whether the device is present.
    pub is_there: bool,
}

fn word<S: Serializer>(state: &MemberState, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(state.word())
}

fn of_word<'de, D: Deserializer<'de>>(from: D) -> Result<MemberState, D::Error> {
    let word = String::deserialize(from)?;
    let wrong = || D::Error::custom(format_args!("{word:?} is no state of a member"));
    MemberState::of_word(&word).ok_or_else(wrong)
}

/// A volume as its superblocks describe it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// The member that was named.
    #[serde(serialize_with = "path_text")]
    pub path: PathBuf,
    /// Id of the volume.
    pub volume_id: VolumeId,
    /// Columns of new stripes that hold data.
    pub data_columns: u8,
    /// Columns of new stripes that hold parity: as many members may be lost when all is well.
    pub parity_columns: u8,
    /// Number of the newest opening.
    pub epoch: Epoch,
    /// A process has the volume open for writing.
    pub is_open: bool,
    /// The last writer stopped in order; not so while one is writing.
    pub clean_stop: bool,
    /// The newest sign of life of a writer.
    #[serde(rename = "last_alive_ns", skip_serializing_if = "Option::is_none")]
    pub last_alive: Option<Timestamp>,
    /// Every stripe has all the redundancy that its shape gives: follows from the members.
    pub is_whole: bool,
    /// State of the members, by number.
    pub members: Vec<MemberStatus>,
    /// In the order in which they are taken.
    pub spares: Vec<SpareStatus>,
    /// Of the whole ring, oldest first; empty while nothing is acknowledged.
    pub redundancy: Vec<Redundancy>,
}

/// Looks at a volume; writes nothing, takes no lock.
pub fn status(path: &Path, members: &[PathBuf]) -> Result<Status, Error> {
    let of_volume = |error| Error::of_volume(path, error);
    let (found, mut reader) = volume::open_found(path, members).map_err(of_volume)?;
    reader.find_newest().map_err(of_volume)?;
    let superblock = reader.superblock();
    let piece_bytes = u64::from(superblock.geometry.piece_bytes);
    let newest = reader.newest().map_or(Sequence(0), |newest| newest.sequence);
    let member = |number: MemberId| {
        let state = member_state(&reader, number);
        let at = found.iter().find(|found| found.member == number).map(|found| found.path.clone());
        let entry = superblock.members.get(number.place()).expect("a member has its entry");
        let slots = match state {
            MemberState::Stale { from, to } => to.min(newest + 1).since(from),
            MemberState::Whole | MemberState::Absent | MemberState::Vacant => 0,
        };
        let path = at.unwrap_or_else(|| PathBuf::from(&entry.path));
        MemberStatus { path, state, stale_bytes: slots * piece_bytes }
    };
    let spare = |spare: &format::superblock::Spare| {
        let place = volume::place_of_spare(path, members, spare);
        let is_there = place.is_some();
        SpareStatus { path: place.unwrap_or_else(|| PathBuf::from(&spare.path)), is_there }
    };
    let is_open = found.iter().any(|found| device::is_open_for_writing(&found.path));
    let members: Vec<MemberStatus> = reader.membership().numbers().map(member).collect();
    Ok(Status {
        path: path.to_path_buf(),
        volume_id: superblock.volume_id,
        data_columns: superblock.geometry.data_columns,
        parity_columns: superblock.geometry.parity_columns,
        epoch: superblock.joined_epoch,
        is_open,
        clean_stop: reader.has_stopped_in_order(),
        last_alive: reader.last_alive(),
        is_whole: members.iter().all(|member| member.state == MemberState::Whole),
        members,
        spares: superblock.spares.iter().map(spare).collect(),
        redundancy: redundancy_without(&reader, None),
    })
}

/// What the ring has when a member is taken away, or as it is.
pub(crate) fn redundancy_without(reader: &Reader, taken: Option<MemberId>) -> Vec<Redundancy> {
    let Some(span) = reader.span() else { return Vec::new() };
    reader.membership().redundancy(span.tail..span.acknowledged.sequence + 1, taken)
}
