//! What a file says, read again when a second has passed: a line that is taken out counts no more.

use std::sync::{Mutex, MutexGuard};

use host::SystemClock;
use units::{Clock as _, NANOS_PER_SECOND};

use crate::Error;

/// The file is looked at so often.
const LOOK_EVERY_NS: i64 = NANOS_PER_SECOND;

/// What a file says.
#[derive(Debug)]
pub(crate) struct Reread<T> {
    known: Mutex<Known<T>>,
}

#[derive(Debug)]
struct Known<T> {
    said: T,
    looked_ns: i64,
}

impl<T> Reread<T> {
    /// That was just read.
    pub(crate) fn new(said: T) -> Self {
        Self { known: Mutex::new(Known { said, looked_ns: SystemClock.boottime_ns() }) }
    }

    fn known(&self) -> MutexGuard<'_, Known<T>> {
        stage::lock(&self.known)
    }

    /// Tells `ask` what is said.
    pub(crate) fn with<R>(&self, ask: impl FnOnce(&T) -> R) -> R {
        ask(&self.known().said)
    }

    /// It was just written.
    pub(crate) fn set(&self, said: T) {
        *self.known() = Known { said, looked_ns: SystemClock.boottime_ns() };
    }

    /// It has changed: the next [`Self::refresh`] reads it.
    pub(crate) fn look_again(&self) {
        self.known().looked_ns = i64::MIN;
    }

    /// Has `look` change what is said; `None` where it was looked at a moment ago.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut known = self.known();
        let now_ns = SystemClock.boottime_ns();
        if now_ns.saturating_sub(known.looked_ns) < LOOK_EVERY_NS {
            return None;
        }
        known.looked_ns = now_ns;
        Some(look(&mut known.said))
    }
}

impl<T: Default> Reread<T> {
    /// Reads it again. While it cannot be read nothing is said: what was revoked must not go on.
    /// False where it was looked at a moment ago.
    pub(crate) fn refresh(&self, read: impl FnOnce() -> Result<T, Error>) -> Result<bool, Error> {
        let looked = self.look(|said| {
            *said = T::default();
            *said = read()?;
            Ok(true)
        });
        looked.unwrap_or(Ok(false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_says_nothing_until_it_can() {
        let file = Reread::new(7);
        assert!(!file.refresh(|| Ok(8)).unwrap(), "a moment ago");
        assert_eq!(file.with(|said| *said), 7);
        file.look_again();
        assert!(file.refresh(|| Err(Error::NoToken)).is_err());
        assert_eq!(file.with(|said| *said), 0);
        file.look_again();
        assert!(file.refresh(|| Ok(8)).unwrap());
        assert_eq!(file.with(|said| *said), 8);
        file.set(9);
        assert!(!file.refresh(|| Ok(8)).unwrap());
        assert_eq!(file.with(|said| *said), 9);
    }
}
