//! What a diagnosis is made of: findings with evidence, cause and remedies, and their order, in
//! which a cause comes before what follows from it.
//!
//! Not here: how anything is found (`diagnose`, `connections`), or shown (`machine-view`).

mod diagnosis;
mod finding;
mod nap;
mod order;
mod share;
mod subject;
pub mod words;

pub use diagnosis::Diagnosis;
pub use finding::{Finding, Remedy, Severity, Unseen};
pub use nap::nap;
pub use share::Share;
pub use subject::{Found, Subject, Subjects};
