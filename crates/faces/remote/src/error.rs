//! Why a service gave no answer, or none that is whole.

use std::io;
use std::path::PathBuf;

use page::safe::printable;
use serde::Deserialize;

use crate::{NoOrigin, Origin};

/// Before the word of a problem in its `type`.
const PREFIX: &str = "urn:wirespool:problem:";

/// What kept an answer away.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL is none of a service.
    #[error(transparent)]
    Address(#[from] NoOrigin),
    /// A file with certificates, a key or a token.
    #[error("{}: {why}", page::safe::path(path))]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A file that cannot be read, or that others may read.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// There is nobody whose word counts.
    #[error(
        "this machine has no certificates of authorities: --remote-ca names the one that the \
         service's certificate is of"
    )]
    NoRoots,
    /// A token with characters that no token has.
    #[error("the token is none: it has characters that no token has, or there is none")]
    Token,
    /// More than a request can carry.
    #[error("the request is too long: a query has at most 32 KiB")]
    TooLong,
    /// Something that a process has and could not be had.
    #[error("cannot ask a service: {0}")]
    System(io::Error),
    /// No connection.
    #[error("cannot reach {origin}: {why}")]
    Unreachable {
        /// The service.
        origin: Origin,
        /// What the system says.
        why: String,
    },
    /// A name of this machine that leads elsewhere.
    #[error("{origin} is not this machine: beyond it only https is spoken")]
    Elsewhere {
        /// The service.
        origin: Origin,
    },
    /// It speaks no TLS, or its certificate does not count.
    #[error("{origin} is not trusted: {why}")]
    Untrusted {
        /// The service.
        origin: Origin,
        /// What is wrong.
        why: String,
    },
    /// No byte for too long.
    #[error("{origin} has said nothing for {seconds} s")]
    Silent {
        /// The service.
        origin: Origin,
        /// How long that was.
        seconds: u64,
    },
    /// The connection ended before the answer.
    #[error("{origin} broke the answer off: {why}")]
    Broken {
        /// The service.
        origin: Origin,
        /// What was noticed.
        why: String,
    },
    /// It names another place.
    #[error("{origin} redirects to {}, which is not followed", printable(to))]
    Redirected {
        /// The service.
        origin: Origin,
        /// Where to.
        to: String,
    },
    /// It does not answer as a service does.
    #[error("{origin} does not answer as wirespool serve does: {why}")]
    Unlike {
        /// The service.
        origin: Origin,
        /// What is wrong.
        why: String,
    },
    /// It says why it does not answer.
    #[error("{origin}: {problem}")]
    Problem {
        /// The service.
        origin: Origin,
        /// What it said.
        problem: Box<Problem>,
    },
    /// Who asked has had enough.
    #[error("stopped")]
    Stopped,
}

impl From<https::Untrusted> for Error {
    fn from(error: https::Untrusted) -> Self {
        match error {
            https::Untrusted::Host(error) => Self::Host(error),
            https::Untrusted::File { path, why } => Self::File { path, why },
        }
    }
}

impl Error {
    /// Another connection may bring what this one did not.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Silent { .. } | Self::Broken { .. })
            || self.problem().is_some_and(Problem::is_passing)
    }

    /// What the service said.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem { problem, .. } => Some(problem),
            _ => None,
        }
    }
}

/// Details of a problem (RFC 9457).
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Problem {
    #[serde(rename = "type")]
    kind: String,
    title: String,
    detail: Option<String>,
    query: Option<InQuery>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
struct InQuery {
    shown: String,
}

impl Problem {
    /// The word for it.
    pub fn word(&self) -> &str {
        self.kind.strip_prefix(PREFIX).unwrap_or_default()
    }

    /// Of a query that is wrong: the lines that show where.
    pub fn shown_query(&self) -> Option<&str> {
        let shown = self.query.as_ref().map(|query| query.shown.as_str());
        shown.or(self.detail.as_deref()).filter(|_| self.word() == "wrong-query")
    }

    fn is_passing(&self) -> bool {
        matches!(self.word(), "busy" | "own-queue-full" | "no-worker")
    }

    pub(crate) fn is_said(&self) -> bool {
        !self.title.is_empty()
    }
}

/// In one line.
impl core::fmt::Display for Problem {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&printable(&self.title))?;
        match &self.detail {
            Some(detail) => write!(f, ": {}", printable(detail)),
            None => Ok(()),
        }
    }
}
