//! Real file systems, partition tables and loop devices against what this crate says of them.

#![expect(clippy::disallowed_methods, reason = "tests open files")]
#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(clippy::print_stdout, reason = "tests say why they did not run")]

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard};

use blockdev::signature::{Signature, probe};
use blockdev::usage::{self, Use};

/// A command started by one test inherits, for a moment, what another has open, and so holds its
/// claims.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    stage::lock(&ALONE)
}

/// A loop device over a file, detached when dropped.
struct Loop(PathBuf);

impl Loop {
    fn attach(file: &Path, options: &[&str]) -> Option<Self> {
        let file = file.to_str().unwrap();
        let name = output("losetup", &[&["--find", "--show"], options, &[file]].concat())?;
        Some(Self(PathBuf::from(name.trim())))
    }

    fn node(&self) -> &str {
        self.0.to_str().unwrap()
    }

    fn name(&self) -> String {
        self.0.file_name().unwrap().to_string_lossy().into_owned()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        assert!(output("losetup", &["--detach", self.node()]).is_some());
    }
}

/// Puts a partition onto a disk; `None` with the reason printed where the kernel is not to be told
/// of it, as in a container that may have loop devices and no more.
fn partition(disk: &Loop) -> Option<blockdev::gpt::Partition> {
    match blockdev::gpt::write(&disk.0) {
        Err(blockdev::Error::Host(host::Error::Path { operation, source, .. }))
            if source.kind() == std::io::ErrorKind::PermissionDenied =>
        {
            println!("not run: cannot {operation} a loop device: {source}");
            None
        }
        partition => Some(partition.unwrap()),
    }
}

/// What a command prints, or `None` with the reason printed.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => Some(String::from_utf8(output.stdout).unwrap()),
        Ok(output) => {
            println!("not run: {program}: {}", String::from_utf8_lossy(&output.stderr).trim());
            None
        }
        Err(error) => {
            println!("not run: {program}: {error}");
            None
        }
    }
}

fn image(path: &Path, size_bytes: u64) {
    fs::File::create(path).unwrap().set_len(size_bytes).unwrap();
}

fn probe_path(path: &Path) -> Option<Signature> {
    let file = fs::File::open(path).unwrap();
    let size = file.metadata().unwrap().len();
    probe(size, |offset, into: &mut [u8]| file.read_exact_at(into, offset)).unwrap()
}

#[test]
fn what_real_tools_make_is_recognised() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image");
    let node = path.to_str().unwrap();
    for (program, arguments, kind) in [
        ("mkfs.ext2", ["-q", "-F", node].as_slice(), "ext2/ext3/ext4"),
        ("mkfs.ext4", &["-q", "-F", "-b", "1024", node], "ext2/ext3/ext4"),
        ("mkfs.xfs", &["-q", "-f", node], "XFS"),
        ("mkfs.btrfs", &["-q", "-f", node], "btrfs"),
        ("mkfs.vfat", &[node], "FAT"),
        ("mkfs.ntfs", &["-q", "-F", node], "NTFS"),
        ("mkfs.f2fs", &["-q", "-f", node], "F2FS"),
        ("mkswap", &[node], "swap"),
        ("cryptsetup", &["luksFormat", "-q", node, "/dev/null"], "LUKS"),
        ("pvcreate", &["-q", node], "LVM2 physical volume"),
    ] {
        image(&path, 320 << 20);
        if output(program, arguments).is_some() {
            assert_eq!(probe_path(&path).map(|found| found.kind), Some(kind), "{program}");
        }
    }
    for (label, kind) in [("gpt", "GPT partition table"), ("msdos", "MBR partition table")] {
        image(&path, 64 << 20);
        let script = [["-s", node, "mklabel", label], ["mkpart", "primary", "1MiB", "100%"]];
        if output("parted", script.as_flattened()).is_some() {
            assert_eq!(probe_path(&path).map(|found| found.kind), Some(kind));
        }
    }
}

#[test]
fn a_mounted_disk_is_in_use_and_so_is_its_backing_file() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let (file, place) = (directory.path().join("image"), directory.path().join("a place"));
    image(&file, 16 << 20);
    fs::create_dir(&place).unwrap();
    let Some(disk) = Loop::attach(&file, &[]) else { return };
    assert_eq!(usage::of(&disk.0).unwrap(), None);
    let held = Use::Held { device: file.display().to_string(), by: disk.name() };
    assert_eq!(usage::of(&file).unwrap(), Some(held));
    let mount_point = place.to_str().unwrap();
    if output("mkfs.ext4", &["-q", disk.node()]).is_none()
        || output("mount", &[disk.node(), mount_point]).is_none()
    {
        return;
    }
    let used = (usage::of(&disk.0), usage::of(&file));
    assert!(output("umount", &[mount_point]).is_some());
    let mounted = Use::Mounted { device: disk.name(), mount_point: place };
    assert_eq!(used.0.unwrap(), Some(mounted.clone()));
    assert_eq!(used.1.unwrap(), Some(mounted));
}

#[test]
fn swap_is_in_use() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image");
    image(&file, 16 << 20);
    let Some(disk) = Loop::attach(&file, &[]) else { return };
    if output("mkswap", &[disk.node()]).is_none() || output("swapon", &[disk.node()]).is_none() {
        return;
    }
    let used = usage::of(&disk.0);
    assert!(output("swapoff", &[disk.node()]).is_some());
    assert_eq!(used.unwrap(), Some(Use::Swap { device: disk.name() }));
}

#[test]
fn a_partition_table_gives_one_aligned_partition_that_other_tools_see() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image");
    for sector in ["512", "4096"] {
        image(&file, 64 << 20);
        let Some(disk) = Loop::attach(&file, &["--partscan", "--sector-size", sector]) else {
            return;
        };
        assert!(usage::is_whole_disk(&disk.0).unwrap());
        let Some(partition) = partition(&disk) else { return };
        let node = partition.path.clone().unwrap();
        assert_eq!(node.to_string_lossy(), format!("{}p1", disk.node()));
        assert_eq!((partition.offset_bytes, partition.size_bytes), (1 << 20, 62 << 20));
        assert!(!usage::is_whole_disk(&node).unwrap());
        if let Some(verified) = output("sgdisk", &["--verify", "--info=1", disk.node()]) {
            assert!(verified.contains("No problems found"), "{verified}");
            assert!(verified.contains("0FC63DAF-8483-4772-8E79-3D69D8477DE4"), "{verified}");
            assert!(verified.contains("Partition name: 'wirespool'"), "{verified}");
        }

        // The partition is where the table says, and holding it keeps the disk.
        let marked = fs::OpenOptions::new().write(true).open(&node).unwrap();
        marked.write_all_at(b"here", 0).unwrap();
        marked.sync_all().unwrap();
        let mut found = [0; 4];
        fs::File::open(&disk.0).unwrap().read_exact_at(&mut found, 1 << 20).unwrap();
        assert_eq!(&found, b"here");
        drop(marked);
        assert_eq!(usage::of(&disk.0).unwrap(), None);
    }
}

#[test]
fn an_exclusive_claim_on_a_partition_is_seen_on_the_disk() {
    use std::os::unix::fs::OpenOptionsExt;
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image");
    image(&file, 64 << 20);
    let Some(disk) = Loop::attach(&file, &["--partscan"]) else { return };
    let Some(partition) = partition(&disk) else { return };
    let node = partition.path.unwrap();
    let claim = fs::OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(&node).unwrap();
    assert_eq!(usage::of(&disk.0).unwrap(), Some(Use::Claimed));
    assert_eq!(usage::of(&node).unwrap(), Some(Use::Claimed));
    assert!(blockdev::gpt::write(&disk.0).is_err());
    drop(claim);
}

#[test]
fn a_table_that_came_to_nothing_leaves_a_blank_disk() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image");
    image(&file, 64 << 20);
    let Some(disk) = Loop::attach(&file, &["--partscan"]) else { return };
    let Some(made) = partition(&disk) else { return };
    blockdev::gpt::erase(&disk.0).unwrap();
    assert!(!made.path.unwrap().exists());
    assert!(probe_path(&disk.0).is_none());
    assert!(usage::is_whole_disk(&disk.0).unwrap());
    assert!(fs::read(&file).unwrap().iter().all(|byte| *byte == 0));
    // It can be had again, and taken away where it is gone already.
    assert!(partition(&disk).is_some());
    blockdev::gpt::erase(&disk.0).unwrap();
    blockdev::gpt::erase(&disk.0).unwrap();
}

#[test]
fn a_loop_device_without_partitions_is_no_whole_disk() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image");
    image(&file, 16 << 20);
    let Some(disk) = Loop::attach(&file, &[]) else { return };
    assert!(!usage::is_whole_disk(&disk.0).unwrap());
}

#[test]
fn an_image_gets_a_table_too() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image");
    image(&file, 64 << 20);
    let partition = blockdev::gpt::write(&file).unwrap();
    assert_eq!((partition.path, partition.size_bytes), (None, 62 << 20));
    assert_eq!(probe_path(&file).unwrap().kind, "GPT partition table");
    image(&file, 1 << 20);
    assert!(blockdev::gpt::write(&file).is_err());
}

/// Unmounts when dropped.
struct Mount(PathBuf);

impl Drop for Mount {
    fn drop(&mut self) {
        assert!(output("umount", &[self.0.to_str().unwrap()]).is_some());
    }
}

/// `(first block of the file, first on the device, blocks)` of each line that filefrag(8) prints.
fn filefrag(path: &Path) -> Option<Vec<[u64; 3]>> {
    let text = output("filefrag", &["-e", "-v", "-b4096", path.to_str().unwrap()])?;
    let extent = |line: &str| {
        let fields: Vec<&str> = line.split(':').map(str::trim).collect();
        let [number, logical, physical, len, ..] = fields[..] else { return None };
        number.parse::<u32>().ok()?;
        let first = |range: &str| range.split("..").next()?.trim().parse().ok();
        Some([first(logical)?, first(physical)?, len.parse().ok()?])
    };
    Some(text.lines().filter_map(extent).collect())
}

#[test]
fn files_lie_where_filefrag_says_and_their_bytes_are_there_on_the_whole_disk() {
    use std::os::unix::fs::MetadataExt;
    let _alone = alone();
    for (program, arguments) in
        [("mkfs.ext4", ["-q", "-F"].as_slice()), ("mkfs.xfs", &["-q", "-f", "-m", "rmapbt=1"])]
    {
        let directory = tempfile::tempdir().unwrap();
        let (image_file, place) = (directory.path().join("image"), directory.path().join("place"));
        image(&image_file, 400 << 20);
        fs::create_dir(&place).unwrap();
        let Some(disk) = Loop::attach(&image_file, &["--partscan"]) else { return };
        let Some(partition) = partition(&disk) else { return };
        let partition = partition.path.unwrap();
        let node = partition.to_str().unwrap();
        if output(program, &[arguments, &[node]].concat()).is_none()
            || output("mount", &[node, place.to_str().unwrap()]).is_none()
        {
            continue;
        }
        let _mount = Mount(place.clone());
        let path = place.join("file");
        let file = fs::File::create(&path).unwrap();
        // Another file between the parts, and a hole, so that there are several.
        for part in 0..3_u8 {
            file.write_all_at(&vec![part + 1; 1 << 20], u64::from(part) * (3 << 20)).unwrap();
            file.sync_all().unwrap();
            fs::write(place.join(format!("between-{part}")), vec![9; 64 << 10]).unwrap();
            fs::File::open(place.join(format!("between-{part}"))).unwrap().sync_all().unwrap();
        }
        let found = blockdev::placement::extents_of(&path, 100).unwrap();
        let blocks: Vec<[u64; 3]> = found
            .iter()
            .map(|extent| [extent.logical, extent.physical, extent.len].map(|it| it / 4096))
            .collect();
        if let Some(expected) = filefrag(&path) {
            assert_eq!(blocks, expected, "{program}");
        }
        let metadata = file.metadata().unwrap();
        let device = host::DeviceNumber::of_stat(metadata.dev());
        let on = blockdev::placement::disk_of(device).unwrap();
        assert_eq!(on.begin, 1 << 20, "the partition begins there");
        let whole = fs::File::open(&disk.0).unwrap();
        for extent in &found {
            let mut byte = [0];
            whole.read_exact_at(&mut byte, on.begin + extent.physical).unwrap();
            let part = u8::try_from(extent.logical / (3 << 20)).unwrap();
            assert_eq!(byte, [part + 1], "{program}: {extent:?}");
        }
        let owner = blockdev::owners::owner_of(&place, found[0].physical).unwrap();
        let expected = match program {
            "mkfs.xfs" => blockdev::owners::Owner::Inode(metadata.ino()),
            _ => blockdev::owners::Owner::Unknown,
        };
        assert_eq!(owner, expected, "{program}");
        assert_eq!(blockdev::placement::place_of(&path).unwrap().disks, [on.device]);
    }
}
