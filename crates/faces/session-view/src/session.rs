//! Session rows as JSON lines and CSV, for programs.
//!
//! One list of fields makes JSON and CSV; a field that is absent is left out of the JSON and empty
//! in the CSV.

use std::borrow::Cow;

use extract::{Found, Held, SessionStart};
use format::session_row::{Direction, SessionRow, SourceNames};
use page::safe::{self, csv_cell, csv_list};
use query::{cipher_name, tls_version_name};
use serde::Deserialize;
use serde::ser::{Serialize, SerializeMap, Serializer};
use units::Timestamp;
use wire::{Address, FiveTuple, Protocol, Ssh, TcpOptions, Tls};

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

fn address(address: Option<Address>) -> Value<'static> {
    match address {
        None | Some(Address::None) => Value::Absent,
        Some(address) => Value::Text(address.to_string().into()),
    }
}

fn nanos(value: Option<i64>) -> Value<'static> {
    value.map_or(Value::Absent, Value::Nanos)
}

fn tls(row: &Found) -> Option<&Tls> {
    row.session.names.tls.as_deref()
}

fn ssh(row: &Found) -> Option<&Ssh> {
    row.session.names.ssh.as_deref()
}

fn source(row: &Found) -> Option<&SourceNames> {
    row.session.source.as_deref()
}

fn syn(side: &Direction) -> Option<&TcpOptions> {
    side.syn_options.as_ref()
}

pub(crate) fn has_ports(slice: &SessionRow) -> bool {
    slice.tuple.proto.has_ports()
}

pub(crate) type Read = for<'a> fn(&'a Found) -> Value<'a>;

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

/// Every field, in the order of docs/sessions.md except that the best known come first.
pub(crate) const FIELDS: [(&str, Read); 94] = [
    ("session_id", |row| text(Some(&row.id))),
    ("community_id", |row| text(row.community_id.as_ref().map(|id| &*id.0))),
    ("proto", |row| Value::Count(row.session.tuple.proto.0.into())),
    ("proto_name", |row| text(row.session.tuple.proto.name())),
    ("orig_ip", |row| address(Some(row.session.tuple.orig))),
    ("orig_port", |row| count(has_ports(&row.session).then_some(row.session.tuple.orig_port))),
    ("resp_ip", |row| address(Some(row.session.tuple.resp))),
    ("resp_port", |row| count(has_ports(&row.session).then_some(row.session.tuple.resp_port))),
    ("vlan", |row| count(row.session.vlan[0])),
    ("vlan_inner", |row| count(row.session.vlan[1])),
    ("mpls", |row| count(row.session.mpls)),
    ("tunnel", |row| text(row.session.tunnel.map(|tunnel| tunnel.kind.name()))),
    ("tunnel_id", |row| count(row.session.tunnel.map(|tunnel| tunnel.id))),
    ("tunnel_src", |row| address(row.session.tunnel.map(|tunnel| tunnel.src))),
    ("tunnel_dst", |row| address(row.session.tunnel.map(|tunnel| tunnel.dst))),
    ("icmp_type", |row| count(row.session.icmp.map(|icmp| icmp.0))),
    ("icmp_code", |row| count(row.session.icmp.map(|icmp| icmp.1))),
    ("session_start_ns", |row| Value::Nanos(row.session.session_start.0)),
    ("start_ns", |row| Value::Nanos(row.session.start.0)),
    ("end_ns", |row| Value::Nanos(row.session.end.0)),
    ("duration_ns", |row| Value::Nanos(row.session.end.since(row.session.start))),
    ("orig_packets", |row| Value::Count(row.session.orig.packets)),
    ("resp_packets", |row| Value::Count(row.session.resp.packets)),
    ("orig_frame_bytes", |row| Value::Count(row.session.orig.frame_bytes)),
    ("resp_frame_bytes", |row| Value::Count(row.session.resp.frame_bytes)),
    ("orig_ip_bytes", |row| Value::Count(row.session.orig.ip_bytes)),
    ("resp_ip_bytes", |row| Value::Count(row.session.resp.ip_bytes)),
    ("orig_payload_bytes", |row| Value::Count(row.session.orig.payload_bytes)),
    ("resp_payload_bytes", |row| Value::Count(row.session.resp.payload_bytes)),
    ("state", |row| Value::Text(row.session.state.name().into())),
    ("history", |row| text(Some(row.session.history.as_str()))),
    ("continues", |row| Value::Flag(row.session.continues)),
    ("handshake_ns", |row| count(row.session.handshake_ns)),
    ("orig_tcp_flags", |row| Value::Count(row.session.orig.tcp_flags.into())),
    ("resp_tcp_flags", |row| Value::Count(row.session.resp.tcp_flags.into())),
    ("orig_retransmitted_packets", |row| Value::Count(row.session.orig.retransmitted_packets)),
    ("resp_retransmitted_packets", |row| Value::Count(row.session.resp.retransmitted_packets)),
    ("orig_retransmitted_bytes", |row| Value::Count(row.session.orig.retransmitted_bytes)),
    ("resp_retransmitted_bytes", |row| Value::Count(row.session.resp.retransmitted_bytes)),
    ("orig_out_of_order_packets", |row| Value::Count(row.session.orig.out_of_order_packets)),
    ("resp_out_of_order_packets", |row| Value::Count(row.session.resp.out_of_order_packets)),
    ("orig_resets", |row| Value::Count(row.session.orig.resets)),
    ("resp_resets", |row| Value::Count(row.session.resp.resets)),
    ("orig_zero_windows", |row| Value::Count(row.session.orig.zero_windows)),
    ("resp_zero_windows", |row| Value::Count(row.session.resp.zero_windows)),
    ("orig_missed_bytes", |row| Value::Count(row.session.orig.missed_bytes)),
    ("resp_missed_bytes", |row| Value::Count(row.session.resp.missed_bytes)),
    ("orig_syn_mss", |row| count(syn(&row.session.orig).and_then(|syn| syn.mss))),
    ("resp_syn_mss", |row| count(syn(&row.session.resp).and_then(|syn| syn.mss))),
    ("orig_syn_window_scale", |row| count(syn(&row.session.orig).and_then(|syn| syn.window_scale))),
    ("resp_syn_window_scale", |row| count(syn(&row.session.resp).and_then(|syn| syn.window_scale))),
    ("orig_syn_sack_permitted", |row| flag(syn(&row.session.orig).map(|syn| syn.sack_permitted))),
    ("resp_syn_sack_permitted", |row| flag(syn(&row.session.resp).map(|syn| syn.sack_permitted))),
    ("orig_syn_timestamps", |row| flag(syn(&row.session.orig).map(|syn| syn.timestamps))),
    ("resp_syn_timestamps", |row| flag(syn(&row.session.resp).map(|syn| syn.timestamps))),
    ("truncated_packets", |row| Value::Count(row.session.truncated_packets)),
    ("fragments", |row| Value::Count(row.session.fragments)),
    ("interface", |row| Value::Count(row.session.interface.into())),
    ("interface_name", |row| text(source(row).and_then(|source| source.interface.as_deref()))),
    ("recording", |row| text(source(row).and_then(|source| source.recording.as_deref()))),
    ("app", |row| text(row.session.app.map(|known| known.app.name()))),
    ("app_by", |row| text(row.session.app.map(|known| known.by.name()))),
    ("sni", |row| text(row.session.names.sni.as_deref())),
    ("alpn", |row| Value::Texts(&row.session.names.alpn)),
    ("alpn_chosen", |row| text(tls(row).and_then(|tls| tls.alpn_chosen.as_deref()))),
    ("tls_version", |row| count(row.session.names.tls_version)),
    ("tls_version_name", |row| text(row.session.names.tls_version.and_then(tls_version_name))),
    ("tls_cipher", |row| count(tls(row).and_then(|tls| tls.cipher))),
    ("tls_cipher_name", |row| text(tls(row).and_then(|tls| tls.cipher).and_then(cipher_name))),
    ("ja3", |row| text(tls(row).and_then(|tls| tls.ja3.as_deref()))),
    ("ja3s", |row| text(tls(row).and_then(|tls| tls.ja3s.as_deref()))),
    ("ja4", |row| text(tls(row).and_then(|tls| tls.ja4.as_deref()))),
    ("cert_subject", |row| text(tls(row).and_then(|tls| tls.cert_subject.as_deref()))),
    ("cert_issuer", |row| text(tls(row).and_then(|tls| tls.cert_issuer.as_deref()))),
    ("cert_not_before_ns", |row| nanos(tls(row).and_then(|tls| tls.cert_not_before_ns))),
    ("cert_not_after_ns", |row| nanos(tls(row).and_then(|tls| tls.cert_not_after_ns))),
    ("http_host", |row| Value::Texts(&row.session.names.http_host)),
    ("http_method", |row| Value::Texts(&row.session.names.http_method)),
    ("http_path", |row| Value::Texts(&row.session.names.http_path)),
    ("http_status", |row| Value::Numbers(&row.session.names.http_status)),
    ("http_user_agent", |row| Value::Texts(&row.session.names.http_user_agent)),
    ("http_content_type", |row| Value::Texts(&row.session.names.http_content_type)),
    ("dns_names", |row| Value::Texts(&row.session.names.dns_names)),
    ("dns_types", |row| Value::Numbers(&row.session.names.dns_types)),
    ("dns_rcodes", |row| Value::Numbers(&row.session.names.dns_rcodes)),
    ("dns_answers", |row| Value::Texts(&row.session.names.dns_answers)),
    ("dns_rtt_ns", |row| count(row.session.names.dns_rtt_ns)),
    ("ssh_client", |row| text(ssh(row).and_then(|ssh| ssh.client.as_deref()))),
    ("ssh_server", |row| text(ssh(row).and_then(|ssh| ssh.server.as_deref()))),
    ("hassh", |row| text(ssh(row).and_then(|ssh| ssh.hassh.as_deref()))),
    ("hassh_server", |row| text(ssh(row).and_then(|ssh| ssh.hassh_server.as_deref()))),
    ("app_detail", |row| Value::Texts(&row.session.names.app_detail)),
    ("packets_overwritten", |row| match row.packets {
        Held::Held => Value::Absent,
        Held::Partly => text(Some("some")),
        Held::Retired => text(Some("all")),
    }),
    ("provisional", |row| flag(row.is_provisional.then_some(true))),
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
        for (name, read) in &FIELDS {
            let value = read(self.0);
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
    FIELDS.map(|(name, _)| name).join(",") + "\n"
}

/// A row as a line of CSV (RFC 4180).
pub fn csv_line(row: &Found) -> String {
    FIELDS.map(|(_, read)| read(row).csv()).join(",") + "\n"
}

#[cfg(test)]
pub(crate) mod tests {
    use format::session_row::{Names, State};
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
