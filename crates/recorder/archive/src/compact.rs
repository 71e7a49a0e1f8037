//! Small objects of an hour into few: each step may be the last one.
//!
//! 1. The merged object is stored under a name made of the names that it replaces.
//! 2. A manifest says which ones it replaces: from here on it counts, and they do not.
//! 3. Those are removed.
//!
//! Who goes by the manifests sees each session once at any time. Who lists the store sees sessions
//! twice from step 1 until step 3 is done. A run that begins removes merged objects that have no
//! manifest, and does step 3 of those that have one. Hours that an earlier run has settled, and
//! whose objects are the same since, are passed over: manifests are read of the others alone.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_schema::{Schema, SchemaRef};
use arrow_select::interleave::interleave_record_batch;
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde::{Deserialize, Serialize};
use units::number::to_u64;
use units::{NANOS_PER_SECOND, Timestamp};

use crate::Error;
use crate::lease::Lease;
use crate::manifest::{Manifest, ManifestError, Object, VERSION, hash};
use crate::names::{self, Sensor, Table};
use crate::settled::{Hours, Settled};
use crate::store::Listed;
use crate::table::{About, SCHEMA_VERSION, file};
use crate::uploader::Uploader;

/// Begins the names of merged objects.
const MERGED: &str = "merged-";
/// Objects of an hour are merged until one of them has so many bytes ...
const OBJECT_BYTES_MAX: u64 = 64 << 20;
/// ... or rows: so many are held in memory, some 700 bytes each.
const OBJECT_ROWS_MAX: u64 = 1 << 19;
/// An hour is left alone until this time has passed since it ended: objects may still come.
const REST_NS: i64 = 3600 * NANOS_PER_SECOND;
const HOUR_NS: i64 = 3600 * NANOS_PER_SECOND;

/// What was merged into what.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Merged {
    version: u16,
    schema: u16,
    pub(crate) object: Object,
    /// Names of the objects whose rows it has.
    #[serde(deserialize_with = "names::all_within")]
    pub(crate) replaces: Vec<String>,
}

impl Merged {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, ManifestError> {
        let merged: Self = serde_json::from_slice(bytes)?;
        match merged.version {
            VERSION => Ok(merged),
            version => Err(ManifestError::Version(version)),
        }
    }
}

/// What was done.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct CompactReport {
    /// Hours of which objects were merged.
    pub hours: u64,
    /// Objects that were merged.
    pub merged: u64,
    /// Their bytes.
    pub merged_bytes: u64,
    /// Objects that they became.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Sessions in them.
    pub sessions: u64,
    /// Objects that an earlier run had left and that were removed.
    pub removed: u64,
    /// Objects that were left alone because they are damaged: `archive verify` names them.
    pub damaged: u64,
    /// It was stopped.
    pub is_stopped: bool,
}

/// Merges the small objects of each hour that is over. `holder` says who it is, to others.
pub fn compact(
    uploader: &mut Uploader<'_>,
    sensor: &Sensor,
    holder: &str,
    progress: &mut dyn FnMut(&CompactReport),
) -> Result<CompactReport, Error> {
    let lease = Lease::take(uploader, sensor, holder)?;
    let report = CompactReport::default();
    let mut run = Run { uploader, sensor, lease, report, has_damage: BTreeSet::new() };
    let ended = run.all(progress);
    let Run { uploader, lease, mut report, .. } = run;
    match ended {
        Ok(()) => lease.end(uploader).map(|()| report),
        // Nothing is asked of the store any more: the lease ends by itself.
        Err(Error::Store(crate::StoreError::Stopped)) => {
            report.is_stopped = true;
            Ok(report)
        }
        Err(error) => {
            // Where that fails, too, the lease ends by itself.
            drop(lease.end(uploader));
            Err(error)
        }
    }
}

struct Run<'a, 'u> {
    uploader: &'a mut Uploader<'u>,
    sensor: &'a Sensor,
    lease: Lease,
    report: CompactReport,
    /// Folders of hours in which an object is damaged.
    has_damage: BTreeSet<String>,
}

impl Run<'_, '_> {
    fn all(&mut self, progress: &mut dyn FnMut(&CompactReport)) -> Result<(), Error> {
        let now = self.uploader.clock().realtime();
        let mut days: BTreeMap<String, Hours> = BTreeMap::new();
        for Listed { name, .. } in self.uploader.list(&Table::Sessions.folder(self.sensor), None)? {
            let Some((folder, _)) = name.rsplit_once('/') else { continue };
            let Some((day, _)) = folder.split_once("/hour=") else { continue };
            let (day, folder) = (day.to_owned(), folder.to_owned());
            days.entry(day).or_default().entry(folder).or_default().insert(name);
        }
        let known = Settled::read(self.uploader, self.sensor)?;
        let mut settled = Settled::default();
        for (day, mut hours) in days {
            if known.has_day(&day, &hours) {
                settled.insert_day(day, &hours);
                continue;
            }
            for (folder, names) in &mut hours {
                if !is_over(folder, now) {
                    continue;
                }
                if !known.has_hour(folder, names) {
                    self.hour(folder, names, progress)?;
                }
                if !self.has_damage.contains(folder) {
                    settled.insert_hour(folder, names);
                }
            }
            if is_over(&format!("{day}/hour=23"), now) && settled.has_all(&hours) {
                settled.insert_day(day, &hours);
            }
        }
        if settled == known { Ok(()) } else { settled.write(self.uploader, self.sensor) }
    }

    /// Merges what can be of an hour's objects. `names` are then those that it has left.
    fn hour(
        &mut self,
        folder: &str,
        names: &mut BTreeSet<String>,
        progress: &mut dyn FnMut(&CompactReport),
    ) -> Result<(), Error> {
        let mut has_merged = false;
        for group in groups(self.objects(names)?) {
            if let Some(Merged { object, replaces, .. }) = self.merge(folder, &group)? {
                has_merged = true;
                for name in &replaces {
                    names.remove(name);
                }
                names.insert(object.name);
            }
            progress(&self.report);
        }
        self.report.hours = self.report.hours.saturating_add(u64::from(has_merged));
        Ok(())
    }

    /// The objects of an hour that count, by their names. Those that a run that died has left are
    /// removed, and taken out of `names`.
    fn objects(&mut self, names: &mut BTreeSet<String>) -> Result<Vec<Object>, Error> {
        let (mut objects, mut replaced) = (BTreeMap::new(), BTreeSet::new());
        let mut parts = BTreeSet::new();
        for name in &*names {
            let Some(id) = id_of_merged(name) else {
                parts.extend(names::manifest_of_object(self.sensor, name));
                continue;
            };
            match self.said(names::compacted(self.sensor, id), Merged::read)? {
                Some(Merged { object, replaces, .. }) => {
                    replaced.extend(replaces);
                    objects.insert(object.name.clone(), object);
                }
                None => _ = replaced.insert(name.clone()),
            }
        }
        // Of a part that is not archived yet there is none.
        for part in parts {
            let manifest = self.said(part, Manifest::read)?;
            let of_part = manifest.into_iter().flat_map(|manifest| manifest.objects);
            objects.extend(of_part.map(|object| (object.name.clone(), object)));
        }
        for name in replaced.intersection(names) {
            self.lease.keep(self.uploader, self.sensor)?;
            self.uploader.delete(name)?;
            self.report.removed = self.report.removed.saturating_add(1);
        }
        names.retain(|name| !replaced.contains(name));
        objects.retain(|name, _| names.contains(name));
        Ok(objects.into_values().collect())
    }

    /// What is said under a name, if anything is.
    fn said<T>(
        &mut self,
        name: String,
        read: fn(&[u8]) -> Result<T, ManifestError>,
    ) -> Result<Option<T>, Error> {
        let Some(bytes) = self.uploader.get(&name)? else { return Ok(None) };
        let damaged = |error: ManifestError| Error::Damaged { name, why: error.to_string() };
        read(&bytes).map(Some).map_err(damaged)
    }

    /// What they were merged into, if they were.
    fn merge(&mut self, folder: &str, objects: &[Object]) -> Result<Option<Merged>, Error> {
        let mut batches = Vec::new();
        let mut sources = Vec::new();
        for object in objects {
            let bytes = self.uploader.get(&object.name)?;
            if let Some(bytes) = bytes.filter(|bytes| object.wrong(bytes).is_none()) {
                let schema = read_batches(bytes, &mut batches)?;
                sources.push((object, schema));
            } else {
                self.has_damage.insert(folder.to_owned());
                self.report.damaged = self.report.damaged.saturating_add(1);
            }
        }
        // Columns of another version stay in objects of their own.
        let first = sources.first().map(|(_, schema)| schema.clone());
        let are_alike = sources.iter().all(|(_, schema)| Some(schema) == first.as_ref());
        let (Some(_), true) = (sources.get(1), are_alike) else { return Ok(None) };
        let replaces: Vec<String> = sources.iter().map(|(it, _)| it.name.clone()).collect();
        let id: String = hash(replaces.join("\n").as_bytes()).chars().take(32).collect();
        let merged = sorted(&batches)?;
        let rows = merged.iter().map(RecordBatch::num_rows).sum();
        let about = About {
            table: Table::Sessions.name(),
            sensor: self.sensor.as_str(),
            covers: format!("merged {}", replaces.len()),
        };
        let bytes = file(&merged, &about)?;
        let object = Object::of(format!("{folder}/{MERGED}{id}.parquet"), &bytes, rows);
        self.lease.keep(self.uploader, self.sensor)?;
        self.uploader.put(&object.name, &bytes)?;
        let said = Merged { version: VERSION, schema: SCHEMA_VERSION, object, replaces };
        self.lease.keep(self.uploader, self.sensor)?;
        let name = names::compacted(self.sensor, &id);
        self.uploader.put(&name, page::safe::json_pretty(&said).as_bytes())?;
        for name in &said.replaces {
            self.uploader.delete(name)?;
        }
        let report = &mut self.report;
        report.merged = report.merged.saturating_add(to_u64(said.replaces.len()));
        let bytes = sources.iter().map(|(object, _)| object.bytes);
        report.merged_bytes = bytes.fold(report.merged_bytes, u64::saturating_add);
        report.objects = report.objects.saturating_add(1);
        report.bytes = report.bytes.saturating_add(said.object.bytes);
        report.sessions = report.sessions.saturating_add(said.object.rows);
        Ok(Some(said))
    }
}

/// Whether the hour of a folder is over for long enough to be merged.
fn is_over(folder: &str, now: Timestamp) -> bool {
    let hour = folder.split_once("/date=").and_then(|(_, behind)| behind.split_once("/hour="));
    let begin = hour.and_then(|(date, hour)| format!("{date}T{hour}:00:00Z").parse().ok());
    begin.is_some_and(|begin: Timestamp| begin.plus_nanos(HOUR_NS + REST_NS) <= now)
}

/// The id of a merged object, by its name.
fn id_of_merged(name: &str) -> Option<&str> {
    name.rsplit('/').next()?.strip_prefix(MERGED)?.strip_suffix(".parquet")
}

/// The folder of an object of sessions, if its hour is over for long enough to be merged.
pub fn hour_to_merge(name: &str, now: Timestamp) -> Option<&str> {
    let (folder, _) = name.rsplit_once('/')?;
    is_over(folder, now).then_some(folder)
}

/// Which objects of an hour are merged into one each: those that together stay below the bounds, in
/// their order.
pub fn groups(objects: Vec<Object>) -> Vec<Vec<Object>> {
    let mut groups: Vec<Vec<Object>> = Vec::new();
    let (mut bytes, mut rows) = (0_u64, 0_u64);
    for object in objects {
        bytes = bytes.saturating_add(object.bytes);
        rows = rows.saturating_add(object.rows);
        let fits = bytes <= OBJECT_BYTES_MAX && rows <= OBJECT_ROWS_MAX;
        if let Some(group) = groups.last_mut().filter(|_| fits) {
            group.push(object);
        } else {
            (bytes, rows) = (object.bytes, object.rows);
            groups.push(vec![object]);
        }
    }
    groups.retain(|group| group.len() > 1);
    groups
}

fn read_batches(bytes: Vec<u8>, batches: &mut Vec<RecordBatch>) -> Result<SchemaRef, Error> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes))?;
    // Without what a file says of itself, in which every one differs.
    let schema = SchemaRef::new(Schema::new(reader.schema().fields().clone()));
    for batch in reader.build()? {
        let batch = batch?;
        batches.push(RecordBatch::try_new(SchemaRef::clone(&schema), batch.columns().to_vec())?);
    }
    Ok(schema)
}

/// Rows to be put together at a time.
const SLICE_ROWS: usize = 1 << 13;

/// The rows of all in the order of their start.
fn sorted(batches: &[RecordBatch]) -> Result<Vec<RecordBatch>, Error> {
    let mut order: Vec<(i64, &str, usize, usize)> = Vec::new();
    for (number, batch) in batches.iter().enumerate() {
        let starts = batch.column_by_name("start_ns");
        let starts = starts.and_then(|column| column.as_primitive_opt::<Int64Type>());
        let ids = batch.column_by_name("session_id").and_then(|it| it.as_string_opt::<i32>());
        let (Some(starts), Some(ids)) = (starts, ids) else { continue };
        let rows = starts.iter().zip(ids.iter()).enumerate();
        order.extend(rows.map(|(row, (start, id))| {
            (start.unwrap_or_default(), id.unwrap_or_default(), number, row)
        }));
    }
    order.sort_unstable();
    let places: Vec<(usize, usize)> = order.into_iter().map(|(_, _, it, row)| (it, row)).collect();
    let whole: Vec<&RecordBatch> = batches.iter().collect();
    let slices = places.chunks(SLICE_ROWS);
    let slices = slices.map(|places| interleave_record_batch(&whole, places));
    Ok(slices.collect::<Result<_, _>>()?)
}
