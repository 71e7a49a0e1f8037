//! Why nobody is logged in by the provider.

/// What is wrong with a file of settings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read, or others may read it.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// It is no TOML with these keys.
    #[error("{}: {why}", page::safe::path(path))]
    Settings {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong.
        why: String,
    },
}

/// Why a login at the provider is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Wrong {
    /// The provider does not answer, or not as it should.
    #[error("{0}")]
    Away(String),
    /// Too many logins at once.
    #[error("too many logins at the provider are under way")]
    Busy,
    /// The state is none that this browser was given, or it was used, or it took too long.
    #[error("this login was begun elsewhere, was used, or took longer than ten minutes")]
    Over,
    /// What the provider says of somebody does not count.
    #[error("{0}")]
    Token(&'static str),
    /// Who has logged in has no name that can be shown, or no role here.
    #[error("{0}")]
    Person(String),
}
