//! The archives of a fleet in one store, which is away for an hour.
//!
//! Which calls a part makes is what the archive's own job makes ([`calls`]). When the next one is
//! tried, how fast and how long is rested are its rules, too: [`archive::Patience`],
//! [`archive::Throttle`], [`archive::rest_after`]. Made up are the sensors' parts and the store: so
//! many calls at a time, each of which takes a while and longer the more bytes it has.

pub(crate) mod calls;
pub(crate) mod merging;
#[cfg(test)]
mod tests;

use archive::{LOOK_NS, Manners, Patience, StoreError, Throttle, rest_after};
use units::Random;
use units::number::{floor, real, real_usize};

use crate::agenda::{Agenda, nanos, seconds};
use crate::chance::even;
use crate::server::Server;
use calls::{Call, Kind};

/// What is archived, and into what.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) sensors: usize,
    /// A part is closed so often in the mean, and has so many bytes of rows, which take a core so
    /// long.
    pub(crate) part_ns: i64,
    pub(crate) part_bytes: f64,
    pub(crate) encode_ns: i64,
    /// Parts that the ring holds.
    pub(crate) ring_parts: u64,
    /// Bytes a second that a sensor sends at most.
    pub(crate) rate: Option<u64>,
    /// Calls of a part.
    pub(crate) script: Vec<Call>,
    /// Calls that the store serves at a time, what one takes, and bytes a second of each.
    pub(crate) channels: usize,
    pub(crate) call_ns: i64,
    pub(crate) channel_bytes: f64,
    /// Who would wait longer is told that the store is busy.
    pub(crate) busy_ns: i64,
    /// When the store is away, and when all of it ends.
    pub(crate) away: (i64, i64),
    pub(crate) end_ns: i64,
}

/// A call to a store that is away fails after this time: the archive's patience with a connection.
const REFUSED_NS: i64 = 5_000_000_000;

#[derive(Debug)]
enum Event {
    /// The ring has a further part of this sensor.
    Closed(usize),
    /// The sensor goes on.
    Go(usize),
    /// The store has answered, or not.
    Answered(usize, bool),
}

/// One sensor's archive.
#[derive(Debug)]
struct Sensor {
    closed: u64,
    /// Parts behind which it goes on.
    done: u64,
    overwritten: u64,
    /// The next call of its part; `None` while it has none in hand.
    step: Option<usize>,
    begun_ns: i64,
    /// Looks at the ring since.
    idle_ns: Option<i64>,
    throttle: Throttle,
    is_counted: bool,
    patience: Option<Patience>,
    has_answered: bool,
}

/// What came of it.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) parts: u64,
    pub(crate) archived: u64,
    pub(crate) overwritten: u64,
    /// Parts that wait at the end.
    pub(crate) waiting: u64,
    pub(crate) calls: u64,
    pub(crate) failed: u64,
    /// Most parts that one sensor had waiting.
    pub(crate) behind_max: u64,
    /// From the end of the outage until no sensor had more than one part waiting.
    pub(crate) caught_up_s: Option<f64>,
    /// Of the store: share of the time busy, mean and longest wait.
    pub(crate) share: f64,
    pub(crate) wait_s: f64,
    pub(crate) longest_s: f64,
}

struct Archiving<'a> {
    setting: &'a Setting,
    random: Random,
    agenda: Agenda<Event>,
    sensors: Vec<Sensor>,
    store: Server,
    /// Sensors with more than one part waiting.
    behind: usize,
    outcome: Outcome,
}

/// Plays it; the same seed gives the same outcome.
pub(crate) fn play(setting: &Setting, seed: u64) -> Outcome {
    let mut archiving = Archiving {
        setting,
        random: Random::new(units::mix(seed)),
        agenda: Agenda::new(),
        sensors: Vec::new(),
        store: Server::new(setting.channels),
        behind: 0,
        outcome: Outcome::default(),
    };
    for sensor in 0..setting.sensors {
        // Each looks at its ring at another moment of a second.
        let idle_ns = -even(&mut archiving.random, LOOK_NS);
        archiving.sensors.push(Sensor::new(setting.rate, idle_ns));
        let phase_ns = even(&mut archiving.random, setting.part_ns);
        archiving.agenda.at(phase_ns, Event::Closed(sensor));
    }
    while archiving.agenda.now_ns() < setting.end_ns
        && let Some(event) = archiving.agenda.next()
    {
        archiving.happen(&event);
    }
    archiving.end()
}

impl Sensor {
    fn new(rate: Option<u64>, idle_ns: i64) -> Self {
        Self {
            closed: 0,
            done: 0,
            overwritten: 0,
            step: None,
            begun_ns: 0,
            idle_ns: Some(idle_ns),
            throttle: Throttle::new(rate),
            is_counted: false,
            patience: None,
            has_answered: false,
        }
    }

    fn waiting(&self) -> u64 {
        self.closed - self.done
    }
}

impl Archiving<'_> {
    fn happen(&mut self, event: &Event) {
        match *event {
            Event::Closed(sensor) => self.closed(sensor),
            Event::Go(sensor) => self.go(sensor),
            Event::Answered(sensor, is_there) => self.answered(sensor, is_there),
        }
    }

    /// Changes a sensor, and keeps count of those that are behind.
    fn change<R>(&mut self, sensor: usize, work: impl FnOnce(&mut Sensor) -> R) -> R {
        let own = self.sensors.get_mut(sensor).expect("each sensor has one");
        let was_behind = own.waiting() > 1;
        let done = work(own);
        let is_behind = own.waiting() > 1;
        self.outcome.behind_max = self.outcome.behind_max.max(own.waiting());
        self.behind = self.behind + usize::from(is_behind) - usize::from(was_behind);
        let after_ns = self.agenda.now_ns() - self.setting.away.1;
        if self.behind == 0 && after_ns >= 0 {
            self.outcome.caught_up_s.get_or_insert(seconds(after_ns));
        }
        done
    }

    fn closed(&mut self, sensor: usize) {
        let now_ns = self.agenda.now_ns();
        let ring_parts = self.setting.ring_parts;
        let idle_ns = self.change(sensor, |own| {
            own.closed += 1;
            // The ring overwrites its oldest part; one in hand has been read.
            if own.waiting() > ring_parts {
                own.done += 1;
                own.overwritten += 1;
            }
            own.idle_ns.take()
        });
        if let Some(idle_ns) = idle_ns {
            // It looks once a second.
            let look_ns = LOOK_NS - (now_ns - idle_ns).rem_euclid(LOOK_NS);
            self.agenda.after(look_ns, Event::Go(sensor));
        }
        // Traffic is not even: from half of the mean to half more.
        let mean_ns = self.setting.part_ns;
        let next_ns = mean_ns / 2 + even(&mut self.random, mean_ns);
        self.agenda.after(next_ns, Event::Closed(sensor));
    }

    /// The next step of a sensor: a part is begun, or a call is made.
    fn go(&mut self, sensor: usize) {
        let setting = self.setting;
        let now_ns = self.agenda.now_ns();
        let own = self.sensors.get_mut(sensor).expect("each sensor has one");
        let Some(step) = own.step else {
            if own.waiting() == 0 {
                own.idle_ns = Some(now_ns);
                return;
            }
            (own.step, own.begun_ns) = (Some(0), now_ns);
            self.agenda.after(setting.encode_ns, Event::Go(sensor));
            return;
        };
        let call = setting.script.get(step).expect("it is a step of the script");
        let bytes = match call.kind {
            Kind::PutRows => setting.part_bytes,
            _ => real_usize(call.bytes),
        };
        let is_put = matches!(call.kind, Kind::PutRows | Kind::Put);
        if is_put && !own.is_counted {
            if let Some(next_ns) = own.throttle.next_ns().filter(|next_ns| *next_ns > now_ns) {
                self.agenda.at(next_ns, Event::Go(sensor));
                return;
            }
            own.throttle.count(floor(bytes), now_ns);
            own.is_counted = true;
        }
        let manners = Manners { rate: setting.rate, waits: true };
        own.patience.get_or_insert_with(|| Patience::new(manners, now_ns));
        self.call(sensor, bytes);
    }

    fn call(&mut self, sensor: usize, bytes: f64) {
        let setting = self.setting;
        let now_ns = self.agenda.now_ns();
        let (from_ns, to_ns) = setting.away;
        self.outcome.calls += 1;
        if (from_ns..to_ns).contains(&now_ns) {
            self.agenda.after(REFUSED_NS, Event::Answered(sensor, false));
        } else if self.store.backlog_ns(now_ns) > setting.busy_ns {
            self.agenda.after(setting.call_ns, Event::Answered(sensor, false));
        } else {
            let takes_ns = setting.call_ns + nanos(bytes / setting.channel_bytes);
            let done_ns = self.store.serve(now_ns, takes_ns);
            self.agenda.at(done_ns, Event::Answered(sensor, true));
        }
    }

    fn answered(&mut self, sensor: usize, is_there: bool) {
        let (setting, now_ns) = (self.setting, self.agenda.now_ns());
        self.outcome.failed += u64::from(!is_there);
        let rest_ns = self.change(sensor, |own| {
            if !is_there {
                let away = StoreError::Away { url: String::new(), why: String::new() };
                let has_answered = own.has_answered;
                let pause = own.patience.as_mut();
                return pause.and_then(|it| it.pause(&away, has_answered, now_ns)).unwrap_or(0);
            }
            (own.has_answered, own.is_counted, own.patience) = (true, false, None);
            let next = own.step.map_or(0, |step| step + 1);
            if next < setting.script.len() {
                own.step = Some(next);
                return 0;
            }
            own.step = None;
            // Unless the ring has passed it meanwhile.
            own.done = (own.done + 1).min(own.closed);
            rest_after(now_ns - own.begun_ns)
        });
        self.agenda.after(rest_ns, Event::Go(sensor));
    }

    fn end(mut self) -> Outcome {
        let end_ns = self.agenda.now_ns();
        for own in &self.sensors {
            self.outcome.parts += own.closed;
            self.outcome.overwritten += own.overwritten;
            self.outcome.waiting += own.waiting();
        }
        let outcome = &mut self.outcome;
        outcome.archived = outcome.parts - outcome.overwritten - outcome.waiting;
        outcome.share = self.store.share(end_ns);
        outcome.wait_s = self.store.mean_wait_s();
        outcome.longest_s = self.store.longest_wait_s();
        self.outcome
    }
}

/// Calls a second of a fleet where nothing goes wrong.
pub(crate) fn calls_per_second(setting: &Setting) -> f64 {
    let calls = real_usize(setting.script.len()) * real_usize(setting.sensors);
    calls / seconds(setting.part_ns)
}

/// How long a part keeps the store's channels busy.
pub(crate) fn part_service_s(setting: &Setting) -> f64 {
    let time = |call: &Call| {
        let bytes =
            if call.kind == Kind::PutRows { setting.part_bytes } else { real_usize(call.bytes) };
        seconds(setting.call_ns) + bytes / setting.channel_bytes
    };
    setting.script.iter().map(time).sum()
}

/// Share of the store that a fleet keeps busy where nothing goes wrong.
pub(crate) fn expected_share(setting: &Setting) -> f64 {
    let service = part_service_s(setting) * real_usize(setting.sensors);
    service / seconds(setting.part_ns) / real(units::number::to_u64(setting.channels))
}
