//! Options (section 3.5): a list of code, length, value, padded to 32 bits, ended by `opt_endofopt`
//! or by the block.

use super::{ByteOrder, pad, padding, take};

/// Codes of options that wirespool knows. Codes 2 and up mean something else in each block type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionCode;

impl OptionCode {
    /// `opt_endofopt`.
    pub const END: u16 = 0;
    /// `opt_comment`.
    pub const COMMENT: u16 = 1;
    /// `opt_custom` with text, may be copied.
    pub const CUSTOM_TEXT: u16 = 2988;
    /// `opt_custom` with bytes, may be copied.
    pub const CUSTOM_BYTES: u16 = 2989;
    /// `opt_custom` with text, must not be copied.
    pub const CUSTOM_TEXT_NO_COPY: u16 = 19372;
    /// `opt_custom` with bytes, must not be copied.
    pub const CUSTOM_BYTES_NO_COPY: u16 = 19373;

    /// `shb_hardware`.
    pub const SECTION_HARDWARE: u16 = 2;
    /// `shb_os`.
    pub const SECTION_OS: u16 = 3;
    /// `shb_userappl`.
    pub const SECTION_USER_APPLICATION: u16 = 4;

    /// `if_name`.
    pub const INTERFACE_NAME: u16 = 2;
    /// `if_description`.
    pub const INTERFACE_DESCRIPTION: u16 = 3;
    /// `if_speed`, 64 bits.
    pub const INTERFACE_SPEED: u16 = 8;
    /// `if_tsresol`, one byte.
    pub const INTERFACE_RESOLUTION: u16 = 9;
    /// `if_tzone`, 32 bits.
    pub const INTERFACE_ZONE: u16 = 10;
    /// `if_filter`: one byte 0 and the text.
    pub const INTERFACE_FILTER: u16 = 11;
    /// `if_os`.
    pub const INTERFACE_OS: u16 = 12;
    /// `if_tsoffset`, 64 bits, signed.
    pub const INTERFACE_OFFSET: u16 = 14;
    /// `if_hardware`.
    pub const INTERFACE_HARDWARE: u16 = 15;
    /// `if_txspeed`, 64 bits.
    pub const INTERFACE_SEND_SPEED: u16 = 16;
    /// `if_rxspeed`, 64 bits.
    pub const INTERFACE_RECEIVE_SPEED: u16 = 17;

    /// `epb_flags` (`pack_flags` in the Packet Block), 32 bits.
    pub const PACKET_FLAGS: u16 = 2;
    /// `epb_hash` (`pack_hash`): one byte algorithm, then the hash.
    pub const PACKET_HASH: u16 = 3;
    /// `epb_dropcount`, 64 bits.
    pub const PACKET_DROP_COUNT: u16 = 4;
    /// `epb_packetid`, 64 bits.
    pub const PACKET_ID: u16 = 5;
    /// `epb_queue`, 32 bits.
    pub const PACKET_QUEUE: u16 = 6;
    /// `epb_verdict`: one byte kind, then the verdict.
    pub const PACKET_VERDICT: u16 = 7;
    /// `epb_processid_threadid`, twice 32 bits.
    pub const PACKET_PROCESS_THREAD: u16 = 8;

    /// `isb_starttime`, two words as in a packet block.
    pub const STATISTICS_START: u16 = 2;
    /// `isb_endtime`, two words as in a packet block.
    pub const STATISTICS_END: u16 = 3;
    /// `isb_ifrecv`, 64 bits.
    pub const STATISTICS_RECEIVED: u16 = 4;
    /// `isb_ifdrop`, 64 bits.
    pub const STATISTICS_INTERFACE_DROPS: u16 = 5;
    /// `isb_filteraccept`, 64 bits.
    pub const STATISTICS_FILTER_ACCEPTED: u16 = 6;
    /// `isb_osdrop`, 64 bits.
    pub const STATISTICS_KERNEL_DROPS: u16 = 7;
    /// `isb_usrdeliv`, 64 bits.
    pub const STATISTICS_DELIVERED: u16 = 8;
}

/// The block type that gives option codes their meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionScope {
    /// Interface Description Block.
    Interface,
    /// Enhanced Packet Block and Packet Block.
    Packet,
    /// Interface Statistics Block.
    Statistics,
    /// Name Resolution Block.
    NameResolution,
    /// Decryption Secrets Block.
    DecryptionSecrets,
}

/// One option as it stands in the block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawOption<'a> {
    /// Option code.
    pub code: u16,
    /// Value without padding, numbers in the section's byte order.
    pub value: &'a [u8],
}

/// The options of a block, in order, without `opt_endofopt`.
///
/// The iterator ends at an option that does not fit; [`Options::is_damaged`] says whether it did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
    damaged: bool,
}

impl<'a> Options<'a> {
    /// Options that start at `bytes`.
    pub fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self { bytes, order, damaged: false }
    }

    /// Byte order of the values.
    pub fn order(&self) -> ByteOrder {
        self.order
    }

    /// Nothing follows, not even `opt_endofopt`.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// An option met so far did not fit into its block.
    pub fn is_damaged(&self) -> bool {
        self.damaged
    }

    /// The first option with this code.
    pub fn find_value(&self, code: u16) -> Option<&'a [u8]> {
        self.clone().find(|option| option.code == code).map(|option| option.value)
    }

    /// The first option with this code as a 64-bit number.
    pub fn find_u64(&self, code: u16) -> Option<u64> {
        self.find_value(code)?.try_into().ok().map(|bytes| self.order.u64(bytes))
    }

    /// The first option with this code as a 32-bit number.
    pub fn find_u32(&self, code: u16) -> Option<u32> {
        self.find_value(code)?.try_into().ok().map(|bytes| self.order.u32(bytes))
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = RawOption<'a>;

    fn next(&mut self) -> Option<RawOption<'a>> {
        if self.bytes.is_empty() {
            return None;
        }
        let (code, value) = match next_option_like(&mut self.bytes, self.order) {
            Some((code, value)) if code != OptionCode::END => (code, value),
            ended => {
                self.damaged |= ended.is_none();
                self.bytes = &[];
                return None;
            }
        };
        Some(RawOption { code, value })
    }
}

/// One code, length, value and padding: the form that options and name records share. The padding
/// of the last one may be missing, as some writers leave it out.
pub(super) fn next_option_like<'a>(
    bytes: &mut &'a [u8],
    order: ByteOrder,
) -> Option<(u16, &'a [u8])> {
    let (code, len) = (order.u16(take(bytes)?), usize::from(order.u16(take(bytes)?)));
    let (value, rest) = bytes.split_at_checked(len)?;
    *bytes = rest.get(padding(len)..).unwrap_or_default();
    Some((code, value))
}

/// Appends one option.
///
/// # Panics
/// The value is 64 KiB or longer: no option can hold it.
pub fn put_option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let len = u16::try_from(value.len()).expect("an option's value is shorter than 64 KiB");
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(value);
    pad(out);
}

/// Appends the options in little endian, without `opt_endofopt`.
pub fn normalize_options(scope: OptionScope, options: Options<'_>, out: &mut Vec<u8>) {
    normalize_options_where(scope, options, out, |_| true);
}

/// As [`normalize_options`], of those options whose code `keep` accepts.
pub fn normalize_options_where(
    scope: OptionScope,
    options: Options<'_>,
    out: &mut Vec<u8>,
    keep: impl Fn(u16) -> bool,
) {
    let order = options.order();
    for RawOption { code, value } in options.filter(|option| keep(option.code)) {
        let start = out.len();
        put_option(out, code, value);
        if order == ByteOrder::Big {
            let number_start = start + 4;
            if let Some(copy) = out.get_mut(number_start..number_start + value.len()) {
                reverse_numbers(scope, code, copy);
            }
        }
    }
}

/// Turns the numbers in an option's value round. A value whose length is not the one of its code
/// stays as it is.
fn reverse_numbers(scope: OptionScope, code: u16, value: &mut [u8]) {
    let (from, width) = match (scope, code) {
        // The Private Enterprise Number leads every custom option.
        (_, 2988 | 2989 | 19372 | 19373) => {
            if let Some(number) = value.first_chunk_mut::<4>() {
                number.reverse();
            }
            return;
        }
        (
            OptionScope::Interface,
            OptionCode::INTERFACE_SPEED
            | OptionCode::INTERFACE_OFFSET
            | OptionCode::INTERFACE_SEND_SPEED
            | OptionCode::INTERFACE_RECEIVE_SPEED,
        )
        | (OptionScope::Packet, OptionCode::PACKET_DROP_COUNT | OptionCode::PACKET_ID)
        | (OptionScope::Statistics, 4..=8) => (0, 8),
        // The hardware verdict (kind 0) is opaque bytes.
        (OptionScope::Packet, OptionCode::PACKET_VERDICT)
            if matches!(value.first(), Some(1 | 2)) =>
        {
            (1, 8)
        }
        (OptionScope::Interface, OptionCode::INTERFACE_ZONE)
        | (
            OptionScope::Packet,
            OptionCode::PACKET_FLAGS | OptionCode::PACKET_QUEUE | OptionCode::PACKET_PROCESS_THREAD,
        )
        | (OptionScope::Statistics, OptionCode::STATISTICS_START | OptionCode::STATISTICS_END) => {
            (0, 4)
        }
        _ => return,
    };
    let numbers = value.get_mut(from..).unwrap_or_default();
    if numbers.len().is_multiple_of(width) {
        numbers.chunks_exact_mut(width).for_each(<[u8]>::reverse);
    }
}
