//! Requests that a thread gives to the kernel and waits for later: by `io_submit(2)` (aio) and by
//! rings (`io_uring(7)`).
//!
//! The call that waits says nothing of what for. Of rings the kernel reports each request with its
//! file and its end. Of aio the call that submits has the file, and the one that waits is of the
//! same context. A thread that waits while only requests to files are under way waits for files;
//! where others are among them, what it waits for is not known.

use std::collections::BTreeMap;

use crate::descriptors::Descriptors;
use crate::machine::Machine;
use crate::target::Target;

/// Requests that are under way, and contexts.
const REQUESTS_MAX: usize = 1 << 16;
const CONTEXTS_MAX: usize = 1 << 12;
/// Of one thread so many are looked at.
const LOOKED_AT: usize = 256;

/// What a request is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum For {
    /// It reads or writes a descriptor, which may lead to a file or not.
    Descriptor,
    /// Nothing but files has it.
    File,
    /// Connections, timers, polls.
    Other,
}

impl For {
    /// By the number of `enum io_uring_op`.
    fn of(operation: u8) -> Self {
        match operation {
            // READV, WRITEV, READ_FIXED, WRITE_FIXED, READ, WRITE
            1 | 2 | 4 | 5 | 22 | 23 => Self::Descriptor,
            // FSYNC, SYNC_FILE_RANGE, FALLOCATE, FADVISE
            3 | 8 | 17 | 24 => Self::File,
            _ => Self::Other,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Request {
    process: u32,
    what: For,
    place: Option<usize>,
}

/// What a thread waits for that has given requests to the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Requested {
    /// For nothing but files.
    pub(crate) is_file: bool,
    /// Which one, where that is known.
    pub(crate) place: Option<usize>,
}

/// What is under way.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// By the kernel's number of each, the thread that gave it and its place among all.
    numbers: BTreeMap<u64, (u32, u64)>,
    /// By thread and place, the oldest first.
    under_way: BTreeMap<(u32, u64), Request>,
    last: u64,
    /// The file of the last request, by process and context of aio.
    contexts: BTreeMap<(u32, u64), usize>,
    pub(crate) left_out: u64,
}

impl Requests {
    /// A thread gave a request to a ring.
    pub(crate) fn begin(&mut self, (process, thread): (u32, u32), request: u64, operation: u8) {
        self.end(request);
        if self.numbers.len() >= REQUESTS_MAX {
            self.left_out += 1;
            return;
        }
        self.last += 1;
        self.numbers.insert(request, (thread, self.last));
        let new = Request { process, what: For::of(operation), place: None };
        self.under_way.insert((thread, self.last), new);
    }

    /// A request is of this file.
    pub(crate) fn of_file(
        &mut self,
        (machine, descriptors): (&mut dyn Machine, &mut Descriptors),
        (request, descriptor): (u64, u32),
    ) {
        let Some(key) = self.numbers.get(&request) else { return };
        if let Some(request) = self.under_way.get_mut(key) {
            request.place = descriptors.place(machine, (request.process, descriptor));
        }
    }

    /// A request is done, whoever says so.
    pub(crate) fn end(&mut self, request: u64) {
        if let Some(key) = self.numbers.remove(&request) {
            self.under_way.remove(&key);
        }
    }

    /// A context of aio was given a request to a file.
    pub(crate) fn submitted(&mut self, process: u32, context: u64, place: usize) {
        let key = (process, context);
        if self.contexts.len() < CONTEXTS_MAX || self.contexts.contains_key(&key) {
            self.contexts.insert(key, place);
        }
    }

    /// The file of what was given to a context.
    pub(crate) fn of_context(&self, process: u32, context: u64) -> Option<usize> {
        self.contexts.get(&(process, context)).copied()
    }

    /// What a thread waits for: of files the one that was asked for first.
    pub(crate) fn waits_for(&self, descriptors: &Descriptors, thread: u32) -> Requested {
        let all = self.under_way.range((thread, 0)..=(thread, u64::MAX)).take(LOOKED_AT);
        let mut found: Option<Requested> = None;
        for (_, request) in all {
            let target = request.place.and_then(|place| descriptors.target(place));
            let is_file = match request.what {
                For::File => true,
                For::Descriptor => target.is_some_and(Target::is_file),
                For::Other => false,
            };
            if !is_file {
                return Requested::default();
            }
            found.get_or_insert(Requested { is_file, place: request.place });
        }
        found.unwrap_or_default()
    }
}
