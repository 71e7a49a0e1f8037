//! Arbitrary rows.

use format::head::SEQUENCE_MAX;
use format::session_row::{Direction, History, Names, PieceId, PieceSpan, SessionRow, State};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use units::{InterfaceId, Sequence, Timestamp};
use wire::{
    Address, App, AppBy, FiveTuple, Protocol, Recognised, Ssh, TcpOptions, Tls, Tunnel, TunnelKind,
};

use crate::examples::EPOCH;

pub(crate) fn slice() -> impl Strategy<Value = SessionRow> {
    (who(), (direction(), direction()), course(), (app(), names()), pieces()).prop_map(
        |(who, (orig, resp), course, (app, names), pieces)| {
            let ((tuple, vlan, mpls), (tunnel, icmp, interface)) = who;
            let ((session_start, start, end, state), (history, handshake_ns, counts, continues)) =
                course;
            SessionRow {
                tuple,
                vlan,
                mpls,
                tunnel,
                icmp,
                session_start,
                start,
                end,
                orig,
                resp,
                state,
                history,
                handshake_ns,
                truncated_packets: counts.0,
                fragments: counts.1,
                continues,
                app,
                names: names.into(),
                interface: InterfaceId(interface),
                source: None,
                epoch: EPOCH,
                pieces,
            }
        },
    )
}

type Who = ((FiveTuple, [Option<u16>; 2], Option<u32>), (Option<Tunnel>, Option<(u8, u8)>, u32));

fn who() -> impl Strategy<Value = Who> {
    let tuple = (address(), address(), any::<(u16, u16, u16)>()).prop_map(
        |(orig, resp, (orig_port, resp_port, proto))| FiveTuple {
            orig,
            resp,
            orig_port,
            resp_port,
            proto: Protocol(proto),
        },
    );
    let kind = prop::sample::select(&TunnelKind::ALL[..]);
    let tunnel = (kind, any::<u32>(), address(), address())
        .prop_map(|(kind, id, src, dst)| Tunnel { kind, id, src, dst });
    (
        (tuple, any::<[Option<u16>; 2]>(), any::<Option<u32>>()),
        (of(tunnel), any::<Option<(u8, u8)>>(), any::<u32>()),
    )
}

pub(crate) fn address() -> impl Strategy<Value = Address> {
    prop_oneof![
        Just(Address::None),
        any::<[u8; 6]>().prop_map(Address::Mac),
        any::<[u8; 4]>().prop_map(|bytes| Address::V4(bytes.into())),
        any::<[u8; 16]>().prop_map(|bytes| Address::V6(bytes.into())),
        any::<[u8; 4]>()
            .prop_map(|bytes| { Address::V6(core::net::Ipv4Addr::from(bytes).to_ipv6_mapped()) }),
    ]
}

/// Small counts, counts around 2^32 and anything.
fn count() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0_u64..1000, 2 => (1_u64 << 32) - 2..(1 << 32) + 2, 1 => any::<u64>()]
}

fn time() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        4 => 1_795_171_222_000_000_000..1_795_171_282_000_000_000_i64,
        1 => any::<i64>(),
        1 => Just(i64::MIN),
        1 => Just(i64::MAX),
    ]
    .prop_map(Timestamp)
}

fn direction() -> impl Strategy<Value = Direction> {
    let options = any::<(Option<u16>, Option<u8>, bool, bool)>().prop_map(
        |(mss, window_scale, sack_permitted, timestamps)| TcpOptions {
            mss,
            window_scale,
            sack_permitted,
            timestamps,
        },
    );
    (
        [count(), count(), count(), count()],
        any::<u8>(),
        [count(), count(), count(), count(), count(), count()],
        of(options),
    )
        .prop_map(|(bytes, tcp_flags, tcp, syn_options)| Direction {
            packets: bytes[0],
            frame_bytes: bytes[1],
            ip_bytes: bytes[2],
            payload_bytes: bytes[3],
            tcp_flags,
            retransmitted_packets: tcp[0],
            retransmitted_bytes: tcp[1],
            zero_windows: tcp[2],
            missed_bytes: tcp[3],
            out_of_order_packets: tcp[4],
            resets: tcp[5],
            syn_options,
        })
}

type Course = ((Timestamp, Timestamp, Timestamp, State), (History, Option<u64>, (u64, u64), bool));

fn history() -> impl Strategy<Value = History> {
    "[A-Za-z^]{0,31}".prop_map(|letters| letters.parse().expect("31 letters at most"))
}

fn course() -> impl Strategy<Value = Course> {
    const STATES: [State; 13] = [
        State::S0,
        State::S1,
        State::S2,
        State::S3,
        State::Sf,
        State::Rej,
        State::Rsto,
        State::Rstr,
        State::Rstos0,
        State::Rstrh,
        State::Sh,
        State::Shr,
        State::Oth,
    ];
    (
        (time(), time(), time(), prop::sample::select(&STATES[..])),
        (history(), of(count()), (count(), count()), any::<bool>()),
    )
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec(prop_oneof![Just(String::new()), any::<String>(), "[a-z]{1,8}\\.example"], 0..4)
}

/// A group that says nothing is the same as none.
fn tls() -> impl Strategy<Value = Option<Box<Tls>>> {
    let text = any::<Option<String>>;
    let time = any::<Option<i64>>;
    ([text(), text(), text(), text(), text(), text()], any::<Option<u16>>(), [time(), time()])
        .prop_map(|([alpn_chosen, ja3, ja3s, ja4, cert_subject, cert_issuer], cipher, times)| Tls {
            alpn_chosen,
            cipher,
            ja3,
            ja3s,
            ja4,
            cert_subject,
            cert_issuer,
            cert_not_before_ns: times[0],
            cert_not_after_ns: times[1],
        })
        .prop_map(|tls| (tls != Tls::default()).then(|| Box::new(tls)))
}

fn ssh() -> impl Strategy<Value = Option<Box<Ssh>>> {
    let text = any::<Option<String>>;
    [text(), text(), text(), text()]
        .prop_map(|[client, server, hassh, hassh_server]| Ssh {
            client,
            server,
            hassh,
            hassh_server,
        })
        .prop_map(|ssh| (ssh != Ssh::default()).then(|| Box::new(ssh)))
}

fn app() -> impl Strategy<Value = Option<Recognised>> {
    let by = prop::sample::select(&AppBy::ALL[..]);
    of((prop::sample::select(App::ALL), by).prop_map(|(app, by)| Recognised { app, by }))
}

fn names() -> impl Strategy<Value = Names> {
    let numbers = || vec(any::<u16>(), 0..4);
    (
        (any::<Option<String>>(), texts(), any::<Option<u16>>()),
        (texts(), texts(), texts(), numbers(), texts()),
        (texts(), numbers(), numbers(), texts(), of(count())),
        (tls(), ssh(), texts(), texts()),
    )
        .prop_map(|(tls, http, dns, more)| Names {
            app: None,
            sni: tls.0,
            alpn: tls.1,
            tls_version: tls.2,
            http_host: http.0,
            http_method: http.1,
            http_path: http.2,
            http_status: http.3,
            http_user_agent: http.4,
            dns_names: dns.0,
            dns_types: dns.1,
            dns_rcodes: dns.2,
            dns_answers: dns.3,
            dns_rtt_ns: dns.4,
            tls: more.0,
            ssh: more.1,
            http_content_type: more.2,
            app_detail: more.3,
        })
}

fn pieces() -> impl Strategy<Value = Vec<PieceSpan>> {
    let plain = (0_u64..2000).prop_map(|sequence| PieceId {
        sequence: Sequence(sequence),
        sub: 0,
        column: 0,
    });
    let other = (0..=SEQUENCE_MAX.get(), any::<u16>(), 0..24_u8)
        .prop_map(|(sequence, sub, column)| PieceId { sequence: Sequence(sequence), sub, column });
    let pieces = prop_oneof![vec(plain, 0..20), vec(other, 0..20)];
    // Blocks lie at multiples of 4.
    let words = (0..u32::MAX / 8, 0..u32::MAX / 8);
    (pieces, vec(words, 20)).prop_map(|(mut pieces, words)| {
        pieces.sort_unstable();
        pieces.dedup();
        let span = |(piece, (begin, len)): (PieceId, (u32, u32))| PieceSpan {
            piece,
            begin: 4 * begin,
            end: 4 * (begin + len),
        };
        pieces.into_iter().zip(words).map(span).collect()
    })
}
