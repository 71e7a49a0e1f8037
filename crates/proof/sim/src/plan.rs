//! What a seed decides at the start: shape, sizes, and how many faults the volume must bear.

use format::geometry::Geometry;
use format::superblock::TimeKnown;
use volume::{CreateOptions, Layout, geometry_for};

use crate::keys::encrypts;
use crate::random::Random;

/// Which faults a history has. Each stays within what the parity of the volume can bear, but for
/// the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Crashes alone; up to `absent` members at a time are missing, fail or stall, and return.
    Honest { absent: u8 },
    /// So many members, always the same, do anything: write to wrong places or not at all, lie
    /// about flushes, rot, return from an older snapshot, lose their superblocks.
    Faulty { bad: u8 },
    /// Of each row of a stripe so many columns rot or become unreadable, and up to `absent` members
    /// are missing at a time.
    Rot { columns: u8, absent: u8 },
    /// Any damage, and members lost: what is left must be right, and the loss exact.
    Beyond,
}

/// The frame of a history.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) mode: Mode,
    pub(crate) options: CreateOptions,
    pub(crate) geometry: Geometry,
    pub(crate) window: u16,
    /// Bytes of each member; they need not be equal.
    pub(crate) sizes: Vec<u64>,
    /// Mounts and crashes at least.
    pub(crate) cycles: u64,
    /// Operations take time.
    pub(crate) takes_time: bool,
    /// Members are flash, and hear ahead of the head what is needed no more.
    pub(crate) discards: bool,
    /// Packets are encrypted.
    pub(crate) is_encrypted: bool,
}

/// Data and parity columns; often small, because there are more ways to lose.
const SHAPES: [(u8, u8); 18] = [
    (1, 0),
    (1, 0),
    (2, 0),
    (4, 0),
    (1, 1),
    (1, 1),
    (2, 1),
    (2, 1),
    (3, 1),
    (4, 1),
    (7, 1),
    (2, 2),
    (2, 2),
    (3, 2),
    (3, 2),
    (4, 2),
    (4, 2),
    (6, 2),
];

impl Plan {
    pub(crate) fn new(random: &mut Random) -> Self {
        let (data, parity) = random.pick(&SHAPES);
        let piece_bytes = 16 << 10 << random.pick(&[0, 0, 0, 0, 0, 0, 0, 1, 1, 2]);
        let slots_spread = random.pick(&[3, 3, 10, 30]);
        let slots = 16 + random.below(slots_spread);
        let zones = random.pick(&[1, 1, 1, 2, 4]);
        let extent_bytes = (zones > 1).then(|| u64::from(piece_bytes) << random.below(2));
        let layout = Layout { zones, extent_bytes, ..Layout::default() };
        let options = CreateOptions {
            piece_bytes,
            parity_columns: parity,
            layout,
            max_age_ns: 0,
            qualified: None,
            time: TimeKnown::default(),
        };
        let members = usize::from(data + parity);
        let mut smallest = (4 << 20) + slots * u64::from(piece_bytes);
        let (geometry, window) = loop {
            match geometry_for(smallest, members, &options) {
                Ok((geometry, window)) if geometry.slots >= slots => break (geometry, window),
                _ => smallest += 4096,
            }
        };
        let sizes = (0..members).map(|_| smallest + 4096 * random.below(3) * random.below(2));
        let sizes = sizes.collect();
        let mode = mode(parity, random);
        Self {
            // Where rows rot, which of their chunk is lost is not what the model computes.
            is_encrypted: matches!(mode, Mode::Honest { .. }) && encrypts(slots),
            mode,
            options,
            geometry,
            window,
            sizes,
            cycles: 10 + random.below(20),
            takes_time: random.percent(10),
            discards: random.percent(40),
        }
    }

    /// Nothing is damaged: reads succeed as they are.
    pub(crate) fn is_undamaged(&self) -> bool {
        matches!(self.mode, Mode::Honest { .. })
    }

    /// Number of members.
    pub(crate) fn members(&self) -> u8 {
        self.geometry.columns()
    }
}

fn mode(parity: u8, random: &mut Random) -> Mode {
    if random.percent(8) {
        return Mode::Beyond;
    }
    if parity == 0 {
        // One damaged column is already a loss, and must be named as one.
        return random.pick(&[
            Mode::Honest { absent: 0 },
            Mode::Honest { absent: 0 },
            Mode::Rot { columns: 1, absent: 0 },
        ]);
    }
    let some = 1 + u8::from(parity == 2 && random.percent(65));
    match random.below(3) {
        0 => Mode::Honest { absent: some },
        1 => Mode::Faulty { bad: some },
        _ => {
            let absent = if random.percent(50) { parity - 1 } else { 0 };
            Mode::Rot { columns: some.min(parity - absent), absent }
        }
    }
}
