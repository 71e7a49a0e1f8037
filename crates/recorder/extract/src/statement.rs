//! What an answer was made of, so that it can be checked later.

use core::time::Duration;
use std::io::{self, Read};

use completeness::Completeness;
use evidence::{ApprovedForm, ClockUse, Hasher, Hashes};
use format::head::VolumeId;
use format::session_row::PieceId;
use packet_output::OutputSummary;
use serde::Serialize;
use units::Timestamp;
use units::number::to_u64;

use crate::payload::Pattern;
use crate::request::{CaseInfo, Limits, Request, SessionIds};

/// A piece whose packets were looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PieceRead {
    /// Which one.
    pub piece: PieceId,
    /// CRC-64/NVME of its body.
    pub body_crc: u64,
    /// Identity of its stripe: the hash of the common part of its heads, which names the identity
    /// of the stripe before.
    pub cid: [u8; 32],
    /// Packets that it gave, before limits of packets and bytes.
    pub packets: u64,
    /// BLAKE3 of their blocks, as they lie in it, one behind the other.
    pub blake3: [u8; 32],
}

/// What an extract was asked for besides its query. Fields are keys in JSON, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of JSON")]
pub struct Asked {
    /// All packets of the sessions, whatever their time.
    pub whole_sessions: bool,
    /// So many sessions were named by their ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions_named: Option<u64>,
    /// Instead of the sessions' packets all in so many nanoseconds around them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub around_ns: Option<u64>,
    /// Filter that packets had to pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_filter: Option<String>,
    /// What packets had to have in their payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// Limits at which the extract stopped.
    #[serde(flatten)]
    pub limits: Limits,
    /// Packets have comments of ours.
    pub comments: bool,
    /// Addresses are not those of the wire.
    pub anonymised: bool,
    /// Who asked for it, and who approved that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<ApprovedForm>,
    /// Made of a raw extract: BLAKE3 of that, in hex digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_blake3: Option<String>,
    /// A raw extract: packets are encrypted in it.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub is_raw: bool,
}

impl Asked {
    pub(crate) fn of(request: &Request<'_>) -> Self {
        let count = |ids: &SessionIds| to_u64(ids.len());
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self {
            whole_sessions: request.whole_sessions,
            sessions_named: request.sessions.as_ref().map(count),
            around_ns: request.around.map(nanos),
            packet_filter: request.packet_filter.as_ref().map(|it| it.expression().to_owned()),
            payload: request.payload.as_ref().map(Pattern::to_string),
            limits: request.limits,
            comments: request.comments,
            anonymised: request.anonymiser.is_some(),
            ..Self::default()
        }
    }
}

/// What an extract was made of and from, so that it can be checked later.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Manifest {
    /// What it was made for, as the user says.
    pub case: CaseInfo,
    /// The query as it was given.
    pub query: String,
    /// What was asked for besides.
    pub asked: Asked,
    /// When it was made.
    pub made: Timestamp,
    /// Id of the volume.
    pub volume: VolumeId,
    /// Packets were taken from this time on; `Timestamp::MIN` is no bound.
    pub from: Timestamp,
    /// And up to this time; `Timestamp::MAX` is no bound.
    pub to: Timestamp,
    /// Sessions with packets in the outputs, counted once a row of the index.
    pub rows: u64,
    /// The files written: one, except for pcap with several link types.
    pub outputs: Vec<OutputSummary>,
    /// The pieces read, in order.
    pub pieces: Vec<PieceRead>,
    /// What was known of the clock when they were recorded.
    pub clocks: Vec<ClockUse>,
    /// What is missing from the extract.
    pub completeness: Completeness,
}

/// A file is not the extract of the manifest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyExtractError {
    /// It could not be read.
    #[error("cannot read the extract: {0}")]
    Read(#[from] io::Error),
    /// Another length.
    #[error("the extract has {actual} bytes, its manifest says {expected}")]
    Length {
        /// Bytes in the manifest.
        expected: u64,
        /// Bytes read.
        actual: u64,
    },
    /// Other bytes, by SHA-256.
    #[error("the extract does not match the SHA-256 of its manifest")]
    Sha256,
    /// Other bytes, by BLAKE3.
    #[error("the extract does not match the BLAKE3 hash of its manifest")]
    Blake3,
}

/// Reads an extract to its end and compares it with what its manifest says of it.
pub fn verify_extract(
    expected: &OutputSummary,
    file: &mut dyn Read,
) -> Result<(), VerifyExtractError> {
    let mut hasher = Hasher::default();
    let mut buffer = vec![0; 1 << 18];
    let mut actual = 0;
    loop {
        let count = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        let bytes = buffer.get(..count).expect("read fills the buffer at most");
        hasher.update(bytes);
        actual += to_u64(count);
    }
    if actual != expected.bytes {
        return Err(VerifyExtractError::Length { expected: expected.bytes, actual });
    }
    let Hashes { sha256, blake3 } = hasher.finish();
    if sha256 != expected.sha256 {
        return Err(VerifyExtractError::Sha256);
    }
    if blake3 != expected.blake3 {
        return Err(VerifyExtractError::Blake3);
    }
    Ok(())
}
