//! What is handed to this process from outside and read here, for tests and fuzz targets that give
//! any bytes: they end, without a panic, and take memory that is bounded by what came.
//!
//! Not for use: what is read is thrown away, but for a number by which a test sees that something
//! was read.

use crate::control;
use crate::processes::Stat;

/// Files of `/proc`.
pub fn texts(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    text.lines().filter_map(Stat::parse).count()
}

/// A question to a control socket, in parts: each its length in a byte, and that many bytes.
pub fn control_question(parts: &[u8]) -> usize {
    let line = control::read_any_question(parts);
    assert!(line.as_ref().is_none_or(|line| line.len() < 8192), "a question is short");
    usize::from(line.is_some())
}
