//! How far a recording is, reported a few times a second.

use core::ops::ControlFlow;

use device::Pool;
use events::{ClockSteps, Disks, Event, EventKind, Events, ReachBack, Speaker, Watching};
use format::geometry::Geometry;
use recording::{Account, Progress};
use units::Clock;

use crate::common::Common;
use crate::ledger::Ledger;
use crate::links::Links;
use crate::members::Notifier;
use crate::opening::Opened;
use crate::options::{Input, Options};
use crate::report::{Report, keep_notes};
use crate::status::{SharedStatus, standing};

/// The callback that takes the progress of a recording, and may end it.
pub(crate) type Progressing<'a> = &'a mut dyn FnMut(&Progress) -> ControlFlow<()>;

/// Puts the progress together.
pub(crate) struct ProgressReporter<'a> {
    progress: Progressing<'a>,
    status: &'a SharedStatus,
    ledger: &'a Ledger,
    pool: &'a Pool,
    clock: &'a dyn Clock,
    start_ns: i64,
    reach: Option<ReachBack>,
    slots: u64,
    /// Events that are to be reported besides.
    notes: Vec<String>,
    notifier: Notifier,
    /// What happened, and what of it is said now.
    events: Events,
    speaker: Speaker,
    links: Links,
    steps: ClockSteps,
    /// What the volume thinks of the clock was said.
    has_told_doubt: bool,
    /// That packets are stored which are too old to be given out was said.
    has_told_age: bool,
    watching: Watching,
}

impl<'a> ProgressReporter<'a> {
    pub(crate) fn new(
        common: &'a Common<'_>,
        (opened, advice, note): (&Opened, &[String], Option<String>),
        progress: Progressing<'a>,
    ) -> Self {
        let Common { options, clock, ref status, ref ledger, ref pool, ref events, .. } = *common;
        let first = [recording_line(options)];
        // Who asked for rows that outlive their packets is not told at the end alone.
        let unkept = note.iter().filter(|_| options.keep_sessions.is_some());
        for line in first.iter().chain(&opened.setup).chain(advice).chain(unkept) {
            events.say(EventKind::Setup, "", line.clone());
        }
        let geometry = opened.writer.geometry();
        Self {
            progress,
            status,
            ledger,
            pool,
            clock,
            start_ns: clock.boottime_ns(),
            reach: reach_back(options, geometry),
            slots: geometry.slots - u64::from(opened.writer.superblock().window),
            notes: advice.iter().chain(opened.writer.notes()).cloned().chain(note).collect(),
            notifier: Notifier::new(options, common.log),
            events: events.clone(),
            speaker: Speaker::default(),
            links: Links::default(),
            steps: ClockSteps::default(),
            has_told_doubt: false,
            has_told_age: false,
            watching: Watching::new(
                opened.watches.clone(),
                opened.writer.superblock(),
                matches!(options.input, Input::Interfaces(_)),
            ),
        }
    }

    pub(crate) fn tell(&mut self) -> ControlFlow<()> {
        let now = self.clock.boottime_ns();
        let (shown, accounts) = standing(self.status, self.ledger);
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
        let holds_ns = self.reach.as_mut().and_then(|it| it.note(now, shown.counters.bytes));
        let news = self.news();
        (self.progress)(&Progress {
            elapsed_ns: now - self.start_ns,
            total: Account::sum(&accounts),
            interfaces: accounts,
            member_bytes: shown.counters.bytes,
            pool_columns: self.pool.count(),
            pool_columns_free: self.pool.free_count(),
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
            hand_over: None,
        })
    }

    /// What the members did, and whether that is to be said.
    fn look_at_disks(&mut self) -> Disks {
        let (shown, accounts) = standing(self.status, self.ledger);
        let total = Account::sum(&accounts);
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

    fn look_at_links(&mut self, accounts: &[Account]) {
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
    fn last_news(&mut self) -> Vec<Event> {
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

    /// What is known when all has ended.
    pub(crate) fn finish(
        mut self,
        (further_notes, broken_off): (Vec<String>, Vec<String>),
        report: &mut Report,
    ) {
        report.disks = self.look_at_disks();
        // Only of what is live it is asked how far the ring reaches back.
        report.is_of_files = self.reach.is_none();
        let shown;
        (shown, report.interfaces) = standing(self.status, self.ledger);
        let untold = self.notifier.tell(&shown.changes, &self.events);
        self.look_at_links(&report.interfaces);
        report.news = self.last_news();
        let ProgressReporter { ledger, pool, notes, notifier, .. } = self;
        report.notes.extend(notes);
        report.notes.extend(further_notes);
        report.notes.extend(untold);
        report.notes.extend(notifier.finish());
        report.broken_off = broken_off;
        report.losses = ledger.losses();
        report.total = Account::sum(&report.interfaces);
        report.pool_columns = pool.count();
        report.pool_columns_used_max = pool.count() - pool.least_free_count();
        (report.unindexed, report.indexed_late) = (shown.unindexed, shown.indexed_late);
        report.left_out = shown.left_out;
        if shown.unerased > 0 {
            let slots = shown.unerased;
            report.notes.push(format!(
                "{slots} expired slots are given out no more but not yet erased: the next \
                 recording goes on with them, or `wirespool erase`"
            ));
        }
        report.withheld = shown.withheld.stripes;
        report.notes.extend(shown.withheld.note());
        report.clock_doubt = shown.clock_doubt;
        report.notes.extend(shown.clock_doubt.map(|doubt| doubt.to_string()));
        report.acknowledged = shown.acknowledged;
        report.notes.extend(shown.changes.note());
        report.changes = shown.changes.into_kept();
    }
}

/// What is recorded, and where it goes.
fn recording_line(options: &Options) -> String {
    let input = match &options.input {
        Input::Interfaces(names) => names.join(", "),
        Input::Files(paths) => match &paths[..] {
            [one] if one.as_os_str() == "-" => "standard input".to_owned(),
            [one] => one.display().to_string(),
            more => format!("{} inputs", more.len()),
        },
    };
    format!("recording {input} into {}", options.volume.display())
}

/// Packets of a file come as fast as they are read: their rate predicts nothing.
fn reach_back(options: &Options, geometry: &Geometry) -> Option<ReachBack> {
    let slot_bytes = u64::from(geometry.piece_bytes) * u64::from(geometry.columns());
    let is_live = matches!(options.input, Input::Interfaces(_));
    is_live.then(|| ReachBack::new(geometry.slots * slot_bytes))
}
