//! The file of requests.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use page::safe::json_line;
use units::number::to_u64;
use units::{NANOS_PER_SECOND, Timestamp};

use crate::kept::{Kept, Over, Refused, State};
use crate::party::Party;
use crate::request::{Approval, Asked};

/// So many requests are kept, and so many bytes of them.
const REQUESTS_MAX: usize = 10_000;
const BYTES_MAX: u64 = 32 << 20;
/// One who asks leaves room to others.
const OPEN_MAX: usize = 100;
/// What is over is kept for so long: 90 days.
const KEPT_NS: i64 = 90 * 86_400 * NANOS_PER_SECOND;

/// Why requests cannot be had or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// A line of it is no request.
    #[error("{}: line {line} is no request", page::safe::path(path))]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
    },
    /// A line of it is not as it was written.
    #[error(
        "{}: the request in line {line} was changed after it was made: take the line out",
        page::safe::path(path)
    )]
    Changed {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
    },
    /// There is no room for more.
    #[error("the file of requests is full of open ones: withdraw or refuse some")]
    Full,
    /// One who asks has too many.
    #[error("{OPEN_MAX} requests of yours are open: withdraw some, or wait until they end")]
    TooMany,
    /// There is no such request, of those that may be seen.
    #[error("no request that you may see has this id")]
    Unknown,
    /// It is not permitted.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// Which requests are wanted, of those that may be seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// Those that stand so.
    pub state: Option<State>,
    /// At most so many.
    pub limit: usize,
}

/// Requests that are wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// The newest first, at most as many as were wanted.
    pub requests: Vec<Kept>,
    /// How many there are.
    pub count: u64,
}

/// The requests of a service.
#[derive(Debug)]
pub struct Requests {
    path: PathBuf,
    /// As the file has them: the oldest first.
    known: Mutex<Vec<Kept>>,
}

impl Requests {
    /// The requests in a file, which is made when the first one comes.
    ///
    /// # Errors
    /// When it cannot be read, others may read it, or a line of it is not as it was written.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let is_there = host::target(path)? != host::Target::Absent;
        let text = if is_there { host::read_private(path, BYTES_MAX)? } else { String::new() };
        Ok(Self { path: path.to_owned(), known: Mutex::new(parse(path, &text)?) })
    }

    /// Those that are wanted, and that `may_see` lets through.
    pub fn list(&self, wanted: Wanted, now: Timestamp, may_see: &dyn Fn(&Kept) -> bool) -> Listed {
        let known = stage::lock(&self.known);
        let is_wanted = |kept: &&Kept| {
            wanted.state.is_none_or(|state| kept.state(now) == state) && may_see(kept)
        };
        let count = known.iter().filter(is_wanted).count();
        let requests = known.iter().rev().filter(is_wanted).take(wanted.limit).cloned().collect();
        Listed { requests, count: to_u64(count) }
    }

    /// The request of this id, if `may_see` lets it through.
    pub fn find(&self, id: &str, may_see: &dyn Fn(&Kept) -> bool) -> Option<Kept> {
        let known = stage::lock(&self.known);
        known.iter().find(|kept| kept.id == id && may_see(kept)).cloned()
    }

    /// Keeps a request.
    ///
    /// # Errors
    /// When there is no room for it, or the file cannot be changed.
    pub fn add(&self, asked: &Asked, now: Timestamp) -> Result<Kept, Error> {
        let kept = Kept::new(asked.clone());
        self.change(now, &mut |known| {
            let is_open = |kept: &&Kept| {
                matches!(kept.state(now), State::Waiting | State::Approved)
                    && kept.asked.requester == asked.requester
            };
            if known.iter().filter(is_open).count() >= OPEN_MAX {
                return Err(Error::TooMany);
            }
            known.push(kept.clone());
            Ok(())
        })?;
        Ok(kept)
    }

    /// Approves a request.
    ///
    /// # Errors
    /// When there is none of this id that `may_see` lets through, it may not be approved by this
    /// one, or the file cannot be changed.
    pub fn approve(
        &self,
        (id, may_see): (&str, &dyn Fn(&Kept) -> bool),
        (by, note): (&Party, Option<&str>),
        now: Timestamp,
    ) -> Result<Kept, Error> {
        self.change_one((id, may_see), now, &mut |kept| {
            kept.may_be_approved(by, now)?;
            let (approver, note) = (by.clone(), note.map(str::to_owned));
            let request = kept.id.clone();
            kept.approval = Some(Approval { made_ns: now.0, approver, request, note });
            Ok(())
        })
    }

    /// Ends a request before its time.
    ///
    /// # Errors
    /// When there is none of this id that `may_see` lets through, it is over already, or the file
    /// cannot be changed.
    pub fn end(
        &self,
        (id, may_see): (&str, &dyn Fn(&Kept) -> bool),
        over: &Over,
    ) -> Result<Kept, Error> {
        let now = Timestamp(over.at_ns);
        self.change_one((id, may_see), now, &mut |kept| {
            kept.may_be_ended(now)?;
            kept.over = Some(over.clone());
            Ok(())
        })
    }

    fn change_one(
        &self,
        (id, may_see): (&str, &dyn Fn(&Kept) -> bool),
        now: Timestamp,
        change: &mut dyn FnMut(&mut Kept) -> Result<(), Error>,
    ) -> Result<Kept, Error> {
        let mut changed = None;
        self.change(now, &mut |known| {
            let kept = known.iter_mut().find(|kept| kept.id == id && may_see(kept));
            let kept = kept.ok_or(Error::Unknown)?;
            change(kept)?;
            changed = Some(kept.clone());
            Ok(())
        })?;
        changed.ok_or(Error::Unknown)
    }

    /// What the file does not take is not known either.
    fn change(
        &self,
        now: Timestamp,
        change: &mut dyn FnMut(&mut Vec<Kept>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut known = stage::lock(&self.known);
        let mut changed = None;
        host::change_private(&self.path, BYTES_MAX, &mut |text| {
            let mut requests = parse(&self.path, text)?;
            change(&mut requests)?;
            requests.retain(|kept| kept.ends_ns().saturating_add(KEPT_NS) > now.0);
            let text = fitted(&mut requests, now)?;
            changed = Some(requests);
            Ok::<_, Error>(text)
        })?;
        if let Some(requests) = changed {
            *known = requests;
        }
        Ok(())
    }
}

/// The text of requests, of which the oldest that are over make room.
fn fitted(requests: &mut Vec<Kept>, now: Timestamp) -> Result<String, Error> {
    let mut lines: Vec<String> = requests.iter().map(json_line).collect();
    let mut bytes = lines.iter().map(String::len).sum::<usize>();
    while requests.len() > REQUESTS_MAX || to_u64(bytes) > BYTES_MAX {
        let is_over = |kept: &Kept| !matches!(kept.state(now), State::Waiting | State::Approved);
        let at = requests.iter().position(is_over).ok_or(Error::Full)?;
        requests.remove(at);
        bytes = bytes.saturating_sub(lines.remove(at).len());
    }
    Ok(lines.concat())
}

fn parse(path: &Path, text: &str) -> Result<Vec<Kept>, Error> {
    let lines = (1..).zip(text.lines());
    let kept = |(line, text): (usize, &str)| {
        let wrong = |_| Error::Line { path: path.to_owned(), line };
        let kept: Kept = serde_json::from_str(text).map_err(wrong)?;
        let changed = || Error::Changed { path: path.to_owned(), line };
        kept.is_sound().then_some(kept).ok_or_else(changed)
    };
    lines.map(kept).collect()
}

#[cfg(test)]
mod tests;
