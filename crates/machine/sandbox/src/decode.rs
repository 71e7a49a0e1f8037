//! Packets through a program of others, which may be taken over by them.

#![expect(unsafe_code, reason = "a child gives up rights before it becomes the program")]

use core::time::Duration;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::confine::Decoding;
use crate::deadline::Deadline;
use crate::{Error, socket};

/// Longer than its processor time, on a machine that records.
const PATIENCE: Duration = Duration::from_mins(1);
/// So much is read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// What `program` says of `input`, which is its standard input: at most so many bytes.
///
/// It runs with no file but its libraries to be read, none to be written, no network, no other
/// process and no user's rights, and has a minute. This process waits for it.
///
/// # Errors
/// When it is not there, cannot be confined, fails, or says or takes too much.
pub fn decode(
    program: &Path,
    arguments: &[&str],
    input: &[u8],
    bytes_max: usize,
) -> Result<Vec<u8>, Error> {
    let system = |what| move |error: io::Error| Error::system(what, error);
    let program = fs::canonicalize(program).map_err(system("find the program that decodes"))?;
    let decoding = Decoding::of(&program)?;
    let packets = held(input).map_err(system("hand packets to the program that decodes"))?;
    let mut command = Command::new(&program);
    command.args(arguments).current_dir("/").env_clear();
    // What it prints is in UTF-8, and it looks for settings of nobody.
    command.env("LC_ALL", "C.UTF-8").env("HOME", "/nonexistent");
    command.stdin(Stdio::from(packets)).stdout(Stdio::piped()).stderr(Stdio::null());
    // SAFETY: between fork and exec there are system calls and nothing else.
    unsafe { command.pre_exec(move || decoding.give_up()) };
    let child = command.spawn().map_err(|source| Error::NotStarted { source })?;
    Ended(child).text(bytes_max)
}

/// A file in memory, to be read from its begin.
fn held(input: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create(c"packets", MemfdFlags::CLOEXEC)?);
    file.write_all(input)?;
    file.rewind()?;
    Ok(file)
}

/// It ends with this value, whatever it does.
struct Ended(Child);

impl Ended {
    fn text(mut self, bytes_max: usize) -> Result<Vec<u8>, Error> {
        let heard = |error| Error::system("hear the program that decodes", error);
        let mut output = self.0.stdout.take().expect("it is piped");
        let (mut text, deadline) = (Vec::new(), Deadline::after(PATIENCE));
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            if !socket::wait(&output, deadline).map_err(heard)? {
                return Err(Error::NotDecoded("took too long"));
            }
            let count = output.read(&mut chunk).map_err(heard)?;
            text.extend_from_slice(chunk.get(..count).unwrap_or_default());
            if text.len() > bytes_max {
                return Err(Error::NotDecoded("said too much"));
            }
            if count == 0 {
                break;
            }
        }
        // What has closed its output may go on.
        let pidfd = pidfd_open(Pid::from_child(&self.0), PidfdFlags::empty());
        let has_ended = pidfd.map_err(io::Error::from).and_then(|it| socket::wait(it, deadline));
        if !has_ended.map_err(heard)? {
            return Err(Error::NotDecoded("took too long"));
        }
        let status = self.0.wait().map_err(heard)?;
        status.success().then_some(text).ok_or(Error::NotDecoded("failed"))
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.kill().unwrap_or_default();
        drop(self.0.wait());
    }
}
