//! What threads of the recorder do with each other, small enough that many orders of it can be
//! tried. Each holds in all of them, and comes to an end.

use core::time::Duration;

use format::head::StripeId;
use shuttle::thread;
use units::{QueueId, Sequence};

use crate::control::{Control, Questions, Step};
use crate::pool::{Buffer, Pool};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::mpsc::{RecvTimeoutError, TrySendError};
use crate::sync::{Arc, Condvar, Mutex};
use crate::{ROW_SIZE, channel};

/// Waits do not end here.
const LONG: Duration = Duration::from_hours(1);

fn pool(count: usize) -> Pool {
    Pool::new(count, ROW_SIZE).expect("memory for a few rows")
}

/// Three threads fight for one buffer, share it, and give it back from another thread.
pub fn a_buffer_goes_round() {
    let pool = pool(1);
    let work = |own: u8| {
        let pool = pool.clone();
        thread::spawn(move || {
            let mut buffer = pool.take_timeout(LONG).expect("it comes back");
            buffer.fill(own);
            let shared = buffer.freeze();
            let other = shared.clone();
            let reader = thread::spawn(move || assert!(other.iter().all(|&byte| byte == own)));
            assert!(shared.iter().all(|&byte| byte == own));
            drop(shared);
            reader.join().expect("it has seen its own bytes");
        })
    };
    let threads: Vec<_> = (1..4).map(work).collect();
    threads.into_iter().for_each(|thread| thread.join().expect("every thread gets it once"));
    assert_eq!((pool.free_count(), pool.least_free_count()), (1, 0));
}

/// Who waits for a buffer gets one of the reserve when it is lent.
pub fn a_lent_buffer_ends_a_wait() {
    let pool = Pool::shared_with_reserve(1, 1, ROW_SIZE).expect("memory for two rows");
    let held: Buffer = pool.take().expect("the only one");
    let lender = pool.clone();
    let lender = thread::spawn(move || lender.lend(1));
    assert!(pool.take_timeout(LONG).is_some());
    lender.join().expect("it only lends");
    drop(held);
}

/// A thread touches memory ahead, and ends when it is stopped, wherever it is.
pub fn touching_ahead_ends() {
    let pool = pool(6000);
    let ahead = pool.touch_ahead().expect("a thread");
    let taker = pool.clone();
    let taker = thread::spawn(move || drop((taker.take(), taker.take())));
    drop(ahead);
    taker.join().expect("it only takes");
}

/// What was sent before the end arrives, once and in order; then both sides see the end.
pub fn a_queue_ends_behind_its_last_value() {
    let (sender, receiver) = channel(1);
    let senders = [sender.clone(), sender].map(|sender| {
        thread::spawn(move || (0..3).for_each(|it| sender.send(it).expect("a receiver takes it")))
    });
    let mut seen = Vec::new();
    while let Ok(value) = receiver.recv() {
        seen.push(value);
    }
    seen.sort_unstable();
    assert_eq!(seen, [0, 0, 1, 1, 2, 2]);
    senders.into_iter().for_each(|sender| sender.join().expect("it has sent all"));
}

/// Who waits for space in a queue whose receiver is gone learns it, and keeps the value.
pub fn who_waits_for_room_hears_of_the_end() {
    let (sender, receiver) = channel(1);
    let taker = thread::spawn(move || assert!(receiver.recv().is_ok()));
    let mut refused = 0;
    for value in 0..4 {
        if let Err(back) = sender.send(value) {
            assert_eq!(back.0, value);
            refused += 1;
        }
    }
    assert!((2..=3).contains(&refused));
    assert!(matches!(sender.try_send(9), Err(TrySendError::Disconnected(9))));
    taker.join().expect("it takes one");
}

/// Threads that wait for work or for the end, as patrol and expiry do, hear the end.
pub fn a_stop_is_heard_while_waiting() {
    let rounds = Arc::new(AtomicUsize::new(0));
    let (stops, threads): (Vec<_>, Vec<_>) = (0..2)
        .map(|_| {
            let (stop, stopped) = channel::<()>(0);
            let rounds = Arc::clone(&rounds);
            let thread = thread::spawn(move || {
                while stopped.recv_timeout(LONG) == Err(RecvTimeoutError::Timeout) {
                    rounds.fetch_add(1, Ordering::SeqCst);
                }
            });
            (stop, thread)
        })
        .unzip();
    drop(stops);
    threads.into_iter().for_each(|thread| thread.join().expect("it hears the end"));
    assert_eq!(rounds.load(Ordering::SeqCst), 0);
}

/// Two who ask at the same time get an answer, and what the answers cover is durable.
pub fn questions_are_answered() {
    let control = Control::default();
    let durable = Arc::new(AtomicUsize::new(0));
    let asking = [(); 2].map(|()| {
        let (control, durable) = (control.clone(), Arc::clone(&durable));
        thread::spawn(move || {
            assert!(control.sync(LONG));
            assert_eq!(durable.load(Ordering::SeqCst), 1);
        })
    });
    let mut questions = Questions::new(control.clone(), 1);
    let stripe = StripeId { sequence: Sequence(7), sub: 0 };
    while control.asked() == 0 {
        thread::yield_now();
    }
    questions.hear(QueueId(0), control.asked());
    questions.await_stripe(stripe);
    durable.store(1, Ordering::SeqCst);
    assert_eq!(questions.step(stripe, true), Step::Rest);
    questions.end();
    asking.into_iter().for_each(|it| it.join().expect("it is answered"));
}

/// A mistake: a thread that waits looks first, and is woken before it waits. Known to hang in some
/// orders.
pub fn a_wake_up_that_is_lost() {
    let told = Arc::new((Mutex::new(false), Condvar::new()));
    let other = Arc::clone(&told);
    let teller = thread::spawn(move || {
        *other.0.lock().expect("no thread panics") = true;
        other.1.notify_all();
    });
    let is_told = *told.0.lock().expect("no thread panics");
    if !is_told {
        // The lock was let go in between.
        drop(told.1.wait(told.0.lock().expect("nobody panics")));
    }
    teller.join().expect("it only sends");
}
