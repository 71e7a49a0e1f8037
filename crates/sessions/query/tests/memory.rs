//! Refusing a query takes little memory, whatever it is compared with for a suggestion.

use std::alloc::System;

use query::Query;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use units::Timestamp;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Rows for a comparison with each of about 150 words or zones of the same length, and their names.
const BYTES_MAX: usize = 256 << 10;

/// A zone that is none is compared with 600, a word with the language's and its fields.
#[test]
fn a_word_that_is_none_is_refused_in_little_memory() {
    for text in [
        "after 2026-11-20T10:00[America/Argentina/Rio_Galegos_x]",
        "after 2026-21p[i1x:hzero_windowsttp_user_agent4] - 20 d",
        "tcp.retransmited_orig_percent = 1",
    ] {
        let region = Region::new(ALLOCATOR);
        assert!(Query::parse(text, Timestamp(0)).is_err());
        let bytes = region.change().bytes_allocated;
        assert!(bytes <= BYTES_MAX, "{bytes} bytes for {text}");
    }
}
