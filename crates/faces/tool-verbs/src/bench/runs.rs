//! What runs of commands and of machines have in common.

use ::runs::Going;
use host::random_bytes;
use units::Random;

use crate::progress::Progress;

/// What is run next, and how far it is.
pub(super) fn show(progress: &mut Progress, going: Going<'_>) {
    let name = page::safe::printable(&going.next.name);
    match going.rounds {
        None => progress.text(&|| format!("warming up: {name}")),
        Some(rounds) => {
            let run = u64::from(rounds) + 1;
            match going.of.map(u64::from) {
                None => progress.text(&|| format!("run {run}: {name}")),
                Some(of) => {
                    progress.share(run - 1, of, &|_| format!("run {run} of {of}: {name}"));
                }
            }
        }
    }
}

/// What decides the order of the runs.
pub(super) fn random() -> anyhow::Result<Random> {
    Ok(Random::new(u64::from_le_bytes(random_bytes()?)))
}
