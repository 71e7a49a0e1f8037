//! The claim: who has a member open for writing, and that it still does.
//!
//! One row of every member, zeros while it was never claimed. A program that opens the volume for
//! writing puts its own there and renews it; another opener sees it move. Layout: docs/format.md,
//! Claim.

use crate::field::{get, get_i64, get_u16, get_u32, get_u64, put};
use crate::geometry::{RESERVED_BYTES, ROW_BYTES};
use crate::head::{HeadKey, VolumeId};
use crate::superblock::SUPERBLOCK_BYTES;
use thiserror::Error;
use units::{MemberId, Timestamp, start_of};

/// Bytes of a claim: one row, so that it is written whole or, on a disk of smaller sectors, in its
/// first sector, behind which all is zero.
pub const CLAIM_BYTES: usize = 4096;
/// Where it lies on every member: in the reserved range, behind the first two superblock copies.
pub const CLAIM_OFFSET: u64 = 8192;
/// Longest name of a host that is stored.
pub const HOST_BYTES_MAX: usize = 64;
/// Longest interval between two renewals: who waits for a claim waits several of them.
pub const INTERVAL_MS_MAX: u32 = 60_000;
/// Interval of a writer on disks for which a renewal is nothing.
pub const INTERVAL_MS: u32 = 500;
/// The same where it costs seeks, and each trip to the begin of a disk and back 50 ms.
pub const INTERVAL_ROTATING_MS: u32 = 30_000;
/// Highest turn; some are left above, so that the next one can be computed.
pub const TURN_MAX: u64 = 1 << 60;

const NANOS_PER_MS: i64 = 1_000_000;
const MAGIC: [u8; 8] = *b"wireCLAM";
const VERSION: u16 = 1;

/// Byte offsets; drawn with their meaning in docs/format.md, Claim.
mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION: usize = 8;
    pub(super) const STATE: usize = 10;
    pub(super) const MEMBER: usize = 11;
    pub(super) const INTERVAL_MS: usize = 12;
    pub(super) const MAC: usize = 16;
    pub(super) const VOLUME_ID: usize = 32;
    pub(super) const MEMBER_UUID: usize = 48;
    pub(super) const ID: usize = 64;
    pub(super) const TURN: usize = 80;
    pub(super) const COUNT: usize = 88;
    pub(super) const SINCE: usize = 96;
    pub(super) const BOOT_ID: usize = 104;
    pub(super) const PID_NAMESPACE: usize = 120;
    pub(super) const STARTED: usize = 128;
    pub(super) const PROCESS: usize = 136;
    pub(super) const HOST_BYTES: usize = 140;
    pub(super) const HOST: usize = 144;
    pub(super) const MACHINE: usize = 208;
    pub(super) const END: usize = MACHINE + 16;
}

const HELD: u8 = 1;
const GIVEN_UP: u8 = 2;

const _: () = {
    // The whole claim lies in the smallest sector, which no disk writes in part.
    assert!(at::END <= 512);
    assert!(at::MAC + 16 == at::VOLUME_ID && at::PROCESS + 4 == at::HOST_BYTES);
    assert!(at::STATE + 1 == at::MEMBER && at::HOST_BYTES < at::HOST);
    assert!(at::HOST + HOST_BYTES_MAX == at::MACHINE);
    assert!(INTERVAL_MS <= INTERVAL_MS_MAX && INTERVAL_ROTATING_MS <= INTERVAL_MS_MAX);
    assert!(CLAIM_OFFSET == 2 * 4096 && SUPERBLOCK_BYTES == 4096 && ROW_BYTES == 4096);
    assert!(CLAIM_OFFSET + 4096 <= RESERVED_BYTES);
};

/// So long after the last comparison a writer sends nothing more: a renewal may come late, the more
/// so on a slow disk that is busy. So long a writer that may be alive is watched.
pub fn lease_ns(interval_ms: u32) -> i64 {
    1375 * NANOS_PER_MS + interval_ns(interval_ms) * 5 / 4
}

/// From one renewal to the next.
pub fn interval_ns(interval_ms: u32) -> i64 {
    i64::from(interval_ms) * NANOS_PER_MS
}

/// So long who takes over waits behind its claim: longer than the lease of the other.
pub fn yield_ns(interval_ms: u32) -> i64 {
    lease_ns(interval_ms) + interval_ns(interval_ms) / 4
}

/// Where only another opener can be alive: how long an opener that has looked may take to claim,
/// and waits behind its claim.
pub fn race_ns(interval_ms: u32) -> i64 {
    50 * NANOS_PER_MS + (interval_ns(interval_ms) / 10).min(1000 * NANOS_PER_MS)
}

/// The process that claims a volume, as another one can recognize it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Claimant {
    /// Name of the machine, for people; longer ones are cut.
    pub host: String,
    /// What outlives a boot ([`machine_of`]); 0: not known.
    pub machine: [u8; 16],
    /// The running of a kernel: random, another one after each boot.
    pub boot_id: [u8; 16],
    /// In which numbers of processes count; 0: not known.
    pub pid_namespace: u64,
    /// When the process started, in the kernel's ticks since boot: numbers are used again.
    pub started: u64,
    /// Process id.
    pub process: u32,
}

/// A claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// The volume as the claimant knows it.
    pub volume_id: VolumeId,
    /// Number of the member that this copy lies on.
    pub member: MemberId,
    /// Identity of that member.
    pub member_uuid: [u8; 16],
    /// It ended in order: no writer has the member any more.
    pub is_given_up: bool,
    /// A renewal follows within so many milliseconds; not 0.
    pub interval_ms: u32,
    /// Random; the same in all renewals, and on all members.
    pub id: [u8; 16],
    /// One more than the highest of those that were found: what is lower is of an earlier opening.
    pub turn: u64,
    /// Rises with every renewal.
    pub count: u64,
    /// When it was made, by the claimant's clock.
    pub since: Timestamp,
    /// Who made the claim.
    pub claimant: Claimant,
}

/// Why a row is no claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// The row is empty: no writer has claimed the member since it was made.
    #[error("it is empty")]
    Empty,
    /// It does not begin as a claim does.
    #[error("the magic bytes are missing")]
    Magic,
    /// A claim of a later version.
    #[error("version {0} is not known")]
    Version(u16),
    /// Damaged, or of another volume.
    #[error("MAC does not match the volume's key")]
    Mac,
    /// A field has a value that no writer gives it.
    #[error("values are out of bounds")]
    Values,
}

impl Claim {
    /// Whose it is.
    pub fn process(&self) -> String {
        let Self { claimant, since, .. } = self;
        format!("process {} on {} (since {since})", claimant.process, claimant.host)
    }

    /// The row of this claim.
    pub fn encode(&self, key: &HeadKey) -> [u8; CLAIM_BYTES] {
        let mut page = [0; CLAIM_BYTES];
        let claimant = &self.claimant;
        let state = if self.is_given_up { GIVEN_UP } else { HELD };
        put(&mut page, at::MAGIC, &MAGIC);
        put(&mut page, at::VERSION, &VERSION.to_le_bytes());
        put(&mut page, at::STATE, &[state, self.member.get()]);
        put(&mut page, at::INTERVAL_MS, &self.interval_ms.to_le_bytes());
        put(&mut page, at::VOLUME_ID, &self.volume_id.0);
        put(&mut page, at::MEMBER_UUID, &self.member_uuid);
        put(&mut page, at::ID, &self.id);
        put(&mut page, at::TURN, &self.turn.to_le_bytes());
        put(&mut page, at::COUNT, &self.count.to_le_bytes());
        put(&mut page, at::SINCE, &self.since.0.to_le_bytes());
        put(&mut page, at::BOOT_ID, &claimant.boot_id);
        put(&mut page, at::PID_NAMESPACE, &claimant.pid_namespace.to_le_bytes());
        put(&mut page, at::STARTED, &claimant.started.to_le_bytes());
        put(&mut page, at::PROCESS, &claimant.process.to_le_bytes());
        let host = start_of(&claimant.host, HOST_BYTES_MAX).as_bytes();
        put(&mut page, at::HOST_BYTES, &[u8::try_from(host.len()).expect("at most 64")]);
        put(&mut page, at::HOST, host);
        put(&mut page, at::MACHINE, &claimant.machine);
        let mac = key.mac(&page);
        put(&mut page, at::MAC, &mac);
        page
    }

    /// Reads a row.
    pub fn decode(page: &[u8; CLAIM_BYTES], key: &HeadKey) -> Result<Self, ClaimError> {
        if page.iter().all(|byte| *byte == 0) {
            return Err(ClaimError::Empty);
        }
        if get::<8>(page, at::MAGIC) != MAGIC {
            return Err(ClaimError::Magic);
        }
        let version = get_u16(page, at::VERSION);
        if version != VERSION {
            return Err(ClaimError::Version(version));
        }
        let mut blank = *page;
        put(&mut blank, at::MAC, &[0; 16]);
        if key.mac(&blank) != get::<16>(page, at::MAC) {
            return Err(ClaimError::Mac);
        }
        let [state, member] = get(page, at::STATE);
        let [host_bytes] = get(page, at::HOST_BYTES);
        let host = page
            .get(at::HOST..at::MACHINE)
            .and_then(|host| host.get(..usize::from(host_bytes)))
            .and_then(|host| core::str::from_utf8(host).ok());
        let (interval_ms, turn) = (get_u32(page, at::INTERVAL_MS), get_u64(page, at::TURN));
        let is_sound = matches!(state, HELD | GIVEN_UP)
            && (1..=INTERVAL_MS_MAX).contains(&interval_ms)
            && turn <= TURN_MAX;
        let host = host.filter(|_| is_sound).ok_or(ClaimError::Values)?;
        Ok(Self {
            volume_id: VolumeId(get(page, at::VOLUME_ID)),
            member: MemberId(member),
            member_uuid: get(page, at::MEMBER_UUID),
            is_given_up: state == GIVEN_UP,
            interval_ms,
            id: get(page, at::ID),
            turn,
            count: get_u64(page, at::COUNT),
            since: Timestamp(get_i64(page, at::SINCE)),
            claimant: Claimant {
                host: host.to_owned(),
                machine: get(page, at::MACHINE),
                boot_id: get(page, at::BOOT_ID),
                pid_namespace: get_u64(page, at::PID_NAMESPACE),
                started: get_u64(page, at::STARTED),
                process: get_u32(page, at::PROCESS),
            },
        })
    }
}

/// A hash of what identifies a machine: others need not know the machine itself.
pub fn machine_of(texts: &[&str]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new_derive_key("wirespool 2026 machine of a claim");
    for text in texts {
        hasher.update(&u64::try_from(text.len()).unwrap_or(u64::MAX).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    get(hasher.finalize().as_bytes(), 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::superblock::copy_offset;

    const KEY: HeadKey = HeadKey([2; 32]);

    fn claim() -> Claim {
        Claim {
            volume_id: VolumeId([1; 16]),
            member: MemberId(3),
            member_uuid: [4; 16],
            is_given_up: false,
            interval_ms: 500,
            id: [5; 16],
            turn: 6,
            count: 7,
            since: Timestamp(-8),
            claimant: Claimant {
                host: "sensor".to_owned(),
                machine: [13; 16],
                boot_id: [9; 16],
                pid_namespace: 10,
                started: 11,
                process: 12,
            },
        }
    }

    #[test]
    fn claims_round_trip() {
        for claim in [claim(), Claim { is_given_up: true, ..claim() }] {
            assert_eq!(Claim::decode(&claim.encode(&KEY), &KEY), Ok(claim));
        }
    }

    #[test]
    fn an_empty_row_is_nobodys() {
        assert_eq!(Claim::decode(&[0; CLAIM_BYTES], &KEY), Err(ClaimError::Empty));
    }

    #[test]
    fn a_long_name_is_cut_between_letters() {
        let host = "\u{e4}".repeat(40);
        let claimant = Claimant { host: format!("a{host}"), ..claim().claimant };
        let read = Claim::decode(&Claim { claimant, ..claim() }.encode(&KEY), &KEY).unwrap();
        assert_eq!(read.claimant.host, format!("a{}", "\u{e4}".repeat(31)));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let page = claim().encode(&KEY);
        for bit in 0..CLAIM_BYTES * 8 {
            let mut damaged = page;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Claim::decode(&damaged, &KEY).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_claim_of_another_volume_is_none() {
        let page = claim().encode(&KEY);
        assert_eq!(Claim::decode(&page, &HeadKey([3; 32])), Err(ClaimError::Mac));
    }

    #[test]
    fn it_lies_behind_the_first_superblocks() {
        let size_bytes = 64 << 20;
        assert_eq!(CLAIM_OFFSET, copy_offset(1, size_bytes) + 4096);
        assert!(CLAIM_OFFSET < copy_offset(2, size_bytes));
    }

    #[test]
    fn values_that_no_writer_gives_are_refused() {
        let spoilt = |offset: usize, bytes: &[u8]| {
            let mut page = claim().encode(&KEY);
            put(&mut page, offset, bytes);
            put(&mut page, at::MAC, &[0; 16]);
            let mac = KEY.mac(&page);
            put(&mut page, at::MAC, &mac);
            Claim::decode(&page, &KEY)
        };
        let refused = Err(ClaimError::Values);
        assert_eq!(spoilt(at::STATE, &[0]), refused);
        assert_eq!(spoilt(at::STATE, &[3]), refused);
        assert_eq!(spoilt(at::INTERVAL_MS, &[0; 4]), refused);
        assert_eq!(spoilt(at::INTERVAL_MS, &(INTERVAL_MS_MAX + 1).to_le_bytes()), refused);
        assert_eq!(spoilt(at::TURN, &(TURN_MAX + 1).to_le_bytes()), refused);
        assert_eq!(spoilt(at::HOST_BYTES, &[65]), refused);
        assert_eq!(spoilt(at::HOST, &[0xff]), refused);
        assert_eq!(spoilt(at::VERSION, &[2]), Err(ClaimError::Version(2)));
    }
}
