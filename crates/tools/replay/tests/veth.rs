//! Replays over a veth pair in a network namespace of each test's own: what is received is what
//! was in the capture, byte for byte.

#![expect(
    unsafe_code,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests fail by panicking, and namespaces are C"
)]

use core::num::NonZeroU64;
use core::ops::ControlFlow;
use core::time::Duration;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use capture::{
    Error, FileOptions, FileSource, LiveOptions, LiveSource, Next, Outlet, Source, Transmitter,
};
use host::SystemClock;
use replay::{Input, Options, Pace, Report, Rewrite, replay};
use units::{ByteSize, Timestamp};

const WAIT: Duration = Duration::from_millis(100);

/// Moves this thread, and those that it starts, into an empty network namespace with a veth pair
/// `left` and `right` that sends nothing by itself. False, with the reason printed, where that is
/// not possible.
fn enter_namespace(mtu: usize) -> bool {
    // SAFETY: no pointer is passed; only this thread changes its namespaces.
    if unsafe { libc::unshare(libc::CLONE_NEWNET | libc::CLONE_NEWNS) } != 0 {
        println!("not run: needs root ({})", std::io::Error::last_os_error());
        return false;
    }
    let steps = format!(
        "mount --make-rprivate / && mount -t sysfs none /sys
        if [ -d /proc/sys/net/ipv6 ]; then
            echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6
            echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6
        fi
        ip link add left mtu {mtu} type veth peer name right mtu {mtu}
        ip link set left arp off up && ip link set right arp off up"
    );
    let done = shell(&steps);
    if !done {
        println!("not run: the namespace could not be set up (needs mount and ip)");
    }
    done
}

fn shell(steps: &str) -> bool {
    let status = Command::new("sh").args(["-e", "-c", steps]).stdin(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// A captured packet: its time, and its bytes.
type Captured = (Timestamp, Vec<u8>);

fn drain(source: &mut dyn Source) -> Vec<Captured> {
    let mut captured = Vec::new();
    loop {
        match source.next_batch(WAIT).unwrap() {
            Next::Packets(batch) => captured.extend(batch.map(|packet| {
                let tag = packet.tag.as_ref().map_or(&[][..], |tag| tag);
                (packet.timestamp, [packet.head, tag, packet.tail].concat())
            })),
            Next::Block(_) | Next::Idle => {}
            Next::End => return captured,
        }
    }
}

fn file(path: &Path) -> Vec<Captured> {
    drain(&mut FileSource::open(path, FileOptions::default()).unwrap())
}

fn options(pace: Pace, loops: u64) -> Options {
    let limits = Transmitter::open("left").unwrap().limits();
    let loops = NonZeroU64::new(loops);
    Options { pace, loops, rewrite: Rewrite::Nothing, pad: false, limits, memory_bytes: 64 << 20 }
}

/// Replays from `left`, and gives what came to `right`.
fn sent(options: &Options, path: &Path, threads: usize) -> (Report, Vec<Captured>) {
    let mut source = LiveSource::open(&LiveOptions {
        interfaces: vec!["right".to_owned()],
        ring_size: ByteSize(64 << 20),
        ..LiveOptions::default()
    })
    .unwrap();
    let outlets =
        (0..threads).map(|_| -> Box<dyn Outlet> { Box::new(Transmitter::open("left").unwrap()) });
    let open = move || -> Result<Box<dyn Source>, Error> {
        Ok(Box::new(FileSource::open(path, FileOptions::default())?))
    };
    let input = Input { open: Box::new(open), is_repeatable: true };
    let go_on = &mut |_: &replay::Progress| ControlFlow::Continue(());
    let report = replay(options, input, outlets.collect(), &SystemClock, go_on).unwrap();
    source.begin_stop();
    (report, drain(&mut source))
}

fn bytes(captured: &[Captured]) -> Vec<&Vec<u8>> {
    captured.iter().map(|(_, bytes)| bytes).collect()
}

/// Writes frames as a pcap, `gap_us` apart.
fn capture(folder: &Path, frames: &[Vec<u8>], gap_us: u32) -> PathBuf {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, 1] {
        file.extend(u32::to_le_bytes(word));
    }
    for (number, frame) in (0_u32..).zip(frames) {
        let (micros, len) = (number * gap_us, u32::try_from(frame.len()).unwrap());
        for word in [micros / 1_000_000, micros % 1_000_000, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    let path = folder.join("frames.pcap");
    std::fs::write(&path, file).unwrap();
    path
}

fn frame(tags: &[u8], len: usize, number: u8) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 9]);
    frame.extend(tags);
    frame.extend([8, 0, 0x45, 0, 0, 46, 0, 1, 0, 0, 64, 99, 0, 0, 10, 0, 0, number, 10, 0, 0, 2]);
    frame.resize(len, number);
    frame
}

const TAG: [u8; 4] = [0x81, 0, 0xa0, 100];
const TWO_TAGS: [u8; 8] = [0x88, 0xa8, 0, 7, 0x81, 0, 0x10, 100];

#[test]
fn frames_arrive_as_they_were_captured_with_tags_jumbo_and_in_loops() {
    if !enter_namespace(9000) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let frames: Vec<Vec<u8>> = (0..100)
        .flat_map(|number| {
            [
                frame(&[], 60, number),
                frame(&TAG, 64, number),
                frame(&TWO_TAGS, 1522, number),
                frame(&[], 9014, number),
                frame(&TAG, 9018, number),
                vec![number; 14],
            ]
        })
        .collect();
    let path = capture(folder.path(), &frames, 10);
    for (pace, loops) in [(Pace::Top, 3), (Pace::ORIGINAL, 1)] {
        let (report, received) = sent(&options(pace, loops), &path, 1);
        assert!(report.is_clean(), "{report:?}");
        assert_eq!(report.interface_drops, Some(0));
        let expect: Vec<_> = (0..loops).flat_map(|_| &frames).collect();
        assert!(bytes(&received) == expect, "{pace:?}: {} received", received.len());
    }
}

#[test]
fn what_is_longer_than_the_mtu_is_what_the_kernel_would_refuse() {
    if !enter_namespace(1500) {
        return;
    }
    let mut outlet = Transmitter::open("left").unwrap();
    let limits = outlet.limits();
    for (tags, longest) in [(&[][..], 1514), (&TAG[..], 1518), (&TWO_TAGS[..], 1514)] {
        for len in [longest, longest + 1] {
            let frame = frame(tags, len, 1);
            let judged = limits.judge(frame[12..].first_chunk().copied(), frame.len());
            assert_eq!(judged.is_ok(), len == longest);
            assert_eq!(outlet.send(&[&frame]).is_ok(), len == longest, "{len} {tags:?}");
        }
    }
    assert!(outlet.send(&[&[0; 13][..]]).is_err(), "shorter than a header");
}

#[test]
fn real_captures_arrive_whole_from_several_threads() {
    if !enter_namespace(65_521) {
        return;
    }
    let demo = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../faces/wirespool/demo"));
    let (report, received) = sent(&options(Pace::Top, 2), demo, 2);
    let captured = file(demo);
    let is_sent = |packet: &&Captured| packet.1.len() >= 14;
    let mut expect: Vec<_> = captured.iter().filter(is_sent).map(|(_, bytes)| bytes).collect();
    expect.extend(expect.clone());
    let skipped = report.skipped.total();
    assert_eq!(expect.len(), received.len() + usize::try_from(skipped).unwrap() * 2);
    // Whatever the threads, it is the same packets; those left out are truncated ones.
    let mut received = bytes(&received);
    expect.sort();
    received.sort();
    let mut all = expect.iter();
    assert!(received.iter().all(|packet| all.any(|other| other == packet)));
    assert!(received.len() > 100, "{report:?}");
}

#[test]
fn packets_keep_their_gaps_on_the_wire() {
    if !enter_namespace(1500) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let frames: Vec<_> = (0..200).map(|number| frame(&[], 100, number)).collect();
    let path = capture(folder.path(), &frames, 1000);
    let (report, received) = sent(&options(Pace::ORIGINAL, 1), &path, 1);
    assert!(report.is_clean());
    let timing = report.timing.unwrap();
    let first = received[0].0;
    for (number, (at, _)) in (0..).zip(&received) {
        // The clock of capture may be slewed against that of the schedule, and the first packet
        // late by as much as any other.
        let error_ns = at.since(first) - number * 1_000_000;
        let early_ns = 20_000_000 + i64::try_from(timing.max_ns).unwrap();
        assert!(error_ns > -early_ns, "packet {number} came {error_ns} ns early: {timing:?}");
    }
    // How exact it is depends on what else the machine does: that is measured, not tested.
    let late_ns = i64::try_from(timing.max_ns).unwrap();
    assert!(report.elapsed_ns + late_ns >= 150_000_000, "{report:?}");
}

#[test]
fn unique_loops_arrive_with_addresses_of_their_own() {
    if !enter_namespace(1500) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let frames: Vec<_> = (1..100).map(|number| frame(&TAG, 100, number)).collect();
    let path = capture(folder.path(), &frames, 0);
    let unique = Options { rewrite: Rewrite::Addresses, ..options(Pace::Top, 10) };
    let (report, received) = sent(&unique, &path, 1);
    assert!(report.is_clean());
    let pairs: std::collections::BTreeSet<_> =
        received.iter().map(|(_, frame)| frame[30..38].to_vec()).collect();
    assert_eq!((received.len(), pairs.len()), (990, 990));
}

#[test]
fn interfaces_that_cannot_send_are_refused_with_the_remedy() {
    if !enter_namespace(1500) {
        return;
    }
    let refused = |name| Transmitter::open(name).unwrap_err().to_string();
    assert!(refused("absent0").contains("`ip link` shows"));
    assert!(shell("ip link set right down"));
    assert!(refused("left").contains("no carrier"), "{}", refused("left"));
    assert!(shell("ip link set left down"));
    assert_eq!(refused("left"), "interface left is down; bring it up: ip link set left up");
    if shell("ip tuntap add tun9 mode tun 2>/dev/null && ip link set tun9 up") {
        assert!(refused("tun9").contains("takes no Ethernet frames"));
    } else {
        println!("not run: no tun interfaces");
    }
}

#[test]
fn an_interface_that_goes_down_meanwhile_is_named_in_the_report() {
    if !enter_namespace(1500) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = capture(folder.path(), &[frame(&[], 100, 1), frame(&[], 100, 2)], 1000);
    let options = options(Pace::ORIGINAL, 0);
    let outlets: Vec<Box<dyn Outlet>> = vec![Box::new(Transmitter::open("left").unwrap())];
    let open = || -> Result<Box<dyn Source>, Error> {
        Ok(Box::new(FileSource::open(&path, FileOptions::default())?))
    };
    let input = Input { open: Box::new(open), is_repeatable: true };
    let mut is_down = false;
    let report = replay(&options, input, outlets, &SystemClock, &mut |state| {
        if state.packets > 0 && !core::mem::replace(&mut is_down, true) {
            assert!(shell("ip link set left down"));
        }
        ControlFlow::Continue(())
    });
    let report = report.unwrap();
    assert!(report.packets > 0 && !report.is_stopped);
    assert_eq!(report.broken_off, ["interface left is down; bring it up: ip link set left up"]);
}
