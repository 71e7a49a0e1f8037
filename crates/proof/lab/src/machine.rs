//! One run of a case: QEMU, its disks, and what the guest says on its second serial line.
//!
//! The first line is the kernel's console and goes to a file. On the second the guest sends lines
//! of a word and its text: `say`, `host` (a request to QEMU, such as pulling a disk), and at the
//! end `pass`, `fail` or `lack`. No answer goes back: the guest watches what a request does.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use host::SystemClock;
use serde_json::{Value, json};
use units::Clock;

use crate::case::{Bus, Case};

pub(crate) const QEMU: &str = "qemu-system-x86_64";
/// The recorder's own memory and the file system with all programs are a third of it.
const MEMORY: &str = "1536";
const SECTOR_BYTES: u64 = 512;
const LINES_WAITING: usize = 64;

/// How a case ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// All that the script asked for was so.
    Pass,
    /// What was not.
    Fail(String),
    /// What the machine or the recorder lacks for this case.
    Lack(String),
}

/// What a run left.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) verdict: Verdict,
    /// What the guest said, for the report.
    pub(crate) notes: Vec<String>,
}

/// Files that a machine starts from and writes.
#[derive(Debug)]
pub(crate) struct Files<'a> {
    pub(crate) kernel: &'a Path,
    pub(crate) initramfs: &'a Path,
    /// Of this run: disks, logs, console.
    pub(crate) folder: &'a Path,
}

impl Files<'_> {
    fn disk(&self, index: usize) -> PathBuf {
        self.folder.join(format!("disk{index}.raw"))
    }

    /// The log of writes to a disk, in the form of dm-log-writes.
    pub(crate) fn log(&self, index: usize) -> PathBuf {
        self.folder.join(format!("disk{index}.log"))
    }

    pub(crate) fn console(&self) -> PathBuf {
        self.folder.join("console.txt")
    }

    /// What QEMU itself complains about.
    pub(crate) fn errors(&self) -> PathBuf {
        self.folder.join("qemu.txt")
    }

    fn monitor(&self) -> PathBuf {
        self.folder.join("monitor.socket")
    }
}

/// Starts the machine, waits for its verdict, ends it.
pub(crate) fn run(case: &Case, files: &Files<'_>) -> Result<Outcome> {
    for index in 0..case.disks {
        empty_file(&files.disk(index))?.set_len(case.disk_bytes)?;
        if case.is_logged {
            empty_file(&files.log(index))?;
        }
    }
    let errors = empty_file(&files.errors())?;
    let mut qemu = Command::new(QEMU);
    qemu.args(arguments(case, files)).stdin(Stdio::null());
    qemu.stdout(Stdio::piped()).stderr(errors);
    let mut child = qemu.spawn().context("cannot start QEMU")?;
    let lines = child.stdout.take().expect("the output is piped");
    let outcome = listen(case, files, lines, &mut child);
    // It may have ended by itself.
    drop(child.kill());
    child.wait()?;
    outcome
}

#[expect(clippy::disallowed_methods, reason = "a tool makes files")]
fn empty_file(path: &Path) -> Result<File> {
    File::create(path).with_context(|| format!("cannot create {}", path.display()))
}

fn arguments(case: &Case, files: &Files<'_>) -> Vec<String> {
    // Emulated in software: the same machine everywhere, with or without KVM.
    let fixed = "-nodefaults -no-user-config -display none -no-reboot -machine pc -cpu max -smp 2 \
                 -accel tcg,thread=multi";
    let mut arguments: Vec<String> = fixed.split_whitespace().map(str::to_owned).collect();
    let mut add = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
    add("-m", MEMORY.to_owned());
    add("-kernel", files.kernel.display().to_string());
    add("-initrd", files.initramfs.display().to_string());
    // A busy host may delay the first ticks, which the kernel would take for a broken timer.
    let line = format!("console=ttyS0 quiet panic=-1 no_timer_check lab.case={}", case.name);
    add("-append", line);
    add("-serial", format!("file:{}", files.console().display()));
    add("-serial", "stdio".to_owned());
    add("-qmp", format!("unix:{},server=on,wait=off", files.monitor().display()));
    if case.bus == Bus::Scsi {
        add("-device", "virtio-scsi-pci".to_owned());
    }
    for index in 0..case.disks {
        add("-blockdev", node(case, files, index).to_string());
        add("-device", device(case.bus, index).to_string());
    }
    arguments
}

/// A disk as the guest sees it.
fn device(bus: Bus, index: usize) -> Value {
    let (drive, id) = (format!("node{index}"), format!("disk{index}"));
    let (werror, rerror) = ("report", "report");
    match bus {
        Bus::Virtio => json!({
            "driver": "virtio-blk-pci", "drive": drive, "id": id,
            "werror": werror, "rerror": rerror, "write-cache": "on",
        }),
        Bus::Scsi => json!({
            "driver": "scsi-hd", "scsi-id": index, "drive": drive, "id": id,
            "werror": werror, "rerror": rerror, "write-cache": "on",
        }),
    }
}

/// A disk's file with what stands before it. The host's own cache is good enough for a disk that
/// lives as long as the machine: what survives a power cut is what the log says.
fn node(case: &Case, files: &Files<'_>, index: usize) -> Value {
    let cache = json!({"no-flush": true});
    let path = files.disk(index);
    let mut node = json!({"driver": "file", "filename": path, "cache": cache});
    let name = format!("disk{index}");
    let faults = case.faults.iter().filter(|fault| fault.disk == name);
    let errors: Vec<Value> = faults
        .map(|fault| {
            json!({
                "event": "none", "iotype": fault.operation, "errno": 5, "once": false,
                "sector": fault.offset_bytes / SECTOR_BYTES,
            })
        })
        .collect();
    if !errors.is_empty() {
        node = json!({"driver": "blkdebug", "image": node, "inject-error": errors});
    }
    if case.is_logged {
        let log = json!({"driver": "file", "filename": files.log(index), "cache": cache});
        node = json!({"driver": "blklogwrites", "file": node, "log": log});
    }
    json!({"driver": "raw", "node-name": format!("node{index}"), "file": node})
}

fn listen(
    case: &Case,
    files: &Files<'_>,
    lines: ChildStdout,
    child: &mut Child,
) -> Result<Outcome> {
    let (sender, receiver) = sync_channel(LINES_WAITING);
    thread::scope(|scope| {
        let reader = thread::Builder::new().name("guest".to_owned());
        reader.spawn_scoped(scope, move || {
            for line in BufReader::new(lines).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).trim().to_owned();
                // No listener is left: the verdict is there.
                if sender.send(line).is_err() {
                    break;
                }
            }
        })?;
        let outcome = converse(case, files, &receiver);
        drop(receiver);
        // Else the reader waits for a machine that has nothing more to say.
        drop(child.kill());
        outcome
    })
}

/// Takes the guest's lines until one is a verdict.
fn converse(case: &Case, files: &Files<'_>, lines: &Receiver<String>) -> Result<Outcome> {
    let mut notes = Vec::new();
    let mut monitor = None;
    let deadline_ns = SystemClock.boottime_ns() + case.seconds_ns();
    let verdict = loop {
        let left_ns = u64::try_from(deadline_ns - SystemClock.boottime_ns()).unwrap_or(0);
        let line = match lines.recv_timeout(Duration::from_nanos(left_ns)) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => {
                break Verdict::Fail(format!("no verdict within {} s", case.seconds));
            }
            Err(RecvTimeoutError::Disconnected) => {
                break Verdict::Fail("the machine ended without a verdict".to_owned());
            }
        };
        let (word, text) = line.split_once(' ').unwrap_or((&line, ""));
        match word {
            "say" => notes.push(text.to_owned()),
            "host" => ask(&mut monitor, (case, files), text)?,
            "pass" => break Verdict::Pass,
            "fail" => break Verdict::Fail(text.to_owned()),
            "lack" => break Verdict::Lack(text.to_owned()),
            _ => notes.push(format!("not understood: {line}")),
        }
    };
    Ok(Outcome { verdict, notes })
}

/// Passes a request to QEMU: `device_del disk3`, or `device_add disk3`.
fn ask(
    monitor: &mut Option<Monitor>,
    (case, files): (&Case, &Files<'_>),
    request: &str,
) -> Result<()> {
    let monitor = match monitor {
        Some(monitor) => monitor,
        None => monitor.insert(Monitor::connect(&files.monitor())?),
    };
    let (command, name) = request.split_once(' ').context("a request names a device")?;
    let index = name.strip_prefix("disk").and_then(|number| number.parse().ok());
    let index = index.filter(|index| *index < case.disks).context("there is no such disk")?;
    match command {
        "device_del" => monitor.execute(command, &json!({"id": name})),
        "device_add" => monitor.execute(command, &device(case.bus, index)),
        _ => bail!("the guest may not ask for {command}"),
    }
}

/// QEMU's machine protocol: lines of JSON, one answer to each command, events in between.
#[derive(Debug)]
struct Monitor {
    lines: BufReader<UnixStream>,
}

impl Monitor {
    fn connect(path: &Path) -> Result<Self> {
        let stream = UnixStream::connect(path).context("cannot reach QEMU's monitor")?;
        let mut monitor = Monitor { lines: BufReader::new(stream) };
        monitor.answer()?;
        monitor.execute("qmp_capabilities", &json!({}))?;
        Ok(monitor)
    }

    fn execute(&mut self, command: &str, arguments: &Value) -> Result<()> {
        let request = json!({"execute": command, "arguments": arguments});
        writeln!(self.lines.get_mut(), "{request}")?;
        loop {
            let answer = self.answer()?;
            if let Some(error) = answer.get("error") {
                anyhow::bail!("QEMU refuses {request}: {error}");
            }
            if answer.get("return").is_some() {
                return Ok(());
            }
        }
    }

    fn answer(&mut self) -> Result<Value> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        serde_json::from_str(&line).context("QEMU's monitor does not answer in JSON")
    }
}

/// The end of the console, for a case that failed.
pub(crate) fn last_lines(path: &Path, count: usize) -> Vec<String> {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines: Vec<String> = text.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.into_iter().rev().take(count).rev().collect()
}
