//! Making a volume out of a new file or a block device.
//!
//! Everything that can be refused is refused before the first byte is written: a target in use by
//! this system or another process, read-only or too small, and one that holds a volume or another
//! program's data. `force` allows only the last two, and the report names what it destroyed. A file
//! whose content is not recognised is never replaced.

use core::time::Duration;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use blockdev::{disk, gpt, signature, usage};
use device::{Device, ROW_SIZE};
use encryption::Recipients;
use format::geometry::{PIECE_BYTES_MAX, RESERVED_BYTES};
use format::head::{HeadKey, VolumeId};
use format::superblock::{MemberEntry, Qualified, Spare, Superblock, TimeKnown};
use guard::{Consent, Overwrite};
use host::Target;
use serde::Serialize;
use units::Clock;
use units::number::to_u64;
use volume::{Identity, Layout, Usable, path_text};

use crate::{Error, Progress};

/// What a volume is to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreateOptions {
    /// The members: new files, or block devices.
    pub members: Vec<PathBuf>,
    /// Members that are to come later, behind those: the volume begins degraded.
    pub missing: u8,
    /// Devices that take the place of a member that fails.
    pub spares: Vec<PathBuf>,
    /// Of all members, as many as may be lost.
    pub parity_columns: u8,
    /// Size of each file; a block device is used whole.
    pub size_bytes: Option<u64>,
    /// Bytes of a piece.
    pub piece_bytes: u32,
    /// Zones of the surface that the ring visits in turn; `None` for 8 when any member is a
    /// rotating disk, else 1.
    pub zones: Option<u16>,
    /// Bytes of an extent, one visit of the ring to a zone; `None` for what suits the ring.
    pub extent_bytes: Option<u64>,
    /// The part of each member that the ring may use.
    pub usable: Usable,
    /// What was measured of each member; kept in the superblock.
    pub qualified: Option<Qualified>,
    /// Packets older than this are not served.
    pub max_age: Option<Duration>,
    /// Public keys of those who may read what is recorded, as age writes them: with any the volume
    /// is encrypted.
    pub recipients: Vec<String>,
    /// Leave a file unwritten: made at once, but slower on the first lap, and the disk may be full
    /// before the ring is.
    pub sparse: bool,
    /// Put no partition table on a whole disk.
    pub raw: bool,
    /// Destroy a volume or the known content of another program.
    pub force: bool,
}

impl CreateOptions {
    /// For a volume of one new file, with pieces of the usual size.
    pub fn of_file(path: PathBuf, size_bytes: u64) -> Self {
        Self { size_bytes: Some(size_bytes), ..Self::of_member(path) }
    }

    /// For a device that joins a volume which is there.
    pub(crate) fn of_member(path: PathBuf) -> Self {
        Self {
            members: vec![path],
            missing: 0,
            spares: Vec::new(),
            parity_columns: 0,
            size_bytes: None,
            piece_bytes: PIECE_BYTES_MAX,
            zones: Some(1),
            extent_bytes: None,
            usable: Usable::default(),
            qualified: None,
            max_age: None,
            recipients: Vec::new(),
            sparse: false,
            raw: false,
            force: false,
        }
    }

    /// Members and spares: all devices that are made ready.
    fn devices(&self) -> impl Iterator<Item = &PathBuf> {
        self.members.iter().chain(&self.spares)
    }
}

/// A volume that was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Created {
    /// Its superblock, as it lies on the first member.
    pub superblock: Superblock,
    /// Its members by number, but for those that are missing, and its spares.
    pub members: Vec<CreatedMember>,
    /// The user chose no zones, and a member is a rotating disk.
    pub zones_by_disk: bool,
    /// Public keys of those who can read what is recorded; none where all can.
    pub recipients: Vec<String>,
}

/// A member that was made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CreatedMember {
    /// Where it lies: of a whole disk, its new partition.
    #[serde(serialize_with = "path_text")]
    pub path: PathBuf,
    /// Size in bytes.
    pub size_bytes: u64,
    /// The file is sparse.
    pub sparse: bool,
    /// A partition table was written.
    pub partitioned: bool,
    /// What was destroyed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destroyed: Option<String>,
    /// How it is driven, where that is not the best way.
    #[serde(skip)]
    pub notes: Vec<String>,
}

/// Zones on rotating disks: with 8 the guaranteed rate is within 1 % of the mean one, and more gain
/// nothing (docs/benchmarks.md, Zones).
const ZONES_OF_DISKS: u16 = 8;

/// A target that may be used.
struct Allowed<'a> {
    path: &'a Path,
    is_file: bool,
    is_rotational: bool,
    size_bytes: u64,
    destroyed: Option<String>,
}

/// Makes a volume. Files are written completely, with progress, and removed again when that fails
/// or is broken off; a block device takes seconds whatever its size.
pub fn create(
    options: &CreateOptions,
    clock: &dyn Clock,
    progress: Progress<'_>,
) -> Result<Created, Error> {
    // One name that is given twice is refused as such.
    let names: BTreeSet<&Path> = options.devices().map(PathBuf::as_path).collect();
    device::refuse_same_storage(names)?;
    if !options.recipients.is_empty() {
        Recipients::parse(&options.recipients)?;
    }
    let targets = options.devices().map(|path| allow(path, options));
    let targets = targets.collect::<Result<Vec<_>, _>>()?;
    let shape = shape(&targets, options, TimeKnown::by(clock));
    check_shape(&targets, options, &shape)?;
    let files = targets.iter().filter(|target| target.is_file);
    let total: u64 = files.map(|target| target.size_bytes).sum();
    let (mut members, mut made, mut done) = (Vec::new(), Vec::new(), 0);
    for target in targets {
        let (path, size_bytes, is_file) = (target.path, target.size_bytes, target.is_file);
        let member = make(target, options, &mut |bytes, _| progress(done + bytes, total));
        match member {
            Ok(member) => {
                made.push((path, member.clone()));
                members.push(member);
            }
            Err(error) => {
                // What was made before is of no use alone.
                unmake_all(&made);
                return Err(named(error, path));
            }
        }
        done += if is_file { size_bytes } else { 0 };
    }
    let zones_by_disk = options.zones.is_none() && shape.layout.zones > 1;
    match format(members, options, &shape, clock) {
        Ok(created) => Ok(Created { zones_by_disk, ..created }),
        Err(error) => {
            // Without superblocks on every member they are no volume, and in the way of one.
            unmake_all(&made);
            Err(error)
        }
    }
}

fn unmake_all(made: &[(&Path, CreatedMember)]) {
    for (path, member) in made {
        unmake(path, member);
    }
}

/// Takes away what was made at `path` and came to nothing, so that it is not in the way of the next
/// try: a file, also in the place of one that was destroyed, or the table of a disk. The cause of
/// why it goes is worth more than a second error.
pub(crate) fn unmake(path: &Path, member: &CreatedMember) {
    if member.partitioned {
        gpt::erase(path).unwrap_or_default();
    } else if matches!(host::target(path), Ok(Target::File { .. })) {
        device::remove_file(path).unwrap_or_default();
    }
}

/// What can be refused is refused here.
fn allow<'a>(path: &'a Path, options: &CreateOptions) -> Result<Allowed<'a>, Error> {
    let same = options.devices().filter(|other| *other == path).count();
    if same > 1 {
        return Err(Error::Twice { path: path.to_path_buf() });
    }
    let mut is_rotational = false;
    let (is_file, size_bytes, destroyed) = match host::target(path)? {
        Target::Absent => (true, file_size(path, options)?, None),
        Target::File { size_bytes } => {
            let destroyed = content_of_file(path, options, size_bytes)?;
            (true, file_size(path, options)?, destroyed)
        }
        Target::BlockDevice => {
            let (size_bytes, destroyed) = allow_device(path, options)?;
            is_rotational = disk::of(path)?.is_some_and(|disk| disk.is_rotational);
            (false, size_bytes, destroyed)
        }
        Target::Other => {
            return Err(Error::NotAFileOrBlockDevice { path: path.to_path_buf() });
        }
    };
    Ok(Allowed { path, is_file, is_rotational, size_bytes, destroyed })
}

fn file_size(path: &Path, options: &CreateOptions) -> Result<u64, Error> {
    let size_bytes =
        options.size_bytes.ok_or_else(|| Error::NoSize { path: path.to_path_buf() })?;
    Ok(size_bytes - size_bytes % to_u64(ROW_SIZE))
}

fn allow_device(disk: &Path, options: &CreateOptions) -> Result<(u64, Option<String>), Error> {
    if options.size_bytes.is_some() && options.members.len() == 1 {
        let size_bytes = device::open_read(disk)?.size_bytes();
        return Err(Error::SizeOfDisk { path: disk.to_path_buf(), size_bytes });
    }
    let overwrite =
        if options.force { Overwrite::Everything } else { Overwrite::Kinds(Vec::new()) };
    let seed = u64::from_le_bytes(host::random_bytes()?);
    let cleared = guard::clear(disk, &Consent { name: None, overwrite }, seed)?;
    let lost: Vec<String> = cleared.lost.iter().map(ToString::to_string).collect();
    Ok((cleared.writer.size_bytes(), (!lost.is_empty()).then(|| lost.join(", "))))
}

/// A ring of this shape must be possible before anything is touched.
fn check_shape(
    targets: &[Allowed<'_>],
    options: &CreateOptions,
    shape: &volume::CreateOptions,
) -> Result<(), Error> {
    let Some(smallest) = targets.iter().min_by_key(|target| target.size_bytes) else {
        return Err(Error::NoMember);
    };
    let of_volume = |source| Error::Volume { path: smallest.path.to_path_buf(), source };
    let members = options.members.len() + usize::from(options.missing);
    let (geometry, _) =
        volume::geometry_for(smallest.size_bytes, members, shape).map_err(of_volume)?;
    let (present, needed) = (options.members.len(), geometry.data_columns);
    if present < usize::from(needed) {
        return Err(of_volume(volume::Error::TooFew { present, needed }));
    }
    Ok(())
}

fn shape(
    targets: &[Allowed<'_>],
    options: &CreateOptions,
    time: TimeKnown,
) -> volume::CreateOptions {
    let CreateOptions { piece_bytes, parity_columns, extent_bytes, usable, qualified, .. } =
        *options;
    let is_rotational = targets.iter().any(|target| target.is_rotational);
    let zones = options.zones.unwrap_or(if is_rotational { ZONES_OF_DISKS } else { 1 });
    let layout = Layout { zones, extent_bytes, usable };
    let max_age = options.max_age.unwrap_or_default();
    let max_age_ns = units::nanos(max_age);
    volume::CreateOptions { piece_bytes, parity_columns, layout, max_age_ns, qualified, time }
}

/// Brings one member into being, without superblocks.
fn make(
    target: Allowed<'_>,
    options: &CreateOptions,
    progress: Progress<'_>,
) -> Result<CreatedMember, Error> {
    let Allowed { path, is_file, size_bytes, destroyed, .. } = target;
    let mut member = CreatedMember {
        path: path.to_path_buf(),
        size_bytes,
        destroyed,
        partitioned: false,
        sparse: is_file && options.sparse,
        notes: Vec::new(),
    };
    if is_file {
        let overwrite = member.destroyed.is_some();
        let file = device::CreateOptions { size_bytes, sparse: options.sparse, overwrite };
        device::create_file(path, &file, progress)?;
        return Ok(member);
    }
    member.partitioned = !options.raw && usage::is_whole_disk(path)?;
    match make_device(path, &mut member) {
        Ok(()) => Ok(member),
        Err(error) => {
            unmake(path, &member);
            Err(error)
        }
    }
}

fn make_device(path: &Path, member: &mut CreatedMember) -> Result<(), Error> {
    if member.partitioned {
        member.path = gpt::write(path)?.path.expect("a partition of a block device has a node");
    }
    device::discard(&member.path)?;
    Ok(())
}

fn named(error: Error, path: &Path) -> Error {
    let path = path.to_path_buf();
    match error {
        Error::Device(device::Error::NotFound { .. }) => Error::NoDirectory { path },
        Error::Device(source) if source.is_failure() => Error::NotMade { path, source },
        error => error,
    }
}

/// Makes one device fit to be a member of at least `size_bytes`, and opens it.
pub(crate) fn prepare_member(
    options: &CreateOptions,
    size_bytes: u64,
    progress: Progress<'_>,
) -> Result<(CreatedMember, Box<dyn Device>), Error> {
    let path = options.members.first().ok_or(Error::NoMember)?;
    // A file is made as large as it must be; a disk is as large as it is.
    let options = match host::target(path)? {
        Target::BlockDevice => CreateOptions { size_bytes: None, ..options.clone() },
        _ => CreateOptions { size_bytes: Some(size_bytes), ..options.clone() },
    };
    let target = allow(path, &options)?;
    if target.size_bytes < size_bytes {
        let source = volume::Error::Shrunk { actual: target.size_bytes, expected: size_bytes };
        return Err(Error::Volume { path: path.clone(), source });
    }
    let mut member = make(target, &options, progress).map_err(|error| named(error, path))?;
    match open_cleared(&mut member) {
        Ok(device) => Ok((member, device)),
        Err(error) => {
            unmake(path, &member);
            Err(named(error, path))
        }
    }
}

/// Opens what was made, and clears its ends.
fn open_cleared(member: &mut CreatedMember) -> Result<Box<dyn Device>, Error> {
    let mut device = device::open(&member.path, &device::Options::default())?;
    clear_ends(device.as_mut())?;
    member.size_bytes = device.size_bytes();
    member.notes = device.notes().to_vec();
    Ok(device)
}

/// Writes the superblocks.
fn format(
    mut members: Vec<CreatedMember>,
    options: &CreateOptions,
    shape: &volume::CreateOptions,
    clock: &dyn Clock,
) -> Result<Created, Error> {
    let mut devices = Vec::new();
    let mut entries = Vec::new();
    for member in &mut members {
        let device = open_cleared(member).map_err(|error| named(error, &member.path))?;
        let path = std::path::absolute(&member.path).unwrap_or_else(|_| member.path.clone());
        let path = path.to_string_lossy().into_owned();
        entries.push(MemberEntry::new(host::random_bytes()?, path));
        devices.push(device);
    }
    let spares = entries.split_off(options.members.len());
    let spares = spares.into_iter().map(|MemberEntry { uuid, path, .. }| Spare { uuid, path });
    let spares = spares.collect();
    for _ in 0..options.missing {
        entries.push(MemberEntry::vacant());
    }
    let identity = Identity {
        volume_id: VolumeId(host::random_bytes()?),
        head_key: HeadKey(host::random_bytes()?),
        members: entries,
        spares,
        created: clock.realtime(),
    };
    let first = members.first().map(|member| member.path.clone()).unwrap_or_default();
    let superblock = volume::create_for(&mut devices, shape, &identity, &options.recipients)
        .map_err(|error| {
            // Those that have theirs would be taken for a volume.
            for device in &mut devices {
                clear_ends(device.as_mut()).unwrap_or_default();
            }
            refused(error, first)
        })?;
    let recipients = options.recipients.clone();
    Ok(Created { superblock, members, zones_by_disk: false, recipients })
}

/// Why there are no superblocks: a member at fault is named, else all of them are by the first.
fn refused(error: volume::Error, first: PathBuf) -> Error {
    match error {
        volume::Error::At { path, source } => match *source {
            volume::Error::Device(source) => named(source.into(), &path),
            source => Error::Volume { path, source },
        },
        source => Error::Volume { path: first, source },
    }
}

/// Zeroes the reserved ranges at both ends, so that no program finds there what was before.
fn clear_ends(device: &mut dyn Device) -> Result<(), Error> {
    let zeros = vec![0; usize::try_from(RESERVED_BYTES).expect("2 MiB fits")];
    for offset in [0, device.size_bytes() - RESERVED_BYTES] {
        device.write_at(offset, &zeros)?;
    }
    Ok(())
}

/// What a target holds that the user may want to keep.
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
            Self::Foreign(found) => {
                Err(Error::Occupied { path, content: guard::Content::Foreign(found, None) })
            }
        }
    }
}

fn content(path: &Path) -> Result<Option<Content>, Error> {
    match crate::open(path, &[]) {
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
fn content_of_file(
    path: &Path,
    options: &CreateOptions,
    size_bytes: u64,
) -> Result<Option<String>, Error> {
    if let Some(used) = usage::of(path)? {
        return Err(Error::InUse { path: path.to_path_buf(), used });
    }
    if size_bytes == 0 {
        let empty = || Error::EmptyFile { path: path.to_path_buf() };
        return options.force.then(|| Some("an empty file".to_owned())).ok_or_else(empty);
    }
    let content = content(path)?.ok_or_else(|| Error::UnknownFile { path: path.to_path_buf() })?;
    let destroyed = content.allow(path, options.force)?;
    guard::refuse_owned(path, device::open_read(path)?.as_ref(), &host::SystemClock)?;
    Ok(Some(destroyed))
}
