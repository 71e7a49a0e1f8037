//! Keys as second factors (Web Authentication, level 2): hardware keys, and those that devices
//! keep. What a browser sends is checked here.
//!
//! A key is made for one origin, and signs what that origin's page asked, so a page of another name
//! gets nothing that counts. Which make of key it is is not asked (attestation `none`): a person
//! brings the own one, besides a password. Section numbers below are those of the specification.

mod assertion;
mod authenticator;
mod cbor;
mod challenges;
mod client_data;
mod key;
mod party;
mod public_key;
mod registration;

#[cfg(test)]
mod tests;

pub use assertion::{Assertion, KeyUse};
pub use challenges::Challenges;
pub use key::{Key, NewKey};
pub use party::{RelyingParty, WrongKey};
pub use registration::Registration;
