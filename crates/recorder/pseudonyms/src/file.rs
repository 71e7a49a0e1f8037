//! The way back for capture files as `extract` writes them: pcapng, or pcap with nanoseconds, in
//! little endian. Packets keep their lengths, so every other byte stays where it is.

use std::io::{self, Read, Write};

use wire::LinkType;

use crate::reveal::Reveal;

/// Most bytes of a block or packet.
const BLOCK_MAX: usize = 16 << 20;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
/// Where an Enhanced Packet Block has its interface, the captured length and the data.
const PACKET_AT: (usize, usize, usize) = (8, 20, 28);
const PCAP_NS: u32 = 0xa1b2_3c4d;
/// Bytes in front of the first packet of pcap, and of each packet.
const PCAP_HEADER: usize = 24;
const PCAP_PACKET: usize = 16;

/// Why a file cannot be given back its addresses.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// Neither of the two forms.
    #[error("it is no capture file that extract has written: pcapng, or pcap with nanoseconds")]
    Form,
    /// It ends within a packet, or one is longer than any.
    #[error("it is damaged at byte {0}")]
    Damaged(u64),
    /// A link type of which it is not known where the addresses are.
    #[error(transparent)]
    LinkType(#[from] anonymise::UnknownLinkType),
    /// Reading it.
    #[error("cannot read it: {0}")]
    Read(#[source] io::Error),
    /// Writing the other one.
    #[error("cannot write the output: {0}")]
    Write(#[source] io::Error),
}

/// A file that has its own addresses again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Revealed {
    /// Packets in it.
    pub packets: u64,
    /// Bytes of it.
    pub bytes: u64,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_le_bytes(*word))
}

fn length(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(word(bytes, at)?).ok()
}

/// The file on its way.
struct Way<'a> {
    from: &'a mut dyn Read,
    to: &'a mut dyn Write,
    /// The block or packet at hand.
    bytes: Vec<u8>,
    done: Revealed,
}

impl Way<'_> {
    /// Reads so many more bytes behind those at hand; false where the file ends before the first.
    fn more(&mut self, count: usize) -> Result<bool, FileError> {
        let begin = self.bytes.len();
        if count > BLOCK_MAX {
            return Err(FileError::Damaged(self.done.bytes));
        }
        self.bytes.resize(begin + count, 0);
        let mut filled = begin;
        while let Some(rest) = self.bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.from.read(rest) {
                Ok(0) if filled == 0 => return Ok(false),
                Ok(0) => return Err(FileError::Damaged(self.done.bytes)),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(FileError::Read(error)),
            }
        }
        Ok(true)
    }

    fn put(&mut self) -> Result<(), FileError> {
        self.to.write_all(&self.bytes).map_err(FileError::Write)?;
        self.done.bytes += units::number::to_u64(self.bytes.len());
        self.bytes.clear();
        Ok(())
    }
}

impl Reveal {
    /// Gives the packets of a file the addresses back that they had.
    ///
    /// # Errors
    /// When it is none, or damaged, or cannot be read or written.
    pub fn file(&mut self, from: &mut dyn Read, to: &mut dyn Write) -> Result<Revealed, FileError> {
        let mut way = Way { from, to, bytes: Vec::new(), done: Revealed::default() };
        way.more(4)?;
        match word(&way.bytes, 0) {
            Some(SECTION_HEADER) => self.pcapng(&mut way)?,
            Some(PCAP_NS) => self.pcap(&mut way)?,
            _ => return Err(FileError::Form),
        }
        way.to.flush().map_err(FileError::Write)?;
        Ok(way.done)
    }

    fn pcapng(&mut self, way: &mut Way<'_>) -> Result<(), FileError> {
        let mut links: Vec<LinkType> = Vec::new();
        let mut is_there = true;
        while is_there {
            way.more(4)?;
            let damaged = FileError::Damaged(way.done.bytes);
            let total = length(&way.bytes, 4).filter(|total| *total >= 12 && total % 4 == 0);
            let Some(total) = total else { return Err(damaged) };
            way.more(total - 8)?;
            match word(&way.bytes, 0) {
                Some(SECTION_HEADER) if word(&way.bytes, 8) == Some(BYTE_ORDER) => links.clear(),
                Some(SECTION_HEADER) => return Err(FileError::Form),
                Some(INTERFACE) => {
                    let link = way.bytes.get(8..).and_then(|rest| rest.first_chunk());
                    let link = link.map(|link| LinkType(u16::from_le_bytes(*link)));
                    links.push(link.ok_or(damaged)?);
                }
                Some(PACKET) => {
                    let (interface_at, length_at, data_at) = PACKET_AT;
                    let link = length(&way.bytes, interface_at).and_then(|it| links.get(it));
                    let len = length(&way.bytes, length_at);
                    let (Some(link), Some(len)) = (link, len) else { return Err(damaged) };
                    self.packet(way, *link, data_at..data_at.saturating_add(len))?;
                }
                _ => {}
            }
            way.put()?;
            is_there = way.more(4)?;
        }
        Ok(())
    }

    fn pcap(&mut self, way: &mut Way<'_>) -> Result<(), FileError> {
        way.more(PCAP_HEADER - 4)?;
        let link = word(&way.bytes, PCAP_HEADER - 4).and_then(|link| u16::try_from(link).ok());
        let link = LinkType(link.ok_or(FileError::Form)?);
        way.put()?;
        while way.more(PCAP_PACKET)? {
            let damaged = FileError::Damaged(way.done.bytes);
            let len = length(&way.bytes, 8).ok_or(damaged)?;
            way.more(len)?;
            self.packet(way, link, PCAP_PACKET..PCAP_PACKET + len)?;
            way.put()?;
        }
        Ok(())
    }

    fn packet(
        &mut self,
        way: &mut Way<'_>,
        link: LinkType,
        place: core::ops::Range<usize>,
    ) -> Result<(), FileError> {
        let damaged = FileError::Damaged(way.done.bytes);
        let Some(data) = way.bytes.get_mut(place) else { return Err(damaged) };
        data.copy_from_slice(self.back.packet(link, data)?);
        way.done.packets += 1;
        Ok(())
    }
}
