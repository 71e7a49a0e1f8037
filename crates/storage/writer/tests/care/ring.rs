//! A volume on modelled disks that was recorded into for more than a lap.

use core::ops::ControlFlow;
use std::collections::BTreeSet;

use device::{Device, Modelled, Pool, ReadAt, Timeline, Timing};
use format::claim::{CLAIM_BYTES, CLAIM_OFFSET};
use format::geometry::{Geometry, PIECE_BYTES_MIN, ROW_BYTES};
use format::head::{HEAD_BYTES, Head, HeadKey, Kind, VolumeId};
use format::superblock::MemberEntry;
use units::{Sequence, Timestamp};
use volume::{CreateOptions, Identity, Reader, create};
use writer::{Filled, Opener, Owner, ScrubOptions, ScrubReport, mount, scrub};

pub(crate) const SIZE: u64 = 8 << 20;
pub(crate) const KEY: HeadKey = HeadKey([2; 32]);

/// A volume that was recorded into for more than a lap and closed.
pub(crate) struct Ring {
    pub(crate) timeline: Timeline,
    pub(crate) disks: Vec<Modelled>,
    pub(crate) geometry: Geometry,
    pub(crate) before: Vec<Vec<u8>>,
}

impl Ring {
    pub(crate) fn recorded(data_columns: u8, parity_columns: u8) -> Self {
        let timeline = Timeline::new(Timestamp(1));
        let members = data_columns + parity_columns;
        let disk = |seed: u8| Modelled::new(SIZE, Timing::instant(), &timeline, u64::from(seed));
        let disks: Vec<Modelled> = (0..members).map(disk).collect();
        let entry = |number: u8| MemberEntry::new([number + 1; 16], String::new());
        let identity = Identity {
            volume_id: VolumeId([1; 16]),
            head_key: KEY,
            members: (0..members).map(entry).collect(),
            spares: Vec::new(),
            created: Timestamp(0),
        };
        let options = CreateOptions {
            piece_bytes: PIECE_BYTES_MIN,
            parity_columns,
            ..CreateOptions::default()
        };
        let geometry = create(&mut devices(&disks), &options, &identity).unwrap().geometry;
        let mut ring = Self { timeline, disks, geometry, before: Vec::new() };
        // Slots of one, two and three stripes, slots left early, a second epoch, a clean stop.
        ring.record(data_columns, 150);
        ring.record(data_columns, 250);
        ring.before = ring.disks.iter().map(image).collect();
        ring
    }

    pub(crate) fn record(&self, data_columns: u8, stripes: u16) {
        let pool = Pool::new(256, usize::try_from(PIECE_BYTES_MIN).unwrap()).unwrap();
        let (mut writer, _) = mount(devices(&self.disks), &Opener::alone(&self.timeline)).unwrap();
        for number in 0..stripes {
            let columns = (0..data_columns).map(|column| {
                let mut buffer = pool.take().unwrap();
                let mut state = u32::from(number) << 8 | u32::from(column) | 1;
                for byte in &mut buffer[HEAD_BYTES..] {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    *byte = state.to_be_bytes()[0];
                }
                buffer
            });
            let rows = writer.plan([3, 1, 2, 1][usize::from(number % 4)]).rows;
            let filled = Filled::without_packets(columns.collect(), Kind::Index, rows);
            writer.append(filled, &self.timeline).unwrap();
        }
        writer.close(&self.timeline).unwrap();
    }

    pub(crate) fn reader(&self) -> Reader {
        let readers = self.disks.iter().map(|disk| Box::new(disk.clone()) as Box<dyn ReadAt>);
        Reader::open(readers.collect()).unwrap()
    }

    pub(crate) fn scrub(&self, slots_ahead: usize) -> ScrubReport {
        let mut owner = Owner::claim(devices(&self.disks), &Opener::alone(&self.timeline)).unwrap();
        scrub(&self.reader(), Some(&mut owner), ScrubOptions { slots_ahead }, &mut go_on).unwrap()
    }

    pub(crate) fn look(&self) -> ScrubReport {
        scrub(&self.reader(), None, ScrubOptions::default(), &mut go_on).unwrap()
    }

    /// First and last sequence that may be repaired as a whole: the head that closes the newest
    /// slot lies above the watermark.
    pub(crate) fn repairable(&self) -> (Sequence, Sequence) {
        let reader = self.reader();
        let span = reader.span().unwrap();
        (span.tail + u64::from(reader.superblock().window), span.acknowledged.sequence - 1)
    }

    pub(crate) fn row(&self, sequence: Sequence, row: u64) -> u64 {
        self.geometry.slot_offset(sequence) + row * u64::from(ROW_BYTES)
    }

    /// Rows that mean something: behind a head that closes its slot that is only the last one.
    pub(crate) fn rows_of(reader: &Reader, sequence: Sequence) -> Vec<u64> {
        let heads = reader.heads(sequence).unwrap();
        let of_head = |head: &Head| {
            let (first, rows) = (head.stripe.first_row, head.stripe.rows);
            u64::from(first)..=u64::from(first + rows)
        };
        let last = u64::from(PIECE_BYTES_MIN / ROW_BYTES) - 1;
        let rows: BTreeSet<u64> = heads.iter().flat_map(of_head).chain([last]).collect();
        rows.into_iter().collect()
    }

    pub(crate) fn flip(&self, member: usize, offset: u64) {
        self.disks[member].damage(offset, |row| row[100] ^= 4);
    }

    #[track_caller]
    pub(crate) fn is_as_before(&self) {
        for (member, (disk, before)) in self.disks.iter().zip(&self.before).enumerate() {
            let now = image(disk);
            let place = now.iter().zip(before).position(|(now, before)| now != before);
            assert_eq!(place, None, "member {member}, piece bytes {PIECE_BYTES_MIN}");
        }
    }
}

pub(crate) fn go_on(_: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

pub(crate) fn devices(disks: &[Modelled]) -> Vec<Box<dyn Device>> {
    disks.iter().map(|disk| Box::new(disk.clone()) as Box<dyn Device>).collect()
}

/// What lies on it, but for the claim of those who had it open.
pub(crate) fn image(disk: &Modelled) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(SIZE).unwrap()];
    ReadAt::read_at(disk, 0, &mut bytes).unwrap();
    let claim = usize::try_from(CLAIM_OFFSET).unwrap();
    bytes[claim..claim + CLAIM_BYTES].fill(0);
    bytes
}
