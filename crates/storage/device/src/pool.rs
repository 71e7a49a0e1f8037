//! Fixed memory for columns: one mapping, cut into buffers.
//!
//! Taking, sharing and giving back allocate nothing. A buffer is either free, held by one
//! [`Buffer`] (which may write) or held by one or more [`Shared`] (which only read); the count per
//! buffer decides. A buffer keeps its old content when it is taken again. The last one to come back
//! is the first to be taken: as long as few are in use it is always the same few, warm in the
//! caches, and the others have not even pages yet.
//!
//! A pool may lie in memory that another process maps to read ([`Pool::shared`], [`SharedPool`]).

#![expect(unsafe_code, reason = "one mapping is cut into buffers with their own life times")]

// The paths hold where the crate `schedules` takes this file, too.
#[path = "pool/ahead.rs"]
mod ahead;
#[path = "pool/files.rs"]
mod files;
#[cfg(not(miri))]
#[path = "pool/mapping.rs"]
mod mapping;
#[cfg(miri)]
#[path = "pool/heap.rs"]
mod mapping;
#[path = "pool/shared.rs"]
mod shared;

use core::fmt;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::time::Duration;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use stage::Key;
use stage::sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence};
use stage::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

pub use ahead::Ahead;
use mapping::Mapping;
use shared::usize_of;
pub use shared::{SharedPool, SharedPoolError};

use crate::{Error, ROW_SIZE, to_u64};

/// Free memory that is touched before a thread takes it: what a link of 100 Gbit/s fills in 1 ms,
/// or one of 10 Gbit/s in 13 ms.
const AHEAD_BYTES: usize = 16 << 20;

/// Most holders of one buffer. Half of what the counter can hold, so that threads which pass it at
/// the same moment do not overflow it.
const HOLDERS_MAX: u32 = u32::MAX / 2;
/// Holders of a buffer that a [`Buffer`] has: no other thread may.
const OWNED: u32 = u32::MAX;
const _: () = assert!(HOLDERS_MAX < OWNED);

/// A handle on a fixed number of buffers of one size; clones share them.
#[derive(Clone, Debug)]
pub struct Pool {
    inner: Arc<Inner>,
}

struct Inner {
    /// Who may touch which part of it is decided by `Buffer` (unique) and `Shared` (read-only).
    memory: Mapping,
    size: usize,
    /// Buffers without the reserve.
    count: usize,
    /// Holders of each buffer: 0 while it is free, [`OWNED`] for a `Buffer`, the number of clones
    /// for `Shared`.
    holders: Box<[AtomicU32]>,
    free: Mutex<Free>,
    /// Fewest that were ever free.
    least_free: AtomicUsize,
    returned: Condvar,
    /// Few of the free buffers are touched.
    needed: Condvar,
}

/// The free buffers.
struct Free {
    /// Those that were in use.
    returned: Vec<u32>,
    /// Buffers from this one on were never taken.
    fresh: u32,
    /// Buffers from this one on were never touched, unless they were taken.
    untouched: u32,
    /// Touched buffers are not needed any more.
    is_ending: bool,
    /// Buffers of the reserve that may be taken.
    lent: usize,
}

impl Free {
    /// Buffers that can be written to without waiting for memory.
    fn ready(&self) -> usize {
        self.returned.len() + usize_of(self.untouched.saturating_sub(self.fresh))
    }

    fn is_touched(&self, count: usize) -> bool {
        usize_of(self.untouched.max(self.fresh)) >= count
    }

    /// The next one to be touched.
    fn touch(&mut self) -> u32 {
        let index = self.untouched.max(self.fresh);
        self.untouched = index + 1;
        index
    }
}

impl Pool {
    /// Maps `count` buffers of `size` bytes, a multiple of [`ROW_SIZE`], and touches the first 16
    /// MiB of them. The others are touched when they are needed for the first time, or shortly
    /// before ([`Pool::touch_ahead`]).
    ///
    /// # Panics
    /// If `count` is 0 or beyond `u32`, or `size` is 0 or no multiple of [`ROW_SIZE`].
    pub fn new(count: usize, size: usize) -> Result<Self, Error> {
        Self::in_memory((count, 0), size, Mapping::new)
    }

    /// As [`Pool::new`], in memory that another process can map to read ([`SharedPool`]), where the
    /// kernel has such memory; where not, it is a pool without ([`Pool::memory_fd`]). In huge
    /// pages like that, transparent ones from Linux 6.1 on.
    ///
    /// # Panics
    /// As [`Pool::new`].
    pub fn shared(count: usize, size: usize) -> Result<Self, Error> {
        Self::shared_with_reserve(count, 0, size)
    }

    /// The same with a reserve of further buffers, which cannot be taken before they are lent
    /// ([`Pool::lend`]). Until then they have no memory, unless it is huge pages.
    ///
    /// # Panics
    /// As [`Pool::new`].
    pub fn shared_with_reserve(count: usize, reserve: usize, size: usize) -> Result<Self, Error> {
        let in_file = |len| Mapping::in_file(len).or_else(|_| Mapping::new(len));
        Self::in_memory((count, reserve), size, in_file)
    }

    fn in_memory(
        (count, reserve): (usize, usize),
        size: usize,
        map: impl FnOnce(usize) -> Result<Mapping, Errno>,
    ) -> Result<Self, Error> {
        let total = count.saturating_add(reserve);
        assert!(u32::try_from(total).is_ok(), "a pool has fewer than 2^32 buffers");
        assert!(count > 0, "a pool has at least one buffer");
        assert!(size > 0 && size.is_multiple_of(ROW_SIZE), "buffers are whole rows");
        let no_memory = |errno: Errno| Error::Memory {
            size_bytes: to_u64(total).saturating_mul(to_u64(size)),
            errno: errno.raw_os_error(),
        };
        let len = total.checked_mul(size).ok_or_else(|| no_memory(Errno::NOMEM))?;
        let returned = Vec::with_capacity(total);
        let free = Free { returned, fresh: 0, untouched: 0, is_ending: false, lent: 0 };
        let inner = Inner {
            memory: map(len).map_err(no_memory)?,
            size,
            count,
            holders: (0..total).map(|_| AtomicU32::new(0)).collect(),
            free: Mutex::new(free),
            least_free: AtomicUsize::new(count),
            returned: Condvar::new(),
            needed: Condvar::new(),
        };
        let now = if inner.memory.is_huge() { count } else { inner.ahead() };
        for _ in 0..now {
            let index = inner.lock().touch();
            inner.touch(index).map_err(no_memory)?;
        }
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Whether the buffers lie in huge pages that were set aside.
    pub fn is_in_huge_pages(&self) -> bool {
        self.inner.memory.is_huge()
    }

    /// The sealed file that is the memory of the buffers, for [`SharedPool::map`] in another
    /// process; `None` for a pool that is not shared. Buffer `n` begins at byte `n * buffer_size`.
    ///
    /// A process that has it cannot write to the buffers, change the length or take the seals off.
    /// It shows all buffers, at all times.
    pub fn memory_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.memory.memory_fd()
    }

    /// A free buffer with whatever it held before, or `None` if all are in use.
    pub fn take(&self) -> Option<Buffer> {
        let index = self.inner.pop(&mut self.inner.lock())?;
        Some(self.hand_out(index))
    }

    /// As [`Pool::take`], waiting up to `timeout` for one to come back.
    pub fn take_timeout(&self, timeout: Duration) -> Option<Buffer> {
        if let Some(stage) = stage::current() {
            let key = (Key::of(&self.inner), "a buffer");
            return stage.wait_for(key, Some(timeout), || self.take());
        }
        let (mut free, _) = self
            .inner
            .returned
            .wait_timeout_while(self.inner.lock(), timeout, |free| self.inner.free_count(free) == 0)
            .unwrap_or_else(PoisonError::into_inner);
        let index = self.inner.pop(&mut free)?;
        drop(free);
        Some(self.hand_out(index))
    }

    fn hand_out(&self, index: u32) -> Buffer {
        let before = self.inner.holders(index).swap(OWNED, Ordering::Relaxed);
        assert_eq!(before, 0, "a free buffer has no holder");
        Buffer { held: Held { pool: Arc::clone(&self.inner), index } }
    }

    /// Another hold on the buffer at this place, if it is shared at this moment: for a part of this
    /// process that learned of it in a message.
    pub fn shared_at(&self, index: u32) -> Option<Shared> {
        let holders = self.inner.holders.get(usize_of(index))?;
        let more = |count| (1..HOLDERS_MAX).contains(&count).then(|| count + 1);
        // Pairs with the Release of `freeze`, through whatever was counted since.
        holders.fetch_update(Ordering::Acquire, Ordering::Relaxed, more).ok()?;
        Some(Shared { held: Held { pool: Arc::clone(&self.inner), index } })
    }

    /// From now on this many buffers of the reserve, or all that it has, may be taken as well: for
    /// as many that will not come back soon. What was lent stays so.
    pub fn lend(&self, count: usize) {
        let mut free = self.inner.lock();
        let reserve = self.inner.holders.len() - self.inner.count;
        free.lent = count.min(reserve).max(free.lent);
        drop(free);
        self.inner.returned.notify_all();
    }

    /// Buffers that are free at this moment.
    pub fn free_count(&self) -> usize {
        self.inner.free_count(&self.inner.lock())
    }

    /// Fewest buffers that were free at any moment so far.
    pub fn least_free_count(&self) -> usize {
        self.inner.least_free.load(Ordering::Relaxed)
    }

    /// Buffers in all, without the reserve.
    pub fn count(&self) -> usize {
        self.inner.count()
    }

    /// The same with the reserve: so many lie in the memory of the pool.
    pub fn mapped_count(&self) -> usize {
        self.inner.holders.len()
    }

    /// Bytes in each buffer.
    pub fn buffer_size(&self) -> usize {
        self.inner.size
    }
}

impl Inner {
    fn count(&self) -> usize {
        self.count
    }

    /// Free buffers that are to be touched, at least.
    fn ahead(&self) -> usize {
        (AHEAD_BYTES / self.size).clamp(1, self.count())
    }

    fn touch(&self, index: u32) -> Result<(), Errno> {
        if self.memory.is_huge() {
            return Ok(());
        }
        self.memory.touch(usize_of(index) * self.size, self.size)
    }

    /// A panic while the list was locked cannot leave it half changed.
    fn lock(&self) -> MutexGuard<'_, Free> {
        stage::lock(&self.free)
    }

    fn free_count(&self, free: &Free) -> usize {
        free.returned.len() + self.count() + free.lent - usize_of(free.fresh)
    }

    fn pop(&self, free: &mut Free) -> Option<u32> {
        let index = free.returned.pop().or_else(|| {
            let index = free.fresh;
            (usize_of(index) < self.count() + free.lent).then(|| {
                free.fresh += 1;
                index
            })
        })?;
        self.least_free.fetch_min(self.free_count(free), Ordering::Relaxed);
        if free.ready() < self.ahead() {
            self.needed.notify_one();
        }
        Some(index)
    }

    fn holders(&self, index: u32) -> &AtomicU32 {
        self.holders.get(usize_of(index)).expect("indexes come from the free list")
    }

    fn address(&self, index: usize) -> NonNull<u8> {
        assert!(index < self.holders.len(), "the buffer lies in the mapping");
        // SAFETY: index < count, so the sum stays within the `count * size` bytes mapped.
        unsafe { self.memory.start().add(index * self.size) }
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner")
            .field("count", &self.holders.len())
            .field("size", &self.size)
            .field("free", &self.free_count(&self.lock()))
            .finish_non_exhaustive()
    }
}

/// One count on one buffer; the last to drop returns it.
struct Held {
    pool: Arc<Inner>,
    index: u32,
}

impl Held {
    fn bytes(&self) -> &[u8] {
        let address = self.pool.address(usize_of(self.index));
        // SAFETY: the buffer is mapped and initialised (the kernel gives zeros), and stays mapped
        // while `pool` is held. While a count is held only the one `Buffer` may change it, through
        // `&mut`: `hand_out` asserts that there was no count before, and no other process can
        // write (`Mapping::of_file`). Nothing else in this process maps it (`SharedPool::map`).
        unsafe { core::slice::from_raw_parts(address.as_ptr(), self.pool.size) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let holders = self.pool.holders(self.index);
        // No other thread can make it owned, or end that, while a count is held.
        let is_last = if holders.load(Ordering::Relaxed) == OWNED {
            holders.store(0, Ordering::Release);
            true
        } else {
            holders.fetch_sub(1, Ordering::Release) == 1
        };
        if is_last {
            // Pairs with the Release of the other holders: their reads end before the buffer is
            // reused.
            fence(Ordering::Acquire);
            self.pool.lock().returned.push(self.index);
            self.pool.returned.notify_one();
            stage::wake(Key::of(&self.pool));
        }
    }
}

/// A buffer with one owner, who may write. Goes back to its pool when dropped.
pub struct Buffer {
    held: Held,
}

impl Buffer {
    /// Its place in the pool, from 0.
    pub fn index(&self) -> u32 {
        self.held.index
    }

    /// Gives up writing for sharing.
    pub fn freeze(self) -> Shared {
        let holders = self.held.pool.holders(self.held.index);
        let before = holders.swap(1, Ordering::Release);
        assert_eq!(before, OWNED, "a buffer has one owner");
        Shared { held: self.held }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.held.bytes()
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        let address = self.held.pool.address(usize_of(self.held.index));
        // SAFETY: as in `Held::bytes`; a `Buffer` is the only holder (it cannot be cloned, and
        // `freeze` consumes it), so this borrow is the only one.
        unsafe { core::slice::from_raw_parts_mut(address.as_ptr(), self.held.pool.size) }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer {}", self.held.index)
    }
}

/// A buffer that is only read, by any number of holders in any thread. Goes back to its pool when
/// the last clone is dropped.
pub struct Shared {
    held: Held,
}

impl Shared {
    /// Its place in the pool, from 0.
    pub fn index(&self) -> u32 {
        self.held.index
    }
}

impl Clone for Shared {
    fn clone(&self) -> Self {
        let holders = self.held.pool.holders(self.held.index);
        let before = holders.fetch_add(1, Ordering::Relaxed);
        if !(1..HOLDERS_MAX).contains(&before) {
            // The count must not come round to 0 by clones that were forgotten.
            holders.fetch_sub(1, Ordering::Relaxed);
            panic!("a held buffer has a count, and space for one more");
        }
        Self { held: Held { pool: Arc::clone(&self.held.pool), index: self.held.index } }
    }
}

impl Deref for Shared {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.held.bytes()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared {}", self.held.index)
    }
}

#[cfg(test)]
mod tests {
    use super::mapping::HUGE_PAGE_SIZE;
    use super::*;

    #[test]
    fn buffers_are_aligned_and_do_not_overlap() {
        let pool = Pool::new(5, 8192).unwrap();
        let mut held: Vec<Buffer> = core::iter::from_fn(|| pool.take()).collect();
        assert_eq!((held.len(), pool.free_count(), pool.count()), (5, 0, 5));
        for (value, buffer) in (1..).zip(&mut held) {
            assert_eq!(buffer.as_ptr().align_offset(ROW_SIZE), 0);
            buffer.fill(value);
        }
        for (value, buffer) in (1..).zip(&held) {
            assert!(buffer.iter().all(|&byte| byte == value));
        }
        drop(held);
        assert_eq!((pool.free_count(), pool.least_free_count()), (5, 0));
    }

    #[test]
    fn a_shared_buffer_returns_with_its_last_clone_from_any_thread() {
        let pool = Pool::new(1, 4096).unwrap();
        let mut buffer = pool.take().unwrap();
        buffer[7] = 9;
        let shared = buffer.freeze();
        let clone = shared.clone();
        drop(shared);
        assert!(pool.take().is_none());
        std::thread::scope(|scope| {
            scope.spawn(move || assert_eq!(clone[7], 9));
        });
        assert!(pool.take().is_some());
    }

    #[test]
    fn only_what_is_shared_can_be_held_by_its_place() {
        let pool = Pool::new(2, 4096).unwrap();
        let buffer = pool.take().unwrap();
        let index = buffer.index();
        assert!(pool.shared_at(index).is_none() && pool.shared_at(7).is_none());
        let shared = buffer.freeze();
        let other = pool.shared_at(index).unwrap();
        drop(shared);
        assert_eq!(pool.free_count(), 1);
        drop(other);
        assert!(pool.free_count() == 2 && pool.shared_at(index).is_none());
        drop(pool.take());
        assert_eq!(pool.free_count(), 2);
    }

    #[test]
    fn a_taker_waits_for_a_buffer_to_come_back() {
        let pool = Pool::new(1, 4096).unwrap();
        let buffer = pool.take().unwrap();
        assert!(pool.take_timeout(Duration::from_millis(1)).is_none());
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| pool.take_timeout(Duration::from_mins(1)).is_some());
            drop(buffer);
            assert!(waiter.join().unwrap());
        });
    }

    /// Threads that take, write, share and give back at the same time never see another's bytes.
    #[test]
    fn buffers_change_hands_between_threads() {
        let turns = if cfg!(miri) { 20 } else { 20_000 };
        let pool = Pool::new(3, 4096).unwrap();
        let work = |own: u8| {
            for _ in 0..turns {
                let Some(mut buffer) = pool.take_timeout(Duration::from_mins(1)) else { continue };
                buffer[..64].fill(own);
                let shared = buffer.freeze();
                let clone = shared.clone();
                drop(shared);
                assert!(clone[..64].iter().all(|&byte| byte == own));
            }
        };
        std::thread::scope(|scope| {
            for own in 1..5 {
                scope.spawn(move || work(own));
            }
        });
        assert_eq!(pool.free_count(), 3);
    }

    #[test]
    fn a_reserve_is_there_for_those_that_do_not_come_back() {
        let pool = Pool::shared_with_reserve(2, 3, 4096).unwrap();
        let kept: Vec<Buffer> = core::iter::from_fn(|| pool.take()).collect();
        assert_eq!((kept.len(), pool.count(), pool.free_count()), (2, 2, 0));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| pool.take_timeout(Duration::from_mins(1)).is_some());
            pool.lend(2);
            assert!(waiter.join().unwrap());
        });
        pool.lend(1);
        let more: Vec<Buffer> = core::iter::from_fn(|| pool.take()).collect();
        assert_eq!((more.len(), pool.free_count()), (2, 0));
        pool.lend(9);
        let last = pool.take();
        assert!(last.is_some() && pool.take().is_none());
        drop((kept, more, last));
        assert_eq!((pool.free_count(), pool.count()), (5, 2));
    }

    #[test]
    fn buffers_outlive_their_pool() {
        let pool = Pool::new(2, 2 << 20).unwrap();
        let mut buffer = pool.take().unwrap();
        drop(pool);
        buffer.fill(3);
        assert_eq!(buffer.freeze().last(), Some(&3));
    }

    #[test]
    fn a_pool_lies_in_huge_pages_where_enough_were_set_aside() {
        let path = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
        let free = std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
        let free: usize = free.unwrap_or(0);
        if free < 2 {
            println!("not run: needs 2 free huge pages (vm.nr_hugepages)");
            return;
        }
        for pool in [Pool::new, Pool::shared] {
            // Not a whole number of huge pages.
            let pool = pool(3, 1 << 20).unwrap();
            assert!(pool.is_in_huge_pages());
            let mut held: Vec<Buffer> = core::iter::from_fn(|| pool.take()).collect();
            for buffer in &mut held {
                buffer.fill(7);
            }
            assert!(held.len() == 3 && pool.take().is_none());
        }
        for pool in [Pool::new, Pool::shared] {
            assert!(!pool(free + 1, HUGE_PAGE_SIZE).unwrap().is_in_huge_pages());
        }
    }

    #[test]
    fn memory_that_is_not_there_is_an_error() {
        assert!(matches!(Pool::new(1 << 20, 1 << 40), Err(Error::Memory { .. })));
    }
}
