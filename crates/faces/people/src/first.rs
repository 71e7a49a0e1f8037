//! The link by which the first administrator is made.

use units::{NANOS_PER_SECOND, hex};

use crate::secret::{hash_of, is_same};

const LASTS_S: i64 = 3600;

/// A link that counts for an hour, for who has read it where the service was started. That it
/// counts once is up to who keeps it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FirstLink {
    hash: [u8; 32],
    until_ns: i64,
}

impl FirstLink {
    /// A link, and its secret, which is shown and not kept. Times count from the start of the
    /// machine: a clock that is set does not lengthen it.
    pub fn new(random: [u8; 32], now_ns: i64) -> (Self, String) {
        let secret = hex(&random);
        let until_ns = now_ns.saturating_add(LASTS_S.saturating_mul(NANOS_PER_SECOND));
        (Self { hash: hash_of(&secret), until_ns }, secret)
    }

    /// Whether this is its secret, in time.
    pub fn fits(&self, secret: &str, now_ns: i64) -> bool {
        is_same(&self.hash, &hash_of(secret)) && self.goes_on(now_ns)
    }

    /// Whether it is not over.
    pub fn goes_on(&self, now_ns: i64) -> bool {
        now_ns < self.until_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_counts_for_an_hour() {
        let (link, secret) = FirstLink::new([5; 32], 10);
        assert_eq!(secret.len(), 64);
        let hour_ns = 3600 * NANOS_PER_SECOND;
        assert!(link.fits(&secret, 10) && link.fits(&secret, hour_ns + 9));
        assert!(!link.fits(&secret, hour_ns + 10));
        for wrong in ["", &secret[1..], &secret.to_uppercase().replace('5', "6")] {
            assert!(!link.fits(wrong, 10), "{wrong}");
        }
    }
}
