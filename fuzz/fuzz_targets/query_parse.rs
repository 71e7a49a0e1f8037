//! Any text may be given as a query.
#![no_main]

use fuzz::costs;

fuzz::text!(costs::QUERY, |input| fuzz::query_text::run(input));
