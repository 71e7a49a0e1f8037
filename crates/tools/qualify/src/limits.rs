//! Limits of control groups that hold for this process at the disks of a target.

use std::path::Path;

use blockdev::disk;
use observe::cgroups::{self, Limited, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// How much a control group may do at a disk.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GroupLimit {
    /// Its name within the hierarchy, such as `/system.slice/backup.service`.
    pub group: String,
    /// The file that the limit stands in.
    pub file: String,
    /// The kernel's name of the disk.
    pub disk: String,
    /// It limits writes; else reads.
    pub is_write: bool,
    /// What it counts.
    pub of: LimitOf,
    /// So many a second.
    pub per_second: u64,
}

/// What a limit counts.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LimitOf {
    /// Bytes a second.
    Bytes,
    /// Requests a second.
    Requests,
}

/// The limits that hold for this process at what carries `path`.
pub(crate) fn here(path: &Path) -> Result<Vec<GroupLimit>, Error> {
    let disks: Vec<(String, String)> = disk::disks_below(path)?
        .into_iter()
        .map(|(number, name)| (number.to_string(), name))
        .collect();
    Ok(at_disks(&cgroups::limited_here(), &disks))
}

/// Those of some groups at disks that are given by number and name.
fn at_disks(groups: &[Limited], disks: &[(String, String)]) -> Vec<GroupLimit> {
    let of_group = |group: &Limited| -> Vec<GroupLimit> {
        let of_limit = |limit: &cgroups::DiskLimit| {
            let number = limit.device.to_string();
            let (_, disk) = disks.iter().find(|(known, _)| *known == number)?;
            Some(GroupLimit {
                group: group.name.clone(),
                file: group.folder.join(limit.file).display().to_string(),
                disk: disk.clone(),
                is_write: limit.is_write,
                of: match limit.unit {
                    Unit::Bytes => LimitOf::Bytes,
                    Unit::Requests => LimitOf::Requests,
                },
                per_second: limit.per_second,
            })
        };
        group.limits.iter().filter_map(of_limit).collect()
    };
    groups.iter().flat_map(of_group).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use observe::cgroups::DiskLimit;

    use super::*;

    #[test]
    fn limits_at_other_disks_are_left_out() {
        let at = |device: &str| DiskLimit {
            device: device.parse().unwrap(),
            is_write: true,
            unit: Unit::Bytes,
            per_second: 5_000_000,
            file: "io.max",
            unlimited: String::new(),
        };
        let folder = PathBuf::from("/sys/fs/cgroup/backup");
        let (name, limits) = ("/backup".to_owned(), vec![at("8:0"), at("8:16")]);
        let groups = [Limited { folder, name, reaches_below: true, limits }];
        let disks = [("8:16".to_owned(), "sdb".to_owned())];
        let [found] = &at_disks(&groups, &disks)[..] else { panic!("one of two") };
        assert_eq!((&*found.disk, &*found.file), ("sdb", "/sys/fs/cgroup/backup/io.max"));
        assert_eq!(at_disks(&groups, &[]), []);
    }
}
