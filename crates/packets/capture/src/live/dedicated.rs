//! Whether an interface is there for capturing alone: what is taken from it by `AF_XDP` the host
//! does not get.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::socket::PacketSocket;

/// What the host uses the interface of this name for, in the order of what is easiest to see;
/// `None` where that is nothing.
pub(super) fn use_of(socket: &PacketSocket, name: &str) -> Option<&'static str> {
    if socket.has_address(name) || has_address6(name) {
        return Some("it has an address");
    }
    if has_route(name) {
        return Some("a route leads to it");
    }
    if !folder(name).exists() {
        return Some("this /sys does not know it");
    }
    if folder(name).join("master").exists() {
        return Some("it belongs to a bridge or a bond");
    }
    is_linked(name, b"upper_").then_some("another interface lies on it")
}

/// Whether an interface may get its packets from another one, as those of VLANs do: true also in a
/// network namespace without a `/sys` of its own.
pub(super) fn may_lie_on_another(name: &str) -> bool {
    !folder(name).exists() || is_linked(name, b"lower_")
}

/// Whether another interface stands above or below this one.
fn is_linked(name: &str, prefix: &[u8]) -> bool {
    let entries = fs::read_dir(folder(name)).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name());
    names.any(|name| name.as_encoded_bytes().starts_with(prefix))
}

fn folder(name: &str) -> PathBuf {
    Path::new("/sys/class/net").join(name)
}

/// A table of this thread's namespace.
fn table(name: &str) -> io::Result<String> {
    fs::read_to_string(format!("/proc/thread-self/net/{name}"))
}

fn has_address6(name: &str) -> bool {
    table("if_inet6").is_ok_and(|table| ending_in(&table, name).next().is_some())
}

fn has_route(name: &str) -> bool {
    let begins = |line: &str| line.split_whitespace().next() == Some(name);
    // Every interface has the route for multicast.
    let leads = |line: &str| !line.starts_with("ff");
    table("route").is_ok_and(|table| table.lines().any(begins))
        || table("ipv6_route").is_ok_and(|table| ending_in(&table, name).any(leads))
}

/// The lines of a table whose last word is the name of the interface.
fn ending_in<'t>(table: &'t str, name: &str) -> impl Iterator<Item = &'t str> {
    table.lines().filter(move |line| line.split_whitespace().next_back() == Some(name))
}
