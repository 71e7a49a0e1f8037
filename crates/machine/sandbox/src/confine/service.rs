//! What answers over the network.

use rustix::io;
use rustix::thread::set_no_new_privs;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use super::{Notes, threads};

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

/// Gives up the capabilities of a recorder, which a service that starts beside it inherits. To be
/// called while this process has one thread.
pub fn confine_service() -> Notes {
    let mut notes = Notes::new();
    if set_no_new_privs(true).is_err() {
        notes.push("the service could gain rights by starting a program".to_owned());
    }
    threads::drop_bounding_set(KEPT.bits());
    if let Err(error) = drop_capabilities() {
        notes.push(format!("the service keeps all of its capabilities: {error}"));
    }
    notes
}

fn drop_capabilities() -> io::Result<()> {
    let CapabilitySets { effective, permitted, .. } = capabilities(None)?;
    let (effective, permitted) = (effective & KEPT, permitted & KEPT);
    // What is not inheritable leaves the ambient set, too.
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective, permitted, inheritable })
}
