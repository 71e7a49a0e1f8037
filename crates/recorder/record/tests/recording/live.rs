//! Recording from links: veth pairs and the loopback interface in a namespace of their own.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use capture::FrameSender;
use format::directory::{Gap, GapCause};
use format::head::Kind;
use host::SystemClock;
use record::{Input, Options, Queues, Report, record};
use testdata::Corpus;
use units::{Clock, InterfaceId, Sequence, Sleep, Timestamp};

use crate::namespace::enter;
use crate::numbered::{identify, packet};
use crate::volumes::{
    Packet, assert_clean, folder, new_volume, open, options, packets_of_file, packets_of_volume,
    stripes,
};

/// Two veth pairs for large frames.
const LINKS: &str = "ip link set lo up
    for pair in left/right west/east; do
        ip link add name ${pair%/*} type veth peer name ${pair#*/}
        for link in ${pair%/*} ${pair#*/}; do ip link set $link arp off mtu 9200 up; done
    done";

fn live(volume: &Path, interfaces: &[&str]) -> Options {
    let names = interfaces.iter().map(|&name| name.to_owned()).collect();
    let mut options = options(volume, Input::Interfaces(names));
    options.kernel_ring_bytes = 16 << 20;
    options
}

/// Records until `send` has returned and as many packets as expected have arrived.
fn record_while(options: &Options, expected: u64, send: impl FnOnce() + Send) -> Report {
    let limit_ns = 20_000_000_000;
    thread::scope(|scope| {
        let mut send = Some(send);
        let mut sending = None;
        let report = record(options, &SystemClock, &mut |progress| {
            if let Some(send) = send.take() {
                sending = Some(scope.spawn(send));
            }
            let all_sent = sending.as_ref().is_some_and(thread::ScopedJoinHandle::is_finished);
            let arrived = progress.total.offered >= expected;
            assert!(progress.total.is_balanced(), "{progress:?}");
            let ends = (all_sent && arrived) || progress.elapsed_ns > limit_ns;
            if ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        report.unwrap()
    })
}

/// What was stored, by the name of the interface, on a volume that verifies; and the gaps.
fn stored(volume: &Path) -> (BTreeMap<String, Vec<Packet>>, Vec<Gap>) {
    let reader = open(volume);
    assert_clean(&reader);
    let mut found = BTreeMap::<String, Vec<Packet>>::new();
    let mut gaps = Vec::new();
    for stripe in stripes(&reader) {
        for (interface, packet) in stripe.packets {
            found.entry(stripe.interfaces[interface].0.clone()).or_default().push(packet);
        }
        gaps.extend(stripe.gaps);
    }
    (found, gaps)
}

fn bytes_of(packets: &[Packet]) -> Vec<&[u8]> {
    packets.iter().map(|(_, _, _, bytes)| &bytes[..]).collect()
}

/// A numbered packet behind no tag, one, two, or a priority tag.
fn frame(number: u64) -> Vec<u8> {
    let tags: &[u8] = match number % 4 {
        0 => &[],
        1 => &[0x81, 0, 0xa0, 100],
        2 => &[0x88, 0xa8, 0, 7, 0x81, 0, 0x10, 100],
        _ => &[0x81, 0, 0, 0],
    };
    let packet = packet(0, number);
    [&packet[..12], tags, &packet[12..]].concat()
}

fn send(interface: &str, frames: &[Vec<u8>]) {
    let sender = FrameSender::open(interface).unwrap();
    for frame in frames {
        sender.send(frame).unwrap();
    }
}

/// Frames of captures that fit the link.
fn replayed() -> Vec<Vec<u8>> {
    let large = ["mercury/pppoe_double_vlan_tagging.pcap", "ndpi/gnutella.pcap", "zeek/smb2.pcap"];
    let small = ["tagged-be.pcap", "tunnelled-ns.pcap", "many.pcap"];
    let corpora = Corpus::all();
    let files = corpora.iter().flat_map(|corpus| {
        let names = if corpus.is_large { large } else { small };
        names.map(|name| corpus.path().join("pcap").join(name))
    });
    let packets = files.flat_map(|file| packets_of_file(&file));
    packets.map(|packet| packet.3).filter(|bytes| (14..=9200).contains(&bytes.len())).collect()
}

#[test]
fn what_is_stored_equals_what_was_sent_on_every_interface() {
    if !enter("live::what_is_stored_equals_what_was_sent_on_every_interface", LINKS) {
        return;
    }
    let folder = folder();
    let volume = folder.path().join("volume");
    new_volume(&volume, 256 << 10, 32 << 20);
    let generated: Vec<Vec<u8>> = (0..5000).map(frame).collect();
    let replayed = replayed();
    let expected = 2 * generated.len() + replayed.len();
    let before = SystemClock.realtime();
    let options = live(&volume, &["right", "left", "east"]);
    let report = record_while(&options, expected as u64, || {
        thread::scope(|scope| {
            scope.spawn(|| send("left", &generated));
            scope.spawn(|| send("west", &replayed));
        });
    });
    let after = SystemClock.realtime();
    let (found, gaps) = stored(&volume);
    for (name, sent) in [("right", &generated), ("left", &generated), ("east", &replayed)] {
        let packets = &found[name];
        assert!(bytes_of(packets) == *sent, "{name}: {} of {}", packets.len(), sent.len());
        assert!(packets.is_sorted_by_key(|packet| packet.1));
        for (link_type, time, original_len, bytes) in packets {
            assert_eq!((*link_type, *original_len as usize), (1, bytes.len()));
            assert!((before.0..=after.0).contains(time));
        }
        let account = report.interfaces.iter().find(|account| account.name == name).unwrap();
        let counted = (account.offered, account.stored, account.kernel_drops, account.writer_drops);
        assert_eq!(counted, (sent.len() as u64, sent.len() as u64, 0, 0));
        assert_eq!(account.interface_drops, Some(0));
    }
    assert_eq!(gaps, vec![]);
    assert!(report.rows > 0 && report.total.stored == expected as u64);
    println!("{expected} packets sent and stored on 3 interfaces");
}

/// Two interfaces and three queues: every packet is stored once, and a session's packets are in
/// their order, whichever way they go.
#[test]
fn several_queues_store_every_packet_once_and_sessions_in_order() {
    if !enter("live::several_queues_store_every_packet_once_and_sessions_in_order", LINKS) {
        return;
    }
    let folder = folder();
    let volume = folder.path().join("volume");
    new_volume(&volume, 256 << 10, 64 << 20);
    let sessions: Vec<Vec<Vec<u8>>> = (0..40_u8).map(conversation).collect();
    let sent: Vec<Vec<u8>> = (0..50)
        .flat_map(|turn| sessions.iter().map(move |session: &Vec<Vec<u8>>| session[turn].clone()))
        .collect();
    let mut options = live(&volume, &["right", "east"]);
    options.queues = Queues::Count(NonZeroUsize::new(3).unwrap());
    options.cpus = vec![0];
    let report = record_while(&options, 2 * sent.len() as u64, || {
        thread::scope(|scope| {
            scope.spawn(|| send("left", &sent));
            scope.spawn(|| send("west", &sent));
        });
    });
    let (found, gaps) = stored(&volume);
    assert_eq!((gaps, report.rows), (vec![], 40));
    for name in ["right", "east"] {
        let packets = bytes_of(&found[name]);
        for session in &sessions {
            let mine: Vec<_> =
                packets.iter().filter(|bytes| session.contains(&bytes.to_vec())).collect();
            assert!(mine.into_iter().eq(session.iter()), "{name}: a session out of order");
        }
        let account = report.interfaces.iter().find(|account| account.name == name).unwrap();
        assert_eq!((account.offered, account.stored), (sent.len() as u64, packets.len() as u64));
        let taken: Vec<u64> = account.queues.iter().map(|queue| queue.taken).collect();
        println!("{name}: {taken:?} packets by queue");
        assert!(taken.len() == 3 && taken.iter().all(|&taken| taken > 0));
        assert_eq!(taken.iter().sum::<u64>(), account.stored);
    }
}

/// Fifty packets of two hosts in turn, each different.
fn conversation(host: u8) -> Vec<Vec<u8>> {
    let one = |turn: u8| {
        let mut frame = packet(0, u64::from(host) << 8 | u64::from(turn));
        let ends = [[10, 1, 0, host], [10, 2, 0, 1]];
        let [from, to] = if turn.is_multiple_of(2) { ends } else { [ends[1], ends[0]] };
        frame[26..30].copy_from_slice(&from);
        frame[30..34].copy_from_slice(&to);
        let ports = [[0x30, 0x39], [0, 53]];
        let [from, to] = if turn.is_multiple_of(2) { ports } else { [ports[1], ports[0]] };
        frame[34..36].copy_from_slice(&from);
        frame[36..38].copy_from_slice(&to);
        frame
    };
    (0..50).map(one).collect()
}

#[test]
fn the_kernel_filters_and_cuts() {
    if !enter("live::the_kernel_filters_and_cuts", LINKS) {
        return;
    }
    let folder = folder();
    let volume = folder.path().join("volume");
    new_volume(&volume, 256 << 10, 16 << 20);
    let frames: Vec<Vec<u8>> = (0..1000).map(frame).collect();
    let mut options = live(&volume, &["right"]);
    options.filter = Some("vlan 100 and udp".to_owned());
    options.snaplen = 58;
    let report = record_while(&options, 250, || send("left", &frames));
    let (found, _) = stored(&volume);
    let passing = frames.iter().skip(1).step_by(4);
    let expected: Vec<(u32, &[u8])> =
        passing.map(|frame| (frame.len() as u32, &frame[..58])).collect();
    let found: Vec<(u32, &[u8])> =
        found["right"].iter().map(|(_, _, length, bytes)| (*length, &bytes[..])).collect();
    assert_eq!(found, expected);
    assert_eq!((report.total.offered, report.total.stored), (250, 250));
}

#[test]
fn loopback_packets_are_stored_once() {
    if !enter("live::loopback_packets_are_stored_once", LINKS) {
        return;
    }
    let folder = folder();
    let volume = folder.path().join("volume");
    new_volume(&volume, 256 << 10, 16 << 20);
    let report = record_while(&live(&volume, &["lo"]), 200, || {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for number in 0..200_u8 {
            sender.send_to(&[number; 33], receiver.local_addr().unwrap()).unwrap();
        }
    });
    let (found, _) = stored(&volume);
    let payloads: Vec<&[u8]> = found["lo"].iter().map(|packet| &packet.3[42..]).collect();
    let expected: Vec<Vec<u8>> = (0..200_u8).map(|number| vec![number; 33]).collect();
    assert_eq!(payloads, expected);
    assert_eq!((report.total.stored, report.rows), (200, 1));
}

/// A reader beside the recorder sees the last packets before an idle time: their column is cut
/// after a second, and a heartbeat behind it carries the watermark. Then nothing more is written.
#[test]
fn the_last_packets_before_a_silence_are_durable_and_shown_soon() {
    if !enter("live::the_last_packets_before_a_silence_are_durable_and_shown_soon", LINKS) {
        return;
    }
    let folder = folder();
    let volume = folder.path().join("volume");
    new_volume(&volume, 2 << 20, 64 << 20);
    let frames: Vec<Vec<u8>> = (0..10).map(frame).collect();
    let options = live(&volume, &["right"]);
    record_while(&options, 10, || {
        send("left", &frames);
        let sent = Instant::now();
        let mut reader = open(&volume);
        while stripes(&reader).is_empty() && sent.elapsed() < Duration::from_secs(10) {
            thread::sleep(Duration::from_millis(10));
            reader.refresh().unwrap();
        }
        println!("10 packets shown after {:?}", sent.elapsed());
        assert!(sent.elapsed() < options.cut_after + Duration::from_secs(1));
        let shown = stripes(&reader);
        assert_eq!(shown.iter().map(|stripe| stripe.packets.len()).sum::<usize>(), 10);
        let newest = reader.span().unwrap().acknowledged;
        thread::sleep(Duration::from_millis(600));
        reader.refresh().unwrap();
        let mut buffer = vec![0; reader.piece_bytes()];
        let slot = reader.slot(newest.sequence, 0, &mut buffer).unwrap();
        let kinds: Vec<Kind> = slot.stripes.iter().map(|it| it.head.stripe.kind).collect();
        assert_eq!(kinds, [Kind::Data]);
        assert_eq!(reader.newest().unwrap().acknowledged, newest, "a silent link writes nothing");
    });
    let reader = open(&volume);
    let mut buffer = vec![0; reader.piece_bytes()];
    let first = reader.superblock().joined_start + 1;
    let slot = reader.slot(first, 0, &mut buffer).unwrap();
    let kinds: Vec<Kind> = slot.stripes.iter().map(|it| it.head.stripe.kind).collect();
    // The index of the session follows when the recording ends.
    assert_eq!(kinds, [Kind::Data, Kind::Heartbeat, Kind::Index, Kind::Void]);
}

#[test]
fn a_trickle_makes_many_short_stripes_in_one_slot() {
    if !enter("live::a_trickle_makes_many_short_stripes_in_one_slot", LINKS) {
        return;
    }
    let folder = folder();
    let volume = folder.path().join("volume");
    new_volume(&volume, 2 << 20, 64 << 20);
    let frames: Vec<Vec<u8>> = (0..60).map(frame).collect();
    let mut options = live(&volume, &["right"]);
    options.cut_after = Duration::from_millis(100);
    record_while(&options, 60, || {
        let sender = FrameSender::open("left").unwrap();
        for frame in &frames {
            sender.send(frame).unwrap();
            thread::sleep(Duration::from_millis(40));
        }
    });
    let reader = open(&volume);
    let stripes = stripes(&reader);
    let slots: Vec<Sequence> = stripes.iter().map(|stripe| stripe.id.sequence).collect();
    println!("60 packets in {} short stripes", stripes.len());
    assert!(stripes.len() > 8 && slots.iter().all(|slot| *slot == slots[0]));
    let (found, _) = stored(&volume);
    assert_eq!(bytes_of(&found["right"]), frames);
}

/// The file system under the volume stands still for a while: what finds no column is counted, and
/// the gap is stored with its bounds.
#[test]
fn packets_without_a_column_are_counted_and_their_gap_is_stored() {
    let steps = format!(
        "{LINKS}
        mount -t tmpfs none /mnt
        truncate -s 96M /mnt/image
        mkfs.ext4 -q -F /mnt/image
        mkdir /mnt/disk
        mount -o loop /mnt/image /mnt/disk"
    );
    if !enter("live::packets_without_a_column_are_counted_and_their_gap_is_stored", &steps) {
        return;
    }
    let volume = PathBuf::from("/mnt/disk/volume");
    new_volume(&volume, 64 << 10, 32 << 20);
    let frames: Vec<Vec<u8>> = (0..6000).map(|number| packet(0, number)).collect();
    let mut options = live(&volume, &["right"]);
    options.pool_bytes = Some(16 * (64 << 10));
    let before = SystemClock.realtime();
    let report = record_while(&options, 6000, || {
        send("left", &frames[..100]);
        let freeze = "fsfreeze -f /mnt/disk && sleep 1; fsfreeze -u /mnt/disk";
        let mut freezing = Command::new("sh").args(["-c", freeze]).spawn().unwrap();
        thread::sleep(Duration::from_millis(300));
        send("left", &frames[100..5900]);
        freezing.wait().unwrap();
        thread::sleep(Duration::from_millis(500));
        send("left", &frames[5900..]);
    });
    let after = SystemClock.realtime();
    let total = &report.total;
    println!("{} stored, {} writer drops", total.stored, total.writer_drops);
    assert_eq!((total.offered, total.kernel_drops), (6000, 0));
    assert!(total.writer_drops > 0 && total.stored + total.writer_drops == 6000);
    let (found, gaps) = stored(&volume);
    let numbers: Vec<u64> = found["right"].iter().map(|packet| identify(&packet.3).1).collect();
    assert!(numbers.is_sorted() && numbers.len() as u64 == total.stored);
    assert!(numbers.starts_with(&[0, 1, 2]) && numbers.ends_with(&[5997, 5998, 5999]));
    let lost: Vec<u64> =
        (0..6000).filter(|number| numbers.binary_search(number).is_err()).collect();
    let lost_bytes: usize = lost.iter().map(|number| frames[*number as usize].len()).sum();
    assert!(
        gaps.iter()
            .all(|gap| gap.cause == GapCause::WriterDrops && gap.interface == Some(InterfaceId(0)))
    );
    assert!(gaps.iter().all(|gap| before <= gap.from && gap.from <= gap.to && gap.to <= after));
    assert_eq!(gaps.iter().filter_map(|gap| gap.packets).sum::<u64>(), total.writer_drops);
    assert_eq!(gaps.iter().filter_map(|gap| gap.bytes).sum::<u64>(), lost_bytes as u64);
    // The report says what stood in the way: no column free, and writes that do not end.
    let losses = &report.losses;
    assert_eq!(losses.iter().filter_map(|loss| loss.gap.packets).sum::<u64>(), total.writer_drops);
    assert!(losses.iter().all(|loss| loss.pool_free == 0 && loss.interface == "right"));
    assert!(losses.iter().any(|loss| loss.unfinished_slots > 0), "{losses:?}");
    for packet in &found["right"] {
        let inside = |gap: &Gap| gap.from < Timestamp(packet.1) && Timestamp(packet.1) < gap.to;
        assert!(!gaps.iter().any(inside), "nothing of the interface was stored within a gap");
    }
}

/// Recording goes on with the others, and the time without a look is stored.
#[test]
fn an_interface_that_is_removed_leaves_a_gap_and_one_that_was_down_another() {
    let test = "live::an_interface_that_is_removed_leaves_a_gap_and_one_that_was_down_another";
    if !enter(test, LINKS) {
        return;
    }
    let folder = folder();
    let volume = folder.path().join("volume");
    new_volume(&volume, 256 << 10, 32 << 20);
    let frames: Vec<Vec<u8>> = (0..20).map(frame).collect();
    let ip = |arguments: &str| {
        let status = Command::new("ip").args(arguments.split(' ')).status();
        assert!(status.unwrap().success(), "ip {arguments}");
        thread::sleep(Duration::from_millis(600));
    };
    let before = SystemClock.realtime();
    let report = record_while(&live(&volume, &["right", "east"]), 40, || {
        send("left", &frames[..10]);
        send("west", &frames[..10]);
        ip("link set right down");
        ip("link set right up");
        ip("link del east");
        send("left", &frames);
    });
    let after = SystemClock.realtime();
    let (found, gaps) = stored(&volume);
    assert_eq!((found["right"].len(), found["east"].len()), (30, 10));
    assert_eq!(
        report.broken_off,
        ["interface east was removed; recording goes on with the others"]
    );
    let bounds: Vec<_> = gaps.iter().map(|gap| (gap.interface, gap.cause, gap.packets)).collect();
    // Each is reported at once, and again when it is over.
    for (interface, least_ns) in [(0, 400_000_000), (1, 400_000_000)] {
        let mine: Vec<&Gap> =
            gaps.iter().filter(|gap| gap.interface == Some(InterfaceId(interface))).collect();
        assert!(mine.len() == 2, "{bounds:?}");
        assert!(mine.iter().all(|gap| gap.cause == GapCause::InterfaceDrops));
        assert!(mine.iter().all(|gap| gap.packets.is_none() && before <= gap.from));
        let length: i64 = mine.iter().map(|gap| gap.to.0 - gap.from.0).sum();
        assert!(length > least_ns && mine.iter().all(|gap| gap.to <= after), "{length}");
    }
    assert!(report.total.is_lossless() && report.total.stored == 40);
}

#[test]
fn two_recorders_of_one_interface_have_the_same_packets() {
    if !enter("live::two_recorders_of_one_interface_have_the_same_packets", LINKS) {
        return;
    }
    let folder = folder();
    let volumes = ["one", "two"].map(|name| folder.path().join(name));
    for volume in &volumes {
        new_volume(volume, 256 << 10, 32 << 20);
    }
    let frames: Vec<Vec<u8>> = (0..1000).map(frame).collect();
    let [one, two] = volumes.each_ref().map(|volume| {
        let mut options = live(volume, &["right"]);
        options.queues = Queues::Count(NonZeroUsize::new(2).unwrap());
        options
    });
    let report = record_while(&one, 1000, || {
        let other = record_while(&two, 1000, || send("left", &frames));
        assert_eq!(other.total.stored, 1000);
    });
    assert_eq!(report.total.stored, 1000);
    let [one, two] = volumes.each_ref().map(|volume| {
        let packets = stored(volume).0["right"].clone();
        let mut bytes: Vec<_> = packets.into_iter().map(|packet| packet.3).collect();
        bytes.sort();
        bytes
    });
    assert!(one.len() == 1000 && one == two);
}

/// The system's clock, set back by an hour by the test.
struct SetBack(AtomicBool);

impl Clock for SetBack {
    fn realtime(&self) -> Timestamp {
        let hour = if self.0.load(Ordering::Relaxed) { 3_600_000_000_000 } else { 0 };
        Timestamp(SystemClock.realtime().0 - hour)
    }

    fn boottime_ns(&self) -> i64 {
        SystemClock.boottime_ns()
    }
}

impl Sleep for SetBack {
    fn sleep_until(&self, until_ns: i64) {
        SystemClock.sleep_until(until_ns);
    }
}

#[test]
fn a_clock_that_is_set_back_is_told_and_costs_nothing() {
    if !enter("live::a_clock_that_is_set_back_is_told_and_costs_nothing", LINKS) {
        return;
    }
    let folder = folder();
    let volume = folder.path().join("volume");
    new_volume(&volume, 256 << 10, 32 << 20);
    let clock = SetBack(AtomicBool::new(false));
    let options = live(&volume, &["right"]);
    let frames: Vec<Vec<u8>> = (0..20).map(frame).collect();
    let mut looks = 0;
    let report = record(&options, &clock, &mut |progress| {
        looks += 1;
        match looks {
            2 => send("left", &frames[..10]),
            8 => clock.0.store(true, Ordering::Relaxed),
            // While it steps the interface is away: the gap must not end before it begins.
            6 => ip_link("right", "down"),
            10 => ip_link("right", "up"),
            13 => send("left", &frames[10..]),
            _ => {}
        }
        let ends = progress.total.offered >= 20 || looks > 100;
        if ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let report = report.unwrap();
    let (found, gaps) = stored(&volume);
    assert_eq!((found["right"].len(), report.total.stored), (20, 20));
    assert!(!gaps.is_empty() && gaps.iter().all(|gap| gap.from <= gap.to), "{gaps:?}");
    let told = report.notes.iter().filter(|note| note.contains("the clock was set back by 3600"));
    assert_eq!(told.count(), 1, "{:?}", report.notes);
}

fn ip_link(name: &str, state: &str) {
    let status = Command::new("ip").args(["link", "set", name, state]).status();
    assert!(status.unwrap().success());
}

/// Nothing comes any more that would find the writer gone.
#[test]
fn a_failed_member_ends_a_recording_although_the_link_is_silent() {
    let steps = format!("{LINKS}\nmount -t tmpfs -o size=8M none /mnt");
    let test = "live::a_failed_member_ends_a_recording_although_the_link_is_silent";
    if !enter(test, &steps) {
        return;
    }
    let volume = Path::new("/mnt/volume");
    new_volume(volume, 256 << 10, 48 << 20);
    let mut elapsed_ns = 0;
    let result = record(&live(volume, &["right"]), &SystemClock, &mut |progress| {
        if elapsed_ns == 0 {
            send("left", &[frame(0)]);
            let fill = "dd if=/dev/zero of=/mnt/rest bs=64k status=none || true";
            assert!(Command::new("sh").args(["-c", fill]).status().unwrap().success());
        }
        elapsed_ns = progress.elapsed_ns;
        let is_late = elapsed_ns > 10_000_000_000;
        if is_late { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(elapsed_ns < 5_000_000_000, "it ended by itself");
    let failure = result.unwrap_err().to_string();
    assert!(failure.contains(": No space left on device (os error 28): of a disk"), "{failure}");
}

/// Nothing would be written for a minute, but a reader asks.
#[test]
fn what_has_come_is_there_for_readers_as_soon_as_somebody_asks() {
    if !enter("live::what_has_come_is_there_for_readers_as_soon_as_somebody_asks", LINKS) {
        return;
    }
    let folder = folder();
    let volume = folder.path().join("volume");
    new_volume(&volume, 256 << 10, 32 << 20);
    let frames: Vec<Vec<u8>> = (0..100).map(frame).collect();
    let mut options = live(&volume, &["right", "east"]);
    options.queues = Queues::Count(NonZeroUsize::new(2).unwrap());
    options.cut_after = Duration::from_mins(1);
    let control = options.control.clone();
    let path = volume.clone();
    let report = record_while(&options, 200, || {
        for (number, frame) in (1..).zip(&frames) {
            send("left", core::slice::from_ref(frame));
            send("west", core::slice::from_ref(frame));
            if number % 25 == 0 {
                // The kernel hands a block over when it is full, or shortly afterwards.
                let started = Instant::now();
                while packets_of_volume(&path).len() < 2 * number {
                    assert!(control.sync(Duration::from_secs(5)), "the disk is well");
                    assert!(started.elapsed() < Duration::from_secs(5), "{number} were sent");
                }
            }
        }
    });
    assert_eq!((report.total.stored, stored(&volume).1), (200, vec![]));
    assert!(control.sync(Duration::ZERO), "all is durable");
}
