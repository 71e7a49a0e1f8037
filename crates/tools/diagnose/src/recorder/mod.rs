//! Where a recording lost packets, or may soon: processor, disk, memory or card.
//!
//! From the gaps in its volume, from what the recorder says of itself while it runs or said when it
//! ended, and from the processor time of its threads.

mod bursts;
mod disks;
mod functions;
mod losses;
mod threads;
mod watch;

use findings::Diagnosis;
use findings::Unseen;
use format::directory::Gap;
pub use recording::{Headroom, Interface, Loss, Member, SlowWrite, State, parse_recorder};
pub use watch::watch;

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

/// Names what is wrong with a recording, and what could not be seen of it.
pub fn diagnose(recording: &Recording) -> Diagnosis {
    let mut looked_at = vec![format!("{} gaps of the volume", recording.gaps.len())];
    let mut unseen = Vec::new();
    match &recording.state {
        Some(state) if state.is_going => looked_at.push("the recorder that runs".to_owned()),
        Some(_) => looked_at.push("the report of a recording".to_owned()),
        None => unseen.push(Unseen {
            what: "how its disks and queues did".to_owned(),
            needs: "a recording that goes on, or --report with what `record --json` printed"
                .to_owned(),
        }),
    }
    let findings = losses::findings(recording)
        .into_iter()
        .chain(recording.state.iter().flat_map(disks::findings))
        .chain(threads::findings(recording))
        .chain(recording.functions.iter().filter_map(functions::finding))
        .collect();
    unseen.extend(recording.functions.iter().flat_map(|it| it.unseen.clone()));
    Diagnosis { looked_at, findings, unseen, ..Diagnosis::default() }.ranked()
}
