//! Space that is left in mounted file systems (`statvfs(3)`).

use std::fs;

/// A file system.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Space {
    /// Where it is mounted.
    pub place: String,
    /// What it is on: a device, or `tmpfs`.
    pub device: String,
    /// Its kind, such as `ext4`.
    pub kind: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Bytes that programs without privileges may still write.
    pub available_bytes: u64,
    /// How many files and folders it can have; 0 where there is no such limit.
    pub inodes: u64,
    /// How many more.
    pub available_inodes: u64,
}

/// File systems that can be written and lie on a block device or in memory; each once.
pub fn spaces() -> Vec<Space> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut spaces: Vec<Space> = Vec::new();
    for space in mounts.lines().filter_map(mounted) {
        if !spaces.iter().any(|known| known.device == space.device && space.kind != "tmpfs")
            && let Some(space) = measured(space)
        {
            spaces.push(space);
        }
    }
    spaces
}

/// The place, device and kind of a line of `/proc/self/mounts`.
fn mounted(line: &str) -> Option<Space> {
    let mut words = line.split(' ');
    let (device, place, kind, options) =
        (words.next()?, words.next()?, words.next()?, words.next()?);
    let is_wanted = device.starts_with('/') || kind == "tmpfs";
    let is_writable = options.split(',').all(|option| option != "ro");
    // Those that are full by design.
    let is_image = matches!(kind, "squashfs" | "iso9660" | "erofs" | "cramfs" | "udf");
    (is_wanted && is_writable && !is_image).then(|| Space {
        place: plain(place),
        device: plain(device),
        kind: kind.to_owned(),
        ..Space::default()
    })
}

/// Without the octal escapes of `getmntent(3)`.
fn plain(text: &str) -> String {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    escapes.iter().fold(text.to_owned(), |text, (escape, plain)| text.replace(escape, plain))
}

fn measured(space: Space) -> Option<Space> {
    let found = rustix::fs::statvfs(&*space.place).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    (found.f_blocks > 0).then(|| Space {
        bytes: bytes(found.f_blocks),
        available_bytes: bytes(found.f_bavail),
        inodes: found.f_files,
        available_inodes: found.f_favail,
        ..space
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_written_and_lies_on_a_device_or_in_memory_is_measured() {
        let of = |line| mounted(line).map(|space| (space.device, space.place, space.kind));
        let is = |device: &str, place: &str, kind: &str| {
            Some((device.to_owned(), place.to_owned(), kind.to_owned()))
        };
        let line = "/dev/sda1 /my\\040disk ext4 rw,relatime 0 0";
        assert_eq!(of(line), is("/dev/sda1", "/my disk", "ext4"));
        assert_eq!(of("tmpfs /run tmpfs rw 0 0"), is("tmpfs", "/run", "tmpfs"));
        for line in [
            "/dev/sda2 /usr ext4 ro,relatime 0 0",
            "/dev/loop0 /snap squashfs rw 0 0",
            "proc /proc proc rw 0 0",
            "short",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn what_is_available_is_part_of_the_whole() {
        for space in spaces() {
            assert!(space.available_bytes <= space.bytes, "{space:?}");
        }
    }
}
