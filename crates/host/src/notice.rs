//! Telling others: the system log, and commands of the user's.

use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};

use crate::Error;

/// Where the system log takes messages.
const SYSTEM_LOG: &str = "/dev/log";
/// Facility daemon, severity warning: RFC 3164, section 4.1.1.
const DAEMON_WARNING: u8 = 3 * 8 + 4;

/// Writes one line to the system log. Where there is none nothing happens.
pub fn log_warning(line: &str) {
    let process = std::process::id();
    let message = format!("<{DAEMON_WARNING}>wirespool[{process}]: {line}");
    if let Ok(socket) = UnixDatagram::unbound() {
        // A log that does not keep up must not hold a recorder.
        drop(socket.set_nonblocking(true));
        drop(socket.send_to(message.as_bytes(), SYSTEM_LOG));
    }
}

/// A command of the user's that is run on events, without waiting for it.
#[derive(Debug, Default)]
pub struct Hook {
    running: Vec<Child>,
}

impl Hook {
    /// Starts `command` in a shell with further environment variables. It gets no input, and its
    /// output goes to standard error.
    pub fn start(&mut self, command: &str, environment: &[(&str, String)]) -> Result<(), Error> {
        self.running.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        let child = Command::new("/bin/sh")
            .args(["-c", command])
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(std::io::stderr())
            .spawn()
            .map_err(|error| Error::system("run the command of --on-member-change", error))?;
        self.running.push(child);
        Ok(())
    }

    /// Waits until every command has ended.
    pub fn finish(mut self) {
        for child in &mut self.running {
            drop(child.wait());
        }
    }
}
