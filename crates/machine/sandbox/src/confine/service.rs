//! What answers over the network.

use rustix::thread::CapabilitySet;

use super::Notes;
use super::threads::give_up;

/// What such a process may keep, where it has it: it opens files of others, is bound to any port,
/// lets indexers and decoders become `nobody`, and looks into the threads of a recorder. All else
/// changes interfaces, takes their packets, or changes the machine.
const KEPT: CapabilitySet = CapabilitySet::DAC_OVERRIDE
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::SYSLOG);

/// Gives up the capabilities of a recorder, which a service that starts beside it inherits.
pub fn confine_service() -> Notes {
    let mut notes = Notes::new();
    // It opens the files of its user: no Landlock is tried, and none is missed.
    give_up(KEPT, None).note(true, "service", &mut notes);
    notes
}
