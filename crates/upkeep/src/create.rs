//! Making a volume out of a new file or a block device.
//!
//! Everything that can be refused is refused before the first byte is written: a target in use by
//! this system or another process, read-only or too small, and one that holds a volume or another
//! program's data. `force` allows only the last two, and the report names what it destroyed. A file
//! whose content nobody recognises is never replaced.

use std::path::{Path, PathBuf};

use device::{Device, ROW_SIZE};
use format::geometry::RESERVED_BYTES;
use format::head::{HeadKey, VolumeId};
use format::superblock::Superblock;
use host::usage::Target;
use host::{gpt, signature, usage};
use units::Clock;
use volume::Identity;

use crate::{Error, Progress};

/// What a volume is to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreateOptions {
    /// A new file, or a block device.
    pub volume: PathBuf,
    /// Size of a file; a block device is used whole.
    pub size_bytes: Option<u64>,
    /// Bytes of a piece.
    pub piece_bytes: u32,
    /// Leave a file unwritten: made at once, but slower on the first lap, and the disk may be full
    /// before the ring is.
    pub sparse: bool,
    /// Put no partition table on a whole disk.
    pub raw: bool,
    /// Destroy a volume or the known content of another program.
    pub force: bool,
}

/// A volume that was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Created {
    /// Where it lies: of a whole disk, its new partition.
    pub path: PathBuf,
    /// Its superblock.
    pub superblock: Superblock,
    /// Bytes of the member.
    pub size_bytes: u64,
    /// What was destroyed.
    pub destroyed: Option<String>,
    /// A partition table was written.
    pub partitioned: bool,
    /// The file is sparse.
    pub sparse: bool,
    /// How the member is driven, where that is not the best way.
    pub notes: Vec<String>,
}

/// Makes a volume. A file is written completely, with progress, and removed again when that fails
/// or is broken off; a block device takes seconds whatever its size.
pub fn create(
    options: &CreateOptions,
    clock: &dyn Clock,
    progress: Progress<'_>,
) -> Result<Created, Error> {
    let path = options.volume.clone();
    match usage::target(&path)? {
        Target::Absent => create_file(options, None, clock, progress),
        Target::File { size_bytes } => {
            let destroyed = content_of_file(options, size_bytes)?;
            create_file(options, destroyed, clock, progress)
        }
        Target::BlockDevice => create_on_device(options, clock),
        Target::Other => Err(Error::NotAFileOrBlockDevice { path }),
    }
}

fn create_file(
    options: &CreateOptions,
    destroyed: Option<String>,
    clock: &dyn Clock,
    progress: Progress<'_>,
) -> Result<Created, Error> {
    let path = &options.volume;
    let size_bytes = options.size_bytes.ok_or_else(|| Error::NoSize { path: path.clone() })?;
    let row = u64::try_from(ROW_SIZE).expect("4096 fits");
    let size_bytes = size_bytes - size_bytes % row;
    check_size(path, size_bytes, options)?;
    let file = device::CreateOptions {
        size_bytes,
        sparse: options.sparse,
        overwrite: destroyed.is_some(),
    };
    device::create_file(path, &file, progress).map_err(|error| match error {
        device::Error::NotFound { path } => Error::NoDirectory { path },
        error => error.into(),
    })?;
    let created = format(path, options, clock)?;
    Ok(Created { destroyed, sparse: options.sparse, ..created })
}

fn create_on_device(options: &CreateOptions, clock: &dyn Clock) -> Result<Created, Error> {
    let disk = &options.volume;
    if let Some(used) = usage::of(disk)? {
        return Err(Error::InUse { path: disk.clone(), used });
    }
    let size_bytes = {
        // Claims it for a moment: refuses what is read-only, locked, or of too large blocks.
        let device = device::open(disk, &device::Options::default())?;
        device.size_bytes()
    };
    if options.size_bytes.is_some() {
        return Err(Error::SizeOfDisk { path: disk.clone(), size_bytes });
    }
    check_size(disk, size_bytes, options)?;
    let content = content(disk)?.map(|content| content.allow(disk, options.force)).transpose()?;
    let mut path = disk.clone();
    let mut partitioned = false;
    if !options.raw && usage::is_whole_disk(disk)? {
        path = gpt::write(disk)?.path.expect("a partition of a block device has a node");
        partitioned = true;
    }
    device::discard(&path)?;
    let created = format(&path, options, clock)?;
    Ok(Created { destroyed: content, partitioned, ..created })
}

/// A ring of this size must be possible before anything is touched.
fn check_size(path: &Path, size_bytes: u64, options: &CreateOptions) -> Result<(), Error> {
    let shape = volume::CreateOptions { piece_bytes: options.piece_bytes };
    volume::geometry_for(size_bytes, &shape)
        .map(|_| ())
        .map_err(|source| Error::Volume { path: path.to_path_buf(), source })
}

/// Writes the superblocks.
fn format(path: &Path, options: &CreateOptions, clock: &dyn Clock) -> Result<Created, Error> {
    let mut device = device::open(path, &device::Options::default())?;
    let size_bytes = device.size_bytes();
    clear_ends(device.as_mut())?;
    let identity = Identity {
        volume_id: VolumeId(host::random_bytes()?),
        head_key: HeadKey(host::random_bytes()?),
        member_uuid: host::random_bytes()?,
        created: clock.realtime(),
    };
    let shape = volume::CreateOptions { piece_bytes: options.piece_bytes };
    let known_as = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let superblock =
        volume::create(device.as_mut(), &shape, &identity, &known_as.to_string_lossy())
            .map_err(|source| Error::Volume { path: path.to_path_buf(), source })?;
    Ok(Created {
        path: path.to_path_buf(),
        superblock,
        size_bytes,
        destroyed: None,
        partitioned: false,
        sparse: false,
        notes: device.notes().to_vec(),
    })
}

/// Zeroes the reserved ranges at both ends, so that no program finds there what was before.
fn clear_ends(device: &mut dyn Device) -> Result<(), Error> {
    let zeros = vec![0; usize::try_from(RESERVED_BYTES).expect("2 MiB fits")];
    for offset in [0, device.size_bytes() - RESERVED_BYTES] {
        device.write_at(offset, &zeros)?;
    }
    Ok(())
}

/// What a target holds that somebody may want to keep.
enum Content {
    Volume,
    Foreign(signature::Signature),
}

impl Content {
    /// What is destroyed, if that is allowed.
    fn allow(self, path: &Path, force: bool) -> Result<String, Error> {
        let path = path.to_path_buf();
        match self {
            Self::Volume if force => Ok("a wirespool volume".to_owned()),
            Self::Volume => Err(Error::IsVolume { path }),
            Self::Foreign(found) if force => Ok(found.to_string()),
            Self::Foreign(found) => Err(Error::Occupied { path, found }),
        }
    }
}

fn content(path: &Path) -> Result<Option<Content>, Error> {
    match crate::open(path) {
        Err(Error::NotAVolume { .. }) => {}
        Err(Error::Device(error)) => return Err(error.into()),
        // A damaged volume is one, too.
        Ok(_) | Err(_) => return Ok(Some(Content::Volume)),
    }
    let device = device::open_read(path)?;
    let found = signature::probe(device.size_bytes(), |offset, into| device.read_at(offset, into))?;
    Ok(found.map(Content::Foreign))
}

/// What replacing an existing file destroys, if that is allowed.
fn content_of_file(options: &CreateOptions, size_bytes: u64) -> Result<Option<String>, Error> {
    let path = &options.volume;
    if let Some(used) = usage::of(path)? {
        return Err(Error::InUse { path: path.clone(), used });
    }
    if size_bytes == 0 {
        let empty = || Error::EmptyFile { path: path.clone() };
        return options.force.then(|| Some("an empty file".to_owned())).ok_or_else(empty);
    }
    let content = content(path)?.ok_or_else(|| Error::UnknownFile { path: path.clone() })?;
    content.allow(path, options.force).map(Some)
}
