//! The thread that says which wait is too long. What that means: [`crate::waits`].

use std::path::Path;
use std::sync::Arc;

use core::time::Duration;

use events::{EventKind, Events};
use stage::{Receiver, Scope, Sender, channel};
use units::Clock;

use crate::error::Error;
use crate::status::SharedStatus;
use crate::waits::Waits;

/// How often waits are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Says which wait is too long, until what this gives is dropped.
pub(crate) fn start<'scope>(
    scope: &Scope<'scope, '_>,
    (waits, events): (&Waits, &Events),
    (status, clock): (&SharedStatus, &'scope dyn Clock),
    (log, volume): (fn(&str), &Path),
) -> Result<Sender<()>, Error> {
    let (goes_on, ended) = channel(1);
    let (waits, status, events) = (waits.clone(), Arc::clone(status), events.clone());
    let volume = volume.display().to_string();
    let body = move || {
        let log = |line: &str| log(&format!("{volume}: {line}"));
        run(&waits, (&status, clock), (&log, &events), &ended);
    };
    scope.spawn("watchdog", body).map_err(Error::Thread)?;
    Ok(goes_on)
}

/// Looks until the other end of `goes_on` is gone: lines go to the log at once, and to the
/// status for the thread that reports progress.
fn run(
    waits: &Waits,
    (status, clock): (&SharedStatus, &dyn Clock),
    (log, events): (&dyn Fn(&str), &Events),
    goes_on: &Receiver<()>,
) {
    use std::sync::mpsc::RecvTimeoutError;
    while goes_on.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        let now_ns = clock.boottime_ns();
        let (news, long_waits) = (waits.look(now_ns), waits.long(now_ns));
        for line in news {
            log(&line);
            events.say(EventKind::LongWait, "", line);
        }
        let mut status = stage::lock(status);
        status.long_waits = long_waits;
    }
}
