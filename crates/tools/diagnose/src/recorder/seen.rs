//! What is known of a recording and of the recorder's processor time.

use findings::Unseen;
use format::directory::Gap;
use recording::State;

/// What is known of a recording.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Recording {
    /// Stretches in which packets are missing, as the volume has them.
    pub gaps: Vec<Gap>,
    /// What the recorder says of itself.
    pub state: Option<State>,
    /// Its threads; none of a recording that has ended.
    pub threads: Vec<Thread>,
    /// In which functions they worked; of a recording that goes on.
    pub functions: Option<Functions>,
}

/// A thread while it was looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Thread {
    /// Its name, which says its part.
    pub name: String,
    /// Thousandths of the time in which it ran.
    pub busy: u64,
}

/// Where the processor time of a recorder went while it was looked at.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Functions {
    /// Thousandths of one processor's time, all of it.
    pub busy: u64,
    /// Samples that this was found from.
    pub samples: u64,
    /// The hottest ones, the hottest first.
    pub hottest: Vec<HotFunction>,
    /// What could not be seen.
    pub unseen: Vec<Unseen>,
}

/// A function that a recorder worked in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HotFunction {
    /// The program or library that it is in, or the kernel.
    pub library: String,
    /// Its name, or a place in that.
    pub function: String,
    /// Thousandths of one processor's time.
    pub busy: u64,
}
