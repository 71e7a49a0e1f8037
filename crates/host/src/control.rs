//! The socket of a running program: one question and one answer a connection, a line and a text.

use core::time::Duration;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::geteuid;

use crate::Error;

/// Between two looks whether the program ends.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// A question is asked as soon as somebody connects.
const QUESTION_PATIENCE: Duration = Duration::from_secs(1);
const QUESTION_BYTES_MAX: u64 = 4096;
/// Where root's sockets are.
const SYSTEM: &str = "/run/wirespool";

/// A socket that answers.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl ControlSocket {
    /// The socket of this name, which belongs to whoever runs the program: of root, its group may
    /// ask, too.
    ///
    /// # Errors
    /// When the socket cannot be made, or a running program has it.
    pub fn bind(name: &str) -> Result<Self, Error> {
        let folder = own_folder();
        let path = folder.join(name);
        let listener = bind(&folder, &path);
        let listener = listener.map_err(|error| Error::path("open the socket", &path, error))?;
        Ok(Self { listener, path })
    }

    /// Answers one question after the other until `is_ending`, which is asked ten times a second.
    pub fn serve(&self, answer: &mut dyn FnMut(&str) -> String, is_ending: &dyn Fn() -> bool) {
        while !is_ending() {
            let mut ready = [PollFd::new(&self.listener, PollFlags::IN)];
            if !matches!(poll(&mut ready, Some(&LOOK)), Ok(1..)) {
                continue;
            }
            if let Ok((stream, _)) = self.listener.accept() {
                // Who asks and goes away before the answer does not want it.
                reply(&stream, answer).unwrap_or_default();
            }
        }
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // What is left behind answers nobody, and the next one replaces it.
        fs::remove_file(&self.path).unwrap_or_default();
    }
}

fn bind(folder: &Path, path: &Path) -> io::Result<UnixListener> {
    let is_root = geteuid().is_root();
    fs::create_dir_all(folder)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(if is_root { 0o755 } else { 0o700 }))?;
    if path.exists() {
        if UnixStream::connect(path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o660))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn reply(stream: &UnixStream, answer: &mut dyn FnMut(&str) -> String) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(QUESTION_PATIENCE))?;
    stream.set_write_timeout(Some(QUESTION_PATIENCE))?;
    let mut question = String::new();
    BufReader::new(stream.take(QUESTION_BYTES_MAX)).read_line(&mut question)?;
    let mut stream = stream;
    stream.write_all(answer(question.trim_end()).as_bytes())
}

/// Asks the program that has the socket of this name; `None` where there is none.
///
/// # Errors
/// When it may not be asked, or does not answer in time.
pub fn ask(name: &str, question: &str, patience: Duration) -> Result<Option<String>, Error> {
    for folder in [own_folder(), PathBuf::from(SYSTEM)] {
        let path = folder.join(name);
        match exchange(&path, question, patience) {
            Ok(answer) => return Ok(Some(answer)),
            Err(error) if is_nobody(&error) => {}
            Err(error) => return Err(Error::path("ask", &path, error)),
        }
    }
    Ok(None)
}

/// Names of the sockets that there are, our own and those of root; who has one may have ended.
pub fn control_sockets() -> Vec<String> {
    let folders = [own_folder(), PathBuf::from(SYSTEM)];
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.collect::<BTreeSet<String>>().into_iter().collect()
}

fn exchange(path: &Path, question: &str, patience: Duration) -> io::Result<String> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(format!("{question}\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// `/run/wirespool` for root, else in the user's runtime directory (XDG Base Directory
/// Specification), or where there is none below `/tmp`.
fn own_folder() -> PathBuf {
    let user = geteuid();
    if user.is_root() {
        return PathBuf::from(SYSTEM);
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match runtime.filter(|path| path.is_absolute()) {
        Some(runtime) => runtime.join("wirespool"),
        None => PathBuf::from(format!("/tmp/wirespool-{}", user.as_raw())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_question_has_one_answer_and_nobody_is_none() {
        let name = format!("test-{}", std::process::id());
        let patience = Duration::from_secs(5);
        assert!(matches!(ask(&name, "anybody?", patience), Ok(None)));
        let socket = ControlSocket::bind(&name).unwrap();
        let is_ending = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut count = 0;
                let mut answer = |question: &str| {
                    count += 1;
                    format!("{count} {question}")
                };
                socket.serve(&mut answer, &|| is_ending.load(Ordering::Relaxed));
            });
            // Who says nothing, or goes at once, holds nobody up for long.
            drop(UnixStream::connect(&socket.path).unwrap());
            let answer = ask(&name, "how?", patience).unwrap().unwrap();
            assert!(answer.ends_with(" how?"), "{answer}");
            assert!(ControlSocket::bind(&name).is_err(), "somebody has it");
            is_ending.store(true, Ordering::Relaxed);
        });
        assert!(control_sockets().contains(&name));
        let path = socket.path.clone();
        drop(socket);
        assert!(!path.exists() && matches!(ask(&name, "anybody?", patience), Ok(None)));
        // A program that was killed leaves its socket behind.
        drop(UnixListener::bind(&path).unwrap());
        drop(ControlSocket::bind(&name).unwrap());
    }
}
