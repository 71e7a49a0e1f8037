//! What an answer is, and what is missing from it.

use core::fmt;
use core::time::Duration;
use std::io::{self, Read};

use format::directory::Gap;
use format::head::{StripeId, VolumeId};
use format::slice::PieceId;
use units::Timestamp;

use crate::OutputSummary;
use crate::hashing::{Hasher, Hashes};
use crate::payload::Pattern;
use crate::request::{Limits, Request, SessionIds};

/// Losses that a further one is compared with: a volume may tell of any number.
const GAPS_IN_MIND: usize = 4096;

/// Why bytes of a stripe could not be used.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DamageKind {
    /// The stripe has no readable head.
    Missing,
    /// Rows of its body that do not match their checksums, ascending; packets in front of the first
    /// were used.
    Rows(Vec<u16>),
    /// The rows are as written and hold no packets, from this byte of the body on.
    Malformed(usize),
}

/// A stripe that was wanted and is damaged.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Damage {
    /// Which.
    pub stripe: StripeId,
    /// How.
    pub kind: DamageKind,
}

/// What is missing from an answer. An unknown number of packets is not zero.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Completeness {
    /// Losses while recording, in the time range of the query.
    pub gaps: Vec<Gap>,
    /// Damaged stripes that were needed, ascending.
    pub damage: Vec<Damage>,
    /// Pieces of selected sessions that the ring has overwritten.
    pub retired_pieces: u64,
    /// Packets that the index counts for the selected sessions and that were not found, for no
    /// reason above.
    pub missing_packets: u64,
    /// Packets that no index has; they were indexed on the way and are in the answer.
    pub unindexed_packets: u64,
    /// Packets that have no rows and shall have none, because they ended the indexer twice:
    /// whether they belong to the answer nobody knows.
    pub left_out_packets: u64,
    /// Where names were asked for: packets that the recorder had no time to look at for some.
    pub unread_packets: u64,
    /// Something that was asked for lies at or before this time, and is not given out any more.
    pub expired_through: Option<Timestamp>,
    /// Packets up to this time were erased, on purpose, and were asked for; what they were nobody
    /// knows any more.
    pub erased_through: Option<Timestamp>,
    /// Sessions that were named by their ids and are not there.
    pub unknown_sessions: u64,
    /// What is beyond the limit was left out.
    pub limited: bool,
    /// The run was ended before its end.
    pub stopped: bool,
}

impl Completeness {
    /// Everything that was on the wire and matches is in the answer, as far as anybody can know.
    pub fn is_complete(&self) -> bool {
        self.gaps.is_empty()
            && self.damage.is_empty()
            && self.retired_pieces == 0
            && self.missing_packets == 0
            && self.left_out_packets == 0
            && self.unread_packets == 0
            && self.unknown_sessions == 0
            && self.expired_through.is_none()
            && !self.limited
            && !self.stopped
    }

    /// Packets of selected sessions are not there; saturates, for a forged index may count any.
    pub(crate) fn miss(&mut self, packets: u64) {
        self.missing_packets = self.missing_packets.saturating_add(packets);
    }

    pub(crate) fn add_gaps(&mut self, gaps: &[Gap], from: Timestamp, to: Timestamp) {
        for gap in gaps.iter().filter(|gap| gap.from <= to && gap.to >= from) {
            // A loss is told by its piece and by the index of its segment, which are read in turn.
            if !self.gaps.iter().rev().take(GAPS_IN_MIND).any(|known| known == gap) {
                self.gaps.push(gap.clone());
            }
        }
    }

    /// Adds what another answer lacks, for one that is made of both.
    pub fn add(&mut self, other: &Self) {
        self.add_gaps(&other.gaps, Timestamp::MIN, Timestamp::MAX);
        for Damage { stripe, kind } in &other.damage {
            self.add_damage(*stripe, kind.clone());
        }
        self.retired_pieces = self.retired_pieces.max(other.retired_pieces);
        self.missing_packets = self.missing_packets.max(other.missing_packets);
        self.unindexed_packets = self.unindexed_packets.max(other.unindexed_packets);
        self.left_out_packets = self.left_out_packets.max(other.left_out_packets);
        self.unread_packets = self.unread_packets.max(other.unread_packets);
        self.expired_through = self.expired_through.max(other.expired_through);
        self.erased_through = self.erased_through.max(other.erased_through);
        self.limited |= other.limited;
        self.stopped |= other.stopped;
    }

    /// Something is older than the volume's maximum age.
    pub(crate) fn withhold(&mut self, through: Timestamp) {
        self.expired_through = Some(through);
    }

    pub(crate) fn add_damage(&mut self, stripe: StripeId, kind: DamageKind) {
        let damage = Damage { stripe, kind };
        // Mostly in the order of the ring: at the end.
        if let Err(place) = self.damage.binary_search(&damage) {
            self.damage.insert(place, damage);
        }
    }
}

/// A few lines, the verdict first.
impl fmt::Display for Completeness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_complete() { "complete" } else { "incomplete" })?;
        for gap in &self.gaps {
            write!(f, "\ngap: {} between {} and {}", gap.cause.name(), gap.from, gap.to)?;
            match gap.packets {
                Some(packets) => write!(f, ", {packets} packets lost")?,
                None => f.write_str(", an unknown number of packets lost")?,
            }
        }
        for Damage { stripe, kind } in &self.damage {
            match kind {
                DamageKind::Missing => write!(f, "\ndamage: stripe {stripe} cannot be read")?,
                DamageKind::Rows(rows) => {
                    write!(f, "\ndamage: {} rows of stripe {stripe}", rows.len())?;
                }
                DamageKind::Malformed(offset) => {
                    write!(f, "\ndamage: stripe {stripe} holds no packets from byte {offset} on")?;
                }
            }
        }
        if self.retired_pieces > 0 {
            write!(f, "\noverwritten: {} pieces of these sessions", self.retired_pieces)?;
        }
        if let Some(through) = self.expired_through {
            write!(f, "\nexpired: what is not newer than {through} is beyond the maximum age")?;
        }
        if let Some(through) = self.erased_through {
            write!(f, "\nerased: packets that are not newer than {through}")?;
        }
        if self.missing_packets > 0 {
            write!(f, "\nnot found: {} packets that the index counts", self.missing_packets)?;
        }
        if self.left_out_packets > 0 {
            let packets = self.left_out_packets;
            write!(f, "\nnot looked at: {packets} packets that ended the indexer twice")?;
        }
        if self.unread_packets > 0 {
            write!(
                f,
                "\nnames may be missing: {} packets were not looked at",
                self.unread_packets
            )?;
        }
        if self.unindexed_packets > 0 {
            write!(f, "\nindexed on the way: {} packets", self.unindexed_packets)?;
        }
        if self.unknown_sessions > 0 {
            write!(f, "\nnot there: {} of the sessions named", self.unknown_sessions)?;
        }
        if self.limited {
            f.write_str("\ncut: there is more than the limit allows")?;
        }
        if self.stopped {
            f.write_str("\ncut: ended before its end")?;
        }
        Ok(())
    }
}

/// A piece whose packets were looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PieceRead {
    /// Which.
    pub piece: PieceId,
    /// CRC-64/NVME of its body.
    pub body_crc: u64,
}

/// What an extract was asked for besides its query.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Asked {
    /// All packets of the sessions, whatever their time.
    pub whole_sessions: bool,
    /// So many sessions were named by their ids.
    pub sessions_named: Option<u64>,
    /// Instead of the sessions' packets all in so many nanoseconds around them.
    pub around_ns: Option<u64>,
    /// Filter that packets had to pass.
    pub packet_filter: Option<String>,
    /// What packets had to have in their payload.
    pub payload: Option<String>,
    /// Where to stop.
    pub limits: Limits,
    /// Packets have comments of ours.
    pub comments: bool,
    /// Addresses are not those of the wire.
    pub anonymised: bool,
}

impl Asked {
    pub(crate) fn of(request: &Request<'_>) -> Self {
        let count = |ids: &SessionIds| u64::try_from(ids.len()).expect("lengths fit 64 bits");
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
        }
    }
}

/// What an extract was made of and from, so that it can be checked later.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Manifest {
    /// The query as it was given.
    pub query: String,
    /// What was asked for besides.
    pub asked: Asked,
    /// When it was made.
    pub made: Timestamp,
    /// The volume.
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
    /// What is missing.
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
        actual += u64::try_from(count).expect("lengths fit 64 bits");
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
