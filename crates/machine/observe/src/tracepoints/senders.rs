//! Which process sends a packet by a link of a pair, and which processes end.
//!
//! The kernel hands a packet to the other end of the pair while the process that sent it still
//! runs (`net:netif_rx` of that end). What a timer or an answer sends is no process's and left out.
//! A process that has ended has the name that it ended with (`sched:sched_process_exit`).

use super::decoders;
use super::event::{Happened, Kind, Set, TraceEvent};
use super::not_traced::NotTraced;
use super::place::tracefs;
use crate::perf::ring_size;

const SENT_RING: usize = 1 << 20;
const ENDED_RING: usize = 256 << 10;
/// `netif_rx` counts from behind the header of Ethernet.
const HEADER_BYTES: u32 = 14;

/// A packet that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// When, by `CLOCK_REALTIME`.
    pub at_ns: i64,
    /// Who sent it.
    pub process: u32,
    /// Its length with the header of Ethernet.
    pub bytes: u32,
}

/// Listens to one pair.
#[derive(Debug)]
pub struct Senders {
    sent: Set,
    ended: Set,
    events: Vec<TraceEvent>,
}

impl Senders {
    /// Listens to what comes out at this end of a pair; programs send at the other one.
    pub fn open(end: &str) -> Result<Self, NotTraced> {
        let place = tracefs()?;
        let sent = decoders(&place, &[(Kind::Handed, "net/netif_rx")])?;
        let ended = decoders(&place, &[(Kind::Ended, "sched/sched_process_exit")])?;
        Ok(Self {
            sent: Set::open(sent, &format!("name == \"{end}\""), ring_size(SENT_RING))?,
            ended: Set::open(ended, "", ring_size(ENDED_RING))?,
            events: Vec::new(),
        })
    }

    /// Packets that were sent since the last time, in the order of time.
    pub fn sent(&mut self) -> Vec<Sent> {
        self.sent.read(&mut self.events);
        self.events.sort_by_key(|event| event.time_ns);
        let ahead_ns = realtime_ahead_ns();
        let sent = |event: TraceEvent| match event.happened {
            Happened::Handed { bytes } => Some(Sent {
                at_ns: i64::try_from(event.time_ns).ok()?.saturating_add(ahead_ns),
                process: event.process,
                bytes: bytes.saturating_add(HEADER_BYTES),
            }),
            _ => None,
        };
        self.events.drain(..).filter_map(sent).collect()
    }

    /// Processes that have ended since the last time, with their names.
    pub fn ended(&mut self) -> Vec<(u32, String)> {
        self.ended.read(&mut self.events);
        let ended = |event: TraceEvent| match event.happened {
            // Threads have names of their own.
            Happened::Ended { name } if event.process == event.thread => {
                let len = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
                let name = name.get(..len).unwrap_or_default();
                Some((event.process, String::from_utf8_lossy(name).into_owned()))
            }
            _ => None,
        };
        self.events.drain(..).filter_map(ended).collect()
    }
}

/// How far `CLOCK_REALTIME` is ahead of `CLOCK_MONOTONIC`, by which records have their times.
pub fn realtime_ahead_ns() -> i64 {
    use rustix::time::{ClockId, clock_gettime};
    let [real, monotonic] = [ClockId::Realtime, ClockId::Monotonic].map(|clock| {
        let now = clock_gettime(clock);
        now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec)
    });
    real - monotonic
}
