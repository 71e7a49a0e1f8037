//! What limits a sender, and what is its program's own choice.

use super::*;

const SERVER: &str = "10.0.0.2:9001";

/// A client that sends at the end of one namespace, and the server's end in another one.
fn ends(client: &TcpInfo, server: TcpSocket) -> Vec<NamespaceLook> {
    let of = |address, sockets| NamespaceLook {
        sockets,
        ..with_paths(PathLook {
            links: vec![link(address, LinkTotals::default())],
            ..PathLook::default()
        })
    };
    let listener = socket(TcpState::Listen, 3, ["0.0.0.0:9001", "0.0.0.0:0"], None);
    vec![
        of("10.0.0.1", vec![open(1, ["10.0.0.1:4000", SERVER], *client)]),
        of("10.0.0.2", vec![server, listener]),
    ]
}

fn limited(number: u32, has_scale: bool) -> TcpInfo {
    TcpInfo {
        options: SynOptions { timestamps: true, sack: true, window_scale: has_scale },
        window_scales: if has_scale { (7, 7) } else { (0, 0) },
        send_window: Some(65_535),
        busy_us: Some(u64::from(number) * 900_000),
        receiver_limited_us: Some(u64::from(number) * 800_000),
        ..info()
    }
}

fn server(unread: u32) -> TcpSocket {
    let server = open(2, [SERVER, "10.0.0.1:4000"], info());
    TcpSocket { receive_queue: unread, ..server }
}

fn causes(report: &Diagnosis, kind: &str) -> String {
    let found = report.findings.iter().find(|it| it.kind == kind);
    let found = found.unwrap_or_else(|| panic!("{report:#?}"));
    format!("{} {:?}", found.cause, found.remedies)
}

#[test]
fn a_window_without_scale_is_told_from_a_program_that_reads_slowly() {
    let at = |number, unread, setting: &str| {
        let mut looks = ends(&limited(number, false), server(unread));
        let there = looks.last_mut().unwrap();
        there.settings.insert("tcp_window_scaling".to_owned(), setting.to_owned());
        looks
    };
    let all = |unread, setting| {
        let looks = (0..=10).map(|number| at(number, unread, setting)).collect();
        causes(&seen(looks), "tcp.receiver_limited")
    };
    let off = all(0, "0");
    assert!(off.contains("net.ipv4.tcp_window_scaling is 0 in network namespace n1"), "{off}");
    assert!(off.contains("ip netns exec n1 sysctl -w net.ipv4.tcp_window_scaling=1"), "{off}");
    assert!(!off.contains("SO_RCVBUF") && !off.contains("more slowly"), "{off}");
    let elsewhere = all(0, "1");
    assert!(elsewhere.contains("One side did not offer it"), "{elsewhere}");
    let slow = all(50_000, "0");
    assert!(slow.contains("server (process 20) reads more slowly"), "{slow}");
}

#[test]
fn the_other_end_shows_whether_its_program_or_its_buffer_is_slow() {
    let all = |unread: u32| {
        let at = |number| ends(&limited(number, true), server(unread));
        causes(&seen((0..=10).map(at).collect()), "tcp.receiver_limited")
    };
    let slow = all(50_000);
    assert!(slow.contains("server (process 20) reads more slowly"), "{slow}");
    let small = all(0);
    assert!(small.contains("reads at once") && small.contains("tcp_rmem"), "{small}");
    // Of another machine neither is known.
    let alone = over(|number| NamespaceLook {
        sockets: vec![open(1, ["10.0.0.1:4000", SERVER], limited(number, true))],
        ..NamespaceLook::default()
    });
    let unknown = causes(&alone, "tcp.receiver_limited");
    assert!(unknown.contains("more slowly") && unknown.contains("too small"), "{unknown}");
}

#[test]
fn a_send_buffer_that_the_program_has_set_needs_no_setting() {
    let at = |number: u32, send_buffer: u32, most: &str| {
        let waits = TcpInfo {
            busy_us: Some(u64::from(number) * 900_000),
            buffer_limited_us: Some(u64::from(number) * 800_000),
            ..info()
        };
        let memory = Some(SocketMemory { send_buffer, ..SocketMemory::default() });
        let waits = TcpSocket { memory, ..open(1, ["10.0.0.1:4000", SERVER], waits) };
        NamespaceLook {
            sockets: vec![waits],
            settings: [("tcp_wmem".to_owned(), format!("4096 65536 {most}"))].into(),
            ..NamespaceLook::default()
        }
    };
    let inside = |buffer, most| {
        let looks = |number| vec![NamespaceLook::default(), at(number, buffer, most)];
        causes(&seen((0..=10).map(looks).collect()), "tcp.send_buffer")
    };
    let own = inside(8192, "67108864");
    assert!(own.contains("the program has set its size") && !own.contains("sysctl"), "{own}");
    let capped = inside(4_000_000, "4194304");
    let command = "ip netns exec n1 sysctl -w net.ipv4.tcp_wmem='4096 65536 16777216'";
    assert!(capped.contains(command) && !capped.contains("SO_SNDBUF"), "{capped}");
    let large = inside(60_000_000, "67108864");
    assert!(large.contains("'4096 65536 268435456'"), "never less than it is: {large}");
}

/// Twenty connections of two programs to one port, at two rates.
fn two_programs(number: u32, is_app_limited: bool, other: &str) -> NamespaceLook {
    let connection = |index: u32| {
        let rate = if index < 10 { 300_000 } else { 3_000_000 };
        let sent = TcpInfo {
            is_app_limited,
            bytes_acked: Some(u64::from(number) * (rate + u64::from(index) * 1000)),
            data_segments_out: Some(number * 200),
            busy_us: Some(u64::from(number) * if is_app_limited { 4000 } else { 900_000 }),
            ..info()
        };
        let (address, inode) = if index < 10 { ("10.0.0.1", 1) } else { (other, 3) };
        let local = format!("{address}:{}", 4000 + index);
        TcpSocket { cookie: 100 + u64::from(index), ..open(inode, [&*local, SERVER], sent) }
    };
    NamespaceLook { sockets: (0..20).map(connection).collect(), ..NamespaceLook::default() }
}

#[test]
fn rates_that_programs_choose_are_no_two_speeds() {
    let chosen = over(|number| two_programs(number, true, "10.0.0.1"));
    assert!(chosen.is_clean(), "{chosen:#?}");
    let limited = over(|number| two_programs(number, false, "10.0.0.1"));
    assert_eq!(kinds(&limited), ["tcp.two_speeds"]);
    assert!(limited.findings[0].what.ends_with("what separates them is the process"));
    let of_addresses = over(|number| two_programs(number, false, "10.0.0.9"));
    let what = &of_addresses.findings[0].what;
    assert!(what.ends_with("what separates them is our address"), "{of_addresses:#?}");
}

#[test]
fn a_window_that_nobody_fills_is_small_for_no_fault_of_the_way() {
    let at = |is_app_limited: bool| {
        let connection = |index: u32| {
            let is_small = index < 2;
            let sent = TcpInfo {
                congestion_window: if is_small { 10 } else { 300 },
                data_segments_out: Some(1000),
                is_app_limited: is_small && is_app_limited,
                retransmitted: u32::from(is_small),
                ..info()
            };
            let local = format!("10.0.0.1:{}", 4000 + index);
            TcpSocket { cookie: 100 + u64::from(index), ..open(1, [&*local, SERVER], sent) }
        };
        NamespaceLook { sockets: (0..8).map(connection).collect(), ..NamespaceLook::default() }
    };
    assert!(over(|_| at(true)).is_clean());
    assert_eq!(kinds(&over(|_| at(false))), ["tcp.small_window"]);
}

#[test]
fn a_segment_size_that_something_clamps_is_told_from_a_small_window() {
    let at = |number: u32, send_mss: u32, send_window: u32, path_mtu: u32| {
        let sent = TcpInfo {
            send_mss,
            path_mtu,
            send_window: Some(send_window),
            data_segments_out: Some(number * 400),
            bytes_acked: Some(u64::from(number * 400 * send_mss)),
            ..info()
        };
        let sockets = vec![open(1, ["10.0.0.1:4000", SERVER], sent)];
        NamespaceLook { sockets, ..NamespaceLook::default() }
    };
    let report = over(|number| at(number, 76, 64_000, 1500));
    assert_eq!(kinds(&report), ["tcp.small_segments"]);
    assert!(report.findings[0].cause.contains("cannot tell"), "{report:#?}");
    assert!(over(|number| at(number, 76, 160, 1500)).is_clean(), "its receiver has no space");
    assert!(over(|number| at(number, 500, 64_000, 552)).is_clean(), "a way of small packets");
    assert!(over(|number| at(number, 536, 64_000, 1500)).is_clean(), "what every host takes");
    // The other end announced more.
    let both = |number: u32| {
        let sent = at(number, 76, 64_000, 1500).sockets.first().unwrap().info.unwrap();
        let other = TcpInfo { advertised_mss: 1448, ..info() };
        ends(&sent, open(2, [SERVER, "10.0.0.1:4000"], other))
    };
    let cause = causes(&seen((0..=10).map(both).collect()), "tcp.small_segments");
    assert!(cause.starts_with("What the other end announced was larger"), "{cause}");
}

#[test]
fn what_a_program_holds_back_is_told_from_what_waits_for_an_acknowledgement() {
    let at = |number: u32, unacked: u32, send_window: u32| {
        let sent = TcpInfo {
            unacked,
            unsent_bytes: Some(100),
            send_window: Some(send_window),
            data_segments_out: Some(number * 5),
            bytes_acked: Some(u64::from(number) * 500),
            busy_us: Some(u64::from(number) * 990_000),
            ..info()
        };
        let sockets = vec![open(1, ["10.0.0.1:4000", SERVER], sent)];
        NamespaceLook { sockets, ..NamespaceLook::default() }
    };
    let report = over(|number| at(number, 0, 64_000));
    assert_eq!(kinds(&report), ["tcp.corked"]);
    assert!(report.findings[0].what.starts_with("client (process 10) holds back"), "{report:#?}");
    assert!(!kinds(&over(|number| at(number, 1, 64_000))).contains(&"tcp.corked"));
    assert!(!kinds(&over(|number| at(number, 0, 0))).contains(&"tcp.corked"), "no space");
}
