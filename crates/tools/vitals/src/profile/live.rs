//! The profile of a machine that runs.

use observe::ProcessorUse;
use observe::sampling::{NotSampled, Noted, Record, Sampler, Scope, Ticker};
use observe::symbols::Symbols;
use units::Clock;

use super::{Profile, Work};
use findings::Unseen;

/// What the kernel could not give.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Missing {
    /// Samples that did not fit into their ring.
    pub samples: u64,
    /// Names, mappings, beginnings and ends of processes that had no space.
    pub notes: u64,
    /// How many times sampling stopped for the rest of a tick, because it took too long.
    pub throttled: u64,
}

/// Takes samples, names them, counts them. It stays in the thread that made it.
#[derive(Debug)]
pub struct Profiler {
    sampler: Sampler,
    symbols: Symbols,
    profile: Profile,
    records: Vec<Record>,
    /// Only of this process.
    process: Option<u32>,
}

impl Profiler {
    /// So many samples a second of each processor, of everything that may be seen.
    pub fn open(hz: u32, clock: &dyn Clock) -> Result<Self, NotSampled> {
        Ok(Self::of(Sampler::open(hz)?, clock))
    }

    /// The same of one process.
    pub fn open_for(hz: u32, process: u32, clock: &dyn Clock) -> Result<Self, NotSampled> {
        let of_all = Self::of(Sampler::open_for(hz, process)?, clock);
        Ok(Self { process: Some(process), ..of_all })
    }

    fn of(sampler: Sampler, clock: &dyn Clock) -> Self {
        let processors = sampler.processors();
        let profile = Profile::new(sampler.ticker(), processors, now_ns(clock), busy_ns());
        Self { sampler, symbols: Symbols::new(), profile, records: Vec::new(), process: None }
    }

    /// Counts what has come since the last look. Rings are large enough for looks that are up to
    /// five seconds apart at 997 samples a second; processes that end are named the better the more
    /// often one looks.
    pub fn look(&mut self, clock: &dyn Clock) {
        self.sampler.read(&mut self.records);
        let (now_ns, busy_ns) = (now_ns(clock), busy_ns());
        for record in self.records.drain(..) {
            self.symbols.note(&record);
            let Noted::Sample(sample) = record.noted else { continue };
            if self.process.is_some_and(|process| process != sample.process) {
                continue;
            }
            self.profile.add(&Work {
                time_ns: record.time_ns,
                process: sample.process,
                name: self.symbols.name_of(sample.process),
                place: self.symbols.place_of(record.time_ns, &sample),
                weight: sample.weight,
            });
        }
        self.profile.advance(now_ns, busy_ns);
    }

    /// What was counted until the last look.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Samples a second of each processor.
    pub fn hz(&self) -> u32 {
        self.sampler.hz()
    }

    /// What a sample is taken by.
    pub fn ticker(&self) -> Ticker {
        self.sampler.ticker()
    }

    /// What is missing of it.
    pub fn missing(&self) -> Missing {
        Missing {
            samples: self.sampler.lost_samples(),
            notes: self.sampler.lost_notes(),
            throttled: self.sampler.throttled(),
        }
    }

    /// What cannot be seen, and what it would take.
    pub fn unseen(&mut self) -> Vec<Unseen> {
        let mut unseen = Vec::new();
        let mut add = |what: &str, needs: &str| {
            unseen.push(Unseen { what: what.to_owned(), needs: needs.to_owned() });
        };
        if let Scope::Own { left_out, .. } = self.sampler.scope() {
            let needs = "CAP_PERFMON, or sysctl kernel.perf_event_paranoid=0";
            if self.process.is_none() {
                add("processes of others, and those of one's own that began meanwhile", needs);
            }
            if left_out > 0 {
                add(&format!("what {left_out} more threads do"), needs);
            }
        }
        if !self.sampler.has_kernel() {
            add(
                "what processors do in the kernel",
                "CAP_PERFMON, or sysctl kernel.perf_event_paranoid=1",
            );
        } else if !self.symbols.knows_kernel() {
            add("names of the kernel's functions", "CAP_SYSLOG, or sysctl kernel.kptr_restrict=0");
        }
        if self.sampler.ticker() == Ticker::Clock {
            add(
                "where a processor is while its interrupts are off",
                "a processor that counts its cycles, which most virtual machines hide",
            );
        }
        unseen
    }
}

/// Of the clock of the machine, which samples have, too, as long as it does not sleep.
fn now_ns(clock: &dyn Clock) -> u64 {
    u64::try_from(clock.boottime_ns()).unwrap_or(0)
}

fn busy_ns() -> u64 {
    ProcessorUse::now().map_or(0, |it| it.busy_ns)
}
