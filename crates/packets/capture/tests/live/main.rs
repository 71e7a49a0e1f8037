//! Live capture on veth pairs and loopback, in a network namespace of each test's own that vanishes
//! with its thread.

#![expect(
    unsafe_code,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests fail by panicking, and namespaces and raw sockets are C"
)]

mod fanout;
mod xdp;

use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::Duration;

use capture::{Counters, Error, FrameSender, LiveOptions, LiveSource, Next, Source, Timestamps};
use units::{ByteSize, Timestamp};

const WAIT: Duration = Duration::from_millis(100);

/// Moves this thread into an empty network namespace with its own view of /sys, and makes a veth
/// pair `left` and `right` that sends nothing by itself. False, with the reason printed, where that
/// is not possible.
fn enter_namespace() -> bool {
    // SAFETY: no pointer is passed; only this thread changes its namespaces.
    if unsafe { libc::unshare(libc::CLONE_NEWNET | libc::CLONE_NEWNS) } != 0 {
        println!("not run: needs root ({})", std::io::Error::last_os_error());
        return false;
    }
    let steps = "mount --make-rprivate / && mount -t sysfs none /sys
        if [ -d /proc/sys/net/ipv6 ]; then
            echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6
            echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6
        fi
        ip link set lo up && ip link add left type veth peer name right
        ip link set left arp off up && ip link set right arp off up";
    let done = run("sh", &["-e", "-c", steps]);
    if !done {
        println!("not run: the namespace could not be set up (needs mount and ip)");
    }
    done
}

fn run(program: &str, arguments: &[&str]) -> bool {
    let status = Command::new(program).args(arguments).stdin(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// A captured packet, in one piece.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Captured {
    interface: u32,
    bytes: Vec<u8>,
    original_len: u32,
    outbound: Option<bool>,
    options: Vec<u8>,
    timestamp: Timestamp,
}

/// Stops the source and takes everything that it had accepted.
fn stop(source: &mut dyn Source) -> (Vec<Captured>, Vec<Counters>) {
    source.begin_stop();
    let mut captured = Vec::new();
    loop {
        match source.next_batch(WAIT).unwrap() {
            Next::Packets(batch) => captured.extend(batch.map(|packet| {
                Captured {
                    interface: packet.interface,
                    bytes: [
                        packet.head,
                        packet.tag.as_ref().map_or(&[][..], |tag| tag),
                        packet.tail,
                    ]
                    .concat(),
                    original_len: packet.original_len,
                    outbound: packet.outbound,
                    options: packet.options.to_vec(),
                    timestamp: packet.timestamp,
                }
            })),
            Next::Block(_) => panic!("interfaces have no blocks"),
            Next::Idle => {}
            Next::End => break,
        }
    }
    let counters = source.counters();
    for each in &counters {
        assert_eq!(each.received, each.delivered + each.kernel_drops);
    }
    (captured, counters)
}

/// An IPv4 packet to port 53 behind the given tags, padded to `len`.
fn frame(protocol: u8, tags: &[u8], len: usize) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 9]);
    frame.extend(tags);
    frame.extend([8, 0, 0x45, 0, 0, 46, 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0x30, 0x39, 0, 53, 0, 26, 0, 0]);
    frame.extend((0_u8..=255).cycle().take(len - frame.len()));
    frame
}

const UDP: u8 = 17;
const TCP: u8 = 6;
/// 802.1Q: priority 5, VLAN 100.
const TAG: [u8; 4] = [0x81, 0, 0xa0, 100];
/// 802.1ad VLAN 7, and inside it 802.1Q VLAN 100 with the drop-eligible bit.
const TWO_TAGS: [u8; 8] = [0x88, 0xa8, 0, 7, 0x81, 0, 0x10, 100];

fn frames() -> Vec<Vec<u8>> {
    vec![
        frame(UDP, &[], 60),
        frame(UDP, &TAG, 64),
        frame(TCP, &TAG, 1518),
        frame(UDP, &TWO_TAGS, 200),
        frame(TCP, &[], 1514),
        frame(UDP, &[0x81, 0, 0, 101], 61),
        frame(UDP, &[0x81, 0, 0, 0], 62),
    ]
}

fn options(interfaces: &[&str]) -> LiveOptions {
    LiveOptions {
        interfaces: interfaces.iter().map(|&name| name.to_owned()).collect(),
        ring_size: ByteSize(4 << 20),
        ..LiveOptions::default()
    }
}

#[test]
fn captured_frames_equal_the_frames_sent_with_their_tags() {
    if !enter_namespace() {
        return;
    }
    assert_eq!(promiscuity("right"), "promiscuity 0");
    let mut source = LiveSource::open(&options(&["right", "left"])).unwrap();
    assert_eq!(promiscuity("right"), "promiscuity 1");
    let sent: Vec<Vec<u8>> = (0..50).flat_map(|_| frames()).collect();
    let sender = FrameSender::open("left").unwrap();
    for frame in &sent {
        sender.send(frame).unwrap();
    }
    let (captured, counters) = stop(&mut source);
    for (interface, outbound, flags) in
        [(0, Some(false), &[][..]), (1, Some(true), &[2, 0, 4, 0, 2, 0, 0, 0])]
    {
        let mine: Vec<_> = captured.iter().filter(|each| each.interface == interface).collect();
        assert_eq!(mine.len(), sent.len());
        assert!(mine.is_sorted_by_key(|each| each.timestamp));
        for (each, frame) in mine.iter().zip(&sent) {
            assert_eq!(&each.bytes, frame);
            assert_eq!(usize::try_from(each.original_len), Ok(frame.len()));
            assert_eq!((each.outbound, &each.options[..]), (outbound, flags));
        }
    }
    for each in counters {
        assert_eq!((each.received, each.kernel_drops), (350, 0));
        assert_eq!((each.interface_drops, each.filter_rejects), (Some(0), None));
    }
    drop(source);
    assert_eq!(promiscuity("right"), "promiscuity 0");
}

/// How many have asked for promiscuous mode.
fn promiscuity(interface: &str) -> String {
    let output = Command::new("ip").args(["-d", "link", "show", interface]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let from = text.find("promiscuity").unwrap();
    text[from..].split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

#[test]
fn kernel_filters_see_the_tags_that_the_kernel_took_out() {
    if !enter_namespace() {
        return;
    }
    let sender = FrameSender::open("left").unwrap();
    for (filter, expect) in [
        ("vlan 100 and udp port 53", vec![1]),
        ("vlan 100", vec![1, 2]),
        ("vlan 7 and vlan 100 and udp", vec![3]),
        // A filter that does not ask for the tag sees the frame without it, as in every live
        // capture with libpcap.
        ("tcp", vec![2, 4]),
        ("vlan and tcp", vec![2]),
    ] {
        let options = LiveOptions { filter: Some(filter.to_owned()), ..options(&["right"]) };
        let mut source = LiveSource::open(&options).unwrap();
        let frames = frames();
        for frame in &frames {
            sender.send(frame).unwrap();
        }
        let (captured, counters) = stop(&mut source);
        let captured: Vec<_> = captured.into_iter().map(|each| each.bytes).collect();
        let expect: Vec<_> = expect.into_iter().map(|at: usize| frames[at].clone()).collect();
        assert_eq!(captured, expect, "{filter}");
        assert_eq!(usize::try_from(counters[0].received), Ok(expect.len()), "{filter}");
        assert_eq!(source.interfaces()[0].filter.as_deref(), Some(filter));
    }
}

#[test]
fn snaplen_cuts_the_frame_as_it_was_on_the_wire() {
    if !enter_namespace() {
        return;
    }
    let mut source = LiveSource::open(&LiveOptions { snaplen: 40, ..options(&["right"]) }).unwrap();
    let sender = FrameSender::open("left").unwrap();
    for frame in frames() {
        sender.send(&frame).unwrap();
    }
    let (captured, _) = stop(&mut source);
    let cut: Vec<_> = captured.iter().map(|each| (each.bytes.clone(), each.original_len)).collect();
    let expect: Vec<_> = frames()
        .iter()
        .map(|frame| (frame[..40].to_vec(), u32::try_from(frame.len()).unwrap()))
        .collect();
    assert_eq!(cut, expect);
}

#[test]
fn loopback_packets_are_captured_once() {
    if !enter_namespace() {
        return;
    }
    let mut source = LiveSource::open(&options(&["lo"])).unwrap();
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    for number in 0..20_u8 {
        sender.send_to(&[number; 33], receiver.local_addr().unwrap()).unwrap();
    }
    let (captured, _) = stop(&mut source);
    let payloads: Vec<_> = captured.iter().map(|each| each.bytes[42..].to_vec()).collect();
    let expect: Vec<_> = (0..20_u8).map(|number| vec![number; 33]).collect();
    assert_eq!(payloads, expect);
    assert!(captured.iter().all(|each| each.outbound.is_none() && each.options.is_empty()));
}

#[test]
fn delivered_and_dropped_packets_add_up_when_the_ring_overflows() {
    if !enter_namespace() {
        return;
    }
    let options = LiveOptions { ring_size: ByteSize(512 << 10), ..options(&["right"]) };
    let mut source = LiveSource::open(&options).unwrap();
    let sender = FrameSender::open("left").unwrap();
    let frame = frame(UDP, &TAG, 1000);
    for _ in 0..5000 {
        sender.send(&frame).unwrap();
    }
    let (captured, counters) = stop(&mut source);
    assert!(captured.iter().all(|each| each.bytes == frame));
    assert_eq!(counters[0].received, 5000);
    assert_eq!(u64::try_from(captured.len()), Ok(counters[0].delivered));
    assert!(counters[0].kernel_drops > 0 && counters[0].delivered > 0, "{counters:?}");
    assert!(counters[0].ring_freezes > 0, "{counters:?}");
}

#[test]
fn an_interface_may_go_down_come_back_and_vanish() {
    if !enter_namespace() {
        return;
    }
    let mut source = LiveSource::open(&options(&["right"])).unwrap();
    let idle = |source: &mut LiveSource| {
        for _ in 0..3 {
            assert!(matches!(source.next_batch(WAIT), Ok(Next::Idle)));
        }
        source.notes()
    };
    assert_eq!(idle(&mut source), Vec::<String>::new());
    assert!(run("ip", &["link", "set", "right", "down"]));
    assert_eq!(idle(&mut source), Vec::<String>::new());
    let counted = source.counters()[0];
    assert!(counted.is_away && counted.times_down == 1, "{counted:?}");
    assert!(run("ip", &["link", "set", "right", "up"]));
    // The carrier comes back a moment after the interface.
    let sender = FrameSender::open("left").unwrap();
    let mut packets = 0;
    for _ in 0..50 {
        sender.send(&frame(UDP, &TAG, 64)).unwrap();
        if let Next::Packets(batch) = source.next_batch(WAIT).unwrap() {
            packets += batch.len();
            break;
        }
    }
    assert!(packets > 0 && !source.counters()[0].is_away);
    assert!(run("ip", &["link", "del", "right"]));
    let error = (0..20).find_map(|_| source.next_batch(WAIT).err()).unwrap();
    assert!(matches!(&error, Error::InterfaceGone { name } if name == "right"), "{error}");
    let (captured, counters) = stop(&mut source);
    assert_eq!(counters[0].delivered, u64::try_from(packets + captured.len()).unwrap());
    assert!(counters[0].is_away);
}

#[test]
fn capture_goes_on_with_the_interfaces_that_are_left() {
    if !enter_namespace() {
        return;
    }
    assert!(run(
        "sh",
        &["-c", "ip link add other type veth peer name rest && ip link set other arp off up"]
    ));
    let mut source = LiveSource::open(&options(&["other", "right"])).unwrap();
    assert!(run("ip", &["link", "del", "other"]));
    let error = (0..20).find_map(|_| source.next_batch(WAIT).err()).unwrap();
    assert!(matches!(&error, Error::InterfaceRemoved { name } if name == "other"), "{error}");
    FrameSender::open("left").unwrap().send(&frame(UDP, &[], 60)).unwrap();
    let (captured, counters) = stop(&mut source);
    assert_eq!(captured.iter().map(|each| each.interface).collect::<Vec<_>>(), [1]);
    assert_eq!(counters.iter().map(|each| each.is_away).collect::<Vec<_>>(), [true, false]);
}

/// Sends on `left` and `other` while it captures at their other ends: one of them is silent at
/// times, and some packets come without a pause. Gives times and numbers of the packets.
#[expect(clippy::disallowed_methods, reason = "the link is silent at times")]
fn capture_of_two(source: &mut dyn Source) -> Vec<(Timestamp, usize)> {
    let [left, other] = ["left", "other"].map(|name| FrameSender::open(name).unwrap());
    let numbered = |timestamp, len| (timestamp, usize::try_from(len).unwrap() - 60);
    let mut captured = Vec::new();
    for number in 0..1400_usize {
        let is_other = number % 500 < 300 && number % 2 == 1;
        let sender = if is_other { &other } else { &left };
        sender.send(&frame(UDP, &[], 60 + number)).unwrap();
        if number % 7 == 0 {
            std::thread::sleep(Duration::from_micros(300));
        }
        if number % 5 == 0
            && let Next::Packets(batch) = source.next_batch(Duration::ZERO).unwrap()
        {
            captured.extend(batch.map(|packet| numbered(packet.timestamp, packet.original_len)));
        }
    }
    println!("{} packets were there before the stop", captured.len());
    let (rest, _) = stop(source);
    captured.extend(rest.iter().map(|each| numbered(each.timestamp, each.original_len)));
    captured
}

const OTHER_PAIR: &str = "ip link add other type veth peer name rest
    ip link set other arp off up && ip link set rest arp off up";

/// As a tap gives them: one direction on each of two interfaces.
#[test]
fn packets_of_two_interfaces_come_in_the_order_of_their_times() {
    if !enter_namespace() {
        return;
    }
    assert!(run("sh", &["-e", "-c", OTHER_PAIR]));
    let mut source = LiveSource::open(&options(&["right", "rest"])).unwrap();
    let captured = capture_of_two(&mut source);
    assert!(captured.is_sorted_by_key(|(timestamp, _)| *timestamp));
    assert!(captured.iter().map(|(_, number)| *number).eq(0..1400));
}

/// The other one is silent.
#[test]
#[expect(clippy::disallowed_methods, reason = "waits of a real interface are measured")]
fn an_interface_without_packets_holds_up_another_for_milliseconds() {
    if !enter_namespace() {
        return;
    }
    assert!(run("sh", &["-e", "-c", OTHER_PAIR]));
    let mut source = LiveSource::open(&options(&["right", "rest"])).unwrap();
    let sender = FrameSender::open("left").unwrap();
    let mut waits: Vec<Duration> = (0..9)
        .map(|_| {
            let begin = std::time::Instant::now();
            sender.send(&frame(UDP, &[], 60)).unwrap();
            while !matches!(source.next_batch(WAIT), Ok(Next::Packets(_))) {}
            begin.elapsed()
        })
        .collect();
    waits.sort_unstable();
    println!("{waits:?}");
    // A busy machine may be late with some of them.
    assert!(waits[4] < Duration::from_millis(50));
}

#[test]
fn a_packet_on_an_idle_link_is_there_within_a_tenth_of_a_second() {
    if !enter_namespace() {
        return;
    }
    let mut source = LiveSource::open(&options(&["right"])).unwrap();
    let sender = FrameSender::open("left").unwrap();
    let wait = Duration::from_millis(10);
    let mut waits: Vec<usize> = (0..9)
        .map(|_| {
            sender.send(&frame(UDP, &[], 60)).unwrap();
            let mut idle = core::iter::from_fn(|| {
                matches!(source.next_batch(wait), Ok(Next::Idle)).then_some(())
            });
            idle.by_ref().count()
        })
        .collect();
    waits.sort_unstable();
    println!("{waits:?} waits of {wait:?}");
    // A busy machine may be late with some of them.
    assert!(waits[4] < 10);
}

#[test]
fn an_adapter_without_a_clock_leaves_the_times_to_the_kernel() {
    if !enter_namespace() {
        return;
    }
    let options = LiveOptions { timestamps: Timestamps::Adapter, ..options(&["right"]) };
    let mut source = LiveSource::open(&options).unwrap();
    let notes = source.notes();
    let expect = "interface right: the adapter gives no times (";
    assert!(matches!(&notes[..], [note] if note.starts_with(expect)), "{notes:?}");
    FrameSender::open("left").unwrap().send(&frame(UDP, &[], 60)).unwrap();
    let (captured, _) = stop(&mut source);
    assert!(captured.iter().all(|each| each.timestamp.0 > 0) && captured.len() == 1);
}

#[test]
fn settings_that_falsify_a_capture_are_named_with_what_mends_them() {
    if !enter_namespace() {
        return;
    }
    if !run("ethtool", &["--version"]) {
        println!("not run: ethtool is not installed");
        return;
    }
    let advice = || LiveSource::open(&options(&["right"])).unwrap().advice();
    assert!(run("ethtool", &["-K", "right", "tso", "on", "gso", "on", "gro", "on"]));
    // It has sent nothing so far, and may be there to receive only.
    assert!(advice().iter().all(|line| !line.contains("cuts")));
    FrameSender::open("right").unwrap().send(&frame(UDP, &[], 60)).unwrap();
    assert_eq!(
        advice(),
        [
            "interface right merges segments before they are captured (gro): packets are not \
             stored as they were on the wire; ethtool -K right gro off",
            "interface right cuts what this host sends only after it is captured (tso, gso); \
             ethtool -K right tso off gso off",
        ]
    );
    assert!(run("ethtool", &["-K", "right", "tso", "off", "gso", "off", "gro", "off"]));
    assert_eq!(advice(), Vec::<String>::new());
}

#[test]
fn what_cannot_be_captured_is_refused_with_its_cause() {
    if !enter_namespace() {
        return;
    }
    let refused = |options: &LiveOptions| LiveSource::open(options).unwrap_err().to_string();
    assert_eq!(
        refused(&options(&["right", "nowhere"])),
        "there is no network interface nowhere; `ip link` shows which there are"
    );
    let wrong = LiveOptions { filter: Some("tcp port".to_owned()), ..options(&["right"]) };
    let line = refused(&wrong);
    assert!(line.starts_with("filter \"tcp port\": "), "{line}");
    assert!(run("ip", &["link", "set", "right", "down"]));
    let down = LiveOptions { filter: Some("tcp".to_owned()), ..options(&["right"]) };
    let line = refused(&down);
    assert!(line.ends_with("That device is not up"), "{line}");
    let nobody = 65_534;
    // The system call, unlike the function of libc, concerns this thread only.
    // SAFETY: no pointer is passed.
    assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, nobody, nobody, nobody) }, 0);
    let line = refused(&options(&["right"]));
    assert!(line.starts_with("not permitted to capture from right; run as root"), "{line}");
    assert!(line.contains("setcap cap_net_raw+ep"), "{line}");
}
