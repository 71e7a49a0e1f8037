//! The process that answers one question and ends: the job of `find`, `extract` or `status` over a
//! volume, with its result on a socket.
//!
//! Whatever a query costs, or a damaged volume does to its reader, ends with this process. It
//! stands behind recorders ([`sandbox::confine_query`]), has its time and its memory, and is killed
//! when nobody waits for its answer any more.

mod decode;
mod error;
mod hold;
mod job;
mod jobs;
mod look;
mod packets;
mod rest;
mod sessions;
mod sql;
mod summary;
mod tag;
mod visible;

use core::ops::ControlFlow;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;

use completeness::Completeness;
use encryption::Identities;
use extract::Options;
use host::SystemClock;
use query::Query;
use questions::{Answered, Ending, Question, Refused, Statement, What, Why};
use sandbox::{QueryLimits, confine_query};
use units::{Clock as _, Timestamp};

pub use error::Error;
pub use jobs::{CatchUp, Recorders, SqlJob, SqlRefused};
pub use questions::RowForm;

/// More than any question has.
const QUESTION_BYTES_MAX: u64 = 1 << 20;

/// Answers the question of the process that started this one.
///
/// # Errors
/// When this process was not started to answer, or nobody listens any more.
pub fn work(recorders: &Recorders) -> Result<(), Error> {
    let handed = sandbox::handed()?;
    let mut line = String::new();
    let limits = |question: &Question| QueryLimits { memory_bytes: question.memory_bytes };
    let (mut sockets, question) = {
        let mut sockets = Vec::new();
        for descriptor in &handed.descriptors {
            sockets.push(UnixStream::from(descriptor.try_clone()?));
        }
        let control = sockets.first().ok_or(sandbox::Error::NothingHanded)?;
        BufReader::new(control.take(QUESTION_BYTES_MAX)).read_line(&mut line)?;
        let question: Question = serde_json::from_str(&line).map_err(io::Error::other)?;
        (sockets.into_iter(), question)
    };
    let (Some(mut control), Some(data)) = (sockets.next(), sockets.next()) else {
        return Err(sandbox::Error::NothingHanded.into());
    };
    // What cannot be given up costs precedence, and no answer.
    drop(confine_query(limits(&question), &handed));
    let ending = Work { question: &question, recorders }.answer(&data);
    data.shutdown(Shutdown::Write).unwrap_or_default();
    control.write_all(page::safe::json_line(&ending).as_bytes())?;
    Ok(())
}

/// The private keys in a file, which may have changed since the service looked at it.
fn identities(path: &Path) -> Result<Identities, Refused> {
    let content = host::read_key_bytes(path).map_err(|error| Refused::because(&error))?;
    Identities::parse(&content, &|| None).map_err(|error| Refused::because(&error))
}

struct Work<'a> {
    question: &'a Question,
    recorders: &'a Recorders,
}

impl Work<'_> {
    fn answer(&self, data: &UnixStream) -> Ending {
        let answered = match &self.question.what {
            What::Sessions(wanted) => self.sessions(wanted, data),
            What::Summary(wanted) => self.summary(wanted, data),
            What::Packets(wanted) => self.packets(wanted, data),
            What::Decode(wanted) => self.decode(wanted, data),
            What::Extract(wanted) => self.extract(wanted, data),
            What::Sql(wanted) => self.sql(wanted, data),
            What::Hold(wanted) => self.hold(wanted, data),
            What::Look(wanted) => self.look(wanted, data),
            What::Tag(wanted) => self.tag(wanted, data),
            What::Job(wanted) => self.job(wanted, data),
            What::Status => self.status(data),
        };
        match answered {
            Ok(answered) => Ending::Answered(Box::new(answered)),
            Err(refused) => Ending::Refused(refused),
        }
    }

    /// How the volume is read, and what its newest packets lack.
    fn options(&self) -> Result<(Options, Vec<String>), Refused> {
        let Question { volume, index_dir, identity, .. } = self.question;
        let identities = identity.as_deref().map(identities).transpose()?;
        let volume = volume.clone();
        let mut notes = Vec::new();
        let mut tell = |note: &str| notes.push(note.to_owned());
        let is_recorded = (self.recorders.catch_up)(&volume, &[], &mut tell);
        let options = Options {
            recorder: (self.recorders.beginning)(volume.clone(), Vec::new()),
            volume,
            index_dir: index_dir.clone(),
            is_recorded,
            identities,
            ..Options::default()
        };
        Ok((options, notes))
    }

    /// What is missing, as far as who asks may see.
    fn visible(&self, missing: &Completeness) -> Completeness {
        match self.question.sees_ns {
            Some((from, until)) => visible::within(missing, (Timestamp(from), Timestamp(until))),
            None => missing.clone(),
        }
    }

    fn statement(
        &self,
        of: &str,
        missing: &Completeness,
        (cut_by, notes): (Option<&str>, Vec<String>),
    ) -> Statement {
        statement(of, &self.visible(missing), (cut_by, notes))
    }

    /// Of an empty answer: which names the volume does not know. It lists those that it knows, also
    /// outside of what a filter lets see.
    fn hint(&self, query: &Query, met: &extract::NamesMet) -> Option<String> {
        let sees_all = self.question.sees_ns.is_none();
        sees_all.then(|| session_view::unmet_names(query, met)).flatten()
    }

    fn is_over(&self) -> bool {
        SystemClock.boottime_ns() >= self.question.until_ns
    }

    /// Breaks off when the time is over.
    fn flow(&self) -> ControlFlow<()> {
        if self.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn status(&self, mut data: &UnixStream) -> Result<Answered, Refused> {
        let volume = &self.question.volume;
        let report = upkeep::status(volume, &[]).map_err(|error| Refused::because(&error))?;
        let going = (self.recorders.state)(volume, &[]);
        let text = volume_view::status_json(&report, going.as_deref());
        data.write_all(text.as_bytes()).unwrap_or_default();
        Ok(seen())
    }
}

/// Of what was looked at, and is an answer by itself.
fn seen() -> Answered {
    Answered {
        count: 1,
        next: None,
        statement: statement("the volume", &Completeness::default(), (None, Vec::new())),
        manifest: None,
        hashes: None,
    }
}

fn parse(text: &str, now_ns: i64) -> Result<Query, Refused> {
    Query::parse(text, Timestamp(now_ns)).map_err(|error| Refused::because(&error))
}

fn refused(error: &extract::Error) -> Refused {
    let why = match error {
        extract::Error::Locked { .. } | extract::Error::NotForThese { .. } => Why::Locked,
        extract::Error::Index(_)
        | extract::Error::Volume(
            volume::Error::NoSuperblock(_)
            | volume::Error::NothingFound
            | volume::Error::Shrunk { .. }
            | volume::Error::Damaged(_)
            | volume::Error::Inconsistent { .. },
        ) => Why::Damaged,
        _ => Why::Unreadable,
    };
    Refused { why, ..Refused::because(error) }
}

fn statement(
    of: &str,
    missing: &Completeness,
    (cut_by, notes): (Option<&str>, Vec<String>),
) -> Statement {
    let completeness = session_view::completeness_json(missing);
    let is_by_limit = cut_by.is_none_or(|by| by == "limit");
    let within = if is_by_limit { missing.within_limit() } else { missing.clone() };
    Statement {
        state: missing.state().name().to_owned(),
        state_within_limit: within.state().name().to_owned(),
        text: format!("{of}, {missing}"),
        cut_by: cut_by.map(str::to_owned),
        notes,
        hint: None,
        left_out: None,
        completeness: serde_json::from_str(&completeness).unwrap_or_default(),
    }
}
