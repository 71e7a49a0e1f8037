//! IEEE 802.11 frames and the headers that capture drivers put before them (radiotap, Prism, AVS,
//! PPI).

use crate::ethernet;
use crate::walk::{Walk, Walked, skip, take};

const DATA: u8 = 2;
const CONTROL: u8 = 1;

/// Bits of the first frame control byte.
const VERSION: u8 = 0x03;

/// Bits of the second frame control byte.
const TO_DS: u8 = 0x01;
const FROM_DS: u8 = 0x02;
const PROTECTED: u8 = 0x40;
const ORDER: u8 = 0x80;

/// An 802.11 frame; `padded` when the driver pads the MAC header to 32 bits.
pub(crate) fn frame<'a>(walk: &mut Walk<'a, '_>, bytes: &'a [u8], padded: bool) -> Walked {
    let mut rest = bytes;
    let (control, flags) = match take(&mut rest)? {
        // Some access controllers swap these two bytes; the version in the first is always 0.
        [flags, control, _, _] if flags & VERSION != 0 => (control, flags),
        [control, flags, _, _] => (control, flags),
    };
    let (kind, subtype) = ((control >> 2) & 3, control >> 4);
    let [first, second] = [take(&mut rest)?, take(&mut rest)?];
    walk.stations(second, first);
    if kind == CONTROL {
        return Ok(());
    }
    let third = take(&mut rest)?;
    skip(&mut rest, 2)?;
    if kind != DATA {
        return Ok(());
    }
    match (flags & TO_DS != 0, flags & FROM_DS != 0) {
        (false, false) => {}
        (true, false) => walk.stations(second, third),
        (false, true) => walk.stations(third, first),
        (true, true) => walk.stations(take(&mut rest)?, third),
    }
    let mut aggregated = false;
    if subtype & 8 != 0 {
        let [low, _] = take(&mut rest)?;
        aggregated = low & 0x80 != 0;
        skip(&mut rest, if flags & ORDER != 0 { 4 } else { 0 })?;
    }
    if padded {
        let header_len = bytes.len() - rest.len();
        skip(&mut rest, header_len.next_multiple_of(4) - header_len)?;
    }
    // Without a body, or with one that only the stations can read.
    if subtype & 4 != 0 || flags & PROTECTED != 0 {
        return Ok(());
    }
    if aggregated {
        // The first frame of the aggregate speaks for all: they have one receiver.
        ethernet::stations(walk, &mut rest)?;
        skip(&mut rest, 2)?;
    }
    ethernet::llc(walk, rest)
}

/// Radiotap (<https://www.radiotap.org>): only its length and the flag for padding are needed.
pub(crate) fn radiotap<'a>(walk: &mut Walk<'a, '_>, bytes: &'a [u8]) -> Walked {
    const TIMER: u32 = 1;
    const FLAGS: u32 = 2;
    const MORE_WORDS: u32 = 1 << 31;
    const PADDED: u8 = 0x20;

    let mut rest = bytes;
    let [_, _, l0, l1] = take(&mut rest)?;
    let present = u32::from_le_bytes(take(&mut rest)?);
    let mut word = present;
    while word & MORE_WORDS != 0 {
        word = u32::from_le_bytes(take(&mut rest)?);
    }
    let mut padded = false;
    if present & FLAGS != 0 {
        if present & TIMER != 0 {
            let offset = bytes.len() - rest.len();
            skip(&mut rest, offset.next_multiple_of(8) - offset + 8)?;
        }
        let [flags] = take(&mut rest)?;
        padded = flags & PADDED != 0;
    }
    let mut bytes = bytes;
    skip(&mut bytes, usize::from(u16::from_le_bytes([l0, l1])))?;
    frame(walk, bytes, padded)
}

/// Prism or AVS: a magic number and the header's length.
pub(crate) fn prism<'a>(walk: &mut Walk<'a, '_>, bytes: &'a [u8]) -> Walked {
    const AVS_MAGIC: u32 = 0x8021_1000;
    const PRISM_LEN_MAX: u32 = 0xffff;

    let mut rest = bytes;
    let magic = u32::from_be_bytes(take(&mut rest)?);
    let len = take(&mut rest)?;
    let len = match (magic & 0xffff_f000, u32::from_le_bytes(len)) {
        (AVS_MAGIC, _) => u32::from_be_bytes(len),
        // Prism headers are in the byte order of the machine that captured.
        (_, little) if little <= PRISM_LEN_MAX => little,
        _ => u32::from_be_bytes(len),
    };
    let mut bytes = bytes;
    skip(&mut bytes, usize::try_from(len).unwrap_or(usize::MAX))?;
    frame(walk, bytes, false)
}
