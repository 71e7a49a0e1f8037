//! What is counted of requests and connections, for metrics.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Requests and connections of this service.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// By endpoint and status.
    pub(crate) answered: Mutex<BTreeMap<(&'static str, u16), Tally>>,
    pub(crate) connections: AtomicUsize,
    pub(crate) pushed_out: AtomicU64,
    pub(crate) bad_handshakes: AtomicU64,
}

/// Of one endpoint and status.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) count: u64,
    pub(crate) took_ns: u64,
    pub(crate) bytes: u64,
}

impl Requests {
    pub(crate) fn note(&self, endpoint: &'static str, status: u16, (took_ns, bytes): (i64, u64)) {
        let mut answered = stage::lock(&self.answered);
        let tally = answered.entry((endpoint, status)).or_default();
        tally.count = tally.count.saturating_add(1);
        tally.took_ns = tally.took_ns.saturating_add(took_ns.unsigned_abs());
        tally.bytes = tally.bytes.saturating_add(bytes);
    }

    pub(crate) fn note_connections(&self, count: usize) {
        self.connections.store(count, Ordering::Relaxed);
    }

    pub(crate) fn note_pushed_out(&self) {
        self.pushed_out.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_bad_handshake(&self) {
        self.bad_handshakes.fetch_add(1, Ordering::Relaxed);
    }
}
