//! Parts of a segment's index: forged ones are refused, and the assembler takes any order of any
//! parts.
//!
//! The checksum is put right here, else no input would come further. Offsets: docs/format.md,
//! Index.
#![no_main]

use format::checksum::body_crc;
use format::directory::{Assembler, BLOCK_TYPE, Part};
use libfuzzer_sys::fuzz_target;

const HEADER: usize = 72;
const ENTRY: usize = 80;

fuzz_target!(|inputs: Vec<Vec<u8>>| {
    let parts: Vec<Vec<u8>> = inputs.into_iter().map(with_checksum).collect();
    let mut assembler = Assembler::default();
    for part in parts.iter().filter_map(|bytes| Part::decode(bytes).ok()) {
        let _directory = part.directory(part.segment());
        let _index = assembler.push(&part);
    }
});

fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() < HEADER {
        return bytes;
    }
    bytes[..4].copy_from_slice(&BLOCK_TYPE.to_le_bytes());
    bytes[8..16].copy_from_slice(b"wspindex");
    bytes[16..18].copy_from_slice(&1_u16.to_le_bytes());
    let entries = ENTRY * usize::from(u16::from_le_bytes([bytes[56], bytes[57]]));
    let payload = u32::from_le_bytes([bytes[60], bytes[61], bytes[62], bytes[63]]) as usize;
    let checked = [bytes.get(8..64), bytes.get(HEADER..HEADER + entries + payload)];
    if let [Some(header), Some(rest)] = checked {
        let checksum = body_crc(&[header, rest].concat());
        bytes[64..72].copy_from_slice(&checksum.to_le_bytes());
    }
    bytes
}
