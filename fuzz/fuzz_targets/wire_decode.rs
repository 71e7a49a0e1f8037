//! Any bytes are a packet: decoding never fails, and what it finds lies inside the packet.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{CommunityId, LinkType, decode};

fuzz_target!(|input: (u16, u32, &[u8])| {
    let (link_type, original_len, packet) = input;
    let decoded = decode(LinkType(link_type), packet, original_len);
    assert!(decoded.payload.len() <= packet.len());
    let _community_id = CommunityId::of(&decoded.tuple, None);
    assert_eq!(decoded.tuple.reversed().canonical().0, decoded.tuple.canonical().0);
});
