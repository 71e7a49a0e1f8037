//! What a run remembers beside the store: the newest manifest's name, in a file of the user's
//! cache.

use std::path::Path;

use format::head::VolumeId;
use host::ObjectFolder;

use crate::manifest::hash;
use crate::names::Sensor;
use crate::resume::Memory;

/// A file for each store, sensor and volume. Whatever is wrong with it, the store is listed
/// instead.
#[derive(Clone, Debug)]
pub struct Remembered {
    folder: ObjectFolder,
    /// Names of the store and the sensor.
    of: String,
}

impl Remembered {
    /// In a folder, which may be removed at any time.
    pub fn new(folder: &Path, url: &str, sensor: &Sensor) -> Self {
        Self { folder: ObjectFolder::new(folder), of: format!("{url}\n{sensor}") }
    }

    fn file(&self, volume: VolumeId) -> String {
        let name = hash(format!("{}\n{volume}", self.of).as_bytes());
        format!("{name}.newest")
    }
}

impl Memory for Remembered {
    fn newest(&self, volume: VolumeId) -> Option<String> {
        let bytes = self.folder.get(&self.file(volume)).ok()??;
        String::from_utf8(bytes).ok()
    }

    fn remember(&self, volume: VolumeId, manifest: &str) {
        // Without it the next run lists the store.
        drop(self.folder.put(&self.file(volume), manifest.as_bytes()));
    }
}
