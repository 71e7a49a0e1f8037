//! Tables that live, on a terminal: tabs, each with its groupings; keys that choose, sort, filter,
//! pause, go back in time and save; drawing.
//!
//! What is shown comes from [`Pages`], asked anew once a second; nothing here knows what it is
//! about. The state after a key is a function of the state before ([`State::press`]), so that tests
//! press keys without a terminal.

mod draw;
mod keys;
mod pages;
mod state;

use core::time::Duration;
use std::io;

use ratatui::Terminal;
use ratatui::backend::Backend;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use units::{Clock, NANOS_PER_SECOND};

pub use keys::KEYS;
pub use pages::{Ask, At, Filter, Page, Pages, Tab};
pub use state::State;

/// Between two looks whether to end, and at most until a key is taken up.
const NAP: Duration = Duration::from_millis(100);
/// Between two looks at the pages.
const REFRESH_NS: i64 = NANOS_PER_SECOND;

/// Shows pages on the terminal that this process has until the user quits or `is_over`; the
/// terminal is as before then, also after a panic.
///
/// # Errors
/// There is no terminal, or it went away.
pub fn run(
    pages: &mut dyn Pages,
    state: &mut State,
    clock: &dyn Clock,
    is_over: &dyn Fn() -> bool,
) -> io::Result<()> {
    let mut terminal = ratatui::try_init()?;
    let ended = watch(&mut terminal, (pages, state), clock, is_over);
    let restored = ratatui::try_restore();
    ended.and(restored)
}

fn watch<B: Backend<Error = io::Error>>(
    terminal: &mut Terminal<B>,
    (pages, state): (&mut dyn Pages, &mut State),
    clock: &dyn Clock,
    is_over: &dyn Fn() -> bool,
) -> io::Result<()> {
    let mut looked_ns = i64::MIN;
    while !state.is_over() && !is_over() {
        let now_ns = clock.boottime_ns();
        if now_ns.saturating_sub(looked_ns) >= REFRESH_NS || state.is_stale() {
            state.look(pages);
            looked_ns = now_ns;
        }
        terminal.draw(|frame| draw::draw(frame, state))?;
        if event::poll(NAP)?
            && let Event::Key(key) = event::read()?
            && key.kind != KeyEventKind::Release
        {
            state.press(key, pages);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
