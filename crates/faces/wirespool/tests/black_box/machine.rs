//! Running the binary, and machines that are made for a test.

use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::Mutex;

use tempfile::TempDir;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_wirespool");
/// Set in a test that runs again in a namespace.
const INSIDE: &str = "WIRESPOOL_TEST_NAMESPACE";
pub(crate) const CAPTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/demo");

/// Two that look for a free loop device at once open the same one, and who comes too late still has
/// it open when the other one is measured.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A folder on a disk: that of the build, because temporary files may be in memory.
pub(crate) fn folder_on_disk() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// The same on a block device; `None`, with the reason, where the file system has none of its own,
/// as the root of a container has not.
pub(crate) fn folder_on_block_device() -> Option<TempDir> {
    const TMPFS: i64 = 0x0102_1994;
    let folder = folder_on_disk();
    let is_without = [OVERLAYFS, TMPFS].contains(&file_system(folder.path()));
    if is_without {
        println!("not run: the folder of the build is on no block device");
    }
    Some(folder).filter(|_| !is_without)
}

/// The root of most containers.
const OVERLAYFS: i64 = 0x794c_7630;

/// Whether a file lies on overlayfs, which hands out files of other file systems.
pub(crate) fn is_on_overlayfs(path: &Path) -> bool {
    file_system(path) == OVERLAYFS
}

/// Its number in linux/magic.h.
fn file_system(path: &Path) -> i64 {
    rustix::fs::statfs(path).unwrap().f_type
}

/// What a run said.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn new(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let err = text(&output.stderr);
        // Where root has recorded once, whoever else reads a volume is told that root's recorders
        // could not be asked: true there, and no matter of the test.
        let is_root_s = |line: &str| {
            line.contains("cannot ask /run/wirespool/") && line.contains("Permission denied")
        };
        let err = err.split_inclusive('\n').filter(|line| !is_root_s(line)).collect();
        Self { code: output.status.code(), out: text(&output.stdout), err }
    }

    /// Exit code 3 and exactly one line, which contains `words`.
    #[track_caller]
    pub(crate) fn is_refused(&self, words: &str) {
        self.fails_with(3, words);
    }

    #[track_caller]
    pub(crate) fn fails_with(&self, code: i32, words: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.err.lines().count(), 1, "one line: {self:?}");
        assert!(self.err.starts_with("wirespool: "), "{self:?}");
        assert!(self.err.contains(words), "{words:?} in {self:?}");
    }

    #[track_caller]
    pub(crate) fn done(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// It has measured a disk. What is over in a moment, a cache may have taken: then the verdict
    /// is that there is none.
    #[track_caller]
    pub(crate) fn measured(self) -> Self {
        let is_doubted = ["cannot judge", "\"doubts\": [\n"].iter().any(|it| self.out.contains(it));
        assert_eq!(self.code, Some(if is_doubted { 5 } else { 0 }), "{self:?}");
        self
    }
}

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(arguments).stdin(Stdio::null());
    command
}

pub(crate) fn run(arguments: &[&str]) -> Ran {
    Ran::new(&command(arguments).output().expect("the binary runs"))
}

/// A recorder of what its standard input gets, and that input. It hears every signal: where tests
/// run in the background, some may be ignored.
pub(crate) fn recorder(volume: &str, index: &str, more: &[&str]) -> (Child, ChildStdin) {
    let record = ["record", volume, "--read", "-", "--index-dir", index];
    let mut recorder = Command::new("env");
    recorder.arg("--default-signal").arg(BINARY).args(record).args(more);
    recorder.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut recorder = recorder.spawn().expect("the binary runs");
    let input = recorder.stdin.take().expect("it is a pipe");
    (recorder, input)
}

/// Runs it as a user with no rights at all; `None` with a printed reason where that cannot be done.
pub(crate) fn run_unprivileged(folder: &Path, arguments: &[&str]) -> Option<Ran> {
    if !is_root() {
        println!("not run: needs root to become another user");
        return None;
    }
    // The build folder may be closed to others. Copied by another process: a test beside this one
    // that starts a program would inherit our writing file for a moment, and then it is busy.
    let binary = folder.join("wirespool");
    let copied = Command::new("cp").arg(BINARY).arg(&binary).status();
    assert!(copied.expect("cp runs").success(), "the binary can be copied");
    open_to_all(folder);
    let user = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let mut command = Command::new("setpriv");
    command.args(user).arg(&binary).args(arguments).stdin(Stdio::null());
    command.env("HOME", "/nonexistent").env("TMPDIR", "/tmp").current_dir(folder);
    match command.output() {
        Ok(output) => Some(Ran::new(&output)),
        Err(error) => {
            println!("not run: setpriv: {error}");
            None
        }
    }
}

pub(crate) fn open_to_all(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, mode).expect("our own folder");
}

/// A file that only its owner may read.
pub(crate) fn write_key(path: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).expect("our own folder");
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(path, mode).expect("our own file");
}

pub(crate) fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().expect("id runs");
    id.stdout == b"0\n"
}

/// Runs a test again in a network namespace that a script prepared; false where that is done, or
/// cannot be.
pub(crate) fn enter(prepare: &str, test: &str) -> bool {
    if std::env::var(INSIDE).is_ok() {
        return true;
    }
    if !is_root() {
        println!("not run: needs root for a namespace with links");
        return false;
    }
    let script = format!("{prepare}\nexec \"$@\"");
    let own = std::env::current_exe().unwrap();
    let unshare = ["--net", "--mount", "sh", "-c", &script, "sh"];
    let unshare = |arguments: &[&std::ffi::OsStr]| {
        let mut command = Command::new("unshare");
        command.args(unshare).args(arguments).env(INSIDE, "1").stdin(Stdio::null());
        command.output().unwrap()
    };
    let prepared = Ran::new(&unshare(&["true".as_ref()]));
    if prepared.code != Some(0) {
        let reason = prepared.err.lines().next().unwrap_or("unshare fails");
        println!("not run: no namespace with links: {reason}");
        return false;
    }
    let how = ["--exact", "--include-ignored", "--nocapture"].map(std::ffi::OsStr::new);
    let output = unshare(&[&[own.as_os_str()], &how[..], &[test.as_ref()]].concat());
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said} {output:?}");
    // What was not run inside, and why, is said outside.
    let is_runner_s = |line: &str| ["running ", "test "].iter().any(|it| line.starts_with(it));
    said.lines().filter(|line| !line.is_empty() && !is_runner_s(line)).for_each(|line| {
        println!("{line}");
    });
    false
}

/// The verbs that a help lists: in families, or in one list.
pub(crate) fn verbs_of(help: &str) -> Vec<String> {
    let headings = ["\nRecord packets:\n", "Commands:\n"];
    let list = headings.iter().find_map(|heading| Some(help.split_once(heading)?.1));
    let list = list.and_then(|list| Some(list.split_once("\nOptions:")?.0)).unwrap_or_default();
    // Behind two blanks; what a description goes on with has more.
    let verbs = list.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    // A verb with verbs of its own may take arguments instead, which are listed behind them.
    let verbs = verbs.filter(|verb| !verb.is_empty() && !verb.starts_with(['<', '[']));
    verbs.filter(|verb| *verb != "help").map(str::to_owned).collect()
}

/// A link in a namespace of its own: what is sent on `sender` arrives at `taker`.
pub(crate) const PAIR: &str = "ip link set lo up; ip link add sender type veth peer name taker; \
                               ip link set sender up; ip link set taker up";

/// A small volume in a folder of its own, with the captures of the demo recorded if wished.
pub(crate) struct Volume {
    pub(crate) folder: TempDir,
    pub(crate) path: String,
    pub(crate) index: String,
}

impl Volume {
    /// So many names of the same captures: one name is not taken twice.
    pub(crate) fn named_often(&self, captures: &str, times: usize) -> Vec<String> {
        let captures = std::fs::canonicalize(captures).unwrap();
        let names: Vec<String> =
            (0..times).map(|time| self.file(&format!("again-{time}"))).collect();
        for name in names.iter().filter(|name| !Path::new(name).exists()) {
            std::os::unix::fs::symlink(&captures, name).unwrap();
        }
        names
    }

    pub(crate) fn empty() -> Self {
        Self::of_size("64M")
    }

    pub(crate) fn of_size(size: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = text(folder.path().join("volume"));
        let index = text(folder.path().join("index"));
        run(&["create", &path, "--size", size, "--piece", "256K", "--sparse"]).done();
        Self { folder, path, index }
    }

    pub(crate) fn recorded() -> Self {
        let volume = Self::empty();
        volume.record(&["--read", CAPTURES, "--name", "captures"]).done();
        volume
    }

    pub(crate) fn record(&self, arguments: &[&str]) -> Ran {
        let fixed = ["record", &self.path, "--pool", "4M", "--index-dir", &self.index];
        run(&[&fixed, arguments].concat())
    }

    pub(crate) fn file(&self, name: &str) -> String {
        text(self.folder.path().join(name))
    }
}

pub(crate) fn text(path: PathBuf) -> String {
    path.into_os_string().into_string().expect("the temporary folder has a plain name")
}

/// Python with these packages, in an environment of the tests that is kept under this name; `None`
/// with a printed reason.
pub(crate) fn python(name: &str, packages: &[&str]) -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from)?;
    let folder = home.join(".cache/wirespool-tests").join(format!("python-{name}"));
    let python = folder.join("bin/python");
    let has = || {
        let import = format!("import {}", packages.join(", "));
        let ran = Command::new(&python).args(["-c", &import]).output();
        ran.is_ok_and(|output| output.status.success())
    };
    if !has() {
        let script = "python3 -m venv \"$1\" && \"$1/bin/pip\" -q install \"${@:2}\"";
        let mut install = Command::new("timeout");
        install.args(["300", "bash", "-c", script, "bash"]).arg(&folder).args(packages);
        drop(install.output());
    }
    if has() {
        return Some(python);
    }
    println!("not run: python3 -m venv and pip do not install {} here", packages.join(", "));
    None
}

/// A loop device over a file of zeros, or what `prepare` makes of it; detached in the end.
pub(crate) struct Loop {
    pub(crate) path: String,
    file: tempfile::NamedTempFile,
    _attached: Attached,
}

impl Loop {
    /// `None` with a printed reason where there are no loop devices.
    pub(crate) fn new(size_bytes: u64, options: &[&str], prepare: impl Fn(&Path)) -> Option<Self> {
        Self::over(&std::env::temp_dir(), size_bytes, options, prepare)
    }

    /// Over a file in memory: no disk that others use makes it wait.
    pub(crate) fn in_memory(size_bytes: u64, options: &[&str]) -> Option<Self> {
        Self::over(Path::new("/dev/shm"), size_bytes, options, |_| {})
    }

    fn over(
        folder: &Path,
        size_bytes: u64,
        options: &[&str],
        prepare: impl Fn(&Path),
    ) -> Option<Self> {
        if !is_root() {
            println!("not run: needs root for loop devices");
            return None;
        }
        let file = tempfile::NamedTempFile::new_in(folder).unwrap();
        file.as_file().set_len(size_bytes).unwrap();
        prepare(file.path());
        let attached = Attached::over(file.path(), options)?;
        Some(Self { path: attached.path.clone(), file, _attached: attached })
    }

    /// Bytes that the file below it takes.
    pub(crate) fn allocated_bytes(&self) -> u64 {
        use std::os::unix::fs::MetadataExt;
        self.file.as_file().metadata().unwrap().blocks() * 512
    }
}

/// A loop device over the file of a user; detached in the end.
pub(crate) struct Attached {
    pub(crate) path: String,
}

impl Attached {
    /// `None` with a printed reason where there are no loop devices.
    pub(crate) fn over(file: &Path, options: &[&str]) -> Option<Self> {
        if !is_root() {
            println!("not run: needs root for loop devices");
            return None;
        }
        let _turn = stage::lock(&ONE_AT_A_TIME);
        let mut losetup = Command::new("losetup");
        losetup.args(["--find", "--show"]).args(options).arg(file);
        let output = losetup.output().expect("losetup runs");
        if !output.status.success() {
            println!("not run: no loop device: {}", String::from_utf8_lossy(&output.stderr));
            return None;
        }
        let path = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        Some(Self { path })
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let detached = Command::new("losetup").args(["--detach", &self.path]).status();
        assert!(detached.is_ok_and(|status| status.success()), "{} is detached", self.path);
    }
}

/// A group of processes whose writes to some devices, or reads, the kernel throttles; gone in the
/// end.
pub(crate) struct Throttle {
    group: PathBuf,
    limit: PathBuf,
    /// Numbers of the devices.
    devices: Vec<String>,
}

impl Throttle {
    /// `None` with a printed reason where there is no such controller.
    pub(crate) fn new(devices: &[&Loop], bytes_per_s: u64) -> Option<Self> {
        Self::of("write", devices, bytes_per_s)
    }

    /// The same of what is read.
    pub(crate) fn of_reads(devices: &[&Loop], bytes_per_s: u64) -> Option<Self> {
        Self::of("read", devices, bytes_per_s)
    }

    fn of(what: &str, devices: &[&Loop], bytes_per_s: u64) -> Option<Self> {
        let controller = Path::new("/sys/fs/cgroup/blkio");
        let names: Vec<_> =
            devices.iter().map(|device| device.path.trim_start_matches("/dev/")).collect();
        let group = controller.join(format!("wirespool-{}-{}", std::process::id(), names.concat()));
        let limit = group.join(format!("blkio.throttle.{what}_bps_device"));
        if std::fs::create_dir(&group).is_err() || !limit.exists() {
            println!("not run: no blkio controller of cgroup v1 at {}", controller.display());
            return None;
        }
        let numbers = |name: &&str| {
            let numbers = std::fs::read_to_string(format!("/sys/block/{name}/dev")).unwrap();
            numbers.trim().to_owned()
        };
        let throttle = Self { group, limit, devices: names.iter().map(numbers).collect() };
        throttle.set(bytes_per_s);
        Some(throttle)
    }

    /// So much for each device; 0 for no limit.
    pub(crate) fn set(&self, bytes_per_s: u64) {
        for device in &self.devices {
            std::fs::write(&self.limit, format!("{device} {bytes_per_s}")).unwrap();
        }
    }

    /// A command of ours within the group.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command.args(self.entering()).arg(BINARY).args(arguments).stdin(Stdio::null());
        command
    }

    /// Arguments of a shell that enters the group and becomes the program which follows.
    pub(crate) fn entering(&self) -> [&str; 3] {
        ["-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"", self.group.to_str().unwrap()]
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        drop(std::fs::remove_dir(&self.group));
    }
}

/// Something mounted on a folder; unmounted in the end.
pub(crate) struct Mounted {
    pub(crate) folder: TempDir,
}

impl Mounted {
    /// `None` with a printed reason where mounting is not allowed.
    pub(crate) fn new(arguments: &[&str]) -> Option<Self> {
        if !is_root() {
            println!("not run: needs root for mounting");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let status = Command::new("mount").args(arguments).arg(folder.path()).status();
        if !status.is_ok_and(|status| status.success()) {
            println!("not run: mount {} failed", arguments.join(" "));
            return None;
        }
        Some(Self { folder })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Who looks through all disks may have it open for a moment.
        let is_unmounted = || {
            let status = Command::new("umount").arg(self.folder.path()).status();
            status.is_ok_and(|status| status.success())
        };
        let mut tries = 0..50;
        while !is_unmounted() {
            assert!(tries.next().is_some(), "{} is unmounted", self.folder.path().display());
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
}

pub(crate) fn make_ext4(path: &Path) {
    let status = Command::new("mkfs.ext4").args(["-q", "-F"]).arg(path).status();
    assert!(status.expect("mkfs.ext4 runs").success());
}
