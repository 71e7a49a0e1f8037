//! The chain of guards, link by link, on loop devices: whatever a disk holds, or whichever program
//! uses it, `create` and `qualify --destroy` refuse it in a line that says so, and not a byte of it
//! changes.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::machine::{Loop, Mounted, command, make_ext4, run, text};

const MIB: u64 = 1 << 20;
/// A file system that may be written writes by itself: ext4 what `mkfs.ext4` left to be done.
const READ_ONLY: [&str; 2] = ["-o", "ro,noload"];

fn content(device: &Loop) -> Vec<u8> {
    // What lay under its number before may still be in the cache.
    let flushed = Command::new("blockdev").args(["--flushbufs", &device.path]).status();
    assert!(flushed.is_ok_and(|status| status.success()), "blockdev --flushbufs {}", device.path);
    let mut bytes = Vec::new();
    File::open(&device.path).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

/// The name that a loop device, which has no serial number, is known by.
fn name(path: &str) -> &str {
    path.trim_start_matches("/dev/")
}

/// Both refuse with these words, and nothing changes.
#[track_caller]
fn both_refuse(device: &Loop, path: &str, words: &str) {
    let before = content(device);
    run(&["create", path, "--raw"]).is_refused(words);
    run(&["qualify", path, "--part", "fill", "--destroy", name(path)]).is_refused(words);
    let after = content(device);
    let changed = before.iter().zip(&after).position(|(before, after)| before != after);
    let lengths = (before.len(), after.len());
    assert!(before == after, "{words}: first changed {changed:?}, lengths {lengths:?}");
}

fn write_at(path: &Path, offset: u64, bytes: &[u8]) {
    let mut file = File::options().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(offset)).unwrap();
    file.write_all(bytes).unwrap();
}

/// Has a tool sign the file; bytes from its documentation where the tool is not here or cannot.
fn signed_by(arguments: &[&str], documented: (u64, &'static [u8])) -> impl Fn(&Path) {
    let words: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
    move |path| {
        let (program, arguments) = words.split_first().unwrap();
        let path_text = path.to_str().unwrap();
        let arguments = arguments.iter().map(|word| if word == "@" { path_text } else { word });
        let ran = Command::new(program).args(arguments).stdin(Stdio::null()).output();
        if !ran.is_ok_and(|output| output.status.success()) {
            println!("{program} cannot sign here: bytes from its documentation");
            write_at(path, documented.0, documented.1);
        }
    }
}

/// A tool with its arguments, bytes that it would write and where, and the words of the refusal.
type Signed = (&'static [&'static str], (u64, &'static [u8]), &'static str);

#[test]
fn what_another_program_signed_is_refused_by_its_name() {
    // md: include/uapi/linux/raid/md_p.h. LUKS: the on-disk format specifications. LVM2: the label
    // in lib/format_text/layout.h. ZFS: include/sys/uberblock_impl.h. ext4: fs/ext4/ext4.h.
    let md: &[&str] = &["mdadm", "--create", "--nothing"];
    let luks: &[&str] = &["cryptsetup", "luksFormat", "-q", "--pbkdf", "pbkdf2", "@", "/dev/null"];
    let signed: [Signed; 9] = [
        (md, (4096, b"\xfc\x4e\x2b\xa9\x01\0\0\0"), "holds Linux RAID member (1.2)"),
        (luks, (0, b"LUKS\xba\xbe\0\x02"), "holds LUKS (found at byte 0)"),
        (&["pvcreate", "-q", "@"], (512, b"LABELONE"), "holds LVM2 physical volume"),
        (&["zpool", "--nothing"], (128 << 10, b"\x0c\xb1\xba\0\0\0\0\0"), "holds ZFS"),
        (&["mkfs.xfs", "-q", "-f", "@"], (0, b"XFSB"), "holds XFS (found at byte 0)"),
        (&["mkfs.btrfs", "-q", "@"], (0x1_0040, b"_BHRfS_M"), "holds btrfs"),
        (&["mkswap", "@"], (4086, b"SWAPSPACE2"), "holds swap (found at byte 4086)"),
        (&["sgdisk", "-o", "@"], (512, b"EFI PART"), "holds GPT partition table"),
        (&["mkfs.ext4", "-q", "-F", "@"], (1080, b"\x53\xef"), "holds ext2/ext3/ext4"),
    ];
    for (arguments, documented, words) in signed {
        let prepare = signed_by(arguments, documented);
        let Some(device) = Loop::new(320 * MIB, &[], prepare) else { return };
        both_refuse(&device, &device.path, words);
    }
}

#[test]
fn a_mounted_disk_or_partition_and_the_disk_of_it_are_refused() {
    let Some(whole) = Loop::new(64 * MIB, &[], make_ext4) else { return };
    let Some(mounted) = Mounted::new(&[&READ_ONLY, &[&*whole.path][..]].concat()) else { return };
    let words = format!("{} is mounted on", name(&whole.path));
    both_refuse(&whole, &whole.path, &words);
    drop(mounted);
    let Some(disk) = partitioned() else { return };
    let partition = format!("{}p1", disk.path);
    make_ext4(Path::new(&partition));
    let Some(mounted) = Mounted::new(&[&READ_ONLY, &[&*partition][..]].concat()) else { return };
    let words = format!("{} is mounted on", name(&partition));
    both_refuse(&disk, &disk.path, &words);
    both_refuse(&disk, &partition, &words);
    // A link to it is not another disk.
    let folder = tempfile::tempdir().unwrap();
    let link = text(folder.path().join("scratch"));
    std::os::unix::fs::symlink(&partition, &link).unwrap();
    run(&["create", &link, "--raw", "--force"]).is_refused(&words);
    drop(mounted);
    // Not mounted any more, and still there: who gives up the table has not given up what is in it.
    let destroy = ["qualify", &disk.path, "--part", "fill", "--destroy", name(&disk.path)];
    let table = ["--overwrite", "GPT partition table"];
    let words = format!("holds ext2/ext3/ext4 (found at byte 1080) on {}", name(&partition));
    run(&[&destroy[..], &table].concat()).is_refused(&words);
    let both = [&destroy[..], &table, &["--overwrite", "ext2/ext3/ext4"]].concat();
    run(&both).done();
}

/// A disk with one partition that the kernel shows.
fn partitioned() -> Option<Loop> {
    if let Err(error) = Command::new("sgdisk").arg("--version").output() {
        println!("not run: sgdisk: {error}");
        return None;
    }
    let disk = Loop::new(96 * MIB, &["--partscan"], |path| {
        let made = Command::new("sgdisk").args(["-n", "1:2048:"]).arg(path).output();
        assert!(made.expect("sgdisk runs").status.success());
    })?;
    if !Path::new(&format!("{}p1", disk.path)).exists() {
        println!("not run: the kernel shows no partitions of loop devices");
        return None;
    }
    Some(disk)
}

#[test]
fn a_disk_mounted_in_another_namespace_is_refused() {
    let Some(device) = Loop::new(64 * MIB, &[], make_ext4) else { return };
    // To be read only: the kernel writes to what it has just mounted when it pleases.
    let script = "mount -o ro \"$0\" /mnt && echo mounted && cat";
    let mut held = Command::new("unshare");
    held.args(["--mount", "sh", "-c", script, &device.path]);
    let mut held = held.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = [0; 7];
    if held.stdout.as_mut().unwrap().read_exact(&mut said).is_err() {
        println!("not run: mounting in a namespace of its own is not allowed");
        held.wait().unwrap();
        return;
    }
    both_refuse(&device, &device.path, &format!("{} is mounted on /mnt", name(&device.path)));
    drop(held.stdin.take());
    held.wait().unwrap();
}

#[test]
fn swap_in_use_is_refused() {
    let prepare = signed_by(&["mkswap", "@"], (4086, b"SWAPSPACE2"));
    let Some(device) = Loop::new(64 * MIB, &[], prepare) else { return };
    let on = Command::new("swapon").arg(&device.path).output();
    if !on.is_ok_and(|output| output.status.success()) {
        println!("not run: swapon is not allowed");
        return;
    }
    let used = std::panic::catch_unwind(|| {
        both_refuse(&device, &device.path, "is used as swap space");
    });
    assert!(Command::new("swapoff").arg(&device.path).status().unwrap().success());
    used.unwrap();
}

#[test]
fn a_disk_that_another_program_has_open_is_refused() {
    const O_EXCL: i32 = 0o200;
    let Some(device) = Loop::new(64 * MIB, &[], |_| {}) else { return };
    let claimed = File::options().read(true).custom_flags(O_EXCL).open(&device.path).unwrap();
    both_refuse(&device, &device.path, "opened exclusively by another program");
    drop(claimed);
    // A virtual machine, say, claims nothing.
    let open = File::options().write(true).open(&device.path).unwrap();
    let words = format!("{} is open for writing by", name(&device.path));
    both_refuse(&device, &device.path, &words);
    drop(open);
    let reading = File::open(&device.path).unwrap();
    run(&["create", &device.path, "--raw"]).done();
    drop(reading);
    // Its volume is one reason more.
    both_refuse(&device, &device.path, "wirespool volume");
}

#[test]
fn another_disk_than_the_one_that_is_meant_is_refused() {
    let Some(device) = Loop::new(64 * MIB, &[], |_| {}) else { return };
    let before = content(&device);
    for wrong in ["sda", "", "loop"] {
        let words = format!("is {}, not {wrong}; nothing was written", name(&device.path));
        run(&["qualify", &device.path, "--destroy", wrong]).is_refused(&words);
    }
    assert!(before == content(&device));
}

#[test]
fn data_that_nobody_signed_is_refused_until_it_is_agreed_to() {
    let noise = |path: &Path| {
        let mut random = File::open("/dev/urandom").unwrap().take(32 * MIB);
        std::io::copy(&mut random, &mut File::options().write(true).open(path).unwrap()).unwrap();
    };
    let Some(device) = Loop::new(64 * MIB, &[], noise) else { return };
    both_refuse(&device, &device.path, "that no program signed");
    // What `create` is forced to lose it names.
    let made = run(&["create", &device.path, "--raw", "--force"]).done().out;
    assert!(made.contains("destroyed:     data at byte 0 that no program signed"), "{made}");
}

/// A qualification of this device that writes until it is stopped.
fn writing(device: &Loop) -> Child {
    let destroy = ["qualify", &device.path, "--destroy", name(&device.path), "--json"];
    let mut child = command(
        &[&destroy[..], &["--part", "fill", "--part", "latency", "--offer", "4M"]].concat(),
    );
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while content(device).iter().all(|byte| *byte == 0) {
        assert!(begun.elapsed() < Duration::from_mins(1), "it writes");
        assert!(child.try_wait().unwrap().is_none(), "it goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

fn signal(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn a_stopped_run_says_what_it_wrote_and_marks_the_disk_as_empty() {
    let Some(device) = Loop::in_memory(64 * MIB, &[]) else { return };
    let child = writing(&device);
    std::thread::sleep(Duration::from_secs(1));
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["is_interrupted"], true);
    assert!(json["written"][0]["end"].as_u64().unwrap() > 0, "{}", json["written"]);
    let stamp = b"wirespool qualify: scratch content, of no value\n";
    let after = content(&device);
    assert!(after.starts_with(stamp));
    assert!(after.get(after.len() - 4096..).unwrap().starts_with(stamp));
    run(&["qualify", &device.path, "--part", "fill", "--destroy", name(&device.path)]).measured();
    run(&["create", &device.path, "--raw"]).done();
}

#[test]
fn what_a_killed_run_left_on_a_disk_is_nothing_to_lose() {
    let Some(device) = Loop::in_memory(64 * MIB, &[]) else { return };
    let mut child = writing(&device);
    signal(&child, "-KILL");
    child.wait().unwrap();
    assert!(content(&device).iter().any(|byte| *byte != 0));
    run(&["qualify", &device.path, "--part", "fill", "--destroy", name(&device.path)]).measured();
}

#[test]
fn the_file_of_a_killed_run_is_removed_by_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let place = text(folder.path().into());
    let qualify = ["qualify", &place, "--size", "64M"];
    let mut child = command(&[&qualify[..], &["--part", "latency", "--offer", "1M"]].concat());
    let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    let begun = Instant::now();
    while files() == 0 {
        assert!(begun.elapsed() < Duration::from_mins(1), "the file is made");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_secs(1));
    // A run beside it leaves the file of this one alone.
    run(&[&qualify[..], &["--part", "fill"]].concat()).measured();
    assert_eq!(files(), 2, "its file, and the folder of its files");
    signal(&child, "-KILL");
    child.wait().unwrap();
    assert_eq!(files(), 2);
    let next = run(&[&qualify[..], &["--part", "fill"]].concat()).measured();
    assert!(next.err.contains("which a killed run had left"), "{next:?}");
    assert_eq!(files(), 0);
}
