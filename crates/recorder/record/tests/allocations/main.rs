//! Nothing is allocated for a packet, from the source to the row of its session: ten times as many
//! packets of the same sessions cost what their columns cost, and nothing else.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::print_stdout,
    reason = "a test may stop at once and reads files, and its figures are the result"
)]

#[path = "../recording/namespace.rs"]
mod namespace;
#[expect(dead_code, reason = "the recording tests need more of it")]
#[path = "../recording/volumes.rs"]
mod volumes;

use std::alloc::System;
use std::path::Path;
use std::thread;

use core::ops::ControlFlow;

use capture::FrameSender;
use host::SystemClock;
use record::{Input, Options, record};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use namespace::enter;
use volumes::{folder, new_volume, options, run};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const SESSIONS: u64 = 100;
const FEW: u64 = 20_000;
const MANY: u64 = 10 * FEW;
/// Of columns and looks at counters there is one in thousands of packets, and each allocates some:
/// one allocation in so many packets at most.
const PACKETS_AN_ALLOCATION: u64 = 100;

/// Ethernet, IPv4 and UDP, 64 bytes: one of the sessions, in turn from both ends.
fn frame(number: u64) -> Vec<u8> {
    let host = (number / 2 % SESSIONS) as u8;
    let (from, to) = if number.is_multiple_of(2) { (1, 2) } else { (2, 1) };
    let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 8, 0, 0x45, 0, 0, 50];
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, host, 0, from, 10, host, 0, to]);
    frame.extend([0x90, from, 0x90, to, 0, 30, 0, 0]);
    frame.resize(64, 7);
    frame
}

fn capture_file(path: &Path, packets: u64) {
    let words = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, 1];
    let mut file: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    for number in 0..packets {
        let seconds = 1_700_000_000 + (number / 100_000) as u32;
        for word in [seconds, (number % 100_000) as u32, 64, 64] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame(number));
    }
    std::fs::write(path, file).unwrap();
}

/// Counts the allocations of the whole process while few and many packets are recorded.
fn check(record: impl Fn(u64)) {
    let of = |packets| {
        let region = Region::new(ALLOCATOR);
        record(packets);
        let change = region.change();
        u64::try_from(change.allocations + change.reallocations).unwrap()
    };
    // What is made once is out of the way.
    of(FEW);
    let (few, many) = (of(FEW), of(MANY));
    println!("{few} allocations for {FEW} packets, {many} for {MANY}");
    assert!((many - few) * PACKETS_AN_ALLOCATION < MANY - FEW, "{few}, {many}");
}

#[test]
fn packets_of_a_file_allocate_nothing() {
    let folder = folder();
    let file = |packets| folder.path().join(format!("{packets}.pcap"));
    for packets in [FEW, MANY] {
        capture_file(&file(packets), packets);
    }
    let volume = folder.path().join("volume");
    new_volume(&volume, 1 << 20, 1 << 30);
    check(|packets| {
        let report = run(&options(&volume, Input::Files(vec![file(packets)])));
        assert_eq!((report.total.stored, report.rows), (packets, SESSIONS));
    });
}

/// Sends and records so many packets of a link.
fn live(options: &Options, frames: &[Vec<u8>], packets: u64) {
    thread::scope(|scope| {
        let mut sending = None;
        let report = record(options, &SystemClock, &mut |progress| {
            let sending = sending.get_or_insert_with(|| {
                scope.spawn(|| {
                    let sender = FrameSender::open("left").unwrap();
                    for frame in frames.iter().cycle().take(packets as usize) {
                        sender.send(frame).unwrap();
                    }
                })
            });
            let is_over = sending.is_finished() && progress.total.offered >= packets;
            if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let total = report.unwrap().total;
        assert!(total.offered == packets && total.is_balanced(), "{total:?}");
    });
}

#[test]
fn packets_of_a_link_allocate_nothing() {
    let link = "ip link add name left type veth peer name right
        for link in left right; do ip link set $link arp off up; done";
    if !enter("packets_of_a_link_allocate_nothing", link) {
        return;
    }
    let folder = folder();
    let volume = folder.path().join("volume");
    new_volume(&volume, 1 << 20, 1 << 30);
    let options = options(&volume, Input::Interfaces(vec!["right".to_owned()]));
    let frames: Vec<Vec<u8>> = (0..2 * SESSIONS).map(frame).collect();
    check(|packets| live(&options, &frames, packets));
}
