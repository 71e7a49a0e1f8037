//! Whether something takes a line now, or would hold up its writer.

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A pipe that no reader empties, or a terminal that was stopped, takes none. What is broken takes
/// everything: writing says so at once. Lines of up to 4 KiB are meant.
pub fn takes_a_line(to: &impl AsFd) -> bool {
    let mut ends = [PollFd::new(to, PollFlags::OUT)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    !matches!(poll(&mut ends, Some(&at_once)), Ok(0))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn a_full_pipe_takes_nothing_until_it_is_read() {
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        let mut written = 0;
        while takes_a_line(&writer) {
            written += writer.write(&[b'x'; 4096]).unwrap();
        }
        assert!(written >= 4096);
        reader.read_exact(&mut vec![0; written]).unwrap();
        assert!(takes_a_line(&writer));
        drop(reader);
        assert!(takes_a_line(&writer), "writing to it fails at once");
    }
}
