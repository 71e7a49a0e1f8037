//! A session of a sensor, with its place in the order that was asked for.

use found::{Found, SortBy, SortKey};

use crate::ranked::{Identified, Ranked};

/// A session of a sensor.
#[derive(Clone, Debug)]
pub struct Row {
    /// As the sensor found it.
    pub found: Found,
    key: SortKey,
}

impl Row {
    /// Of this order.
    pub fn new(found: Found, by: &SortBy) -> Self {
        let key = by.key(&found, None);
        Self { found, key }
    }
}

impl Ranked for Row {
    type Key = SortKey;

    fn key(&self) -> SortKey {
        self.key.clone()
    }

    fn bytes(&self) -> usize {
        // The key waits beside it once more.
        self.found.bytes() + 2 * size_of::<SortKey>()
    }
}

impl Identified for Row {
    fn id(&self) -> &str {
        &self.found.id
    }
}
