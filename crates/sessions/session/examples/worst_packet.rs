//! What the most expensive packet costs the session table, its decoding included: of payloads made
//! to be slow, and of captures.
//!
//! `cargo run --release -p session --example worst_packet [-- CAPTURE...]`
//!
//! Each capture goes through a table of its own several times; a packet costs the least of its
//! times, so that what disturbs a run does not count.

#![expect(clippy::print_stdout, reason = "an example prints")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "an example may panic")]
#![expect(clippy::disallowed_methods, reason = "an example reads the clock")]

#[path = "../tests/traffic/hostile.rs"]
mod hostile;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use capture::{FileOptions, FileSource, Next, Source};
use hostile::{HOSTILE, segments, view};
use session::{Config, PacketView, Table};

const REPETITIONS: usize = 9;

/// Bytes of a packet of the usual and of the largest size, less headers.
const LENS: [usize; 3] = [1460, 8960, 65_000];

/// Shown, most expensive first.
const SHOWN: usize = 12;

/// The least time of each packet.
fn costs(views: &[PacketView<'_>]) -> Vec<Duration> {
    let mut least = vec![Duration::MAX; views.len()];
    let mut rows = Vec::new();
    for _ in 0..REPETITIONS {
        let mut table = Table::new(Config { session_count_max: 1 << 16, ..Config::default() }, 1);
        for (view, least) in views.iter().zip(&mut least) {
            let start = Instant::now();
            table.push(view, &mut rows);
            *least = start.elapsed().min(*least);
            rows.clear();
        }
    }
    least
}

fn show(title: &str, mut worst: Vec<(Duration, String)>) {
    worst.sort_by_key(|(cost, _)| core::cmp::Reverse(*cost));
    println!("{title}");
    for (cost, what) in worst.iter().take(SHOWN) {
        println!("  {:6.1} us  {what}", cost.as_secs_f64() * 1e6);
    }
}

fn hostile() {
    for len in LENS {
        let whole = HOSTILE.iter().map(|hostile| {
            let frames = segments(hostile, len.min(64_000), 65_000, false);
            let views: Vec<_> = frames.iter().zip(0..).map(|(data, at)| view(data, at)).collect();
            (costs(&views)[0], hostile.name.to_owned())
        });
        show(&format!("one payload of {len} bytes"), whole.collect());
    }
    let parts = HOSTILE.iter().flat_map(|hostile| {
        [16, 250, 1460].map(|size| {
            let frames = segments(hostile, (64 * size).min(60_000), size, false);
            let views: Vec<_> = frames.iter().zip(0..).map(|(data, at)| view(data, at)).collect();
            let cost = costs(&views).into_iter().max().unwrap();
            (cost, format!("{}, segments of {size} bytes", hostile.name))
        })
    });
    show("any of 64 segments", parts.collect());
}

fn capture_costs(path: &Path) -> Option<(Duration, String)> {
    let mut source = FileSource::open(path, FileOptions::default()).ok()?;
    let mut packets = Vec::new();
    loop {
        match source.next_batch(Duration::ZERO) {
            Ok(Next::Packets(batch)) => {
                let interfaces = batch.interfaces().to_vec();
                packets.extend(batch.map(|packet| {
                    let interface = &interfaces[usize::try_from(packet.interface).unwrap()];
                    (
                        packet.timestamp,
                        interface.link_type,
                        packet.original_len,
                        packet.head.to_vec(),
                    )
                }));
            }
            Ok(Next::End) => break,
            Ok(Next::Block(_) | Next::Idle) | Err(_) => {}
        }
    }
    let views: Vec<_> = (0..)
        .zip(&packets)
        .map(|(at, (timestamp, link_type, original_len, data))| PacketView {
            timestamp: *timestamp,
            link_type: *link_type,
            original_len: *original_len,
            ..view(data, at)
        })
        .collect();
    let (number, cost) = costs(&views).into_iter().enumerate().max_by_key(|(_, cost)| *cost)?;
    let name = path.file_name()?.to_string_lossy().into_owned();
    Some((cost, format!("{name}, packet {} of {} bytes", number + 1, views[number].data.len())))
}

fn main() {
    hostile();
    let files: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let costs: Vec<_> = files.iter().filter_map(|file| capture_costs(file)).collect();
    show(&format!("the most expensive packet of each of {} captures", costs.len()), costs);
}
