//! The stripes that an anchor lists: a record of 80 bytes for each piece, in the order of the ring.
//!
//! Layout: docs/evidence.md, The list of stripes. The first record is a header.

use format::head::{SEQUENCE_MAX, StripeId, VolumeId};
use thiserror::Error;
use units::Sequence;

/// Bytes of a record, and of the header.
pub const LISTED_BYTES: usize = 80;

const MAGIC: [u8; 8] = *b"wireLIST";
const VERSION: u16 = 1;
const HAS_BODY: u8 = 1;
const UNREADABLE: u8 = 2;

/// A piece as an anchor saw it. A stripe without a body has one record, of column 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Listed {
    /// Its stripe.
    pub stripe: StripeId,
    /// Its column.
    pub column: u8,
    /// Identity of the stripe: the hash of the common part of its heads.
    pub cid: [u8; 32],
    /// BLAKE3 of the body as it lies on the member, encrypted where the volume is.
    pub body: Body,
}

/// What an anchor has of a body.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Body {
    /// There is none, or it was not read.
    None,
    /// It could not be read.
    Unreadable,
    /// Its hash.
    Hash([u8; 32]),
}

/// The bytes are no list of stripes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ListError {
    /// Not the header of one, or of another version.
    #[error("it is no list of stripes, or one of a later version")]
    Header,
    /// Not as many bytes as records take.
    #[error("it is cut off")]
    Length,
    /// Stripes that do not follow one another.
    #[error("its records are not in the order of the ring")]
    Order,
}

/// The first 80 bytes of a list.
pub fn list_header(volume: VolumeId) -> [u8; LISTED_BYTES] {
    let mut header = [0; LISTED_BYTES];
    fill(&mut header, [&MAGIC, &VERSION.to_le_bytes(), &[0; 6], &volume.0]);
    header
}

fn fill<const N: usize>(out: &mut [u8; LISTED_BYTES], parts: [&[u8]; N]) {
    for (byte, value) in out.iter_mut().zip(parts.concat()) {
        *byte = value;
    }
}

impl Listed {
    /// As it lies in the file.
    pub fn encode(&self) -> [u8; LISTED_BYTES] {
        let (flags, hash) = match self.body {
            Body::None => (0, [0; 32]),
            Body::Unreadable => (UNREADABLE, [0; 32]),
            Body::Hash(hash) => (HAS_BODY, hash),
        };
        let StripeId { sequence, sub } = self.stripe;
        let place = [&sequence.get().to_le_bytes()[..], &sub.to_le_bytes()].concat();
        let mut out = [0; LISTED_BYTES];
        fill(&mut out, [&place, &[self.column, flags], &[0; 4], &self.cid, &hash]);
        out
    }

    fn decode(record: &[u8; LISTED_BYTES]) -> Option<Self> {
        let (sequence, rest) = record.split_first_chunk::<8>()?;
        let (sub, rest) = rest.split_first_chunk::<2>()?;
        let ([column, flags], rest) = rest.split_first_chunk::<2>()?;
        let (_, rest) = rest.split_first_chunk::<4>()?;
        let (cid, rest) = rest.split_first_chunk::<32>()?;
        let hash = rest.first_chunk::<32>()?;
        let body = match *flags {
            HAS_BODY => Body::Hash(*hash),
            UNREADABLE => Body::Unreadable,
            _ => Body::None,
        };
        let sequence = Sequence(u64::from_le_bytes(*sequence));
        let stripe = StripeId { sequence, sub: u16::from_le_bytes(*sub) };
        let listed = Self { stripe, column: *column, cid: *cid, body };
        (sequence <= SEQUENCE_MAX).then_some(listed)
    }
}

/// A list of stripes in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedStripes {
    /// Whose stripes.
    pub volume: VolumeId,
    /// By stripe and column.
    pub records: Vec<Listed>,
}

impl ListedStripes {
    /// Reads a list.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(bytes: &[u8]) -> Result<Self, ListError> {
        let (records, rest) = bytes.as_chunks::<LISTED_BYTES>();
        let (header, records) = records.split_first().ok_or(ListError::Header)?;
        let volume = header.get(16..32).and_then(|id| id.try_into().ok());
        let volume = VolumeId(volume.ok_or(ListError::Header)?);
        if *header != list_header(volume) {
            return Err(ListError::Header);
        }
        if !rest.is_empty() {
            return Err(ListError::Length);
        }
        let records = records.iter().map(|record| Listed::decode(record).ok_or(ListError::Order));
        let records = records.collect::<Result<Vec<_>, _>>()?;
        let is_in_order = records.is_sorted_by(|a, b| (a.stripe, a.column) < (b.stripe, b.column));
        if is_in_order { Ok(Self { volume, records }) } else { Err(ListError::Order) }
    }

    /// The identity of a stripe, if it is listed.
    pub fn cid_of(&self, stripe: StripeId) -> Option<&[u8; 32]> {
        let at = self.records.partition_point(|record| record.stripe < stripe);
        self.records.get(at).filter(|record| record.stripe == stripe).map(|record| &record.cid)
    }

    /// What it has of the body of a piece, if the piece is listed.
    pub fn body_of(&self, stripe: StripeId, column: u8) -> Option<Body> {
        let key = |record: &Listed| (record.stripe, record.column);
        let at = self.records.binary_search_by_key(&(stripe, column), key).ok()?;
        self.records.get(at).map(|record| record.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(sequence: u64, column: u8, body: Body) -> Listed {
        let mark = u8::try_from(sequence).unwrap();
        Listed {
            stripe: StripeId { sequence: Sequence(sequence), sub: 3 },
            column,
            cid: [mark; 32],
            body,
        }
    }

    fn file(records: &[Listed]) -> Vec<u8> {
        let mut bytes = list_header(VolumeId([9; 16])).to_vec();
        for record in records {
            bytes.extend(record.encode());
        }
        bytes
    }

    #[test]
    fn what_is_listed_is_read() {
        let records = [
            listed(7, 0, Body::Hash([1; 32])),
            listed(7, 1, Body::Unreadable),
            listed(9, 0, Body::None),
        ];
        let read = ListedStripes::parse(&file(&records)).unwrap();
        assert_eq!((read.volume, &read.records[..]), (VolumeId([9; 16]), &records[..]));
        let cid =
            |sequence| read.cid_of(StripeId { sequence: Sequence(sequence), sub: 3 }).copied();
        assert_eq!((cid(7), cid(8), cid(9)), (Some([7; 32]), None, Some([9; 32])));
        for record in records {
            assert_eq!(read.body_of(record.stripe, record.column), Some(record.body));
        }
        assert_eq!(read.body_of(records[2].stripe, 1), None);
        assert!(ListedStripes::parse(&file(&[])).unwrap().records.is_empty());
    }

    #[test]
    fn other_bytes_are_refused() {
        let good = file(&[listed(7, 0, Body::None), listed(8, 0, Body::None)]);
        let parse = |bytes: &[u8]| ListedStripes::parse(bytes).unwrap_err();
        assert_eq!(parse(&[]), ListError::Header);
        assert_eq!(parse(&good[1..]), ListError::Header);
        assert_eq!(parse(&good[..200]), ListError::Length);
        for records in
            [[listed(8, 0, Body::None), listed(7, 0, Body::None)], [listed(7, 0, Body::None); 2]]
        {
            assert_eq!(parse(&file(&records)), ListError::Order);
        }
        let mut huge = good;
        huge[LISTED_BYTES..LISTED_BYTES + 8].fill(0xff);
        assert_eq!(parse(&huge), ListError::Order);
    }
}
