//! `wirespool tag`: from the log of another tool to sessions.

use core::ops::ControlFlow;
use std::io::Write;
use std::path::{Path, PathBuf};

use ::extract::{Options, Request};
use ::found::{Event, Found};
use ::hold::{Aside, Rest, Room, put_aside};
use ::remote::{There, Wanted};
use anyhow::bail;
use clap::Args;
use host::{StopFlag, SystemClock, Tail};
use logs::{LogEvent, LogReader, MARGIN_NS};
use units::{Clock, NANOS_PER_SECOND, Sleep};

use crate::failure::{Outcome, Usage, Verdict, of_extract, of_hold};
use crate::progress::say;
use crate::reading::ReadingFlags;
use crate::remote::{Asked, Place, RemoteFlags, not_named, refused, sessions, volume_or_word};
use crate::{arguments, evidence};

/// How often a followed log is looked at.
const LOOK_NS: i64 = NANOS_PER_SECOND;
/// A followed event is looked for again so often, and no longer than this after it came: a session
/// has its lasting id when its segment is indexed.
const AGAIN_NS: i64 = 15 * NANOS_PER_SECOND;
const PATIENCE_NS: i64 = 3600 * NANOS_PER_SECOND;
/// Events that wait for that at a time.
const PENDING_MAX: usize = 1 << 16;

/// Tag the sessions that a log of Suricata or Zeek names.
///
/// Prints a line of JSON for each event and session: the session's id, its community id, the tag
/// (an alert's signature, a notice, the kind of event), severity and time. Sessions are found by
/// community id where the log has it, else by addresses, ports and protocol, and live within a
/// minute of the event. The lines are what `extract --sessions` and `hold --sessions` read. With
/// --follow the log is read on as it grows or is rotated, and sessions of chosen alerts are put
/// aside at once, and again until they are over.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool tag /data/spool --log /var/log/suricata/eve.json > tags.jsonl
  grep 'ET SCAN' tags.jsonl | wirespool extract /data/spool --sessions - -w scan.pcapng
  wirespool tag /data/spool --log eve.json --follow --hold-dir /data/holds --hold-severity 1
  wirespool --remote https://sensor:8420 tag spool --log eve.json

Exit code 1 when a session that an alert names was not found, or it was stopped before the end of
the log.")]
pub(crate) struct Flags {
    /// The volume: a file or a block device; with --remote the name of one
    #[arg(required_unless_present = "remote", value_parser = volume_or_word())]
    volume: Option<PathBuf>,
    /// The log: EVE of Suricata, or one of Zeek's, tab-separated or JSON
    #[arg(long, value_name = "FILE")]
    log: PathBuf,
    /// Follow the log as it grows, until interrupted
    #[arg(long)]
    follow: bool,
    /// All events, not only alerts and notices
    #[arg(long)]
    all_events: bool,
    /// Put sessions of alerts aside in this directory
    #[arg(long, value_name = "DIR")]
    hold_dir: Option<PathBuf>,
    /// Only alerts of this severity or a higher one (1 is the highest)
    #[arg(long, value_name = "N", requires = "hold_dir")]
    hold_severity: Option<u8>,
    /// Only alerts whose tag contains this text
    #[arg(long, value_name = "TEXT", requires = "hold_dir")]
    hold_matching: Option<String>,
    /// Most bytes of all holds there
    #[arg(long, value_name = "SIZE", default_value = "10G",
        value_parser = crate::arguments::size)]
    size_max: u64,
    #[command(flatten)]
    reading: ReadingFlags,
    #[command(flatten)]
    remote: RemoteFlags,
}

/// Where sessions are sought.
enum Source {
    Here(Options),
    There(Box<There>),
}

/// An event whose session has no lasting id yet.
struct Pending {
    event: LogEvent,
    since_ns: i64,
    next_ns: i64,
}

struct Tagger<'a> {
    flags: &'a Flags,
    source: Source,
    pending: Vec<Pending>,
    rest: Rest,
    missed: u64,
    bad_lines: u64,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let source = source(flags)?;
    let (mut tail, mut reader) = (Tail::open(&flags.log)?, LogReader::default());
    let stop = StopFlag::install()?;
    let (pending, rest) = (Vec::new(), Rest::default());
    let mut tagger = Tagger { flags, source, pending, rest, missed: 0, bad_lines: 0 };
    let is_cut = 'log: loop {
        let lines = tail.lines()?;
        let is_end = lines.is_empty();
        if is_end && !flags.follow {
            break false;
        }
        if stop.is_set() && flags.follow {
            // It has no other end.
            break false;
        }
        for line in lines {
            if stop.is_set() && !flags.follow {
                break 'log true;
            }
            tagger.line(&mut reader, &line)?;
        }
        let now = SystemClock.boottime_ns();
        if !tagger.pending.is_empty() || tagger.rest.is_due(now) {
            tagger.catch_up();
        }
        tagger.look_again(now, false)?;
        tagger.hold_rest(now, false)?;
        if is_end {
            SystemClock.sleep_until(SystemClock.boottime_ns() + LOOK_NS);
        }
    };
    if let Some(line) = tail.rest().filter(|_| !is_cut) {
        tagger.line(&mut reader, &line)?;
    }
    if flags.follow {
        tagger.catch_up();
    }
    tagger.look_again(SystemClock.boottime_ns(), true)?;
    tagger.hold_rest(SystemClock.boottime_ns(), true)?;
    if tagger.bad_lines > 0 {
        let lines = page::text::plural(tagger.bad_lines, "line");
        if !reader.has_read() {
            bail!("{}: not a log of Suricata or Zeek", page::safe::path(&flags.log));
        }
        say(&format!("{}: {lines} of no known form", page::safe::path(&flags.log)));
    }
    if tagger.missed > 0 {
        say(&format!("no session found for {}", page::text::plural(tagger.missed, "event")));
    }
    if is_cut {
        say(&format!("{}: stopped before its end", page::safe::path(&flags.log)));
    }
    Ok(Verdict::clean_if(tagger.missed == 0 && !is_cut))
}

/// The volume that is meant.
fn source(flags: &Flags) -> anyhow::Result<Source> {
    let given = flags.hold_dir.is_some().then_some("--hold-dir").or_else(|| flags.reading.given());
    if let Some(flag) = given.filter(|_| flags.remote.is_given()) {
        return Err(refused(flag).into());
    }
    let Asked { place, words } = flags.remote.asked(flags.volume.as_deref(), &[])?;
    let volume = match place {
        Place::Here(volume) => volume,
        Place::There(there) => {
            let there = there.named_by_all(&words).map_err(not_named)?;
            return Ok(Source::There(Box::new(there)));
        }
    };
    let mut options = flags.reading.options(volume)?;
    flags.hold_dir.iter().try_for_each(|folder| host::check_folder(folder))?;
    // What is wrong with the volume is said before anything is tagged.
    upkeep::status(&options.volume, &options.members)?;
    flags.reading.catch_up(&mut options);
    Ok(Source::Here(options))
}

impl Tagger<'_> {
    /// A service does so by itself.
    fn catch_up(&mut self) {
        if let Source::Here(options) = &mut self.source {
            self.flags.reading.catch_up(options);
        }
    }

    /// The sessions that match.
    fn found(&mut self, text: String) -> anyhow::Result<Vec<Found>> {
        let query = arguments::query(&text)?;
        let mut found = Vec::new();
        match &mut self.source {
            Source::Here(options) => {
                let report = ::extract::find(options, &query, None, &SystemClock, &mut |step| {
                    if let Event::Found(session) = step {
                        found.push(session.clone());
                    }
                    ControlFlow::Continue(())
                });
                report.map_err(|error| of_extract(&options.volume, error))?;
            }
            Source::There(there) => {
                there.ask(text);
                sessions(there, &Wanted::default(), &mut |session| {
                    found.push(session.clone());
                    Ok(())
                })?;
            }
        }
        Ok(found)
    }

    fn line(&mut self, reader: &mut LogReader, line: &str) -> anyhow::Result<()> {
        let Ok(event) = reader.line(line) else {
            self.bad_lines += 1;
            return Ok(());
        };
        let is_wanted = |event: &LogEvent| event.is_alert || self.flags.all_events;
        let Some(event) = event.filter(is_wanted) else { return Ok(()) };
        let now = SystemClock.boottime_ns();
        if self.chosen(&event) {
            self.hold(&event)?;
        }
        let pending = Pending { event, since_ns: now, next_ns: now };
        if self.pending.len() < PENDING_MAX {
            self.pending.push(pending);
        } else {
            self.tag(&pending.event, true)?;
        }
        if self.flags.follow { Ok(()) } else { self.look_again(now, true) }
    }

    /// Tags what is due; `is_last` takes what there is.
    fn look_again(&mut self, now: i64, is_last: bool) -> anyhow::Result<()> {
        for mut pending in core::mem::take(&mut self.pending) {
            let is_over = is_last || now - pending.since_ns > PATIENCE_NS;
            let is_due = is_over || now >= pending.next_ns;
            if !is_due || !self.tag(&pending.event, is_over)? {
                if is_due {
                    pending.next_ns = now + AGAIN_NS;
                }
                self.pending.push(pending);
            }
        }
        Ok(())
    }

    /// Prints the sessions of an event; false when they have no lasting ids yet and that matters.
    fn tag(&mut self, event: &LogEvent, is_last: bool) -> anyhow::Result<bool> {
        let Some(text) = event.query(MARGIN_NS) else {
            self.missed += 1;
            return Ok(true);
        };
        let found = self.found(text)?;
        let is_lasting = !found.is_empty() && found.iter().all(|session| !session.is_provisional);
        if !is_lasting && !is_last {
            return Ok(false);
        }
        self.missed += u64::from(found.is_empty());
        let lines: String =
            found.iter().map(|session| session_view::tag_line(event, session)).collect();
        let mut out = crate::stdout::buffered();
        out.write_all(lines.as_bytes())?;
        out.flush()?;
        Ok(true)
    }

    fn chosen(&self, event: &LogEvent) -> bool {
        let Flags { hold_dir, hold_severity, hold_matching, .. } = self.flags;
        let is_severe = hold_severity
            .is_none_or(|most| event.severity.is_some_and(|severity| severity <= most));
        let matches = hold_matching.as_ref().is_none_or(|text| event.label.contains(text));
        hold_dir.is_some() && event.is_alert && is_severe && matches
    }

    /// Puts the event's session aside, as far as it is there; followed, the rest later.
    fn hold(&mut self, event: &LogEvent) -> anyhow::Result<()> {
        let (Source::Here(options), Some(text)) = (&self.source, event.query(MARGIN_NS)) else {
            return Ok(());
        };
        match put(self.flags, options, &text)? {
            Aside::Full { .. } => bail!("no space in --hold-dir for {}", event.label),
            Aside::Held { path, packets, .. } => {
                let now = SystemClock.boottime_ns();
                self.rest.add(&text, (&path, packets), now);
                let packets = page::text::plural(packets, "packet");
                say(&format!("hold: {packets} of {} in {}", event.label, page::safe::path(&path)));
            }
            Aside::Nothing | Aside::Stopped => {}
        }
        Ok(())
    }

    /// What has come since of the sessions that are held.
    fn hold_rest(&mut self, now: i64, is_last: bool) -> anyhow::Result<()> {
        let Source::Here(options) = &self.source else { return Ok(()) };
        self.rest
            .look(now, is_last && self.flags.follow, &mut |text| put(self.flags, options, text))
    }
}

/// Puts the sessions of a query aside.
fn put(flags: &Flags, options: &Options, text: &str) -> anyhow::Result<Aside> {
    let Some(folder) = &flags.hold_dir else { return Ok(Aside::Nothing) };
    let query = arguments::query(text)?;
    let request = Request { whole_sessions: true, ..Request::new(&query, text) };
    let (size_max, manifest) = (flags.size_max, evidence::manifest_with(None));
    let signature = &::hold::no_signature;
    let room = Room { folder, size_max, also_empty: false, manifest: &manifest, signature };
    let go_on = &mut |_: &::extract::Progress| ControlFlow::Continue(());
    put_aside(&room, options, &request, go_on).map_err(|error| of_hold(&options.volume, error))
}

/// Reads the events of a whole log; alerts alone, if there are any.
pub(crate) fn events_of(path: &Path, text: &str) -> Result<Vec<LogEvent>, Usage> {
    let no_log = || Usage(format!("{}: not a log of Suricata or Zeek", page::safe::path(path)));
    let (mut events, nameless) = logs::log_events(text).map_err(|_| no_log())?;
    if events.iter().any(|event| event.is_alert) {
        events.retain(|event| event.is_alert);
    }
    if nameless > 0 && !events.is_empty() {
        let lines = page::text::plural(nameless, "line");
        say(&format!("{}: {lines} that name no session are left out", page::safe::path(path)));
    }
    if events.is_empty() {
        return Err(Usage(format!("{}: no event names a session", page::safe::path(path))));
    }
    Ok(events)
}
