//! Changes to a volume by somebody who may write to its member, and so knows the secret key of its
//! heads: every checksum is computed anew.

#![expect(clippy::indexing_slicing, reason = "a test that cannot change its data fails")]

use std::path::PathBuf;

use format::checksum::{RowAddress, body_crc};
use format::head::{HEAD_BYTES, Head, Kind, StripeHead};
use format::superblock::Superblock;

const ROW: usize = HEAD_BYTES;

/// The bytes of a member of a volume without parity.
pub(crate) struct Reforged {
    path: PathBuf,
    bytes: Vec<u8>,
    superblock: Superblock,
    /// With the places of their rows in the file, in the order of stripes.
    heads: Vec<(usize, Head)>,
}

impl Reforged {
    pub(crate) fn open(path: &str) -> Self {
        let bytes = std::fs::read(path).unwrap();
        let superblock = Superblock::decode(bytes[..ROW].try_into().unwrap(), 0).unwrap();
        let geometry = superblock.geometry;
        let mut heads = Vec::new();
        for slot in geometry.all_slots() {
            let begin = usize::try_from(geometry.offset_of_slot(slot)).unwrap();
            let mut row = 0;
            while row < usize::from(geometry.rows_per_slot()) {
                let at = begin + row * ROW;
                let page: &[u8; ROW] = bytes[at..at + ROW].try_into().unwrap();
                let Ok(head) = Head::decode(page, Some(&superblock.head_key)) else { break };
                row += 1 + usize::from(head.stripe.rows);
                let closes = head.stripe.kind.closes_slot();
                heads.push((at, head));
                if closes {
                    break;
                }
            }
        }
        heads.sort_by_key(|(_, head)| head.stripe.stripe);
        Self { path: path.into(), bytes, superblock, heads }
    }

    /// The stripes with packets, and their bodies.
    pub(crate) fn data(mut self) -> Vec<(Head, Vec<u8>)> {
        let numbers = 0..self.heads.len();
        let all = numbers.map(|it| (self.heads[it].1.clone(), self.body(it).to_vec()));
        let all: Vec<_> = all.collect();
        all.into_iter().filter(|(head, _)| head.stripe.kind == Kind::Data).collect()
    }

    /// The place of a stripe with packets, among the others.
    fn data_stripe(&self) -> usize {
        let has_packets = |head: &Head| head.stripe.kind == Kind::Data && head.stripe.rows > 0;
        self.heads.iter().position(|(_, head)| has_packets(head)).expect("it was recorded into")
    }

    fn body(&mut self, number: usize) -> &mut [u8] {
        let (at, head) = &self.heads[number];
        let begin = at + ROW;
        &mut self.bytes[begin..begin + usize::from(head.stripe.rows) * ROW]
    }

    /// Writes a head whose body has changed, with the checksums of that.
    fn seal(&mut self, number: usize, stripe: StripeHead) {
        let body = self.body(number).to_vec();
        let (at, head) = &self.heads[number];
        let at = *at;
        let stripe = StripeHead { manifest: vec![body_crc(&body)], ..stripe };
        let address = RowAddress {
            epoch: stripe.epoch,
            sequence: stripe.stripe.sequence,
            sub: stripe.stripe.sub,
            column: 0,
        };
        let mut piece = head.piece.clone();
        let rows = (0..).zip(body.chunks(ROW));
        piece.row_crcs = rows.map(|(row, bytes)| address.row_crc(row, bytes)).collect();
        let head = Head::new(stripe, piece);
        let page = head.encode(&self.superblock.head_key);
        self.bytes[at..at + ROW].copy_from_slice(&page);
        self.heads[number].1 = head;
    }

    /// Changes a byte of a packet, and all heads behind it, so that the chain is whole. Gives the
    /// stripe.
    pub(crate) fn rewrite_a_packet(mut self) -> String {
        let number = self.data_stripe();
        // Behind the interface and the head of the first packet: inside of its data.
        self.body(number)[700] ^= 1;
        let first = self.heads[number].1.stripe.clone();
        self.seal(number, first.clone());
        for next in number + 1..self.heads.len() {
            let before = self.heads[next - 1].1.clone();
            let mut stripe = self.heads[next].1.stripe.clone();
            assert_eq!(stripe.previous, before.stripe.stripe, "a chain");
            (stripe.previous_cid, stripe.previous_manifest) = (before.cid, before.stripe.manifest);
            let (at, head) = &self.heads[next];
            let head = Head::new(stripe, head.piece.clone());
            let page = head.encode(&self.superblock.head_key);
            self.bytes[*at..at + ROW].copy_from_slice(&page);
            self.heads[next].1 = head;
        }
        std::fs::write(&self.path, &self.bytes).unwrap();
        first.stripe.to_string()
    }

    /// Changes a byte of a body, and eight others so that its CRC-64 stays. Gives the stripe.
    pub(crate) fn exchange_a_body(mut self) -> String {
        let number = self.data_stripe();
        let before = body_crc(self.body(number));
        self.body(number)[700] ^= 1;
        let mut wanted = before ^ body_crc(self.body(number));
        // What each of 64 bits does to the checksum, reduced to one of them for each of its bits.
        let mut basis: [Option<(u64, u64)>; 64] = [None; 64];
        for bit in 0..64_usize {
            let (at, mask) = (900 + bit / 8, 1_u8 << (bit % 8));
            let own = body_crc(self.body(number));
            self.body(number)[at] ^= mask;
            let (mut effect, mut bits) = (own ^ body_crc(self.body(number)), 1_u64 << bit);
            self.body(number)[at] ^= mask;
            while effect != 0 {
                let top = 63 - usize::try_from(effect.leading_zeros()).unwrap();
                let Some((other, others)) = basis[top] else {
                    basis[top] = Some((effect, bits));
                    break;
                };
                (effect, bits) = (effect ^ other, bits ^ others);
            }
        }
        let mut bits = 0;
        while wanted != 0 {
            let top = 63 - usize::try_from(wanted.leading_zeros()).unwrap();
            let (effect, of) = basis[top].expect("64 neighbouring bits reach every checksum");
            (wanted, bits) = (wanted ^ effect, bits ^ of);
        }
        for (byte, change) in (900..).zip(bits.to_le_bytes()) {
            self.body(number)[byte] ^= change;
        }
        assert_eq!(body_crc(self.body(number)), before);
        let stripe = self.heads[number].1.stripe.clone();
        let cid = self.heads[number].1.cid;
        self.seal(number, stripe.clone());
        assert_eq!(self.heads[number].1.cid, cid, "the chain does not show it");
        std::fs::write(&self.path, &self.bytes).unwrap();
        stripe.stripe.to_string()
    }
}

/// A pcap file of about so many bytes, of packets that mean nothing.
pub(crate) fn capture(bytes: usize) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend(word.to_le_bytes());
    }
    let mut second = 1_700_000_000_u32;
    while file.len() < bytes {
        for word in [second, 0, 1400, 1400] {
            file.extend(word.to_le_bytes());
        }
        file.extend([0x55; 1400]);
        second += 1;
    }
    file
}
