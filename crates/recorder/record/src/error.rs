//! Why a recording could not begin or go on.

use thiserror::Error;
use units::ByteSize;

/// Why a recording failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The source could not be opened.
    #[error(transparent)]
    Capture(#[from] capture::Error),
    /// The member could not be opened.
    #[error(transparent)]
    Device(#[from] device::Error),
    /// The volume could not be opened or written.
    #[error(transparent)]
    Volume(#[from] volume::Error),
    /// The machine did not give what recording needs.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// Too little memory between capture and disk.
    #[error(
        "a pool of {} is too small; this volume needs at least {}",
        ByteSize(*pool_bytes),
        ByteSize(needed_bytes.next_multiple_of(1 << 20))
    )]
    Pool {
        /// Bytes asked for.
        pool_bytes: u64,
        /// Smallest pool that works.
        needed_bytes: u64,
    },
    /// The kernel would take memory from every process of the machine, and a ring that is larger
    /// than all of it keeps the kernel searching for hours.
    #[error(
        "{what}: {} is more than the {} of memory that are free; give less",
        ByteSize(*bytes),
        ByteSize(*free_bytes)
    )]
    TooMuch {
        /// What was to be so large.
        what: &'static str,
        /// Bytes asked for.
        bytes: u64,
        /// Bytes that are free.
        free_bytes: u64,
    },
    /// No interface and no file was named.
    #[error("nothing to record: no interface and no file was named")]
    NoInput,
    /// Nothing ever grows too old.
    #[error("nothing would be erased: the volume has no maximum age; --max-age gives it one")]
    EraseWithoutAge,
    /// A processor that this process may not use.
    #[error("there is no processor {cpu} for this process; it may use {}", listed(allowed))]
    Cpu {
        /// The one asked for.
        cpu: usize,
        /// Processors that the process may use.
        allowed: Vec<usize>,
    },
    /// The recorder that runs does not hand its interfaces over.
    #[error("cannot take over from the recorder that runs: {0}")]
    TakeOver(String),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

fn listed(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}
