//! Any file may be given as a capture.
#![no_main]

use fuzz::{costs, oracles};

fuzz::binary!(costs::CAPTURE_FILE, |input| {
    let most = oracles::bytes_in_use() + capture::FILE_BYTES_MAX;
    let sample = || assert!(oracles::bytes_in_use() <= most, "a source holds what it may");
    fuzz::capture_file::run(input, sample)
});
