//! Recorders killed at random moments: what they had acknowledged is there, byte for byte.

use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use format::directory::GapCause;
use format::head::StripeId;
use host::SystemClock;
use index::{Columns, Segment};
use units::{Epoch, Timestamp};
use volume::Reader;

use crate::child::{Recorder, Task, await_release};
use crate::numbered::{capture, feed, identify, time_ns};
use crate::volumes::{assert_clean, folder, new_volume, open, run, stripes};

/// What a series of kills on one volume has shown.
#[derive(Default)]
struct Series {
    /// Packets that each round's recorder said were acknowledged.
    acknowledged: Vec<u64>,
    mounts: Vec<Duration>,
    /// Epochs of which a stripe was seen.
    epochs: BTreeSet<Epoch>,
    crash_gaps: BTreeSet<Epoch>,
    kept: u64,
    voided: u64,
    short_stripes: usize,
    rows: usize,
    last: u64,
}

/// A volume, and how it is recorded onto.
struct Ground {
    folder: tempfile::TempDir,
    piece_bytes: u32,
    size_bytes: u64,
    kills: u32,
    seed: u64,
}

/// Marsaglia's xorshift: enough to choose moments.
fn next(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

fn run_series(ground: &Ground) -> Series {
    let volume = ground.folder.path().join("volume");
    new_volume(&volume, ground.piece_bytes, ground.size_bytes);
    let mut series = Series::default();
    let mut seed = ground.seed;
    for round in 0..ground.kills {
        let task = Task {
            volume: volume.clone(),
            inputs: vec!["-".into()],
            with_index: round % 4 != 3,
            cut_after_ms: [1000, 50][round as usize % 2],
        };
        // From a trickle to all that the pipe carries.
        let burst = [20, 200, 100_000][next(&mut seed) as usize % 3];
        let after = Duration::from_micros(next(&mut seed) % 200_000);
        let (recorder, input) = Recorder::start(&task);
        let told = std::thread::scope(|scope| {
            scope.spawn(|| feed(input, round, burst, Duration::from_millis(2)));
            std::thread::sleep(after);
            recorder.kill()
        });
        assert_eq!(told.failure, None);
        series.acknowledged.push(told.stored);
        await_release(&volume);
        check(&volume, ground, &mut series);
    }
    finish(&volume, ground.kills, &mut series);
    series
}

/// What holds after every kill: as the volume lies there, and after a mount of a copy of it.
fn check(volume: &Path, ground: &Ground, series: &mut Series) {
    let reader = open(volume);
    assert_clean(&reader);
    series.rows = series.rows.max(check_index(&reader));
    let copy = ground.folder.path().join("copy");
    fs::copy(volume, &copy).unwrap();
    let start = Instant::now();
    let device = device::open(&copy, &device::Options::default()).unwrap();
    let (writer, recovery) =
        writer::mount(vec![device], &writer::Opener::alone(&SystemClock)).unwrap();
    series.mounts.push(start.elapsed());
    drop(writer);
    assert_eq!(recovery.damaged, 0);
    series.kept += recovery.kept;
    series.voided += recovery.voided;
    let mounted = open(&copy);
    assert_clean(&mounted);
    check_index(&mounted);
    check_cache(&volume.with_extension("index"), mounted.span().unwrap().acknowledged);
    check_packets(&mounted, series);
}

/// Every round's packets from its first one on, none missing, at least those that were
/// acknowledged; and every recording after another names the crash before it in its first stripe.
fn check_packets(reader: &Reader, series: &mut Series) {
    let span = reader.span().unwrap();
    let mut expected: Option<(u32, u64)> = None;
    let mut complete = BTreeSet::new();
    let mut before = None;
    for stripe in stripes(reader) {
        series.short_stripes += usize::from(stripe.id.sub > 0);
        let is_first_of_epoch = before.is_some_and(|epoch| epoch != stripe.epoch);
        before = Some(stripe.epoch);
        let crashes = stripe.gaps.iter().filter(|gap| gap.cause == GapCause::Crash).count();
        if is_first_of_epoch {
            assert_eq!(crashes, 1, "the crash before epoch {} is stored", stripe.epoch);
            series.crash_gaps.insert(stripe.epoch);
        }
        series.epochs.insert(stripe.epoch);
        for (_, (_, time, original_len, bytes)) in stripe.packets {
            let (round, number) = identify(&bytes);
            assert_eq!((time, original_len as usize), (time_ns(round, number), bytes.len()));
            match expected {
                Some((last, next)) if last == round => assert_eq!(number, next),
                Some((last, next)) => {
                    assert!(last < round && number == 0, "rounds begin with their first packet");
                    complete.insert((last, next));
                }
                None => {}
            }
            expected = Some((round, number + 1));
        }
    }
    complete.extend(expected);
    for (round, told) in series.acknowledged.iter().enumerate() {
        let round = round as u32;
        let found = complete.iter().find(|(known, _)| *known == round).map(|(_, count)| *count);
        // What lies before the oldest visible packet has been overwritten by later ones.
        let is_gone = complete.first().is_some_and(|(oldest, _)| *oldest > round);
        let has_lapped = span.tail > reader.geometry().first_sequence();
        assert!(
            found.unwrap_or(0) >= *told || (found.is_none() && is_gone && has_lapped),
            "{told} packets of round {round} were acknowledged, there are {found:?}"
        );
    }
    series.last = span.acknowledged.sequence.get() / reader.geometry().slots;
}

/// Rows of the segments in the ring; none points beyond the watermark.
fn check_index(reader: &Reader) -> usize {
    let Some(span) = reader.span() else { return 0 };
    let Some(newest) = reader.newest_index() else { return 0 };
    let directory = reader.index(newest).unwrap().directory;
    let mut rows = 0;
    for entry in directory.iter().filter(|entry| entry.index.sequence >= span.tail) {
        assert!(entry.index <= span.acknowledged);
        let file = reader.index(entry.index).unwrap();
        rows += check_segment(file.parquet, span.acknowledged);
    }
    rows
}

fn check_segment(parquet: Vec<u8>, acknowledged: StripeId) -> usize {
    let segment = Segment::open(parquet.into()).unwrap();
    assert!(segment.meta().last <= acknowledged);
    let mut rows = 0;
    let times = Timestamp::MIN..=Timestamp::MAX;
    let mut visit = |_, slice: format::session_row::SessionRow| {
        for piece in slice.pieces.iter().map(|span| span.piece) {
            let stripe = StripeId { sequence: piece.sequence, sub: piece.sub };
            assert!(stripe <= acknowledged, "a row points at {stripe} above {acknowledged}");
        }
        rows += 1;
        ControlFlow::Continue(())
    };
    segment.rows(Columns::All, &times, &mut visit).unwrap();
    rows
}

/// The cache may know only what is durable.
fn check_cache(directory: &Path, acknowledged: StripeId) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let files = entries.map(|entry| entry.unwrap().path());
    for path in files.filter(|path| path.extension().is_some_and(|it| it == "parquet")) {
        check_segment(fs::read(path).unwrap(), acknowledged);
    }
}

/// After the last kill a recording runs to its end, and the one after that finds no crash.
fn finish(volume: &Path, round: u32, series: &mut Series) {
    for (round, is_clean) in [(round, false), (round + 1, true)] {
        let file = volume.with_extension("pcap");
        fs::write(&file, capture(round, 1000)).unwrap();
        let task = Task {
            volume: volume.to_owned(),
            inputs: vec![file],
            with_index: true,
            cut_after_ms: 1000,
        };
        let report = run(&task.options());
        assert_eq!((report.total.stored, report.recovery.clean), (1000, is_clean));
        series.acknowledged.push(1000);
    }
    assert_clean(&open(volume));
}

fn report(name: &str, series: &Series) {
    let mut mounts = series.mounts.clone();
    mounts.sort();
    let told = series.acknowledged.iter().filter(|&&count| count > 0).count();
    println!(
        "{name}: {} kills, {told} after an acknowledgement, {} crash gaps, {} laps, \
         {} stripes kept, {} slots voided, {} short stripes seen, {} rows at most, \
         mount {:?} median, {:?} worst",
        mounts.len(),
        series.crash_gaps.len(),
        series.last,
        series.kept,
        series.voided,
        series.short_stripes,
        series.rows,
        mounts[mounts.len() / 2],
        mounts.last().unwrap()
    );
    assert!(mounts.iter().all(|&mount| mount < Duration::from_secs(1)));
}

fn seed() -> u64 {
    let seed = u64::from_le_bytes(host::random_bytes().unwrap()) | 1;
    println!("seed {seed:#x}");
    seed
}

fn ground(folder: tempfile::TempDir, piece_bytes: u32, size_bytes: u64, kills: u32) -> Ground {
    Ground { folder, piece_bytes, size_bytes, kills, seed: seed() }
}

#[test]
fn nothing_acknowledged_is_lost_in_small_rings() {
    let mut told = 0;
    for (piece, size, kills) in [(16 << 10, 6 << 20, 50), (64 << 10, 8 << 20, 50)] {
        let series = run_series(&ground(folder(), piece, size, kills));
        report(&format!("{} KiB pieces", piece >> 10), &series);
        told += series.acknowledged.iter().filter(|&&count| count > 0).count();
        assert!(series.kept > 0 && series.last > 1 && series.rows > 0);
    }
    assert!(told > 25, "most recorders were killed while recording, not before");
}

#[test]
fn nothing_acknowledged_is_lost_in_larger_pieces() {
    for (piece, size, kills) in [(512 << 10, 24 << 20, 45), (2 << 20, 48 << 20, 25)] {
        let series = run_series(&ground(folder(), piece, size, kills));
        report(&format!("{} KiB pieces", piece >> 10), &series);
    }
}

/// On a disk, where writes take their time and go past the page cache.
#[test]
fn nothing_acknowledged_is_lost_on_a_disk() {
    let folder = tempfile::tempdir_in(PathBuf::from(env!("CARGO_TARGET_TMPDIR"))).unwrap();
    let series = run_series(&ground(folder, 256 << 10, 16 << 20, 30));
    report("256 KiB pieces on a disk", &series);
    assert!(series.kept > 0);
}
