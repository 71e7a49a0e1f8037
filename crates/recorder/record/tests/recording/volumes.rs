//! Volumes for tests: made, recorded onto, and read back.

use std::path::{Path, PathBuf};

use core::ops::ControlFlow;
use core::time::Duration;

use capture::{FileOptions, FileSource, Next, Source};
use format::directory::Gap;
use format::head::{HeadKey, VolumeId};
use format::head::{Kind, StripeId};
use format::piece::packets;
use format::superblock::{MemberEntry, TimeKnown};
use host::SystemClock;
use record::{Input, Options, Report, record};
use units::{EachSequence, Epoch, Sequence, Timestamp};
use volume::{CreateOptions, Identity, Reader, create};
use writer::verify;

/// Link type, time, length on the wire, bytes.
pub(crate) type Packet = (u16, i64, u32, Vec<u8>);

pub(crate) fn new_volume(path: &Path, piece_bytes: u32, size_bytes: u64) {
    new_volume_of(&[path.to_owned()], 0, piece_bytes, size_bytes);
}

/// A volume of several members, of which `parity` may be lost.
pub(crate) fn new_volume_of(paths: &[PathBuf], parity: u8, piece_bytes: u32, size_bytes: u64) {
    let file = device::CreateOptions { size_bytes, sparse: true, overwrite: true };
    let entry = |path: &PathBuf| {
        let uuid = host::random_bytes().unwrap();
        MemberEntry::new(uuid, path.to_string_lossy().into_owned())
    };
    let identity = Identity {
        volume_id: VolumeId(host::random_bytes().unwrap()),
        head_key: HeadKey(host::random_bytes().unwrap()),
        members: paths.iter().map(entry).collect(),
        spares: Vec::new(),
        created: Timestamp(0),
    };
    let make = |path: &PathBuf| {
        device::create_file(path, &file, &mut |_, _| ControlFlow::Continue(())).unwrap();
        device::open(path, &device::Options::default()).unwrap()
    };
    let mut devices: Vec<_> = paths.iter().map(make).collect();
    let time = TimeKnown::by(&SystemClock);
    let options =
        CreateOptions { piece_bytes, parity_columns: parity, time, ..CreateOptions::default() };
    create(&mut devices, &options, &identity).unwrap();
}

/// Options with the index beside the volume.
pub(crate) fn options(volume: &Path, input: Input) -> Options {
    let mut options = Options::new(volume.to_owned(), input);
    options.pool_bytes = Some(32 << 20);
    options.index_dir = Some(volume.with_extension("index"));
    options
}

pub(crate) fn run(options: &Options) -> Report {
    record(options, &SystemClock, &mut |_| ControlFlow::Continue(())).unwrap()
}

pub(crate) fn open(path: &Path) -> Reader {
    volume::open_reader(path, &[]).unwrap()
}

/// What the file reader says, which has been compared with other tools on the corpus.
pub(crate) fn packets_of_file(path: &Path) -> Vec<Packet> {
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

/// One piece of a data stripe, decoded.
pub(crate) struct Stripe {
    pub(crate) id: StripeId,
    pub(crate) epoch: Epoch,
    /// Name and link type of its interfaces.
    pub(crate) interfaces: Vec<(String, u16)>,
    /// Packets, each with the place of its interface.
    pub(crate) packets: Vec<(usize, Packet)>,
    pub(crate) gaps: Vec<Gap>,
}

/// The acknowledged data pieces of one slot, stripe by stripe.
pub(crate) fn stripes_of_slot(reader: &Reader, sequence: Sequence) -> Vec<Stripe> {
    let mut pieces: Vec<(u8, Stripe)> = (0..reader.geometry().data_columns)
        .flat_map(|column| pieces_of_slot(reader, sequence, column))
        .collect();
    pieces.sort_by_key(|(column, stripe)| (stripe.id, *column));
    pieces.into_iter().map(|(_, stripe)| stripe).collect()
}

fn pieces_of_slot(reader: &Reader, sequence: Sequence, column: u8) -> Vec<(u8, Stripe)> {
    let mut buffer = vec![0; reader.piece_bytes()];
    let slot = reader.slot(sequence, column, &mut buffer).unwrap();
    let data = slot.stripes.iter().filter(|stripe| stripe.head.stripe.kind == Kind::Data);
    data.map(|stripe| {
        assert_eq!(stripe.bad_rows, [0; 0]);
        let mut walk = packets(Reader::body(&stripe.head, &buffer));
        let mut found = Vec::new();
        while let Some(packet) = walk.next() {
            let packet = packet.unwrap();
            let link_type = walk.interfaces()[packet.interface].link_type.0;
            let bytes = packet.data.to_vec();
            let copy = (link_type, packet.timestamp.0, packet.original_len, bytes);
            found.push((packet.interface, copy));
        }
        assert_eq!(found.len(), stripe.head.piece.packets as usize);
        let head = &stripe.head.stripe;
        let interfaces = walk.interfaces().iter();
        let interfaces = interfaces.map(|known| (known.name.clone(), known.link_type.0)).collect();
        let gaps = walk.gaps().to_vec();
        (column, Stripe { id: head.stripe, epoch: head.epoch, interfaces, packets: found, gaps })
    })
    .collect()
}

/// All acknowledged data stripes, oldest first.
pub(crate) fn stripes(reader: &Reader) -> Vec<Stripe> {
    let Some(span) = reader.span() else { return Vec::new() };
    let sequences = span.tail..=span.acknowledged.sequence;
    sequences.each().flat_map(|sequence| stripes_of_slot(reader, sequence)).collect()
}

/// Everything acknowledged, on a volume that verifies.
pub(crate) fn packets_of_volume(path: &Path) -> Vec<Packet> {
    let reader = open(path);
    assert_clean(&reader);
    stripes(&reader).into_iter().flat_map(|stripe| stripe.packets).map(|(_, it)| it).collect()
}

pub(crate) fn assert_clean(reader: &Reader) {
    let report = verify(reader, &mut |_, _| ControlFlow::Continue(()));
    assert_eq!(report.damage, vec![]);
}

/// Memory, where there is a file system in it: hundreds of volumes are made and synced here.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}
