//! Decrypting what was read and verified.

use core::ops::Range;
use std::sync::Arc;

use encryption::{Keyring, LEAD_BYTES};
use format::head::{HEAD_BYTES, Head};
use format::key_log::{KeyLog, KeyMember};
use format::piece::restore_frame;

use crate::heads::body_range;
use crate::reader::{Reader, Slot, StripeInSlot};
use crate::rows::PieceRows;
use crate::seal::place_of;

impl Reader {
    /// Decrypts with the keys of this ring from now on. Without it encrypted packets count as
    /// unreadable.
    pub fn unlock(&mut self, keyring: Arc<Keyring>) {
        self.teach(&keyring);
        self.keyring = Some(keyring);
    }

    /// The keys that it decrypts with.
    pub fn keyring(&self) -> Option<&Arc<Keyring>> {
        self.keyring.as_ref()
    }

    /// The same of a ring, if there is one.
    #[must_use]
    pub fn unlocked(mut self, keyring: Option<&Arc<Keyring>>) -> Self {
        if let Some(keyring) = keyring {
            self.unlock(Arc::clone(keyring));
        }
        self
    }

    /// Lets a ring learn the wrapped keys that the members have.
    pub(crate) fn teach(&self, keyring: &Keyring) {
        // Without superblocks nothing says whether it is encrypted.
        let may_be = self.superblock().is_encrypted || self.membership().head_key().is_none();
        if keyring.has_identities() && may_be {
            self.key_log().keys().for_each(|key| keyring.learn(key.id, &key.wrapped));
        }
    }

    /// Wrapped keys and recipients of an encrypted volume, as the members have them now.
    pub fn key_log(&self) -> KeyLog {
        let membership = self.membership();
        let members = membership.numbers().filter_map(|member| {
            let device = self.device(member)?;
            let read = |offset, into: &mut [u8]| device.read_at(offset, into).is_ok();
            // Without superblocks nobody is known to have been away.
            let is_current = membership.is_fresh(member) || membership.head_key().is_none();
            Some(KeyMember { size_bytes: device.size_bytes(), is_current, read })
        });
        KeyLog::load((self.superblock().volume_id, membership.head_key()), members).0
    }

    /// Decrypts the stripes of a slot in place. What cannot be is named like rows that are lost.
    pub(crate) fn decrypt_slot(&self, slot: &mut Slot, buffer: &mut [u8]) {
        for stripe in &mut slot.stripes {
            let range = body_range(&stripe.head);
            let is_parity = stripe.head.piece.column >= stripe.head.stripe.geometry.data_columns;
            if let (false, Some(body)) = (is_parity, buffer.get_mut(range)) {
                self.decrypt_body(stripe, body);
            }
        }
    }

    fn decrypt_body(&self, stripe: &mut StripeInSlot, body: &mut [u8]) {
        let head = &stripe.head.stripe;
        let Some(key_id) = head.key_id else { return };
        let key = self.keyring.as_ref().and_then(|keyring| keyring.key(key_id));
        let place = place_of(head, stripe.head.piece.column);
        let bad = match &key {
            Some(key) => key.of_epoch(head.epoch).open(&place, body),
            None => Vec::from([Range { start: 0, end: body.len() }]),
        };
        stripe.is_locked = key.is_none();
        restore_frame(body, true);
        let of_chunks = bad.into_iter().flat_map(rows_in);
        let mut bad_rows: Vec<u16> = of_chunks.chain(stripe.bad_rows.drain(..)).collect();
        bad_rows.sort_unstable();
        bad_rows.dedup();
        stripe.bad_rows = bad_rows;
    }

    /// Decrypts rows of a piece, which were read by [`whole_chunks`]; `None` where that is not
    /// possible.
    pub(crate) fn decrypt_rows(&self, mut rows: PieceRows) -> Option<PieceRows> {
        let Head { stripe, piece, .. } = &rows.head;
        let Some(key_id) = stripe.key_id else { return Some(rows) };
        let key = self.keyring.as_ref()?.key(key_id)?.of_epoch(stripe.epoch);
        let place = place_of(stripe, piece.column);
        let (first, front) = rows.runs.first()?;
        let tags = *front.first_chunk::<LEAD_BYTES>().filter(|_| *first == 0)?;
        for (first, bytes) in &mut rows.runs {
            let begin = usize::from(*first) * HEAD_BYTES;
            if !key.open_run(&place, &tags, begin, bytes).is_empty() {
                return None;
            }
            if *first == 0 {
                let is_whole = bytes.len() == place.len;
                restore_frame(bytes, is_whole);
            }
        }
        Some(rows)
    }
}

/// The rows of a part of a body.
fn rows_in(bytes: Range<usize>) -> Range<u16> {
    let row = |at: usize| u16::try_from(at / HEAD_BYTES).expect("a body has at most 511 rows");
    row(bytes.start)..row(bytes.end.next_multiple_of(HEAD_BYTES))
}
