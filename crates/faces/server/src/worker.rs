//! The process that answers one question and ends: the job of `find`, `extract` or `status` over a
//! volume, with its result on a socket.
//!
//! Whatever a query costs, or a damaged volume does to its reader, ends with this process. It
//! stands behind recorders ([`sandbox::confine_query`]), has its time and its memory, and is killed
//! when nobody waits for its answer any more.

use core::ops::ControlFlow;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use extract::{Completeness, Event, Found, Limits, Options, Recorder, Request, Sought, Target};
use host::SystemClock;
use page::text::plural;
use query::Query;
use sandbox::{QueryLimits, confine_query};
use session_view::Maker;
use units::{Clock as _, Timestamp};

use crate::Error;
use crate::question::{
    Answered, Cursor, Ending, ExtractWanted, Form, Question, Refused, SessionsWanted, Statement,
    What,
};

/// More than any question has.
const QUESTION_BYTES_MAX: u64 = 1 << 20;
/// A longer manifest is not kept: it lists each piece that was read.
const MANIFEST_BYTES_MAX: usize = 8 << 20;
/// Rows wait for so many bytes, or until the search says how far it is.
const ROWS_BYTES: usize = 32 << 10;
const PACKETS_BYTES: usize = 256 << 10;

/// Asks the recorder of a volume, any member of which is named, with those that are elsewhere.
pub type CatchUp = fn(&Path, &[PathBuf], &mut dyn FnMut(&str)) -> bool;

/// How a recorder of a volume is asked; the program knows it.
#[derive(Debug)]
pub struct Recorders {
    /// Has the recorder make durable what it has taken; whether one runs. What keeps it from that
    /// is told.
    pub catch_up: CatchUp,
    /// Asks for one that may have begun a moment ago.
    pub beginning: fn(PathBuf, Vec<PathBuf>) -> Recorder,
    /// How the recording stands, as JSON, if one goes on.
    pub state: fn(&Path, &[PathBuf]) -> Option<String>,
    /// What manifests say of who makes an extract.
    pub maker: fn() -> &'static Maker,
}

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

struct Work<'a> {
    question: &'a Question,
    recorders: &'a Recorders,
}

impl Work<'_> {
    fn answer(&self, data: &UnixStream) -> Ending {
        let answered = match &self.question.what {
            What::Sessions(wanted) => self.sessions(wanted, data),
            What::Extract(wanted) => self.extract(wanted, data),
            What::Status => self.status(data),
        };
        match answered {
            Ok(answered) => Ending::Answered(Box::new(answered)),
            Err(refused) => Ending::Refused(refused),
        }
    }

    /// How the volume is read, and what its newest packets lack.
    fn options(&self) -> (Options, Vec<String>) {
        let volume = self.question.volume.clone();
        let mut notes = Vec::new();
        let mut tell = |note: &str| notes.push(note.to_owned());
        let is_recorded = (self.recorders.catch_up)(&volume, &[], &mut tell);
        let options = Options {
            recorder: (self.recorders.beginning)(volume.clone(), Vec::new()),
            volume,
            index_dir: self.question.index_dir.clone(),
            is_recorded,
            ..Options::default()
        };
        (options, notes)
    }

    fn is_over(&self) -> bool {
        SystemClock.boottime_ns() >= self.question.until_ns
    }

    fn sessions(&self, wanted: &SessionsWanted, data: &UnixStream) -> Result<Answered, Refused> {
        let query = behind(wanted)?;
        let mut rows = Rows {
            wanted,
            out: BufWriter::with_capacity(ROWS_BYTES, data),
            count: 0,
            bytes: 0,
            last: None,
            cut_by: None,
        };
        let already = wanted.after.as_ref().map_or(0, |cursor| cursor.of_start);
        let limit = wanted.limit.map(|limit| limit.saturating_add(already));
        let sought = Sought { limit, ..Sought::new(&query) };
        let (options, notes) = self.options();
        let report = extract::find_columns(&options, &sought, &SystemClock, &mut |event| {
            if self.is_over() {
                rows.cut_by = Some("time");
                return ControlFlow::Break(());
            }
            rows.take(event)
        });
        let report = report.map_err(|error| refused(&error))?;
        rows.out.flush().unwrap_or_default();
        let mut completeness = report.completeness;
        if rows.cut_by == Some("limit") {
            (completeness.limited, completeness.stopped) = (true, false);
        }
        let cut_by = rows.cut_by.or(completeness.limited.then_some("limit"));
        let has_rest = completeness.limited || completeness.stopped;
        Ok(Answered {
            count: rows.count,
            next: if has_rest { rows.last.or(wanted.after.clone()) } else { None },
            statement: statement(&plural(rows.count, "session"), &completeness, (cut_by, notes)),
            manifest: None,
        })
    }

    fn extract(&self, wanted: &ExtractWanted, data: &UnixStream) -> Result<Answered, Refused> {
        let query = parse(&wanted.query, wanted.now_ns)?;
        let limits =
            Limits { packets: wanted.packets_max, bytes: wanted.bytes_max, sessions: None };
        let whole_sessions = !wanted.only_range;
        let request = Request { limits, whole_sessions, ..Request::new(&query, &wanted.query) };
        let mut out = BufWriter::with_capacity(PACKETS_BYTES, data);
        let target = match wanted.form {
            Form::Pcapng => Target::Pcapng(&mut out),
            Form::Pcap => Target::Pcap(&mut out),
        };
        let go_on = &mut |_: &extract::Progress| {
            if self.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let (options, notes) = self.options();
        let report = extract::extract(&options, &request, target, &SystemClock, go_on);
        let report = report.map_err(|error| refused(&error))?;
        out.flush().unwrap_or_default();
        let manifest = &report.manifest;
        let completeness = &manifest.completeness;
        let cut_by = match (completeness.stopped, completeness.limited) {
            (true, _) => Some("time"),
            (_, true) => Some("limit"),
            _ => None,
        };
        let packets = plural(report.packets, "packet");
        let of = format!("{packets} of {}", plural(manifest.rows, "session row"));
        let text = session_view::manifest_json(manifest, (self.recorders.maker)(), &[], None);
        Ok(Answered {
            count: report.packets,
            next: None,
            statement: statement(&of, completeness, (cut_by, notes)),
            manifest: (text.len() <= MANIFEST_BYTES_MAX).then_some(text),
        })
    }

    fn status(&self, mut data: &UnixStream) -> Result<Answered, Refused> {
        let volume = &self.question.volume;
        let report = upkeep::status(volume, &[])
            .map_err(|error| Refused { is_damage: false, detail: error.to_string() })?;
        let going = (self.recorders.state)(volume, &[]);
        let text = volume_view::status_json(&report, going.as_deref());
        data.write_all(text.as_bytes()).unwrap_or_default();
        Ok(Answered {
            count: 1,
            next: None,
            statement: statement("the volume", &Completeness::default(), (None, Vec::new())),
            manifest: None,
        })
    }
}

/// The query, with the place of a cursor as a bound, so that nothing before it is read.
fn behind(wanted: &SessionsWanted) -> Result<Query, Refused> {
    let Some(cursor) = &wanted.after else { return parse(&wanted.query, wanted.now_ns) };
    let bound = format!("start_ns >= {}", Timestamp(cursor.start_ns));
    let text = match wanted.query.trim() {
        "" => bound,
        query => format!("({query}) and {bound}"),
    };
    parse(&text, wanted.now_ns)
}

fn parse(text: &str, now_ns: i64) -> Result<Query, Refused> {
    Query::parse(text, Timestamp(now_ns))
        .map_err(|error| Refused { is_damage: false, detail: error.to_string() })
}

fn refused(error: &extract::Error) -> Refused {
    let is_damage = match error {
        extract::Error::Index(_) => true,
        extract::Error::Volume(error) => matches!(
            error,
            volume::Error::NoSuperblock(_)
                | volume::Error::NothingFound
                | volume::Error::Shrunk { .. }
                | volume::Error::Damaged(_)
                | volume::Error::Inconsistent { .. }
        ),
        _ => false,
    };
    Refused { is_damage, detail: error.to_string() }
}

fn statement(
    of: &str,
    missing: &Completeness,
    (cut_by, notes): (Option<&str>, Vec<String>),
) -> Statement {
    let completeness = session_view::completeness_json(missing);
    Statement {
        state: missing.state().name().to_owned(),
        text: format!("{of}, {missing}"),
        cut_by: cut_by.map(str::to_owned),
        notes,
        completeness: serde_json::from_str(&completeness).unwrap_or_default(),
    }
}

/// Sessions on their way out.
struct Rows<'a> {
    wanted: &'a SessionsWanted,
    out: BufWriter<&'a UnixStream>,
    count: u64,
    bytes: u64,
    last: Option<Cursor>,
    cut_by: Option<&'static str>,
}

impl Rows<'_> {
    fn take(&mut self, event: Event<'_>) -> ControlFlow<()> {
        let written = match event {
            Event::Searched { .. } => self.out.flush(),
            Event::Found(found) => {
                let is_shown = self
                    .wanted
                    .after
                    .as_ref()
                    .is_none_or(|cursor| cursor.is_before(found.session.start.0, &found.id));
                if !is_shown {
                    return ControlFlow::Continue(());
                }
                if self.wanted.limit == Some(self.count) {
                    self.cut_by = Some("limit");
                    return ControlFlow::Break(());
                }
                if self.bytes >= self.wanted.bytes_max {
                    self.cut_by = Some("bytes");
                    return ControlFlow::Break(());
                }
                self.write(found)
            }
        };
        // Where nobody reads there is nobody to be told.
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn write(&mut self, found: &Found) -> io::Result<()> {
        let line = session_view::json_line(found);
        self.out.write_all(line.as_bytes())?;
        // The first one shows that there is an answer.
        if self.count == 0 {
            self.out.flush()?;
        }
        self.count += 1;
        self.bytes = self.bytes.saturating_add(units::number::to_u64(line.len()));
        let start_ns = found.session.start.0;
        let before = self.last.as_ref().or(self.wanted.after.as_ref());
        let of_start = before.filter(|last| last.start_ns == start_ns).map_or(0, |it| it.of_start);
        self.last = Some(Cursor {
            start_ns,
            session_id: found.id.clone(),
            // It came from a client, who may have written anything.
            of_start: of_start.saturating_add(1),
            now_ns: self.wanted.now_ns,
        });
        Ok(())
    }
}
