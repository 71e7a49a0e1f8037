//! Where sessions are sought, and how far a search is.

use ::extract::Options;
use ::remote::There;

use crate::progress::Progress;

/// Where sessions are sought.
pub(super) enum Source {
    Here(Options),
    There(Box<There>),
}

/// How much of the ring is searched.
pub(crate) fn show(progress: &mut Progress, parts: usize, of: usize) {
    let [done, total] = [parts, of].map(|parts| u64::try_from(parts).unwrap_or(u64::MAX));
    progress.share(done, total, &|_| format!("{done} of {}", page::text::plural(total, "segment")));
}
