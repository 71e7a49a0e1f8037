//! What to record, and how.

use std::path::PathBuf;
use std::sync::Arc;

use core::num::NonZeroUsize;
use core::time::Duration;

use capture::Timestamps;
use events::SlowLimit;
use filters::PacketFilter;
use indexer::Workers;
use sandbox::Launcher;
use selection::{Class, Selection, TakeOver};

use crate::control::Control;
use crate::settled::Settled;

/// No recorder needs more queues than this; the kernel's groups end at 256.
const QUEUES_MAX: usize = 64;

/// Where packets come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// Network interfaces by name.
    Interfaces(Vec<String>),
    /// Capture files, directories of them, `-` for standard input; one after the other.
    Files(Vec<PathBuf>),
}

impl Input {
    /// The interfaces; none where packets come from files.
    pub(crate) fn interfaces(&self) -> &[String] {
        match self {
            Self::Interfaces(names) => names,
            Self::Files(_) => &[],
        }
    }
}

/// For how long packets are given out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MaxAge {
    /// As the volume has it.
    Unchanged,
    /// Until the ring takes them; what has expired stays so.
    Off,
    /// Packets expire at this age.
    Age(Duration),
}

/// How many queues take the packets of each interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Queues {
    /// By the receive queues of the interfaces and the processors that there are.
    Auto,
    /// This number of queues.
    Count(NonZeroUsize),
}

impl Queues {
    /// One for each receive queue of the interface that has most, but for half of the processors at
    /// most: the others write, index and answer interrupts.
    pub(crate) fn count(self, receive_queues: usize, processors: usize) -> NonZeroUsize {
        let count = match self {
            Self::Auto => receive_queues.min(processors / 2),
            Self::Count(count) => count.get(),
        };
        NonZeroUsize::new(count.min(QUEUES_MAX)).unwrap_or(NonZeroUsize::MIN)
    }
}

/// Which way packets come from interfaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Way {
    /// Packet sockets; `AF_XDP` where that takes no packets from the host and copies nothing.
    #[default]
    Auto,
    /// Packet sockets, beside the host.
    Packet,
    /// `AF_XDP`, which takes the packets from the host.
    Xdp,
}

/// Whether the recorder discards, ahead of the head, what disks need not keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Discard {
    /// Disks without platters that support discards.
    #[default]
    Auto,
    /// All disks that support discards.
    On,
    /// No disk.
    Off,
}

/// What to record, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// A member of the volume.
    pub volume: PathBuf,
    /// Where further members are, besides the places that the volume knows.
    pub members: Vec<PathBuf>,
    /// Where packets come from.
    pub input: Input,
    /// Filter in the words of pcap-filter(7).
    pub filter: Option<String>,
    /// Most bytes kept of a packet; 0 keeps all.
    pub snaplen: u32,
    /// Receive packets for other hosts too.
    pub promiscuous: bool,
    /// How many threads take the packets of the interfaces.
    pub queues: Queues,
    /// Which way packets come from interfaces.
    pub way: Way,
    /// For how long an empty queue is looked at without sleeping, where the way permits it.
    pub busy_poll: Option<Duration>,
    /// Who says when a packet came.
    pub timestamps: Timestamps,
    /// Processors that those threads stay on, in turn; none leaves them to the kernel.
    pub cpus: Vec<usize>,
    /// Memory of the kernel's ring, per interface and queue.
    pub kernel_ring_bytes: u64,
    /// Memory between capture and disk; `None`: what the volume was qualified with, if it was.
    pub pool_bytes: Option<u64>,
    /// When a write is called slow.
    pub slow: SlowLimit,
    /// The key and the timeouts of sessions; `None` records without an index.
    pub sessions: Option<session::Config>,
    /// Where index files are cached; `None` is a directory for this volume under the user's cache.
    pub index_dir: Option<PathBuf>,
    /// Rows outlive their packets in the index directory by this time.
    pub keep_sessions: Option<Duration>,
    /// Everything is read and checked this often beside recording, and repaired.
    pub scrub_every: Option<Duration>,
    /// Traffic classes, of which the first that fits decides what is kept of a packet.
    pub classes: Vec<Class>,
    /// Packets that come again with the same bytes within this time are left out.
    pub drop_duplicates: Option<Duration>,
    /// Name of the recording.
    pub name: Option<String>,
    /// Longest time that packets wait in an open column.
    pub cut_after: Duration,
    /// For how long packets are given out.
    pub max_age: MaxAge,
    /// Whether what is older is erased; `None` leaves it as it is.
    pub erase: Option<bool>,
    /// The user states that the clock is right, whatever the volume explains.
    pub clock_is_right: bool,
    /// Members that are given up for ever: not waited for, and strangers should they come back.
    pub without: Vec<units::MemberId>,
    /// A command that is run when a member's state changes.
    pub on_member_change: Option<String>,
    /// Which disks get discards ahead of the head.
    pub discard: Discard,
    /// Who may ask for more while it goes on.
    pub control: Control,
    /// Takes the interfaces over from the recorder that runs.
    pub take_over: Option<TakeOver>,
    /// Who starts the indexer.
    pub workers: Workers,
    /// Is called when everything is open.
    pub settled: Settled,
    /// Starts the command of `on_member_change`; without one this process does.
    pub launcher: Option<Arc<Launcher>>,
    /// How the member is driven.
    pub device: device::Options,
}

impl Options {
    /// Compiles the filter and those of the classes.
    ///
    /// # Errors
    /// [`capture::Error::Filter`] for the first that is none.
    pub fn check_filters(&self) -> Result<(), capture::Error> {
        self.filter.as_deref().map(PacketFilter::new).transpose()?;
        self.selection().map(drop)
    }

    /// What of the packets is stored.
    pub(crate) fn selection(&self) -> Result<Selection, capture::Error> {
        let vlan_in_key = self.sessions.is_some_and(|config| config.vlan_in_key);
        Ok(Selection::new(&self.classes, self.drop_duplicates, vlan_in_key)?)
    }

    /// Defaults for everything but the volume and the input.
    pub fn new(volume: PathBuf, input: Input) -> Self {
        Self {
            volume,
            members: Vec::new(),
            input,
            filter: None,
            snaplen: 0,
            promiscuous: true,
            queues: Queues::Auto,
            way: Way::Auto,
            busy_poll: None,
            timestamps: Timestamps::Kernel,
            cpus: Vec::new(),
            kernel_ring_bytes: 64 << 20,
            pool_bytes: None,
            slow: SlowLimit::ByVolume,
            sessions: Some(session::Config::default()),
            index_dir: None,
            keep_sessions: None,
            scrub_every: None,
            classes: Vec::new(),
            drop_duplicates: None,
            name: None,
            cut_after: Duration::from_secs(1),
            max_age: MaxAge::Unchanged,
            erase: None,
            clock_is_right: false,
            without: Vec::new(),
            on_member_change: None,
            discard: Discard::Auto,
            control: Control::default(),
            take_over: None,
            workers: Workers::default(),
            settled: Settled::default(),
            launcher: None,
            device: device::Options::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_follow_the_interface_and_the_processors() {
        for (receive_queues, processors, expect) in
            [(1, 64, 1), (8, 1, 1), (8, 2, 1), (8, 4, 2), (8, 64, 8), (0, 8, 1), (256, 512, 64)]
        {
            let count = Queues::Auto.count(receive_queues, processors).get();
            assert_eq!(count, expect, "{receive_queues} receive queues, {processors} processors");
        }
        let three = NonZeroUsize::new(3).unwrap();
        assert_eq!(Queues::Count(three).count(1, 1), three);
    }
}
