//! Packets that say who they are: of which round, with which number, and every byte follows from
//! that.

use std::io::Write;
use std::process::ChildStdin;

use core::time::Duration;

/// Ethernet, IPv4 and UDP.
const HEADERS: usize = 42;

/// The packet with this number.
pub(crate) fn packet(round: u32, number: u64) -> Vec<u8> {
    let length =
        if number.is_multiple_of(97) { 9000 } else { 60 + (number * 7919 % 1400) as usize };
    let mut packet = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    packet.extend(((length - 14) as u16).to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend((40_000 + (number % 50) as u16).to_be_bytes());
    packet.extend([0, 53]);
    packet.extend(((length - 34) as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(round.to_be_bytes());
    packet.extend(number.to_be_bytes());
    let start = packet.len() as u64;
    packet.extend((start..length as u64).map(|at| (at ^ number) as u8));
    packet
}

/// Round and number of a packet, every byte of which is right.
pub(crate) fn identify(bytes: &[u8]) -> (u32, u64) {
    let round = u32::from_be_bytes(*bytes[HEADERS..].first_chunk().unwrap());
    let number = u64::from_be_bytes(*bytes[HEADERS + 4..].first_chunk().unwrap());
    assert!(bytes == packet(round, number), "packet {number} of round {round} differs");
    (round, number)
}

/// A microsecond lies between two packets, a thousand seconds between two rounds.
pub(crate) fn time_ns(round: u32, number: u64) -> i64 {
    let seconds = 1_700_000_000 + u64::from(round) * 1000;
    (seconds * 1_000_000_000 + number * 1000).cast_signed()
}

/// A pcap file header: nanoseconds, version 2.4, Ethernet.
fn file_header() -> Vec<u8> {
    let words = [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 1];
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn put_record(to: &mut Vec<u8>, round: u32, number: u64) {
    let packet = packet(round, number);
    let time = time_ns(round, number).cast_unsigned();
    let length = packet.len() as u32;
    let seconds = (time / 1_000_000_000) as u32;
    for word in [seconds, (time % 1_000_000_000) as u32, length, length] {
        to.extend(word.to_le_bytes());
    }
    to.extend(packet);
}

/// A capture file of the first packets of a round.
pub(crate) fn capture(round: u32, count: u64) -> Vec<u8> {
    let mut file = file_header();
    (0..count).for_each(|number| put_record(&mut file, round, number));
    file
}

/// Feeds packets of a round to a child until it is gone, in bursts with a pause after each.
pub(crate) fn feed(mut to: ChildStdin, round: u32, burst: u64, pause: Duration) {
    let mut chunk = file_header();
    for number in 0.. {
        put_record(&mut chunk, round, number);
        let ends = number % burst == burst - 1;
        if ends || chunk.len() > 1 << 16 {
            // A child that was killed reads no more.
            if to.write_all(&chunk).is_err() {
                return;
            }
            chunk.clear();
        }
        if ends {
            std::thread::sleep(pause);
        }
    }
}
