//! Instructions by step, from what callgrind writes.
//!
//! The format (valgrind's manual, "Callgrind Format Specification"): a line of cost belongs to the
//! function and file that were named last, `fi` and `fe` being the files of inlined code. Behind
//! `calls=` is the cost of the function called, which has lines of its own.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use units::number::real;

/// Steps of a packet's way, who does them, and the crates that they are made of.
const STEPS: [(&str, &str, &[&str]); 8] = [
    ("source: the file, read ahead", "queue", &["capture", "host"]),
    (
        "intake: the copy into columns, counters",
        "queue",
        &["record", "recording", "selection", "format", "stage", "units", "events"],
    ),
    (
        "checksums, parity, writes",
        "ring writer",
        &["writer", "volume", "device", "parity", "crc_fast", "blake3", "encryption", "io_uring"],
    ),
    ("decoding headers", "indexer", &["wire"]),
    ("sessions and their rows", "indexer", &["session", "indexer", "hashbrown"]),
    ("names and prints", "indexer", &["app", "md5", "sha2"]),
    (
        "the index as Parquet",
        "encoder",
        &["index", "parquet", "arrow", "zstd", "ZSTD", "HUF", "FSE", "HIST", "sha1", "base64"],
    ),
    ("allocation", "indexer", &[ALLOCATION]),
];
/// What is of none of them: mostly the standard library, called for sessions.
const OTHER: (&str, &str) = ("other: the standard library", "indexer");
const ALLOCATION: &str = "malloc";

/// What functions of the C library are counted as: copies belong to who copies.
fn of_library(name: &str) -> Option<Library> {
    let bare = name.trim_start_matches('_');
    let is = |names: &[&str]| names.iter().any(|name| bare.starts_with(name));
    if is(&["memcpy", "memmove", "memset", "memcmp", "bcmp"]) {
        Some(Library::Copy)
    } else if is(&["malloc", "free", "realloc", "calloc", "int_malloc", "int_free", "posix_mem"]) {
        Some(Library::Allocation)
    } else {
        None
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Library {
    Copy,
    Allocation,
}

/// Names, which are written once and then called by their numbers.
#[derive(Default)]
struct Names(BTreeMap<String, String>);

impl Names {
    fn resolve(&mut self, text: &str) -> String {
        let Some((number, rest)) = text.strip_prefix('(').and_then(|text| text.split_once(')'))
        else {
            return text.to_owned();
        };
        let rest = rest.trim();
        if !rest.is_empty() {
            self.0.insert(number.to_owned(), rest.to_owned());
        }
        self.0.get(number).cloned().unwrap_or_default()
    }
}

/// Instructions of each step, with who does it.
pub(super) fn read(path: &Path) -> Result<BTreeMap<(&'static str, &'static str), f64>> {
    Ok(sum(&String::from_utf8_lossy(&std::fs::read(path)?)))
}

fn sum(text: &str) -> BTreeMap<(&'static str, &'static str), f64> {
    let (mut files, mut functions) = (Names::default(), Names::default());
    let (mut file, mut function, mut called) = (String::new(), String::new(), String::new());
    let mut is_call = false;
    let mut steps = BTreeMap::new();
    for line in text.lines() {
        if let Some((key, value)) = line.split_once('=') {
            match key {
                "fl" | "fi" | "fe" => file = files.resolve(value),
                "cfi" | "cfl" => drop(files.resolve(value)),
                "fn" => function = functions.resolve(value),
                "cfn" => called = functions.resolve(value),
                "calls" => is_call = true,
                _ => {}
            }
            continue;
        }
        let Some(cost) = cost(line) else { continue };
        let is_copy_called = of_library(&called) == Some(Library::Copy);
        let counts = if core::mem::take(&mut is_call) {
            is_copy_called && of_library(&function).is_none()
        } else {
            of_library(&function) != Some(Library::Copy)
        };
        if counts {
            *steps.entry(step(&file, &function)).or_default() += cost;
        }
    }
    steps
}

/// The cost of a line `PLACE COST`; a place is a number, one relative to the last, or `*`.
fn cost(line: &str) -> Option<f64> {
    let mut words = line.split_ascii_whitespace();
    let place = words.next()?.trim_start_matches(['+', '-']);
    let is_place = place == "*" || place.bytes().all(|byte| byte.is_ascii_digit());
    let cost = words.next()?.parse::<u64>().ok()?;
    is_place.then(|| real(cost))
}

fn step(file: &str, function: &str) -> (&'static str, &'static str) {
    if of_library(function) == Some(Library::Allocation) {
        return find(ALLOCATION).unwrap_or(OTHER);
    }
    let bare = function.trim_start_matches(['<', '&', '*', '(', ' ']);
    let of_function = bare.split("::").next().unwrap_or_default();
    let names = [of_repository(file), Some(of_function), of_registry(file)];
    // What is in no list is the last one.
    names.into_iter().flatten().find_map(find).unwrap_or(OTHER)
}

/// The crate of ours that a file is of: `crates/PART/NAME/src/...`.
fn of_repository(file: &str) -> Option<&str> {
    let mut names = file.split_once("/crates/")?.1.split('/').skip(1);
    let name = names.next()?;
    (names.next() == Some("src")).then_some(name)
}

/// The library that a file is of: `registry/src/INDEX/NAME-VERSION/...`.
fn of_registry(file: &str) -> Option<&str> {
    let name = file.split_once("/registry/src/")?.1.split('/').nth(1)?;
    Some(name.split_once('-').map_or(name, |(name, _)| name))
}

fn find(name: &str) -> Option<(&'static str, &'static str)> {
    let is_of = |names: &[&str]| {
        names.iter().any(|known| name == *known || name.starts_with(&format!("{known}_")))
    };
    let found = STEPS.iter().find(|(_, _, names)| is_of(names));
    found.map(|(name, thread, _)| (*name, *thread))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
version: 1
events: Ir
fl=(1) /src/crates/packets/wire/src/decode.rs
fn=(1) wire::decode::decode
10 100
+2 20
fi=(2) /rustc/library/core/src/num.rs
5 7
cfi=(3) ./string/memcpy.S
cfn=(2) __memcpy_avx_unaligned_erms
calls=3 0
* 50
cfn=(3) session::table::push
calls=1 0
* 999
fl=(3)
fn=(2)
1 50
fl=(4) /src/crates/sessions/session/src/table.rs
fn=(3)
1 30
fl=(5) ./malloc/malloc.c
fn=(4) _int_malloc
1 11
fl=(6) ???
fn=(5) parquet::encodings::put
1 13
fl=(7) /src/stdarch/crates/core_arch/src/x86/sse2.rs
fn=(6) crc_fast::update
1 17
fl=(8) /home/registry/src/index-1/zstd-sys-2.0/zstd/lib/x.c
fn=(7) encode
1 19
fl=(6)
fn=(8) main
1 2
";

    #[test]
    fn cost_belongs_to_the_crate_of_the_code_and_copies_to_who_copies() {
        let sums = sum(TEXT);
        let of = |thread: &str, begin: &str| {
            let mut found =
                sums.iter().filter(|((name, by), _)| name.starts_with(begin) && *by == thread);
            found.next().map(|(_, cost)| units::number::whole(*cost))
        };
        assert_eq!(of("indexer", "decoding"), Some(100 + 20 + 7 + 50));
        assert_eq!(of("indexer", "sessions"), Some(30));
        assert_eq!(of("indexer", "allocation"), Some(11));
        assert_eq!(of("encoder", "the index"), Some(13 + 19));
        assert_eq!(of("ring writer", "checksums"), Some(17));
        assert_eq!(of("indexer", "other"), Some(2));
        assert_eq!(sums.len(), 6, "{sums:?}");
    }
}
