//! Which packets an extract or a hold takes, besides the query.

use core::ops::ControlFlow;
use core::time::Duration;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ::extract::{Options, Pattern, Request, SessionIds};
use ::manifest::{CaseInfo, Limits};
use clap::Args;
use filters::PacketFilter;
use host::SystemClock;
use query::Query;
use units::{Clock, NANOS_PER_SECOND, Sleep};

use crate::atlas::AtlasFlags;
use crate::custody::pseudonyms::{PseudonymFlags, Pseudonyms};
use crate::failure::Usage;
use crate::remote::first_given;
use crate::{arguments, tag};

/// Ids and logs take so much text and no more.
const TEXT_BYTES_MAX: u64 = 1 << 30;
/// While a recorder runs, a search rests so many times as long as it reads ...
const REST_TIMES: i64 = 3;
/// ... and so long at most at a time, so that it can be interrupted.
const REST_NS_MAX: i64 = NANOS_PER_SECOND / 2;

/// Flags that name sessions in other ways than a query.
#[derive(Debug, Args)]
pub(crate) struct NamingFlags {
    /// Only sessions that name this in any field: an address, that of a station, a part of a name;
    /// may be given several times
    #[arg(long, value_name = "TEXT")]
    subject: Vec<String>,
    /// Only the session with this community id; may be given several times
    #[arg(long, value_name = "ID")]
    community_id: Vec<String>,
    /// Only sessions that the alerts in this EVE file of Suricata name (all events, if it has no
    /// alert); - is standard input
    #[arg(long, value_name = "FILE")]
    from_eve: Option<PathBuf>,
    /// Only sessions that this log of Zeek names, tab-separated or JSON
    #[arg(long, value_name = "FILE")]
    from_zeek: Option<PathBuf>,
}

impl NamingFlags {
    fn is_empty(&self) -> bool {
        self.subject.is_empty()
            && self.community_id.is_empty()
            && self.from_eve.is_none()
            && self.from_zeek.is_none()
    }

    /// The query with what these ask for besides.
    pub(crate) fn query_text(&self, words: &[String]) -> anyhow::Result<String> {
        let mut text = with_community_ids(words.join(" "), &self.community_id);
        if !self.subject.is_empty() {
            let any: Vec<String> = self.subject.iter().map(|term| query::subject(term)).collect();
            let any = any.join(" or ");
            text = if text.trim().is_empty() { any } else { format!("({text}) and ({any})") };
        }
        for path in self.from_eve.iter().chain(&self.from_zeek) {
            let events = tag::events_of(path, &read_text(path)?)?;
            let named: BTreeSet<String> =
                events.iter().filter_map(|event| event.query(logs::MARGIN_NS)).collect();
            let named = Vec::from_iter(named).join(" or ");
            text = if text.trim().is_empty() { named } else { format!("({text}) and ({named})") };
        }
        Ok(text)
    }
}

/// What an extract is made for. It is written into the manifest as it is given.
#[derive(Debug, Args)]
pub(crate) struct CaseFlags {
    /// The case that it belongs to, for the manifest
    #[arg(long, value_name = "TEXT", value_parser = case_text)]
    case: Option<String>,
    /// Why it is made, for the manifest
    #[arg(long, value_name = "TEXT", value_parser = case_text)]
    purpose: Option<String>,
    /// Who has asked for it, for the manifest
    #[arg(long, value_name = "TEXT", value_parser = case_text)]
    requester: Option<String>,
}

impl CaseFlags {
    pub(crate) fn info(&self) -> CaseInfo {
        let Self { case, purpose, requester } = self;
        CaseInfo { case: case.clone(), purpose: purpose.clone(), requester: requester.clone() }
    }
}

fn case_text(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("say something, or leave it out".to_owned()),
        text if text.len() > CaseInfo::BYTES_MAX => {
            Err(format!("it has {} bytes, {} are the most", text.len(), CaseInfo::BYTES_MAX))
        }
        text => Ok(text.to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct SelectionFlags {
    /// Of the sessions' packets only those between the query's before and after
    #[arg(long, conflicts_with = "whole_sessions")]
    only_range: bool,
    /// With --payload: all packets of the sessions that have such a one. Else sessions are whole
    /// anyway
    #[arg(long)]
    whole_sessions: bool,
    /// Only sessions named in this file (- is standard input): ids one a line, or what find --json
    /// prints
    #[arg(long, value_name = "FILE")]
    sessions: Option<PathBuf>,
    #[command(flatten)]
    naming: NamingFlags,
    #[command(flatten)]
    atlas: AtlasFlags,
    /// Instead of the sessions' packets, every packet from TIME before each of them to TIME after
    /// it
    #[arg(long, value_name = "TIME", conflicts_with = "whole_sessions",
        value_parser = arguments::duration)]
    around: Option<Duration>,
    /// Of the packets those that pass this filter in the words of pcap-filter
    #[arg(long, value_name = "FILTER")]
    packet_filter: Option<String>,
    /// Of the packets those with this in their payload: a text, hex:DIGITS or re:EXPRESSION
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    payload: Option<Pattern>,
    /// At most so many sessions
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// At most so many packets
    #[arg(long, value_name = "N")]
    limit_packets: Option<u64>,
    /// At most so many bytes of packets
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    limit_bytes: Option<u64>,
    /// Give each packet the id of its session, and who sent it, as a comment
    #[arg(long)]
    pub(crate) comments: bool,
    #[command(flatten)]
    pseudonyms: PseudonymFlags,
}

fn pattern(text: &str) -> Result<Pattern, String> {
    text.parse().map_err(|error: ::extract::PatternError| error.to_string())
}

/// A request, with what it borrows.
pub(crate) struct Selection {
    pub(crate) query: Query,
    pub(crate) query_text: String,
    flags: Narrowed,
}

/// The flags, read and checked.
struct Narrowed {
    whole_sessions: bool,
    sessions: Option<SessionIds>,
    around: Option<Duration>,
    packet_filter: Option<PacketFilter>,
    payload: Option<Pattern>,
    limits: Limits,
    comments: bool,
    anonymiser: Option<Pseudonyms>,
}

impl SelectionFlags {
    /// Something besides the query says which sessions are meant.
    fn names_sessions(&self) -> bool {
        self.sessions.is_some() || !self.naming.is_empty()
    }

    /// The first of these flags that was given and that a service cannot do.
    pub(crate) fn given_of_here(&self) -> Option<&'static str> {
        first_given(&[
            (self.sessions.is_some(), "--sessions"),
            (self.pseudonyms.is_given(), "--anonymise or --escrow"),
            (self.atlas.is_given(), "--mmdb or --tags"),
        ])
    }

    /// The first of these flags that was given, whichever it is.
    pub(crate) fn given_besides_query(&self) -> Option<&'static str> {
        self.given_of_here().or_else(|| {
            first_given(&[
                (self.only_range, "--only-range"),
                (self.whole_sessions, "--whole-sessions"),
                (!self.naming.is_empty(), "a session or a log"),
                (self.around.is_some(), "--around"),
                (self.packet_filter.is_some(), "--packet-filter"),
                (self.payload.is_some(), "--payload"),
                (self.limit.or(self.limit_packets).or(self.limit_bytes).is_some(), "a limit"),
                (self.comments, "--comments"),
            ])
        })
    }

    /// The query, and what else a service is asked for; `words` are the query.
    pub(crate) fn remote(
        &self,
        words: &[String],
    ) -> anyhow::Result<(String, Vec<(&'static str, String)>)> {
        let query_text = self.query_text(words)?;
        arguments::query(&query_text)?;
        let flag = |name, is_given: bool| is_given.then(|| (name, "true".to_owned()));
        let text = |name, value: Option<String>| value.map(|value| (name, value));
        let number = |name, value: Option<u64>| text(name, value.map(|value| value.to_string()));
        let around_ms = self.around.and_then(|around| u64::try_from(around.as_millis()).ok());
        let parameters = [
            flag("only_range", self.only_range),
            flag("whole_sessions", self.whole_sessions),
            number("around_ms", around_ms),
            text("packet_filter", self.packet_filter.clone()),
            text("payload", self.payload.as_ref().map(Pattern::to_string)),
            number("limit", self.limit),
            number("limit_packets", self.limit_packets),
            number("limit_bytes", self.limit_bytes),
            flag("comments", self.comments),
        ];
        Ok((query_text, parameters.into_iter().flatten().collect()))
    }

    fn query_text(&self, words: &[String]) -> anyhow::Result<String> {
        if words.is_empty() && !self.names_sessions() {
            let text = "which sessions? Give a query ('' for all), --sessions, --community-id \
                        or --from-eve";
            return Err(Usage(text.to_owned()).into());
        }
        self.naming.query_text(words)
    }

    /// Reads and checks what is asked for; `words` are the query.
    pub(crate) fn selection(&self, words: &[String]) -> anyhow::Result<Selection> {
        let query_text = self.query_text(words)?;
        let query = arguments::query_with(&query_text, &self.atlas)?;
        let packet_filter = self.packet_filter.as_deref().map(arguments::packet_filter);
        let flags = Narrowed {
            // A pattern chooses among packets, and only with that word among sessions.
            whole_sessions: self.whole_sessions || (self.payload.is_none() && !self.only_range),
            sessions: self.sessions.as_deref().map(session_ids).transpose()?,
            around: self.around,
            packet_filter: packet_filter.transpose()?,
            payload: self.payload.clone(),
            limits: Limits {
                sessions: self.limit,
                packets: self.limit_packets,
                bytes: self.limit_bytes,
            },
            comments: self.comments,
            anonymiser: self.pseudonyms.pseudonyms()?,
        };
        Ok(Selection { query, query_text, flags })
    }
}

impl Selection {
    /// The other addresses of its packets, if they get some.
    pub(crate) fn pseudonyms(&self) -> Option<&Pseudonyms> {
        self.flags.anonymiser.as_ref()
    }

    pub(crate) fn request(&self) -> Request<'_> {
        let flags = &self.flags;
        Request {
            whole_sessions: flags.whole_sessions,
            sessions: flags.sessions.clone(),
            around: flags.around,
            packet_filter: flags.packet_filter.clone(),
            payload: flags.payload.clone(),
            limits: flags.limits,
            comments: flags.comments,
            anonymiser: flags.anonymiser.as_ref().map(Pseudonyms::anonymiser),
            ..Request::new(&self.query, &self.query_text)
        }
    }
}

/// A query with the alternatives of `ids` besides.
pub(crate) fn with_community_ids(text: String, ids: &[String]) -> String {
    if ids.is_empty() {
        return text;
    }
    let quoted: Vec<String> = ids.iter().map(|id| format!("\"{}\"", id.replace('"', ""))).collect();
    let any = format!("community_id in {{{}}}", quoted.join(", "));
    if text.trim().is_empty() { any } else { format!("({text}) and {any}") }
}

/// The text of a file or of standard input.
fn read_text(path: &Path) -> anyhow::Result<String> {
    let is_stdin = path == Path::new("-");
    let read = if is_stdin {
        host::read_stdin_text(TEXT_BYTES_MAX)
    } else {
        host::read_input_text(path, TEXT_BYTES_MAX)
    };
    Ok(read?)
}

/// Ids from a file or standard input.
fn session_ids(path: &Path) -> anyhow::Result<SessionIds> {
    let text = read_text(path)?;
    let mut ids = SessionIds::default();
    for (number, line) in (1..).zip(text.lines()) {
        let id = session_view::session_id(line);
        let is_one = id.as_deref().is_none_or(|id| ids.add(id));
        if !is_one {
            let text = format!("{}, line {number}: no session id", page::safe::path(path));
            return Err(Usage(text).into());
        }
    }
    Ok(ids)
}

/// Gives way to a recorder: a search through payload reads much, and recording outranks it.
pub(crate) struct Throttle {
    is_needed: bool,
    since_ns: i64,
}

impl Throttle {
    /// For a run that searches while a recorder writes to the volume.
    pub(crate) fn new(options: &Options, request: &Request<'_>) -> Self {
        let status = || upkeep::status(&options.volume, &options.members);
        let is_needed = request.payload.is_some() && status().is_ok_and(|status| status.is_open);
        Self { is_needed, since_ns: SystemClock.boottime_ns() }
    }

    /// After each piece: rests in proportion to the time since the one before.
    pub(crate) fn rest(&mut self) -> ControlFlow<()> {
        if self.is_needed {
            let now = SystemClock.boottime_ns();
            let rest_ns = (now - self.since_ns).saturating_mul(REST_TIMES).min(REST_NS_MAX);
            SystemClock.sleep_until(now + rest_ns);
            self.since_ns = SystemClock.boottime_ns();
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn community_ids_narrow_a_query() {
        let [one, other] = ["1:iM/olWEXeq98jWti2NfJIzAOdM8=", "1:LQU9qZlK+B5F3KDmev6m5PMibrg="];
        let ids = [one.to_owned(), other.to_owned()];
        assert_eq!(with_community_ids("port 53".to_owned(), &[]), "port 53");
        let both = with_community_ids(String::new(), &ids);
        assert_eq!(both, format!("community_id in {{\"{one}\", \"{other}\"}}"));
        let text = with_community_ids("a or b".to_owned(), &ids[..1]);
        assert_eq!(text, format!("(a or b) and community_id in {{\"{one}\"}}"));
        assert!(Query::parse(&both, units::Timestamp(0)).is_ok());
    }
}
