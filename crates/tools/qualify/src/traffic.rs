//! From bytes a second on disks to bits a second of traffic, and back.

use core::time::Duration;

use capture::{Next, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::number::{real, whole};

/// What a packet costs on the disk beside its bytes, and what they are padded to: the Enhanced
/// Packet Block around them (docs/format.md).
const PACKET_BYTES: u64 = 32;
const PAD: u64 = 4;
/// What a frame takes on the link beside its bytes: preamble 8, check sequence 4, gap 12
/// (IEEE 802.3).
const LINK_BYTES: u64 = 24;
/// Bytes on the disk for each byte of packets: the head of a full piece (4 KiB of 2 MiB), and an
/// index of 1 % (docs/benchmarks.md).
const HEAD_AND_INDEX: f64 = 1.0 + 1.0 / 512.0 + 0.01;
/// How long a source of packets is waited for.
const WAIT: Duration = Duration::from_millis(50);

/// Frames as they come on a link: how long, and what that costs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Mix {
    /// What it is called.
    pub name: String,
    /// Frames, their bytes without check sequence, and what they take on the disk with padding.
    pub frames: u64,
    /// Bytes of all of them.
    pub frame_bytes: u64,
    /// Bytes of all of them on the disk, heads and index left out.
    pub packet_bytes: u64,
}

impl Mix {
    /// A mix of frames of these lengths, each so often.
    pub fn of_lengths(name: &str, lengths: &[(u64, u64)]) -> Self {
        let mut mix = Self { name: name.to_owned(), frames: 0, frame_bytes: 0, packet_bytes: 0 };
        for &(len, count) in lengths {
            mix.add(len, count);
        }
        mix
    }

    /// A name of the table in docs/qualification.md, or the length of every frame.
    pub fn named(name: &str) -> Option<Self> {
        let lengths: &[(u64, u64)] = match name {
            // As `prove` and `replay` have it.
            "imix" => &[(64, 7), (576, 4), (1514, 5)],
            "short" => &[(64, 1)],
            "long" => &[(1514, 1)],
            _ => {
                let len = name.parse().ok().filter(|len| (14..=65_535).contains(len))?;
                return Some(Self::of_lengths(name, &[(len, 1)]));
            }
        };
        Some(Self::of_lengths(name, lengths))
    }

    /// The frames of a capture, as long as they were on the link. `None` of an empty one.
    pub fn measured(name: &str, source: &mut dyn Source) -> Result<Option<Self>, capture::Error> {
        let mut mix = Self::of_lengths(name, &[]);
        loop {
            match source.next_batch(WAIT)? {
                Next::Packets(batch) => {
                    batch.into_iter().for_each(|packet| mix.add(u64::from(packet.original_len), 1));
                }
                Next::Block(_) | Next::Idle => {}
                Next::End => return Ok((mix.frames > 0).then_some(mix)),
            }
        }
    }

    fn add(&mut self, len: u64, count: u64) {
        self.frames += count;
        self.frame_bytes += len * count;
        self.packet_bytes += (len.next_multiple_of(PAD) + PACKET_BYTES) * count;
    }

    /// Bytes of the mean frame, without check sequence.
    pub fn mean_frame_bytes(&self) -> u64 {
        self.frame_bytes / self.frames.max(1)
    }

    /// Bits on the link, preambles, check sequences and gaps included, for each byte on the disk.
    fn bits_per_byte(&self) -> f64 {
        let link = self.frame_bytes + LINK_BYTES * self.frames;
        real(link) * 8.0 / (real(self.packet_bytes.max(1)) * HEAD_AND_INDEX)
    }

    /// Bits a second on the link that so many bytes a second on the disk carry.
    pub fn bits_of(&self, bytes_per_s: u64) -> u64 {
        whole(real(bytes_per_s) * self.bits_per_byte())
    }

    /// Bytes a second on the disk that so many bits a second on the link need.
    pub fn bytes_of(&self, bits_per_s: u64) -> u64 {
        whole(real(bits_per_s) / self.bits_per_byte())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, needed: u64) {
        let mix = Mix::named(name).unwrap();
        let found = mix.bytes_of(10_000_000_000);
        assert!(found.abs_diff(needed) < needed / 1000, "{name}: {found}");
        assert!(mix.bits_of(found).abs_diff(10_000_000_000) < 100);
    }

    #[test]
    fn ten_gigabit_need_more_than_their_bytes_where_frames_are_short() {
        // 1.25 GB/s x (L + 32) / (L + 24) x 1.012.
        check("60", 1_385_428_000);
        check("short", 1_379_943_000);
        check("long", 1_273_200_000);
        check("640", 1_280_040_000);
    }

    #[test]
    fn names_are_those_of_the_table_or_a_length() {
        assert_eq!(Mix::named("imix").unwrap().mean_frame_bytes(), 645);
        for name in ["", "13", "65536", "imx", "-1", "1.5"] {
            assert_eq!(Mix::named(name), None, "{name}");
        }
    }
}
