//! The newest state of each volume, which several requests share.

use core::future::Future;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use host::SystemClock;
use serde_json::Value;
use units::{Clock as _, NANOS_PER_SECOND};

use crate::problem::Problem;

/// A state that is not older is not asked for again.
const FRESH_NS: i64 = 2 * NANOS_PER_SECOND;

/// By the id of the volume.
#[derive(Debug, Default)]
pub(crate) struct Statuses {
    known: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<Option<Known>>>>>,
}

#[derive(Clone, Debug)]
struct Known {
    at_ns: i64,
    state: Result<Value, Problem>,
}

impl Statuses {
    /// The state of a volume, as `status --json` prints it. Who asks at the same time shares one
    /// answer of `ask`.
    pub(crate) async fn of(
        &self,
        id: &str,
        ask: impl Future<Output = Result<Value, Problem>>,
    ) -> Result<Value, Problem> {
        let own = {
            let mut known = stage::lock(&self.known);
            Arc::clone(known.entry(id.to_owned()).or_default())
        };
        let mut known = own.lock().await;
        let now_ns = SystemClock.boottime_ns();
        if let Some(known) = &*known
            && now_ns.saturating_sub(known.at_ns) < FRESH_NS
        {
            return known.state.clone();
        }
        let state = ask.await;
        *known = Some(Known { at_ns: SystemClock.boottime_ns(), state: state.clone() });
        state
    }
}
