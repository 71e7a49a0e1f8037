//! A value that threads change, and wait for.

use core::fmt;
use core::time::Duration;

use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use crate::{Key, current, wake};

/// A value that threads change, and wait for; clones share it. Each change is one step, so a
/// thread that panics leaves no state in between.
#[derive(Default)]
pub struct Watched<T>(Arc<(Mutex<T>, Condvar)>);

impl<T> Watched<T> {
    /// Changes it, and wakes those that wait.
    pub fn change(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.lock());
        self.0.1.notify_all();
        wake(Key::of(&self.0));
    }

    /// Waits until it `is_so`, which `what` says in words. False when it was not after `patience`.
    pub fn wait(&self, what: &'static str, patience: Duration, is_so: impl Fn(&T) -> bool) -> bool {
        if let Some(stage) = current() {
            let attempt = || is_so(&self.lock()).then_some(());
            return stage.wait_for((Key::of(&self.0), what), Some(patience), attempt).is_some();
        }
        let waited = self.0.1.wait_timeout_while(self.lock(), patience, |value| !is_so(value));
        let (value, _) = waited.unwrap_or_else(PoisonError::into_inner);
        is_so(&value)
    }

    fn lock(&self) -> MutexGuard<'_, T> {
        crate::lock(&self.0.0)
    }
}

impl<T> Clone for Watched<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: fmt::Debug> fmt::Debug for Watched<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watched").field(&*self.lock()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_ends_the_waits_for_it_and_others_their_patience() {
        let count = Watched::<u32>::default();
        let (other, soon) = (count.clone(), Duration::from_millis(10));
        crate::spawn("other", move || other.change(|count| *count += 1)).expect("a thread");
        assert!(count.wait("one", Duration::from_mins(1), |count| *count == 1));
        assert!(!count.wait("two", soon, |count| *count == 2));
        assert_eq!(format!("{count:?}"), "Watched(1)");
    }
}
