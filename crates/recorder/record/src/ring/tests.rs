//! The ring writer among threads that hold what it needs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use core::ops::ControlFlow;

use device::Pool;
use events::Watches;
use format::head::{HeadKey, Kind, VolumeId};
use format::piece::{EncodedInterface, InterfaceFields, PacketParts};
use format::recorded::RecordedClock;
use format::superblock::MemberEntry;
use host::SystemClock;
use stage::channel;
use units::{EachSequence, InterfaceId, MemberId, QueueId, Timestamp};
use volume::{CreateOptions, Identity, Retention};
use wire::LinkType;

use super::*;
use crate::control::Control;
use crate::index_queue;
use crate::options::{Discard, Input, Options};
use crate::spares::{self, Opening};
use crate::status::status_of;
use crate::storage::{Paths, Storage};

const PIECE: usize = 256 << 10;
/// All of this takes milliseconds; a wait of this length is one for ever.
const LONG: Duration = Duration::from_secs(20);

fn volume(folder: &Path, (data, parity): (usize, u8)) -> (Vec<PathBuf>, Writer) {
    let count = data + usize::from(parity);
    let paths: Vec<_> = (0..count).map(|number| folder.join(number.to_string())).collect();
    let file = device::CreateOptions { size_bytes: 32 << 20, sparse: true, overwrite: true };
    for path in &paths {
        device::create_file(path, &file, &mut |_, _| ControlFlow::Continue(())).unwrap();
    }
    let open = |path: &PathBuf| device::open(path, &device::Options::default()).unwrap();
    let mut devices: Vec<_> = paths.iter().map(open).collect();
    let member = |number| MemberEntry::new([number; 16], String::new());
    let identity = Identity {
        volume_id: VolumeId([1; 16]),
        head_key: HeadKey([2; 32]),
        members: (1..).take(count).map(member).collect(),
        spares: Vec::new(),
        created: Timestamp(0),
    };
    let piece_bytes = u32::try_from(PIECE).unwrap();
    let options = CreateOptions { piece_bytes, parity_columns: parity, ..CreateOptions::default() };
    volume::create(&mut devices, &options, &identity).unwrap();
    let (writer, _) = writer::mount(devices, &writer::Opener::alone(&SystemClock)).unwrap();
    (paths, writer)
}

/// A column with one packet, taken now.
fn column(pool: &Pool) -> FilledColumn {
    let mut column = pool.take().unwrap();
    let mut builder = PieceBuilder::new(column.len());
    let (link_type, options) = (LinkType::ETHERNET, &[][..]);
    let fields = InterfaceFields {
        id: InterfaceId(0),
        link_type,
        snaplen: 0,
        name: "a",
        recording: "",
        options,
    };
    let packet = PacketParts {
        timestamp: Timestamp(5),
        original_len: 60,
        parts: [&[7; 60], &[], &[]],
        options,
    };
    assert!(builder.push(&mut column, &EncodedInterface::new(&fields), &packet));
    FilledColumn {
        column,
        builder,
        cut: false,
        statistics: Vec::new(),
        gaps: Vec::new(),
        losses: Totals::default(),
        opened_ns: SystemClock.boottime_ns(),
        claim: (QueueId(0), Timestamp::MIN),
    }
}

/// There are none, and so no thread has a way to the ring writer for them.
fn no_spares(storage: &Arc<dyn Storage>) -> Spares {
    let opening = Opening {
        storage: Arc::clone(storage),
        watches: Watches::default(),
        discard: Discard::Off,
        run_bytes: 0,
    };
    let (spares, end) = spares::start(opening, channel(1).0);
    drop(end);
    spares
}

/// A thread that keeps the last columns: the indexer while it waits for us, or tasks behind this.
fn keep_all(pool: &Pool) -> Vec<Buffer> {
    core::iter::from_fn(|| pool.take()).collect()
}

fn parts<'a>(
    path: &Path,
    (writer, pool, status, ledger): (&Writer, &Pool, &SharedStatus, &'a Ledger),
    (indexer, waits): (ToIndexer, Waits),
) -> RingParts<'a> {
    let retention = Retention { max_age_ns: 0, erases: false };
    let options = Options::new(path.to_path_buf(), Input::Files(Vec::new()));
    let storage: Arc<dyn Storage> = Arc::new(Paths::new(&options));
    RingParts {
        columns: Columns::new(pool.clone(), writer.geometry()).unwrap(),
        clock: &SystemClock,
        status: Arc::clone(status),
        ledger,
        indexer,
        skips: Skips::default(),
        cut_after_ns: i64::MAX,
        expiry: Expiry::new((retention, false), Arc::clone(&storage)).unwrap(),
        spares: no_spares(&storage),
        questions: Questions::new(Control::default(), 1),
        covered: Covered::new(
            &options.input,
            (1, RecordedClock::default()),
            (writer.acknowledged(), Timestamp(0)),
            None,
        ),
        waits,
    }
}

/// How packets that do not fill a stripe come to be wanted at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reason {
    AQuestion,
    TheEndOfPackets,
    ACutByTime,
}

/// All columns of the packets are with others who wait for the ring writer to place an index, and
/// packets that do not fill a stripe are to go to the disk.
fn is_never_stuck(shape: (usize, u8), reason: Reason) {
    let folder = tempfile::tempdir().unwrap();
    let (paths, writer) = volume(folder.path(), shape);
    let (pool, index_pool) =
        (Pool::new(3 * shape.0, PIECE).unwrap(), Pool::new(shape.0, PIECE).unwrap());
    let (control, ledger, status) = (Control::default(), Ledger::new(1), SharedStatus::default());
    let (sealed, indexer) = index_queue::queue(pool.count(), false);
    let (tasks, queue) = channel(pool.count());
    let (skips, waits) = (Skips::default(), Waits::default());
    let parts = RingParts {
        skips: Arc::clone(&skips),
        questions: Questions::new(control.clone(), 1),
        ..parts(&paths[0], (&writer, &pool, &status, &ledger), (sealed, waits))
    };
    let ring = RingWriter::new(writer, parts);
    thread::scope(|scope| {
        let ring = scope.spawn(move || ring.run(&queue));
        let mut filled = column(&pool);
        let kept = keep_all(&pool);
        assert_eq!((pool.free_count(), kept.len()), (0, 3 * shape.0 - 1));
        filled.cut = reason == Reason::ACutByTime;
        tasks.send(Task::Packets(filled)).unwrap();
        let asks = scope.spawn(|| control.sync(LONG));
        while control.asked() == 0 {
            thread::yield_now();
        }
        match reason {
            Reason::AQuestion => tasks.send(Task::UpTo { queue: QueueId(0), number: 1 }).unwrap(),
            Reason::TheEndOfPackets => tasks.send(Task::EndOfPackets).unwrap(),
            Reason::ACutByTime => {}
        }
        // The indexer has this placed before it gives anything back.
        let columns = (0..shape.0).map(|_| {
            let mut column = index_pool.take().unwrap();
            assert_eq!(format::piece::fill_with_block(&mut column, &[], 4), 4);
            column
        });
        let (answer, place) = channel(1);
        let parts = Task::IndexParts { columns: columns.collect(), rows: 4, answer };
        tasks.send(parts).unwrap();
        assert!(place.recv_timeout(LONG).is_ok(), "{shape:?}, {reason:?}: no place for an index");
        if reason != Reason::AQuestion {
            tasks.send(Task::UpTo { queue: QueueId(0), number: 1 }).unwrap();
        }
        assert!(asks.join().unwrap(), "{shape:?}, {reason:?}: no answer");
        assert_eq!(status_of(&status).stored, [1], "{shape:?}, {reason:?}");
        if shape.0 > 1 {
            // No thread keeps the reserve: the indexer is given its stripe later.
            assert!(indexer.try_next().is_err(), "{shape:?}, {reason:?}");
            assert_eq!((status_of(&status).unindexed, skips.lock().unwrap().len()), (1, 1));
        }
        drop((kept, tasks));
        ring.join().unwrap().unwrap();
    });
    let reader = volume::open_reader(&paths[0], &paths[1..]).unwrap();
    let heads = (reader.span().unwrap().tail..=reader.span().unwrap().acknowledged.sequence)
        .each()
        .flat_map(|at| reader.leading_heads(at));
    let data: u64 = heads
        .filter(|head| head.stripe.kind == Kind::Data)
        .map(|head| head.stripe.totals.packets)
        .sum();
    assert_eq!(data, 1, "{shape:?}, {reason:?}");
}

#[test]
fn who_waits_for_the_ring_writer_may_hold_every_column() {
    for shape in [(1, 0), (2, 1), (3, 2)] {
        for reason in [Reason::AQuestion, Reason::TheEndOfPackets, Reason::ACutByTime] {
            is_never_stuck(shape, reason);
        }
    }
}

#[test]
fn a_reserve_is_given_back_by_the_members_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (_, mut writer) = volume(folder.path(), (2, 1));
    let pool = Pool::new(2, PIECE).unwrap();
    let kept = keep_all(&pool);
    let columns = Columns::new(pool, writer.geometry()).unwrap();
    for _ in 0..20 {
        assert!(columns.take(Urgency::None, &mut writer, &SystemClock).unwrap().is_none());
        let taken = columns.take(Urgency::Now, &mut writer, &SystemClock).unwrap().unwrap();
        assert!(taken.are_reserve && taken.columns.len() == 2);
        let mut others = taken.columns;
        let rows =
            others.iter_mut().map(|column| format::piece::fill_with_block(column, &[], 4)).max();
        let filled = Filled::without_packets(others, Kind::Index, rows.unwrap());
        drop(writer.append(filled, &SystemClock).unwrap());
    }
    drop(kept);
    let taken = columns.take(Urgency::None, &mut writer, &SystemClock).unwrap().unwrap();
    assert!(!taken.are_reserve);
    writer.drain(&SystemClock).unwrap();
}

/// The thread of the index hangs, and an input waits for columns that are in its queue.
#[test]
fn an_index_that_hangs_gives_its_columns_back_when_the_watchdog_has_seen_it() {
    let folder = tempfile::tempdir().unwrap();
    let (paths, writer) = volume(folder.path(), (1, 0));
    let pool = Pool::new(4, PIECE).unwrap();
    let (ledger, status, waits) = (Ledger::new(1), SharedStatus::default(), Waits::default());
    let (sealed, indexer) = index_queue::queue(pool.count(), true);
    let (tasks, queue) = channel(pool.count());
    let parts = parts(&paths[0], (&writer, &pool, &status, &ledger), (sealed, waits.clone()));
    let (skips, ring) = (Arc::clone(&parts.skips), RingWriter::new(writer, parts));
    thread::scope(|scope| {
        let ring = scope.spawn(move || ring.run(&queue));
        let send =
            |filled| tasks.send(Task::Packets(FilledColumn { cut: true, ..filled })).unwrap();
        (0..4).for_each(|_| send(column(&pool)));
        let is_durable = || status_of(&status).stored == [4];
        while !is_durable() {
            thread::yield_now();
        }
        assert!(pool.take_timeout(Duration::from_millis(300)).is_none(), "the index has them all");

        let clock = units::ManualClock::new(Timestamp(0));
        let waiting = waits.begin(Wait::IntakeForColumn, &clock);
        clock.advance_nanos(89_000_000_000);
        assert!(waits.look(clock.boottime_ns()).is_empty());
        assert!(pool.take_timeout(Duration::from_millis(300)).is_none());
        clock.advance_nanos(1_000_000_000);
        let lines = waits.look(clock.boottime_ns());
        assert_eq!(lines.len(), 1, "{lines:?}");
        drop(pool.take_timeout(LONG).expect("they come back"));
        drop(waiting);
        while status_of(&status).unindexed < 4 {
            thread::yield_now();
        }
        let left_out = skips.lock().unwrap().len();
        assert_eq!(left_out, 4, "they are indexed later");

        send(column(&pool));
        while status_of(&status).unindexed < 5 {
            thread::yield_now();
        }
        waits.index_is_back();
        send(column(&pool));
        assert!(indexer.next(LONG).is_ok(), "the index goes on");
        drop((tasks, indexer));
        ring.join().unwrap().unwrap();
    });
}

#[test]
fn a_member_comes_back_by_itself_where_it_may_be_well() {
    let of = |error: device::Error| comeback(&volume::Error::Device(error));
    let failed = |errno| device::Error::Io { operation: "write", offset: 0, errno };
    let [no_address, no_device, input_output, no_space] = [6, 19, 5, 28];
    assert_eq!(comeback(&volume::Error::Stalled { member: MemberId(1) }), Comeback::ByItself);
    for gone in [device::Error::Removed, failed(no_device), failed(no_address)] {
        assert_eq!(of(gone), Comeback::ByItself);
    }
    for broken in [failed(input_output), failed(no_space)] {
        assert_eq!(of(broken), Comeback::OnceGone);
    }
}
