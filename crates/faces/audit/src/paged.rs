//! The newest lines of an audit that a service writes, a page at a time.
//!
//! Files are read from the newest to the oldest, each from its first line, until a page is full: an
//! audit may have gigabytes. What is read is verified on the way, each file against the one before,
//! and the end of it against the line that the writer knows as its last one.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use units::hex;

use crate::chain::{Fault, Link};
use crate::line::{Event, Line};
use crate::reading::{Early, Filter, Reading, Verified};
use crate::{Error, rotation};

/// So many files are read for one page; a filter may take few lines of each.
const FILES_MAX: usize = 4;

/// Lines of an audit, the newest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Page {
    /// Each with whether it has its end: a request that has begun may go on, or was broken off.
    pub lines: Vec<(Line, bool)>,
    /// Lines before this number are on the next page; none where there are no more.
    pub next: Option<u64>,
    /// What was read for it.
    pub verified: Verified,
}

/// A file that was read for a page.
struct Found {
    /// By number.
    lines: BTreeMap<u64, (Line, bool)>,
    /// Older ones of it did not fit.
    is_cut: bool,
    first: Option<Line>,
    verified: Verified,
}

/// Requests whose end was seen in a newer file, since the service that answered them started.
type Ended = BTreeSet<u64>;

/// The lines that a filter takes, before line `before` where there is one, `limit` at most. `end`
/// is the last line that the writer of `path` has written, which has to be there.
///
/// # Errors
/// When a file cannot be read.
pub fn page(
    path: &Path,
    filter: &Filter,
    (before, limit): (Option<u64>, usize),
    end: Link,
) -> Result<Page, Error> {
    let (mut page, mut ended) = (Page::default(), Ended::new());
    // The first line of the file behind, and its path.
    let mut behind: Option<(Line, PathBuf)> = None;
    let mut files = files(path)?;
    let mut read = 0;
    while let Some(file) = files.pop() {
        let is_newer = |seq: u64| before.is_some_and(|before| seq >= before);
        if rotation::first_seq(&file).is_some_and(is_newer) {
            continue;
        }
        let head = (read == 0 && before.is_none() && end.seq > 0).then_some(end.hash);
        let room = limit.saturating_sub(page.lines.len());
        let found = read_file(&file, (filter, before, room), (head, &mut ended))?;
        read += 1;
        add(&mut page.verified, &found, (&file, behind.take()));
        page.lines.extend(found.lines.into_values().rev());
        let first = found.first.as_ref().map(|line| line.seq);
        let is_full = found.is_cut || page.lines.len() >= limit;
        if is_full || read >= FILES_MAX {
            let last = page.lines.last().map(|(line, _)| line.seq);
            page.next = if is_full { last } else { first };
            page.next = page.next.filter(|_| found.is_cut || !files.is_empty());
            break;
        }
        behind = found.first.map(|line| (line, file));
    }
    Ok(page)
}

/// Reads all files of an audit that a service writes, whose last line is `end`.
///
/// # Errors
/// When a file cannot be read.
pub fn verify_live(path: &Path, end: Link) -> Result<Verified, Error> {
    let head = (end.seq > 0).then_some(end.hash);
    let mut reading = Reading::live(head);
    for file in files(path)? {
        let mut input = BufReader::new(host::open_input(&file)?);
        reading.read(&file, &mut input, &mut |_| {})?;
    }
    Ok(reading.end(path))
}

/// The files of the chain, the newest last.
fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let full = rotation::full_files(path)?.into_iter().map(|(file, _)| file);
    Ok(full.chain([path.to_path_buf()]).collect())
}

fn read_file(
    path: &Path,
    (filter, before, limit): (&Filter, Option<u64>, usize),
    (head, ended): (Option<[u8; 32]>, &mut Ended),
) -> Result<Found, Error> {
    let mut reading = Reading::live(head);
    let (mut lines, mut begun) = (BTreeMap::new(), BTreeMap::new());
    let (mut is_cut, mut first, mut has_start) = (false, None, false);
    // Ends of this file that belong to beginnings in an older one.
    let mut older = Ended::new();
    let mut early = Early::default();
    let mut input = BufReader::new(host::open_input(path)?);
    reading.read(path, &mut input, &mut |line| {
        first.get_or_insert_with(|| line.clone());
        match &line.event {
            Event::Begun(request) if early.take(request.number) => return,
            Event::Begun(request) => drop(begun.insert(request.number, line.seq)),
            Event::Request(request) => {
                if let Some(seq) = begun.remove(&request.number) {
                    lines.remove(&seq);
                } else {
                    early.add(request.number);
                    if !has_start {
                        older.insert(request.number);
                    }
                }
            }
            Event::Start { .. } => {
                has_start = true;
                begun.clear();
                early = Early::default();
            }
            _ => {}
        }
        if before.is_none_or(|before| line.seq < before) && filter.takes(line) {
            let has_end = !matches!(line.event, Event::Begun(_));
            lines.insert(line.seq, (line.clone(), has_end));
        }
        // Those that have begun may yet turn out to have their ends.
        while lines.len() > limit.saturating_add(begun.len()) {
            is_cut = true;
            lines.pop_first();
        }
    })?;
    // What goes on at the end of this file has its end in the newer one.
    for (number, seq) in begun {
        if ended.contains(&number) {
            lines.remove(&seq);
        }
    }
    while lines.len() > limit {
        is_cut = true;
        lines.pop_first();
    }
    if has_start {
        ended.clear();
    }
    ended.extend(older);
    Ok(Found { lines, is_cut, first, verified: reading.end(path) })
}

/// Adds what was found in the file before those that were read.
fn add(verified: &mut Verified, found: &Found, (path, behind): (&Path, Option<(Line, PathBuf)>)) {
    let older = &found.verified;
    if let Some((line, file)) = behind
        && (line.seq != older.end.seq.saturating_add(1) || line.prev != hex(&older.end.hash))
    {
        let name = page::safe::path(path.file_name().unwrap_or_default());
        let why = format!("it does not stand behind the last line of {name}");
        verified.fault(&file, Fault { line: 1, why });
    }
    if verified.lines == 0 {
        (verified.end, verified.has_head) = (older.end, older.has_head);
    }
    verified.lines += older.lines;
    verified.first = older.first;
    verified.torn += older.torn;
    for (path, fault) in &older.faults {
        verified.fault(path, fault.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::tests::{behind, hash};
    use crate::line::tests::request;

    /// A chain in files: each list is one, and the last one is written.
    fn files_of(events: Vec<Vec<Event>>) -> (tempfile::TempDir, PathBuf, Link) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit");
        let (mut end, last) = (Link::default(), events.len() - 1);
        for (number, events) in events.into_iter().enumerate() {
            let mut text = String::new();
            for event in events {
                let line = behind(end, event);
                end = Link { seq: end.seq + 1, hash: hash(&line) };
                text += &line;
            }
            let of_full = rotation::full_name(&path, end.seq);
            std::fs::write(if number == last { path.clone() } else { of_full }, text).unwrap();
        }
        (folder, path, end)
    }

    fn ended(number: u64) -> Event {
        Event::Request(Box::new(request("anna", number)))
    }

    fn begun(number: u64) -> Event {
        Event::Begun(Box::new(request("anna", number)))
    }

    fn further() -> Event {
        Event::Continued { file: None, removed: Vec::new() }
    }

    fn start() -> Event {
        Event::Start { program: "x".to_owned(), faults: 0 }
    }

    fn numbers(page: &Page) -> Vec<(u64, bool)> {
        page.lines.iter().map(|(line, has_end)| (line.seq, *has_end)).collect()
    }

    #[test]
    fn pages_go_back_through_all_files_and_each_line_is_on_one() {
        let (_folder, path, end) = files_of(vec![
            vec![start(), begun(1), begun(2), ended(2), begun(3)],
            vec![further(), ended(3), ended(4), start(), ended(1)],
            vec![further(), begun(2), begun(3), ended(3)],
        ]);
        let all = [(14, true), (12, false), (11, true), (10, true), (9, true), (8, true)];
        let all = [&all[..], &[(7, true), (6, true), (4, true), (2, false), (1, true)]].concat();
        for limit in [1, 2, 3, 5, 11, 100] {
            let (mut before, mut seen) = (None, Vec::new());
            for _ in 0..20 {
                let page = page(&path, &Filter::default(), (before, limit), end).unwrap();
                assert!(page.verified.is_whole(), "{page:?}");
                assert!(page.lines.len() <= limit);
                seen.extend(numbers(&page));
                before = page.next;
                if before.is_none() {
                    break;
                }
            }
            // A request whose end is on a page before its beginning is told there.
            seen.retain(|line| all.contains(line) || line.1);
            assert_eq!(seen, all, "by {limit}");
        }
        assert!(verify_live(&path, end).unwrap().is_whole());
        let credential = Some("bert".to_owned());
        let of_nobody = Filter { credential, ..Filter::default() };
        assert_eq!(page(&path, &of_nobody, (None, 5), end).unwrap().lines, []);
    }

    #[test]
    fn what_was_changed_removed_or_cut_off_is_said_and_a_line_that_is_being_written_is_not() {
        let events = || vec![vec![start(), ended(1)], vec![further(), ended(2), ended(3)]];
        let read = |path: &Path, end| page(path, &Filter::default(), (None, 100), end).unwrap();
        let change = |path: &Path, from: &str, to: &str| {
            let text = std::fs::read_to_string(path).unwrap();
            assert!(text.contains(from));
            std::fs::write(path, text.replace(from, to)).unwrap();
        };
        let (_folder, path, end) = files_of(events());
        std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + "{\"prev\":\"ab").unwrap();
        assert!(read(&path, end).verified.is_whole());
        assert!(verify_live(&path, end).unwrap().is_whole());
        for which in 0..2 {
            let (_folder, path, end) = files_of(events());
            let file = [rotation::full_name(&path, 2), path.clone()][which].clone();
            change(&file, "anna", "bert");
            assert!(!read(&path, end).verified.is_whole(), "{which}");
            assert!(!verify_live(&path, end).unwrap().is_whole(), "{which}");
        }
        let (_folder, path, end) = files_of(events());
        let text = std::fs::read_to_string(&path).unwrap();
        let cut: Vec<&str> = text.lines().take(2).collect();
        std::fs::write(&path, cut.join("\n") + "\n").unwrap();
        assert_eq!(read(&path, end).verified.has_head, Some(false), "the end was cut off");
        assert!(!verify_live(&path, end).unwrap().is_whole());
    }
}
