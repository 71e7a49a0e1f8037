//! Time, sizes and counts, numbers of a volume, and clock and chance as arguments.
//!
//! The bottom row of crates: types that every crate uses, without I/O and without a clock of
//! their own. Crates take `&dyn Clock`; only `host` implements it with the system's clocks, the
//! simulator with virtual ones.

mod count;
mod epoch;
mod hex;
mod histogram;
mod interface;
mod member;
pub mod number;
mod queue;
mod random;
mod sequence;
mod shown;
mod size;
mod slot;
mod text;
mod time;
mod times;

pub use count::{grouped, plural};
pub use epoch::Epoch;
pub use hex::{hex, unhex};
pub use histogram::Histogram;
pub use interface::InterfaceId;
pub use member::MemberId;
pub use queue::QueueId;
pub use random::{Random, mix};
pub use sequence::{EachSequence, Sequence};
pub use size::{ByteSize, ParseSizeError};
pub use slot::SlotNumber;
pub use text::{around, start_of};
pub use time::{
    CLOCK_STEP_NS, Clock, ClockState, ManualClock, NANOS_PER_SECOND, ParseTimestampError, Sleep,
    Timestamp, is_clock_step, nanos, wall_offset_ns,
};
pub use times::Times;
