//! A reader that is given up when too much fails: a disk that takes seconds for each row that it
//! cannot read would hold up its reader for hours.
//!
//! Only what fails counts, as a sum over the life of the wrapper: reads that come in vain, and the
//! time that they took. Beyond the budget every read is refused at once.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use crate::{Buffer, Error, LentRead, Read, ReadAt, Reading};

/// What may come to nothing before a device is given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadBudget {
    /// Most reads that may fail.
    pub reads: u64,
    /// The time that they take together.
    pub time: Duration,
}

impl ReadBudget {
    /// For members of which others hold what they do not give: two minutes, and as many rows as
    /// 64 MiB have.
    pub const AMONG_OTHERS: Self = Self { reads: 16_384, time: Duration::from_mins(2) };
    /// Where no other thread may have it: an hour, and as many rows as 4 GiB have.
    pub const LAST_RESORT: Self = Self { reads: 1 << 20, time: Duration::from_hours(1) };
}

/// A device with a [`ReadBudget`].
#[derive(Debug)]
pub struct Bounded {
    inner: Box<dyn ReadAt>,
    budget: ReadBudget,
    failed: AtomicU64,
    spent_ns: AtomicU64,
}

impl Bounded {
    /// Wraps a device.
    pub fn new(inner: Box<dyn ReadAt>, budget: ReadBudget) -> Self {
        Self { inner, budget, failed: AtomicU64::new(0), spent_ns: AtomicU64::new(0) }
    }

    /// The device itself, for who begins something new with it.
    pub fn into_inner(self) -> Box<dyn ReadAt> {
        self.inner
    }

    /// Nothing is read of it any more.
    pub fn is_given_up(&self) -> bool {
        let (failed, spent) = self.spent();
        failed >= self.budget.reads || spent >= self.budget.time
    }

    /// Reads that failed, and the time that they took.
    pub fn spent(&self) -> (u64, Duration) {
        let spent_ns = self.spent_ns.load(Ordering::Relaxed);
        (self.failed.load(Ordering::Relaxed), Duration::from_nanos(spent_ns))
    }

    fn check(&self) -> Result<(), Error> {
        if !self.is_given_up() {
            return Ok(());
        }
        let (failed, spent) = self.spent();
        Err(Error::GivenUp { failed, seconds: spent.as_secs() })
    }

    /// Counts what failed of reads that began at `since_ns`. Who does not answer has a deadline of
    /// its own and is refused at once until then: its time counts, and not how often it was asked.
    fn count<'r>(&self, since_ns: u64, results: impl Iterator<Item = &'r Result<(), Error>>) {
        let (mut failed, mut is_silent) = (0, false);
        for error in results.filter_map(|result| result.as_ref().err()) {
            is_silent |= error.is_silent();
            failed += u64::from(!error.is_silent());
        }
        if failed > 0 || is_silent {
            let took_ns = self.inner.now_ns().saturating_sub(since_ns);
            add(&self.failed, failed);
            add(&self.spent_ns, took_ns);
        }
    }
}

/// Adds, and stays at the most that there can be.
fn add(counter: &AtomicU64, more: u64) {
    let sum = |now: u64| Some(now.saturating_add(more));
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).unwrap_or_default();
}

impl ReadAt for Bounded {
    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    fn now_ns(&self) -> u64 {
        self.inner.now_ns()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        self.check()?;
        let since_ns = self.now_ns();
        let result = self.inner.read_at(offset, into);
        self.count(since_ns, core::iter::once(&result));
        result
    }

    fn read_buffer(&self, offset: u64, buffer: Buffer) -> (Option<Buffer>, Result<(), Error>) {
        if let Err(error) = self.check() {
            return (Some(buffer), Err(error));
        }
        let since_ns = self.now_ns();
        let (buffer, result) = self.inner.read_buffer(offset, buffer);
        self.count(since_ns, core::iter::once(&result));
        (buffer, result)
    }

    fn read_many(&self, reads: &mut [Read<'_>]) {
        if let Err(error) = self.check() {
            for read in reads {
                read.result = Err(error.clone());
            }
            return;
        }
        let since_ns = self.now_ns();
        self.inner.read_many(reads);
        self.count(since_ns, reads.iter().map(|read| &read.result));
    }

    fn begin<'a>(&'a self, reads: Vec<LentRead>) -> Box<dyn Reading + 'a> {
        if let Err(error) = self.check() {
            return Box::new(LentRead::refuse_all(reads, &error));
        }
        let since_ns = self.now_ns();
        Box::new(Counted { by: self, since_ns, reading: self.inner.begin(reads) })
    }
}

/// Reads under way that are counted at their end.
#[derive(Debug)]
struct Counted<'a> {
    by: &'a Bounded,
    since_ns: u64,
    reading: Box<dyn Reading + 'a>,
}

impl Reading for Counted<'_> {
    fn end(self: Box<Self>) -> Vec<LentRead> {
        let reads = self.reading.end();
        self.by.count(self.since_ns, reads.iter().map(|read| &read.result));
        reads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fault, Modelled, Operation, ROW_SIZE, Rule};

    fn failing(latency_ns: u64) -> Modelled {
        let disk = Modelled::instant(1 << 20);
        (0..32).for_each(|row| disk.spoil(row * 4096));
        disk.add_rule(Rule::new(Fault::Slow { latency_ns }, &[Operation::Read]));
        disk
    }

    #[test]
    fn a_device_is_given_up_when_too_many_reads_fail_or_take_too_long() {
        let time = Duration::from_secs(10);
        for (latency_ns, expected) in [(0, 20), (3_000_000_000, 4)] {
            let disk = failing(latency_ns);
            let budget = ReadBudget { reads: 20, time };
            let bounded = Bounded::new(Box::new(disk.clone()), budget);
            let mut row = [0; ROW_SIZE];
            // What can be read costs nothing.
            for good in 32..64 {
                bounded.read_at(good * 4096, &mut row).unwrap();
            }
            assert_eq!(bounded.spent(), (0, Duration::ZERO));
            let mut fails = 0;
            while !matches!(bounded.read_at(0, &mut row), Err(Error::GivenUp { .. })) {
                fails += 1;
            }
            assert_eq!(fails, expected);
            let reads = disk.work().reads;
            let many = bounded.begin(vec![LentRead::new(1 << 18, vec![0; ROW_SIZE])]).end();
            assert!(matches!(many[0].result, Err(Error::GivenUp { .. })));
            assert_eq!(disk.work().reads, reads, "it is not asked any more");
        }
    }
}
