//! Damage beyond what the parity bears, in stripes that no index covers yet.
//!
//! What was lost is no fault of a recorder. But the next one indexes what was left without an
//! index, and must not say that it has all of it.

use std::collections::BTreeSet;

use format::geometry::{Geometry, ROW_BYTES};
use format::head::{Kind, StripeHead, StripeId};
use volume::Reader;

use crate::check::{Verdict, Violation};
use crate::recorder::Course;

impl Course {
    /// Perhaps a few stripes behind the newest segment are damaged.
    pub(crate) fn damage_unindexed(&mut self) -> Verdict {
        // Before it is certain what stays it is not known what is lost.
        if !self.owed.is_empty() || !self.random.percent(60) {
            return Ok(());
        }
        let reader = Reader::open(self.readers(u32::MAX))
            .map_err(|error| Violation(format!("a reader cannot open it: {error}")))?;
        let reader = self.unlocked(reader);
        for _ in 0..=self.random.below(3) {
            let stripes = Vec::from_iter(self.without_index(&reader));
            if !stripes.is_empty() {
                let stripe = self.random.pick(&stripes);
                self.damage(&reader, stripe);
            }
        }
        Ok(())
    }

    /// Stripes with packets that are seen, of slots in front of the newest, behind all segments.
    fn without_index(&self, reader: &Reader) -> BTreeSet<StripeId> {
        let Some(span) = reader.span() else { return BTreeSet::new() };
        let newest = reader.newest_index();
        let directory = newest.and_then(|at| reader.directory(at)).unwrap_or_default();
        let indexed = directory.first().map_or(StripeId::default(), |entry| entry.summary.last);
        let stripes = self.kept.values().map(|kept| kept.stripe);
        stripes
            .filter(|it| *it > indexed.max(newest.unwrap_or_default()))
            .filter(|it| (span.tail..span.acknowledged.sequence).contains(&it.sequence))
            .collect()
    }

    /// One row of the stripe, or its whole slot, on one member more than the parity bears or on
    /// more of them.
    fn damage(&mut self, reader: &Reader, stripe: StripeId) {
        let geometry = reader.membership().geometry_at(stripe.sequence);
        let heads = reader.leading_heads(stripe.sequence);
        let head = heads.iter().map(|head| &head.stripe).find(|head| head.stripe == stripe);
        let Some(head) = head.filter(|head| head.kind == Kind::Data && head.rows > 0) else {
            return;
        };
        // Keys and indexes are of more than their own slot.
        let is_plain = heads.iter().all(|head| head.stripe.kind == Kind::Data);
        let is_slot = self.random.percent(40) && is_plain;
        let rows = if is_slot { 0..geometry.rows_per_slot() } else { self.row_of(head) };
        for disk in self.too_many(&geometry) {
            for row in rows.clone() {
                let at =
                    geometry.slot_offset(stripe.sequence) + u64::from(row) * u64::from(ROW_BYTES);
                self.rack.disk_handle(disk).damage(at, |page| {
                    for byte in page.iter_mut() {
                        *byte = if is_slot { 0 } else { !*byte };
                    }
                });
            }
        }
        let is_hit = |it: &StripeId| *it == stripe || (is_slot && it.sequence == stripe.sequence);
        let hit: Vec<_> = self.kept.extract_if(.., |_, kept| is_hit(&kept.stripe)).collect();
        self.say(|| format!("damaged: {stripe}, the whole slot {is_slot}"));
        self.counters.add("recorder: damage without an index", 1);
        self.statements.keep(|number| self.kept.contains_key(&number));
        self.damaged.extend(hit);
    }

    fn row_of(&mut self, head: &StripeHead) -> core::ops::Range<u16> {
        let row = self.random.below(u64::from(head.rows));
        let row = head.first_row + 1 + u16::try_from(row).expect("a row of a piece");
        row..row + 1
    }

    /// Disks of so many members that the others are too few.
    fn too_many(&mut self, geometry: &Geometry) -> Vec<u8> {
        let seats = self.rack.seats().into_iter();
        let mut disks: Vec<u8> = seats
            .filter(|(member, _)| geometry.has_member(*member))
            .map(|(_, disk)| disk)
            .collect();
        let spared = self.random.below(u64::from(geometry.data_columns));
        for _ in 0..spared {
            let at = self.random.index(disks.len());
            disks.remove(at);
        }
        disks
    }
}
