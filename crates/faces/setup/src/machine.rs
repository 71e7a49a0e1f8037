//! What a setup needs of the machine and of its operator.

use core::time::Duration;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use blockdev::DiskKind;
use network::Link;

/// Bytes and packets that an interface has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counted {
    /// Bytes received.
    pub received_bytes: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Packets sent.
    pub sent_packets: u64,
}

/// A disk with what the guard says of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Disk {
    /// Its node.
    pub path: PathBuf,
    /// Size in bytes.
    pub size_bytes: u64,
    /// What it is made of.
    pub kind: DiskKind,
    /// Maker's name and serial number, as far as they are known.
    pub model: String,
    /// The name that `qualify --destroy` wants.
    pub destroy_name: String,
    /// Why it may not be used; `None` where nothing speaks against it.
    pub refusal: Option<String>,
}

/// A place for files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Folder {
    /// The folder; it need not be there yet.
    pub path: PathBuf,
    /// Where its file system is mounted, and its kind.
    pub filesystem: String,
    /// Bytes that may still be written there.
    pub free_bytes: u64,
    /// The disk below it.
    pub kind: Option<DiskKind>,
}

/// A volume that is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Volume {
    /// One of its members, where the other verbs find it.
    pub path: PathBuf,
    /// Its id.
    pub id: String,
    /// Columns of data and of parity.
    pub columns: (u8, u8),
    /// Bytes of packets that it holds.
    pub size_bytes: u64,
}

/// What the user of this process may do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rights {
    /// Name of the user.
    pub user: String,
    /// Packets of an interface: `CAP_NET_RAW`.
    pub may_capture: bool,
    /// Disks, and files of the system.
    pub is_root: bool,
}

/// Who keeps services running here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manager {
    /// systemd, with the unit of the package.
    Systemd,
    /// systemd, and the unit is not installed.
    SystemdWithoutUnit,
    /// None that is known.
    None,
}

/// Where files of this user go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Places {
    /// The configuration file.
    pub config: PathBuf,
    /// The folder of a volume in a file.
    pub data: PathBuf,
}

/// The words of a verb of this program, without the program's name.
pub type Words = Vec<String>;

/// What is looked at. Nothing here changes anything but [`Machine::write`] and
/// [`Machine::make_folder`].
pub trait Machine {
    /// What this user may do.
    fn rights(&self) -> Rights;
    /// Where files of this user go.
    fn places(&self) -> Places;
    /// The interfaces.
    fn links(&self) -> Result<Vec<Link>, String>;
    /// What the interfaces have counted so far, by name.
    fn counters(&self) -> BTreeMap<String, Counted>;
    /// The disks. Where `reads` says so, the guard looks at what is on them.
    fn disks(&self, reads: bool) -> Vec<Disk>;
    /// The disk at a path that the operator named.
    fn disk(&self, path: &Path, reads: bool) -> Result<Disk, String>;
    /// File systems that may be written to, with where they are mounted.
    fn filesystems(&self) -> Vec<Folder>;
    /// A folder, which need not be there.
    fn folder(&self, path: &Path) -> Result<Folder, String>;
    /// The volume that has exactly these members: disks, or partitions of them, or files.
    fn volume(&self, members: &[PathBuf]) -> Option<Volume>;
    /// The text of a file; `None` where there is none, or it may not be read.
    fn read(&self, path: &Path) -> Option<String>;
    /// Makes a folder, and those above it, for the service; one that is there stays as it is.
    fn make_folder(&self, path: &Path) -> Result<(), String>;
    /// Writes a file that others may read.
    fn write(&self, path: &Path, text: &str) -> Result<(), String>;
    /// Gives a file or folder to the user of the service, where there is one.
    fn give_to_service(&self, path: &Path) -> Result<(), String>;
    /// Who keeps services running.
    fn manager(&self) -> Manager;
}

/// Who is asked, and what is done for them.
pub trait Operator {
    /// There is a terminal to ask at.
    fn can_be_asked(&self) -> bool;
    /// Shows lines.
    fn say(&mut self, text: &str);
    /// Asks, and gives the answer without blanks around it; `None` when interrupted or at the end
    /// of input.
    fn ask(&mut self, question: &str) -> Option<String>;
    /// A signal has arrived.
    fn is_stopped(&self) -> bool;
    /// Waits, at most until a signal.
    fn rest(&mut self, time: Duration);
    /// Shows how far a wait is.
    fn progress(&mut self, text: &str);
    /// Runs a verb of this program.
    fn run(&mut self, words: &Words) -> Result<(), String>;
    /// Runs another program.
    fn run_program(&mut self, words: &[&str]) -> Result<(), String>;
    /// Whether a recorder runs on a volume.
    fn is_recording(&self, volume: &Path) -> bool;
    /// The first session of a volume, as a line.
    fn first_session(&self, volume: &Path) -> Option<String>;
}
