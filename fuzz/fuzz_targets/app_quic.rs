//! What is inside of the Initial packets of QUIC: the target encrypts, so that inputs come to
//! the frames and hellos.
#![no_main]

use aes_gcm::aead::AeadInPlace;
use aes_gcm::aes::Aes128;
use aes_gcm::aes::cipher::BlockEncrypt;
use aes_gcm::{Aes128Gcm, KeyInit};
use app::{Budget, Datagram, Interest, Side};
use libfuzzer_sys::fuzz_target;
use wire::Protocol;

const ROOM: usize = 256 << 10;

/// Connection id and the client's keys, RFC 9001 A.1.
const ID: [u8; 8] = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];
const KEY: u128 = 0x1f36_9613_dd76_d546_7730_efcb_e3b1_a22d;
const HEADER_KEY: u128 = 0x9f50_449e_04a0_e810_283a_1e99_33ad_edd2;
const IV: [u8; 12] = [0xfa, 4, 0x4b, 0x2f, 0x42, 0xa3, 0xfd, 0x3b, 0x46, 0xfb, 0x25, 0x5c];

fuzz_target!(|packets: Vec<Vec<u8>>| {
    let mut interest = Interest::of(Protocol::UDP);
    let mut budget = Budget::new(ROOM, ROOM);
    let mut search = None;
    for frames in &packets {
        let payload = &initial(frames);
        let datagram = Datagram { side: Side::Orig, time_ns: 0, ports: (50000, 443), payload };
        if !interest.is_none() {
            app::datagram(&mut search, &mut interest, &datagram, &mut budget);
        }
    }
    if let Some(search) = &mut search {
        search.finish(&mut budget);
    }
    assert_eq!([budget.heads.free_bytes, budget.names.free_bytes], [ROOM; 2]);
});

/// An Initial packet of version 1, number 0.
fn initial(frames: &[u8]) -> Vec<u8> {
    let mut frames = frames.get(..8000).unwrap_or(frames).to_vec();
    let len = u16::try_from(frames.len() + 4 + 16).unwrap() | 0x4000;
    let [high, low] = len.to_be_bytes();
    let mut packet = [&[0xc3, 0, 0, 0, 1, 8][..], &ID, &[0, 0, high, low, 0, 0, 0, 0]].concat();
    let cipher = Aes128Gcm::new(&KEY.to_be_bytes().into());
    cipher.encrypt_in_place(&IV.into(), &packet, &mut frames).unwrap();
    let number = packet.len() - 4;
    packet.extend(frames);
    let sample: [u8; 16] = *packet[number + 4..].first_chunk().unwrap();
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
