//! A machine whose clock is wrong: no start and no verb erases or hides by it what is not too old,
//! whatever came before, and each that has to do with the age of packets says so.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::golden::{capture, extracted};
use crate::machine::{Ran, Volume, command};

const DAY_S: i64 = 24 * 3600;
const YEARS_S: i64 = 5 * 365 * DAY_S;

/// A volume, and captures of the last hour: one of no packets, two of 50.
struct Site {
    volume: Volume,
    shim: String,
    first_ns: u64,
    files: [String; 3],
}

/// What sets the clock of one program; `None` with a printed reason where that cannot be.
pub(crate) fn shim(volume: &Volume) -> Option<String> {
    if !cfg!(target_arch = "x86_64") {
        println!("not run: the clock of a program is set on x86-64 alone");
        return None;
    }
    let [shim, source] = ["clock.so", "clock.c"].map(|name| volume.file(name));
    std::fs::write(&source, include_str!("wrong_clock.c")).unwrap();
    let compiler = ["-shared", "-fPIC", "-O1", "-o", &shim, &source];
    if !Command::new("cc").args(compiler).status().is_ok_and(|status| status.success()) {
        println!("not run: no C compiler");
        return None;
    }
    Some(shim)
}

impl Site {
    /// `None` with a printed reason where the clock cannot be set for one program.
    fn new() -> Option<Self> {
        let volume = Volume::empty();
        let shim = shim(&volume)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let first_ns = u64::try_from(now.as_nanos()).unwrap() - 3_600_000_000_000;
        let files = [(0, 0..0), (1, 0..50), (2, 50..100)].map(|(number, part)| {
            let path = volume.file(&format!("{number}.pcap"));
            std::fs::write(&path, capture(first_ns, part)).unwrap();
            path
        });
        Some(Self { volume, shim, first_ns, files })
    }

    fn run(&self, ahead_s: i64, arguments: &[&str]) -> Ran {
        let mut run = command(arguments);
        run.env("LD_PRELOAD", &self.shim).env("CLOCK_AHEAD_S", ahead_s.to_string());
        Ran::new(&run.output().unwrap())
    }

    fn record(&self, ahead_s: i64, file: usize, arguments: &[&str]) -> Ran {
        let Volume { path, index, .. } = &self.volume;
        let begin = ["record", path, "--read", self.files.get(file).unwrap(), "--index-dir", index];
        self.run(ahead_s, &[&begin[..], arguments].concat())
    }

    /// By the right clock everything is there, and the answer is complete.
    fn has_all(&self, numbers: core::ops::Range<u32>) {
        let Volume { path, index, folder } = &self.volume;
        let expected: BTreeSet<u32> = numbers.collect();
        assert_eq!(extracted(path, folder.path(), self.first_ns), expected);
        let out = self.volume.file("all.pcapng");
        let extract = ["extract", path, "udp", "--force", "-w", &out, "--index-dir", index];
        let ran = self.run(0, &extract).done();
        assert!(ran.err.contains(", complete"), "{ran:?}");
    }
}

/// The capture is empty, which is said, and otherwise all is well.
#[track_caller]
fn has_read_nothing(ran: &Ran) {
    assert!(ran.code == Some(1) && ran.out.starts_with("no packet was read\n"), "{ran:?}");
}

#[track_caller]
fn is_doubted(ran: &Ran) {
    let said = format!("{}{}", ran.out, ran.err);
    assert!(ran.code == Some(1) && said.contains("--clock-is-right"), "{ran:?}");
}

const WEEK: [&str; 3] = ["--max-age", "7d", "--erase"];

#[test]
fn a_clock_that_is_years_ahead_erases_nothing_though_a_start_without_an_age_came_before() {
    let Some(site) = Site::new() else { return };
    site.record(0, 1, &[]).done();
    for file in [0, 2] {
        site.record(YEARS_S, file, &[]);
    }
    let Volume { path, index, .. } = &site.volume;
    let erase = site.run(YEARS_S, &["erase", path, "--max-age", "7d", "--index-dir", index]);
    erase.fails_with(3, "--clock-is-right");
    is_doubted(&site.record(YEARS_S, 0, &WEEK));
    is_doubted(&site.record(YEARS_S, 0, &[]));
    has_read_nothing(&site.record(0, 0, &[]));
    site.has_all(0..100);
}

#[test]
fn an_age_that_is_taken_away_and_given_again_explains_nothing() {
    let Some(site) = Site::new() else { return };
    site.record(0, 1, &WEEK).done();
    has_read_nothing(&site.record(0, 0, &["--max-age", "off", "--erase=off"]));
    has_read_nothing(&site.record(YEARS_S, 0, &[]));
    is_doubted(&site.record(YEARS_S, 0, &WEEK));
    site.record(0, 2, &[]).done();
    site.has_all(0..100);
}

#[test]
fn a_new_volume_does_not_believe_a_clock_that_is_months_ahead() {
    let Some(site) = Site::new() else { return };
    is_doubted(&site.record(300 * DAY_S, 1, &WEEK));
    site.record(0, 2, &[]).done();
    site.has_all(0..100);
}

#[test]
fn a_clock_that_is_behind_is_said_and_erases_nothing_later() {
    let Some(site) = Site::new() else { return };
    is_doubted(&site.record(-YEARS_S, 1, &WEEK));
    is_doubted(&site.record(0, 2, &[]));
    has_read_nothing(&site.record(0, 0, &["--clock-is-right"]));
    has_read_nothing(&site.record(0, 0, &[]));
    site.has_all(0..100);
}
