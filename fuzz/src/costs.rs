//! What inputs of each target may cost: bytes of memory, all that are asked for added up, for any
//! input and for each of its bytes; and what of an input is repeated to see that work is linear.
//!
//! Bounds come from what is known of a parser, and were compared with what inputs take. An input
//! beyond is a defect of the parser, or the reason here is wrong: never raise one without another
//! reason.

use crate::target::{Copies, Cost, records};

const fn cost(base: usize, each: usize, work: Option<Copies>) -> Cost {
    Cost { memory: Some((base, each)), work }
}

/// Payloads of an input: flags, and the length in two bytes.
fn payloads(input: &[u8]) -> usize {
    records(input, |&[_, high, low]: &[u8; 3]| u16::from_be_bytes([high, low]).into())
}

/// Parts behind their lengths in two bytes.
fn parts(input: &[u8]) -> usize {
    records(input, |len: &[u8; 2]| u16::from_be_bytes(*len).into())
}

/// Parts behind their lengths in one byte.
fn short_parts(input: &[u8]) -> usize {
    records(input, |&[len]: &[u8; 1]| len.into())
}

/// A time, and the length of a packet.
fn packets(input: &[u8]) -> usize {
    records(input, |&[_, len]: &[u8; 2]| len.into())
}

/// Frames of the indexer: the length in four bytes, the kind in four.
fn frames(input: &[u8]) -> usize {
    records(input, |&[a, b, c, d, ..]: &[u8; 8]| {
        u32::from_le_bytes([a, b, c, d]).try_into().unwrap_or(usize::MAX)
    })
}

const PAYLOAD_COPIES: Option<Copies> = Some(Copies { head: 0, end: payloads });
const SESSION_COPIES: Option<Copies> = Some(Copies { head: 5, end: payloads });

/// Heads, early segments and names of one session; and for each byte of payload what a parser needs
/// while it reads it.
pub const PAYLOADS: Cost = cost(1 << 20, 1024, PAYLOAD_COPIES);
pub const SESSION: Cost = cost(1 << 20, 1024, SESSION_COPIES);

/// Signatures are matched on the stack; the table of candidates (25 KB) is made at first use.
pub const SIGNATURE: Cost = cost(32 << 10, 0, SESSION_COPIES);

/// What is held of one session, and of each of its first datagrams 1200 bytes, which the target
/// makes of three; larger ones are copied by it and by the code that decrypts.
pub const QUIC: Cost = cost(256 << 10, 64, PAYLOAD_COPIES);

/// Decompressed bytes are not bounded by compressed ones, so that the body judges what is held.
pub const CAPTURE_FILE: Cost = Cost { memory: None, work: Copies::WHOLE };

/// A page of 4 KiB, whatever the input: its names, paths and lists, read twice and written once.
pub const PAGE: Cost = cost(16 << 10, 0, None);

/// An interface or a gap takes 20 bytes of a body at least, and a struct of about 100.
pub const PIECE: Cost = cost(4 << 10, 16, Copies::WHOLE);

/// A block of 12 bytes is shown in two byte orders by about 200 bytes of text, and 5 for each of
/// its own, and converted.
pub const BLOCKS: Cost = cost(4 << 10, 64, Copies::WHOLE);

/// Parts are copied to put their checksum right, and joined; an entry of the directory takes 80
/// bytes and a struct of about 100.
pub const INDEX_PARTS: Cost = cost(4 << 10, 16, Some(Copies { head: 0, end: parts }));

/// A word of up to 32 bytes that is none is compared with those of 160 words and fields and 600
/// zones that are about as long, in three rows of 8 bytes for each letter; only the first such
/// word. A term of two bytes takes a token and a struct.
pub const QUERY: Cost = cost(256 << 10, 256, Copies::WHOLE);

/// Tables of 1.5 MB that are made whatever comes, and up to 60 lines whose queries are read; a
/// packet of two bytes has a second of its own.
pub const TALKERS: Cost = cost(2 << 20, 512, Some(Copies { head: 0, end: packets }));

/// Decoding refers to the packet; a community id is made of it.
pub const PACKET: Cost = cost(1 << 10, 0, Some(Copies { head: 6, end: <[u8]>::len }));

/// The packet is copied by the target and for each of two runs; the key and what was met are small.
pub const ANONYMISE: Cost = cost(16 << 10, 16, Some(Copies { head: 2, end: <[u8]>::len }));

/// Six readings, each with space for 8192 rows of each column, take 38 MB of any file; the file is
/// as long as the input or 10 KB.
pub const INDEX_FILE: Cost = cost(64 << 20, 1024, None);

/// A disk of 5 MiB in pieces of 16 KiB, read three times and recorded into.
pub const IMAGE: Cost = cost(32 << 20, 0, None);

/// A value of JSON takes two bytes and a struct of 32, in lists that double.
pub const MANIFEST: Cost = cost(16 << 10, 64, Copies::WHOLE);

/// A line is copied once, and read into a struct of about 400 bytes; a number takes two bytes.
pub const AUDIT: Cost = cost(512 << 10, 512, Copies::WHOLE);

/// The same as of a manifest; and an event of about 60 bytes is read twice and asked by three
/// queries, of 4 KB each.
pub const LOG: Cost = cost(64 << 10, 512, Copies::WHOLE);

/// The same as of a manifest; a diagnosis as text and as JSON, and three tables, of which an
/// interface or a disk of about 40 bytes has a line each.
pub const RECORDER: Cost = cost(128 << 10, 256, Copies::WHOLE);

/// A question is read into 4 KiB, and is shorter than 8.
pub const QUESTION: Cost = cost(16 << 10, 4, Some(Copies { head: 0, end: short_parts }));

/// Packets are handed out where they lie, in lists of them.
pub const KERNEL_BLOCK: Cost = cost(4 << 10, 8, None);

/// Chunks and their owners, as many as there are.
pub const DESCRIPTORS: Cost = cost(4 << 10, 0, Copies::WHOLE);

/// Words, a place for each loss, and names while they are read.
pub const DRIVER: Cost = cost(4 << 10, 8, None);

/// A socket takes 72 bytes, and a struct of about 200.
pub const NETLINK: Cost = cost(4 << 10, 8, Copies::WHOLE);

/// A field of a layout takes 30 bytes and a struct of about 60, a record 8 and one of about 100.
pub const RECORDS: Cost = cost(16 << 10, 32, Copies::WHOLE);

/// An event takes 24 bytes, and less in a list.
pub const EVENTS: Cost = cost(4 << 10, 8, Copies::WHOLE);

/// 64 KiB are the numbers of the most processors, which a short list may name; lines are read by
/// every parser, whose structs take as much as the line or less.
pub const TEXTS: Cost = cost(96 << 10, 64, Copies::WHOLE);

/// Lists grow by what is there, and double; an answer is read twice and written.
pub const FRAMES: Cost = cost(4 << 10, 16, Some(Copies { head: 0, end: frames }));

/// Pages of fixed lengths.
pub const DRIVE: Cost = cost(16 << 10, 0, None);

/// The content, filled up to whole rows, and the row that is read.
pub const DISK: Cost = cost(32 << 10, 2, None);

/// The body samples what is in use itself.
pub const JUDGED_BY_ITSELF: Cost = Cost { memory: None, work: None };
