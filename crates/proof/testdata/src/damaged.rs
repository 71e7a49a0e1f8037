//! Captures that end too early, have times that run backwards, or are empty.

use crate::container::bytes_of;
use crate::layers::{Ends, Link, Side, UDP};
use crate::payloads::filler;
use crate::scene::{Form, Scene};
use crate::talk::Talk;

/// A capture in `derived`.
pub(crate) struct Damaged {
    pub(crate) file: &'static str,
    pub(crate) bytes: Vec<u8>,
    /// Whole packets before the damage.
    pub(crate) packets: usize,
    /// Where the damage begins, in bytes of the file.
    pub(crate) from_byte: Option<usize>,
}

const FILE_HEADER_LEN: usize = 24;
const RECORD_HEADER_LEN: usize = 16;
/// Payload of each of the packets.
const PAYLOAD_LEN: usize = 100;
const PACKETS: usize = 20;
/// An Ethernet frame of them: 42 bytes of headers.
const FRAME_LEN: usize = 42 + PAYLOAD_LEN;
/// A pcapng block of them: 32 bytes around a frame that is padded to a multiple of four.
const BLOCK_LEN: usize = 32 + FRAME_LEN.next_multiple_of(4);

fn plain(form: Form) -> Scene {
    let mut scene = Scene::new("", form, Link::Ethernet);
    let ends = Ends::new(UDP, ("192.0.2.10", 49_000), ("198.51.100.80", 9000));
    let talk = Talk::new(&mut scene, ends);
    let said = (0..PACKETS).fold(talk, |talk, _| talk.datagram(Side::A, &filler(PAYLOAD_LEN)));
    // The last of its uses of the scene.
    drop(said);
    scene.ended()
}

pub(crate) fn all() -> Vec<Damaged> {
    let pcap = bytes_of(&plain(Form::PCAP));
    let record = |number: usize| FILE_HEADER_LEN + number * (RECORD_HEADER_LEN + FRAME_LEN);
    assert_eq!(pcap.len(), record(PACKETS), "the sizes above are those of the file");
    let cut = |file, len: usize, packets, from_byte| {
        let bytes = pcap[..len].to_vec();
        Damaged { file, bytes, packets, from_byte }
    };
    let mut too_long = pcap.clone();
    too_long[record(6) + 8..record(6) + 12].fill(0xff);
    let mut all = vec![
        cut("header-only.pcap", FILE_HEADER_LEN, 0, None),
        cut("zero-bytes.pcap", 0, 0, Some(0)),
        cut("cut-file-header.pcap", 10, 0, Some(0)),
        cut("cut-mid-record-header.pcap", record(9) + 9, 9, Some(record(9))),
        cut("cut-mid-record.pcap", record(9) + RECORD_HEADER_LEN + 69, 9, Some(record(9))),
        Damaged {
            file: "bad-caplen.pcap",
            bytes: too_long,
            packets: 6,
            from_byte: Some(record(6)),
        },
    ];
    let mut backwards = plain(Form::PCAP);
    backwards.frames.reverse();
    let mut empty = plain(Form::PCAP);
    empty.frames.iter_mut().step_by(3).for_each(|frame| frame.bytes.clear());
    for (file, scene) in [("time-backwards.pcap", backwards), ("zero-length.pcap", empty)] {
        let bytes = bytes_of(&scene);
        all.push(Damaged { file, bytes, packets: PACKETS, from_byte: None });
    }
    all.extend(pcapng());
    all
}

fn pcapng() -> [Damaged; 2] {
    let pcapng = bytes_of(&plain(Form::PCAPNG));
    let block = |number: usize| pcapng.len() - (PACKETS - number) * BLOCK_LEN;
    let cut = pcapng[..block(9) + BLOCK_LEN - 5].to_vec();
    let mut disagrees = pcapng.clone();
    let trailer = block(9) + BLOCK_LEN - 4;
    disagrees[trailer..trailer + 2].copy_from_slice(&[0x34, 0x12]);
    let damaged =
        |file, bytes, packets| Damaged { file, bytes, packets, from_byte: Some(block(9)) };
    // Where only the trailer is wrong, the packet before it is whole.
    [damaged("cut-block.pcapng", cut, 9), damaged("bad-trailer.pcapng", disagrees, 10)]
}
