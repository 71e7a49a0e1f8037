//! Any bytes may stand where the sessions of a segment are stored.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::INDEX_FILE, |input| fuzz::index_file::run(input));
