//! How far a recording is, reported a few times a second.

use core::ops::ControlFlow;

use device::Pool;
use units::Clock;

use crate::account::Account;
use crate::events::{Event, EventKind, Events, Speaker};
use crate::job::Progress;
use crate::ledger::Ledger;
use crate::links::Links;
use crate::members::Notifier;
use crate::reach::ReachBack;
use crate::ring::{SharedStatus, status_of};
use crate::steps::ClockSteps;
use crate::watch::{Disks, Watching};

/// The callback that takes the progress of a recording, and may end it.
pub(crate) type Progressing<'a> = &'a mut dyn FnMut(&Progress) -> ControlFlow<()>;

/// Lines for the report that are kept: a recording may go on for years.
const NOTES_MAX: usize = 1000;

/// Puts the progress together.
pub(crate) struct ProgressReporter<'a> {
    pub(crate) progress: Progressing<'a>,
    pub(crate) status: &'a SharedStatus,
    pub(crate) ledger: &'a Ledger,
    pub(crate) pool: &'a Pool,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) start_ns: i64,
    pub(crate) reach: Option<ReachBack>,
    pub(crate) slots: u64,
    /// Events that are to be reported besides.
    pub(crate) notes: Vec<String>,
    pub(crate) notifier: Notifier,
    /// What happened, and what of it is said now.
    pub(crate) events: Events,
    pub(crate) speaker: Speaker,
    pub(crate) links: Links,
    pub(crate) steps: ClockSteps,
    /// What the volume thinks of the clock was said.
    pub(crate) has_told_doubt: bool,
    /// That packets are stored which are too old to be given out was said.
    pub(crate) has_told_age: bool,
    pub(crate) watching: Watching,
}

impl ProgressReporter<'_> {
    pub(crate) fn tell(&mut self) -> ControlFlow<()> {
        let now = self.clock.boottime_ns();
        // First what is stored, then what was taken: see the ledger's invariant.
        let shown = status_of(self.status);
        let accounts = self.ledger.accounts(&shown.stored);
        let untold = self.notifier.tell(&shown.changes, &self.events);
        keep_notes(&mut self.notes, untold);
        self.look_at_links(&accounts);
        self.look_at_clock(now);
        if let Some(doubt) = shown.clock_doubt.filter(|_| !self.has_told_doubt) {
            self.has_told_doubt = true;
            self.events.say(EventKind::ClockDoubt, "", doubt.to_string());
        }
        if let Some(note) = shown.withheld.note().filter(|_| !self.has_told_age) {
            self.has_told_age = true;
            self.events.say(EventKind::Withheld, "", note);
        }
        let disks = self.look_at_disks();
        let sent = shown.counters.bytes;
        let holds_ns = self.reach.as_mut().and_then(|reach| reach.note(now, sent));
        let news = self.news();
        (self.progress)(&Progress {
            elapsed_ns: now - self.start_ns,
            total: Account::sum(&accounts),
            interfaces: accounts,
            member_bytes: shown.counters.bytes,
            pool_free: self.pool.free_count(),
            pool_count: self.pool.count(),
            unindexed: shown.unindexed,
            left_out: shown.left_out,
            indexer_deaths: shown.indexer_deaths,
            long_waits: shown.long_waits,
            tail: shown.tail,
            acknowledged: shown.acknowledged,
            slots: self.slots,
            news,
            events: self.speaker.recent(),
            changes: shown.changes.into_kept(),
            holds_ns,
            disks,
        })
    }

    /// What the members did, and whether that is to be said.
    pub(crate) fn look_at_disks(&mut self) -> Disks {
        let shown = status_of(self.status);
        let total = Account::sum(&self.ledger.accounts(&shown.stored));
        // Repairs are no traffic; what was lost would have been, of the same size.
        let sent = shown.counters.bytes.saturating_sub(shown.counters.repaired_bytes);
        let lost = u128::from(total.kernel_drops + total.writer_drops);
        let lost = lost * u128::from(sent) / u128::from(total.stored.max(1));
        let offered = sent.saturating_add(u64::try_from(lost).unwrap_or(u64::MAX));
        let now = (self.clock.boottime_ns(), self.clock.realtime());
        self.watching.look(now, offered, &self.events)
    }

    fn look_at_clock(&mut self, now_ns: i64) {
        let realtime = self.clock.realtime();
        let Some(step_ns) = self.steps.look(realtime, now_ns) else { return };
        let direction = if step_ns < 0 { "back" } else { "forward" };
        let milliseconds = (step_ns.unsigned_abs() + 500_000) / 1_000_000;
        let note = format!(
            "the clock was set {direction} by {milliseconds} ms, to {realtime}: times of packets \
             follow it; keep it by chronyd or ntpd, which slew it"
        );
        self.events.say(EventKind::ClockStep, "", note);
    }

    pub(crate) fn look_at_links(&mut self, accounts: &[Account]) {
        let now = (self.clock.boottime_ns(), self.clock.realtime());
        self.links.look(accounts, now, &self.events);
    }

    /// What is said now.
    fn news(&mut self) -> Vec<Event> {
        let now = (self.clock.boottime_ns(), self.clock.realtime());
        let news = self.speaker.hear(self.events.take(), now);
        self.keep(&news);
        news
    }

    /// What had not been said when the recording ended.
    pub(crate) fn last_news(&mut self) -> Vec<Event> {
        let mut news = self.news();
        let rest = self.speaker.rest();
        self.keep(&rest);
        news.extend(rest);
        news
    }

    fn keep(&mut self, news: &[Event]) {
        let lasting = news.iter().filter(|event| event.kind.is_for_report());
        let line = |event: &Event| match event.kind {
            EventKind::InterfaceDown | EventKind::InterfaceUp => {
                format!("{} ({})", event.text, event.at)
            }
            _ => event.text.clone(),
        };
        keep_notes(&mut self.notes, lasting.map(line));
    }
}

/// Keeps lines for the report, unless there are very many.
pub(crate) fn keep_notes(notes: &mut Vec<String>, lines: impl IntoIterator<Item = String>) {
    let room = NOTES_MAX.saturating_sub(notes.len());
    notes.extend(lines.into_iter().take(room));
}
