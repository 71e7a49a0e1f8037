//! Campaigns: the real recorder on real files and disks, killed or starved, many times.

#![expect(clippy::print_stdout, reason = "tests say why they did not run")]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may stop at once and takes real time"
)]

mod feed;
mod kills;
mod patrol;
mod throttle;
