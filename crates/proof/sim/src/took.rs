//! How long a campaign takes, by the wall and by the processors.

use std::fs;
use std::time::Instant;

/// Ticks of `/proc/self/stat` a second, on every Linux (`USER_HZ`, proc(5)).
const TICKS_A_SECOND: f64 = 100.0;

/// When a campaign began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begin {
    wall: Instant,
    cpu_s: f64,
}

/// How long it took.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Took {
    pub(crate) wall_s: f64,
    /// Of all threads, kernel included.
    pub(crate) cpu_s: f64,
}

impl Begin {
    #[expect(clippy::disallowed_methods, reason = "a tool measures itself")]
    pub(crate) fn now() -> Self {
        Self { wall: Instant::now(), cpu_s: cpu_s() }
    }

    pub(crate) fn took(self) -> Took {
        Took { wall_s: self.wall.elapsed().as_secs_f64(), cpu_s: cpu_s() - self.cpu_s }
    }
}

/// Processor time of this process so far: fields 14 and 15 behind the name in parentheses.
fn cpu_s() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks = fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS_A_SECOND
}
