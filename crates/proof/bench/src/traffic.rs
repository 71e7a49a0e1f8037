//! Whole conversations as a pcap file: the same bytes for the same numbers.
//!
//! Handshakes, greetings with names, data with acknowledgements, a few losses and overtakings,
//! orderly ends, questions to name servers, streams of datagrams; one of ten pairs speaks IPv6.
//! Conversations begin over the first nine tenths of the time and overlap; a long transfer is
//! always under way, and fills up what is missing at the end. A frame has about 640 bytes, and one
//! comes in 2 us on average. This is what a recorder meets; the mix has no handshakes and no names,
//! and nearly all of its segments are out of order.

use core::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use anyhow::Result;
use units::number::{floor, real, to_u64};

use crate::chance::Chance as _;
use crate::conversation::{Conversations, Frames};
use crate::pcap_file::PcapFile;

/// Bytes of the long transfers.
const LONG_BYTES: usize = 1_400_000;
const MICROS_A_PACKET: u64 = 2;

/// A conversation under way, ordered by the time of its next frame.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct UnderWay {
    time_us: u64,
    number: u64,
    frames: Frames,
    /// Mean time between frames, in nanoseconds.
    gap_ns: u64,
    is_long: bool,
}

/// All conversations of a file.
struct Traffic {
    conversations: Conversations,
    /// When each conversation begins, the last first.
    starts: Vec<u64>,
    duration_us: u64,
    under_way: BinaryHeap<Reverse<UnderWay>>,
    now_us: u64,
    begun: u64,
    has_long: bool,
}

impl Traffic {
    fn new(packets: u32, flows: u32) -> Self {
        let mut conversations = Conversations::new(7);
        let duration_us = u64::from(packets) * MICROS_A_PACKET;
        let random = conversations.random();
        let mut starts: Vec<u64> = (0..flows).map(|_| random.below(duration_us * 9 / 10)).collect();
        starts.sort_unstable_by_key(|&start| Reverse(start));
        let under_way = BinaryHeap::new();
        let (now_us, begun, has_long) = (0, 0, false);
        Self { conversations, starts, duration_us, under_way, now_us, begun, has_long }
    }

    /// The next frame, and when it comes.
    fn next(&mut self) -> (u64, Vec<u8>) {
        self.begin();
        let Reverse(mut first) = self.under_way.pop().expect("a long transfer is under way");
        self.now_us = self.now_us.max(first.time_us);
        let frame = first.frames.pop_front().expect("one without frames is not under way");
        if !first.frames.is_empty() {
            let gap_us = real(first.gap_ns) / 1000.0;
            let pause = floor(self.conversations.random().exponential(gap_us));
            first.time_us = self.now_us + 1 + to_u64(pause);
            self.under_way.push(Reverse(first));
        } else if first.is_long {
            self.has_long = false;
        }
        (self.now_us, frame)
    }

    /// Begins the conversations whose time has come, and a long one if none is under way.
    fn begin(&mut self) {
        while let Some(&start) = self.starts.last()
            && self.under_way.peek().is_none_or(|Reverse(first)| start <= first.time_us)
        {
            self.starts.pop();
            let frames = self.conversations.any();
            let share = real(self.duration_us) / 8.0 / real(to_u64(frames.len()));
            let gap_us = (self.conversations.random().log_normal() * share).max(2.0);
            self.enter(start, frames, gap_us, false);
        }
        if !self.has_long {
            self.has_long = true;
            let frames = self.conversations.tcp(LONG_BYTES);
            let gap_us = if self.starts.is_empty() { 2.0 } else { 10.0 };
            self.enter(self.now_us + 1, frames, gap_us, true);
        }
    }

    /// `mean_gap` is in microseconds.
    fn enter(&mut self, time_us: u64, frames: Frames, mean_gap: f64, is_long: bool) {
        self.begun += 1;
        let (number, gap_ns) = (self.begun, to_u64(floor(mean_gap * 1000.0)));
        self.under_way.push(Reverse(UnderWay { time_us, number, frames, gap_ns, is_long }));
    }
}

/// Writes so many packets of so many conversations to `path` and returns the file's bytes.
pub(crate) fn write(path: &Path, packets: u32, flows: u32) -> Result<u64> {
    let mut file = PcapFile::create(path)?;
    let mut traffic = Traffic::new(packets, flows);
    for _ in 0..packets {
        let (time_us, frame) = traffic.next();
        file.record(time_us, &frame)?;
    }
    file.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use format::session_row::State;
    use session::{Config, SessionRow, Table};

    use super::*;
    use crate::packets::Packets;

    const PACKETS: u32 = 30_000;
    const FLOWS: u32 = 2000;

    fn rows(packets: &Packets) -> Vec<SessionRow> {
        let mut rows = Vec::new();
        let mut table = Table::new(Config::default(), 1);
        table.push_all(packets.views(), &mut rows);
        table.finish(&mut rows);
        rows
    }

    #[test]
    fn the_file_is_the_same_every_time_and_has_as_many_packets_as_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| directory.path().join(name));
        let bytes = write(&one, PACKETS, FLOWS).unwrap();
        write(&two, PACKETS, FLOWS).unwrap();
        let file = std::fs::read(&one).unwrap();
        assert_eq!((to_u64(file.len()), &file), (bytes, &std::fs::read(&two).unwrap()));
        let packets = Packets::read(&one).unwrap();
        assert_eq!(packets.count(), 30_000);
        let mean = bytes / 30_000 - 16;
        assert!((500..800).contains(&mean), "{mean}");
    }

    #[test]
    fn conversations_are_whole_and_have_names() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("traffic");
        write(&path, PACKETS, FLOWS).unwrap();
        let rows = rows(&Packets::read(&path).unwrap());
        // A stream of datagrams goes to up to three ports.
        assert!((1900..2600).contains(&rows.len()), "{}", rows.len());
        let count =
            |test: &dyn Fn(&SessionRow) -> bool| rows.iter().filter(|row| test(row)).count();
        let tcp = count(&|row| row.tuple.proto == wire::Protocol::TCP);
        let whole = count(&|row| row.state == State::Sf && row.handshake_ns.is_some());
        assert!(whole * 10 >= tcp * 8, "{whole} of {tcp}");
        let named = count(&|row| row.names.sni.is_some());
        assert!((900..1400).contains(&named), "{named}");
        let asked: BTreeSet<_> = rows.iter().flat_map(|row| row.names.dns_names.clone()).collect();
        assert!(asked.len() > 50, "{}", asked.len());
        assert!(
            count(&|row| row.orig.retransmitted_packets + row.resp.retransmitted_packets > 0) > 0
        );
        assert!(count(&|row| matches!(row.tuple.orig, wire::Address::V6(_))) > 100);
    }
}
