//! Health logs, identities and sense data of drives.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::DRIVE, |input| host::untrusted::drive_answer(input));
