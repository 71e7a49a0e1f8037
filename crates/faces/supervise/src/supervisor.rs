//! Keeps programs running: starts each, starts it again when it ends, and reads their list again
//! when it is asked to.
//!
//! A recorder that ends is started again after 200 ms, any number of times and without growing
//! delays: an interface or a disk that is back is used at once, and a failed start costs
//! milliseconds. Who may be stopped waits longer each time that it ends at once, up to 5 s. A
//! program with wrong words (exit code 2) is not started again until they change. A recorder is
//! never stopped to give it new words, or a new version: a second one with those takes its work
//! over, and it ends when that has everything. Where the second one fails, the first one goes on.
//! Others are stopped; one that fails with its new words gets those before back.
//!
//! A recorder whose supervisor was killed goes on. The next supervisor takes it over instead of
//! starting a second one, which would get nothing: neither a packet nor its time is lost by that.

use core::time::Duration;
use std::ffi::OsString;
use std::path::PathBuf;

use host::processes::Stat;
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
/// One that is to take over from another has so long: that one may take a minute to let go.
const TAKES_OVER_NS: i64 = 120 * NANOS_PER_SECOND;
/// How often it is looked whether a program was stopped.
const STOPPED_LOOK_NS: i64 = NANOS_PER_SECOND;
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
    /// Whether a recorder with other words for these keys can take over from the one that runs.
    pub may_hand_over: fn(&[String]) -> bool,
    /// The word by which it does.
    pub takes_over: &'static str,
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
    let watched = jobs.into_iter().map(Watched::new).collect();
    let mut all = All { plan, watched, stopped_look_ns: i64::MIN };
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
    /// Processes that a signal has stopped, as was said.
    stopped: Vec<u32>,
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
    /// What runs goes on until the new one has its work.
    HandsOver {
        old: Box<State>,
        new: Daemon,
        /// What the new one was started with.
        job: Box<Job>,
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
        let stopped = Vec::new();
        Self { job, started_with, before, again_ns, state, ends: 0, said_ns: None, stopped }
    }
}

struct All<'a> {
    plan: &'a Plan,
    watched: Vec<Watched>,
    /// When it was looked at last which processes are stopped.
    stopped_look_ns: i64,
}

impl All<'_> {
    /// Starts what is due, and notes what has ended.
    fn look(&mut self) {
        let now_ns = SystemClock.boottime_ns();
        for watched in &mut self.watched {
            watched.look(self.plan, now_ns);
        }
        if now_ns.saturating_sub(self.stopped_look_ns) >= STOPPED_LOOK_NS {
            self.stopped_look_ns = now_ns;
            self.watched.iter_mut().for_each(|watched| watched.name_stopped(self.plan));
        }
        let own: Vec<u32> = self.watched.iter().flat_map(|it| it.state.ids()).collect();
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
        for watched in &mut self.watched {
            changed |= watched.renew(plan);
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
            State::HandsOver { .. } => self.look_at_both(plan, now_ns),
            State::StartsAt(at_ns) if now_ns >= *at_ns => self.start(plan, now_ns),
            State::StartsAt(_) | State::Waits => {}
        }
    }

    /// A process that a signal has stopped does not end, and does nothing. Who has stopped it may
    /// want that, so it is named and left alone.
    fn name_stopped(&mut self, plan: &Plan) {
        let is_stopped = |id: &u32| Stat::of(*id).is_some_and(|stat| stat.is_stopped);
        let stopped: Vec<u32> = self.state.ids().into_iter().filter(is_stopped).collect();
        let name = &self.job.name;
        for id in stopped.iter().filter(|id| !self.stopped.contains(id)) {
            plan.say(&format!(
                "{name}: process {id} was stopped by a signal and does nothing: kill -CONT {id}, \
                 or kill -KILL {id} to have it started again"
            ));
        }
        for id in self.stopped.iter().filter(|id| !stopped.contains(id)) {
            plan.say(&format!("{name}: process {id} is not stopped any more"));
        }
        self.stopped = stopped;
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

    /// Starts a program beside the one that runs, which is to take over from that.
    fn hand_over(&mut self, plan: &Plan, now_ns: i64) -> Result<(), host::Error> {
        let mut words: Vec<OsString> = self.job.words().into_iter().map(OsString::from).collect();
        words.insert(words.len().min(1), OsString::from(plan.takes_over));
        let new = Daemon::start(&plan.program, &words, Some(&self.job.name))?;
        plan.say(&format!("{}: process {} takes over", self.job.name, new.id()));
        let old = core::mem::replace(&mut self.state, State::Waits);
        let job = Box::new(self.job.clone());
        self.state = State::HandsOver { old: Box::new(old), new, job, since_ns: now_ns };
        Ok(())
    }

    /// One takes over from the other, or fails to.
    fn look_at_both(&mut self, plan: &Plan, now_ns: i64) {
        let state = core::mem::replace(&mut self.state, State::Waits);
        let State::HandsOver { mut old, mut new, job, since_ns } = state else {
            self.state = state;
            return;
        };
        let exit = new.ended().unwrap_or(None);
        match (old.ended(), exit) {
            (None, None) => {
                // Its end is heard at the next look.
                if now_ns.saturating_sub(since_ns) >= TAKES_OVER_NS {
                    new.kill();
                }
                self.state = State::HandsOver { old, new, job, since_ns };
            }
            (Some(_), None) => {
                self.started_with = (*job != self.job).then_some(*job);
                self.state = State::Runs { daemon: new, since_ns };
            }
            (None, Some(_)) => {
                plan.say(&format!(
                    "{}: process {} did not take over, and the one that runs goes on as it is; its \
                     new keys count once it is started again, which stops it for a moment: kill \
                     -INT {}",
                    self.job.name,
                    new.id(),
                    old.ids().first().copied().unwrap_or_default()
                ));
                self.state = *old;
            }
            (Some(_), Some(exit)) => {
                let lived_ns = now_ns.saturating_sub(since_ns);
                self.started_with = None;
                self.has_ended(exit, lived_ns, plan, now_ns);
            }
        }
    }

    /// Whether the program that runs was replaced by another version.
    fn is_outdated(&self, plan: &Plan) -> bool {
        let runs = matches!(self.state, State::Runs { .. } | State::Adopted { .. });
        let Some(id) = self.state.ids().first().copied().filter(|_| runs) else { return false };
        let running = host::program_mark(format!("/proc/{id}/exe").as_ref());
        running.zip(host::program_mark(&plan.program)).is_some_and(|(old, new)| old != new)
    }

    /// Has a program of the new version take over, or started, where the file was replaced.
    fn renew(&mut self, plan: &Plan) -> bool {
        let is_outdated = self.is_outdated(plan);
        match &self.state {
            _ if !is_outdated => {}
            State::Runs { daemon, .. } if (plan.may_stop)(&self.job) => {
                plan.say(&format!("{}: started again as a new version", self.job.name));
                daemon.interrupt();
            }
            _ => {
                if let Err(error) = self.hand_over(plan, SystemClock.boottime_ns()) {
                    plan.say(&format!("{}: no new version is started: {error}", self.job.name));
                }
            }
        }
        is_outdated
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
        let before = match &self.state {
            State::HandsOver { job, .. } => job,
            _ => self.started_with.as_ref().unwrap_or(&self.job),
        };
        let changes = before.changes(&job);
        let is_new = job.words() != self.job.words();
        let name = job.name.clone();
        let may_stop = (plan.may_stop)(&job);
        if changes.is_empty() {
            self.job = job;
            // Of one that hands over it is what it goes back to.
            if !matches!(self.state, State::HandsOver { .. }) {
                self.started_with = None;
            }
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
            State::Runs { .. } | State::Adopted { .. } if (plan.may_hand_over)(&changes) => {
                plan.say(&format!("{name}: {keys} changed"));
                self.started_with.get_or_insert(old);
                if let Err(error) = self.hand_over(plan, SystemClock.boottime_ns()) {
                    plan.say(&format!("{name}: none with the new keys is started: {error}"));
                }
            }
            State::Runs { .. } | State::Adopted { .. } | State::HandsOver { .. } => {
                self.started_with.get_or_insert(old);
                plan.say(&format!(
                    "{name}: {keys} changed; that counts once it is started again, which stops it \
                     for a moment: kill -INT {}",
                    self.state.ids().last().copied().unwrap_or_default()
                ));
            }
            State::StartsAt(_) | State::Waits => self.state = State::StartsAt(i64::MIN),
        }
        true
    }
}

/// Asks programs to end, and waits for them; how many failed or had to be killed.
fn end(mut watched: Vec<Watched>, plan: &Plan) -> u64 {
    for it in &watched {
        it.state.interrupt();
    }
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
    /// The processes, the one that does the work first.
    fn ids(&self) -> Vec<u32> {
        match self {
            Self::Runs { daemon, .. } => vec![daemon.id()],
            Self::Adopted { process, .. } => vec![process.id()],
            Self::HandsOver { old, new, .. } => [old.ids(), vec![new.id()]].concat(),
            Self::StartsAt(_) | Self::Waits => Vec::new(),
        }
    }

    fn interrupt(&self) {
        match self {
            Self::Runs { daemon, .. } => daemon.interrupt(),
            Self::Adopted { process, .. } => process.interrupt(),
            Self::HandsOver { old, new, .. } => {
                new.interrupt();
                old.interrupt();
            }
            Self::StartsAt(_) | Self::Waits => {}
        }
    }

    fn kill(&self) {
        match self {
            Self::Runs { daemon, .. } => daemon.kill(),
            Self::Adopted { process, .. } => process.kill(),
            Self::HandsOver { old, new, .. } => {
                new.kill();
                old.kill();
            }
            Self::StartsAt(_) | Self::Waits => {}
        }
    }

    /// Whether it failed, where it has ended.
    fn ended(&mut self) -> Option<bool> {
        match self {
            Self::Runs { daemon, .. } => has_failed(daemon),
            // What it said at its end is in its own log alone.
            Self::Adopted { process, .. } => process.has_ended().then_some(false),
            Self::HandsOver { old, new, .. } => {
                old.ended().zip(has_failed(new)).map(|(old, new)| old || new)
            }
            Self::StartsAt(_) | Self::Waits => Some(false),
        }
    }
}

/// Whether it failed, where it has ended.
fn has_failed(daemon: &mut Daemon) -> Option<bool> {
    match daemon.ended() {
        Ok(exit) => exit.map(|exit| match exit {
            Exit::Code(code) => code == NEGATIVE,
            Exit::Signal(_) => true,
        }),
        // It is not ours to wait for.
        Err(_) => Some(true),
    }
}
