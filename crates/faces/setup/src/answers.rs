//! What the flags say before anything is asked.

use core::net::SocketAddr;
use core::time::Duration;
use std::path::PathBuf;

/// How much is measured before the volume is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    /// Minutes.
    Quick,
    /// The whole surface, several times.
    Full,
    /// Nothing.
    None,
}

impl Measure {
    /// The word of the flag.
    pub fn word(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
            Self::None => "none",
        }
    }

    /// Reads the word of the flag.
    pub fn of(word: &str) -> Option<Self> {
        [Self::Quick, Self::Full, Self::None].into_iter().find(|it| it.word() == word)
    }
}

/// Answers that were given as flags.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answers {
    /// Interfaces to record.
    pub interfaces: Vec<String>,
    /// Disks that become members.
    pub members: Vec<PathBuf>,
    /// Folders, in each of which a file becomes a member.
    pub folders: Vec<PathBuf>,
    /// Bytes of each file.
    pub size_bytes: Option<u64>,
    /// How much is measured.
    pub measure: Option<Measure>,
    /// Members that may be lost.
    pub parity: Option<u8>,
    /// Of the members, those that wait as spares.
    pub spares: Option<u8>,
    /// Name of the recorder.
    pub name: String,
    /// The configuration file.
    pub config: Option<PathBuf>,
    /// Where the API listens.
    pub listen: Option<SocketAddr>,
    /// Whether the service is started.
    pub start: Option<bool>,
    /// What is proposed counts as answered.
    pub takes_proposals: bool,
    /// A configuration that is there may be replaced.
    pub replaces: bool,
    /// Nothing is done, and what would be is said.
    pub is_dry: bool,
    /// How long the recorder and the first session are waited for.
    pub patience: Duration,
    /// How long traffic is counted.
    pub look: Duration,
}

impl Default for Answers {
    fn default() -> Self {
        Self {
            interfaces: Vec::new(),
            members: Vec::new(),
            folders: Vec::new(),
            size_bytes: None,
            measure: None,
            parity: None,
            spares: None,
            name: "main".to_owned(),
            config: None,
            listen: None,
            start: None,
            takes_proposals: false,
            replaces: false,
            is_dry: false,
            patience: Duration::from_mins(2),
            look: Duration::from_secs(3),
        }
    }
}
