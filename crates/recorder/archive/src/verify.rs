//! What lies in a store, compared with the manifests of it.

use std::collections::{BTreeMap, BTreeSet};

use format::head::StripeId;
use serde::Serialize;
use units::number::to_u64;

use crate::Error;
use crate::compact::Merged;
use crate::manifest::{Manifest, Object, Pending};
use crate::names::{self, Sensor, Table, sensor_of, stripe};
use crate::uploader::Uploader;

/// What is wrong with an object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A manifest names it, and it is not there.
    Missing,
    /// It is not as it was written.
    Damaged,
    /// No manifest names it: its rows are counted by who lists the store.
    Foreign,
    /// Between two manifests one is missing.
    ManifestMissing,
}

impl FindingKind {
    /// As reports say it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Damaged => "damaged",
            Self::Foreign => "foreign",
            Self::ManifestMissing => "manifest missing",
        }
    }
}

/// Something is wrong.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Finding {
    /// What.
    pub kind: FindingKind,
    /// Which object.
    pub name: String,
    /// Why it is said.
    pub why: String,
}

/// So many findings are listed.
const LISTED_MAX: usize = 10_000;

/// What was found in a store.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct VerifyReport {
    /// Sensors that have manifests.
    pub sensors: u64,
    /// Manifests read.
    pub manifests: u64,
    /// Objects of tables that were read to their end.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Sessions in those that are sound.
    pub sessions: u64,
    /// Objects that a run has begun to store and not finished: the next one finishes it.
    pub unfinished: u64,
    /// How much is wrong.
    pub found: u64,
    /// What is wrong: the first of it.
    pub findings: Vec<Finding>,
    /// It was stopped before all was looked at.
    pub is_stopped: bool,
}

impl VerifyReport {
    fn find(&mut self, kind: FindingKind, name: &str, why: impl Into<String>) {
        self.found = self.found.saturating_add(1);
        if self.findings.len() < LISTED_MAX {
            self.findings.push(Finding { kind, name: name.to_owned(), why: why.into() });
        }
    }
}

/// Reads every object of a sensor, or of all, and compares it with its manifest. Takes some 200
/// bytes of memory for each object. `progress` is called with objects done, and all.
pub fn verify(
    uploader: &mut Uploader<'_>,
    sensor: Option<&Sensor>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<VerifyReport, Error> {
    let mut report = VerifyReport::default();
    let sensors = if let Some(sensor) = sensor {
        BTreeSet::from([sensor.clone()])
    } else {
        let listed = uploader.list(&names::manifests_of_all(), None)?;
        listed.iter().filter_map(|listed| sensor_of(&listed.name)).collect()
    };
    for sensor in &sensors {
        match verify_sensor(uploader, sensor, &mut report, progress) {
            Err(Error::Store(crate::StoreError::Stopped)) => {
                report.is_stopped = true;
                break;
            }
            done => done?,
        }
    }
    if sensor.is_none() && !report.is_stopped {
        foreign_sensors(uploader, &sensors, &mut report)?;
    }
    report.findings.sort();
    Ok(report)
}

fn verify_sensor(
    uploader: &mut Uploader<'_>,
    sensor: &Sensor,
    report: &mut VerifyReport,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), Error> {
    report.sensors = report.sensors.saturating_add(1);
    let mut expected = Expected::default();
    expected.read_manifests(uploader, sensor, report)?;
    expected.read_merged(uploader, sensor, report)?;
    let unfinished = unfinished(uploader, sensor)?;
    let mut there = BTreeSet::new();
    for table in Table::ALL {
        there.extend(uploader.list(&table.folder(sensor), None)?.into_iter().map(|it| it.name));
    }
    let of = to_u64(expected.objects.len());
    for (done, object) in (0..).zip(expected.objects.values()) {
        progress(done, of);
        there.remove(&object.name);
        check(uploader, object, report)?;
    }
    for name in there {
        if expected.merged.contains(&name) {
            report.find(FindingKind::Foreign, &name, "it was merged: compact removes it");
        } else if unfinished.contains(&name) {
            report.unfinished = report.unfinished.saturating_add(1);
        } else {
            report.find(FindingKind::Foreign, &name, "no manifest names it");
        }
    }
    Ok(())
}

fn check(
    uploader: &mut Uploader<'_>,
    object: &Object,
    report: &mut VerifyReport,
) -> Result<(), Error> {
    let Some(bytes) = uploader.get(&object.name)? else {
        report.find(FindingKind::Missing, &object.name, "a manifest names it");
        return Ok(());
    };
    report.objects = report.objects.saturating_add(1);
    report.bytes = report.bytes.saturating_add(to_u64(bytes.len()));
    match object.wrong(&bytes) {
        Some(why) => report.find(FindingKind::Damaged, &object.name, why),
        None if object.name.starts_with("sessions/") => {
            report.sessions = report.sessions.saturating_add(object.rows);
        }
        None => {}
    }
    Ok(())
}

/// What manifests name.
#[derive(Default)]
struct Expected {
    objects: BTreeMap<String, Object>,
    /// Those that are merged into others.
    merged: BTreeSet<String>,
}

impl Expected {
    fn read_manifests(
        &mut self,
        uploader: &mut Uploader<'_>,
        sensor: &Sensor,
        report: &mut VerifyReport,
    ) -> Result<(), Error> {
        let mut before: Option<(String, Option<StripeId>)> = None;
        let mut open = None;
        for listed in uploader.list(&names::manifests_of(sensor), None)? {
            let folder = listed.name.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
            let bytes = uploader.get(&listed.name)?.unwrap_or_default();
            report.manifests = report.manifests.saturating_add(1);
            let is_first = before.as_ref().is_none_or(|(other, _)| *other != folder);
            if is_first {
                self.add_open(open.take());
            }
            let manifest = match Manifest::read(&bytes) {
                Ok(manifest) => manifest,
                Err(error) => {
                    report.find(FindingKind::Damaged, &listed.name, error.to_string());
                    before = Some((folder, None));
                    continue;
                }
            };
            let behind = manifest.behind.as_deref().and_then(stripe);
            let last = before.and_then(|(_, last)| last).filter(|_| !is_first);
            let is_gap = match (behind, last) {
                (Some(_), None) => is_first,
                (behind, last) => behind != last && last.is_some(),
            };
            if is_gap {
                let from = last.map_or_else(|| "the begin".to_owned(), |last| last.to_string());
                let to = manifest.behind.clone().unwrap_or_default();
                let why = format!("what was archived behind {from} up to {to} has no manifest");
                report.find(FindingKind::ManifestMissing, &listed.name, why);
            }
            before = Some((folder, manifest.last()));
            for object in manifest.objects {
                self.objects.insert(object.name.clone(), object);
            }
            open = manifest.open.map(|open| open.object);
        }
        self.add_open(open);
        Ok(())
    }

    /// Sessions that are open behind the newest manifest of a volume.
    fn add_open(&mut self, open: Option<Object>) {
        self.objects.extend(open.map(|open| (open.name.clone(), open)));
    }

    fn read_merged(
        &mut self,
        uploader: &mut Uploader<'_>,
        sensor: &Sensor,
        report: &mut VerifyReport,
    ) -> Result<(), Error> {
        let mut added = Vec::new();
        for listed in uploader.list(&names::compacted_of(sensor), None)? {
            let bytes = uploader.get(&listed.name)?.unwrap_or_default();
            report.manifests = report.manifests.saturating_add(1);
            match Merged::read(&bytes) {
                Ok(merged) => {
                    self.merged.extend(merged.replaces);
                    added.push(merged.object);
                }
                Err(error) => report.find(FindingKind::Damaged, &listed.name, error.to_string()),
            }
        }
        // What was merged may have been merged again.
        self.objects.extend(added.into_iter().map(|object| (object.name.clone(), object)));
        let merged = &self.merged;
        self.objects.retain(|name, _| !merged.contains(name));
        Ok(())
    }
}

/// Names that a run was about to store.
fn unfinished(uploader: &mut Uploader<'_>, sensor: &Sensor) -> Result<BTreeSet<String>, Error> {
    let mut names = BTreeSet::new();
    for listed in uploader.list(&names::pending_of(sensor), None)? {
        let pending = uploader.get(&listed.name)?;
        let pending = pending.and_then(|bytes| Pending::read(&bytes).ok());
        names.extend(pending.into_iter().flat_map(|it| it.manifest.objects).map(|it| it.name));
    }
    Ok(names)
}

/// Objects of sensors that have no manifest.
fn foreign_sensors(
    uploader: &mut Uploader<'_>,
    known: &BTreeSet<Sensor>,
    report: &mut VerifyReport,
) -> Result<(), Error> {
    for table in Table::ALL {
        for listed in uploader.list(table.name(), None)? {
            let is_known = sensor_of(&listed.name).is_some_and(|sensor| known.contains(&sensor));
            if !is_known {
                report.find(FindingKind::Foreign, &listed.name, "its sensor has no manifest");
            }
        }
    }
    Ok(())
}
