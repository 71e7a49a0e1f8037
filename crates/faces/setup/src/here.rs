//! This machine.

use core::fmt::Display;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use blockdev::{DiskKind, ListedDisk, placement, usage};
use guard::Identity;
use host::{Directory, Output, Target, User, read_text, this_user};
use network::{Link, nic};

use crate::machine::{Counted, Disk, Folder, Machine, Manager, Places, Rights, Volume};

/// The user of the service, and its unit, as the package installs them.
const SERVICE_USER: &str = "wirespool";
const UNIT_FOLDERS: [&str; 3] =
    ["/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];
const UNIT: &str = "wirespool.service";
/// It is there where systemd runs: `sd_booted(3)`.
const SYSTEMD: &str = "/run/systemd/system";
/// `linux/capability.h`
const CAP_NET_RAW: u32 = 13;

/// This machine, as the kernel shows it.
#[derive(Clone, Copy, Debug)]
pub struct Here {
    /// It decides where on a disk the guard looks for data.
    pub seed: u64,
}

fn text(error: impl Display) -> String {
    error.to_string()
}

impl Here {
    fn described(self, found: ListedDisk, reads: bool) -> Disk {
        let path = found.path;
        let refusal = if reads {
            guard::refusal(&path, self.seed).map(|refusal| shortened(&refusal.to_string(), &path))
        } else {
            usage::named_use(&path).ok().flatten().map(|used| used.to_string())
        };
        let destroy_name = Identity::of(&path).map(|found| found.name).unwrap_or_default();
        let known = [found.model, found.serial].into_iter().flatten();
        let model = known.collect::<Vec<_>>().join(" ");
        let (size_bytes, kind) = (found.size_bytes, found.kind);
        Disk { path, size_bytes, kind, model, destroy_name, refusal }
    }
}

/// Without the path that stands beside it.
fn shortened(refusal: &str, path: &Path) -> String {
    let prefix = format!("{} ", path.to_string_lossy());
    refusal.strip_prefix(&prefix).unwrap_or(refusal).to_owned()
}

impl Machine for Here {
    fn rights(&self) -> Rights {
        let status = read_text("/proc/self/status".as_ref()).unwrap_or_default();
        let user = this_user().0;
        Rights { may_capture: has_capability(&status, CAP_NET_RAW), is_root: user == "root", user }
    }

    fn places(&self) -> Places {
        if this_user().0 == "root" {
            let (config, data) = ("/etc/wirespool/wirespool.toml", "/var/lib/wirespool");
            return Places { config: config.into(), data: data.into() };
        }
        let absolute = |name: &str| {
            std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
        };
        let home = absolute("HOME").unwrap_or_default();
        let below = |variable, usual: &str| absolute(variable).unwrap_or_else(|| home.join(usual));
        Places {
            config: below("XDG_CONFIG_HOME", ".config").join("wirespool/wirespool.toml"),
            data: below("XDG_DATA_HOME", ".local/share").join("wirespool"),
        }
    }

    fn links(&self) -> Result<Vec<Link>, String> {
        network::links().map_err(text)
    }

    fn counters(&self) -> BTreeMap<String, Counted> {
        let counted = |(name, found): (String, nic::LinkCounters)| {
            let counted = Counted {
                received_bytes: found.received.bytes,
                received_packets: found.received.packets,
                sent_packets: found.sent.packets,
            };
            (name, counted)
        };
        nic::link_counters().into_iter().map(counted).collect()
    }

    fn disks(&self, reads: bool) -> Vec<Disk> {
        blockdev::disks().into_iter().map(|found| self.described(found, reads)).collect()
    }

    fn disk(&self, path: &Path, reads: bool) -> Result<Disk, String> {
        if host::target(path).map_err(text)? != Target::BlockDevice {
            let shown = page::safe::path(path);
            return Err(format!("{shown} is no block device; --folder names a folder for a file"));
        }
        let layers = blockdev::disk::layers(path).map_err(text)?;
        let first = layers.into_iter().next().unwrap_or_default();
        let (size_bytes, model, serial) = (first.size_bytes, first.model, first.serial);
        let kind = kind_of(&first.name, first.is_rotational);
        let found = ListedDisk { path: path.to_path_buf(), size_bytes, kind, model, serial };
        Ok(self.described(found, reads))
    }

    fn filesystems(&self) -> Vec<Folder> {
        let all = placement::filesystems().into_values();
        let may_write = |options: &str| !options.split(',').any(|option| option == "ro");
        let writable = all.filter(|found| may_write(&found.options) && found.mount_point.is_dir());
        let folder = |found: placement::Filesystem| {
            let folder = self.folder(&found.mount_point).ok()?;
            let filesystem = folder.filesystem.replace("the file system", &found.kind);
            Some(Folder { filesystem, ..folder })
        };
        writable.filter_map(folder).filter(|folder| folder.free_bytes > 0).collect()
    }

    fn folder(&self, path: &Path) -> Result<Folder, String> {
        let path = std::path::absolute(path).map_err(text)?;
        let there = path.ancestors().find(|place| place.is_dir()).unwrap_or(Path::new("/"));
        let free_bytes = blockdev::free_bytes(there).map_err(text)?;
        let layers = blockdev::disk::layers(there).unwrap_or_default();
        let filesystem = layers.first().map_or_else(
            || "a file system without a disk".to_owned(),
            |layer| format!("the file system on {}", layer.name),
        );
        let kind = layers.last().map(|layer| kind_of(&layer.name, layer.is_rotational));
        Ok(Folder { path, filesystem, free_bytes, kind })
    }

    fn volume(&self, members: &[PathBuf]) -> Option<Volume> {
        let first = nodes(members.first()?).into_iter().find_map(|node| {
            let opened = ::volume::open_found(&node, &[]).ok()?;
            Some((node, opened))
        });
        let (path, (found, reader)) = first?;
        let superblock = reader.superblock();
        let named: Vec<Vec<PathBuf>> = members.iter().map(|member| nodes(member)).collect();
        let is_named = |path: &Path| {
            let path = path.canonicalize().ok();
            named.iter().flatten().any(|node| path.is_some() && node.canonicalize().ok() == path)
        };
        let count = superblock.members.len() + superblock.spares.len();
        let is_same = members.len() == count && found.iter().all(|at| is_named(&at.path));
        let geometry = superblock.geometry;
        let piece = u64::from(geometry.piece_bytes);
        is_same.then(|| Volume {
            path,
            id: superblock.volume_id.to_string(),
            columns: (geometry.data_columns, geometry.parity_columns),
            size_bytes: geometry.slots * piece * u64::from(geometry.data_columns),
        })
    }

    fn read(&self, path: &Path) -> Option<String> {
        read_text(path).ok()
    }

    fn make_folder(&self, path: &Path) -> Result<(), String> {
        if path.is_dir() {
            return Ok(());
        }
        Directory::open(path).map_err(text)?;
        self.give_to_service(path)
    }

    fn write(&self, path: &Path, content: &str) -> Result<(), String> {
        let output = Output::create(path, true).map_err(text)?;
        output.finish_public(content.as_bytes()).map_err(text)
    }

    fn give_to_service(&self, path: &Path) -> Result<(), String> {
        match User::named(SERVICE_USER) {
            Ok(user) if self.manager() == Manager::Systemd => user.give(path).map_err(text),
            _ => Ok(()),
        }
    }

    fn manager(&self) -> Manager {
        if !Path::new(SYSTEMD).is_dir() {
            return Manager::None;
        }
        let has_unit = UNIT_FOLDERS.iter().any(|folder| Path::new(folder).join(UNIT).exists());
        if has_unit { Manager::Systemd } else { Manager::SystemdWithoutUnit }
    }
}

fn kind_of(name: &str, is_rotational: bool) -> DiskKind {
    match is_rotational {
        _ if name.starts_with("nvme") => DiskKind::Nvme,
        true => DiskKind::Rotating,
        false => DiskKind::Flash,
    }
}

/// A member where it is named; of a disk, also its partitions: `create` makes one on it.
fn nodes(member: &Path) -> Vec<PathBuf> {
    let is_disk = matches!(host::target(member), Ok(Target::BlockDevice));
    let parts = if is_disk { usage::partitions(member).unwrap_or_default() } else { Vec::new() };
    let parts = parts.into_iter().map(|(_, node)| node);
    core::iter::once(member.to_path_buf()).chain(parts).collect()
}

/// Reads `proc_pid_status(5)`.
fn has_capability(status: &str, number: u32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << number) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_bits_of_the_process_s_status() {
        let status = |mask: &str| format!("Name:\tx\nCapEff:\t{mask}\n");
        assert!(has_capability(&status("000001ffffffffff"), CAP_NET_RAW));
        assert!(has_capability(&status("0000000000002000"), CAP_NET_RAW));
        assert!(!has_capability(&status("0000000000000000"), CAP_NET_RAW));
        assert!(!has_capability("", CAP_NET_RAW));
    }

    #[test]
    fn a_folder_that_is_not_there_has_the_space_of_the_one_above() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        let found = Here { seed: 1 }.folder(&path).unwrap();
        assert_eq!(found.path, path);
        assert!(found.free_bytes > 0 && !path.exists());
        assert_eq!(Here { seed: 1 }.volume(std::slice::from_ref(&path)), None);
        assert!(Here { seed: 1 }.disk(folder.path(), true).is_err());
    }
}
