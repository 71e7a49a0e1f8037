//! Payloads of a session of FTP, which is distinguished from SMTP on its way.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::PAYLOADS, |input| fuzz::payloads::one("app_ftp", input));
