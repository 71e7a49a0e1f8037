//! What a diagnosis finds on machines that are made sick for it, in namespaces of their own.

#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use std::fs;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, TcpStream};

use capture::FrameSender;
use serde_json::Value;

use crate::machine::{Volume, enter, run, run_unprivileged};

/// A link whose one end has addresses; no host is at the other.
const LINKS: &str = "set -e
    ip link set lo up
    ip link add left type veth peer name right
    ip link set right address 02:00:00:00:00:99
    ip link set left arp off up
    ip link set right arp off up
    ip addr add 10.9.0.1/24 dev right
    echo 0 > /proc/sys/net/ipv4/tcp_timestamps";

fn set(name: &str, value: &str) {
    fs::write(format!("/proc/sys/net/ipv4/{name}"), value).unwrap();
}

fn connect(to: SocketAddr, listener: &TcpListener) -> [TcpStream; 2] {
    let client = TcpStream::connect(to).unwrap();
    [client, listener.accept().unwrap().0]
}

fn diagnosis(arguments: &[&str]) -> (Option<i32>, Value) {
    let fixed = ["diagnose", "tcp", "--json", "--for", "500ms", "--interval", "100ms"];
    let ran = run(&[&fixed, arguments].concat());
    let json = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    (ran.code, json)
}

fn findings<'j>(json: &'j Value, kind: &str) -> Vec<&'j Value> {
    let all = json["findings"].as_array().unwrap().iter();
    all.filter(|finding| finding["kind"] == kind).collect()
}

fn text(finding: &Value) -> String {
    finding.to_string()
}

/// A SYN without a client behind it: the answer goes to the empty end of the link.
fn syn(source: u8, port: u16) -> Vec<u8> {
    let (from, to) = ([10, 9, 0, source], [10, 9, 0, 1]);
    let mut tcp = vec![0x9c, 0x40 + source];
    tcp.extend(port.to_be_bytes());
    tcp.extend([0, 0, 0, source, 0, 0, 0, 0, 0x60, 2, 0xff, 0xff, 0, 0, 0, 0, 2, 4, 5, 0xb4]);
    let pseudo = [&from[..], &to, &[0, 6, 0, 24], &tcp].concat();
    let sum = internet_checksum(&pseudo);
    tcp[16..18].copy_from_slice(&sum);
    let mut ip = vec![0x45, 0, 0, 44, 0, 1, 0, 0, 64, 6, 0, 0];
    ip.extend(from.iter().chain(&to));
    let sum = internet_checksum(&ip);
    ip[10..12].copy_from_slice(&sum);
    [&[2, 0, 0, 0, 0, 0x99][..], &[2, 0, 0, 0, 0, source], &[8, 0], &ip, &tcp].concat()
}

fn internet_checksum(bytes: &[u8]) -> [u8; 2] {
    let words = bytes.as_chunks::<2>().0.iter();
    let sum: u32 = words.map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    (!u16::try_from(folded).unwrap()).to_be_bytes()
}

#[test]
fn connections_made_of_cookies_are_found_among_whole_ones_with_their_listener() {
    let links = format!(
        "{LINKS}
         ip -6 addr add fe80::1/64 dev right nodad 2> /dev/null || true"
    );
    let name = "connections_made_of_cookies_are_found_among_whole_ones_with_their_listener";
    if !enter(&links, &format!("diagnose::{name}")) {
        return;
    }
    let listener = TcpListener::bind("[::]:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mapped = SocketAddr::from(([10, 9, 0, 1], port));
    // Address and number of the interface; there is none without IPv6.
    let known = fs::read_to_string("/proc/self/net/if_inet6").unwrap_or_default();
    let line = known.lines().find(|line| line.starts_with("fe80") && line.ends_with("right"));
    let scope = line.and_then(|line| u32::from_str_radix(line.split(' ').nth(1)?, 16).ok());
    let local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    let scoped = SocketAddrV6::new(local, port, 0, scope.unwrap_or(0)).into();
    let has_scope = TcpStream::connect(scoped).is_ok();
    if has_scope {
        drop(listener.accept().unwrap());
    }
    let ends = [mapped, if has_scope { scoped } else { mapped }];
    let mut open = Vec::new();
    open.extend((0..20).map(|number| connect(ends[number % 2], &listener)));
    // Whatever the queue is like, the next ones are made of cookies.
    set("tcp_syncookies", "2");
    open.extend((0..6).map(|number| connect(ends[number % 2], &listener)));
    rustix::net::listen(&listener, 5).unwrap();
    let (code, json) = diagnosis(&["--here"]);
    assert_eq!(code, Some(1), "{json:#}");
    let found = findings(&json, "tcp.syn_cookies");
    assert_eq!(found.len(), 1, "{json:#}");
    let finding = found[0];
    assert_eq!((&finding["reach"], &finding["severity"]), (&6.into(), &"problem".into()));
    let said = text(finding);
    for words in [
        &format!("6 of 26 connections to port {port} of "),
        "no selective acknowledgements and window scale",
        "backlog of the listener: 5",
        "TcpExtSyncookiesRecv: 6 connections",
        " -> 10.9.0.1:",
        "net.ipv4.tcp_timestamps=1",
        &format!("(process {})", std::process::id()),
    ] {
        assert!(said.contains(words), "{words:?} in {said}");
    }
    if has_scope {
        assert!(said.contains("[fe80::1%"), "{said}");
    }
    // The other ends of the same connections are not reported again.
    assert_eq!(json["findings"].as_array().unwrap().len(), 1, "{json:#}");
}

/// Nothing is full, and no backlog would help.
#[test]
fn cookies_that_a_setting_forces_are_not_blamed_on_a_backlog() {
    let name = "cookies_that_a_setting_forces_are_not_blamed_on_a_backlog";
    if !enter(LINKS, &format!("diagnose::{name}")) {
        return;
    }
    set("tcp_timestamps", "0");
    set("tcp_syncookies", "2");
    let listener = TcpListener::bind("10.9.0.1:0").unwrap();
    rustix::net::listen(&listener, 4096).unwrap();
    let to = listener.local_addr().unwrap();
    let forced: Vec<_> = (0..20).map(|_| connect(to, &listener)).collect();
    let (code, json) = diagnosis(&["--here"]);
    let found = findings(&json, "tcp.syn_cookies");
    assert_eq!((code, found.len()), (Some(1), 1), "{json:#}");
    let said = text(found[0]);
    for words in ["tcp_syncookies is 2", "sysctl -w net.ipv4.tcp_syncookies=1"] {
        assert!(said.contains(words), "{words:?} in {said}");
    }
    assert!(!said.contains("was full when") && !said.contains("listen()"), "{said}");
    drop((listener, forced));
    // Clients that offer nothing, to a listener that no cookie was sent for.
    set("tcp_syncookies", "1");
    for option in ["tcp_sack", "tcp_window_scaling"] {
        set(option, "0");
    }
    let listener = TcpListener::bind("10.9.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let bare: Vec<_> = (0..4).map(|_| connect(to, &listener)).collect();
    for option in ["tcp_sack", "tcp_window_scaling"] {
        set(option, "1");
    }
    let (code, json) = diagnosis(&["--here"]);
    assert_eq!((code, json["findings"].as_array().map(Vec::len)), (Some(0), Some(0)), "{json:#}");
    drop(bare);
}

#[test]
fn a_burst_into_a_backlog_of_5_makes_cookies_and_into_one_of_128_none() {
    let name = "a_burst_into_a_backlog_of_5_makes_cookies_and_into_one_of_128_none";
    if !enter(LINKS, &format!("diagnose::{name}")) {
        return;
    }
    for (backlog, is_found) in [(128, false), (5, true)] {
        let listener = TcpListener::bind("10.9.0.1:0").unwrap();
        rustix::net::listen(&listener, backlog).unwrap();
        let to = listener.local_addr().unwrap();
        let sender = FrameSender::open("left").unwrap();
        let mut open: Vec<_> = (0..3).map(|_| connect(to, &listener)).collect();
        for source in 2..14 {
            sender.send(&syn(source, to.port())).unwrap();
        }
        open.push(connect(to, &listener));
        let (code, json) = diagnosis(&["--here"]);
        let found = findings(&json, "tcp.syn_cookies");
        assert_eq!(found.len(), usize::from(is_found), "backlog {backlog}: {json:#}");
        assert_eq!(code, Some(i32::from(is_found)), "backlog {backlog}: {json:#}");
        if let Some(finding) = found.first() {
            assert_eq!(finding["reach"], 1, "{finding:#}");
            let said = text(finding);
            assert!(said.contains("TcpExtTCPReqQFullDoCookies: "), "{said}");
            assert!(said.contains("backlog of the listener: 5"), "{said}");
        }
    }
}

#[test]
fn a_program_that_does_not_accept_and_one_that_does_not_read_are_named() {
    let name = "a_program_that_does_not_accept_and_one_that_does_not_read_are_named";
    if !enter(LINKS, &format!("diagnose::{name}")) {
        return;
    }
    let deaf = TcpListener::bind("10.9.0.1:0").unwrap();
    rustix::net::listen(&deaf, 1).unwrap();
    let to = deaf.local_addr().unwrap();
    let waiting: Vec<_> = (0..2).map(|_| TcpStream::connect(to).unwrap()).collect();
    let listener = TcpListener::bind("10.9.0.1:0").unwrap();
    let [mut sender, _reader] = connect(listener.local_addr().unwrap(), &listener);
    sender.set_nonblocking(true).unwrap();
    let block = vec![0; 1 << 16];
    while std::io::Write::write(&mut sender, &block).is_ok() {}
    let (code, json) = diagnosis(&["--here"]);
    assert_eq!(code, Some(1), "{json:#}");
    let accept = findings(&json, "tcp.accept_queue");
    assert_eq!(accept.len(), 1, "{json:#}");
    assert!(text(accept[0]).contains(&format!("its port {}", to.port())), "{json:#}");
    let unread = findings(&json, "tcp.unread");
    assert_eq!(unread.len(), 1, "{json:#}");
    assert!(text(unread[0]).contains("wait to be read"), "{json:#}");
    drop(waiting);
}

#[test]
fn a_healthy_machine_has_no_finding_and_what_is_not_seen_is_said() {
    let name = "a_healthy_machine_has_no_finding_and_what_is_not_seen_is_said";
    if !enter(LINKS, &format!("diagnose::{name}")) {
        return;
    }
    let listener = TcpListener::bind("10.9.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let open: Vec<_> = (0..40).map(|_| connect(to, &listener)).collect();
    let (code, json) = diagnosis(&["--here"]);
    assert_eq!((code, json["findings"].as_array().map(Vec::len)), (Some(0), Some(0)), "{json:#}");
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["diagnose", "tcp", "--for", "200ms"];
    let Some(ran) = run_unprivileged(folder.path(), &arguments) else { return };
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("81 TCP sockets in 1 network namespace"), "{ran:?}");
    assert!(ran.out.contains("not seen:") && ran.out.contains("which root has outside"), "{ran:?}");
    drop(open);
}

/// A frame of one of two hosts, with TCP flags and options.
fn tcp_frame(is_answer: bool, client_port: u16, flags: u8, options: &[u8]) -> Vec<u8> {
    let (client, server) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let (from, to) = if is_answer { (server, client) } else { (client, server) };
    let ports = if is_answer { [9000, client_port] } else { [client_port, 9000] };
    let header = u8::try_from(20 + options.len()).unwrap();
    let mut tcp: Vec<u8> = ports.iter().flat_map(|port| port.to_be_bytes()).collect();
    tcp.extend([0, 0, 0, 1, 0, 0, 0, 2, header << 2, flags, 0xff, 0xff, 0, 0, 0, 0]);
    tcp.extend(options);
    let mut ip = vec![0x45, 0, 0, 20 + header, 0, 1, 0, 0, 64, 6, 0, 0];
    ip.extend(from.iter().chain(&to));
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0][..], &ip, &tcp].concat()
}

#[test]
fn recorded_handshakes_tell_of_cookies_too() {
    const OFFER: [u8; 12] = [2, 4, 5, 0xb4, 4, 2, 1, 1, 3, 3, 7, 0];
    const BARE: [u8; 4] = [2, 4, 5, 0xa0];
    let volume = Volume::empty();
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0];
    file.extend([1, 0, 0, 0]);
    for number in 0..10_u8 {
        let answer: &[u8] = if number < 4 { &BARE } else { &OFFER };
        let port = 5000 + u16::from(number);
        let frames = [tcp_frame(false, port, 2, &OFFER), tcp_frame(true, port, 18, answer)];
        for (at, frame) in frames.iter().enumerate() {
            let micros = u32::from(number) * 1000 + u32::try_from(at).unwrap();
            let len = u32::try_from(frame.len()).unwrap();
            file.extend([1_700_000_000, micros, len, len].iter().flat_map(|v| v.to_le_bytes()));
            file.extend(frame);
        }
    }
    let path = volume.file("handshakes.pcap");
    fs::write(&path, file).unwrap();
    volume.record(&["--read", &path]).done();
    let ran = run(&["diagnose", "tcp", &volume.path, "--json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    let found = findings(&json, "tcp.syn_cookies");
    assert_eq!(found.len(), 1, "{json:#}");
    let said = text(found[0]);
    assert!(said.contains("4 of 10 connections to 10.0.0.2:9000 were answered"), "{said}");
    assert!(said.contains("10.0.0.1:5000 (segments of 1440)"), "{said}");
    let ran = run(&["diagnose", "tcp", &volume.path, "src port 5005"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("1 recorded session, 1 with both SYNs\nnothing found"), "{ran:?}");
    let ran = run(&["diagnose", "tcp", &volume.path, "sport 5"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("did you mean \"port\"?"), "{ran:?}");
    run(&["diagnose", "tcp", "/nonexistent"]).is_refused("/nonexistent");
}

#[test]
fn facts_are_saved_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("facts.json");
    let path = file.to_str().unwrap();
    let look =
        |arguments: &[&str]| run(&[&["diagnose", "host", "--for", "100ms"], arguments].concat());
    let ran = look(&["--save", path]);
    assert!(ran.code.is_some_and(|code| code < 2), "{ran:?}");
    assert!(ran.out.contains("facts of this machine: Linux "), "{ran:?}");
    look(&["--save", path]).is_refused("exists already; --force replaces it");
    let text = fs::read_to_string(&file).unwrap();
    let saved: Value = serde_json::from_str(&text).unwrap();
    let swappiness = saved["facts"]["sysctl.vm.swappiness"].as_str().unwrap();
    fs::write(&file, text.replace("\"sysctl.vm.swappiness\"", "\"sysctl.vm.other\"")).unwrap();
    let ran = look(&["--against", path, "--json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    let found = json["differences"].as_array().unwrap();
    let ours = |name: &str| found.iter().find(|found| found["name"] == name).map(|f| &f["ours"]);
    assert_eq!(ours("sysctl.vm.swappiness"), Some(&swappiness.into()));
    assert_eq!(ours("sysctl.vm.other"), Some(&Value::Null));
    fs::write(&file, "{}").unwrap();
    look(&["--against", path]).fails_with(2, "no facts of a machine");
    look(&["--against", "/nonexistent"]).is_refused("/nonexistent");
}
