//! How many bytes of index a session takes, by column.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use core::ops::ControlFlow;

use anyhow::{Result, ensure};
use index::{Columns, Segment, column_sizes};
use serde_json::json;
use units::Timestamp;
use units::number::real;

use crate::machine::Workplace;
use crate::mix;
use crate::outcome::Outcome;
use crate::recorder::Recorder;
use crate::statistics::Sample;

/// Bytes a session.
const GOAL: f64 = 100.0;
/// Columns shown one by one; the JSON has them all.
const COLUMNS_SHOWN: usize = 16;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// A directory on a disk; the volume is a sparse file
    #[arg(long, default_value = ".")]
    directory: PathBuf,
    /// A capture to record; without it the mix is made
    #[arg(long)]
    mix: Option<PathBuf>,
    #[command(flatten)]
    amount: mix::Amount,
    /// A capture file, or a directory of captures, to record into a volume of their own
    #[arg(long)]
    corpus: Option<PathBuf>,
    /// Size of the volume; from 64G on segments have 1 GiB
    #[arg(long, default_value = "72G")]
    size: String,
    /// The recorder to measure instead of the one beside this program
    #[arg(long)]
    wirespool: Option<PathBuf>,
}

/// The index of one volume.
#[derive(Debug, Default)]
struct Sizes {
    columns: BTreeMap<String, u64>,
    segments: u64,
    rows: u64,
    sessions: u64,
    bytes: u64,
}

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let place = Workplace::new(&options.directory)?;
    let mut outcome = Outcome::new("index: bytes a session, by column");
    let made = place.path("mix.pcap");
    let mix = options.mix.as_ref().unwrap_or(&made);
    if options.mix.is_none() {
        mix::write(&made, options.amount)?;
    }
    measure(&mut outcome, "the mix", options, &place, mix)?;
    if let Some(corpus) = &options.corpus {
        measure(&mut outcome, "the captures, one after the other", options, &place, corpus)?;
    }
    outcome.not_proven("other traffic: names and long histories cost, sessions alike cost little");
    Ok(outcome)
}

fn measure(
    outcome: &mut Outcome,
    label: &str,
    options: &Options,
    place: &Workplace,
    input: &Path,
) -> Result<()> {
    let recorder =
        Recorder::new(options.wirespool.as_deref(), place.path("volume"), place.path("index"))?;
    recorder.create(&options.size, &["--sparse"])?;
    let report = recorder.record(input, &[])?;
    let sizes = Sizes::read(&recorder.index_dir)?;
    let reported = report.count("index_bytes")?;
    ensure!(sizes.bytes == reported, "{} bytes of index found, {reported} reported", sizes.bytes);
    ensure!(sizes.sessions > 0, "there are no sessions");
    sizes.report(outcome, label)
}

impl Sizes {
    fn read(index_dir: &Path) -> Result<Self> {
        let mut sizes = Self::default();
        // A session's rows have its tuple and its start in common.
        let mut sessions = HashSet::new();
        for entry in std::fs::read_dir(index_dir)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "parquet") {
                continue;
            }
            let segment = Segment::open(std::fs::read(&path)?.into())?;
            sizes.segments += 1;
            sizes.rows += segment.row_count();
            sizes.bytes += segment.size_bytes();
            for (column, bytes) in column_sizes(&segment) {
                *sizes.columns.entry(column).or_default() += bytes;
            }
            let always = Timestamp::MIN..=Timestamp::MAX;
            segment.rows(Columns::All, &always, &mut |_, row| {
                sessions.insert((row.tuple, row.session_start));
                ControlFlow::Continue(())
            })?;
        }
        sizes.sessions = u64::try_from(sessions.len())?;
        Ok(sizes)
    }

    fn report(&self, outcome: &mut Outcome, label: &str) -> Result<()> {
        let a_session = |bytes: u64| real(bytes) / real(self.sessions);
        let Self { segments, rows, sessions, bytes, .. } = self;
        outcome.line(format!(
            "{label}: {sessions} sessions in {rows} rows of {segments} segments, {bytes} bytes = \
             {:.1} a session, {:.1} a row",
            a_session(*bytes),
            real(*bytes) / real(*rows),
        ));
        let mut columns: Vec<(&String, u64)> =
            self.columns.iter().map(|(column, &bytes)| (column, bytes)).collect();
        columns.sort_by_key(|&(_, bytes)| core::cmp::Reverse(bytes));
        for &(column, bytes) in columns.iter().take(COLUMNS_SHOWN) {
            outcome.line(format!("  {column:28} {:7.2}", a_session(bytes)));
        }
        let others: u64 = columns.iter().skip(COLUMNS_SHOWN).map(|(_, bytes)| bytes).sum();
        outcome.line(format!("  {:28} {:7.2}", "the others", a_session(others)));
        outcome.push_json(
            "volumes",
            json!({
                "traffic": label, "sessions": sessions, "rows": rows, "segments": segments,
                "bytes": bytes, "bytes_by_column": self.columns,
            }),
        );
        let ratio = Sample::new([GOAL / a_session(*bytes)])?;
        outcome.judge("a session takes at most 100 bytes (100 over bytes)", &ratio, 1.0);
        Ok(())
    }
}
