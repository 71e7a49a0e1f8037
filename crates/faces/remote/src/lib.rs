//! A client of the service (`wirespool serve`), for the verbs that can ask one in the place of this
//! machine: requests with a credential, answers as they come, and what is missing from them.
//!
//! A volume of a service is a [`There`]: its sessions come as what a search on this machine finds,
//! its extracts are compared with their manifests and go on where they broke off. Callers see plain
//! calls. Inside, a runtime of one thread waits at once for the service, for the
//! user who has had enough ([`Settings::is_stopped`]) and for the time after which silence is an
//! end. Each request has a connection of its own, over TLS or on the loopback.
//!
//! A service may be anybody's, or broken. So headings, lines and documents are bounded,
//! redirections are not followed, an answer without its end is an error, and so is one of another
//! type than was asked for. What an answer says is checked by its readers (`session-view`,
//! `volume-view`, `sql`, `extract`). Not here: flags, and what is shown.

mod answer;
mod asker;
mod connection;
mod documents;
mod download;
mod error;
mod exchange;
mod origin;
mod service;
mod sessions;
mod there;
mod trust;

pub use answer::Answer;
pub use asker::Settings;
pub use documents::{Said, Statement, Volume, WhoAmI};
pub use download::{Download, Failed, Received, Telling};
pub use error::{Error, Problem};
pub use exchange::{Exchange, Sent};
pub use origin::{NoOrigin, Origin};
pub use service::{ARROW, JSON, NDJSON, PCAPNG, PLAIN, Service};
pub use sessions::{Ended, Wanted, sessions};
pub use there::{NoVolume, There};
pub use trust::Trust;
