//! What the machine does, by name and unit.

use crate::run::Unit;

/// Something that the machine does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Figure {
    /// Random numbers, one after another: what a processor computes without memory.
    Integers,
    /// The same on all processors.
    IntegersAll,
    /// P and Q of six columns that stay in the cache: vector instructions.
    Parity,
    /// The same on all processors.
    ParityAll,
    /// Memory copied by one processor.
    Copy,
    /// The same by all processors.
    CopyAll,
    /// A read from memory whose place the read before gave.
    Latency,
    /// A disk written in order, 2 MiB at a time and 8 of them under way, with a flush at the end.
    Write,
    /// A disk read in order, 2 MiB at a time and 8 of them under way.
    Read,
    /// 4 KiB read anywhere, one after another: the time of one.
    RandomRead,
    /// 4 KiB read anywhere, 32 under way.
    RandomReads,
    /// 4 KiB written anywhere, 32 under way, with a flush at the end.
    RandomWrites,
}

impl Figure {
    /// Those that need no disk, in the order in which they are shown.
    pub(super) const OF_MACHINE: [Self; 7] = [
        Self::Integers,
        Self::IntegersAll,
        Self::Parity,
        Self::ParityAll,
        Self::Copy,
        Self::CopyAll,
        Self::Latency,
    ];
    /// Those of a disk.
    pub(super) const OF_DISK: [Self; 5] =
        [Self::Write, Self::Read, Self::RandomRead, Self::RandomReads, Self::RandomWrites];

    /// What it is called: in files, too.
    pub fn name(self) -> &'static str {
        match self {
            Self::Integers => "integers, one processor",
            Self::IntegersAll => "integers, all processors",
            Self::Parity => "parity, one processor",
            Self::ParityAll => "parity, all processors",
            Self::Copy => "memory copied, one processor",
            Self::CopyAll => "memory copied, all processors",
            Self::Latency => "memory, one read after another",
            Self::Write => "disk, written in order",
            Self::Read => "disk, read in order",
            Self::RandomRead => "disk, one random read",
            Self::RandomReads => "disk, 32 random reads at a time",
            Self::RandomWrites => "disk, 32 random writes at a time",
        }
    }

    /// Unit of its result.
    pub fn unit(self) -> Unit {
        match self {
            Self::Latency | Self::RandomRead => Unit::Nanoseconds,
            Self::Integers | Self::IntegersAll | Self::RandomReads | Self::RandomWrites => {
                Unit::PerSecond
            }
            _ => Unit::BytesPerSecond,
        }
    }
}
