//! Reading what is left of a volume: without superblocks, or with fewer members than data columns.
//!
//! A superblock on any member is enough for all: a member without one is known by its heads. With
//! no superblock at all the key of the heads is gone, and any sender of packets may have had
//! the bytes of a head stored. What cannot be forged then is the place: the first row of a slot
//! holds nothing but heads, and every further head of a slot must name the hash of the one before
//! it or, behind damage, the checksum of the body before it; packets do not know either. Which
//! volume, shape and member it is, is found by heads that are followed by the body that they name,
//! never by what lies inside such a body, and then by the first rows of slots all over the ring.
//!
//! Not here: writing. What is found is given as a [`Reader`].

use std::collections::BTreeMap;

use device::{Bounded, LentRead, ReadAt, ReadBudget, side_by_side};
use format::checksum::body_crc;
use format::geometry::{Geometry, RESERVED_BYTES, ROW_BYTES};
use format::head::{HEAD_BYTES, Head, HeadKey, StripeId, VolumeId};
use format::superblock::{EarlierShape, Mark, MemberEntry, Superblock, TimeKnown};
use units::{Epoch, MemberId, Sequence, SlotNumber, Timestamp};

use crate::search::{Known, Newest};
use crate::{Error, Reader, create, superblocks};

/// Slots whose first heads decide between shapes, and which member a device is.
const SLOTS_ASKED: u64 = 256;
/// First heads that are asked for at once while all slots are looked at.
const HEADS_AT_ONCE: usize = 512;
/// Bytes of a device that are looked through for a first head with its body, behind the first one.
const LOOKED_THROUGH_BYTES: u64 = 64 << 20;
/// Bytes read at once meanwhile: no piece is larger.
const WINDOW_BYTES: u64 = 4 << 20;

/// A volume that was found without its superblocks, or with too few members.
#[derive(Debug)]
pub struct Salvaged {
    /// Reads what is there.
    pub reader: Reader,
    /// Some superblock was left, and with it the key that distinguishes heads from forgeries.
    pub has_key: bool,
    /// Places of devices, as given, that hold nothing of the volume.
    pub strangers: Vec<usize>,
    /// Highest watermark that the heads name: everything up to here was acknowledged.
    pub acknowledged: StripeId,
}

/// A volume's shape and identity, by its heads. Columns are those of one head.
type Candidate = (VolumeId, Geometry);

/// Finds the volume on the devices, in any order.
///
/// # Errors
/// [`Error::NothingFound`] when no device holds any of it, and those of superblocks that contradict
/// each other.
pub fn salvage(devices: Vec<Box<dyn ReadAt>>) -> Result<Salvaged, Error> {
    // What a disk that fails slowly does not give, the others may.
    let bounded = |device| Bounded::new(device, ReadBudget::LAST_RESORT);
    let devices: Vec<Bounded> = devices.into_iter().map(bounded).collect();
    let all: Vec<&dyn ReadAt> = devices.iter().map(|device| -> &dyn ReadAt { device }).collect();
    let loaded = superblocks::load_from_all(&all).into_iter();
    let loaded: Vec<Option<Superblock>> = loaded.map(Result::ok).collect();
    let newest = loaded.iter().flatten().max_by_key(|it| it.newness());
    let has_key = newest.is_some();
    let has_all = loaded.iter().all(Option::is_some);
    let base = match newest {
        Some(newest) => newest.clone(),
        None => superblock_from_heads(&all).ok_or(Error::NothingFound)?,
    };
    let key = has_key.then_some(base.head_key);
    let nameless = all.iter().zip(&loaded).filter(|(_, own)| own.is_none());
    let nameless: Vec<&dyn ReadAt> = nameless.map(|(device, _)| *device).collect();
    let mut named = members_from_heads(&nameless, &base, key.as_ref()).into_iter();
    let (mut members, mut strangers) = (Vec::new(), Vec::new());
    for (place, (device, own)) in devices.into_iter().zip(loaded).enumerate() {
        match own.or_else(|| named.next().flatten()) {
            Some(own) => members.push((device.into_inner(), own)),
            None => strangers.push(place),
        }
    }
    let members = with_uuids(members, &base, has_key);
    let mut reader = Reader::of_found(members, has_key)?;
    let newest = newest_of(&mut reader, has_all)?;
    let acknowledged = newest.acknowledged;
    reader.show_through(newest);
    reader.show_whole_stripes_behind();
    Ok(Salvaged { reader, has_key, strangers, acknowledged })
}

/// Where the ring ends: by the search, and where that is led astray by the first heads of all
/// slots. Unless every device has a superblock (`has_all`), those that are left may be of devices
/// that left the volume before its end: nothing says which epochs came up since.
fn newest_of(reader: &mut Reader, has_all: bool) -> Result<Newest, Error> {
    let searched = if has_all { reader.search() } else { Ok(None) };
    if let Ok(Some(newest)) = searched {
        return Ok(newest);
    }
    let mut known = Known::of(reader.membership());
    if !has_all {
        known.settled_epoch = Epoch::MAX;
    }
    let found = reader.with_heads(|heads| crate::search::scan(heads, known));
    let found = found.ok_or(Error::NothingFound)?;
    let acknowledged = reader.watermark_of_newest(&found);
    Ok(Newest { acknowledged, ..found })
}

/// The number and identity of each of these devices by the first heads of slots all over it.
fn members_from_heads(
    devices: &[&dyn ReadAt],
    base: &Superblock,
    key: Option<&HeadKey>,
) -> Vec<Option<Superblock>> {
    let heads = spread_heads(devices, &base.geometry, key).into_iter();
    heads.map(|heads| member_from_heads(heads, base, key)).collect()
}

fn member_from_heads(
    heads: Vec<Head>,
    base: &Superblock,
    key: Option<&HeadKey>,
) -> Option<Superblock> {
    let mut votes: BTreeMap<(MemberId, [u8; 16]), u32> = BTreeMap::new();
    for head in heads {
        if head.stripe.volume_id == base.volume_id {
            *votes.entry((head.piece.member, head.piece.member_uuid)).or_default() += 1;
        }
    }
    let ((member, uuid), _) = votes.into_iter().max_by_key(|&(_, count)| count)?;
    let mut own = Superblock { member, ..base.clone() };
    let entry = own.members.get_mut(member.place())?;
    if key.is_some() && entry.uuid != uuid {
        // It was that member once, before another device took its place.
        return None;
    }
    entry.uuid = uuid;
    Some(own)
}

/// Without any superblock each member knows its own identity alone: all of them are put together.
fn with_uuids(
    mut members: Vec<(Box<dyn ReadAt>, Superblock)>,
    base: &Superblock,
    has_key: bool,
) -> Vec<(Box<dyn ReadAt>, Superblock)> {
    if has_key {
        return members;
    }
    let mut entries = base.members.clone();
    for (_, own) in &members {
        let number = own.member.place();
        if let (Some(entry), Some(found)) = (entries.get_mut(number), own.members.get(number)) {
            *entry = found.clone();
        }
    }
    for (_, own) in &mut members {
        own.members.clone_from(&entries);
    }
    members
}

/// What all heads agree on, as a superblock without a key.
fn superblock_from_heads(devices: &[&dyn ReadAt]) -> Option<Superblock> {
    let mut candidates: Vec<Candidate> = Vec::new();
    let fronts = side_by_side("find", devices, |device| pieces_at_front(*device));
    for head in fronts.into_iter().flatten() {
        let candidate = (head.stripe.volume_id, head.stripe.geometry);
        if !candidates.iter().any(|known| is_same_ring(*known, candidate)) {
            candidates.push(candidate);
        }
    }
    // A forged shape has heads in few of the places where it says they are.
    let count = |candidate: &Candidate| {
        let heads = spread_heads(devices, &candidate.1, None).into_iter().flatten();
        heads.filter(|head| head.stripe.volume_id == candidate.0).count()
    };
    let best = candidates.into_iter().max_by_key(count)?;
    let shapes = shapes(devices, best);
    let (_, newest) = *shapes.last()?;
    let earlier = shapes.windows(2).filter_map(|pair| {
        let [(_, before), (until, _)] = pair else { return None };
        let Geometry { data_columns, parity_columns, .. } = *before;
        let shape = EarlierShape { until: *until, data_columns, parity_columns };
        // A forged head may say anything.
        shape.grew_to(&newest).then_some(shape)
    });
    let members = (0..newest.columns()).map(|_| MemberEntry::new([0; 16], String::new()));
    Some(Superblock {
        volume_id: best.0,
        head_key: HeadKey([0; 32]),
        member: MemberId(0),
        generation: 0,
        geometry: newest,
        // So that the ring is looked for.
        prepared_epoch: Epoch(1),
        joined_epoch: Epoch::NONE,
        joined_start: Sequence(0),
        previous_epoch: Epoch::NONE,
        previous_start: Sequence(0),
        previous_members: 0,
        joined_members: 0,
        expired_through: Timestamp::MIN,
        max_age_ns: 0,
        erases: false,
        qualified: None,
        given_up_before: Sequence(0),
        forgetting: None,
        erased_before: Sequence(0),
        mark: Mark::default(),
        time: TimeKnown::default(),
        created: Timestamp(0),
        window: create::window_of(&newest),
        is_encrypted: false,
        parent: [0; 32],
        earlier: earlier.collect(),
        members: members.collect(),
        spares: Vec::new(),
    })
}

/// The shapes that the ring's stripes have, each with the first sequence seen of it, ascending.
fn shapes(devices: &[&dyn ReadAt], (volume_id, geometry): Candidate) -> Vec<(Sequence, Geometry)> {
    let mut seen: BTreeMap<Sequence, Geometry> = BTreeMap::new();
    let all: Vec<SlotNumber> = geometry.all_slots().collect();
    for slots in all.chunks(HEADS_AT_ONCE) {
        for head in first_heads(devices, &geometry, slots, None).into_iter().flatten() {
            let found = (head.stripe.volume_id, head.stripe.geometry);
            if is_same_ring(found, (volume_id, geometry)) {
                seen.insert(head.stripe.stripe.sequence, head.stripe.geometry);
            }
        }
    }
    let mut shapes: Vec<(Sequence, Geometry)> = Vec::new();
    for (sequence, shape) in seen {
        if shapes.last().is_none_or(|(_, last)| *last != shape) {
            shapes.push((sequence, shape));
        }
    }
    shapes
}

/// One ring: growth changes the columns and nothing else.
fn is_same_ring(one: Candidate, other: Candidate) -> bool {
    let Geometry { data_columns, parity_columns, .. } = one.1;
    one.0 == other.0 && one.1 == Geometry { data_columns, parity_columns, ..other.1 }
}

/// First heads of slots all over the ring, of each device, as far as they are readable and belong
/// there.
fn spread_heads(
    devices: &[&dyn ReadAt],
    geometry: &Geometry,
    key: Option<&HeadKey>,
) -> Vec<Vec<Head>> {
    let step = (geometry.slots / SLOTS_ASKED).max(1);
    let slots =
        geometry.all_slots().step_by(usize::try_from(step).expect("slots fit memory sizes"));
    first_heads(devices, geometry, &slots.collect::<Vec<_>>(), key)
}

/// The first heads of these slots, of each device; all devices read at the same time.
fn first_heads(
    devices: &[&dyn ReadAt],
    geometry: &Geometry,
    slots: &[SlotNumber],
    key: Option<&HeadKey>,
) -> Vec<Vec<Head>> {
    let reads_of = |device: &dyn ReadAt| {
        let offsets = slots.iter().map(|&slot| geometry.offset_of_slot(slot));
        let is_inside = |offset: &u64| offset + u64::from(ROW_BYTES) <= device.size_bytes();
        let page = |offset| LentRead::new(offset, vec![0; HEAD_BYTES]);
        offsets.filter(is_inside).map(page).collect()
    };
    let begun: Vec<_> = devices.iter().map(|device| device.begin(reads_of(*device))).collect();
    let heads = |read: LentRead| {
        read.result.ok()?;
        let slot = geometry.slot_at(read.offset)?;
        first_head(read.bytes.first_chunk()?, geometry, slot, key)
    };
    begun.into_iter().map(|it| it.end().into_iter().filter_map(heads).collect()).collect()
}

fn first_head(
    page: &[u8; HEAD_BYTES],
    geometry: &Geometry,
    slot: SlotNumber,
    key: Option<&HeadKey>,
) -> Option<Head> {
    let head = Head::decode(page, key).ok()?;
    let (stripe, found) = (&head.stripe, &head.stripe.geometry);
    let is_ours = is_same_ring((stripe.volume_id, *found), (stripe.volume_id, *geometry));
    let belongs = stripe.first_row == 0
        && stripe.stripe.sub == 0
        && geometry.slot(stripe.stripe.sequence) == slot
        && found.has_member(head.piece.member)
        && head.piece.column == found.column_of(stripe.stripe.sequence, head.piece.member);
    (is_ours && belongs).then_some(head)
}

/// Heads near the front of a device that are followed by the body that they name. What lies inside
/// such a body is not looked at: it may be a packet with anything in it.
fn pieces_at_front(device: &dyn ReadAt) -> Vec<Head> {
    let (mut at, mut end) = (RESERVED_BYTES, device.size_bytes());
    let mut window = Window { device, begin: 0, bytes: Vec::new() };
    let mut found: Vec<Head> = Vec::new();
    while at + u64::from(ROW_BYTES) <= end {
        let head = window.rows(at, 1).and_then(|page| page.first_chunk());
        let head = head.and_then(|page| Head::decode(page, None).ok());
        let Some(head) = head.filter(|head| is_in_place(head, at)) else {
            at += u64::from(ROW_BYTES);
            continue;
        };
        let rows = u64::from(head.stripe.rows);
        let body = window.rows(at + u64::from(ROW_BYTES), rows);
        let sealed = head.stripe.manifest.get(usize::from(head.piece.column));
        if rows > 0 && body.map(body_crc).as_ref() == sealed {
            if found.is_empty() {
                end = end.min(at + LOOKED_THROUGH_BYTES);
            }
            at += rows * u64::from(ROW_BYTES);
            found.push(head);
        }
        at += u64::from(ROW_BYTES);
    }
    found
}

/// The head says that it lies where it lies.
fn is_in_place(head: &Head, at: u64) -> bool {
    let (stripe, geometry) = (&head.stripe, &head.stripe.geometry);
    let slot_offset = geometry.slot_offset(stripe.stripe.sequence);
    slot_offset + u64::from(stripe.first_row) * u64::from(ROW_BYTES) == at
}

/// A part of a device in memory.
struct Window<'a> {
    device: &'a dyn ReadAt,
    begin: u64,
    bytes: Vec<u8>,
}

impl Window<'_> {
    fn rows(&mut self, at: u64, rows: u64) -> Option<&[u8]> {
        let len = rows * u64::from(ROW_BYTES);
        let held = self.begin..=self.begin + u64::try_from(self.bytes.len()).ok()?;
        if !(held.contains(&at) && held.contains(&(at + len))) {
            let end = self.device.size_bytes().min(at + WINDOW_BYTES.max(len));
            self.bytes.resize(usize::try_from(end.checked_sub(at)?).ok()?, 0);
            self.begin = at;
            if self.bytes.is_empty() || self.device.read_at(at, &mut self.bytes).is_err() {
                // An unreadable stretch hides its rows and nothing else.
                self.read_row_by_row();
            }
        }
        let start = usize::try_from(at - self.begin).ok()?;
        self.bytes.get(start..start + usize::try_from(len).ok()?)
    }

    fn read_row_by_row(&mut self) {
        for (row, bytes) in (0_u64..).zip(self.bytes.chunks_exact_mut(HEAD_BYTES)) {
            let offset = self.begin + row * u64::from(ROW_BYTES);
            if self.device.read_at(offset, bytes).is_err() {
                bytes.fill(0);
            }
        }
    }
}
