//! What is known of the names of one session: a search that goes on, or names at rest.
//!
//! A search takes a kilobyte, and most sessions have one for their first few packets only. Where
//! nothing is under way it gives way to the packed names; a payload that may have further names
//! makes a search of them again.

use core::mem;

use wire::{App, PackedNames};

use crate::Budget;
use crate::search::{Interest, SEARCH_BYTES_MAX, Search, Stage};

/// Names of a session, and what is being done to find more.
#[derive(Debug, Default)]
pub enum Findings {
    /// Nothing was found.
    #[default]
    Nothing,
    /// Messages may be under way.
    Open(Box<Search>),
    /// No message is under way.
    AtRest(AtRest),
}

/// What a search knew when nothing was under way.
#[derive(Debug)]
pub struct AtRest {
    names: PackedNames,
    openings: [bool; 2],
}

impl Findings {
    /// Names that were found before, of a session that goes on, and what is to be found besides;
    /// nothing is known where there is no space for them.
    pub fn of_names(
        names: PackedNames,
        interest: Interest,
        budget: &mut Budget,
    ) -> (Self, Interest) {
        if interest.is_none() || !budget.names.has(SEARCH_BYTES_MAX) {
            return (Self::Nothing, interest);
        }
        budget.names.change(0, names.heap_bytes());
        let stage = if names.app().is_some() { Stage::Named } else { Stage::Unnamed };
        (Self::AtRest(AtRest { names, openings: [false; 2] }), Interest { stage, ..interest })
    }

    /// The protocol whose parser found names.
    pub fn app(&self) -> Option<App> {
        match self {
            Self::Nothing => None,
            Self::Open(search) => search.names.app,
            Self::AtRest(rest) => rest.names.app(),
        }
    }

    /// The names so far.
    pub fn names(&self) -> Option<PackedNames> {
        match self {
            Self::Nothing => None,
            Self::Open(search) => Some(PackedNames::new(search.names.clone(), &mut Vec::new())),
            Self::AtRest(rest) => Some(rest.names.clone()),
        }
    }

    /// The names; nothing is known any more.
    pub fn take(&mut self) -> Option<PackedNames> {
        match mem::take(self) {
            Self::Nothing => None,
            Self::Open(search) => Some(PackedNames::new(search.names, &mut Vec::new())),
            Self::AtRest(rest) => Some(rest.names),
        }
    }

    /// The session is over: what incomplete messages show is kept, and all space is given back.
    /// Then there is only [`Self::take`].
    pub fn finish(&mut self, budget: &mut Budget) {
        match self {
            Self::Nothing => {}
            Self::Open(search) => search.finish(budget),
            Self::AtRest(rest) => budget.names.give(rest.names.heap_bytes()),
        }
    }

    /// Asks the search, if there is one. Not inlined: the compiler would read its place before it
    /// is known whether there is one, and that place lies in memory which most packets do not
    /// touch.
    #[inline(never)]
    pub(crate) fn is_open_and(&self, test: impl Fn(&Search) -> bool) -> bool {
        matches!(self, Self::Open(search) if test(search))
    }

    /// Works on the session's search. One that is new is kept only when there is something in it:
    /// much of what is looked at is nothing that is known. `None`, and counted, where it might take
    /// more memory than there is for all.
    pub(crate) fn with<T>(
        &mut self,
        interest: &mut Interest,
        budget: &mut Budget,
        work: impl FnOnce(&mut Search, &mut Budget) -> T,
    ) -> Option<T> {
        if !budget.names.has(SEARCH_BYTES_MAX) {
            return None;
        }
        if let Self::Open(search) = self {
            let result = work(search, budget);
            search.account(budget);
            return Some(result);
        }
        let mut search = match mem::take(self) {
            Self::AtRest(AtRest { names, openings }) => Search::resumed(&names, openings),
            _ => Search::default(),
        };
        let result = work(&mut search, budget);
        if !search.is_empty() {
            search.account(budget);
            *self = Self::Open(Box::new(search));
            interest.stage = Stage::Search;
        }
        Some(result)
    }

    /// Packs the names if no message is under way.
    pub(crate) fn rest(&mut self, interest: &mut Interest, budget: &mut Budget) {
        let Self::Open(search) = self else { return };
        if !search.is_idle() {
            return;
        }
        let (names, openings, taken) = mem::take(&mut **search).into_parts();
        let names = PackedNames::new(names, &mut budget.scratch);
        budget.names.change(taken, names.heap_bytes());
        interest.stage = if names.app().is_some() { Stage::Named } else { Stage::Unnamed };
        *self = Self::AtRest(AtRest { names, openings });
    }
}
