//! Whole replays in virtual time, onto an outlet that notes what it is given and when.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use core::num::NonZeroU64;
use core::ops::ControlFlow;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use capture::{FileOptions, FileSource, FrameLimits, Outlet, Source};
use replay::{Error, Input, Options, Pace, Progress, Report, Rewrite, Skipped, replay};
use units::{Clock, ManualClock, Timestamp};

/// What went out, and when, in nanoseconds of the virtual clock.
type Out = Vec<(i64, Vec<u8>)>;
type Sent = Arc<Mutex<Out>>;

struct Notebook {
    sent: Sent,
    clock: Arc<ManualClock>,
    /// Most frames taken in one call.
    per_call: usize,
    /// Every so many calls there is no space; 0 is never.
    refuse_every: usize,
    calls: usize,
    /// Fails for good after so many frames.
    breaks_after: usize,
}

impl Outlet for Notebook {
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, capture::Error> {
        self.calls += 1;
        if self.refuse_every > 0 && self.calls.is_multiple_of(self.refuse_every) {
            self.clock.advance_nanos(400_000_000);
            return Ok(0);
        }
        let mut sent = self.sent.lock().unwrap();
        if sent.len() >= self.breaks_after {
            return Err(capture::Error::Down { name: "eth9".to_owned() });
        }
        let taken = frames.len().min(self.per_call);
        let now = self.clock.boottime_ns();
        sent.extend(frames[..taken].iter().map(|frame| (now, frame.to_vec())));
        Ok(taken)
    }

    fn check(&self) -> Result<(), capture::Error> {
        Ok(())
    }

    fn interface_drops(&self) -> Option<u64> {
        Some(0)
    }
}

/// A packet of a capture: microseconds, captured bytes, length on the wire.
type Captured = (u32, Vec<u8>, u32);

/// A frame of `len` bytes from host `number`, the same length on the wire.
fn packet(micros: u32, number: u8, len: usize) -> Captured {
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, 0, 46, 0, 1, 0, 0, 64, 99, 0, 0, 10, 0, 0, number, 10, 0, 0, 2]);
    frame.resize(len, number);
    (micros, frame, u32::try_from(len).unwrap())
}

fn capture(link_type: u32, packets: &[Captured]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, link_type] {
        bytes.extend(u32::to_le_bytes(word));
    }
    for (micros, frame, original) in packets {
        let captured = u32::try_from(frame.len()).unwrap();
        for word in [1000 + micros / 1_000_000, micros % 1_000_000, captured, *original] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(frame);
    }
    file.write_all(&bytes).unwrap();
    file
}

fn options(pace: Pace, loops: u64) -> Options {
    let limits = FrameLimits { mtu: 1500 };
    let loops = NonZeroU64::new(loops);
    Options { pace, loops, rewrite: Rewrite::Nothing, pad: false, limits, memory_bytes: 64 << 20 }
}

/// How a replay is run, and on what.
struct Setting {
    senders: usize,
    per_call: usize,
    refuse_every: usize,
    breaks_after: usize,
    is_repeatable: bool,
}

const PLAIN: Setting = Setting {
    senders: 1,
    per_call: 64,
    refuse_every: 0,
    breaks_after: usize::MAX,
    is_repeatable: true,
};

fn run(
    options: &Options,
    path: &Path,
    setting: &Setting,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> (Result<Report, Error>, Out) {
    let clock = Arc::new(ManualClock::new(Timestamp(7_000_000_000)));
    let sent = Sent::default();
    let outlets = (0..setting.senders).map(|_| -> Box<dyn Outlet> {
        Box::new(Notebook {
            sent: Arc::clone(&sent),
            clock: Arc::clone(&clock),
            per_call: setting.per_call,
            refuse_every: setting.refuse_every,
            calls: 0,
            breaks_after: setting.breaks_after,
        })
    });
    let open = move || -> Result<Box<dyn Source>, capture::Error> {
        Ok(Box::new(FileSource::open(path, FileOptions::default())?))
    };
    let input = Input { open: Box::new(open), is_repeatable: setting.is_repeatable };
    let report = replay(options, input, outlets.collect(), &*clock, progress);
    let sent = sent.lock().unwrap().clone();
    (report, sent)
}

fn go_on(_: &Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Microseconds from the first packet, and the host number of each.
fn times(sent: &[(i64, Vec<u8>)]) -> Vec<(i64, u8)> {
    sent.iter().map(|(at, frame)| ((at - sent[0].0) / 1000, frame[29])).collect()
}

#[test]
fn packets_go_at_their_times_and_loops_follow() {
    let file = capture(1, &[packet(0, 1, 60), packet(250, 2, 60), packet(1000, 3, 60)]);
    let (report, sent) = run(&options(Pace::ORIGINAL, 2), file.path(), &PLAIN, &mut go_on);
    let report = report.unwrap();
    let expect = [(0, 1), (250, 2), (1000, 3), (1500, 1), (1750, 2), (2500, 3)];
    assert_eq!(times(&sent), expect);
    assert_eq!((report.packets, report.bytes, report.loops()), (6, 360, 2));
    assert_eq!(report.timing.unwrap().max_ns, 0, "virtual time is exact");
    assert_eq!(report.elapsed_ns, 2_500_000);
    assert_eq!(report.packets_per_second(), Some(2400));
    assert!(report.is_clean() && !report.is_streamed);
}

#[test]
fn a_rate_is_held_whatever_the_capture_says() {
    let file = capture(1, &[packet(0, 1, 100), packet(900_000, 2, 100), packet(900_000, 3, 300)]);
    let pps = Pace::Packets { per_1000_seconds: 1_000_000 };
    let (_, sent) = run(&options(pps, 1), file.path(), &PLAIN, &mut go_on);
    assert_eq!(times(&sent), [(0, 1), (1000, 2), (2000, 3)]);
    let bits = Pace::Bits { per_second: 800_000 };
    let (_, sent) = run(&options(bits, 1), file.path(), &PLAIN, &mut go_on);
    assert_eq!(times(&sent), [(0, 1), (1000, 2), (2000, 3)]);
}

#[test]
fn what_cannot_be_sent_is_counted_by_reason_and_left_out() {
    let mut truncated = packet(1, 2, 60);
    truncated.2 = 200;
    let tagged = |len: usize| {
        let (micros, mut frame, original) = packet(4, 5, len);
        frame[12..14].copy_from_slice(&[0x81, 0]);
        (micros, frame, original)
    };
    let runt = (3, vec![2; 13], 13);
    let packets =
        [packet(0, 1, 1514), truncated, packet(2, 3, 1515), runt, tagged(1518), tagged(1519)];
    let file = capture(1, &packets);
    let (report, sent) = run(&options(Pace::Top, 3), file.path(), &PLAIN, &mut go_on);
    let report = report.unwrap();
    let skipped = Skipped { truncated: 1, too_long: 2, too_short: 1, link_type: 0 };
    assert_eq!((report.skipped, report.packets, report.loop_packets), (skipped, 6, 2));
    assert_eq!(sent.iter().map(|(_, frame)| frame.len()).max(), Some(1518));
    assert!(!report.is_clean() && report.timing.is_none());

    let (report, sent) =
        run(&Options { pad: true, ..options(Pace::Top, 1) }, file.path(), &PLAIN, &mut go_on);
    assert_eq!(report.unwrap().skipped.truncated, 0);
    let padded = &sent[1].1;
    assert_eq!((padded.len(), &padded[60..]), (200, &[0; 140][..]));
}

#[test]
fn a_capture_of_another_link_type_is_refused_by_name() {
    let file = capture(101, &[packet(0, 1, 60)]);
    let (report, sent) = run(&options(Pace::Top, 1), file.path(), &PLAIN, &mut go_on);
    assert_eq!(
        report.unwrap_err().to_string(),
        "packets of link type RAW do not fit an interface of Ethernet frames"
    );
    assert!(sent.is_empty());
}

#[test]
fn an_interface_without_room_gets_every_packet_once_and_late() {
    let packets: Vec<_> = (0..200).map(|number| packet(number.into(), number, 60)).collect();
    let file = capture(1, &packets);
    let setting = Setting { per_call: 7, refuse_every: 3, ..PLAIN };
    let (report, sent) = run(&options(Pace::ORIGINAL, 2), file.path(), &setting, &mut go_on);
    let report = report.unwrap();
    let frames: Vec<_> = sent.iter().map(|(_, frame)| frame.clone()).collect();
    let expect: Vec<_> =
        (0..2).flat_map(|_| packets.iter().map(|packet| packet.1.clone())).collect();
    assert_eq!(frames, expect);
    assert!(report.refusals > 10);
    assert!(report.timing.unwrap().max_ns >= 400_000_000);
}

/// 40 000 packets of 200 hosts, 3 MB.
fn many() -> (Vec<Captured>, tempfile::NamedTempFile) {
    let packet = |number: u32| {
        let host = u8::try_from(number % 200).unwrap();
        packet(number, host, 60 + usize::from(host) % 30)
    };
    let packets: Vec<_> = (0..40_000).map(packet).collect();
    let file = capture(1, &packets);
    (packets, file)
}

#[test]
fn a_large_input_is_read_while_it_is_sent_as_often_as_asked() {
    let (packets, file) = many();
    let small = Options { memory_bytes: 1 << 20, ..options(Pace::Top, 3) };
    let (report, sent) = run(&small, file.path(), &PLAIN, &mut go_on);
    let report = report.unwrap();
    assert!(report.is_streamed && report.is_clean(), "{report:?}");
    assert_eq!((report.packets, report.loops()), (120_000, 3));
    assert!(
        sent.iter()
            .map(|(_, frame)| frame)
            .eq((0..3).flat_map(|_| packets.iter().map(|packet| &packet.1)))
    );

    let setting = Setting { is_repeatable: false, ..PLAIN };
    let (refused, _) = run(&small, file.path(), &setting, &mut go_on);
    assert!(matches!(refused, Err(Error::NotRepeatable { memory_bytes: 1_048_576 })));
    let once = Options { loops: NonZeroU64::new(1), ..small };
    let (report, _) = run(&once, file.path(), &setting, &mut go_on);
    assert_eq!(report.unwrap().packets, 40_000, "one loop needs no second reading");
}

#[test]
fn streamed_and_loaded_replays_keep_the_same_times() {
    let (_, file) = many();
    let timed = options(Pace::Packets { per_1000_seconds: 7_777_000 }, 3);
    let (_, loaded) = run(&timed, file.path(), &PLAIN, &mut go_on);
    let streamed = Options { memory_bytes: 1 << 20, ..timed };
    let (_, streamed) = run(&streamed, file.path(), &PLAIN, &mut go_on);
    assert!(times(&loaded) == times(&streamed));
}

#[test]
fn several_lanes_send_all_packets_and_keep_the_order_of_each_pair_of_hosts() {
    let (packets, file) = many();
    for memory_bytes in [1 << 20, 64 << 20] {
        let options = Options { memory_bytes, ..options(Pace::Top, 2) };
        let setting = Setting { senders: 3, ..PLAIN };
        let (report, sent) = run(&options, file.path(), &setting, &mut go_on);
        assert_eq!(report.unwrap().packets, 80_000);
        for host in 0..200 {
            let of_host = |frame: &&Vec<u8>| frame[29] == host;
            let mine = sent.iter().map(|(_, frame)| frame).filter(of_host);
            let expect =
                (0..2).flat_map(|_| packets.iter().map(|packet| &packet.1).filter(of_host));
            assert!(mine.eq(expect), "host {host}");
        }
    }
}

#[test]
fn unique_loops_have_no_address_pair_in_common() {
    let packets: Vec<_> = (1..50).map(|number| packet(0, number, 60)).collect();
    let file = capture(1, &packets);
    let unique = Options { rewrite: Rewrite::Addresses, ..options(Pace::Top, 20) };
    let (report, sent) = run(&unique, file.path(), &PLAIN, &mut go_on);
    assert!(report.unwrap().is_clean());
    let pairs: std::collections::BTreeSet<_> =
        sent.iter().map(|(_, frame)| frame[26..34].to_vec()).collect();
    assert_eq!(pairs.len(), 49 * 20);
    assert!(sent[..49].iter().map(|(_, frame)| frame).eq(packets.iter().map(|packet| &packet.1)));
}

#[test]
fn stamps_number_packets_over_all_loops_and_change_nothing_else() {
    let packets: Vec<_> = (1..100).map(|number| packet(0, number, 60)).collect();
    let file = capture(1, &packets);
    let stamps = Options { rewrite: Rewrite::Stamps { key: 5 }, ..options(Pace::Top, 7) };
    let (report, sent) = run(&stamps, file.path(), &PLAIN, &mut go_on);
    assert!(report.unwrap().is_clean());
    assert_eq!(sent.len(), 99 * 7);
    for (number, (_, frame)) in sent.iter().enumerate() {
        assert_eq!(wire::stamped(frame, 5), u64::try_from(number).ok());
        assert_eq!(frame[..44], packets[number % 99].1[..44]);
    }
}

#[test]
fn endless_loops_end_when_they_are_stopped_and_say_what_was_sent() {
    let file = capture(1, &[packet(0, 1, 60), packet(10, 2, 60)]);
    let mut stop = |state: &Progress| match state.packets {
        0..1000 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    };
    let (report, sent) = run(&options(Pace::ORIGINAL, 0), file.path(), &PLAIN, &mut stop);
    let report = report.unwrap();
    assert!(report.is_stopped && report.packets >= 1000);
    assert_eq!(usize::try_from(report.packets), Ok(sent.len()));
}

#[test]
fn an_empty_capture_ends_at_once_even_endlessly() {
    let file = capture(1, &[]);
    let (report, sent) = run(&options(Pace::Top, 0), file.path(), &PLAIN, &mut go_on);
    assert_eq!((report.unwrap().packets, sent.len()), (0, 0));
}

#[test]
fn an_interface_that_goes_down_ends_the_replay_with_what_was_sent() {
    let (_, file) = many();
    let setting = Setting { breaks_after: 6400, ..PLAIN };
    let (report, _) = run(&options(Pace::Top, 1), file.path(), &setting, &mut go_on);
    let report = report.unwrap();
    assert_eq!((report.packets, report.is_stopped), (6400, false));
    assert_eq!(report.broken_off, ["interface eth9 is down; bring it up: ip link set eth9 up"]);
}

#[test]
fn what_stands_before_a_damaged_place_is_sent_and_the_damage_named() {
    let file = capture(1, &[packet(0, 1, 60), packet(10, 2, 60)]);
    file.as_file().set_len(24 + 16 + 60 + 16 + 30).unwrap();
    let (report, _) = run(&options(Pace::Top, 2), file.path(), &PLAIN, &mut go_on);
    let report = report.unwrap();
    assert_eq!((report.packets, report.broken_off.len()), (2, 1));
    assert!(report.broken_off[0].contains("damaged at byte 100"), "{:?}", report.broken_off);
}

#[test]
fn an_input_without_a_single_packet_fails_with_its_reason() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "not a capture at all, but long enough to tell").unwrap();
    let (report, _) = run(&options(Pace::Top, 2), file.path(), &PLAIN, &mut go_on);
    assert!(report.unwrap_err().to_string().ends_with("not a pcap, pcapng or snoop file"));
    let missing = Path::new("/nonexistent/file.pcap");
    let (report, _) = run(&options(Pace::Top, 1), missing, &PLAIN, &mut go_on);
    assert!(report.unwrap_err().to_string().starts_with("cannot read /nonexistent/file.pcap"));
}
