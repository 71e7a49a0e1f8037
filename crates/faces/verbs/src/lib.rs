//! What verbs stand on and that knows no flags: how one ends, what it says on the terminal, files
//! that are replaced only where the user says so, a recorder that is asked, packets of a volume as
//! a source, what `top` looks at, and indexers as processes.
//!
//! The binary is flags to options, job, exit status on top of it.

pub mod any;
pub mod extracted;
pub mod failure;
pub mod forget;
pub mod output_file;
pub mod progress;
pub mod recorder;
pub mod stdout;
pub mod top;
pub mod workers;
