//! Logins at an identity provider by `OpenID` Connect: the authorization code flow with PKCE.
//!
//! ```text
//! page -- begin --> state, nonce, verifier; a cookie --> provider: person logs in
//! page <-- code, state -----------------------------------+
//! page -- code, state, cookie --> token endpoint --> ID token: signature, issuer, audience,
//!                                                    times, nonce --> claims --> name and role
//! ```
//!
//! A provider is not trusted beyond its word on who somebody is: each of its answers has a deadline
//! and a bound, no redirection is followed, what it names on other hosts must be public, and an
//! identity counts only with a signature by one of its keys. Clocks and random bytes are arguments.
//!
//! Called by the server. Not here: HTTP of the page, sessions, roles.

mod algorithm;
mod claims;
mod discovery;
mod error;
mod fetch;
mod flow;
mod id_token;
mod keys;
mod provider;
mod reach;
mod settings;
mod url;

pub use claims::Identity;
pub use error::{Error, Wrong};
pub use flow::{Begun, Returned};
pub use provider::{Moment, Provider};
pub use settings::Settings;
