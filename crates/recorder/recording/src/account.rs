//! Every packet is in exactly one counter.

use format::directory::Gap;
use serde::{Deserialize, Serialize};
use units::QueueId;

/// What became of the packets of one interface, or of all. Fields are keys in JSON, in this order;
/// what the program of an earlier version did not say is 0.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Account {
    /// Name of the interface; empty for the sum.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Packets that arrived and passed the filter.
    pub offered: u64,
    /// Packets in acknowledged stripes.
    pub stored: u64,
    /// Packets left out by a traffic class.
    pub cut: u64,
    /// Packets left out as copies of the one before.
    pub copies: u64,
    /// Stored packets of which a class kept only the headers.
    pub headers_only: u64,
    /// Packets lost because the kernel ring was full.
    pub kernel_drops: u64,
    /// Packets lost because no column was free, or the member failed.
    pub writer_drops: u64,
    /// Packets on the way: in the kernel ring, a column, or a stripe not yet acknowledged.
    pub in_flight: u64,
    /// Packets lost in NIC or driver; not among the offered. `None` is unknown.
    pub interface_drops: Option<u64>,
    /// Packets that the filter refused; not among the offered. `None` is unknown.
    pub filter_rejects: Option<u64>,
    /// Times the kernel ring was full: packets may have been lost each time, or one only just not.
    pub ring_freezes: u64,
    /// Stored packets that were longer than a piece can hold, and are truncated.
    pub too_long: u64,
    /// The interface is down or was removed: what passes it is not seen, and not counted.
    pub is_away: bool,
    /// How often the interface went down.
    pub times_down: u64,
    /// The same by queue; none for the sum.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueAccount>,
}

/// What one queue has counted of one interface: received is taken, kernel drops, writer drops, and
/// what is in its kernel ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueAccount {
    /// Packets that the kernel gave to this queue, those it then dropped included.
    pub received: u64,
    /// Packets put into columns.
    pub taken: u64,
    /// Packets lost because the queue's kernel ring was full.
    pub kernel_drops: u64,
    /// Times that ring was full.
    pub ring_freezes: u64,
    /// Packets lost because no column was free.
    pub writer_drops: u64,
}

impl Account {
    /// offered = stored + cut + copies + kernel drops + writer drops + in flight.
    pub fn is_balanced(&self) -> bool {
        let lost = self.kernel_drops + self.writer_drops;
        self.offered == self.stored + self.cut + self.copies + lost + self.in_flight
    }

    /// Whether every offered packet is stored, or was left out on purpose.
    pub fn is_lossless(&self) -> bool {
        self.kernel_drops == 0 && self.writer_drops == 0 && self.interface_drops.unwrap_or(0) == 0
    }

    /// Sum of several accounts. What one of them does not know, the sum does not know.
    pub fn sum<'a>(accounts: impl IntoIterator<Item = &'a Self>) -> Self {
        let none = Self { interface_drops: Some(0), filter_rejects: Some(0), ..Self::default() };
        accounts.into_iter().fold(none, |sum, account| Self {
            name: String::new(),
            offered: sum.offered + account.offered,
            stored: sum.stored + account.stored,
            cut: sum.cut + account.cut,
            copies: sum.copies + account.copies,
            headers_only: sum.headers_only + account.headers_only,
            kernel_drops: sum.kernel_drops + account.kernel_drops,
            writer_drops: sum.writer_drops + account.writer_drops,
            in_flight: sum.in_flight + account.in_flight,
            interface_drops: both(sum.interface_drops, account.interface_drops),
            filter_rejects: both(sum.filter_rejects, account.filter_rejects),
            ring_freezes: sum.ring_freezes + account.ring_freezes,
            too_long: sum.too_long + account.too_long,
            is_away: sum.is_away || account.is_away,
            times_down: sum.times_down.saturating_add(account.times_down),
            queues: Vec::new(),
        })
    }
}

/// Packets that were lost together, and how the recorder stood when that was noticed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Loss {
    /// Name of the interface.
    pub interface: String,
    /// Queue of the interface, from 0.
    #[serde(default)]
    pub queue: QueueId,
    /// Why, how many, and between which times; as it is stored.
    #[serde(flatten)]
    pub gap: Gap,
    /// Free columns of the pool.
    pub pool_free: usize,
    /// Slots whose writes had not ended.
    pub unfinished_slots: usize,
    /// Bytes of packets that the queue had stored before the first of these packets.
    #[serde(default)]
    pub stored_bytes_before: u64,
    /// The same behind the last of them.
    #[serde(default)]
    pub stored_bytes_behind: u64,
}

/// What one part does not know, the sum does not know.
pub fn both(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.zip(b).map(|(a, b)| a + b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_knows_only_what_all_know() {
        let known =
            Account { offered: 3, stored: 3, interface_drops: Some(2), ..Account::default() };
        let unknown = Account { offered: 1, writer_drops: 1, ..Account::default() };
        let sum = Account::sum([&known, &unknown]);
        assert_eq!((sum.offered, sum.interface_drops), (4, None));
        assert!(sum.is_balanced() && !sum.is_lossless());
    }
}
