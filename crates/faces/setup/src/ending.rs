//! Why a setup ended before its last step.

/// Why it ended early.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Ending {
    /// A question has no answer, and nobody can be asked.
    #[error("{question} is not answered, and there is no terminal to ask at: give {flag}")]
    Unanswered {
        /// What was asked.
        question: &'static str,
        /// Flags that answer it.
        flag: &'static str,
    },
    /// A flag or an answer makes no sense here.
    #[error("{0}")]
    Wrong(String),
    /// It is refused for safety, or the machine did not allow it.
    #[error("{0}")]
    Refused(String),
    /// The operator ended it.
    #[error("interrupted: the same command goes on there")]
    Interrupted,
}
