//! A tap gives the two directions of a link on two interfaces: the session table sees each session
//! as if one interface had given all of it.

#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use capture::FrameSender;

use crate::lines::Lines;
use crate::machine::{Ran, Volume, command, enter, run};

const TAP: &str = "set -e
    [ ! -d /proc/sys/net/ipv6 ] || echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6
    for number in 0 1; do
        ip link add wire$number type veth peer name tap$number
        ip link set wire$number arp off up
        ip link set tap$number arp off up
    done";
const SESSIONS: u8 = 60;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// A packet between client and server, and which of them sends it.
fn frame(client: u8, is_back: bool, proto: u8, segment: &[u8]) -> Vec<u8> {
    let mut ends = [[10, 9, 0, client], [10, 8, 0, 1]];
    if is_back {
        ends.reverse();
    }
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, 0, 20 + u8::try_from(segment.len()).unwrap()]);
    frame.extend([0, 0, 0, 0, 64, proto, 0, 0]);
    frame.extend(ends.concat());
    frame.extend(segment);
    frame
}

fn tcp(is_back: bool, seq: u32, ack: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut ports = [[0x9c, 0x40], [0, 80]];
    if is_back {
        ports.reverse();
    }
    let fixed = [0x50, flags, 0xff, 0xff, 0, 0, 0, 0];
    [&ports.concat(), &seq.to_be_bytes()[..], &ack.to_be_bytes(), &fixed, payload].concat()
}

fn dns(is_back: bool) -> Vec<u8> {
    let mut ports = [[0x9c, 0x40], [0, 53]];
    if is_back {
        ports.reverse();
    }
    let flags = if is_back { [0x81, 0x80] } else { [1, 0] };
    let message = [0x12, 0x34, flags[0], flags[1], 0, 1, 0, 0, 0, 0, 0, 0];
    let name = [1, b'a', 4, b't', b'e', b's', b't', 0, 0, 1, 0, 1];
    let len = [0, 8 + 24, 0, 0];
    [&ports.concat(), &len[..], &message, &name].concat()
}

/// A connection with a request and an answer, and a question to a server of names: what is sent and
/// whether it comes from the server.
fn conversation() -> Vec<(bool, u8, Vec<u8>)> {
    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: tap.example\r\n\r\n";
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    let asked = 101 + u32::try_from(REQUEST.len()).unwrap();
    let answered = 501 + u32::try_from(ANSWER.len()).unwrap();
    let segments = [
        (false, tcp(false, 100, 0, 0x02, b"")),
        (true, tcp(true, 500, 101, 0x12, b"")),
        (false, tcp(false, 101, 501, 0x10, b"")),
        (false, tcp(false, 101, 501, 0x18, REQUEST)),
        (true, tcp(true, 501, asked, 0x18, ANSWER)),
        (false, tcp(false, asked, answered, 0x11, b"")),
        (true, tcp(true, answered, asked + 1, 0x11, b"")),
        (false, tcp(false, asked + 1, answered + 1, 0x10, b"")),
    ];
    let questions = [(false, dns(false)), (true, dns(true))];
    let of = |proto: u8| move |(is_back, bytes)| (is_back, proto, bytes);
    segments.into_iter().map(of(TCP)).chain(questions.into_iter().map(of(UDP))).collect()
}

fn recorded(queues: &str) -> Volume {
    let volume = Volume::empty();
    let record = ["record", &volume.path, "--index-dir", &volume.index, "--pool", "8M"];
    let tap = ["--interface", "tap0", "--interface", "tap1", "--queues", queues];
    let mut command = command(&[&record[..], &tap].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = Lines::of(child.stderr.take().unwrap());
    lines.hear("recording tap0, tap1 into ", Duration::from_secs(30));
    let senders = ["wire0", "wire1"].map(|name| FrameSender::open(name).unwrap());
    for client in 0..SESSIONS {
        for (is_back, proto, segment) in conversation() {
            let sender = &senders[usize::from(is_back)];
            sender.send(&frame(client, is_back, proto, &segment)).unwrap();
            sleep(Duration::from_micros(if client % 2 == 0 { 2000 } else { 100 }));
        }
    }
    let interrupt = ["-INT", &child.id().to_string()].map(str::to_owned);
    std::process::Command::new("kill").args(interrupt).status().unwrap();
    Ran::new(&child.wait_with_output().unwrap()).done();
    volume
}

#[test]
fn sessions_of_a_tap_are_those_of_one_interface() {
    if !enter(TAP, "tap::sessions_of_a_tap_are_those_of_one_interface") {
        return;
    }
    for queues in ["1", "2"] {
        let volume = recorded(queues);
        let find = |query: &str| {
            let index = ["--json", "--index-dir", &volume.index];
            let out = run(&[&["find", &volume.path, query][..], &index].concat()).done().out;
            (out.lines().filter(|line| line.contains("\"session_id\"")).count(), out)
        };
        let is_right = "has handshake and state = SF and orig net 10.9.0.0/16 and \
                        retransmitted_packets = 0 and out_of_order_packets = 0 and \
                        missed_bytes = 0";
        for query in [&*format!("tcp and {is_right}"), "udp and has dns_rtt"] {
            let (count, out) = find(query);
            assert_eq!(count, usize::from(SESSIONS), "{queues} queues, {query}: {out}");
        }
    }
}
