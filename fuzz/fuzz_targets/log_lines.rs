//! Any text may be given as a log of Suricata or Zeek.
#![no_main]

use fuzz::costs;

fuzz::text!(costs::LOG, |input| fuzz::texts::log(input));
