//! Typed contents of block bodies, by reference.

use wire::LinkType;

use super::options::next_option_like;
use super::{ByteOrder, OptionCode, Options, Resolution, block_type, padding, take};

/// The contents of a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum View<'a> {
    /// Section Header Block.
    SectionHeader(SectionHeader<'a>),
    /// Interface Description Block.
    InterfaceDescription(InterfaceDescription<'a>),
    /// Enhanced Packet Block.
    EnhancedPacket(EnhancedPacket<'a>),
    /// Simple Packet Block.
    SimplePacket(SimplePacket<'a>),
    /// Packet Block, obsolete.
    Packet(PacketBlock<'a>),
    /// Name Resolution Block.
    NameResolution(NameResolution<'a>),
    /// Interface Statistics Block.
    InterfaceStatistics(InterfaceStatistics<'a>),
    /// Decryption Secrets Block.
    DecryptionSecrets(DecryptionSecrets<'a>),
    /// Custom Block: the Private Enterprise Number and what follows it.
    Custom {
        /// Private Enterprise Number.
        enterprise: u32,
        /// Data and options, whose border only the enterprise knows.
        data: &'a [u8],
    },
    /// A block of another type.
    Unknown(&'a [u8]),
}

impl<'a> View<'a> {
    pub(super) fn read(block_type: u32, body: &'a [u8], order: ByteOrder) -> Option<Self> {
        Some(match block_type {
            block_type::SECTION_HEADER => Self::SectionHeader(SectionHeader::read(body, order)?),
            block_type::INTERFACE_DESCRIPTION => {
                Self::InterfaceDescription(InterfaceDescription::read(body, order)?)
            }
            block_type::ENHANCED_PACKET => Self::EnhancedPacket(EnhancedPacket::read(body, order)?),
            block_type::SIMPLE_PACKET => Self::SimplePacket(SimplePacket::read(body, order)?),
            block_type::PACKET => Self::Packet(PacketBlock::read(body, order)?),
            block_type::NAME_RESOLUTION => Self::NameResolution(NameResolution { body, order }),
            block_type::INTERFACE_STATISTICS => {
                Self::InterfaceStatistics(InterfaceStatistics::read(body, order)?)
            }
            block_type::DECRYPTION_SECRETS => {
                Self::DecryptionSecrets(DecryptionSecrets::read(body, order)?)
            }
            block_type::CUSTOM | block_type::CUSTOM_NO_COPY => {
                let mut data = body;
                Self::Custom { enterprise: order.u32(take(&mut data)?), data }
            }
            _ => Self::Unknown(body),
        })
    }
}

/// Section Header Block (section 4.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SectionHeader<'a> {
    /// Major version; 1 is the only one there is.
    pub major: u16,
    /// Minor version; 0, and 2 from some writers, mean the same.
    pub minor: u16,
    /// Bytes of the section behind this block; `None` where the writer did not know.
    pub section_len: Option<u64>,
    /// Options of the block.
    pub options: Options<'a>,
}

impl<'a> SectionHeader<'a> {
    fn read(mut body: &'a [u8], order: ByteOrder) -> Option<Self> {
        let _magic: [u8; 4] = take(&mut body)?;
        let major = order.u16(take(&mut body)?);
        let minor = order.u16(take(&mut body)?);
        let section_len = Some(order.u64(take(&mut body)?)).filter(|&len| len != u64::MAX);
        Some(Self { major, minor, section_len, options: Options::new(body, order) })
    }
}

/// Interface Description Block (section 4.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InterfaceDescription<'a> {
    /// Link type of the interface's packets.
    pub link_type: LinkType,
    /// Most bytes captured of a packet; 0 is no limit.
    pub snaplen: u32,
    /// Options of the block.
    pub options: Options<'a>,
}

impl<'a> InterfaceDescription<'a> {
    fn read(mut body: &'a [u8], order: ByteOrder) -> Option<Self> {
        let link_type = LinkType(order.u16(take(&mut body)?));
        let _reserved: [u8; 2] = take(&mut body)?;
        let snaplen = order.u32(take(&mut body)?);
        Some(Self { link_type, snaplen, options: Options::new(body, order) })
    }

    /// Unit and offset of the interface's timestamps.
    pub fn resolution(&self) -> Resolution {
        let resolution = self.options.find_value(OptionCode::INTERFACE_RESOLUTION);
        let unit = resolution.and_then(|value| value.first().copied()).unwrap_or(6);
        let offset = self.options.find_u64(OptionCode::INTERFACE_OFFSET).unwrap_or(0);
        Resolution::new(unit, offset.cast_signed())
    }
}

/// Enhanced Packet Block (section 4.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EnhancedPacket<'a> {
    /// Number of the interface in the section, from 0.
    pub interface: u32,
    /// Time in the interface's units.
    pub time: u64,
    /// Length on the wire.
    pub original_len: u32,
    /// Captured bytes.
    pub data: &'a [u8],
    /// Options of the block.
    pub options: Options<'a>,
}

impl<'a> EnhancedPacket<'a> {
    /// Reads the body of an Enhanced Packet Block.
    #[inline]
    pub fn read(body: &'a [u8], order: ByteOrder) -> Option<Self> {
        let (fields, rest) = body.split_first_chunk::<20>()?;
        let mut fields: &[u8] = fields;
        let interface = order.u32(take(&mut fields)?);
        let time = read_time(&mut fields, order)?;
        let captured_len = order.u32(take(&mut fields)?);
        let original_len = order.u32(take(&mut fields)?);
        let (data, options) = split_packet(rest, captured_len, order)?;
        Some(Self { interface, time, original_len, data, options })
    }
}

/// Simple Packet Block (section 4.4): a packet of the section's first interface, without a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SimplePacket<'a> {
    /// Length on the wire.
    pub original_len: u32,
    padded: &'a [u8],
}

impl<'a> SimplePacket<'a> {
    fn read(mut body: &'a [u8], order: ByteOrder) -> Option<Self> {
        Some(Self { original_len: order.u32(take(&mut body)?), padded: body })
    }

    /// The captured bytes: the block does not count them, they follow from the interface's snaplen
    /// (0: no limit). `None` where the block holds fewer.
    pub fn data(&self, snaplen: u32) -> Option<&'a [u8]> {
        let limit = if snaplen == 0 { u32::MAX } else { snaplen };
        self.padded.get(..usize::try_from(self.original_len.min(limit)).ok()?)
    }
}

/// Packet Block (appendix A, obsolete).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketBlock<'a> {
    /// Number of the interface in the section, from 0.
    pub interface: u16,
    /// Packets lost between the one before and this one; `None` where not known.
    pub drop_count: Option<u16>,
    /// Time in the interface's units.
    pub time: u64,
    /// Length on the wire.
    pub original_len: u32,
    /// Captured bytes.
    pub data: &'a [u8],
    /// Options, with the codes of the Enhanced Packet Block.
    pub options: Options<'a>,
}

impl<'a> PacketBlock<'a> {
    fn read(mut body: &'a [u8], order: ByteOrder) -> Option<Self> {
        let interface = order.u16(take(&mut body)?);
        let drop_count = Some(order.u16(take(&mut body)?)).filter(|&count| count != u16::MAX);
        let time = read_time(&mut body, order)?;
        let captured_len = order.u32(take(&mut body)?);
        let original_len = order.u32(take(&mut body)?);
        let (data, options) = split_packet(body, captured_len, order)?;
        Some(Self { interface, drop_count, time, original_len, data, options })
    }
}

/// Name Resolution Block (section 4.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NameResolution<'a> {
    body: &'a [u8],
    order: ByteOrder,
}

impl<'a> NameResolution<'a> {
    /// The records: type and value.
    pub fn records(&self) -> NameRecords<'a> {
        NameRecords { bytes: self.body, order: self.order }
    }

    /// The options behind the records.
    pub fn options(&self) -> Options<'a> {
        let mut records = self.records();
        records.by_ref().for_each(drop);
        Options::new(records.bytes, self.order)
    }
}

/// The records of a Name Resolution Block, without `nrb_record_end`: type and value, which is in
/// network order.
#[derive(Clone, Debug)]
pub struct NameRecords<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
}

impl<'a> Iterator for NameRecords<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<(u16, &'a [u8])> {
        if self.bytes.is_empty() {
            return None;
        }
        let record = next_option_like(&mut self.bytes, self.order);
        if record.is_none() {
            self.bytes = &[];
        }
        record.filter(|&(kind, _)| kind != 0)
    }
}

/// Interface Statistics Block (section 4.6).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InterfaceStatistics<'a> {
    /// Number of the interface in the section, from 0.
    pub interface: u32,
    /// Time in the interface's units.
    pub time: u64,
    /// Options: the counters.
    pub options: Options<'a>,
}

impl<'a> InterfaceStatistics<'a> {
    fn read(mut body: &'a [u8], order: ByteOrder) -> Option<Self> {
        let interface = order.u32(take(&mut body)?);
        let time = read_time(&mut body, order)?;
        Some(Self { interface, time, options: Options::new(body, order) })
    }
}

/// Decryption Secrets Block (section 4.7).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DecryptionSecrets<'a> {
    /// Kind of secrets: 0x544c534b is a TLS key log.
    pub secrets_type: u32,
    /// Bytes of the secrets, without padding.
    pub secrets: &'a [u8],
    /// Options of the block.
    pub options: Options<'a>,
}

impl<'a> DecryptionSecrets<'a> {
    fn read(mut body: &'a [u8], order: ByteOrder) -> Option<Self> {
        let secrets_type = order.u32(take(&mut body)?);
        let len = order.u32(take(&mut body)?);
        let (secrets, options) = split_packet(body, len, order)?;
        Some(Self { secrets_type, secrets, options })
    }
}

/// A timestamp: the upper 32 bits, then the lower ones.
fn read_time(bytes: &mut &[u8], order: ByteOrder) -> Option<u64> {
    let (high, low) = (order.u32(take(bytes)?), order.u32(take(bytes)?));
    Some(u64::from(high) << 32 | u64::from(low))
}

/// Parts data of a given length from the options behind its padding.
fn split_packet(bytes: &[u8], len: u32, order: ByteOrder) -> Option<(&[u8], Options<'_>)> {
    let len = usize::try_from(len).ok()?;
    let (data, rest) = bytes.split_at_checked(len)?;
    Some((data, Options::new(rest.get(padding(len)..).unwrap_or_default(), order)))
}
