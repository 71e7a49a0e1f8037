//! What repeated measurements say, and what they do not.
//!
//! Series and samples of rates or latencies go in, findings come out: how wide a value spreads
//! ([`Sample`]), how sure it is ([`interval`], [`paired`]), whether there are two modes ([`modes`])
//! and which recorded factor separates them ([`explain`], [`separations`]), where a series changed
//! ([`changes`]), whether it drifts ([`drift`], [`trend`], [`Cusum`]), whether runs differ or
//! windows within them ([`intraclass`]). Formulas, thresholds and their calibration:
//! docs/statistics.md.
//!
//! Pure: no clock, no I/O, and chance is an argument ([`units::Random`]). Nothing here knows what
//! was measured. Non-finite values are refused or passed over, as each function says, and never
//! give a finding.

mod change;
mod cusum;
mod dip;
mod factor;
mod interval;
mod isotonic;
mod modes;
mod normal;
mod paired;
mod pelt;
mod random;
mod rank;
mod recorded;
mod sample;
mod thresholds;
mod trend;
mod variance;

pub use change::{CHANGE_LEAST, Change, changes};
pub use cusum::{Alarm, Cusum};
pub use dip::dip;
pub use factor::{Explanation, Factor, Levels, explain};
pub use interval::{Interval, effective_count, interval, lag_one};
pub use isotonic::falling;
pub use modes::{Mode, Modes, Rule, modes};
pub use normal::normal_tail;
pub use paired::{Effect, paired};
pub use pelt::segments;
pub use random::Draw;
pub use rank::mann_whitney;
pub use recorded::{Cell, Column, Level, Separation, separations};
pub use sample::Sample;
pub use thresholds::{SIZES as THRESHOLD_SIZES, Thresholds};
pub use trend::{Drift, Trend, drift, trend};
pub use variance::intraclass;
