//! The moment when a recording has opened everything.

use core::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// For members that come back, or spares: more are not opened at once.
const RINGS: usize = 4;

/// What a recording opens again while it goes on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Held {
    /// The members of the volume and its spares, where they are or were.
    pub members: Vec<PathBuf>,
    /// One that is away may come back, or a spare be taken: then a member is opened anew.
    pub may_return: bool,
    /// Where index files are stored; `None` where they cannot be.
    pub index_dir: Option<PathBuf>,
    /// Files that packets are still read from.
    pub inputs: Vec<PathBuf>,
}

/// Is called once, when everything is open and no packet was taken; what it says is shown to the
/// user.
#[derive(Clone, Default)]
pub struct Settled(Option<Arc<Call>>);

type Call = dyn Fn(&Held) -> Vec<String> + Send + Sync;

impl Settled {
    /// Calls `call` once everything is open.
    pub fn new(call: impl Fn(&Held) -> Vec<String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(call)))
    }

    /// `rings`: so many members are opened again where a recorder that takes over fails.
    pub(crate) fn call(&self, held: &Held, rings: usize) -> Vec<String> {
        let Some(call) = &self.0 else { return Vec::new() };
        let rings = rings + if held.may_return { RINGS } else { 0 };
        if rings > 0 {
            device::reserve_rings(rings);
        }
        call(held)
    }
}

impl fmt::Debug for Settled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Settled").field(&self.0.is_some()).finish()
    }
}
