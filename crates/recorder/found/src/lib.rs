//! Sessions as a search finds them: one by one, sorted, ranked by a field, over time.
//!
//! A search calls back with [`Event`]s, most of which are a [`Found`] session. [`Sorted`] brings
//! them into the order of a field, [`Top`] sums them by its values, [`Traffic`] by time; each in
//! bounded memory. [`Explain`] says what a search has cost, [`Windows`] are the times around what
//! it has found.
//!
//! Called by `extract`, which searches, and by whoever shows what it finds. Not here: the search.

mod event;
mod explain;
mod sorted;
mod top;
mod traffic;
mod windows;

pub use event::{Event, Found, Held};
pub use explain::Explain;
pub use sorted::{SORT_BYTES_MAX, SortBy, SortKey, Sorted};
pub use top::{Measure, Top, TopRow, TopValue, Weight};
pub use traffic::{SERIES_COLUMNS, Traffic};
pub use windows::Windows;
