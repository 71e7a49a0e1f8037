//! Numbers of the queues of a recorder.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shown::shown_as_number;

/// The number of a queue of a recorder, from 0: a thread that takes packets of all interfaces in.
/// It is not the number of a network card's queue. In JSON it is that number.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct QueueId(pub usize);

impl QueueId {
    /// The number, which is its place in a list of all.
    pub const fn place(self) -> usize {
        self.0
    }

    /// The first ones, so many.
    pub fn first(count: usize) -> impl ExactSizeIterator<Item = Self> + Clone {
        (0..count).map(Self)
    }
}

shown_as_number!(QueueId);
