//! A small recorder: packets into pieces, pieces into a volume, their sessions into segments.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use capture::{FileOptions, FileSource, Next, Source};
use completeness::Completeness;
use device::{Buffer, Pool};
use extract::Times;
use format::directory::{Gap, SegmentEntry, split};
use format::head::{HEAD_BYTES, HeadKey, Kind, StripeId, Totals, VolumeId};
use format::local::{LOCAL_FRAME_BYTES, fill_with_padding};
use format::piece::{
    EncodedInterface, InterfaceFields, PacketParts, PieceBuilder, Statistics, packets,
};
use format::recorded::Recorded;
use format::session_row::{PieceId, SessionRow};
use format::superblock::MemberEntry;
use index::{Encoded, SegmentMeta};
use session::{Config, PacketView, Table};
use tempfile::TempDir;
use units::{InterfaceId, ManualClock, Sequence, Timestamp};
use volume::{CreateOptions, Identity, create};
use wire::LinkType;
use writer::{Filled, FilledColumn, Opener, Writer, mount};

/// One packet to record, or as read back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Packet {
    pub(crate) interface: u32,
    pub(crate) timestamp: Timestamp,
    pub(crate) original_len: u32,
    pub(crate) data: Vec<u8>,
    pub(crate) options: Vec<u8>,
}

/// Something to record: interfaces and packets, in the order of arrival.
#[derive(Clone, Default, Debug)]
pub(crate) struct Traffic {
    pub(crate) interfaces: Vec<capture::Interface>,
    pub(crate) packets: Vec<Packet>,
    pub(crate) blocks: Vec<Vec<u8>>,
}

/// The packets of a capture, up to its damaged place if it has one.
pub(crate) fn traffic_of(path: &Path) -> Traffic {
    let mut traffic = Traffic::default();
    let Ok(mut source) = FileSource::open(path, FileOptions::default()) else { return traffic };
    loop {
        match source.next_batch(Duration::from_millis(100)) {
            Ok(Next::Packets(batch)) => traffic.packets.extend(batch.map(|packet| Packet {
                interface: packet.interface,
                timestamp: packet.timestamp,
                original_len: packet.original_len,
                data: packet.head.to_vec(),
                options: packet.options.to_vec(),
            })),
            Ok(Next::Block(block)) => traffic.blocks.push(block),
            Ok(Next::End) => break,
            // After an error what it did not concern goes on.
            Ok(Next::Idle) | Err(_) => {}
        }
    }
    traffic.interfaces = source.interfaces().to_vec();
    traffic
}

/// How to record.
#[derive(Clone, Copy)]
pub(crate) struct How {
    pub(crate) piece_bytes: u32,
    /// Pieces of a segment; `None` writes no index.
    pub(crate) segment_pieces: Option<usize>,
    pub(crate) config: Config,
    /// Leave the last segment without its index, as a crash does.
    pub(crate) crash: bool,
    /// Note a loss from 5 to 6 ns in every segment.
    pub(crate) lossy: bool,
    /// The indexer comes too late for every third piece.
    pub(crate) late: bool,
    /// Packets of every segment that the indexer has not looked at for names.
    pub(crate) unread: u64,
    /// Heads claim up to when every packet has come, as those of a recorder do: so many
    /// nanoseconds too late, as when the clock falls back a little.
    pub(crate) claims: Option<i64>,
    /// Changes each row before it is indexed, as a forger of an index does.
    pub(crate) forge: Option<fn(&mut SessionRow)>,
    /// Name of the recording.
    pub(crate) recording: Option<&'static str>,
}

impl Default for How {
    fn default() -> Self {
        Self {
            piece_bytes: 64 << 10,
            segment_pieces: Some(4),
            config: endless(),
            crash: false,
            lossy: false,
            late: false,
            unread: 0,
            claims: None,
            forge: None,
            recording: None,
        }
    }
}

/// Sessions without timeouts, one row each.
pub(crate) fn endless() -> Config {
    Config {
        tcp_timeout_ns: None,
        udp_timeout_ns: None,
        icmp_timeout_ns: None,
        other_timeout_ns: None,
        slice_ns: None,
        ..Config::default()
    }
}

/// A volume in a folder of its own.
pub(crate) struct Volume {
    pub(crate) folder: TempDir,
    pub(crate) path: PathBuf,
    clock: ManualClock,
    directory: Vec<SegmentEntry>,
    /// Stripes for which the indexer came too late.
    pub(crate) without_rows: BTreeSet<Sequence>,
}

impl Volume {
    pub(crate) fn new(piece_bytes: u32, size_bytes: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("volume");
        let file = device::CreateOptions { size_bytes, sparse: true, overwrite: false };
        device::create_file(&path, &file, &mut |_, _| core::ops::ControlFlow::Continue(()))
            .unwrap();
        let identity = Identity {
            volume_id: VolumeId([1; 16]),
            head_key: HeadKey([2; 32]),
            members: vec![MemberEntry::new([3; 16], String::new())],
            spares: Vec::new(),
            created: Timestamp(0),
        };
        let device = device::open(&path, &device::Options::default()).unwrap();
        let options = CreateOptions { piece_bytes, ..CreateOptions::default() };
        create(&mut [device], &options, &identity).unwrap();
        let clock = ManualClock::new(Timestamp(1));
        Self { folder, path, clock, directory: Vec::new(), without_rows: BTreeSet::new() }
    }

    /// A volume that holds one recording of one capture.
    pub(crate) fn of(traffic: &Traffic, how: How) -> Self {
        let packets = traffic.packets.iter();
        let bytes: usize =
            packets.map(|packet| packet.data.len() + packet.options.len() + 64).sum();
        let bytes = u64::try_from(bytes).unwrap() * 2 + 40 * u64::from(how.piece_bytes);
        let mut volume = Self::new(how.piece_bytes, (8 << 20) + bytes.next_multiple_of(4096));
        volume.record(traffic, how);
        volume
    }

    pub(crate) fn options(&self) -> extract::Options {
        extract::Options {
            volume: self.path.clone(),
            index_dir: Some(self.folder.path().join("index")),
            ..extract::Options::default()
        }
    }

    pub(crate) fn forget_cache(&self) {
        let cache = self.folder.path().join("index");
        if cache.exists() {
            std::fs::remove_dir_all(cache).unwrap();
        }
    }

    pub(crate) fn record(&mut self, traffic: &Traffic, how: How) {
        let device = device::open(&self.path, &device::Options::default()).unwrap();
        let (writer, _) = mount(vec![device], &Opener::alone(&self.clock)).unwrap();
        let piece_bytes = usize::try_from(how.piece_bytes).unwrap();
        let mut run = Run {
            clock: &self.clock,
            directory: &mut self.directory,
            without_rows: &mut self.without_rows,
            writer,
            pool: Pool::new(64, piece_bytes).unwrap(),
            table: Table::new(how.config, 7),
            start: StripeId::default(),
            how,
            interfaces: described(traffic),
            rows: Vec::new(),
            stripes: Vec::new(),
            times: Vec::new(),
            packets: 0,
            unindexed: 0,
        };
        run.traffic(traffic);
        run.writer.close(&self.clock).unwrap();
    }
}

struct Run<'a> {
    clock: &'a ManualClock,
    directory: &'a mut Vec<SegmentEntry>,
    without_rows: &'a mut BTreeSet<Sequence>,
    writer: Writer,
    pool: Pool,
    table: Table,
    /// First stripe of the recording.
    start: StripeId,
    how: How,
    interfaces: Vec<index::Interface>,
    rows: Vec<SessionRow>,
    stripes: Vec<StripeId>,
    times: Vec<Timestamp>,
    packets: u64,
    unindexed: u64,
}

/// The interfaces as segments describe them.
fn described(traffic: &Traffic) -> Vec<index::Interface> {
    let describe = |(id, interface): (u32, &capture::Interface)| {
        let (link_type, name) = (interface.link_type, interface.name.clone());
        index::Interface { id: InterfaceId(id), link_type, name }
    };
    (0..).zip(&traffic.interfaces).map(describe).collect()
}

pub(crate) fn loss(from: i64, to: i64) -> Gap {
    let cause = format::directory::GapCause::KernelDrops;
    let (from, to) = (Timestamp(from), Timestamp(to));
    Gap { cause, interface: None, packets: Some(3), bytes: None, from, to }
}

impl Run<'_> {
    fn traffic(&mut self, traffic: &Traffic) {
        let recording = self.how.recording;
        let interfaces: Vec<EncodedInterface> = (0..)
            .zip(&traffic.interfaces)
            .map(|(id, interface)| {
                let capture::Interface { name, link_type, snaplen, options, .. } = interface;
                let (link_type, snaplen) = (*link_type, *snaplen);
                EncodedInterface::new(&InterfaceFields {
                    id: InterfaceId(id),
                    link_type,
                    snaplen,
                    name,
                    recording: recording.unwrap_or_default(),
                    options,
                })
            })
            .collect();
        self.start = self.writer.next();
        let mut earliest: Vec<Timestamp> = Vec::new();
        for packet in traffic.packets.iter().rev() {
            earliest.push(earliest.last().map_or(packet.timestamp, |it| packet.timestamp.min(*it)));
        }
        let mut column = self.column();
        let mut builder = PieceBuilder::new(column.len());
        for block in &traffic.blocks {
            builder.push_block(&mut column, block);
        }
        for (packet, later) in traffic.packets.iter().zip(earliest.into_iter().rev()) {
            let interface = &interfaces[usize::try_from(packet.interface).unwrap()];
            let longest = builder.captured_len_max(interface).min(packet.data.len());
            let parts = PacketParts {
                timestamp: packet.timestamp,
                original_len: packet.original_len,
                parts: [&packet.data[..longest], &[], &[]],
                options: &packet.options,
            };
            if !builder.push(&mut column, interface, &parts) {
                self.claim(later.plus_nanos(-1));
                let full = core::mem::replace(&mut column, self.column());
                self.seal(full, &mut builder);
                builder = PieceBuilder::new(column.len());
                assert!(builder.push(&mut column, interface, &parts), "an empty piece has space");
            }
        }
        if !builder.is_empty() {
            self.claim(Timestamp(i64::MAX / 2));
            self.seal(column, &mut builder);
        }
        if !self.how.crash {
            self.table.finish(&mut self.rows);
            self.close_segment();
        }
    }

    fn claim(&mut self, through: Timestamp) {
        if let Some(ahead_ns) = self.how.claims {
            let from = Timestamp(i64::MIN / 2);
            let recorded = Recorded::new(true, self.start, from, &["eth0".to_owned()]);
            let through = through.plus_nanos(ahead_ns);
            self.writer.set_recorded(Recorded { through, ..recorded });
        }
    }

    fn column(&mut self) -> Buffer {
        loop {
            if let Some(column) = self.pool.take() {
                return column;
            }
            self.writer.poll(Some(Duration::from_millis(10)), self.clock).unwrap();
        }
    }

    fn seal(&mut self, mut column: Buffer, builder: &mut PieceBuilder) {
        let rows = self.writer.plan(builder.rows()).rows;
        let used = builder.interfaces().iter();
        let statistics: Vec<Statistics> =
            used.map(|used| Statistics { interface: used.id, ..Statistics::default() }).collect();
        let rows = builder.finish(&mut column, &statistics, &mut Vec::new(), rows);
        let contents = builder.contents();
        let totals = Totals { packets: contents.packets.into(), ..Totals::default() };
        let (time_min, time_max) = (contents.time_min, contents.time_max);
        let columns = vec![FilledColumn { buffer: column, packets: contents.packets }];
        let (kind, extra_blocks) = (Kind::Data, contents.extra_blocks);
        let filled = Filled { columns, kind, rows, totals, time_min, time_max, extra_blocks };
        let appended = self.writer.append(filled, self.clock).unwrap();
        self.clock.advance_nanos(1_000_000);
        // The segment's times are those of all its stripes.
        self.times.extend([time_min, time_max]);
        if self.how.late && self.stripes.len() % 3 == 1 {
            self.unindexed += u64::from(contents.packets);
            self.without_rows.insert(appended.stripe.sequence);
        } else {
            self.index(appended.stripe, &appended.columns[0][HEAD_BYTES..appended.len]);
        }
        self.packets += u64::from(contents.packets);
        self.stripes.push(appended.stripe);
        if Some(self.stripes.len()) == self.how.segment_pieces {
            self.table.cut(&mut self.rows);
            self.close_segment();
        }
    }

    fn index(&mut self, stripe: StripeId, body: &[u8]) {
        let StripeId { sequence, sub } = stripe;
        let mut walk = packets(body);
        while let Some(packet) = walk.next() {
            let packet = packet.unwrap();
            let interface = &walk.interfaces()[packet.interface];
            let (begin, end) = packet.span();
            let view = PacketView {
                timestamp: packet.timestamp,
                interface: interface.id,
                link_type: interface.link_type,
                original_len: packet.original_len,
                data: packet.data,
                piece: PieceId { sequence, sub, column: 0 },
                begin,
                end,
            };
            self.table.push(&view, &mut self.rows);
            self.times.push(packet.timestamp);
        }
    }

    fn close_segment(&mut self) {
        let (Some(&first), Some(&last)) = (self.stripes.first(), self.stripes.last()) else {
            return;
        };
        if self.how.segment_pieces.is_none() {
            return;
        }
        let volume = self.writer.superblock().volume_id;
        let meta = SegmentMeta {
            time_min: self.times.iter().min().copied().unwrap_or(Timestamp::MAX),
            time_max: self.times.iter().max().copied().unwrap_or(Timestamp::MIN),
            packets: core::mem::take(&mut self.packets),
            unindexed_packets: core::mem::take(&mut self.unindexed),
            unread_packets: self.how.unread,
            gaps: if self.how.lossy { vec![loss(5, 6)] } else { Vec::new() },
            vlan_in_key: self.how.config.vlan_in_key,
            interfaces: self.interfaces.clone(),
            recording: self.how.recording.map(str::to_owned),
            ..SegmentMeta::new(volume, self.writer.epoch(), first, last)
        };
        if let Some(forge) = self.how.forge {
            self.rows.iter_mut().for_each(forge);
        }
        let Encoded { parquet, summary } =
            index::encode(&meta, &core::mem::take(&mut self.rows)).unwrap();
        self.stripes.clear();
        self.times.clear();
        let capacity = self.pool.buffer_size() - HEAD_BYTES - LOCAL_FRAME_BYTES;
        let mut places = Vec::new();
        for block in split(&parquet, &summary, self.directory, capacity) {
            let mut column = self.column();
            let end = HEAD_BYTES + block.len();
            let rows_end = (end + LOCAL_FRAME_BYTES).next_multiple_of(HEAD_BYTES);
            column[HEAD_BYTES..end].copy_from_slice(&block);
            fill_with_padding(&mut column[end..rows_end]);
            let rows = u16::try_from(rows_end / HEAD_BYTES - 1).unwrap();
            let rows_padded = self.writer.plan(rows).rows;
            if rows_padded > rows {
                fill_with_padding(&mut column[end..HEAD_BYTES * (1 + usize::from(rows_padded))]);
            }
            let filled = Filled::without_packets(vec![column], Kind::Index, rows_padded);
            places.push(self.writer.append(filled, self.clock).unwrap().stripe);
        }
        self.writer.set_newest_index(places[0]);
        let (parts, bytes) =
            (u16::try_from(places.len()).unwrap(), u64::try_from(parquet.len()).unwrap());
        self.directory.insert(0, SegmentEntry { summary, index: places[0], parts, bytes });
    }
}

/// An interface of Ethernet frames.
pub(crate) fn ethernet(name: &str) -> capture::Interface {
    capture::Interface {
        name: name.to_owned(),
        description: None,
        link_type: LinkType::ETHERNET,
        snaplen: 0,
        filter: None,
        options: Vec::new(),
    }
}

/// An answer lacks nothing, but that heads of a made-up volume do not say when they were recorded.
pub(crate) fn lacks_nothing(completeness: &Completeness) -> bool {
    let mut lost = completeness.clone();
    (lost.unrecorded, lost.overwritten) = (Times::default(), Times::default());
    lost.doubts.clear();
    lost.is_complete()
}
