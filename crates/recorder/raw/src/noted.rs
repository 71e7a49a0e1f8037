//! A member whose every row that is read is noted, once.

use core::ops::Range;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use device::{Error, ROW_SIZE, ReadAt};
use units::number::to_u64;

/// What was read and not yet put down: offset and bytes.
pub(crate) type Pending = Arc<Mutex<Noting>>;

/// Rows of a member that were read.
#[derive(Debug, Default)]
pub(crate) struct Noting {
    /// Numbers of rows so far: some 8 bytes for 4096 that are copied.
    known: BTreeSet<u64>,
    /// Of those what waits to be put down; who reads takes it away slot by slot.
    waiting: Vec<(u64, Vec<u8>)>,
}

impl Noting {
    fn note(&mut self, offset: u64, bytes: &[u8]) {
        for run in self.unknown(offset, bytes.len()) {
            let at = offset + to_u64(run.start);
            let content = bytes.get(run).expect("runs lie in what was read").to_vec();
            self.waiting.push((at, content));
        }
    }

    /// Runs of rows that are new, as offsets in what was read.
    fn unknown(&mut self, offset: u64, len: usize) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for begin in (0..len).step_by(ROW_SIZE) {
            if !self.known.insert((offset + to_u64(begin)) / to_u64(ROW_SIZE)) {
                continue;
            }
            let end = (begin + ROW_SIZE).min(len);
            match runs.last_mut() {
                Some(last) if last.end == begin => last.end = end,
                _ => runs.push(begin..end),
            }
        }
        runs
    }
}

/// Takes what waits to be put down.
pub(crate) fn taken(pending: &Pending) -> Vec<(u64, Vec<u8>)> {
    core::mem::take(&mut stage::lock(pending).waiting)
}

/// A member, and what was read of it.
#[derive(Debug)]
pub(crate) struct Noted {
    device: Box<dyn ReadAt>,
    pending: Pending,
}

impl Noted {
    pub(crate) fn new(device: Box<dyn ReadAt>, pending: &Pending) -> Self {
        Self { device, pending: Arc::clone(pending) }
    }
}

impl ReadAt for Noted {
    fn size_bytes(&self) -> u64 {
        self.device.size_bytes()
    }

    fn now_ns(&self) -> u64 {
        self.device.now_ns()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        self.device.read_at(offset, into)?;
        stage::lock(&self.pending).note(offset, into);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_noted_once() {
        let mut noting = Noting::default();
        noting.note(8192, &[1; 4096]);
        noting.note(0, &vec![2; 5 * 4096]);
        noting.note(4096, &[3; 4096]);
        let places: Vec<(u64, usize)> =
            noting.waiting.iter().map(|(at, bytes)| (*at, bytes.len())).collect();
        assert_eq!(places, [(8192, 4096), (0, 8192), (12_288, 8192)]);
    }
}
