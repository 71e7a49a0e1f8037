//! Vital signs beside what `free`, vmstat and iostat say of the same machine at the same time.
//!
//! A tool that looks for two seconds is looked at from both sides: what it counts lies between what
//! we count in a time inside of these two seconds and in a time around them.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking and says why it did not run"
)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek, Write};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use host::SystemClock;
use units::Sleep;
use vitals::{Entry, Figure, Look, Vitals, vitals};

/// What a tool prints; `None` where it is missing, which the test prints.
fn output(tool: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(tool).args(arguments).env("LC_ALL", "C").output() {
        Ok(output) if output.status.success() => {
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(output) => {
            println!("not run: {tool}: {}", String::from_utf8_lossy(&output.stderr));
            None
        }
        Err(error) => {
            println!("not run: {tool}: {error}");
            None
        }
    }
}

/// A row by the names of its columns.
fn row(names: &str, values: &str) -> BTreeMap<String, f64> {
    let values = values.split_whitespace().filter_map(|word| word.parse().ok());
    names.split_whitespace().map(str::to_owned).zip(values).collect()
}

fn of(figures: &[Figure], name: &str) -> f64 {
    figures.iter().find(|figure| figure.name == name).unwrap().value
}

/// The two lines of `free -b` under our names.
fn free() -> Option<BTreeMap<String, f64>> {
    let text = output("free", &["-b"])?;
    let lines: Vec<&str> = text.lines().collect();
    let values = |at: usize| lines[at].split_once(':').unwrap().1;
    let mut all = row(lines[0], values(1));
    assert_eq!(all.len(), 6, "{text}");
    for (name, value) in row(lines[0], values(2)) {
        all.insert(format!("swap {name}"), value);
    }
    Some(all)
}

#[test]
fn memory_is_what_free_says() {
    // Free of procps before 4 has another idea of what is used.
    let Some(version) = output("free", &["--version"]) else { return };
    if version.contains(" 3.") {
        return println!("not run: {version} computes otherwise");
    }
    let memory = || vitals(None, &Look::now(&SystemClock)).memory;
    let mut open: Vec<String> = Vec::new();
    // A figure that moves in between proves nothing; sooner or later each stands nearly still.
    for attempt in 0..2000 {
        let before = memory();
        let Some(theirs) = free() else { return };
        let after = memory();
        if attempt == 0 {
            open.extend(theirs.keys().cloned());
            assert_eq!(open.len(), 9, "{theirs:?}");
        }
        open.retain(|name| {
            let (one, other) = (of(&before, name), of(&after, name));
            let (low, high) = (one.min(other), one.max(other));
            high - low > 256.0 * 1024.0 || !(low..=high).contains(&theirs[name])
        });
        if open.is_empty() {
            return;
        }
    }
    panic!("{open:?} are never what free says");
}

/// How long tools look.
const SECONDS: f64 = 2.0;

/// Vital signs of a time, and its seconds.
struct Span(Vitals, f64);

impl Span {
    fn of(before: &Look, now: &Look) -> Self {
        let ns = u32::try_from((now.boottime_ns - before.boottime_ns) / 1000).unwrap();
        Self(vitals(Some(before), now), f64::from(ns) / 1e6)
    }
}

/// What a tool said, and the times around and inside of its own.
struct Around {
    text: String,
    outer: Span,
    inner: Span,
}

impl Around {
    fn look(tool: &str, arguments: &[&str]) -> Option<Self> {
        // It comes from the disk now, not while it looks.
        output(tool, &["-V"])?;
        let look = || Look::now(&SystemClock);
        let begin = look();
        std::thread::scope(|scope| {
            let running = scope.spawn(|| output(tool, arguments));
            let after_ns = |ms: i64| begin.boottime_ns + ms * 1_000_000;
            SystemClock.sleep_until(after_ns(700));
            let first = look();
            SystemClock.sleep_until(after_ns(1700));
            let second = look();
            let text = running.join().unwrap()?;
            let (outer, inner) = (Span::of(&begin, &look()), Span::of(&first, &second));
            Some(Self { text, outer, inner })
        })
    }

    /// What was gained, by a figure a second, lies between.
    #[track_caller]
    fn check(&self, name: &str, theirs: f64, slack: f64, ours: impl Fn(&Vitals) -> f64) {
        let gained = |Span(found, seconds): &Span| ours(found) * seconds;
        let (low, high) = (gained(&self.inner) - slack, gained(&self.outer) + slack);
        let theirs = theirs * SECONDS;
        assert!((low..=high).contains(&theirs), "{name}: {theirs} is not {low} to {high}");
    }
}

#[test]
fn processors_and_paging_are_what_vmstat_says() {
    let Some(around) = Around::look("vmstat", &["-n", "-w", "2", "2"]) else { return };
    let lines: Vec<&str> = around.text.lines().collect();
    let theirs = row(lines[1], lines.last().unwrap());
    for name in ["us", "sy", "id", "wa", "st"] {
        // Its percents are whole, and ticks come late: a tenth of a second.
        around.check(name, theirs[name], 10.0, |ours| of(&ours.processors[0].figures, name));
    }
    for name in ["in", "cs"] {
        around.check(name, theirs[name], 3.0, |ours| of(&ours.system, name));
    }
    for name in ["si", "so", "bi", "bo"] {
        around.check(name, theirs[name], 3.0, |ours| of(&ours.paging, name));
    }
    let all = &around.outer.0.processors[0].figures;
    let sum: f64 = ["us", "sy", "id", "wa", "st", "gu"].iter().map(|name| of(all, name)).sum();
    assert!((sum - 100.0).abs() < 1e-6, "{sum}");
    let memory = &around.outer.0.memory;
    assert!(of(memory, "total") >= theirs["free"] * 1024.0, "{memory:?}");
}

/// Writes and makes durable until the test stops it.
fn write_until(stop: &AtomicBool, file: &mut File) {
    let bytes = vec![7; 64 << 10];
    while !stop.load(Ordering::Relaxed) {
        file.rewind().unwrap();
        file.write_all(&bytes).unwrap();
        file.sync_data().unwrap();
    }
}

#[test]
fn disks_are_what_iostat_says() {
    let stop = AtomicBool::new(false);
    let mut file = tempfile::tempfile().unwrap();
    let found = std::thread::scope(|scope| {
        scope.spawn(|| write_until(&stop, &mut file));
        let found = Around::look("iostat", &["-d", "-x", "-y", "2", "1"]);
        stop.store(true, Ordering::Relaxed);
        found
    });
    let Some(around) = found else { return };
    let names = around.text.lines().find(|line| line.starts_with("Device")).unwrap();
    let (_, names) = names.split_once(char::is_whitespace).unwrap();
    let mut compared = 0;
    for line in around.text.lines() {
        let Some((disk, values)) = line.trim_start().split_once(char::is_whitespace) else {
            continue;
        };
        let is_it = |entry: &&Entry| entry.name == disk;
        if !around.inner.0.disks.iter().any(|entry| is_it(&entry)) {
            continue;
        }
        let theirs = row(names, values);
        let ours =
            |found: &Vitals, name: &str| of(&found.disks.iter().find(is_it).unwrap().figures, name);
        // Hundredths, and the kernel counts a request when it ends.
        for (name, slack) in [("r/s", 3.0), ("w/s", 3.0), ("d/s", 3.0), ("f/s", 3.0)] {
            around.check(name, theirs[name], slack, |found| ours(found, name));
        }
        for (name, slack) in
            [("rkB/s", 2048.0), ("wkB/s", 2048.0), ("aqu-sz", 0.2), ("%util", 10.0)]
        {
            around.check(name, theirs[name], slack, |found| ours(found, name));
        }
        // Milliseconds of all that ended; those of one are hundredths there.
        for (name, rate) in [("r_await", "r/s"), ("w_await", "w/s"), ("f_await", "f/s")] {
            let slack = 100.0 + 0.01 * SECONDS * theirs[rate];
            let both = |found: &Vitals| ours(found, name) * ours(found, rate);
            around.check(name, theirs[name] * theirs[rate], slack, both);
        }
        compared += 1;
    }
    if around.outer.0.disks.is_empty() {
        return println!("not run: no disks here");
    }
    assert!(compared > 0, "{}", around.text);
}
