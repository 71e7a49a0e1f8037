//! Stripes that ended the indexer twice: reported, and kept to find the fault.

use std::collections::BTreeSet;
use std::io;

use format::head::{HEAD_BYTES, StripeId};
use index::Files;
use units::{Sequence, plural};

use crate::owner::Stripe;

/// Copies that are kept; each is a piece.
const COPIES_MAX: usize = 16;
/// Stripes that are not counted twice.
const KNOWN_MAX: usize = 65_536;
/// Stripes that are reported one by one.
const TOLD_MAX: usize = 16;
const PREFIX: &str = "poison-";

/// What was found.
#[derive(Debug, Default)]
pub struct Poison {
    /// Those that were counted; the first of many.
    known: BTreeSet<StripeId>,
    stripes: u64,
    packets: u64,
    told: Vec<StripeId>,
    copies: Vec<(StripeId, String)>,
}

impl Poison {
    /// Takes note of a stripe, and puts a copy of its pieces into the index directory: each is a
    /// capture file of its own.
    pub fn keep(&mut self, stripe: &Stripe, files: &dyn Files) {
        if !self.give_up(stripe.id, stripe.packets) {
            return;
        }
        for piece in &stripe.pieces {
            let StripeId { sequence, sub } = stripe.id;
            let begin = piece.body.start.saturating_sub(HEAD_BYTES);
            let Some(bytes) = piece.buffer.get(begin..piece.body.end) else { continue };
            let name = format!("{PREFIX}{sequence:020}-{sub:05}-{:02}.pcapng", piece.column);
            // Without a copy there is still the stripe itself.
            if self.copies.len() < COPIES_MAX && files.write_atomic(&name, bytes).is_ok() {
                self.copies.push((stripe.id, name));
            }
        }
    }

    /// Takes note of packets that stay without rows, from this stripe on; false where that was
    /// known.
    pub fn give_up(&mut self, first: StripeId, packets: u64) -> bool {
        if self.known.contains(&first) {
            return false;
        }
        if self.known.len() < KNOWN_MAX {
            self.known.insert(first);
        }
        self.stripes = self.stripes.saturating_add(1);
        self.packets = self.packets.saturating_add(packets);
        if self.told.len() < TOLD_MAX {
            self.told.push(first);
        }
        true
    }

    /// Copies do not outlive the packets in the ring. To who records one that stays is no more than
    /// a file in a directory of ours.
    ///
    /// # Errors
    /// When one of them could not be removed; the others are.
    pub fn retire(&mut self, tail: Sequence, files: &dyn Files) -> io::Result<()> {
        let old = self.copies.extract_if(.., |(stripe, _)| stripe.sequence < tail);
        old.map(|(_, name)| files.remove(&name)).fold(Ok(()), Result::and)
    }

    /// Takes over the copies that an earlier recording left.
    pub fn of_earlier(files: &dyn Files) -> Self {
        let sequence = |name: &str| name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok();
        let copies = files.list().unwrap_or_default().into_iter().filter_map(|name| {
            let stripe = StripeId { sequence: sequence(&name)?, sub: 0 };
            Some((stripe, name))
        });
        Self { copies: copies.collect(), ..Self::default() }
    }

    /// Packets in them.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// A line for the user, if there were any.
    pub fn notes(&self) -> Option<String> {
        if self.stripes == 0 {
            return None;
        }
        let told: Vec<String> = self.told.iter().map(ToString::to_string).collect();
        let told_all = u64::try_from(self.told.len()) == Ok(self.stripes);
        let more = if told_all { "" } else { " and others" };
        let copies = if self.copies.is_empty() {
            ""
        } else {
            "; copies are in the index directory (poison-*.pcapng): please report them"
        };
        Some(format!(
            "without an index: {}, because they ended the indexer twice (stripes {}{more}); they \
             are stored, and answers that lack them say so{copies}",
            plural(self.packets, "packet"),
            told.join(", ")
        ))
    }
}
