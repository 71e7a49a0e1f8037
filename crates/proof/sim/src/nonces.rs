//! That no key and nonce encrypts two things, in whatever a history writes, crashes and rivals
//! included: with AES-GCM the two and the key of authentication would be known to who sees them.

use std::collections::BTreeMap;

use encryption::LEAD_BYTES;
use format::head::{HEAD_BYTES, Head};
use units::{Epoch, Sequence};

/// What decides the key and the nonces of a body: number of the data key, epoch, sequence, number
/// in its slot, column.
type Place = (u64, Epoch, Sequence, u16, u8);

/// What was encrypted where. A body shows it by its tags, which hang on every byte of it.
#[derive(Debug, Default)]
pub(crate) struct Nonces {
    seen: BTreeMap<Place, [u8; LEAD_BYTES]>,
}

impl Nonces {
    /// Looks at what a volume is about to write.
    ///
    /// # Panics
    /// When it is a body under nonces that another body had: a history ends with it.
    pub(crate) fn take(&mut self, data: &[u8]) {
        let Some((head, body)) = data.split_first_chunk::<HEAD_BYTES>() else { return };
        let Some(tags) = body.first_chunk::<LEAD_BYTES>() else { return };
        let Ok(Head { stripe, piece, .. }) = Head::decode(head, None) else { return };
        let Some(key_id) = stripe.key_id else { return };
        // Parity is computed from what is encrypted already.
        if piece.column >= stripe.geometry.data_columns || stripe.rows == 0 {
            return;
        }
        let (sequence, sub) = (stripe.stripe.sequence, stripe.stripe.sub);
        let place = (key_id, stripe.epoch, sequence, sub, piece.column);
        let before = *self.seen.entry(place).or_insert(*tags);
        assert!(before == *tags, "two bodies are encrypted with the same nonces: {place:?}");
    }

    /// Bodies that were looked at, each once.
    pub(crate) fn bodies(&self) -> u64 {
        u64::try_from(self.seen.len()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use format::geometry::{ExtentOrder, Geometry, PIECE_BYTES_MIN, RESERVED_BYTES};
    use format::head::{HeadKey, Kind, PieceHead, StripeHead, StripeId, Totals, VolumeId};
    use units::{MemberId, Timestamp};

    fn piece((key_id, epoch, column): (Option<u64>, Epoch, u8), fill: u8) -> Vec<u8> {
        let geometry = Geometry {
            data_columns: 1,
            parity_columns: 1,
            order: ExtentOrder::FirstToLast,
            zones: 1,
            piece_bytes: PIECE_BYTES_MIN,
            slots: 40,
            slot0_offset: RESERVED_BYTES,
            slots_per_extent: 1,
            usable_begin: 0,
            usable_end: u64::MAX,
        };
        let stripe = StripeHead {
            volume_id: VolumeId([1; 16]),
            geometry,
            kind: Kind::Data,
            clean_stop: false,
            extra_blocks: false,
            key_id,
            epoch,
            stripe: StripeId { sequence: Sequence(50), sub: 0 },
            first_row: 0,
            rows: 1,
            acknowledged: StripeId::default(),
            previous: StripeId { sequence: Sequence(49), sub: 0 },
            index: StripeId::default(),
            time_min: Timestamp(0),
            time_max: Timestamp(0),
            realtime: Timestamp(0),
            boottime_ns: 0,
            totals: Totals::default(),
            previous_cid: [0; 32],
            manifest: vec![0; 2],
            previous_manifest: vec![0; 2],
            recorded: None,
        };
        let own = PieceHead {
            member: MemberId(0),
            column,
            packets: 0,
            member_uuid: [2; 16],
            row_crcs: vec![0],
        };
        let mut piece = Head::new(stripe, own).encode(&HeadKey([3; 32])).to_vec();
        piece.resize(2 * HEAD_BYTES, fill);
        piece
    }

    #[test]
    fn nonces_may_come_again_for_the_same_bytes_and_for_what_is_not_encrypted() {
        let mut nonces = Nonces::default();
        for (of, fill) in [
            ((Some(4), Epoch(1), 0), 5),
            ((Some(4), Epoch(1), 0), 5),
            ((Some(5), Epoch(1), 0), 6),
            ((Some(4), Epoch(2), 0), 6),
            ((Some(4), Epoch(1), 1), 5),
            ((Some(4), Epoch(1), 1), 6),
            ((None, Epoch(1), 0), 6),
            ((None, Epoch(1), 0), 7),
        ] {
            nonces.take(&piece(of, fill));
        }
        assert_eq!(nonces.bodies(), 3);
    }

    #[test]
    #[should_panic(expected = "two bodies are encrypted with the same nonces")]
    fn other_bytes_under_the_same_nonces_end_a_history() {
        let mut nonces = Nonces::default();
        nonces.take(&piece((Some(4), Epoch(1), 0), 5));
        nonces.take(&piece((Some(4), Epoch(1), 0), 6));
    }
}
