//! Files of an audit, read from the first line to the last.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use units::{Timestamp, hex};

use crate::chain::{Chain, Fault, Link};
use crate::line::{Event, Line, Request};
use crate::raw::next_line;
use crate::{Error, rotation};

/// So many faults are listed; all are counted.
const FAULTS_MAX: usize = 100;
/// Requests without an end that are remembered: far more than a service answers at a time.
const BEGUN_MAX: usize = 1 << 16;

/// What was found in the files of a chain.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Verified {
    /// Whole lines.
    pub lines: u64,
    /// Number of the first line.
    pub first: Option<u64>,
    /// The last line.
    pub end: Link,
    /// Lines that are none, of which the next line said so.
    pub torn: u64,
    /// The first faults, each with its file.
    pub faults: Vec<(PathBuf, Fault)>,
    /// All of them.
    pub faults_count: u64,
    /// Whether the line with the hash that was asked for is there.
    pub has_head: Option<bool>,
}

impl Verified {
    /// Whether nothing is wrong.
    pub fn is_whole(&self) -> bool {
        self.faults_count == 0 && self.has_head != Some(false) && self.lines > 0
    }

    pub(crate) fn fault(&mut self, path: &Path, fault: Fault) {
        self.faults_count += 1;
        if self.faults.len() < FAULTS_MAX {
            self.faults.push((path.to_path_buf(), fault));
        }
    }
}

/// A chain that is read, file by file.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    chain: Chain,
    head: Option<[u8; 32]>,
    /// A line without an end is one that is being written.
    is_live: bool,
    found: Verified,
}

impl Reading {
    /// Of files that a service writes, one line of which has this hash.
    pub(crate) fn live(head: Option<[u8; 32]>) -> Self {
        Self { head, is_live: true, ..Self::default() }
    }

    /// Reads a file; whole lines of it are told.
    pub(crate) fn read(
        &mut self,
        path: &Path,
        input: &mut impl BufRead,
        tell: &mut dyn FnMut(&Line),
    ) -> Result<(), Error> {
        let fail = |source| Error::Read { path: path.to_path_buf(), source };
        let mut at = 0;
        while let Some(raw) = next_line(input).map_err(fail)? {
            at += 1;
            if self.is_live && !raw.has_end {
                break;
            }
            let (line, faults) = self.chain.take(&raw, at);
            for fault in faults {
                self.found.fault(path, fault);
            }
            if !raw.has_end {
                let why = format!(
                    "it has no end: a service was ended while it wrote these {} bytes; the next \
                     one that starts states it",
                    raw.len
                );
                // It may be no line as well; that is the same fault.
                self.chain.finish();
                self.found.fault(path, Fault { line: at, why });
            }
            if self.head == Some(raw.hash) {
                self.found.has_head = Some(true);
            }
            if let Some(line) = line {
                self.found.lines += 1;
                self.found.first.get_or_insert(line.seq);
                tell(&line);
            }
        }
        Ok(())
    }

    pub(crate) fn end(mut self, last: &Path) -> Verified {
        if let Some(fault) = self.chain.finish() {
            self.found.fault(last, fault);
        }
        if self.head.is_some() {
            self.found.has_head.get_or_insert(false);
        }
        Verified { end: self.chain.end(), torn: self.chain.torn(), ..self.found }
    }
}

/// Reads all files of a chain, in the order of their lines, and compares hashes. With `head` a line
/// with this hash has to be there.
///
/// # Errors
/// When a file cannot be read.
pub fn verify(paths: &[PathBuf], head: Option<[u8; 32]>) -> Result<Verified, Error> {
    read_all(paths, head, &mut |_| {})
}

fn read_all(
    paths: &[PathBuf],
    head: Option<[u8; 32]>,
    tell: &mut dyn FnMut(&Line),
) -> Result<Verified, Error> {
    let mut reading = Reading { head, ..Reading::default() };
    let mut paths: Vec<&PathBuf> = paths.iter().collect();
    paths.sort_by_key(|path| rotation::first_seq(path));
    for path in &paths {
        let mut input = BufReader::new(host::open_input(path)?);
        reading.read(path, &mut input, tell)?;
    }
    Ok(reading.end(paths.last().map_or(Path::new(""), |path| path)))
}

/// The same of lines in memory.
pub fn verify_lines(text: &[u8]) -> Verified {
    let (mut reading, path) = (Reading::default(), Path::new(""));
    let mut input = text;
    // Memory can be read.
    drop(reading.read(path, &mut input, &mut |_| {}));
    reading.end(path)
}

/// Where a file ends, and how much is wrong with it.
pub(crate) fn end_of(path: &Path) -> Result<(Tail, Verified), Error> {
    let mut reading = Reading::default();
    let mut input = BufReader::new(host::open_input(path)?);
    let mut tail = Tail::default();
    let fail = |source| Error::Read { path: path.to_path_buf(), source };
    let mut at = 0;
    while let Some(raw) = next_line(&mut input).map_err(fail)? {
        at += 1;
        tail.behind = reading.chain.end();
        let (line, faults) = reading.chain.take(&raw, at);
        reading.found.first = reading.found.first.or(line.map(|line| line.seq));
        for fault in faults {
            reading.found.fault(path, fault);
        }
        tail.torn_bytes = (!raw.has_end).then_some(raw.len);
        tail.is_line = reading.chain.end().seq != tail.behind.seq;
    }
    let is_torn = tail.torn_bytes.is_some();
    // What is torn at the end is stated by who goes on, and no fault then.
    let found = if is_torn {
        let (end, torn) = (reading.chain.end(), reading.chain.torn());
        Verified { end, torn, ..reading.found }
    } else {
        reading.end(path)
    };
    Ok((tail, found))
}

/// The last line of a file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tail {
    /// What the last line stands behind.
    pub(crate) behind: Link,
    /// The last line has no line feed, and so many bytes.
    pub(crate) torn_bytes: Option<u64>,
    /// It is a line nevertheless.
    pub(crate) is_line: bool,
}

/// The hash of the last line of a chain, in hex digits.
///
/// # Errors
/// When a file cannot be read.
pub fn head(paths: &[PathBuf]) -> Result<String, Error> {
    Ok(hex(&verify(paths, None)?.end.hash))
}

/// Which requests are shown; all without it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// Of this credential.
    pub credential: Option<String>,
    /// Whose paths begin so.
    pub path: Option<String>,
    /// Written at this time or later.
    pub since: Option<Timestamp>,
    /// Written before this time.
    pub until: Option<Timestamp>,
}

impl Filter {
    pub(crate) fn takes(&self, line: &Line) -> bool {
        let at = line.at();
        let is_in_time = (self.since.is_none() || at >= self.since)
            && self.until.is_none_or(|until| at.is_some_and(|at| at < until));
        let is_asked = match &line.event {
            Event::Begun(request) | Event::Request(request) => self.takes_request(request),
            _ => self.credential.is_none() && self.path.is_none(),
        };
        is_in_time && is_asked
    }

    fn takes_request(&self, request: &Request) -> bool {
        let is_by = self.credential.is_none() || request.credential == self.credential;
        is_by && self.path.as_ref().is_none_or(|path| request.path.starts_with(path))
    }
}

/// What is shown of a chain.
#[derive(Debug)]
pub enum Shown<'a> {
    /// A line.
    Line(&'a Line),
    /// A request that began and whose end was never written: the service was ended meanwhile.
    WithoutEnd(&'a Line),
}

impl Shown<'_> {
    /// The line, as it stands in its file.
    pub fn to_json(&self) -> String {
        match self {
            Self::Line(line) | Self::WithoutEnd(line) => line.to_text(),
        }
    }
}

/// Shows the lines that a filter takes, in their order. Of a request with two lines the second one
/// is shown.
///
/// # Errors
/// When a file cannot be read.
pub fn show(
    paths: &[PathBuf],
    filter: &Filter,
    tell: &mut dyn FnMut(&Shown<'_>),
) -> Result<Verified, Error> {
    let mut begun: BTreeMap<u64, Line> = BTreeMap::new();
    let mut early = Early::default();
    let verified = read_all(paths, None, &mut |line| {
        match &line.event {
            Event::Begun(request) => {
                if early.take(request.number) {
                    return;
                }
                begun.insert(request.number, line.clone());
                if begun.len() > BEGUN_MAX {
                    begun.pop_first();
                }
                return;
            }
            Event::Request(request) if begun.remove(&request.number).is_none() => {
                early.add(request.number);
            }
            Event::Start { .. } => {
                early = Early::default();
                without_end(&mut begun, filter, tell);
            }
            _ => {}
        }
        if filter.takes(line) {
            tell(&Shown::Line(line));
        }
    })?;
    without_end(&mut begun, filter, tell);
    Ok(verified)
}

/// Ends that stand before their beginnings: of a client that left while the beginning waited for
/// the disk the end may be written first.
#[derive(Debug, Default)]
pub(crate) struct Early(BTreeSet<u64>);

impl Early {
    pub(crate) fn add(&mut self, number: u64) {
        self.0.insert(number);
        if self.0.len() > BEGUN_MAX {
            self.0.pop_first();
        }
    }

    /// Whether the end of this beginning was there before.
    pub(crate) fn take(&mut self, number: u64) -> bool {
        self.0.remove(&number)
    }
}

fn without_end(begun: &mut BTreeMap<u64, Line>, filter: &Filter, tell: &mut dyn FnMut(&Shown<'_>)) {
    for line in core::mem::take(begun).into_values().filter(|line| filter.takes(line)) {
        tell(&Shown::WithoutEnd(&line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::tests::{behind, chain, hash};
    use crate::line::tests::request;

    fn files(texts: &[(&str, String)]) -> (tempfile::TempDir, Vec<PathBuf>) {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (name, text) in texts {
            std::fs::write(path(name), text).unwrap();
        }
        let paths = texts.iter().map(|(name, _)| path(name)).collect();
        (folder, paths)
    }

    #[test]
    fn files_are_read_in_the_order_of_their_lines() {
        let whole = chain(6);
        let end = Link { seq: 6, hash: hash(&whole[5]) };
        let further = behind(end, Event::Continued { file: None, removed: Vec::new() });
        let (_folder, paths) = files(&[("a", further.clone()), ("b", whole.concat())]);
        let verified = verify(&paths, Some(hash(&further))).unwrap();
        assert!(verified.is_whole(), "{verified:?}");
        assert_eq!((verified.lines, verified.first, verified.end.seq), (7, Some(1), 7));
        assert_eq!(head(&paths).unwrap(), hex(&hash(&further)));
        // The one before was removed, which is as it may be.
        let verified = verify(&paths[..1], None).unwrap();
        assert_eq!((verified.is_whole(), verified.first), (true, Some(7)));
        // The beginning of a file was cut off.
        let (_folder, paths) = files(&[("a", whole[2..].concat())]);
        let verified = verify(&paths, None).unwrap();
        let (_, fault) = &verified.faults[0];
        assert_eq!(fault.why, "lines 1 to 2 of the chain are missing before it");
    }

    #[test]
    fn lines_that_are_cut_off_are_found_by_a_head() {
        let whole = chain(6);
        let (_folder, paths) = files(&[("a", whole[..4].concat())]);
        for (line, is_whole) in [(3, true), (1, true), (5, false)] {
            let verified = verify(&paths, Some(hash(&whole[line]))).unwrap();
            assert_eq!(verified.is_whole(), is_whole, "{line}");
        }
        let (_folder, paths) = files(&[("a", String::new())]);
        assert!(!verify(&paths, None).unwrap().is_whole(), "nothing is no audit");
    }

    #[test]
    fn of_two_lines_the_second_is_shown_and_of_one_that_it_has_no_end() {
        let start = || Event::Start { program: "x".to_owned(), faults: 0 };
        let begun = |number| Event::Begun(Box::new(request("anna", number)));
        let ended = |who, number| Event::Request(Box::new(request(who, number)));
        // Of request 4 the end stands first.
        let events = [
            start(),
            begun(1),
            begun(2),
            ended("anna", 2),
            ended("bert", 3),
            start(),
            begun(1),
            ended("carl", 4),
            Event::Begun(Box::new(request("carl", 4))),
        ];
        let (mut end, mut text) = (Link::default(), String::new());
        for event in events {
            let line = behind(end, event);
            end = Link { seq: end.seq + 1, hash: hash(&line) };
            text += &line;
        }
        let (_folder, paths) = files(&[("a", text)]);
        let shown = |filter: &Filter| {
            let mut shown = Vec::new();
            let verified = show(&paths, filter, &mut |it| match it {
                Shown::Line(line) => shown.push((line.seq, true)),
                Shown::WithoutEnd(line) => shown.push((line.seq, false)),
            });
            assert!(verified.unwrap().is_whole());
            shown
        };
        let all = [(1, true), (4, true), (5, true), (2, false), (6, true), (8, true), (7, false)];
        assert_eq!(shown(&Filter::default()), all);
        let credential = Some("anna".to_owned());
        let of_anna = Filter { credential, ..Filter::default() };
        assert_eq!(shown(&of_anna), [(4, true), (2, false), (7, false)]);
        let path = Some("/api/v1/sessions".to_owned());
        assert_eq!(shown(&Filter { path, ..Filter::default() }), []);
        let later = "2026-01-01T00:00:01Z".parse().ok();
        assert_eq!(shown(&Filter { since: later, ..Filter::default() }), []);
        assert_eq!(shown(&Filter { until: later, ..Filter::default() }).len(), 7);
    }
}
