//! Writing pcapng or pcap, hashed on the way.
//!
//! Interfaces are numbered as they come: *inputs*. A pcapng output describes each in front of its
//! first packet; its packets are the blocks of the volume with another interface number. A reader
//! that goes away is an orderly end.

use std::io::{ErrorKind, Write};

use anonymise::Anonymiser;
use completeness::Disorder;
use evidence::{Hashes, Hashing, OutputSummary};
use format::pcapng::{
    Blocks, ByteOrder, EnhancedPacketFields, OptionCode, OptionScope, Options, View,
    normalize_options_where, put_comment, put_enhanced_packet, put_interface_description,
    put_interface_statistics, put_own_section_header,
};
use format::piece::{InterfaceInPiece, StoredPacket};
use units::Timestamp;
use units::number::to_u64;
use wire::{LinkType, made_header, network_layer};

use crate::error::Error;
use crate::target::{OpenOutput, OpenSession, SessionStart, Target};

/// Bytes gathered before they are hashed and written.
const BUFFER_BYTES: usize = 256 << 10;
/// Bytes gathered of all sessions together, where each has a file, before they are written.
const GATHERED_BYTES: usize = 64 << 20;
/// pcap with nanoseconds (draft-ietf-opsawg-pcap, Magic Number).
const PCAP_MAGIC_NS: u32 = 0xa1b2_3c4d;
/// What libpcap writes for "all of it".
const PCAP_SNAPLEN: u32 = 262_144;
/// Where an Enhanced Packet Block has its interface's number.
const INTERFACE_AT: usize = 8;

/// One file.
struct Stream<'a> {
    to: Box<dyn Write + 'a>,
    link_type: Option<LinkType>,
    buffer: Vec<u8>,
    hashing: Hashing,
    /// Interfaces so far.
    inputs: u32,
    packets: u64,
    bytes: u64,
    /// Latest packet.
    latest: Timestamp,
    /// The reader of a pipe went away.
    gone: bool,
}

impl<'a> Stream<'a> {
    fn open(to: Box<dyn Write + 'a>, link_type: Option<LinkType>) -> Result<Self, Error> {
        Ok(Self::new(to, link_type, Hashing::start().map_err(Error::Thread)?))
    }

    fn new(to: Box<dyn Write + 'a>, link_type: Option<LinkType>, hashing: Hashing) -> Self {
        let (buffer, latest) = (Vec::new(), Timestamp::MIN);
        let (inputs, packets, bytes, gone) = (0, 0, 0, false);
        Self { to, link_type, buffer, hashing, inputs, packets, bytes, latest, gone }
    }

    /// Begins a pcapng section, which says in a comment what it is.
    fn begin(&mut self, comment: &str) -> Result<(), Error> {
        let mut header = Vec::new();
        put_own_section_header(&mut header, comment);
        self.put(&header)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        if !self.gone {
            match self.to.write_all(&self.buffer).and_then(|()| self.to.flush()) {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => self.gone = true,
                other => other.map_err(Error::Write)?,
            }
            self.bytes += to_u64(self.buffer.len());
            self.buffer = self.hashing.exchange(core::mem::take(&mut self.buffer));
        }
        self.buffer.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<OutputSummary, Error> {
        self.flush()?;
        let Hashes { sha256, blake3 } = self.hashing.finish();
        Ok(OutputSummary {
            file: None,
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
    BySession(&'a mut OpenSession<'a>),
}

/// What an extract with other addresses says of itself: its query may name some.
const ANONYMISED: &str = "addresses are not those of the wire";
/// Options of an interface that hold no address.
const HARMLESS: [u16; 3] =
    [OptionCode::INTERFACE_NAME, OptionCode::INTERFACE_SPEED, OptionCode::INTERFACE_RESOLUTION];

/// Bytes in front of a packet of pcap: seconds, nanoseconds, captured and original length.
const PCAP_PACKET: usize = 16;

/// An interface in an output.
struct MergeInput {
    link_type: LinkType,
    /// Place of its output.
    stream: usize,
    /// Its number there.
    number: u32,
    latest: Timestamp,
}

/// A packet, and what it is given on its way out.
#[derive(Debug)]
pub struct Dressed<'p> {
    /// Its block in the volume.
    pub block: &'p [u8],
    /// The same, decoded.
    pub packet: &'p StoredPacket<'p>,
    /// A further comment; pcap has no place for it.
    pub comment: Option<&'p str>,
}

/// What outputs hold, and how much of it at most.
#[derive(Clone, Debug, Default)]
pub struct Contents<'a> {
    /// The query, which sections have as a comment; not where addresses are replaced.
    pub query: &'a str,
    /// Packets of all outputs together; what is beyond is left out.
    pub packets_max: Option<u64>,
    /// Bytes that they take.
    pub bytes_max: Option<u64>,
    /// Packets get other addresses.
    pub anonymiser: Option<Anonymiser>,
}

impl core::fmt::Debug for Outputs<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Outputs").field("packets", &self.packets).finish_non_exhaustive()
    }
}

/// The outputs of one extract.
pub struct Outputs<'a> {
    form: Form<'a>,
    streams: Vec<Stream<'a>>,
    packets_max: Option<u64>,
    bytes_max: Option<u64>,
    /// Packets handed out, and their bytes.
    packets: u64,
    bytes: u64,
    is_full: bool,
    /// Packets with a link layer made for them, and those for which none can be.
    rewritten_packets: u64,
    unfit_packets: u64,
    disorder: Disorder,
    /// What sections say of themselves.
    comment: String,
    anonymiser: Option<Anonymiser>,
    /// Bytes gathered of all sessions.
    gathered: usize,
    inputs: Vec<MergeInput>,
}

impl<'a> Outputs<'a> {
    /// Begins the output; a pcapng section says in a comment what it is.
    pub fn begin(target: Target<'a>, contents: Contents<'_>) -> Result<Self, Error> {
        let (form, stream) = match target {
            Target::Pcapng(to) => (Form::Pcapng, Some(Stream::open(Box::new(to), None)?)),
            Target::Pcap(to) => (Form::Pcap, Some(Stream::open(Box::new(to), None)?)),
            Target::PcapByLinkType(open) => (Form::PcapByLinkType(open), None),
            Target::BySession(open) => (Form::BySession(open), None),
        };
        let mut outputs = Self {
            form,
            streams: stream.into_iter().collect(),
            packets_max: contents.packets_max,
            bytes_max: contents.bytes_max,
            packets: 0,
            bytes: 0,
            is_full: false,
            rewritten_packets: 0,
            unfit_packets: 0,
            disorder: Disorder::default(),
            comment: match contents.anonymiser {
                Some(_) => ANONYMISED.to_owned(),
                None => contents.query.to_owned(),
            },
            anonymiser: contents.anonymiser,
            gathered: 0,
            inputs: Vec::new(),
        };
        if let (Form::Pcapng, Some(stream)) = (&outputs.form, outputs.streams.first_mut()) {
            stream.begin(&outputs.comment)?;
            stream.flush()?;
        }
        Ok(outputs)
    }

    /// Nothing that goes out may hold an address of the wire.
    pub fn are_anonymous(&self) -> bool {
        self.anonymiser.is_some()
    }

    /// Every session has an output of its own.
    pub fn are_by_session(&self) -> bool {
        matches!(self.form, Form::BySession(_))
    }

    /// The output of a further session; gives its number.
    pub fn add_session(&mut self, session: &SessionStart) -> Result<usize, Error> {
        let Form::BySession(open) = &mut self.form else {
            unreachable!("sessions are given only where each has an output")
        };
        let mut session = session.clone();
        if let Some(anonymiser) = &mut self.anonymiser {
            anonymiser.tuple(&mut session.tuple);
        }
        let to = open(&session).map_err(Error::Write)?;
        let mut stream = Stream::new(to, None, Hashing::here());
        stream.begin(&format!("session {}: {}", session.id, self.comment))?;
        self.streams.push(stream);
        Ok(self.streams.len() - 1)
    }

    /// A further interface, described by `description` (see [`describe`]), in the output of a
    /// session where each has its own; its number is the next input.
    pub fn add_input(
        &mut self,
        link_type: LinkType,
        description: &[u8],
        session: Option<usize>,
    ) -> Result<(), Error> {
        let stream = match (&mut self.form, session) {
            (Form::Pcapng | Form::Pcap, _) | (Form::BySession(_), None) => 0,
            (Form::BySession(_), Some(session)) => session,
            (Form::PcapByLinkType(open), _) => {
                let known =
                    self.streams.iter().position(|stream| stream.link_type == Some(link_type));
                if known.is_none() {
                    let to = open(link_type).map_err(Error::Write)?;
                    let mut stream = Stream::open(to, Some(link_type))?;
                    stream.put(&pcap_header(link_type))?;
                    self.streams.push(stream);
                }
                known.unwrap_or(self.streams.len() - 1)
            }
        };
        if matches!(self.form, Form::Pcapng | Form::BySession(_)) {
            self.streams.get_mut(stream).expect("it was opened").put(description)?;
        }
        let of_stream = self.streams.get_mut(stream).expect("it was opened");
        let number = of_stream.inputs;
        of_stream.inputs += 1;
        self.inputs.push(MergeInput { link_type, stream, number, latest: Timestamp::MIN });
        Ok(())
    }

    /// The bytes of a packet of `input` in this form, appended to `out`.
    pub fn encode(
        &mut self,
        input: usize,
        dressed: &Dressed<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let &Dressed { block, packet, comment } = dressed;
        let input = self.inputs.get_mut(input).expect("inputs are added before their packets");
        input.latest = packet.timestamp.max(input.latest);
        let is_anonymous = self.anonymiser.is_some();
        let data = match &mut self.anonymiser {
            Some(anonymiser) => anonymiser.packet(input.link_type, packet.data)?,
            None => packet.data,
        };
        if matches!(self.form, Form::Pcapng | Form::BySession(_)) {
            if is_anonymous || comment.is_some() {
                let options = options_of(packet, comment, is_anonymous);
                let fields = EnhancedPacketFields {
                    interface: input.number,
                    time: packet.timestamp.0.cast_unsigned(),
                    original_len: packet.original_len,
                    options: &options,
                };
                put_enhanced_packet(out, &fields, [data, &[], &[]]);
                return Ok(());
            }
            let at = out.len() + INTERFACE_AT;
            out.extend_from_slice(block);
            let place = out.get_mut(at..at + 4).expect("a block has fixed fields");
            place.copy_from_slice(&input.number.to_le_bytes());
            return Ok(());
        }
        let outside = Error::PcapTime(packet.timestamp);
        let seconds = u32::try_from(packet.timestamp.unix_seconds()).map_err(|_| outside)?;
        let nanos = u32::try_from(packet.timestamp.subsecond_nanos()).expect("below a second");
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).expect("shorter than a piece");
        let captured = length(data);
        for field in [seconds, nanos, captured, captured.max(packet.original_len)] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(data);
        Ok(())
    }

    /// A packet for the one file of pcap, which has the link type of its first packet: with a link
    /// layer of that type where it has another one, and empty where none can be made. `None` stands
    /// for a packet as it is.
    fn remade(&mut self, link_type: LinkType, encoded: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let (Form::Pcap, Some(stream)) = (&self.form, self.streams.first_mut()) else {
            return Ok(None);
        };
        let Some(own) = stream.link_type else {
            stream.link_type = Some(link_type);
            stream.put(&pcap_header(link_type))?;
            return Ok(None);
        };
        if own == link_type {
            return Ok(None);
        }
        let (head, data) = encoded.split_at_checked(PCAP_PACKET).expect("it was encoded");
        let behind = network_layer(link_type, data);
        let made = behind.and_then(|(carried, _)| made_header(own, carried));
        let (Some((_, behind)), Some((header, len))) = (behind, made) else {
            self.unfit_packets = self.unfit_packets.saturating_add(1);
            return Ok(Some(Vec::new()));
        };
        self.rewritten_packets = self.rewritten_packets.saturating_add(1);
        let header = header.get(..len).expect("a header has its length");
        let (time, lengths) = head.split_at(PCAP_PACKET / 2);
        let [captured, original] = [0, 4].map(|at| {
            let field = lengths.get(at..).and_then(|field| field.first_chunk());
            u32::from_le_bytes(*field.expect("two lengths of four bytes"))
        });
        let now = u32::try_from(header.len() + behind.len()).expect("shorter than a piece");
        let whole = now.saturating_add(original.saturating_sub(captured));
        let lengths = [now, whole].map(u32::to_le_bytes).concat();
        Ok(Some([time, &lengths, header, behind].concat()))
    }

    /// Packets that have another link layer than on the wire, because a pcap file holds one link
    /// type.
    pub fn rewritten_packets(&self) -> u64 {
        self.rewritten_packets
    }

    /// Packets that a pcap file of another link type cannot hold.
    pub fn unfit_packets(&self) -> u64 {
        self.unfit_packets
    }

    /// Packets that were written behind later ones.
    pub fn disorder(&self) -> Disorder {
        self.disorder
    }

    /// Writes a packet as encoded, unless it would be one too many.
    pub fn emit(
        &mut self,
        input: usize,
        timestamp: Timestamp,
        encoded: &[u8],
    ) -> Result<(), Error> {
        let of_input = self.inputs.get(input).expect("inputs are added before their packets");
        let remade = self.remade(of_input.link_type, encoded)?;
        let encoded = remade.as_deref().unwrap_or(encoded);
        if encoded.is_empty() {
            return Ok(());
        }
        let len = to_u64(encoded.len());
        let (packets, bytes) = (self.packets + 1, self.bytes + len);
        self.is_full |= self.packets_max.is_some_and(|limit| packets > limit)
            || self.bytes_max.is_some_and(|limit| bytes > limit);
        if self.is_full {
            return Ok(());
        }
        (self.packets, self.bytes) = (packets, bytes);
        let input = self.inputs.get(input).expect("inputs are added before their packets");
        let stream = self.streams.get_mut(input.stream).expect("a input has its stream");
        stream.packets += 1;
        self.disorder.note(stream.latest, timestamp);
        stream.latest = stream.latest.max(timestamp);
        stream.put(encoded)?;
        if self.are_by_session() {
            self.gathered += encoded.len();
            if self.gathered >= GATHERED_BYTES {
                self.gathered = 0;
                self.streams.iter_mut().try_for_each(Stream::flush)?;
            }
        }
        Ok(())
    }

    /// There is a place for name resolution and secrets blocks: not in pcap, nor where no address
    /// may be held.
    pub fn take_blocks(&self) -> bool {
        matches!(self.form, Form::Pcapng) && self.anonymiser.is_none()
    }

    /// Writes such blocks where there is a place for them.
    pub fn blocks(&mut self, blocks: &[u8]) -> Result<(), Error> {
        match self.streams.first_mut() {
            Some(stream) if matches!(self.form, Form::Pcapng) => stream.put(blocks),
            _ => Ok(()),
        }
    }

    /// Writes what is gathered.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.streams.iter_mut().try_for_each(Stream::flush)
    }

    /// Every reader of the outputs went away.
    pub fn are_gone(&self) -> bool {
        !self.streams.is_empty() && self.streams.iter().all(|stream| stream.gone)
    }

    /// Some packet was beyond a limit.
    pub fn are_full(&self) -> bool {
        self.is_full
    }

    /// Ends the outputs; in pcapng each interface ends with `statement` as a comment.
    pub fn finish(mut self, statement: &str) -> Result<Finished, Error> {
        if matches!(self.form, Form::Pcapng | Form::BySession(_)) {
            for MergeInput { stream, number, latest, .. } in &self.inputs {
                let (mut options, mut block) = (Vec::new(), Vec::new());
                put_comment(&mut options, statement);
                put_interface_statistics(&mut block, *number, latest.0.cast_unsigned(), &options);
                self.streams.get_mut(*stream).expect("a input has its stream").put(&block)?;
            }
        }
        if let (Form::Pcap, Some(stream)) = (&self.form, self.streams.first_mut())
            && stream.link_type.is_none()
        {
            let of_first = self.inputs.first().map(|input| input.link_type);
            stream.put(&pcap_header(of_first.unwrap_or(LinkType::ETHERNET)))?;
        }
        // A short output is written here for the first time.
        self.streams.iter_mut().try_for_each(Stream::flush)?;
        let reader_gone = self.are_gone();
        let outputs = self.streams.into_iter().map(Stream::finish).collect::<Result<_, _>>()?;
        Ok(Finished { outputs, reader_gone })
    }
}

/// Outputs that are written.
#[derive(Debug)]
pub struct Finished {
    /// Each file.
    pub outputs: Vec<OutputSummary>,
    /// Every reader went away before its end.
    pub reader_gone: bool,
}

/// A packet's options and a comment more; of those that it had only its direction where they may
/// hold an address.
fn options_of(packet: &StoredPacket<'_>, comment: Option<&str>, is_anonymous: bool) -> Vec<u8> {
    let own = Options::new(packet.options, ByteOrder::Little);
    let mut options = Vec::new();
    normalize_options_where(OptionScope::Packet, own, &mut options, |code| {
        !is_anonymous || code == OptionCode::PACKET_FLAGS
    });
    if let Some(comment) = comment {
        put_comment(&mut options, comment);
    }
    options
}

/// The Interface Description Block for an extract: the interface's own options and real snap
/// length. Options that must not be copied are left out, ours among them, and those that may hold
/// an address from what must not.
pub fn describe(interface: &InterfaceInPiece, body: &[u8], is_anonymous: bool) -> Vec<u8> {
    let block = body.get(interface.block.clone()).unwrap_or_default();
    let mut options = Vec::new();
    if let Some(Ok((_, block))) = Blocks::new(block, ByteOrder::Little).next()
        && let Ok(View::InterfaceDescription(description)) = block.view()
    {
        let copied = |code| {
            code != OptionCode::CUSTOM_BYTES_NO_COPY
                && code != OptionCode::CUSTOM_TEXT_NO_COPY
                && (!is_anonymous || HARMLESS.contains(&code))
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn a_pcap_header_has_nanoseconds_version_2_4_and_the_link_type() {
        let header = pcap_header(LinkType::LINUX_SLL2);
        assert_eq!(header[..8], [0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0]);
        assert_eq!(header[16..], [0, 0, 4, 0, 0x14, 1, 0, 0]);
    }

    #[test]
    fn a_second_link_type_gets_headers_of_the_first_or_is_counted() {
        let mut file = Vec::new();
        let mut outputs = Outputs::begin(Target::Pcap(&mut file), Contents::default()).unwrap();
        // The one that is known first is not the one of the first packet.
        for link_type in [LinkType::RAW, LinkType::ETHERNET, LinkType::IEEE802_11] {
            outputs.add_input(link_type, &[], None).unwrap();
        }
        let frame = [&[2; 12][..], &[8, 0], &[0x45, 0, 0, 20]].concat();
        let mut give = |input, data: &[u8], at| {
            let packet = StoredPacket {
                begin: 0,
                timestamp: Timestamp(at),
                interface: 0,
                original_len: 40,
                data,
                options: &[],
                interfaces_before: 0,
                end: 0,
            };
            let dressed = Dressed { block: &[], packet: &packet, comment: None };
            let mut out = Vec::new();
            outputs.encode(input, &dressed, &mut out).unwrap();
            outputs.emit(input, Timestamp(at), &out).unwrap();
            (outputs.rewritten_packets(), outputs.unfit_packets())
        };
        assert_eq!(give(1, &frame, 5), (0, 0));
        assert_eq!(give(2, &[0x45, 0, 0, 20], 6), (0, 1));
        assert_eq!(give(0, &[0x45, 0, 0, 20], 7), (1, 1));
        outputs.finish("").unwrap();
        assert_eq!(file[..24], pcap_header(LinkType::ETHERNET));
        let packet = |nanos: u32, lengths: [u32; 2], data: &[u8]| {
            let fields = [0, nanos, lengths[0], lengths[1]].map(u32::to_le_bytes).concat();
            [&fields, data].concat()
        };
        let made = [&[0; 12][..], &[8, 0], &[0x45, 0, 0, 20]].concat();
        let packets = [packet(5, [18, 40], &frame), packet(7, [18, 54], &made)].concat();
        assert_eq!(file[24..], packets, "captured and original, with the header");
    }

    #[test]
    fn a_reader_that_goes_away_is_no_error_and_noticed_to_the_last_byte() {
        struct Closing(u32);
        impl Write for Closing {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let left = self.0.checked_sub(1).ok_or(ErrorKind::BrokenPipe)?;
                self.0 = left;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        for (writes, is_gone_at_once, is_gone) in
            [(0, true, true), (1, false, true), (2, false, false)]
        {
            let mut closing = Closing(writes);
            let target = Target::Pcapng(&mut closing);
            let mut outputs = Outputs::begin(target, Contents::default()).unwrap();
            assert_eq!(outputs.are_gone(), is_gone_at_once, "{writes}");
            outputs.streams[0].put(b"the end").unwrap();
            assert_eq!(outputs.finish("complete").unwrap().reader_gone, is_gone, "{writes}");
        }
    }
}
