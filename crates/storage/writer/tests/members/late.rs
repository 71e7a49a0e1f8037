//! A disk that does first what came last: nothing may be taken for done because something later is.

use core::time::Duration;

use device::{Completion, Crash, Device, Error, Fault, MUTATIONS, Modelled, Rule, Shared};
use writer::{Opener, mount};

use crate::ring::{Ring, boxed};

/// Writes to the ring wait for this many others, and flushes for none.
const OTHERS: usize = 40;
/// Where slots begin.
const RING_BEGIN: u64 = 2 << 20;

/// A disk that keeps one write to the ring back.
#[derive(Debug)]
struct Late {
    disk: Modelled,
    kept_back: Option<(u64, u64, Shared, usize)>,
    /// Writes to the ring until one is kept back, and then operations until it is done.
    left: usize,
}

impl Late {
    fn count(&mut self) {
        self.left = self.left.saturating_sub(1);
        if self.left == 0
            && let Some((token, offset, data, len)) = self.kept_back.take()
        {
            self.disk.submit_write(token, offset, data, len);
            self.left = usize::MAX;
        }
    }
}

impl Device for Late {
    fn size_bytes(&self) -> u64 {
        Device::size_bytes(&self.disk)
    }

    fn submit_write(&mut self, token: u64, offset: u64, data: Shared, len: usize) {
        if self.kept_back.is_none() && offset >= RING_BEGIN && self.left <= 1 {
            self.kept_back = Some((token, offset, data, len));
            self.left = OTHERS;
            return;
        }
        if self.kept_back.is_some() || offset >= RING_BEGIN {
            self.count();
        }
        self.disk.submit_write(token, offset, data, len);
    }

    fn submit_flush(&mut self, token: u64) {
        if self.kept_back.is_some() {
            self.count();
        }
        self.disk.submit_flush(token);
    }

    fn submit_discard(&mut self, token: u64, offset: u64, len: u64) {
        self.disk.submit_discard(token, offset, len);
    }

    fn submit_read(&mut self, token: u64, offset: u64, len: usize) {
        self.disk.submit_read(token, offset, len);
    }

    fn reap(&mut self, wait: Option<Duration>, out: &mut Vec<Completion>) {
        let before = out.len();
        self.disk.reap(wait, out);
        // Nothing else is to come.
        if out.len() == before && self.disk.in_flight() == 0 && self.kept_back.is_some() {
            self.left = self.left.min(1);
            self.count();
        }
    }

    fn in_flight(&self) -> usize {
        self.disk.in_flight() + usize::from(self.kept_back.is_some())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        Device::read_at(&self.disk, offset, into)
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.disk.write_at(offset, data)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.disk.flush()
    }

    fn notes(&self) -> &[String] {
        &[]
    }
}

#[test]
fn what_is_in_flight_is_durable_before_the_epoch_that_acknowledges_it() {
    for first in 1..24 {
        let mut ring = Ring::new(2, 1);
        let disks = ring.disks.clone();
        let mut devices = boxed(&disks);
        let disk = disks[2].clone();
        devices[2] = Box::new(Late { disk, kept_back: None, left: first });
        let (mut writer, _) = mount(devices, &Opener::alone(&ring.timeline)).unwrap();
        ring.append(&mut writer, 3).unwrap();
        disks[1].add_rule(Rule::new(Fault::Error, MUTATIONS));
        ring.append(&mut writer, 12).unwrap();
        while writer.expelled().is_empty() {
            writer.poll(Some(Duration::from_millis(1)), &ring.timeline).unwrap();
        }
        // The new epoch says that all before it is there; then the power fails.
        let acknowledged = writer.acknowledged();
        let crashed: Vec<Modelled> = disks.iter().map(|disk| disk.crash(Crash::LoseAll)).collect();
        let left = [crashed[0].clone(), crashed[2].clone()];
        drop(mount(boxed(&left), &Opener::alone(&ring.timeline)).unwrap());
        ring.check(&left, acknowledged);
    }
}
