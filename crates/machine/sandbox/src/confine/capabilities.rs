//! Rights of root, of which a process keeps what it names.

use rustix::thread::{CapabilitySet, capabilities};

/// Who has nothing: user and group `nobody` and `nogroup`, the kernel's own overflow ids.
pub(super) const NOBODY: u32 = 65_534;

/// A right of root that a recorder may have to keep: `capabilities(7)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Capability {
    /// `CAP_DAC_OVERRIDE`: opens files that belong to others.
    OpenAnyFile,
    /// `CAP_IPC_LOCK`: locks memory beyond the limit.
    LockMemory,
    /// `CAP_KILL`: signals to processes of others.
    Kill,
    /// `CAP_SETPCAP`: gives capabilities up for good.
    GiveUp,
    /// `CAP_SETUID` and `CAP_SETGID`: becomes another user.
    ChangeUser,
}

impl Capability {
    pub(super) fn set(self) -> CapabilitySet {
        match self {
            Self::OpenAnyFile => CapabilitySet::DAC_OVERRIDE,
            Self::LockMemory => CapabilitySet::IPC_LOCK,
            Self::Kill => CapabilitySet::KILL,
            Self::GiveUp => CapabilitySet::SETPCAP,
            Self::ChangeUser => CapabilitySet::SETUID | CapabilitySet::SETGID,
        }
    }

    /// Whether this process has it.
    pub(super) fn is_held(self) -> bool {
        capabilities(None).is_ok_and(|held| held.effective.contains(self.set()))
    }
}
