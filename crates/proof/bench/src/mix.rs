//! A synthetic mix of traffic as a pcap file: the same bytes for the same numbers, on any machine.
//!
//! IMIX frame sizes (7 x 64, 4 x 576, 5 x 1514, mean 645 bytes), 4 of 5 flows TCP, 7 of 10 packets
//! to a few popular flows (Pareto, 0.6) and the others to any flow, either direction as likely, one
//! packet in 1 us on average. The payload is random, the same in every packet. Sequence numbers
//! are the packets' own, so that nearly every TCP segment leaves a hole behind it. No packet opens
//! or closes a connection, so sessions end by timeout or with the file, and no names are found:
//! harder on packet and row rates than real traffic, and without the cost of names.

use std::path::Path;

use anyhow::Result;
use units::Random;
use units::number::{floor, to_u64};

use crate::chance::{Chance as _, bits16};
use crate::conversation::checksum;
use crate::pcap_file::PcapFile;
use crate::traffic;

/// How much of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::Args)]
pub(crate) struct Amount {
    /// Packets of the mix
    #[arg(long, default_value_t = 1_500_000)]
    pub(crate) packets: u32,
    /// Flows of the mix
    #[arg(long, default_value_t = 100_000)]
    pub(crate) flows: u32,
    /// Whole conversations, with handshakes and names, in place of the mix
    #[arg(long)]
    pub(crate) traffic: bool,
}

const SIZES: [(u64, usize); 3] = [(7, 64), (4, 576), (5, 1514)];
const SIZE_WEIGHTS: u64 = 16;
const PORTS: [u16; 7] = [80, 443, 443, 443, 53, 22, 8080];
const ETHERNET: [u8; 14] =
    [0, 0x11, 0x22, 0x33, 0x44, 0x55, 0, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0x08, 0];
const IPV4_BYTES: usize = 20;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// One conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    orig: u32,
    resp: u32,
    orig_port: u16,
    resp_port: u16,
    proto: u8,
}

impl Flow {
    pub(crate) fn random(random: &mut Random) -> Self {
        let host = u32::try_from(random.below(1 << 22)).expect("below 2^22");
        let port = u16::try_from(random.below(64_512)).expect("below 2^16");
        let service = usize::try_from(random.below(7)).expect("below 7");
        Self {
            orig: 0x0a00_0000 + host,
            resp: 0xc0a8_0000 + u32::from(bits16(random)),
            orig_port: 1024 + port,
            resp_port: *PORTS.get(service).expect("there are 7"),
            proto: if random.below(5) < 4 { TCP } else { UDP },
        }
    }

    pub(crate) fn reversed(self) -> Self {
        let Self { orig, resp, orig_port, resp_port, proto } = self;
        Self { orig: resp, resp: orig, orig_port: resp_port, resp_port: orig_port, proto }
    }

    /// Appends one packet of `len` bytes: headers, then as much of `payload` as there is space for.
    /// `tcp` is its sequence number and its acknowledgement.
    pub(crate) fn packet(&self, tcp: [u32; 2], len: usize, payload: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        let ip_len = u16::try_from(len - ETHERNET.len()).expect("packets are short");
        out.extend(ETHERNET);
        let [tcp_seq, tcp_ack] = tcp;
        out.extend(self.ipv4(tcp_seq, ip_len));
        out.extend(self.orig_port.to_be_bytes());
        out.extend(self.resp_port.to_be_bytes());
        if self.proto == TCP {
            out.extend(tcp_seq.to_be_bytes());
            out.extend(tcp_ack.to_be_bytes());
            // 20 bytes of header, ACK, window 8192, no checksum, no urgent data.
            out.extend([0x50, 0x10, 0x20, 0, 0, 0, 0, 0]);
        } else {
            let udp_len = ip_len - u16::try_from(IPV4_BYTES).expect("20 fits");
            out.extend(udp_len.to_be_bytes());
            out.extend([0, 0]);
        }
        let room = len - (out.len() - start);
        out.extend(payload.iter().take(room));
    }

    fn ipv4(&self, number: u32, ip_len: u16) -> [u8; IPV4_BYTES] {
        let [_, _, id @ ..] = number.to_be_bytes();
        let header = |sum: u16| {
            let mut header = [0; IPV4_BYTES];
            let words = [[0x45, 0], ip_len.to_be_bytes(), id, [0, 0], [64, self.proto]];
            let ends = [self.orig.to_be_bytes(), self.resp.to_be_bytes()];
            let bytes = [words.as_flattened(), &sum.to_be_bytes(), ends.as_flattened()].concat();
            header.copy_from_slice(&bytes);
            header
        };
        header(checksum(&header(0)))
    }
}

/// The flows and the choice among them.
#[derive(Debug)]
struct Mix {
    random: Random,
    flows: Vec<Flow>,
    payload: Vec<u8>,
    time_us: u64,
}

impl Mix {
    fn new(flows: u32) -> Self {
        let mut random = Random::new(1);
        let flows = (0..flows).map(|_| Flow::random(&mut random)).collect();
        let payload = (0..200).flat_map(|_| random.next().to_le_bytes()).collect();
        Self { random, flows, payload, time_us: 0 }
    }

    fn flow(&mut self) -> Flow {
        let last = self.flows.len() - 1;
        let popular = self.random.below(10) < 7;
        let place = if popular {
            pareto_rank(self.random.unit(), last)
        } else {
            usize::try_from(self.random.below(to_u64(last + 1))).expect("few flows")
        };
        let flow = *self.flows.get(place).expect("a rank is at most the last");
        if self.random.below(2) == 0 { flow } else { flow.reversed() }
    }

    fn size(&mut self) -> usize {
        let mut drawn = self.random.below(SIZE_WEIGHTS);
        for (weight, size) in SIZES {
            if drawn < weight {
                return size;
            }
            drawn -= weight;
        }
        unreachable!("the weights add up")
    }

    /// One frame, and when it comes.
    fn frame(&mut self, number: u32, out: &mut Vec<u8>) -> u64 {
        let flow = self.flow();
        let len = self.size();
        self.time_us += self.random.below(3);
        flow.packet([number; 2], len, &self.payload, out);
        self.time_us
    }
}

/// Pareto with exponent 0.6, as a rank from 0: the inverse of its distribution at `unit`.
fn pareto_rank(unit: f64, last: usize) -> usize {
    let value = unit.powf(-1.0 / 0.6);
    // Most draws are small; the few beyond the last flow go to it.
    let rank = floor(value) - 1;
    rank.min(last)
}

/// Writes the mix, or whole conversations, to `path` and returns the file's bytes.
pub(crate) fn write(path: &Path, amount: Amount) -> Result<u64> {
    anyhow::ensure!(amount.flows > 0 && amount.packets > 0, "a mix has packets and flows");
    if amount.traffic {
        return traffic::write(path, amount.packets, amount.flows);
    }
    let (mut file, mut mix, mut frame) =
        (PcapFile::create(path)?, Mix::new(amount.flows), Vec::new());
    for number in 0..amount.packets {
        frame.clear();
        let time_us = mix.frame(number, &mut frame);
        file.record(time_us, &frame)?;
    }
    file.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_a_header_is_right() {
        // The example of RFC 1071's kind that Wikipedia computes by hand: 0xb861.
        let header = [
            0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0,
            0xc7,
        ];
        assert_eq!(checksum(&header), 0xb861);
    }

    #[test]
    fn a_mix_is_the_same_every_time_and_readable() {
        let directory = tempfile::tempdir().unwrap();
        let amount = Amount { packets: 5000, flows: 300, traffic: false };
        let [one, two] = ["one", "two"].map(|name| directory.path().join(name));
        let bytes = write(&one, amount).unwrap();
        write(&two, amount).unwrap();
        let file = std::fs::read(&one).unwrap();
        assert_eq!(
            (u64::try_from(file.len()).unwrap(), &file),
            (bytes, &std::fs::read(&two).unwrap())
        );
        let packets = crate::packets::Packets::read(&one).unwrap();
        assert_eq!(packets.count(), 5000);
        let mean = (bytes - crate::pcap_file::FILE_HEADER_BYTES) / 5000 - 16;
        assert!((600..690).contains(&mean), "{mean}");
    }

    #[test]
    fn ranks_stay_among_the_flows_and_small_ones_are_popular() {
        assert_eq!((pareto_rank(1.0, 9), pareto_rank(1e-9, 9)), (0, 9));
        let mut random = Random::new(7);
        let first = (0..1000).filter(|_| pareto_rank(random.unit(), 99_999) == 0).count();
        // P(rank 0) = 1 - 2^-0.6 = 0.34.
        assert!((290..390).contains(&first), "{first}");
    }
}
