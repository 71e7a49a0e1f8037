//! Session rows as JSON lines and CSV, for programs.
//!
//! One list of fields makes JSON and CSV; a field that is absent is left out of the JSON and empty
//! in the CSV.

use std::borrow::Cow;
use std::sync::LazyLock;

use format::session_row::{SessionRow, SourceNames};
use format::stored_field::{STORED_FIELDS, StoredField, StoredValue};
use found::{Found, Held};
use packet_output::SessionStart;
use page::safe::{self, csv_cell, csv_list};
use query::{cipher_name, tls_version_name};
use serde::Deserialize;
use serde::ser::{Serialize, SerializeMap, Serializer};
use units::Timestamp;
use wire::{Address, FiveTuple, Protocol};

/// A value of a field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value<'a> {
    /// There is none.
    Absent,
    /// A number of things, or one that names something.
    Count(u64),
    /// Nanoseconds: a time since 1970, or a duration.
    Nanos(i64),
    /// Yes or no.
    Flag(bool),
    /// A text, which may be anybody's.
    Text(Cow<'a, str>),
    /// Several of such; none is as absent.
    Texts(&'a [String]),
    /// Several numbers; none is as absent.
    Numbers(&'a [u16]),
    /// Several values.
    Several(Vec<Value<'a>>),
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Absent => serializer.serialize_none(),
            Self::Count(count) => serializer.serialize_u64(*count),
            Self::Nanos(nanos) => serializer.serialize_i64(*nanos),
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Texts(texts) => serializer.collect_seq(*texts),
            Self::Numbers(numbers) => serializer.collect_seq(*numbers),
            Self::Several(values) => serializer.collect_seq(values),
        }
    }
}

impl Value<'_> {
    pub(crate) fn is_absent(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Texts(texts) => texts.is_empty(),
            Self::Numbers(numbers) => numbers.is_empty(),
            Self::Several(values) => values.is_empty(),
            _ => false,
        }
    }

    /// A cell: what is text may be anybody's.
    pub(crate) fn csv(&self) -> String {
        match self {
            Self::Absent => String::new(),
            Self::Count(count) => count.to_string(),
            Self::Nanos(nanos) => nanos.to_string(),
            Self::Flag(flag) => flag.to_string(),
            Self::Text(text) => csv_cell(text),
            Self::Texts(texts) => csv_list(texts.iter().map(String::as_str)),
            Self::Numbers(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(u16::to_string).collect();
                csv_list(numbers.iter().map(String::as_str))
            }
            Self::Several(values) => {
                let texts: Vec<String> = values.iter().map(Self::plain).collect();
                csv_list(texts.iter().map(String::as_str))
            }
        }
    }

    /// As it is; several with blanks between them.
    pub(crate) fn plain(&self) -> String {
        match self {
            Self::Text(text) => text.to_string(),
            Self::Texts(texts) => texts.join(" "),
            Self::Several(values) => values.iter().map(Self::plain).collect::<Vec<_>>().join(" "),
            value => value.csv(),
        }
    }
}

fn count(value: Option<impl Into<u64>>) -> Value<'static> {
    value.map_or(Value::Absent, |value| Value::Count(value.into()))
}

fn flag(value: Option<bool>) -> Value<'static> {
    value.map_or(Value::Absent, Value::Flag)
}

fn text(value: Option<&str>) -> Value<'_> {
    value.map_or(Value::Absent, |value| Value::Text(value.into()))
}

fn source(row: &Found) -> Option<&SourceNames> {
    row.session.source.as_deref()
}

pub(crate) fn has_ports(slice: &SessionRow) -> bool {
    slice.tuple.proto.has_ports()
}

/// A name for the file of one session: by its start, so that names sort, its ends and its id.
pub fn session_file_name(session: &SessionStart) -> String {
    let SessionStart { id, tuple, start } = session;
    let start: String =
        start.to_string().chars().filter(|letter| !"-:".contains(*letter)).collect();
    let proto = tuple.proto.name().map_or_else(|| tuple.proto.0.to_string(), str::to_owned);
    let end = |address: Address, port: u16| {
        let port = if tuple.proto.has_ports() { format!(".{port}") } else { String::new() };
        // Colons are no good in names of files.
        format!("{}{port}", address.to_string().replace(':', "-"))
    };
    let (orig, resp) = (end(tuple.orig, tuple.orig_port), end(tuple.resp, tuple.resp_port));
    format!("{start}_{proto}_{orig}_{resp}_{id}")
}

/// The session that a line names: an id, or an object of `find --json`. `None` for a blank line.
pub fn session_id(line: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        session_id: String,
    }
    let line = line.trim();
    let named = || serde_json::from_str(line).ok().map(|Named { session_id }| session_id);
    match line {
        "" => None,
        // What is no such object is no id, either.
        object if object.starts_with('{') => Some(named().unwrap_or_default()),
        id => Some(id.to_owned()),
    }
}

/// The session and the tag of a line that `wirespool tag` prints; `None` for any other.
pub fn session_tag(line: &str) -> Option<(String, String)> {
    #[derive(Deserialize)]
    struct Tagged {
        session_id: String,
        tag: String,
    }
    let Tagged { session_id, tag } = serde_json::from_str(line).ok()?;
    Some((session_id, tag))
}

/// Reads a value that is not stored as it is shown.
type Rule = for<'a> fn(&'a Found) -> Value<'a>;

/// How a field of JSON and CSV is read from a session.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Read {
    /// As it is stored.
    Stored(&'static StoredField),
    /// By a rule of its own.
    By(Rule),
}

impl Read {
    pub(crate) fn of(self, row: &Found) -> Value<'_> {
        match self {
            Self::Stored(field) => given(field, &row.session),
            Self::By(read) => read(row),
        }
    }
}

/// The value of a stored field.
fn given<'a>(field: &StoredField, row: &'a SessionRow) -> Value<'a> {
    match field.value(row) {
        StoredValue::Absent => Value::Absent,
        StoredValue::Time(time) => Value::Nanos(time.0),
        StoredValue::Number(number) => Value::Count(number),
        StoredValue::Flag(flag) => Value::Flag(flag),
        StoredValue::Address(address) => Value::Text(address.to_string().into()),
        StoredValue::Text(value) => Value::Text(value.into()),
        StoredValue::Texts(values) => Value::Texts(values),
        StoredValue::Numbers(values) => Value::Numbers(values),
    }
}

/// A field of the list.
enum Listed {
    /// It is a stored one.
    Stored(&'static str),
    /// It is read by a rule of its own.
    Own(&'static str, Rule),
}

/// Every field, in the order of docs/sessions.md except that the best known come first.
pub(crate) static FIELDS: LazyLock<Vec<(&str, Read)>> = LazyLock::new(|| {
    let listed = |listed: &Listed| match *listed {
        Listed::Stored(name) => {
            (name, Read::Stored(StoredField::find(name).expect("a field of the table")))
        }
        Listed::Own(name, read) => (name, Read::By(read)),
    };
    let of_payload = STORED_FIELDS.iter().filter(|field| field.is_of_payload).flat_map(|field| {
        let named = NAMED.iter().find(|(number, ..)| *number == field.name);
        let named = named.map(|&(_, name, read)| (name, Read::By(read)));
        core::iter::once((field.name, Read::Stored(field))).chain(named)
    });
    FIRST.iter().map(listed).chain(of_payload).chain(LAST.iter().map(listed)).collect()
});

/// Those before what was found in payload, which follows in the order of its columns.
const FIRST: &[Listed] = &[
    Listed::Own("session_id", |row| text(Some(&row.id))),
    Listed::Own("community_id", |row| text(row.community_id.as_ref().map(|id| &*id.0))),
    Listed::Stored("proto"),
    Listed::Stored("proto_name"),
    Listed::Stored("orig_ip"),
    Listed::Own("orig_port", |row| {
        count(has_ports(&row.session).then_some(row.session.tuple.orig_port))
    }),
    Listed::Stored("resp_ip"),
    Listed::Own("resp_port", |row| {
        count(has_ports(&row.session).then_some(row.session.tuple.resp_port))
    }),
    Listed::Stored("vlan"),
    Listed::Stored("vlan_inner"),
    Listed::Stored("mpls"),
    Listed::Stored("tunnel"),
    Listed::Stored("tunnel_id"),
    Listed::Stored("tunnel_src"),
    Listed::Stored("tunnel_dst"),
    Listed::Stored("icmp_type"),
    Listed::Stored("icmp_code"),
    Listed::Own("session_start_ns", |row| Value::Nanos(row.session.session_start.0)),
    Listed::Stored("start_ns"),
    Listed::Own("end_ns", |row| Value::Nanos(row.session.end.0)),
    Listed::Own("duration_ns", |row| Value::Nanos(row.session.end.since(row.session.start))),
    Listed::Stored("orig_packets"),
    Listed::Stored("resp_packets"),
    Listed::Stored("orig_frame_bytes"),
    Listed::Stored("resp_frame_bytes"),
    Listed::Stored("orig_ip_bytes"),
    Listed::Stored("resp_ip_bytes"),
    Listed::Stored("orig_payload_bytes"),
    Listed::Stored("resp_payload_bytes"),
    Listed::Stored("state"),
    Listed::Stored("history"),
    Listed::Stored("continues"),
    Listed::Stored("handshake_ns"),
    Listed::Stored("orig_tcp_flags"),
    Listed::Stored("resp_tcp_flags"),
    Listed::Stored("orig_retransmitted_packets"),
    Listed::Stored("resp_retransmitted_packets"),
    Listed::Stored("orig_retransmitted_bytes"),
    Listed::Stored("resp_retransmitted_bytes"),
    Listed::Stored("orig_out_of_order_packets"),
    Listed::Stored("resp_out_of_order_packets"),
    Listed::Stored("orig_resets"),
    Listed::Stored("resp_resets"),
    Listed::Stored("orig_zero_windows"),
    Listed::Stored("resp_zero_windows"),
    Listed::Stored("orig_missed_bytes"),
    Listed::Stored("resp_missed_bytes"),
    Listed::Stored("orig_syn_mss"),
    Listed::Stored("resp_syn_mss"),
    Listed::Stored("orig_syn_window_scale"),
    Listed::Stored("resp_syn_window_scale"),
    Listed::Stored("orig_syn_sack_permitted"),
    Listed::Stored("resp_syn_sack_permitted"),
    Listed::Stored("orig_syn_timestamps"),
    Listed::Stored("resp_syn_timestamps"),
    Listed::Stored("truncated_packets"),
    Listed::Stored("fragments"),
    Listed::Stored("interface"),
    Listed::Own("interface_name", |row| {
        text(source(row).and_then(|source| source.interface.as_deref()))
    }),
    Listed::Own("recording", |row| {
        text(source(row).and_then(|source| source.recording.as_deref()))
    }),
];

/// Numbers of payload, behind which their name stands.
const NAMED: [(&str, &str, Rule); 2] = [
    ("tls_version", "tls_version_name", |row| {
        text(row.session.names.tls_version.and_then(tls_version_name))
    }),
    ("tls_cipher", "tls_cipher_name", |row| {
        text(row.session.names.tls.as_ref().and_then(|tls| tls.cipher).and_then(cipher_name))
    }),
];

/// What is said of the session's packets.
const LAST: &[Listed] = &[
    Listed::Own("packets_overwritten", |row| match row.packets {
        Held::Held => Value::Absent,
        Held::Partly => text(Some("some")),
        Held::Retired => text(Some("all")),
    }),
    Listed::Own("provisional", |row| flag(row.is_provisional.then_some(true))),
];

/// A session of which nothing is known but that it was.
pub(crate) fn fieldless() -> Found {
    let tuple = FiveTuple {
        orig: Address::None,
        resp: Address::None,
        orig_port: 0,
        resp_port: 0,
        proto: Protocol::TCP,
    };
    Found {
        id: String::new(),
        rows: Vec::new(),
        session: SessionRow::new(tuple, Timestamp(0)),
        community_id: None,
        packets: Held::Held,
        is_provisional: false,
    }
}

struct Json<'a>(&'a Found);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, read) in FIELDS.iter() {
            let value = read.of(self.0);
            if !value.is_absent() {
                map.serialize_entry(name, &value)?;
            }
        }
        map.end()
    }
}

/// One JSON object and a line feed.
pub fn json_line(row: &Found) -> String {
    safe::json_line(&Json(row))
}

/// The names of the fields as a line of CSV.
pub fn csv_heading() -> String {
    FIELDS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(",") + "\n"
}

/// A row as a line of CSV (RFC 4180).
pub fn csv_line(row: &Found) -> String {
    FIELDS.iter().map(|(_, read)| read.of(row).csv()).collect::<Vec<_>>().join(",") + "\n"
}

#[cfg(test)]
pub(crate) mod tests {
    use format::session_row::{Direction, Names, State};
    use wire::{App, AppBy, Recognised};

    use super::*;

    pub(crate) fn found(path: &str) -> Found {
        let tuple = FiveTuple {
            orig: Address::V6("2001:db8::1".parse().unwrap()),
            resp: Address::V6("2001:db8::2".parse().unwrap()),
            orig_port: 40_000,
            resp_port: 80,
            proto: Protocol::TCP,
        };
        let names = Names {
            http_host: vec!["example.com".to_owned()],
            http_path: vec![path.to_owned()],
            http_status: vec![200, 404],
            ..Names::default()
        };
        let session = SessionRow {
            vlan: [Some(7), None],
            end: Timestamp(1_500_000_000),
            orig: Direction { packets: 2, frame_bytes: 1000, ..Direction::default() },
            resp: Direction { packets: 1, frame_bytes: 500, ..Direction::default() },
            state: State::S1,
            history: "ShA".parse().unwrap(),
            handshake_ns: Some(5),
            app: Some(Recognised { app: App::Http, by: AppBy::Content }),
            names: names.into(),
            ..SessionRow::new(tuple, Timestamp(0))
        };
        Found {
            id: "9.0-1".to_owned(),
            rows: vec!["9.0-1".to_owned()],
            session,
            community_id: None,
            packets: Held::Partly,
            is_provisional: false,
        }
    }

    #[test]
    fn json_has_what_is_there_and_nothing_else() {
        let row: serde_json::Value = serde_json::from_str(&json_line(&found("/"))).unwrap();
        assert_eq!((&row["session_id"], &row["proto"]), (&"9.0-1".into(), &6.into()));
        assert_eq!((&row["vlan"], row.get("vlan_inner")), (&7.into(), None));
        assert_eq!(row["http_status"], serde_json::json!([200, 404]));
        assert_eq!((&row["duration_ns"], &row["state"]), (&1_500_000_000.into(), &"S1".into()));
        assert_eq!(row["packets_overwritten"], "some");
        for absent in ["community_id", "sni", "dns_names", "tunnel", "provisional"] {
            assert_eq!(row.get(absent), None, "{absent}");
        }
    }

    #[test]
    fn a_line_of_tags_names_a_session_and_its_tag() {
        let line = "{\"session_id\":\"9.0-1\",\"tag\":\"ET SCAN\",\"event_ns\":5}";
        assert_eq!(session_tag(line), Some(("9.0-1".to_owned(), "ET SCAN".to_owned())));
        assert_eq!((session_tag("9.0-1"), session_tag("{}"), session_tag("")), (None, None, None));
    }

    #[test]
    fn csv_has_every_column_and_quotes_what_needs_it() {
        let line = csv_line(&found("/a,b\"c"));
        assert!(line.contains(",\"/a,b\"\"c\","), "{line}");
        let plain = csv_line(&found("/"));
        assert_eq!(plain.split(',').count(), csv_heading().split(',').count());
        assert!(plain.contains(",200|404,"), "{plain}");
    }
}
