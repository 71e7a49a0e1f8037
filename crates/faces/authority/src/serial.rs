//! Serials of certificates.

/// A serial as certificates have it: a positive number of all bytes (RFC 5280, 4.1.2.2).
pub(crate) fn positive(mut serial: [u8; 16]) -> [u8; 16] {
    let [first, ..] = &mut serial;
    *first = (*first & 0x7f) | 0x40;
    serial
}
