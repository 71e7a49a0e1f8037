//! Only the crates of the system boundary call the operating system, only they and `parity` have
//! unsafe code, only faces and tools print, and they print text from outside only as `page::safe`
//! has made it.
//!
//! Exactly: `unsafe` in rows 3 and 4, and in `parity` for vector instructions. Files, system calls
//! and other programs in rows 3 and 4, and in the last row, whose tools run on a developer's
//! machine. Standard output and standard error from the row of `verbs` on. Sockets of tokio in
//! `server`, in `https`, and in the clients that stand on it, `remote` and `oidc`. Tests may do all
//! but `unsafe`.

use super::rows::{BOUNDARY, FACES, TOOLS, row};
use super::source::Source;

/// The crates above the boundary with sockets of their own: one waits for many at once, and one
/// connects for two clients: of a service, with a user who has had enough, and of a provider.
const CONNECTED: [&str; 4] = ["server", "https", "remote", "oidc"];
const ITS_SOCKETS: &str = "tokio::net";
/// Clients name their connection by the type, which is tokio's there: no other is imported.
const CONNECTION: (&[&str], &str) = (&["https", "remote", "oidc"], "TcpStream");

const SYSTEM: [&str; 11] = [
    "std::fs",
    "File::open",
    "File::create",
    "OpenOptions",
    "libc::",
    "rustix::",
    "io_uring::",
    "process::Command",
    "Command::new",
    "TcpStream",
    "UdpSocket",
];

/// The one file that makes foreign text safe for where it goes, and those that write it there.
const SAFE: &str = "crates/faces/page/src/safe.rs";
const SINKS: [&str; 2] = ["crates/faces/verbs/src/stdout.rs", "crates/faces/verbs/src/progress.rs"];
/// The crates whose text users see.
const VIEWS: [&str; 15] = [
    "page",
    "audit",
    "people",
    "oidc",
    "volume-view",
    "session-view",
    "qualify-view",
    "machine-view",
    "tui",
    "verbs",
    "server",
    "worker",
    "remote",
    "setup",
    "wirespool",
];
/// What goes past it: paths as they are.
const RAW: &str = ".display()";
/// And JSON as the library writes it, which jobs may read.
const WRITTEN: [&str; 3] = ["to_string_pretty(", "serde_json::to_string", "to_writer("];
const STREAMS: [&str; 2] = ["io::stdout()", "io::stderr()"];

/// The crate below the boundary that may be unsafe: vector instructions, with a portable twin.
const VECTORS: &str = "parity";

/// Findings for one file of production code.
pub(crate) fn check(source: &Source) -> Vec<String> {
    let Some((crate_name, row)) = crate_of(&source.path) else { return Vec::new() };
    let mut findings = Vec::new();
    for (line, text) in (1..).zip(source.code.lines()) {
        let mut refuse = |what: &str, whose: &str| {
            findings.push(format!("{}:{line}: {what} (row {row}): only {whose} may", source.path));
        };
        let is_boundary = BOUNDARY.contains(&row);
        if !is_boundary && crate_name != VECTORS && has_word(text, "unsafe") {
            refuse("unsafe", "the system boundary (rows 3 and 4) and parity");
        }
        if !is_boundary && row != TOOLS {
            SYSTEM
                .iter()
                .filter(|name| has_word(text, name) && !is_connection(crate_name, name))
                .for_each(|name| refuse(name, "the system boundary (rows 3 and 4)"));
            if !CONNECTED.contains(&crate_name) && has_word(text, ITS_SOCKETS) {
                refuse(ITS_SOCKETS, "server, https, remote and oidc");
            }
        }
        if row != TOOLS && source.path != SAFE {
            let written = WRITTEN.iter().filter(|name| text.contains(**name));
            written.for_each(|name| refuse(name, SAFE));
        }
        if VIEWS.contains(&crate_name) && source.path != SAFE {
            if text.contains(RAW) {
                refuse(RAW, SAFE);
            }
            if !SINKS.contains(&source.path.as_str()) {
                let streams = STREAMS.iter().filter(|name| text.contains(**name));
                streams.for_each(|name| refuse(name, "stdout.rs and progress.rs"));
            }
        }
        // An example is a program of its own.
        let is_room = row < FACES && !source.path.contains("/examples/");
        if is_room && (text.contains("clippy::print_std") || has_word(text, "io::stdout")) {
            refuse("printing", "faces and tools");
        }
    }
    findings
}

fn is_connection(crate_name: &str, name: &str) -> bool {
    CONNECTION.0.contains(&crate_name) && name == CONNECTION.1
}

/// The crate that a path belongs to, by its folder, and its row.
fn crate_of(path: &str) -> Option<(&str, usize)> {
    let in_a_part = path.strip_prefix("crates/").and_then(|path| path.split('/').nth(1));
    let name = in_a_part.or_else(|| path.split('/').next())?;
    Some((name, row(name)?))
}

fn has_word(text: &str, word: &str) -> bool {
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    text.match_indices(word).any(|(start, found)| {
        let (before, rest) = text.split_at(start);
        let after = rest.split_at(found.len()).1;
        let open_end = word.ends_with(':') || !after.starts_with(is_name);
        open_end && !before.ends_with(is_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, code: &str) -> usize {
        check(&Source::new(path, code)).len()
    }

    #[test]
    fn only_the_boundary_calls_the_system() {
        for code in ["use std::fs;", "std::fs::read(p)", "libc::sync()", "Command::new(x)"] {
            assert_eq!(findings("crates/storage/writer/src/mount.rs", code), 1, "{code}");
            assert_eq!(findings("crates/faces/wirespool/src/main.rs", code), 1, "{code}");
            assert_eq!(findings("crates/machine/host/src/lib.rs", code), 0, "{code}");
            assert_eq!(findings("crates/machine/network/src/link.rs", code), 0, "{code}");
            assert_eq!(findings("xtask/src/main.rs", code), 0, "{code}");
        }
        let code = "use tokio::net::TcpListener;";
        assert_eq!(findings("crates/faces/server/src/listen.rs", code), 0);
        assert_eq!(findings("crates/faces/sql/src/lib.rs", code), 1);
    }

    #[test]
    fn only_the_boundary_and_parity_are_unsafe() {
        let code = "let x = unsafe { f() };";
        assert_eq!(findings("crates/storage/parity/src/lanes.rs", code), 0);
        assert_eq!(findings("crates/storage/format/src/head.rs", code), 1);
        assert_eq!(findings("crates/storage/device/src/ring.rs", code), 0);
        assert_eq!(findings("crates/packets/wire/src/decode.rs", code), 1);
        assert_eq!(findings("xtask/src/main.rs", code), 1);
        assert_eq!(
            findings("crates/packets/wire/src/decode.rs", "// unsafe\nlet not_unsafe = 1;"),
            0
        );
    }

    #[test]
    fn text_from_outside_is_shown_only_as_the_one_place_has_made_it() {
        for code in ["path.display()", "serde_json::to_string(x)", "serde_json::to_writer(o, x)"] {
            assert_eq!(findings("crates/faces/volume-view/src/lib.rs", code), 1, "{code}");
            assert_eq!(findings("crates/faces/wirespool/src/main.rs", code), 1, "{code}");
            assert_eq!(findings("crates/faces/page/src/safe.rs", code), 0, "{code}");
        }
        for code in ["serde_json::to_string(x)", "serde_json::to_writer(o, x)"] {
            assert_eq!(findings("crates/tools/qualify/src/lib.rs", code), 1, "{code}");
            assert_eq!(findings("crates/proof/bench/src/main.rs", code), 0, "{code}");
        }
        assert_eq!(findings("crates/machine/host/src/error.rs", "path.display()"), 0);
        assert_eq!(findings("crates/faces/wirespool/src/find.rs", "io::stdout().lock()"), 1);
        assert_eq!(findings("crates/faces/verbs/src/stdout.rs", "io::stdout().lock()"), 0);
    }

    #[test]
    fn only_faces_and_tools_print() {
        let code = "#![expect(clippy::print_stdout, reason = \"\")]";
        assert_eq!(findings("crates/faces/volume-view/src/lib.rs", code), 1);
        assert_eq!(findings("crates/faces/wirespool/src/main.rs", code), 0);
    }
}
