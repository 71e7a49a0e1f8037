//! Power cuts: the disk as it may lie there at any moment of a recording, opened and checked.
//!
//! A point is a place in the log of writes. The disk then holds every write up to the last flush
//! before the point; of the writes behind that flush some are there, some are not, and some are
//! torn. Nothing that a flush covered is missing, so nothing acknowledged may be: what was
//! acknowledged at the point stands in the last mark before it.
//!
//! At every third point two members have lied about flushes as well: of what they were asked to
//! write shortly before, covered by a flush or not, some is there, some is not, some is torn.
//!
//! Each state is laid out as files, one a member, and goes through the product's own program: read
//! without a mount, mounted, verified, extracted; as many states at a time as there are processors.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use anyhow::{Context, Result, ensure};
use units::Random;

use crate::case::Slices;
use crate::guest;
use crate::log::{self, Entry};
use crate::packets::Found;
use crate::pcap;

const ROW_BYTES: usize = 4096;
const SECTOR_BYTES: usize = 512;

/// What to replay, and how thoroughly.
#[derive(Debug)]
pub(crate) struct Replay<'a> {
    pub(crate) log: &'a Path,
    pub(crate) slices: Slices,
    pub(crate) wirespool: &'a Path,
    /// Where the states are laid out.
    pub(crate) folder: PathBuf,
    pub(crate) points: usize,
    pub(crate) seed: u64,
}

/// How far back a member lies, in entries: a few stripes of six members.
const LIE_ENTRIES: usize = 48;
/// Members that lie at the same time; parity has to make up for them.
const LIARS: u64 = 2;
/// One of so many points has liars.
const LIARS_EVERY: usize = 3;

/// Where the power fails.
#[derive(Clone, Copy, Debug)]
struct Point {
    /// Entries before this index have reached the disk's cache.
    index: usize,
    /// Those before this one are durable.
    durable: usize,
    /// Packets acknowledged.
    acknowledged: u64,
    /// Of several states of this place the one by this number.
    variant: u64,
}

/// The disk as the power left it.
#[derive(Debug)]
struct State {
    point: Point,
    /// Entries of the log.
    of: usize,
    has_liars: bool,
    disk: Vec<u8>,
}

impl Replay<'_> {
    /// Checks every point, several at a time; returns what was done, or an error that names the
    /// first bad one.
    pub(crate) fn run(&self) -> Result<String> {
        let log = fs::read(self.log).context("cannot read the log of writes")?;
        let entries = log::read(&log)?;
        let (points, flushes) = self.choose(&entries);
        let last = *points.last().context("nothing was acknowledged")?;
        let has_failed = AtomicBool::new(false);
        let threads = thread::available_parallelism().map_or(1, usize::from).min(points.len());
        thread::scope(|scope| -> Result<()> {
            let mut workers = Vec::new();
            for number in 0..threads {
                let own = Worker::new(self, number)?;
                let (states, to_check) = sync_channel(0);
                let check = || own.run(to_check, &has_failed);
                workers.push((states, scope.spawn(check)));
            }
            self.each_state(&entries, &points, &mut |number, state| {
                // A worker that has failed is gone, and says why below.
                let worker = number.checked_rem(threads).and_then(|place| workers.get(place));
                let is_taken = worker.is_some_and(|(states, _)| states.send(state).is_ok());
                is_taken && !has_failed.load(Ordering::Relaxed)
            })?;
            let ends: Vec<_> = workers.into_iter().map(|(_, worker)| worker).collect();
            ends.into_iter().try_for_each(|worker| worker.join().expect("it does not panic"))
        })?;
        Ok(format!(
            "{} power cuts, {} of them with {LIARS} members that lied about flushes, in {} entries \
             and {flushes} flushes: each state mounts and holds what was acknowledged, up to {} \
             packets",
            points.len(),
            points.len() / LIARS_EVERY,
            entries.len(),
            last.acknowledged
        ))
    }

    /// Calls `visit` with the disk at each point, until it says that it is enough.
    fn each_state(
        &self,
        entries: &[Entry<'_>],
        points: &[Point],
        visit: &mut dyn FnMut(usize, State) -> bool,
    ) -> Result<()> {
        let (mut durable, mut past) = (self.blank(), self.blank());
        let first = points.first().map_or(0, |point| point.durable);
        for (number, point) in points.iter().enumerate() {
            durable.advance(entries, point.durable);
            let lie_from = point.durable.saturating_sub(LIE_ENTRIES);
            past.advance(entries, lie_from.max(first));
            let random = chance(self.seed ^ u64::try_from(point.index)? ^ chance(point.variant));
            let mut disk = durable.bytes.clone();
            let behind = entries.get(point.durable..point.index).unwrap_or_default();
            damage(&mut disk, behind, random);
            let has_liars = number % LIARS_EVERY == LIARS_EVERY - 1;
            if has_liars {
                let lied = entries.get(past.done..point.index).unwrap_or_default();
                self.lie(&mut disk, &past.bytes, lied, random)?;
            }
            if !visit(number, State { point: *point, of: entries.len(), has_liars, disk }) {
                break;
            }
        }
        Ok(())
    }

    fn blank(&self) -> Disk {
        let bytes = self.slices.count * self.slices.bytes + log::MARK_BYTES;
        Disk { bytes: vec![0; bytes], done: 0 }
    }

    /// Puts two members back to what they were, and brings some of what came since.
    fn lie(&self, cut: &mut [u8], past: &[u8], lied: &[Entry<'_>], random: u64) -> Result<()> {
        let count = u64::try_from(self.slices.count)?;
        for number in 0..LIARS {
            let member = usize::try_from((random + number).checked_rem(count).unwrap_or(0))?;
            let range = member * self.slices.bytes..(member + 1) * self.slices.bytes;
            let place = cut.get_mut(range.clone()).context("a member lies on the disk")?;
            place.copy_from_slice(past.get(range.clone()).context("a member lies on the disk")?);
            let here: Vec<Entry<'_>> =
                lied.iter().filter(|entry| entry.is_within(&range)).copied().collect();
            damage(cut, &here, chance(random + number));
        }
        Ok(())
    }

    /// Half of the points right behind a flush, half anywhere; all after the first mark.
    fn choose(&self, entries: &[Entry<'_>]) -> (Vec<Point>, usize) {
        let marks_at = self.slices.count * self.slices.bytes;
        let mut now = Point { index: 0, durable: 0, acknowledged: 0, variant: 0 };
        let mut all = Vec::new();
        for (index, entry) in (1..).zip(entries) {
            now.index = index;
            match *entry {
                Entry::Flush => now.durable = index,
                Entry::Write { offset, data } if offset == marks_at => {
                    now.acknowledged = log::marked(data).unwrap_or(now.acknowledged);
                }
                Entry::Write { .. } | Entry::Discard => {}
            }
            all.push(now);
        }
        all.retain(|point| point.acknowledged > 0);
        let (flushes, between): (Vec<Point>, Vec<Point>) =
            all.into_iter().partition(|point| point.index == point.durable);
        let mut chosen = self.some(&flushes, self.points.div_ceil(2), 1);
        chosen.extend(self.some(&between, self.points / 2, 2));
        // With more points than the log has places, further states of those between flushes: right
        // behind a flush there is one state alone, but for liars.
        let further = (1_u64..)
            .flat_map(|variant| between.iter().map(move |point| Point { variant, ..*point }));
        let missing = self.points.saturating_sub(flushes.len() + between.len());
        chosen.extend(further.take(if between.is_empty() { 0 } else { missing }));
        chosen.sort_unstable_by_key(|point| point.index);
        (chosen, flushes.len())
    }

    /// One at random out of each of `count` equal stretches.
    fn some(&self, points: &[Point], count: usize, salt: u64) -> Vec<Point> {
        let stretch = points.len().div_ceil(count.max(1)).max(1);
        let chosen = points.chunks(stretch).zip(0_u64..).filter_map(|(chunk, number)| {
            let length = u64::try_from(chunk.len()).ok()?;
            let at = chance(self.seed ^ chance(salt) ^ number).checked_rem(length)?;
            chunk.get(usize::try_from(at).ok()?).copied()
        });
        chosen.collect()
    }
}

/// Checks states, one after another, in a folder of its own.
#[derive(Debug)]
struct Worker<'a> {
    slices: Slices,
    wirespool: &'a Path,
    seed: u64,
    folder: PathBuf,
}

impl<'a> Worker<'a> {
    fn new(replay: &Replay<'a>, number: usize) -> Result<Self> {
        let folder = replay.folder.join(number.to_string());
        fs::create_dir_all(&folder)?;
        let Replay { slices, wirespool, seed, .. } = *replay;
        Ok(Self { slices, wirespool, seed, folder })
    }

    /// Until no state comes any more, or one is bad.
    fn run(self, states: Receiver<State>, has_failed: &AtomicBool) -> Result<()> {
        let mut held_max = 0;
        for State { point, of, has_liars, disk } in states {
            let held = self.lay_out(&disk).and_then(|()| self.check(point, has_liars, held_max));
            let held = held.with_context(|| {
                let Point { index, variant, .. } = point;
                let liars = if has_liars { ", two members lie" } else { "" };
                let seed = self.seed;
                format!("power cut at entry {index} of {of}, state {variant}{liars}, seed {seed}")
            });
            has_failed.fetch_or(held.is_err(), Ordering::Relaxed);
            held_max = held_max.max(held?);
        }
        Ok(())
    }

    fn member(&self, index: usize) -> PathBuf {
        self.folder.join(format!("member{index}"))
    }

    #[expect(clippy::disallowed_methods, reason = "a tool makes files")]
    fn lay_out(&self, disk: &[u8]) -> Result<()> {
        if Path::new(&self.index()).exists() {
            fs::remove_dir_all(self.index())?;
        }
        for (index, slice) in disk.chunks_exact(self.slices.bytes).enumerate() {
            let file = File::create(self.member(index))?;
            file.set_len(u64::try_from(slice.len())?)?;
            for (row, bytes) in slice.chunks(ROW_BYTES).enumerate() {
                if bytes.iter().any(|byte| *byte != 0) {
                    file.write_all_at(bytes, u64::try_from(row * ROW_BYTES)?)?;
                }
            }
        }
        Ok(())
    }

    /// Opens a state as its owner would after the power is back; returns how many packets it holds.
    fn check(&self, point: Point, has_liars: bool, held_max: usize) -> Result<usize> {
        let before = self.extract().context("read without a mount")?;
        let first = before.first().unwrap_or(0);
        let shown = first + u64::try_from(before.count())?;
        sound(&before, first..shown).context("read without a mount")?;
        let nothing = self.folder.join("nothing.pcap");
        let mut empty = Vec::new();
        pcap::write_header(&mut empty)?;
        fs::write(&nothing, empty)?;
        let nothing = nothing.to_string_lossy().into_owned();
        let index = self.index();
        let arguments = ["--index-dir", &index, "--read", &nothing];
        self.wirespool("record", &arguments, &[0]).context("mount")?;
        if has_liars {
            // Lies about what was acknowledged are damage, which parity makes good.
            self.wirespool("scrub", &[], &[0])?;
        }
        self.wirespool("verify", &[], &[0])?;
        let after = self.extract()?;
        let first = after.first().unwrap_or(0);
        sound(&after, first..point.acknowledged)?;
        // Only a ring that has been filled may have let go of the first packets.
        ensure!(
            first == 0 || after.count() * 2 > held_max,
            "of {held_max} packets {} are left, from number {first} on",
            after.count()
        );
        Ok(after.count())
    }

    fn extract(&self) -> Result<Found> {
        let path = self.folder.join("extract.pcap");
        let name = path.to_string_lossy().into_owned();
        let index = self.index();
        let arguments = ["udp", "--format", "pcap", "--force", "-w", &name, "--index-dir", &index];
        // 1: something is known to be missing. 5: what was not acknowledged before the crash is
        // unknown.
        self.wirespool("extract", &arguments, &[0, 1, 5])?;
        if path.exists() { guest::read(&path) } else { Ok(Found::default()) }
    }

    /// Of one state: all states are one volume, but each with a history of its own.
    fn index(&self) -> String {
        self.folder.join("index").to_string_lossy().into_owned()
    }

    fn wirespool(&self, verb: &str, arguments: &[&str], good: &[i32]) -> Result<()> {
        let mut command = Command::new(self.wirespool);
        command.arg(verb).arg(self.member(0)).args(arguments);
        for index in 1..self.slices.count {
            command.arg("--member").arg(self.member(index));
        }
        let output = command.output().context("cannot run wirespool")?;
        let is_good = output.status.code().is_some_and(|code| good.contains(&code));
        let said = String::from_utf8_lossy(&output.stderr);
        let reported = String::from_utf8_lossy(&output.stdout);
        ensure!(is_good, "{verb}: {}\n{said}{reported}", output.status);
        Ok(())
    }
}

fn sound(found: &Found, expected: std::ops::Range<u64>) -> Result<()> {
    found.fault(expected).map_or(Ok(()), |fault| Err(anyhow::anyhow!("packets: {fault}")))
}

/// A disk with the first entries of the log on it.
#[derive(Debug)]
struct Disk {
    bytes: Vec<u8>,
    done: usize,
}

impl Disk {
    fn advance(&mut self, entries: &[Entry<'_>], to: usize) {
        apply(&mut self.bytes, entries.get(self.done..to).unwrap_or_default());
        self.done = self.done.max(to);
    }
}

/// A number that looks like chance, and is always the same for a subject.
fn chance(subject: u64) -> u64 {
    Random::new(subject).next()
}

/// Brings writes onto the disk, whole and in order.
fn apply(disk: &mut [u8], entries: &[Entry<'_>]) {
    for entry in entries {
        if let Entry::Write { offset, data } = entry
            && let Some(place) = disk.get_mut(*offset..offset + data.len())
        {
            place.copy_from_slice(data);
        }
    }
}

/// Brings some of the writes onto the disk, and parts of some others.
fn damage(disk: &mut [u8], entries: &[Entry<'_>], seed: u64) {
    let mut random = Random::new(seed);
    for entry in entries {
        let Entry::Write { offset, data } = entry else { continue };
        match random.below(4) {
            0 => {}
            1 => {
                let sectors = (*offset..).step_by(SECTOR_BYTES).zip(data.chunks(SECTOR_BYTES));
                for (offset, data) in sectors {
                    if random.below(2) == 0 {
                        apply(disk, &[Entry::Write { offset, data }]);
                    }
                }
            }
            _ => apply(disk, &[*entry]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn replay() -> Replay<'static> {
        Replay {
            log: Path::new(""),
            slices: Slices { count: 3, bytes: 8192 },
            wirespool: Path::new(""),
            folder: PathBuf::new(),
            points: 100,
            seed: 1,
        }
    }

    #[test]
    fn points_know_the_last_flush_and_the_last_mark_before_them() {
        let (mark, data) = (log::mark(7), [1; 512]);
        let write = Entry::Write { offset: 0, data: &data };
        let marked = Entry::Write { offset: 3 * 8192, data: &mark };
        let entries = [write, Entry::Flush, marked, write, Entry::Flush, write, write];
        let (points, flushes) = replay().choose(&entries);
        // Five places, and further states of those between flushes.
        assert_eq!((points.len(), flushes), (100, 1));
        let mut told: Vec<(usize, usize, u64)> =
            points.iter().map(|point| (point.index, point.durable, point.acknowledged)).collect();
        told.dedup();
        assert_eq!(told, [(3, 2, 7), (4, 2, 7), (5, 5, 7), (6, 5, 7), (7, 5, 7)]);
        let at_once = |index| points.iter().filter(move |point| point.index == index);
        let variants: BTreeSet<u64> = at_once(6).map(|point| point.variant).collect();
        assert_eq!((variants.len(), at_once(5).count()), (at_once(6).count(), 1));
    }

    #[test]
    fn damage_leaves_out_tears_and_keeps_and_touches_nothing_else() {
        let data = [1; 4096];
        let entries = [Entry::Write { offset: 4096, data: &data }];
        let mut seen = [false; 3];
        for seed in 0..100 {
            let mut disk = vec![0_u8; 12288];
            damage(&mut disk, &entries, seed);
            assert!(disk[..4096].iter().chain(&disk[8192..]).all(|byte| *byte == 0));
            let written: usize = disk.iter().copied().map(usize::from).sum();
            assert_eq!(written % SECTOR_BYTES, 0);
            let kind = if written == 0 { 0 } else { 1 + usize::from(written == 4096) };
            seen[kind] = true;
        }
        assert_eq!(seen, [true; 3]);
    }

    #[test]
    fn liars_fall_back_and_the_others_do_not() {
        let replay = replay();
        let past = vec![1; 3 * 8192];
        let mut cut = vec![2; 3 * 8192];
        replay.lie(&mut cut, &past, &[], 4).unwrap();
        let members: Vec<u8> = cut.chunks(8192).map(|slice| slice[0]).collect();
        assert_eq!(members, [2, 1, 1]);
    }
}
