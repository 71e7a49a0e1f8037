//! What only our own options say: kinds of them, and gaps as they stand in statistics blocks.

use units::{InterfaceId, Timestamp};

use crate::directory::{Gap, GapCause};
use crate::field::{get, get_i64, get_u32, get_u64};

/// Bytes of a gap in a statistics block.
pub(super) const GAP_BYTES: usize = 40;

/// Kinds of our custom options in interface description and statistics blocks: the first byte of
/// the data.
pub(super) const OPTION_INTERFACE: u8 = 1;
pub(super) const OPTION_STATISTICS: u8 = 2;

fn cause_code(cause: GapCause) -> u8 {
    let place =
        GapCause::ALL.iter().position(|&known| known == cause).expect("ALL has every cause");
    u8::try_from(place + 1).expect("few causes")
}

fn cause_of(code: u8) -> Option<GapCause> {
    GapCause::ALL.get(usize::from(code).checked_sub(1)?).copied()
}

const UNKNOWN: u64 = u64::MAX;
const NO_INTERFACE: InterfaceId = InterfaceId(u32::MAX);

/// 40 bytes: cause, 3 reserved, interface, packets, bytes, from, to; all ones is unknown.
pub(super) fn put_gap(out: &mut Vec<u8>, gap: &Gap) {
    out.extend_from_slice(&[cause_code(gap.cause), 0, 0, 0]);
    out.extend_from_slice(&gap.interface.unwrap_or(NO_INTERFACE).get().to_le_bytes());
    out.extend_from_slice(&gap.packets.unwrap_or(UNKNOWN).to_le_bytes());
    out.extend_from_slice(&gap.bytes.unwrap_or(UNKNOWN).to_le_bytes());
    out.extend_from_slice(&gap.from.0.to_le_bytes());
    out.extend_from_slice(&gap.to.0.to_le_bytes());
}

pub(super) fn get_gap(bytes: &[u8; GAP_BYTES]) -> Option<Gap> {
    let [code] = get(bytes, 0);
    let known = |value: u64| (value != UNKNOWN).then_some(value);
    Some(Gap {
        cause: cause_of(code)?,
        interface: Some(InterfaceId(get_u32(bytes, 4))).filter(|&id| id != NO_INTERFACE),
        packets: known(get_u64(bytes, 8)),
        bytes: known(get_u64(bytes, 16)),
        from: Timestamp(get_i64(bytes, 24)),
        to: Timestamp(get_i64(bytes, 32)),
    })
}
