//! Any text may be given as the manifest of an extract.
#![no_main]

use fuzz::costs;

fuzz::text!(costs::MANIFEST, |input| fuzz::texts::manifest(input));
