//! Memory is found for buffers before they are taken for the first time.

use std::io;

use stage::sync::thread::{self, JoinHandle};
use stage::sync::{Arc, PoisonError};

use super::{Inner, Pool};

/// A thread that touches buffers before they are needed. It ends when this is dropped, or when
/// every buffer was touched.
#[derive(Debug)]
pub struct Ahead {
    pool: Arc<Inner>,
    thread: Option<JoinHandle<()>>,
}

impl Pool {
    /// From now on a thread keeps as much free memory touched as [`Pool::new`] did, so that who
    /// takes a buffer need not wait for its pages.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn touch_ahead(&self) -> io::Result<Ahead> {
        let inner = Arc::clone(&self.inner);
        let thread = thread::Builder::new()
            .name("pool".to_owned())
            .spawn(move || while inner.touch_next() {})?;
        Ok(Ahead { pool: Arc::clone(&self.inner), thread: Some(thread) })
    }
}

impl Inner {
    /// Waits until too few of the free buffers have been touched, and touches one more. False when
    /// there is none left, or they are not needed any more.
    fn touch_next(&self) -> bool {
        let may_wait = |free: &mut super::Free| {
            !free.is_ending && free.ready() >= self.ahead() && !free.is_touched(self.count())
        };
        let waited = self.needed.wait_while(self.lock(), may_wait);
        let mut free = waited.unwrap_or_else(PoisonError::into_inner);
        if free.is_ending || free.is_touched(self.count()) {
            return false;
        }
        let index = free.touch();
        drop(free);
        // A thread that takes it untouched waits for its pages then, or gets the error as a signal.
        self.touch(index).is_ok()
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.pool.lock().is_ending = true;
        self.pool.needed.notify_all();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it does not panic");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Buffer;

    #[test]
    fn memory_is_found_ahead_of_who_takes_it() {
        let size = 2 << 20;
        let pool = Pool::new(40, size).unwrap();
        if pool.is_in_huge_pages() {
            println!("not run: enough huge pages were set aside for all of it");
            return;
        }
        let ahead = pool.inner.ahead();
        let ready = || pool.inner.lock().ready();
        assert!(ready() == ahead && ahead < 40);
        let mut held: Vec<Buffer> = (0..4).filter_map(|_| pool.take()).collect();
        assert_eq!(ready(), ahead - 4);
        let toucher = pool.touch_ahead().unwrap();
        while ready() < ahead {
            thread::yield_now();
        }
        held.extend(core::iter::from_fn(|| pool.take()));
        assert_eq!((held.len(), pool.free_count()), (40, 0));
        for (value, buffer) in (1..).zip(&mut held) {
            buffer.fill(value);
        }
        drop(toucher);
        assert!((1..).zip(&held).all(|(value, buffer)| buffer.iter().all(|&byte| byte == value)));
    }
}
