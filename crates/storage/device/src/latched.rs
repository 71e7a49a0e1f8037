//! Ends a device's writing with its first failure.
//!
//! After a failed sync the kernel may have marked the lost pages clean, so a second sync can
//! succeed and prove nothing (fsync(2), "fsyncgate"). So nothing is retried: the first failure is
//! kept, every later mutation is refused with it, and a flush that was in flight does not count
//! either. Reads go on.

use core::time::Duration;

use crate::{Completion, Device, Error, Shared, assert_range};

/// A device that refuses every mutation after the first failed one.
#[derive(Debug)]
pub struct Latched {
    inner: Box<dyn Device>,
    cause: Option<Error>,
    flushes: Vec<u64>,
    /// They fail without consequences.
    discards: Vec<u64>,
    refused: Vec<u64>,
}

impl Latched {
    /// Wraps a device that has not failed yet.
    pub fn new(inner: Box<dyn Device>) -> Self {
        Self { inner, cause: None, flushes: Vec::new(), discards: Vec::new(), refused: Vec::new() }
    }

    fn refusal(&self) -> Result<(), Error> {
        match &self.cause {
            None => Ok(()),
            Some(cause) => Err(Error::Latched { cause: Box::new(cause.clone()) }),
        }
    }

    fn latch(&mut self, result: &Result<(), Error>) {
        if let (None, Err(error)) = (&self.cause, result) {
            self.cause = Some(error.clone());
        }
    }

    /// Notes a failure, and takes back the success of a flush that came after one.
    fn judge(&mut self, completion: &mut Completion) {
        if completion.read.is_some() {
            return;
        }
        let discard = self.discards.iter().position(|&token| token == completion.token);
        if let Some(index) = discard {
            self.discards.swap_remove(index);
            return;
        }
        let flush = self.flushes.iter().position(|&token| token == completion.token);
        if let Some(index) = flush {
            self.flushes.swap_remove(index);
            if completion.result.is_ok() {
                completion.result = self.refusal();
            }
        }
        self.latch(&completion.result);
    }
}

impl Device for Latched {
    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    fn submit_write(&mut self, token: u64, offset: u64, data: Shared, len: usize) {
        if self.cause.is_some() {
            assert_range(offset, len, self.size_bytes());
            self.refused.push(token);
        } else {
            self.inner.submit_write(token, offset, data, len);
        }
    }

    fn submit_flush(&mut self, token: u64) {
        if self.cause.is_some() {
            self.refused.push(token);
        } else {
            self.flushes.push(token);
            self.inner.submit_flush(token);
        }
    }

    fn submit_discard(&mut self, token: u64, offset: u64, len: u64) {
        if self.cause.is_some() {
            self.refused.push(token);
        } else {
            self.discards.push(token);
            self.inner.submit_discard(token, offset, len);
        }
    }

    fn submit_read(&mut self, token: u64, offset: u64, len: usize) {
        self.inner.submit_read(token, offset, len);
    }

    fn reap(&mut self, wait: Option<Duration>, out: &mut Vec<Completion>) {
        let first = out.len();
        let wait = if self.refused.is_empty() { wait } else { None };
        self.inner.reap(wait, out);
        for completion in out.iter_mut().skip(first) {
            self.judge(completion);
        }
        for token in core::mem::take(&mut self.refused) {
            out.push(Completion::new(token, self.refusal(), 0));
        }
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight() + self.refused.len()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        self.inner.read_at(offset, into)
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.refusal()?;
        let result = self.inner.write_at(offset, data);
        self.latch(&result);
        result
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.refusal()?;
        let result = self.inner.flush();
        self.latch(&result);
        result
    }

    fn notes(&self) -> &[String] {
        self.inner.notes()
    }
}
