//! Health logs, identities and sense data of drives.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::DRIVE, |input| blockdev::untrusted::drive_answer(input));
