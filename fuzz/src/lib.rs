//! What targets share. The bodies in files of their own are also run by the ordinary tests of the
//! crates, on the inputs in `seeds`.

pub mod anonymise;
pub mod audit_lines;
pub mod capture_file;
pub mod image;
pub mod index_file;
pub mod packet;
pub mod payloads;
pub mod query_text;
pub mod stored;
pub mod talkers;
pub mod texts;

pub mod costs;
pub mod numbers;
pub mod oracles;
pub mod target;
