//! Disks and folders: which may be used, and what is proposed.

use std::path::{Path, PathBuf};

use blockdev::DiskKind;
use page::safe;
use page::table::{Column, render};
use page::text::size;
use units::ByteSize;

use crate::machine::{Disk, Folder};

/// Smaller files make no ring.
pub(crate) const FILE_BYTES_MIN: u64 = 64 << 20;
const GIB: u64 = 1 << 30;
/// Name of the file in a folder.
const FILE: &str = "volume";

/// One member that is to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Target {
    /// The member: a disk, or a file in a folder.
    pub(crate) member: PathBuf,
    /// What is measured: the disk, or the folder.
    pub(crate) measured: PathBuf,
    /// By which `qualify` knows a disk again; `None` of a file.
    pub(crate) destroy_name: Option<String>,
    pub(crate) size_bytes: u64,
    pub(crate) kind: Option<DiskKind>,
}

impl Target {
    pub(crate) fn of_disk(disk: &Disk) -> Self {
        Self {
            member: disk.path.clone(),
            measured: disk.path.clone(),
            destroy_name: Some(disk.destroy_name.clone()),
            size_bytes: disk.size_bytes,
            kind: Some(disk.kind),
        }
    }

    pub(crate) fn of_folder(folder: &Folder, size_bytes: u64) -> Self {
        Self {
            member: member_in(&folder.path),
            measured: folder.path.clone(),
            destroy_name: None,
            size_bytes,
            kind: folder.kind,
        }
    }

    pub(crate) fn is_file(&self) -> bool {
        self.destroy_name.is_none()
    }
}

/// The file that becomes a member.
pub(crate) fn member_in(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// What is chosen: disks, or folders with a file in each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Choice {
    Disks(Vec<PathBuf>),
    Folders(Vec<PathBuf>),
}

/// Reads paths with commas between them: what lies in `/dev` is a disk, anything else a folder.
pub(crate) fn choice(text: &str) -> Result<Choice, String> {
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    let paths: Vec<PathBuf> = words.map(PathBuf::from).collect();
    let are_disks = paths.iter().filter(|path| path.starts_with("/dev")).count();
    match are_disks {
        _ if paths.is_empty() => Err("name a disk or a folder".to_owned()),
        0 => Ok(Choice::Folders(paths)),
        disks if disks == paths.len() => Ok(Choice::Disks(paths)),
        _ => Err("disks or folders, not both".to_owned()),
    }
}

/// Bytes of a file: half of what is free, in whole GiB; `None` where that makes no ring.
pub(crate) fn proposed_bytes(free_bytes: u64) -> Option<u64> {
    let half = free_bytes / 2;
    let unit = if half >= GIB { GIB } else { FILE_BYTES_MIN };
    Some(half / unit * unit).filter(|bytes| *bytes >= FILE_BYTES_MIN)
}

/// Reads the size of a file for which there is so much space.
pub(crate) fn file_bytes(text: &str, free_bytes: u64) -> Result<u64, String> {
    let ByteSize(bytes) = text.parse::<ByteSize>().map_err(|error| format!("{text}: {error}"))?;
    if bytes < FILE_BYTES_MIN {
        return Err(format!("{text}: a volume has at least {}", ByteSize(FILE_BYTES_MIN)));
    }
    if bytes > free_bytes {
        return Err(format!("{text}: only {} are free there", ByteSize(free_bytes)));
    }
    Ok(bytes)
}

pub(crate) fn kind_name(kind: DiskKind) -> &'static str {
    match kind {
        DiskKind::Rotating => "HDD",
        DiskKind::Flash => "SSD",
        DiskKind::Nvme => "NVMe",
    }
}

/// One disk in words.
pub(crate) fn described(disk: &Disk) -> String {
    let (path, kind) = (safe::path(&disk.path), kind_name(disk.kind));
    let model = safe::printable(&disk.model);
    let model = if model.is_empty() { String::new() } else { format!(", {model}") };
    format!("{path}: {}, {kind}{model}", size(disk.size_bytes))
}

/// The disks as a table, with what the guard says of each.
pub(crate) fn table(disks: &[Disk], reads: bool) -> String {
    let columns = [
        Column::whole("DISK", false),
        Column::whole("SIZE", true),
        Column::whole("KIND", false),
        Column::whole("MODEL", false),
        Column::whole("MAY IT BE USED?", false),
    ];
    let free =
        if reads { "yes: nothing was found on it" } else { "nobody uses it; not looked into" };
    let row = |disk: &Disk| {
        let verdict = disk.refusal.as_ref().map(|why| format!("no: {why}"));
        vec![
            safe::path(&disk.path),
            ByteSize(disk.size_bytes).to_string(),
            kind_name(disk.kind).to_owned(),
            disk.model.clone(),
            verdict.unwrap_or_else(|| free.to_owned()),
        ]
    };
    let rows: Vec<Vec<String>> = disks.iter().map(row).collect();
    render(&columns, &rows, None)
}

/// File systems as a table, with the space for a file.
pub(crate) fn table_of_folders(folders: &[Folder]) -> String {
    let columns = [
        Column::whole("FOLDER", false),
        Column::whole("FREE", true),
        Column::whole("KIND", false),
        Column::whole("FILE SYSTEM", false),
    ];
    let row = |folder: &Folder| {
        vec![
            safe::path(&folder.path),
            ByteSize(folder.free_bytes).to_string(),
            folder.kind.map_or("unknown", kind_name).to_owned(),
            folder.filesystem.clone(),
        ]
    };
    let rows: Vec<Vec<String>> = folders.iter().map(row).collect();
    render(&columns, &rows, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_dev_is_a_disk_and_both_together_are_refused() {
        let paths = |texts: &[&str]| texts.iter().map(PathBuf::from).collect::<Vec<_>>();
        let disks = Choice::Disks(paths(&["/dev/sdb", "/dev/sdc"]));
        assert_eq!(choice("/dev/sdb, /dev/sdc"), Ok(disks));
        assert_eq!(choice("/data"), Ok(Choice::Folders(paths(&["/data"]))));
        assert!(choice("/data,/dev/sdb").unwrap_err().contains("not both"));
        assert!(choice(" , ").is_err());
    }

    #[test]
    fn half_of_the_free_space_is_proposed_and_never_more_than_is_free() {
        assert_eq!(proposed_bytes(101 << 30), Some(50 << 30));
        assert_eq!(proposed_bytes(200 << 20), Some(64 << 20));
        assert_eq!(proposed_bytes(100 << 20), None);
        assert_eq!(file_bytes("64M", 1 << 30), Ok(64 << 20));
        assert!(file_bytes("2G", 1 << 30).unwrap_err().contains("only 1.00 GiB"));
        assert!(file_bytes("1M", 1 << 30).unwrap_err().contains("at least 64.0 MiB"));
        assert!(file_bytes("much", 1 << 30).is_err());
    }

    #[test]
    fn a_disk_in_use_is_shown_with_its_reason() {
        let disk = |name: &str, refusal: Option<&str>| Disk {
            path: name.into(),
            size_bytes: 8 << 40,
            kind: DiskKind::Rotating,
            model: "ST8000".to_owned(),
            destroy_name: "ZA1".to_owned(),
            refusal: refusal.map(str::to_owned),
        };
        let disks = [disk("/dev/sda", Some("sda1 is mounted on /")), disk("/dev/sdb", None)];
        let text = table(&disks, true);
        assert!(text.contains("no: sda1 is mounted on /"), "{text}");
        assert!(text.contains("yes: nothing was found on it"), "{text}");
        assert!(table(&disks, false).contains("not looked into"));
        assert_eq!(
            described(&disks[1]),
            "/dev/sdb: 8.00 TiB (8 796 093 022 208 bytes), HDD, ST8000"
        );
    }
}
