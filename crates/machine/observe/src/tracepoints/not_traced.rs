//! What the kernel does not permit or does not have.

use std::io;

/// Why there is no tracing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotTraced {
    /// Nobody may who lacks the capability.
    #[error("CAP_PERFMON and a readable tracefs, which root has outside of a container")]
    Forbidden,
    /// No tracefs.
    #[error("tracefs: mount -t tracefs nodev /sys/kernel/tracing")]
    NoTracefs,
    /// The kernel has no such tracepoint.
    #[error("a kernel with the tracepoint {0}")]
    NoTracepoint(&'static str),
    /// Anything else.
    #[error("a kernel that grants it ({0})")]
    Failed(io::Error),
}
