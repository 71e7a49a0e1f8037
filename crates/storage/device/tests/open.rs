//! Members on real files and loop devices: every way of driving them, and every refusal.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(clippy::indexing_slicing, reason = "helpers of tests")]
#![expect(clippy::as_conversions, reason = "helpers of tests")]
#![expect(clippy::print_stdout, reason = "helpers of tests")]

mod common;

use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use common::{Loop, run};
use device::{CreateOptions, Device, Error, Options, Pool, create_file, discard, open, open_read};

const MIB: u64 = 1 << 20;

fn sparse(path: &Path, size_bytes: u64) {
    let options = CreateOptions { size_bytes, sparse: true, overwrite: false };
    create_file(path, &options, &mut |_, _| ControlFlow::Continue(())).unwrap();
}

/// Reaps until nothing is in flight; the tokens in order of completion.
fn reap_all(device: &mut dyn Device) -> Vec<u64> {
    let mut completions = Vec::new();
    while device.in_flight() > 0 {
        device.reap(Some(Duration::from_secs(10)), &mut completions);
    }
    completions
        .into_iter()
        .map(|completion| {
            completion.result.unwrap();
            assert!(completion.latency_ns > 0);
            completion.token
        })
        .collect()
}

/// Writes many buffers in flight, flushes, reads everything back by the writer and by a reader.
fn check_round_trip(path: &Path, options: &Options) -> Vec<String> {
    let pool = Pool::new(6, 256 << 10).unwrap();
    let mut device = open(path, options).unwrap();
    let size = pool.buffer_size();
    let expected = |index: u64| u8::try_from(index * 37 % 251).unwrap();
    for index in 0..16 {
        let mut buffer = pool.take_timeout(Duration::from_millis(1)).unwrap_or_else(|| {
            assert!(!reap_all(device.as_mut()).is_empty());
            pool.take().unwrap()
        });
        buffer.fill(expected(index));
        device.submit_write(index, index * size as u64, buffer.freeze(), size);
    }
    reap_all(device.as_mut());
    assert_eq!(pool.free_count(), pool.count());
    device.submit_flush(99);
    assert_eq!(reap_all(device.as_mut()), [99]);
    device.write_at(16 * size as u64, &vec![0xee; 8192]).unwrap();
    device.flush().unwrap();

    let mut completions = Vec::new();
    device.submit_read(7, 3 * size as u64, 2 * size);
    while device.in_flight() > 0 {
        device.reap(Some(Duration::from_secs(10)), &mut completions);
    }
    let done = completions.pop().filter(|done| done.token == 7 && done.result.is_ok()).unwrap();
    let read = done.read.unwrap();
    assert_eq!(read.len(), 2 * size);
    let rows = read.chunks(size).zip(3..);
    assert!({ rows }.all(|(row, index)| row.iter().all(|&byte| byte == expected(index))));

    let reader = open_read(path).unwrap();
    assert_eq!(reader.size_bytes(), device.size_bytes());
    let mut bytes = vec![0; size + 1];
    for index in 0..16 {
        for misalignment in [0, 1] {
            let into = &mut bytes[misalignment..][..size];
            device.read_at(index * size as u64, into).unwrap();
            assert!(into.iter().all(|&byte| byte == expected(index)), "{index}");
            into.fill(0);
            reader.read_at(index * size as u64, into).unwrap();
            assert!(into.iter().all(|&byte| byte == expected(index)), "{index}");
        }
    }
    reader.read_at(16 * size as u64 + 4096, &mut bytes[1..4097]).unwrap();
    assert!(bytes[1..4097].iter().all(|&byte| byte == 0xee));
    device.notes().to_vec()
}

#[test]
fn every_way_of_driving_gives_back_what_was_written() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let forced = [
        Options::default(),
        Options { without_uring: true, ..Options::default() },
        Options { without_direct: true, ..Options::default() },
        Options { without_direct: true, without_uring: true, ..Options::default() },
    ];
    for (number, options) in forced.into_iter().enumerate() {
        let path = directory.path().join(number.to_string());
        sparse(&path, 8 * MIB);
        check_round_trip(&path, &options);
    }
}

#[test]
fn memory_file_systems_work_with_or_without_direct_io() {
    let Ok(directory) = tempfile::tempdir_in("/dev/shm") else {
        println!("not run: no /dev/shm");
        return;
    };
    let path = directory.path().join("member");
    sparse(&path, 8 * MIB);
    let notes = check_round_trip(&path, &Options::default());
    println!("notes on tmpfs: {notes:?}");
}

#[test]
fn block_devices_are_driven_like_files_and_discarded() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = directory.path().join("backing");
    sparse(&file, 8 * MIB);
    let Some(device) = Loop::attach(&file, &[]) else { return };
    check_round_trip(&device.0, &Options::default());
    assert!(discard(&device.0).unwrap());
    let mut row = [1; 4096];
    open_read(&device.0).unwrap().read_at(0, &mut row).unwrap();
    assert_eq!(row, [0; 4096]);
}

/// Discards a range; what became of it.
fn discard_range(device: &mut dyn Device, offset: u64, len: u64) -> Result<(), Error> {
    device.submit_discard(5, offset, len);
    let mut completions = Vec::new();
    while device.in_flight() > 0 {
        device.reap(Some(Duration::from_secs(10)), &mut completions);
    }
    let completion = completions.pop().unwrap();
    assert_eq!((completion.token, completions.len()), (5, 0));
    completion.result
}

#[test]
fn a_range_is_discarded_every_way_and_a_file_is_left_alone() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = directory.path().join("backing");
    sparse(&file, 8 * MIB);
    let threads = Options { without_uring: true, ..Options::default() };
    let ways = [Options::default(), threads];
    let row_at = |path: &Path, offset| {
        let mut row = [1; 4096];
        open_read(path).unwrap().read_at(offset, &mut row).unwrap();
        row[0]
    };
    for options in &ways {
        let mut device = open(&file, options).unwrap();
        device.write_at(0, &[7; 4096]).unwrap();
        assert!(discard_range(device.as_mut(), 0, MIB).is_err());
        // Nothing is latched.
        device.write_at(4096, &[7; 4096]).unwrap();
        device.flush().unwrap();
        assert_eq!(row_at(&file, 0), 7);
    }
    let Some(disk) = Loop::attach(&file, &[]) else { return };
    for options in &ways {
        let mut device = open(&disk.0, options).unwrap();
        for offset in [MIB - 4096, MIB, 2 * MIB - 4096, 2 * MIB] {
            device.write_at(offset, &[9; 4096]).unwrap();
        }
        discard_range(device.as_mut(), MIB, MIB).unwrap();
        let rows = [MIB - 4096, MIB, 2 * MIB - 4096, 2 * MIB].map(|at| row_at(&disk.0, at));
        assert_eq!(rows, [9, 0, 0, 9]);
    }
}

#[test]
fn logical_blocks_of_4096_bytes_work() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = directory.path().join("backing");
    sparse(&file, 8 * MIB);
    let Some(device) = Loop::attach(&file, &["--sector-size", "4096"]) else { return };
    check_round_trip(&device.0, &Options::default());
}

#[test]
fn a_second_writer_is_refused_and_a_reader_is_not() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("member");
    sparse(&path, MIB);
    let first = open(&path, &Options::default()).unwrap();
    assert_eq!(open(&path, &Options::default()).err(), Some(Error::InUse { path: path.clone() }));
    open_read(&path).unwrap();
    let replace = CreateOptions { size_bytes: MIB, sparse: true, overwrite: true };
    let refused = create_file(&path, &replace, &mut |_, _| ControlFlow::Continue(()));
    assert_eq!(refused, Err(Error::InUse { path: path.clone() }));
    drop(first);
    open(&path, &Options::default()).unwrap();
    if let Some(device) = Loop::attach(&path, &[]) {
        let _first = open(&device.0, &Options::default()).unwrap();
        let in_use = Some(Error::InUse { path: device.0.clone() });
        assert_eq!(open(&device.0, &Options::default()).err(), in_use);
    }
}

#[test]
fn a_writer_behind_another_name_of_the_storage_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("member");
    sparse(&path, 8 * MIB);
    let half =
        |offset: &'static str| Loop::attach(&path, &["--offset", offset, "--sizelimit", "4194304"]);
    let (Some(whole), Some(first), Some(second)) =
        (Loop::attach(&path, &[]), half("0"), half("4194304"))
    else {
        return;
    };
    let options = Options::default();
    let is_refused = |path: &Path| matches!(open(path, &options), Err(Error::BackingInUse { .. }));
    let writer = open(&path, &options).unwrap();
    assert!(is_refused(&whole.0) && is_refused(&second.0));
    assert!(device::is_open_for_writing(&whole.0) && open_read(&whole.0).is_ok());
    drop(writer);
    let writers = [&first, &second].map(|half| open(&half.0, &options).unwrap());
    assert!(is_refused(&whole.0) && matches!(open(&path, &options), Err(Error::InUse { .. })));
    drop(writers);
    assert!(open(&whole.0, &options).is_ok() && !device::is_open_for_writing(&path));
}

#[test]
fn what_is_no_member_is_refused_with_its_reason() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let check = |path: &Path, expected: Error| {
        assert_eq!(open(path, &Options::default()).err(), Some(expected));
    };
    let path = directory.path().join("absent");
    check(&path, Error::NotFound { path: path.clone() });
    let path = directory.path().to_path_buf();
    check(&path, Error::NotAFileOrBlockDevice { path: path.clone() });
    let path = Path::new("/dev/null").to_path_buf();
    check(&path, Error::NotAFileOrBlockDevice { path: path.clone() });
    let path = directory.path().join("small");
    std::fs::write(&path, [0; 4095]).unwrap();
    check(&path, Error::TooSmall { path: path.clone(), size_bytes: 0, minimum_bytes: 4096 });
}

/// In a process of its own: threads have capabilities, and any of them may open the file.
#[test]
fn a_file_without_permission_is_refused() {
    const VARIABLE: &str = "DEVICE_TEST_FORBIDDEN";
    if let Ok(path) = std::env::var(VARIABLE) {
        let path = Path::new(&path).to_path_buf();
        // Root passes every permission, unless it gives up the capability to.
        let mut capabilities = rustix::thread::capabilities(None).unwrap();
        capabilities.effective -= rustix::thread::CapabilitySet::DAC_OVERRIDE;
        rustix::thread::set_capabilities(None, capabilities).unwrap();
        assert_eq!(open(&path, &Options::default()).err(), Some(Error::PermissionDenied { path }));
        return;
    }
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("member");
    sparse(&path, MIB);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_file_without_permission_is_refused"])
        .env(VARIABLE, &path)
        .output()
        .unwrap();
    assert!(child.status.success(), "{child:?}");
}

/// As after a failed flush: the cache has what the medium has not, and it will not be written.
#[test]
#[expect(clippy::disallowed_methods, reason = "it looks through the page cache")]
fn who_opens_without_direct_io_reads_what_the_medium_has() {
    use std::os::unix::fs::FileExt;
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = directory.path().join("backing");
    sparse(&file, MIB);
    let backing = std::fs::File::options().read(true).write(true).open(&file).unwrap();
    backing.write_all_at(&[1; 4096], 8192).unwrap();
    let Some(device) = Loop::attach(&file, &[]) else { return };
    // It keeps the cache of the device from being forgotten with its last close.
    let reader = std::fs::File::open(&device.0).unwrap();
    let mut row = [0; 4096];
    reader.read_exact_at(&mut row, 8192).unwrap();
    backing.write_all_at(&[2; 4096], 8192).unwrap();
    reader.read_exact_at(&mut row, 8192).unwrap();
    assert_eq!(row[0], 1, "the cache is believed");
    let buffered = Options { without_direct: true, ..Options::default() };
    open(&device.0, &buffered).unwrap().read_at(8192, &mut row).unwrap();
    assert_eq!(row[0], 2);
}

#[test]
fn a_read_only_device_is_refused() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = directory.path().join("backing");
    sparse(&file, MIB);
    let Some(device) = Loop::attach(&file, &["--read-only"]) else { return };
    let expected = Some(Error::ReadOnly { path: device.0.clone() });
    assert_eq!(open(&device.0, &Options::default()).err(), expected);
    open_read(&device.0).unwrap();
}

#[test]
fn a_mounted_device_is_refused_with_the_place() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (file, place) = (directory.path().join("backing"), directory.path().join("place"));
    sparse(&file, 16 * MIB);
    std::fs::create_dir(&place).unwrap();
    let Some(device) = Loop::attach(&file, &[]) else { return };
    let (node, mount_point) = (device.0.to_str().unwrap(), place.to_str().unwrap());
    if !run("mkfs.ext4", &["-q", node]) || !run("mount", &[node, mount_point]) {
        return;
    }
    let opened = open(&device.0, &Options::default()).err();
    assert!(run("umount", &[mount_point]));
    let path = device.0.clone();
    assert_eq!(opened, Some(Error::Mounted { path, mount_point: place }));
}

#[test]
fn a_file_is_created_completely_with_progress() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("member");
    let options = CreateOptions { size_bytes: 5 * MIB + 4096, sparse: false, overwrite: false };
    let mut seen = Vec::new();
    create_file(&path, &options, &mut |done, total| {
        assert_eq!(total, options.size_bytes);
        seen.push(done);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(seen.is_sorted() && seen.last() == Some(&options.size_bytes), "{seen:?}");
    assert_eq!(std::fs::read(&path).unwrap(), vec![0; 5 * 1024 * 1024 + 4096]);
    let again = create_file(&path, &options, &mut |_, _| ControlFlow::Continue(()));
    assert_eq!(again, Err(Error::Exists { path: path.clone() }));
    std::fs::write(&path, b"old").unwrap();
    let replace = CreateOptions { overwrite: true, ..options };
    create_file(&path, &replace, &mut |_, _| ControlFlow::Continue(())).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), options.size_bytes);
}

#[test]
fn an_interrupted_file_is_removed() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("member");
    let options = CreateOptions { size_bytes: 64 * MIB, sparse: false, overwrite: false };
    let interrupted = create_file(&path, &options, &mut |_, _| ControlFlow::Break(()));
    assert_eq!(interrupted, Err(Error::Interrupted));
    assert!(!path.exists());
}

#[test]
fn a_file_larger_than_its_disk_is_refused_and_removed() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("member");
    let options = CreateOptions { size_bytes: 1 << 50, sparse: false, overwrite: false };
    let error = create_file(&path, &options, &mut |_, _| ControlFlow::Continue(())).unwrap_err();
    assert!(matches!(error, Error::Path { operation: "reserve space for", .. }), "{error}");
    assert!(!path.exists());
}

#[test]
fn a_write_beyond_the_space_fails_and_latches_every_way() {
    let Ok(directory) = tempfile::tempdir_in("/dev/shm") else {
        println!("not run: no /dev/shm");
        return;
    };
    let place = directory.path().join("place");
    std::fs::create_dir(&place).unwrap();
    let mount_point = place.to_str().unwrap();
    if !run("mount", &["-t", "tmpfs", "-o", "size=1m", "tmpfs", mount_point]) {
        return;
    }
    for without_uring in [false, true] {
        let path = place.join("member");
        let options = CreateOptions { size_bytes: 4 * MIB, sparse: true, overwrite: true };
        create_file(&path, &options, &mut |_, _| ControlFlow::Continue(())).unwrap();
        let mut device = open(&path, &Options { without_uring, ..Options::default() }).unwrap();
        let shared = Pool::new(1, 2 << 20).unwrap().take().unwrap().freeze();
        device.submit_write(1, 0, shared.clone(), 2 << 20);
        let mut completions = Vec::new();
        device.reap(Some(Duration::from_secs(10)), &mut completions);
        device.submit_write(2, 0, shared, 4096);
        device.reap(Some(Duration::from_secs(10)), &mut completions);
        let [first, second] = completions.as_slice() else { panic!("{completions:?}") };
        assert!(
            matches!(first.result, Err(Error::Io { operation: "write", errno: libc::ENOSPC, .. })),
            "{first:?}"
        );
        assert!(matches!(second.result, Err(Error::Latched { .. })), "{second:?}");
        assert!(matches!(device.flush(), Err(Error::Latched { .. })));
        assert!(matches!(device.write_at(0, &[0; 4096]), Err(Error::Latched { .. })));
        device.read_at(0, &mut [0; 4096]).unwrap();
        drop(device);
        std::fs::remove_file(&path).unwrap();
    }
    assert!(run("umount", &[mount_point]));
}

#[test]
fn nothing_is_durable_in_a_file_without_a_name() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let [path, renamed] = ["member", "renamed"].map(|name| directory.path().join(name));
    for without_uring in [false, true] {
        sparse(&path, MIB);
        let mut device = open(&path, &Options { without_uring, ..Options::default() }).unwrap();
        let flushed = |device: &mut dyn Device| {
            let mut completions = Vec::new();
            device.submit_flush(1);
            device.reap(Some(Duration::from_secs(10)), &mut completions);
            completions.pop().unwrap().result
        };
        assert_eq!(flushed(&mut *device), Ok(()));
        std::fs::rename(&path, &renamed).unwrap();
        assert_eq!((flushed(&mut *device), device.flush()), (Ok(()), Ok(())), "it has another");
        std::fs::remove_file(&renamed).unwrap();
        assert_eq!(flushed(&mut *device), Err(Error::Removed));
        assert!(matches!(device.flush(), Err(Error::Latched { .. })));
    }
}

#[test]
fn buffers_are_held_until_a_dropped_device_has_written_them() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for without_uring in [false, true] {
        let path = directory.path().join(format!("member-{without_uring}"));
        sparse(&path, 8 * MIB);
        let pool = Pool::new(4, 2 << 20).unwrap();
        let options = Options { without_uring, ..Options::default() };
        let mut device = open(&path, &options).unwrap();
        let buffers: Vec<_> = std::iter::from_fn(|| pool.take()).collect();
        for (token, mut buffer) in (0..).zip(buffers) {
            buffer.fill(7);
            device.submit_write(token, token * 2 * MIB, buffer.freeze(), 2 << 20);
        }
        drop(device);
        assert_eq!(pool.free_count(), 4);
        assert!(std::fs::read(&path).unwrap().iter().all(|&byte| byte == 7));
    }
}

#[test]
#[should_panic(expected = "is a multiple of 4096")]
fn an_unaligned_offset_is_a_programming_error() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("member");
    sparse(&path, MIB);
    drop(open(&path, &Options::default()).unwrap().write_at(512, &[0; 4096]));
}
