//! Why an expression is no filter, one line each.

use std::time::Duration;

/// A filter could not be compiled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The expression does not compile.
    #[error("filter \"{expression}\": {message}")]
    Wrong {
        /// The filter expression.
        expression: String,
        /// The compiler's words.
        message: String,
    },
    /// The expression has so many alternatives that compiling it does not come to an end.
    #[error(
        "filter \"{expression}\": libpcap is not done with it after {} s; give fewer alternatives",
        patience.as_secs()
    )]
    TooSlow {
        /// The filter expression.
        expression: String,
        /// How long it was waited for.
        patience: Duration,
    },
    /// The filter compiler is not installed.
    #[error("filters need libpcap, which is not installed (Debian package libpcap0.8): {source}")]
    Library {
        /// The loader's words.
        source: libloading::Error,
    },
}
