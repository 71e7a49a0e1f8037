//! What may be read and what may be written.
//!
//! A directory, or a path at which nothing is: a file is made there, used, and removed. A file that
//! is there is only read. A block device is only read too, unless the user typed its serial number
//! (or, where it has none, its name), nobody uses it or any part of it, and nothing lies on it that
//! the user did not agree to lose by name.

use core::ops::ControlFlow;
use std::path::{Path, PathBuf};

use device::{CreateOptions, Device, Pool, ROW_SIZE, ReadAt};
use format::superblock::SuperblockError;
use host::{disk, signature, usage};
use units::{Clock, Random, Sleep};

use crate::bench::{Bench, Tell};
use crate::error::Error;
use crate::number::{between, rate, to_u64, to_usize};
use crate::report::{Target, TargetKind};

/// Rows that are looked at for data without a signature.
const SAMPLES: u64 = 64;
/// A first look reads so much, at so many places.
const LOOK_BYTES: u64 = 8 << 20;
const LOOK_PLACES: u64 = 4;
/// In the first and the last row of a device that was written to.
const STAMP: &[u8] = b"wirespool qualify: scratch content, of no value\n";

/// What the user agreed to lose.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Consent {
    /// The serial number or name of the device.
    pub destroy: Option<String>,
    /// Kinds of content, as refusals name them; `volume` and `data` among them.
    pub overwrite: Vec<String>,
}

impl Consent {
    fn covers(&self, kind: &str) -> bool {
        self.overwrite.iter().any(|agreed| agreed.eq_ignore_ascii_case(kind))
    }
}

/// A target, ready.
#[derive(Debug)]
pub struct Opened {
    /// What it is.
    pub target: Target,
    /// For reading.
    pub reader: Box<dyn ReadAt>,
    /// For writing, where that is allowed.
    pub writer: Option<Box<dyn Device>>,
    own_file: Option<OwnFile>,
}

/// Removed when dropped.
#[derive(Debug)]
struct OwnFile(PathBuf);

impl Drop for OwnFile {
    fn drop(&mut self) {
        // Whoever wants to know whether that worked closes it.
        drop(device::remove_file(&self.0));
    }
}

impl Opened {
    /// Where parts run on it.
    pub fn bench<'a>(&'a mut self, clock: &'a dyn Sleep, seed: u64, tell: Tell<'a>) -> Bench<'a> {
        let writer = self.writer.as_mut().map(|writer| -> &mut dyn Device { writer.as_mut() });
        Bench::new((self.reader.as_ref(), writer), clock, seed, tell)
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

    /// Leaves the target as promised: a file of our own is removed; a device that was written to
    /// has a stamp at both ends, by which a later run knows that there is nothing to lose.
    pub fn close(mut self, was_written: bool) -> Result<(), Error> {
        let is_device = self.target.kind == TargetKind::Device;
        if let Some(writer) = self.writer.as_deref_mut().filter(|_| is_device && was_written) {
            let mut row = [0; ROW_SIZE];
            row.iter_mut().zip(STAMP).for_each(|(byte, stamp)| *byte = *stamp);
            writer.write_at(0, &row)?;
            writer.write_at(writer.size_bytes() - to_u64(ROW_SIZE), &row)?;
            writer.flush()?;
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
    let found = usage::target(path)?;
    if consent.destroy.is_some() && found != usage::Target::BlockDevice {
        return Err(Error::NotADevice { path: path.to_path_buf() });
    }
    match found {
        usage::Target::Absent => own_file(path, size_bytes, progress),
        usage::Target::Other if path.is_dir() => {
            let name = format!("wirespool-qualify-{:016x}", Random::new(seed).next());
            own_file(&path.join(name), size_bytes, progress)
        }
        usage::Target::Other => Err(Error::NotATarget { path: path.to_path_buf() }),
        usage::Target::File { .. } => read_only(path, TargetKind::File, device::open_read(path)?),
        usage::Target::BlockDevice => match &consent.destroy {
            None => read_only(path, TargetKind::Device, device::open_read(path)?),
            Some(name) => scratch_device(path, name, consent, seed),
        },
    }
}

fn described(path: &Path, kind: TargetKind, size_bytes: u64) -> Result<Target, Error> {
    let layers = disk::layers(path)?;
    Ok(Target { kind, path: path.display().to_string(), size_bytes, layers })
}

fn read_only(path: &Path, kind: TargetKind, reader: Box<dyn ReadAt>) -> Result<Opened, Error> {
    let target = described(path, kind, reader.size_bytes())?;
    Ok(Opened { target, reader, writer: None, own_file: None })
}

fn own_file(
    path: &Path,
    size_bytes: u64,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Opened, Error> {
    let options = CreateOptions { size_bytes, sparse: false, overwrite: false };
    device::create_file(path, &options, progress).map_err(|error| match error {
        device::Error::NotFound { path } => Error::NoDirectory { path },
        error => Error::Device(error),
    })?;
    let own_file = Some(OwnFile(path.to_path_buf()));
    let writer = device::open(path, &device::Options::default())?;
    let reader = device::open_read(path)?;
    let target = described(path, TargetKind::OwnFile, size_bytes)?;
    Ok(Opened { target, reader, writer: Some(writer), own_file })
}

/// The guards, each before the first byte is written, in this order: it is the device that the user
/// means; nobody uses it; it holds nothing that somebody may want.
fn scratch_device(path: &Path, given: &str, consent: &Consent, seed: u64) -> Result<Opened, Error> {
    let refused = path.to_path_buf();
    let reader = device::open_read(path)?;
    let target = described(path, TargetKind::Device, reader.size_bytes())?;
    let name =
        target.layers.first().map(|layer| layer.serial.clone().unwrap_or(layer.name.clone()));
    let name = name.unwrap_or_else(|| path.display().to_string());
    if name != given {
        return Err(Error::OtherDevice { path: refused, name, given: given.to_owned() });
    }
    if let Some(used) = usage::of(path)? {
        return Err(Error::InUse { path: refused, used });
    }
    // Claimed from here to the end: neither the kernel nor another wirespool gets it.
    let writer = device::open(path, &device::Options::default())?;
    check_content(path, reader.as_ref(), consent, seed)?;
    Ok(Opened { target, reader, writer: Some(writer), own_file: None })
}

fn check_content(
    path: &Path,
    reader: &dyn ReadAt,
    consent: &Consent,
    seed: u64,
) -> Result<(), Error> {
    let refused = path.to_path_buf();
    let size = reader.size_bytes();
    let mut row = [0; ROW_SIZE];
    // Whoever agrees to the loss of what signed the content agrees to that of the content.
    if let Some(found) = signature::probe(size, |offset, into| reader.read_at(offset, into))? {
        let agreed = consent.covers(found.kind);
        return if agreed { Ok(()) } else { Err(Error::Occupied { path: refused, found }) };
    }
    if is_volume(path) {
        let agreed = consent.covers("volume");
        return if agreed { Ok(()) } else { Err(Error::IsVolume { path: refused }) };
    }
    reader.read_at(0, &mut row)?;
    if row.starts_with(STAMP) || consent.covers("data") {
        return Ok(());
    }
    let mut random = Random::new(seed);
    let rows = size / to_u64(ROW_SIZE);
    let places = [0, rows - 1].into_iter().chain((0..SAMPLES).map(|_| random.below(rows)));
    for offset in places.map(|row| row * to_u64(ROW_SIZE)) {
        reader.read_at(offset, &mut row)?;
        let blank = |value: u8| row.iter().all(|&byte| byte == value);
        if !blank(0) && !blank(0xff) {
            return Err(Error::HoldsData { path: refused, offset });
        }
    }
    Ok(())
}

/// A damaged volume is one, too.
fn is_volume(path: &Path) -> bool {
    !matches!(
        volume::open_superblocks(path, &[]),
        Err(volume::Error::NoSuperblock(SuperblockError::Magic) | volume::Error::Device(_))
    )
}
