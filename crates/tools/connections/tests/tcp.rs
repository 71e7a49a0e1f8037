//! Findings on machines that are made up: what is found, and what is no finding.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use core::ops::ControlFlow;
use std::sync::Arc;

use connections::{Place, Source, TcpLook, Watch, diagnose, watch};
use findings::{Diagnosis, Severity};
use network::sockets::{NamespaceLook, Owner, SynOptions, TcpInfo, TcpSocket, TcpState};
use units::{ManualClock, NANOS_PER_SECOND, Timestamp};

const WHOLE: SynOptions = SynOptions { timestamps: true, sack: true, window_scale: true };

fn socket(cookie: u64, local: &str, remote: &str, info: impl Into<Option<TcpInfo>>) -> TcpSocket {
    let info = info.into();
    let state = if info.is_some() { TcpState::Established } else { TcpState::Listen };
    TcpSocket {
        inode: u32::try_from(cookie).unwrap(),
        cookie,
        send_queue: 5,
        info,
        ..TcpSocket::new(state, [local, remote].map(|end| end.parse().unwrap()))
    }
}

fn info() -> TcpInfo {
    TcpInfo {
        options: WHOLE,
        send_mss: 1448,
        rtt_us: 100_000,
        congestion_window: 293,
        data_segments_out: Some(1000),
        bytes_received: Some(7),
        ..TcpInfo::default()
    }
}

/// A machine at two moments.
fn between(first: NamespaceLook, last: NamespaceLook) -> Diagnosis {
    let mut watch = Watch::default();
    for (number, look) in (0..).zip([first, last]) {
        let owner = Arc::new(Owner { process: 77, name: "server".to_owned() });
        let look = TcpLook {
            namespaces: vec![(Place::default(), look)],
            owners: (1..=200).map(|inode| (inode, owner.clone())).collect(),
            ..TcpLook::default()
        };
        watch.take(number * NANOS_PER_SECOND, look);
    }
    diagnose(&watch)
}

fn machine(sockets: Vec<TcpSocket>, counters: &[(&str, u64)]) -> NamespaceLook {
    let counters = counters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    let settings = [("tcp_timestamps", "0"), ("somaxconn", "4096")];
    let text = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let settings = settings.map(text).into();
    NamespaceLook { sockets, counters, settings, ..NamespaceLook::default() }
}

/// Ten connections to a listener, of which so many lack options.
fn accepted(lacking: u64) -> Vec<TcpSocket> {
    let listener = socket(100, "0.0.0.0:9000", "0.0.0.0:0", None);
    let connection = |number| {
        let options = if number < lacking { SynOptions::default() } else { WHOLE };
        let info = TcpInfo { options, ..info() };
        let remote = format!("10.0.0.{number}:5000");
        socket(1 + number, "10.0.0.99:9000", &remote, info)
    };
    core::iter::once(listener).chain((0..10).map(connection)).collect()
}

fn kinds(report: &Diagnosis) -> Vec<&str> {
    report.findings.iter().map(|finding| finding.kind).collect()
}

#[test]
fn cookies_explain_options_that_are_gone_and_nothing_else_does() {
    let cookies = [
        ("TcpExtSyncookiesSent", 3),
        ("TcpExtSyncookiesRecv", 3),
        ("TcpExtTCPReqQFullDoCookies", 3),
    ];
    let sick = machine(accepted(3), &cookies);
    let report = between(sick.clone(), sick);
    assert_eq!(kinds(&report), ["tcp.syn_cookies"]);
    let finding = &report.findings[0];
    assert_eq!((finding.severity, finding.reach), (Severity::Problem, 3));
    assert_eq!(
        finding.what,
        "3 of 10 connections to port 9000 of server (process 77) have no selective \
         acknowledgements and window scale"
    );
    // 65 535 bytes in 100 ms.
    assert!(finding.evidence.iter().any(|line| line.contains("no more than 5.2 Mbit/s")));
    assert!(finding.cause.contains("backlog of 5"));
    let commands: Vec<_> = finding.remedies.iter().flat_map(|remedy| &remedy.now).collect();
    assert_eq!(commands, ["sysctl -w net.ipv4.tcp_timestamps=1"]);

    let elsewhere = machine(accepted(3), &[]);
    assert_eq!(kinds(&between(elsewhere.clone(), elsewhere)), ["tcp.options_differ"]);
    // Where no connection has them they were never offered, and where all have them all is well.
    for lacking in [0, 10] {
        let report = between(machine(accepted(lacking), &[]), machine(accepted(lacking), &[]));
        assert_eq!(kinds(&report), [""; 0], "{lacking}");
        assert!(report.is_clean());
    }
    let healthy = machine(accepted(0), &cookies);
    assert!(between(healthy.clone(), healthy).is_clean(), "cookies that cost nothing");
}

#[test]
fn cookies_that_are_forced_are_told_from_those_of_a_full_queue() {
    let mut sick = machine(accepted(10), &[("TcpExtSyncookiesRecv", 10)]);
    sick.settings.insert("tcp_syncookies".to_owned(), "2".to_owned());
    let report = between(sick.clone(), sick);
    assert_eq!(kinds(&report), ["tcp.syn_cookies"]);
    let finding = &report.findings[0];
    assert!(finding.cause.contains("tcp_syncookies is 2"), "{finding:#?}");
    let remedies = format!("{:?}", finding.remedies);
    assert!(!finding.cause.contains("full") && !remedies.contains("listen()"), "{finding:#?}");
    assert!(remedies.contains("sysctl -w net.ipv4.tcp_syncookies=1"), "{finding:#?}");
}

#[test]
fn cookies_of_other_connections_do_not_explain_these() {
    // Clients that offer nothing, of which no host has offered anything.
    let old = [("TcpExtSyncookiesRecv", 50), ("TcpExtTCPReqQFullDoCookies", 50)];
    let report = between(machine(accepted(3), &old), machine(accepted(3), &old));
    assert_eq!(kinds(&report), ["tcp.options_differ"]);
    let finding = &report.findings[0];
    assert!(finding.cause.contains("cannot tell"), "{finding:#?}");
    assert!(finding.evidence.iter().any(|line| line.contains("50 connections of this namespace")));
    assert!(between(machine(accepted(10), &old), machine(accepted(10), &old)).is_clean());
    // The same where they come while the counter moves.
    let before = machine(accepted(0)[..1].to_vec(), &old);
    let more = [("TcpExtSyncookiesRecv", 53), ("TcpExtTCPReqQFullDoCookies", 53)];
    assert_eq!(kinds(&between(before, machine(accepted(3), &more))), ["tcp.syn_cookies"]);
    // And where their hosts have other connections with the options.
    let mut same_host = accepted(3);
    for socket in &mut same_host {
        let port = 5000 + u16::try_from(socket.cookie).unwrap();
        if socket.info.is_some() {
            socket.remote = format!("10.0.0.1:{port}").parse().unwrap();
        }
    }
    let report = between(machine(same_host.clone(), &old), machine(same_host, &old));
    assert_eq!(kinds(&report), ["tcp.syn_cookies"]);
}

#[test]
fn a_remedy_is_larger_than_what_there_is() {
    let mut sockets = accepted(3);
    sockets[0].send_queue = 4096;
    let counters = [("TcpExtSyncookiesRecv", 3), ("TcpExtTCPReqQFullDoCookies", 3)];
    let report = between(machine(sockets.clone(), &counters), machine(sockets, &counters));
    let remedies = format!("{:?}", report.findings[0].remedies);
    assert!(remedies.contains("such as 16384"), "{remedies}");
    assert!(remedies.contains("net.core.somaxconn=16384"), "{remedies}");
}

#[test]
fn an_option_that_is_switched_off_is_not_missed() {
    let mut sick = machine(accepted(3), &[("TcpExtSyncookiesRecv", 3)]);
    for name in ["tcp_sack", "tcp_window_scaling"] {
        sick.settings.insert(name.to_owned(), "0".to_owned());
    }
    assert!(between(sick.clone(), sick).is_clean());
}

#[test]
fn the_other_side_is_told_only_where_it_is_another_machine() {
    let opened = |number: u64, options| {
        let local = format!("10.0.0.1:{}", 5000 + number);
        socket(20 + number, &local, "10.0.0.2:80", TcpInfo { options, ..info() })
    };
    let mut sockets: Vec<_> = (0..6).map(|number| opened(number, WHOLE)).collect();
    sockets.push(opened(6, SynOptions { sack: true, ..SynOptions::default() }));
    let report = between(machine(sockets.clone(), &[]), machine(sockets.clone(), &[]));
    assert_eq!(kinds(&report), ["tcp.options_differ"]);
    assert!(report.findings[0].what.ends_with("to 10.0.0.2:80 has no window scale"));
    // The same with the listener on this machine, as IPv6 sockets that took IPv4.
    sockets.push(socket(100, "[::]:80", "[::]:0", None));
    for number in 0..7 {
        let options = if number == 6 { SynOptions::default() } else { WHOLE };
        let remote = format!("[::ffff:10.0.0.1]:{}", 5000 + number);
        let info = TcpInfo { options, ..info() };
        sockets.push(socket(40 + number, "[::ffff:10.0.0.2]:80", &remote, info));
    }
    let sick = machine(sockets, &[("TcpExtSyncookiesRecv", 1)]);
    assert_eq!(kinds(&between(sick.clone(), sick)), ["tcp.syn_cookies"]);
}

#[test]
fn losses_are_told_from_packets_that_are_late() {
    let at = |again, duplicates| {
        let info = TcpInfo {
            retransmitted: again,
            data_segments_out: Some(1000 + 50 * again),
            duplicates: Some(duplicates),
            ..info()
        };
        machine(vec![socket(1, "10.0.0.1:5000", "10.0.0.2:80", info)], &[])
    };
    let lost = between(at(0, 0), at(60, 0));
    assert_eq!(kinds(&lost), ["tcp.retransmissions"]);
    assert!(lost.findings[0].cause.starts_with("Packets are lost"));
    let late = between(at(0, 0), at(60, 50));
    assert!(late.findings[0].cause.starts_with("Most of what was sent again had arrived"));
    assert!(between(at(60, 0), at(60, 0)).is_clean(), "what was before is over");
    assert!(between(at(0, 0), at(49, 0)).is_clean(), "too few to say");
}

#[test]
fn a_sender_that_waits_is_told_from_one_that_works() {
    let at = |busy_us, receiver_us, buffer_us| {
        let info = TcpInfo {
            busy_us: Some(busy_us),
            receiver_limited_us: Some(receiver_us),
            buffer_limited_us: Some(buffer_us),
            ..info()
        };
        machine(vec![socket(1, "10.0.0.1:5000", "10.0.0.2:80", info)], &[])
    };
    let none = || at(0, 0, 0);
    assert_eq!(kinds(&between(none(), at(900_000, 800_000, 0))), ["tcp.receiver_limited"]);
    assert_eq!(kinds(&between(none(), at(900_000, 0, 800_000))), ["tcp.send_buffer"]);
    assert!(between(none(), at(900_000, 100_000, 100_000)).is_clean());
    assert!(between(none(), at(90_000, 80_000, 0)).is_clean(), "it had hardly anything to send");
    assert!(between(at(9_000_000, 8_000_000, 0), at(9_900_000, 8_000_000, 0)).is_clean());
}

#[test]
fn a_window_that_is_full_shows_a_wait_that_pacing_hides() {
    let at = |unacked, receiver_us| {
        let info = TcpInfo {
            busy_us: Some(u64::from(receiver_us > 0) * 900_000),
            receiver_limited_us: Some(receiver_us),
            unacked,
            send_mss: 1448,
            send_window: Some(65_535),
            unsent_bytes: Some(600_000),
            ..info()
        };
        machine(vec![socket(1, "10.0.0.1:5000", "10.0.0.2:80", info)], &[])
    };
    let full = between(at(0, 0), at(42, 300_000));
    assert_eq!(kinds(&full), ["tcp.receiver_limited"]);
    let window = &full.findings[0].evidence[1];
    assert!(window.starts_with("the receiver allows 63.9 KiB under way"), "{window}");
    assert!(between(at(0, 0), at(10, 300_000)).is_clean(), "there is space in it");
    assert!(between(at(0, 0), at(42, 90_000)).is_clean(), "it hardly waited");
}

#[test]
fn what_is_not_read_is_told_whatever_comes_on_top() {
    let at = |received, waiting| {
        let info = TcpInfo { bytes_received: Some(received), ..info() };
        let mut socket = socket(1, "10.0.0.1:5000", "10.0.0.2:80", info);
        socket.receive_queue = waiting;
        machine(vec![socket], &[])
    };
    assert_eq!(kinds(&between(at(20_000, 20_000), at(90_000, 90_000))), ["tcp.unread"]);
    assert!(between(at(20_000, 20_000), at(90_000, 60_000)).is_clean(), "some of it was read");
    assert!(between(at(9_000, 9_000), at(90_000, 90_000)).is_clean(), "it has only just come");
}

#[test]
fn a_small_window_among_large_ones_is_told_and_half_of_them_are_none() {
    let with = |small: u64| {
        let connection = |number| {
            let congestion_window = if number < small { 10 } else { 293 };
            let info = TcpInfo { congestion_window, retransmitted: 3, ..info() };
            let local = format!("10.0.0.1:{}", 5000 + number);
            socket(1 + number, &local, "10.0.0.2:80", info)
        };
        machine((0..8).map(connection).collect(), &[])
    };
    let report = between(with(2), with(2));
    assert_eq!(kinds(&report), ["tcp.small_window"]);
    assert!(report.findings[0].evidence[1].contains("10.0.0.2:80 with 10"));
    assert!(between(with(0), with(0)).is_clean());
    assert!(between(with(4), with(4)).is_clean(), "who is to say which are usual");
}

#[test]
fn two_speeds_are_told_with_what_separates_them() {
    let at = |seconds: u64, slow_lacks: bool| {
        let connection = |number: u64| {
            let is_slow = number.is_multiple_of(4);
            // Megabytes a second: near 20, or near 100.
            let rate = if is_slow { 20 + number % 3 } else { 100 + number % 7 };
            let sack = !(is_slow && slow_lacks);
            let info = TcpInfo {
                options: SynOptions { sack, timestamps: sack, ..WHOLE },
                bytes_acked: Some(rate * 1_000_000 * seconds),
                ..info()
            };
            let remote = format!("10.0.0.{number}:5000");
            socket(1 + number, "10.0.0.99:9000", &remote, info)
        };
        let listener = socket(100, "0.0.0.0:9000", "0.0.0.0:0", None);
        let sockets = core::iter::once(listener).chain((0..24).map(connection)).collect();
        machine(sockets, &[("TcpExtSyncookiesRecv", 6)])
    };
    let report = between(at(0, true), at(1, true));
    assert_eq!(kinds(&report), ["tcp.syn_cookies", "tcp.two_speeds"]);
    let finding = &report.findings[1];
    assert_eq!(finding.reach, 6);
    assert!(finding.what.ends_with("what separates them is selective acknowledgements"));
    assert!(finding.evidence[1].contains("6 connections near 16"), "{finding:?}");
    assert!(finding.evidence[3].contains("100 %"), "{finding:?}");
    // The same speeds without anything to explain them.
    assert_eq!(kinds(&between(at(0, false), at(1, false))), [""; 0]);
    // And nothing carried.
    assert_eq!(kinds(&between(at(1, true), at(1, true))), ["tcp.syn_cookies"]);
}

#[test]
fn queues_are_full_above_their_backlog() {
    let at = |waiting, overflows| {
        let mut listener = socket(100, "0.0.0.0:9000", "0.0.0.0:0", None);
        listener.receive_queue = waiting;
        machine(vec![listener], &[("TcpExtListenOverflows", overflows)])
    };
    assert!(between(at(5, 0), at(5, 0)).is_clean());
    let full = between(at(6, 0), at(0, 4));
    assert_eq!(kinds(&full), ["tcp.accept_queue"]);
    assert_eq!(full.findings[0].severity, Severity::Problem);
    let between_looks = between(at(0, 0), at(0, 4));
    assert_eq!(between_looks.findings[0].severity, Severity::Warning);
    assert!(between(at(0, 4), at(0, 4)).is_clean(), "what was before is over");
}

/// Shows the same machine again and again, and counts.
struct Same(usize);

impl Source for Same {
    fn look(&mut self) -> Result<TcpLook, network::Error> {
        self.0 += 1;
        let look = machine(accepted(0), &[]);
        Ok(TcpLook { namespaces: vec![(Place::default(), look)], ..TcpLook::default() })
    }
}

#[test]
fn a_watch_looks_when_it_is_time() {
    let clock = ManualClock::new(Timestamp(0));
    let mut source = Same(0);
    let times = (NANOS_PER_SECOND, 4000 * NANOS_PER_SECOND);
    let seen = watch(&mut source, &clock, times, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((source.0, seen.looks), (4001, 4001));
    assert_eq!(seen.tracks.len(), 11);
    let mut left = 3;
    let stopped = watch(&mut source, &clock, times, &mut |_| {
        left -= 1;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(stopped.unwrap().looks, 1, "it is asked ten times a second");
    // One that is shorter than the time between two looks has both ends of it to compare.
    let times = (5 * NANOS_PER_SECOND, NANOS_PER_SECOND);
    let short = watch(&mut source, &clock, times, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((short.looks, short.ns), (2, NANOS_PER_SECOND));
}
