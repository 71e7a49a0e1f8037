//! SHA-256 and BLAKE3 of what is written, in a thread of its own: together they cost about as much
//! as reading, matching and writing.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use sha2::{Digest as _, Sha256};
use units::number::to_u64;

/// Buffers on their way: one is hashed, others wait, one is being filled.
const BUFFERS: usize = 4;

/// Bytes of a file that are read at a time.
const READ_BYTES: usize = 1 << 18;

/// Both hashes of some bytes, as a manifest has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hashes {
    /// SHA-256.
    pub sha256: [u8; 32],
    /// BLAKE3.
    pub blake3: [u8; 32],
}

/// Both hashes under way.
#[derive(Clone, Debug, Default)]
pub struct Hasher {
    sha256: Sha256,
    blake3: blake3::Hasher,
}

impl Hasher {
    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        self.blake3.update(bytes);
    }

    /// Takes all that is left of a file; how many bytes that is.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read_to_end(&mut self, file: &mut dyn Read) -> io::Result<u64> {
        let (mut buffer, mut bytes) = (vec![0; READ_BYTES], 0);
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(bytes),
                Ok(count) => {
                    self.update(buffer.get(..count).expect("read fills the buffer at most"));
                    bytes += to_u64(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Of all bytes so far.
    pub fn finish(self) -> Hashes {
        let blake3 = *self.blake3.finalize().as_bytes();
        Hashes { sha256: self.sha256.finalize().into(), blake3 }
    }
}

/// Where bytes are hashed.
#[derive(Debug)]
pub struct Hashing(Place);

#[derive(Debug)]
enum Place {
    /// In a thread of its own.
    Beside(Beside),
    /// On the way, where files are too many for threads.
    Here(Box<Hasher>),
}

impl Hashing {
    /// In a thread of its own.
    ///
    /// # Errors
    /// When there can be none.
    pub fn start() -> io::Result<Self> {
        Ok(Self(Place::Beside(Beside::start()?)))
    }

    /// Without a thread.
    pub fn here() -> Self {
        Self(Place::Here(Box::default()))
    }

    /// Takes a buffer for an empty one.
    pub fn exchange(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        match &mut self.0 {
            Place::Beside(beside) => beside.exchange(bytes),
            Place::Here(hasher) => {
                hasher.update(&bytes);
                bytes.clear();
                bytes
            }
        }
    }

    /// Both hashes of all that it took.
    pub fn finish(self) -> Hashes {
        match self.0 {
            Place::Beside(beside) => beside.finish(),
            Place::Here(hasher) => hasher.finish(),
        }
    }
}

/// The thread, and the buffers that go to it and come back.
#[derive(Debug)]
struct Beside {
    to_hash: SyncSender<Vec<u8>>,
    returned: Receiver<Vec<u8>>,
    thread: JoinHandle<Hashes>,
}

impl Beside {
    fn start() -> io::Result<Self> {
        let (to_hash, received) = sync_channel::<Vec<u8>>(BUFFERS);
        let (back, returned) = sync_channel(BUFFERS);
        for _ in 1..BUFFERS {
            back.send(Vec::new()).expect("the receiver is in this function");
        }
        let run = move || {
            let mut hasher = Hasher::default();
            for mut bytes in received {
                hasher.update(&bytes);
                bytes.clear();
                // At the end no thread waits for it.
                drop(back.send(bytes));
            }
            hasher.finish()
        };
        let builder = thread::Builder::new().name("hashing".to_owned());
        let thread = builder.spawn(run)?;
        Ok(Self { to_hash, returned, thread })
    }

    fn exchange(&self, bytes: Vec<u8>) -> Vec<u8> {
        self.to_hash.send(bytes).expect("the thread ends after its sender");
        self.returned.recv().expect("the thread gives back what it was given")
    }

    fn finish(self) -> Hashes {
        drop(self.to_hash);
        // The thread may be waiting to give its last buffers back.
        drop(self.returned);
        self.thread.join().expect("a panic aborts")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_all_bytes_in_their_order() {
        let (mut hashing, mut here) = (Hashing::start().unwrap(), Hashing::here());
        let mut whole = Hasher::default();
        for number in 0..100_u8 {
            let bytes = vec![number; usize::from(number) * 100];
            whole.update(&bytes);
            assert!(here.exchange(bytes.clone()).is_empty());
            assert!(hashing.exchange(bytes).is_empty());
        }
        let whole = whole.finish();
        assert!(hashing.finish() == whole && here.finish() == whole);
    }

    #[test]
    fn the_empty_hashes_are_the_published_ones() {
        let Hashes { sha256, blake3 } = Hashing::start().unwrap().finish();
        assert_eq!(sha256[..4], [0xe3, 0xb0, 0xc4, 0x42]);
        assert_eq!(blake3[..4], [0xaf, 0x13, 0x49, 0xb9]);
    }
}
