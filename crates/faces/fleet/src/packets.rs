//! Packets of many sensors as one pcapng file (docs/format.md, pcapng).
//!
//! A [`Splitter`] takes the bytes of one sensor as they come and gives blocks, each with its place
//! in time; [`Merged`] writes those of all into one section. A packet's block stays as it is, but
//! for the number of its interface; interfaces have their sensor's name before their own. A
//! sensor's statistics are left out: what is missing is said once, at the end.

use std::io::{self, Write};

use extract::{Hasher, Hashes};
use format::pcapng::{
    Block as Pcapng, BlockError, BlockHeader, ByteOrder, OptionCode, OptionScope, Resolution, View,
    normalize_options_where, put_comment, put_interface_description, put_interface_statistics,
    put_option, put_own_section_header,
};
use units::number::to_u64;
use wire::LinkType;

use crate::part::Part;
use crate::ranked::Ranked;

/// Longest block: a packet has its place in a piece, which has 2 MiB at most.
const BLOCK_BYTES_MAX: usize = 4 << 20;
/// A sensor has so many interfaces at most.
const INTERFACES_MAX: usize = 4096;
/// What is needed of a block to know its length; a section's has its byte order there, too.
const HEADER_BYTES: usize = 12;
/// Where an Enhanced Packet Block has its interface's number.
const INTERFACE_AT: usize = 8;
/// More than any name of an interface has; a sensor may say any.
const NAME_BYTES_MAX: usize = 1 << 10;
/// Bytes gathered before they are hashed and written.
const BUFFER_BYTES: usize = 256 << 10;

/// Bytes that are not the packets of a sensor.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoPcapng {
    /// Not a block.
    #[error("its pcapng cannot be read: {0}")]
    Block(BlockError),
    /// Longer than any of ours.
    #[error("its pcapng has a block of {0} bytes")]
    TooLong(usize),
    /// A packet of no interface, or without a time, or in another byte order.
    #[error("its pcapng has {0}")]
    Unusual(&'static str),
    /// It ends within a block.
    #[error("its pcapng ends within a block")]
    CutOff,
}

/// What a sensor's pcapng has.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Content {
    /// A further interface: options without its name.
    Interface { link_type: LinkType, snaplen: u32, name: Option<String>, options: Vec<u8> },
    /// A packet of the sensor's interface with this number.
    Packet { interface: usize, block: Vec<u8> },
    /// Secrets or names, for what follows.
    Beside(Vec<u8>),
}

/// A block with its place in time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// Time of its packet; of the latest packet before it, where that is later or it is none.
    at_ns: i64,
    content: Content,
}

impl Block {
    /// It is a packet.
    pub fn is_packet(&self) -> bool {
        matches!(self.content, Content::Packet { .. })
    }
}

impl Ranked for Block {
    type Key = i64;

    fn key(&self) -> i64 {
        self.at_ns
    }

    fn bytes(&self) -> usize {
        let inner = match &self.content {
            Content::Interface { options, .. } => options.capacity(),
            Content::Packet { block, .. } | Content::Beside(block) => block.capacity(),
        };
        size_of::<Self>() + size_of::<i64>() + inner
    }
}

/// Cuts the bytes of one sensor into blocks.
#[derive(Debug)]
pub struct Splitter {
    buffer: Vec<u8>,
    interfaces: Vec<Resolution>,
    latest_ns: i64,
    has_begun: bool,
}

impl Default for Splitter {
    fn default() -> Self {
        let (buffer, interfaces) = (Vec::new(), Vec::new());
        Self { buffer, interfaces, latest_ns: i64::MIN, has_begun: false }
    }
}

impl Splitter {
    /// Takes the next bytes; gives the blocks that are whole.
    ///
    /// # Errors
    /// When they are none: what follows cannot be read either.
    pub fn take<E: From<NoPcapng>>(
        &mut self,
        bytes: &[u8],
        give: &mut dyn FnMut(Block) -> Result<(), E>,
    ) -> Result<(), E> {
        self.buffer.extend_from_slice(bytes);
        let mut buffer = core::mem::take(&mut self.buffer);
        let mut begin = 0;
        while let Some(rest) = buffer.get(begin..).filter(|rest| rest.len() >= HEADER_BYTES) {
            let header = BlockHeader::read(rest, ByteOrder::Little).map_err(NoPcapng::Block)?;
            if header.size() > BLOCK_BYTES_MAX {
                return Err(NoPcapng::TooLong(header.size()).into());
            }
            let Some(whole) = rest.get(..header.size()) else { break };
            let (block, verdict) = header.split(whole).map_err(NoPcapng::Block)?;
            verdict.map_err(NoPcapng::Block)?;
            if let Some(content) = self.content(&block, whole)? {
                give(Block { at_ns: self.latest_ns, content })?;
            }
            begin += header.size();
        }
        buffer.drain(..begin);
        self.buffer = buffer;
        Ok(())
    }

    /// The end.
    ///
    /// # Errors
    /// When it is within a block.
    pub fn finish(&self) -> Result<(), NoPcapng> {
        if self.buffer.is_empty() && self.has_begun { Ok(()) } else { Err(NoPcapng::CutOff) }
    }

    fn content(&mut self, block: &Pcapng<'_>, whole: &[u8]) -> Result<Option<Content>, NoPcapng> {
        if block.order != ByteOrder::Little {
            return Err(NoPcapng::Unusual("another byte order than ours"));
        }
        let view = block.view().map_err(NoPcapng::Block)?;
        if !self.has_begun && !matches!(view, View::SectionHeader(_)) {
            return Err(NoPcapng::Unusual("no section at its beginning"));
        }
        Ok(match view {
            View::SectionHeader(_) if self.has_begun => {
                return Err(NoPcapng::Unusual("a second section"));
            }
            View::SectionHeader(_) => {
                self.has_begun = true;
                None
            }
            View::InterfaceDescription(description) => {
                if self.interfaces.len() >= INTERFACES_MAX {
                    return Err(NoPcapng::Unusual("too many interfaces"));
                }
                self.interfaces.push(description.resolution());
                let name = description.options.find_value(OptionCode::INTERFACE_NAME);
                let name = name.map(|name| String::from_utf8_lossy(name).into_owned());
                let (link_type, snaplen) = (description.link_type, description.snaplen);
                let mut options = Vec::new();
                normalize_options_where(
                    OptionScope::Interface,
                    description.options,
                    &mut options,
                    |code| code != OptionCode::INTERFACE_NAME,
                );
                Some(Content::Interface { link_type, snaplen, name, options })
            }
            View::EnhancedPacket(packet) => {
                let interface = usize::try_from(packet.interface).unwrap_or(usize::MAX);
                let Some(resolution) = self.interfaces.get(interface) else {
                    return Err(NoPcapng::Unusual("a packet of no interface"));
                };
                self.latest_ns = self.latest_ns.max(resolution.to_nanos(packet.time));
                Some(Content::Packet { interface, block: whole.to_vec() })
            }
            View::SimplePacket(_) | View::Packet(_) => {
                return Err(NoPcapng::Unusual("a packet without a time"));
            }
            View::NameResolution(_) | View::DecryptionSecrets(_) => {
                Some(Content::Beside(whole.to_vec()))
            }
            _ => None,
        })
    }
}

/// An interface of the file.
#[derive(Clone, Copy, Debug)]
struct Interface {
    sensor: usize,
    latest_ns: i64,
}

/// One file of all sensors' packets.
pub struct Merged<'a> {
    out: &'a mut dyn Write,
    names: &'a [String],
    buffer: Vec<u8>,
    hasher: Hasher,
    bytes: u64,
    packets: u64,
    interfaces: Vec<Interface>,
    /// Of each sensor's interfaces the numbers that they have in the file.
    numbers: Vec<Vec<u32>>,
}

impl core::fmt::Debug for Merged<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Merged").field("packets", &self.packets).finish_non_exhaustive()
    }
}

impl<'a> Merged<'a> {
    /// Begins the file of sensors with these names; it says in a comment what it is.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(out: &'a mut dyn Write, names: &'a [String], comment: &str) -> io::Result<Self> {
        let numbers = vec![Vec::new(); names.len()];
        let (buffer, interfaces, hasher) = (Vec::new(), Vec::new(), Hasher::default());
        let mut merged =
            Self { out, names, buffer, hasher, bytes: 0, packets: 0, interfaces, numbers };
        put_own_section_header(&mut merged.buffer, comment);
        merged.flush()?;
        Ok(merged)
    }

    /// Writes a block of a sensor.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn take(&mut self, sensor: usize, block: &Block) -> io::Result<()> {
        match &block.content {
            Content::Interface { link_type, snaplen, name, options } => {
                let numbers = self.numbers.get_mut(sensor).expect("each has its numbers");
                let sensor_name = self.names.get(sensor).map_or("", String::as_str);
                let own = name.clone().unwrap_or_else(|| format!("if{}", numbers.len()));
                let mut all = Vec::new();
                // With the sensor's before it, and what is no text replaced, it may be too long.
                let mut name = format!("{sensor_name}:{own}");
                name.truncate(name.floor_char_boundary(NAME_BYTES_MAX));
                put_option(&mut all, OptionCode::INTERFACE_NAME, name.as_bytes());
                all.extend_from_slice(options);
                put_interface_description(&mut self.buffer, *link_type, *snaplen, &all);
                let number = u32::try_from(self.interfaces.len()).expect("they are bounded");
                numbers.push(number);
                self.interfaces.push(Interface { sensor, latest_ns: 0 });
            }
            Content::Packet { interface, block: bytes } => {
                let numbers = self.numbers.get(sensor).expect("each has its numbers");
                let number = numbers.get(*interface).expect("a packet's interface came before it");
                let at = self.buffer.len() + INTERFACE_AT;
                self.buffer.extend_from_slice(bytes);
                let place = self.buffer.get_mut(at..at + 4).expect("a block has fixed fields");
                place.copy_from_slice(&number.to_le_bytes());
                let own = self.interfaces.get_mut(usize::try_from(*number).unwrap_or(usize::MAX));
                own.expect("it was numbered").latest_ns = block.at_ns;
                self.packets += 1;
            }
            Content::Beside(bytes) => self.buffer.extend_from_slice(bytes),
        }
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Packets so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Writes what is gathered.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.out.flush()?;
        self.hasher.update(&self.buffer);
        self.bytes += to_u64(self.buffer.len());
        self.buffer.clear();
        Ok(())
    }

    /// Ends it: the statement is a comment of the first interface, and that of its sensor one of
    /// each. Gives packets, bytes and hashes.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self, statement: &str, parts: &[Part]) -> io::Result<(u64, u64, Hashes)> {
        for (number, interface) in self.interfaces.iter().enumerate() {
            let mut options = Vec::new();
            if number == 0 {
                put_comment(&mut options, statement);
            } else if let Some(part) = parts.get(interface.sensor) {
                let name = part.condition(false).name();
                put_comment(&mut options, &format!("{}: {name}", part.sensor));
            }
            let number = u32::try_from(number).expect("they are bounded");
            let at = interface.latest_ns.cast_unsigned();
            put_interface_statistics(&mut self.buffer, number, at, &options);
        }
        self.flush()?;
        Ok((self.packets, self.bytes, self.hasher.finish()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use format::pcapng::{Blocks, EnhancedPacketFields, put_enhanced_packet};

    /// A sensor's file: interfaces with names, then packets (interface, time).
    fn file(interfaces: &[&str], packets: &[(u32, u64)]) -> Vec<u8> {
        let mut out = Vec::new();
        put_own_section_header(&mut out, "port 53");
        for name in interfaces {
            let mut options = Vec::new();
            put_option(&mut options, OptionCode::INTERFACE_NAME, name.as_bytes());
            put_option(&mut options, OptionCode::INTERFACE_RESOLUTION, &[9]);
            put_interface_description(&mut out, LinkType::ETHERNET, 96, &options);
        }
        for &(interface, time) in packets {
            let options = &[];
            let fields = EnhancedPacketFields { interface, time, original_len: 60, options };
            put_enhanced_packet(&mut out, &fields, [&time.to_le_bytes(), &[], &[]]);
        }
        put_interface_statistics(&mut out, 0, 0, &[]);
        out
    }

    fn split(bytes: &[u8], step: usize) -> Result<Vec<Block>, NoPcapng> {
        let (mut splitter, mut blocks) = (Splitter::default(), Vec::new());
        for part in bytes.chunks(step) {
            splitter.take::<NoPcapng>(part, &mut |block| {
                blocks.push(block);
                Ok(())
            })?;
        }
        splitter.finish().map(|()| blocks)
    }

    #[test]
    fn a_name_of_any_length_and_bytes_is_one() {
        let names = ["west".to_owned()];
        for name in [vec![b'x'; 65_534], vec![0xff; 65_535], "\u{e4}".repeat(2000).into_bytes()] {
            let mut bytes = Vec::new();
            put_own_section_header(&mut bytes, "");
            let mut options = Vec::new();
            put_option(&mut options, OptionCode::INTERFACE_NAME, &name);
            put_interface_description(&mut bytes, LinkType::ETHERNET, 96, &options);
            let mut out = Vec::new();
            let mut merged = Merged::begin(&mut out, &names, "").unwrap();
            for block in split(&bytes, bytes.len()).unwrap() {
                merged.take(0, &block).unwrap();
            }
            merged.finish("1 of 1", &[]).unwrap();
            let found = Blocks::new(&out, ByteOrder::Little).find_map(|block| {
                match block.unwrap().1.view().unwrap() {
                    View::InterfaceDescription(description) => {
                        let name = description.options.find_value(OptionCode::INTERFACE_NAME);
                        Some(String::from_utf8(name.unwrap().to_vec()).unwrap())
                    }
                    _ => None,
                }
            });
            let found = found.unwrap();
            assert!(found.starts_with("west:") && found.len() <= NAME_BYTES_MAX, "{found}");
        }
    }

    #[test]
    fn blocks_are_the_same_wherever_the_bytes_are_cut() {
        let bytes = file(&["eth0", "eth1"], &[(0, 5), (1, 7), (0, 6)]);
        let whole = split(&bytes, bytes.len()).unwrap();
        assert_eq!(whole.len(), 5);
        let keys: Vec<i64> = whole.iter().map(Ranked::key).collect();
        assert_eq!(keys, [i64::MIN, i64::MIN, 5, 7, 7], "one behind a later one keeps its place");
        for step in 1..100 {
            assert_eq!(split(&bytes, step).unwrap(), whole, "{step}");
        }
    }

    #[test]
    fn packets_keep_their_bytes_and_get_interfaces_with_their_sensors_names() {
        let names = ["west".to_owned(), "east".to_owned()];
        let (mut out, mut comments) = (Vec::new(), Vec::new());
        let mut merged = Merged::begin(&mut out, &names, "port 53").unwrap();
        for (sensor, packets) in [(0, [(0, 1), (1, 4)]), (1, [(0, 2), (0, 3)])] {
            let bytes = file(&["eth0", "eth1"], &packets);
            for block in split(&bytes, 64).unwrap() {
                merged.take(sensor, &block).unwrap();
            }
        }
        let (packets, bytes, hashes) = merged.finish("2 of 2", &[]).unwrap();
        assert_eq!((packets, bytes), (4, to_u64(out.len())));
        let mut again = Hasher::default();
        again.update(&out);
        assert_eq!(again.finish(), hashes);
        let (mut interfaces, mut seen) = (Vec::new(), Vec::new());
        for block in Blocks::new(&out, ByteOrder::Little) {
            match block.unwrap().1.view().unwrap() {
                View::InterfaceDescription(description) => {
                    let name = description.options.find_value(OptionCode::INTERFACE_NAME).unwrap();
                    assert_eq!(description.resolution(), Resolution::NANOSECONDS);
                    interfaces.push(String::from_utf8(name.to_vec()).unwrap());
                }
                View::EnhancedPacket(packet) => {
                    assert_eq!(packet.data, packet.time.to_le_bytes());
                    seen.push((packet.interface, packet.time));
                }
                View::InterfaceStatistics(statistics) => {
                    comments.extend(statistics.options.find_value(OptionCode::COMMENT));
                }
                _ => {}
            }
        }
        assert_eq!(interfaces, ["west:eth0", "west:eth1", "east:eth0", "east:eth1"]);
        assert_eq!(seen, [(0, 1), (1, 4), (2, 2), (2, 3)]);
        assert_eq!(comments.first(), Some(&&b"2 of 2"[..]));
    }

    #[test]
    fn bytes_that_are_no_pcapng_are_refused_and_memory_is_bounded() {
        let good = file(&["eth0"], &[(0, 5)]);
        assert!(split(&good, 9).is_ok());
        for cut in 0..good.len() {
            // An end behind a block is noticed by the manifest, and not here.
            let is_ok = split(&good[..cut], 7).is_ok();
            assert!(!is_ok || cut.is_multiple_of(4), "{cut}");
        }
        let error = |bytes: &[u8]| split(bytes, 1 << 16).unwrap_err().to_string();
        assert_eq!(error(&file(&[], &[(0, 5)])), "its pcapng has a packet of no interface");
        let twice = [&*good, &*good].concat();
        assert_eq!(error(&twice), "its pcapng has a second section");
        let section = usize::from(u16::from_le_bytes([good[4], good[5]]));
        assert_eq!(error(&good[section..]), "its pcapng has no section at its beginning");
        let mut long = good.clone();
        long.extend([6, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0]);
        assert_eq!(error(&long), "its pcapng has a block of 268435456 bytes");
        assert!(error(b"HTTP/1.1 200 OK\r\n\r\n").starts_with("its pcapng cannot be read"));
    }
}
