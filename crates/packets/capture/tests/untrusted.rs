//! What the fuzz targets of this crate start from (`fuzz/seeds`), whole, cut everywhere and with
//! bytes changed: nothing panics, and what is right is read.

#[path = "../../../../fuzz/src/capture_file.rs"]
#[expect(unreachable_pub, reason = "it is the library of the fuzz targets, too")]
mod capture_file;
#[path = "../../../../fuzz/src/made.rs"]
mod made;
#[path = "../../../../fuzz/src/replay.rs"]
mod replay;

use format::pcapng::{
    EnhancedPacketFields, OptionCode, put_enhanced_packet, put_interface_description, put_option,
    put_section_header,
};
use made::made;
use replay::replay;
use wire::LinkType;

#[test]
fn a_kernel_block_ends_whatever_its_offsets_say() {
    replay("kernel_block", capture::untrusted::kernel_block);
}

#[test]
fn descriptors_are_believed_of_what_was_lent() {
    replay("xdp_descriptors", |bytes| capture::untrusted::descriptors(bytes).unwrap());
}

#[test]
fn drivers_may_answer_anything() {
    replay("driver_answer", capture::untrusted::driver_answer);
}

/// A pcap file of two packets, with numbers as `bytes` writes them.
fn pcap(magic: u32, bytes: fn(u32) -> [u8; 4]) -> Vec<u8> {
    let version = if bytes(1) == 1_u32.to_le_bytes() { 0x0004_0002 } else { 0x0002_0004 };
    let mut words = vec![magic, version, 0, 0, 262_144, 1];
    let mut file = Vec::new();
    for second in [1_795_171_222, 3] {
        words.extend([second, 5, 8, 60]);
        file.extend(words.drain(..).flat_map(bytes));
        file.extend(b"\x02\0\0\0\0\x01\x08\0");
    }
    file
}

fn pcapng() -> Vec<u8> {
    let (mut file, mut options) = (Vec::new(), Vec::new());
    put_section_header(&mut file, &[]);
    put_option(&mut options, OptionCode::INTERFACE_RESOLUTION, &[6]);
    put_option(&mut options, OptionCode::INTERFACE_NAME, b"eth0");
    put_interface_description(&mut file, LinkType::ETHERNET, 0, &options);
    put_interface_description(&mut file, LinkType::RAW, 96, &[]);
    for interface in [0, 1] {
        let fields = EnhancedPacketFields { interface, time: 5, original_len: 60, options: &[] };
        put_enhanced_packet(&mut file, &fields, [b"a packet", b"", b""]);
    }
    file
}

/// RFC 1761: a header, and a packet of four bytes, one missing before it.
fn snoop() -> Vec<u8> {
    let words = [2_u32, 4, 60, 4, 28, 1, 1_795_171_222, 7];
    let words = words.iter().flat_map(|word| word.to_be_bytes());
    b"snoop\0\0\0".iter().copied().chain(words).chain(*b"abcd").collect()
}

/// RFC 1952 around one stored block of RFC 1951: compressors differ in what they write.
fn gzip(data: &[u8]) -> Vec<u8> {
    let len = u16::try_from(data.len()).expect("a seed is short");
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    let crc = data.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step));
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    file.extend([len, !len].iter().flat_map(|word| word.to_le_bytes()));
    file.extend(data);
    file.extend([!crc, len.into()].iter().flat_map(|word: &u32| word.to_le_bytes()));
    file
}

#[test]
fn files_may_hold_anything() {
    made("capture_file", "pcap", &pcap(0xa1b2_c3d4, u32::to_le_bytes));
    made("capture_file", "pcap-big-endian", &pcap(0xa1b2_3c4d, u32::to_be_bytes));
    made("capture_file", "pcapng", &pcapng());
    made("capture_file", "snoop", &snoop());
    made("capture_file", "gzip", &gzip(&pcap(0xa1b2_c3d4, u32::to_le_bytes)));
    replay("capture_file", |bytes| capture_file::run(bytes, || {}));
}
