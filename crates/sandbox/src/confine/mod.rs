//! What a process gives up for good, so that whoever takes it over gets nowhere.
//!
//! Four mechanisms, each of which holds where another one is missing: capabilities are dropped,
//! with the bounding set, so that nothing gives them back; Landlock leaves the files that are
//! named; a seccomp filter leaves the system calls that are listed; limits leave no memory, no
//! files and no core dumps to spend. What the kernel lacks is a note, in plain words, and no
//! refusal: it costs protection and not packets.

mod capabilities;
mod files;
mod filter;
mod indexer;
mod recorder;
mod threads;

use rustix::thread::CapabilitySet;

pub use indexer::{IndexerLimits, confine_indexer};
pub use recorder::{RecorderRights, confine_recorder, prevent_dumps};

/// A launcher of nothing but our own programs keeps what these need to become nobody, and itself to
/// end them then. A command of the user's may need whatever its user has.
pub(crate) fn confine_launcher() {
    use capabilities::Capability;
    let kept = [Capability::Kill, Capability::ChangeUser, Capability::GiveUp];
    let kept = kept.into_iter().fold(CapabilitySet::empty(), |all, one| all | one.set());
    // What stays is what it began with.
    let _kept = threads::give_up(kept, None);
}

/// What a process cannot give up here, one line each; nothing where all is as it should be.
pub type Notes = Vec<String>;
