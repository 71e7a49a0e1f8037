//! What a recorder says of itself, read again: by `status` while it runs, as its report when it
//! has ended.

use serde::Deserialize;
use units::Timestamp;

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

#[derive(Deserialize)]
struct StateJson {
    /// Of one that runs.
    process: Option<u32>,
    offered: u64,
    #[serde(default)]
    stored: u64,
    #[serde(default)]
    member_bytes: u64,
    elapsed_ns: i64,
    unindexed: u64,
    #[serde(default)]
    unread: u64,
    pool_columns: u64,
    interfaces: Vec<InterfaceJson>,
    disks: DisksJson,
    #[serde(default)]
    losses: Vec<LossJson>,
}

#[derive(Deserialize)]
struct InterfaceJson {
    #[serde(default)]
    name: String,
    kernel_drops: u64,
    interface_drops: Option<u64>,
    offered: u64,
    #[serde(default)]
    queues: Vec<QueueJson>,
}

#[derive(Deserialize)]
struct QueueJson {
    received: u64,
    kernel_drops: u64,
}

#[derive(Deserialize)]
struct DisksJson {
    headroom: Option<HeadroomJson>,
    slow_limit_ns: u64,
    slow_writes: u64,
    slow: Vec<SlowJson>,
    devices: Vec<DeviceJson>,
}

#[derive(Deserialize)]
struct HeadroomJson {
    guaranteed_bytes_per_s: u64,
    offered_bytes_per_s_max: u64,
}

#[derive(Deserialize)]
struct SlowJson {
    at_ns: i64,
    member: Option<u8>,
    zone: Option<u16>,
    latency_ns: u64,
}

#[derive(Deserialize)]
struct DeviceJson {
    path: String,
    writes: u64,
    slow_writes: u64,
    p50_ns: u64,
    max_ns: u64,
    slower_than_qualified: u64,
    is_slower_than_qualified: bool,
    /// Writes, bytes, mean and longest latency.
    places: Vec<[u64; 4]>,
}

#[derive(Deserialize)]
struct LossJson {
    cause: String,
    packets: Option<u64>,
    pool_free: u64,
    unfinished_slots: u64,
    #[serde(default)]
    queue: u64,
    #[serde(default)]
    from_ns: i64,
    #[serde(default)]
    to_ns: i64,
    stored_bytes_before: Option<u64>,
    stored_bytes_behind: Option<u64>,
}

/// The state of a recorder, and its process if it runs: what it answers while it does, or its
/// report.
pub fn parse_recorder(text: &str) -> Result<(State, Option<u32>), serde_json::Error> {
    let read: StateJson = serde_json::from_str(text)?;
    let process = read.process;
    let state = State {
        is_going: process.is_some(),
        elapsed_ns: read.elapsed_ns,
        offered: read.offered,
        stored: read.stored,
        member_bytes: read.member_bytes,
        unindexed: read.unindexed,
        unread: read.unread,
        pool_columns: read.pool_columns,
        interfaces: read.interfaces.into_iter().map(interface).collect(),
        headroom: read.disks.headroom.map(|headroom| Headroom {
            guaranteed: headroom.guaranteed_bytes_per_s,
            offered_max: headroom.offered_bytes_per_s_max,
        }),
        slow_limit_ns: read.disks.slow_limit_ns,
        slow_writes: read.disks.slow_writes,
        slow: read.disks.slow.iter().map(slow).collect(),
        members: read.disks.devices.into_iter().map(member).collect(),
        losses: read.losses.iter().map(loss).collect(),
    };
    Ok((state, process))
}

fn interface(read: InterfaceJson) -> Interface {
    let alone = QueueJson { received: read.offered, kernel_drops: read.kernel_drops };
    let queues = if read.queues.is_empty() { vec![alone] } else { read.queues };
    Interface {
        name: read.name,
        queues: queues.into_iter().map(|queue| (queue.received, queue.kernel_drops)).collect(),
        interface_drops: read.interface_drops,
    }
}

fn slow(read: &SlowJson) -> SlowWrite {
    let SlowJson { at_ns, member, zone, latency_ns } = *read;
    SlowWrite { at: Timestamp(at_ns), member, zone, latency_ns }
}

fn member(read: DeviceJson) -> Member {
    Member {
        path: read.path,
        writes: read.writes,
        slow_writes: read.slow_writes,
        p50_ns: read.p50_ns,
        max_ns: read.max_ns,
        times_slower: read.slower_than_qualified,
        is_slower: read.is_slower_than_qualified,
        places: read.places.into_iter().map(|[writes, _, _, longest]| (writes, longest)).collect(),
    }
}

fn loss(read: &LossJson) -> Loss {
    Loss {
        is_kernel: read.cause == "kernel_drops",
        packets: read.packets,
        pool_free: read.pool_free,
        unfinished_slots: read.unfinished_slots,
        queue: read.queue,
        times: (Timestamp(read.from_ns), Timestamp(read.to_ns)),
        stored_bytes: read
            .stored_bytes_before
            .zip(read.stored_bytes_behind)
            .map(|(before, behind)| [before, behind]),
    }
}
