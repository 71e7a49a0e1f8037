//! The threads that turn rows into Parquet while the next segment fills: one while packets come,
//! all at the end, the thread that makes the rows among them.
//!
//! Rows come a row group at a time, in the order of their start, as fast as the table makes them:
//! encoding has begun long before the last row is made.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

use index::{Encoded, EncodedGroup, GROUP_ROWS, GroupEncoder, SegmentMeta};
use session::SessionRow;
use units::Timestamp;

/// Row groups that may wait to be encoded: those of the largest segment. Each has about 4 MB.
const WAITING_MAX: usize = 64;
/// The same at the end, when waiting holds up no other thread: memory that is used again need not
/// be cleared by the kernel.
const WAITING_AT_END_MAX: usize = 2;
/// Memory of encoded row groups that is kept for the next ones.
const SPARE_MAX: usize = 8;

/// A segment's file in the making.
struct File {
    encoder: GroupEncoder,
    groups: Mutex<Vec<(usize, Result<EncodedGroup, index::Error>)>>,
    is_encoded: Condvar,
}

/// Rows on their way into a file.
struct Group {
    file: Arc<File>,
    number: usize,
    rows: Vec<SessionRow>,
}

enum Work {
    Group(Group),
    /// All groups were handed over before.
    Finish {
        file: Arc<File>,
        groups: usize,
        meta: SegmentMeta,
    },
}

/// What is to be done, in order.
#[derive(Default)]
struct Queue {
    state: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    work: VecDeque<Work>,
    spare: Vec<Vec<SessionRow>>,
    /// No packet needs the processors any more.
    is_end_near: bool,
    /// No further group will come.
    has_all: bool,
    has_ended: bool,
}

impl Waiting {
    fn groups(&self) -> usize {
        self.work.iter().filter(|work| matches!(work, Work::Group(_))).count()
    }

    fn take_group(&mut self) -> Option<Group> {
        let at = self.work.iter().position(|work| matches!(work, Work::Group(_)))?;
        match self.work.remove(at) {
            Some(Work::Group(group)) => Some(group),
            _ => unreachable!("it was found there"),
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().expect("a panic aborts")
    }

    /// Waits while too much is waiting; near the end the caller does some of it instead.
    fn push(&self, group: Group) {
        let is_full =
            |waiting: &mut Waiting| !waiting.is_end_near && waiting.groups() >= WAITING_MAX;
        let waiting = self.changed.wait_while(self.lock(), is_full);
        let mut waiting = waiting.expect("a panic aborts");
        waiting.work.push_back(Work::Group(group));
        let is_too_much = waiting.is_end_near && waiting.groups() > WAITING_AT_END_MAX;
        let mine = if is_too_much { waiting.take_group() } else { None };
        drop(waiting);
        self.changed.notify_all();
        if let Some(group) = mine {
            self.encode(group);
        }
    }

    fn finish(&self, work: Work) {
        self.lock().work.push_back(work);
        self.changed.notify_all();
    }

    /// The next of all, waiting for it; `None` when there will be none.
    fn take(&self) -> Option<Work> {
        let is_idle = |waiting: &mut Waiting| waiting.work.is_empty() && !waiting.has_ended;
        let waiting = self.changed.wait_while(self.lock(), is_idle);
        let work = waiting.expect("a panic aborts").work.pop_front();
        self.changed.notify_all();
        work
    }

    /// The next row group, waiting for it; `None` when there will be none.
    fn take_group(&self) -> Option<Group> {
        let is_idle = |waiting: &mut Waiting| waiting.groups() == 0 && !waiting.has_all;
        let waiting = self.changed.wait_while(self.lock(), is_idle);
        let group = waiting.expect("a panic aborts").take_group();
        self.changed.notify_all();
        group
    }

    fn encode(&self, Group { file, number, mut rows }: Group) {
        let group = file.encoder.encode(number, &rows.iter().collect::<Vec<_>>());
        file.groups.lock().expect("a panic aborts").push((number, group));
        file.is_encoded.notify_all();
        rows.clear();
        let mut waiting = self.lock();
        if waiting.spare.len() < SPARE_MAX {
            waiting.spare.push(rows);
        }
    }

    /// Encodes row groups until no further one will come.
    fn help(&self) {
        while let Some(group) = self.take_group() {
            self.encode(group);
        }
    }

    /// Does everything until the end, files in their order.
    fn run(&self, deliver: &mut Deliver) {
        while let Some(work) = self.take() {
            match work {
                Work::Group(group) => self.encode(group),
                Work::Finish { file, groups, meta } => deliver(file.finish(groups, &meta)),
            }
        }
    }
}

impl File {
    /// Waits for groups that other threads have under way.
    fn finish(&self, groups: usize, meta: &SegmentMeta) -> Result<Encoded, index::Error> {
        let encoded = self.groups.lock().expect("a panic aborts");
        let is_partial = |encoded: &mut Vec<_>| encoded.len() < groups;
        let encoded = self.is_encoded.wait_while(encoded, is_partial);
        let mut encoded = core::mem::take(&mut *encoded.expect("a panic aborts"));
        encoded.sort_unstable_by_key(|&(number, _)| number);
        let groups = encoded.into_iter().map(|(_, group)| group).collect::<Result<_, _>>()?;
        self.encoder.file(meta, groups)
    }
}

/// Receives the files in their order, on the encoder's thread.
pub(crate) type Deliver = dyn FnMut(Result<Encoded, index::Error>) + Send;

/// Rows in, Parquet files out, in the same order.
pub(crate) struct Encoder {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
    helpers: Vec<JoinHandle<()>>,
}

impl Encoder {
    pub(crate) fn start(mut deliver: Box<Deliver>) -> Result<Self, std::io::Error> {
        let queue = Arc::new(Queue::default());
        let of_thread = Arc::clone(&queue);
        let body = move || of_thread.run(&mut deliver);
        let thread = thread::Builder::new().name("encode".to_owned()).spawn(body)?;
        Ok(Self { queue, thread: Some(thread), helpers: Vec::new() })
    }

    /// Begins a file. `ended` are rows that came out of the table before, in any order.
    pub(crate) fn begin(&mut self, ended: Vec<SessionRow>) -> Result<Rows<'_>, index::Error> {
        let encoder = GroupEncoder::new()?;
        let file = File { encoder, groups: Mutex::default(), is_encoded: Condvar::new() };
        let group = Vec::new();
        Ok(Rows { file: Arc::new(file), ended: Ended::new(ended), group, groups: 0, encoder: self })
    }

    /// No packet needs the processors any more: from here on so many threads in all encode, this
    /// one when it has made more rows than the others take.
    pub(crate) fn hire(&mut self, threads: usize) {
        self.queue.lock().is_end_near = true;
        self.queue.changed.notify_all();
        // Besides this thread and the encoder's own.
        for _ in 2..threads {
            let queue = Arc::clone(&self.queue);
            let helper = thread::Builder::new().name("encode".to_owned());
            // Where there can be no more threads, these do it all.
            self.helpers.extend(helper.spawn(move || queue.help()));
        }
    }

    /// All rows were made: helps until they are encoded.
    pub(crate) fn complete(&mut self) {
        self.queue.lock().has_all = true;
        self.queue.changed.notify_all();
        self.queue.help();
        for helper in self.helpers.drain(..) {
            helper.join().expect("a panic aborts");
        }
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        let mut waiting = self.queue.lock();
        (waiting.has_all, waiting.has_ended) = (true, true);
        drop(waiting);
        self.queue.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("a panic aborts");
        }
    }
}

/// Rows of one segment, which come in the order of their start.
pub(crate) struct Rows<'a> {
    encoder: &'a mut Encoder,
    file: Arc<File>,
    ended: Ended,
    group: Vec<SessionRow>,
    groups: usize,
}

impl Extend<SessionRow> for Rows<'_> {
    fn extend<I: IntoIterator<Item = SessionRow>>(&mut self, rows: I) {
        for row in rows {
            while let Some(earlier) = self.ended.next_until(row.start) {
                self.push(earlier);
            }
            self.push(row);
        }
    }
}

impl Rows<'_> {
    /// All rows have come.
    pub(crate) fn finish(mut self, meta: SegmentMeta) {
        while let Some(last) = self.ended.next_until(Timestamp::MAX) {
            self.push(last);
        }
        if !self.group.is_empty() {
            self.hand_over();
        }
        let Self { file, groups, .. } = self;
        self.encoder.queue.finish(Work::Finish { file, groups, meta });
    }

    fn push(&mut self, row: SessionRow) {
        if self.group.capacity() == 0 {
            let spare = self.encoder.queue.lock().spare.pop();
            self.group = spare.unwrap_or_else(|| Vec::with_capacity(GROUP_ROWS));
        }
        self.group.push(row);
        if self.group.len() == GROUP_ROWS {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let (file, rows) = (Arc::clone(&self.file), core::mem::take(&mut self.group));
        self.encoder.queue.push(Group { file, number: self.groups, rows });
        self.groups += 1;
    }
}

/// Rows of sessions and slices that ended during the segment.
struct Ended {
    rows: Vec<Option<SessionRow>>,
    /// Their starts, and their places in `rows`.
    order: std::vec::IntoIter<(Timestamp, usize)>,
}

impl Ended {
    fn new(rows: Vec<SessionRow>) -> Self {
        let order = index::by_start(&rows).into_iter();
        Self { rows: rows.into_iter().map(Some).collect(), order }
    }

    /// The next, if it does not begin after `time`.
    fn next_until(&mut self, time: Timestamp) -> Option<SessionRow> {
        self.order.as_slice().first().filter(|(start, _)| *start <= time)?;
        let (_, at) = self.order.next()?;
        self.rows.get_mut(at).and_then(Option::take)
    }
}

#[cfg(test)]
mod tests;
