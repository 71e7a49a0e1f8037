//! Sensors that are slow, dead, silent, cut off or lying, without a network.

use core::time::Duration;
use std::collections::BTreeMap;

use host::SystemClock;
use proptest::prelude::*;
use stage::sync::Mutex;

use super::*;
use crate::pages::{Page, pages};
use crate::part::Condition;
use crate::ranked::Identified;

/// A row: its time, and what it is known by.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Item(i64, String);

impl Ranked for Item {
    type Key = i64;

    fn key(&self) -> i64 {
        self.0
    }

    fn bytes(&self) -> usize {
        100
    }
}

impl Identified for Item {
    fn id(&self) -> &str {
        &self.1
    }
}

#[derive(Clone, Debug)]
enum Kind {
    Honest,
    /// Waits before each row of these numbers.
    Slow(usize),
    /// Nobody is there.
    Dead,
    /// Connects, and says nothing.
    Silent,
    /// Breaks off behind so many rows, for ever.
    CutOff(usize),
    /// Breaks off behind so many rows, so many times in all, and goes on when it is asked again.
    Shaky(usize, u32),
    /// Its first connection hangs.
    Stuck,
    /// Goes on for ever.
    Endless,
}

#[derive(Clone, Debug)]
struct Sensor {
    kind: Kind,
    rows: Vec<Item>,
}

struct Sensors {
    each: Vec<Sensor>,
    /// Connections, and breaks, of each.
    asked: Mutex<BTreeMap<usize, (u32, u32)>>,
    page_rows: usize,
}

impl Sensors {
    fn new(each: Vec<Sensor>) -> Self {
        Self { each, asked: Mutex::default(), page_rows: 3 }
    }

    fn names(&self) -> Vec<String> {
        (0..self.each.len()).map(|at| format!("s{at}")).collect()
    }

    /// Breaks off behind its rows, as often as it does.
    fn check_break(&self, number: usize, at: usize) -> Result<(), Fault> {
        let (behind, most) = match self.each[number].kind {
            Kind::CutOff(behind) => (behind, u32::MAX),
            Kind::Shaky(behind, most) => (behind, most),
            _ => return Ok(()),
        };
        let mut asked = self.asked.lock().unwrap();
        let (_, breaks) = asked.entry(number).or_default();
        if at < behind || *breaks >= most {
            return Ok(());
        }
        *breaks += 1;
        Err(Fault::BrokenOff("it broke off".to_owned()))
    }
}

fn until_over<T: Ranked>(line: &Line<'_, T>) -> Fault {
    while !line.is_over() {
        stage::sleep(Duration::from_millis(1));
    }
    Fault::Stopped
}

impl Transport for Sensors {
    type Item = Item;

    fn ask(&self, number: usize, line: &Line<'_, Item>) -> Result<Said, Fault> {
        let sensor = &self.each[number];
        let attempt = {
            let mut asked = self.asked.lock().unwrap();
            let (connections, _) = asked.entry(number).or_default();
            *connections += 1;
            *connections
        };
        match sensor.kind {
            Kind::Dead => return Err(Fault::Down("nobody is there".to_owned())),
            Kind::Silent => return Err(until_over(line)),
            Kind::Stuck if attempt == 1 => return Err(until_over(line)),
            _ => line.hear()?,
        }
        if let Kind::Endless = sensor.kind {
            for at in 0.. {
                line.push(Item(at, at.to_string()))?;
            }
        }
        pages(line, &mut |cursor, give| {
            let from: usize = cursor.map_or(0, |cursor| cursor.parse().unwrap());
            let rows = sensor.rows.iter().enumerate().skip(from).take(self.page_rows);
            for (at, row) in rows {
                if let Kind::Slow(every) = sensor.kind
                    && at.is_multiple_of(every)
                {
                    stage::sleep(Duration::from_millis(2));
                }
                self.check_break(number, at)?;
                give(row.clone())?;
            }
            let next = from + self.page_rows;
            let next = (next < sensor.rows.len()).then(|| next.to_string());
            Ok(Page { said: Said::default(), next })
        })
    }
}

fn limits(silence_ms: u64) -> Limits {
    Limits {
        silence: Duration::from_millis(silence_ms),
        deadline: None,
        hedge: Duration::from_millis(5),
        patience: None,
        memory_bytes: 2000,
    }
}

fn run(sensors: &Sensors, limits: &Limits) -> (Vec<(usize, Item)>, Vec<Part>) {
    let names = sensors.names();
    let is_stopped = || false;
    let asking = Asking { names: &names, limits, clock: &SystemClock, is_stopped: &is_stopped };
    let mut taken = Vec::new();
    let parts = ask::<_, core::convert::Infallible>(sensors, &asking, &mut |event| {
        if let Event::Item(sensor, item) = event {
            taken.push((sensor, item));
        }
        Ok(Taken::More)
    });
    (taken, parts.unwrap())
}

fn any_kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        4 => Just(Kind::Honest),
        1 => (1_usize..5).prop_map(Kind::Slow),
        1 => Just(Kind::Dead),
        1 => Just(Kind::Silent),
        1 => (0_usize..12).prop_map(Kind::CutOff),
        1 => (0_usize..12, 1_u32..3).prop_map(|(behind, most)| Kind::Shaky(behind, most)),
        1 => Just(Kind::Stuck),
    ]
}

fn any_sensors() -> impl Strategy<Value = Vec<Sensor>> {
    let rows = prop::collection::vec(0_i64..20, 0..25);
    let sensor = (any_kind(), rows).prop_map(|(kind, mut times)| {
        times.sort_unstable();
        Sensor { kind, rows: rows_at(&times) }
    });
    prop::collection::vec(sensor, 1..8)
}

fn rows_at(times: &[i64]) -> Vec<Item> {
    times.iter().enumerate().map(|(at, &time)| Item(time, at.to_string())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    /// The merged answer is the sorted union of what honest, slow, shaky and stuck sensors have,
    /// and of the beginnings of those that are cut off; nothing is doubled; who did not end is
    /// named with what it is.
    #[test]
    fn the_merged_answer_is_the_sorted_union(sensors in any_sensors()) {
        let sensors = Sensors::new(sensors);
        // A machine with much to do keeps threads waiting: only who is silent for ever is late.
        let (taken, parts) = run(&sensors, &limits(1500));
        let mut expected: Vec<(i64, usize, usize)> = Vec::new();
        for (number, Sensor { kind, rows }) in sensors.each.iter().enumerate() {
            let (count, condition) = match kind {
                Kind::CutOff(behind) if *behind < rows.len() => (*behind, Condition::BrokenOff),
                Kind::Dead => (0, Condition::Down),
                Kind::Silent => (0, Condition::Slow),
                _ => (rows.len(), Condition::Complete),
            };
            let part = &parts[number];
            prop_assert_eq!(part.condition(false), condition, "{:?}", part);
            prop_assert_eq!((part.count, part.late), (units::number::to_u64(count), 0));
            let rows = rows.iter().take(count).enumerate();
            expected.extend(rows.map(|(at, row)| (row.0, number, at)));
        }
        expected.sort_unstable();
        let taken: Vec<(i64, usize, usize)> =
            taken.into_iter().map(|(at, Item(time, id))| (time, at, id.parse().unwrap())).collect();
        prop_assert_eq!(taken, expected);
    }
}

fn honest(times: &[i64]) -> Sensor {
    Sensor { kind: Kind::Honest, rows: rows_at(times) }
}

#[test]
fn a_stuck_connection_is_answered_by_a_second_one_and_a_dead_one_tried_twice() {
    let stuck = Sensor { kind: Kind::Stuck, rows: rows_at(&[1, 2]) };
    let dead = Sensor { kind: Kind::Dead, rows: Vec::new() };
    let sensors = Sensors::new(vec![stuck, dead]);
    let (taken, parts) = run(&sensors, &limits(60_000));
    assert_eq!(taken.len(), 2);
    assert_eq!(parts[0].condition(false), Condition::Complete);
    let asked = sensors.asked.lock().unwrap();
    let connections: Vec<u32> = asked.values().map(|(connections, _)| *connections).collect();
    assert_eq!(connections, [2, 2]);
}

#[test]
fn with_patience_the_first_rows_do_not_wait_and_late_ones_are_counted() {
    let stuck = Sensor { kind: Kind::Stuck, rows: rows_at(&[0, 1]) };
    let sensors = Sensors::new(vec![stuck, honest(&[5, 6])]);
    let (patience, hedge) = (Some(Duration::ZERO), Duration::from_millis(300));
    let (taken, parts) = run(&sensors, &Limits { hedge, patience, ..limits(60_000) });
    let of: Vec<usize> = taken.iter().map(|(sensor, _)| *sensor).collect();
    assert_eq!(of, [1, 1, 0, 0]);
    assert_eq!([parts[0].late, parts[1].late], [2, 0]);
    // A sensor that says what is not in order is shown and counted, too.
    let sensors = Sensors::new(vec![honest(&[5, 3, 9]), honest(&[4])]);
    let (taken, parts) = run(&sensors, &limits(60_000));
    assert_eq!((taken.len(), parts[0].late), (4, 1));
}

#[test]
fn an_endless_answer_ends_at_the_deadline_in_bounded_memory() {
    let endless = Sensor { kind: Kind::Endless, rows: Vec::new() };
    let sensors = Sensors::new(vec![endless, honest(&[1])]);
    let deadline = Some(Duration::from_millis(500));
    let (taken, parts) = run(&sensors, &Limits { deadline, ..limits(60_000) });
    assert!(taken.len() > 1);
    let [endless, honest] = &*parts else { panic!("{parts:?}") };
    assert_eq!(honest.condition(false), Condition::Complete);
    let Err(Fault::Slow(why)) = &endless.outcome else { panic!("{endless:?}") };
    assert!(why.starts_with("it was not done within "), "{why}");
}

#[test]
fn an_error_of_who_takes_and_the_user_end_it_at_once() {
    let silent = || Sensor { kind: Kind::Silent, rows: Vec::new() };
    let sensors = Sensors::new(vec![silent(), honest(&[1])]);
    let (names, limits) = (sensors.names(), limits(600_000));
    for stops in [false, true] {
        let is_stopped = || stops;
        let asking =
            Asking { names: &names, limits: &limits, clock: &SystemClock, is_stopped: &is_stopped };
        match ask(&sensors, &asking, &mut |_| Err("full")) {
            Err(error) => assert!(!stops && error == "full"),
            Ok(parts) => assert!(stops && parts[0].outcome == Err(Fault::Stopped)),
        }
    }
}

#[test]
fn when_enough_is_there_the_others_are_heard_to_their_ends() {
    let sensors = Sensors::new(vec![honest(&[1, 2, 3, 4, 5, 6]), honest(&[2, 3, 9])]);
    let (names, limits) = (sensors.names(), limits(60_000));
    let is_stopped = || false;
    let asking =
        Asking { names: &names, limits: &limits, clock: &SystemClock, is_stopped: &is_stopped };
    let mut taken = 0;
    let parts = ask::<_, ()>(&sensors, &asking, &mut |event| match event {
        Event::Item(..) if taken == 3 => Ok(Taken::Enough),
        Event::Item(..) => {
            taken += 1;
            Ok(Taken::More)
        }
        Event::Idle => Ok(Taken::More),
    });
    let parts = parts.unwrap();
    assert!(parts.iter().all(|part| part.condition(true) == Condition::Complete), "{parts:?}");
    assert_eq!(parts.iter().map(|part| part.count).sum::<u64>(), 3);
}
