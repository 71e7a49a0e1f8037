//! When each packet goes: places within a loop, and times from places. No clock here.
//!
//! A place is counted in the unit of the pace (nanoseconds of the capture, bits, packets) and
//! turned into a time only at the end, so that no rounding adds up over loops.

use units::number::to_u64;
use units::{NANOS_PER_SECOND, Timestamp};

/// How fast packets go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// With the gaps of the capture, shortened: 1 000 000 millionths are its own speed.
    Captured {
        /// How many times as fast, in millionths; not 0.
        speed_millionths: u64,
    },
    /// So many bits of frames a second, without preamble, checksum and gap.
    Bits {
        /// Bits a second; not 0.
        per_second: u64,
    },
    /// So many packets, evenly.
    Packets {
        /// Packets in 1000 seconds; not 0.
        per_1000_seconds: u64,
    },
    /// One after the other.
    Top,
}

impl Pace {
    /// The speed of the capture itself.
    pub const ORIGINAL: Self = Self::Captured { speed_millionths: 1_000_000 };

    /// Nanoseconds from the start to `place`; `None` where there is no schedule. Saturates after
    /// 292 years.
    pub(crate) fn due_ns(self, place: u64) -> Option<i64> {
        let second = u64::try_from(NANOS_PER_SECOND).expect("a second is positive");
        let (factor, divisor) = match self {
            Self::Captured { speed_millionths } => (1_000_000, speed_millionths),
            Self::Bits { per_second } => (second, per_second),
            Self::Packets { per_1000_seconds } => (1000 * second, per_1000_seconds),
            Self::Top => return None,
        };
        // Most products fit 64 bits, whose division is several times as fast.
        let nanos = place.checked_mul(factor).map_or_else(
            || u128::from(place) * u128::from(factor) / u128::from(divisor),
            |product| u128::from(product / divisor),
        );
        Some(i64::try_from(nanos).unwrap_or(i64::MAX))
    }
}

/// Gives the packets of one loop their places, in the order in which they come.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pace: Pace,
    first: Option<Timestamp>,
    packets: u64,
    bits: u64,
    /// Nanoseconds from the first packet to the latest so far.
    latest_ns: u64,
}

impl Schedule {
    pub(crate) fn new(pace: Pace) -> Self {
        Self { pace, first: None, packets: 0, bits: 0, latest_ns: 0 }
    }

    /// The place of the next packet. One that is captured before its predecessor goes together
    /// with it.
    pub(crate) fn place(&mut self, timestamp: Timestamp, len: usize) -> u64 {
        let first = *self.first.get_or_insert(timestamp);
        let since_first = u64::try_from(timestamp.since(first)).unwrap_or(0);
        self.latest_ns = self.latest_ns.max(since_first);
        let place = match self.pace {
            Pace::Captured { .. } => self.latest_ns,
            Pace::Bits { .. } => self.bits,
            Pace::Packets { .. } | Pace::Top => self.packets,
        };
        self.packets += 1;
        self.bits += to_u64(len) * 8;
        place
    }

    /// The place where the next loop begins: after the last packet and what it takes; in captured
    /// time, after one more gap of mean length.
    pub(crate) fn end(&self) -> u64 {
        match self.pace {
            Pace::Captured { .. } => {
                let gaps = self.packets.saturating_sub(1);
                self.latest_ns + self.latest_ns.checked_div(gaps).unwrap_or(0)
            }
            Pace::Bits { .. } => self.bits,
            Pace::Packets { .. } | Pace::Top => self.packets,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times of the packets of two loops, in microseconds; each packet is a capture time in
    /// microseconds and a length.
    #[track_caller]
    fn check(pace: Pace, packets: &[(i64, usize)], expect: &[i64]) {
        let mut schedule = Schedule::new(pace);
        let places: Vec<u64> = packets
            .iter()
            .map(|&(micros, len)| schedule.place(Timestamp(micros * 1000), len))
            .collect();
        let end = schedule.end();
        let times = (0..2).flat_map(|number| {
            places.iter().map(move |place| pace.due_ns(number * end + place).unwrap() / 1000)
        });
        assert_eq!(times.collect::<Vec<_>>(), expect, "{pace:?}");
    }

    #[test]
    fn gaps_are_those_of_the_capture_and_loops_are_a_mean_gap_apart() {
        let packets = [(1_000_000, 60), (1_000_100, 60), (1_000_400, 60)];
        check(Pace::ORIGINAL, &packets, &[0, 100, 400, 600, 700, 1000]);
        let doubled = Pace::Captured { speed_millionths: 2_000_000 };
        check(doubled, &packets, &[0, 50, 200, 300, 350, 500]);
        let slow = Pace::Captured { speed_millionths: 100_000 };
        check(slow, &packets, &[0, 1000, 4000, 6000, 7000, 10_000]);
    }

    #[test]
    fn a_packet_captured_out_of_order_does_not_go_back_in_time() {
        check(Pace::ORIGINAL, &[(500, 60), (400, 60), (700, 60)], &[0, 0, 200, 300, 300, 500]);
        check(Pace::ORIGINAL, &[(500, 60)], &[0, 0]);
    }

    #[test]
    fn bits_and_packets_are_spread_evenly_over_loops() {
        // 1000 bytes at 8 Mbit/s take 1 ms.
        let packets = [(0, 1000), (0, 2000), (5, 500)];
        let bits = Pace::Bits { per_second: 8_000_000 };
        check(bits, &packets, &[0, 1000, 3000, 3500, 4500, 6500]);
        let packets_per_second = Pace::Packets { per_1000_seconds: 4_000_000 };
        check(packets_per_second, &packets, &[0, 250, 500, 750, 1000, 1250]);
    }

    #[test]
    fn rounding_does_not_add_up() {
        // A third of a million packets a second is no whole number of nanoseconds.
        let pace = Pace::Packets { per_1000_seconds: 3_000_000_000 };
        assert_eq!(pace.due_ns(3_000_000 * 3600), Some(3600 * NANOS_PER_SECOND));
        let bits = Pace::Bits { per_second: 10_000_000_000 };
        assert_eq!(bits.due_ns(10_000_000_000 * 86_400), Some(86_400 * NANOS_PER_SECOND));
        assert_eq!(Pace::ORIGINAL.due_ns(u64::MAX), Some(i64::MAX));
        assert_eq!(Pace::Top.due_ns(5), None);
    }
}
