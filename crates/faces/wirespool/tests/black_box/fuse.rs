//! A file system of one file that hangs on command: linux/fuse.h, version 7.31, by hand. Who
//! waits for it can be killed: a request that is interrupted is given up.

#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

/// Operations that may hang.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hang {
    /// Looking the file up, and what it is like.
    Look,
    Open,
    Read,
    /// Writing and making durable.
    Write,
}

const ALL: [Hang; 4] = [Hang::Look, Hang::Open, Hang::Read, Hang::Write];

/// The name of the file.
const NAME: &str = "disk";
const ROOT: u64 = 1;
const DISK: u64 = 2;
const WRITE_MAX: usize = 1 << 20;

/// The file system, mounted until the process ends: it is for a mount namespace of the test's own.
pub(crate) struct Hanging {
    state: Arc<Mutex<State>>,
}

struct State {
    device: File,
    backing: File,
    size: u64,
    hangs: Vec<Hang>,
    /// These are answered with an error instead.
    fails: Vec<Hang>,
    /// Requests that wait for their answer.
    held: VecDeque<Vec<u8>>,
}

impl Hanging {
    /// Mounts it over the folder of `path`, with the content of what lies there; `None` with a
    /// printed reason where that cannot be.
    pub(crate) fn over(path: &Path) -> Option<Self> {
        let folder = path.parent().unwrap();
        let backing = File::options().read(true).write(true).open(path).unwrap();
        let size = backing.metadata().unwrap().len();
        let device = match File::options().read(true).write(true).open("/dev/fuse") {
            Ok(device) => device,
            Err(error) => {
                println!("not run: /dev/fuse: {error}");
                return None;
            }
        };
        let mut mount = Command::new("mount");
        // It is the standard input of the one that mounts.
        let options = "fd=0,rootmode=40000,user_id=0,group_id=0,allow_other";
        mount.args(["-i", "-t", "fuse", "-o", options, "hanging"]).arg(folder);
        let mounted = mount.stdin(device.try_clone().unwrap()).status();
        if !mounted.is_ok_and(|status| status.success()) {
            println!("not run: no file system by /dev/fuse can be mounted");
            return None;
        }
        let requests = device.try_clone().unwrap();
        let (hangs, fails, held) = (Vec::new(), Vec::new(), VecDeque::new());
        let state = State { device, backing, size, hangs, fails, held };
        let state = Arc::new(Mutex::new(state));
        let own = Arc::clone(&state);
        std::thread::Builder::new().spawn(move || serve(requests, &own)).unwrap();
        Some(Self { state })
    }

    /// These operations get no answer from now on.
    pub(crate) fn hang(&self, hangs: &[Hang]) {
        self.state.lock().unwrap().hangs = hangs.to_vec();
    }

    /// These operations fail from now on, and no other ones.
    pub(crate) fn fail(&self, fails: &[Hang]) {
        self.state.lock().unwrap().fails = fails.to_vec();
    }

    pub(crate) fn hang_all(&self) {
        self.hang(&ALL);
    }

    /// All of them get their answer.
    pub(crate) fn answer(&self) {
        let mut state = self.state.lock().unwrap();
        state.hangs.clear();
        while let Some(request) = state.held.pop_front() {
            state.take(request);
        }
    }
}

fn serve(mut requests: File, state: &Mutex<State>) {
    let mut buffer = vec![0; WRITE_MAX + 4096];
    // It fails when nothing has the file system any more.
    while let Ok(len) = requests.read(&mut buffer) {
        state.lock().unwrap().take(buffer[..len].to_vec());
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn longs(longs: &[u64]) -> Vec<u8> {
    longs.iter().flat_map(|long| long.to_le_bytes()).collect()
}

impl State {
    /// Answers a request, or keeps it.
    fn take(&mut self, request: Vec<u8>) {
        let (opcode, unique) = (u32_at(&request, 4), u64_at(&request, 8));
        let hang = match opcode {
            1 | 3 => Some(Hang::Look),
            14 => Some(Hang::Open),
            15 => Some(Hang::Read),
            16 | 20 => Some(Hang::Write),
            _ => None,
        };
        // The root is always there: a path can be walked up to the file.
        let is_root = opcode == 3 && u64_at(&request, 16) == ROOT;
        if hang.is_some_and(|hang| self.hangs.contains(&hang)) && !is_root {
            self.held.push_back(request);
            return;
        }
        if hang.is_some_and(|hang| self.fails.contains(&hang)) && !is_root {
            const INPUT_OUTPUT: i32 = 5;
            return self.send(unique, -INPUT_OUTPUT, &[]);
        }
        if opcode == 36 {
            // INTERRUPT: a process that waits for this is to be killed.
            let meant = u64_at(&request, 40);
            let held = self.held.iter().position(|held| u64_at(held, 8) == meant);
            if held.and_then(|place| self.held.remove(place)).is_some() {
                self.send(meant, -4, &[]);
            }
            return;
        }
        // The kernel waits for no answer to FORGET and BATCH_FORGET.
        if [2, 42].contains(&opcode) {
            return;
        }
        match self.answer_to(opcode, &request) {
            Ok(body) => self.send(unique, 0, &body),
            Err(errno) => self.send(unique, -errno, &[]),
        }
    }

    fn send(&mut self, unique: u64, error: i32, body: &[u8]) {
        let len = u32::try_from(16 + body.len()).unwrap();
        let mut answer = words(&[len, error.cast_unsigned()]);
        answer.extend(unique.to_le_bytes());
        answer.extend(body);
        // Who asked may have been killed.
        drop(self.device.write_all(&answer));
    }

    fn answer_to(&self, opcode: u32, request: &[u8]) -> Result<Vec<u8>, i32> {
        const NO_ENTRY: i32 = 2;
        const NO_SYSTEM_CALL: i32 = 38;
        let (node, body) = (u64_at(request, 16), &request[40..]);
        let place = |bytes: &[u8]| (u64_at(bytes, 8), u32_at(bytes, 16));
        match opcode {
            // LOOKUP: the answer is good for no time, so that each look asks again.
            1 if body.strip_suffix(&[0]) == Some(NAME.as_bytes()) => {
                let entry = [&longs(&[DISK, 0, 0, 0])[..], &words(&[0, 0]), &self.attributes(DISK)];
                Ok(entry.concat())
            }
            1 => Err(NO_ENTRY),
            3 => Ok([&longs(&[0, 0])[..], &self.attributes(node)].concat()),
            // OPEN: direct, so that each read and write comes here.
            14 => Ok([&longs(&[0])[..], &words(&[1, 0])].concat()),
            15 => {
                let (offset, size) = place(body);
                let mut bytes = vec![0; usize::try_from(size).unwrap()];
                let len = self.backing.read_at(&mut bytes, offset).unwrap();
                bytes.truncate(len);
                Ok(bytes)
            }
            16 => {
                let (offset, size) = place(body);
                self.backing.write_all_at(&body[40..], offset).unwrap();
                Ok(words(&[size, 0]))
            }
            // RELEASE, FSYNC and FLUSH have nothing to do.
            18 | 20 | 25 => Ok(Vec::new()),
            // INIT: 64 requests in the background, writes of 256 pages (BIG_WRITES, MAX_PAGES).
            26 => {
                let mut answer = words(&[7, 31, 0, 1 << 5 | 1 << 22, 64 | 48 << 16]);
                answer.extend(words(&[u32::try_from(WRITE_MAX).unwrap(), 1, 256]));
                answer.resize(64, 0);
                Ok(answer)
            }
            _ => Err(NO_SYSTEM_CALL),
        }
    }

    fn attributes(&self, node: u64) -> Vec<u8> {
        let (mode, size) = if node == ROOT { (0o40755, 0) } else { (0o100_600, self.size) };
        let mut attributes = longs(&[node, size, size / 512, 0, 0, 0]);
        attributes.extend(words(&[0, 0, 0, mode, 1, 0, 0, 0, 4096, 0]));
        attributes
    }
}
