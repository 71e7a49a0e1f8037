//! Sessions to ask about.

use format::session_row::{Direction, Names, SessionRow, State};
use units::{InterfaceId, Timestamp};
use wire::{Address, App, AppBy, FiveTuple, Protocol, Recognised, TcpOptions, Tunnel, TunnelKind};

/// 2026-11-20T12:00:00Z, what relative times count from.
pub(crate) const NOW: Timestamp = Timestamp(1_795_176_000_000_000_000);

pub(crate) const ID: &str = "812-4";

pub(crate) fn ip(text: &str) -> Address {
    text.parse::<core::net::IpAddr>().unwrap().into()
}

pub(crate) fn tuple(
    orig: &str,
    orig_port: u16,
    resp: &str,
    resp_port: u16,
    proto: Protocol,
) -> FiveTuple {
    FiveTuple { orig: ip(orig), resp: ip(resp), orig_port, resp_port, proto }
}

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A session of which nothing is known but its tuple and a packet each way.
pub(crate) fn plain(tuple: FiveTuple) -> SessionRow {
    let one = Direction { packets: 1, frame_bytes: 60, ip_bytes: 40, ..Direction::default() };
    SessionRow { orig: one, resp: one, state: State::Oth, ..SessionRow::new(tuple, NOW) }
}

/// A TLS session from 10.0.0.5 to 192.0.2.80 in VLAN 200 within VLAN 100, through VXLAN 5000.
pub(crate) fn tls() -> SessionRow {
    let mut row = plain(tuple("10.0.0.5", 50_000, "192.0.2.80", 443, Protocol::TCP));
    row.vlan = [Some(100), Some(200)];
    row.mpls = Some(1024);
    row.tunnel = Some(Tunnel {
        kind: TunnelKind::Vxlan,
        id: 5000,
        src: ip("172.16.0.1"),
        dst: ip("172.16.0.2"),
    });
    row.session_start = at("2026-11-20T10:58:00Z");
    row.start = at("2026-11-20T11:00:00Z");
    row.end = at("2026-11-20T11:10:00.5Z");
    row.orig = Direction {
        packets: 100,
        frame_bytes: 10_000,
        ip_bytes: 8_600,
        payload_bytes: 4_600,
        tcp_flags: 0x1b,
        retransmitted_packets: 3,
        retransmitted_bytes: 300,
        out_of_order_packets: 0,
        resets: 0,
        zero_windows: 0,
        missed_bytes: 0,
        syn_options: Some(TcpOptions {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: true,
        }),
    };
    row.resp = Direction {
        packets: 900,
        frame_bytes: 1_300_000,
        ip_bytes: 1_287_400,
        payload_bytes: 1_251_400,
        tcp_flags: 0x1a,
        out_of_order_packets: 0,
        resets: 0,
        zero_windows: 2,
        syn_options: Some(TcpOptions { mss: Some(1400), ..TcpOptions::default() }),
        ..Direction::default()
    };
    row.state = State::Sf;
    row.history = "ShADadFf".parse().unwrap();
    row.handshake_ns = Some(20_000_000);
    row.app = Some(Recognised { app: App::Tls, by: AppBy::Content });
    row.names = Names {
        sni: Some("www.Example.com".to_owned()),
        alpn: vec!["h2".to_owned(), "http/1.1".to_owned()],
        tls_version: Some(0x0304),
        ..Names::default()
    }
    .into();
    row
}

/// An HTTP session over IPv6, its rows going on.
pub(crate) fn http() -> SessionRow {
    let mut row = plain(tuple("2001:db8::5", 40_000, "2001:db8:1::80", 80, Protocol::TCP));
    row.continues = true;
    row.interface = InterfaceId(2);
    row.app = Some(Recognised { app: App::Http, by: AppBy::Content });
    row.names = Names {
        http_host: vec!["intranet.example".to_owned()],
        http_method: vec!["GET".to_owned(), "POST".to_owned()],
        http_path: vec!["/Login?next=/".to_owned(), "/a b".to_owned()],
        http_status: vec![200, 503],
        http_user_agent: vec!["Mozilla/5.0 (X11; Linux)".to_owned()],
        ..Names::default()
    }
    .into();
    row
}

/// A DNS question without an answer.
pub(crate) fn dns() -> SessionRow {
    let mut row = plain(tuple("10.0.0.5", 40_001, "10.0.0.53", 53, Protocol::UDP));
    row.resp = Direction::default();
    row.state = State::S0;
    row.app = Some(Recognised { app: App::Dns, by: AppBy::Content });
    row.names = Names {
        dns_names: vec!["Mail.example.org".to_owned(), "a.example.net".to_owned()],
        dns_types: vec![1, 28],
        dns_rcodes: vec![3],
        dns_answers: vec!["192.0.2.1".to_owned()],
        ..Names::default()
    }
    .into();
    row
}

pub(crate) fn ping() -> SessionRow {
    let mut row = plain(tuple("10.0.0.5", 0, "8.8.8.8", 0, Protocol::ICMP));
    row.icmp = Some((8, 0));
    row
}

pub(crate) fn arp() -> SessionRow {
    let mut row = plain(FiveTuple {
        orig: Address::Mac([0, 0x1b, 0x2c, 0x3d, 0x4e, 0x5f]),
        resp: Address::Mac([0xff; 6]),
        orig_port: 0,
        resp_port: 0,
        proto: Protocol::ARP,
    });
    let details = ["arp.sender=10.0.0.1", "arp.target=10.0.0.5", "arp.target=10.0.0.6"];
    row.names = Names { app_detail: details.map(str::to_owned).into(), ..Names::NONE }.into();
    row
}
