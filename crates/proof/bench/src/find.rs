//! Finding sessions among many: by address, by name, by community id, against `DuckDB` over the
//! same files.
//!
//! The volume is synthetic: real stripes and a real index, but of each segment only one packet.
//! Its sessions are drawn from a table of real ones (protocol, port, sizes, names); one in a
//! hundred is a needle, whose server and name no other session has.

mod sessions;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use device::Pool;
use format::directory::{SegmentEntry, split};
use format::head::{HEAD_BYTES, HeadKey, Kind, StripeId, Totals, VolumeId};
use format::local::{LOCAL_FRAME_BYTES, fill_with_padding};
use format::piece::{EncodedInterface, InterfaceFields, PacketParts, PieceBuilder, Statistics};
use format::superblock::MemberEntry;
use host::SystemClock;
use index::{Encoded, SegmentMeta};
use serde_json::{Value, json};
use units::number::real;
use units::{InterfaceId, Timestamp};
use volume::{CreateOptions, Identity, create};
use wire::LinkType;
use writer::{Filled, FilledColumn, Opener, Writer, mount};

use crate::machine::{Workplace, drop_page_cache};
use crate::outcome::Outcome;
use crate::program;
use crate::recorder::Recorder;
use crate::statistics::Sample;
use sessions::{Needle, Question, Sessions};

const COLD_GOAL_MS: f64 = 200.0;
const WARM_GOAL_MS: f64 = 50.0;
/// For a first row, and for a hundred.
const FIRST_GOAL_MS: f64 = 100.0;
const HUNDRED_GOAL_MS: f64 = 300.0;
/// Questions that many sessions answer, few, or none that an index could name.
const LISTS: [(&str, &[&str]); 5] = [
    ("the oldest sessions", &[]),
    ("the newest sessions", &["--sort", "start:desc"]),
    ("the oldest over UDP", &["udp"]),
    ("the newest with more than 10 kB", &["bytes > 10K", "--sort", "start:desc"]),
    ("the oldest of one client's port", &["orig_port = 4444"]),
];
/// Questions that no session answers, and no filter: bounds alone say so.
const NOTHING: [(&str, &str); 2] =
    [("those longer than 9 h", "duration > 9h"), ("those of more than 10 GB", "bytes > 10G")];
const PIECE_BYTES: u32 = 2 << 20;
/// Bytes of index that a session may take, for the size of the ring.
const SESSION_BYTES_MAX: u64 = 110;
const MEBIBYTE: u64 = 1 << 20;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// A directory on the disk to measure, with space for about 200 bytes a session
    #[arg(long, default_value = ".")]
    directory: PathBuf,
    /// Table of real sessions: tab-separated, with a heading
    #[arg(long)]
    table: PathBuf,
    /// Sessions to make
    #[arg(long, default_value_t = 10_000_000)]
    sessions: u64,
    /// Sessions of a segment
    #[arg(long, default_value_t = 65_536)]
    segment: u64,
    /// Needles that are looked for, each in three ways
    #[arg(long, default_value_t = 5)]
    needles: usize,
    /// Python with the package duckdb; without it there is no comparison
    #[arg(long)]
    python: Option<PathBuf>,
    /// The recorder to measure instead of the one beside this program
    #[arg(long)]
    wirespool: Option<PathBuf>,
}

/// One way of asking, over all needles: milliseconds.
#[derive(Debug, Default)]
struct Measured {
    what: &'static str,
    cold: Vec<f64>,
    warm: Vec<f64>,
    /// Of the program's own clock: from the opening of the volume to the last row.
    warm_inside: Vec<f64>,
    peer_cold: Vec<f64>,
    peer_warm: Vec<f64>,
    segments_opened: Vec<u64>,
}

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let place = Workplace::new(&options.directory)?;
    let recorder =
        Recorder::new(options.wirespool.as_deref(), place.path("volume"), place.path("index"))?;
    let mut sessions = Sessions::read(&options.table)?;
    let made = make(options, &recorder, &mut sessions)?;
    // The first question fills the cache from the ring and makes the filters over groups.
    let first = recorder.ask("find", &["host 203.0.113.77", "--json"])?;
    recorder.ask("find", &["host 203.0.113.77", "--json"])?;
    let mut outcome = Outcome::new("find: one session among many, against DuckDB");
    outcome.line(format!(
        "{} sessions in {made} segments; {} bytes of index directory a session, filters included; \
         the first question, which fills it from the ring: {:.1} s",
        options.sessions,
        directory_bytes(&recorder.index_dir)? / options.sessions,
        first.seconds,
    ));
    let needles = sessions.needles(options.needles);
    let ways: [(&str, Way); 3] = [
        ("by address", Needle::by_address),
        ("by SNI", Needle::by_name),
        ("by community id", Needle::by_community_id),
    ];
    for (what, question) in ways {
        let questions: Vec<Question> = needles.iter().map(question).collect();
        report(&mut outcome, &measure(options, &recorder, what, &questions)?)?;
    }
    for (what, question) in LISTS {
        for (limit, goal) in [("1", FIRST_GOAL_MS), ("100", HUNDRED_GOAL_MS)] {
            let question = [question, &["--json", "--limit", limit]].concat();
            list(&mut outcome, (options, &recorder), (what, limit), (&question, goal))?;
        }
    }
    for (what, question) in NOTHING {
        let question = [question, "--json"];
        list(&mut outcome, (options, &recorder), (what, "0"), (&question, FIRST_GOAL_MS))?;
    }
    outcome.json("sessions", options.sessions);
    outcome.json("segments", made);
    outcome.not_proven("other disks; sessions whose packets are read as well");
    outcome.not_proven("DuckDB has no index on these files, and is not made to have one");
    Ok(outcome)
}

/// Asks for the first of many, as often as needles are looked for.
fn list(
    outcome: &mut Outcome,
    (options, recorder): (&Options, &Recorder),
    (what, limit): (&str, &str),
    (question, goal_ms): (&[&str], f64),
) -> Result<()> {
    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    for _ in 0..options.needles {
        drop_page_cache()?;
        for times in [&mut cold, &mut warm] {
            let run = recorder.ask("find", question)?;
            let found = run.output.split(|&byte| byte == b'\n').count() - 1;
            ensure!(found.to_string() == limit, "{what}: {found} sessions, not {limit}");
            times.push(run.seconds * 1e3);
        }
    }
    outcome.push_json(
        "lists",
        json!({ "what": what, "limit": limit, "cold_ms": cold, "warm_ms": warm }),
    );
    let ratio = Sample::new(warm.iter().map(|time| goal_ms / time))?;
    let (cold, warm) = (Sample::new(cold)?, Sample::new(warm)?);
    outcome.line(format!(
        "{what}, {limit} of them: {:.0} ms cold, {:.0} ms warm",
        cold.median(),
        warm.median()
    ));
    outcome.judge(&format!("  warm within {goal_ms:.0} ms (goal over time)"), &ratio, 1.0);
    Ok(())
}

/// How a needle is asked for.
type Way = fn(&Needle) -> Question;

fn measure(
    options: &Options,
    recorder: &Recorder,
    what: &'static str,
    questions: &[Question],
) -> Result<Measured> {
    let mut measured = Measured { what, ..Measured::default() };
    for question in questions {
        drop_page_cache()?;
        let cold = recorder.ask("find", &[&question.query, "--json"])?;
        let warm = recorder.ask("find", &[&question.query, "--json"])?;
        let found = |run: &program::Run| run.output.split(|&byte| byte == b'\n').count() - 1;
        ensure!(found(&cold) == 1 && found(&warm) == 1, "{}: not one session", question.query);
        measured.cold.push(cold.seconds * 1e3);
        measured.warm.push(warm.seconds * 1e3);
        let cost = recorder.cost(&question.query)?;
        let number = |name: &str| {
            cost.pointer(&format!("/explain/{name}")).and_then(Value::as_u64).context("no cost")
        };
        measured.warm_inside.push(real(number("open_ns")? + number("select_ns")?) / 1e6);
        let pruned = ["time", "id", "group", "filter"].map(|by| number(&format!("pruned_by_{by}")));
        let pruned = pruned.into_iter().sum::<Result<u64>>()?;
        measured.segments_opened.push(number("segments")? - pruned);
        if let Some(python) = &options.python {
            let (cold, warm) = peer(python, &recorder.index_dir, &question.condition)?;
            measured.peer_cold.push(cold);
            measured.peer_warm.push(warm);
        }
    }
    Ok(measured)
}

/// `DuckDB` over the same files: the query alone, in milliseconds, cold and warm; the program has
/// started before, and lists the files each time, as ours does.
fn peer(python: &Path, files: &Path, condition: &str) -> Result<(f64, f64)> {
    let script = "\
        import duckdb, sys, time\n\
        c = duckdb.connect()\n\
        c.execute('SET enable_progress_bar = false')\n\
        q = f\"SELECT count(*) FROM read_parquet('{sys.argv[1]}/*.parquet') WHERE {sys.argv[2]}\"\n\
        c.execute('SELECT 1').fetchall()\n\
        open('/proc/sys/vm/drop_caches', 'w').write('3')\n\
        for _ in range(2):\n\
        \x20   begin = time.monotonic()\n\
        \x20   count = c.execute(q).fetchone()[0]\n\
        \x20   print(count, time.monotonic() - begin)\n";
    let run = program::run(Command::new(python).args(["-c", script]).arg(files).arg(condition))?;
    let text = String::from_utf8(run.output)?;
    let mut times = Vec::new();
    for line in text.lines() {
        let (count, seconds) = line.split_once(' ').context("the peer said something else")?;
        ensure!(count == "1", "DuckDB found {count} sessions: {condition}");
        times.push(seconds.parse::<f64>()? * 1e3);
    }
    let [cold, warm] = times[..] else { anyhow::bail!("the peer ran {} times", times.len()) };
    Ok((cold, warm))
}

fn report(outcome: &mut Outcome, measured: &Measured) -> Result<()> {
    let Measured { what, cold, warm, warm_inside, peer_cold, peer_warm, segments_opened } =
        measured;
    let median = |values: &[f64]| Sample::new(values.iter().copied()).map(|all| all.median());
    let opened = segments_opened.iter().max().copied().unwrap_or(0);
    outcome.line(format!(
        "{what}: {:.0} ms cold, {:.0} ms warm ({:.0} ms of it after the start of the program); \
         {opened} segments opened at most",
        median(cold)?,
        median(warm)?,
        median(warm_inside)?,
    ));
    if !peer_cold.is_empty() {
        let (cold, warm) = (median(peer_cold)?, median(peer_warm)?);
        outcome.line(format!("  DuckDB, the query alone: {cold:.0} ms cold, {warm:.0} ms warm"));
    }
    outcome.push_json(
        "questions",
        json!({
            "what": what, "cold_ms": cold, "warm_ms": warm, "warm_inside_ms": warm_inside,
            "duckdb_cold_ms": peer_cold, "duckdb_warm_ms": peer_warm,
            "segments_opened": segments_opened,
        }),
    );
    for (label, values, goal) in [("cold", cold, COLD_GOAL_MS), ("warm", warm, WARM_GOAL_MS)] {
        let ratio = Sample::new(values.iter().map(|value| goal / value))?;
        outcome.judge(&format!("  {label} within {goal:.0} ms (goal over time)"), &ratio, 1.0);
    }
    Ok(())
}

/// Writes the volume; says how many segments it has.
fn make(options: &Options, recorder: &Recorder, sessions: &mut Sessions) -> Result<u64> {
    let segments = options.sessions.div_ceil(options.segment);
    let ring = options.sessions * SESSION_BYTES_MAX + segments * 2 * u64::from(PIECE_BYTES);
    let size_bytes = (ring + 512 * MEBIBYTE).next_multiple_of(MEBIBYTE);
    let path = &recorder.volume;
    let file = device::CreateOptions { size_bytes, sparse: true, overwrite: true };
    device::create_file(path, &file, &mut |_, _| core::ops::ControlFlow::Continue(()))?;
    let identity = Identity {
        volume_id: VolumeId([0xbe; 16]),
        head_key: HeadKey([2; 32]),
        members: vec![MemberEntry::new([3; 16], String::new())],
        spares: Vec::new(),
        created: Timestamp(0),
    };
    let device = device::open(path, &device::Options::default())?;
    let shape = CreateOptions { piece_bytes: PIECE_BYTES, ..CreateOptions::default() };
    create(&mut [device], &shape, &identity)?;
    let device = device::open(path, &device::Options::default())?;
    let (writer, _) = mount(vec![device], &Opener::alone(&SystemClock))?;
    let pool = Pool::new(64, usize::try_from(PIECE_BYTES)?)?;
    let mut maker = Maker { writer, pool, directory: Vec::new() };
    let mut left = options.sessions;
    for _ in 0..segments {
        maker.segment(sessions, usize::try_from(left.min(options.segment))?)?;
        left -= left.min(options.segment);
    }
    maker.writer.close(&SystemClock)?;
    Ok(segments)
}

/// Writes segments.
struct Maker {
    writer: Writer,
    pool: Pool,
    directory: Vec<SegmentEntry>,
}

impl Maker {
    fn segment(&mut self, sessions: &mut Sessions, count: usize) -> Result<()> {
        let stripe = self.packet(sessions.now())?;
        let from = sessions.now();
        let rows = sessions.take(count, stripe);
        let volume = self.writer.superblock().volume_id;
        let meta = SegmentMeta {
            time_min: from,
            time_max: sessions.now(),
            packets: 1,
            ..SegmentMeta::new(volume, self.writer.epoch(), stripe, stripe)
        };
        let Encoded { parquet, summary } = index::encode(&meta, &rows)?;
        let capacity = self.pool.buffer_size() - HEAD_BYTES - LOCAL_FRAME_BYTES;
        let mut places = Vec::new();
        for block in split(&parquet, &summary, &self.directory, capacity) {
            let mut column = self.column()?;
            let end = HEAD_BYTES + block.len();
            column.get_mut(HEAD_BYTES..end).context("a part fits")?.copy_from_slice(&block);
            let rows = u16::try_from((end + LOCAL_FRAME_BYTES).div_ceil(HEAD_BYTES) - 1)?;
            let rows = self.writer.plan(rows).rows;
            let padded = HEAD_BYTES * (1 + usize::from(rows));
            fill_with_padding(column.get_mut(end..padded).context("a part fits")?);
            let filled = Filled::without_packets(vec![column], Kind::Index, rows);
            places.push(self.writer.append(filled, &SystemClock)?.stripe);
        }
        let index = *places.first().context("an index has a part")?;
        self.writer.set_newest_index(index);
        let (parts, bytes) = (u16::try_from(places.len())?, u64::try_from(parquet.len())?);
        self.directory.insert(0, SegmentEntry { summary, index, parts, bytes });
        self.directory.truncate(format::directory::DIRECTORY_MAX);
        Ok(())
    }

    /// A stripe with one packet.
    fn packet(&mut self, timestamp: Timestamp) -> Result<StripeId> {
        let mut column = self.column()?;
        let mut builder = PieceBuilder::new(column.len());
        let (link_type, options) = (LinkType::ETHERNET, &Vec::new());
        let interface = InterfaceFields {
            id: InterfaceId(0),
            link_type,
            snaplen: 0,
            name: "synthetic",
            recording: "",
            options,
        };
        let interface = EncodedInterface::new(&interface);
        let parts =
            PacketParts { timestamp, original_len: 60, parts: [&[2; 60], &[], &[]], options: &[] };
        ensure!(builder.push(&mut column, &interface, &parts), "a packet fits");
        let rows = self.writer.plan(builder.rows()).rows;
        let statistics = [Statistics { interface: InterfaceId(0), ..Statistics::default() }];
        let rows = builder.finish(&mut column, &statistics, &mut Vec::new(), rows);
        let filled = Filled {
            columns: vec![FilledColumn { buffer: column, packets: 1 }],
            kind: Kind::Data,
            rows,
            totals: Totals { packets: 1, ..Totals::default() },
            time_min: timestamp,
            time_max: timestamp,
            extra_blocks: false,
        };
        Ok(self.writer.append(filled, &SystemClock)?.stripe)
    }

    fn column(&mut self) -> Result<device::Buffer> {
        loop {
            if let Some(column) = self.pool.take() {
                return Ok(column);
            }
            self.writer.poll(Some(Duration::from_millis(10)), &SystemClock)?;
        }
    }
}

fn directory_bytes(path: &Path) -> Result<u64> {
    let sizes = std::fs::read_dir(path)?.map(|entry| Ok(entry?.metadata()?.len()));
    sizes.sum::<Result<u64>>()
}
