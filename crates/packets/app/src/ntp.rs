//! NTP (RFC 5905): version, modes, and the stratum of who answers.

use wire::Names;

use crate::values::detail_text;

const PORT: u16 = 123;
const LEN_MIN: usize = 48;

const MODES: [&str; 8] = [
    "reserved",
    "symmetric-active",
    "symmetric-passive",
    "client",
    "server",
    "broadcast",
    "control",
    "private",
];

/// Modes whose messages have the common form.
const TIME_MODES: core::ops::RangeInclusive<u8> = 1..=5;

/// Its messages have no mark of their own: port, length, version and mode must fit.
pub(crate) fn begins(payload: &[u8], ports: (u16, u16)) -> bool {
    let Some(&first) = payload.first() else {
        return false;
    };
    (ports.0 == PORT || ports.1 == PORT)
        && payload.len() >= LEN_MIN
        && (1..=4).contains(&(first >> 3 & 7))
        && TIME_MODES.contains(&(first & 7))
}

/// Keeps what a message says.
pub(crate) fn read(payload: &[u8], names: &mut Names) {
    let [first, stratum] = *payload.first_chunk().unwrap_or(&[0; 2]);
    let mode = MODES.get(usize::from(first & 7)).expect("three bits");
    detail_text(names, "ntp.version", &(first >> 3 & 7).to_string());
    detail_text(names, "ntp.mode", mode);
    if *mode != "client" {
        detail_text(names, "ntp.stratum", &stratum.to_string());
    }
}
