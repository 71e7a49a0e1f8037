//! What is missing from an answer: complete, incomplete, or unknown.
//!
//! [`standing()`] reads from a volume's heads when its interfaces were recorded, and what of the
//! times asked for was not. Who answers adds what was met on the way: [`Completeness`] is the
//! statement that every answer has, in text, manifest and JSON.
//!
//! Called by `extract` and by whoever shows its answers. Not here: how damage is found (`volume`),
//! pages and tables of statements (`session-view`).

pub mod form;
mod standing;
mod statement;

pub use standing::{Asking, Doubt, Standing, Stretch, StretchEnd, standing};
pub use statement::{Completeness, Damage, DamageKind, Disorder, State};
