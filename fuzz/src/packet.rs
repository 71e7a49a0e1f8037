//! Any bytes are a packet: decoding never fails, and what it finds lies inside the packet.
//!
//! The input: the link type in two bytes, the original length in four, the packet.

use wire::{CommunityId, LinkType, decode};

/// Gives 1 where there is payload.
///
/// # Panics
/// Decoding does, or the payload is longer than the packet, or both directions of a conversation
/// are not one conversation.
pub fn run(input: &[u8]) -> usize {
    let Some((&[high, low, a, b, c, d], packet)) = input.split_first_chunk() else { return 0 };
    let link_type = LinkType(u16::from_be_bytes([high, low]));
    let decoded = decode(link_type, packet, u32::from_be_bytes([a, b, c, d]));
    assert!(decoded.payload.len() <= packet.len());
    let _community_id = CommunityId::of(&decoded.tuple, None);
    assert_eq!(decoded.tuple.reversed().canonical().0, decoded.tuple.canonical().0);
    usize::from(!decoded.payload.is_empty())
}
