//! The head of a piece: one 4 KiB row that is a pcapng Section Header Block and says what the piece
//! is.
//!
//! Layout: docs/format.md, Head. In front of a body the section header takes the whole row. In a
//! head that closes its slot it leaves 12 bytes, in which a local-use block begins that reaches to
//! the end of the slot. So any run of closed slots is a pcapng file.

use crate::checksum::crc32c;
use crate::field::{get, get_i64, get_u16, get_u32, get_u64, put};
use crate::geometry::{GEOMETRY_BYTES, Geometry, MEMBERS_MAX, ROW_BYTES};
use crate::local::{LOCAL_FRAME_BYTES, LOCAL_PADDING};
use crate::recorded::Recorded;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use units::{Epoch, MemberId, Sequence, Timestamp};

mod error;
mod stripe;

pub use crate::geometry::{BODY_ROWS_MAX, HEAD_BYTES};
pub use error::HeadError;
pub use stripe::{SEQUENCE_MAX, StripeId};

/// Bytes of the section header in a head that closes its slot.
const CLOSING_SECTION_HEADER_BYTES: usize = HEAD_BYTES - LOCAL_FRAME_BYTES;
/// The documentation enterprise number (RFC 5612) until one is registered.
pub const ENTERPRISE_NUMBER: u32 = 32473;
/// Custom option, binary, not to be copied into changed files.
pub const OPTION_CUSTOM_BINARY_NO_COPY: u16 = 19373;

const MAGIC: [u8; 8] = *b"wireHEAD";
const VERSION: u16 = 1;
const USER_APPLICATION: [u8; 12] = *b"wirespool\0\0\0";

/// Byte offsets; drawn with their meaning in docs/format.md, Head.
mod at {
    pub(super) const CUSTOM_OPTION: usize = 24;
    pub(super) const COMMON: usize = 32;
    pub(super) const MAGIC: usize = COMMON;
    pub(super) const VOLUME_ID: usize = 40;
    pub(super) const VERSION: usize = 56;
    pub(super) const KIND: usize = 58;
    pub(super) const CHECKSUMS: usize = 59;
    pub(super) const FLAGS: usize = 60;
    pub(super) const CIPHER: usize = 62;
    pub(super) const GEOMETRY: usize = 64;
    pub(super) const EPOCH: usize = 120;
    pub(super) const ROWS: usize = 124;
    pub(super) const FIRST_ROW: usize = 126;
    pub(super) const STRIPE: usize = 128;
    pub(super) const ACKNOWLEDGED: usize = 144;
    pub(super) const PREVIOUS: usize = 160;
    pub(super) const INDEX: usize = 176;
    pub(super) const TIME_MIN: usize = 192;
    pub(super) const TIME_MAX: usize = 200;
    pub(super) const REALTIME: usize = 208;
    pub(super) const BOOTTIME: usize = 216;
    pub(super) const PACKETS: usize = 224;
    pub(super) const CAPTURED_BYTES: usize = 232;
    pub(super) const INTERFACE_DROPS: usize = 240;
    pub(super) const KERNEL_DROPS: usize = 248;
    pub(super) const WRITER_DROPS: usize = 256;
    pub(super) const KEY_ID: usize = 264;
    pub(super) const PREVIOUS_CID: usize = 272;
    pub(super) const MANIFEST: usize = 304;
    pub(super) const PREVIOUS_MANIFEST: usize = 496;
    pub(super) const MANIFEST_HASHES: usize = 688;
    pub(super) const CID: usize = 1072;
    pub(super) const MEMBER: usize = 1104;
    pub(super) const COLUMN: usize = 1105;
    pub(super) const PIECE_PACKETS: usize = 1108;
    pub(super) const MEMBER_UUID: usize = 1112;
    pub(super) const AEAD_TAGS: usize = 1128;
    pub(super) const ROW_CRCS: usize = 1640;
    pub(super) const CRC: usize = 3684;
    pub(super) const MAC: usize = 3688;
    /// The custom option ends here; between the MAC and this point are reserved zeros. Places from
    /// here on are those of a closing head; in others they lie 12 bytes further back.
    pub(super) const USER_APPLICATION_OPTION: usize = 4060;
    pub(super) const END_OF_OPTIONS: usize = 4076;
    pub(super) const SECTION_TRAILER: usize = 4080;
    pub(super) const LOCAL_BLOCK: usize = 4084;
}

const _: () = {
    assert!(
        at::KIND + 1 == at::CHECKSUMS
            && at::WRITER_DROPS + 8 == at::KEY_ID
            && at::KEY_ID + 8 == at::PREVIOUS_CID
    );
    assert!(at::GEOMETRY + GEOMETRY_BYTES == at::EPOCH);
    assert!(at::MANIFEST + 8 * MEMBERS_MAX == at::PREVIOUS_MANIFEST);
    assert!(at::PREVIOUS_MANIFEST + 8 * MEMBERS_MAX == at::MANIFEST_HASHES);
    assert!(at::MANIFEST_HASHES + 16 * MEMBERS_MAX == at::CID);
    assert!(at::AEAD_TAGS + 32 * 16 == at::ROW_CRCS);
    assert!(at::ROW_CRCS + 4 * BODY_ROWS_MAX == at::CRC);
    assert!(at::MAC + 16 <= at::USER_APPLICATION_OPTION);
    assert!(at::LOCAL_BLOCK == CLOSING_SECTION_HEADER_BYTES);
};

/// What a stripe holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// The stripe holds packets.
    Data,
    /// A part of a segment's session index.
    Index,
    /// Wrapped data keys.
    Key,
    /// Nothing: closes the slot.
    Void,
    /// The first stripe of an epoch; closes its slot.
    Epoch,
    /// A sign of life while nothing arrives.
    Heartbeat,
}

impl Kind {
    /// Whether a head of this kind reaches to the end of its slot.
    pub fn closes_slot(self) -> bool {
        matches!(self, Self::Void | Self::Epoch)
    }

    fn encode(self) -> u8 {
        match self {
            Self::Data => 1,
            Self::Index => 2,
            Self::Key => 3,
            Self::Void => 4,
            Self::Epoch => 5,
            Self::Heartbeat => 6,
        }
    }

    fn decode(value: u8) -> Result<Self, HeadError> {
        Ok(match value {
            1 => Self::Data,
            2 => Self::Index,
            3 => Self::Key,
            4 => Self::Void,
            5 => Self::Epoch,
            6 => Self::Heartbeat,
            _ => return Err(HeadError::Kind(value)),
        })
    }
}

/// Highest number of an opening; some are left above, so that the next one can be computed.
pub const EPOCH_MAX: Epoch = Epoch(u32::MAX - 16);
/// Most packets, and bytes, that a stripe counts as stored or lost: sums over a ring stay below
/// 64 bits.
const TOTAL_MAX: u64 = 1 << 40;

/// What identifies a volume in its heads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, JsonSchema)]
#[schemars(with = "String", inline, extend("pattern" = "^[0-9a-f]{32}$"))]
pub struct VolumeId(pub [u8; 16]);

impl core::fmt::Display for VolumeId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// As its text.
impl Serialize for VolumeId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for VolumeId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let wrong = || D::Error::custom(format_args!("{text:?} is no id of a volume"));
        units::unhex(&text).map(Self).ok_or_else(wrong)
    }
}

/// The secret that keys head MACs. It lies only in superblocks, so that no stored packet can forge
/// a head.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HeadKey(pub [u8; 32]);

impl HeadKey {
    /// First 16 bytes of keyed BLAKE3 over a row: what heads, claims and rows of keys carry.
    pub(crate) fn mac(&self, page: &[u8; HEAD_BYTES]) -> [u8; 16] {
        get(blake3::keyed_hash(&self.0, page).as_bytes(), 0)
    }
}

impl core::fmt::Debug for HeadKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("HeadKey(..)")
    }
}

/// Packet sums of a stripe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Packets stored.
    pub packets: u64,
    /// Captured bytes of those.
    pub captured_bytes: u64,
    /// Lost in NIC or driver since the stripe before; unknown counts as 0 here, the pieces'
    /// statistics blocks say.
    pub interface_drops: u64,
    /// Lost because no kernel ring block was free, since the stripe before.
    pub kernel_drops: u64,
    /// Lost because no column was free, since the stripe before.
    pub writer_drops: u64,
}

impl Totals {
    fn decode(page: &[u8; HEAD_BYTES]) -> Self {
        Self {
            packets: get_u64(page, at::PACKETS),
            captured_bytes: get_u64(page, at::CAPTURED_BYTES),
            interface_drops: get_u64(page, at::INTERFACE_DROPS),
            kernel_drops: get_u64(page, at::KERNEL_DROPS),
            writer_drops: get_u64(page, at::WRITER_DROPS),
        }
    }

    fn is_in_range(&self) -> bool {
        let Self { packets, captured_bytes, interface_drops, kernel_drops, writer_drops } = *self;
        let all = [packets, captured_bytes, interface_drops, kernel_drops, writer_drops];
        all.into_iter().all(|total| total <= TOTAL_MAX)
    }
}

/// The common part, the same in every head of a stripe, and what was recorded by then. The hash of
/// the first identifies the stripe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StripeHead {
    /// Id of the volume.
    pub volume_id: VolumeId,
    /// Shape of the volume.
    pub geometry: Geometry,
    /// What the stripe holds.
    pub kind: Kind,
    /// Ended by an orderly stop: nothing of this epoch follows.
    pub clean_stop: bool,
    /// Some body holds blocks that belong to no packet: name resolution, secrets.
    pub extra_blocks: bool,
    /// Number of the data key that the bodies are encrypted with; `None` where they are plain.
    pub key_id: Option<u64>,
    /// Opening of the volume that wrote it.
    pub epoch: Epoch,
    /// Id of the stripe.
    pub stripe: StripeId,
    /// Row of the head within the slot.
    pub first_row: u16,
    /// Body rows that follow the head.
    pub rows: u16,
    /// Watermark when this stripe was submitted: everything up to here was durable.
    pub acknowledged: StripeId,
    /// The stripe before, whose manifest is repeated here; sequence 0 where there is none.
    pub previous: StripeId,
    /// First part of the newest INDEX; sequence 0 where there is none.
    pub index: StripeId,
    /// Earliest packet, UTC; `Timestamp::MAX` without packets.
    pub time_min: Timestamp,
    /// Latest packet, UTC; `Timestamp::MIN` without packets.
    pub time_max: Timestamp,
    /// `CLOCK_REALTIME` when the stripe was sealed.
    pub realtime: Timestamp,
    /// `CLOCK_BOOTTIME` at the same moment.
    pub boottime_ns: i64,
    /// Sums of packets and bytes.
    pub totals: Totals,
    /// Hash of the previous stripe's common part: the chain.
    pub previous_cid: [u8; 32],
    /// CRC-64 of each column's body.
    pub manifest: Vec<u64>,
    /// Manifest of `previous`, so that one bad head leaves a piece verifiable where there is no
    /// parity.
    pub previous_manifest: Vec<u64>,
    /// The stretch that is recorded; not a part of what the identity is computed from.
    pub recorded: Option<Recorded>,
}

/// The own part: what differs between the pieces of a stripe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PieceHead {
    /// Number of the member.
    pub member: MemberId,
    /// Column of the piece within its stripe.
    pub column: u8,
    /// Packets in this piece; 0 where it is encrypted.
    pub packets: u32,
    /// Identity of the member.
    pub member_uuid: [u8; 16],
    /// Address-seeded CRC-32C of each body row.
    pub row_crcs: Vec<u32>,
}

/// A decoded head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// The part that all pieces of the stripe share.
    pub stripe: StripeHead,
    /// The part of this piece alone.
    pub piece: PieceHead,
    /// BLAKE3 of the common part: the stripe's identity.
    pub cid: [u8; 32],
}

/// AES-256-GCM in chunks of 64 KiB: docs/format.md, Encryption.
const CIPHER_AES_256_GCM: u16 = 1;
const FLAG_CLEAN_STOP: u16 = 1;
const FLAG_EXTRA_BLOCKS: u16 = 2;

impl Head {
    /// Builds the head of one piece; the identity is computed here.
    ///
    /// # Panics
    /// When the counts do not fit the format: the caller sealed a stripe that cannot exist.
    pub fn new(stripe: StripeHead, piece: PieceHead) -> Self {
        let mut page = [0; HEAD_BYTES];
        stripe.encode(&mut page);
        let cid = cid_of(&page);
        Self { stripe, piece, cid }
    }

    /// The head as it lies on the disk.
    pub fn encode(&self, key: &HeadKey) -> [u8; HEAD_BYTES] {
        let mut page = [0; HEAD_BYTES];
        self.stripe.encode(&mut page);
        put(&mut page, at::CID, &self.cid);
        let piece = &self.piece;
        assert!(piece.row_crcs.len() == usize::from(self.stripe.rows), "one checksum per body row");
        put(&mut page, at::MEMBER, &[piece.member.get()]);
        put(&mut page, at::COLUMN, &[piece.column]);
        put(&mut page, at::PIECE_PACKETS, &piece.packets.to_le_bytes());
        put(&mut page, at::MEMBER_UUID, &piece.member_uuid);
        for (row, crc) in piece.row_crcs.iter().enumerate() {
            put(&mut page, at::ROW_CRCS + 4 * row, &crc.to_le_bytes());
        }
        encode_section(&mut page, &self.stripe);
        let crc = crc32c(&page);
        put(&mut page, at::CRC, &crc.to_le_bytes());
        let mac = key.mac(&page);
        put(&mut page, at::MAC, &mac);
        page
    }

    /// Reads a head: magic, version, checksum, MAC (when a key is given: only salvage has none),
    /// then ranges, and that nothing else is set in the common part.
    pub fn decode(page: &[u8; HEAD_BYTES], key: Option<&HeadKey>) -> Result<Self, HeadError> {
        if get::<8>(page, at::MAGIC) != MAGIC {
            return Err(HeadError::Magic);
        }
        let version = get_u16(page, at::VERSION);
        if version != VERSION {
            return Err(HeadError::Version(version));
        }
        let mut blank = *page;
        put(&mut blank, at::MAC, &[0; 16]);
        if let Some(key) = key
            && key.mac(&blank) != get::<16>(page, at::MAC)
        {
            return Err(HeadError::Mac);
        }
        put(&mut blank, at::CRC, &[0; 4]);
        let cid = cid_of(page);
        if crc32c(&blank) != get_u32(page, at::CRC) || cid != get::<32>(page, at::CID) {
            return Err(HeadError::Checksum);
        }
        let stripe = StripeHead::decode(page)?;
        let mut again = [0; HEAD_BYTES];
        stripe.encode(&mut again);
        if again.get(at::COMMON..at::CID) != page.get(at::COMMON..at::CID) {
            return Err(HeadError::Unknown);
        }
        let row_crcs =
            (0..usize::from(stripe.rows)).map(|row| get_u32(page, at::ROW_CRCS + 4 * row));
        let piece = PieceHead {
            member: MemberId(page.get(at::MEMBER).copied().unwrap_or_default()),
            column: page.get(at::COLUMN).copied().unwrap_or_default(),
            packets: get_u32(page, at::PIECE_PACKETS),
            member_uuid: get(page, at::MEMBER_UUID),
            row_crcs: row_crcs.collect(),
        };
        Ok(Self { stripe, piece, cid })
    }
}

impl StripeHead {
    /// Times of packets that were in this slot and were forgotten on request: its VOID has them in
    /// the place of those that it holds, and any other VOID has none.
    pub fn forgotten(&self) -> Option<(Timestamp, Timestamp)> {
        let is_one = self.kind == Kind::Void && self.time_min <= self.time_max;
        is_one.then_some((self.time_min, self.time_max))
    }

    /// Length of the local-use block that begins in a head: of a closing one it reaches to the end
    /// of the slot, of an encrypted stripe to that of the body; 0 for other heads.
    pub fn local_block_bytes(&self) -> u32 {
        let frame = u32::try_from(LOCAL_FRAME_BYTES).expect("12 fits");
        if self.key_id.is_some() {
            return u32::from(self.rows) * ROW_BYTES + frame;
        }
        if !self.kind.closes_slot() {
            return 0;
        }
        self.geometry.piece_bytes - (u32::from(self.first_row) + 1) * ROW_BYTES + frame
    }

    fn encode(&self, page: &mut [u8; HEAD_BYTES]) {
        assert!(usize::from(self.rows) <= BODY_ROWS_MAX, "a piece has at most 511 body rows");
        assert!(self.manifest.len() <= MEMBERS_MAX, "a stripe has at most 24 columns");
        put(page, at::MAGIC, &MAGIC);
        put(page, at::VOLUME_ID, &self.volume_id.0);
        put(page, at::VERSION, &VERSION.to_le_bytes());
        put(page, at::KIND, &[self.kind.encode(), 1]);
        let clean_stop = if self.clean_stop { FLAG_CLEAN_STOP } else { 0 };
        let extra_blocks = if self.extra_blocks { FLAG_EXTRA_BLOCKS } else { 0 };
        put(page, at::FLAGS, &(clean_stop | extra_blocks).to_le_bytes());
        if let Some(key_id) = self.key_id {
            put(page, at::CIPHER, &CIPHER_AES_256_GCM.to_le_bytes());
            put(page, at::KEY_ID, &key_id.to_le_bytes());
        }
        self.geometry.encode(page, at::GEOMETRY);
        put(page, at::EPOCH, &self.epoch.get().to_le_bytes());
        put(page, at::ROWS, &self.rows.to_le_bytes());
        put(page, at::FIRST_ROW, &self.first_row.to_le_bytes());
        self.stripe.encode(page, at::STRIPE);
        self.acknowledged.encode(page, at::ACKNOWLEDGED);
        self.previous.encode(page, at::PREVIOUS);
        self.index.encode(page, at::INDEX);
        put(page, at::TIME_MIN, &self.time_min.0.to_le_bytes());
        put(page, at::TIME_MAX, &self.time_max.0.to_le_bytes());
        put(page, at::REALTIME, &self.realtime.0.to_le_bytes());
        put(page, at::BOOTTIME, &self.boottime_ns.to_le_bytes());
        put(page, at::PACKETS, &self.totals.packets.to_le_bytes());
        put(page, at::CAPTURED_BYTES, &self.totals.captured_bytes.to_le_bytes());
        put(page, at::INTERFACE_DROPS, &self.totals.interface_drops.to_le_bytes());
        put(page, at::KERNEL_DROPS, &self.totals.kernel_drops.to_le_bytes());
        put(page, at::WRITER_DROPS, &self.totals.writer_drops.to_le_bytes());
        put(page, at::PREVIOUS_CID, &self.previous_cid);
        put_manifest(page, at::MANIFEST, &self.manifest);
        put_manifest(page, at::PREVIOUS_MANIFEST, &self.previous_manifest);
        if let Some(recorded) = &self.recorded {
            recorded.encode(page);
        }
    }

    fn decode(page: &[u8; HEAD_BYTES]) -> Result<Self, HeadError> {
        let geometry = Geometry::decode(page, at::GEOMETRY)?;
        let [kind, checksums] = get(page, at::KIND);
        let (rows, first_row) = (get_u16(page, at::ROWS), get_u16(page, at::FIRST_ROW));
        let kind = Kind::decode(kind)?;
        let end = u32::from(first_row) + 1 + u32::from(rows);
        if checksums != 1
            || end > u32::from(geometry.rows_per_slot())
            || (kind.closes_slot() && rows != 0)
        {
            return Err(HeadError::Counts);
        }
        let key_id = match get_u16(page, at::CIPHER) {
            0 => None,
            CIPHER_AES_256_GCM if kind == Kind::Data && rows > 0 => Some(get_u64(page, at::KEY_ID)),
            _ => return Err(HeadError::Counts),
        };
        let columns = usize::from(geometry.data_columns + geometry.parity_columns);
        let previous = StripeId::decode(page, at::PREVIOUS);
        let epoch = Epoch(get_u32(page, at::EPOCH));
        let stripe = StripeId::decode(page, at::STRIPE);
        let [acknowledged, index] =
            [at::ACKNOWLEDGED, at::INDEX].map(|place| StripeId::decode(page, place));
        let totals = Totals::decode(page);
        let named = [stripe, previous, acknowledged, index];
        if named.into_iter().any(|stripe| stripe.sequence > SEQUENCE_MAX)
            || stripe.sub >= geometry.rows_per_slot()
            || epoch > EPOCH_MAX
            || !totals.is_in_range()
        {
            return Err(HeadError::Counts);
        }
        let previous_columns = if previous.sequence == Sequence(0) { 0 } else { columns };
        Ok(Self {
            volume_id: VolumeId(get(page, at::VOLUME_ID)),
            geometry,
            kind,
            clean_stop: get_u16(page, at::FLAGS) & FLAG_CLEAN_STOP != 0,
            extra_blocks: get_u16(page, at::FLAGS) & FLAG_EXTRA_BLOCKS != 0,
            key_id,
            epoch,
            stripe,
            first_row,
            rows,
            acknowledged,
            previous,
            index,
            time_min: Timestamp(get_i64(page, at::TIME_MIN)),
            time_max: Timestamp(get_i64(page, at::TIME_MAX)),
            realtime: Timestamp(get_i64(page, at::REALTIME)),
            boottime_ns: get_i64(page, at::BOOTTIME),
            totals,
            previous_cid: get(page, at::PREVIOUS_CID),
            manifest: get_manifest(page, at::MANIFEST, columns),
            previous_manifest: get_manifest(page, at::PREVIOUS_MANIFEST, previous_columns),
            recorded: Recorded::decode(page),
        })
    }
}

fn put_manifest(page: &mut [u8; HEAD_BYTES], offset: usize, crcs: &[u64]) {
    for (column, crc) in crcs.iter().enumerate() {
        put(page, offset + 8 * column, &crc.to_le_bytes());
    }
}

fn get_manifest(page: &[u8; HEAD_BYTES], offset: usize, columns: usize) -> Vec<u64> {
    (0..columns).map(|column| get_u64(page, offset + 8 * column)).collect()
}

fn cid_of(page: &[u8; HEAD_BYTES]) -> [u8; 32] {
    let common = page.get(at::COMMON..at::CID).expect("the common part lies inside the head");
    *blake3::hash(common).as_bytes()
}

/// The pcapng frame around our fields: the section header takes the whole row in front of a body,
/// so that interface descriptions follow it at once; in a closing head it leaves 12 bytes for a
/// local-use block.
fn encode_section(page: &mut [u8; HEAD_BYTES], stripe: &StripeHead) {
    const BLOCK_SECTION_HEADER: u32 = 0x0a0d_0d0a;
    const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
    const OPTION_SHB_USERAPPL: u16 = 4;
    let local_bytes = stripe.local_block_bytes();
    let moved = if local_bytes == 0 { LOCAL_FRAME_BYTES } else { 0 };
    let header_bytes = u32::try_from(CLOSING_SECTION_HEADER_BYTES + moved).expect("4096 fits");
    let body_bytes = i64::from(stripe.rows) * i64::from(ROW_BYTES);
    // The block of an encrypted stripe is its body and the 12 bytes in front of it.
    let section_bytes = if local_bytes == 0 { body_bytes } else { i64::from(local_bytes) };
    put(page, 0, &BLOCK_SECTION_HEADER.to_le_bytes());
    put(page, 4, &header_bytes.to_le_bytes());
    put(page, 8, &BYTE_ORDER_MAGIC.to_le_bytes());
    put(page, 12, &1_u16.to_le_bytes());
    put(page, 16, &section_bytes.to_le_bytes());
    let user_application = at::USER_APPLICATION_OPTION + moved;
    let option_length = u16::try_from(user_application - at::CUSTOM_OPTION - 4).expect("short");
    put(page, at::CUSTOM_OPTION, &OPTION_CUSTOM_BINARY_NO_COPY.to_le_bytes());
    put(page, at::CUSTOM_OPTION + 2, &option_length.to_le_bytes());
    put(page, at::CUSTOM_OPTION + 4, &ENTERPRISE_NUMBER.to_le_bytes());
    put(page, user_application, &OPTION_SHB_USERAPPL.to_le_bytes());
    put(page, user_application + 2, &9_u16.to_le_bytes());
    put(page, user_application + 4, &USER_APPLICATION);
    put(page, at::END_OF_OPTIONS + moved, &[0; 4]);
    put(page, at::SECTION_TRAILER + moved, &header_bytes.to_le_bytes());
    if local_bytes > 0 {
        put(page, at::LOCAL_BLOCK, &LOCAL_PADDING.to_le_bytes());
        put(page, at::LOCAL_BLOCK + 4, &local_bytes.to_le_bytes());
    }
    if usize::try_from(local_bytes) == Ok(LOCAL_FRAME_BYTES) {
        // It is complete by itself.
        put(page, at::LOCAL_BLOCK + 8, &local_bytes.to_le_bytes());
    }
}

#[cfg(test)]
mod tests;
