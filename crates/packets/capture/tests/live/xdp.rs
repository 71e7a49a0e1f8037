//! `AF_XDP`: what comes out is what was sent, and what does not is counted.

use core::num::NonZeroUsize;
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use capture::{
    Counters, Error, FrameSender, LiveOptions, LiveSource, Next, Outlet, Source, XdpSource,
    XdpTransmitter,
};
use units::ByteSize;

use crate::{
    Captured, OTHER_PAIR, TAG, UDP, WAIT, capture_of_two, enter_namespace, frame, frames, options,
    run, stop,
};

/// Programs that other tests start have our descriptors for a moment, and with them the queue.
fn open_queues(options: &LiveOptions, count: NonZeroUsize) -> Vec<XdpSource> {
    for _ in 0..100 {
        match XdpSource::open_queues(options, count) {
            Err(Error::XdpQueueTaken { .. }) => assert!(run("sleep", &["0.05"])),
            opened => return opened.unwrap(),
        }
    }
    panic!("another socket stays on the queue");
}

fn open(options: &LiveOptions) -> XdpSource {
    let mut sources = open_queues(options, NonZeroUsize::MIN);
    assert_eq!(sources.len(), 1);
    sources.pop().unwrap()
}

/// Sends on `left`, and what came of it.
fn capture(source: &mut dyn Source, sent: &[Vec<u8>]) -> (Vec<Captured>, Counters) {
    let sender = FrameSender::open("left").unwrap();
    for frame in sent {
        sender.send(frame).unwrap();
    }
    let (captured, counters) = stop(source);
    (captured, *counters.first().unwrap())
}

fn now_ns() -> i64 {
    #[expect(clippy::disallowed_methods, reason = "the kernel's times are compared with it")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_nanos()).unwrap()
}

#[test]
fn frames_come_byte_for_byte_with_their_tags_and_times() {
    if !enter_namespace() {
        return;
    }
    let mut source = open(&options(&["right"]));
    let notes = source.notes();
    assert_eq!(notes.len(), 1, "{notes:?}");
    let expect =
        "interface right: AF_XDP on 1 receive queue, by its driver, copied (no zero-copy: ";
    assert!(notes[0].starts_with(expect), "{notes:?}");
    let sent: Vec<Vec<u8>> = (0..50).flat_map(|_| frames()).collect();
    let before = now_ns();
    let (captured, counters) = capture(&mut source, &sent);
    let after = now_ns();
    assert!(captured.iter().map(|each| &each.bytes).eq(&sent));
    assert!(captured.is_sorted_by_key(|each| each.timestamp));
    for each in &captured {
        assert!((before..after).contains(&each.timestamp.0), "{each:?}");
        assert_eq!(usize::try_from(each.original_len), Ok(each.bytes.len()));
        assert_eq!((each.outbound, each.options.len()), (Some(false), 0));
    }
    // Not a time for a batch: the program looks at the clock for each packet.
    assert!(captured.windows(2).all(|pair| pair[0].timestamp != pair[1].timestamp));
    assert_eq!((counters.received, counters.kernel_drops), (350, 0));
    assert_eq!((counters.interface_drops, counters.filter_rejects), (Some(0), None));
}

#[test]
fn packets_of_two_interfaces_come_in_the_order_of_their_times() {
    if !enter_namespace() {
        return;
    }
    assert!(run("sh", &["-e", "-c", OTHER_PAIR]));
    let mut source = open(&options(&["right", "rest"]));
    // The driver gives several packets of one end before it looks at the other.
    let mut captured = capture_of_two(&mut source);
    assert!(captured.is_sorted_by_key(|(timestamp, _)| *timestamp));
    captured.sort_unstable_by_key(|(_, number)| *number);
    assert!(captured.iter().map(|(_, number)| *number).eq(0..1400));
}

#[test]
fn jumbo_frames_of_several_chunks_come_in_one_piece() {
    if !enter_namespace() {
        return;
    }
    for name in ["left", "right"] {
        assert!(run("ip", &["link", "set", name, "mtu", "9000"]));
    }
    let mut source = open(&LiveOptions { ring_size: ByteSize(16 << 20), ..options(&["right"]) });
    let lengths = [60, 3840, 3841, 7680, 9014];
    let sent: Vec<Vec<u8>> =
        (0..300).flat_map(|_| lengths.map(|len| frame(UDP, &[], len))).collect();
    let (captured, counters) = capture(&mut source, &sent);
    assert_eq!(counters.received, 1500);
    assert!(captured.iter().map(|each| &each.bytes).eq(&sent), "{} came", captured.len());
}

#[test]
fn without_driver_mode_the_generic_one_is_used_but_not_on_what_lies_on_another_interface() {
    if !enter_namespace() {
        return;
    }
    // With more queues at the other end the driver refuses.
    let pair = "ip link del left && ip link add name left mtu 9000 numtxqueues 2 type veth peer \
                name right mtu 9000 && ip link set left arp off up && ip link set right arp off up";
    assert!(run("sh", &["-c", pair]));
    let mut source = open(&LiveOptions { ring_size: ByteSize(16 << 20), ..options(&["right"]) });
    let notes = source.notes();
    assert!(notes[0].contains("in generic mode, copied (no driver mode: "), "{notes:?}");
    let lengths = [60, 1514, 9000].into_iter().cycle().take(300);
    let sent: Vec<_> = lengths.map(|len| frame(UDP, &TAG, len)).collect();
    let before = now_ns();
    let (captured, counters) = capture(&mut source, &sent);
    assert_eq!((counters.received, counters.kernel_drops), (300, 0));
    assert!(captured.iter().map(|each| &each.bytes).eq(&sent), "{} came", captured.len());
    assert!(captured.iter().all(|each| (before..now_ns()).contains(&each.timestamp.0)));
    drop(source);
    let layered = "ip link add link right name inner type macvlan && ip link set inner arp off up";
    if !run("sh", &["-c", layered]) {
        println!("not run: the kernel has no macvlan");
        return;
    }
    // The kernel has taken their tags out by then.
    let line = XdpSource::open_queues(&options(&["inner"]), NonZeroUsize::MIN).unwrap_err();
    assert!(line.to_string().starts_with("interface inner lies on another one"), "{line}");
}

#[test]
fn filter_and_snaplen_apply_to_the_frame_as_it_was_on_the_wire() {
    if !enter_namespace() {
        return;
    }
    for (filter, expect) in [
        ("vlan 100 and udp port 53", vec![1]),
        ("vlan 7 and vlan 100 and udp", vec![3]),
        // Unlike the kernel's, the filter sees a frame with its tag, as it does in files.
        ("tcp", vec![4]),
        ("tcp or (vlan and tcp)", vec![2, 4]),
    ] {
        let filter = Some(filter.to_owned());
        let mut source = open(&LiveOptions { filter, snaplen: 40, ..options(&["right"]) });
        let (captured, counters) = capture(&mut source, &frames());
        let expect: Vec<_> = expect.into_iter().map(|at: usize| frames()[at].clone()).collect();
        assert!(captured.iter().map(|each| &each.bytes[..]).eq(expect.iter().map(|it| &it[..40])));
        let lengths = captured.iter().map(|each| usize::try_from(each.original_len).unwrap());
        assert!(lengths.eq(expect.iter().map(Vec::len)));
        let rejects = u64::try_from(7 - expect.len()).unwrap();
        assert_eq!((counters.received, counters.filter_rejects), (7 - rejects, Some(rejects)));
    }
}

#[test]
fn delivered_and_dropped_packets_add_up_when_the_memory_overflows() {
    if !enter_namespace() {
        return;
    }
    let mut source = open(&LiveOptions { ring_size: ByteSize(512 << 10), ..options(&["right"]) });
    let sent = vec![frame(UDP, &TAG, 1000); 5000];
    let (captured, counters) = capture(&mut source, &sent);
    assert!(captured.iter().all(|each| each.bytes == sent[0]));
    // What the pair itself had no space for was never offered, and is counted by it.
    assert!(counters.received <= 5000);
    assert_eq!(u64::try_from(captured.len()), Ok(counters.delivered));
    // 256 chunks of 2 KiB, all of them full.
    assert_eq!(counters.delivered, 256);
    assert!(counters.kernel_drops > 0 && counters.ring_freezes > 0, "{counters:?}");
}

#[test]
fn every_receive_queue_has_a_socket_whatever_the_number_of_sources() {
    if !enter_namespace() {
        return;
    }
    let pair = "ip link add name many0 numtxqueues 4 numrxqueues 4 type veth peer name many1 \
                numtxqueues 4 numrxqueues 4
                ip link set many0 arp off up
                ip link set many1 arp off up";
    assert!(run("sh", &["-e", "-c", pair]));
    // Queues of each source, for so many that were asked for.
    for (sources, queues) in [(1, &[4][..]), (3, &[2, 1, 1]), (9, &[1, 1, 1, 1])] {
        let count = NonZeroUsize::new(sources).unwrap();
        let mut sources = open_queues(&options(&["many1", "right"]), count);
        assert_eq!(sources.len(), queues.len());
        let notes = sources[0].notes();
        assert!(notes.iter().any(|note| note.contains("AF_XDP on 4 receive queues")), "{notes:?}");
        let hint = "ethtool -X many1 xfrm symmetric-xor";
        assert!(notes.iter().any(|note| note.ends_with(hint)), "{notes:?}");
        let outlets = XdpTransmitter::open_queues("many0", 4).unwrap();
        for (queue, mut outlet) in (0..).zip(outlets) {
            let hosts = queue * 50..(queue + 1) * 50_u8;
            let with_host = hosts.map(|host| {
                let mut frame = frame(UDP, &[], 60);
                frame[29] = host;
                frame
            });
            send_all(&mut outlet, &with_host.collect::<Vec<_>>());
        }
        let mut came: Vec<u8> = Vec::new();
        let mut received = 0;
        for (source, &queues) in sources.iter_mut().zip(queues) {
            let (captured, counters) = stop(source);
            came.extend(captured.iter().map(|each| each.bytes[29]));
            // By the queue that the packet was sent on.
            let seen: BTreeSet<_> = captured.iter().map(|each| each.bytes[29] / 50).collect();
            assert_eq!(seen.len(), queues);
            received += counters[0].received;
        }
        came.sort_unstable();
        assert!(came.iter().copied().eq(0..200), "{} came", came.len());
        assert_eq!(received, 200);
    }
}

#[test]
fn an_interface_may_go_down_come_back_and_vanish() {
    if !enter_namespace() {
        return;
    }
    let mut source = open(&options(&["right"]));
    let idle = |source: &mut XdpSource| {
        source.notes();
        assert!(matches!(source.next_batch(WAIT), Ok(Next::Idle)));
        let counted = source.counters()[0];
        (counted.is_away, counted.times_down, source.notes())
    };
    assert_eq!(idle(&mut source), (false, 0, Vec::new()));
    assert!(run("ip", &["link", "set", "right", "down"]));
    assert_eq!(idle(&mut source), (true, 1, Vec::new()));
    assert!(run("ip", &["link", "set", "right", "up"]));
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
    let error = (0..20).find_map(|_| {
        source.counters();
        source.next_batch(WAIT).err()
    });
    let error = error.unwrap();
    assert!(matches!(&error, Error::InterfaceGone { name } if name == "right"), "{error}");
    let (captured, counters) = stop(&mut source);
    assert_eq!(counters[0].delivered, u64::try_from(packets + captured.len()).unwrap());
    assert!(counters[0].is_away);
}

#[test]
fn the_program_goes_with_its_source_and_no_two_have_an_interface() {
    if !enter_namespace() {
        return;
    }
    let first = open(&options(&["right"]));
    let refused = XdpSource::open_queues(&options(&["right"]), NonZeroUsize::MIN).unwrap_err();
    let line = refused.to_string();
    assert!(line.starts_with("interface right has another XDP program"), "{line}");
    drop(first);
    let mut again = open(&options(&["right"]));
    let (captured, _) = capture(&mut again, &[frame(UDP, &[], 60)]);
    assert_eq!(captured.len(), 1);
}

#[test]
fn busy_polling_brings_packets_without_sleeping() {
    if !enter_namespace() {
        return;
    }
    let busy_poll = Some(Duration::from_millis(1));
    let mut source = open(&LiveOptions { busy_poll, ..options(&["right"]) });
    let sent = vec![frame(UDP, &TAG, 100); 500];
    let (captured, counters) = capture(&mut source, &sent);
    assert_eq!((captured.len(), counters.received), (500, 500));
    let has_queue = !source.notes().iter().any(|note| note.contains("polled busily"));
    println!("the driver has a queue to look at: {has_queue}");
}

#[test]
fn what_cannot_be_captured_is_refused_with_its_cause() {
    if !enter_namespace() {
        return;
    }
    let refused = |name: &str| {
        let opened = XdpSource::open_queues(&options(&[name]), NonZeroUsize::MIN);
        opened.unwrap_err().to_string()
    };
    assert!(refused("nowhere").starts_with("there is no network interface nowhere"));
    assert!(refused("lo").starts_with("interface lo takes no Ethernet frames"));
    let nobody = 65_534;
    // The system call, unlike the function of libc, concerns this thread only.
    // SAFETY: no pointer is passed.
    assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, nobody, nobody, nobody) }, 0);
    let line = refused("right");
    assert!(line.starts_with("not permitted to "), "{line}");
    assert!(line.contains("setcap cap_net_raw"), "{line}");
}

/// Offers frames as a replay does, until all are taken.
fn send_all(outlet: &mut dyn Outlet, frames: &[Vec<u8>]) {
    for batch in frames.chunks(64) {
        let batch: Vec<&[u8]> = batch.iter().map(Vec::as_slice).collect();
        let mut rest = &batch[..];
        while !rest.is_empty() {
            rest = rest.get(outlet.send(rest).unwrap()..).unwrap();
        }
    }
}

#[test]
fn frames_leave_in_their_order_also_in_several_chunks() {
    if !enter_namespace() {
        return;
    }
    for mtu in ["1500", "3000", "9000"] {
        for name in ["left", "right"] {
            assert!(run("ip", &["link", "set", name, "mtu", mtu]));
        }
        let mut source =
            LiveSource::open(&LiveOptions { ring_size: ByteSize(64 << 20), ..options(&["right"]) })
                .unwrap();
        let [mut outlet]: [XdpTransmitter; 1] =
            XdpTransmitter::open_queues("left", 1).unwrap().try_into().unwrap();
        let longest = mtu.parse::<usize>().unwrap() + 14;
        assert_eq!(outlet.limits().mtu + 14, longest);
        let lengths = [60, longest, 1514, longest.min(4097)];
        let sent: Vec<Vec<u8>> = (0..5000_usize)
            .map(|number| {
                let mut frame = frame(UDP, &[], lengths[number % 4]);
                frame[30..34].copy_from_slice(&u32::try_from(number).unwrap().to_be_bytes());
                frame
            })
            .collect();
        send_all(&mut outlet, &sent[..1000]);
        assert_eq!(outlet.interface_drops(), Some(0));
        let (captured, _) = stop(&mut source);
        assert!(captured.iter().map(|each| &each.bytes).eq(&sent[..1000]), "{}", captured.len());
        // More than there are chunks, to no receiver.
        send_all(&mut outlet, &sent);
    }
}

#[test]
fn an_interface_that_goes_down_takes_nothing_and_is_named() {
    if !enter_namespace() {
        return;
    }
    let [mut outlet]: [XdpTransmitter; 1] =
        XdpTransmitter::open_queues("left", 1).unwrap().try_into().unwrap();
    send_all(&mut outlet, &frames());
    assert!(run("ip", &["link", "set", "left", "down"]));
    let frame = frame(UDP, &[], 60);
    let line = outlet.send(&[&frame]).unwrap_err().to_string();
    assert_eq!(line, "interface left is down; bring it up: ip link set left up");
    let line = XdpTransmitter::open_queues("left", 2).unwrap_err().to_string();
    assert!(line.starts_with("interface left is down"), "{line}");
    let line = XdpTransmitter::open_queues("right", 1).unwrap_err().to_string();
    assert!(line.starts_with("interface right has no carrier"), "{line}");
    assert!(run("ip", &["link", "set", "left", "up"]));
    let line = XdpTransmitter::open_queues("right", 2).unwrap_err().to_string();
    assert!(line.starts_with("interface right has 1 transmit queues"), "{line}");
}

#[test]
fn packet_sockets_are_taken_where_af_xdp_would_take_from_the_host_or_copy() {
    if !enter_namespace() {
        return;
    }
    let why_not = |options: &LiveOptions| XdpSource::why_not(options).unwrap().unwrap();
    let plain = options(&["right"]);
    let filter = Some("tcp".to_owned());
    let line = why_not(&LiveOptions { filter, ..options(&["right"]) });
    assert_eq!(line, "a filter would see tags that the kernel's does not");
    assert!(run("ethtool", &["-K", "right", "rxvlan", "off"]));
    let line = why_not(&plain);
    assert!(line.starts_with("interface right: no zero-copy: "), "{line}");
    for (command, undo, expect) in [
        (
            "ip addr add 10.0.0.1/24 dev right",
            "ip addr del 10.0.0.1/24 dev right",
            "it has an address",
        ),
        ("ip route add 10.9.0.0/16 dev right", "ip route del 10.9.0.0/16", "a route leads to it"),
        (
            "ip link add bridge type bridge && ip link set right master bridge",
            "ip link del bridge",
            "it belongs to a bridge or a bond",
        ),
        (
            "ip link add link right name inner type macvlan",
            "ip link del inner",
            "another interface lies on it",
        ),
        ("ethtool -K right rxvlan on", "true", "it takes VLAN tags out of frames"),
    ] {
        if !run("sh", &["-c", command]) {
            println!("not run: {command}");
            continue;
        }
        assert_eq!(why_not(&plain), format!("interface right: {expect}"));
        assert!(run("sh", &["-c", undo]));
    }
}
