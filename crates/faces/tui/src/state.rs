//! What the screen shows, and what keys make of it.

use machine_view::{Sheet, SheetLine, SheetOrder};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::pages::{Ask, At, Filter, Page, Pages, Tab};

/// How one tab is looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Look {
    pub(crate) grouping: usize,
    pub(crate) filter: String,
    /// Filters before the present one.
    before: Vec<String>,
    pub(crate) order: Option<SheetOrder>,
    pub(crate) cursor: usize,
    /// The first line that is on the screen.
    pub(crate) top: usize,
}

/// A line that the user is typing.
#[derive(Clone, Debug)]
pub(crate) struct Typing {
    pub(crate) what: Typed,
    pub(crate) text: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Typed {
    Filter,
    Time,
}

/// What keys are taken for.
#[derive(Clone, Debug)]
pub(crate) enum Mode {
    Commands,
    Help,
    Typing(Typing),
}

/// What is on the screen.
#[derive(Debug)]
pub struct State {
    pub(crate) title: String,
    pub(crate) tabs: &'static [Tab],
    pub(crate) tab: usize,
    pub(crate) looks: Vec<Look>,
    pub(crate) at: At,
    pub(crate) page: Page,
    pub(crate) is_paused: bool,
    pub(crate) mode: Mode,
    /// What became of the last key.
    pub(crate) message: String,
    /// Lines that fit the screen.
    pub(crate) height: usize,
    is_stale: bool,
    is_over: bool,
}

impl State {
    /// The first tab, with nothing on it yet.
    ///
    /// # Panics
    /// When there is no tab.
    pub fn new(pages: &dyn Pages) -> Self {
        let tabs = pages.tabs();
        assert!(!tabs.is_empty(), "there is something to show");
        Self {
            title: pages.title(),
            tabs,
            tab: 0,
            looks: vec![Look::default(); tabs.len()],
            at: At::Now,
            page: Page::default(),
            is_paused: false,
            mode: Mode::Commands,
            message: String::new(),
            height: 1,
            is_stale: true,
            is_over: false,
        }
    }

    /// Goes to a tab by name, and to one of its groupings, with a filter; what of it there is not
    /// is left.
    pub fn begin_with(&mut self, tab: Option<&str>, grouping: Option<&str>, filter: &str) {
        if let Some(place) = self.tabs.iter().position(|it| Some(it.name) == tab) {
            self.tab = place;
        }
        let places = self.shown_tab().groupings.iter();
        let grouping = places.clone().position(|name| Some(*name) == grouping);
        let look = self.look_mut();
        look.grouping = grouping.unwrap_or(0);
        filter.clone_into(&mut look.filter);
    }

    /// Goes to a moment.
    pub fn go_back_to(&mut self, second: i64) {
        self.at = At::Second(second);
    }

    /// The user has quit.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// What is on the screen is not what was asked for last.
    pub fn is_stale(&self) -> bool {
        self.is_stale
    }

    pub(crate) fn look_at(&self) -> &Look {
        self.looks.get(self.tab).expect("a look for each tab")
    }

    fn look_mut(&mut self) -> &mut Look {
        self.looks.get_mut(self.tab).expect("a look for each tab")
    }

    pub(crate) fn shown_tab(&self) -> &'static Tab {
        self.tabs.get(self.tab).expect("a tab that there is")
    }

    fn ask(&self) -> Ask<'_> {
        let look = self.look_at();
        let query = if self.shown_tab().filter == Filter::Query { &*look.filter } else { "" };
        Ask { tab: self.tab, grouping: look.grouping, query, at: self.at }
    }

    /// Asks for the page anew, unless it is paused and still the one that is wanted.
    pub fn look(&mut self, pages: &mut dyn Pages) {
        if self.is_paused && !self.is_stale {
            return;
        }
        self.is_stale = false;
        let mut page = pages.page(&self.ask());
        if self.shown_tab().filter == Filter::Words {
            page.sheet.keep(&self.look_at().filter);
        }
        self.page = page;
        self.arrange();
    }

    /// Sorts, and keeps the cursor on the line that it was on, if it is still there.
    fn arrange(&mut self) {
        if let Some(order) = self.look_at().order {
            self.page.sheet.sort(order);
        }
        let last = self.page.sheet.lines.len().saturating_sub(1);
        let look = self.look_mut();
        look.cursor = look.cursor.min(last);
    }

    /// The line under the cursor.
    pub(crate) fn line(&self) -> Option<&SheetLine> {
        self.page.sheet.lines.get(self.look_at().cursor)
    }

    /// Takes a key.
    pub fn press(&mut self, key: KeyEvent, pages: &mut dyn Pages) {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            self.is_over = true;
            return;
        }
        match self.mode {
            Mode::Typing(_) => self.type_key(key.code, pages),
            Mode::Help => self.mode = Mode::Commands,
            Mode::Commands => {
                self.message.clear();
                self.command(key.code, pages);
            }
        }
    }

    fn command(&mut self, key: KeyCode, pages: &mut dyn Pages) {
        match key {
            KeyCode::Char('q') => self.is_over = true,
            KeyCode::Char('?' | 'h') => self.mode = Mode::Help,
            KeyCode::Char(digit @ '1'..='9') => {
                let place = usize::try_from(u32::from(digit) - u32::from('1')).unwrap_or(0);
                self.go_to(place);
            }
            KeyCode::Tab => self.go_to((self.tab + 1) % self.tabs.len()),
            KeyCode::BackTab => self.go_to((self.tab + self.tabs.len() - 1) % self.tabs.len()),
            KeyCode::Char('g') => self.group(1),
            KeyCode::Char('G') => self.group(self.shown_tab().groupings.len() - 1),
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('/') => {
                let text = self.look_at().filter.clone();
                self.mode = Mode::Typing(Typing { what: Typed::Filter, text });
            }
            KeyCode::Char('t') if self.page.second.is_some() => {
                let text = String::new();
                self.mode = Mode::Typing(Typing { what: Typed::Time, text });
            }
            KeyCode::Char('w') => self.write(pages),
            _ => {
                let is_known = self.move_cursor(key)
                    || self.move_in_time(key)
                    || self.change_order(key)
                    || self.change_filter(key);
                if !is_known {
                    "? shows what keys do".clone_into(&mut self.message);
                }
            }
        }
    }

    fn go_to(&mut self, tab: usize) {
        if tab < self.tabs.len() && tab != self.tab {
            self.tab = tab;
            self.renew();
        }
    }

    /// The page is asked for anew; until then there is none.
    fn renew(&mut self) {
        self.page.sheet = Sheet::default();
        self.is_stale = true;
    }

    fn group(&mut self, steps: usize) {
        let count = self.shown_tab().groupings.len();
        let look = self.look_mut();
        look.grouping = (look.grouping + steps) % count;
        (look.order, look.cursor, look.top) = (None, 0, 0);
        self.renew();
    }

    fn move_cursor(&mut self, key: KeyCode) -> bool {
        let (height, last) = (self.height.max(1), self.page.sheet.lines.len().saturating_sub(1));
        let look = self.look_mut();
        look.cursor = match key {
            KeyCode::Up => look.cursor.saturating_sub(1),
            KeyCode::Down => look.cursor + 1,
            KeyCode::PageUp => look.cursor.saturating_sub(height),
            KeyCode::PageDown => look.cursor + height,
            KeyCode::Home => 0,
            KeyCode::End => last,
            _ => return false,
        };
        look.cursor = look.cursor.min(last);
        true
    }

    fn move_in_time(&mut self, key: KeyCode) -> bool {
        let seconds = match key {
            KeyCode::Left => -1,
            KeyCode::Right => 1,
            KeyCode::Char('[') => -10,
            KeyCode::Char(']') => 10,
            KeyCode::Char('{') => -600,
            KeyCode::Char('}') => 600,
            KeyCode::Char('n') => {
                self.at = At::Now;
                self.renew();
                return true;
            }
            _ => return false,
        };
        match self.page.second {
            Some(second) => {
                self.at = At::Second(second.saturating_add(seconds));
                self.is_stale = true;
            }
            None => "there is no going back in time here".clone_into(&mut self.message),
        }
        true
    }

    fn change_order(&mut self, key: KeyCode) -> bool {
        let count = self.page.sheet.columns.len().max(1);
        let order = self.look_at().order;
        let order = match (key, order) {
            (KeyCode::Char('>'), None) => SheetOrder { column: 0, is_reversed: false },
            (KeyCode::Char('<'), None) => SheetOrder { column: count - 1, is_reversed: false },
            (KeyCode::Char('>'), Some(order)) => {
                SheetOrder { column: (order.column + 1) % count, is_reversed: false }
            }
            (KeyCode::Char('<'), Some(order)) => {
                SheetOrder { column: (order.column + count - 1) % count, is_reversed: false }
            }
            (KeyCode::Char('r'), order) => {
                let order = order.unwrap_or(SheetOrder { column: 0, is_reversed: true });
                SheetOrder { is_reversed: !order.is_reversed, ..order }
            }
            _ => return false,
        };
        self.look_mut().order = Some(order);
        self.arrange();
        true
    }

    fn change_filter(&mut self, key: KeyCode) -> bool {
        match key {
            KeyCode::Esc => self.filter(String::new()),
            KeyCode::Backspace => {
                let before = self.look_mut().before.pop().unwrap_or_default();
                self.set_filter(before);
            }
            KeyCode::Enter => match self.line().and_then(|line| line.query.clone()) {
                Some(query) if self.shown_tab().filter == Filter::Query => {
                    let filter = joined(&self.look_at().filter, &query);
                    self.look_mut().grouping = 0;
                    self.filter(filter);
                }
                _ => "there are no sessions of this line".clone_into(&mut self.message),
            },
            _ => return false,
        }
        true
    }

    fn filter(&mut self, filter: String) {
        let look = self.look_mut();
        if look.filter != filter {
            let before = core::mem::take(&mut look.filter);
            look.before.push(before);
        }
        self.set_filter(filter);
    }

    fn set_filter(&mut self, filter: String) {
        let look = self.look_mut();
        (look.filter, look.cursor, look.top) = (filter, 0, 0);
        self.is_stale = true;
    }

    fn type_key(&mut self, key: KeyCode, pages: &dyn Pages) {
        let Mode::Typing(typing) = &mut self.mode else { return };
        match key {
            KeyCode::Char(letter) => typing.text.push(letter),
            KeyCode::Backspace => drop(typing.text.pop()),
            KeyCode::Esc => self.mode = Mode::Commands,
            KeyCode::Enter => {
                let Typing { what, text } = typing.clone();
                let taken = match what {
                    Typed::Filter => self.take_filter(&text, pages),
                    Typed::Time => pages.second(&text).map(|second| {
                        self.at = At::Second(second);
                        self.is_stale = true;
                    }),
                };
                // What cannot be read stays, to be mended.
                match taken {
                    Ok(()) => {
                        self.mode = Mode::Commands;
                        self.message.clear();
                    }
                    Err(error) => self.message = error,
                }
            }
            _ => {}
        }
    }

    fn take_filter(&mut self, text: &str, pages: &dyn Pages) -> Result<(), String> {
        if self.shown_tab().filter == Filter::Query {
            pages.check(text)?;
        }
        self.filter(text.trim().to_owned());
        Ok(())
    }

    fn write(&mut self, pages: &mut dyn Pages) {
        let line = self.line().and_then(|line| line.query.clone());
        self.message = match line {
            None => "there are no packets of this line".to_owned(),
            Some(line) => match pages.write(&self.ask(), &line) {
                Ok(message) | Err(message) => message,
            },
        };
    }
}

/// What both select.
fn joined(filter: &str, query: &str) -> String {
    if filter.is_empty() { query.to_owned() } else { format!("({filter}) and ({query})") }
}
