//! Ctrl-C and termination as a flag that long work looks at.

use core::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::Error;

/// 128 + SIGINT, as shells report it.
const INTERRUPTED: i32 = 130;

/// Set by the first SIGINT or SIGTERM; a second one ends the process at once with status 130.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// A flag that signals set. The handlers stay for the life of the process.
    pub fn install() -> Result<Self, Error> {
        let flag = Self::default();
        for signal in [SIGINT, SIGTERM] {
            // Handlers run in this order, so the one that ends the process sees the flag of earlier
            // signals only.
            signal_hook::flag::register_conditional_shutdown(
                signal,
                INTERRUPTED,
                Arc::clone(&flag.0),
            )
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag.0)))
            .map_err(|error| Error::system("install a signal handler", error))?;
        }
        Ok(flag)
    }

    /// Whether to stop.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether long work goes on.
    pub fn flow(&self) -> ControlFlow<()> {
        if self.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Stops as a signal does.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
