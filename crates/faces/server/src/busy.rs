//! Whether a connection is being answered.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// A request that is being answered, to the last byte of its answer.
#[derive(Debug)]
pub(crate) struct Busy(pub(crate) Arc<AtomicBool>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
