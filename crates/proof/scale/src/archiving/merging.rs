//! Writers that merge the hours of many sensors, and die at it.
//!
//! Which hours are ripe, which of their objects go into one, and who may merge is decided by the
//! archive's own rules: [`hour_to_merge`], [`groups`], [`Claim`]. A writer that dies leaves its
//! claim behind; the one that comes in its place has another name, and merges other sensors until
//! the time of that claim is over.

use std::collections::{BTreeMap, BTreeSet};

use archive::{Claim, Object, groups, hour_to_merge};
use units::number::{real, real_usize, to_u64};
use units::{NANOS_PER_SECOND, Random, Timestamp};

use crate::agenda::{Agenda, nanos, seconds};
use crate::chance::exponential;

/// A full hour.
const BEGIN_NS: i64 = 1_795_168_800 * NANOS_PER_SECOND;
pub(crate) const HOUR_NS: i64 = 3600 * NANOS_PER_SECOND;
/// A writer that found nothing to do looks again.
const REST_NS: i64 = 60 * NANOS_PER_SECOND;

/// What is merged, and by whom.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) sensors: usize,
    /// Hours that are recorded.
    pub(crate) hours: u64,
    /// Objects of a sensor in an hour, with bytes and rows each.
    pub(crate) objects: u64,
    pub(crate) object_bytes: u64,
    pub(crate) object_rows: u64,
    /// What a look at a sensor takes, and a row that is merged.
    pub(crate) look_ns: i64,
    pub(crate) row_ns: f64,
    pub(crate) writers: usize,
    /// Mean life of a writer, and how soon another one comes in its place.
    pub(crate) life_ns: i64,
    pub(crate) restart_ns: i64,
    /// When it is looked at what is left.
    pub(crate) end_ns: i64,
}

/// What came of it.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Outcome {
    /// Hours of sensors that were merged, of those that were ripe in time.
    pub(crate) merged: u64,
    pub(crate) ripe: u64,
    pub(crate) deaths: u64,
    /// Times that a claim kept a writer away.
    pub(crate) barred: u64,
    /// Objects before and after.
    pub(crate) objects: u64,
    pub(crate) left: u64,
    /// From the time an hour was ripe until it was merged: mean and most.
    pub(crate) delay_s: f64,
    pub(crate) delay_max_s: f64,
}

#[derive(Debug)]
enum Event {
    /// An hour is over.
    Hour,
    /// A writer looks for something to do.
    Look {
        writer: usize,
        life: u64,
    },
    /// It has merged an hour of a sensor.
    Done {
        writer: usize,
        life: u64,
        sensor: usize,
        folder: String,
    },
    Dies {
        writer: usize,
    },
}

#[derive(Default)]
struct Sensor {
    /// Objects of each hour that is not merged.
    hours: BTreeMap<String, Vec<Object>>,
    claim: Option<Claim>,
}

struct Merging<'a> {
    setting: &'a Setting,
    random: Random,
    agenda: Agenda<Event>,
    sensors: Vec<Sensor>,
    /// Sensors with hours that are ripe.
    ripe: BTreeSet<usize>,
    /// How often each writer has begun; the place where it goes on.
    lives: Vec<(u64, usize)>,
    hours: u64,
    delays_ns: i64,
    outcome: Outcome,
}

/// Plays it; the same seed gives the same outcome.
pub(crate) fn play(setting: &Setting, seed: u64) -> Outcome {
    let mut merging = Merging {
        setting,
        random: Random::new(units::mix(seed)),
        agenda: Agenda::new(),
        sensors: (0..setting.sensors).map(|_| Sensor::default()).collect(),
        ripe: BTreeSet::new(),
        lives: vec![(0, 0); setting.writers],
        hours: 0,
        delays_ns: 0,
        outcome: Outcome::default(),
    };
    merging.agenda.at(HOUR_NS, Event::Hour);
    for writer in 0..setting.writers {
        // Each begins at another place.
        let at = setting.sensors * writer / setting.writers;
        if let Some(life) = merging.lives.get_mut(writer) {
            life.1 = at;
        }
        merging.begin(writer, 0);
    }
    while merging.agenda.now_ns() < setting.end_ns
        && let Some(event) = merging.agenda.next()
    {
        merging.happen(event);
    }
    merging.end()
}

fn holder(writer: usize, life: u64) -> String {
    format!("{writer}.{life}")
}

impl Merging<'_> {
    fn now(&self) -> Timestamp {
        Timestamp(BEGIN_NS + self.agenda.now_ns())
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Hour => self.hour(),
            Event::Look { writer, life } => self.look(writer, life),
            Event::Done { writer, life, sensor, folder } => {
                if self.life(writer).0 == life {
                    self.done(sensor, &folder);
                    self.agenda.after(0, Event::Look { writer, life });
                }
            }
            Event::Dies { writer } => {
                self.outcome.deaths += 1;
                self.life(writer).0 += 1;
                self.begin(writer, self.setting.restart_ns);
            }
        }
    }

    fn life(&mut self, writer: usize) -> &mut (u64, usize) {
        self.lives.get_mut(writer).expect("each writer has one")
    }

    fn begin(&mut self, writer: usize, after_ns: i64) {
        let life = self.life(writer).0;
        self.agenda.after(after_ns, Event::Look { writer, life });
        let lives_ns = exponential(&mut self.random, self.setting.life_ns);
        self.agenda.after(after_ns.saturating_add(lives_ns), Event::Dies { writer });
    }

    /// The hour that is over is there as objects; the one before is ripe.
    fn hour(&mut self) {
        let setting = self.setting;
        let text = Timestamp(self.now().0 - HOUR_NS).to_string();
        let (date, clock) = text.split_once('T').unwrap_or_default();
        let hour = clock.get(..2).unwrap_or_default();
        for (number, sensor) in self.sensors.iter_mut().enumerate() {
            let folder = format!("sessions/sensor={number}/date={date}/hour={hour}");
            let object = |at: u64| Object {
                name: format!("{folder}/{at}.parquet"),
                bytes: setting.object_bytes,
                rows: setting.object_rows,
                blake3: String::new(),
            };
            sensor.hours.insert(folder.clone(), (0..setting.objects).map(object).collect());
        }
        self.hours += 1;
        self.outcome.objects += setting.objects * to_u64(setting.sensors);
        if self.hours >= 2 {
            self.ripe.extend(0..setting.sensors);
            self.outcome.ripe += to_u64(setting.sensors);
        }
        if self.hours <= setting.hours {
            self.agenda.after(HOUR_NS, Event::Hour);
        }
    }

    /// The next sensor behind the last one that has something to merge and that nobody else merges.
    fn look(&mut self, writer: usize, life: u64) {
        if self.life(writer).0 != life {
            return;
        }
        let (now, place, holder) = (self.now(), self.life(writer).1, holder(writer, life));
        let around = self.ripe.range(place..).chain(self.ripe.range(..place));
        let is_free = |sensor: &&usize| {
            let claim = self.sensors.get(**sensor).and_then(|own| own.claim.as_ref());
            !claim.is_some_and(|claim| claim.bars(&holder, now))
        };
        let mut barred = 0;
        let found = around.inspect(|_| barred += 1).find(is_free).copied();
        self.outcome.barred += barred - u64::from(found.is_some());
        let Some(sensor) = found else {
            self.agenda.after(REST_NS, Event::Look { writer, life });
            return;
        };
        self.life(writer).1 = sensor + 1;
        let setting = self.setting;
        let own = self.sensors.get_mut(sensor).expect("each sensor has one");
        let ripe = own.hours.iter().find(|(folder, objects)| {
            let name = objects.first().map_or(folder.as_str(), |object| &object.name);
            hour_to_merge(name, now).is_some()
        });
        let Some((folder, objects)) = ripe else {
            self.ripe.remove(&sensor);
            self.agenda.after(setting.look_ns, Event::Look { writer, life });
            return;
        };
        own.claim = Some(Claim::new(&holder, now));
        let rows: u64 = objects.iter().map(|object| object.rows).sum();
        let takes_ns = setting.look_ns + nanos(real(rows) * setting.row_ns / 1e9);
        let folder = folder.clone();
        self.agenda.after(takes_ns, Event::Done { writer, life, sensor, folder });
    }

    fn done(&mut self, sensor: usize, folder: &str) {
        let now_ns = self.agenda.now_ns();
        let Some(own) = self.sensors.get_mut(sensor) else { return };
        let objects = own.hours.remove(folder).expect("only who has the claim merges it");
        own.claim = None;
        let before = objects.len();
        let groups = groups(objects);
        let merged: usize = groups.iter().map(Vec::len).sum();
        self.outcome.left += to_u64(before - merged + groups.len());
        self.outcome.merged += 1;
        // It was ripe an hour after its end.
        let hour = Timestamp(BEGIN_NS + now_ns);
        let delay_ns = ripe_since_ns(folder).map_or(0, |since_ns| hour.0 - since_ns);
        self.delays_ns += delay_ns;
        self.outcome.delay_max_s = self.outcome.delay_max_s.max(seconds(delay_ns));
    }

    fn end(mut self) -> Outcome {
        let waiting = self.sensors.iter().flat_map(|own| own.hours.values());
        self.outcome.left += to_u64(waiting.map(Vec::len).sum());
        self.outcome.delay_s = seconds(self.delays_ns) / real(self.outcome.merged.max(1));
        self.outcome
    }
}

/// When the hour of a folder was ripe: two hours behind its begin.
fn ripe_since_ns(folder: &str) -> Option<i64> {
    let (date, hour) = folder.split_once("/date=")?.1.split_once("/hour=")?;
    let begin: Timestamp = format!("{date}T{hour}:00:00Z").parse().ok()?;
    Some(begin.0 + 2 * HOUR_NS)
}

/// Share of the writers' time that merging takes where none dies.
pub(crate) fn expected_share(setting: &Setting) -> f64 {
    let rows = real(setting.objects * setting.object_rows);
    let hour_s = seconds(setting.look_ns) + rows * setting.row_ns / 1e9;
    hour_s * real_usize(setting.sensors) / 3600.0 / real_usize(setting.writers)
}
