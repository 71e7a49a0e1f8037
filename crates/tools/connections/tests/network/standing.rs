//! Connections that stand still, are not read or not closed.

use super::*;

/// A connection that has sent so many bytes in vain, so often.
fn stuck(local: &str, remote: &str, waiting: u32, retries: u8) -> TcpSocket {
    let sent = TcpInfo {
        unacked: 1,
        bytes_acked: Some(900),
        data_segments_out: Some(12),
        last_acknowledged_ms: 3000,
        ..info()
    };
    TcpSocket { send_queue: waiting, retries, ..open(1, [local, remote], sent) }
}

fn moving(cookie: u32, ends: [&str; 2], number: u32) -> TcpSocket {
    let sent = TcpInfo { segments_in: Some(number), ..info() };
    open(cookie, ends, sent)
}

#[test]
fn a_connection_without_any_answer_stands_still() {
    let at = |waiting, retries| {
        let sockets = vec![stuck("10.0.0.1:4000", "10.0.0.2:9001", waiting, retries)];
        NamespaceLook { sockets, ..NamespaceLook::default() }
    };
    let report = over(|_| at(100, 5));
    assert_eq!(kinds(&report), ["tcp.stalled"]);
    let finding = &report.findings[0];
    assert_eq!(finding.severity, Severity::Problem);
    assert!(finding.what.contains("1 connection to 10.0.0.2 stands still"), "{finding:#?}");
    assert!(finding.cause.contains("cannot tell a host that is down"), "{finding:#?}");
    assert!(finding.cause.contains("the size of packets is not the cause"), "{finding:#?}");
    assert!(over(|_| at(100, 2)).is_clean(), "it may have an answer in a moment");
}

#[test]
fn small_segments_that_stand_still_refute_a_black_hole() {
    let at = |with_small: bool| {
        let full = stuck("10.0.0.1:4000", "10.0.0.2:9001", 14_480, 5);
        let small = stuck("10.0.0.1:4001", "10.0.0.2:9001", 100, 5);
        let small = with_small.then_some(TcpSocket { cookie: 7, ..small });
        NamespaceLook {
            sockets: core::iter::once(full).chain(small).collect(),
            ..NamespaceLook::default()
        }
    };
    assert_eq!(kinds(&over(|_| at(false))), ["tcp.mtu_black_hole"]);
    let report = over(|_| at(true));
    assert_eq!(kinds(&report), ["tcp.stalled"]);
    assert_eq!(report.findings[0].reach, 2);
}

#[test]
fn a_client_that_is_gone_is_a_note_where_others_move() {
    let at = |number: u32, with_other: bool| {
        let listener = socket(TcpState::Listen, 2, ["0.0.0.0:443", "0.0.0.0:0"], None);
        let gone = stuck("10.0.0.2:443", "10.0.0.7:4000", 2000, 6);
        let other = moving(3, ["10.0.0.2:443", "10.0.0.8:4000"], number);
        let sockets = [listener, gone].into_iter().chain(with_other.then_some(other));
        NamespaceLook { sockets: sockets.collect(), ..NamespaceLook::default() }
    };
    let alone = over(|number| at(number, false));
    let kinds_alone = kinds(&alone);
    assert!(!alone.is_clean(), "{kinds_alone:?}");
    let beside = over(|number| at(number, true));
    assert!(beside.is_clean() && !beside.findings.is_empty(), "{beside:#?}");
}

#[test]
fn few_losses_count_where_they_are_many_of_what_was_sent() {
    let at = |number: u32, again: u32, duplicates: u32| {
        let sent = TcpInfo {
            retransmitted: number * again,
            duplicates: Some(number * duplicates),
            data_segments_out: Some(number * 10),
            ..info()
        };
        let sockets = vec![open(1, ["10.0.0.1:4000", "10.0.0.2:80"], sent)];
        NamespaceLook { sockets, ..NamespaceLook::default() }
    };
    assert_eq!(kinds(&over(|number| at(number, 1, 0))), ["tcp.retransmissions"]);
    assert!(over(|number| at(number, 1, 1)).is_clean(), "the other side had had them");
    assert!(over(|number| at(number / 6, 2, 0)).is_clean(), "two say nothing");
}

#[test]
fn a_proxy_that_is_held_back_is_not_the_cause() {
    let at = |number: u32, is_shut: bool| {
        let received = TcpInfo { bytes_received: Some(900_000), ..info() };
        let unread = open(1, ["10.0.0.1:4000", "10.0.0.2:9001"], received);
        let unread = TcpSocket { receive_queue: 90_000, ..unread };
        let sent = TcpInfo {
            unsent_bytes: Some(50_000),
            busy_us: Some(u64::from(number) * 1_000_000),
            receiver_limited_us: Some(u64::from(number) * 1_000_000 * u64::from(is_shut)),
            ..info()
        };
        let ours = TcpSocket { cookie: 9, ..open(1, ["10.0.0.1:4001", "10.0.0.3:80"], sent) };
        NamespaceLook { sockets: vec![unread, ours], ..NamespaceLook::default() }
    };
    let of = |report: &Diagnosis| {
        let found = report.findings.iter().find(|finding| finding.kind == "tcp.unread");
        found.map(|finding| (finding.severity, finding.cause.clone())).unwrap()
    };
    let (severity, cause) = of(&over(|number| at(number, true)));
    assert_eq!(severity, Severity::Warning);
    assert!(cause.contains("It waits itself") && cause.contains("10.0.0.3:80"), "{cause}");
    assert_eq!(of(&over(|number| at(number, false))).0, Severity::Problem);
    // A program that talks to itself: what is shut is the same connection.
    let itself = |number: u32| {
        let mut look = at(number, true);
        let unread = [look.sockets[0].local, look.sockets[0].remote];
        (look.sockets[1].remote, look.sockets[1].local) = (unread[0], unread[1]);
        look
    };
    assert_eq!(of(&over(itself)).0, Severity::Problem);
}

#[test]
fn a_program_that_does_not_close_has_more_and_more() {
    let at = |count: u32, from: u32| {
        let left = (from..from + count).map(|number| {
            let remote = format!("10.0.0.7:{}", 4000 + number);
            let left = socket(TcpState::CloseWait, 2, ["10.0.0.2:80", &*remote], info());
            TcpSocket { cookie: 1000 + u64::from(number), ..left }
        });
        NamespaceLook { sockets: left.collect(), ..NamespaceLook::default() }
    };
    let report = over(|number| at(30 + 5 * number, 0));
    assert_eq!(kinds(&report), ["tcp.not_closed"]);
    let what = &report.findings[0].what;
    assert!(what.starts_with("server (process 20) does not close connections"), "{what}");
    assert!(over(|_| at(80, 0)).is_clean(), "they do not grow");
    assert!(over(|number| at(30 + 5 * number, 30 * number)).is_clean(), "it closes the old ones");
}
