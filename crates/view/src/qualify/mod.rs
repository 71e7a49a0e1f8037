//! A qualification for people and programs: a summary for a terminal, and JSON.

mod json;
mod spark;
mod text;

pub use json::{QualificationError, parse_qualification, qualification_json};
pub use text::{qualification, qualify_estimate};

#[cfg(test)]
mod tests;
