//! Many histories on several threads, and what they come to together.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::check::Violation;
use crate::counters::Counters;
use crate::history::{self, Outcome};
use crate::ledger::Ledger;
use crate::orders::{Kind, Orders};
use crate::recorder;
use crate::search;
use crate::sum::Sum;
use crate::took::Begin;

/// Seeds that a campaign loses at most when it is killed.
const SLICE: u64 = 50;

thread_local! {
    /// The seed whose history runs on this thread.
    static SEED: Cell<u64> = const { Cell::new(0) };
}

/// Runs the histories; `failed` hears of each failure at once.
pub(crate) fn run(orders: Orders, failed: &(dyn Fn(u64, &str) + Sync)) -> Sum {
    let next = AtomicU64::new(orders.first_seed);
    let stop = AtomicBool::new(false);
    let sum = Mutex::new(Sum::default());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed - orders.first_seed >= orders.seeds || stop.load(Ordering::Relaxed) {
                return;
            }
            let outcome = run_one(orders.of, seed, orders.trace);
            let mut sum = stage::lock(&sum);
            if let Err(Violation(what)) = &outcome.verdict {
                failed(seed, what);
                stop.store(orders.stop_at_failure, Ordering::Relaxed);
            }
            sum.take(seed, outcome);
        }
    };
    thread::scope(|scope| {
        for number in 1..orders.threads.max(1) {
            let builder = thread::Builder::new().name(format!("sim-{number}"));
            builder.spawn_scoped(scope, work).expect("a thread for a few seeds");
        }
        work();
    });
    let mut sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    sum.failures.sort();
    sum
}

/// One history. A failed assertion of the volume is a broken promise, too.
pub(crate) fn run_one(of: Kind, seed: u64, trace: bool) -> Outcome {
    SEED.set(seed);
    let run = || match of {
        Kind::Volume => history::run(seed, trace),
        Kind::Recorder => recorder::run(seed, trace),
        Kind::Search => search::run(seed, trace),
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("panic");
        let verdict = Err(Violation(format!("PANIC: {text}")));
        Outcome { counters: Counters::default(), digest: 0, verdict }
    })
}

/// A panic names its seed: where panics abort, nothing else can.
pub(crate) fn name_seed_of_panics(print: fn(u64, &str)) {
    set_hook(Box::new(move |info| print(SEED.get(), &info.to_string().replace('\n', " "))));
}

/// When a campaign is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Aim {
    Seeds(u64),
    Crashes(u64),
    /// It is only looked at.
    Nothing,
}

impl Aim {
    /// How many of the next seeds to run: at most a slice.
    fn next(self, sum: &Sum) -> u64 {
        match self {
            Self::Seeds(seeds) => SLICE.min(seeds.saturating_sub(sum.seeds)),
            Self::Crashes(crashes) if sum.counters.get("crashes") < crashes => SLICE,
            Self::Crashes(_) | Self::Nothing => 0,
        }
    }
}

/// Goes on with a campaign until it is over; each slice is noted as it ends.
pub(crate) fn go_on(
    ledger: &mut Ledger,
    (orders, aim): (Orders, Aim),
    failed: &(dyn Fn(u64, &str) + Sync),
) -> Result<(), String> {
    loop {
        let first_seed = ledger.next_seed().unwrap_or(orders.first_seed);
        let seeds = aim.next(&ledger.sum);
        let has_failed = orders.stop_at_failure && !ledger.sum.failures.is_empty();
        if seeds == 0 || has_failed {
            return Ok(());
        }
        let begin = Begin::now();
        let sum = run(Orders { first_seed, seeds, ..orders }, failed);
        ledger.note(first_seed, sum, begin.took())?;
    }
}
