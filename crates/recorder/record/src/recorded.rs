//! A small volume that tests read back.

use std::path::Path;

use core::ops::ControlFlow;

use device::Pool;
use format::head::{HeadKey, Kind, VolumeId};
use format::superblock::MemberEntry;
use host::SystemClock;
use indexer::Times;
use units::{EachSequence, Timestamp};
use volume::{CreateOptions, Identity, Reader};

use crate::late::Skipped;
use crate::{Input, Options, record};

pub(crate) const PACKETS: u64 = 4000;

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
pub(crate) fn recorded(folder: &Path) -> std::path::PathBuf {
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

/// The stripes with packets.
pub(crate) fn data_stripes(reader: &Reader) -> Vec<Skipped> {
    let span = reader.span().unwrap();
    let heads =
        (span.tail..=span.acknowledged.sequence).each().flat_map(|at| reader.leading_heads(at));
    let data = heads.filter(|head| head.stripe.kind == Kind::Data);
    let skipped = |head: format::head::Head| {
        let times = Times { min: head.stripe.time_min, max: head.stripe.time_max };
        Skipped::new(head.stripe.stripe, head.stripe.totals.packets, times)
    };
    data.map(skipped).collect()
}

/// Memory for what is read back.
pub(crate) fn pool() -> Pool {
    Pool::shared(2, 256 << 10).unwrap()
}
