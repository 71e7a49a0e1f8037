//! Other addresses with a way back: the key of an anonymised extract, and the stations that it met,
//! in a file that only the owners of certain private keys open.
//!
//! [`Escrow::seal`] makes that file, which is a file of age, [`Escrow::open`] opens it, and
//! [`Reveal`] gives single addresses and whole capture files their own addresses back. Not here:
//! how addresses are exchanged (`anonymise`), and who may ask.

mod escrow;
mod file;
mod reveal;

pub use escrow::{Escrow, EscrowError};
pub use file::{FileError, Revealed};
pub use reveal::{NoAddress, Reveal};
