//! What a drive reports of itself beyond its request queue: health, temperature, its link, and
//! whether it writes in shingles.
//!
//! Three ways: sysfs, for every user; the SMART log of `NVMe` (NVM Express Base Specification, Get
//! Log Page, identifier 2) and IDENTIFY and SMART of ATA through SCSI (ACS-4; SAT-4, ATA
//! PASS-THROUGH), for root. What could not be read is said with what it would take. Only reads: no
//! command here changes anything on a drive.

#![expect(unsafe_code, reason = "commands to drives are ioctls without safe wrappers")]

mod ata;
mod command;
mod figures;
mod nvme;

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use host::children;
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

pub use figures::{Drive, Health, Link, Recording, Unread};

/// The report of the drive of a whole disk: `place` is its directory in sysfs. None for what is
/// built of other devices, or has no hardware.
pub(crate) fn of(place: &Path, node: &Path) -> Option<Drive> {
    if !place.join("device").exists() {
        return None;
    }
    let zoned = fs::read_to_string(place.join("queue/zoned")).unwrap_or_default();
    let recording = match zoned.trim() {
        "host-aware" => Some(Recording::HostAware),
        "host-managed" => Some(Recording::HostManaged),
        _ => None,
    };
    let mut drive = Drive {
        temperature_c: temperature(place),
        link: link(place),
        recording,
        ..Drive::default()
    };
    let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match open(node) {
        Err(errno) => drive.miss("SMART", reason(errno)),
        Ok(fd) if name.starts_with("nvme") => match nvme::health(&fd) {
            Ok((health, temperature_c)) => {
                drive.health = Some(health);
                drive.temperature_c = drive.temperature_c.or(temperature_c);
                drive.turns_per_min = Some(0);
            }
            Err(errno) => drive.miss("SMART", reason(errno)),
        },
        Ok(fd) => drive.ask_ata(&fd),
    }
    Some(drive)
}

impl Drive {
    fn miss(&mut self, what: &str, needs: String) {
        self.unread.push(Unread { what: what.to_owned(), needs });
    }

    fn ask_ata(&mut self, fd: &OwnedFd) {
        match ata::identify(fd) {
            Ok(identity) => {
                self.turns_per_min = identity.turns_per_min;
                self.recording = self.recording.or(Some(identity.recording));
            }
            Err(errno) => return self.miss("SMART and identity", reason(errno)),
        }
        match ata::health(fd) {
            Ok((health, temperature_c)) => {
                self.health = Some(health);
                self.temperature_c = self.temperature_c.or(temperature_c);
            }
            Err(errno) => self.miss("SMART", reason(errno)),
        }
    }
}

fn open(node: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = openat(CWD, node, flags, Mode::empty())?;
    // To anything else the number of a command may mean something else.
    let kind = FileType::from_raw_mode(fstat(&fd)?.st_mode);
    if kind == FileType::BlockDevice { Ok(fd) } else { Err(Errno::NOTTY) }
}

fn reason(errno: Errno) -> String {
    match errno {
        Errno::ACCESS | Errno::PERM => no_permission(geteuid().is_root()).to_owned(),
        Errno::NOTTY | Errno::INVAL | Errno::OPNOTSUPP => {
            "the device answers neither NVMe nor ATA commands: a virtual disk, or behind a \
             controller whose own tool is needed"
                .to_owned()
        }
        errno => format!("the device refused: {errno}"),
    }
}

fn no_permission(is_root: bool) -> &'static str {
    if is_root {
        "no permission to open the device, and this is root: try outside of the container"
    } else {
        "no permission to open the device: root, outside of a container"
    }
}

/// From the drive's sensor: thousandths of a degree (Documentation/hwmon/sysfs-interface).
fn temperature(place: &Path) -> Option<i32> {
    let device = place.join("device");
    let folders = [device.clone(), device.join("hwmon"), device.join("device/hwmon")];
    let sensors = folders.iter().flat_map(|folder| children(folder));
    let texts = sensors.filter_map(|it| fs::read_to_string(it.join("temp1_input")).ok());
    let mut degrees = texts.filter_map(|text| Some(text.trim().parse::<i32>().ok()? / 1000));
    degrees.next()
}

/// Of the nearest device above that is on a PCI bus.
fn link(place: &Path) -> Option<Link> {
    let device = fs::canonicalize(place.join("device")).ok()?;
    let read = |folder: &PathBuf, name: &str| {
        fs::read_to_string(folder.join(name)).ok().map(|text| text.trim().to_owned())
    };
    let folder = device.ancestors().find(|it| it.join("current_link_speed").exists())?;
    let folder = folder.to_path_buf();
    Some(Link {
        speed: read(&folder, "current_link_speed")?,
        speed_most: read(&folder, "max_link_speed")?,
        width: read(&folder, "current_link_width")?.parse().ok()?,
        width_most: read(&folder, "max_link_width")?.parse().ok()?,
    })
}

/// For tests that give any bytes: what a drive answers.
pub(crate) fn read_any_answer(bytes: &[u8]) -> [(Health, Option<i32>); 2] {
    let mut sector = [0; 512];
    for (to, from) in sector.iter_mut().zip(bytes) {
        *to = *from;
    }
    [nvme::decode(&sector), ata::decode(&sector)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_not_told_to_be_root() {
        assert!(no_permission(false).contains(": root,"));
        assert!(no_permission(true).ends_with("outside of the container"));
    }

    #[test]
    fn the_link_and_the_sensor_are_found_above_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let controller = folder.path().join("0000:01:00.0");
        let disk = controller.join("nvme/nvme0/nvme0n1");
        fs::create_dir_all(disk.join("queue")).unwrap();
        for (name, text) in [
            ("current_link_speed", "8.0 GT/s PCIe\n"),
            ("max_link_speed", "16.0 GT/s PCIe\n"),
            ("current_link_width", "2\n"),
            ("max_link_width", "4\n"),
        ] {
            fs::write(controller.join(name), text).unwrap();
        }
        std::os::unix::fs::symlink(controller.join("nvme/nvme0"), disk.join("device")).unwrap();
        let sensor = controller.join("nvme/nvme0/hwmon1");
        fs::create_dir_all(&sensor).unwrap();
        fs::write(sensor.join("temp1_input"), "38850\n").unwrap();
        let link = link(&disk).unwrap();
        assert_eq!((link.width, link.width_most, link.is_narrowed()), (2, 4, true));
        assert_eq!(temperature(&disk), Some(38));
    }

    #[test]
    fn what_cannot_be_read_is_said_with_what_it_takes() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("device")).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let drive = of(folder.path(), file.path()).unwrap();
        assert_eq!(drive.health, None);
        let said = drive.unread.first().unwrap().to_string();
        assert!(said.contains("answers neither NVMe nor ATA commands"), "{said}");
        assert_eq!(of(&folder.path().join("absent"), file.path()), None);
    }
}
