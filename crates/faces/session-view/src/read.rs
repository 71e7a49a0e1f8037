//! A session out of the line of JSON that [`crate::json_line`] makes of it, so that what a service
//! has found is shown by the code that shows what was found here.
//!
//! A line has all that tables, CSV, JSON and orders say of a session; where its packets lie is not
//! among that. Lines may be anybody's: every value is checked for its kind. What follows from other
//! fields is not read, and neither is a field that a later version has added.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use format::kind::Kind;
use format::session_row::{SessionRow, SourceNames};
use format::stored_field::{Access, StoredField};
use found::{Found, Held};
use serde::Deserialize;
use serde_json::Value;
use wire::{Address, CommunityId};

use crate::session::{self, Read, fieldless};

/// A line is no session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoSession {
    /// Not an object of JSON.
    #[error("it is no object of JSON: {0}")]
    Json(serde_json::Error),
    /// A field that every session has is missing.
    #[error("it has no {0}")]
    Missing(&'static str),
    /// A field has a value that it cannot have.
    #[error("its {0} is none")]
    Wrong(&'static str),
}

/// Fields without which there is no session.
const NEEDED: [&str; 5] = ["session_id", "proto", "session_start_ns", "start_ns", "end_ns"];

/// Reads the session of a line.
///
/// # Errors
/// When the line is no session: see [`NoSession`].
pub fn read_session(line: &str) -> Result<Found, NoSession> {
    static SETTERS: LazyLock<BTreeMap<&str, Setter>> = LazyLock::new(setters);
    let values: BTreeMap<String, Value> = serde_json::from_str(line).map_err(NoSession::Json)?;
    if let Some(missing) = NEEDED.into_iter().find(|name| !values.contains_key(*name)) {
        return Err(NoSession::Missing(missing));
    }
    let mut found = fieldless();
    for (name, value) in &values {
        if let Some((name, setter)) = SETTERS.get_key_value(name.as_str()) {
            setter.set(&mut found, value).ok_or(NoSession::Wrong(name))?;
        }
    }
    found.rows = vec![found.id.clone()];
    Ok(found)
}

/// Sets a field; `None` where the value is none of it.
type Set = fn(&mut Found, &Value) -> Option<()>;

/// A field of a line, and how it is set.
#[derive(Clone, Copy)]
enum Setter {
    Stored(&'static StoredField),
    Own(Set),
}

impl Setter {
    fn set(self, row: &mut Found, value: &Value) -> Option<()> {
        match self {
            Self::Stored(field) => take(field, &mut row.session, value),
            Self::Own(set) => set(row, value),
        }
    }
}

/// What is set by the fields of [`crate::session::FIELDS`]: all that are stored, and [`OWN`].
fn setters() -> BTreeMap<&'static str, Setter> {
    let stored = session::FIELDS.iter().filter_map(|(name, read)| match read {
        Read::Stored(field) => Some((*name, Setter::Stored(field))),
        Read::By(_) => None,
    });
    stored.chain(OWN.map(|(name, set)| (name, Setter::Own(set)))).collect()
}

/// Sets a stored field.
fn take(field: &StoredField, row: &mut SessionRow, value: &Value) -> Option<()> {
    let integer = || match field.kind {
        Kind::Time => value.as_i64(),
        _ => value.as_u64().map(u64::cast_signed),
    };
    match field.access {
        // What may be absent may be said to be.
        Access::MaybeNumber(..) | Access::MaybeFlag(..) if value.is_null() => {}
        Access::Time(_, set) => set(row, integer()?),
        Access::Number(_, _, set) | Access::MaybeNumber(_, _, set) => set(row, integer()?)?,
        Access::Flag(_, set) | Access::MaybeFlag(_, set) => set(row, value.as_bool()?),
        Access::Address(_, set) => set(row, address(value)?),
        Access::Text(_, set) => set(row, value.as_str()?)?,
        Access::Texts(_, list) => put(list(row), value)?,
        Access::Numbers(_, list) => put(list(row), value)?,
        Access::Pieces(..) => {}
    }
    Some(())
}

fn put<'v, T: Deserialize<'v>>(to: &mut T, value: &'v Value) -> Option<()> {
    *to = T::deserialize(value).ok()?;
    Some(())
}

fn address(value: &Value) -> Option<Address> {
    let text = value.as_str()?;
    text.parse().map(Address::V4).or_else(|_| text.parse().map(Address::V6)).ok().or_else(|| {
        let mut parts = text.split(':').map(|part| u8::from_str_radix(part, 16).ok());
        let mut mac = [0; 6];
        for byte in &mut mac {
            *byte = parts.next()??;
        }
        parts.next().is_none().then_some(Address::Mac(mac))
    })
}

fn source(row: &mut Found) -> &mut SourceNames {
    Arc::make_mut(row.session.source.get_or_insert_default())
}

/// Those that are not as they are stored, but for what follows from others.
const OWN: [(&str, Set); 10] = [
    ("session_id", |row, value| put(&mut row.id, value)),
    ("community_id", |row, value| {
        row.community_id = Some(CommunityId(value.as_str()?.to_owned()));
        Some(())
    }),
    ("orig_port", |row, value| put(&mut row.session.tuple.orig_port, value)),
    ("resp_port", |row, value| put(&mut row.session.tuple.resp_port, value)),
    ("session_start_ns", |row, value| put(&mut row.session.session_start.0, value)),
    ("end_ns", |row, value| put(&mut row.session.end.0, value)),
    ("interface_name", |row, value| put(&mut source(row).interface, value)),
    ("recording", |row, value| put(&mut source(row).recording, value)),
    ("packets_overwritten", |row, value| {
        row.packets = match value.as_str()? {
            "some" => Held::Partly,
            "all" => Held::Retired,
            _ => return None,
        };
        Some(())
    }),
    ("provisional", |row, value| put(&mut row.is_provisional, value)),
];

#[cfg(test)]
mod tests {
    use format::session_row::{Direction, Names, SessionRow};
    use wire::{FiveTuple, Protocol, Ssh, TcpOptions, Tls, Tunnel, TunnelKind};

    use super::*;
    use crate::session::{self, tests::found};
    use crate::{csv_line, json_line};
    use units::InterfaceId;

    /// A session in which every field of JSON has a value.
    #[expect(clippy::too_many_lines, reason = "a session has so many fields")]
    fn full() -> Found {
        let text = |text: &str| Some(text.to_owned());
        let texts = |texts: [&str; 2]| texts.map(str::to_owned).to_vec();
        let mut row = found("/a");
        let syn = TcpOptions {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: false,
        };
        let side = |by: u64| Direction {
            packets: by,
            frame_bytes: 2 * by,
            ip_bytes: 3 * by,
            payload_bytes: u64::MAX - by,
            tcp_flags: 0x1b,
            retransmitted_packets: 5 * by,
            retransmitted_bytes: 6 * by,
            out_of_order_packets: 7 * by,
            resets: 8 * by,
            zero_windows: 9 * by,
            missed_bytes: 10 * by,
            syn_options: Some(syn),
        };
        let names = Names {
            app: None,
            sni: text("\u{1b}[31m\u{2028}"),
            alpn: texts(["h2", "http/1.1"]),
            tls_version: Some(0x0303),
            tls: Some(Box::new(Tls {
                alpn_chosen: text("h2"),
                cipher: Some(0xc02f),
                ja3: text("a"),
                ja3s: text("b"),
                ja4: text("c"),
                cert_subject: text("CN=a,b"),
                cert_issuer: text("CN=\"c\""),
                cert_not_before_ns: Some(-1),
                cert_not_after_ns: Some(i64::MAX),
            })),
            http_host: texts(["a", "b"]),
            http_method: texts(["GET", "PUT"]),
            http_path: texts(["/", "/x"]),
            http_status: vec![200, 404],
            http_user_agent: texts(["curl", "x"]),
            http_content_type: texts(["a/b", "c/d"]),
            dns_names: texts(["example.org", "x"]),
            dns_types: vec![1, 28],
            dns_rcodes: vec![0, 3],
            dns_answers: texts(["10.0.0.1", "::1"]),
            dns_rtt_ns: Some(77),
            ssh: Some(Box::new(Ssh {
                client: text("SSH-2.0-a"),
                server: text("SSH-2.0-b"),
                hassh: text("d"),
                hassh_server: text("e"),
            })),
            app_detail: texts(["icmp.orig=8/0", "k=v"]),
        };
        row.session = SessionRow {
            vlan: [Some(1), Some(4095)],
            mpls: Some(9),
            tunnel: Some(Tunnel {
                kind: TunnelKind::Vxlan,
                id: 42,
                src: Address::V4([10, 0, 0, 1].into()),
                dst: Address::V6("fe80::1".parse().unwrap()),
            }),
            icmp: Some((8, 0)),
            orig: side(1),
            resp: side(2),
            truncated_packets: 3,
            fragments: 4,
            continues: true,
            interface: InterfaceId(2),
            source: Some(Arc::new(SourceNames { interface: text("eth0"), recording: text("r") })),
            names: names.into(),
            ..row.session
        };
        row.community_id = row.session.community_ids().next();
        row.is_provisional = true;
        row
    }

    #[test]
    fn every_field_comes_back_as_it_was() {
        let row = full();
        let line = json_line(&row);
        let object: BTreeMap<String, Value> = serde_json::from_str(&line).unwrap();
        for (name, _) in session::FIELDS.iter() {
            assert!(object.contains_key(*name), "this test has no {name}");
        }
        let read = read_session(&line).unwrap();
        assert_eq!((json_line(&read), csv_line(&read)), (line, csv_line(&row)));
        assert_eq!(read, row);
    }

    #[test]
    fn what_is_not_there_stays_absent() {
        let mut plain = fieldless();
        plain.id = "7.0-1".to_owned();
        let stations = FiveTuple {
            orig: Address::Mac([2, 0, 0, 0, 0, 0xfe]),
            proto: Protocol::ARP,
            ..plain.session.tuple
        };
        let odd = Found { session: SessionRow::new(stations, plain.session.start), ..fieldless() };
        for row in [plain, odd, found("/")] {
            let line = json_line(&row);
            assert_eq!(json_line(&read_session(&line).unwrap()), line);
        }
    }

    #[test]
    fn what_is_no_session_is_refused_with_its_reason() {
        let line = json_line(&found("/"));
        let with = |old: &str, new: &str| {
            let text = line.replacen(old, new, 1);
            assert_ne!(text, line, "{old}");
            read_session(&text).map_err(|error| error.to_string())
        };
        for (old, new, why) in [
            ("\"start_ns\":0,", "", "it has no start_ns"),
            ("\"proto\":6", "\"proto\":70000", "its proto is none"),
            ("\"proto\":6", "\"proto\":-6", "its proto is none"),
            ("\"orig_ip\":\"2001:db8::1\"", "\"orig_ip\":\"x\"", "its orig_ip is none"),
            ("\"state\":\"S1\"", "\"state\":\"S9\"", "its state is none"),
            ("\"app\":\"http\"", "\"app\":\"no such\"", "its app is none"),
            ("\"history\":\"ShA\"", "\"history\":\"\u{e9}\"", "its history is none"),
            ("\"http_status\":[200,404]", "\"http_status\":[[]]", "its http_status is none"),
        ] {
            assert_eq!(with(old, new).unwrap_err(), why);
        }
        assert!(with("{", "{\"of_later\":[1],").is_ok(), "a later version may add fields");
        for text in ["", "[]", "{", "null", &"[".repeat(100_000)] {
            assert!(matches!(read_session(text), Err(NoSession::Json(_))));
        }
    }
}
