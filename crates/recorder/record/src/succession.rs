//! Recorders that follow each other: what a new one takes over, and what the old one goes on with
//! where the new one failed.
//!
//! Who hands over closes the volume, and keeps its sources with what they gave since the time that
//! was agreed, until the new recorder has stored something.

use core::time::Duration;

use capture::Source;
use format::recorded::RecordedClock;
use recording::Account;
use selection::{Before, Taken};
use units::{Clock, NANOS_PER_SECOND, Sleep};

use crate::error::Error;
use crate::opening::{self, Opened};
use crate::options::Options;
use crate::report::Report;
use crate::sources::{self, Sources};
use crate::storage::Storage;

/// Why interfaces are not taken over.
const NOT_DIVIDED: &str = "packets by AF_XDP, or with the time of the adapter, cannot be divided \
                           between two recorders (--source packet, --timestamps kernel)";

const ASKED_MAX: usize = 3;
const PATIENCE: Duration = Duration::from_secs(15);
const CLOSING_NS: i64 = 5 * NANOS_PER_SECOND;
const BETWEEN_ATTEMPTS_NS: i64 = NANOS_PER_SECOND / 100;

/// Opens the inputs, and has a recorder that runs hand them over where that is wanted.
pub(crate) fn open(options: &Options, clock: &dyn Clock) -> Result<Sources, Error> {
    for _ in 0..ASKED_MAX {
        let opened = clock.realtime();
        let mut sources = sources::open(options, options.selection()?)?;
        let Some(take_over) = &options.take_over else { return Ok(sources) };
        if !sources.may_hand_over {
            return Err(Error::TakeOver(NOT_DIVIDED.to_owned()));
        }
        // The kernel keeps from now on what the recorder that runs does not take any more.
        match take_over.ask().map_err(Error::TakeOver)? {
            Taken::Nobody => return Ok(sources),
            Taken::From(from) => {
                let from_ns = clock.boottime_ns().saturating_sub(clock.realtime().since(from));
                sources.before = Some(Before { from, from_ns, held_from: opened, again: None });
                return Ok(sources);
            }
            Taken::ClockWasSet => {}
        }
    }
    Err(Error::TakeOver("the clock was set each time; it goes on".to_owned()))
}

/// Waits until another recorder has stored what was handed over to it. Where it does not, what to
/// go on with, and why.
pub(crate) fn wait(
    (options, clock): (&Options, &dyn Clock),
    (stamps, queues): (RecordedClock, usize),
    (kept, notes): (Vec<Box<dyn Source>>, &mut Vec<String>),
) -> Result<Option<(Sources, &'static str)>, Error> {
    // A queue that was stopped meanwhile keeps nothing.
    let Some(until) = options.control.until().filter(|_| kept.len() == queues) else {
        return Ok(None);
    };
    let why = if options.control.clock_was_set(clock) {
        "the clock was set meanwhile"
    } else if options.control.let_go(PATIENCE) {
        notes.push(format!("handed over: another recorder has the packets from {until} on"));
        return Ok(None);
    } else {
        "the other recorder ended before it had stored anything"
    };
    let mut kept = kept;
    let again = kept.iter_mut().map(|source| source.rewind()).collect();
    let mut kept = kept.into_iter();
    let (from_ns, again) = (options.control.until_ns(), Some(again));
    let before = Before { from: until, from_ns, held_from: until, again };
    let sources = Sources {
        first: kept.by_ref().take(1).collect(),
        further: kept.collect(),
        selection: options.selection()?,
        advice: Vec::new(),
        setup: Vec::new(),
        clock: stamps,
        may_hand_over: true,
        before: Some(before),
    };
    Ok(Some((sources, why)))
}

/// Opens the volume again, which another recorder may have had until a moment ago.
pub(crate) fn open_again(
    (options, storage): (&Options, &dyn Storage),
    queues: usize,
    clock: &dyn Sleep,
) -> Result<Opened, Error> {
    let until_ns = clock.boottime_ns().saturating_add(CLOSING_NS);
    loop {
        let opened = opening::open((options, storage), queues, clock);
        let now_ns = clock.boottime_ns();
        if opened.is_ok() || now_ns >= until_ns {
            return opened;
        }
        clock.sleep_until(now_ns.saturating_add(BETWEEN_ATTEMPTS_NS));
    }
}

impl Report {
    /// Adds what was recorded before a hand-over that failed.
    pub(crate) fn add_earlier(&mut self, earlier: Self) {
        for account in &mut self.interfaces {
            let before = earlier.interfaces.iter().find(|it| it.name == account.name);
            let name = core::mem::take(&mut account.name);
            *account = Account { name, ..Account::sum([&*account].into_iter().chain(before)) };
        }
        self.total = Account::sum(&self.interfaces);
        self.unindexed += earlier.unindexed;
        self.left_out += earlier.left_out;
        self.indexed_late += earlier.indexed_late;
        self.indexer_deaths += earlier.indexer_deaths;
        self.rows += earlier.rows;
        self.segments += earlier.segments;
        self.index_bytes += earlier.index_bytes;
        self.withheld += earlier.withheld;
        self.recovery = earlier.recovery;
        self.losses.splice(0..0, earlier.losses);
        self.broken_off.splice(0..0, earlier.broken_off);
        self.notes.splice(0..0, earlier.notes);
    }
}
