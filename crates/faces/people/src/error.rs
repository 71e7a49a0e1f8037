//! Why an account is not changed, or a file not taken.

/// What is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name of other characters, or too long.
    #[error("{}", crate::NAME_RULE)]
    WrongName,
    /// Somebody has the name.
    #[error("there is a person of this name already")]
    NameTaken,
    /// Nobody has the name.
    #[error("there is no person of this name")]
    NoPerson,
    /// No role has the name.
    #[error("there is no role of this name: administrator, analyst, viewer, or one of --role")]
    NoRole,
    /// Fewer than twelve characters.
    #[error("a password has 12 characters or more")]
    ShortPassword,
    /// More than a kibibyte.
    #[error("a password has 1024 bytes at most")]
    LongPassword,
    /// The one that it was before.
    #[error("the new password is the one that there is")]
    SamePassword,
    /// Nobody could manage people any more.
    #[error("this is the last administrator who can log in; make another one first")]
    LastAdministrator,
    /// The first administrator is made once.
    #[error("there is an administrator already")]
    HasAdministrator,
    /// A key is one person's.
    #[error("this key is registered already")]
    KeyTaken,
    /// Eight keys are enough for each.
    #[error("there are as many keys as there may be: remove one first")]
    TooManyKeys,
    /// The person has no such key.
    #[error("there is no such key")]
    NoKey,
    /// A key needs a name that is shown.
    #[error("a key has a name, of 64 characters at most")]
    WrongKeyName,
    /// A service is for hundreds.
    #[error("there are as many people as there may be")]
    TooMany,
    /// A text that is no file of people.
    #[error("it is no file of people: {0}")]
    WrongFile(&'static str),
    /// The same, where JSON says at which line.
    #[error("it is no file of people: line {line} is not what was expected there")]
    WrongLine {
        /// From 1.
        line: usize,
    },
    /// No hash could be computed.
    #[error("the password could not be hashed")]
    NotHashed,
}
