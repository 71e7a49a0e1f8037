//! Why there are no times.

use std::path::PathBuf;

/// Why a run could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// It refused to tell of a disk or a file.
    #[error(transparent)]
    Blockdev(#[from] blockdev::Error),
    /// The disk refused.
    #[error(transparent)]
    Device(#[from] device::Error),
    /// There is no program of that name, and the name has blanks in it.
    #[error("no program is called {name:?}; --shell sh has a shell run such a line")]
    Line {
        /// What was to be started.
        name: String,
    },
    /// There is no such program.
    #[error("no program {name:?} that could be started")]
    NoProgram {
        /// What was to be started.
        name: String,
    },
    /// A command that is measured failed.
    #[error("{name} {}; --ignore-failure measures it all the same", ended(*code))]
    Failed {
        /// What it is called.
        name: String,
        /// Its exit code; `None` where a signal ended it.
        code: Option<i32>,
    },
    /// A command around those that are measured failed.
    #[error("{what} {line:?} {}", ended(*code))]
    Around {
        /// Which of them: `--prepare`.
        what: &'static str,
        /// What was to be done.
        line: String,
        /// Its exit code; `None` where a signal ended it.
        code: Option<i32>,
    },
    /// A processor that is not there, or not ours.
    #[error("processor {cpu} is not among those that this process may use")]
    NoProcessor {
        /// The one that was asked for.
        cpu: usize,
    },
    /// This processor computes parity wrongly.
    #[error(transparent)]
    Codec(#[from] parity::Error),
    /// There is nothing to read or write on the disk.
    #[error("a file of {size_bytes} bytes at {} is too small to say anything", path.display())]
    TooSmall {
        /// Path of the file.
        path: PathBuf,
        /// Size in bytes.
        size_bytes: u64,
    },
}

fn ended(code: Option<i32>) -> String {
    match code {
        Some(code) => format!("ended with exit code {code}"),
        None => "was ended by a signal".to_owned(),
    }
}
