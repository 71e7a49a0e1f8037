//! Folders for sockets, in which no other user can put or exchange one.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, chmod, fstat, mkdirat, openat, renameat, statat,
    unlinkat,
};
use rustix::io::Errno;
use rustix::net::{SocketAddrUnix, UCred};
use rustix::process::geteuid;
use units::{NANOS_PER_SECOND, Timestamp};

use crate::{Error, default_cache_directory};

/// Below it are folders of services, which the system makes for them, and that of root.
pub const SYSTEM_FOLDER: &str = "/run/wirespool";
/// Root's own folder there.
const OF_ROOT: &str = "root";
/// More names than recorders that one machine has.
const NAMES_MAX: usize = 1024;

/// A folder whose entries only its owner can change, held open: what its path names later does not
/// matter.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    folder: OwnedFd,
    owner: u32,
}

impl Place {
    /// The folder for sockets of our own, made if need be.
    pub(super) fn own() -> Result<Self, Error> {
        let mut first_error = None;
        for candidate in candidates() {
            match candidate.open(true) {
                Ok(place) => return Ok(place),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        Err(first_error.unwrap_or(Error::NoSocketFolder))
    }

    /// All folders in which sockets are that we may ask: our own, and those of services and root.
    pub(super) fn all() -> Vec<Self> {
        let own = candidates().into_iter().filter_map(|candidate| candidate.open(false).ok());
        let mut places: Vec<Self> = own.collect();
        // Whom root has given a folder here is trusted as its owner.
        let system = Self::open(Path::new(SYSTEM_FOLDER), |owner| owner == 0);
        for name in system.iter().flat_map(Self::names) {
            let path = Path::new(SYSTEM_FOLDER).join(&name);
            if !places.iter().any(|place| place.path == path) {
                places.extend(Self::open(&path, |_| true));
            }
        }
        places
    }

    /// Opens a folder of an owner that is accepted, and that others cannot write to.
    pub(super) fn open(path: &Path, is_accepted: impl Fn(u32) -> bool) -> Result<Self, Error> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(CWD, path, flags, Mode::empty());
        let folder = opened.map_err(|errno| Error::path("open the folder", path, errno))?;
        let found = fstat(&folder).map_err(|errno| Error::path("examine", path, errno))?;
        let unsafe_as = |why| Err(Error::UnsafeFolder { path: path.to_path_buf(), why });
        if !is_accepted(found.st_uid) {
            return unsafe_as("it belongs to another user");
        }
        if found.st_mode & 0o022 != 0 {
            return unsafe_as("others may write to it");
        }
        Ok(Self { path: path.to_path_buf(), folder, owner: found.st_uid })
    }

    /// What a socket of this name is called in messages.
    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The address of a socket in this folder, wherever that is by now, and however long its path.
    pub(super) fn address(&self, name: &str) -> io::Result<SocketAddrUnix> {
        let path = format!("/proc/self/fd/{}/{name}", self.folder.as_raw_fd());
        Ok(SocketAddrUnix::new(path)?)
    }

    /// The folder itself, for calls that take one.
    pub(super) fn folder(&self) -> &OwnedFd {
        &self.folder
    }

    /// Takes a socket away.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.folder, name, AtFlags::empty())?)
    }

    /// Gives a socket another name.
    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.folder, from, &self.folder, to)?)
    }

    /// Names of what is in it, as far as it may be listed.
    pub(super) fn names(&self) -> Vec<String> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(&self.folder, ".", flags, Mode::empty()).and_then(Dir::new);
        let entries = opened.into_iter().flatten().filter_map(Result::ok).take(NAMES_MAX);
        let names = entries.filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
        names.filter(|name| !name.starts_with('.')).collect()
    }

    /// Names of its sockets.
    pub(super) fn sockets(&self) -> Vec<String> {
        let is_socket = |name: &String| {
            let found = statat(&self.folder, name.as_str(), AtFlags::SYMLINK_NOFOLLOW);
            found.is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Socket)
        };
        self.names().into_iter().filter(is_socket).collect()
    }

    /// When a socket was made.
    pub(super) fn made(&self, name: &str) -> Option<Timestamp> {
        let found = statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(Timestamp(found.st_mtime.checked_mul(NANOS_PER_SECOND)?))
    }

    /// A program that answers here may be believed.
    pub(super) fn trusts(&self, peer: &UCred) -> bool {
        let user = peer.uid.as_raw();
        user == self.owner || user == 0
    }
}

/// A place where our own folder may be.
struct Candidate {
    /// It is there, and ours or made by root alone.
    parent: Option<PathBuf>,
    path: PathBuf,
}

impl Candidate {
    fn open(&self, make: bool) -> Result<Place, Error> {
        let own = geteuid().as_raw();
        let is_own = |owner| owner == own;
        let Some(parent) = &self.parent else { return Place::open(&self.path, is_own) };
        if make {
            if parent == Path::new(SYSTEM_FOLDER) {
                make_system_folder()?;
            } else {
                make_folder(parent)?;
            }
        }
        // A user who could exchange the folder below could do so at any time.
        Place::open(parent, is_own)?;
        if make {
            make_folder(&self.path)?;
        }
        Place::open(&self.path, is_own)
    }
}

/// For its owner alone; true where it was not there before.
fn make_folder(path: &Path) -> Result<bool, Error> {
    match mkdirat(CWD, path, Mode::RWXU) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(errno) => Err(Error::path("make the directory", path, errno)),
    }
}

/// Makes the folder of root below which services have theirs: whatever the umask, they get there.
pub fn make_system_folder() -> Result<(), Error> {
    let path = Path::new(SYSTEM_FOLDER);
    if make_folder(path)? {
        let changed = chmod(path, Mode::from_raw_mode(0o755));
        changed.map_err(|errno| Error::path("make the directory", path, errno))?;
    }
    Ok(())
}

/// Where our sockets may lie.
pub(crate) fn own_folders() -> impl Iterator<Item = PathBuf> {
    let own = candidates().into_iter().map(|candidate| candidate.path);
    own.chain([PathBuf::from(SYSTEM_FOLDER)])
}

/// The folder that the system made for a service, root's below `/run/wirespool`, the user's runtime
/// directory (XDG Base Directory Specification), the user's cache. Never a folder in a place where
/// others may have been before us.
fn candidates() -> Vec<Candidate> {
    let absolute = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let user = geteuid();
    let service = absolute("RUNTIME_DIRECTORY").filter(|path| path.starts_with(SYSTEM_FOLDER));
    let service = service.map(|path| Candidate { parent: None, path });
    let below = |parent: PathBuf, name: &str| {
        let path = parent.join(name);
        Candidate { parent: Some(parent), path }
    };
    let root = user.is_root().then(|| below(PathBuf::from(SYSTEM_FOLDER), OF_ROOT));
    let runtime = absolute("XDG_RUNTIME_DIR").map(|path| below(path, "wirespool"));
    let usual = below(PathBuf::from(format!("/run/user/{}", user.as_raw())), "wirespool");
    let cache = default_cache_directory().ok().map(|path| below(path, "run"));
    service.into_iter().chain(root).chain(runtime).chain([usual]).chain(cache).collect()
}
