//! Any text may be given as what a recorder says of itself: by its socket, or as a report.
#![no_main]

use fuzz::costs;

fuzz::text!(costs::RECORDER, |input| fuzz::texts::recorder(input));
