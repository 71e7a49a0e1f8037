//! Several queues: which packet goes where, and that each goes to one of them.

use core::num::NonZeroUsize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::slice::Iter;

use capture::{
    Counters, FileOptions, FileSource, FrameSender, LiveOptions, LiveSource, Next, Source,
};
use testdata::Corpus;
use units::ByteSize;
use wire::{Address, FiveTuple, LinkType, Protocol};

use crate::{Captured, UDP, WAIT, enter_namespace, frame, options, run, stop};

const QUEUES: usize = 4;
const TCP: Protocol = Protocol(6);
/// Largest frame of the pair of interfaces.
const LARGEST: usize = 9014;
/// Packets of one file that are enough to see its sessions.
const PACKETS_MAX: usize = 5000;

fn open(interfaces: &[&str]) -> Vec<LiveSource> {
    let options = LiveOptions { ring_size: ByteSize(64 << 20), ..options(interfaces) };
    LiveSource::open_queues(&options, NonZeroUsize::new(QUEUES).unwrap()).unwrap()
}

/// What each queue was given.
fn stop_all(sources: &mut [LiveSource]) -> Vec<Vec<Captured>> {
    sources
        .iter_mut()
        .map(|source| {
            let (captured, counters) = stop(source);
            assert!(counters.iter().all(|each| each.kernel_drops == 0), "{counters:?}");
            captured
        })
        .collect()
}

fn of_interface(captured: &[Captured], interface: u32) -> Vec<&[u8]> {
    let mine = captured.iter().filter(|each| each.interface == interface);
    mine.map(|each| &each.bytes[..]).collect()
}

/// The Ethernet frames of a capture that fit the interface.
fn frames_of(file: &Path) -> Vec<Vec<u8>> {
    let Ok(mut source) = FileSource::open(file, FileOptions::default()) else { return Vec::new() };
    let mut frames = Vec::new();
    while let Ok(Next::Packets(batch)) = source.next_batch(WAIT) {
        let interfaces = batch.interfaces();
        for packet in batch {
            let interface = interfaces.get(usize::try_from(packet.interface).unwrap()).unwrap();
            let whole = packet.head.len() == usize::try_from(packet.original_len).unwrap();
            let fits = (14..=LARGEST).contains(&packet.head.len());
            if interface.link_type == LinkType::ETHERNET && whole && fits {
                frames.push(packet.head.to_vec());
            }
        }
        if frames.len() >= PACKETS_MAX {
            break;
        }
    }
    frames
}

/// What a frame says of its session.
struct Part {
    /// The same for both directions.
    session: FiveTuple,
    is_fragment: bool,
    /// Both ends of the tunnel it comes through, in some order.
    tunnel: Option<BTreeSet<Address>>,
}

/// Nothing where the frame is not IP, or does not name its session whole, as a later fragment.
fn part_of(frame: &[u8]) -> Option<Part> {
    let decoded = wire::decode(LinkType::ETHERNET, frame, u32::try_from(frame.len()).unwrap());
    let fragment = decoded.fragment.as_ref();
    let is_later = fragment.is_some_and(|fragment| fragment.offset > 0);
    let is_ip = matches!(decoded.tuple.orig, Address::V4(_) | Address::V6(_));
    (is_ip && !is_later && !decoded.cut).then(|| Part {
        session: decoded.tuple.canonical().0,
        is_fragment: fragment.is_some(),
        tunnel: decoded.tunnel.as_ref().map(|tunnel| BTreeSet::from([tunnel.src, tunnel.dst])),
    })
}

/// What was seen of a session.
#[derive(Default)]
struct Seen {
    queues: BTreeSet<usize>,
    tunnels: BTreeSet<Option<BTreeSet<Address>>>,
    has_fragments: bool,
}

#[test]
fn both_directions_of_every_session_of_the_corpus_are_on_one_queue() {
    if !enter_namespace() {
        return;
    }
    for name in ["left", "right"] {
        assert!(run("ip", &["link", "set", name, "mtu", "9000"]));
    }
    let mut sources = open(&["right", "left"]);
    let sender = FrameSender::open("left").unwrap();
    let corpora = Corpus::all();
    let is_large = corpora.iter().any(|corpus| corpus.is_large);
    let paths = corpora.iter().flat_map(Corpus::captures);
    let files: Vec<_> = paths.map(|file| frames_of(&file)).collect();
    let frames: Vec<&[u8]> = files.iter().flatten().map(Vec::as_slice).collect();
    for frame in &frames {
        sender.send(frame).unwrap();
    }
    let captured = stop_all(&mut sources);
    // As they went out, and as they came in: the same queue on both interfaces.
    let came: Vec<_> = captured.iter().map(|queue| of_interface(queue, 0)).collect();
    let went: Vec<_> = captured.iter().map(|queue| of_interface(queue, 1)).collect();
    assert!(came == went, "a queue has other packets of the other interface");
    assert!(came.iter().all(|queue| queue.len() > frames.len() / 8), "every queue has its share");
    let mut rest: Vec<_> = came.iter().map(|queue| queue.iter()).collect();
    let mut seen = BTreeMap::<(usize, FiveTuple), Seen>::new();
    let numbered = files.iter().enumerate();
    for (file, frame) in numbered.flat_map(|(at, file)| file.iter().map(move |it| (at, it))) {
        // Queues keep the order, and equal frames are on one queue.
        let is_next = |queue: &Iter<'_, &[u8]>| queue.as_slice().first() == Some(&&frame[..]);
        let queue = rest.iter().position(is_next).expect("every frame came");
        rest[queue].next();
        if let Some(part) = part_of(frame) {
            let seen = seen.entry((file, part.session)).or_default();
            seen.queues.insert(queue);
            seen.tunnels.insert(part.tunnel);
            seen.has_fragments |= part.is_fragment;
        }
    }
    let sessions = seen.len();
    let (promised, excepted): (Vec<_>, Vec<_>) = seen.into_iter().partition(|(session, seen)| {
        seen.tunnels.len() == 1 && !(seen.has_fragments && session.1.proto == TCP)
    });
    println!("{} packets, {sessions} sessions, {} excepted", frames.len(), excepted.len());
    assert!(sessions > if is_large { 4000 } else { 400 } && excepted.len() < 40);
    let mut split = promised.iter().filter(|(_, seen)| seen.queues.len() > 1);
    assert_eq!(split.next().map(|(session, _)| session), None, "on two queues");
}

#[test]
fn every_packet_is_on_one_queue_and_all_queues_are_used() {
    if !enter_namespace() {
        return;
    }
    let mut sources = open(&["right"]);
    let sender = FrameSender::open("left").unwrap();
    let sent: Vec<Vec<u8>> = (0..2000_u16)
        .map(|host| {
            let mut frame = frame(UDP, &[], 60);
            frame[28..30].copy_from_slice(&host.to_be_bytes());
            frame
        })
        .collect();
    for frame in &sent {
        sender.send(frame).unwrap();
    }
    let captured = stop_all(&mut sources);
    let mut all: Vec<&[u8]> = captured.iter().flat_map(|queue| of_interface(queue, 0)).collect();
    all.sort_unstable();
    assert!(all.iter().copied().eq(sent.iter().map(Vec::as_slice)), "{} came", all.len());
    for queue in &captured {
        // A quarter each, give or take: 2000 hosts of one network.
        assert!((300..700).contains(&queue.len()), "{} on one queue", queue.len());
    }
}

#[test]
fn the_losses_of_all_queues_add_up_when_their_rings_overflow() {
    if !enter_namespace() {
        return;
    }
    let options = LiveOptions { ring_size: ByteSize(256 << 10), ..options(&["right"]) };
    let mut sources =
        LiveSource::open_queues(&options, NonZeroUsize::new(QUEUES).unwrap()).unwrap();
    let sender = FrameSender::open("left").unwrap();
    for host in (0..=255_u8).cycle().take(8000) {
        let mut frame = frame(UDP, &[], 1000);
        frame[29] = host;
        sender.send(&frame).unwrap();
    }
    let ended = sources.iter_mut().map(|source| stop(source).1[0]);
    let counters: Vec<Counters> = ended.collect();
    assert!(counters.iter().all(|each| each.kernel_drops > 0 && each.ring_freezes > 0));
    let sum = |count: fn(&Counters) -> u64| counters.iter().map(count).sum::<u64>();
    assert_eq!(sum(|each| each.received), 8000);
    assert_eq!(sum(|each| each.delivered) + sum(|each| each.kernel_drops), 8000);
    println!("{} dropped by {QUEUES} queues of 8000", sum(|each| each.kernel_drops));
}

#[test]
fn a_group_that_went_down_shares_the_packets_as_before() {
    if !enter_namespace() {
        return;
    }
    let mut sources = open(&["right"]);
    let sent: Vec<Vec<u8>> = (0..64_u8)
        .map(|host| {
            let mut frame = frame(UDP, &[], 60);
            frame[29] = host;
            frame
        })
        .collect();
    let send_all = || {
        let sender = FrameSender::open("left").unwrap();
        for frame in &sent {
            sender.send(frame).unwrap();
        }
    };
    send_all();
    assert!(run("ip", &["link", "set", "right", "down"]));
    assert!(run("ip", &["link", "set", "right", "up"]));
    // The carrier comes back a moment after the interface.
    assert!(run("sleep", &["0.5"]));
    send_all();
    for captured in stop_all(&mut sources) {
        let mine = of_interface(&captured, 0);
        let (before, after) = mine.split_at(mine.len() / 2);
        assert_eq!(before, after);
    }
}
