//! An initial file system for the kernel: cpio in the "newc" form, as in the kernel's
//! Documentation/driver-api/early-userspace/buffer-format.rst.

use std::collections::BTreeSet;

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// An archive under construction.
#[derive(Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    names: BTreeSet<String>,
}

impl Archive {
    /// Adds a file that may be executed, and the folders above it. A name counts once.
    pub(crate) fn file(&mut self, path: &str, content: &[u8]) {
        let path = path.trim_start_matches('/');
        for (at, _) in path.match_indices('/') {
            self.entry(path.split_at(at).0, FOLDER, &[]);
        }
        self.entry(path, PROGRAM, content);
    }

    /// Adds an empty folder and those above it.
    pub(crate) fn folder(&mut self, path: &str) {
        self.file(&format!("{path}/.keep"), &[]);
    }

    /// Whether something of this name is there.
    pub(crate) fn contains(&self, path: &str) -> bool {
        self.names.contains(path.trim_start_matches('/'))
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        if self.names.insert(name.to_owned()) {
            self.append(name, mode, content);
        }
    }

    fn append(&mut self, name: &str, mode: u32, content: &[u8]) {
        let number = self.names.len();
        let (size, name_size) = (content.len(), name.len() + 1);
        let fields = format!(
            "070701{number:08x}{mode:08x}{0:08x}{0:08x}{1:08x}{0:08x}{size:08x}\
             {0:08x}{0:08x}{0:08x}{0:08x}{name_size:08x}{0:08x}",
            0, 1
        );
        self.bytes.extend(fields.as_bytes());
        self.bytes.extend(name.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend(content);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// The archive with its end mark.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.append("TRAILER!!!", 0, &[]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_before_their_files_and_once() {
        let mut archive = Archive::default();
        archive.file("/a/b/c", b"one");
        archive.file("a/b/d", b"two");
        assert!(archive.contains("/a/b") && !archive.contains("/a/x"));
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes);
        let names: Vec<&str> = text.split("070701").skip(1).map(|entry| &entry[104..]).collect();
        let names: Vec<&str> = names.iter().map(|name| name.split('\0').next().unwrap()).collect();
        assert_eq!(names, ["a", "a/b", "a/b/c", "a/b/d", "TRAILER!!!"]);
        assert!(text.contains("a/b/c\0") && text.contains("one"));
    }
}
