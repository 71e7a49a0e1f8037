//! The recorder over the network: an HTTP interface, its credentials, its metrics, and a process of
//! its own for each question.
//!
//! ```text
//! client -- TCP, TLS --> service ---- socket: question, ending ----> worker (`find`, `extract`)
//!                           ^ \------ killed when the client leaves --^ |
//!                           +----------- socket: bytes of the answer ----+
//! ```
//!
//! The service itself reads no volume: what can hang, take memory or fail on damaged bytes does so
//! in a process of `worker`, behind every recorder. It is asynchronous, for it waits for many at
//! once; its sockets are tokio's. One table, `interface::ENDPOINTS`, says for
//! each endpoint its path, its scope and its parameters: requests are routed and checked by it, and
//! the `OpenAPI` document is made of it.
//!
//! Called by the binary, which gives it addresses, files and the ways to ask recorders. Not here:
//! what is found and how it is written down (`extract`, `session-view`).

mod accept;
mod access;
mod accounts;
mod answers;
mod api;
mod approving;
mod asking;
mod at_provider;
mod audit_page;
mod body;
mod budget;
mod bundle;
mod busy;
mod checked;
mod config;
mod credentials;
mod entrance;
mod error;
mod framed;
mod given;
mod holds;
mod job_events;
mod job_runs;
mod listen;
mod log;
mod logins;
mod looking;
mod manage;
mod of_volumes;
mod openapi;
mod own_account;
mod own_keys;
mod peer;
mod problem;
mod received;
mod requests;
mod reread;
mod scrape;
mod service;
mod serving;
mod settings;
mod staff;
mod statuses;
mod stenographer;
mod stream;
mod tagging;
mod tls;
mod token_file;
mod token_list;
mod trail;
mod validity;
mod workers;

use core::time::Duration;

use host::SystemClock;
use units::Clock as _;

pub use ::audit::Files as AuditFiles;
pub use ::people::{Order, Origin, Role, Scope, manage_people};
pub use config::{Bounds, Config, Holds, Parent, Staff};
pub use error::Error;
pub use log::WriteLine;
pub use serving::serve;
pub use tls::Tls;
pub use token_file::add_token;

/// What is left until a moment since boot.
fn left(until_ns: i64) -> Duration {
    let left_ns = until_ns.saturating_sub(SystemClock.boottime_ns());
    Duration::from_nanos(u64::try_from(left_ns).unwrap_or(0))
}
