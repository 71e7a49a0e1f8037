//! The disks of this machine, as an operator tells them apart.

use std::fs;
use std::path::{Path, PathBuf};

use host::children;

use crate::disk;

/// What a disk is made of, as far as the kernel says. A virtual disk may say so wrongly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiskKind {
    /// It turns.
    Rotating,
    /// Flash behind SATA, SAS or a virtual bus.
    Flash,
    /// Flash behind `NVMe`.
    Nvme,
}

/// A disk, or what the kernel shows as one: an md array, a logical volume, a loop device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedDisk {
    /// Its node.
    pub path: PathBuf,
    /// Size in bytes.
    pub size_bytes: u64,
    /// What it is made of.
    pub kind: DiskKind,
    /// As the maker calls it.
    pub model: Option<String>,
    /// What distinguishes it from others of its model.
    pub serial: Option<String>,
}

/// Kernel names of what is no place for a volume: memory, and drives for disks that are taken out.
const NO_DISKS: [&str; 4] = ["ram", "zram", "sr", "fd"];

/// The disks that have a medium, by name. Partitions are not listed: they belong to a disk.
pub fn disks() -> Vec<ListedDisk> {
    children(Path::new("/sys/block")).iter().filter_map(|place| listed(place)).collect()
}

fn listed(place: &Path) -> Option<ListedDisk> {
    // The entries are links, and what is beside a disk is reached by its true place.
    let place = fs::canonicalize(place).ok()?;
    let found = disk::layer(&place);
    let is_none = NO_DISKS.iter().any(|prefix| found.name.starts_with(prefix));
    if is_none || found.size_bytes == 0 {
        return None;
    }
    let kind = match found.is_rotational {
        _ if found.name.starts_with("nvme") => DiskKind::Nvme,
        true => DiskKind::Rotating,
        false => DiskKind::Flash,
    };
    let path = Path::new("/dev").join(&found.name);
    let (model, serial) = (found.model, found.serial);
    Some(ListedDisk { path, size_bytes: found.size_bytes, kind, model, serial })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_has_a_size_and_memory_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let disk = |name: &str, size: &str| {
            let place = folder.path().join(name);
            fs::create_dir_all(place.join("queue")).unwrap();
            fs::write(place.join("size"), size).unwrap();
            fs::write(place.join("queue/rotational"), "1\n").unwrap();
            listed(&place)
        };
        let found = disk("sdx", "2048\n").unwrap();
        assert_eq!((found.size_bytes, found.kind), (1 << 20, DiskKind::Rotating));
        assert_eq!(found.path, Path::new("/dev/sdx"));
        assert_eq!(disk("nvme0n1", "8\n").unwrap().kind, DiskKind::Nvme);
        assert_eq!((disk("loop9", "0\n"), disk("ram0", "8192\n")), (None, None));
        assert!(disks().iter().all(|disk| disk.size_bytes > 0));
    }
}
