//! What the service answers, as a table: each endpoint with its path, its method, who may ask it
//! and its parameters; the scopes of credentials; and the `OpenAPI` document made of all that.
//!
//! The server routes and checks requests by it. Not here: what an answer says and its schema (the
//! types of the views and of `server`; tests compare answers with the document), and how it is sent
//! (`server`).

mod endpoint;
mod openapi;
mod parameters;
mod scope;
mod table;

pub use endpoint::{
    ARROW, EVENTS, Endpoint, JSON, Matter, Method, NDJSON, Needs, PCAPNG, PLAIN, Parameter,
};
pub use openapi::document;
pub use scope::Scope;
pub use table::{ENDPOINTS, find, methods};
