//! What an answer was made of, so that it can be checked later.

use completeness::{Completeness, form};
use evidence::{CaseInfo, ClockUse, OutputSummary, hex_digits};
use format::head::VolumeId;
use format::session_row::PieceId;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use units::Timestamp;

use crate::asked::Asked;

/// A piece whose packets were looked at. Fields are keys in JSON, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct PieceRead {
    /// Which one.
    #[serde(flatten, serialize_with = "piece")]
    pub piece: PieceId,
    /// CRC-64/NVME of its body.
    #[serde(rename = "crc64", serialize_with = "crc64")]
    pub body_crc: u64,
    /// Identity of its stripe: the hash of the common part of its heads, which names the identity
    /// of the stripe before.
    #[serde(with = "hex_digits")]
    pub cid: [u8; 32],
    /// Packets that it gave, before limits of packets and bytes.
    pub packets: u64,
    /// BLAKE3 of their blocks, as they lie in it, one behind the other.
    #[serde(with = "hex_digits")]
    pub blake3: [u8; 32],
}

/// What an extract was made of and from, so that it can be checked later. Fields are keys in JSON,
/// in this order; who writes it says in front of them when it was made and by whom.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Manifest {
    /// What it was made for, as the user says.
    #[serde(flatten)]
    pub case: CaseInfo,
    /// The query as it was given.
    pub query: String,
    /// What was asked for besides.
    #[serde(rename = "request")]
    pub asked: Asked,
    /// When it was made.
    #[serde(skip)]
    pub made: Timestamp,
    /// Id of the volume.
    #[serde(rename = "volume_id")]
    pub volume: VolumeId,
    /// Packets were taken from this time on; `Timestamp::MIN` is no bound.
    #[serde(rename = "from_ns", skip_serializing_if = "form::is_no_begin")]
    pub from: Timestamp,
    /// And up to this time; `Timestamp::MAX` is no bound.
    #[serde(rename = "to_ns", skip_serializing_if = "form::is_no_end")]
    pub to: Timestamp,
    /// Sessions with packets in the outputs, counted once a row of the index.
    pub rows: u64,
    /// What is missing from the extract.
    #[serde(flatten, serialize_with = "judged")]
    pub completeness: Completeness,
    /// The files written: one, except for pcap with several link types.
    pub outputs: Vec<OutputSummary>,
    /// What was known of the clock when they were recorded.
    pub clocks: Vec<ClockUse>,
    /// The pieces read, in order.
    pub pieces: Vec<PieceRead>,
}

fn piece<S: Serializer>(piece: &PieceId, to: S) -> Result<S::Ok, S::Error> {
    let PieceId { sequence, sub, column } = piece;
    let mut place = to.serialize_map(None)?;
    place.serialize_entry("sequence", sequence)?;
    place.serialize_entry("sub", sub)?;
    place.serialize_entry("column", column)?;
    place.end()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn crc64<S: Serializer>(crc: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{crc:016x}"))
}

/// What is missing, the verdict first and the same for people last, a line each.
fn judged<S: Serializer>(found: &Completeness, to: S) -> Result<S::Ok, S::Error> {
    let statement = found.to_string();
    let mut judged = to.serialize_map(None)?;
    judged.serialize_entry("complete", &found.is_complete())?;
    judged.serialize_entry("state", &found.state())?;
    judged.serialize_entry("completeness", found)?;
    judged.serialize_entry("statement", &statement.lines().collect::<Vec<_>>())?;
    judged.end()
}
