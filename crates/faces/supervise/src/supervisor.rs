//! Keeps programs running: starts each, starts it again when it ends, and reads their list again
//! when it is asked to.
//!
//! A recorder that ends is started again after 200 ms, any number of times and without growing
//! delays: an interface or a disk that is back is used at once, and a failed start costs
//! milliseconds. Who may be stopped waits longer each time that it ends at once, up to 5 s. A
//! program with wrong words (exit code 2) is not started again until they change. A recorder is
//! never stopped to give it new words: it gets them when it is started the next time. Others are;
//! one that fails with its new words gets those before back.
//!
//! A recorder whose supervisor was killed goes on. The next supervisor takes it over instead of
//! starting a second one, which would get nothing: neither a packet nor its time is lost by that.

use core::time::Duration;
use std::ffi::OsString;
use std::path::PathBuf;

use host::{Adopted, Daemon, Exit, HandedListener, ReloadFlag, StopFlag, SystemClock};
use page::text::{duration, plural};
use units::{Clock as _, NANOS_PER_SECOND, Sleep as _};

use crate::config::Job;

/// Between two looks.
const LOOK_NS: i64 = NANOS_PER_SECOND / 20;
/// A program that ended is started again after this.
const AGAIN_NS: i64 = NANOS_PER_SECOND / 5;
/// One that may be stopped waits twice as long each time that it ends soon, at most so long.
const AGAIN_MAX_NS: i64 = 5 * NANOS_PER_SECOND;
/// One that fails within this time behind a change fails because of that.
const TRIAL_NS: i64 = 10 * NANOS_PER_SECOND;
/// One that ends sooner than this, again and again, is mentioned each minute.
const SHORT_NS: i64 = NANOS_PER_SECOND;
const SAY_EVERY_NS: i64 = 60 * NANOS_PER_SECOND;
/// All have so long to end in order: a recorder flushes what it took to disks that may be slow.
const PATIENCE: Duration = Duration::from_mins(1);
/// Wrong words: the same ones do not help.
const USAGE: i32 = 2;
/// The exit code of a program that did its work, and lost something.
const NEGATIVE: i32 = 1;

/// Reads the list of jobs; what is wrong with it is a text, a line for each fault.
pub type ReadJobs<'a> = dyn Fn() -> Result<Vec<Job>, String> + 'a;

/// What is to run, and who is told.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program that is started with the words of each job.
    pub program: PathBuf,
    /// Whether a job may be stopped to give it new words: not one that records.
    pub may_stop: fn(&Job) -> bool,
    /// The process that does a job which may not be stopped, whoever has started it.
    pub doing: fn(&Job) -> Option<u32>,
    /// A socket for the jobs that may be stopped: who connects while none of them runs waits.
    pub listener: Option<HandedListener>,
    /// What those that may be stopped are given besides, behind the verb.
    pub stoppable_words: Vec<OsString>,
    /// Takes lines of the log; false where one could not be written without waiting.
    pub write_line: fn(&str) -> bool,
    /// The manager of services wants a sign of life within this.
    pub watchdog: Option<Duration>,
}

impl Plan {
    /// A line that nobody takes is nothing to wait for.
    fn say(&self, line: &str) {
        let _is_written = (self.write_line)(line);
    }
}

/// How it ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Supervision {
    /// Programs that said that something was lost, or had to be killed.
    pub failed: u64,
}

/// Runs the jobs until the flag is set; then all of them are asked to end in order. The list is
/// read again when the other flag asks for it.
pub fn supervise(
    plan: &Plan,
    jobs: Vec<Job>,
    read: &ReadJobs<'_>,
    (stop, reload): (&StopFlag, &ReloadFlag),
) -> Supervision {
    let mut all = All { plan, watched: jobs.into_iter().map(Watched::new).collect() };
    all.look();
    host::tell_manager("READY=1");
    let mut told_ns = SystemClock.boottime_ns();
    while !stop.is_set() {
        if reload.take() {
            host::tell_manager("RELOADING=1");
            all.reload(read());
            host::tell_manager("READY=1");
        }
        all.look();
        let now_ns = SystemClock.boottime_ns();
        let sign = plan.watchdog.map(|time| units::nanos(time) / 3);
        if sign.is_some_and(|every_ns| now_ns.saturating_sub(told_ns) >= every_ns) {
            host::tell_manager("WATCHDOG=1");
            told_ns = now_ns;
        }
        SystemClock.sleep_until(now_ns.saturating_add(LOOK_NS));
    }
    host::tell_manager("STOPPING=1");
    all.end()
}

/// A job and its program.
struct Watched {
    job: Job,
    /// What the program was started with, where that is not the job any more.
    started_with: Option<Job>,
    /// Its words before a change, until it has run with the new ones for a while.
    before: Option<Before>,
    /// How long it waits when it ends the next time.
    again_ns: i64,
    state: State,
    /// How often it ended since that was said, and when.
    ends: u64,
    said_ns: Option<i64>,
}

struct Before {
    job: Job,
    /// The program was started with the new ones.
    is_tried: bool,
}

enum State {
    Runs {
        daemon: Daemon,
        since_ns: i64,
    },
    /// A supervisor before this one has started it.
    Adopted {
        process: Adopted,
        since_ns: i64,
    },
    StartsAt(i64),
    /// Its words are wrong.
    Waits,
}

impl Watched {
    fn new(job: Job) -> Self {
        let state = State::StartsAt(i64::MIN);
        let (started_with, before, again_ns) = (None, None, AGAIN_NS);
        Self { job, started_with, before, again_ns, state, ends: 0, said_ns: None }
    }
}

struct All<'a> {
    plan: &'a Plan,
    watched: Vec<Watched>,
}

impl All<'_> {
    /// Starts what is due, and notes what has ended.
    fn look(&mut self) {
        let now_ns = SystemClock.boottime_ns();
        for watched in &mut self.watched {
            watched.look(self.plan, now_ns);
        }
        let own: Vec<u32> = self.watched.iter().filter_map(|it| it.state.id()).collect();
        host::reap_orphans(&own);
    }

    /// Reads the list again. A list with faults changes nothing.
    fn reload(&mut self, jobs: Result<Vec<Job>, String>) {
        let plan = self.plan;
        let jobs = match jobs {
            Ok(jobs) => jobs,
            Err(faults) => {
                plan.say("the new configuration is not used; the one before it goes on");
                return faults.lines().for_each(|fault| plan.say(fault));
            }
        };
        let is_listed = |watched: &Watched| jobs.iter().any(|job| job.name == watched.job.name);
        let (kept, gone) = core::mem::take(&mut self.watched).into_iter().partition(is_listed);
        self.watched = kept;
        for watched in &gone {
            plan.say(&format!("{}: taken out of the configuration; it ends", watched.job.name));
        }
        let mut changed = !gone.is_empty();
        end(gone, self.plan);
        for job in jobs {
            let known = self.watched.iter_mut().find(|watched| watched.job.name == job.name);
            changed |= if let Some(watched) = known {
                watched.change(job, self.plan)
            } else {
                self.watched.push(Watched::new(job));
                true
            };
        }
        if !changed {
            plan.say("the configuration was read again: nothing is new");
        }
    }

    fn end(self) -> Supervision {
        Supervision { failed: end(self.watched, self.plan) }
    }
}

impl Watched {
    fn look(&mut self, plan: &Plan, now_ns: i64) {
        match &mut self.state {
            State::Runs { daemon, since_ns } => {
                let Ok(Some(exit)) = daemon.ended() else { return };
                let lived_ns = now_ns.saturating_sub(*since_ns);
                self.has_ended(exit, lived_ns, plan, now_ns);
            }
            State::Adopted { process, since_ns } => {
                if process.has_ended() {
                    let lived_ns = now_ns.saturating_sub(*since_ns);
                    self.mention("ended; it is started again", lived_ns, plan, now_ns);
                    self.starts_again(lived_ns, plan, now_ns);
                }
            }
            State::StartsAt(at_ns) if now_ns >= *at_ns => self.start(plan, now_ns),
            State::StartsAt(_) | State::Waits => {}
        }
    }

    /// Takes over who does the job already; whether nothing is to be started.
    fn is_done(&mut self, plan: &Plan, now_ns: i64) -> bool {
        let Some(process) = (plan.doing)(&self.job) else { return false };
        let name = &self.job.name;
        let Some(adopted) = Adopted::take_over(process, name) else {
            let what = format!(
                "process {process} records its volume, and this service has not started it: it is \
                 left alone, and nothing is started beside it"
            );
            self.mention(&what, 0, plan, now_ns);
            self.starts_again(SHORT_NS, plan, now_ns.saturating_add(SHORT_NS));
            return true;
        };
        let words: Vec<OsString> = self.job.words().into_iter().map(OsString::from).collect();
        let other = if adopted.words() == words {
            String::new()
        } else {
            format!(
                "; it has other keys than this file, which counts once it is started again: that \
                 stops it for a moment: kill -INT {process}"
            )
        };
        plan.say(&format!(
            "{name}: process {process} goes on, which a service that has ended had started{other}"
        ));
        self.state = State::Adopted { process: adopted, since_ns: now_ns };
        true
    }

    fn start(&mut self, plan: &Plan, now_ns: i64) {
        let may_stop = (plan.may_stop)(&self.job);
        if !may_stop && self.is_done(plan, now_ns) {
            return;
        }
        let mut words: Vec<OsString> = self.job.words().into_iter().map(OsString::from).collect();
        self.started_with = None;
        if may_stop {
            let at = words.len().min(1);
            words.splice(at..at, plan.stoppable_words.iter().cloned());
        }
        let listener = plan.listener.as_ref().filter(|_| may_stop);
        // Lines of the API have a form of their own, for those who read them by program.
        let name = (!may_stop).then_some(&*self.job.name);
        let started = match listener {
            Some(listener) => Daemon::start_listening(&plan.program, &words, listener),
            None => Daemon::start(&plan.program, &words, name),
        };
        match started {
            Ok(daemon) => {
                if self.ends == 0 {
                    plan.say(&format!("{}: process {}", self.job.name, daemon.id()));
                }
                if let Some(before) = &mut self.before {
                    before.is_tried = true;
                }
                self.state = State::Runs { daemon, since_ns: now_ns };
            }
            Err(error) => {
                self.mention(&error.to_string(), 0, plan, now_ns);
                self.starts_again(0, plan, now_ns);
            }
        }
    }

    fn has_ended(&mut self, exit: Exit, lived_ns: i64, plan: &Plan, now_ns: i64) {
        let how = match exit {
            Exit::Code(code) => format!("ended after {} with exit code {code}", duration(lived_ns)),
            Exit::Signal(signal) => {
                format!("was ended after {} by signal {signal}", duration(lived_ns))
            }
        };
        if let Some(before) = self.before.take_if(|before| before.is_tried)
            && exit != Exit::Code(0)
            && lived_ns < TRIAL_NS
        {
            let keys = before.job.changes(&self.job).join(", ");
            let name = &self.job.name;
            plan.say(&format!(
                "{name}: {how}: it goes on with {keys} as before, until the configuration is read \
                 again"
            ));
            self.job = before.job;
            self.state = State::StartsAt(i64::MIN);
            return;
        }
        if exit == Exit::Code(USAGE) && self.started_with.is_none() {
            let name = &self.job.name;
            plan.say(&format!("{name}: {how}: it waits until its keys are changed"));
            self.state = State::Waits;
            return;
        }
        self.mention(&format!("{how}; it is started again"), lived_ns, plan, now_ns);
        self.starts_again(lived_ns, plan, now_ns);
    }

    fn starts_again(&mut self, lived_ns: i64, plan: &Plan, now_ns: i64) {
        let is_patient = (plan.may_stop)(&self.job) && lived_ns < SHORT_NS;
        let after_ns = if is_patient { self.again_ns } else { AGAIN_NS };
        self.again_ns = if is_patient { (2 * after_ns).min(AGAIN_MAX_NS) } else { AGAIN_NS };
        self.state = State::StartsAt(now_ns.saturating_add(after_ns));
    }

    /// Says what happened; of what happens again and again one in a while, with a count.
    fn mention(&mut self, what: &str, lived_ns: i64, plan: &Plan, now_ns: i64) {
        self.ends = self.ends.saturating_add(1);
        let was_said = |at_ns: i64| now_ns.saturating_sub(at_ns) < SAY_EVERY_NS;
        if lived_ns < SHORT_NS && self.said_ns.is_some_and(was_said) {
            return;
        }
        let times = match self.ends {
            1 => String::new(),
            ends => format!(" ({} since this was said)", plural(ends, "time")),
        };
        plan.say(&format!("{}: {what}{times}", self.job.name));
        (self.ends, self.said_ns) = (0, Some(now_ns));
    }

    /// Takes other words over; whether there are any.
    fn change(&mut self, job: Job, plan: &Plan) -> bool {
        let before = self.started_with.as_ref().unwrap_or(&self.job);
        let changes = before.changes(&job);
        let is_new = job.words() != self.job.words();
        let name = job.name.clone();
        let may_stop = (plan.may_stop)(&job);
        if changes.is_empty() {
            (self.job, self.started_with) = (job, None);
            return is_new;
        }
        let old = core::mem::replace(&mut self.job, job);
        let keys = changes.join(", ");
        match &self.state {
            State::Runs { daemon, .. } if may_stop => {
                plan.say(&format!("{name}: started again with other {keys}"));
                daemon.interrupt();
                // What was not tried yet is not known to run.
                if self.before.as_ref().is_none_or(|before| before.is_tried) {
                    self.before = Some(Before { job: old, is_tried: false });
                }
            }
            State::Runs { .. } | State::Adopted { .. } => {
                self.started_with.get_or_insert(old);
                plan.say(&format!(
                    "{name}: {keys} changed; that counts once it is started again, which stops it \
                     for a moment: kill -INT {}",
                    self.state.id().unwrap_or_default()
                ));
            }
            State::StartsAt(_) | State::Waits => self.state = State::StartsAt(i64::MIN),
        }
        true
    }
}

/// Asks programs to end, and waits for them; how many failed or had to be killed.
fn end(mut watched: Vec<Watched>, plan: &Plan) -> u64 {
    watched.iter().for_each(|it| it.state.interrupt());
    let until_ns = SystemClock.boottime_ns().saturating_add(units::nanos(PATIENCE));
    let mut failed = 0;
    loop {
        let now_ns = SystemClock.boottime_ns();
        watched.retain_mut(|it| match it.state.ended() {
            Some(has_failed) => {
                failed += u64::from(has_failed);
                false
            }
            None if now_ns < until_ns => true,
            None => {
                let time = duration(units::nanos(PATIENCE));
                plan.say(&format!("{}: did not end within {time}: killed", it.job.name));
                it.state.kill();
                failed += 1;
                false
            }
        });
        if watched.is_empty() {
            return failed;
        }
        SystemClock.sleep_until(now_ns.saturating_add(LOOK_NS));
    }
}

impl State {
    fn id(&self) -> Option<u32> {
        match self {
            Self::Runs { daemon, .. } => Some(daemon.id()),
            Self::Adopted { process, .. } => Some(process.id()),
            Self::StartsAt(_) | Self::Waits => None,
        }
    }

    fn interrupt(&self) {
        match self {
            Self::Runs { daemon, .. } => daemon.interrupt(),
            Self::Adopted { process, .. } => process.interrupt(),
            Self::StartsAt(_) | Self::Waits => {}
        }
    }

    fn kill(&self) {
        match self {
            Self::Runs { daemon, .. } => daemon.kill(),
            Self::Adopted { process, .. } => process.kill(),
            Self::StartsAt(_) | Self::Waits => {}
        }
    }

    /// Whether it failed, where it has ended.
    fn ended(&mut self) -> Option<bool> {
        match self {
            Self::Runs { daemon, .. } => match daemon.ended() {
                Ok(None) => None,
                Ok(Some(exit)) => {
                    Some(exit == Exit::Code(NEGATIVE) || matches!(exit, Exit::Signal(_)))
                }
                // It is not ours to wait for.
                Err(_) => Some(true),
            },
            // What it said at its end is in its own log alone.
            Self::Adopted { process, .. } => process.has_ended().then_some(false),
            Self::StartsAt(_) | Self::Waits => Some(false),
        }
    }
}
