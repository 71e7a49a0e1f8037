//! Starts of a recorder in every order: with a clock that is right, ahead or behind, with a maximum
//! age, with one that erases and without any, with packets and without, after a reboot or not.
//! Whatever the order, nothing is erased that is younger than the age by the right clock, and
//! nothing younger is hidden of which nobody heard.

use core::ops::ControlFlow;

use device::{Modelled, Pool, ReadAt, Timeline};
use format::geometry::PIECE_BYTES_MIN;
use format::head::{HEAD_BYTES, HeadKey, Kind, Totals, VolumeId};
use format::superblock::{MemberEntry, TimeKnown};
use units::{Clock, NANOS_PER_SECOND, Sequence, Sleep, Timestamp};
use volume::{CreateOptions, Identity, Reader, Retention, create};
use writer::{Filled, FilledColumn, Opener, Writer, mount};

use crate::ring::{boxed, disk};

const HOUR_NS: i64 = 3600 * NANOS_PER_SECOND;
const DAY_NS: i64 = 24 * HOUR_NS;
const AGE_NS: i64 = 7 * DAY_NS;
/// How far a clock is believed at a start beyond what explains it.
const SLACK_NS: i64 = DAY_NS;
const BEGAN: Timestamp = Timestamp(20_000 * DAY_NS);
const YEARS_NS: i64 = 5 * 365 * DAY_NS;
const MONTHS_NS: i64 = 150 * DAY_NS;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Age {
    Off,
    Hides,
    Erases,
}

/// One start of the recorder.
#[derive(Clone, Copy, Debug)]
struct Start {
    off_ns: i64,
    age: Age,
    is_empty: bool,
    is_rebooted: bool,
    /// Since the start before.
    after_ns: i64,
}

/// Every start there is.
fn starts() -> Vec<Start> {
    let mut all = Vec::new();
    for off_ns in [0, YEARS_NS, MONTHS_NS, -YEARS_NS] {
        for age in [Age::Off, Age::Hides, Age::Erases] {
            for is_empty in [false, true] {
                for is_rebooted in [false, true] {
                    let after_ns = 2 * HOUR_NS;
                    all.push(Start { off_ns, age, is_empty, is_rebooted, after_ns });
                }
            }
        }
    }
    all
}

/// Two of them in each order; of all that there are, every fifth.
fn pairs() -> impl Iterator<Item = [Start; 2]> {
    let pairs =
        starts().into_iter().flat_map(|first| starts().into_iter().map(move |it| [first, it]));
    pairs.step_by(5)
}

const RIGHT: Start =
    Start { off_ns: 0, age: Age::Off, is_empty: false, is_rebooted: false, after_ns: 2 * HOUR_NS };
const ERASES: Start = Start { age: Age::Erases, ..RIGHT };

/// What was recorded: where, when, which time it has, and whether the recorder doubted its clock.
#[derive(Debug)]
struct Kept {
    sequence: Sequence,
    at_ns: i64,
    time: Timestamp,
    is_doubted: bool,
}

/// A machine whose clocks are what its operator makes of them.
struct Machine {
    timeline: Timeline,
    started_ns: i64,
    off_ns: i64,
    disk: Modelled,
    pool: Pool,
    kept: Vec<Kept>,
}

impl Clock for Machine {
    fn realtime(&self) -> Timestamp {
        self.right().plus_nanos(self.off_ns)
    }

    fn boottime_ns(&self) -> i64 {
        self.timeline.now_ns() - self.started_ns
    }

    fn boot(&self) -> u64 {
        self.started_ns.unsigned_abs() + 1
    }
}

impl Sleep for Machine {
    fn sleep_until(&self, until_ns: i64) {
        self.timeline.sleep_until(until_ns + self.started_ns);
    }
}

impl Machine {
    /// With a volume that was made by such a clock.
    fn new(off_ns: i64) -> Self {
        let timeline = Timeline::new(BEGAN);
        timeline.advance_by((30 * DAY_NS).unsigned_abs());
        let disk = disk(&timeline, 0);
        let pool = Pool::new(64, usize::try_from(PIECE_BYTES_MIN).unwrap()).unwrap();
        let machine = Self { timeline, started_ns: 0, off_ns, disk, pool, kept: Vec::new() };
        let identity = Identity {
            volume_id: VolumeId([1; 16]),
            head_key: HeadKey([2; 32]),
            members: vec![MemberEntry::new([1; 16], String::new())],
            spares: Vec::new(),
            created: machine.realtime(),
        };
        let time = TimeKnown::by(&machine);
        let piece_bytes = PIECE_BYTES_MIN;
        let options = CreateOptions { piece_bytes, time, ..CreateOptions::default() };
        create(&mut boxed(std::slice::from_ref(&machine.disk)), &options, &identity).unwrap();
        machine
    }

    fn right(&self) -> Timestamp {
        BEGAN.plus_nanos(self.timeline.now_ns())
    }

    fn append(&mut self, writer: &mut Writer, is_doubted: bool) {
        let mut buffer = self.pool.take().unwrap();
        buffer[HEAD_BYTES..].fill(1);
        let time = self.realtime();
        let filled = Filled {
            columns: vec![FilledColumn { buffer, packets: 1 }],
            kind: Kind::Data,
            rows: writer.plan(3).rows,
            totals: Totals { packets: 1, ..Totals::default() },
            time_min: time,
            time_max: time,
            extra_blocks: false,
        };
        let stripe = writer.append(filled, self).unwrap().stripe;
        let at_ns = self.timeline.now_ns();
        self.kept.push(Kept { sequence: stripe.sequence, at_ns, time, is_doubted });
    }

    /// Records as a recorder does; whether it doubted its clock.
    fn start(&mut self, start: Start) -> bool {
        self.timeline.advance_by(start.after_ns.unsigned_abs());
        if start.is_rebooted {
            self.started_ns = self.timeline.now_ns() - 60 * NANOS_PER_SECOND;
        }
        self.off_ns = start.off_ns;
        let (mut writer, _) =
            mount(boxed(std::slice::from_ref(&self.disk)), &Opener::alone(&*self)).unwrap();
        let max_age_ns = if start.age == Age::Off { 0 } else { AGE_NS };
        let retention = Retention { max_age_ns, erases: start.age == Age::Erases };
        let is_doubted = writer.clock_doubt(max_age_ns, self).is_some();
        writer.expire(retention, max_age_ns, self).unwrap();
        for _ in 0..if start.is_empty { 0 } else { 6 } {
            self.append(&mut writer, is_doubted);
        }
        writer.drain(self).unwrap();
        if retention.erases {
            let open = |_: &Writer| Ok(self.reader());
            let go_on = &mut |_, _| ControlFlow::Continue(());
            writer::erase(&mut writer, (AGE_NS, false), &open, self, go_on).unwrap();
        }
        let is_doubted_still = writer.clock_doubt(max_age_ns, self).is_some();
        writer.close(self).unwrap();
        is_doubted || is_doubted_still
    }

    /// The operator says that the clock is right.
    fn confirm(&self) {
        let (mut writer, _) =
            mount(boxed(std::slice::from_ref(&self.disk)), &Opener::alone(self)).unwrap();
        let retention = Retention::of(writer.superblock());
        writer.expire_by_clock(retention, AGE_NS, self).unwrap();
        assert_eq!(writer.clock_doubt(AGE_NS, self), None);
        writer.close(self).unwrap();
    }

    fn reader(&self) -> Reader {
        let disk: Box<dyn ReadAt> = Box::new(self.disk.clone());
        Reader::of_members(vec![disk]).unwrap()
    }

    /// Judges by the right clock what is left.
    fn judge(&self, is_doubted: bool, history: &[Start]) {
        let superblock = self.reader().superblock().clone();
        let now_ns = self.timeline.now_ns();
        let slack_ns = SLACK_NS * i64::try_from(history.len()).unwrap();
        for kept in self.kept.iter().filter(|it| now_ns - it.at_ns < AGE_NS - slack_ns) {
            let is_erased = kept.sequence < superblock.given_up_before;
            assert!(!is_erased, "erased: {kept:?}, {history:#?}");
            let is_hidden = kept.time <= superblock.expired_through;
            assert!(!is_hidden || is_doubted || kept.is_doubted, "{kept:?}, {history:#?}");
        }
    }

    /// With the right clock all comes back that was recorded by one that was not behind.
    fn judge_by_right_clock(&self, history: &[Start]) {
        let expired = self.reader().superblock().expired_at(self.right());
        let now_ns = self.timeline.now_ns();
        for kept in &self.kept {
            let was_right = kept.time >= BEGAN.plus_nanos(kept.at_ns);
            let is_young = now_ns - kept.at_ns < AGE_NS - SLACK_NS;
            assert!(!was_right || !is_young || kept.time > expired, "{kept:?}, {history:#?}");
        }
    }
}

fn go_through(made_off_ns: i64, history: &[Start]) {
    let mut machine = Machine::new(made_off_ns);
    for &start in history {
        let is_doubted = machine.start(start);
        machine.judge(is_doubted, history);
    }
    machine.judge_by_right_clock(history);
}

#[test]
fn after_any_two_starts_nothing_young_is_erased() {
    for [first, second] in pairs() {
        go_through(0, &[RIGHT, first, second, ERASES, ERASES]);
    }
}

#[test]
fn nor_on_a_volume_that_was_made_by_a_wrong_clock() {
    for made_off_ns in [YEARS_NS, MONTHS_NS, -YEARS_NS] {
        for first in starts() {
            go_through(made_off_ns, &[RIGHT, first, ERASES, ERASES]);
        }
    }
}

#[test]
fn nor_on_a_new_volume_with_a_wrong_clock_at_its_first_start() {
    for [first, second] in pairs() {
        go_through(0, &[first, second, ERASES]);
    }
}

/// Nothing says which of two clocks was right, until the operator does. What was recorded by a
/// clock that was behind is then not yet old, whatever its heads say.
#[test]
fn what_a_clock_that_was_behind_recorded_is_erased_when_it_is_old() {
    let behind = Start { off_ns: -YEARS_NS, age: Age::Erases, ..RIGHT };
    let days = |days| Start { after_ns: days * DAY_NS, ..ERASES };
    let mut machine = Machine::new(0);
    assert!(!machine.start(RIGHT));
    assert!(machine.start(behind) && machine.start(days(1)), "somebody has to say it");
    machine.confirm();
    for (start, is_left) in [(days(2), true), (days(4), true), (days(2), false)] {
        assert!(!machine.start(start), "it was said");
        let given_up = machine.reader().superblock().given_up_before;
        let first = machine.kept.first().expect("something was recorded");
        assert_eq!(first.sequence >= given_up, is_left, "{start:?}");
    }
}

#[test]
fn packets_expire_by_a_clock_that_the_operator_calls_right() {
    let mut machine = Machine::new(0);
    machine.start(RIGHT);
    let after = Start { after_ns: 60 * DAY_NS, is_rebooted: true, ..ERASES };
    assert!(machine.start(after), "nothing explains two months");
    machine.confirm();
    assert!(!machine.start(ERASES), "it is believed from then on");
    let given_up = machine.reader().superblock().given_up_before;
    assert!(machine.kept.first().expect("it was recorded").sequence < given_up);
}

/// How long another machine has been up says nothing of when this one wrote.
#[test]
fn a_disk_that_is_carried_makes_nobody_doubt() {
    let mut machine = Machine::new(0);
    assert!(!machine.start(ERASES));
    machine.started_ns = -20 * DAY_NS;
    assert!(!machine.start(ERASES), "the clock is right");
    machine.started_ns = machine.timeline.now_ns() - HOUR_NS;
    assert!(!machine.start(ERASES) && !machine.start(RIGHT), "and on the way back");
}

/// A clock that was set back while nobody recorded is later than all that was recorded.
#[test]
fn a_clock_that_lags_behind_the_time_since_boot_is_doubted() {
    let back = Start { off_ns: -9 * DAY_NS, after_ns: 10 * DAY_NS, ..ERASES };
    let mut machine = Machine::new(0);
    assert!(!machine.start(ERASES));
    assert!(machine.start(back), "ten days have passed, and it says one");
}
