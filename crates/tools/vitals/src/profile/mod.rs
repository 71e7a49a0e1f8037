//! Which processes, libraries and functions processors work in: samples are counted, over the last
//! ten seconds and since the beginning.
//!
//! A sample stands for the time between two of them. Where cycles were counted it stands for its
//! share of the time in which processors were busy, because a processor that is idle counts none,
//! and the kernel takes samples the closer together the fewer cycles there are.
//!
//! Not here: taking of samples (`observe::sampling`), names (`observe::symbols`), the look at a
//! machine that runs ([`Profiler`]).

mod live;

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use observe::sampling::Ticker;
use observe::symbols::{Function, Library, Place};
use units::number::real;

pub use live::{Missing, Profiler};

/// What is shown of the last time.
const WINDOW_NS: u64 = 10_000_000_000;
/// Counts are kept for so long a time together, and forgotten together.
const SLICE_NS: u64 = 500_000_000;
/// Places that are counted apart; what else there is counts as one.
const PLACES_MAX: usize = 1 << 16;
/// The process of a processor that has nothing to do.
const IDLE: u32 = 0;
/// Functions in which it has nothing to do, of the kernels that there are; in all others it works,
/// for packets that arrive, as a rule.
const IDLE_FUNCTIONS: [&str; 20] = [
    "acpi_idle_do_entry",
    "acpi_idle_enter",
    "acpi_processor_ffh_cstate_enter",
    "acpi_safe_halt",
    "arch_cpu_idle",
    "cpu_do_idle",
    "cpu_idle_poll",
    "cpu_startup_entry",
    "cpuidle_enter",
    "cpuidle_enter_state",
    "default_idle",
    "default_idle_call",
    "do_idle",
    "intel_idle",
    "intel_idle_ibrs",
    "intel_idle_irq",
    "mwait_idle",
    "native_safe_halt",
    "poll_idle",
    "pv_native_safe_halt",
];

/// A sample with names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Work {
    /// Time of the sample.
    pub time_ns: u64,
    /// Process id.
    pub process: u32,
    /// Name of the process.
    pub name: Arc<str>,
    /// Library and function of the instruction.
    pub place: Place,
    /// What the sample stands for, in the unit of the ticker.
    pub weight: u64,
}

/// What rows are made of: samples are put together where all of these are equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// Process.
    Process,
    /// Library, in all processes.
    Library,
    /// Library and function, in all processes.
    Function,
    /// Process, library and function.
    All,
}

/// The time that shares are taken of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Span {
    /// The last ten seconds.
    Recent,
    /// Since the beginning.
    Total,
}

/// One line of a profile.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Number and name of the process; `None` where processes are put together.
    pub process: Option<(u32, Arc<str>)>,
    /// The library; `None` where libraries are put together.
    pub library: Option<Library>,
    /// The function; `None` where functions are put together.
    pub function: Option<Function>,
    /// Samples at this place.
    pub samples: u64,
    /// Their time as a share of the time that went by: 1 is one processor all the time.
    pub share_of_one: f64,
    /// The same of all processors together: 1 is all of them all the time.
    pub share_of_all: f64,
}

/// How much is known, and how sure it is.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Summary {
    /// How long that was.
    pub elapsed_ns: u64,
    /// Samples of work.
    pub samples: u64,
    /// Samples of processors that had nothing to do, where those are taken.
    pub idle_samples: u64,
    /// Samples at more places than are counted apart.
    pub elsewhere_samples: u64,
    /// The time of all work: 1 is one processor all the time.
    pub share_of_one: f64,
    /// The same of all processors together.
    pub share_of_all: f64,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key {
    process: u32,
    name: Arc<str>,
    place: Place,
}

#[derive(Clone, Copy, Default, Debug)]
struct Count {
    samples: u64,
    weight: u64,
}

impl Count {
    fn add(&mut self, other: Self) {
        self.samples += other.samples;
        self.weight = self.weight.saturating_add(other.weight);
    }
}

/// What was counted in some time.
#[derive(Clone, Default, Debug)]
struct Tally {
    places: BTreeMap<Key, Count>,
    all: Count,
    idle: u64,
    elsewhere: u64,
}

/// A look at the clock, with the time that processors had been busy until then.
#[derive(Clone, Copy, Debug)]
struct Look {
    time_ns: u64,
    busy_ns: u64,
}

#[derive(Debug)]
struct Slice {
    begin: Look,
    tally: Tally,
}

/// The counts.
#[derive(Debug)]
pub struct Profile {
    ticker: Ticker,
    processors: u32,
    begin: Look,
    now: Look,
    slices: VecDeque<Slice>,
    total: Tally,
}

impl Profile {
    /// Counts from now on. `busy_ns` is the time that all processors together have worked since any
    /// moment; it is needed where cycles are counted.
    pub fn new(ticker: Ticker, processors: usize, time_ns: u64, busy_ns: u64) -> Self {
        let begin = Look { time_ns, busy_ns };
        Self {
            ticker,
            processors: u32::try_from(processors).unwrap_or(u32::MAX).max(1),
            begin,
            now: begin,
            slices: VecDeque::from([Slice { begin, tally: Tally::default() }]),
            total: Tally::default(),
        }
    }

    /// Counts a sample.
    pub fn add(&mut self, work: &Work) {
        if let Some(slice) = self.slices.back_mut() {
            slice.tally.add(work);
        }
        self.total.add(work);
    }

    /// So much time has gone by; what is too old is forgotten.
    pub fn advance(&mut self, time_ns: u64, busy_ns: u64) {
        let now = Look { time_ns, busy_ns };
        self.now = now;
        let since = |slice: &Slice| time_ns.saturating_sub(slice.begin.time_ns);
        if self.slices.back().is_none_or(|slice| since(slice) >= SLICE_NS) {
            self.slices.push_back(Slice { begin: now, tally: Tally::default() });
        }
        // The oldest one may lie partly outside.
        while self.slices.get(1).is_some_and(|second| since(second) >= WINDOW_NS) {
            self.slices.pop_front();
        }
    }

    /// Where time went, the most first.
    pub fn rows(&self, by: By, span: Span) -> Vec<Row> {
        let (begin, tally) = self.of(span);
        let mut groups: BTreeMap<_, Count> = BTreeMap::new();
        for (key, count) in &tally.places {
            let process =
                matches!(by, By::Process | By::All).then(|| (key.process, Arc::clone(&key.name)));
            let library = (by != By::Process).then(|| key.place.library.clone());
            let function = matches!(by, By::Function | By::All).then(|| key.place.function.clone());
            groups.entry((process, library, function)).or_default().add(*count);
        }
        let mut rows: Vec<Row> = groups
            .into_iter()
            .map(|((process, library, function), count)| {
                let share_of_one = self.share(count.weight, &tally, begin);
                let share_of_all = share_of_one / f64::from(self.processors);
                let samples = count.samples;
                Row { process, library, function, samples, share_of_one, share_of_all }
            })
            .collect();
        rows.sort_by(|one, other| other.share_of_one.total_cmp(&one.share_of_one));
        rows
    }

    /// All of it together.
    pub fn summary(&self, span: Span) -> Summary {
        let (begin, tally) = self.of(span);
        let share_of_one = self.share(tally.all.weight, &tally, begin);
        Summary {
            elapsed_ns: self.now.time_ns.saturating_sub(begin.time_ns),
            samples: tally.all.samples,
            idle_samples: tally.idle,
            elsewhere_samples: tally.elsewhere,
            share_of_one,
            share_of_all: share_of_one / f64::from(self.processors),
        }
    }

    fn of(&self, span: Span) -> (Look, Cow<'_, Tally>) {
        match span {
            Span::Total => (self.begin, Cow::Borrowed(&self.total)),
            Span::Recent => {
                let begin = self.slices.front().map_or(self.begin, |slice| slice.begin);
                let mut tally = Tally::default();
                self.slices.iter().for_each(|slice| tally.join(&slice.tally));
                (begin, Cow::Owned(tally))
            }
        }
    }

    /// The share of one processor that a weight is.
    fn share(&self, weight: u64, tally: &Tally, begin: Look) -> f64 {
        let elapsed_ns = self.now.time_ns.saturating_sub(begin.time_ns);
        let (of, whole) = match self.ticker {
            Ticker::Clock => (1.0, elapsed_ns),
            Ticker::Cycles => {
                let busy_ns = self.now.busy_ns.saturating_sub(begin.busy_ns);
                (real(busy_ns) / real(elapsed_ns.max(1)), tally.all.weight)
            }
        };
        of * real(weight) / real(whole.max(1))
    }
}

impl Tally {
    fn add(&mut self, work: &Work) {
        if is_idle(work) {
            self.idle += 1;
            return;
        }
        let count = Count { samples: 1, weight: work.weight };
        let Work { process, name, place, .. } = work;
        let key = Key { process: *process, name: Arc::clone(name), place: place.clone() };
        self.count(key, count);
    }

    fn count(&mut self, key: Key, count: Count) {
        self.all.add(count);
        if self.places.len() < PLACES_MAX || self.places.contains_key(&key) {
            self.places.entry(key).or_default().add(count);
        } else {
            self.elsewhere += count.samples;
        }
    }

    fn join(&mut self, other: &Self) {
        for (key, count) in &other.places {
            self.count(key.clone(), *count);
        }
        self.idle += other.idle;
        self.elsewhere += other.elsewhere;
        // What is elsewhere is in no place that was counted.
        let known: u64 = other.places.values().map(|count| count.weight).sum();
        let unknown = other.all.weight.saturating_sub(known);
        self.all.add(Count { samples: other.elsewhere, weight: unknown });
    }
}

/// Whether the processor had nothing to do. Where functions of the kernel have no names, the
/// process of an idle processor is taken to be idle always.
fn is_idle(work: &Work) -> bool {
    let of_idle = match &work.place.function {
        Function::Named(name) => IDLE_FUNCTIONS.contains(&&**name),
        _ => true,
    };
    work.process == IDLE && of_idle
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn work(process: u32, library: &str, function: &str, weight: u64) -> Work {
        let place = Place {
            library: Library::File(library.into()),
            function: Function::Named(function.into()),
        };
        Work { time_ns: 0, process, name: format!("name {process}").into(), place, weight }
    }

    fn profile(ticker: Ticker) -> Profile {
        Profile::new(ticker, 2, 0, 0)
    }

    fn shown(rows: &[Row]) -> Vec<(String, u64, f64)> {
        let row = |row: &Row| {
            let process = row.process.as_ref().map(|(number, _)| number.to_string());
            let library = row.library.as_ref().map(Library::to_string);
            let function = row.function.as_ref().map(Function::to_string);
            let parts: Vec<String> = [process, library, function].into_iter().flatten().collect();
            (parts.join(" "), row.samples, row.share_of_one)
        };
        rows.iter().map(row).collect()
    }

    #[test]
    fn samples_are_put_together_in_four_ways() {
        let mut profile = profile(Ticker::Clock);
        for (process, library, function) in
            [(1, "a", "f"), (1, "a", "f"), (2, "a", "f"), (1, "a", "g"), (2, "b", "f")]
        {
            profile.add(&work(process, library, function, SECOND / 10));
        }
        profile.advance(SECOND, 0);
        let of = |by| shown(&profile.rows(by, Span::Recent));
        let row = |name: &str, samples: u32| {
            (name.to_owned(), u64::from(samples), f64::from(samples) / 10.0)
        };
        assert_eq!(of(By::Process), [row("1", 3), row("2", 2)]);
        assert_eq!(of(By::Library), [row("a", 4), row("b", 1)]);
        assert_eq!(of(By::Function), [row("a f", 3), row("a g", 1), row("b f", 1)]);
        let all = [row("1 a f", 2), row("1 a g", 1), row("2 a f", 1), row("2 b f", 1)];
        assert_eq!(of(By::All), all);
        assert_eq!(shown(&profile.rows(By::All, Span::Total)), all);
        let summary = profile.summary(Span::Recent);
        assert_eq!((summary.samples, summary.elapsed_ns), (5, SECOND));
        assert_eq!((summary.share_of_one, summary.share_of_all), (0.5, 0.25));
    }

    #[test]
    fn what_is_older_than_the_window_counts_in_total_only() {
        let mut profile = profile(Ticker::Clock);
        for second in 0..30 {
            profile.add(&work(1, "a", if second < 15 { "early" } else { "late" }, SECOND));
            profile.advance((second + 1) * SECOND, 0);
        }
        let recent = profile.rows(By::Function, Span::Recent);
        assert_eq!(shown(&recent), [("a late".to_owned(), 10, 1.0)]);
        let total = profile.rows(By::Function, Span::Total);
        let half = |name: &str| (name.to_owned(), 15, 0.5);
        assert_eq!(shown(&total), [half("a early"), half("a late")]);
        assert!(profile.slices.len() <= 22);
    }

    #[test]
    fn cycles_are_shares_of_the_time_that_processors_were_busy() {
        let mut profile = profile(Ticker::Cycles);
        profile.add(&work(1, "a", "f", 3_000));
        profile.add(&work(2, "a", "f", 1_000));
        // Both together were busy for a fifth of one processor's time.
        profile.advance(SECOND, SECOND / 5);
        let rows = profile.rows(By::Process, Span::Recent);
        let shares: Vec<f64> = rows.iter().map(|row| row.share_of_one).collect();
        assert!((shares[0] - 0.15).abs() < 1e-9 && (shares[1] - 0.05).abs() < 1e-9, "{shares:?}");
        assert!((profile.summary(Span::Total).share_of_all - 0.1).abs() < 1e-9);
    }

    #[test]
    fn a_processor_that_is_interrupted_while_idle_works() {
        let mut profile = profile(Ticker::Clock);
        let mut idle = work(IDLE, "[kernel]", "pv_native_safe_halt", SECOND);
        profile.add(&idle);
        idle.place.function = Function::Unknown;
        profile.add(&idle);
        let mut receives = work(IDLE, "[kernel]", "net_rx_action", SECOND);
        profile.add(&receives);
        receives.process = 7;
        receives.place.function = Function::Named("default_idle".into());
        profile.add(&receives);
        profile.advance(2 * SECOND, 0);
        let summary = profile.summary(Span::Recent);
        assert_eq!((summary.samples, summary.idle_samples), (2, 2));
        assert_eq!(profile.rows(By::Process, Span::Recent).len(), 2);
    }

    #[test]
    fn more_places_than_are_kept_count_together() {
        let mut profile = profile(Ticker::Clock);
        let places = u32::try_from(PLACES_MAX).unwrap();
        for process in 0..places + 100 {
            profile.add(&work(process + 1, "a", "f", 1));
        }
        profile.add(&work(1, "a", "f", 1));
        profile.advance(SECOND, 0);
        for span in [Span::Recent, Span::Total] {
            let summary = profile.summary(span);
            assert_eq!(
                (summary.samples, summary.elsewhere_samples),
                (u64::from(places) + 101, 100)
            );
            assert_eq!(profile.rows(By::Process, span).len(), PLACES_MAX);
            assert!((summary.share_of_one * 1e9 - f64::from(places + 101)).abs() < 1e-3);
        }
    }
}
