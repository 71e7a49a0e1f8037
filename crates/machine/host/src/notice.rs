//! Telling others: the system log, and the manager of services.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

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

/// The variable that names the socket of the one who started this service: `sd_notify(3)`.
const MANAGER: &str = "NOTIFY_SOCKET";

/// Tells the manager of services how this one stands, as `sd_notify(3)` does: `READY=1`,
/// `STOPPING=1`. Nothing happens where none asked to be told, or does not listen.
pub fn tell_manager(state: &str) {
    let Some(place) = std::env::var_os(MANAGER) else { return };
    let address = match place.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&place),
    };
    if let (Ok(address), Ok(socket)) = (address, UnixDatagram::unbound()) {
        drop(socket.set_nonblocking(true));
        drop(socket.send_to_addr(state.as_bytes(), &address));
    }
}
