//! Whether who asked still counts while the answer goes on: a token that is revoked or over, a line
//! of a certificate that is taken out, an account that is disabled.

use core::time::Duration;
use std::sync::Arc;

use host::SystemClock;
use tokio::time::sleep;
use units::Clock as _;

use crate::access::{Caller, Shown};
use crate::service::Service;

/// It is looked at so often; the files are read once a second at most, whoever asks.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// So often in a row the caller has to be missing.
const MISSED_MAX: u32 = 2;

/// A caller whose answer goes on.
#[derive(Clone, Debug)]
pub(crate) struct Validity {
    service: Arc<Service>,
    caller: Caller,
}

impl Validity {
    pub(crate) fn of(service: &Arc<Service>, caller: &Caller) -> Self {
        Self { service: Arc::clone(service), caller: caller.clone() }
    }

    /// Returns when the caller does not count any more. A file that is just being written may lack
    /// a line for a moment: an answer of hours is not broken off for that.
    pub(crate) async fn lapse(&self) {
        let mut missed = 0;
        while missed < MISSED_MAX {
            sleep(LOOK_EVERY).await;
            missed = if self.counts() { 0 } else { missed + 1 };
        }
    }

    /// Whether the same request would be answered now, with the same of it seen.
    fn counts(&self) -> bool {
        self.service.refresh_access();
        let Caller { name, scopes, filter, shown, .. } = &self.caller;
        let now = SystemClock.realtime();
        let credentials = &self.service.credentials;
        let known = match shown {
            Shown::Nothing => return true,
            Shown::Token(hash) => credentials.access.by_hash(hash, now),
            Shown::Certificate(common_name) => credentials.access.by_certificate(common_name, now),
            Shown::Account(stamp) => {
                credentials.accounts.as_ref().and_then(|accounts| accounts.caller(name, stamp))
            }
        };
        known.is_some_and(|known| known.scopes == *scopes && known.filter == *filter)
    }
}
