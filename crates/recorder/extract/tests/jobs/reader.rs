//! A reader of pcap and pcapng files that shares no code with the product.

use std::path::Path;

/// Interface or link type aside, what a packet is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Frame {
    pub(crate) link_type: u16,
    pub(crate) time_ns: i128,
    pub(crate) original_len: u32,
    pub(crate) data: Vec<u8>,
    pub(crate) interface: u32,
    pub(crate) comment: Option<String>,
}

/// What an interface says of itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Interface {
    pub(crate) link_type: u16,
    pub(crate) name: String,
    pub(crate) snaplen: u32,
    per_second: i128,
    offset: i128,
}

#[derive(Debug, Default)]
pub(crate) struct Capture {
    pub(crate) frames: Vec<Frame>,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) section_options: Vec<(u16, Vec<u8>)>,
    /// Comments of the statistics blocks.
    pub(crate) statements: Vec<String>,
    pub(crate) other_blocks: Vec<u32>,
    /// Places of the frames by the numbers that tshark gives, from 0: it numbers custom blocks too.
    pub(crate) numbers: Vec<Option<usize>>,
}

pub(crate) fn read_file(path: &Path) -> Capture {
    read(&std::fs::read(path).unwrap())
}

/// Reads up to the first thing it does not understand.
pub(crate) fn read(bytes: &[u8]) -> Capture {
    let mut capture = Capture::default();
    match bytes.get(..4) {
        Some([0x0a, 0x0d, 0x0d, 0x0a]) => drop(pcapng(bytes, &mut capture)),
        Some(_) => drop(pcap(bytes, &mut capture)),
        None => {}
    }
    if capture.numbers.is_empty() {
        capture.numbers = (0..capture.frames.len()).map(Some).collect();
    }
    capture
}

fn number(bytes: &[u8], at: usize, size: usize, big: bool) -> Option<u64> {
    let field = bytes.get(at..at + size)?;
    let fold = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
    Some(if big { field.iter().fold(0, fold) } else { field.iter().rev().fold(0, fold) })
}

fn size(value: u64) -> usize {
    usize::try_from(value).unwrap()
}

fn pcap(bytes: &[u8], capture: &mut Capture) -> Option<()> {
    let (big, unit, header) = match bytes[..4] {
        [0xd4, 0xc3, 0xb2, 0xa1] => (false, 1000, 16),
        [0xa1, 0xb2, 0xc3, 0xd4] => (true, 1000, 16),
        [0x4d, 0x3c, 0xb2, 0xa1] => (false, 1, 16),
        [0xa1, 0xb2, 0x3c, 0x4d] => (true, 1, 16),
        // Kuznetzov's and Navtel's variants.
        [0x34, 0xcd, 0xb2, 0xa1] => (false, 1000, 24),
        [0xa1, 0xb2, 0xcd, 0x34] => (true, 1000, 24),
        _ => return None,
    };
    let link_type = u16::try_from(number(bytes, 20, 4, big)? & 0xffff).unwrap();
    let mut at = 24;
    loop {
        let seconds = i128::from(number(bytes, at, 4, big)?);
        let fraction = i128::from(number(bytes, at + 4, 4, big)?);
        let captured = size(number(bytes, at + 8, 4, big)?);
        let original_len = u32::try_from(number(bytes, at + 12, 4, big)?).unwrap();
        let data = bytes.get(at + header..at + header + captured)?.to_vec();
        let time_ns = seconds * 1_000_000_000 + fraction * unit;
        capture.frames.push(Frame {
            link_type,
            time_ns,
            original_len,
            data,
            interface: 0,
            comment: None,
        });
        at += header + captured;
    }
}

fn options(mut bytes: &[u8], big: bool) -> Vec<(u16, Vec<u8>)> {
    let mut found = Vec::new();
    while let (Some(code), Some(len)) = (number(bytes, 0, 2, big), number(bytes, 2, 2, big)) {
        let Some(value) = bytes.get(4..4 + size(len)) else { break };
        if code == 0 {
            break;
        }
        found.push((u16::try_from(code).unwrap(), value.to_vec()));
        bytes = bytes.get(4 + size(len).next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

fn option(options: &[(u16, Vec<u8>)], code: u16) -> Option<&[u8]> {
    options.iter().find(|(other, _)| *other == code).map(|(_, value)| value.as_slice())
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

fn pcapng(bytes: &[u8], capture: &mut Capture) -> Option<()> {
    let (mut at, mut big, mut section) = (0, false, 0);
    loop {
        if bytes.get(at..at + 4)? == [0x0a, 0x0d, 0x0d, 0x0a] {
            big = bytes.get(at + 8..at + 12)? == [0x1a, 0x2b, 0x3c, 0x4d];
            section = capture.interfaces.len();
        }
        let kind = u32::try_from(number(bytes, at, 4, big)?).unwrap();
        let len = size(number(bytes, at + 4, 4, big)?);
        let body = bytes.get(at + 8..(at + len).checked_sub(4)?)?;
        match kind {
            0x0a0d_0d0a => capture.section_options.extend(options(body.get(16..)?, big)),
            1 => capture.interfaces.push(interface(body, big)?),
            6 => {
                let local = size(number(body, 0, 4, big)?);
                let time = number(body, 4, 4, big)? << 32 | number(body, 8, 4, big)?;
                let captured = size(number(body, 12, 4, big)?);
                let original_len = u32::try_from(number(body, 16, 4, big)?).unwrap();
                let data = body.get(20..20 + captured)?.to_vec();
                let rest = body.get(20 + captured.next_multiple_of(4)..).unwrap_or_default();
                let comment = option(&options(rest, big), 1).map(text);
                frame(capture, section + local, time, (original_len, data, comment))?;
            }
            2 => {
                let local = size(number(body, 0, 2, big)?);
                let time = number(body, 4, 4, big)? << 32 | number(body, 8, 4, big)?;
                let captured = size(number(body, 12, 4, big)?);
                let original_len = u32::try_from(number(body, 16, 4, big)?).unwrap();
                let data = body.get(20..20 + captured)?.to_vec();
                frame(capture, section + local, time, (original_len, data, None))?;
            }
            3 => {
                let original_len = u32::try_from(number(body, 0, 4, big)?).unwrap();
                let snaplen = capture.interfaces.get(section)?.snaplen;
                let limit = if snaplen == 0 { u32::MAX } else { snaplen };
                let data =
                    body.get(4..4 + usize::try_from(original_len.min(limit)).unwrap())?.to_vec();
                frame(capture, section, 0, (original_len, data, None))?;
            }
            5 => {
                let options = options(body.get(12..)?, big);
                capture.statements.extend(option(&options, 1).map(text));
            }
            other => {
                capture.other_blocks.push(other);
                if other & 0x0fff_ffff == 0xbad {
                    capture.numbers.push(None);
                }
            }
        }
        at += len;
    }
}

fn interface(body: &[u8], big: bool) -> Option<Interface> {
    let options = options(body.get(8..)?, big);
    let unit = option(&options, 9).and_then(|value| value.first().copied()).unwrap_or(6);
    let exponent = u32::from(unit & 0x7f);
    let per_second = if unit & 0x80 == 0 { 10_i128.pow(exponent) } else { 1_i128 << exponent };
    let offset = option(&options, 14).and_then(|value| number(value, 0, 8, big)).unwrap_or(0);
    Some(Interface {
        link_type: u16::try_from(number(body, 0, 2, big)?).unwrap(),
        name: option(&options, 2).map(text).unwrap_or_default(),
        snaplen: u32::try_from(number(body, 4, 4, big)?).unwrap(),
        per_second,
        offset: i128::from(offset.cast_signed()),
    })
}

fn frame(
    capture: &mut Capture,
    interface: usize,
    time: u64,
    (original_len, data, comment): (u32, Vec<u8>, Option<String>),
) -> Option<()> {
    let from = capture.interfaces.get(interface)?;
    let time_ns = (i128::from(time) * 1_000_000_000).div_euclid(from.per_second)
        + from.offset * 1_000_000_000;
    let link_type = from.link_type;
    let interface = u32::try_from(interface).unwrap();
    capture.numbers.push(Some(capture.frames.len()));
    capture.frames.push(Frame { link_type, time_ns, original_len, data, interface, comment });
    Some(())
}
