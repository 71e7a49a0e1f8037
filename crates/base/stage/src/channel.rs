//! Bounded queues between threads: those of the standard library.

use core::time::Duration;

use crate::sync::Arc;
use crate::sync::mpsc::{
    self, RecvError, RecvTimeoutError, SendError, SyncSender, TryRecvError, TrySendError,
    sync_channel,
};
use crate::{Current, Key, current, wake};

/// A queue of at most `bound` values. On a stage one of none has no use but to be closed.
pub fn channel<T>(bound: usize) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = sync_channel(bound);
    let mark = Arc::new(());
    (Sender { sender, mark: Arc::clone(&mark) }, Receiver { receiver, mark })
}

/// The end that gives.
#[derive(Debug)]
pub struct Sender<T> {
    sender: SyncSender<T>,
    mark: Arc<()>,
}

/// The end that takes.
#[derive(Debug)]
pub struct Receiver<T> {
    receiver: mpsc::Receiver<T>,
    mark: Arc<()>,
}

impl<T> Sender<T> {
    /// Waits for space.
    ///
    /// # Errors
    /// The receiver is gone.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        let Some(stage) = current() else { return self.sender.send(value) };
        let mut left = Some(value);
        let sent = stage.wait_for(self.key("space in a queue"), None, || {
            match self.sender.try_send(left.take()?) {
                Ok(()) => Some(Ok(())),
                Err(TrySendError::Disconnected(value)) => Some(Err(SendError(value))),
                Err(TrySendError::Full(value)) => {
                    left = Some(value);
                    None
                }
            }
        });
        wake(Key::of(&self.mark));
        sent.expect("it waits for as long as it takes")
    }

    /// Does not wait.
    ///
    /// # Errors
    /// There is no space, or the receiver is gone.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        let sent = self.sender.try_send(value);
        wake(Key::of(&self.mark));
        sent
    }

    fn key(&self, what: &'static str) -> (Key, &'static str) {
        (Key::of(&self.mark), what)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), mark: Arc::clone(&self.mark) }
    }
}

/// Who waits for a value sees that none will come.
impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        wake(Key::of(&self.mark));
    }
}

impl<T> Receiver<T> {
    /// Waits for a value.
    ///
    /// # Errors
    /// None will come.
    pub fn recv(&self) -> Result<T, RecvError> {
        let Some(stage) = current() else { return self.receiver.recv() };
        self.on_stage(&stage, None).map_err(|_| RecvError)
    }

    /// Waits for a value for so long.
    ///
    /// # Errors
    /// None came, or none will come.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        let Some(stage) = current() else { return self.receiver.recv_timeout(timeout) };
        self.on_stage(&stage, Some(timeout))
    }

    /// Does not wait.
    ///
    /// # Errors
    /// None is there, or none will come.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        let received = self.receiver.try_recv();
        wake(Key::of(&self.mark));
        received
    }

    fn on_stage(&self, stage: &Current, timeout: Option<Duration>) -> Result<T, RecvTimeoutError> {
        let key = (Key::of(&self.mark), "a queue");
        let received = stage.wait_for(key, timeout, || match self.receiver.try_recv() {
            Ok(value) => Some(Ok(value)),
            Err(TryRecvError::Disconnected) => Some(Err(RecvTimeoutError::Disconnected)),
            Err(TryRecvError::Empty) => None,
        });
        wake(Key::of(&self.mark));
        received.unwrap_or(Err(RecvTimeoutError::Timeout))
    }
}

/// Who waits for space sees that the receiver is gone.
impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        wake(Key::of(&self.mark));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_outside_of_a_stage_is_one_of_the_standard_library() {
        let (sender, receiver) = channel(1);
        assert!(sender.send(1).is_ok());
        assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
        assert_eq!((receiver.recv(), receiver.try_recv()), (Ok(1), Err(TryRecvError::Empty)));
        let waited = receiver.recv_timeout(Duration::from_millis(1));
        assert_eq!(waited, Err(RecvTimeoutError::Timeout));
        drop(sender);
        assert_eq!(receiver.recv(), Err(RecvError));
    }
}
