//! What may be overwritten: one chain of checks before the first byte, for everything that writes
//! to a device which is there.
//!
//! In this order: it is a block device, and the one that the user means; it is not mounted, a
//! part of it or the disk it is a part of, swaps on it, has built on it, or has it open for
//! writing; it is claimed for this process, and may be written; nothing on it or on its partitions
//! has the signature of a program; it holds no volume; and where nothing is signed, rows here and
//! there are blank or of our own making. Consent names what may be lost; nothing is asked, and no
//! default says yes. No consent covers a volume whose claim moves: some process writes to it, whose
//! lock this machine does not see.
//!
//! Not here: what is done with it. `upkeep` makes volumes, `qualify` measures.

mod content;
mod identity;
mod owner;
mod refusal;

use std::path::Path;

use blockdev::usage;
use device::{Device, ReadAt};
use host::SystemClock;

pub use content::{STAMP, stamp_ends};
pub use identity::{Changed, Identity};
pub use owner::refuse_owned;
pub use refusal::{Content, Refusal};

/// What the user agreed to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Consent {
    /// The name that the device must have: its serial number, or what it reports instead.
    pub name: Option<String>,
    /// What may be lost.
    pub overwrite: Overwrite,
}

/// Content that may be lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Overwrite {
    /// These kinds, as refusals name them; `volume` and `data` among them.
    Kinds(Vec<String>),
    /// Whatever is there.
    Everything,
}

impl Overwrite {
    fn covers(&self, kind: &str) -> bool {
        match self {
            Self::Kinds(kinds) => kinds.iter().any(|agreed| agreed.eq_ignore_ascii_case(kind)),
            Self::Everything => true,
        }
    }
}

/// A device that may be written to, claimed until this is dropped.
#[derive(Debug)]
pub struct Cleared {
    /// The device for writing.
    pub writer: Box<dyn Device>,
    /// The device for reading.
    pub reader: Box<dyn ReadAt>,
    /// Which device it is.
    pub identity: Identity,
    /// What the user agreed to lose.
    pub lost: Vec<Content>,
}

/// Why [`clear`] would refuse a device whose content nobody agreed to lose, by looking alone:
/// nothing is claimed, and a few rows are read. `None` where it would not refuse.
pub fn refusal(path: &Path, seed: u64) -> Option<Refusal> {
    match looked(path, seed) {
        Ok(refusal) => refusal,
        Err(refusal) => Some(refusal),
    }
}

fn looked(path: &Path, seed: u64) -> Result<Option<Refusal>, Refusal> {
    let used = match usage::of(path)? {
        None => usage::writer_of(path)?,
        used => used,
    };
    if let Some(used) = used {
        return Ok(Some(Refusal::InUse { path: path.to_path_buf(), used }));
    }
    let found = content::look(path, device::open_read(path)?.as_ref(), seed)?;
    let first = found.into_iter().next();
    Ok(first.map(|content| Refusal::Occupied { path: path.to_path_buf(), content }))
}

/// Walks the chain. `seed` decides where unsigned data is looked for. Nothing is written.
pub fn clear(path: &Path, consent: &Consent, seed: u64) -> Result<Cleared, Refusal> {
    let refused = path.to_path_buf();
    if host::target(path)? != host::Target::BlockDevice {
        return Err(Refusal::NotADevice { path: refused });
    }
    let identity = Identity::of(path)?;
    // First what no name lifts: a refusal must not offer to destroy what is mounted.
    if let Some(used) = usage::of(path)? {
        return Err(Refusal::InUse { path: refused, used });
    }
    if let Some(given) = consent.name.as_ref().filter(|given| **given != identity.name) {
        let (name, given) = (identity.name.clone(), given.clone());
        return Err(Refusal::OtherDevice { path: refused, name, given });
    }
    // Claimed from here on: neither the kernel nor another wirespool gets it. Refuses what is
    // read-only, or has blocks that are too large.
    let writer = device::open(path, &device::Options::default())?;
    // Who opened it in between would be seen here, and who comes later finds it claimed.
    if let Some(used) = usage::writer_of(path)? {
        return Err(Refusal::InUse { path: refused, used });
    }
    let reader = device::open_read(path)?;
    let found = content::look(path, reader.as_ref(), seed)?;
    let covered = |content: &Content| consent.overwrite.covers(content.kind());
    if let Some(content) = found.iter().find(|content| !covered(content)) {
        return Err(Refusal::Occupied { path: refused, content: content.clone() });
    }
    for (_, node) in usage::partitions(path)? {
        // One that cannot be opened has no writer.
        let Ok(partition) = device::open_read(&node) else { continue };
        refuse_owned(&node, partition.as_ref(), &SystemClock)?;
    }
    refuse_owned(path, reader.as_ref(), &SystemClock)?;
    Ok(Cleared { writer, reader, identity, lost: found })
}
