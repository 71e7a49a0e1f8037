//! The audit of a service: who asked what, when, from where, and what came out.
//!
//! ```text
//! line 1   {"prev":"000...","seq":1,...,"event":"start"}
//! line 2   {"prev":SHA-256 of line 1 with its line feed,"seq":2,...,"event":"request"}
//! line 3   {"prev":SHA-256 of line 2,...}
//! ```
//!
//! A file of lines of JSON that only grows. Each line has the hash of the one before, so that a
//! line that was changed, taken out, put in or moved is found ([`verify`]). Who may write the file
//! can compute all hashes anew, and what is cut off at the end leaves no trace in what is left:
//! both are found with a hash of a line that is noted elsewhere, such as in the journal.
//!
//! One thread writes ([`Audit`]). What is handed in while it waits for the disk goes out together,
//! with one flush. Nothing counts as written before that, and when it fails nothing is answered.
//!
//! Called by the server for each request, and by the binary to check and show a file. Not here:
//! what is asked and answered.

mod chain;
mod error;
mod line;
mod paged;
mod raw;
mod reading;
mod rotation;
mod shown;
mod writer;

pub use chain::{Fault, Link};
pub use error::Error;
pub use line::{Credential, Ended, Event, FourEyes, Line, Removed, Request};
pub use paged::{Page, page, verify_live};
pub use reading::{Filter, Shown, Verified, head, show, verify, verify_lines};
pub use shown::{shown_line, verified_text};
pub use writer::{Audit, Files, Unwritten, Written};
