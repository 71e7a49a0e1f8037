//! A campaign of many nights: a file with a line for each slice of its seeds.
//!
//! A line is written at once and synced when its slice has ended. So the process may be killed, or
//! the machine lose power, at any instant: a line that was cut is taken out when the file is opened
//! next, and its slice runs again.

use std::fs::{File, OpenOptions, read};
use std::io::{Read, Seek, Write};
use std::path::Path;

use serde_json::{Value, json};
use units::mix;

use crate::counters::Counters;
use crate::orders::Kind;
use crate::sum::Sum;
use crate::took::Took;

/// The file of a campaign, which no other process writes to meanwhile.
#[derive(Debug)]
pub(crate) struct Ledger {
    file: File,
    of: Kind,
    /// All slices together.
    pub(crate) sum: Sum,
    pub(crate) took: Took,
    /// The first seed of all; `None`: nothing has run yet.
    pub(crate) first_seed: Option<u64>,
    /// Programs that have run slices, each once.
    pub(crate) builds: Vec<String>,
    own_build: String,
}

/// One line.
struct Slice {
    of: String,
    first_seed: u64,
    build: String,
    took: Took,
    sum: Sum,
}

impl Ledger {
    /// Opens the file, or begins it.
    #[expect(clippy::disallowed_methods, reason = "a tool keeps its own file")]
    pub(crate) fn open(path: &Path, of: Kind) -> Result<Self, String> {
        let name = path.display();
        let say = |error: std::io::Error| format!("{name}: {error}");
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).open(path).map_err(say)?;
        file.try_lock().map_err(|_| format!("{name}: another campaign writes to it"))?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(say)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let whole_bytes = u64::try_from(whole).expect("a file's length");
        // What a kill cut off.
        file.set_len(whole_bytes).and_then(|()| file.rewind()).map_err(say)?;
        let mut ledger = Self {
            file,
            of,
            sum: Sum::default(),
            took: Took::default(),
            first_seed: None,
            builds: Vec::new(),
            own_build: own_build(),
        };
        for (number, line) in (1..).zip(text.get(..whole).unwrap_or_default().lines()) {
            let slice = serde_json::from_str(line).ok().and_then(|line| Slice::of_json(&line));
            let Some(slice) = slice else {
                return Err(format!("{name}, line {number}: this is no slice of a campaign"));
            };
            ledger.take(slice).map_err(|what| format!("{name}, line {number}: {what}"))?;
        }
        Ok(ledger)
    }

    /// The next seed; `None`: nothing has run yet.
    pub(crate) fn next_seed(&self) -> Option<u64> {
        self.first_seed.map(|first| first + self.sum.seeds)
    }

    /// Writes down what the seeds from `first_seed` on came to.
    pub(crate) fn note(&mut self, first_seed: u64, sum: Sum, took: Took) -> Result<(), String> {
        let of = name_of(self.of).to_owned();
        let slice = Slice { of, first_seed, build: self.own_build.clone(), took, sum };
        let line = format!("{}\n", slice.to_json());
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|error| format!("the campaign's file: {error}"))?;
        self.take(slice)
    }

    fn take(&mut self, slice: Slice) -> Result<(), String> {
        let own = name_of(self.of);
        if slice.of != own {
            return Err(format!("a campaign of the {}, not of the {own}", slice.of));
        }
        if self.next_seed().is_some_and(|next| next != slice.first_seed) {
            return Err(format!("seed {} does not follow", slice.first_seed));
        }
        self.first_seed.get_or_insert(slice.first_seed);
        if !self.builds.contains(&slice.build) {
            self.builds.push(slice.build);
        }
        self.sum.merge(slice.sum);
        self.took.wall_s += slice.took.wall_s;
        self.took.cpu_s += slice.took.cpu_s;
        Ok(())
    }
}

impl Slice {
    fn to_json(&self) -> Value {
        let Sum { seeds, counters, digest, failures } = &self.sum;
        let (counts, most) = counters.to_json();
        json!({
            "of": self.of,
            "first_seed": self.first_seed,
            "seeds": seeds,
            "build": self.build,
            "seconds": self.took.wall_s,
            "cpu_seconds": self.took.cpu_s,
            "digest": digest,
            "failures": failures,
            "counts": counts,
            "most": most,
        })
    }

    fn of_json(line: &Value) -> Option<Self> {
        let text = |name: &str| line.get(name).and_then(Value::as_str).map(str::to_owned);
        let number = |name: &str| line.get(name).and_then(Value::as_u64);
        let seconds = |name: &str| line.get(name).and_then(Value::as_f64);
        let failure = |failure: &Value| {
            Some((failure.get(0)?.as_u64()?, failure.get(1)?.as_str()?.to_owned()))
        };
        let failures = line.get("failures")?.as_array()?.iter().map(failure);
        Some(Self {
            of: text("of")?,
            first_seed: number("first_seed")?,
            build: text("build")?,
            took: Took { wall_s: seconds("seconds")?, cpu_s: seconds("cpu_seconds")? },
            sum: Sum {
                seeds: number("seeds")?,
                counters: Counters::of_json(line.get("counts")?, line.get("most")?)?,
                digest: number("digest")?,
                failures: failures.collect::<Option<_>>()?,
            },
        })
    }
}

fn name_of(of: Kind) -> &'static str {
    match of {
        Kind::Volume => "volume",
        Kind::Recorder => "recorder",
        Kind::Search => "search",
    }
}

/// A name for this very program: results of different ones are results of different code.
fn own_build() -> String {
    let bytes = std::env::current_exe().and_then(read).unwrap_or_default();
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let rest = rest.iter().map(|byte| u64::from(*byte));
    format!("{:016x}", words.chain(rest).fold(0, |sum, word| mix(sum ^ word)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn sum(seed: u64) -> Sum {
        let mut counters = Counters::default();
        counters.add("crashes", 10 + seed);
        counters.peak("most", seed);
        let failures = vec![(seed, "LOST: \"all\"\nof it".to_owned())];
        Sum { seeds: 2, counters, digest: u64::MAX - seed, failures }
    }

    #[test]
    fn a_campaign_goes_on_wherever_its_file_was_cut() {
        let folder = std::env::temp_dir().join(format!("sim-ledger-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("campaign");
        let mut whole = Ledger::open(&path, Kind::Volume).unwrap();
        assert_eq!(whole.next_seed(), None);
        for seed in [5, 7, 9] {
            whole.note(seed, sum(seed), Took { wall_s: 1.5, cpu_s: 2.5 }).unwrap();
        }
        assert!(Ledger::open(&path, Kind::Volume).unwrap_err().contains("another campaign"));
        let expected = whole.sum.clone();
        drop(whole);
        let text = read(&path).unwrap();
        let ends: Vec<usize> = (0..text.len()).filter(|at| text[*at] == b'\n').collect();
        for cut in 0..=text.len() {
            fs::write(&path, &text[..cut]).unwrap();
            let mut ledger = Ledger::open(&path, Kind::Volume).unwrap();
            let lines = ends.iter().filter(|end| **end < cut).count();
            assert_eq!(ledger.next_seed(), [None, Some(7), Some(9), Some(11)][lines], "{cut}");
            for seed in [5, 7, 9].into_iter().skip(lines) {
                ledger.note(seed, sum(seed), Took { wall_s: 1.5, cpu_s: 2.5 }).unwrap();
            }
            assert_eq!(ledger.sum, expected);
            assert!(ledger.took == Took { wall_s: 4.5, cpu_s: 7.5 } && ledger.builds.len() == 1);
            drop(ledger);
            assert!(read(&path).unwrap() == text, "cut at {cut}");
        }
        let refused = |text: &str, of, what: &str| {
            fs::write(&path, text).unwrap();
            let error = Ledger::open(&path, of).unwrap_err();
            assert!(error.contains(what), "{error}");
        };
        let text = String::from_utf8(text).unwrap();
        refused(&text, Kind::Recorder, "line 1: a campaign of the volume");
        refused("seeds 7\n", Kind::Volume, "line 1: this is no slice");
        let first = text.lines().next().unwrap();
        refused(&format!("{first}\n{first}\n"), Kind::Volume, "line 2: seed 5 does not follow");
        fs::remove_dir_all(&folder).unwrap();
    }
}
