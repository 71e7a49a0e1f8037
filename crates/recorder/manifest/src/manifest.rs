//! What an answer was made of, so that it can be checked later.

use completeness::Completeness;
use evidence::{CaseInfo, ClockUse, OutputSummary};
use format::head::VolumeId;
use format::session_row::PieceId;
use units::Timestamp;

use crate::asked::Asked;

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
