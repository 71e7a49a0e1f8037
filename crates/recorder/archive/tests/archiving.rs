//! The job on a volume that is made up, and a store that dies at every call.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use core::ops::ControlFlow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use archive::{
    Bounds, CompactReport, Death, Error, Event, Finding, FindingKind, Manners, Memory, MemoryStore,
    Options, Report, Sensor, SessionColumn, Source, StoreError, Table, Uploader, VerifyReport,
    archive, compact, loss_columns, session_schema, verify,
};
use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use bytes::Bytes;
use completeness::{Completeness, Doubt};
use extract::{Lag, OpenSessions, PartReport, Times};
use format::directory::{Gap, GapCause};
use format::head::{StripeId, VolumeId};
use format::session_row::SessionRow;
use found::Found;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use units::{Clock, Epoch, InterfaceId, ManualClock, NANOS_PER_SECOND, Sequence, Timestamp};
use wire::{Address, FiveTuple, Protocol};

const VOLUME: VolumeId = VolumeId([7; 16]);
const HOUR: i64 = 3600 * NANOS_PER_SECOND;
const BEGIN: i64 = 1_795_168_800 * NANOS_PER_SECOND;

/// A part of a ring that is made up: its rows, in the order of their start.
#[derive(Clone, Default)]
struct Part {
    epoch: Epoch,
    rows: Vec<SessionRow>,
    gaps: Vec<Gap>,
}

/// Parts of ten stripes each, the first of which may be overwritten.
struct Ring {
    parts: Vec<Part>,
    overwritten: usize,
    /// Nobody knows what came behind its newest packet.
    is_crashed: bool,
    is_over: bool,
}

fn stripe(sequence: usize) -> StripeId {
    StripeId { sequence: Sequence(u64::try_from(sequence).unwrap()), sub: 0 }
}

fn bounds(place: usize, part: &Part) -> Bounds {
    let time_min = part.rows.iter().map(|row| row.start).min().unwrap_or(Timestamp::MIN);
    // The last part is one stripe: names of its objects begin as those of the end behind it.
    let first = if place == 5 { 60 } else { 10 * place + 1 };
    Bounds { first: stripe(first), last: stripe(10 * place + 10), time_min }
}

/// What is read of a ring.
struct Reading<'a> {
    ring: &'a Ring,
    behind: Vec<usize>,
}

impl Source for Reading<'_> {
    fn look(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn volume(&self) -> VolumeId {
        VOLUME
    }

    fn is_over(&self) -> bool {
        self.ring.is_over
    }

    fn doubts(&self) -> Completeness {
        let times = Times::of(Timestamp(BEGIN), Timestamp(BEGIN + HOUR));
        let doubts = if self.ring.is_crashed { vec![(Doubt::Crash, times)] } else { Vec::new() };
        Completeness { doubts, ..Completeness::default() }
    }

    fn lost_behind(&self, read: StripeId) -> Option<StripeId> {
        let lost = stripe(10 * self.ring.overwritten);
        (lost > read).then_some(lost)
    }

    fn newest(&self) -> Option<StripeId> {
        (!self.ring.parts.is_empty()).then(|| stripe(10 * self.ring.parts.len()))
    }

    fn mark(&self, at: StripeId) -> Option<String> {
        let place = usize::try_from(at.sequence.get()).unwrap().checked_sub(1)? / 10;
        let part = self.ring.parts.get(place).filter(|_| place >= self.ring.overwritten)?;
        let first = part.rows.first().map(|row| row.start.0);
        Some(format!("{at} {} {first:?}", part.epoch))
    }

    fn lag(&self, _: Option<StripeId>) -> Lag {
        Lag::default()
    }

    fn parts(&mut self, read: Option<StripeId>) -> Vec<Bounds> {
        let all = self.ring.parts.iter().enumerate().skip(self.ring.overwritten);
        let behind = all.filter(|(place, _)| Some(stripe(10 * place + 10)) > read);
        let behind: Vec<(usize, Bounds)> =
            behind.map(|(place, part)| (place, bounds(place, part))).collect();
        self.behind = behind.iter().map(|(place, _)| *place).collect();
        behind.into_iter().map(|(_, bounds)| bounds).collect()
    }

    fn read(
        &mut self,
        place: usize,
        open: &mut OpenSessions,
        take: &mut dyn FnMut(&Found) -> ControlFlow<()>,
    ) -> Result<PartReport, Error> {
        let place = self.behind[place];
        let part = &self.ring.parts[place];
        let time_min = bounds(place, part).time_min;
        let mut flow = open.begin((part.epoch, true), time_min, take);
        for (number, row) in part.rows.iter().enumerate() {
            if flow.is_continue() {
                flow = open.add(&format!("{}.0-{number}", 10 * place + 1), row.clone(), take);
            }
        }
        let mut report = PartReport {
            gaps: part.gaps.clone(),
            latest: part.rows.iter().map(|row| row.end).max(),
            ..PartReport::default()
        };
        report.completeness.gaps.clone_from(&part.gaps);
        Ok(report)
    }
}

/// Remembers, or forgets at once.
#[derive(Default)]
struct Remembering(RefCell<Option<String>>, bool);

impl Memory for Remembering {
    fn newest(&self, _: VolumeId) -> Option<String> {
        self.0.borrow().clone()
    }

    fn remember(&self, _: VolumeId, manifest: &str) {
        if self.1 {
            *self.0.borrow_mut() = Some(manifest.to_owned());
        }
    }
}

fn sensor() -> Sensor {
    "dc1".parse().unwrap()
}

fn row(session: u16, session_start: i64, (start, end): (i64, i64), continues: bool) -> SessionRow {
    let at = |ns| Timestamp(BEGIN + ns);
    let tuple = FiveTuple {
        orig: Address::V4([10, 0, 0, 1].into()),
        resp: Address::V4([10, 0, 0, 2].into()),
        orig_port: session,
        resp_port: 443,
        proto: Protocol::TCP,
    };
    let mut row = SessionRow::new(tuple, at(session_start));
    (row.start, row.end, row.continues) = (at(start), at(end), continues);
    row.orig.packets = 1;
    row.names.sni = Some(format!("{session}.example"));
    row
}

/// Minutes of a ring: short sessions, long ones, and one that never says that it is over; a second
/// opening of the volume; a stretch across midnight.
fn ring() -> Ring {
    const MINUTE: i64 = 60 * NANOS_PER_SECOND;
    let mut parts = Vec::new();
    for minute in 0..6_i64 {
        let at = 13 * HOUR + 57 * MINUTE + minute * MINUTE;
        let mut part =
            Part { epoch: if minute < 4 { Epoch(1) } else { Epoch(2) }, ..Part::default() };
        let short = |number| {
            row(u16::try_from(100 * minute + number).unwrap(), at, (at, at + number), false)
        };
        part.rows.extend((0..5).map(short));
        let long = 13 * HOUR + 57 * MINUTE;
        if minute < 4 {
            part.rows.push(row(9001, long, (at, at + MINUTE - 1), minute < 3));
            part.rows.push(row(9002, long, (at, at + MINUTE - 1), true));
        }
        if minute == 2 {
            part.rows.push(row(9003, at, (at, at + 1), true));
        }
        if minute == 5 {
            part.rows.push(row(9004, at, (at, at + 1), true));
        }
        part.rows.sort_by_key(|row| row.start);
        parts.push(part);
    }
    parts[1].gaps.push(Gap {
        cause: GapCause::KernelDrops,
        interface: Some(InterfaceId(0)),
        packets: Some(12),
        bytes: None,
        from: Timestamp(BEGIN),
        to: Timestamp(BEGIN + 1),
    });
    Ring { parts, overwritten: 0, is_crashed: false, is_over: true }
}

/// Sessions of some parts, counted without archiving: each by what all of its rows share.
fn naive(parts: &[Part]) -> BTreeMap<(u16, i64), u64> {
    let mut packets = BTreeMap::new();
    for row in parts.iter().flat_map(|part| &part.rows) {
        let key = (row.tuple.orig_port, row.session_start.0);
        *packets.entry(key).or_default() += row.orig.packets;
    }
    packets
}

fn run_with(
    ring: &Ring,
    store: &MemoryStore,
    memory: &Remembering,
    events: &mut Vec<Event>,
) -> Result<Report, Error> {
    let clock = ManualClock::new(Timestamp(BEGIN));
    let mut tell = |event: &Event| events.push(event.clone());
    let go_on = || ControlFlow::Continue(());
    let mut uploader = Uploader::new(store, &clock, &go_on, &mut tell, Manners::default());
    let options = Options { sensor: sensor(), follow: false };
    let mut source = Reading { ring, behind: Vec::new() };
    archive(&options, &mut source, &mut uploader, memory)
}

fn run(ring: &Ring, store: &MemoryStore) -> Report {
    run_with(ring, store, &Remembering::default(), &mut Vec::new()).unwrap()
}

fn verify_all(store: &MemoryStore) -> VerifyReport {
    let clock = ManualClock::new(Timestamp(BEGIN));
    let go_on = || ControlFlow::Continue(());
    let mut tell = |_: &Event| {};
    let mut uploader = Uploader::new(store, &clock, &go_on, &mut tell, Manners::default());
    verify(&mut uploader, None, &mut |_, _| {}).unwrap()
}

fn compact_at(store: &MemoryStore, now: i64, holder: &str) -> Result<CompactReport, Error> {
    let clock = ManualClock::new(Timestamp(now));
    let go_on = || ControlFlow::Continue(());
    let mut tell = |_: &Event| {};
    let mut uploader = Uploader::new(store, &clock, &go_on, &mut tell, Manners::default());
    compact(&mut uploader, &sensor(), holder, &mut |_| {})
}

/// The sessions that who lists the store reads, with their packets.
fn listed(objects: &BTreeMap<String, Vec<u8>>) -> Vec<((u16, i64), u64)> {
    let mut found = Vec::new();
    for (name, bytes) in objects.iter().filter(|(name, _)| name.starts_with("sessions/")) {
        let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes.clone())).unwrap();
        let mut before = i64::MIN;
        for batch in reader.build().unwrap() {
            let batch = batch.unwrap();
            let column = |name| batch.column_by_name(name).unwrap().as_primitive::<Int64Type>();
            for at in 0..batch.num_rows() {
                let start = column("start_ns").value(at);
                assert!(start >= before, "{name} is in the order of the start");
                before = start;
                let end = Timestamp(column("end_ns").value(at));
                let partition = Table::Sessions.partition(&sensor(), end);
                assert!(name.starts_with(&partition), "{name}: {end}");
                let port = u16::try_from(column("orig_port").value(at)).unwrap();
                let packets = u64::try_from(column("orig_packets").value(at)).unwrap();
                found.push(((port, column("session_start_ns").value(at)), packets));
            }
        }
    }
    found.sort_unstable();
    found
}

#[track_caller]
fn assert_whole(store: &MemoryStore, expected: &BTreeMap<(u16, i64), u64>) {
    let expected: Vec<_> = expected.iter().map(|(key, packets)| (*key, *packets)).collect();
    assert_eq!(listed(&store.objects()), expected);
    let verified = verify_all(store);
    assert_eq!(verified.findings, []);
    assert_eq!(verified.sessions, u64::try_from(expected.len()).unwrap());
}

fn tables(store: &MemoryStore) -> BTreeMap<String, Vec<u8>> {
    let mut objects = store.objects();
    objects.retain(|name, _| !name.starts_with("_wirespool/"));
    objects
}

#[test]
fn each_session_is_there_once_whatever_parts_its_rows_are_in() {
    let (ring, store) = (ring(), MemoryStore::default());
    let report = run(&ring, &store);
    assert_eq!((report.parts, report.sessions), (6, 34));
    assert_eq!((report.open_sessions, report.state()), (0, completeness::State::Incomplete));
    // A run that finds nothing new does not call the archive complete.
    let again = run(&ring, &store);
    assert_eq!((again.parts, again.state()), (0, completeness::State::Complete));
    assert_eq!(again.archive_state, completeness::State::Incomplete);
    let text = archive::archived(&again, ("memory", "dc1"));
    assert!(text.contains("\nthe archive with what was archived before: incomplete"), "{text}");
    assert_whole(&store, &naive(&ring.parts));
    let names = tables(&store);
    assert!(names.keys().any(|name| name.starts_with("losses/sensor=dc1/date=")), "{names:?}");
    assert!(names.keys().any(|name| name.contains("/hour=00/")), "midnight is in it: {names:?}");
}

#[test]
fn a_second_run_changes_nothing() {
    let (ring, store) = (ring(), MemoryStore::default());
    run(&ring, &store);
    let before = store.objects();
    let report = run(&ring, &store);
    assert_eq!((report.parts, report.objects), (0, 0));
    assert_eq!(store.objects(), before);
}

/// A volume comes back from an image of before, and is recorded to: its stripes have the numbers of
/// those that are archived.
#[test]
fn a_volume_that_was_put_back_is_refused_and_not_called_complete() {
    let store = MemoryStore::default();
    run(&ring(), &store);
    let before = store.objects();
    let put_back = |parts: usize, further: usize| {
        let mut ring = ring();
        ring.parts.truncate(parts);
        let later = |number: usize| {
            let at = 15 * HOUR + i64::try_from(number).unwrap();
            Part { epoch: Epoch(2), rows: vec![row(7000, at, (at, at), false)], ..Part::default() }
        };
        ring.parts.extend((0..further).map(later));
        run_with(&ring, &store, &Remembering::default(), &mut Vec::new())
    };
    for further in [0, 1, 2, 3] {
        let refused = put_back(4, further);
        assert!(matches!(refused, Err(Error::PutBack { .. })), "{further}: {refused:?}");
    }
    assert_eq!(store.objects(), before);
    // Behind the same stripe it goes on.
    assert_eq!(put_back(6, 1).unwrap().parts, 1);
    // A stripe that is overwritten cannot be compared.
    let mut ring = ring();
    ring.parts.extend(vec![Part::default(); 4]);
    ring.overwritten = 8;
    assert_eq!(run(&ring, &store).parts, 2);
}

#[test]
fn parts_that_come_one_by_one_give_the_same_bytes_as_all_at_once() {
    let (all, at_once, one_by_one) = (ring(), MemoryStore::default(), MemoryStore::default());
    run(&all, &at_once);
    for count in 1..=all.parts.len() {
        let parts = all.parts[..count].to_vec();
        let is_over = count == all.parts.len();
        run(&Ring { parts, overwritten: 0, is_crashed: false, is_over }, &one_by_one);
    }
    assert_eq!(tables(&one_by_one), tables(&at_once));
}

#[test]
fn a_run_that_is_killed_at_any_call_is_followed_by_one_that_goes_on() {
    let ring = ring();
    let reference = MemoryStore::default();
    run(&ring, &reference);
    let expected = naive(&ring.parts);
    for remembers in [false, true] {
        for is_done in [false, true] {
            for at_call in 0..reference.calls() {
                let memory = Remembering(RefCell::default(), remembers);
                let dying = MemoryStore::default();
                dying.die(Death { at_call, is_done });
                let ended = run_with(&ring, &dying, &memory, &mut Vec::new()).unwrap();
                assert!(ended.is_stopped, "call {at_call}");
                assert!(ended.completeness.stopped, "call {at_call}: it is not complete");
                let seen: Vec<_> = listed(&dying.objects()).into_iter().map(|it| it.0).collect();
                let distinct: BTreeSet<_> = seen.iter().collect();
                assert_eq!(seen.len(), distinct.len(), "nothing is there twice at {at_call}");
                let store = MemoryStore::of(dying.objects());
                run_with(&ring, &store, &memory, &mut Vec::new()).unwrap();
                assert_whole(&store, &expected);
                assert_eq!(tables(&store), tables(&reference), "the same bytes at {at_call}");
            }
        }
    }
}

#[test]
fn two_kills_in_a_row_do_no_harm() {
    let ring = ring();
    let expected = naive(&ring.parts);
    let mut at_calls = 7_u64;
    for _ in 0..60 {
        let mut objects = BTreeMap::new();
        for _ in 0..3 {
            at_calls = at_calls.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let store = MemoryStore::of(objects);
            let at_call = (at_calls >> 33) % 60;
            store.die(Death { at_call, is_done: at_calls & (1 << 40) == 0 });
            run(&ring, &store);
            objects = store.objects();
        }
        let store = MemoryStore::of(objects);
        run(&ring, &store);
        assert_whole(&store, &expected);
    }
}

#[test]
fn what_the_ring_has_overwritten_is_said_counted_and_stored_as_a_loss() {
    let whole = ring();
    for killed_at in [None, Some(14), Some(16), Some(18), Some(20), Some(22)] {
        let first = Ring {
            parts: whole.parts[..2].to_vec(),
            overwritten: 0,
            is_crashed: false,
            is_over: false,
        };
        let mut store = MemoryStore::default();
        if let Some(at_call) = killed_at {
            store.die(Death { at_call, is_done: true });
        }
        run(&first, &store);
        store = MemoryStore::of(store.objects());
        let later = Ring { overwritten: 4, ..ring() };
        let mut events = Vec::new();
        let report = run_with(&later, &store, &Remembering::default(), &mut events).unwrap();
        assert!(report.overwritten_slots >= 20, "{killed_at:?}: {report:?}");
        assert_eq!(report.state(), completeness::State::Incomplete);
        assert!(events.iter().any(|event| matches!(event, Event::Overwritten { .. })));
        let seen: Vec<_> = listed(&store.objects()).into_iter().map(|it| it.0).collect();
        let distinct: BTreeSet<_> = seen.iter().copied().collect();
        assert_eq!(seen.len(), distinct.len(), "nothing is there twice");
        // All that could be read is there, and what was stored before is still there.
        let held = naive(&later.parts[4..]);
        assert!(held.keys().all(|key| distinct.contains(key)), "{killed_at:?}");
        assert_eq!(verify_all(&store).findings, [], "{killed_at:?}");
        let lost = tables(&store).keys().filter(|name| name.starts_with("losses/")).count();
        assert!(lost > 0);
    }
}

#[test]
fn a_store_that_is_away_is_waited_for_and_that_is_said() {
    let (ring, store) = (ring(), MemoryStore::default());
    store.stay_away(12);
    let clock = ManualClock::new(Timestamp(BEGIN));
    let mut events = Vec::new();
    let stop_at = Timestamp(BEGIN + 2 * HOUR);
    let mut tell = |event: &Event| events.push(event.clone());
    let go_on = || {
        let is_late = clock.realtime() > stop_at;
        if is_late { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let manners = Manners { waits: true, rate: None };
    let mut uploader = Uploader::new(&store, &clock, &go_on, &mut tell, manners);
    let options = Options { sensor: sensor(), follow: true };
    let mut source = Reading { ring: &ring, behind: Vec::new() };
    let memory = Remembering::default();
    let report = archive(&options, &mut source, &mut uploader, &memory).unwrap();
    assert!(report.is_stopped && !report.completeness.stopped, "it has no other end");
    let away = events.iter().filter(|event| matches!(event, Event::Away { .. })).count();
    assert!((2..=6).contains(&away), "once a minute: {away}");
    assert!(events.iter().any(|event| matches!(event, Event::Back { .. })));
    assert_whole(&store, &naive(&ring.parts));
}

#[test]
fn a_store_that_stays_away_ends_a_run_that_does_not_follow() {
    let (ring, store) = (ring(), MemoryStore::default());
    store.stay_away(1000);
    let ended = run_with(&ring, &store, &Remembering::default(), &mut Vec::new());
    assert!(matches!(ended, Err(Error::Store(StoreError::Away { .. }))), "{ended:?}");
}

#[test]
fn no_more_is_stored_than_the_rate_allows() {
    let (ring, store) = (ring(), MemoryStore::default());
    let clock = ManualClock::new(Timestamp(BEGIN));
    let go_on = || ControlFlow::Continue(());
    let mut tell = |_: &Event| {};
    let manners = Manners { waits: false, rate: Some(1000) };
    let mut uploader = Uploader::new(&store, &clock, &go_on, &mut tell, manners);
    let options = Options { sensor: sensor(), follow: false };
    let mut source = Reading { ring: &ring, behind: Vec::new() };
    archive(&options, &mut source, &mut uploader, &Remembering::default()).unwrap();
    let bytes: usize = tables(&store).values().map(Vec::len).sum();
    let took_s = clock.realtime().since(Timestamp(BEGIN)) / NANOS_PER_SECOND;
    assert!(usize::try_from(took_s).unwrap() * 1000 + 20_000 > bytes, "{bytes} in {took_s} s");
    assert!(took_s > 20, "{took_s}");
}

#[test]
fn verify_finds_a_flipped_bit_a_missing_a_foreign_object_and_a_missing_manifest() {
    let (ring, store) = (ring(), MemoryStore::default());
    run(&ring, &store);
    let kinds = |objects: BTreeMap<String, Vec<u8>>| {
        let report = verify_all(&MemoryStore::of(objects));
        report.findings.iter().map(|it| it.kind).collect::<Vec<_>>()
    };
    let of = |part: &str| store.objects().keys().find(|it| it.contains(part)).unwrap().clone();
    let (session, loss) = (of("sessions/"), of("losses/"));
    for name in [&session, &loss] {
        let mut objects = store.objects();
        objects.get_mut(name).unwrap()[40] ^= 1;
        assert_eq!(kinds(objects), [FindingKind::Damaged]);
        let mut objects = store.objects();
        objects.get_mut(name).unwrap().pop();
        assert_eq!(kinds(objects), [FindingKind::Damaged]);
        let mut objects = store.objects();
        objects.remove(name);
        assert_eq!(kinds(objects), [FindingKind::Missing]);
    }
    let mut objects = store.objects();
    objects.insert("sessions/sensor=dc1/date=2026-11-20/hour=00/x.parquet".into(), vec![1]);
    objects.insert("sessions/sensor=other/date=2026-11-20/hour=00/x.parquet".into(), vec![1]);
    assert_eq!(kinds(objects), [FindingKind::Foreign; 2]);
    let manifests: Vec<String> =
        store.objects().into_keys().filter(|name| name.contains("/manifests/")).collect();
    let mut objects = store.objects();
    objects.remove(&manifests[2]);
    assert!(kinds(objects).contains(&FindingKind::ManifestMissing));
    let mut objects = store.objects();
    objects.insert(manifests[2].clone(), b"{".to_vec());
    assert!(kinds(objects).contains(&FindingKind::Damaged));

    // Whoever writes manifests may want files elsewhere to be read, or merged and removed.
    let text = String::from_utf8(store.objects()[&manifests[2]].clone()).unwrap();
    for name in ["../sessions/", "/sessions/", "sessions//", "sessions/./", "sessions/../../"] {
        let leading_out = text.replace("\"sessions/", &format!("\"{name}"));
        assert_ne!(leading_out, text);
        let mut objects = store.objects();
        objects.insert(manifests[2].clone(), leading_out.into_bytes());
        let store = MemoryStore::of(objects);
        let findings = verify_all(&store).findings;
        let is_told = |it: &Finding| it.why.contains("names an object outside of the store");
        assert!(findings.iter().any(is_told), "{name}: {findings:?}");
        let merged = compact_at(&store, BEGIN + 40 * HOUR, "a");
        assert!(matches!(merged, Err(Error::Damaged { .. })), "{name}: {merged:?}");
    }
}

#[test]
fn open_sessions_that_are_damaged_are_a_remark_and_a_loss() {
    let whole = ring();
    let store = MemoryStore::default();
    run(
        &Ring {
            parts: whole.parts[..2].to_vec(),
            overwritten: 0,
            is_crashed: false,
            is_over: false,
        },
        &store,
    );
    let mut objects = store.objects();
    let open = objects.keys().find(|name| name.contains("/open/")).unwrap().clone();
    objects.get_mut(&open).unwrap()[0] ^= 1;
    let store = MemoryStore::of(objects);
    let mut events = Vec::new();
    let report = run_with(&whole, &store, &Remembering::default(), &mut events).unwrap();
    assert!(events.iter().any(|event| matches!(event, Event::Remark { .. })), "{events:?}");
    assert_eq!(report.state(), completeness::State::Incomplete);
    assert_eq!(verify_all(&store).findings, []);
}

#[test]
fn what_is_not_known_behind_a_crash_is_not_called_complete() {
    let part = Part { gaps: Vec::new(), ..ring().parts[0].clone() };
    for (is_crashed, is_over, expected) in [
        (false, true, completeness::State::Complete),
        (true, true, completeness::State::Unknown),
        // While a recorder runs, what is closed is archived, and the rest is not asked for.
        (true, false, completeness::State::Complete),
    ] {
        let ring = Ring { parts: vec![part.clone()], overwritten: 0, is_crashed, is_over };
        let store = MemoryStore::default();
        for _ in 0..2 {
            let report = run(&ring, &store);
            assert_eq!((report.state(), report.archive_state), (expected, expected));
        }
    }
}

#[test]
fn merged_objects_have_the_same_sessions_and_a_merge_may_be_killed_at_any_call() {
    let ring = ring();
    let archived = MemoryStore::default();
    run(&ring, &archived);
    let expected = naive(&ring.parts);
    let now = BEGIN + 40 * HOUR;
    let reference = MemoryStore::of(archived.objects());
    let report = compact_at(&reference, now, "a").unwrap();
    assert_eq!((report.hours, report.objects), (2, 2), "{report:?}");
    assert_whole(&reference, &expected);
    let sessions = |store: &MemoryStore| {
        let objects = store.objects();
        objects.keys().filter(|name| name.starts_with("sessions/")).count()
    };
    assert_eq!(sessions(&reference), 2);
    let again = MemoryStore::of(reference.objects());
    assert_eq!(compact_at(&again, now, "a").unwrap().merged, 0);
    for is_done in [false, true] {
        for at_call in 0..reference.calls() {
            let dying = MemoryStore::of(archived.objects());
            dying.die(Death { at_call, is_done });
            drop(compact_at(&dying, now, "a"));
            // Who goes by the manifests sees each session once, at any time.
            let seen = verify_all(&MemoryStore::of(dying.objects()));
            let wrong = seen.findings.iter().filter(|it| it.kind != FindingKind::Foreign);
            assert_eq!(wrong.count(), 0, "call {at_call}: {:?}", seen.findings);
            assert_eq!(seen.sessions, u64::try_from(expected.len()).unwrap());
            // Another process waits for the lease to end.
            let store = MemoryStore::of(dying.objects());
            let later = compact_at(&store, now + HOUR, "b").unwrap();
            assert!(!later.is_stopped);
            assert_whole(&store, &expected);
            assert_eq!(tables(&store), tables(&reference), "call {at_call}");
        }
    }
}

#[test]
fn one_process_merges_at_a_time() {
    let ring = ring();
    let archived = MemoryStore::default();
    run(&ring, &archived);
    let now = BEGIN + 40 * HOUR;
    let dying = MemoryStore::of(archived.objects());
    dying.die(Death { at_call: 6, is_done: true });
    drop(compact_at(&dying, now, "a"));
    let store = MemoryStore::of(dying.objects());
    let refused = compact_at(&store, now + NANOS_PER_SECOND, "b");
    assert!(matches!(&refused, Err(Error::Leased { holder, .. }) if holder == "a"), "{refused:?}");
    assert!(compact_at(&store, now + HOUR, "b").is_ok());
}

#[test]
fn a_lease_is_given_back_by_who_fails_and_none_is_for_years() {
    let ring = ring();
    let archived = MemoryStore::default();
    run(&ring, &archived);
    let now = BEGIN + 40 * HOUR;
    let mut objects = archived.objects();
    let manifest = objects.keys().find(|name| name.contains("/manifests/")).unwrap().clone();
    objects.insert(manifest, b"{".to_vec());
    let store = MemoryStore::of(objects);
    for (seconds, holder) in [(0, "a"), (1, "b")] {
        let failed = compact_at(&store, now + seconds * NANOS_PER_SECOND, holder);
        assert!(!matches!(failed, Ok(_) | Err(Error::Leased { .. })), "{holder}: {failed:?}");
    }
    // A clock was wrong that said so.
    let mut objects = archived.objects();
    let lease = "_wirespool/lease/sensor=dc1.json".to_owned();
    for (until, is_held) in [(now + 50 * 365 * 24 * HOUR, false), (now + HOUR / 10, true)] {
        let form = format!("{{\"holder\":\"x\",\"until_ns\":{until}}}");
        objects.insert(lease.clone(), form.into_bytes());
        let store = MemoryStore::of(objects.clone());
        assert_eq!(compact_at(&store, now, "a").is_err(), is_held, "{until}");
    }
}

#[test]
fn hours_that_are_not_over_are_left_alone() {
    let (ring, store) = (ring(), MemoryStore::default());
    run(&ring, &store);
    let before = store.objects();
    let report = compact_at(&store, BEGIN + 14 * HOUR, "a").unwrap();
    assert_eq!((report.merged, store.objects()), (0, before));
}

#[test]
fn a_file_says_what_it_is_and_is_found_by_filters() {
    let (ring, store) = (ring(), MemoryStore::default());
    run(&ring, &store);
    let objects = store.objects();
    let (name, bytes) = objects.iter().find(|(name, _)| name.starts_with("sessions/")).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes.clone())).unwrap();
    let metadata = reader.metadata();
    let pairs = metadata.file_metadata().key_value_metadata().unwrap();
    let text = pairs.iter().find(|pair| pair.key == "wirespool.archive").unwrap();
    let text = text.value.as_deref().unwrap();
    assert!(
        text.starts_with("version 1\ntable sessions\nsensor dc1\nvolume 0707"),
        "{name}: {text}"
    );
    let group = metadata.row_group(0);
    let has_filter: Vec<String> = group
        .columns()
        .iter()
        .filter(|column| column.bloom_filter_offset().is_some())
        .map(|column| column.column_path().string())
        .collect();
    assert_eq!(has_filter, ["session_id", "community_id", "orig_ip", "resp_ip", "sni"]);
    assert!(group.sorting_columns().is_some_and(|order| order.len() == 2));
    assert_eq!(reader.schema().fields(), session_schema().fields());
}

/// What `deploy/trino/engine` makes, column by column.
#[test]
fn the_tables_of_an_engine_have_these_columns_in_this_order() {
    let tables = include_str!("../../../../deploy/trino/tables.sql");
    let columns_of = |table: &str| -> Vec<String> {
        let text = tables.split(&format!("CREATE TABLE IF NOT EXISTS {table} (\n")).nth(1).unwrap();
        let text = text.split("\n) WITH").next().unwrap();
        text.lines().map(|line| line.trim().trim_end_matches(',').to_owned()).collect()
    };
    let partitions = |names: &[&str]| -> Vec<String> {
        names.iter().map(|name| format!("{name} VARCHAR")).collect()
    };
    let sessions = SessionColumn::all().map(|it| format!("{} {}", it.name, it.sql_type()));
    let expected = sessions.chain(partitions(&["sensor", "date", "hour"])).collect::<Vec<_>>();
    assert_eq!(columns_of("session_files"), expected);
    let losses = loss_columns().into_iter().map(|(name, of, _)| format!("{name} {of}"));
    let expected = losses.chain(partitions(&["sensor", "date"])).collect::<Vec<_>>();
    assert_eq!(columns_of("loss_files"), expected);
}

/// The guide lists every column, and no other, with type and meaning.
#[test]
fn the_guide_has_the_columns_as_they_are() {
    let guide = include_str!("../../../../docs/archive.md");
    let mut missing = Vec::new();
    for column in SessionColumn::all() {
        let bloom = if column.has_bloom_filter() { " (B)" } else { "" };
        let (name, of) = (column.name, column.sql_type());
        let line = format!("| `{name}` | {of}{bloom} | {} |", column.meaning.replace('|', "\\|"));
        missing.push(line);
    }
    for (name, of, meaning) in loss_columns() {
        missing.push(format!("| `{name}` | {of} | {meaning} |"));
    }
    missing.retain(|line| !guide.lines().any(|it| it == line));
    assert!(missing.is_empty(), "the guide lacks:\n{}", missing.join("\n"));
    let listed = guide.lines().filter(|line| line.starts_with("| `") && line.contains("| "));
    let listed =
        listed.filter(|it| ["BIGINT", "VARCHAR", "BOOLEAN"].iter().any(|of| it.contains(of)));
    assert_eq!(listed.count(), SessionColumn::all().count() + loss_columns().len());
}

/// Set where the test runs again with credentials.
#[cfg(feature = "s3")]
const ENDPOINT: &str = "WIRESPOOL_TEST_S3";

/// A run against versitygw, in a process with its credentials.
#[cfg(feature = "s3")]
#[test]
fn a_bucket_of_a_real_server_is_an_archive() {
    use std::process::{Command, Stdio};
    use std::sync::Arc;
    use std::time::{Duration, Instant};
    if let Ok(endpoint) = std::env::var(ENDPOINT) {
        let access = archive::Access {
            endpoint: Some(endpoint),
            allow_http: false,
            is_to_stop: Arc::new(|| false),
        };
        let store = archive::open(&"s3://sessions/prod".parse().unwrap(), &access).unwrap();
        let clock = ManualClock::new(Timestamp(BEGIN + 40 * HOUR));
        let go_on = || ControlFlow::Continue(());
        let mut tell = |_: &Event| {};
        let manners = Manners::default();
        let mut uploader = Uploader::new(&*store, &clock, &go_on, &mut tell, manners);
        let (ring, options) = (ring(), Options { sensor: sensor(), follow: false });
        for expected in [34, 0] {
            let mut source = Reading { ring: &ring, behind: Vec::new() };
            let memory = Remembering::default();
            let report = archive(&options, &mut source, &mut uploader, &memory).unwrap();
            assert_eq!(report.sessions, expected);
        }
        let reference = MemoryStore::default();
        run(&ring, &reference);
        for (name, bytes) in tables(&reference) {
            assert_eq!(store.get(&name).unwrap(), Some(bytes), "{name}");
        }
        let verified = verify(&mut uploader, None, &mut |_, _| {}).unwrap();
        assert_eq!((verified.sessions, verified.findings), (34, vec![]));
        let merged = compact(&mut uploader, &sensor(), "a", &mut |_| {}).unwrap();
        assert_eq!(merged.objects, 2);
        let verified = verify(&mut uploader, None, &mut |_, _| {}).unwrap();
        assert_eq!((verified.sessions, verified.findings), (34, vec![]));
        assert!(store.put_new("once", b"").unwrap());
        assert!(!store.put_new("once", b"").unwrap(), "a put is conditional");
        let nowhere = archive::open(&"s3://nowhere/x".parse().unwrap(), &access).unwrap();
        let refused = nowhere.put("x", b"");
        assert!(matches!(refused, Err(StoreError::Refused { .. })), "{refused:?}");
        return;
    }
    let home = std::env::var("HOME").unwrap_or_default();
    let program = format!("{home}/.cache/wirespool-tests/versitygw");
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("sessions")).unwrap();
    let mut server = Command::new(program);
    server.env("ROOT_ACCESS_KEY", "test").env("ROOT_SECRET_KEY", "testsecret");
    server.args(["--port", "127.0.0.1:17072", "--region", "us-east-1", "posix"]);
    let server = server.arg(folder.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let Ok(mut server) = server else {
        println!("not run: no versitygw in the cache of the tests");
        return;
    };
    let begun = Instant::now();
    while std::net::TcpStream::connect("127.0.0.1:17072").is_err() {
        assert!(begun.elapsed() < Duration::from_secs(20), "the server listens");
        std::thread::yield_now();
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "a_bucket_of_a_real_server_is_an_archive", "--nocapture"]);
    again.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "testsecret");
    let ran = again.env("AWS_REGION", "us-east-1").env(ENDPOINT, "http://127.0.0.1:17072");
    let ran = ran.output().unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(ran.status.success(), "{ran:?}");
}
