//! The network namespace of a socket, in words.

/// Where a socket is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Number of its namespace.
    pub inode: u64,
    /// Name of the place in words.
    pub name: String,
    /// It is the one that we are in.
    pub is_own: bool,
    /// What stands before a command that is to run in it; nothing for our own.
    pub enter: String,
}

impl Default for Place {
    fn default() -> Self {
        Self { inode: 0, name: "this one".to_owned(), is_own: true, enter: String::new() }
    }
}
