//! Where a recording lost packets, or may soon: processor, disk, memory or card.
//!
//! From the gaps in its volume, from what the recorder says of itself while it runs or said when it
//! ended, and from the processor time of its threads.

mod bursts;
mod disks;
mod functions;
mod losses;
mod state;
mod threads;
mod watch;

use format::directory::Gap;
use units::Timestamp;

use crate::diagnosis::Diagnosis;
use crate::finding::Unseen;
pub use state::parse_recorder;
pub use watch::watch;

/// What is known of a recording.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Recording {
    /// Stretches in which packets are missing, as the volume has them.
    pub gaps: Vec<Gap>,
    /// What the recorder says of itself.
    pub state: Option<State>,
    /// Its threads; none of a recording that has ended.
    pub threads: Vec<Thread>,
    /// In which functions they worked; of a recording that goes on.
    pub functions: Option<Functions>,
}

/// What a recorder says of itself.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct State {
    /// Whether it still records.
    pub is_going: bool,
    /// For how long, in nanoseconds.
    pub elapsed_ns: i64,
    /// Packets that arrived.
    pub offered: u64,
    /// Packets that were stored.
    pub stored: u64,
    /// Bytes that were sent to all members.
    pub member_bytes: u64,
    /// Packets without an index of their own.
    pub unindexed: u64,
    /// Packets that were not looked at for names.
    pub unread: u64,
    /// Columns of the pool.
    pub pool_columns: u64,
    /// State of each interface.
    pub interfaces: Vec<Interface>,
    /// What the disks are asked for, beside what they guarantee; of a qualified volume.
    pub headroom: Option<Headroom>,
    /// Writes that took longer than this are slow, in nanoseconds.
    pub slow_limit_ns: u64,
    /// How many there were.
    pub slow_writes: u64,
    /// The slowest of them, as far as they are kept.
    pub slow: Vec<SlowWrite>,
    /// State of each member.
    pub members: Vec<Member>,
    /// Losses with the state of the pool, as far as they are kept.
    pub losses: Vec<Loss>,
}

/// State of one interface.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Interface {
    /// Name of the interface.
    pub name: String,
    /// Packets that the kernel took and each queue's drops of them.
    pub queues: Vec<(u64, u64)>,
    /// Packets that the card or its driver lost; `None` is unknown.
    pub interface_drops: Option<u64>,
}

/// Bytes a second that the disks are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Headroom {
    /// Rate that the disks guarantee.
    pub guaranteed: u64,
    /// The most in ten seconds.
    pub offered_max: u64,
}

/// A write that took long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlowWrite {
    /// When it was done.
    pub at: Timestamp,
    /// On which member; `None` on a spare.
    pub member: Option<u8>,
    /// Zone of its surface, where it has several.
    pub zone: Option<u16>,
    /// How long it took, in nanoseconds.
    pub latency_ns: u64,
}

/// What a member did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Member {
    /// Path of the member.
    pub path: String,
    /// Number of writes.
    pub writes: u64,
    /// Those of them that were slow.
    pub slow_writes: u64,
    /// Half of the writes took no longer, in nanoseconds.
    pub p50_ns: u64,
    /// The longest write.
    pub max_ns: u64,
    /// Stretches of full load in which it gave less than it was qualified for.
    pub times_slower: u64,
    /// It does so now.
    pub is_slower: bool,
    /// Writes and their longest latency in nanoseconds, by equal parts of the surface.
    pub places: Vec<(u64, u64)>,
}

/// A loss with the state in which it happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loss {
    /// The kernel dropped it: it was not taken in time.
    pub is_kernel: bool,
    /// Packets, where they were counted.
    pub packets: Option<u64>,
    /// Columns of the pool that were free.
    pub pool_free: u64,
    /// Stripes whose writes were under way.
    pub unfinished_slots: u64,
    /// Queue of the interface.
    pub queue: u64,
    /// The first and the last of these packets.
    pub times: (Timestamp, Timestamp),
    /// Bytes of packets that the queue had stored before them, and behind them.
    pub stored_bytes: Option<[u64; 2]>,
}

/// A thread while it was looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Thread {
    /// Its name, which says its part.
    pub name: String,
    /// Thousandths of the time in which it ran.
    pub busy: u64,
}

/// Where the processor time of a recorder went while it was looked at.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Functions {
    /// Thousandths of one processor's time, all of it.
    pub busy: u64,
    /// Samples that this was found from.
    pub samples: u64,
    /// The hottest ones, the hottest first.
    pub hottest: Vec<HotFunction>,
    /// What could not be seen.
    pub unseen: Vec<Unseen>,
}

/// A function that a recorder worked in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HotFunction {
    /// The program or library that it is in, or the kernel.
    pub library: String,
    /// Its name, or a place in that.
    pub function: String,
    /// Thousandths of one processor's time.
    pub busy: u64,
}

/// Names what is wrong with a recording, and what could not be seen of it.
pub fn diagnose(recording: &Recording) -> Diagnosis {
    let mut looked_at = vec![format!("{} gaps of the volume", recording.gaps.len())];
    let mut unseen = Vec::new();
    match &recording.state {
        Some(state) if state.is_going => looked_at.push("the recorder that runs".to_owned()),
        Some(_) => looked_at.push("the report of a recording".to_owned()),
        None => unseen.push(Unseen {
            what: "how its disks and queues did".to_owned(),
            needs: "a recording that goes on, or --report with what `record --json` printed"
                .to_owned(),
        }),
    }
    let findings = losses::findings(recording)
        .into_iter()
        .chain(recording.state.iter().flat_map(disks::findings))
        .chain(threads::findings(recording))
        .chain(recording.functions.iter().filter_map(functions::finding))
        .collect();
    unseen.extend(recording.functions.iter().flat_map(|it| it.unseen.clone()));
    Diagnosis { looked_at, findings, unseen, ..Diagnosis::default() }.ranked()
}
