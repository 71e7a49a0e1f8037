//! Which histories to run, and how.

/// What the histories are of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Volume,
    Recorder,
    Search,
}

impl Kind {
    /// Its word on the command line, with a space behind it.
    pub(crate) fn option(self) -> &'static str {
        match self {
            Self::Volume => "",
            Self::Recorder => "--recorder ",
            Self::Search => "--search ",
        }
    }
}

/// Which seeds to run, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Orders {
    pub(crate) of: Kind,
    pub(crate) first_seed: u64,
    pub(crate) seeds: u64,
    pub(crate) threads: usize,
    /// Ends with the first history that fails.
    pub(crate) stop_at_failure: bool,
    /// Every step is printed.
    pub(crate) trace: bool,
}
