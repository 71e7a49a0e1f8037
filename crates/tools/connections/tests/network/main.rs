//! Findings of what packets go through, on machines that are made up: what is found, and what
//! refutes it.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod limited;
mod queues;
mod refused;
mod standing;

use std::net::IpAddr;
use std::sync::Arc;

use connections::{AttemptBy, Place, TcpLook, Watch, diagnose};
use findings::{Diagnosis, Severity};
use network::LinkState;
use network::paths::{
    Conntrack, Duplex, LinkAddress, LinkLook, LinkMode, LinkTotals, Neighbour, NeighbourState,
    PathLook, Queue, QueuePlace,
};
use network::sockets::{
    DatagramSocket, NamespaceLook, Owner, SocketMemory, SynOptions, TcpInfo, TcpSocket, TcpState,
};
use observe::tracepoints::{AttemptEnd, FailedAttempt, NoRoute};

const SECOND: i64 = 1_000_000_000;

fn owner(process: u32, name: &str) -> Arc<Owner> {
    Arc::new(Owner { process, name: name.to_owned() })
}

fn place(inode: u64) -> Place {
    match inode {
        0 => Place::default(),
        _ => Place {
            inode,
            name: format!("network namespace n{inode}"),
            is_own: false,
            enter: format!("ip netns exec n{inode} "),
        },
    }
}

/// Looks a second apart, each of which has these namespaces.
fn seen(looks: Vec<Vec<NamespaceLook>>) -> Diagnosis {
    let mut watch = Watch::default();
    for (number, namespaces) in (0..).zip(looks) {
        let namespaces = (0..).map(place).zip(namespaces).collect();
        let owners = [(1, "client"), (2, "server"), (3, "other")];
        let owners = owners.map(|(inode, name)| (inode, owner(inode * 10, name))).into();
        watch.take(number * SECOND, TcpLook { namespaces, owners, ..TcpLook::default() });
    }
    diagnose(&watch)
}

/// The same machine at eleven looks, made by their numbers.
fn over(look: impl Fn(u32) -> NamespaceLook) -> Diagnosis {
    seen((0..=10).map(|number| vec![look(number)]).collect())
}

fn kinds(report: &Diagnosis) -> Vec<&str> {
    report.findings.iter().map(|finding| finding.kind).collect()
}

fn socket(
    state: TcpState,
    inode: u32,
    ends: [&str; 2],
    info: impl Into<Option<TcpInfo>>,
) -> TcpSocket {
    TcpSocket {
        inode,
        cookie: u64::from(inode),
        send_queue: 0,
        info: info.into(),
        ..TcpSocket::new(state, ends.map(|end| end.parse().unwrap()))
    }
}

fn open(inode: u32, ends: [&str; 2], info: impl Into<Option<TcpInfo>>) -> TcpSocket {
    socket(TcpState::Established, inode, ends, info)
}

fn info() -> TcpInfo {
    TcpInfo {
        options: SynOptions { timestamps: true, sack: true, window_scale: true },
        send_mss: 1448,
        path_mtu: 1500,
        rtt_us: 500,
        min_rtt_us: Some(300),
        congestion_window: 20,
        data_segments_out: Some(0),
        segments_in: Some(0),
        bytes_acked: Some(0),
        bytes_received: Some(0),
        busy_us: Some(0),
        receiver_limited_us: Some(0),
        ..TcpInfo::default()
    }
}

fn link(address: &str, totals: LinkTotals) -> LinkLook {
    LinkLook {
        ifindex: 2,
        name: "lan0".to_owned(),
        kind: None,
        state: LinkState::Up,
        is_loopback: false,
        mtu: 1500,
        carrier_changes: 1,
        addresses: vec![address.parse().unwrap()],
        mode: None,
        totals,
    }
}

fn queue(kind: &str, packets: u32, drops: u32, backlog_bytes: u32) -> Queue {
    Queue {
        link: 2,
        handle: 1 << 16,
        parent: u32::MAX,
        place: QueuePlace::Root,
        kind: kind.to_owned(),
        packets,
        bytes: u64::from(packets) * 1500,
        drops,
        overlimits: 0,
        backlog_bytes,
        backlog_packets: backlog_bytes / 1500,
    }
}

fn with_paths(paths: PathLook) -> NamespaceLook {
    NamespaceLook { paths, ..NamespaceLook::default() }
}

fn with_counters(look: NamespaceLook, counters: &[(&str, u64)]) -> NamespaceLook {
    let counters = counters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    NamespaceLook { counters, ..look }
}

#[test]
fn a_queue_that_drops_explains_what_is_sent_again() {
    let at = |number: u32, drops: u32, queue_of: &str| {
        let sent = info();
        let sent =
            TcpInfo { retransmitted: number * 20, data_segments_out: Some(number * 200), ..sent };
        let link = link(queue_of, LinkTotals::default());
        let queues = vec![queue("tbf", number * 200, number * drops, 3000)];
        NamespaceLook {
            sockets: vec![open(1, ["10.0.0.1:4000", "10.0.0.2:80"], sent)],
            paths: PathLook { links: vec![link], queues, ..PathLook::default() },
            ..NamespaceLook::default()
        }
    };
    let report = over(|number| at(number, 20, "10.0.0.1"));
    assert_eq!(kinds(&report), ["net.queue_drops", "tcp.retransmissions"]);
    let [cause, consequence] = &report.findings[..] else { panic!("{report:#?}") };
    assert_eq!((cause.severity, consequence.severity), (Severity::Warning, Severity::Note));
    assert!(cause.what.starts_with("the queue of lan0 (tbf) drops packets"), "{cause:#?}");
    assert!(consequence.cause.contains("See net.queue_drops: the queue of lan0"));
    assert!(consequence.evidence.iter().any(|line| line.contains("(client, process 10)")));
    // The queue of another interface explains nothing.
    let report = over(|number| at(number, 20, "192.168.0.1"));
    assert_eq!(kinds(&report), ["tcp.retransmissions", "net.queue_drops"]);
    assert!(report.findings.iter().all(|finding| finding.severity == Severity::Warning));
    // And few drops are none.
    assert_eq!(kinds(&over(|number| at(number, 0, "10.0.0.1"))), ["tcp.retransmissions"]);
}

#[test]
fn drops_of_a_queue_count_only_where_they_are_many() {
    let at = |number: u32, packets: u32, drops: u32| {
        with_paths(PathLook {
            links: vec![link("10.0.0.1", LinkTotals::default())],
            queues: vec![queue("fq_codel", number * packets, 700 + number * drops, 0)],
            ..PathLook::default()
        })
    };
    assert_eq!(kinds(&over(|number| at(number, 1000, 10))), ["net.queue_drops"]);
    assert!(over(|number| at(number, 1000, 0)).is_clean(), "what was before is over");
    assert!(over(|number| at(number, 100_000, 10)).is_clean(), "it manages its queue");
}

#[test]
fn errors_of_an_interface_are_told_from_frames_that_nobody_takes() {
    let at = |number: u32, errors: u64, drops: u64| {
        let number = u64::from(number);
        let totals = LinkTotals {
            received: 10_000 * number,
            receive_errors: errors * number,
            checksum_errors: errors * number,
            receive_drops: drops * number,
            ..LinkTotals::default()
        };
        with_paths(PathLook { links: vec![link("10.0.0.1", totals)], ..PathLook::default() })
    };
    let report = over(|number| at(number, 5, 0));
    assert_eq!(kinds(&report), ["net.interface_errors"]);
    assert!(report.findings[0].cause.contains("arrive damaged"), "{report:#?}");
    let foreign = over(|number| at(number, 0, 50));
    assert_eq!(kinds(&foreign), ["net.interface_errors"]);
    assert!(foreign.is_clean(), "nobody missed them: {foreign:#?}");
    assert!(!format!("{:?}", foreign.findings).contains("cable"), "{foreign:#?}");
    let missed = |number| [("TcpExtTCPOFOQueue", 20 * u64::from(number))];
    let lost = over(|number| with_counters(at(number, 0, 50), &missed(number)));
    assert!(!lost.is_clean(), "segments came behind missing ones: {lost:#?}");
    assert!(over(|number| at(number, 0, 2)).findings.is_empty(), "too few to say");
    assert!(over(|_| at(7, 5, 50)).is_clean(), "what was before is over");
}

#[test]
fn half_duplex_is_found_where_the_link_is_up() {
    let at = |duplex, state| {
        let mode = Some(LinkMode { mbit_per_s: Some(100), duplex: Some(duplex) });
        let link = LinkLook { mode, state, ..link("10.0.0.1", LinkTotals::default()) };
        with_paths(PathLook { links: vec![link], ..PathLook::default() })
    };
    let report = over(|_| at(Duplex::Half, LinkState::Up));
    assert_eq!(kinds(&report), ["net.duplex"]);
    assert_eq!(report.findings[0].what, "lan0 runs at half duplex");
    assert!(over(|_| at(Duplex::Full, LinkState::Up)).is_clean());
    assert!(over(|_| at(Duplex::Half, LinkState::NoCarrier)).is_clean());
}

#[test]
fn a_full_connection_table_is_a_problem_only_where_it_drops() {
    let at = |number: u32, count: u64, drops: u64| {
        let counts = [("drop".to_owned(), 5 + u64::from(number) * drops)].into();
        let conntrack = Some(Conntrack { count, max: 1000, counts });
        with_paths(PathLook { conntrack, ..PathLook::default() })
    };
    let full = over(|number| at(number, 1000, 3));
    assert_eq!(kinds(&full), ["net.conntrack"]);
    assert_eq!(full.findings[0].severity, Severity::Problem);
    let nearly = over(|number| at(number, 950, 0));
    assert_eq!(nearly.findings[0].severity, Severity::Warning);
    assert!(over(|number| at(number, 700, 0)).is_clean());
    assert!(over(|number| at(number, 100, 3)).is_clean(), "drops for another reason");
}

#[test]
fn an_address_at_two_machines_comes_back_and_a_takeover_does_not() {
    let at = |last: u8, state| {
        let seen = |last| Neighbour {
            link: 2,
            address: IpAddr::from([10, 0, 0, 7]),
            link_address: Some(LinkAddress([2, 0, 0, 0, 0, last])),
            state,
        };
        NamespaceLook {
            neighbour_changes: vec![seen(last)],
            ..with_paths(PathLook {
                links: vec![link("10.0.0.1", LinkTotals::default())],
                neighbours: vec![seen(last)],
                ..PathLook::default()
            })
        }
    };
    let known = NeighbourState::Known;
    let report = over(|number| at(if number % 2 == 0 { 1 } else { 2 }, known));
    assert_eq!(kinds(&report), ["net.neighbour"]);
    assert!(report.findings[0].what.starts_with("10.0.0.7 is at two machines at lan0"));
    assert!(report.findings[0].evidence[0].contains("02:00:00:00:00:01, 02:00:00:00:00:02"));
    assert!(over(|number| at(if number < 5 { 1 } else { 2 }, known)).is_clean());
    // One that is asked again and again, and one that was asked once.
    let asked = |number: u32, from: u32| {
        let state = if number >= from { NeighbourState::Asked } else { known };
        let mut look = at(1, state);
        look.neighbour_changes.clear();
        look.paths.neighbours[0].link_address = None;
        look
    };
    let report = over(|number| asked(number, 4));
    assert_eq!(kinds(&report), ["net.neighbour"]);
    assert!(report.findings[0].what.starts_with("10.0.0.7 does not answer"), "{report:#?}");
    assert!(over(|number| asked(number, 10)).is_clean(), "it may answer in a moment");
}

#[test]
fn a_program_that_does_not_read_datagrams_is_named() {
    let at = |number: u32, drops: u32, errors: u64, queue: u32| {
        let udp = DatagramSocket {
            local: "0.0.0.0:514".parse().unwrap(),
            remote: "0.0.0.0:0".parse().unwrap(),
            cookie: 9,
            inode: 2,
            receive_queue: queue,
            receive_buffer: 212_992,
            drops: Some(number * drops),
            has_received: true,
        };
        let look = NamespaceLook { udp: vec![udp], ..NamespaceLook::default() };
        with_counters(look, &[("UdpRcvbufErrors", u64::from(number) * errors)])
    };
    let report = over(|number| at(number, 30, 30, 212_000));
    assert_eq!(kinds(&report), ["net.udp_overflow"]);
    let finding = &report.findings[0];
    assert_eq!(finding.what, "server (process 20) loses datagrams to its UDP port 514");
    assert!(finding.cause.starts_with("The program takes datagrams out more slowly"));
    let bursts = over(|number| at(number, 30, 30, 0));
    assert!(bursts.findings[0].cause.starts_with("Datagrams come in bursts"));
    assert!(over(|number| at(number, 30, 0, 0)).is_clean(), "its own filter dropped them");
    assert!(over(|number| at(number, 0, 0, 212_000)).is_clean(), "nothing was dropped");
}

#[test]
fn a_question_that_waits_is_told_from_a_socket_that_is_kept() {
    let at = |number: u32, lives: &dyn Fn(u32) -> bool| {
        let socket = |cookie| DatagramSocket {
            local: "10.0.0.1:4000".parse().unwrap(),
            remote: "10.0.0.53:53".parse().unwrap(),
            cookie,
            inode: 1,
            receive_queue: 0,
            receive_buffer: 212_992,
            drops: Some(0),
            has_received: false,
        };
        let tenths = (0..10).map(|tenth| number * 10 + tenth).filter(|tenth| lives(*tenth));
        let questions =
            tenths.map(|tenth| (i64::from(tenth) * SECOND / 10, socket(u64::from(tenth / 25))));
        NamespaceLook { questions: questions.collect(), ..NamespaceLook::default() }
    };
    // A new one every 2.5 s, of which each waits for two.
    let report = over(|number| at(number, &|tenth| tenth % 25 < 20));
    assert_eq!(kinds(&report), ["net.dns_slow"]);
    let finding = &report.findings[0];
    assert!(finding.what.contains("client (process 10) to the DNS server 10.0.0.53:53"));
    assert_eq!(finding.severity, Severity::Problem, "resolvers ask again before");
    assert!(over(|number| at(number, &|tenth| tenth % 25 < 2)).is_clean(), "answered at once");
    assert!(over(|_| at(0, &|_| true)).is_clean(), "it was there before");
    // One that is kept: something has come for it, soon after it was opened.
    let kept = over(|number| {
        let mut look = at(number, &|tenth| tenth % 25 < 20);
        for (at_ns, socket) in &mut look.questions {
            let tenth = *at_ns / (SECOND / 10);
            socket.has_received = tenth % 25 > 0;
        }
        look
    });
    assert!(kept.is_clean(), "{kept:#?}");
}

fn attempts(count: i64, end: AttemptEnd, waited_ns: u64) -> TcpLook {
    let by = AttemptBy { owner: owner(7, "poller"), namespace: Some(0) };
    let attempt = FailedAttempt {
        process: 7,
        local: "10.0.0.1:4000".parse().unwrap(),
        remote: "10.0.0.2:9001".parse().unwrap(),
        waited_ns: Some(waited_ns),
        end,
    };
    let attempts = (0..count).map(|_| (attempt.clone(), Some(by.clone()))).collect();
    TcpLook {
        namespaces: vec![(Place::default(), NamespaceLook::default())],
        attempts,
        ..TcpLook::default()
    }
}

fn attempted(count: i64, end: AttemptEnd, waited_ns: u64) -> Diagnosis {
    let mut watch = Watch::default();
    for number in 0..=10 {
        watch.take(number * SECOND, attempts(count, end, waited_ns));
    }
    diagnose(&watch)
}

#[test]
fn refusals_name_who_asks_and_whom() {
    let report = attempted(10, AttemptEnd::Reset, 100_000);
    assert_eq!(kinds(&report), ["tcp.refused"]);
    let finding = &report.findings[0];
    assert_eq!(finding.what, "10.0.0.2:9001 refuses connections of poller (process 7)");
    assert_eq!(finding.severity, Severity::Problem);
    let rejected = attempted(10, AttemptEnd::Closed, 100_000);
    assert!(rejected.findings[0].cause.contains("an ICMP message"), "{rejected:#?}");
    assert!(attempted(0, AttemptEnd::Reset, 100_000).is_clean());
    assert!(attempted(10, AttemptEnd::Closed, 100_000_000).is_clean(), "neither is known");
    assert_eq!(kinds(&attempted(1, AttemptEnd::Closed, 800_000_000)), ["tcp.no_answer"]);
}

#[test]
fn a_syn_that_is_sent_again_has_no_answer() {
    let at = |retries, opened: u32| {
        let ends = ["10.0.0.1:4000", "10.0.0.2:9001"];
        let waiting = TcpSocket { retries, ..socket(TcpState::SynSent, 1, ends, Some(info())) };
        let more = (0..opened).map(|number| {
            let local = format!("10.0.0.1:{}", 5000 + number);
            open(100 + number, [&*local, "10.0.0.2:9001"], info())
        });
        NamespaceLook {
            sockets: core::iter::once(waiting).chain(more).collect(),
            ..NamespaceLook::default()
        }
    };
    let report = over(|_| at(2, 0));
    assert_eq!(kinds(&report), ["tcp.no_answer"]);
    let finding = &report.findings[0];
    assert_eq!(finding.what, "connections of client (process 10) to 10.0.0.2:9001 get no answer");
    assert!(over(|_| at(0, 0)).is_clean(), "it has not waited yet");
    let many = over(|number| at(2, if number == 0 { 0 } else { 40 }));
    assert!(many.is_clean(), "nearly all others succeed");
}

#[test]
fn a_full_segment_that_never_arrives_is_told_from_a_host_that_is_gone() {
    let at = |number: u32, acked: u64, retries: u8, gone: bool| {
        let stalled = TcpInfo {
            unacked: 10,
            bytes_acked: Some(acked),
            data_segments_out: Some(4 + number),
            retransmitted: if retries > 0 { number } else { 0 },
            last_acknowledged_ms: number * 1000,
            ..info()
        };
        let ends = ["10.0.0.1:4000", "10.0.0.2:9001"];
        let stalled = TcpSocket { send_queue: 14_480, retries, ..open(1, ends, stalled) };
        let ends = ["10.0.0.1:4001", "10.0.0.2:9001"];
        let asks = socket(TcpState::SynSent, 3, ends, Some(info()));
        let asks = TcpSocket { retries: 3, ..asks };
        let sockets = core::iter::once(stalled).chain(gone.then_some(asks)).collect();
        NamespaceLook { sockets, ..NamespaceLook::default() }
    };
    let report = over(|number| at(number, 300, 5, false));
    assert_eq!(kinds(&report), ["tcp.mtu_black_hole"]);
    let finding = &report.findings[0];
    assert!(finding.what.starts_with("full segments to 10.0.0.2:9001 never arrive"));
    assert!(finding.evidence[0].contains("10.0.0.1:4000 (client, process 10) -> 10.0.0.2:9001"));
    let gone = over(|number| at(number, 300, 5, true));
    let gone_kinds = kinds(&gone);
    assert!(!gone_kinds.contains(&"tcp.mtu_black_hole"), "{gone_kinds:?}");
    let before = over(|number| at(number, 9_000_000, 5, false));
    assert_eq!(kinds(&before), ["tcp.stalled"], "full ones passed before");
    let handshake = over(|number| at(number, 1, 5, false));
    assert_eq!(kinds(&handshake), ["tcp.stalled"], "a handshake is no small segment");
    assert!(handshake.findings[0].cause.contains("is not shown"), "{handshake:#?}");
    assert!(over(|number| at(number, 300, 0, false)).is_clean(), "the first has just been sent");
}

#[test]
fn small_writes_that_wait_are_told_from_a_long_way() {
    let at = |number: u32, unsent: u32, least: u32, bytes: u64| {
        let info = TcpInfo {
            unacked: 1,
            unsent_bytes: Some(unsent),
            min_rtt_us: Some(least),
            data_segments_out: Some(number * 44),
            bytes_acked: Some(u64::from(number) * 44 * bytes),
            busy_us: Some(u64::from(number) * 950_000),
            ..info()
        };
        let ends = ["10.0.0.1:4000", "10.0.0.2:9001"];
        NamespaceLook { sockets: vec![open(1, ends, info)], ..NamespaceLook::default() }
    };
    let report = over(|number| at(number, 90, 60, 100));
    assert_eq!(kinds(&report), ["tcp.delayed_ack"]);
    assert!(report.findings[0].what.starts_with("small writes of client (process 10)"));
    assert!(over(|number| at(number, 0, 60, 100)).is_clean(), "nothing is held back");
    assert!(over(|number| at(number, 90, 20_000, 100)).is_clean(), "the way takes as long");
    assert!(over(|number| at(number, 90, 60, 1400)).is_clean(), "its segments are full");
}

#[test]
fn ports_that_wait_are_used_up_where_the_kernel_does_not_take_them_again() {
    let at = |count: u32, reuse: &str| {
        let waiting = (0..count).map(|number| {
            let local = format!("10.0.0.1:{}", 40_000 + number);
            socket(TcpState::TimeWait, 1000 + number, [&*local, "10.0.0.2:9001"], None)
        });
        let settings = [("ip_local_port_range", "40000 40199"), ("tcp_tw_reuse", reuse)];
        let text = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        NamespaceLook {
            sockets: waiting.collect(),
            settings: settings.map(text).into(),
            ..NamespaceLook::default()
        }
    };
    let report = over(|_| at(200, "2"));
    assert_eq!(kinds(&report), ["tcp.ports"]);
    let finding = &report.findings[0];
    assert_eq!(finding.severity, Severity::Problem);
    assert!(finding.what.contains("for connections to 10.0.0.2:9001 are used up"));
    assert_eq!(over(|_| at(170, "2")).findings[0].severity, Severity::Warning);
    assert!(over(|_| at(100, "2")).is_clean());
    assert!(over(|_| at(200, "1")).is_clean(), "they can be had again");
    assert!(over(|number| at(if number < 10 { 200 } else { 0 }, "2")).is_clean(), "it is over");
}

#[test]
fn round_trips_in_a_queue_are_told_from_a_long_way() {
    let at = |number: u32, rtt_us: u32, least: u32, drops: u32| {
        let info = TcpInfo {
            unacked: 900,
            rtt_us,
            min_rtt_us: Some(least),
            data_segments_out: Some(number * 1700),
            bytes_acked: Some(u64::from(number) * 1700 * 1448),
            busy_us: Some(u64::from(number) * 990_000),
            ..info()
        };
        let ends = ["10.0.0.1:4000", "10.0.0.2:9001"];
        let paths = PathLook {
            links: vec![link("10.0.0.1", LinkTotals::default())],
            queues: vec![queue("tbf", number * 1700, number * drops, 1_500_000)],
            ..PathLook::default()
        };
        NamespaceLook { sockets: vec![open(1, ends, info)], paths, ..NamespaceLook::default() }
    };
    let report = over(|number| at(number, 500_000, 400, 0));
    assert_eq!(kinds(&report), ["tcp.bufferbloat"]);
    assert!(report.findings[0].cause.starts_with("The queue of lan0 is longer"), "{report:#?}");
    assert!(over(|number| at(number, 500_000, 480_000, 0)).is_clean(), "the way is as long");
    // Without a queue that is seen, round trips have to move.
    let far = |number: u32, rtt_us, is_app_limited| {
        let mut look = at(number, rtt_us, 400, 0);
        look.paths.queues.clear();
        for info in look.sockets.iter_mut().filter_map(|socket| socket.info.as_mut()) {
            info.is_app_limited = is_app_limited;
        }
        look
    };
    let saw = over(|number| far(number, 300_000 + 20_000 * (number % 4), false));
    assert_eq!(kinds(&saw), ["tcp.bufferbloat"]);
    let longer = over(|number| far(number, 122_000 + number, false));
    assert_eq!(kinds(&longer), ["tcp.longer_way"]);
    assert!(longer.is_clean(), "{longer:#?}");
    let own_rate = over(|number| far(number, 300_000 + 20_000 * (number % 4), true));
    assert!(own_rate.findings.is_empty(), "a program's own rate fills no queue: {own_rate:#?}");
    // A long queue that drops at last is too long; its drops are the consequence.
    let report = over(|number| at(number, 500_000, 400, 30));
    assert_eq!(kinds(&report), ["tcp.bufferbloat", "net.queue_drops"]);
    assert_eq!(report.findings[1].severity, Severity::Note);
}

#[test]
fn a_sender_whose_program_is_slow_is_a_note() {
    let at = |number: u32, busy_us: u64, is_app_limited| {
        let info = TcpInfo {
            is_app_limited,
            data_segments_out: Some(number * 700),
            bytes_acked: Some(u64::from(number) * 1_000_000),
            busy_us: Some(u64::from(number) * busy_us),
            ..info()
        };
        let ends = ["10.0.0.1:4000", "10.0.0.2:9001"];
        NamespaceLook { sockets: vec![open(1, ends, info)], ..NamespaceLook::default() }
    };
    let report = over(|number| at(number, 100_000, true));
    assert_eq!(kinds(&report), ["tcp.app_limited"]);
    assert!(report.is_clean(), "it is a note");
    assert_eq!(kinds(&over(|number| at(number, 900_000, true))), [""; 0], "it has to send");
    assert_eq!(kinds(&over(|number| at(number, 100_000, false))), [""; 0]);
}

#[test]
fn both_ends_are_named_where_both_are_on_this_machine() {
    let at = |number: u32| {
        let ours = TcpInfo {
            busy_us: Some(u64::from(number) * 900_000),
            receiver_limited_us: Some(u64::from(number) * 800_000),
            ..info()
        };
        let client = open(1, ["10.0.0.1:4000", "10.0.0.2:9001"], ours);
        let server = open(2, ["10.0.0.2:9001", "10.0.0.1:4000"], info());
        let listener = socket(TcpState::Listen, 3, ["0.0.0.0:9001", "0.0.0.0:0"], None);
        let of = |address, sockets| NamespaceLook {
            sockets,
            ..with_paths(PathLook {
                links: vec![link(address, LinkTotals::default())],
                ..PathLook::default()
            })
        };
        vec![of("10.0.0.1", vec![client]), of("10.0.0.2", vec![server, listener])]
    };
    let report = seen((0..=10).map(at).collect());
    assert_eq!(kinds(&report), ["tcp.receiver_limited"]);
    let line = "10.0.0.1:4000 (client, process 10) -> 10.0.0.2:9001 (server, process 20)";
    assert!(report.findings[0].evidence[0].ends_with(line), "{report:#?}");
}

#[test]
fn what_nobody_accepts_is_not_told_as_unread() {
    let at = |waiting: u32, inode: u32| {
        let listener = socket(TcpState::Listen, 2, ["0.0.0.0:9001", "0.0.0.0:0"], None);
        let listener = TcpSocket { receive_queue: waiting, send_queue: 1, ..listener };
        let received = TcpInfo { bytes_received: Some(60_000), ..info() };
        let connection = open(inode, ["10.0.0.2:9001", "10.0.0.1:4000"], received);
        let connection = TcpSocket { cookie: 77, receive_queue: 60_000, ..connection };
        NamespaceLook { sockets: vec![listener, connection], ..NamespaceLook::default() }
    };
    let report = over(|_| at(2, 0));
    assert_eq!(kinds(&report), ["tcp.accept_queue"]);
    let evidence = &report.findings[0].evidence;
    assert!(evidence.iter().any(|line| line.contains("that nobody reads: 10.0.0.1:4000 -> ")));
    assert_eq!(kinds(&over(|_| at(0, 3))), ["tcp.unread"], "one that was accepted");
}

#[test]
fn two_queues_are_told_apart_by_round_trips_where_rates_are_uneven() {
    let at = |number: u32, longer_us: u32| {
        let connection = |index: u32| {
            let is_slow = index >= 6;
            let carried = u64::from(number) * if is_slow { 40_000 } else { 300_000 };
            let info = TcpInfo {
                rtt_us: 25_000 + 40 * index + if is_slow { longer_us } else { 0 },
                bytes_acked: Some(carried * u64::from(1 + index % 6 * 2)),
                data_segments_out: Some(number),
                ..info()
            };
            let address = if is_slow { "10.0.0.3" } else { "10.0.0.1" };
            let local = format!("{address}:{}", 4000 + index);
            open(100 + index, [&*local, "10.0.0.2:9001"], info)
        };
        NamespaceLook { sockets: (0..12).map(connection).collect(), ..NamespaceLook::default() }
    };
    let report = over(|number| at(number, 25_000));
    assert_eq!(kinds(&report), ["tcp.two_speeds"]);
    let finding = &report.findings[0];
    assert!(finding.what.ends_with("what separates them is our address"), "{finding:#?}");
    assert!(finding.cause.contains("slow 10.0.0.3 (6); fast 10.0.0.1 (6)"), "{finding:#?}");
    assert_eq!(kinds(&over(|number| at(number, 0))), [""; 0]);
}
