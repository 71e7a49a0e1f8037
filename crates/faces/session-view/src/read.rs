//! A session out of the line of JSON that [`crate::json_line`] makes of it, so that what a service
//! has found is shown by the code that shows what was found here.
//!
//! A line has all that tables, CSV, JSON and orders say of a session; where its packets lie is not
//! among that. Lines may be anybody's: every value is checked for its kind. What follows from other
//! fields is not read, and neither is a field that a later version has added.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use extract::{Found, Held};
use format::session_row::{SourceNames, State};
use serde::Deserialize;
use serde_json::Value;
use wire::{
    Address, App, AppBy, CommunityId, Recognised, Ssh, TcpOptions, Tls, Tunnel, TunnelKind,
};

use crate::session::fieldless;

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
    static SETTERS: OnceLock<BTreeMap<&str, (&str, Set)>> = OnceLock::new();
    let setters =
        SETTERS.get_or_init(|| FIELDS.iter().map(|(name, set)| (*name, (*name, *set))).collect());
    let values: BTreeMap<String, Value> = serde_json::from_str(line).map_err(NoSession::Json)?;
    if let Some(missing) = NEEDED.into_iter().find(|name| !values.contains_key(*name)) {
        return Err(NoSession::Missing(missing));
    }
    let mut found = fieldless();
    for (name, value) in &values {
        if let Some((name, set)) = setters.get(name.as_str()) {
            set(&mut found, value).ok_or(NoSession::Wrong(name))?;
        }
    }
    found.rows = vec![found.id.clone()];
    Ok(found)
}

/// Sets a field; `None` where the value is none of it.
type Set = fn(&mut Found, &Value) -> Option<()>;

fn put<'v, T: Deserialize<'v>>(to: &mut T, value: &'v Value) -> Option<()> {
    *to = T::deserialize(value).ok()?;
    Some(())
}

/// One of these by its name.
fn named<T: Copy>(all: &[T], name: fn(T) -> &'static str, value: &Value) -> Option<T> {
    let text = value.as_str()?;
    all.iter().copied().find(|one| name(*one) == text)
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

fn tunnel(row: &mut Found) -> &mut Tunnel {
    let (src, dst) = (Address::None, Address::None);
    row.session.tunnel.get_or_insert(Tunnel { kind: TunnelKind::Gre, id: 0, src, dst })
}

fn icmp(row: &mut Found) -> &mut (u8, u8) {
    row.session.icmp.get_or_insert((0, 0))
}

fn app(row: &mut Found) -> &mut Recognised {
    row.session.app.get_or_insert(Recognised { app: App::Tls, by: AppBy::Content })
}

fn orig_syn(row: &mut Found) -> &mut TcpOptions {
    row.session.orig.syn_options.get_or_insert_default()
}

fn resp_syn(row: &mut Found) -> &mut TcpOptions {
    row.session.resp.syn_options.get_or_insert_default()
}

fn source(row: &mut Found) -> &mut SourceNames {
    Arc::make_mut(row.session.source.get_or_insert_default())
}

fn tls(row: &mut Found) -> &mut Tls {
    row.session.names.tls.get_or_insert_default()
}

fn ssh(row: &mut Found) -> &mut Ssh {
    row.session.names.ssh.get_or_insert_default()
}

/// What the fields of [`crate::session::FIELDS`] set, but for those that follow from others.
const FIELDS: [(&str, Set); 90] = [
    ("session_id", |row, value| put(&mut row.id, value)),
    ("community_id", |row, value| {
        row.community_id = Some(CommunityId(value.as_str()?.to_owned()));
        Some(())
    }),
    ("proto", |row, value| put(&mut row.session.tuple.proto.0, value)),
    ("orig_ip", |row, value| address(value).map(|it| row.session.tuple.orig = it)),
    ("orig_port", |row, value| put(&mut row.session.tuple.orig_port, value)),
    ("resp_ip", |row, value| address(value).map(|it| row.session.tuple.resp = it)),
    ("resp_port", |row, value| put(&mut row.session.tuple.resp_port, value)),
    ("vlan", |row, value| put(&mut row.session.vlan[0], value)),
    ("vlan_inner", |row, value| put(&mut row.session.vlan[1], value)),
    ("mpls", |row, value| put(&mut row.session.mpls, value)),
    ("tunnel", |row, value| {
        named(&TunnelKind::ALL, TunnelKind::name, value).map(|it| tunnel(row).kind = it)
    }),
    ("tunnel_id", |row, value| put(&mut tunnel(row).id, value)),
    ("tunnel_src", |row, value| address(value).map(|it| tunnel(row).src = it)),
    ("tunnel_dst", |row, value| address(value).map(|it| tunnel(row).dst = it)),
    ("icmp_type", |row, value| put(&mut icmp(row).0, value)),
    ("icmp_code", |row, value| put(&mut icmp(row).1, value)),
    ("session_start_ns", |row, value| put(&mut row.session.session_start.0, value)),
    ("start_ns", |row, value| put(&mut row.session.start.0, value)),
    ("end_ns", |row, value| put(&mut row.session.end.0, value)),
    ("orig_packets", |row, value| put(&mut row.session.orig.packets, value)),
    ("resp_packets", |row, value| put(&mut row.session.resp.packets, value)),
    ("orig_frame_bytes", |row, value| put(&mut row.session.orig.frame_bytes, value)),
    ("resp_frame_bytes", |row, value| put(&mut row.session.resp.frame_bytes, value)),
    ("orig_ip_bytes", |row, value| put(&mut row.session.orig.ip_bytes, value)),
    ("resp_ip_bytes", |row, value| put(&mut row.session.resp.ip_bytes, value)),
    ("orig_payload_bytes", |row, value| put(&mut row.session.orig.payload_bytes, value)),
    ("resp_payload_bytes", |row, value| put(&mut row.session.resp.payload_bytes, value)),
    ("state", |row, value| named(&State::ALL, State::name, value).map(|it| row.session.state = it)),
    ("history", |row, value| {
        row.session.history = value.as_str()?.parse().ok()?;
        Some(())
    }),
    ("continues", |row, value| put(&mut row.session.continues, value)),
    ("handshake_ns", |row, value| put(&mut row.session.handshake_ns, value)),
    ("orig_tcp_flags", |row, value| put(&mut row.session.orig.tcp_flags, value)),
    ("resp_tcp_flags", |row, value| put(&mut row.session.resp.tcp_flags, value)),
    ("orig_retransmitted_packets", |row, value| {
        put(&mut row.session.orig.retransmitted_packets, value)
    }),
    ("resp_retransmitted_packets", |row, value| {
        put(&mut row.session.resp.retransmitted_packets, value)
    }),
    ("orig_retransmitted_bytes", |row, value| {
        put(&mut row.session.orig.retransmitted_bytes, value)
    }),
    ("resp_retransmitted_bytes", |row, value| {
        put(&mut row.session.resp.retransmitted_bytes, value)
    }),
    ("orig_out_of_order_packets", |row, value| {
        put(&mut row.session.orig.out_of_order_packets, value)
    }),
    ("resp_out_of_order_packets", |row, value| {
        put(&mut row.session.resp.out_of_order_packets, value)
    }),
    ("orig_resets", |row, value| put(&mut row.session.orig.resets, value)),
    ("resp_resets", |row, value| put(&mut row.session.resp.resets, value)),
    ("orig_zero_windows", |row, value| put(&mut row.session.orig.zero_windows, value)),
    ("resp_zero_windows", |row, value| put(&mut row.session.resp.zero_windows, value)),
    ("orig_missed_bytes", |row, value| put(&mut row.session.orig.missed_bytes, value)),
    ("resp_missed_bytes", |row, value| put(&mut row.session.resp.missed_bytes, value)),
    ("orig_syn_mss", |row, value| put(&mut orig_syn(row).mss, value)),
    ("resp_syn_mss", |row, value| put(&mut resp_syn(row).mss, value)),
    ("orig_syn_window_scale", |row, value| put(&mut orig_syn(row).window_scale, value)),
    ("resp_syn_window_scale", |row, value| put(&mut resp_syn(row).window_scale, value)),
    ("orig_syn_sack_permitted", |row, value| put(&mut orig_syn(row).sack_permitted, value)),
    ("resp_syn_sack_permitted", |row, value| put(&mut resp_syn(row).sack_permitted, value)),
    ("orig_syn_timestamps", |row, value| put(&mut orig_syn(row).timestamps, value)),
    ("resp_syn_timestamps", |row, value| put(&mut resp_syn(row).timestamps, value)),
    ("truncated_packets", |row, value| put(&mut row.session.truncated_packets, value)),
    ("fragments", |row, value| put(&mut row.session.fragments, value)),
    ("interface", |row, value| put(&mut row.session.interface, value)),
    ("interface_name", |row, value| put(&mut source(row).interface, value)),
    ("recording", |row, value| put(&mut source(row).recording, value)),
    ("app", |row, value| App::of_name(value.as_str()?).map(|it| app(row).app = it)),
    ("app_by", |row, value| AppBy::of_name(value.as_str()?).map(|it| app(row).by = it)),
    ("sni", |row, value| put(&mut row.session.names.sni, value)),
    ("alpn", |row, value| put(&mut row.session.names.alpn, value)),
    ("alpn_chosen", |row, value| put(&mut tls(row).alpn_chosen, value)),
    ("tls_version", |row, value| put(&mut row.session.names.tls_version, value)),
    ("tls_cipher", |row, value| put(&mut tls(row).cipher, value)),
    ("ja3", |row, value| put(&mut tls(row).ja3, value)),
    ("ja3s", |row, value| put(&mut tls(row).ja3s, value)),
    ("ja4", |row, value| put(&mut tls(row).ja4, value)),
    ("cert_subject", |row, value| put(&mut tls(row).cert_subject, value)),
    ("cert_issuer", |row, value| put(&mut tls(row).cert_issuer, value)),
    ("cert_not_before_ns", |row, value| put(&mut tls(row).cert_not_before_ns, value)),
    ("cert_not_after_ns", |row, value| put(&mut tls(row).cert_not_after_ns, value)),
    ("http_host", |row, value| put(&mut row.session.names.http_host, value)),
    ("http_method", |row, value| put(&mut row.session.names.http_method, value)),
    ("http_path", |row, value| put(&mut row.session.names.http_path, value)),
    ("http_status", |row, value| put(&mut row.session.names.http_status, value)),
    ("http_user_agent", |row, value| put(&mut row.session.names.http_user_agent, value)),
    ("http_content_type", |row, value| put(&mut row.session.names.http_content_type, value)),
    ("dns_names", |row, value| put(&mut row.session.names.dns_names, value)),
    ("dns_types", |row, value| put(&mut row.session.names.dns_types, value)),
    ("dns_rcodes", |row, value| put(&mut row.session.names.dns_rcodes, value)),
    ("dns_answers", |row, value| put(&mut row.session.names.dns_answers, value)),
    ("dns_rtt_ns", |row, value| put(&mut row.session.names.dns_rtt_ns, value)),
    ("ssh_client", |row, value| put(&mut ssh(row).client, value)),
    ("ssh_server", |row, value| put(&mut ssh(row).server, value)),
    ("hassh", |row, value| put(&mut ssh(row).hassh, value)),
    ("hassh_server", |row, value| put(&mut ssh(row).hassh_server, value)),
    ("app_detail", |row, value| put(&mut row.session.names.app_detail, value)),
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
    use wire::{FiveTuple, Protocol};

    use super::*;
    use crate::session::{self, tests::found};
    use crate::{csv_line, json_line};

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
            interface: 2,
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
        for (name, _) in session::FIELDS {
            assert!(object.contains_key(name), "this test has no {name}");
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
