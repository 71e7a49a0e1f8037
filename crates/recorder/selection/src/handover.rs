//! A recorder hands its interfaces over to another process, at a time: of the packets that both see
//! those before it are stored by the one, and those from it on by the other.
//!
//! The kernel stamps a packet once, and gives it with that time to every packet socket. So who has
//! its sockets open before the time, and who still reads a while behind it, see the same packets
//! with the same times, and none is stored twice or by nobody. That is not so where the adapter
//! stamps packets, whose clock is another one, nor with `AF_XDP`: one process alone gets them.
//!
//! The new recorder opens its sockets and asks ([`TakeOver`]); the old one chooses the time, reads
//! on for a while, and ends as it always does. Until it has closed the volume, packets wait in the
//! kernel rings of the new one: what does not fit there is a kernel drop, and counted as that.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use units::Timestamp;

/// A packet of before the time may lie in a kernel ring for so long, with some margin for a queue
/// that has much to do: a block that is not full is given after 50 ms.
pub const BEHIND: Duration = Duration::from_millis(300);

/// Called once the interfaces are open, and before the volume is: has the recorder that has it
/// hand over, and waits for its end.
#[derive(Clone)]
pub struct TakeOver(Arc<Ask>);

type Ask = dyn Fn() -> Result<Option<Timestamp>, String> + Send + Sync;

impl TakeOver {
    /// `ask` gives the time from which on packets are to be stored; `None` where no recorder runs;
    /// or why the one that runs goes on.
    pub fn new(
        ask: impl Fn() -> Result<Option<Timestamp>, String> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(ask))
    }

    /// Asks.
    ///
    /// # Errors
    /// Why the recorder that runs goes on.
    pub fn ask(&self) -> Result<Option<Timestamp>, String> {
        (self.0)()
    }
}

impl fmt::Debug for TakeOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TakeOver")
    }
}

/// From when on, and up to when, this process stores what its interfaces give.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// The first time.
    pub from: Timestamp,
    /// The first time behind it.
    pub until: Timestamp,
}

impl Share {
    /// No other process stores any.
    pub const ALL: Self = Self { from: Timestamp::MIN, until: Timestamp::MAX };

    /// Whether a packet of this time is stored here.
    #[inline]
    pub fn has(self, at: Timestamp) -> bool {
        self.from <= at && at < self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_of_one_of_two_shares() {
        let cut = Timestamp(1_000);
        let (old, new) = (Share { until: cut, ..Share::ALL }, Share { from: cut, ..Share::ALL });
        for at in [0, 999, 1_000, 1_001] {
            let at = Timestamp(at);
            assert!(old.has(at) != new.has(at) && Share::ALL.has(at), "{at}");
        }
    }
}
