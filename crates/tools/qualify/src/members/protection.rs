//! What guards the data of members.

/// What is computed of the data before it is written.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Protection {
    /// Nothing.
    #[default]
    None,
    /// Checksums of rows and columns.
    Checksums,
    /// Checksums, and P on the last member.
    Parity,
    /// Checksums, P and Q on the last two members.
    DoubleParity,
}

impl Protection {
    /// Members that hold parity.
    pub fn parity_columns(self) -> usize {
        match self {
            Self::None | Self::Checksums => 0,
            Self::Parity => 1,
            Self::DoubleParity => 2,
        }
    }
}
