//! The one writer of an audit: a thread, so that requests wait for one flush together.

use core::time::Duration;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use host::{Ledger, SystemClock};
use sha2::{Digest as _, Sha256};
use units::{Clock as _, hex};

use crate::chain::Link;
use crate::line::{BEGINS, Event, Line, Removed};
use crate::reading::{Tail, end_of};
use crate::{Error, rotation};

/// Lines that are written together at most.
const GROUP_MAX: usize = 256;
/// Requests that wait for their lines at most; a service has fewer connections.
const WAITING_MAX: usize = 4096;
/// After a failure the file is tried again so often.
const AGAIN: Duration = Duration::from_millis(500);

/// Where an audit is, and how much of it there may be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Files {
    /// The file that is written.
    pub path: PathBuf,
    /// A file of so many bytes gets another name, and the next one begins.
    pub file_bytes: u64,
    /// So many files with other names are kept; the oldest is removed.
    pub files: usize,
}

/// Why an event has no line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unwritten;

/// Is called with the number of the line once it is on the disk.
pub type Written = Box<dyn FnOnce(Result<u64, Unwritten>) + Send>;

/// Takes what an operator should know.
type Tell = Box<dyn Fn(&str) + Send>;

/// An audit that is written.
#[derive(Debug)]
pub struct Audit {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Ends of what has begun: they wait until they can be written.
    ends: VecDeque<Event>,
    asked: VecDeque<(Event, Written)>,
    /// Requests that have no lines, since that was written.
    unlisted: u64,
    is_stopping: bool,
    is_failing: bool,
    end: Link,
    lines: u64,
}

impl core::fmt::Debug for Queue {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { ends, asked, .. } = self;
        write!(f, "Queue {{ ends: {}, asked: {} }}", ends.len(), asked.len())
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        stage::lock(&self.queue)
    }

    /// Waits a moment, or for a request.
    fn rest(&self) {
        let queue = self.queue();
        if queue.asked.is_empty() && !queue.is_stopping {
            drop(self.changed.wait_timeout(queue, AGAIN));
        }
    }
}

impl Audit {
    /// Opens an audit or begins one, and writes that `program` starts. What an operator should know
    /// goes to `tell`. A disk that is full does not keep it from beginning: then nothing is
    /// written, and each event is told so, until there is room.
    ///
    /// # Errors
    /// When the file cannot be opened or read, or another process writes it.
    pub fn open(
        files: Files,
        program: &str,
        tell: impl Fn(&str) + Send + 'static,
    ) -> Result<Self, Error> {
        let mut writer = Writer {
            files,
            tell: Box::new(tell),
            ledger: None,
            end: Link::default(),
            first: Vec::new(),
            is_torn: false,
            failing: None,
            tried_ns: i64::MIN,
        };
        let faults = writer.begin()?;
        let start = Event::Start { program: program.to_owned(), faults };
        writer.first.push(start);
        let shared = Arc::<Shared>::default();
        shared.queue().end = writer.end;
        let theirs = Arc::clone(&shared);
        let work = move || writer.work(&theirs);
        let thread = std::thread::Builder::new().name("audit".to_owned()).spawn(work);
        let thread = Mutex::new(Some(thread.map_err(Error::Thread)?));
        let audit = Self { shared, thread };
        audit.shared.changed.notify_one();
        Ok(audit)
    }

    /// Writes an event; `written` is called when it is on the disk, or will not be.
    pub fn write(&self, event: Event, written: Written) {
        let mut queue = self.shared.queue();
        if queue.is_stopping || queue.asked.len() >= WAITING_MAX {
            drop(queue);
            return written(Err(Unwritten));
        }
        queue.asked.push_back((event, written));
        drop(queue);
        self.shared.changed.notify_one();
    }

    /// Writes the end of what has begun, as soon as that can be done.
    pub fn write_end(&self, event: Event) {
        self.shared.queue().ends.push_back(event);
        self.shared.changed.notify_one();
    }

    /// Counts a request that has no line; the next line says how many there were.
    pub fn leave_out(&self) {
        let mut queue = self.shared.queue();
        queue.unlisted = queue.unlisted.saturating_add(1);
    }

    /// Whether the last lines could be written.
    pub fn is_well(&self) -> bool {
        !self.shared.queue().is_failing
    }

    /// The last line that is on the disk.
    pub fn end(&self) -> Link {
        self.shared.queue().end
    }

    /// Lines that this process has written.
    pub fn lines(&self) -> u64 {
        self.shared.queue().lines
    }

    /// Writes what waits, and that the service ended in order; the last line.
    pub fn stop(&self) -> Link {
        let thread = stage::lock(&self.thread).take();
        if let Some(thread) = thread {
            self.shared.queue().is_stopping = true;
            self.shared.changed.notify_one();
            drop(thread.join());
        }
        self.end()
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Writer {
    files: Files,
    tell: Tell,
    /// None where it has to be opened and read again.
    ledger: Option<Ledger>,
    end: Link,
    /// What has to be written before anything else.
    first: Vec<Event>,
    /// The last line in the file has no line feed yet.
    is_torn: bool,
    failing: Option<Failing>,
    tried_ns: i64,
}

struct Failing {
    why: String,
    refused: u64,
}

/// Lines as bytes, and where the chain ends then.
struct Group {
    bytes: Vec<u8>,
    end: Link,
    count: u64,
}

impl Group {
    fn new(end: Link) -> Self {
        Self { bytes: Vec::new(), end, count: 0 }
    }

    fn add(&mut self, event: Event, time: &str) {
        let (prev, seq) = (hex(&self.end.hash), self.end.seq.saturating_add(1));
        let text = Line { prev, seq, time: time.to_owned(), event }.to_text();
        self.end = Link { seq, hash: Sha256::digest(text.as_bytes()).into() };
        self.bytes.extend_from_slice(text.as_bytes());
        self.count += 1;
    }
}

impl Writer {
    /// Opens the file and finds where the chain ends; faults of the file.
    fn begin(&mut self) -> Result<u64, Error> {
        let path = self.files.path.clone();
        let ledger = Ledger::open(&path)?;
        ledger.check_begins(BEGINS)?;
        let mut faults = 0;
        if ledger.size_bytes() > 0 {
            let (tail, found) = end_of(&path)?;
            faults = found.faults_count;
            if let Some((_, fault)) = found.faults.first() {
                (self.tell)(&format!(
                    "the audit {} is broken at line {}: {}",
                    page::safe::path(&path),
                    fault.line,
                    fault.why
                ));
            }
            self.end = found.end;
            self.state_torn(&tail);
        } else if let Some(end) = self.end_of_renamed()? {
            self.end = end;
            self.first.insert(0, Event::Continued { file: None, removed: Vec::new() });
        }
        self.ledger = Some(ledger);
        Ok(faults)
    }

    /// Has the next line state that the last one has no end. That one gets its line feed with it.
    fn state_torn(&mut self, tail: &Tail) {
        let Some(bytes) = tail.torn_bytes else { return };
        let behind = if tail.is_line { self.end.hash } else { tail.behind.hash };
        self.first.insert(0, Event::Torn { bytes, behind: hex(&behind) });
        self.is_torn = true;
        let path = page::safe::path(&self.files.path);
        (self.tell)(&format!("the audit {path} ended within a line; the next one states it"));
    }

    /// Where the chain ends in a file beside an empty one: the operator has renamed it meanwhile.
    fn end_of_renamed(&self) -> Result<Option<Link>, Error> {
        let mut newest: Option<Link> = None;
        for (path, _) in rotation::siblings(&self.files.path)? {
            if rotation::first_seq(&path).is_none() {
                continue;
            }
            if host::is_ledger_open(&path) {
                let why = "another process writes the file that had this name";
                return Err(host::Error::UnsafeFile { path, why }.into());
            }
            let (_, found) = end_of(&path)?;
            if newest.is_none_or(|end| end.seq < found.end.seq) {
                newest = Some(found.end);
            }
        }
        Ok(newest)
    }

    fn work(mut self, shared: &Shared) {
        let mut is_first = true;
        loop {
            let mut queue = shared.queue();
            while !is_first && queue.is_empty() && !queue.is_stopping {
                queue = shared.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            is_first = false;
            let is_stopping = queue.is_stopping;
            let ends = core::mem::take(&mut queue.ends);
            let count = queue.asked.len().min(GROUP_MAX);
            let asked: Vec<(Event, Written)> = queue.asked.drain(..count).collect();
            let unlisted = core::mem::take(&mut queue.unlisted);
            let is_last = is_stopping && queue.asked.is_empty();
            drop(queue);
            let is_written = self.write(shared, ends, asked, (unlisted, is_last));
            if is_last {
                return;
            }
            if !is_written {
                shared.rest();
            }
        }
    }

    /// Writes a group, and calls those who wait.
    fn write(
        &mut self,
        shared: &Shared,
        mut ends: VecDeque<Event>,
        asked: Vec<(Event, Written)>,
        (unlisted, is_last): (u64, bool),
    ) -> bool {
        let made = self.ready(unlisted);
        let group = made.and_then(|mut group| {
            let time = SystemClock.realtime().to_string();
            for event in &ends {
                group.add(event.clone(), &time);
            }
            let first = group.end.seq.saturating_add(1);
            for (event, _) in &asked {
                group.add(event.clone(), &time);
            }
            if is_last {
                group.add(Event::Stop {}, &time);
            }
            self.append(&group.bytes).map(|()| (group, first))
        });
        let mut queue = shared.queue();
        queue.is_failing = group.is_err();
        match group {
            Ok((group, first)) => {
                self.end = group.end;
                self.has_written();
                queue.end = group.end;
                queue.lines = queue.lines.saturating_add(group.count);
                drop(queue);
                for (seq, (_, written)) in (first..).zip(asked) {
                    written(Ok(seq));
                }
                true
            }
            Err(why) => {
                ends.append(&mut queue.ends);
                queue.ends = ends;
                queue.unlisted = queue.unlisted.saturating_add(unlisted);
                drop(queue);
                self.has_failed(why, units::number::to_u64(asked.len()));
                for (_, written) in asked {
                    written(Err(Unwritten));
                }
                false
            }
        }
    }

    /// A group that begins with what has to be said first, to a file that can take it.
    fn ready(&mut self, unlisted: u64) -> Result<Group, String> {
        let now_ns = SystemClock.boottime_ns();
        if let Some(failing) = &self.failing {
            let again_ns = self.tried_ns.saturating_add(units::nanos(AGAIN));
            if self.ledger.is_none() && now_ns < again_ns {
                return Err(failing.why.clone());
            }
        }
        self.tried_ns = now_ns;
        if self.ledger.is_none() {
            self.forget_place();
            self.begin().map_err(|error| reason(&error))?;
        } else if self.ledger.as_ref().is_some_and(|ledger| !ledger.is_in_place()) {
            self.go_on_elsewhere().map_err(|error| reason(&error))?;
        } else if self.ledger.as_ref().map_or(0, Ledger::size_bytes) >= self.files.file_bytes {
            self.turn_over();
        }
        let mut group = Group::new(self.end);
        if self.is_torn {
            group.bytes.push(b'\n');
        }
        let time = SystemClock.realtime().to_string();
        for event in &self.first {
            group.add(event.clone(), &time);
        }
        if let Some(Failing { why, refused }) = &self.failing {
            group.add(Event::Resumed { why: why.clone(), refused: *refused }, &time);
        }
        if unlisted > 0 {
            group.add(Event::Unlisted { count: unlisted }, &time);
        }
        Ok(group)
    }

    /// The path names another file, or none: the operator has renamed ours, or somebody has removed
    /// it. The chain goes on at the path.
    fn go_on_elsewhere(&mut self) -> Result<(), Error> {
        let before = self.end;
        let ledger = Ledger::open(&self.files.path)?;
        ledger.check_begins(BEGINS)?;
        let path = page::safe::path(&self.files.path);
        if ledger.size_bytes() == 0 {
            (self.tell)(&format!("the audit {path} was renamed or removed: a further file begins"));
            self.forget_place();
            self.first.insert(0, Event::Continued { file: None, removed: Vec::new() });
            self.ledger = Some(ledger);
            return Ok(());
        }
        drop(ledger);
        self.ledger = None;
        self.forget_place();
        self.begin()?;
        if self.end != before {
            let (seq, hash) = (before.seq, hex(&before.hash));
            self.first.push(Event::Exchanged { missing: seq, hash: hash.clone() });
            (self.tell)(&format!(
                "the audit {path} is another file, without line {seq} of the chain, {hash}"
            ));
        }
        Ok(())
    }

    /// What was to be said first of a file is not of the next one.
    fn forget_place(&mut self) {
        let stays = |event: &Event| matches!(event, Event::Start { .. } | Event::Exchanged { .. });
        self.first.retain(stays);
        self.is_torn = false;
    }

    /// Gives a full file another name and begins the next one. Where that cannot be done it grows.
    fn turn_over(&mut self) {
        let (path, full) = (&self.files.path, rotation::full_name(&self.files.path, self.end.seq));
        let Some(ledger) = &self.ledger else { return };
        let opened = ledger.rename(&full).and_then(|()| Ledger::open(path));
        let next = match opened {
            Ok(next) => next,
            Err(error) => {
                let path = page::safe::path(path);
                return (self.tell)(&format!("the audit {path} stays one file: {error}"));
            }
        };
        let files = rotation::full_files(path).unwrap_or_default();
        let surplus = files.len().saturating_sub(self.files.files);
        let name = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
        let removed = files
            .iter()
            .take(surplus)
            .filter_map(|(file, bytes)| Some(Removed { file: name(file)?, bytes: *bytes }));
        let removed = removed.collect();
        self.first.push(Event::Continued { file: name(&full), removed });
        self.ledger = Some(next);
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), String> {
        let Some(ledger) = &mut self.ledger else { return Err("it is not open".to_owned()) };
        ledger.append(bytes).map_err(|failed| {
            if !failed.is_undone {
                // What is in the file now is found by reading it.
                self.ledger = None;
            }
            failed.source.to_string()
        })
    }

    /// What was to be said first was said; files that a line says are removed are removed.
    fn has_written(&mut self) {
        self.is_torn = false;
        for event in core::mem::take(&mut self.first) {
            let Event::Continued { removed, .. } = event else { continue };
            for Removed { file, .. } in removed {
                let path = self.files.path.with_file_name(&file);
                if let Err(error) = host::remove_file(&path) {
                    (self.tell)(&format!("an old file of the audit stays: {error}"));
                }
            }
        }
        if let Some(Failing { refused, .. }) = self.failing.take() {
            let requests = page::text::plural(refused, "request");
            (self.tell)(&format!("the audit is written again; {requests} refused meanwhile"));
        }
    }

    fn has_failed(&mut self, why: String, refused: u64) {
        if self.failing.is_none() {
            let path = page::safe::path(&self.files.path);
            (self.tell)(&format!("the audit {path} cannot be written, nothing is answered: {why}"));
        }
        let failing = self.failing.get_or_insert(Failing { why, refused: 0 });
        failing.refused = failing.refused.saturating_add(refused);
    }
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.ends.is_empty() && self.asked.is_empty()
    }
}

/// An error with its causes.
fn reason(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = core::error::Error::source(error);
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::tests::request;
    use crate::{Verified, verify};
    use std::sync::mpsc::sync_channel;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn path(&self) -> PathBuf {
            self.0.path().join("audit.jsonl")
        }

        fn open(&self, file_bytes: u64, files: usize) -> Result<Audit, Error> {
            let files = Files { path: self.path(), file_bytes, files };
            Audit::open(files, "wirespool 1", |_| {})
        }

        fn all(&self) -> Vec<PathBuf> {
            let files = host::files_in(self.0.path()).unwrap();
            files.into_iter().map(|(path, _)| path).collect()
        }

        fn verified(&self) -> Verified {
            verify(&self.all(), None).unwrap()
        }

        fn text(&self) -> String {
            std::fs::read_to_string(self.path()).unwrap()
        }
    }

    fn event(number: u64) -> Event {
        Event::Request(Box::new(request("anna", number)))
    }

    fn write(audit: &Audit, number: u64) -> Result<u64, Unwritten> {
        let (tell, told) = sync_channel(1);
        audit.write(event(number), Box::new(move |result| tell.send(result).unwrap()));
        told.recv().unwrap()
    }

    #[test]
    fn many_at_once_get_numbers_without_a_gap() {
        let place = Place::new();
        let audit = place.open(1 << 30, 1).unwrap();
        let seqs = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for thread in 0..50 {
                let (audit, seqs) = (&audit, &seqs);
                scope.spawn(move || {
                    for number in 0..20 {
                        let seq = write(audit, thread * 20 + number).unwrap();
                        seqs.lock().unwrap().push(seq);
                    }
                });
            }
        });
        let end = audit.stop();
        let mut seqs = seqs.into_inner().unwrap();
        seqs.sort_unstable();
        assert_eq!(seqs, (2..1002).collect::<Vec<u64>>());
        let verified = place.verified();
        assert!(verified.is_whole(), "{verified:?}");
        assert_eq!((verified.lines, verified.end), (1002, end));
        assert_eq!(write(&audit, 1), Err(Unwritten), "it has ended");
    }

    #[test]
    fn a_second_writer_is_refused_and_the_next_one_goes_on() {
        let place = Place::new();
        let audit = place.open(1 << 30, 1).unwrap();
        write(&audit, 1).unwrap();
        assert!(place.open(1 << 30, 1).is_err());
        audit.stop();
        drop(audit);
        let audit = place.open(1 << 30, 1).unwrap();
        assert_eq!(write(&audit, 1), Ok(5));
        audit.leave_out();
        audit.leave_out();
        audit.write_end(event(2));
        drop(audit);
        assert!(place.verified().is_whole());
        assert!(place.text().contains("\"event\":\"unlisted\",\"count\":2"), "{}", place.text());
    }

    #[test]
    fn wherever_a_line_is_torn_the_next_one_states_it_and_nothing_is_removed() {
        let place = Place::new();
        let audit = place.open(1 << 30, 1).unwrap();
        write(&audit, 1).unwrap();
        drop(audit);
        let whole = place.text();
        let last = whole.trim_end().rfind('\n').unwrap() + 1;
        for at in (last + 1)..whole.len() {
            std::fs::write(place.path(), &whole[..at]).unwrap();
            assert_eq!(place.verified().faults_count, 1, "{at}");
            drop(place.open(1 << 30, 1).unwrap());
            let text = place.text();
            assert!(text.starts_with(&whole[..at]) && text.contains("\"event\":\"torn\""));
            let verified = place.verified();
            assert!(verified.is_whole(), "{at}: {verified:?}");
        }
        // A second torn end in the same file.
        let text = place.text();
        std::fs::write(place.path(), &text[..text.len() - 7]).unwrap();
        drop(place.open(1 << 30, 1).unwrap());
        assert!(place.verified().is_whole());
    }

    #[test]
    fn the_chain_goes_on_through_full_files_of_which_the_oldest_leave() {
        let place = Place::new();
        let audit = place.open(2000, 3).unwrap();
        for number in 0..60 {
            write(&audit, number).unwrap();
        }
        drop(audit);
        assert_eq!(place.all().len(), 4);
        let verified = place.verified();
        assert!(verified.is_whole() && verified.first > Some(1), "{verified:?}");
        let removed = place.all().iter().any(|path| {
            std::fs::read_to_string(path)
                .unwrap()
                .contains("\"removed\":[{\"file\":\"audit.jsonl.0")
        });
        assert!(removed, "a line says so");
    }

    #[test]
    fn a_file_that_the_operator_renames_is_followed_whether_it_is_open_or_not() {
        let place = Place::new();
        let name = |name: &str| place.0.path().join(name);
        let audit = place.open(1 << 30, 1).unwrap();
        write(&audit, 1).unwrap();
        std::fs::rename(place.path(), name("audit.jsonl.1")).unwrap();
        write(&audit, 2).unwrap();
        drop(audit);
        std::fs::rename(place.path(), name("audit.jsonl-2026")).unwrap();
        drop(place.open(1 << 30, 1).unwrap());
        assert_eq!(place.all().len(), 3);
        let verified = place.verified();
        assert!(verified.is_whole() && verified.first == Some(1), "{verified:?}");
        // One is lost: the chain says which lines.
        std::fs::remove_file(name("audit.jsonl-2026")).unwrap();
        let verified = place.verified();
        assert!(verified.faults[0].1.why.contains("missing before it"), "{verified:?}");
    }

    #[test]
    fn a_file_in_the_place_of_the_one_that_is_written_is_told_of_in_its_chain() {
        let place = Place::new();
        let audit = place.open(1 << 30, 1).unwrap();
        write(&audit, 1).unwrap();
        let before = place.text();
        write(&audit, 2).unwrap();
        // Whole by itself, and without the last line.
        let other = place.0.path().join("other");
        std::fs::write(&other, before).unwrap();
        std::fs::rename(&other, place.path()).unwrap();
        assert_eq!(write(&audit, 3), Ok(4));
        drop(audit);
        let verified = place.verified();
        assert_eq!((verified.faults_count, verified.faults[0].1.line), (1, 3), "{verified:?}");
        assert!(verified.faults[0].1.why.contains("line 3 of that one is missing"));
    }

    #[test]
    fn a_broken_file_is_gone_on_with_and_stays_broken() {
        let place = Place::new();
        let audit = place.open(1 << 30, 1).unwrap();
        write(&audit, 1).unwrap();
        drop(audit);
        std::fs::write(place.path(), place.text().replace("anna", "bert")).unwrap();
        drop(place.open(1 << 30, 1).unwrap());
        let verified = place.verified();
        assert_eq!((verified.faults_count, verified.faults[0].1.line), (1, 3), "{verified:?}");
        assert!(place.text().contains("\"faults\":1"));
    }

    /// A file system of its own, so that it can be full; ended with the value.
    struct Small(PathBuf);

    impl Small {
        fn mount(at: PathBuf) -> Option<Self> {
            std::fs::create_dir(&at).unwrap();
            let mut mount = std::process::Command::new("mount");
            mount.args(["-t", "tmpfs", "-o", "size=64k", "audit-test"]).arg(&at);
            let is_done = mount.output().is_ok_and(|output| output.status.success());
            is_done.then_some(Self(at))
        }
    }

    impl Drop for Small {
        fn drop(&mut self) {
            drop(std::process::Command::new("umount").arg(&self.0).status());
        }
    }

    #[test]
    fn on_a_full_disk_nothing_counts_as_written_and_the_chain_has_no_gap() {
        let folder = tempfile::tempdir().unwrap();
        let Some(small) = Small::mount(folder.path().join("small")) else {
            return println!("not run: no file system can be mounted");
        };
        let (path, filler) = (small.0.join("audit"), small.0.join("filler"));
        let files = Files { path: path.clone(), file_bytes: 1 << 30, files: 1 };
        let audit = Audit::open(files.clone(), "wirespool 1", |_| {}).unwrap();
        write(&audit, 1).unwrap();
        drop(std::fs::write(&filler, vec![0; 1 << 20]));
        let mut last = Ok(0);
        let mut answered = 0;
        for number in 0..200 {
            last = write(&audit, number);
            answered += u64::from(last.is_ok());
        }
        assert!(last == Err(Unwritten) && !audit.is_well());
        audit.write_end(event(1000));
        assert!(
            verify(std::slice::from_ref(&path), None).unwrap().is_whole(),
            "what is there is whole"
        );
        std::fs::remove_file(&filler).unwrap();
        assert!(write(&audit, 2).is_ok() && audit.is_well());
        drop(audit);
        let verified = verify(std::slice::from_ref(&path), None).unwrap();
        assert!(verified.is_whole(), "{verified:?}");
        let text = std::fs::read_to_string(&path).unwrap();
        let refused = format!("\"refused\":{}", 200 - answered);
        assert!(text.contains(&refused) && text.contains("\"number\":1000"), "{refused}: {text}");
        // A service may also begin on a full disk.
        drop(std::fs::write(&filler, vec![0; 1 << 20]));
        let audit = Audit::open(files, "wirespool 2", |_| {}).unwrap();
        while write(&audit, 3).is_ok() {}
        assert!(!audit.is_well());
        std::fs::remove_file(&filler).unwrap();
        assert!(write(&audit, 4).is_ok());
        drop(audit);
        assert!(verify(&[path], None).unwrap().is_whole());
    }
}
