//! A question to all sensors of a fleet at once, by the rules of [`fleet::Course`]: only the
//! sensors, the network and the machine that asks are made up.
//!
//! A sensor takes a connection and says who it is, searches, and sends pages of rows; each passes
//! the one link and the cores of the machine that asks, waits in the course, and goes out through
//! its one thread that merges. What does not fit into its sensor's share of memory waits at the
//! sensor.

mod sensor;
mod setting;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use completeness::State;
use fleet::{Course, Fault, LOOK_EVERY, Part, Pushed, Said, Tally, page_rows, pause_after};
use units::Random;
use units::number::{real, to_u64};

use crate::agenda::{Agenda, nanos, seconds};
use crate::chance::exponential;
use crate::server::Server;
pub(crate) use sensor::Kind;
use sensor::{Row, Sensor};
pub(crate) use setting::{Mix, Setting};

/// Rows that come together: 16 of 1 KiB fill what a connection of TLS sends at once.
const CHUNK: u64 = 16;

#[derive(Debug)]
enum Event {
    /// The sensor takes the request, and says who it is.
    Reach { sensor: usize, attempt: usize },
    /// Nobody is there.
    Refused { sensor: usize, attempt: usize },
    /// The sensor has further rows.
    Found { sensor: usize },
    /// So many of them have come over the link.
    Came { sensor: usize, rows: u64 },
    /// They are read.
    Read { sensor: usize, rows: u64 },
    /// The merge goes on, unless it has gone on since this was entered.
    Merge { turn: u64 },
}

/// What came of a question.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Answer {
    /// Until the first row went out, and until all was over.
    pub(crate) first_s: Option<f64>,
    pub(crate) whole_s: f64,
    pub(crate) rows: u64,
    /// Rows behind later ones.
    pub(crate) late: u64,
    pub(crate) attempts: u64,
    /// Shares of the time in which cores, link and the merging thread were busy.
    pub(crate) cores: f64,
    pub(crate) link: f64,
    pub(crate) merge: f64,
    /// Times that a sensor had to wait for room.
    pub(crate) stalls: u64,
    pub(crate) parts: Vec<Part>,
}

impl Answer {
    /// How many sensors are named by each word.
    pub(crate) fn named(&self) -> BTreeMap<&'static str, u64> {
        let mut named = BTreeMap::new();
        for part in &self.parts {
            *named.entry(part.condition(false).name()).or_default() += 1;
        }
        named
    }
}

/// A question under way.
struct Asking<'a> {
    setting: &'a Setting,
    random: Random,
    agenda: Agenda<Event>,
    course: Course<Row>,
    tally: Tally<i64>,
    sensors: Vec<Sensor>,
    cores: Server,
    link: Server,
    /// The merge waits for news.
    is_idle: bool,
    turn: u64,
    first_ns: Option<i64>,
    merging_ns: i64,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    rows: u64,
    attempts: u64,
    stalls: u64,
}

/// Plays a question; the same seed gives the same answer.
pub(crate) fn ask(setting: &Setting, seed: u64) -> Answer {
    let mut random = Random::new(units::mix(seed));
    let sensors = setting.sensors(&mut random);
    let count = sensors.len();
    let mut asking = Asking {
        setting,
        random,
        agenda: Agenda::new(),
        course: Course::new(count, &setting.limits, 0),
        tally: Tally::new(count),
        sensors,
        cores: Server::new(setting.cores),
        link: Server::new(1),
        is_idle: false,
        turn: 0,
        first_ns: None,
        merging_ns: 0,
        counts: Counts::default(),
    };
    (0..count).for_each(|sensor| asking.start(sensor));
    asking.agenda.at(0, Event::Merge { turn: 0 });
    asking.run();
    asking.answer()
}

impl Asking<'_> {
    fn run(&mut self) {
        while let Some(event) = self.agenda.next() {
            match event {
                Event::Reach { sensor, attempt } => self.reach(sensor, attempt),
                Event::Refused { sensor, attempt } => {
                    let down = Fault::Down("connection refused".to_owned());
                    self.ended((sensor, attempt), Err(down));
                }
                Event::Found { sensor } => self.send(sensor),
                Event::Came { sensor, rows } => {
                    let takes_ns = self.setting.read_ns * rows.cast_signed();
                    let done_ns = self.cores.serve(self.agenda.now_ns(), takes_ns);
                    self.agenda.at(done_ns, Event::Read { sensor, rows });
                }
                Event::Read { sensor, rows } => {
                    self.sensor(sensor).read(rows);
                    self.push(sensor);
                }
                Event::Merge { turn } if turn == self.turn => {
                    if self.merge() {
                        return;
                    }
                }
                Event::Merge { .. } => {}
            }
        }
        unreachable!("the merge looks again and again until all is over");
    }

    fn sensor(&mut self, sensor: usize) -> &mut Sensor {
        self.sensors.get_mut(sensor).expect("each sensor has one")
    }

    /// A further connection to a sensor.
    fn start(&mut self, sensor: usize) {
        let (attempt, _) = self.course.attempt(sensor);
        self.counts.attempts += 1;
        let now_ns = self.agenda.now_ns();
        let (connect_ns, way_ns) = (self.setting.connect_ns, self.setting.way_ns);
        match self.sensor(sensor).kind {
            Kind::Silent => {}
            Kind::Stuck if attempt == 0 => {}
            Kind::Dead => self.agenda.after(way_ns, Event::Refused { sensor, attempt }),
            _ => {
                let done_ns = self.cores.serve(now_ns, connect_ns);
                // Of TCP, of TLS, of the request.
                self.agenda.at(done_ns + 3 * way_ns, Event::Reach { sensor, attempt });
            }
        }
    }

    fn reach(&mut self, sensor: usize, attempt: usize) {
        let now_ns = self.agenda.now_ns();
        if !self.course.hear((sensor, attempt), now_ns) {
            self.ended((sensor, attempt), Err(Fault::Stopped));
            return;
        }
        self.sensor(sensor).attempt = attempt;
        self.search(sensor);
    }

    /// A page is asked for.
    fn search(&mut self, sensor: usize) {
        let setting = self.setting;
        let search_ns = match self.sensor(sensor).kind {
            Kind::Slow => setting.slow_ns,
            _ => exponential(&mut self.random, setting.search_ns),
        };
        let rows = page_rows(setting.limits.memory_bytes / self.sensors.len());
        self.sensor(sensor).begin_page(rows);
        self.agenda.after(search_ns.saturating_add(setting.way_ns), Event::Found { sensor });
    }

    /// The sensor sends what comes next of its page.
    fn send(&mut self, sensor: usize) {
        let now_ns = self.agenda.now_ns();
        let rows = self.sensor(sensor).chunk(CHUNK);
        if rows > 0 {
            let bytes = real(rows) * real(self.setting.row_bytes);
            let takes_ns = nanos(bytes / real(self.setting.link_bytes));
            let done_ns = self.link.serve(now_ns, takes_ns);
            self.agenda.at(done_ns, Event::Came { sensor, rows });
            return;
        }
        let own = self.sensor(sensor);
        let attempt = own.attempt;
        if own.is_cut() {
            own.failed += 1;
            if let Some(pause) = pause_after(own.failed) {
                self.agenda.after(units::nanos(pause), Event::Found { sensor });
            } else {
                let broken = Fault::BrokenOff("the connection broke".to_owned());
                self.ended((sensor, attempt), Err(broken));
            }
        } else if own.has_rows() {
            self.search(sensor);
        } else {
            let state = match own.kind {
                Kind::Incomplete => State::Incomplete,
                _ => State::Complete,
            };
            let said = Said { state, state_within_limit: state, ..Said::default() };
            self.ended((sensor, attempt), Ok(said));
        }
    }

    /// Pushes what was read of a sensor, as far as there is room.
    fn push(&mut self, sensor: usize) {
        let now_ns = self.agenda.now_ns();
        let attempt = self.sensor(sensor).attempt;
        if !self.course.hear((sensor, attempt), now_ns) {
            return;
        }
        while let Some(row) = self.sensor(sensor).waiting.pop_front() {
            match self.course.push(sensor, row, now_ns) {
                Pushed::First => self.news(),
                Pushed::Behind => {}
                Pushed::Over => return,
                Pushed::Full(row) => {
                    self.counts.stalls += u64::from(!self.sensor(sensor).is_stalled);
                    let own = self.sensor(sensor);
                    own.waiting.push_front(row);
                    own.is_stalled = true;
                    return;
                }
            }
        }
        self.sensor(sensor).is_stalled = false;
        self.send(sensor);
    }

    fn ended(&mut self, of: (usize, usize), outcome: Result<Said, Fault>) {
        self.course.ended(of, outcome, self.agenda.now_ns());
        self.news();
    }

    /// The merge goes on at once, if it waits.
    fn news(&mut self) {
        if core::mem::take(&mut self.is_idle) {
            self.turn += 1;
            self.agenda.after(0, Event::Merge { turn: self.turn });
        }
    }

    /// One turn of the merge; whether all is over.
    fn merge(&mut self) -> bool {
        let now_ns = self.agenda.now_ns();
        for sensor in self.course.look(now_ns).again {
            self.start(sensor);
        }
        let mut batch = Vec::new();
        let is_done = self.course.fill(now_ns, &mut batch);
        self.is_idle = batch.is_empty();
        if batch.is_empty() && is_done {
            return true;
        }
        let takes_ns = self.setting.take_ns * to_u64(batch.len()).cast_signed();
        let rest_ns = if self.is_idle { units::nanos(LOOK_EVERY) } else { takes_ns };
        self.turn += 1;
        self.agenda.after(rest_ns, Event::Merge { turn: self.turn });
        if !batch.is_empty() {
            self.first_ns.get_or_insert(now_ns + self.setting.take_ns);
        }
        self.merging_ns += takes_ns;
        self.counts.rows += to_u64(batch.len());
        for (sensor, key, _) in batch {
            self.tally.count(sensor, key);
            if self.sensor(sensor).is_stalled {
                self.push(sensor);
            }
        }
        false
    }

    fn answer(self) -> Answer {
        let names: Vec<String> = (0..self.sensors.len()).map(|at| format!("s{at}")).collect();
        let now_ns = self.agenda.now_ns();
        let parts = self.course.parts(&names, &self.tally);
        Answer {
            first_s: self.first_ns.map(seconds),
            whole_s: seconds(now_ns),
            rows: self.counts.rows,
            late: parts.iter().map(|part| part.late).sum(),
            attempts: self.counts.attempts,
            cores: self.cores.share(now_ns),
            link: self.link.share(now_ns),
            merge: seconds(self.merging_ns) / seconds(now_ns).max(f64::MIN_POSITIVE),
            stalls: self.counts.stalls,
            parts,
        }
    }
}
