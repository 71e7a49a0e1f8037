//! What is seen of a volume besides its sessions: the ring, recordings, gaps, what its disks were
//! measured for, and what is wrong with its recorder. Each is a document of JSON.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use diagnose::recorder::{Functions, Recording, Thread, diagnose, parse_recorder, watch};
use extract::GapsReport;
use findings::Unseen;
use host::SystemClock;
use page::text::plural;
use questions::{Answered, Look, Refused};
use serde_json::Value;
use units::Timestamp;
use units::number::to_u64;
use upkeep::{Grid, RingMap};
use volume_view::QualificationReport;

use super::{Work, refused, seen};

impl Work<'_> {
    pub(super) fn look(&self, wanted: &Look, mut data: &UnixStream) -> Result<Answered, Refused> {
        let text = match wanted {
            Look::Inspection { as_text, width, has_map } => {
                self.inspection(*as_text, *width, *has_map)?
            }
            Look::Ring { columns, rows, holds } => {
                self.ring(Grid { columns: *columns, rows: *rows }, holds)?
            }
            Look::Recordings => self.recordings()?,
            Look::Gaps { from_ns, until_ns, is_narrowed, limit } => {
                let times = (Timestamp(*from_ns), Timestamp(*until_ns));
                self.gaps(times, *is_narrowed, *limit)?
            }
            Look::Qualification { reports } => self.qualification(reports)?,
            Look::Findings { for_ms } => self.findings(*for_ms)?,
        };
        data.write_all(text.as_bytes()).unwrap_or_default();
        Ok(seen())
    }

    fn volume(&self) -> &Path {
        &self.question.volume
    }

    fn inspection(
        &self,
        as_text: bool,
        width: Option<usize>,
        has_map: bool,
    ) -> Result<String, Refused> {
        let report = upkeep::inspect(self.volume(), &[]).map_err(|error| of_upkeep(&error))?;
        let grid = volume_view::map_grid(width);
        let map = has_map.then(|| upkeep::map(self.volume(), &[], grid)).transpose();
        let map = map.map_err(|error| of_upkeep(&error))?;
        Ok(if as_text {
            let text = volume_view::inspection(&report, width);
            text + &map.as_ref().map(volume_view::map).unwrap_or_default()
        } else {
            volume_view::inspection_json(&report, map.as_ref())
        })
    }

    fn ring(&self, grid: Grid, holds: &[PathBuf]) -> Result<String, Refused> {
        let map = upkeep::map(self.volume(), &[], grid).map_err(|error| of_upkeep(&error))?;
        let status = upkeep::status(self.volume(), &[]).map_err(|error| of_upkeep(&error))?;
        Ok(volume_view::ring_json(&map, &status, &held(&map, holds)))
    }

    fn recordings(&self) -> Result<String, Refused> {
        let report = upkeep::inspect(self.volume(), &[]).map_err(|error| of_upkeep(&error))?;
        let within = self.question.sees_ns.map(|(from, until)| (Timestamp(from), Timestamp(until)));
        Ok(volume_view::recordings_json(&report.recordings, within))
    }

    fn gaps(
        &self,
        (from, until): (Timestamp, Timestamp),
        is_narrowed: bool,
        limit: usize,
    ) -> Result<String, Refused> {
        let (options, notes) = self.options()?;
        let found = extract::gaps(&options, &(from..=until), &SystemClock);
        let mut found = found.map_err(|error| refused(&error))?;
        for gap in found.gaps.iter_mut().filter(|_| is_narrowed) {
            (gap.from, gap.to) = (gap.from.max(from), gap.to.min(until));
        }
        let count = to_u64(found.gaps.len());
        let is_cut = found.gaps.len() > limit;
        let cut_by = is_cut.then_some("limit");
        found.completeness.limited |= is_cut;
        found.completeness = self.visible(&found.completeness);
        let said = self.statement(&plural(count, "gap"), &found.completeness, (cut_by, notes));
        Ok(session_view::gaps_json(&found, limit, &said))
    }

    /// What the recorder says of itself, where one runs.
    fn told(&self) -> Option<String> {
        (self.recorders.state)(self.volume(), &[])
    }

    fn qualification(&self, paths: &[PathBuf]) -> Result<String, Refused> {
        let opened = volume::open_superblocks(self.volume(), &[]);
        let opened = opened.map_err(|error| Refused::because(&error))?;
        let told = self.told().and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let disks = told.as_ref().and_then(|told| told.get("disks"));
        let reports = paths.iter().map(|path| report(path)).collect::<Result<_, _>>()?;
        Ok(volume_view::qualification_json(opened.superblock(), disks, reports))
    }

    fn findings(&self, for_ms: u64) -> Result<String, Refused> {
        let state = self.told().map(|text| parse_recorder(&text)).transpose();
        let state = state.map_err(|error| Refused::because(&error))?;
        let process = state.as_ref().and_then(|state| state.process);
        let (threads, functions) = process.map_or((Vec::new(), None), |process| {
            let (threads, functions) = self.threads(process, for_ms);
            (threads, Some(functions))
        });
        let (gaps, unseen) = match self.all_gaps() {
            Ok(found) => (found.completeness.with_crashes(found.gaps), None),
            Err(refused) => {
                let what = "the gaps of the volume".to_owned();
                (Vec::new(), Some(Unseen { what, needs: refused.detail }))
            }
        };
        let mut found = diagnose(&Recording { gaps, state, threads, functions });
        found.unseen.extend(unseen);
        Ok(machine_view::diagnosis_json(&found))
    }

    fn threads(&self, process: u32, for_ms: u64) -> (Vec<Thread>, Functions) {
        let duration_ns = i64::try_from(for_ms.saturating_mul(1_000_000)).unwrap_or(i64::MAX);
        watch(process, &SystemClock, duration_ns, &mut || self.flow())
    }

    fn all_gaps(&self) -> Result<GapsReport, Refused> {
        let (options, _) = self.options()?;
        let always = Timestamp::MIN..=Timestamp::MAX;
        extract::gaps(&options, &always, &SystemClock).map_err(|error| refused(&error))
    }
}

fn of_upkeep(error: &upkeep::Error) -> Refused {
    Refused::because(error)
}

/// How many of these holds have packets of each cell. One that cannot be read has none.
fn held(map: &RingMap, manifests: &[PathBuf]) -> Vec<u64> {
    let mut counts = vec![0_u64; map.cells.len()];
    for path in manifests {
        let Ok(text) = host::read_text(path) else { continue };
        let Ok(manifest) = manifest::parse_manifest(&text) else { continue };
        let sequences = manifest.pieces.iter().map(|piece| piece.stripe.sequence);
        let cells = sequences.filter_map(|sequence| map.cell_of(sequence));
        let mut cells: Vec<usize> = cells.collect();
        cells.sort_unstable();
        cells.dedup();
        for cell in cells {
            counts.get_mut(cell).into_iter().for_each(|count| *count += 1);
        }
    }
    counts
}

fn report(path: &Path) -> Result<QualificationReport, Refused> {
    let text = host::read_text(path).map_err(|error| Refused::because(&error))?;
    let report = serde_json::from_str(&text).map_err(|error| Refused::because(&error))?;
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(QualificationReport { file, id: qualify::report_id(&text), report })
}
