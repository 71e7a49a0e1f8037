use std::path::Path;

use core::ops::ControlFlow;

use format::head::{HeadKey, Kind, VolumeId};
use format::superblock::MemberEntry;
use host::SystemClock;
use units::Timestamp;
use volume::{CreateOptions, Identity};

use super::*;
use crate::{Input, Options, record};

const PACKETS: u64 = 4000;

/// A pcap of UDP packets of 1000 bytes, from 50 ports in turn.
fn capture() -> Vec<u8> {
    let words = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, 1];
    let mut file: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    for number in 0..PACKETS {
        let seconds = 1_700_000_000 + u32::try_from(number / 1000).unwrap();
        for word in [seconds, u32::try_from(number % 1000).unwrap(), 1000, 1000] {
            file.extend(word.to_le_bytes());
        }
        let mut packet = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 3, 218];
        packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x90]);
        packet.extend([u8::try_from(number % 50).unwrap(), 0, 53, 3, 198, 0, 0]);
        packet.resize(1000, 7);
        file.extend(packet);
    }
    file
}

/// A volume into which that was recorded without an index.
fn recorded(folder: &Path) -> std::path::PathBuf {
    let (volume, pcap) = (folder.join("volume"), folder.join("in.pcap"));
    std::fs::write(&pcap, capture()).unwrap();
    let file = device::CreateOptions { size_bytes: 32 << 20, sparse: true, overwrite: true };
    device::create_file(&volume, &file, &mut |_, _| ControlFlow::Continue(())).unwrap();
    let mut devices = vec![device::open(&volume, &device::Options::default()).unwrap()];
    let identity = Identity {
        volume_id: VolumeId([1; 16]),
        head_key: HeadKey([2; 32]),
        members: vec![MemberEntry::new([3; 16], String::new())],
        spares: Vec::new(),
        created: Timestamp(0),
    };
    let options = CreateOptions { piece_bytes: 256 << 10, ..CreateOptions::default() };
    volume::create(&mut devices, &options, &identity).unwrap();
    drop(devices);
    let mut options = Options::new(volume.clone(), Input::Files(vec![pcap]));
    (options.sessions, options.index_dir) = (None, Some(folder.join("index")));
    record(&options, &SystemClock, &mut |_| ControlFlow::Continue(())).unwrap();
    volume
}

fn new_table() -> Table {
    Table::new(session::Config::default(), 1)
}

/// The stripes with packets.
fn data_stripes(reader: &Reader) -> Vec<Skipped> {
    let span = reader.span().unwrap();
    let heads = (span.tail..=span.acknowledged.sequence).flat_map(|at| reader.leading_heads(at));
    let data = heads.filter(|head| head.stripe.kind == Kind::Data);
    data.map(|head| Skipped { stripe: head.stripe.stripe, packets: head.stripe.totals.packets })
        .collect()
}

fn packets_in(rows: &[session::Slice]) -> u64 {
    rows.iter().map(|row| row.orig.packets + row.resp.packets).sum()
}

#[test]
fn what_there_was_no_time_for_gets_rows_when_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let volume = recorded(folder.path());
    let open = || volume::open_reader(&volume, &[]).ok();
    let all = data_stripes(&open().unwrap());
    assert!(all.len() > 10, "{} stripes", all.len());
    let skips = Skips::default();
    let mut late = Late::new(Arc::clone(&skips), &open);
    assert_eq!(late.first(), None);
    skips.lock().unwrap().extend(&all);
    let first = late.first().unwrap();
    let mut segment = OpenSegment::new(first, 1, 0);
    // Nothing is read before it is durable.
    let before = StripeId { sequence: first.sequence - 1, sub: 0 };
    assert_eq!(late.next(before, &mut segment, &new_table), Step::NotNow);

    let last = all.last().unwrap().stripe;
    for (number, skipped) in (1..).zip(&all[..5]) {
        let step = late.next(last, &mut segment, &new_table);
        assert_eq!((step, segment.last()), (Step::Indexed(skipped.packets), skipped.stripe));
        assert!(late.first() > Some(skipped.stripe), "{number} do not wait any more");
    }
    let sum = |stripes: &[Skipped]| stripes.iter().map(|skipped| skipped.packets).sum::<u64>();
    // The segment ends: two more are left without rows, the others wait for the next.
    assert_eq!(late.end_segment(all[6].stripe, &mut segment), sum(&all[5..7]));
    assert_eq!((segment.rows.len(), packets_in(&segment.rows)), (50, sum(&all[..5])));

    let mut segment = OpenSegment::new(late.first().unwrap(), 1, 0);
    while late.first().is_some() {
        assert_ne!(late.next(last, &mut segment, &new_table), Step::NotNow);
    }
    assert_eq!(late.end_segment(last, &mut segment), 0);
    assert_eq!(packets_in(&segment.rows), sum(&all[7..]));
    assert_eq!(sum(&all), PACKETS);
}

#[test]
fn what_cannot_be_read_stays_without_rows_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let volume = recorded(folder.path());
    let open = || volume::open_reader(&volume, &[]).ok();
    let reader = open().unwrap();
    let all = data_stripes(&reader);
    let offset = reader.geometry().slot_offset(all[1].stripe.sequence) + 5 * 4096;
    let mut bytes = std::fs::read(&volume).unwrap();
    bytes[usize::try_from(offset).unwrap()] ^= 1;
    std::fs::write(&volume, bytes).unwrap();

    let skips = Skips::default();
    skips.lock().unwrap().extend(&all[..3]);
    let mut late = Late::new(skips, &open);
    let mut segment = OpenSegment::new(late.first().unwrap(), 1, 0);
    let last = all.last().unwrap().stripe;
    let steps: Vec<Step> = (0..4).map(|_| late.next(last, &mut segment, &new_table)).collect();
    let [first, damaged, third] = [0, 1, 2].map(|number| all[number].packets);
    let expected = [Step::Indexed(first), Step::Unreadable, Step::Indexed(third), Step::NotNow];
    assert_eq!(steps, expected);
    assert_eq!(late.end_segment(last, &mut segment), damaged);
    assert_eq!(packets_in(&segment.rows), first + third);
}
