//! Every capture of the corpus goes into a volume and comes out as it was.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test may stop at once, and reads files"
)]

use std::fs;
use std::path::{Path, PathBuf};

use core::ops::ControlFlow;
use core::time::Duration;

use capture::{FileOptions, FileSource, Next, Source};
use format::head::{HeadKey, Kind, VolumeId};
use format::piece::packets;
use host::SystemClock;
use record::{Input, Options, Report, record};
use units::Timestamp;
use volume::{CreateOptions, Identity, Reader, create, verify};

/// Link type, time, length on the wire, bytes.
type Packet = (u16, i64, u32, Vec<u8>);

fn new_volume(path: &Path, piece_bytes: u32, size_bytes: u64) {
    let file = device::CreateOptions { size_bytes, sparse: true, overwrite: true };
    device::create_file(path, &file, &mut |_, _| ControlFlow::Continue(())).unwrap();
    let identity = Identity {
        volume_id: VolumeId(host::random_bytes().unwrap()),
        head_key: HeadKey(host::random_bytes().unwrap()),
        member_uuid: host::random_bytes().unwrap(),
        created: Timestamp(0),
    };
    let mut device = device::open(path, &device::Options::default()).unwrap();
    create(device.as_mut(), &CreateOptions { piece_bytes }, &identity, "volume").unwrap();
}

fn options(volume: &Path, captures: Vec<PathBuf>) -> Options {
    let mut options = Options::new(volume.to_owned(), Input::Files(captures));
    options.pool_bytes = 32 << 20;
    options.index_dir = Some(volume.with_extension("index"));
    options
}

fn run(options: &Options) -> Report {
    record(options, &SystemClock, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// What the file reader says, which has been compared with other tools on the same corpus.
fn packets_of_file(path: &Path) -> Vec<Packet> {
    let mut source = FileSource::open(path, FileOptions::default()).unwrap();
    let mut found = Vec::new();
    loop {
        match source.next_batch(Duration::from_secs(1)) {
            Ok(Next::Packets(batch)) => {
                let interfaces = batch.interfaces();
                found.extend(batch.map(|packet| {
                    let link_type = interfaces[packet.interface as usize].link_type.0;
                    let tag = packet.tag.unwrap_or_default();
                    let tag = if packet.tag.is_some() { &tag[..] } else { &[] };
                    let bytes = [packet.head, tag, packet.tail].concat();
                    (link_type, packet.timestamp.0, packet.original_len, bytes)
                }));
            }
            Ok(Next::End) => return found,
            _ => {}
        }
    }
}

fn packets_of_volume(path: &Path) -> Vec<Packet> {
    let reader = Reader::open(device::open_read(path).unwrap()).unwrap();
    let mut found = Vec::new();
    let Some(span) = reader.span() else { return found };
    let mut buffer = vec![0; reader.piece_bytes()];
    for sequence in span.tail..=span.acknowledged.sequence {
        let slot = reader.slot(sequence, &mut buffer).unwrap();
        for stripe in slot.stripes.iter().filter(|stripe| stripe.head.stripe.kind == Kind::Data) {
            let mut walk = packets(Reader::body(&stripe.head, &buffer));
            while let Some(packet) = walk.next() {
                let packet = packet.unwrap();
                let link_type = walk.interfaces()[packet.interface].link_type.0;
                let bytes = packet.data.to_vec();
                found.push((link_type, packet.timestamp.0, packet.original_len, bytes));
            }
        }
    }
    let report = verify(&reader, &mut |_, _| ControlFlow::Continue(()));
    assert_eq!(report.damage, vec![], "{}", path.display());
    found
}

/// Memory, where there is a file system in it: hundreds of volumes are made and synced here.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn corpus() -> Option<Vec<PathBuf>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/corpus");
    if !root.exists() {
        eprintln!("not run: no corpus at {}", root.display());
        return None;
    }
    let mut files = Vec::new();
    let mut directories = vec![root.join("pcap"), root.join("derived")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_none_or(|extension| extension != "tsv") {
                files.push(path);
            }
        }
    }
    files.sort();
    Some(files)
}

#[test]
fn every_capture_comes_back_byte_for_byte() {
    let Some(files) = corpus() else { return };
    let folder = folder();
    let (mut compared, mut broken_off) = (0, 0);
    for (number, file) in files.iter().enumerate() {
        let volume = folder.path().join("volume");
        new_volume(&volume, if number % 2 == 0 { 2 << 20 } else { 512 << 10 }, 96 << 20);
        let expected = packets_of_file(file);
        let report = run(&options(&volume, vec![file.clone()]));
        assert_eq!(report.total.stored as usize, expected.len(), "{}", file.display());
        assert!(report.total.too_long == 0, "{}", file.display());
        let found = packets_of_volume(&volume);
        assert!(found == expected, "{} differs", file.display());
        compared += found.len();
        broken_off += report.broken_off.len();
    }
    eprintln!("{compared} packets of {} captures compared, {broken_off} broke off", files.len());
    assert!(files.len() > 500 && compared > 90_000);
}

#[test]
fn recordings_follow_one_another_and_the_ring_laps() {
    let Some(files) = corpus() else { return };
    let large: Vec<PathBuf> =
        files.into_iter().filter(|file| fs::metadata(file).unwrap().len() > 500_000).collect();
    let folder = folder();
    let volume = folder.path().join("volume");
    new_volume(&volume, 64 << 10, 8 << 20);
    let mut all = Vec::new();
    for _ in 0..4 {
        let report = run(&options(&volume, large.clone()));
        assert!(
            report.total.is_lossless() && report.recovery.last_alive.is_none()
                || report.recovery.clean
        );
        all.extend(large.iter().flat_map(|file| packets_of_file(file)));
        let found = packets_of_volume(&volume);
        assert!(!found.is_empty() && all.ends_with(&found), "the newest packets are there");
        assert!(found.len() < all.len(), "the ring has lapped");
    }
}
