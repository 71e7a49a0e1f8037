//! Why a thread has no processor.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

/// What a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// It could run, and another one had the processor.
    Processor,
    /// It could run, and the processor, which was idle, had yet to wake up.
    WakeUp,
    /// A file: its disk, its file system, or who serves that.
    File,
    /// Memory of a file or of swap that has to be read first.
    PageFault,
    /// A lock of a file.
    FileLock,
    /// Another thread, by a futex: a lock, or something to do.
    Futex,
    /// The other end of a connection.
    Network,
    /// The other end of a pipe.
    Pipe,
    /// Time to pass.
    Timer,
    /// Something to happen to one of several descriptors.
    Events,
    /// A new connection.
    Accept,
    /// A process to end.
    Child,
    /// A person, at a terminal.
    Terminal,
    /// Memory: its tables, or their lock.
    Memory,
    /// To be let on, by a debugger or a signal.
    Stopped,
    /// What the watch cannot tell.
    Unknown,
}

impl Reason {
    /// In a word, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Processor => "processor",
            Self::WakeUp => "wake_up",
            Self::File => "file",
            Self::PageFault => "page_fault",
            Self::FileLock => "file_lock",
            Self::Futex => "futex",
            Self::Network => "network",
            Self::Pipe => "pipe",
            Self::Timer => "timer",
            Self::Events => "events",
            Self::Accept => "accept",
            Self::Child => "child",
            Self::Terminal => "terminal",
            Self::Memory => "memory",
            Self::Stopped => "stopped",
            Self::Unknown => "unknown",
        }
    }

    /// In words, for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Processor => "a processor that others had",
            Self::WakeUp => "an idle processor to wake up",
            Self::File => "a file: its disk or its server",
            Self::PageFault => "memory to be read from a file",
            Self::FileLock => "a lock of a file",
            Self::Futex => "another thread (futex)",
            Self::Network => "the network",
            Self::Pipe => "the other end of a pipe",
            Self::Timer => "time to pass",
            Self::Events => "events (poll, epoll, select)",
            Self::Accept => "a connection to come",
            Self::Child => "a child to end",
            Self::Terminal => "a terminal",
            Self::Memory => "memory to be mapped",
            Self::Stopped => "to be let on, when stopped",
            Self::Unknown => "unknown",
        }
    }

    /// Whether programs wait so when they have nothing to do.
    pub fn is_by_design(self) -> bool {
        matches!(
            self,
            Self::Timer
                | Self::Events
                | Self::Accept
                | Self::Child
                | Self::Terminal
                | Self::Stopped
        )
    }
}

/// Times by their reasons, for serde: a list, with what each reason means.
pub fn serialize_reasons<S: Serializer>(
    times: &BTreeMap<Reason, u64>,
    to: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Time {
        reason: &'static str,
        ns: u64,
        is_by_design: bool,
    }
    to.collect_seq(times.iter().map(|(reason, ns)| Time {
        reason: reason.name(),
        ns: *ns,
        is_by_design: reason.is_by_design(),
    }))
}
