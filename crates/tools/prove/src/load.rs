//! The packets that are sent: a round of frames, again and again, each time with other numbers.

use core::fmt;
use core::time::Duration;
use std::collections::BTreeMap;

use capture::{FrameLimits, Next, Packet, Source};
use units::Random;
use units::number::to_u64;
use wire::{FiveTuple, LinkType, STAMP_BYTES, decode, stamp};

/// Frames of a round that is made, at least: enough for a mix of sizes, and few enough for the
/// sender's cache.
const ROUND: u32 = 4096;
/// Shortest frame that is made (IEEE 802.3 without its checksum).
const SHORTEST: usize = 60;
/// Longest: jumbo frames.
const LONGEST: usize = 9014;
/// Ethernet, IPv4 and TCP without options, and space for the stamp: what is shorter is UDP.
const SHORTEST_TCP: usize = 14 + 20 + 20 + STAMP_BYTES;
/// Most bytes of a frame of a capture: what every interface's MTU may be set to.
const LONGEST_CAPTURED: usize = 65_000;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Locally administered addresses (IEEE 802).
const ETHERNET: [u8; 14] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];

/// Lengths of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sizes {
    /// All alike: 60 to 9014 bytes.
    Fixed(usize),
    /// 7 of 64 bytes, 4 of 576, 5 of 1514: 645 bytes on average.
    Imix,
}

/// Why there is no load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadError {
    /// Frames of this length are not made.
    Size,
    /// A load has two flows at least.
    Flows,
    /// No packet of the capture can be sent.
    Empty,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Size => "frames have 60 to 9014 bytes",
            Self::Flows => "2 to 1000000 flows",
            Self::Empty => {
                "no frame can be sent: each is longer than the MTU permits, cut, or no Ethernet"
            }
        })
    }
}

impl core::error::Error for LoadError {}

/// A round of frames with space for a stamp, and the flow of each.
#[derive(Clone, Debug, Default)]
pub struct Load {
    frames: Vec<Vec<u8>>,
    flows: Vec<usize>,
    known: BTreeMap<FiveTuple, usize>,
    bytes: u64,
    /// Packets of a capture that are not sent: truncated, no Ethernet, too long, or beyond the
    /// memory for them.
    pub left_out: u64,
}

impl Load {
    /// Frames of `flows` conversations, both directions, the same each time.
    pub fn made(sizes: Sizes, flows: u32) -> Result<Self, LoadError> {
        if matches!(sizes, Sizes::Fixed(len) if !(SHORTEST..=LONGEST).contains(&len)) {
            return Err(LoadError::Size);
        }
        if !(2..=1_000_000).contains(&flows) {
            return Err(LoadError::Flows);
        }
        let mut load = Self::default();
        let mut random = Random::new(u64::from(flows));
        for number in 0..ROUND.max(2 * flows) {
            let len = sizes.draw(&mut random);
            // Each flow is met once at least in each direction, if the length allows.
            let flow = match len {
                0..SHORTEST_TCP => number % flows / 2 * 2,
                _ => number % flows,
            };
            load.push(made(flow, number / flows % 2 == 1, len, &mut random));
        }
        Ok(load)
    }

    /// The packets of a capture, up to `memory_bytes` of them. A stamp is put behind each.
    pub fn captured(source: &mut dyn Source, memory_bytes: u64) -> Result<Self, capture::Error> {
        let mut load = Self::default();
        loop {
            match source.next_batch(Duration::from_millis(50))? {
                Next::Packets(batch) => {
                    let interfaces = batch.interfaces();
                    for packet in batch {
                        let at = usize::try_from(packet.interface).unwrap_or(usize::MAX);
                        let link_type = interfaces.get(at).map(|interface| interface.link_type);
                        let is_ethernet = link_type == Some(LinkType::ETHERNET);
                        match stampable(&packet).filter(|_| is_ethernet) {
                            Some(frame) if load.bytes < memory_bytes => load.push(frame),
                            _ => load.left_out += 1,
                        }
                    }
                }
                Next::Block(_) | Next::Idle => {}
                Next::End => return Ok(load),
            }
        }
    }

    fn push(&mut self, frame: Vec<u8>) {
        let len = u32::try_from(frame.len()).expect("frames are short");
        let tuple = decode(LinkType::ETHERNET, &frame, len).tuple;
        let next = self.known.len();
        self.flows.push(*self.known.entry(tuple).or_insert(next));
        self.bytes += u64::from(len);
        self.frames.push(frame);
    }

    /// Leaves out what the sending interface does not take.
    ///
    /// # Errors
    /// Nothing is left.
    pub fn fit(self, limits: FrameLimits) -> Result<Self, LoadError> {
        let mut load = Self { left_out: self.left_out, ..Self::default() };
        for frame in self.frames {
            let ether_type = frame.get(12..).and_then(|rest| rest.first_chunk().copied());
            match limits.judge(ether_type, frame.len()) {
                Ok(()) => load.push(frame),
                Err(_) => load.left_out += 1,
            }
        }
        if load.frames.is_empty() { Err(LoadError::Empty) } else { Ok(load) }
    }

    /// Frames of a round.
    pub fn round(&self) -> u64 {
        to_u64(self.frames.len())
    }

    /// Packets that have so many bits of frames.
    pub fn packets_of_bits(&self, bits: u64) -> u64 {
        let packets = u128::from(bits / 8) * u128::from(self.round());
        u64::try_from(packets / u128::from(self.bytes.max(1))).unwrap_or(u64::MAX)
    }

    /// Rounds that have `packets` packets at least, and one at least.
    pub fn rounds(&self, packets: u64) -> u64 {
        packets.div_ceil(self.round().max(1)).max(1)
    }

    /// Flows, by direction.
    pub fn flow_count(&self) -> usize {
        self.known.len()
    }

    /// Bytes of the longest frame.
    pub fn longest(&self) -> usize {
        self.frames.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// The packet of this number, put into `frame`, and its flow.
    pub(crate) fn packet(&self, key: u64, number: u64, frame: &mut Vec<u8>) -> usize {
        let at = usize::try_from(number % self.round()).expect("a place in memory");
        frame.clear();
        frame.extend_from_slice(self.frames.get(at).expect("below the length"));
        stamp(frame, key, number);
        *self.flows.get(at).expect("each frame has a flow")
    }

    /// The round as a pcap file, with stamps that are all zeros.
    pub fn pcap(&self) -> Vec<u8> {
        let mut file = Vec::new();
        // Magic with microseconds, version 2.4, UTC, snaplen 262144, Ethernet.
        for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, 1_u32] {
            file.extend(word.to_le_bytes());
        }
        for frame in &self.frames {
            let len = u32::try_from(frame.len()).expect("frames are short");
            for word in [0, 0, len, len] {
                file.extend(word.to_le_bytes());
            }
            file.extend_from_slice(frame);
        }
        file
    }

    /// Bytes that `packets` packets take on the disk, about: as blocks with their padding, with
    /// heads and an index.
    pub fn volume_bytes(&self, packets: u64) -> u64 {
        let mean = self.bytes / self.round().max(1);
        let blocks = u128::from(packets) * u128::from(mean + 40);
        u64::try_from(blocks * 107 / 100).unwrap_or(u64::MAX)
    }
}

/// A captured packet with zeros behind it for the stamp; `None` where it cannot be sent as it was.
fn stampable(packet: &Packet<'_>) -> Option<Vec<u8>> {
    let len = packet.captured_len();
    let original = usize::try_from(packet.original_len).ok()?;
    if original != len || len < ETHERNET.len() || len + STAMP_BYTES > LONGEST_CAPTURED {
        return None;
    }
    let mut frame = packet.parts().concat();
    frame.resize((len + STAMP_BYTES).max(SHORTEST), 0);
    Some(frame)
}

/// One frame of a flow: headers, then random bytes. Without checksums of TCP and UDP: no receiver
/// looks at them, and stamps would have to change them.
fn made(flow: u32, is_answer: bool, len: usize, random: &mut Random) -> Vec<u8> {
    let [_, host_high, host_mid, host_low] = flow.to_be_bytes();
    let client = [10, host_high, host_mid, host_low];
    let server = [192, 168, 0, host_low];
    let port = u16::try_from(20_000 + flow % 40_000).expect("below 2^16");
    let ports = [port.to_be_bytes(), 443_u16.to_be_bytes()];
    let [from, to] = if is_answer { [server, client] } else { [client, server] };
    let [from_port, to_port] = if is_answer { [ports[1], ports[0]] } else { ports };
    let proto = if flow.is_multiple_of(2) { UDP } else { TCP };
    let number = |len: usize| u16::try_from(len).expect("a frame is short").to_be_bytes();
    let ipv4 = |sum: u16| {
        let words = [[0x45, 0], number(len - 14), [0, 0], [0x40, 0], [64, proto]];
        [words.as_flattened(), &sum.to_be_bytes(), &from, &to].concat()
    };
    let mut frame = [&ETHERNET[..], &ipv4(checksum(&ipv4(0)))].concat();
    frame.extend([from_port, to_port].as_flattened());
    if proto == TCP {
        frame.extend(random.next().to_be_bytes());
        // 20 bytes of header, ACK, window 8192.
        frame.extend([0x50, 0x10, 0x20, 0, 0, 0, 0, 0]);
    } else {
        frame.extend([number(len - 34), [0, 0]].as_flattened());
    }
    while frame.len() < len {
        frame.extend(random.next().to_be_bytes());
    }
    frame.truncate(len);
    // The place of the stamp.
    let end = len - STAMP_BYTES;
    frame.get_mut(end..).expect("frames are longer than a stamp").fill(0);
    frame
}

/// The Internet checksum (RFC 1071).
fn checksum(header: &[u8]) -> u16 {
    let words = header.as_chunks::<2>().0;
    let sum: u32 = words.iter().map(|&word| u32::from(u16::from_be_bytes(word))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !u16::try_from((folded & 0xffff) + (folded >> 16)).expect("folded twice")
}

impl Sizes {
    fn draw(self, random: &mut Random) -> usize {
        match self {
            Self::Fixed(len) => len,
            Self::Imix => match random.next() % 16 {
                0..7 => 64,
                7..11 => 576,
                _ => 1514,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_has_its_flows_in_both_directions_and_its_mean_length() {
        let load = Load::made(Sizes::Imix, 500).unwrap();
        let mean = load.bytes / load.round();
        assert!((600..690).contains(&mean), "{mean}");
        // Half of the flows are TCP, which short frames do not belong to.
        assert!((700..=1000).contains(&load.flow_count()), "{}", load.flow_count());
        let protocols: std::collections::BTreeSet<_> =
            load.known.keys().map(|tuple| tuple.proto).collect();
        assert_eq!(protocols.len(), 2);
    }

    #[test]
    fn frames_have_the_length_asked_for_and_a_right_header() {
        for len in [60, 64, 512, 1514, 9014] {
            let load = Load::made(Sizes::Fixed(len), 10).unwrap();
            for frame in &load.frames {
                assert_eq!((frame.len(), checksum(&frame[14..34])), (len, 0));
                assert_eq!(frame[len - STAMP_BYTES..], [0; STAMP_BYTES]);
            }
        }
        for (sizes, flows) in [(Sizes::Fixed(59), 10), (Sizes::Fixed(9015), 10), (Sizes::Imix, 1)] {
            assert!(Load::made(sizes, flows).is_err());
        }
    }

    #[test]
    fn a_packet_is_the_frame_of_its_place_in_the_round_with_its_number() {
        let load = Load::made(Sizes::Fixed(64), 10).unwrap();
        let mut frame = Vec::new();
        let number = 3 * load.round() + 7;
        load.packet(5, number, &mut frame);
        assert_eq!(wire::stamped(&frame, 5), Some(number));
        assert_eq!(frame[..48], load.frames[7][..48]);
    }

    #[test]
    fn frames_too_long_for_the_interface_are_left_out() {
        let load = Load::made(Sizes::Imix, 10).unwrap();
        let all = load.round();
        let load = load.fit(FrameLimits { mtu: 600 }).unwrap();
        assert_eq!((load.round() + load.left_out, load.longest()), (all, 576));
        assert_eq!(load.fit(FrameLimits { mtu: 40 }).unwrap_err(), LoadError::Empty);
    }
}
