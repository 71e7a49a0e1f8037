//! What is shown, and what is asked for.

use machine_view::Sheet;

/// What a tab's filter is written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Filter {
    /// The query language; the code that makes the page applies it.
    Query,
    /// Words that a line has; they are looked for here.
    Words,
}

/// A tab.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tab {
    /// Name of the tab.
    pub name: &'static str,
    /// By what its lines may be put together; at least one.
    pub groupings: &'static [&'static str],
    /// What its filter is written in.
    pub filter: Filter,
}

/// Which moment is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    /// The newest that there is.
    Now,
    /// A second since 1970.
    Second(i64),
}

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ask<'a> {
    /// Place of the tab.
    pub tab: usize,
    /// Place of the grouping.
    pub grouping: usize,
    /// In the query language; empty for everything.
    pub query: &'a str,
    /// The moment that the page shows.
    pub at: At,
}

/// What there is to show.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Page {
    /// Lines above the table, safe for a terminal.
    pub head: Vec<String>,
    /// The table of the page.
    pub sheet: Sheet,
    /// The second that is shown, where one can go back and forward in time.
    pub second: Option<i64>,
    /// The same in words.
    pub time: String,
}

/// Makes the pages that the terminal shows.
pub trait Pages {
    /// What it is about: an interface, a file.
    fn title(&self) -> String;

    /// All tabs.
    fn tabs(&self) -> &'static [Tab];

    /// What a tab has to show now.
    fn page(&mut self, ask: &Ask<'_>) -> Page;

    /// Whether a query can be read; the error is for the user.
    fn check(&self, query: &str) -> Result<(), String>;

    /// The second of a time that the user typed.
    fn second(&self, text: &str) -> Result<i64, String>;

    /// Writes the packets of a line, which its query selects; what became of it, in words.
    fn write(&mut self, ask: &Ask<'_>, line: &str) -> Result<String, String>;
}
