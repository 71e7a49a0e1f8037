//! TCP (RFC 9293), UDP (RFC 768), ICMP (RFC 792, 4443), SCTP (RFC 9260): the ports and what
//! sessions need besides.
//!
//! A header of which only the ports were captured still names its session.

use crate::decoded::{IcmpHeader, TcpHeader, TcpOptions, Transport};
use crate::tunnel;
use crate::walk::{Short, Walk, Walked, skip, take};

pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMPV6: u8 = 58;
pub(crate) const SCTP: u8 = 132;

const SYN: u8 = 0x02;

#[inline]
fn ports(walk: &mut Walk<'_, '_>, bytes: &mut &[u8]) -> Result<(u16, u16), Short> {
    walk.no_payload();
    let [s0, s1, d0, d1] = take(bytes)?;
    let (source, destination) = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
    walk.ports(source, destination);
    Ok((source, destination))
}

#[inline]
pub(crate) fn tcp<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    ports(walk, &mut bytes)?;
    let [s0, s1, s2, s3, a0, a1, a2, a3, offset, flags, w0, w1, _, _, _, _] = take(&mut bytes)?;
    let options_len = (usize::from(offset >> 4) * 4).saturating_sub(20);
    let options = bytes.get(..options_len);
    let header = TcpHeader {
        tcp_seq: u32::from_be_bytes([s0, s1, s2, s3]),
        tcp_ack: u32::from_be_bytes([a0, a1, a2, a3]),
        flags,
        window: u16::from_be_bytes([w0, w1]),
        options: if flags & SYN == 0 {
            TcpOptions::default()
        } else {
            tcp_options(options.unwrap_or(bytes))
        },
    };
    let payload = walk.behind(bytes, options_len);
    walk.transport(Transport::Tcp(header), payload.as_ref().copied().unwrap_or_default());
    payload.map(drop)
}

fn tcp_options(mut bytes: &[u8]) -> TcpOptions {
    let mut options = TcpOptions::default();
    while let [kind, rest @ ..] = bytes {
        bytes = match (kind, rest) {
            (0, _) => return options,
            (1, _) => rest,
            (_, [len, ..]) => {
                // The length counts kind and length themselves; less than that never gets on.
                let Some((value, after)) =
                    usize::from(*len).checked_sub(1).and_then(|len| rest.split_at_checked(len))
                else {
                    return options;
                };
                match (kind, value) {
                    (2, [4, m0, m1]) => options.mss = Some(u16::from_be_bytes([*m0, *m1])),
                    (3, [3, shift]) => options.window_scale = Some(*shift),
                    (4, [2]) => options.sack_permitted = true,
                    (8, [10, ..]) => options.timestamps = true,
                    (_, []) => return options,
                    _ => {}
                }
                after
            }
            (_, []) => return options,
        };
    }
    options
}

#[inline]
pub(crate) fn udp<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    let (source, destination) = ports(walk, &mut bytes)?;
    let [l0, l1, _, _] = take(&mut bytes)?;
    // Zero means longer than the field can say; a first fragment's field counts the whole datagram.
    let len = u32::from(u16::from_be_bytes([l0, l1])).checked_sub(8);
    let payload = walk.limit(bytes, len.unwrap_or(u32::MAX));
    walk.transport(Transport::Udp, payload);
    if walk.is_fragment() {
        return Ok(());
    }
    tunnel::in_udp(walk, source, destination, payload)
}

pub(crate) fn icmp<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    walk.no_payload();
    let [kind, code] = take(&mut bytes)?;
    let payload = walk.behind(bytes, 6);
    let header = IcmpHeader { kind, code };
    walk.transport(Transport::Icmp(header), payload.as_ref().copied().unwrap_or_default());
    payload.map(drop)
}

pub(crate) fn sctp<'a>(walk: &mut Walk<'a, '_>, mut bytes: &'a [u8]) -> Walked {
    ports(walk, &mut bytes)?;
    skip(&mut bytes, 8)?;
    walk.transport(Transport::Sctp, bytes);
    Ok(())
}
