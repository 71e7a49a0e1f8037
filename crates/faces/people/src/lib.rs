//! Who may log in to a service, and what they may do there: the rules.
//!
//! ```text
//! name, password, code --> lock-out --> password --> second factor --> session --> role
//!                          must wait?   Argon2id     TOTP, or one of   a cookie    scopes,
//!                                                    ten codes         stands for  filter
//! ```
//!
//! Accounts are one text ([`People`]), which is read and written as a whole. What is secret in it
//! is a hash, but for the secrets of second factors, from which codes are computed: the file is its
//! owner's alone.
//!
//! All of this is computation: clocks, random bytes and the text of the file are arguments. Hashing
//! a password takes 19 MiB and tens of milliseconds by intent; the caller bounds how many at once.
//!
//! Called by the server for each login, and by the binary to manage accounts. Not here: HTTP,
//! files, threads.

mod account;
mod base32;
mod error;
mod first;
mod lock_out;
mod name;
mod password;
mod recovery;
mod role;
mod second_factor;
mod secret;
mod sessions;
mod totp;

pub use account::{People, Person};
pub use error::Error;
pub use first::FirstLink;
pub use interface::Scope;
pub use lock_out::{Attempt, LockOut};
pub use name::{NAME_RULE, is_name};
pub use password::{Password, Verifier, decoy, generated};
pub use role::{ADMINISTRATOR, Role, Roles, checked_filter};
pub use second_factor::{Enrolment, SecondFactor, Used};
pub use secret::{hash_of, is_same};
pub use sessions::{Holder, SESSION_LASTS_S, Sessions};
