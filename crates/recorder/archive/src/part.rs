//! The objects of one part of the ring, on their way into the store.
//!
//! Before anything of a part is stored, the names of all of it are, so that a run that begins after
//! this one was killed knows what may lie there; after all of it is stored, its manifest is. Rows
//! are held up to a bound; where a part has more, objects are stored before it is read to its end.

use std::collections::BTreeMap;

use format::head::VolumeId;
use found::Found;
use units::Timestamp;
use units::number::to_u64;

use crate::Error;
use crate::manifest::{Manifest, Object, Pending};
use crate::names::{self, Sensor, Table, Unit};
use crate::table::{About, Lost, OBJECT_ROWS, by_start, losses_file, sessions_file};
use crate::uploader::Uploader;

/// Whose objects they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whose<'a> {
    pub(crate) sensor: &'a Sensor,
    pub(crate) volume: VolumeId,
    pub(crate) unit: Unit,
}

impl Whose<'_> {
    fn about(&self, table: Table) -> About<'_> {
        let Unit { first, last, .. } = self.unit;
        let covers = format!("volume {}\nfirst {first}\nlast {last}", self.volume);
        About { table: table.name(), sensor: self.sensor.as_str(), covers }
    }

    fn name(&self, folder: &str, number: usize) -> String {
        format!("{folder}/{}-{}-{number}.parquet", self.volume, self.unit)
    }
}

/// The objects of one part.
pub(crate) struct PartObjects<'a> {
    whose: Whose<'a>,
    /// Rows that are not stored, by the folder that they belong to.
    rows: BTreeMap<String, Vec<Found>>,
    held: usize,
    /// Objects of each folder so far.
    numbers: BTreeMap<String, usize>,
    /// Those that are stored or about to be.
    pub(crate) objects: Vec<Object>,
    pub(crate) sessions: u64,
}

impl<'a> PartObjects<'a> {
    pub(crate) fn new(whose: Whose<'a>) -> Self {
        let (rows, numbers, objects) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        Self { whose, rows, held: 0, numbers, objects, sessions: 0 }
    }

    /// Takes a session. Whether so many are held that they are to be stored.
    pub(crate) fn push(&mut self, found: &Found) -> bool {
        let folder = Table::Sessions.partition(self.whose.sensor, found.session.end);
        self.rows.entry(folder).or_default().push(found.clone());
        self.held += 1;
        self.sessions = self.sessions.saturating_add(1);
        self.held >= OBJECT_ROWS
    }

    /// Takes over an object that an earlier run has made of what cannot be read any more.
    pub(crate) fn take_over(&mut self, object: Object) {
        if object.name.starts_with(Table::Sessions.name()) {
            self.sessions = self.sessions.saturating_add(object.rows);
        }
        self.objects.push(object);
    }

    /// Files of the rows that are held, which are held no longer.
    pub(crate) fn files(&mut self) -> Result<Vec<(String, Vec<u8>)>, Error> {
        self.held = 0;
        let mut files = Vec::new();
        for (folder, mut rows) in core::mem::take(&mut self.rows) {
            rows.sort_by(by_start);
            let about = self.whose.about(Table::Sessions);
            let bytes = sessions_file(self.whose.volume, &rows, &about)?;
            files.push(self.named(&folder, bytes, rows.len()));
        }
        Ok(files)
    }

    /// Files of losses.
    pub(crate) fn loss_files(&mut self, lost: &[Lost]) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let mut folders: BTreeMap<String, Vec<&Lost>> = BTreeMap::new();
        for lost in lost {
            let time = lost.to.or(lost.from).unwrap_or(Timestamp(0));
            let folder = Table::Losses.partition(self.whose.sensor, time);
            folders.entry(folder).or_default().push(lost);
        }
        let mut files = Vec::new();
        for (folder, lost) in folders {
            let about = self.whose.about(Table::Losses);
            let bytes = losses_file(self.whose.volume, &lost, &about)?;
            files.push(self.named(&folder, bytes, lost.len()));
        }
        Ok(files)
    }

    fn named(&mut self, folder: &str, bytes: Vec<u8>, rows: usize) -> (String, Vec<u8>) {
        let number = self.numbers.entry(folder.to_owned()).or_default();
        let name = self.whose.name(folder, *number);
        *number += 1;
        self.objects.push(Object::of(name.clone(), &bytes, rows));
        (name, bytes)
    }
}

/// Stores files, after the names of them and of those before.
pub(crate) fn store(
    uploader: &mut Uploader<'_>,
    whose: &Whose<'_>,
    pending: &Pending,
    files: &[(String, Vec<u8>)],
) -> Result<u64, Error> {
    uploader.put(&names::pending(whose.sensor, whose.volume), &pending.write())?;
    let mut stored = 0_u64;
    for (name, bytes) in files {
        uploader.put(name, bytes)?;
        stored = stored.saturating_add(to_u64(bytes.len()));
    }
    Ok(stored)
}

/// Says that all of a part is stored.
pub(crate) fn commit(
    uploader: &mut Uploader<'_>,
    whose: &Whose<'_>,
    manifest: &Manifest,
) -> Result<String, Error> {
    let name = names::manifest(whose.sensor, whose.volume, whose.unit);
    uploader.put(&name, &manifest.write())?;
    Ok(name)
}
