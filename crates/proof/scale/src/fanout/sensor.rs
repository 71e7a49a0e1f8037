//! One sensor of a fleet that is asked: what is wrong with it, and which rows it has left.

use std::collections::VecDeque;

use fleet::Ranked;

/// What a sensor is like.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    /// It answers.
    Well,
    /// Its machine refuses connections.
    Dead,
    /// Its network swallows them.
    Silent,
    /// It says who it is, and searches for ever so long.
    Slow,
    /// Its first connection hangs.
    Stuck,
    /// It breaks off in the middle of its rows, whenever it is asked.
    Cut,
    /// It says that something is missing.
    Incomplete,
}

impl Kind {
    /// The word that a statement has for it.
    #[cfg(test)]
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Well | Self::Stuck => "complete",
            Self::Dead => "down",
            Self::Silent | Self::Slow => "slow",
            Self::Cut => "broken off",
            Self::Incomplete => "incomplete",
        }
    }
}

/// A row: its place in the order of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    key: i64,
    bytes: usize,
}

impl Ranked for Row {
    type Key = i64;

    fn key(&self) -> i64 {
        self.key
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A sensor, and what it has sent so far.
#[derive(Clone, Debug)]
pub(crate) struct Sensor {
    pub(crate) kind: Kind,
    /// The connection that counts.
    pub(crate) attempt: usize,
    /// Rows that it has not sent.
    left: u64,
    /// It breaks off with so many left.
    cut_at: Option<u64>,
    /// Rows of its page that it has not sent.
    page: u64,
    /// Times in a row that its page broke off.
    pub(crate) failed: u32,
    /// Rows that were read and that there is no room for.
    pub(crate) waiting: VecDeque<Row>,
    pub(crate) is_stalled: bool,
    /// Place of its last row, and the step to the next.
    key: i64,
    step: i64,
    row_bytes: usize,
}

impl Sensor {
    /// One whose so many rows lie in steps behind a first one.
    pub(crate) fn new(kind: Kind, rows: u64, (first, step): (i64, i64), row_bytes: usize) -> Self {
        Self {
            kind,
            attempt: 0,
            left: rows,
            cut_at: (kind == Kind::Cut).then_some(rows / 2),
            page: 0,
            failed: 0,
            waiting: VecDeque::new(),
            is_stalled: false,
            key: first,
            step,
            row_bytes,
        }
    }

    pub(crate) fn begin_page(&mut self, rows: u64) {
        self.page = rows.min(self.left);
    }

    /// How many rows come next; none at the end of the page, or where it breaks off.
    pub(crate) fn chunk(&mut self, most: u64) -> u64 {
        let before_cut = self.cut_at.map_or(self.left, |cut_at| self.left - cut_at);
        let rows = most.min(self.page).min(before_cut);
        (self.page, self.left) = (self.page - rows, self.left - rows);
        rows
    }

    pub(crate) fn has_rows(&self) -> bool {
        self.left > 0
    }

    /// It has broken off.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut_at == Some(self.left)
    }

    /// So many rows have come.
    pub(crate) fn read(&mut self, rows: u64) {
        for _ in 0..rows {
            self.waiting.push_back(Row { key: self.key, bytes: self.row_bytes });
            self.key += self.step;
        }
    }
}
