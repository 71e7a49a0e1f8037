//! What an archive needs of a store of objects.

use core::fmt;
use std::sync::Arc;

/// Why a store did not do it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// It cannot be reached, or is busy: a later attempt may succeed.
    #[error("{url} is away: {why}")]
    Away {
        /// Which store.
        url: String,
        /// What it or the network said.
        why: String,
    },
    /// It refuses: credentials, rights, a bucket that is not there.
    #[error("{url} refuses: {why}")]
    Refused {
        /// Which store.
        url: String,
        /// What it said, and what to do.
        why: String,
    },
    /// The caller wished to stop, and the call was given up.
    #[error("stopped")]
    Stopped,
}

/// An object in a listing.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Listed {
    /// Its name, with slashes, from the root of the archive.
    pub name: String,
    /// Its length.
    pub bytes: u64,
}

/// Objects by name. One is whole or not there, and whoever reads it sees one whole version.
pub trait Store: fmt::Debug {
    /// Where it is, for messages.
    fn url(&self) -> &str;

    /// Stores an object in place of the one of that name, durably.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError>;

    /// The same where there is none of that name; whether there was none.
    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<bool, StoreError>;

    /// The bytes of an object; `None` where there is none.
    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Calls `visit` with the objects below a folder whose names are behind `after`, in any order.
    fn list(
        &self,
        folder: &str,
        after: Option<&str>,
        visit: &mut dyn FnMut(Listed),
    ) -> Result<(), StoreError>;

    /// Removes an object, if it is there.
    fn delete(&self, name: &str) -> Result<(), StoreError>;
}

/// How a bucket is reached.
#[derive(Clone)]
pub struct Access {
    /// Address of the server where it is not the usual one; the environment's where it is `None`.
    pub endpoint: Option<String>,
    /// Without encryption, to any server.
    pub allow_http: bool,
    /// A call is given up once this says so.
    pub is_to_stop: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}
