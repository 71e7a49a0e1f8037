//! Telling others: the system log.

use std::os::unix::net::UnixDatagram;

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
