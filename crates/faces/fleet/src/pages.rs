//! An answer page by page, each begun where the one before ended.
//!
//! Between two pages no connection is held, so that a sensor whose rows have to wait for those of
//! others is not kept waiting itself: a service leaves a client that takes nothing for a minute. A
//! page that breaks off is asked for again, and what of it is there already is left out. So the
//! statement of each page is about rows that were received.

use core::time::Duration;

use stage::sync::atomic::Ordering;

use crate::ask::Line;
use crate::part::{Fault, Said};
use crate::ranked::{Identified, Ranked};

/// So often in a row a page is asked for again without a further row.
const ATTEMPTS: u32 = 2;
/// Before the first of them; then four times as long.
const PAUSE: Duration = Duration::from_millis(100);
/// Rows of a page: as many as wait for others at most, at about this size each.
const ROW_BYTES: usize = 2 << 10;
const PAGE_ROWS: core::ops::RangeInclusive<u64> = 100..=10_000;

/// Rows of a page where so much memory is for what waits of one sensor.
pub fn page_rows(memory_bytes: usize) -> u64 {
    let rows = units::number::to_u64(memory_bytes / ROW_BYTES);
    rows.clamp(*PAGE_ROWS.start(), *PAGE_ROWS.end())
}

/// How long to wait before a page is asked for again that failed so often in a row, at least once,
/// without a further row; `None` where it is not asked for again.
pub fn pause_after(failed: u32) -> Option<Duration> {
    let pause = PAUSE.saturating_mul(4_u32.saturating_pow(failed.saturating_sub(1)));
    (failed <= ATTEMPTS).then_some(pause)
}

/// What came behind the rows of a page.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Page {
    /// What the sensor says of it.
    pub said: Said,
    /// Where the next one begins; `None` of the last.
    pub next: Option<String>,
}

/// Asks for a page that begins at a cursor, and gives its rows.
pub type Fetch<'f, T> =
    &'f mut dyn FnMut(Option<&str>, &mut dyn FnMut(T) -> Result<(), Fault>) -> Result<Page, Fault>;

/// Pushes the rows of all pages into the line.
///
/// # Errors
/// When a page cannot be had.
pub fn pages<T: Identified>(line: &Line<'_, T>, fetch: Fetch<'_, T>) -> Result<Said, Fault> {
    let mut whole = Said::default();
    let mut cursor: Option<String> = None;
    let (mut met, mut failed) = (Met::<T>::default(), 0);
    loop {
        let (mut pushed, mut came) = (0_u64, 0_u64);
        let fetched = fetch(cursor.as_deref(), &mut |item| {
            came += 1;
            if met.is_new(&item) {
                pushed += 1;
                line.push(item)?;
            }
            Ok(())
        });
        match fetched {
            Ok(Page { mut said, next }) => {
                failed = 0;
                if next.is_some() {
                    // The rest follows: that it is cut is no verdict.
                    said.state = said.state_within_limit;
                }
                whole.add(said);
                if next.is_none() {
                    return Ok(whole);
                }
                if came == 0 || next == cursor {
                    let why = "its answer goes on without a further row";
                    return Err(Fault::Unlike(why.to_owned()));
                }
                cursor = next;
                met.is_again = false;
            }
            Err(fault) if fault.is_passing() => {
                failed = if pushed > 0 { 1 } else { failed + 1 };
                let Some(time) = pause_after(failed) else { return Err(fault) };
                met.is_again = true;
                pause(line, time);
            }
            Err(fault) => return Err(fault),
        }
        if line.over().load(Ordering::Relaxed) {
            return Err(Fault::Stopped);
        }
    }
}

/// The newest rows that were pushed: those of the last place.
struct Met<T: Identified> {
    key: Option<T::Key>,
    ids: Vec<String>,
    /// Rows come that may have come before.
    is_again: bool,
}

impl<T: Identified> Default for Met<T> {
    fn default() -> Self {
        Self { key: None, ids: Vec::new(), is_again: false }
    }
}

impl<T: Identified> Met<T> {
    fn is_new(&mut self, item: &T) -> bool {
        let key = Ranked::key(item);
        let is_same_place = self.key.as_ref() == Some(&key);
        if self.is_again {
            let is_before = self.key.as_ref().is_some_and(|last| key < *last);
            if is_before || (is_same_place && self.ids.iter().any(|id| id == item.id())) {
                return false;
            }
        }
        if !is_same_place {
            self.ids.clear();
            self.key = Some(key);
        }
        self.ids.push(item.id().to_owned());
        true
    }
}

fn pause<T: Ranked>(line: &Line<'_, T>, time: Duration) {
    const PARTS: u32 = 10;
    for _ in 0..PARTS {
        if !line.is_over() {
            stage::sleep(time / PARTS);
        }
    }
}
