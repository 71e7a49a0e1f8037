//! A line for each request: who asked what, when, from where, and what came of it.
//!
//! Whoever asks chooses bytes of a line and how many lines there are: what is not harmless is
//! escaped by who writes the line, a line has a longest length, and beyond a rate lines are left
//! out and counted.

use core::sync::atomic::{AtomicU64, Ordering};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use host::SystemClock;
use hyper::StatusCode;
use page::safe::printable;
use units::{Clock as _, NANOS_PER_SECOND};

use crate::metrics::Requests;

/// Lines that may come at once, and lines a second beyond.
const BURST: u64 = 500;
const LINES_PER_S: u64 = 50;
/// Of what was asked so many characters are shown.
const ASKED_MAX: usize = 600;

/// Takes a line; false where it could not be written without waiting.
pub type WriteLine = fn(&str) -> bool;

/// The log of a service.
#[derive(Debug)]
pub(crate) struct Log {
    write: WriteLine,
    budget: Mutex<Budget>,
    left_out: AtomicU64,
}

#[derive(Debug)]
struct Budget {
    lines: u64,
    since_ns: i64,
}

impl Budget {
    /// Whether one more line is within it.
    fn take(&mut self, now_ns: i64) -> bool {
        let second = NANOS_PER_SECOND.unsigned_abs();
        let passed_ns = now_ns.saturating_sub(self.since_ns).max(0).unsigned_abs();
        let earned = passed_ns.saturating_mul(LINES_PER_S) / second;
        if earned > 0 {
            self.lines = self.lines.saturating_add(earned).min(BURST);
            self.since_ns = now_ns;
        }
        let is_within = self.lines > 0;
        self.lines = self.lines.saturating_sub(1);
        is_within
    }
}

impl Log {
    pub(crate) fn new(write: WriteLine) -> Self {
        let budget = Budget { lines: BURST, since_ns: SystemClock.boottime_ns() };
        Self { write, budget: Mutex::new(budget), left_out: AtomicU64::new(0) }
    }

    /// Lines that were not written.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    pub(crate) fn say(&self, line: &str) {
        let mut budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        let is_said = budget.take(SystemClock.boottime_ns()) && (self.write)(line);
        drop(budget);
        if !is_said {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A request that is being answered; its line is written when this is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    log: Arc<Log>,
    requests: Arc<Requests>,
    from: SocketAddr,
    /// Name of the credential.
    who: Option<String>,
    asked: String,
    /// Of the table, for the metrics.
    endpoint: &'static str,
    status: StatusCode,
    began_ns: i64,
    bytes: u64,
    is_whole: bool,
}

impl Entry {
    pub(crate) fn begin(log: &Arc<Log>, requests: &Arc<Requests>, from: SocketAddr) -> Self {
        Self {
            log: Arc::clone(log),
            requests: Arc::clone(requests),
            from,
            who: None,
            asked: String::new(),
            endpoint: "none",
            status: StatusCode::OK,
            began_ns: SystemClock.boottime_ns(),
            bytes: 0,
            is_whole: false,
        }
    }

    /// What is asked for.
    pub(crate) fn ask(&mut self, method: &hyper::Method, uri: &hyper::Uri) {
        let asked = format!("{method} {uri}");
        self.asked = asked.chars().take(ASKED_MAX).collect();
    }

    /// What the body of the request asks besides.
    pub(crate) fn add_to_asked(&mut self, text: &str) {
        let room = ASKED_MAX.saturating_sub(self.asked.chars().count());
        self.asked.push(' ');
        self.asked.extend(text.chars().take(room));
    }

    pub(crate) fn is_of(&mut self, endpoint: &'static str) {
        self.endpoint = endpoint;
    }

    pub(crate) fn is_by(&mut self, who: &str) {
        self.who = Some(who.to_owned());
    }

    pub(crate) fn answer_with(&mut self, status: StatusCode) {
        self.status = status;
    }

    pub(crate) fn add_bytes(&mut self, count: usize) {
        self.bytes = self.bytes.saturating_add(units::number::to_u64(count));
    }

    pub(crate) fn end(&mut self) {
        self.is_whole = true;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let took_ns = SystemClock.boottime_ns().saturating_sub(self.began_ns).max(0);
        self.requests.note(self.endpoint, self.status.as_u16(), (took_ns, self.bytes));
        let Self { from, who, asked, status, bytes, .. } = self;
        let who = who.as_deref().unwrap_or("-");
        let broken_off = if self.is_whole { "" } else { " broken off" };
        let milliseconds = took_ns / 1_000_000;
        let now = SystemClock.realtime();
        self.log.say(&format!(
            "{now} {} {from} \"{}\" {} {bytes} bytes {milliseconds} ms{broken_off}",
            printable(who),
            printable(asked),
            status.as_u16(),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_rate_are_left_out() {
        let mut budget = Budget { lines: BURST, since_ns: 0 };
        assert_eq!((0..2 * BURST).filter(|_| budget.take(0)).count(), 500);
        assert_eq!((0..100).filter(|_| budget.take(NANOS_PER_SECOND)).count(), 50);
        assert!(!budget.take(NANOS_PER_SECOND));
    }
}
