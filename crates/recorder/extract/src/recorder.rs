//! Whether a recorder of the volume runs that is read.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

/// Asks for the recorder of a volume; by default none is asked, and none runs.
#[derive(Clone, Default)]
pub struct Recorder(Option<Arc<Ask>>);

type Ask = dyn Fn(Duration) -> bool + Send + Sync;

impl Recorder {
    /// By this: asks for so long until a recorder answers, which has then made durable what it had
    /// taken. Whether one did.
    pub fn new(ask: impl Fn(Duration) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(ask)))
    }

    pub(crate) fn has_begun(&self, patience: Duration) -> bool {
        self.0.as_ref().is_some_and(|ask| ask(patience))
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Recorder").field(&self.0.is_some()).finish()
    }
}

/// Who is asked makes no difference to what is asked for.
impl PartialEq for Recorder {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Recorder {}
