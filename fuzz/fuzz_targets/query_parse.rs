//! Any text may be given as a query: it is refused with a place in the text, or it can be asked.
#![no_main]

use libfuzzer_sys::fuzz_target;
use query::Query;
use units::Timestamp;

fuzz_target!(|text: &str| {
    match Query::parse(text, Timestamp(1_700_000_000_000_000_000)) {
        Ok(query) => {
            let _bounds = (query.time_range(), query.packet_time_range(), query.columns());
        }
        Err(error) => assert!(!error.render(text).is_empty()),
    }
});
