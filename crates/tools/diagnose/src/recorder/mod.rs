//! Where a recording lost packets, or may soon: processor, disk, memory or card.
//!
//! From the gaps in its volume, from what the recorder says of itself while it runs or said when it
//! ended, and from the processor time of its threads.

mod bursts;
mod disks;
mod functions;
mod losses;
mod seen;
mod threads;
mod watch;

use findings::words::plural;
use findings::{Diagnosis, Found, Unseen};
pub use recording::{State, parse_recorder};
pub use seen::{Functions, HotFunction, Recording, Thread};
pub use watch::watch;

/// Names what is wrong with a recording, and what could not be seen of it.
pub fn diagnose(recording: &Recording) -> Diagnosis {
    let mut looked_at = vec![format!("{} of the volume", plural(recording.gaps.len(), "gap"))];
    let mut unseen = Vec::new();
    match &recording.state {
        Some(state) if state.process.is_some() => {
            looked_at.push("the recorder that runs".to_owned());
        }
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
        .map(Found::from)
        .collect();
    unseen.extend(recording.functions.iter().flat_map(|it| it.unseen.clone()));
    Diagnosis { looked_at, findings, unseen, ..Diagnosis::default() }.ranked()
}
