//! How an extract of a service goes on, on standard error.

use ::remote::Telling;
use units::ByteSize;

use crate::progress::Progress;

/// Shows the bytes that have come.
pub(super) struct Shown(pub(super) Progress);

impl Telling for Shown {
    fn bytes(&mut self, so_far: u64) {
        self.0.text(&|| ByteSize(so_far).to_string());
    }

    fn say(&mut self, line: &str) {
        self.0.say(line);
    }
}
