//! Why it is slow: looks at the machine for a while, and names what it found, with evidence, cause
//! and remedy, and what it could not see.
//!
//! Looking is done by [`observe`], [`blockdev`] and [`::calls`]; everything here decides. What was
//! seen comes as an argument, so that every finding has a test with a machine that is made up.
//!
//! Not here: connections and networks (`connections`), how findings are shown (`machine-view`).

pub mod calls;
pub mod io;
pub mod machine;
mod quota;
pub mod recorder;
