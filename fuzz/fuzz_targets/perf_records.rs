//! Records of tracepoints, with the text that says how they are laid out, and of sampling.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::RECORDS, |input| observe::untrusted::perf_records(input));
