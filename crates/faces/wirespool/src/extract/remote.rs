//! How an extract of a service goes on, on standard error.

use ::remote::Telling;
use units::ByteSize;

use crate::progress::Progress;

impl Telling for Progress {
    fn bytes(&mut self, so_far: u64) {
        self.text(&|| ByteSize(so_far).to_string());
    }

    fn say(&mut self, line: &str) {
        Progress::say(self, line);
    }
}
