//! P and Q, the parity columns of a stripe: computed from the data, and data from them.
//!
//! With D the K data columns, byte for byte, over the field GF(2^8) of 0x11d with generator 2:
//!
//! ```text
//! P = D[0] + D[1] + ... + D[K-1]
//! Q = D[0] + 2 D[1] + ... + 2^(K-1) D[K-1]
//! ```
//!
//! These are the sums of Linux md's RAID 6 (H. P. Anvin, The mathematics of RAID-6), so its tools
//! and every textbook agree with what lies on the members. Any two columns of K + 2 can be
//! missing.
//!
//! Columns are whatever the caller slices: whole bodies, tiles of them, single rows. No call
//! allocates. Not here: which columns are good (checksums say that), and where they lie.
//!
//! A [`Codec`] uses the fastest instructions that the processor has, and exists only if they gave
//! the right answers. The instructions are in `lanes`, the only unsafe code; the loop that all of
//! them share is in `sums`, its weights in `solve`.

mod codec;
mod field;
mod lanes;
mod self_test;
mod solve;
mod sums;

pub use codec::{Codec, Column, Error, LENGTH_MULTIPLE_BYTES, Path};
pub use sums::DATA_COLUMNS_MAX;
