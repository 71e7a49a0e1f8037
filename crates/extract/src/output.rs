//! Writing pcapng or pcap, hashed on the way.
//!
//! Interfaces are numbered as they come: *lanes*. A pcapng output describes each in front of its
//! first packet; its packets are the blocks of the volume with another interface number. A reader
//! that goes away is an orderly end.

use std::io::{self, ErrorKind, Write};

use format::pcapng::{
    Blocks, ByteOrder, OptionCode, OptionScope, View, normalize_options_where,
    put_interface_description, put_interface_statistics, put_option, put_section_header,
};
use format::piece::{InterfaceInPiece, StoredPacket};
use units::Timestamp;
use wire::LinkType;

use crate::Error;
use crate::hashing::{Hashes, Hashing};

/// Bytes gathered before they are hashed and written.
const BUFFER_BYTES: usize = 256 << 10;
/// pcap with nanoseconds (draft-ietf-opsawg-pcap, Magic Number).
const PCAP_MAGIC_NS: u32 = 0xa1b2_3c4d;
/// What libpcap writes for "all of it".
const PCAP_SNAPLEN: u32 = 262_144;
/// Longest comment written: an option's value is shorter than 64 KiB.
const COMMENT_BYTES: usize = 60_000;
/// Where an Enhanced Packet Block has its interface's number.
const INTERFACE_AT: usize = 8;

/// Opens the output for packets of one link type.
pub type OpenOutput<'a> = dyn FnMut(LinkType) -> io::Result<Box<dyn Write>> + 'a;

/// Where packets go, and in which form.
pub enum Target<'a> {
    /// One pcapng section.
    Pcapng(&'a mut dyn Write),
    /// One pcap file with nanoseconds; a second link type is an error.
    Pcap(&'a mut dyn Write),
    /// A pcap file for each link type, opened when its first packet comes.
    PcapByLinkType(&'a mut OpenOutput<'a>),
}

impl core::fmt::Debug for Target<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Pcapng(_) => "Pcapng",
            Self::Pcap(_) => "Pcap",
            Self::PcapByLinkType(_) => "PcapByLinkType",
        })
    }
}

/// A file as it was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutputSummary {
    /// Link type of a pcap file; a pcapng file may have several.
    pub link_type: Option<LinkType>,
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// SHA-256 of the bytes.
    pub sha256: [u8; 32],
    /// BLAKE3 of the bytes.
    pub blake3: [u8; 32],
}

/// One file.
struct Stream<'a> {
    to: Box<dyn Write + 'a>,
    link_type: Option<LinkType>,
    buffer: Vec<u8>,
    hashing: Hashing,
    packets: u64,
    bytes: u64,
    /// The reader of a pipe went away.
    gone: bool,
}

impl<'a> Stream<'a> {
    fn open(to: Box<dyn Write + 'a>, link_type: Option<LinkType>) -> Result<Self, Error> {
        let hashing = Hashing::start()?;
        let buffer = Vec::new();
        Ok(Self { to, link_type, buffer, hashing, packets: 0, bytes: 0, gone: false })
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        if !self.gone {
            match self.to.write_all(&self.buffer).and_then(|()| self.to.flush()) {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => self.gone = true,
                other => other.map_err(Error::Output)?,
            }
            self.bytes += u64::try_from(self.buffer.len()).expect("lengths fit 64 bits");
            self.buffer = self.hashing.exchange(core::mem::take(&mut self.buffer));
        }
        self.buffer.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<OutputSummary, Error> {
        self.flush()?;
        let Hashes { sha256, blake3 } = self.hashing.finish();
        Ok(OutputSummary {
            link_type: self.link_type,
            packets: self.packets,
            bytes: self.bytes,
            sha256,
            blake3,
        })
    }
}

enum Form<'a> {
    Pcapng,
    Pcap,
    PcapByLinkType(&'a mut OpenOutput<'a>),
}

/// The outputs of one extract.
pub(crate) struct Outputs<'a> {
    form: Form<'a>,
    streams: Vec<Stream<'a>>,
    /// The stream and the latest packet of each lane.
    lanes: Vec<(usize, Timestamp)>,
}

impl<'a> Outputs<'a> {
    /// Begins the output; a pcapng section says in a comment what it is.
    pub(crate) fn begin(target: Target<'a>, comment: &str) -> Result<Self, Error> {
        let (form, stream) = match target {
            Target::Pcapng(to) => (Form::Pcapng, Some(Stream::open(Box::new(to), None)?)),
            Target::Pcap(to) => (Form::Pcap, Some(Stream::open(Box::new(to), None)?)),
            Target::PcapByLinkType(open) => (Form::PcapByLinkType(open), None),
        };
        let mut outputs = Self { form, streams: stream.into_iter().collect(), lanes: Vec::new() };
        if let (Form::Pcapng, Some(stream)) = (&outputs.form, outputs.streams.first_mut()) {
            let mut options = Vec::new();
            put_option(&mut options, OptionCode::COMMENT, cut(comment).as_bytes());
            put_option(&mut options, OptionCode::SECTION_USER_APPLICATION, b"wirespool");
            let mut header = Vec::new();
            put_section_header(&mut header, &options);
            stream.put(&header)?;
            stream.flush()?;
        }
        Ok(outputs)
    }

    /// A further interface, described by `description` (see [`describe`]); its number is the next
    /// lane.
    pub(crate) fn add_lane(
        &mut self,
        link_type: LinkType,
        description: &[u8],
    ) -> Result<(), Error> {
        let known = self.streams.iter().position(|stream| stream.link_type == Some(link_type));
        let stream = match (&mut self.form, known) {
            (Form::Pcapng, _) => {
                self.streams.first_mut().expect("opened at the beginning").put(description)?;
                0
            }
            (_, Some(known)) => known,
            (Form::Pcap, None) => {
                let stream = self.streams.first_mut().expect("opened at the beginning");
                if let Some(first) = stream.link_type.replace(link_type) {
                    return Err(Error::LinkTypes { first, other: link_type });
                }
                stream.put(&pcap_header(link_type))?;
                0
            }
            (Form::PcapByLinkType(open), None) => {
                let to = open(link_type).map_err(Error::Output)?;
                let mut stream = Stream::open(to, Some(link_type))?;
                stream.put(&pcap_header(link_type))?;
                self.streams.push(stream);
                self.streams.len() - 1
            }
        };
        self.lanes.push((stream, Timestamp::MIN));
        Ok(())
    }

    /// The bytes of a packet of `lane` in this form, appended to `out`. `block` is the packet's in
    /// the volume.
    pub(crate) fn encode(
        &mut self,
        lane: usize,
        block: &[u8],
        packet: &StoredPacket<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let (_, latest) = self.lanes.get_mut(lane).expect("lanes are added before their packets");
        *latest = packet.timestamp.max(*latest);
        if matches!(self.form, Form::Pcapng) {
            let (before, number) = (out.len(), u32::try_from(lane).expect("few interfaces"));
            out.extend_from_slice(block);
            let at = before + INTERFACE_AT;
            let place = out.get_mut(at..at + 4).expect("a block has fixed fields");
            place.copy_from_slice(&number.to_le_bytes());
            return Ok(());
        }
        let outside = Error::PcapTime(packet.timestamp);
        let seconds = u32::try_from(packet.timestamp.unix_seconds()).map_err(|_| outside)?;
        let nanos = u32::try_from(packet.timestamp.subsecond_nanos()).expect("below a second");
        let captured = u32::try_from(packet.data.len()).expect("shorter than a piece");
        for field in [seconds, nanos, captured, packet.original_len] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(packet.data);
        Ok(())
    }

    /// Writes a packet as encoded.
    pub(crate) fn emit(&mut self, lane: usize, encoded: &[u8]) -> Result<(), Error> {
        let &(stream, _) = self.lanes.get(lane).expect("lanes are added before their packets");
        let stream = self.streams.get_mut(stream).expect("a lane has its stream");
        stream.packets += 1;
        stream.put(encoded)
    }

    /// Writes a name resolution or secrets block; pcap has no place for it.
    pub(crate) fn block(&mut self, block: &[u8]) -> Result<(), Error> {
        match (&self.form, self.streams.first_mut()) {
            (Form::Pcapng, Some(stream)) => stream.put(block),
            _ => Ok(()),
        }
    }

    /// Every reader of the outputs went away.
    pub(crate) fn are_gone(&self) -> bool {
        !self.streams.is_empty() && self.streams.iter().all(|stream| stream.gone)
    }

    /// Ends the outputs; in pcapng each interface ends with `statement` as a comment.
    pub(crate) fn finish(mut self, statement: &str) -> Result<Vec<OutputSummary>, Error> {
        if let (Form::Pcapng, Some(stream)) = (&self.form, self.streams.first_mut()) {
            for (lane, (_, latest)) in (0..).zip(&self.lanes) {
                let (mut options, mut block) = (Vec::new(), Vec::new());
                put_option(&mut options, OptionCode::COMMENT, cut(statement).as_bytes());
                put_interface_statistics(&mut block, lane, latest.0.cast_unsigned(), &options);
                stream.put(&block)?;
            }
        }
        if let (Form::Pcap, Some(stream)) = (&self.form, self.streams.first_mut())
            && stream.link_type.is_none()
        {
            stream.put(&pcap_header(LinkType::ETHERNET))?;
        }
        self.streams.into_iter().map(Stream::finish).collect()
    }
}

/// The Interface Description Block for an extract: the interface's own options and real snap
/// length. Options that must not be copied are left out, ours among them.
pub(crate) fn describe(interface: &InterfaceInPiece, body: &[u8]) -> Vec<u8> {
    let block = body.get(interface.block.clone()).unwrap_or_default();
    let mut options = Vec::new();
    if let Some(Ok((_, block))) = Blocks::new(block, ByteOrder::Little).next()
        && let Ok(View::InterfaceDescription(description)) = block.view()
    {
        let copied = |code| {
            code != OptionCode::CUSTOM_BYTES_NO_COPY && code != OptionCode::CUSTOM_TEXT_NO_COPY
        };
        normalize_options_where(OptionScope::Interface, description.options, &mut options, copied);
    }
    let mut out = Vec::new();
    put_interface_description(&mut out, interface.link_type, interface.snaplen, &options);
    out
}

fn pcap_header(link_type: LinkType) -> [u8; 24] {
    let mut header = [0; 24];
    let fields = [PCAP_MAGIC_NS, 0x0004_0002, 0, 0, PCAP_SNAPLEN, u32::from(link_type.0)];
    for (place, field) in header.as_chunks_mut().0.iter_mut().zip(fields) {
        *place = field.to_le_bytes();
    }
    header
}

fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(COMMENT_BYTES)).expect("cut at a boundary")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pcap_header_has_nanoseconds_version_2_4_and_the_link_type() {
        let header = pcap_header(LinkType::LINUX_SLL2);
        assert_eq!(header[..8], [0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0]);
        assert_eq!(header[16..], [0, 0, 4, 0, 0x14, 1, 0, 0]);
    }

    #[test]
    fn long_comments_are_cut_at_a_character() {
        let text = "\u{e9}".repeat(COMMENT_BYTES);
        assert!(cut(&text).len() <= COMMENT_BYTES && !cut(&text).is_empty());
    }

    #[test]
    fn a_second_link_type_is_an_error_that_names_both() {
        let mut file = Vec::new();
        let mut outputs = Outputs::begin(Target::Pcap(&mut file), "").unwrap();
        outputs.add_lane(LinkType::ETHERNET, &[]).unwrap();
        outputs.add_lane(LinkType::ETHERNET, &[]).unwrap();
        let error = outputs.add_lane(LinkType::RAW, &[]).unwrap_err().to_string();
        assert!(error.contains("EN10MB") && error.contains("RAW"), "{error}");
    }

    #[test]
    fn a_reader_that_goes_away_is_no_error() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut closed = Closed;
        let outputs = Outputs::begin(Target::Pcapng(&mut closed), "all").unwrap();
        assert!(outputs.are_gone());
        outputs.finish("complete").unwrap();
    }
}
