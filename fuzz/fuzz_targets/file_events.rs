//! Events of fanotify.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::EVENTS, |input| observe::untrusted::file_events(input));
