//! What a drive tells of itself beyond its request queue: health, temperature, its link, and
//! whether it writes in shingles.
//!
//! Three ways: sysfs, for everybody; the SMART log of `NVMe` (NVM Express Base Specification, Get
//! Log Page, identifier 2) and IDENTIFY and SMART of ATA through SCSI (ACS-4; SAT-4, ATA
//! PASS-THROUGH), for root. What could not be read is said with what it would take. Only reads: no
//! command here changes anything on a drive.

#![expect(unsafe_code, reason = "commands to drives are ioctls without safe wrappers")]

mod ata;
mod nvme;

use core::fmt;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use host::children;

/// What a drive tells.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Drive {
    /// In degrees Celsius.
    pub temperature_c: Option<i32>,
    /// Its health log.
    pub health: Option<Health>,
    /// Its link on the PCI bus, or that of its controller.
    pub link: Option<Link>,
    /// Turns a minute; 0 of one without platters.
    pub turns_per_min: Option<u32>,
    /// How it writes.
    pub recording: Option<Recording>,
    /// What could not be read.
    pub unread: Vec<Unread>,
}

/// The figures of a health log that tell of a drive's end. Of what a drive does not keep there is
/// none.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Health {
    /// The drive itself says that it fails, or may not be relied on.
    pub is_failing: bool,
    /// Of the life that its maker expects, in percent; may be above 100.
    pub used_percent: Option<u64>,
    /// Rows that were lost for good.
    pub media_errors: Option<u64>,
    /// Rows that were put elsewhere.
    pub reallocated: Option<u64>,
    /// Rows that wait for it.
    pub pending: Option<u64>,
    /// Since it was made.
    pub power_on_hours: Option<u64>,
    /// Bytes written to it since it was made.
    pub written_bytes: Option<u64>,
    /// Times that it lost its power without a warning.
    pub unsafe_shutdowns: Option<u64>,
}

/// A link of the PCI bus: what it runs at, and what the device could.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Link {
    /// As the kernel says it: `8.0 GT/s PCIe`.
    pub speed: String,
    /// The most of this device.
    pub speed_most: String,
    /// Lanes.
    pub width: u32,
    /// The most of this device.
    pub width_most: u32,
}

impl Link {
    /// The device could do more than its slot lets it.
    pub fn is_narrowed(&self) -> bool {
        self.width < self.width_most || self.speed != self.speed_most
    }
}

/// How the tracks of a drive with platters lie, as far as it tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recording {
    /// Shingled, and the drive hides it: it slows down without a warning.
    DriveManaged,
    /// Shingled, and it tells its zones; it takes random writes as well.
    HostAware,
    /// Shingled, and it refuses writes out of order.
    HostManaged,
    /// It does not say that it is shingled. Many that are do not.
    NotTold,
}

/// Something that could not be read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Unread {
    /// What.
    pub what: String,
    /// Why, and what it would take.
    pub needs: String,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.needs)
    }
}

/// What the drive of a whole disk tells: `place` is its directory in sysfs. None for what is built
/// of other devices, or has no hardware.
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
        Errno::ACCESS | Errno::PERM => "no permission to open the device: it needs root".to_owned(),
        Errno::NOTTY | Errno::INVAL | Errno::OPNOTSUPP => {
            "the device answers neither NVMe nor ATA commands: a virtual disk, or behind a \
             controller whose own tool is needed"
                .to_owned()
        }
        errno => format!("the device refused: {errno}"),
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

/// An ioctl that fills memory which the caller keeps.
///
/// # Safety
/// `argument` is what `request` takes, and every pointer in it is to memory of the length said
/// beside it that outlives the call.
unsafe fn ioctl<T>(fd: &OwnedFd, request: libc::c_ulong, argument: &mut T) -> Result<i32, Errno> {
    let argument: *mut T = argument;
    // The type of the request differs between C libraries.
    #[expect(clippy::as_conversions, reason = "c_ulong or c_int, whatever libc says")]
    let request = request as _;
    // SAFETY: the caller's promise.
    let answer = unsafe { libc::ioctl(fd.as_raw_fd(), request, argument) };
    if answer < 0 {
        Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
    } else {
        Ok(answer)
    }
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
