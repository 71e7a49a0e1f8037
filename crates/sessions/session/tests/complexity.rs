//! Work on hostile traffic is linear: 16 times the input costs at most 32 times the instructions.
//!
//! Instructions are counted by callgrind, so that what else a machine does changes nothing; what is
//! quadratic costs 256 times as much.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

#[path = "traffic/hostile.rs"]
mod hostile;
#[expect(dead_code, reason = "what flows report is for other tests")]
mod traffic;

use std::process::Command;

use hostile::{HOSTILE, frame, segments, view};
use session::{Config, Table};
use units::Random;

/// Set for the process below callgrind: seeds of flows.
const INSIDE: &str = "WIRESPOOL_TEST_COUNTED";
/// Fewer instructions are what any input costs.
const LEAST: u64 = 20_000;
/// How much longer the input is made, and how much more work that may be.
const TIMES: usize = 16;
/// The first one also makes what is made once.
const RUNS: [usize; 3] = [1, 1, TIMES];
const WORK_TIMES: u64 = 32;

const FLOWS: usize = 16;
/// Packets of one of them.
const FLOW_PACKETS: core::ops::Range<usize> = 300..6000;

/// An input of a length and the same of 16 times the length.
struct Case {
    name: String,
    work: Box<dyn Fn(usize)>,
}

impl Case {
    fn new(name: String, work: impl Fn(usize) + 'static) -> Self {
        Self { name, work: Box::new(work) }
    }

    /// Frames that a table takes.
    fn frames(name: String, of: impl Fn(usize) -> Vec<Vec<u8>> + 'static) -> Self {
        Self::new(name, move |times| {
            let frames = of(times);
            let config = Config { session_count_max: 300_000, ..Config::default() };
            let (mut table, mut rows) = (Table::new(config, 1), Vec::new());
            counted(&mut || {
                for (number, data) in (0..).zip(&frames) {
                    table.push(&view(data, number), &mut rows);
                }
            });
            table.finish(&mut rows);
        })
    }
}

/// Instructions are counted from here to its end.
#[inline(never)]
fn counted(work: &mut dyn FnMut()) {
    work();
    std::hint::black_box(());
}

/// One payload in one segment.
fn payloads() -> impl Iterator<Item = Case> {
    HOSTILE.iter().map(|hostile| {
        Case::frames(hostile.name.to_owned(), |times| segments(hostile, times << 10, 65_000, false))
    })
}

/// A message in many segments, in both orders.
fn messages() -> impl Iterator<Item = Case> {
    let over_tcp = HOSTILE.iter().filter(|hostile| hostile.proto == 6);
    over_tcp.flat_map(|hostile| {
        [(false, 16), (true, 16), (false, 200), (true, 200)].map(|(is_reversed, size)| {
            let name = format!("{}, {size} bytes, reversed: {is_reversed}", hostile.name);
            Case::frames(name, move |times| segments(hostile, 4 * size * times, size, is_reversed))
        })
    })
}

/// Many sessions.
fn sessions() -> impl Iterator<Item = Case> {
    [&HOSTILE[0], &HOSTILE[11]].into_iter().map(|hostile| {
        Case::frames(format!("sessions of {}", hostile.name), move |times| {
            let count = u32::try_from(4000 * times).unwrap();
            (0..count).map(|host| frame(hostile, host, 1, b"a")).collect()
        })
    })
}

/// Datagrams in fragments: never whole, overlapping, in many small ones, as long as they can be.
fn fragments() -> impl Iterator<Item = Case> {
    // Of a packet by its number: identification, offset in words, whether more follow, and bytes.
    type Of = fn(usize) -> (usize, usize, bool, usize);
    let kinds: [(&str, Of); 5] = [
        ("that never are whole", |n| (n, 1, true, 1400)),
        ("of one datagram that overlap", |n| (1, n % 100, true, 64)),
        ("with holes", |n| (n / 100, n % 100 * 2, true, 0)),
        ("of eight bytes, the last first", |n| (n / 100, 99 - n % 100, n % 100 != 0, 0)),
        ("of 64 KiB", |n| (n / 45, n % 45 * 181, n % 45 != 44, 1440)),
    ];
    kinds.into_iter().map(|(name, of)| {
        Case::frames(format!("fragments {name}"), move |times| {
            let frames = (0..900 * times).map(|number| {
                let (id, offset, more, len) = of(number);
                let mut data = frame(&HOSTILE[0], 1, 1, &vec![0; len]);
                let number = |number: usize| u16::try_from(number & 0xffff).unwrap();
                data[4..6].copy_from_slice(&number(id).to_be_bytes());
                let field = number(offset) | u16::from(more) << 13;
                data[6..8].copy_from_slice(&field.to_be_bytes());
                data
            });
            frames.collect()
        })
    })
}

/// Flows by a program of bytes of this seed, again and again.
fn flow(seed: u64) -> Case {
    Case::new(format!("flows {seed}"), move |times| {
        let program = program(seed, times);
        counted(&mut || {
            std::hint::black_box(flow_packets(&program, usize::MAX));
        });
    })
}

fn program(seed: u64, times: usize) -> Vec<u8> {
    let mut program = vec![0; 200];
    Random::new(seed).fill(&mut program);
    program.repeat(times)
}

fn flow_packets(program: &[u8], packets_max: usize) -> usize {
    let config = Config { session_count_max: 64, head_bytes_max: 1 << 20, ..Config::default() };
    traffic::run(program, packets_max, config, || {}).packets
}

/// Seeds of programs that send some hundred or thousand packets, and 16 times as many when they
/// are 16 times as long: a program that repeats the last packet may send more.
fn proportional() -> impl Iterator<Item = u64> {
    let is_so = |&seed: &u64| {
        let packets = flow_packets(&program(seed, 1), FLOW_PACKETS.end + 1);
        let most = packets * (TIMES + 1);
        FLOW_PACKETS.contains(&packets) && flow_packets(&program(seed, TIMES), most + 1) <= most
    };
    (0..).filter(is_so).take(FLOWS)
}

/// What must be found: each byte beside each other.
fn quadratic() -> Case {
    Case::new("pairs".to_owned(), |times| {
        let bytes = vec![1_u16; 100 * times];
        let equal = |one| bytes.iter().filter(|other| **other == one).count();
        counted(&mut || {
            std::hint::black_box(
                bytes.iter().map(|one| equal(*std::hint::black_box(one))).sum::<usize>(),
            );
        });
    })
}

#[test]
fn work_on_a_payload_is_linear() {
    count("work_on_a_payload_is_linear", "", payloads().chain(sessions()));
}

#[test]
fn work_on_a_message_in_segments_is_linear() {
    count("work_on_a_message_in_segments_is_linear", "", messages());
}

#[test]
fn work_on_fragments_and_flows_is_linear() {
    let seeds = std::env::var(INSIDE).unwrap_or_else(|_| {
        proportional().map(|seed| seed.to_string()).collect::<Vec<_>>().join(" ")
    });
    let flows = seeds.split(' ').map(|seed| flow(seed.parse().unwrap()));
    count("work_on_fragments_and_flows_is_linear", &seeds, fragments().chain(flows));
}

/// Runs the test of this name once more, below callgrind with these seeds, and compares what it
/// counts of each case; there it plays them. [`quadratic`] comes last, and must be found.
#[expect(clippy::print_stdout, reason = "counts are for who reads the test's output")]
fn count(test: &str, seeds: &str, cases: impl Iterator<Item = Case>) {
    let cases: Vec<Case> = cases.chain([quadratic()]).collect();
    if std::env::var_os(INSIDE).is_some() {
        return cases.iter().for_each(|case| RUNS.into_iter().for_each(&case.work));
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("counts");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--collect-atstart=no"]);
    valgrind.args(["--toggle-collect=complexity::counted", "--dump-after=complexity::counted"]);
    valgrind.arg(format!("--callgrind-out-file={}", out.display()));
    valgrind.arg(std::env::current_exe().unwrap()).args(["--exact", test]);
    let output = match valgrind.env(INSIDE, seeds).output() {
        Ok(output) => output,
        Err(error) => return println!("not run: valgrind: {error}"),
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // A file for each end of what is counted.
    let counts: Vec<u64> = (1..)
        .map_while(|number| std::fs::read_to_string(out.with_extension(number.to_string())).ok())
        .map(|text| {
            let count = text.lines().find_map(|line| line.strip_prefix("summary: "));
            count.unwrap().trim().parse().unwrap()
        })
        .collect();
    assert_eq!(counts.len(), RUNS.len() * cases.len());
    let mut too_much = Vec::new();
    for (case, &[_, one, sixteen]) in cases.iter().zip(counts.as_chunks().0) {
        assert!(one > 0 && sixteen > 0, "{}: {one}, {sixteen}", case.name);
        let line = format!("{}: {one} instructions, of 16 times as much {sixteen}", case.name);
        println!("{line}");
        if sixteen > one.max(LEAST) * WORK_TIMES {
            too_much.push(line);
        }
    }
    let last = too_much.pop();
    assert!(last.is_some_and(|line| line.starts_with("pairs: ")), "what is quadratic is found");
    assert!(too_much.is_empty(), "more than 32 times: {too_much:#?}");
}
