//! Hours of which nothing is left to be merged: so long as they have the same objects none of their
//! manifests is read again. Of a day that is over it is said at once for all of its hours.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::manifest::{VERSION, hash};
use crate::names::{self, Sensor};
use crate::uploader::Uploader;

/// Names of objects by the folders of their hours.
pub(crate) type Hours = BTreeMap<String, BTreeSet<String>>;

/// What the object says. Fields are keys in JSON.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Settled {
    version: u16,
    /// Of folders of days that are over the BLAKE3 of the names of their objects.
    days: BTreeMap<String, String>,
    /// The same of folders of hours of other days.
    hours: BTreeMap<String, String>,
}

impl Default for Settled {
    fn default() -> Self {
        Self { version: VERSION, days: BTreeMap::new(), hours: BTreeMap::new() }
    }
}

impl Settled {
    /// What the last run said; where that is nothing, or cannot be read, every hour is looked at.
    pub(crate) fn read(uploader: &mut Uploader<'_>, sensor: &Sensor) -> Result<Self, Error> {
        let bytes = uploader.get(&names::settled(sensor))?.unwrap_or_default();
        let settled = serde_json::from_slice(&bytes).ok();
        Ok(settled.filter(|settled: &Self| settled.version == VERSION).unwrap_or_default())
    }

    pub(crate) fn write(&self, uploader: &mut Uploader<'_>, sensor: &Sensor) -> Result<(), Error> {
        uploader.put(&names::settled(sensor), page::safe::json_pretty(self).as_bytes())
    }

    /// Whether a day is settled that has these objects.
    pub(crate) fn has_day(&self, day: &str, hours: &Hours) -> bool {
        self.days.get(day).is_some_and(|known| *known == hash_of(hours.values().flatten()))
    }

    /// The same of an hour.
    pub(crate) fn has_hour(&self, folder: &str, names: &BTreeSet<String>) -> bool {
        self.hours.get(folder).is_some_and(|known| *known == hash_of(names))
    }

    pub(crate) fn insert_hour(&mut self, folder: &str, names: &BTreeSet<String>) {
        self.hours.insert(folder.to_owned(), hash_of(names));
    }

    /// Whether all of these hours are settled.
    pub(crate) fn has_all(&self, hours: &Hours) -> bool {
        hours.keys().all(|folder| self.hours.contains_key(folder))
    }

    /// In place of its hours.
    pub(crate) fn insert_day(&mut self, day: String, hours: &Hours) {
        for folder in hours.keys() {
            self.hours.remove(folder);
        }
        self.days.insert(day, hash_of(hours.values().flatten()));
    }
}

fn hash_of<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let lines: Vec<&str> = names.into_iter().map(String::as_str).collect();
    hash(lines.join("\n").as_bytes())
}
