//! What clients of HTTPS share: which certificates they believe, the way to a host, and one request
//! over a connection of its own.
//!
//! Called by `remote`, which asks a service, and by `oidc`, which asks an identity provider. Not
//! here: deadlines, bounds of answers, and what each of them makes of a URL.

mod connection;
mod trust;

pub use connection::{Unreached, authority, connect, send};
pub use trust::{Untrusted, certificates, client, roots};
