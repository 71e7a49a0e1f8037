//! A line for each request: who asked what, when, from where, and what came of it.
//!
//! Whoever asks chooses bytes of a line and how many lines there are: what is not harmless is
//! escaped by who writes the line, a line has a longest length, and beyond a rate lines are left
//! out and counted. What the service says of itself is beside that rate.

use core::sync::atomic::{AtomicU64, Ordering};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use host::SystemClock;
use hyper::StatusCode;
use page::safe::printable;
use units::Clock as _;

use crate::budget::Budget;
use crate::requests::Requests;
use crate::trail::{Outcome, Record, Trail};

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

impl Log {
    pub(crate) fn new(write: WriteLine) -> Self {
        let budget = Budget::new(BURST, LINES_PER_S, SystemClock.boottime_ns());
        Self { write, budget: Mutex::new(budget), left_out: AtomicU64::new(0) }
    }

    /// Lines that were not written.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    /// What the service says of itself, which no number of requests keeps from being said.
    pub(crate) fn say(&self, line: &str) {
        self.write(true, line);
    }

    /// The line of a request, or of a connection that came to none: whoever may connect can cause
    /// one.
    pub(crate) fn say_of_request(&self, line: &str) {
        let mut budget = stage::lock(&self.budget);
        let is_within = budget.take(SystemClock.boottime_ns());
        drop(budget);
        self.write(is_within, line);
    }

    fn write(&self, is_within: bool, line: &str) {
        if !(is_within && (self.write)(line)) {
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
    pub(crate) record: Record,
}

impl Entry {
    pub(crate) fn begin(
        (log, trail): (&Arc<Log>, &Arc<Trail>),
        requests: &Arc<Requests>,
        from: SocketAddr,
    ) -> Self {
        Self {
            record: Record::begin(trail, from),
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
        self.record.ask(method, uri);
    }

    /// The log has the path alone.
    pub(crate) fn leave_out_query(&mut self) {
        if let Some(at) = self.asked.find('?') {
            self.asked.truncate(at);
        }
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
        self.record.is_by(who);
    }

    pub(crate) fn answer_with(&mut self, status: StatusCode) {
        self.status = status;
    }

    /// Who knows how a streamed answer ends.
    pub(crate) fn ends_as(&mut self, outcome: Arc<Outcome>) {
        self.record.ends_as(outcome);
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
        let milliseconds = took_ns.unsigned_abs() / 1_000_000;
        let more = self.record.end(self.bytes, self.is_whole);
        let Self { from, who, asked, status, bytes, .. } = self;
        let who = who.as_deref().unwrap_or("-");
        let now = SystemClock.realtime();
        self.log.say_of_request(&format!(
            "{now} {} {from} \"{}\" {} {bytes} bytes {milliseconds} ms{}",
            printable(who),
            printable(asked),
            status.as_u16(),
            printable(&more),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static WRITTEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

    fn keep(line: &str) -> bool {
        WRITTEN.lock().unwrap().push(line.to_owned());
        true
    }

    #[test]
    fn what_the_service_says_has_a_line_also_in_a_flood_of_requests() {
        let log = Log::new(keep);
        for _ in 0..2 * BURST {
            log.say_of_request("request");
        }
        assert!(log.left_out() > 0);
        log.say("no credential counts");
        let written = WRITTEN.lock().unwrap();
        assert_eq!(written.last().map(String::as_str), Some("no credential counts"));
    }
}
