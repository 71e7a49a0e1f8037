//! The superblock: what must be known before the first head can be read.
//!
//! Four copies on every member, in different places; each says which copy it is, so that a
//! misdirected read shows. Layout: docs/format.md, Superblock. Written when a volume is created,
//! opened for writing and changed in its members; while data flows only where packets have a
//! maximum age, twice a minute.

use crate::checksum::crc32c;
use crate::field::{get, get_i64, get_u16, get_u32, get_u64, put};
use crate::geometry::{GEOMETRY_BYTES, Geometry, MEMBERS_MAX, RESERVED_BYTES, ROW_BYTES};
use crate::head::{EPOCH_MAX, HeadError, HeadKey, SEQUENCE_MAX, StripeId, VolumeId};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use thiserror::Error;
use units::{Clock, Epoch, MemberId, Sequence, Timestamp};

/// Bytes of a superblock.
pub const SUPERBLOCK_BYTES: usize = 4096;
/// Copies on every member.
pub const SUPERBLOCK_COPIES: u8 = 4;
/// Longest path of a member that is remembered.
pub const MEMBER_PATH_BYTES_MAX: usize = 88;
/// Most shapes that a volume had before and that its ring still holds stripes of.
pub const EARLIER_SHAPES_MAX: usize = 8;

const MAGIC: [u8; 8] = *b"wireSUPR";
const VERSION: u16 = 1;
/// Of a volume whose packets are encrypted: who does not know how must not write to it.
const VERSION_ENCRYPTED: u16 = 2;
const MEMBER_ENTRY_BYTES: usize = 128;
const EARLIER_ENTRY_BYTES: usize = 16;

/// Byte offsets; drawn with their meaning in docs/format.md, Superblock.
mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION: usize = 8;
    pub(super) const COPY: usize = 10;
    pub(super) const MEMBER: usize = 11;
    pub(super) const CRC: usize = 12;
    pub(super) const VOLUME_ID: usize = 16;
    pub(super) const HEAD_KEY: usize = 32;
    pub(super) const GENERATION: usize = 64;
    pub(super) const GEOMETRY: usize = 72;
    pub(super) const PREPARED_EPOCH: usize = 128;
    pub(super) const JOINED_EPOCH: usize = 132;
    pub(super) const JOINED_START: usize = 136;
    pub(super) const PREVIOUS_EPOCH: usize = 144;
    pub(super) const PREVIOUS_MEMBERS: usize = 148;
    pub(super) const EXPIRED_THROUGH: usize = 152;
    pub(super) const CREATED: usize = 160;
    pub(super) const WINDOW: usize = 168;
    pub(super) const JOINED_MEMBERS: usize = 170;
    pub(super) const PARENT: usize = 176;
    pub(super) const EARLIER: usize = 208;
    pub(super) const PREVIOUS_START: usize = 336;
    pub(super) const MAX_AGE: usize = 344;
    pub(super) const GIVEN_UP_BEFORE: usize = 352;
    pub(super) const ERASED_BEFORE: usize = 360;
    pub(super) const ERASES: usize = 368;
    pub(super) const QUALIFIED_BY: usize = 369;
    pub(super) const QUALIFIED_AT: usize = 376;
    pub(super) const GUARANTEED: usize = 384;
    pub(super) const MEAN: usize = 392;
    pub(super) const QUALIFIED_POOL: usize = 400;
    pub(super) const LONGEST_WRITE: usize = 408;
    pub(super) const REPORT: usize = 416;
    pub(super) const MARK_SEQUENCE: usize = 432;
    pub(super) const MARK_SUB: usize = 440;
    pub(super) const MARK_STOPPED: usize = 442;
    pub(super) const MARK_AT: usize = 448;
    pub(super) const MARK_UNTIL: usize = 456;
    pub(super) const CIPHER: usize = 464;
    pub(super) const EXPLAINED: usize = 472;
    pub(super) const EXPLAINED_BOOTTIME: usize = 480;
    pub(super) const EARLY_BEFORE: usize = 488;
    pub(super) const EARLY_FROM: usize = 496;
    pub(super) const EXPLAINED_BOOT: usize = 504;
    pub(super) const MEMBERS: usize = 512;
    pub(super) const FORGET_FIRST: usize = 3584;
    pub(super) const FORGET_LAST: usize = 3592;
    pub(super) const END: usize = FORGET_LAST + 8;
}

/// Byte offsets within the entry of a member.
mod entry {
    pub(super) const UUID: usize = 0;
    /// 1 for a member, 2 for a spare; and the length of the path.
    pub(super) const PRESENT: usize = 16;
    pub(super) const PATH: usize = 24;
    pub(super) const STALE_FROM: usize = 112;
    pub(super) const CLEAN_FROM: usize = 120;
}

/// Byte offsets within the entry of an earlier shape.
mod earlier {
    pub(super) const UNTIL: usize = 0;
    /// Data columns, parity columns.
    pub(super) const COLUMNS: usize = 8;
}

/// Highest generation; some are left above, so that the next one can be computed.
pub const GENERATION_MAX: u64 = 1 << 60;

/// `clean_from` of a member that took no part in the newest epoch.
pub const NEVER: Sequence = Sequence::MAX;

const MEMBER: u8 = 1;
const SPARE: u8 = 2;

const _: () = {
    assert!(at::EARLIER + EARLIER_SHAPES_MAX * EARLIER_ENTRY_BYTES == at::PREVIOUS_START);
    assert!(at::PREVIOUS_START + 8 == at::MAX_AGE && at::ERASES + 1 == at::QUALIFIED_BY);
    assert!(at::REPORT + 16 == at::MARK_SEQUENCE && at::MARK_UNTIL + 8 == at::CIPHER);
    assert!(at::CIPHER < at::EXPLAINED && at::EXPLAINED_BOOT + 8 <= at::MEMBERS);
    assert!(at::PARENT + 32 == at::EARLIER);
    assert!(at::GEOMETRY + GEOMETRY_BYTES == at::PREPARED_EPOCH);
    assert!(at::COPY + 1 == at::MEMBER && at::END <= SUPERBLOCK_BYTES);
    assert!(at::MEMBERS + MEMBERS_MAX * MEMBER_ENTRY_BYTES == at::FORGET_FIRST);
    assert!(entry::PATH + MEMBER_PATH_BYTES_MAX == entry::STALE_FROM);
    assert!(
        entry::STALE_FROM + 8 == entry::CLEAN_FROM && entry::CLEAN_FROM + 8 == MEMBER_ENTRY_BYTES
    );
};

/// One member as the volume knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberEntry {
    /// Identity of the member, also in every head on it.
    pub uuid: [u8; 16],
    /// Where it was when the superblock was written, for finding the others; empty when too long.
    pub path: String,
    /// From this sequence on, up to `clean_from`, it has missed what the others did. Where the
    /// range is empty it is whole.
    pub stale_from: Sequence,
    /// Stripes from this sequence on are whole on it again; [`NEVER`] when it took no part in the
    /// newest epoch that this superblock joined.
    pub clean_from: Sequence,
}

/// A device that takes the place of a member that fails.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spare {
    /// Its identity, which it keeps as a member.
    pub uuid: [u8; 16],
    /// Where it was when the superblock was written; empty when too long.
    pub path: String,
}

/// The shape of a volume before it grew: only the numbers of columns ever change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EarlierShape {
    /// Stripes of sequences below this, and not of a still earlier shape, have it.
    pub until: Sequence,
    /// Data columns, K.
    pub data_columns: u8,
    /// Parity columns, P.
    pub parity_columns: u8,
}

impl EarlierShape {
    /// Whether a ring that had this shape may have that one now: it only grows, so that there is a
    /// member for each column of any stripe.
    pub fn grew_to(&self, now: &Geometry) -> bool {
        self.data_columns <= now.data_columns && self.parity_columns <= now.parity_columns
    }
}

/// On what the rates of a qualification stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QualifiedBy {
    /// The surface was written in the order of the ring.
    Writing,
    /// Places of it were written, or all of it in another order.
    Places,
    /// It was read only, which proves nothing of writing but that it is hardly faster.
    Reading,
}

/// What a qualification found of each member before the volume was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Qualified {
    /// On what it stands.
    pub by: QualifiedBy,
    /// Time at which the qualification began.
    #[serde(rename = "started_ns")]
    pub at: Timestamp,
    /// The highest constant arrival, in bytes a second, that never overflows the pool; not 0.
    pub guaranteed_bytes_per_s: u64,
    /// Over a whole lap.
    pub mean_bytes_per_s: u64,
    /// The pool that the guarantee needs, in bytes.
    pub pool_bytes: u64,
    /// The longest write that was seen, in nanoseconds; 0 where none was timed.
    pub longest_write_ns: u64,
    /// The beginning of the BLAKE3 of the report's file.
    #[serde(serialize_with = "in_hex")]
    #[schemars(with = "String", extend("pattern" = "^[0-9a-f]{32}$"))]
    pub report: [u8; 16],
}

fn in_hex<S: Serializer>(bytes: &[u8; 16], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&units::hex(bytes))
}

impl Qualified {
    fn encode(&self, page: &mut [u8; SUPERBLOCK_BYTES]) {
        let by = match self.by {
            QualifiedBy::Writing => 1,
            QualifiedBy::Places => 2,
            QualifiedBy::Reading => 3,
        };
        put(page, at::QUALIFIED_BY, &[by]);
        put(page, at::QUALIFIED_AT, &self.at.0.to_le_bytes());
        put(page, at::GUARANTEED, &self.guaranteed_bytes_per_s.to_le_bytes());
        put(page, at::MEAN, &self.mean_bytes_per_s.to_le_bytes());
        put(page, at::QUALIFIED_POOL, &self.pool_bytes.to_le_bytes());
        put(page, at::LONGEST_WRITE, &self.longest_write_ns.to_le_bytes());
        put(page, at::REPORT, &self.report);
    }

    fn decode(page: &[u8; SUPERBLOCK_BYTES]) -> Result<Option<Self>, SuperblockError> {
        let [by] = get(page, at::QUALIFIED_BY);
        let by = match by {
            0 => return Ok(None),
            1 => QualifiedBy::Writing,
            2 => QualifiedBy::Places,
            3 => QualifiedBy::Reading,
            _ => return Err(SuperblockError::Values),
        };
        let guaranteed_bytes_per_s = get_u64(page, at::GUARANTEED);
        if guaranteed_bytes_per_s == 0 {
            return Err(SuperblockError::Values);
        }
        Ok(Some(Self {
            by,
            at: Timestamp(get_i64(page, at::QUALIFIED_AT)),
            guaranteed_bytes_per_s,
            mean_bytes_per_s: get_u64(page, at::MEAN),
            pool_bytes: get_u64(page, at::QUALIFIED_POOL),
            longest_write_ns: get_u64(page, at::LONGEST_WRITE),
            report: get(page, at::REPORT),
        }))
    }
}

/// How far the ring had come when the superblock was written, and how far it may have come since:
/// where its heads cannot be read, this still says that something was there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mark {
    /// Everything up to here was acknowledged; sequence 0: nothing is known.
    pub acknowledged: StripeId,
    /// Nothing is written beyond this sequence before a superblock says so; 0: no such promise.
    pub until: Sequence,
    /// The writer stopped there in order: this is the newest stripe of its epoch.
    pub is_stopped: bool,
    /// When that was known; 0 together with sequence 0.
    pub at: Timestamp,
}

impl Mark {
    /// A sign of life of the writer; `None` where nothing is known.
    pub fn last_alive(&self) -> Option<Timestamp> {
        (self.acknowledged.sequence > Sequence(0)).then_some(self.at)
    }

    fn encode(&self, page: &mut [u8; SUPERBLOCK_BYTES]) {
        put(page, at::MARK_SEQUENCE, &self.acknowledged.sequence.get().to_le_bytes());
        put(page, at::MARK_SUB, &self.acknowledged.sub.to_le_bytes());
        put(page, at::MARK_STOPPED, &[u8::from(self.is_stopped)]);
        put(page, at::MARK_AT, &self.at.0.to_le_bytes());
        put(page, at::MARK_UNTIL, &self.until.get().to_le_bytes());
    }

    fn decode(page: &[u8; SUPERBLOCK_BYTES]) -> Result<Self, SuperblockError> {
        let [stopped] = get(page, at::MARK_STOPPED);
        let (sequence, sub) =
            (Sequence(get_u64(page, at::MARK_SEQUENCE)), get_u16(page, at::MARK_SUB));
        let mark = Self {
            acknowledged: StripeId { sequence, sub },
            until: Sequence(get_u64(page, at::MARK_UNTIL)),
            is_stopped: stopped == 1,
            at: Timestamp(get_i64(page, at::MARK_AT)),
        };
        let nothing = Self { until: mark.until, ..Self::default() };
        let is_valid = stopped <= 1 && (sequence > Sequence(0) || mark == nothing);
        is_valid.then_some(mark).ok_or(SuperblockError::Values)
    }
}

/// What is known of the time, whatever clocks have said: the maximum age goes by it. Zeros say
/// nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimeKnown {
    /// So late it was when this was written, and no later as far as anything explains.
    pub explained: Timestamp,
    /// Time since boot at the same moment.
    pub boottime_ns: i64,
    /// Which boot of which machine that counts from; 0: not known.
    pub boot: u64,
    /// Stripes before this sequence may have been written by a clock that was behind; 0: none.
    pub early_before: Sequence,
    /// They count as written at this time, whatever their heads say.
    pub early_from: Timestamp,
}

impl TimeKnown {
    /// What a clock says that is believed.
    pub fn by(clock: &dyn Clock) -> Self {
        let (explained, boottime_ns) = (clock.realtime(), clock.boottime_ns());
        Self { explained, boottime_ns, boot: clock.boot(), ..Self::default() }
    }

    fn encode(&self, page: &mut [u8; SUPERBLOCK_BYTES]) {
        put(page, at::EXPLAINED, &self.explained.0.to_le_bytes());
        put(page, at::EXPLAINED_BOOTTIME, &self.boottime_ns.to_le_bytes());
        put(page, at::EARLY_BEFORE, &self.early_before.get().to_le_bytes());
        put(page, at::EARLY_FROM, &self.early_from.0.to_le_bytes());
        put(page, at::EXPLAINED_BOOT, &self.boot.to_le_bytes());
    }

    fn decode(page: &[u8; SUPERBLOCK_BYTES]) -> Self {
        Self {
            explained: Timestamp(get_i64(page, at::EXPLAINED)),
            boottime_ns: get_i64(page, at::EXPLAINED_BOOTTIME),
            boot: get_u64(page, at::EXPLAINED_BOOT),
            early_before: Sequence(get_u64(page, at::EARLY_BEFORE)),
            early_from: Timestamp(get_i64(page, at::EARLY_FROM)),
        }
    }
}

/// A superblock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Superblock {
    /// Id of the volume.
    pub volume_id: VolumeId,
    /// Key of head MACs.
    pub head_key: HeadKey,
    /// Number of the member that this copy lies on; spares are counted behind the members.
    pub member: MemberId,
    /// Rises with every rewrite; the newest valid copy counts.
    pub generation: u64,
    /// Shape of the volume: members, parity, pieces and slots.
    pub geometry: Geometry,
    /// Highest epoch that a mount has begun (PREPARE).
    pub prepared_epoch: Epoch,
    /// Newest epoch that this member joined (JOIN).
    pub joined_epoch: Epoch,
    /// Sequence of the EPOCH stripe of `joined_epoch`.
    pub joined_start: Sequence,
    /// The last epoch before it that surely came up: every writer that could go on without knowing
    /// of this one knows that one. 0: none.
    pub previous_epoch: Epoch,
    /// Sequence of its EPOCH stripe.
    pub previous_start: Sequence,
    /// Members that joined it.
    pub previous_members: u32,
    /// Members that joined it: bit m stands for member m.
    pub joined_members: u32,
    /// No path serves data at or before this time (maximum age).
    pub expired_through: Timestamp,
    /// Packets older than this, in nanoseconds, are not served; 0: whatever their age.
    pub max_age_ns: i64,
    /// What is older than that is also erased from the members.
    pub erases: bool,
    /// No path serves stripes of sequences before this one, whatever their slots still hold.
    pub given_up_before: Sequence,
    /// The first and the last sequence of slots that were about to be forgotten on request: that
    /// was begun and is not done.
    pub forgetting: Option<(Sequence, Sequence)>,
    /// What was measured of each member before the volume was made.
    pub qualified: Option<Qualified>,
    /// On this member nothing is left of stripes before this sequence. Each member says it for
    /// itself.
    pub erased_before: Sequence,
    /// How far the ring had come.
    pub mark: Mark,
    /// How late it is.
    pub time: TimeKnown,
    /// When the volume was created.
    pub created: Timestamp,
    /// W: most stripes in flight, and most slots they may reach over.
    pub window: u16,
    /// Packets and index are encrypted; the keys lie in the reserved ranges of the members.
    pub is_encrypted: bool,
    /// Hash of the superblock that this one replaced.
    pub parent: [u8; 32],
    /// All members by number.
    pub members: Vec<MemberEntry>,
    /// Devices that wait to take a member's place, in that order.
    pub spares: Vec<Spare>,
    /// Shapes before `geometry`, in the order of time.
    pub earlier: Vec<EarlierShape>,
}

/// Why bytes are not a usable superblock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SuperblockError {
    /// No superblock of any volume.
    #[error("no superblock magic")]
    Magic,
    /// Written by a later format.
    #[error("superblock version {0} is not known")]
    Version(u16),
    /// The checksum does not match.
    #[error("superblock checksum does not match")]
    Checksum,
    /// A copy that belongs elsewhere.
    #[error("superblock copy {found} lies where copy {expected} belongs")]
    Copy {
        /// Copy that should be here.
        expected: u8,
        /// Copy that is here.
        found: u8,
    },
    /// Values out of bounds.
    #[error("superblock values are out of bounds")]
    Values,
}

/// Byte offset of a copy on a member of `size_bytes`: two at the front, two at the end.
pub fn copy_offset(copy: u8, size_bytes: u64) -> u64 {
    let end = size_bytes - size_bytes % u64::from(ROW_BYTES);
    let row = u64::from(ROW_BYTES);
    match copy {
        0 => 0,
        1 => row,
        2 => end - 2 * row,
        _ => end - row,
    }
}

/// Smallest member that can hold the reserved ranges at both ends.
pub const MEMBER_BYTES_MIN: u64 = 2 * RESERVED_BYTES;

/// What is kept of a path: all of it, or the name of the file where that is too long, which is then
/// looked for beside the other members.
pub fn kept_path(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or_default();
    let fits = |path: &&str| path.len() <= MEMBER_PATH_BYTES_MAX;
    [path, name].into_iter().find(fits).unwrap_or_default()
}

impl MemberEntry {
    /// A member of a new volume.
    pub fn new(uuid: [u8; 16], path: String) -> Self {
        Self { uuid, path, stale_from: Sequence(0), clean_from: Sequence(0) }
    }

    fn encode(&self, kind: u8, page: &mut [u8; SUPERBLOCK_BYTES], start: usize) {
        let path = kept_path(&self.path).as_bytes();
        put(page, start + entry::UUID, &self.uuid);
        let len = u8::try_from(path.len()).expect("at most 88");
        put(page, start + entry::PRESENT, &[kind, len]);
        put(page, start + entry::PATH, path);
        put(page, start + entry::STALE_FROM, &self.stale_from.get().to_le_bytes());
        put(page, start + entry::CLEAN_FROM, &self.clean_from.get().to_le_bytes());
    }

    /// A device that is about to take a member's place: nothing is on it.
    pub fn blank(uuid: [u8; 16], path: String) -> Self {
        Self { uuid, path, stale_from: Sequence(0), clean_from: NEVER }
    }

    /// A seat without a device: a volume is made without this member, or it was called gone for
    /// good. No device has its identity, which is zero.
    pub fn vacant() -> Self {
        Self::blank([0; 16], String::new())
    }

    /// Whether no device belongs there.
    pub fn is_vacant(&self) -> bool {
        self.uuid == [0; 16]
    }
}

/// Most stripes in flight that a ring may have: a small share of it, or what is in flight could
/// reach round to what is shown.
pub fn window_max(geometry: &Geometry) -> u64 {
    (geometry.slots / 8).clamp(2, 64)
}

impl Superblock {
    /// The copy `copy` as it lies on the disk.
    ///
    /// # Panics
    /// When there are more than 24 members and spares, or more than 8 earlier shapes.
    pub fn encode(&self, copy: u8) -> [u8; SUPERBLOCK_BYTES] {
        let entries = self.members.len() + self.spares.len();
        assert!(entries <= MEMBERS_MAX, "a volume has at most 24 members and spares");
        assert!(self.earlier.len() <= EARLIER_SHAPES_MAX, "a ring holds at most 8 earlier shapes");
        let mut page = [0; SUPERBLOCK_BYTES];
        put(&mut page, at::MAGIC, &MAGIC);
        let version = if self.is_encrypted { VERSION_ENCRYPTED } else { VERSION };
        put(&mut page, at::VERSION, &version.to_le_bytes());
        put(&mut page, at::CIPHER, &[u8::from(self.is_encrypted)]);
        put(&mut page, at::COPY, &[copy, self.member.get()]);
        put(&mut page, at::VOLUME_ID, &self.volume_id.0);
        put(&mut page, at::HEAD_KEY, &self.head_key.0);
        put(&mut page, at::GENERATION, &self.generation.to_le_bytes());
        self.geometry.encode(&mut page, at::GEOMETRY);
        put(&mut page, at::PREPARED_EPOCH, &self.prepared_epoch.get().to_le_bytes());
        put(&mut page, at::JOINED_EPOCH, &self.joined_epoch.get().to_le_bytes());
        put(&mut page, at::JOINED_START, &self.joined_start.get().to_le_bytes());
        put(&mut page, at::PREVIOUS_EPOCH, &self.previous_epoch.get().to_le_bytes());
        put(&mut page, at::PREVIOUS_START, &self.previous_start.get().to_le_bytes());
        put(&mut page, at::PREVIOUS_MEMBERS, &self.previous_members.to_le_bytes());
        put(&mut page, at::EXPIRED_THROUGH, &self.expired_through.0.to_le_bytes());
        put(&mut page, at::MAX_AGE, &self.max_age_ns.to_le_bytes());
        put(&mut page, at::ERASES, &[u8::from(self.erases)]);
        if let Some(qualified) = &self.qualified {
            qualified.encode(&mut page);
        }
        put(&mut page, at::GIVEN_UP_BEFORE, &self.given_up_before.get().to_le_bytes());
        put(&mut page, at::ERASED_BEFORE, &self.erased_before.get().to_le_bytes());
        let (first, last) = self.forgetting.unwrap_or_default();
        put(&mut page, at::FORGET_FIRST, &first.get().to_le_bytes());
        put(&mut page, at::FORGET_LAST, &last.get().to_le_bytes());
        self.mark.encode(&mut page);
        self.time.encode(&mut page);
        put(&mut page, at::CREATED, &self.created.0.to_le_bytes());
        put(&mut page, at::WINDOW, &self.window.to_le_bytes());
        put(&mut page, at::JOINED_MEMBERS, &self.joined_members.to_le_bytes());
        put(&mut page, at::PARENT, &self.parent);
        for (number, shape) in self.earlier.iter().enumerate() {
            let start = at::EARLIER + number * EARLIER_ENTRY_BYTES;
            put(&mut page, start + earlier::UNTIL, &shape.until.get().to_le_bytes());
            let columns = [shape.data_columns, shape.parity_columns];
            put(&mut page, start + earlier::COLUMNS, &columns);
        }
        let spare = |spare: &Spare| MemberEntry::new(spare.uuid, spare.path.clone());
        let members = self.members.iter().map(|member| (MEMBER, member.clone()));
        let entries = members.chain(self.spares.iter().map(|it| (SPARE, spare(it))));
        for (number, (kind, entry)) in entries.enumerate() {
            entry.encode(kind, &mut page, at::MEMBERS + number * MEMBER_ENTRY_BYTES);
        }
        let crc = crc32c(&page);
        put(&mut page, at::CRC, &crc.to_le_bytes());
        page
    }

    /// Reads the copy that lies where copy `copy` belongs.
    pub fn decode(page: &[u8; SUPERBLOCK_BYTES], copy: u8) -> Result<Self, SuperblockError> {
        if get::<8>(page, at::MAGIC) != MAGIC {
            return Err(SuperblockError::Magic);
        }
        let version = get_u16(page, at::VERSION);
        if !matches!(version, VERSION | VERSION_ENCRYPTED) {
            return Err(SuperblockError::Version(version));
        }
        let mut blank = *page;
        put(&mut blank, at::CRC, &[0; 4]);
        if crc32c(&blank) != get_u32(page, at::CRC) {
            return Err(SuperblockError::Checksum);
        }
        let is_encrypted = version == VERSION_ENCRYPTED;
        let [found, member] = get(page, at::COPY);
        if found != copy {
            return Err(SuperblockError::Copy { expected: copy, found });
        }
        let geometry =
            Geometry::decode(page, at::GEOMETRY).map_err(|_: HeadError| SuperblockError::Values)?;
        let (members, spares) = decode_members(page)?;
        let window = get_u16(page, at::WINDOW);
        let max_age_ns = get_i64(page, at::MAX_AGE);
        let [erases] = get(page, at::ERASES);
        if MemberId(member).place() >= members.len() + spares.len()
            || members.len() != usize::from(geometry.columns())
            || window == 0
            || u64::from(window) > window_max(&geometry)
            || max_age_ns < 0
            || erases > 1
            || get::<1>(page, at::CIPHER) != [u8::from(is_encrypted)]
        {
            return Err(SuperblockError::Values);
        }
        let superblock = Self {
            volume_id: VolumeId(get(page, at::VOLUME_ID)),
            head_key: HeadKey(get(page, at::HEAD_KEY)),
            member: MemberId(member),
            generation: get_u64(page, at::GENERATION),
            geometry,
            prepared_epoch: Epoch(get_u32(page, at::PREPARED_EPOCH)),
            joined_epoch: Epoch(get_u32(page, at::JOINED_EPOCH)),
            joined_start: Sequence(get_u64(page, at::JOINED_START)),
            previous_epoch: Epoch(get_u32(page, at::PREVIOUS_EPOCH)),
            previous_start: Sequence(get_u64(page, at::PREVIOUS_START)),
            previous_members: get_u32(page, at::PREVIOUS_MEMBERS),
            joined_members: get_u32(page, at::JOINED_MEMBERS),
            expired_through: Timestamp(get_i64(page, at::EXPIRED_THROUGH)),
            max_age_ns,
            erases: erases == 1,
            qualified: Qualified::decode(page)?,
            given_up_before: Sequence(get_u64(page, at::GIVEN_UP_BEFORE)),
            erased_before: Sequence(get_u64(page, at::ERASED_BEFORE)),
            forgetting: Some((get_u64(page, at::FORGET_FIRST), get_u64(page, at::FORGET_LAST)))
                .filter(|slots| *slots != (0, 0))
                .map(|(first, last)| (Sequence(first), Sequence(last))),
            mark: Mark::decode(page)?,
            time: TimeKnown::decode(page),
            created: Timestamp(get_i64(page, at::CREATED)),
            window,
            is_encrypted,
            parent: get(page, at::PARENT),
            members,
            spares,
            earlier: decode_earlier(page, &geometry)?,
        };
        superblock.is_in_range().then_some(superblock).ok_or(SuperblockError::Values)
    }

    /// Whether all that is counted on from it can be counted on.
    fn is_in_range(&self) -> bool {
        let shapes = self.earlier.iter().map(|shape| shape.until);
        let gaps = self.members.iter().flat_map(|member| {
            [
                member.stale_from,
                if member.clean_from == NEVER { Sequence(0) } else { member.clean_from },
            ]
        });
        let epochs = [self.prepared_epoch, self.joined_epoch, self.previous_epoch];
        let past = self.past();
        past.into_iter().chain(shapes).chain(gaps).all(|sequence| sequence <= SEQUENCE_MAX)
            && epochs.into_iter().all(|epoch| epoch <= EPOCH_MAX)
            // Or a mount would take a ring that was written for one that never was, or begin one
            // that no program may read.
            && (self.prepared_epoch > Epoch::NONE || !self.has_past())
            && self.generation <= GENERATION_MAX
    }

    /// It speaks of something that was recorded.
    fn has_past(&self) -> bool {
        let epochs = [self.joined_epoch, self.previous_epoch];
        self.past().into_iter().any(|sequence| sequence > Sequence(0))
            || epochs.iter().any(|epoch| *epoch > Epoch::NONE)
    }

    /// Sequences of what was recorded; 0 where nothing was.
    fn past(&self) -> [Sequence; 8] {
        let Mark { acknowledged, until, .. } = self.mark;
        let Self { joined_start, previous_start, given_up_before, erased_before, .. } = *self;
        let (marked, early) = (acknowledged.sequence, self.time.early_before);
        let forgetting = self.forgetting.map_or(Sequence(0), |(first, last)| first.max(last));
        [
            joined_start,
            previous_start,
            given_up_before,
            erased_before,
            marked,
            until,
            early,
            forgetting,
        ]
    }

    /// Identity of the member or spare that it lies on.
    ///
    /// # Panics
    /// When `member` is neither a member nor a spare; decoded superblocks name one.
    pub fn own_uuid(&self) -> [u8; 16] {
        let number = self.member.place();
        let spare = || self.spares.get(number - self.members.len()).map(|spare| spare.uuid);
        let member = self.members.get(number).map(|member| member.uuid);
        member.or_else(spare).expect("a superblock names its member")
    }

    /// The shape of the stripes of `sequence`.
    pub fn geometry_at(&self, sequence: Sequence) -> Geometry {
        self.earlier.iter().find(|shape| sequence < shape.until).map_or(self.geometry, |shape| {
            let EarlierShape { data_columns, parity_columns, .. } = *shape;
            Geometry { data_columns, parity_columns, ..self.geometry }
        })
    }

    /// The time up to which nothing is served at `now`.
    pub fn expired_at(&self, now: Timestamp) -> Timestamp {
        let by_age = match self.max_age_ns {
            0 => Timestamp::MIN,
            age_ns => Timestamp(now.0.saturating_sub(age_ns)),
        };
        self.expired_through.max(by_age)
    }

    /// What all members agree on from here, and what the member of `own` says for itself.
    #[must_use]
    pub fn on_member_of(&self, own: &Self) -> Self {
        Self { member: own.member, erased_before: own.erased_before, ..self.clone() }
    }

    /// Of the superblocks of a volume's members, the one with the largest is what all go by: who
    /// joined a later epoch knows more than who has stored more often.
    pub fn newness(&self) -> (Epoch, u64) {
        (self.joined_epoch, self.generation)
    }

    /// The superblock that replaces this one: one generation later, chained to it by hash.
    #[must_use]
    pub fn successor(&self) -> Self {
        let parent = *blake3::hash(&self.encode(0)).as_bytes();
        Self { generation: self.generation + 1, parent, ..self.clone() }
    }
}

fn decode_members(
    page: &[u8; SUPERBLOCK_BYTES],
) -> Result<(Vec<MemberEntry>, Vec<Spare>), SuperblockError> {
    let entries = page.get(at::MEMBERS..at::END).expect("the table lies inside the page");
    let (mut members, mut spares) = (Vec::new(), Vec::new());
    for bytes in entries.chunks_exact(MEMBER_ENTRY_BYTES) {
        let [kind, path_bytes] = get(bytes, entry::PRESENT);
        let uuid = get(bytes, entry::UUID);
        let path = bytes
            .get(entry::PATH..entry::STALE_FROM)
            .and_then(|path| path.get(..usize::from(path_bytes)))
            .and_then(|path| core::str::from_utf8(path).ok())
            .ok_or(SuperblockError::Values)?
            .to_owned();
        match kind {
            0 => break,
            MEMBER if spares.is_empty() => members.push(MemberEntry {
                uuid,
                path,
                stale_from: Sequence(get_u64(bytes, entry::STALE_FROM)),
                clean_from: Sequence(get_u64(bytes, entry::CLEAN_FROM)),
            }),
            SPARE => spares.push(Spare { uuid, path }),
            _ => return Err(SuperblockError::Values),
        }
    }
    Ok((members, spares))
}

/// A shape is that of the stripes below `until`; the first with `until` zero ends the list.
fn decode_earlier(
    page: &[u8; SUPERBLOCK_BYTES],
    geometry: &Geometry,
) -> Result<Vec<EarlierShape>, SuperblockError> {
    let entries = page.get(at::EARLIER..).expect("the table lies inside the page");
    let entries = entries.chunks_exact(EARLIER_ENTRY_BYTES).take(EARLIER_SHAPES_MAX);
    let mut shapes: Vec<EarlierShape> = Vec::new();
    for bytes in entries {
        let until = Sequence(get_u64(bytes, earlier::UNTIL));
        if until == Sequence(0) {
            break;
        }
        let [data_columns, parity_columns] = get(bytes, earlier::COLUMNS);
        let is_sound = Geometry { data_columns, parity_columns, ..*geometry }.check().is_ok();
        let shape = EarlierShape { until, data_columns, parity_columns };
        let is_later = shapes.last().is_none_or(|before| before.until < until);
        if !is_sound || !shape.grew_to(geometry) || !is_later {
            return Err(SuperblockError::Values);
        }
        shapes.push(shape);
    }
    Ok(shapes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{ExtentOrder, PIECE_BYTES_MIN};

    fn superblock() -> Superblock {
        Superblock {
            volume_id: VolumeId([1; 16]),
            head_key: HeadKey([2; 32]),
            member: MemberId(0),
            generation: 5,
            geometry: Geometry {
                data_columns: 1,
                parity_columns: 0,
                order: ExtentOrder::FirstToLast,
                zones: 1,
                piece_bytes: PIECE_BYTES_MIN,
                slots: 40,
                slot0_offset: RESERVED_BYTES,
                slots_per_extent: 1,
                usable_begin: 0,
                usable_end: 8 << 20,
            },
            prepared_epoch: Epoch(4),
            joined_epoch: Epoch(3),
            joined_start: Sequence(99),
            previous_epoch: Epoch(2),
            previous_start: Sequence(88),
            previous_members: 1,
            joined_members: 1,
            expired_through: Timestamp(-3),
            max_age_ns: 7,
            erases: true,
            qualified: Some(Qualified {
                by: QualifiedBy::Places,
                at: Timestamp(13),
                guaranteed_bytes_per_s: 14,
                mean_bytes_per_s: 15,
                pool_bytes: 16,
                longest_write_ns: 17,
                report: [18; 16],
            }),
            given_up_before: Sequence(8),
            erased_before: Sequence(9),
            forgetting: Some((Sequence(25), Sequence(26))),
            mark: Mark {
                acknowledged: StripeId { sequence: Sequence(100), sub: 2 },
                until: Sequence(103),
                is_stopped: true,
                at: Timestamp(19),
            },
            time: TimeKnown {
                explained: Timestamp(20),
                boottime_ns: 21,
                boot: 24,
                early_before: Sequence(22),
                early_from: Timestamp(23),
            },
            created: Timestamp(12),
            window: 4,
            is_encrypted: false,
            parent: [3; 32],
            members: vec![MemberEntry {
                uuid: [6; 16],
                path: "/srv/ring".to_owned(),
                stale_from: Sequence(5),
                clean_from: Sequence(7),
            }],
            spares: vec![Spare { uuid: [7; 16], path: "/srv/spare".to_owned() }],
            earlier: vec![
                EarlierShape { until: Sequence(50), data_columns: 1, parity_columns: 0 },
                EarlierShape { until: Sequence(60), data_columns: 1, parity_columns: 0 },
            ],
        }
    }

    #[test]
    fn a_sequence_has_the_shape_of_its_time() {
        let before = superblock();
        let geometry = Geometry { data_columns: 4, parity_columns: 1, ..before.geometry };
        let shape = |until, data_columns, parity_columns| {
            let shape = EarlierShape { until: Sequence(until), data_columns, parity_columns };
            assert!(shape.grew_to(&geometry) && !shape.grew_to(&before.geometry));
            shape
        };
        let superblock = Superblock {
            geometry,
            earlier: vec![shape(50, 3, 0), shape(60, 3, 1)],
            ..superblock()
        };
        let columns = |sequence| superblock.geometry_at(sequence).columns();
        assert_eq!([49, 50, 59, 60].map(|at| columns(Sequence(at))), [3, 4, 4, 5]);
    }

    #[test]
    fn superblocks_round_trip() {
        for copy in 0..SUPERBLOCK_COPIES {
            assert_eq!(Superblock::decode(&superblock().encode(copy), copy), Ok(superblock()));
        }
    }

    #[test]
    fn a_superblock_without_a_qualification_is_as_it_was_before_there_were_any() {
        let without = Superblock {
            qualified: None,
            mark: Mark::default(),
            time: TimeKnown::default(),
            ..superblock()
        };
        let page = without.encode(0);
        assert!(page[at::QUALIFIED_BY..at::MEMBERS].iter().all(|byte| *byte == 0));
        assert_eq!(Superblock::decode(&page, 0), Ok(without));
    }

    /// A superblock of which some bytes are others, and the checksum right.
    fn spoilt(offset: usize, bytes: &[u8]) -> Result<Superblock, SuperblockError> {
        let mut page = superblock().encode(0);
        put(&mut page, offset, bytes);
        put(&mut page, at::CRC, &[0; 4]);
        let crc = crc32c(&page);
        put(&mut page, at::CRC, &crc.to_le_bytes());
        Superblock::decode(&page, 0)
    }

    #[test]
    fn a_mark_beyond_any_ring_or_of_nothing_is_out_of_bounds() {
        let beyond = (SEQUENCE_MAX + 1).get().to_le_bytes();
        assert_eq!(spoilt(at::MARK_SEQUENCE, &beyond), Err(SuperblockError::Values));
        assert_eq!(spoilt(at::MARK_SEQUENCE, &[0; 8]), Err(SuperblockError::Values));
        assert_eq!(spoilt(at::MARK_UNTIL, &beyond), Err(SuperblockError::Values));
        assert_eq!(spoilt(at::MARK_STOPPED, &[2]), Err(SuperblockError::Values));
        assert!(spoilt(at::MARK_SUB, &[7, 0]).is_ok());
    }

    #[test]
    fn a_qualification_without_a_rate_or_of_an_unknown_kind_is_out_of_bounds() {
        assert_eq!(spoilt(at::QUALIFIED_BY, &[4]), Err(SuperblockError::Values));
        assert_eq!(spoilt(at::GUARANTEED, &[0; 8]), Err(SuperblockError::Values));
        assert!(spoilt(at::MEAN, &[0; 8]).is_ok());
    }

    #[test]
    fn who_has_a_past_knows_that_an_epoch_was_prepared() {
        let none = |prepared_epoch| Superblock {
            prepared_epoch,
            joined_epoch: Epoch(0),
            joined_start: Sequence(0),
            previous_epoch: Epoch(0),
            previous_start: Sequence(0),
            given_up_before: Sequence(0),
            forgetting: None,
            erased_before: Sequence(0),
            mark: Mark::default(),
            time: TimeKnown::default(),
            ..superblock()
        };
        let is_refused = |it: &Superblock| Superblock::decode(&it.encode(0), 0).is_err();
        assert!(!is_refused(&none(Epoch::NONE)) && !is_refused(&none(Epoch(1))));
        let pasts: [fn(&mut Superblock); 10] = [
            |it| it.joined_epoch = Epoch(1),
            |it| it.joined_start = Sequence(1),
            |it| it.previous_epoch = Epoch(1),
            |it| it.previous_start = Sequence(1),
            |it| it.given_up_before = Sequence(1),
            |it| it.erased_before = Sequence(1),
            |it| it.forgetting = Some((Sequence(1), Sequence(1))),
            |it| it.mark.until = Sequence(1),
            |it| it.time.early_before = Sequence(1),
            |it| it.mark.acknowledged = StripeId { sequence: Sequence(1), sub: 0 },
        ];
        for (number, give_past) in pasts.into_iter().enumerate() {
            let (mut unprepared, mut prepared) = (none(Epoch::NONE), none(Epoch(1)));
            give_past(&mut unprepared);
            give_past(&mut prepared);
            assert!(is_refused(&unprepared) && !is_refused(&prepared), "{number}");
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let page = superblock().encode(1);
        for bit in 0..SUPERBLOCK_BYTES * 8 {
            let mut damaged = page;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Superblock::decode(&damaged, 1).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn what_expired_once_stays_expired_whatever_the_clock_says() {
        let superblock = superblock();
        for (now, expired) in [(1000, 993), (5, -2), (-100, -3), (i64::MIN, -3)] {
            assert_eq!(superblock.expired_at(Timestamp(now)), Timestamp(expired));
        }
        let ageless = Superblock { max_age_ns: 0, ..superblock };
        assert_eq!(ageless.expired_at(Timestamp(1000)), Timestamp(-3));
    }

    #[test]
    fn a_copy_in_the_wrong_place_is_refused() {
        let error = Superblock::decode(&superblock().encode(2), 0);
        assert_eq!(error, Err(SuperblockError::Copy { expected: 0, found: 2 }));
    }

    #[test]
    fn copies_lie_apart_inside_the_reserved_ranges() {
        let size = (64 << 20) + 512;
        let offsets: Vec<_> = (0..SUPERBLOCK_COPIES).map(|copy| copy_offset(copy, size)).collect();
        assert_eq!(offsets, [0, 4096, (64 << 20) - 8192, (64 << 20) - 4096]);
    }

    #[test]
    fn a_successor_is_chained() {
        let old = superblock();
        let new = old.successor();
        assert_eq!(new.generation, old.generation + 1);
        assert_ne!(new.parent, old.parent);
    }
}
