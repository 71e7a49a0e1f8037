//! What is asked of a target, and what it is judged to be.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::GroupLimit;
use crate::plan::Part;
use crate::traffic::Mix;

/// The order in which the surface is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// From the first byte to the last: files, flash.
    FirstToLast,
    /// An extent of each zone in turn: disks with platters.
    ZoneLevelled,
}

/// Rates of one order of writing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Judged {
    /// The part that it follows from.
    pub basis: Part,
    /// How the surface is written.
    pub order: Order,
    /// Computed from rates at places, and not measured over all of the surface.
    pub is_computed: bool,
    /// Whether it follows from reading only.
    pub is_by_reading: bool,
    /// The pool it was judged with: the one asked for, or less where little was written.
    pub pool_bytes: u64,
    /// The highest constant arrival that never overflows the pool.
    pub guaranteed_bytes_per_s: u64,
    /// Over all of it.
    pub mean_bytes_per_s: u64,
    /// In its slowest stretch.
    pub minimum_bytes_per_s: u64,
    /// Of a lap at the rate asked for, the time in which the disk is slower than that.
    pub slow_ns: Option<u64>,
    /// The rest of that lap.
    pub fast_ns: Option<u64>,
    /// What each jump from zone to zone was charged with, where the rates are computed and there
    /// are jumps.
    #[serde(default)]
    pub jump: Option<Jump>,
}

/// The time of a jump from zone to zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Jump {
    /// How long it takes.
    pub ns: u64,
    /// How that is known.
    pub by: JumpBy,
}

/// How the time of a jump is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JumpBy {
    /// The part `extents` found it, by writing.
    Extents,
    /// Reads at random places of the same disk took so long.
    Reads,
    /// It was not measured.
    Assumed,
}

/// Whether a rate is carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The target carries the traffic.
    Fits,
    /// The target is too slow for the traffic.
    TooSlow,
    /// What was measured does not say.
    CannotJudge,
}

/// Verdict of a qualification.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// By order and part; the first is the one that the answer stands on.
    pub judged: Vec<Judged>,
    /// The pool asked for.
    pub pool_bytes: u64,
    /// Frames of the traffic.
    pub mix: Mix,
    /// The guaranteed rate as bits a second on the link.
    pub guaranteed_traffic_bit_per_s: u64,
    /// The same with reads beside it, where that was measured.
    #[serde(default)]
    pub with_readers: Option<WithReaders>,
    /// The rate asked for, if any.
    pub asked: Option<Asked>,
    /// What it comes to where less of the surface is used; empty where no rate has a place.
    #[serde(default)]
    pub shares: Vec<Share>,
    /// What it comes to with one and two members gone; empty where members are not known.
    #[serde(default)]
    pub lost: Vec<Lost>,
    /// Why what was measured guarantees nothing; empty where it does.
    #[serde(default)]
    pub doubts: Vec<Doubt>,
}

/// Why a rate that was measured is no guarantee.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Doubt {
    /// What was written lies in memory, and is gone with it.
    Memory,
    /// A control group holds this process back, and not the disk.
    Limited {
        /// The limit.
        limit: GroupLimit,
    },
    /// The rate falls by a clear step, and too little was written behind it.
    Step {
        /// Bytes that were written before.
        bytes: u64,
        /// Bytes a second before.
        before_bytes_per_s: u64,
        /// Bytes a second from there on: the guarantee is not above that.
        after_bytes_per_s: u64,
        /// Bytes that are enough.
        needed_bytes: u64,
    },
    /// A cache lies in front of the device, and may have taken all that was written.
    Cache {
        /// The device that is the cache.
        name: String,
        /// Bytes that were written.
        bytes: u64,
        /// Bytes that are enough; `None` where the cache does not say how large it is.
        needed_bytes: Option<u64>,
    },
    /// The devices below cannot be so fast: something in front of them took what was written.
    AboveDevice {
        /// Bytes that were written.
        bytes: u64,
        /// Bytes a second that were measured.
        bytes_per_s: u64,
        /// Bytes a second that the devices below can do at most.
        most_bytes_per_s: u64,
        /// Bytes to write next.
        needed_bytes: u64,
    },
    /// Caches take what is written in a moment: it has to be more.
    Short {
        /// Bytes that were written.
        bytes: u64,
        /// The time that took.
        ns: u64,
        /// Bytes that take long enough at that rate.
        needed_bytes: u64,
    },
}

/// The guarantee with reads beside the writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WithReaders {
    /// The pool that what readers cost was found with.
    pub pool_bytes: u64,
    /// What is read by streams meanwhile.
    pub read_bytes_per_s: u64,
    /// Reads at random places meanwhile, a second.
    pub reads_per_s: u64,
    /// The guaranteed rate, less the share that readers cost where that was measured.
    pub guaranteed_bytes_per_s: u64,
    /// The same as bits a second on the link.
    pub guaranteed_traffic_bit_per_s: u64,
}

/// A rate that was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Asked {
    /// Bits a second on the link.
    pub bits_per_s: u64,
    /// What they are on the disk.
    pub needed_bytes_per_s: u64,
    /// The guaranteed rate over that, less 1, in thousandths.
    pub margin_permille: i64,
    /// Whether it is carried.
    pub answer: Answer,
}

/// What is guaranteed where only the first part of the surface is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// Of the surface, from its first byte on.
    pub percent: u8,
    /// Bytes of that part.
    pub size_bytes: u64,
    /// How it is written.
    pub order: Order,
    /// Computed from rates at places, and not from the run.
    pub is_computed: bool,
    /// The highest constant arrival that never overflows the pool of the verdict.
    pub guaranteed_bytes_per_s: u64,
    /// Over all of it.
    pub mean_bytes_per_s: u64,
    /// At its slowest place.
    pub minimum_bytes_per_s: u64,
}

/// What is guaranteed while members are gone and new ones are given what they lack.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Lost {
    /// Members that are gone.
    pub members: u8,
    /// `None` where they are more than the array may lose: then what it holds is gone.
    pub guaranteed_bytes_per_s: Option<u64>,
    /// Until the new ones hold everything, at the rate asked for; `None` where that leaves no time,
    /// or no rate was asked for.
    pub rebuild_ns: Option<u64>,
}
