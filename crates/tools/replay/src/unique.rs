//! Addresses of their own for every loop, with checksums that stay right.
//!
//! In loop `n` a fixed step is added `n` times to the host part of both addresses of the outermost
//! IP header. The step is odd, so the same session has other addresses in each loop, until the
//! host part comes round (16 bits at least). The same address becomes the same address everywhere
//! in a loop, two never become one, and an address stays in the private or public range it was
//! in. Multicast, broadcast, loopback and unspecified addresses stay as they are.
//!
//! Checksums are updated by the difference (RFC 1624, equation 3): what was right stays right, and
//! what was wrong in the capture stays wrong. Addresses inside of payloads, tunnels and ARP stay.

use units::number::to_u64;
use wire::ChecksumChange;

use crate::headers::{ip_header, number};

/// 2^64 divided by the golden ratio: steps that spread well; odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Gives a frame the addresses of loop number `loop_number`; the first, 0, keeps those of the
/// capture. False where it has none that may change.
pub fn renumber(frame: &mut [u8], loop_number: u64) -> bool {
    let Some(header) = ip_header(frame) else { return false };
    let before = header.addresses;
    let Some(addresses) = frame.get_mut(before) else { return false };
    let mut change = ChecksumChange::default();
    let is_changed = match addresses.len() {
        8 => addresses.as_chunks_mut().0.iter_mut().fold(false, |is_changed, address| {
            is_changed | exchange(address, |old| ipv4_in_loop(old, loop_number), &mut change)
        }),
        _ => addresses.as_chunks_mut().0.iter_mut().fold(false, |is_changed, address| {
            is_changed | exchange(address, |old| ipv6_in_loop(old, loop_number), &mut change)
        }),
    };
    if let Some(at) = header.checksum {
        update(frame, at, change);
    }
    if let Some(transport) = header.transport {
        let is_absent = transport.is_optional && number(frame, transport.at) == Some(0);
        if !is_absent {
            update(frame, transport.at, change);
        }
        // 0 would say that there is no checksum; 0xffff is the same number (RFC 768).
        if transport.is_optional && !is_absent && number(frame, transport.at) == Some(0) {
            put(frame, transport.at, 0xffff);
        }
    }
    is_changed
}

/// Replaces an address; false where it may not change.
fn exchange<const N: usize>(
    address: &mut [u8; N],
    new: impl Fn([u8; N]) -> Option<[u8; N]>,
    change: &mut ChecksumChange,
) -> bool {
    let Some(new) = new(*address) else { return false };
    change.add(address, &new);
    *address = new;
    true
}

/// How many bits of an address may change, by its first byte, so that what is private (RFC 1918),
/// shared (RFC 6598) or link-local (RFC 3927) stays so.
fn host_bits(first: u8) -> Option<u32> {
    match first {
        0 | 127 | 224.. => None,
        100 => Some(22),
        172 => Some(20),
        169 | 192 => Some(16),
        _ => Some(24),
    }
}

fn ipv4_in_loop(address: [u8; 4], loop_number: u64) -> Option<[u8; 4]> {
    let bits = host_bits(address[0])?;
    let host = u32::MAX >> (32 - bits);
    // The upper bits of the step are its best; the lowest is set, which keeps it odd.
    let step = (STEP >> (64 - bits)) | 1;
    let steps = loop_number.wrapping_mul(step) & u64::from(host);
    let steps = u32::try_from(steps).expect("a host part has at most 24 bits");
    let old = u32::from_be_bytes(address);
    Some(((old & !host) | (old.wrapping_add(steps) & host)).to_be_bytes())
}

fn ipv6_in_loop(address: [u8; 16], loop_number: u64) -> Option<[u8; 16]> {
    let address = u128::from_be_bytes(address);
    let network = address >> 64;
    // Multicast (RFC 4291, 2.7); unspecified, loopback, and IPv4 in disguise.
    if network == 0 || address >> 120 == 0xff {
        return None;
    }
    let host = address & u128::from(u64::MAX);
    let host = (host + u128::from(loop_number.wrapping_mul(STEP))) & u128::from(u64::MAX);
    Some((network << 64 | host).to_be_bytes())
}

/// Brings the checksum at this place up to date.
fn update(frame: &mut [u8], at: usize, change: ChecksumChange) {
    if let Some(old) = number(frame, at) {
        put(frame, at, change.apply(old));
    }
}

fn put(frame: &mut [u8], at: usize, value: u16) {
    if let Some(bytes) = frame.get_mut(at..at + 2) {
        bytes.copy_from_slice(&value.to_be_bytes());
    }
}

/// One of `count` places for a frame, the same for both directions of a pair of hosts, so that
/// packets of a session and fragments of a datagram stay in one place.
pub(crate) fn place_of(frame: &[u8], count: usize) -> usize {
    const STATIONS: core::ops::Range<usize> = 0..12;
    let range = ip_header(frame).map_or(STATIONS, |header| header.addresses);
    let pair = frame.get(range).unwrap_or_default();
    let (one, other) = pair.split_at(pair.len() / 2);
    let add = |sum: u64, (at, &byte): (usize, &u8)| sum + (u64::from(byte) << (at % 8 * 8 % 56));
    let sum = |address: &[u8]| address.iter().enumerate().fold(0_u64, add);
    let mixed = (sum(one) ^ sum(other)).wrapping_mul(STEP) >> 32;
    let count = to_u64(count);
    usize::try_from(mixed % count.max(1)).expect("below a count of memory")
}

#[cfg(test)]
mod tests;
