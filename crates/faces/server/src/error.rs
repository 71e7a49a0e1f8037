//! Why the service does not begin.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// What keeps the service from beginning.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Neither tokens nor certificates.
    #[error(
        "whoever may connect could read packets: give --token-file FILE (`wirespool serve token \
         create NAME --token-file FILE` makes it), --people-file FILE or --client-ca FILE"
    )]
    NoCredential,
    /// Others could read what is asked and answered.
    #[error(
        "{0} is not on the loopback: beyond it nothing listens without TLS (--tls-cert, --tls-key)"
    )]
    NoTls(SocketAddr),
    /// A certificate of a client says nothing where there is no TLS.
    #[error("{0} needs --tls-cert and --tls-key")]
    NeedsTls(&'static str),
    /// Stenographer's clients show certificates.
    #[error("--stenographer needs --client-ca: its clients show a certificate")]
    NeedsClientCa,
    /// Whom a provider knows gets a role of the service, which people have.
    #[error("--provider needs --people-file: somebody has to manage when the provider is away")]
    NeedsPeople,
    /// Browsers come back from a provider to an address that it knows.
    #[error("--provider needs --public-url https://NAME, as browsers open the page")]
    NeedsPublicUrl,
    /// Who asked and who approved has to be put down.
    #[error("--requests-file needs --audit: who asks and who approves is put down there")]
    NeedsAudit,
    /// The file of a provider, or its certificates.
    #[error(transparent)]
    Provider(#[from] oidc::Error),
    /// The file of a provider gives a role that is none.
    #[error(
        "{}: there is no role {}: add it with --role",
        page::safe::path(_0),
        page::safe::printable(_1)
    )]
    ProviderRole(PathBuf, String),
    /// A file of private keys that is none.
    #[error("{}: {_1}", page::safe::path(_0))]
    Identity(PathBuf, encryption::WrapError),
    /// A file is no report of a qualification.
    #[error("{}: {_1}", page::safe::path(_0))]
    Qualification(PathBuf, qualify::QualificationError),
    /// A path that has no text.
    #[error("{} cannot be served: its path is no text", page::safe::path(_0))]
    NoText(PathBuf),
    /// A volume is named twice.
    #[error("the volume {} is named twice", page::safe::printable(_0))]
    Twice(String),
    /// A line of the file of tokens.
    #[error("{}, line {line}: {why}", page::safe::path(path))]
    Token {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong.
        why: &'static str,
    },
    /// A token that is not made.
    #[error("{0}")]
    NewToken(&'static str),
    /// A token whose name another one has.
    #[error("the file has this name already; take its line out first")]
    TokenTaken,
    /// A token that is not revoked.
    #[error("there is no token of this name")]
    NoToken,
    /// The file of people is none, or an account is not made or changed.
    #[error(transparent)]
    People(#[from] people::FileError),
    /// A certificate, a key or both.
    #[error("{}: {why}", page::safe::path(path))]
    Tls {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Somebody else listens there, or nobody may.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// A volume cannot be opened.
    #[error(transparent)]
    Volume(#[from] upkeep::Error),
    /// A file or this process.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// The file of tags cannot be read.
    #[error(transparent)]
    Tags(#[from] tags::Error),
    /// The file of requests cannot be read.
    #[error(transparent)]
    Approvals(#[from] approvals::Error),
    /// The audit cannot be opened.
    #[error(transparent)]
    Audit(#[from] audit::Error),
    /// A worker could not be started.
    #[error(transparent)]
    Sandbox(#[from] sandbox::Error),
    /// The runtime, or a socket of a worker.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl Error {
    /// Whether the words that it was started with are wrong, whatever the machine.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::NoCredential
                | Self::NoTls(_)
                | Self::NeedsTls(_)
                | Self::NeedsClientCa
                | Self::NeedsPeople
                | Self::NeedsPublicUrl
                | Self::NeedsAudit
                | Self::Twice(_)
                | Self::NewToken(_)
                | Self::TokenTaken
                | Self::People(people::FileError::Refused(
                    people::Error::WrongName
                        | people::Error::NoRole
                        | people::Error::ShortPassword
                        | people::Error::LongPassword
                ))
        )
    }
}
