//! Which device it is, and whether it still is the same one.

use std::path::{Path, PathBuf};

use blockdev::disk::{self, Layer};
use blockdev::usage;

use crate::Refusal;

/// A device as it was when it was opened. A node of another device may come to lie at its path, and
/// a device may shrink, or be changed for another in the same place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Serial number, world wide name or UUID; of a device without any, the kernel's name.
    pub name: String,
    path: PathBuf,
    /// Major and minor number, and the number of the disk in it.
    node: disk::Node,
    size_bytes: u64,
}

/// What became of a device while it was written to.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the text of each variant says what its fields are")]
pub enum Changed {
    #[error("{} is not there any more", .0.display())]
    Gone(PathBuf),
    #[error("{} is another disk now", .0.display())]
    Other(PathBuf),
    #[error("{} has {now} bytes now, and had {before}", path.display())]
    Resized { path: PathBuf, before: u64, now: u64 },
    #[error("{} is used by others meanwhile: {used}", path.display())]
    Used { path: PathBuf, used: String },
    #[error("{name} says that it fails")]
    Fails { name: String },
    #[error("{name} has {degrees} degrees Celsius; above {most} drives wear and slow down")]
    Hot { name: String, degrees: i32, most: i32 },
}

/// Makers' usual limits: 60 degrees for drives with platters, 85 for flash.
const HOT_C: (i32, i32) = (60, 85);

impl Identity {
    /// Of the device at `path`, links followed.
    pub fn of(path: &Path) -> Result<Self, Refusal> {
        let layers = disk::layers(path)?;
        let first = layers.first();
        let name = first.map(|layer| layer.serial.clone().unwrap_or_else(|| layer.name.clone()));
        let name = name.unwrap_or_else(|| path.display().to_string());
        let (node, size_bytes) = (disk::node(path)?, first.map_or(0, |layer| layer.size_bytes));
        Ok(Self { name, path: path.to_path_buf(), node, size_bytes })
    }

    /// What is not as it was; `None` when all is. Cheap enough for once a second.
    pub fn changed(&self) -> Option<Changed> {
        let path = self.path.clone();
        let Ok(now) = Self::of(&path) else { return Some(Changed::Gone(path)) };
        if now.node != self.node {
            return Some(Changed::Other(path));
        }
        if now.size_bytes != self.size_bytes {
            return Some(Changed::Resized { path, before: self.size_bytes, now: now.size_bytes });
        }
        // Our own claim shows as one: only others that can be named count.
        let used = usage::named_use(&path).ok().flatten()?;
        Some(Changed::Used { path, used: used.to_string() })
    }

    /// Whether its drives had better be left alone. Each is asked, which takes milliseconds.
    pub fn ailing(&self) -> Option<Changed> {
        disk::layers_with_drives(&self.path).ok()?.iter().find_map(ailing)
    }
}

fn ailing(layer: &Layer) -> Option<Changed> {
    let (drive, name) = (layer.drive.as_ref()?, layer.name.clone());
    if drive.health.as_ref().is_some_and(|health| health.is_failing) {
        return Some(Changed::Fails { name });
    }
    let (turning, flash) = HOT_C;
    let most = if drive.turns_per_min == Some(0) { flash } else { turning };
    let degrees = drive.temperature_c.filter(|degrees| *degrees > most)?;
    Some(Changed::Hot { name, degrees, most })
}

#[cfg(test)]
mod tests {
    use blockdev::drive::{Drive, Health};

    use super::*;

    fn layer(drive: Drive) -> Layer {
        Layer { name: "sdb".to_owned(), drive: Some(drive), ..Layer::default() }
    }

    #[test]
    fn a_drive_that_fails_or_is_too_hot_is_left_alone() {
        let said = |drive: Drive| ailing(&layer(drive)).map(|changed| changed.to_string());
        let failing = Health { is_failing: true, ..Health::default() };
        let fails = Drive { health: Some(failing), ..Drive::default() };
        assert_eq!(said(fails).unwrap(), "sdb says that it fails");
        let at = |degrees, turns| {
            let temperature_c = Some(degrees);
            said(Drive { temperature_c, turns_per_min: Some(turns), ..Drive::default() })
        };
        assert!(at(61, 7200).unwrap().starts_with("sdb has 61 degrees Celsius; above 60"));
        assert_eq!((at(60, 7200), at(80, 0)), (None, None));
        assert!(at(86, 0).is_some());
        assert_eq!(said(Drive { health: Some(Health::default()), ..Drive::default() }), None);
        assert_eq!(ailing(&Layer::default()), None);
    }
}
