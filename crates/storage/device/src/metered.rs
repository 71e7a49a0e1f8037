//! Counts what a device did and how long it took.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use stage::lock;
use units::Histogram;

use crate::{Completion, Device, Error, Shared, to_u64};

/// Totals of one device since it was wrapped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meter {
    /// Bytes handed over for writing, synchronous writes included.
    pub written_bytes: u64,
    /// Bytes handed over for discarding.
    pub discarded_bytes: u64,
    /// Completed submitted writes, failed ones included.
    pub write_latency: Histogram,
    /// Completed submitted flushes, failed ones included.
    pub flush_latency: Histogram,
    /// Operations that failed.
    pub failed: u64,
}

/// A device with a [`Meter`].
#[derive(Debug)]
pub struct Metered {
    inner: Box<dyn Device>,
    meter: Arc<Mutex<Meter>>,
    flushes: Vec<u64>,
    discards: Vec<u64>,
}

/// Reads the meter of a device that works elsewhere.
#[derive(Debug, Clone)]
pub struct MeterReader(Arc<Mutex<Meter>>);

impl MeterReader {
    /// The totals at this moment.
    pub fn read(&self) -> Meter {
        lock(&self.0).clone()
    }
}

impl Metered {
    /// Wraps a device.
    pub fn new(inner: Box<dyn Device>) -> Self {
        Self { inner, meter: Arc::default(), flushes: Vec::new(), discards: Vec::new() }
    }

    /// A reader that outlives this device.
    pub fn reader(&self) -> MeterReader {
        MeterReader(Arc::clone(&self.meter))
    }

    fn count(&self, result: &Result<(), Error>) {
        if result.is_err() {
            lock(&self.meter).failed += 1;
        }
    }
}

impl Device for Metered {
    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    fn submit_write(&mut self, token: u64, offset: u64, data: Shared, len: usize) {
        lock(&self.meter).written_bytes += to_u64(len);
        self.inner.submit_write(token, offset, data, len);
    }

    fn submit_flush(&mut self, token: u64) {
        self.flushes.push(token);
        self.inner.submit_flush(token);
    }

    fn submit_discard(&mut self, token: u64, offset: u64, len: u64) {
        lock(&self.meter).discarded_bytes += len;
        self.discards.push(token);
        self.inner.submit_discard(token, offset, len);
    }

    fn submit_read(&mut self, token: u64, offset: u64, len: usize) {
        self.inner.submit_read(token, offset, len);
    }

    fn reap(&mut self, wait: Option<Duration>, out: &mut Vec<Completion>) {
        let first = out.len();
        self.inner.reap(wait, out);
        let mutations = out.iter().skip(first).filter(|completion| completion.read.is_none());
        for completion in mutations {
            let flush = self.flushes.iter().position(|&token| token == completion.token);
            let discard = self.discards.iter().position(|&token| token == completion.token);
            let mut meter = lock(&self.meter);
            meter.failed += u64::from(completion.result.is_err());
            if let Some(index) = flush {
                self.flushes.swap_remove(index);
                meter.flush_latency.add(completion.latency_ns);
            } else if let Some(index) = discard {
                self.discards.swap_remove(index);
            } else {
                meter.write_latency.add(completion.latency_ns);
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        self.inner.read_at(offset, into)
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        lock(&self.meter).written_bytes += to_u64(data.len());
        let result = self.inner.write_at(offset, data);
        self.count(&result);
        result
    }

    fn flush(&mut self) -> Result<(), Error> {
        let result = self.inner.flush();
        self.count(&result);
        result
    }

    fn notes(&self) -> &[String] {
        self.inner.notes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fault, MUTATIONS, Modelled, Pool, Rule};

    #[test]
    fn the_meter_counts_bytes_operations_and_failures() {
        let disk = Modelled::instant(1 << 20);
        disk.add_rule(Rule::new(Fault::Error, MUTATIONS).after(1).times(1));
        let mut device = Metered::new(Box::new(disk));
        let reader = device.reader();
        let data = Pool::new(1, 8192).unwrap().take().unwrap().freeze();
        device.submit_write(1, 0, data, 8192);
        device.submit_flush(2);
        device.reap(None, &mut Vec::new());
        device.write_at(0, &[0; 4096]).unwrap();
        let meter = reader.read();
        assert_eq!((meter.written_bytes, meter.failed), (12288, 1));
        assert_eq!((meter.write_latency.count(), meter.flush_latency.count()), (1, 1));
    }
}
