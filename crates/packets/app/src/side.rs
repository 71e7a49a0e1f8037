//! The two ends of a session.

/// Who sent a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The originator: the sender of the first packet.
    Orig,
    /// The responder.
    Resp,
}

impl Side {
    /// What belongs to this side, of a pair with the originator first.
    ///
    /// # Panics
    /// When the pair has fewer than two.
    #[inline]
    pub fn of<P: IntoIterator<Item = T>, T>(self, pair: P) -> T {
        let mut pair = pair.into_iter();
        let (orig, resp) = (pair.next(), pair.next());
        let mine = if self == Self::Orig { orig } else { resp };
        mine.expect("a pair has two")
    }
}
