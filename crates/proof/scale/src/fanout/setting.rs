//! What is asked, of whom, by which machine.

use core::time::Duration;

use fleet::Limits;
use units::Random;
use units::number::{floor, real, to_u64};

use super::sensor::{Kind, Sensor};
use crate::chance::even;

/// The time that rows lie in: an hour.
const HOUR_NS: i64 = 3_600_000_000_000;

/// How many of ten thousand sensors are of each kind that is not well.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mix(pub(crate) Vec<(Kind, u64)>);

impl Mix {
    /// What a large fleet looks like on a bad day: 5 % of it have something.
    pub(crate) fn usual() -> Self {
        Self(vec![
            (Kind::Dead, 100),
            (Kind::Silent, 50),
            (Kind::Slow, 100),
            (Kind::Stuck, 100),
            (Kind::Cut, 50),
            (Kind::Incomplete, 100),
        ])
    }
}

/// A question, and what it meets.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) sensors: usize,
    pub(crate) mix: Mix,
    /// Rows that each sensor has.
    pub(crate) rows: u64,
    pub(crate) limits: Limits,
    /// Mean of a search; exponential.
    pub(crate) search_ns: i64,
    /// That of a slow one.
    pub(crate) slow_ns: i64,
    /// To a sensor and back.
    pub(crate) way_ns: i64,
    /// Bytes of a row on the way, and of the link a second.
    pub(crate) row_bytes: u64,
    pub(crate) link_bytes: u64,
    /// Cores of the machine that asks.
    pub(crate) cores: usize,
    /// What a connection and a row that is read cost a core, and what a row costs the one thread
    /// that merges.
    pub(crate) connect_ns: i64,
    pub(crate) read_ns: i64,
    pub(crate) take_ns: i64,
}

impl Setting {
    /// The usual limits of `fleet find`, with another patience.
    pub(crate) fn limits(patience: Option<Duration>) -> Limits {
        Limits {
            silence: Duration::from_secs(30),
            deadline: None,
            hedge: Duration::from_secs(1),
            patience,
            memory_bytes: 128 << 20,
        }
    }

    /// The sensors: as many of each kind as the mix says, in an order by chance.
    pub(super) fn sensors(&self, random: &mut Random) -> Vec<Sensor> {
        let mut kinds = Vec::new();
        for (kind, share) in &self.mix.0 {
            let count = floor(real(to_u64(self.sensors) * share) / 10_000.0);
            kinds.extend(core::iter::repeat_n(*kind, count));
        }
        kinds.resize(self.sensors, Kind::Well);
        for at in (1..kinds.len()).rev() {
            let other = usize::try_from(random.below(to_u64(at + 1))).expect("a place");
            kinds.swap(at, other);
        }
        let step = HOUR_NS / self.rows.max(1).cast_signed();
        let row_bytes = usize::try_from(self.row_bytes).unwrap_or(usize::MAX);
        let of = |kind| Sensor::new(kind, self.rows, (even(random, step), step), row_bytes);
        kinds.into_iter().map(of).collect()
    }
}
