//! What may be read and what may be written.
//!
//! A directory, or a path at which nothing is: a file is made there, used, and removed; so is one
//! that a killed run has left there. Another file that is there is only read. A block device is
//! only read too, unless the user typed its serial number (or, where it has none, its name), and
//! the guards let it through (crate `guard`).

use core::ops::ControlFlow;
use std::path::{Path, PathBuf};

use blockdev::disk;
use device::{CreateOptions, Device, Pool, ROW_SIZE, ReadAt};
use guard::{Cleared, Identity, Overwrite};
use units::{Clock, Random, Sleep};

use crate::bench::{Bench, Tell};
use crate::counted::Counted;
use crate::error::Error;
use crate::folder::OwnFolder;
use crate::limits;
use crate::members::Lent;
use crate::number::{between, rate, to_u64, to_usize};
use crate::plan::{Part, Plan, Provided};
use crate::report::{Target, TargetKind, WrittenBytes};
use vitals::Meanwhile;

/// A first look reads so much, at so many places.
const LOOK_BYTES: u64 = 8 << 20;
const LOOK_PLACES: u64 = 4;
/// Files of our own in a directory begin so.
const FILE_PREFIX: &str = "wirespool-qualify-";

/// What the user agreed to lose.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Consent {
    /// The serial number or name of the device.
    pub destroy: Option<String>,
    /// Kinds of content, as refusals name them; `volume` and `data` among them.
    pub overwrite: Vec<String>,
}

/// A target, ready.
#[derive(Debug)]
pub struct Opened {
    /// Description of the target.
    pub target: Target,
    /// The target for reading.
    pub reader: Box<dyn ReadAt>,
    /// For writing, where that is allowed.
    pub writer: Option<Box<dyn Device>>,
    own_file: Option<OwnFile>,
    identity: Option<Identity>,
    /// Files of runs that were killed, which were removed.
    pub left_over: Vec<PathBuf>,
    /// Beside a file of our own.
    folder: Option<OwnFolder>,
    counted: Counted,
}

/// Removed when dropped.
#[derive(Debug)]
struct OwnFile(PathBuf);

impl Drop for OwnFile {
    fn drop(&mut self) {
        // Closing it says whether that worked.
        drop(device::remove_file(&self.0));
    }
}

impl Opened {
    /// Where parts run on it.
    pub fn bench<'a>(&'a mut self, clock: &'a dyn Sleep, seed: u64, tell: Tell<'a>) -> Bench<'a> {
        let writer = self.writer.as_mut().map(|writer| -> &mut dyn Device { writer.as_mut() });
        let bench = Bench::new((self.reader.as_ref(), writer), clock, seed, tell);
        let bench = bench.guarded(&self.identity).with_processor(&processor_ns);
        match &self.folder {
            Some(folder) => bench.with_folder(folder),
            None => bench,
        }
    }

    /// For contestants that use it in turn.
    pub fn lend(&mut self) -> Lent<'_> {
        let writer = self.writer.as_mut().map(|writer| -> &mut dyn Device { writer.as_mut() });
        let lent = Lent::new(self.reader.as_ref(), writer);
        lent.of_machine(self.identity.as_ref(), processor_ns)
    }

    /// What parts may use.
    pub fn provided(&self) -> Provided {
        let (writer, folder) = (self.writer.is_some(), self.folder.is_some());
        Provided { writer, folder, processor: true }
    }

    /// Where files of our own are made, beside the target.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(OwnFolder::path)
    }

    /// The plan, with no more files than the file system has space for, a tenth left free; where
    /// that is too little, only parts that were asked for by name are left to say so.
    pub fn fitted(&self, plan: Plan, named: &[Part]) -> Result<Plan, Error> {
        let Some(folder) = self.folder() else { return Ok(plan) };
        let free_bytes = blockdev::free_bytes(folder)? / 10 * 9;
        let mut plan = Plan { files_bytes: plan.files_bytes.min(free_bytes), ..plan };
        let has_room = plan.file_bytes() >= plan.block_bytes;
        plan.parts.retain(|part| *part != Part::Files || has_room || named.contains(part));
        Ok(plan)
    }

    /// Bytes a second of a short read here and there: what to expect, and no measurement.
    pub fn first_look(&self, clock: &dyn Clock) -> Result<u64, Error> {
        let size = self.target.size_bytes;
        let len = LOOK_BYTES.min(size / LOOK_PLACES);
        let pool = Pool::new(1, to_usize(LOOK_BYTES))?;
        let mut buffer = pool.take().expect("a new pool has its buffer");
        let begin_ns = clock.boottime_ns();
        let mut bytes = 0;
        for place in 0..LOOK_PLACES {
            let offset = size / LOOK_PLACES * place / to_u64(ROW_SIZE) * to_u64(ROW_SIZE);
            let len = to_usize(len / to_u64(ROW_SIZE) * to_u64(ROW_SIZE));
            let Some(part) = buffer.get_mut(..len).filter(|part| !part.is_empty()) else { break };
            self.reader.read_at(offset, part)?;
            bytes += to_u64(len);
        }
        Ok(rate(bytes, between(begin_ns, clock.boottime_ns())))
    }

    /// What was written since it was opened, its own files among it.
    pub fn written_bytes(&self) -> Option<WrittenBytes> {
        self.counted.until_now(&self.target)
    }

    /// What else the machine did since it was opened.
    pub fn meanwhile(&self) -> Meanwhile {
        self.counted.meanwhile(&self.target)
    }

    /// Leaves the target as promised: a file of our own is removed; a device that was written to
    /// has a stamp at both ends, by which a later run knows that there is nothing to lose.
    pub fn close(mut self, was_written: bool) -> Result<(), Error> {
        let is_device = self.target.kind == TargetKind::Device;
        if let Some(writer) = self.writer.as_deref_mut().filter(|_| is_device && was_written) {
            guard::stamp_ends(writer)?;
        }
        // The lock must go before the file.
        drop(self.writer.take());
        match self.own_file.take() {
            Some(file) => {
                let path = file.0.clone();
                core::mem::forget(file);
                Ok(device::remove_file(&path)?)
            }
            None => Ok(()),
        }
    }
}

/// Opens a target. A file of our own gets `size_bytes`; `progress` hears of its making, and may
/// break it off. `seed` decides where a device is looked at for data.
pub fn open(
    path: &Path,
    size_bytes: u64,
    consent: &Consent,
    seed: u64,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Opened, Error> {
    let found = host::target(path)?;
    if consent.destroy.is_some() && found != host::Target::BlockDevice {
        return Err(Error::NotADevice { path: path.to_path_buf() });
    }
    match found {
        host::Target::Absent => own_file(path, size_bytes, progress),
        host::Target::Other if path.is_dir() => {
            let left_over = sweep_up(path)?;
            let name = format!("{FILE_PREFIX}{:016x}", Random::new(seed).next());
            let opened = own_file(&path.join(name), size_bytes, progress)?;
            Ok(Opened { left_over, ..opened })
        }
        host::Target::Other => Err(Error::NotATarget { path: path.to_path_buf() }),
        host::Target::File { .. } if is_left_over(path) => {
            let opened = own_file(path, size_bytes, progress)?;
            Ok(Opened { left_over: vec![path.to_path_buf()], ..opened })
        }
        host::Target::File { .. } => read_only(path, TargetKind::File, device::open_read(path)?),
        host::Target::BlockDevice => match &consent.destroy {
            None => read_only(path, TargetKind::Device, device::open_read(path)?),
            Some(name) => scratch_device(path, name, consent, seed),
        },
    }
}

/// Bytes of the smallest of some files and devices; `None` where none can be opened.
pub fn least_size(paths: &[PathBuf]) -> Option<u64> {
    let opened = paths.iter().filter_map(|path| device::open_read(path).ok());
    opened.map(|it| it.size_bytes()).min()
}

/// Removes a file that a killed run made under this name, if it is one. That of a run that goes on
/// is locked, and is none.
fn is_left_over(path: &Path) -> bool {
    let is_removed = OwnFolder::goes_with(path) && device::remove_file(path).is_ok();
    if is_removed {
        OwnFolder::sweep_up(path);
    }
    is_removed
}

/// Removes what killed runs left in a directory. The file of a run that goes on is locked, and
/// stays.
fn sweep_up(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut removed = Vec::new();
    for (path, _) in host::files_in(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(FILE_PREFIX) && device::remove_file(&path).is_ok() {
            OwnFolder::sweep_up(&path);
            removed.push(path);
        }
    }
    Ok(removed)
}

/// Of all threads of this process.
fn processor_ns() -> Result<u64, Error> {
    let used = host::cpu_time()?.total();
    Ok(u64::try_from(used.as_nanos()).unwrap_or(u64::MAX))
}

fn described(path: &Path, kind: TargetKind, size_bytes: u64) -> Result<Target, Error> {
    let layers = disk::layers_with_drives(path)?;
    // The names of devices lie in memory, what is written to them does not.
    let is_in_memory = kind != TargetKind::Device && device::lies_in_memory(path);
    let limits = limits::here(path)?;
    Ok(Target { kind, path: path.display().to_string(), size_bytes, layers, is_in_memory, limits })
}

fn read_only(path: &Path, kind: TargetKind, reader: Box<dyn ReadAt>) -> Result<Opened, Error> {
    let target = described(path, kind, reader.size_bytes())?;
    Ok(Opened {
        target,
        reader,
        writer: None,
        own_file: None,
        folder: None,
        identity: None,
        left_over: Vec::new(),
        counted: Counted::begin(),
    })
}

fn own_file(
    path: &Path,
    size_bytes: u64,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Opened, Error> {
    if let Some(most_bytes) = host::file_size_limit_bytes().filter(|most| *most < size_bytes) {
        return Err(Error::FileLimit { size_bytes, most_bytes });
    }
    let counted = Counted::begin();
    let options = CreateOptions { size_bytes, sparse: false, overwrite: false };
    // As soon as the file is there: making it may take long, and be killed.
    let mut folder = None;
    let noting = &mut |done, total| {
        folder = folder.take().or_else(|| OwnFolder::of(path).ok());
        progress(done, total)
    };
    device::create_file(path, &options, noting).map_err(|error| match error {
        device::Error::NotFound { path } => Error::NoDirectory { path },
        error => Error::Device(error),
    })?;
    let own_file = Some(OwnFile(path.to_path_buf()));
    let folder = Some(folder.map_or_else(|| OwnFolder::of(path), Ok)?);
    let writer = device::open(path, &device::Options::default())?;
    let reader = device::open_read(path)?;
    let target = described(path, TargetKind::OwnFile, size_bytes)?;
    Ok(Opened {
        target,
        reader,
        writer: Some(writer),
        own_file,
        folder,
        identity: None,
        left_over: Vec::new(),
        counted,
    })
}

/// A device that the guards let through, and that stays claimed to the end.
fn scratch_device(path: &Path, given: &str, consent: &Consent, seed: u64) -> Result<Opened, Error> {
    let consent = guard::Consent {
        name: Some(given.to_owned()),
        overwrite: Overwrite::Kinds(consent.overwrite.clone()),
    };
    let Cleared { writer, reader, identity, .. } = guard::clear(path, &consent, seed)?;
    let target = described(path, TargetKind::Device, reader.size_bytes())?;
    Ok(Opened {
        target,
        reader,
        writer: Some(writer),
        own_file: None,
        folder: None,
        identity: Some(identity),
        left_over: Vec::new(),
        counted: Counted::begin(),
    })
}
