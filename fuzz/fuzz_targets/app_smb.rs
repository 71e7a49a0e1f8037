//! Payloads of a session of SMB.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::PAYLOADS, |input| fuzz::payloads::one("app_smb", input));
