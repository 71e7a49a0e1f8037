//! Sockets and counters beside `ss` and `nstat`, which read the same kernel.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(clippy::disallowed_methods, reason = "a test waits until sockets rest")]
#![expect(clippy::print_stdout, reason = "tests say why they did not run")]

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use network::sockets::{NamespaceLook, Namespaces, TcpState};

fn look() -> NamespaceLook {
    Namespaces::own().unwrap().seen.first().unwrap().look().unwrap()
}

/// What a tool prints; `None` with a printed reason where it is missing.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).env("LC_ALL", "C").output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) => {
            println!("not run: {program}: {error}");
            None
        }
    }
}

/// Connections over which something has passed, and over which nothing passes any more; `None` with
/// a printed reason in a namespace whose loopback interface nobody has brought up.
fn resting() -> Option<Vec<(TcpStream, TcpStream)>> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    if let Err(error) = TcpStream::connect(listener.local_addr().unwrap())
        && error.kind() == ErrorKind::NetworkUnreachable
    {
        println!("not run: no loopback interface: {error}");
        return None;
    }
    listener.accept().unwrap();
    let connect = |kib: usize| {
        let mut one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        one.write_all(&vec![7; kib << 10]).unwrap();
        other.read_exact(&mut vec![0; kib << 10]).unwrap();
        // Waits to be read.
        other.write_all(&[7; 300]).unwrap();
        (one, other)
    };
    let connections = [1, 40, 200].map(connect).into();
    sleep(Duration::from_millis(300));
    Some(connections)
}

/// `cwnd:10` of a line of `ss -i`.
fn field<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix(':'))
}

#[test]
fn a_socket_that_rests_has_the_numbers_that_ss_shows() {
    let Some(connections) = resting() else { return };
    let Some(said) = said("ss", &["-tinHO"]) else { return };
    let ours = look();
    for (one, other) in &connections {
        for stream in [one, other] {
            let (local, remote) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
            let words = |line: &str| -> Vec<String> {
                line.split_whitespace().map(str::to_owned).collect()
            };
            let is_it = |line: &&str| {
                let words = words(line);
                words.get(3) == Some(&local.to_string())
                    && words.get(4) == Some(&remote.to_string())
            };
            let line = said.lines().find(is_it).unwrap_or_else(|| panic!("{local} in {said}"));
            let is_ours = |ends: (SocketAddr, SocketAddr)| ends == (local, remote);
            let socket = ours.sockets.iter().find(|it| is_ours((it.local, it.remote))).unwrap();
            let info = socket.info.unwrap();
            assert_eq!(socket.state, TcpState::Established, "{line}");
            let number = |name: &str| field(line, name).and_then(|text| text.parse::<u64>().ok());
            let queues = [socket.receive_queue, socket.send_queue].map(|it| it.to_string());
            assert_eq!(words(line).get(1..3), Some(&queues[..]), "{line}");
            for (name, value) in [
                ("cwnd", Some(info.congestion_window.into())),
                ("mss", Some(info.send_mss.into())),
                ("pmtu", Some(info.path_mtu.into())),
                ("advmss", Some(info.advertised_mss.into())),
                ("bytes_acked", info.bytes_acked.filter(|&bytes| bytes > 0)),
                ("bytes_received", info.bytes_received.filter(|&bytes| bytes > 0)),
                ("segs_out", info.segments_out.map(u64::from)),
                ("segs_in", info.segments_in.map(u64::from)),
            ] {
                assert_eq!(number(name), value, "{name}: {line}");
            }
            let (rtt, deviation) = field(line, "rtt").unwrap().split_once('/').unwrap();
            let us = |text: &str| {
                let (whole, part) = text.split_once('.').unwrap_or((text, ""));
                format!("{whole}{part:0<3}").parse::<u32>().unwrap()
            };
            assert_eq!((us(rtt), us(deviation)), (info.rtt_us, info.rtt_deviation_us), "{line}");
        }
    }
}

#[test]
fn counters_lie_between_two_readings_of_nstat() {
    let read = || -> Option<BTreeMap<String, u64>> {
        let said = said("nstat", &["-asz"])?;
        let line = |line: &str| {
            let mut words = line.split_whitespace();
            Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
        };
        Some(said.lines().filter_map(line).collect())
    };
    let Some(before) = read() else { return };
    let Some(connections) = resting() else { return };
    drop(connections);
    let ours = look().counters;
    let after = read().unwrap();
    assert!(before.len() > 100, "{}", before.len());
    let mut compared = 0;
    for (name, &least) in &before {
        // nstat has counters of IPv6 and of the raw kind, too, from other tables.
        let (Some(&ours), Some(&most)) = (ours.get(name), after.get(name)) else { continue };
        assert!(
            (least.min(most)..=most.max(least)).contains(&ours),
            "{name}: {least} {ours} {most}"
        );
        compared += 1;
    }
    assert!(compared > 100, "{compared} counters");
    let gained = |name: &str| after.get(name).unwrap() - before.get(name).unwrap();
    assert!(gained("TcpPassiveOpens") >= 3);
}
