//! What recorded traffic alone shows about TCP connections: the story of one whose listener
//! answered with SYN cookies, so that SACK is off for the connection's life.

use core::ops::ControlFlow;

use extract::find;
use found::Event;
use query::Query;
use units::{ManualClock, Timestamp};

use crate::recorder::{How, Packet, Traffic, Volume, ethernet};

const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

const MSS: [u8; 4] = [2, 4, 5, 0xa0];
/// MSS, SACK permitted, window scale 7, padding.
const ALL_OPTIONS: [u8; 12] = [2, 4, 5, 0xa0, 4, 2, 3, 3, 7, 1, 1, 1];

/// One segment of the connection from 10.0.0.1:`port` to 10.0.0.2:7000.
struct Segment<'a> {
    port: u16,
    back: bool,
    flags: u8,
    sequence: [u32; 2],
    options: &'a [u8],
    payload: &'a [u8],
}

fn frame(segment: &Segment<'_>) -> Vec<u8> {
    let Segment { port, back, flags, sequence, options, payload } = segment;
    let len = u16::try_from(40 + options.len() + payload.len()).unwrap();
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0]);
    frame.extend(len.to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 6, 0, 0]);
    let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    frame.extend(if *back { [b, a] } else { [a, b] }.concat());
    let ports = if *back { [7000, *port] } else { [*port, 7000] };
    frame.extend(ports.map(u16::to_be_bytes).concat());
    frame.extend(sequence.map(u32::to_be_bytes).concat());
    let words = u8::try_from(5 + options.len() / 4).unwrap();
    frame.extend([words << 4, *flags, 0x10, 0, 0, 0, 0, 0]);
    frame.extend(*options);
    frame.extend(*payload);
    frame
}

/// A connection: handshake, then the originator's segments by their places in the stream.
fn connection(port: u16, answer: &[u8], places: &[u32], is_reset: bool) -> Vec<Vec<u8>> {
    let segment = |back, flags, sequence, options, payload| {
        frame(&Segment { port, back, flags, sequence, options, payload })
    };
    let mut frames = vec![
        segment(false, SYN, [999, 0], &ALL_OPTIONS, &[]),
        segment(true, SYN | ACK, [4999, 1000], answer, &[]),
        segment(false, ACK, [1000, 5000], &[], &[]),
    ];
    let data = places.iter().map(|place| segment(false, ACK, [1000 + place, 5000], &[], &[7; 100]));
    frames.extend(data);
    if is_reset {
        frames.push(segment(true, RST, [5000, 0], &[], &[]));
    }
    frames
}

fn ports_found(volume: &Volume, query: &str) -> Vec<u16> {
    let query = Query::parse(query, Timestamp(0)).unwrap();
    let mut ports = Vec::new();
    let clock = ManualClock::new(Timestamp(0));
    find(&volume.options(), &query, None, &clock, &mut |event| {
        if let Event::Found(found) = event {
            ports.push(found.session.tuple.orig_port);
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    ports
}

#[test]
fn connections_without_sack_that_lose_segments_are_found() {
    let connections = [
        connection(1001, &ALL_OPTIONS, &[0, 100, 200, 300], false),
        connection(1002, &MSS, &[0, 100, 100, 200], false),
        connection(1003, &ALL_OPTIONS, &[0, 100, 100, 200], true),
        connection(1004, &MSS, &[0, 200, 100, 300], false),
    ];
    let mut traffic = Traffic { interfaces: vec![ethernet("eth0")], ..Traffic::default() };
    for (time, data) in (0..).zip(connections.concat()) {
        let original_len = u32::try_from(data.len()).unwrap();
        let timestamp = Timestamp(1_000_000 * time);
        let options = Vec::new();
        traffic.packets.push(Packet { interface: 0, timestamp, original_len, data, options });
    }
    let volume = Volume::of(&traffic, How::default());
    for (query, expected) in [
        ("tcp.sack = no and tcp.retransmitted > 0", &[1002][..]),
        ("tcp.sack = no", &[1002, 1004]),
        ("tcp.retransmitted > 0", &[1002, 1003]),
        ("tcp.out_of_order = 1", &[1004]),
        ("orig_out_of_order_packets > 0 and resp_out_of_order_packets = 0", &[1004]),
        ("tcp.resets > 0", &[1003]),
        ("resp_resets = 1 and orig_resets = 0", &[1003]),
        ("resp_syn_window_scale = 7", &[1001, 1003]),
    ] {
        assert_eq!(ports_found(&volume, query), expected, "{query}");
    }
}
