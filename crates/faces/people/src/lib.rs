//! Who may log in to a service, and what they may do there: the rules.
//!
//! ```text
//! name, password, code --> lock-out --> password --> second factor --> session --> role
//!                          must wait?   Argon2id     TOTP, a key, or   a cookie    scopes,
//!                                                    one of ten codes  stands for  filter
//! ```
//!
//! Accounts are one text ([`People`]), which is read and written as a whole. What is secret in it
//! is a hash, but for the secrets of second factors, from which codes are computed: the file is its
//! owner's alone.
//!
//! The rules are computation: clocks, random bytes and the text of the file are arguments. The file
//! is read and changed through `host`, by one process at a time. Hashing a password takes 19 MiB
//! and tens of milliseconds by intent, on a thread or two that are kept for it.
//!
//! Called by the server for each login, and by the binary to manage accounts. Not here: HTTP.

mod account;
mod base32;
mod error;
mod file;
mod first;
mod hashing;
mod lock_out;
mod name;
mod origin;
mod password;
mod recovery;
mod role;
mod second_factor;
mod secret;
mod sessions;
mod totp;
mod webauthn;

pub use account::{People, Person};
pub use error::Error;
pub use file::{Chosen, FileError, Order, change_file, manage_people, read_file};
pub use first::FirstLink;
pub use hashing::Hashing;
pub use interface::Scope;
pub use lock_out::{Attempt, LockOut};
pub use name::{NAME_RULE, is_name};
pub use origin::{Origin, is_this_machine};
pub use password::{Password, Verifier, decoy, generated};
pub use role::{ADMINISTRATOR, Role, Roles, checked_filter};
pub use second_factor::{Enrolment, RecoveryCodes, SecondFactor, Used};
pub use secret::{hash_of, is_same};
pub use sessions::{Holder, SESSION_LASTS_S, Sessions};
pub use webauthn::{
    Assertion, Challenges, Key, KeyUse, NewKey, Registration, RelyingParty, WrongKey,
};
