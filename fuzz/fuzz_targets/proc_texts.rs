//! Files of /proc and /sys.
#![no_main]

use fuzz::costs;

fuzz::text!(costs::TEXTS, |input| {
    host::untrusted::texts(input)
        + blockdev::untrusted::texts(input)
        + network::untrusted::texts(input)
        + observe::untrusted::texts(input)
});
