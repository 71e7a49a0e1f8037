//! Payloads of one session, for the parsers of metadata and for the one that recognises protocols.
//!
//! Payloads in an input follow one another: a byte of flags, the length in two bytes, the payload.
//! Flags: 1 by the responder, 2 cut, 4 bytes before it are missing, 8 seen before.

use aes_gcm::aead::AeadInPlace as _;
use aes_gcm::aes::Aes128;
use aes_gcm::aes::cipher::BlockEncrypt as _;
use aes_gcm::{Aes128Gcm, KeyInit as _};
use app::signature::{Carrier, Payload, Watch, look};
use app::{Budget, Datagram, Findings, Interest, Segment, Side};
use wire::{Names, Protocol};

/// What each of the two limits of a budget holds.
const ROOM: usize = 256 << 10;

/// Targets of one protocol: its transport and the ports of the session.
pub const SESSIONS: [(&str, Protocol, (u16, u16)); 12] = [
    ("app_tls", Protocol::TCP, (40_000, 443)),
    ("app_http", Protocol::TCP, (40_000, 80)),
    ("app_dns_tcp", Protocol::TCP, (40_000, 53)),
    ("app_dns_udp", Protocol::UDP, (40_000, 53)),
    ("app_ssh", Protocol::TCP, (40_000, 22)),
    ("app_smb", Protocol::TCP, (40_000, 445)),
    ("app_rdp", Protocol::TCP, (40_000, 3389)),
    ("app_modbus", Protocol::TCP, (40_000, 502)),
    ("app_ftp", Protocol::TCP, (40_000, 21)),
    ("app_smtp", Protocol::TCP, (40_000, 25)),
    ("app_dhcp", Protocol::UDP, (68, 67)),
    ("app_ntp", Protocol::UDP, (123, 123)),
];

/// Payloads of a session at the port of this target's protocol.
///
/// # Panics
/// As [`session`] does; when there is no such target.
pub fn one(target: &str, input: &[u8]) -> usize {
    let known = SESSIONS.iter().find(|(name, ..)| *name == target);
    let (_, proto, ports) = known.expect("a target of one protocol");
    session(*proto, *ports, input)
}

/// Payloads of any session. The input: 1 for TCP, both ports, then payloads.
///
/// # Panics
/// As [`session`] does.
pub fn any(input: &[u8]) -> usize {
    let Some((&[proto, a, b, c, d], rest)) = input.split_first_chunk() else { return 0 };
    let ports = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    session(if proto == 1 { Protocol::TCP } else { Protocol::UDP }, ports, rest)
}

/// The next payload and its flags.
fn next<'a>(rest: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&[flags, high, low], after) = rest.split_first_chunk()?;
    let len = usize::from(u16::from_be_bytes([high, low])).min(after.len());
    let (payload, after) = after.split_at(len);
    *rest = after;
    Some((flags, payload))
}

fn side(flags: u8) -> Side {
    if flags & 1 == 0 { Side::Orig } else { Side::Resp }
}

/// Payloads of one session through every parser that its ports and its content name; what is held
/// is given back. Gives how many names were found.
///
/// # Panics
/// A list or a value is longer than it may be, or space is not given back.
pub fn session(proto: Protocol, ports: (u16, u16), mut input: &[u8]) -> usize {
    let mut interest = Interest::of(proto);
    let mut budget = Budget::new(ROOM, ROOM);
    let mut findings = Findings::Nothing;
    let mut sent = [0_u32; 2];
    let mut time_ns = 0;
    while let Some((flags, payload)) = next(&mut input)
        && !interest.is_none()
    {
        time_ns += 1000;
        let side = side(flags);
        if proto != Protocol::TCP {
            let datagram = Datagram { side, time_ns, ports, payload };
            app::datagram(&mut findings, &mut interest, &datagram, &mut budget);
            continue;
        }
        let len = u32::try_from(payload.len()).expect("a length of 16 bits");
        let place = &mut sent[usize::from(flags & 1)];
        let is_ahead = flags & 4 != 0;
        if is_ahead {
            *place = place.wrapping_add(len);
        }
        if flags & 8 != 0 {
            *place = place.wrapping_sub(2 * len);
        }
        let is_truncated = flags & 2 != 0;
        let segment =
            Segment { side, time_ns, start: *place, payload, is_truncated, is_ahead, ports };
        app::segment(&mut findings, &mut interest, &segment, &mut budget);
        *place = place.wrapping_add(len);
    }
    ended(findings, &mut budget)
}

fn ended(mut findings: Findings, budget: &mut Budget) -> usize {
    findings.finish(budget);
    let found = findings.take().map_or(0, |names| bounded(&names.unpack()));
    assert_eq!([budget.heads.free_bytes, budget.names.free_bytes], [ROOM; 2]);
    found
}

/// How many names there are; they are not too many, and none is too long.
fn bounded(names: &Names) -> usize {
    let lists = [
        &names.alpn,
        &names.http_host,
        &names.http_method,
        &names.http_path,
        &names.http_user_agent,
        &names.http_content_type,
        &names.dns_names,
        &names.dns_answers,
        &names.app_detail,
    ];
    for list in lists {
        assert!(list.len() <= 32 && list.iter().all(|text| text.len() <= 300));
    }
    lists.iter().map(|list| list.len()).sum::<usize>() + usize::from(names.app.is_some())
}

/// Any payloads of a session are recognised once, which is final. The input is that of [`any`].
///
/// # Panics
/// A decision is none, or changes.
pub fn signature(input: &[u8]) -> usize {
    let Some((&[proto, a, b, c, d], mut rest)) = input.split_first_chunk() else { return 0 };
    let ports = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    let carrier = if proto == 1 { Carrier::Tcp } else { Carrier::Udp };
    let mut watch = Watch::default();
    while let Some((flags, bytes)) = next(&mut rest) {
        let side = side(flags);
        let len = bytes.len() + if flags & 2 == 0 { 0 } else { 1000 };
        let is_done = watch.take(side, &look(&Payload { carrier, side, ports, bytes, len }));
        let found = watch.found();
        assert!(!is_done || found.is_some());
        if is_done {
            watch.take(side, &look(&Payload { carrier, side, ports, bytes, len }));
            assert_eq!(watch.found(), found);
        }
    }
    usize::from(watch.found().is_some())
}

/// Connection id and the client's keys, RFC 9001 A.1.
const ID: [u8; 8] = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];
const KEY: u128 = 0x1f36_9613_dd76_d546_7730_efcb_e3b1_a22d;
const HEADER_KEY: u128 = 0x9f50_449e_04a0_e810_283a_1e99_33ad_edd2;
const IV: [u8; 12] = [0xfa, 4, 0x4b, 0x2f, 0x42, 0xa3, 0xfd, 0x3b, 0x46, 0xfb, 0x25, 0x5c];

/// What is inside of QUIC's Initial packets: each payload of the input is the frames of one, which
/// is encrypted here, so that inputs come to the frames and hellos.
///
/// # Panics
/// As [`session`] does.
pub fn quic(mut input: &[u8]) -> usize {
    let mut interest = Interest::of(Protocol::UDP);
    let mut budget = Budget::new(ROOM, ROOM);
    let mut findings = Findings::Nothing;
    while let Some((flags, frames)) = next(&mut input)
        && !interest.is_none()
    {
        let payload = &initial(frames);
        let datagram = Datagram { side: side(flags), time_ns: 0, ports: (50_000, 443), payload };
        app::datagram(&mut findings, &mut interest, &datagram, &mut budget);
    }
    ended(findings, &mut budget)
}

/// An Initial packet of version 1, number 0.
fn initial(frames: &[u8]) -> Vec<u8> {
    let mut frames = frames.get(..8000).unwrap_or(frames).to_vec();
    let len = u16::try_from(frames.len() + 4 + 16).expect("frames are bounded") | 0x4000;
    let [high, low] = len.to_be_bytes();
    let mut packet = [&[0xc3, 0, 0, 0, 1, 8][..], &ID, &[0, 0, high, low, 0, 0, 0, 0]].concat();
    let cipher = Aes128Gcm::new(&KEY.to_be_bytes().into());
    cipher.encrypt_in_place(&IV.into(), &packet, &mut frames).expect("a packet is short");
    let number = packet.len() - 4;
    packet.extend(frames);
    let sample: [u8; 16] = *packet[number + 4..].first_chunk().expect("a tag follows");
    let mut mask = sample.into();
    Aes128::new(&HEADER_KEY.to_be_bytes().into()).encrypt_block(&mut mask);
    packet[0] ^= mask[0] & 0x0f;
    for (byte, mask) in packet[number..number + 4].iter_mut().zip(&mask[1..]) {
        *byte ^= mask;
    }
    // As long as a client's first datagram, from which alone keys are derived.
    packet.resize(packet.len().max(1200), 0);
    packet
}
