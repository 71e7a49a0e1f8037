//! Where the kernel says which tracepoints there are.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::format::Format;
use super::mounted;
use super::not_traced::NotTraced;

/// Where tracefs is: by itself, or inside of debugfs.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
pub(super) fn tracefs() -> Result<PathBuf, NotTraced> {
    let mut is_forbidden = false;
    for place in PLACES.map(Path::new) {
        match fs::read_dir(place.join("events")) {
            Ok(_) => return Ok(place.to_path_buf()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => is_forbidden = true,
            Err(_) => {}
        }
    }
    if is_forbidden {
        return Err(NotTraced::Forbidden);
    }
    // Whoever may not mount one may not listen either.
    let lacks = if rustix::process::geteuid().is_root() {
        NotTraced::NoTracefs
    } else {
        NotTraced::Forbidden
    };
    mounted::place().ok_or(lacks)
}

pub(super) fn format_of(place: &Path, name: &'static str) -> Result<Format, NotTraced> {
    let path = place.join("events").join(name).join("format");
    let text = fs::read_to_string(path).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => NotTraced::Forbidden,
        io::ErrorKind::NotFound => NotTraced::NoTracepoint(name),
        _ => NotTraced::Failed(error),
    })?;
    Format::parse(&text).ok_or(NotTraced::NoTracepoint(name))
}
