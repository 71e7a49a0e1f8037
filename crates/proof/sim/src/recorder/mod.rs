//! Histories of the whole recorder: intake, pool, ring writer, indexer, resilverer, returns, scrub
//! and expiry run on a stage, on modelled disks, against a model that knows only packets.
//!
//! A recording takes numbered packets from a link while a fate of the seed's making befalls its
//! disks and asks it questions; it ends in order or by a crash at any write. Afterwards a reader
//! must find every packet that was promised, byte for byte, what was there before, and nothing
//! else; and what the superblocks say of the members must be true: of those that lack nothing any K
//! suffice.

mod age;
mod damage;
mod fate;
mod judge;
mod link;
mod rack;
mod statement;
mod takeover;
mod turns;
mod verbs;

use core::ops::ControlFlow;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use device::{Crash, ReadAt, Timeline, Timing};
use encryption::Keyring;
use format::head::{HeadKey, VolumeId};
use format::superblock::{MemberEntry, Spare, TimeKnown};
use index::{Content, Files, MemoryFiles};
use indexer::{Fate as WorkerFate, Played, Seen, Workers};
use record::{Account, Control, Error, Ground, Input, Options, Report};
use units::{Clock, Epoch, MemberId, Sequence, Timestamp, mix};
use volume::{CreateOptions, Identity, Layout, Reader, create_for, geometry_for};

use crate::check::{Verdict, Violation, broken};
use crate::counters::Counters;
use crate::history::{Outcome, bits, opener};
use crate::keys::{encrypts, keyring, recipients};
use crate::random::Random;
use age::{Ages, MachineClock};
use fate::{Fate, Signals};
use judge::{Found, Kept, Promise, check_claims, check_kept, check_promise, read_all};
use link::{Link, Offered, Wire};
use rack::{Rack, place};
use statement::Statements;
use turns::Turns;
use units::number::to_u64;

/// Longest time that the end of a recording may take: disks hang for a minute at most.
const END_NS: i64 = 600_000_000_000;
/// Longest time that threads which no thread waits for may stay.
const REST: Duration = Duration::from_hours(2);

const SHAPES: [(u8, u8); 9] =
    [(1, 0), (2, 0), (1, 1), (2, 1), (2, 1), (3, 1), (2, 2), (2, 2), (4, 2)];

/// Runs the history of a seed; `trace` says every step on standard error.
pub(crate) fn run(seed: u64, trace: bool) -> Outcome {
    stage::stand_on(None);
    let mut course = Course::new(Random::new(seed ^ 0x07ec_04de), trace);
    let verdict = course.all().map_err(|Violation(what)| {
        let Course { shape: (data, parity), slots, cycle, .. } = course;
        Violation(format!("recorder {data}+{parity}, {slots} slots, cycle {cycle}: {what}"))
    });
    stage::stand_on(None);
    Outcome { counters: course.counters, digest: course.digest, verdict }
}

/// A running history.
struct Course {
    random: Random,
    shape: (u8, u8),
    slots: u64,
    piece_bytes: u32,
    rack: Rack,
    /// Of who may read, where packets are encrypted.
    keyring: Option<Arc<Keyring>>,
    wire: Wire,
    files: Arc<MemoryFiles>,
    ages: Ages,
    /// Packets that were seen on the disks.
    kept: BTreeMap<u64, Kept>,
    /// Packets that were seen and may be lost since: more members were damaged than the parity
    /// bears.
    damaged: BTreeMap<u64, Kept>,
    /// Packets that a reader has shown since it was certain what stays: they stay.
    seen: BTreeMap<u64, Kept>,
    /// Packets that were handed over since it was certain what stays.
    undecided: BTreeMap<u64, Offered>,
    /// Of the newest recording.
    promise: Promise,
    /// Of all recordings since it was certain what stays.
    owed: Vec<Owed>,
    statements: Statements,
    counters: Counters,
    digest: u64,
    cycle: u64,
    is_traced: bool,
}

/// Packets of a recording that must be there when it is certain what stays.
struct Owed {
    offered: Vec<Offered>,
    /// First sequence of the recording.
    start: Sequence,
    /// The first so many of them, but for so many that found no space.
    first: usize,
    dropped: u64,
}

/// What became of a recording.
struct Recorded {
    report: Option<Report>,
    has_crashed: bool,
    is_taken_over: bool,
    /// First sequence of its epoch.
    start: Sequence,
}

impl Course {
    fn new(mut random: Random, is_traced: bool) -> Self {
        let shape = random.pick(&SHAPES);
        let spares = if shape.1 > 0 { random.below(3) } else { 0 };
        let members = usize::from(shape.0 + shape.1);
        let piece_bytes = 16 << 10 << random.pick(&[0, 0, 0, 1]);
        let options = CreateOptions {
            piece_bytes,
            parity_columns: shape.1,
            layout: Layout::default(),
            max_age_ns: 0,
            qualified: None,
            time: TimeKnown::default(),
        };
        let slots = 20 + random.below(60);
        let mut size = (4 << 20) + slots * u64::from(piece_bytes);
        let geometry = loop {
            match geometry_for(size, members, &options) {
                Ok((geometry, _)) if geometry.slots >= slots => break geometry,
                _ => size += 4096,
            }
        };
        let all = members + usize::try_from(spares).expect("few spares");
        let slow = random.percent(30);
        let timing = |size| if slow { slow_disk() } else { Timing::flash(size) };
        let rack = Rack::new(&vec![size; all], timing, Random::new(random.next()));
        let mut key = [0; 32];
        key.fill_with(|| random.next().to_le_bytes()[0]);
        let uuid = |number: usize| [u8::try_from(number + 1).expect("few disks"); 16];
        let identity = Identity {
            volume_id: VolumeId([7; 16]),
            head_key: HeadKey(key),
            members: (0..members)
                .map(|number| MemberEntry::new(uuid(number), place(number)))
                .collect(),
            spares: (members..all)
                .map(|number| Spare { uuid: uuid(number), path: place(number) })
                .collect(),
            created: Timestamp(0),
        };
        let timeline = rack.timeline();
        let (explained, boottime_ns) = (timeline.realtime(), timeline.now_ns());
        let time = TimeKnown { explained, boottime_ns, ..TimeKnown::default() };
        let options = CreateOptions { time, ..options };
        let ages = Ages::new(&timeline, &mut random);
        let mut devices = rack.devices((1 << all) - 1);
        let recipients = recipients(encrypts(slots));
        create_for(&mut devices, &options, &identity, &recipients).expect("the sizes fit");
        Self {
            random,
            shape,
            slots: geometry.slots,
            piece_bytes,
            rack,
            keyring: encrypts(slots).then(|| keyring([7; 16])),
            wire: Wire::new(),
            files: Arc::default(),
            ages,
            kept: BTreeMap::new(),
            damaged: BTreeMap::new(),
            seen: BTreeMap::new(),
            undecided: BTreeMap::new(),
            promise: Promise::default(),
            owed: Vec::new(),
            statements: Statements::new(u64::from_le_bytes(*key.first_chunk().expect("32 bytes"))),
            counters: Counters::default(),
            digest: 0,
            cycle: 0,
            is_traced,
        }
    }

    fn say(&self, what: impl FnOnce() -> String) {
        if self.is_traced {
            eprintln!("{:>4}  {}", self.cycle, what());
        }
    }

    fn note(&mut self, what: u64) {
        self.digest = mix(self.digest ^ what);
    }

    fn all(&mut self) -> Verdict {
        let cycles = 2 + self.random.below(5);
        while self.cycle < cycles {
            let recorded = self.record()?;
            self.judge(&recorded)?;
            self.damage_unindexed()?;
            self.cycle += 1;
            self.verb()?;
        }
        Ok(())
    }

    /// One recording, from its start to its end, whatever that is.
    fn record(&mut self) -> Verdict<Recorded> {
        let everybody = (1_u32 << self.rack.count()) - 1;
        self.rack.heal_all();
        self.rack.plug_in(everybody);
        if self.random.percent(20) {
            self.rack.swap_places();
            self.counters.add("recorder: names swapped", 1);
        }
        let given_up = self.choose_given_up()?;
        // The user calls no member gone for good while a further one is away.
        let absent = given_up.map_or_else(|| self.choose_absent(), |(_, disk)| 1 << disk);
        self.rack.plug_in(everybody & !absent);
        if self.random.percent(60) {
            let most = self.random.pick(&[40, 150, 600]);
            let after = self.random.below(most);
            let crashes = self.choose_crashes();
            self.say(|| format!("armed after {after}: {crashes:?}"));
            self.rack.arm(after, crashes);
        }
        let start = self.acknowledged();
        let clock = self.ages.start(&mut self.random, &mut self.counters);
        self.say(|| format!("starts, {:?}", self.ages));
        let timeline = self.rack.timeline();
        self.wire.begin(timeline.now_ns());
        self.wire.set_gap(400_000 << self.random.below(7));
        let turns = Turns::new(&timeline, Random::new(self.random.next()));
        let without = given_up.iter().map(|(member, _)| *member).collect();
        let (result, (fate, verdict)) = self.on_stage((&clock, &turns), without)?;
        self.await_rest(&turns)?;
        stage::stand_on(None);
        self.counters.merge(&fate.counters);
        self.counters.peak("recorder: most steps of a recording", turns.steps());
        self.counters.add("recorder: steps", turns.steps());
        let has_crashed = self.rack.settle();
        self.rack.arrive();
        self.say(|| {
            let how = result.as_ref().map(|report| {
                let Account { offered, stored, writer_drops, .. } = &report.total;
                let changes: Vec<String> = report.changes.iter().map(ToString::to_string).collect();
                format!("{stored} of {offered} stored, {writer_drops} dropped, {changes:?}")
            });
            format!("crash {has_crashed}, absent {absent:b}: {how:?}")
        });
        verdict?;
        self.counters.add("recordings", 1);
        self.counters.add("crashes", u64::from(has_crashed));
        let report = match result {
            Ok(report) => Some(report),
            Err(_) if has_crashed || fate.is_fatal => None,
            Err(Error::Volume(volume::Error::TakenOver { .. })) if fate.taken_over.is_some() => {
                self.counters.add("recorder: says that it was taken over", 1);
                None
            }
            Err(error) => return self.judge_refusal(&error, absent),
        };
        if report.is_some() && fate.taken_over.is_some() {
            return broken("a recorder that was taken over ends in order".to_owned());
        }
        Ok(Recorded { report, has_crashed, is_taken_over: fate.taken_over.is_some(), start })
    }

    fn on_stage(
        &mut self,
        (clock, turns): (&MachineClock, &Arc<Turns>),
        without: Vec<MemberId>,
    ) -> Verdict<(Result<Report, Error>, (Fate, Verdict))> {
        let timeline = self.rack.timeline();
        let signals = Arc::new(Signals::default());
        let mut options = Options { without, ..self.options() };
        self.ages.apply(&mut options);
        let scale = self.random.below(3);
        let lasts_ns = self.random.below(1_000_000_000 << scale);
        let stop_ns = timeline.now_ns().saturating_add_unsigned(lasts_ns);
        let fate = self.fate((&timeline, turns), (&options.control, &signals), stop_ns);
        let budget_ns = fate.stop_ns.saturating_add(END_NS);
        let ground = Ground {
            storage: Arc::new(self.rack.clone()),
            files: Box::new(SharedFiles(Arc::clone(&self.files))),
            sources: vec![Box::new(Link::new(&self.wire, &timeline))],
        };
        let is_traced = self.is_traced;
        let mut progress = |progress: &record::Progress| {
            signals.began.store(true, Ordering::Relaxed);
            if is_traced {
                let total = &progress.total;
                let (stored, offered) = (total.stored, total.offered);
                let (dropped, at) = (total.writer_drops, progress.acknowledged);
                let now_ns = timeline.now_ns();
                eprintln!(
                    "      {now_ns:>15}  {stored} of {offered} stored, {dropped} dropped, {at}"
                );
            }
            signals.note(|promise| {
                let stored = usize::try_from(progress.total.stored).expect("few packets");
                promise.stored = promise.stored.max(promise.told).max(stored);
                promise.dropped = progress.total.writer_drops;
            });
            if signals.stop.load(Ordering::Relaxed) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let (result, fate) = stage::scope(|scope| {
            let fate = scope.spawn("fate", || fate.run()).expect("a thread");
            let result = record::record_on(ground, &options, clock, &mut progress);
            signals.over.store(true, Ordering::Relaxed);
            (result, fate.join().expect("fate does not panic"))
        });
        let late_ns = timeline.now_ns().saturating_sub(budget_ns);
        if late_ns > 0 && !self.rack.has_crashed() {
            return broken(format!("STUCK: a recording ends {} s late", late_ns / 1_000_000_000));
        }
        self.note(u64::try_from(timeline.now_ns()).unwrap_or(0));
        self.promise = signals.promise();
        Ok((result, fate))
    }
}

impl Course {
    /// What is to befall a recording until it shall end.
    fn fate(
        &mut self,
        (timeline, turns): (&Timeline, &Arc<Turns>),
        (control, signals): (&Control, &Arc<Signals>),
        stop_ns: i64,
    ) -> Fate {
        Fate {
            rack: self.rack.clone(),
            keyring: self.keyring.clone(),
            wire: self.wire.clone(),
            timeline: timeline.clone(),
            turns: Arc::clone(turns),
            random: Random::new(self.random.next()),
            control: control.clone(),
            signals: Arc::clone(signals),
            stop_ns,
            budget: self.bearable(),
            hurt: 0,
            pulled: 0,
            is_fatal: false,
            taken_over: None,
            counters: Counters::default(),
            is_traced: self.is_traced,
        }
    }

    fn options(&mut self) -> Options {
        let random = &mut self.random;
        let input = Input::Interfaces(vec!["sim".to_owned()]);
        let workers = Mutex::new(Random::new(random.next()));
        let deadly = random.pick(&[0, 0, 1, 3]);
        let plays = move |seen: Seen| {
            let mut random = stage::lock(&workers);
            let bits = random.below(28);
            let takes = Duration::from_nanos(random.below(1 << bits));
            let fate = match random.below(400) {
                dice if dice >= deadly * 4 || seen.frames == 0 => None,
                dice => Some(match dice % 4 {
                    0 => WorkerFate::Crashes,
                    1 => WorkerFate::IsKilled,
                    2 => WorkerFate::Hangs,
                    _ => WorkerFate::Says(vec![0xff; 24]),
                }),
            };
            (takes, fate)
        };
        let columns = 8 + random.below(40);
        Options {
            pool_bytes: Some(columns * u64::from(self.piece_bytes)),
            cut_after: Duration::from_millis(20 + random.below(1000)),
            scrub_every: random.percent(30).then(|| Duration::from_secs(random.below(3))),
            control: Control::default(),
            workers: Workers::new(Arc::new(Played::new(plays))),
            ..Options::new(PathBuf::from(place(0)), input)
        }
    }

    /// Members that are called gone for good, as the others hold everything without them.
    fn choose_given_up(&mut self) -> Verdict<Option<(MemberId, u8)>> {
        if !self.random.percent(6) || !self.owed.is_empty() {
            return Ok(None);
        }
        let chosen = self.dispensable()?;
        self.counters.add("recorder: members given up", u64::from(chosen.is_some()));
        Ok(chosen)
    }

    /// Disks that are not there when a recording begins: no more than the parity bears.
    fn choose_absent(&mut self) -> u32 {
        let mut absent = 0_u32;
        for _ in 0..self.shape.1 {
            if self.random.percent(20) {
                absent |= 1 << self.random.below(u64::from(self.rack.count()));
            }
        }
        absent
    }

    /// How many of the members at hand that lack nothing may be lost.
    fn bearable(&self) -> u32 {
        let Ok(reader) = Reader::of_members(self.readers(u32::MAX)) else { return 0 };
        let membership = reader.membership();
        let whole = membership.present().filter(|&member| {
            membership.gap(member).is_empty()
                && (membership.has_joined(member)
                    || membership.superblock().joined_epoch == Epoch::NONE)
        });
        let whole = u32::try_from(whole.count()).expect("few members");
        whole.saturating_sub(u32::from(self.shape.0))
    }

    fn choose_crashes(&mut self) -> Vec<Crash> {
        let crash = |random: &mut Random| match random.below(5) {
            0 => Crash::Kill,
            _ => power_cut(random),
        };
        (0..self.rack.count()).map(|_| crash(&mut self.random)).collect()
    }

    fn choose_power_cuts(&mut self) -> Vec<Crash> {
        (0..self.rack.count()).map(|_| power_cut(&mut self.random)).collect()
    }

    /// Who may read does.
    pub(crate) fn unlocked(&self, reader: Reader) -> Reader {
        reader.unlocked(self.keyring.as_ref())
    }

    /// All that a reader shows now.
    fn acknowledged(&self) -> Sequence {
        let reader = Reader::open(self.readers(u32::MAX));
        let span = reader.ok().and_then(|reader| reader.span());
        span.map_or(Sequence(0), |span| span.acknowledged.sequence)
    }

    /// The members that lie on these disks.
    fn readers(&self, disks: u32) -> Vec<Box<dyn ReadAt>> {
        let seats = self.rack.seats().into_iter().map(|(_, disk)| disk);
        self.rack.readers(bits(seats) & disks)
    }

    /// Threads that no other waits for end soon after the recording.
    pub(crate) fn await_rest(&self, turns: &Turns) -> Verdict {
        let timeline = self.rack.timeline();
        let rest_ns = i64::try_from(REST.as_nanos()).expect("hours");
        let until_ns = timeline.now_ns().saturating_add(rest_ns);
        while !turns.others().is_empty() {
            if timeline.now_ns() > until_ns {
                return broken(format!("STUCK: {:?} are left behind", turns.others()));
            }
            stage::sleep(Duration::from_secs(1));
        }
        Ok(())
    }

    /// A recording that does not begin, or breaks off, has a reason.
    fn judge_refusal(&mut self, error: &Error, absent: u32) -> Verdict<Recorded> {
        let is_refusal = matches!(
            error,
            Error::Volume(
                volume::Error::Quorum { .. }
                    | volume::Error::TooFewLeft { .. }
                    | volume::Error::NoMembers
            )
        );
        if is_refusal && absent > 0 {
            self.counters.add("recordings refused", 1);
            let nothing = Recorded {
                report: None,
                has_crashed: true,
                is_taken_over: false,
                start: Sequence(0),
            };
            return Ok(nothing);
        }
        broken(format!("a recording without a crash, absent {absent:b}, ends: {error}"))
    }

    /// What is there afterwards. A crash leaves to the next mount to say what stays: that is the
    /// next recording's, or one here.
    fn judge(&mut self, recorded: &Recorded) -> Verdict {
        self.rack.heal_all();
        self.rack.plug_in((1 << self.rack.count()) - 1);
        let offered = self.wire.offered();
        self.undecided.extend(offered.iter().map(|it| (it.number, *it)));
        let Promise { mut stored, mut dropped, told } = self.promise;
        if let Some(report) = recorded.report.as_ref().filter(|_| !recorded.has_crashed) {
            (stored, dropped) = (stored.max(told), report.total.writer_drops);
        }
        self.owed.push(Owed { offered, start: recorded.start, first: stored, dropped });
        let is_decided = !recorded.has_crashed && recorded.report.is_some();
        let reader = self.reader(is_decided)?;
        let found = read_all(&reader)?;
        self.judge_statements((&reader, &found), is_decided, recorded.is_taken_over)?;
        self.say(|| {
            let newest = found.packets.last_key_value();
            let membership = reader.membership();
            let gaps: Vec<_> = membership.numbers().map(|it| membership.gap(it)).collect();
            let seats = self.rack.seats();
            let through = reader.superblock().expired_through;
            format!(
                "shows {:?}, expired through {through}, the last packet {newest:?}, {:?}, \
                 seats {seats:?}, gaps {gaps:?}",
                reader.span(),
                self.promise
            )
        });
        self.count(&found);
        let shown = reader.span().map(|span| span.acknowledged).unwrap_or_default();
        let is_hidden = |kept: &Kept| !is_decided && kept.stripe > shown;
        let tail = found.tail.unwrap_or_default();
        check_kept(&self.kept, (&found, tail), is_hidden)?;
        if is_decided {
            self.decide(recorded, (&reader, &found))?;
            self.cut_power("recorder: power cuts behind an end in order");
            return Ok(());
        }
        // What was damaged beyond parity may be gone with the next member.
        let shown = found.packets.iter().filter(|(number, _)| !self.damaged.contains_key(number));
        self.seen.extend(shown.map(|(&number, &(stripe, timestamp))| {
            let at_ns = self.undecided.get(&number).map_or(0, |it| it.at_ns);
            (number, Kept { stripe, timestamp, at_ns })
        }));
        self.cut_power("recorder: power cuts behind a crash");
        if self.random.percent(60) {
            let members = self.rack.seats().into_iter().map(|(_, disk)| disk);
            let devices = self.rack.devices(bits(members));
            let timeline = self.rack.timeline();
            let mounted = writer::mount(devices, &opener(&mut self.random, &timeline));
            let (writer, _) = mounted.map_err(|error| {
                Violation(format!("with everybody there a mount fails: {error}"))
            })?;
            let reader = writer.reader(self.readers(u32::MAX));
            let reader = self.unlocked(reader.map_err(|error| Violation(error.to_string()))?);
            drop(writer);
            self.counters.add("mounts behind a crash", 1);
            let found = read_all(&reader)?;
            self.decide(recorded, (&reader, &found))?;
            self.cut_power("recorder: power cuts behind a mount");
        }
        Ok(())
    }

    /// Perhaps the power goes: what a reader or a mount has read out of a cache may be gone, and
    /// what is certain is not.
    fn cut_power(&mut self, name: &'static str) {
        if !self.random.percent(25) {
            return;
        }
        let crashes = self.choose_power_cuts();
        self.say(|| format!("{name}: {crashes:?}"));
        self.rack.crash(&crashes);
        self.counters.add(name, 1);
    }

    /// What answers would say is true.
    fn judge_statements(
        &mut self,
        there: (&Reader, &Found),
        is_in_order: bool,
        is_taken_over: bool,
    ) -> Verdict {
        let offered = self.wire.offered();
        let is_there = |it: &Offered| there.1.packets.contains_key(&it.number);
        if is_taken_over && !offered.iter().any(is_there) {
            // It had not yet said that it records, and who had taken over ended in order.
            self.counters.add("excused: a recorder was taken over before it stored anything", 1);
        } else {
            self.statements.note(&offered);
        }
        let now = self.rack.timeline().realtime();
        let last = is_in_order.then_some(&*offered);
        self.statements.check(there, now, last, &mut self.counters)
    }

    /// A reader of all that is there.
    fn reader(&self, is_decided: bool) -> Verdict<Reader> {
        let reader = Reader::open(self.readers(u32::MAX));
        let how = if is_decided { "in order" } else { "by a crash" };
        let reader = reader.map(|reader| self.unlocked(reader));
        reader.map_err(|error| Violation(format!("a reader cannot open what ended {how}: {error}")))
    }

    fn count(&mut self, found: &Found) {
        let packets = to_u64(found.packets.len());
        self.note(packets);
        self.counters.add("recorder: packets found", packets);
        self.counters.add("recorder: segments found", to_u64(found.segments.len()));
        self.counters.add("recorder: pieces read by rows", found.by_rows);
    }

    /// It is certain what stays.
    fn decide(&mut self, recorded: &Recorded, (reader, found): (&Reader, &Found)) -> Verdict {
        self.judge_tail(reader, found)?;
        let tail = found.tail.unwrap_or_default();
        check_kept(&self.kept, (found, tail), |_| false)?;
        check_kept(&core::mem::take(&mut self.seen), (found, tail), |_| false)
            .map_err(|Violation(what)| Violation(format!("a reader had shown it: {what}")))?;
        for Owed { offered, start, first, dropped } in core::mem::take(&mut self.owed) {
            let missing = check_promise((&offered, start), (first, dropped), found)?;
            self.counters.add("recorder: packets promised", u64::try_from(first).unwrap_or(0));
            self.counters.add("recorder: packets dropped", missing);
        }
        if let Some(report) = recorded.report.as_ref().filter(|_| !recorded.has_crashed) {
            self.judge_report(report, recorded.start, found)?;
        }
        self.keep(found)?;
        let all = self.kept.values().chain(self.damaged.values()).map(|kept| kept.stripe);
        let claims = check_claims((found, found.tail.unwrap_or_default()), &all)?;
        self.counters.add("recorder: segments that cover all they say", claims);
        let report = recorded.report.as_ref();
        let unreadable = report.map_or(0, |report| report.unreadable);
        self.counters.add("recorder: damage found while indexing", unreadable);
        let is_doubted = report.is_none_or(|report| report.clock_doubt.is_some());
        let is_in_order = report.is_some() && !recorded.has_crashed;
        let counters = &mut self.counters;
        self.ages.judge(self.kept.iter(), reader, (is_in_order, is_doubted), counters)?;
        self.ages.note(is_doubted);
        self.judge_members(reader)
    }

    /// What was given up before the ring needed its place was old enough.
    fn judge_tail(&self, reader: &Reader, found: &Found) -> Verdict {
        let tail = found.tail.unwrap_or_default();
        let Some(span) = reader.span() else { return Ok(()) };
        let superblock = reader.superblock();
        // The head of an orderly stop lies above what it acknowledges.
        let ahead = 3 + u64::from(superblock.window);
        let by_ring = (span.acknowledged.sequence + ahead).saturating_sub(self.slots);
        let early = self.kept.iter().find(|(_, kept)| {
            (by_ring..tail).contains(&kept.stripe.sequence) && !self.ages.may_be_gone(kept)
        });
        early.map_or(Ok(()), |(number, kept)| {
            broken(format!("LOST: packet {number} of {kept:?} was given up, tail {tail}"))
        })
    }

    /// Numbers of a recording that ended in order: all it says is stored is there.
    fn judge_report(&mut self, report: &Report, start: Sequence, found: &Found) -> Verdict {
        let handed = self.wire.offered();
        let total = &report.total;
        let count = to_u64(handed.len());
        if total.stored + total.writer_drops != count {
            return broken(format!("LOST: {count} packets were handed over: {total:?}"));
        }
        self.counters.add("recordings that ended in order", 1);
        let has_lapped = found.tail.is_none_or(|tail| tail > start);
        if has_lapped {
            return Ok(());
        }
        let new = handed.iter().filter(|it| found.packets.contains_key(&it.number)).count();
        if u64::try_from(new) != Ok(total.stored) {
            return broken(format!("LOST: {new} packets are there, the report says {total:?}"));
        }
        self.counters.add("recordings judged to the packet", 1);
        Ok(())
    }

    /// What is there now must stay, and what is not must not come back.
    fn keep(&mut self, found: &Found) -> Verdict {
        let handed = core::mem::take(&mut self.undecided);
        let tail = found.tail.unwrap_or_default();
        self.kept.retain(|_, kept| kept.stripe.sequence >= tail);
        self.damaged.retain(|_, kept| kept.stripe.sequence >= tail);
        for (&number, &(stripe, timestamp)) in &found.packets {
            if self.kept.contains_key(&number) || self.damaged.contains_key(&number) {
                continue;
            }
            let Some(it) = handed.get(&number).filter(|it| it.timestamp == timestamp) else {
                return broken(format!("WRONG BYTES: packet {number} of {timestamp} in {stripe}"));
            };
            self.kept.insert(number, Kept { stripe, timestamp, at_ns: it.at_ns });
        }
        Ok(())
    }

    /// Of the members that lack nothing, as the superblocks say, any K give everything.
    fn judge_members(&mut self, all: &Reader) -> Verdict {
        let membership = all.membership();
        let seats = self.rack.seats();
        let lost = self.random.below(u64::from(self.shape.1) + 1);
        let mut left: Vec<(MemberId, u8)> = seats.clone();
        for _ in 0..lost {
            let index = self.random.index(left.len());
            left.remove(index);
        }
        let disks = bits(left.iter().map(|(_, disk)| *disk));
        let Ok(reader) = Reader::open(self.rack.readers(disks)) else { return Ok(()) };
        let reader = self.unlocked(reader);
        // Few members may not know that the newest epoch has come up.
        if reader.span() != all.span() {
            self.counters.add("recorder: fewer members show less", 1);
            return Ok(());
        }
        let found = read_all(&reader)?;
        let is_bearable = |kept: &Kept| {
            let sequence = kept.stripe.sequence;
            let geometry = membership.geometry_at(sequence);
            let of_then = left.iter().filter(|(member, _)| geometry.has_member(*member));
            let whole = of_then.filter(|(member, _)| membership.is_whole_at(*member, sequence));
            whole.count() >= usize::from(geometry.data_columns)
        };
        self.counters.add("recorder: read with members lost", u64::from(lost > 0));
        let say = |Violation(what): Violation| {
            let left: Vec<MemberId> = left.iter().map(|(member, _)| *member).collect();
            Violation(format!("with the members {left:?} alone: {what}"))
        };
        check_kept(&self.kept, (&found, found.tail.unwrap_or_default()), |kept| !is_bearable(kept))
            .map_err(say)
    }
}

fn power_cut(random: &mut Random) -> Crash {
    match random.below(4) {
        0 => Crash::LoseAll,
        1 => Crash::Rows { seed: random.next() },
        2 => Crash::Writes { seed: random.next() },
        _ => Crash::Sectors { seed: random.next() },
    }
}

/// 20 MB/s, 2 ms for a command, and a small cache.
fn slow_disk() -> Timing {
    Timing {
        command_ns: 2_000_000,
        cache_bytes: 64 << 10,
        cache_bytes_per_s: 20e6,
        ..Timing::flash(1 << 30)
    }
}

/// The index directory, which outlives recordings.
#[derive(Debug)]
struct SharedFiles(Arc<MemoryFiles>);

impl Files for SharedFiles {
    fn open(&self, name: &str) -> io::Result<Option<Box<dyn Content>>> {
        self.0.open(name)
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        self.0.read(name)
    }

    fn write_atomic(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.0.write_atomic(name, bytes)
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        self.0.sync(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }
}
