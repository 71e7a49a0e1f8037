//! Any text may be given as a query: it is refused with a place in the text, or it can be asked.

use query::Query;
use units::Timestamp;

/// Gives 1 where it is one.
///
/// # Panics
/// Reading it does, or an error says nothing.
pub fn run(input: &[u8]) -> usize {
    let Ok(text) = core::str::from_utf8(input) else { return 0 };
    match Query::parse(text, Timestamp(1_700_000_000_000_000_000)) {
        Ok(query) => {
            let _bounds = (query.time_range(), query.packet_time_range(), query.columns());
            1
        }
        Err(error) => {
            assert!(!error.render(text).is_empty());
            0
        }
    }
}
