//! The query language over sessions: text to predicate.
//!
//! [`Query::parse`] reads pcap-filter's words, Stenographer's times and comparisons of the fields
//! in [`FIELDS`]; [`Query::matches`] asks the query of one row of the session table. docs/query.md
//! is the language for its users. [`Query::sql`] asks an engine for the same.
//!
//! Directions are taken one at a time. `src` and `dst` speak of packets, not of sessions, so the
//! query is asked about the packets of the originator and about those of the responder, as far as
//! there are any, and a session matches if either does: it has a packet that the same words would
//! select in pcap-filter. Everything else is the same for both.
//!
//! Relative times are resolved while parsing: a query has one meaning however long its evaluation
//! takes. The crate reads no clock, no files and no names of hosts. Any text parses or gives an
//! error, in linear time and bounded stack.

mod address;
mod atlas;
mod ciphers;
mod error;
mod field;

mod mention;
mod names;
mod nearest;
mod number;
mod operator;
mod parse;
mod pattern;
mod query;
mod required;
mod scope;
mod sql;
mod subject;
mod term;
mod token;
mod value;
mod zone;

pub use atlas::{Atlas, AtlasError};
pub use ciphers::cipher_name;
pub use error::{Error, Problem};
pub use field::{FIELDS, Field, Reading};
pub use format::kind::Kind;
pub use names::{dns_rcode_name, dns_type_name, service_name, tls_version_name};
pub use nearest::{did_you_mean, nearest};
pub use query::Query;
pub use required::Required;
pub use scope::Part;
pub use sql::{Dialect, Pushed, sql_literal};
pub use subject::subject;
pub use term::MAXIMUM_DEPTH;
pub use value::is_community_id;
