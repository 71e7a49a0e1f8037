//! Every packet offered is in exactly one place.

use serde::Serialize;

/// What those who pass packets on say that they lost. They may count packets of strangers, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Drops {
    /// Lost between the sender's socket and the recorder's: in the interfaces and behind them.
    pub interface: u64,
    /// Lost because the kernel's ring was full.
    pub kernel: u64,
    /// Lost because the recorder had no column free, or its member failed.
    pub writer: u64,
}

/// What became of the packets offered, and what else was found. Fields are keys in JSON, in this
/// order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Account {
    /// Packets that the sending interface took.
    pub offered: u64,
    /// Those that are in the volume as they were sent.
    pub stored: u64,
    /// Those that are there with other bytes only.
    pub altered: u64,
    /// Missing, and dropped by an interface.
    pub interface_drops: u64,
    /// Missing, and dropped by the kernel.
    pub kernel_drops: u64,
    /// Missing, and dropped by the recorder.
    pub writer_drops: u64,
    /// Missing without a known cause.
    pub unexplained: u64,
    /// Copies beyond the first.
    pub duplicated: u64,
    /// Packets behind a later one of their flow.
    pub reordered: u64,
    /// Packets in the recording that were not sent here.
    pub strangers: u64,
}

impl Account {
    /// Explains what is missing. A cause counts for as many packets as are missing: what it counts
    /// beyond that were strangers.
    #[must_use]
    pub(crate) fn explain(mut self, drops: Drops) -> Self {
        let mut missing = self.offered - self.stored - self.altered;
        let mut take = |count: u64| {
            let taken = count.min(missing);
            missing -= taken;
            taken
        };
        // The recorder knows its own losses; an interface counts those of AF_XDP, too.
        self.kernel_drops = take(drops.kernel);
        self.writer_drops = take(drops.writer);
        self.interface_drops = take(drops.interface);
        self.unexplained = missing;
        assert!(self.is_balanced(), "every packet offered is accounted for: {self:?}");
        self
    }

    /// Packets that are not in the volume as they were sent.
    pub fn lost(&self) -> u64 {
        self.altered
            + self.interface_drops
            + self.kernel_drops
            + self.writer_drops
            + self.unexplained
    }

    /// offered = stored + every loss.
    pub fn is_balanced(&self) -> bool {
        self.offered == self.stored + self.lost()
    }

    /// Whether each packet offered is there, once, unchanged and in its place.
    pub fn is_flawless(&self) -> bool {
        self.lost() == 0 && self.duplicated == 0 && self.reordered == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(stored: u64, [interface, kernel, writer]: [u64; 3]) -> [u64; 4] {
        let account = Account { offered: 100, stored, altered: 1, ..Account::default() };
        let account = account.explain(Drops { interface, kernel, writer });
        assert_eq!(account.lost(), 100 - stored);
        let Account { interface_drops, kernel_drops, writer_drops, unexplained, .. } = account;
        [interface_drops, kernel_drops, writer_drops, unexplained]
    }

    #[test]
    fn what_is_missing_is_explained_by_the_recorder_first() {
        assert_eq!(explained(79, [5, 7, 8]), [5, 7, 8, 0]);
        assert_eq!(explained(79, [5, 7, 0]), [5, 7, 0, 8]);
        assert_eq!(explained(99, [5, 7, 8]), [0, 0, 0, 0]);
        assert_eq!(explained(89, [5, 7, 8]), [0, 7, 3, 0]);
        assert_eq!(explained(89, [12, 7, 0]), [3, 7, 0, 0]);
    }

    #[test]
    fn a_copy_or_a_wrong_place_is_a_flaw_and_a_stranger_is_none() {
        let clean = Account { offered: 2, stored: 2, strangers: 3, ..Account::default() };
        assert!(clean.is_flawless());
        assert!(!Account { duplicated: 1, ..clean }.is_flawless());
        assert!(!Account { reordered: 1, ..clean }.is_flawless());
        assert!(!Account { stored: 1, unexplained: 1, ..clean }.is_flawless());
    }
}
