//! Packets on their way to who adds them up: a thread that reads a source.

use core::ops::RangeInclusive;
use core::time::Duration;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

use anyhow::Context;
use capture::{FileOptions, FileSource, LiveOptions, LiveSource, Next, Source};
use host::{StopFlag, SystemClock};
use query::Query;
use talkers::{Limits, Moment, Talkers};
use units::{Clock, NANOS_PER_SECOND, Timestamp};

use crate::extracted::{Extract, Extracted};

const WAIT: Duration = Duration::from_millis(50);
/// Between two looks at what was lost.
const COUNT_NS: i64 = NANOS_PER_SECOND;
/// Seconds that are read before and behind one that is asked for.
const AROUND: (i64, i64) = (60, 20);

/// Where packets come from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// Interfaces of this machine.
    Interfaces(LiveOptions),
    /// A capture file.
    File(PathBuf),
    /// A volume.
    Volume {
        /// Which one.
        options: ::extract::Options,
        /// A recorder adds to it.
        is_growing: bool,
    },
}

/// What was met besides packets.
#[derive(Clone, Debug, Default)]
pub struct Met {
    /// All packets were read.
    pub is_over: bool,
    /// Packets that the kernel dropped before we took them.
    pub dropped: u64,
    /// What went wrong or is missing.
    pub notes: Vec<String>,
    /// Seconds of the first and the last packet of all, once that is known.
    span: Option<(i64, i64)>,
}

/// What is kept of that: a source may go wrong again and again for as long as it is shown.
const NOTES_MAX: usize = 100;

impl Met {
    fn note(&mut self, line: String) {
        if self.notes.len() < NOTES_MAX && !self.notes.contains(&line) {
            self.notes.push(line);
        }
    }

    /// That a moment is before the first packet, or behind the last.
    pub fn outside(&self, Moment(second): Moment) -> Option<String> {
        let (first, last) = self.span?;
        let way = if second < first {
            "before"
        } else if second > last {
            "behind"
        } else {
            return None;
        };
        let time = |second: i64| Timestamp(second.saturating_mul(NANOS_PER_SECOND)).to_string();
        Some(format!(
            "{} is {way} all packets, which are from {} to {}",
            time(second),
            time(first),
            time(last.saturating_add(1))
        ))
    }
}

/// A source that is read.
#[derive(Debug)]
pub struct Feed {
    talkers: Arc<Mutex<Talkers>>,
    met: Arc<Mutex<Met>>,
    stop: StopFlag,
    thread: Option<JoinHandle<()>>,
    /// Seconds that were asked for.
    wanted: RangeInclusive<i64>,
}

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    stage::lock(value)
}

/// A source with what is to be waited for in the end.
type Opened = (Box<dyn Source>, Option<Extract>);

impl Feed {
    /// Begins to read what is newest, or with `around` what is about a second.
    pub fn start(origin: &Origin, around: Option<Moment>, limits: Limits) -> anyhow::Result<Self> {
        let (before, behind) = AROUND;
        let wanted = around.map_or(i64::MIN..=i64::MAX, |Moment(second)| {
            second.saturating_sub(before)..=second.saturating_add(behind)
        });
        let stop = StopFlag::default();
        let (source, extract) = open(origin, &wanted, &stop)?;
        let seed = u64::from_le_bytes(host::random_bytes()?);
        let mut talkers = Talkers::new(limits, seed);
        if matches!(origin, Origin::Interfaces(_)) {
            talkers.begin(SystemClock.realtime());
        }
        let talkers = Arc::new(Mutex::new(talkers));
        let met = Arc::new(Mutex::new(Met::default()));
        let reading = Reading {
            source,
            extract,
            wanted: wanted.clone(),
            is_live: matches!(origin, Origin::Interfaces(_)),
            talkers: Arc::clone(&talkers),
            met: Arc::clone(&met),
            stop: stop.clone(),
            span: None,
        };
        let thread = thread::Builder::new().name("feed".to_owned());
        let thread = thread.spawn(move || reading.run()).context("cannot start a thread")?;
        Ok(Self { talkers, met, stop, thread: Some(thread), wanted })
    }

    /// What there is so far.
    pub fn talkers(&self) -> MutexGuard<'_, Talkers> {
        locked(&self.talkers)
    }

    /// Seconds up to this one are over: without packets nothing else says so.
    pub fn advance(&self, to: Moment) {
        locked(&self.talkers).advance(to.end());
    }

    /// What was met so far besides packets.
    pub fn met(&self) -> Met {
        locked(&self.met).clone()
    }

    /// Whether the windows that end with a second are read, or are about to be.
    pub fn covers(&self, Moment(second): Moment) -> bool {
        let window = talkers::WINDOWS.into_iter().max().unwrap_or(0);
        let held = self.talkers().held();
        let oldest = held.seconds.filter(|_| held.has_forgotten).map(|(oldest, _)| oldest.0);
        let begin = oldest.unwrap_or(i64::MIN).max(*self.wanted.start());
        let first = second.saturating_sub(window - 1);
        (begin == i64::MIN || begin <= first) && second <= *self.wanted.end()
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("a panic aborts");
        }
    }
}

fn open(origin: &Origin, wanted: &RangeInclusive<i64>, stop: &StopFlag) -> anyhow::Result<Opened> {
    match origin {
        Origin::Interfaces(options) => Ok((Box::new(LiveSource::open(options)?), None)),
        Origin::File(path) => Ok((Box::new(FileSource::open(path, FileOptions::default())?), None)),
        Origin::Volume { options, is_growing } => {
            let is_followed = *is_growing && *wanted.start() == i64::MIN;
            let query_text = if is_followed { String::new() } else { between(wanted) };
            let query = Query::parse(&query_text, SystemClock.realtime());
            let query = query.expect("times are a query");
            let (options, stop) = (options.clone(), stop.clone());
            let extracted = Extracted { options, query, query_text, is_followed, stop };
            let (source, extract) = extracted.start()?;
            Ok((Box::new(source), Some(extract)))
        }
    }
}

/// The packets of these seconds.
pub fn between(seconds: &RangeInclusive<i64>) -> String {
    let begin = Timestamp(seconds.start().saturating_mul(NANOS_PER_SECOND));
    let end = Moment(*seconds.end()).end();
    format!("after {begin} and before {end}")
}

/// The thread's own.
struct Reading {
    source: Box<dyn Source>,
    extract: Option<Extract>,
    wanted: RangeInclusive<i64>,
    is_live: bool,
    talkers: Arc<Mutex<Talkers>>,
    met: Arc<Mutex<Met>>,
    stop: StopFlag,
    /// Seconds of the first and the last packet of all.
    span: Option<(i64, i64)>,
}

impl Reading {
    fn run(mut self) {
        let mut counted_ns = SystemClock.boottime_ns();
        while !self.stop.is_set() {
            let wanted = &self.wanted;
            match self.source.next_batch(WAIT) {
                Ok(Next::Packets(batch)) => {
                    let interfaces = batch.interfaces();
                    let span = &mut self.span;
                    let is_wanted = |packet: &capture::Packet<'_>| {
                        let second = packet.timestamp.unix_seconds();
                        let (first, last) = span.get_or_insert((second, second));
                        (*first, *last) = ((*first).min(second), (*last).max(second));
                        wanted.contains(&second)
                    };
                    locked(&self.talkers).take(interfaces, batch.filter(is_wanted));
                }
                Ok(Next::Idle | Next::Block(_)) => {}
                Ok(Next::End) => break,
                Err(error) => locked(&self.met).note(error.to_string()),
            }
            let now_ns = SystemClock.boottime_ns();
            if self.is_live && now_ns - counted_ns >= COUNT_NS {
                counted_ns = now_ns;
                self.count();
            }
        }
        self.finish();
    }

    fn count(&mut self) {
        let counters = self.source.counters();
        let mut met = locked(&self.met);
        met.dropped = counters.iter().map(|counters| counters.kernel_drops).sum();
        self.source.notes().into_iter().for_each(|line| met.note(line));
    }

    fn finish(mut self) {
        self.count();
        locked(&self.talkers).end();
        drop(self.source);
        // Of a part of a volume other packets are not known; what is missing says where they end.
        let has_all = self.extract.is_none() || *self.wanted.start() == i64::MIN;
        locked(&self.met).span = self.span.filter(|_| has_all);
        if !has_all && self.span.is_none() {
            locked(&self.met).note(format!("the volume has no packet {}", between(&self.wanted)));
        }
        let missing = self.extract.map(|extract| extract.join().expect("a panic aborts"));
        let mut met = locked(&self.met);
        match missing {
            Some(Ok(Some(missing))) => {
                // The state, and a line for each reason.
                let (state, reasons) = missing.split_once('\n').unwrap_or((&missing, ""));
                if reasons.is_empty() {
                    met.note(state.to_owned());
                }
                reasons.lines().for_each(|reason| met.note(format!("{state}: {reason}")));
            }
            Some(Err(error)) => met.note(crate::failure::line(&error)),
            Some(Ok(None)) | None => {}
        }
        met.is_over = true;
    }
}
