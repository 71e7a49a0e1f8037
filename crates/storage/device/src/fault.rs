//! What can go wrong with one operation of a disk, and when it does.
//!
//! [`Rule`]s name operations by kind, place, count and chance; the chances come from one seeded
//! source, so that a run repeats. The rules are carried out by [`crate::Modelled`] and, around any
//! other device, by [`crate::Faulty`].

use core::ops::Range;
use std::borrow::Cow;

use rustix::io::Errno;
use units::Random;

use crate::{Error, ROW_SIZE, to_u64, to_usize};

/// What happens to one operation. A fault of another kind of operation leaves it alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Any operation fails with EIO and changes nothing; the next one may succeed.
    Error,
    /// A write fails with ENOSPC and changes nothing: a thin volume is full.
    NoSpace,
    /// The first `rows` of a write arrive, then it fails with EIO.
    Short {
        /// Rows that arrive.
        rows: usize,
    },
    /// A random subset of a write's rows arrives, and it is reported as done.
    Torn,
    /// A write is reported as done and never arrives.
    Lost,
    /// A write arrives, or a read comes from, this many rows further (wrapping round the device),
    /// and is reported as done.
    Misdirected {
        /// Distance in rows.
        rows: u64,
    },
    /// A write arrives on another disk at the same offset ([`crate::Modelled::set_other`]), and is
    /// reported as done. Where there is no other disk it is lost.
    OtherDisk,
    /// A write arrives, or a read comes, with one random bit flipped.
    BitRot,
    /// Any operation is done, and takes this much longer; what is queued behind it waits.
    Slow {
        /// Added to the latency.
        latency_ns: u64,
    },
    /// The device does nothing for so long from this operation on, and who waits for it gives up
    /// waiting meanwhile ([`crate::PATIENCE`]).
    Hangs {
        /// Nanoseconds from now.
        ns: u64,
    },
    /// A flush is reported as done without being done.
    LyingFlush,
    /// A flush fails with EIO, and of what it should have covered some rows never become durable:
    /// reads go on showing them until [`crate::Modelled::forget_cached`] or the end of the power.
    /// The next flush succeeds, as on Linux (fsync(2)). Around other devices it only fails.
    FlushForgets,
}

/// A kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A read.
    Read,
    /// A write, submitted or synchronous.
    Write,
    /// A flush, submitted or synchronous. It has the offset 0.
    Flush,
    /// A discard: it can fail, be lost or take long.
    Discard,
}

/// Writes and flushes.
pub const MUTATIONS: &[Operation] = &[Operation::Write, Operation::Flush];
/// Everything that a disk does.
pub const OPERATIONS: &[Operation] =
    &[Operation::Read, Operation::Write, Operation::Flush, Operation::Discard];

/// Which operations meet a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    fault: Fault,
    operations: &'static [Operation],
    within: Range<u64>,
    skip: u64,
    count: u64,
    one_in: u64,
}

impl Rule {
    /// Every one of these operations from now on.
    pub fn new(fault: Fault, operations: &'static [Operation]) -> Self {
        Self { fault, operations, within: 0..u64::MAX, skip: 0, count: u64::MAX, one_in: 1 }
    }

    /// Only operations that touch this range of bytes.
    #[must_use]
    pub fn within(self, within: Range<u64>) -> Self {
        Self { within, ..self }
    }

    /// Only after `skip` matching operations have passed.
    #[must_use]
    pub fn after(self, skip: u64) -> Self {
        Self { skip, ..self }
    }

    /// At most `count` times.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        Self { count, ..self }
    }

    /// Each time with a chance of one in `one_in`, which is not 0.
    #[must_use]
    pub fn one_in(self, one_in: u64) -> Self {
        assert!(one_in > 0, "a chance of one in something");
        Self { one_in, ..self }
    }

    /// Whether the operation meets the fault; counts it.
    fn strikes(&mut self, operation: Operation, bytes: &Range<u64>, random: &mut Random) -> bool {
        let touched = bytes.start < self.within.end && self.within.start < bytes.end;
        if self.count == 0 || !touched || !self.operations.contains(&operation) {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        let struck = random.below(self.one_in) == 0;
        self.count -= u64::from(struck);
        struck
    }
}

/// The rules of one device, with their counts and their source of chance.
#[derive(Debug, Clone)]
pub(crate) struct Faults {
    rules: Vec<Rule>,
    pub(crate) random: Random,
    /// Operations that met a fault.
    pub(crate) strikes: u64,
}

impl Faults {
    pub(crate) fn new(rules: Vec<Rule>, seed: u64) -> Self {
        Self { rules, random: Random::new(seed), strikes: 0 }
    }

    pub(crate) fn add(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    pub(crate) fn clear(&mut self) {
        self.rules.clear();
    }

    /// The first rule that strikes decides; all are counted.
    pub(crate) fn next(&mut self, operation: Operation, offset: u64, len: usize) -> Option<Fault> {
        let bytes = offset..offset + to_u64(len).max(1);
        let mut fault = None;
        for rule in &mut self.rules {
            if rule.strikes(operation, &bytes, &mut self.random) {
                fault.get_or_insert(rule.fault);
            }
        }
        self.strikes += u64::from(fault.is_some());
        fault
    }
}

/// What a write comes to.
pub(crate) struct Effect<'a> {
    /// What arrives on the device itself.
    pub(crate) parts: Vec<(u64, Cow<'a, [u8]>)>,
    /// What is reported.
    pub(crate) result: Result<(), Error>,
}

impl<'a> Effect<'a> {
    /// Of a write to a device of `size` bytes.
    pub(crate) fn of_write(
        fault: Option<Fault>,
        (offset, data): (u64, &'a [u8]),
        size: u64,
        random: &mut Random,
    ) -> Self {
        let rows = || (offset..).step_by(ROW_SIZE).zip(data.chunks(ROW_SIZE).map(Cow::Borrowed));
        let failed = |errno| Err(Error::io("write", offset, errno));
        let whole = || vec![(offset, Cow::Borrowed(data))];
        let (parts, result) = match fault {
            None
            | Some(
                Fault::Slow { .. } | Fault::Hangs { .. } | Fault::LyingFlush | Fault::FlushForgets,
            ) => (whole(), Ok(())),
            Some(Fault::Error) => (Vec::new(), failed(Errno::IO)),
            Some(Fault::NoSpace) => (Vec::new(), failed(Errno::NOSPC)),
            Some(Fault::Lost | Fault::OtherDisk) => (Vec::new(), Ok(())),
            Some(Fault::Short { rows: arrived }) => {
                (rows().take(arrived).collect(), failed(Errno::IO))
            }
            Some(Fault::Torn) => (rows().filter(|_| random.below(2) == 0).collect(), Ok(())),
            Some(Fault::Misdirected { rows }) => {
                (vec![(elsewhere(offset, data.len(), rows, size), Cow::Borrowed(data))], Ok(()))
            }
            Some(Fault::BitRot) => {
                let mut rotten = data.to_vec();
                flip_a_bit(&mut rotten, random);
                (vec![(offset, Cow::Owned(rotten))], Ok(()))
            }
        };
        Self { parts, result }
    }
}

/// What is reported of a flush that goes wrong; `None`: the fault does not concern flushes.
pub(crate) fn faulty_flush(fault: Fault) -> Option<Result<(), Error>> {
    match fault {
        Fault::Error | Fault::FlushForgets => Some(Err(Error::io("flush", 0, Errno::IO))),
        Fault::LyingFlush => Some(Ok(())),
        _ => None,
    }
}

/// Carries out a read under a fault.
pub(crate) fn faulty_read(
    fault: Option<Fault>,
    (offset, into): (u64, &mut [u8]),
    size: u64,
    random: &mut Random,
    read: impl FnOnce(u64, &mut [u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    match fault {
        Some(Fault::Error) => Err(Error::io("read", offset, Errno::IO)),
        Some(Fault::Misdirected { rows }) => read(elsewhere(offset, into.len(), rows, size), into),
        Some(Fault::BitRot) => {
            read(offset, into)?;
            flip_a_bit(into, random);
            Ok(())
        }
        _ => read(offset, into),
    }
}

pub(crate) fn latency_of(fault: Option<Fault>) -> u64 {
    match fault {
        Some(Fault::Slow { latency_ns: ns } | Fault::Hangs { ns }) => ns,
        _ => 0,
    }
}

pub(crate) fn flip_a_bit(bytes: &mut [u8], random: &mut Random) {
    let bit = to_usize(random.below(to_u64(bytes.len()) * 8));
    let byte = bytes.get_mut(bit / 8).expect("the bit lies in the bytes");
    *byte ^= 1 << (bit % 8);
}

/// The place `rows` further, wrapping round a device of `size` bytes.
fn elsewhere(offset: u64, len: usize, rows: u64, size: u64) -> u64 {
    (offset + rows * to_u64(ROW_SIZE)) % (size - to_u64(len) + to_u64(ROW_SIZE))
}
