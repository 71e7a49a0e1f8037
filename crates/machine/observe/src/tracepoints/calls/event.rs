//! What the kernel's records of system calls and of the scheduler say.

use crate::tracepoints::event::IN_INTERRUPT;
use crate::tracepoints::format::{Field, Format};
use crate::tracepoints::set::{Decode, Traced};
use host::native::{u32_of, u64_of};

/// Why a thread has lost its processor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Left {
    /// It could have gone on: another one was given the processor.
    Runnable,
    /// It waits, and a signal would wake it.
    Sleeping,
    /// It waits, and no signal wakes it: for a disk, as a rule.
    Blocked,
    /// It was stopped, by a signal or a debugger.
    Stopped,
    /// It has ended.
    Ended,
}

impl Left {
    /// The bits that `prev_state` has in `include/trace/events/sched.h`.
    fn of(state: u64) -> Self {
        const ENDED: u64 = 0x10 | 0x20;
        const STOPPED: u64 = 0x4 | 0x8 | 0x40;
        match state & 0xff {
            0 => Self::Runnable,
            state if state & ENDED != 0 => Self::Ended,
            state if state & STOPPED != 0 => Self::Stopped,
            state if state & 0x1 != 0 => Self::Sleeping,
            _ => Self::Blocked,
        }
    }
}

/// A thread as the scheduler has it; number 0 is a processor that is idle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Scheduled {
    /// Thread id.
    pub thread: u32,
    /// Its name, up to a zero.
    pub name: [u8; 16],
}

/// What a pointer of a system call leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pointed {
    /// A path, as far as 255 bytes.
    Path(Vec<u8>),
    /// An address of a socket (`sockaddr`), as far as 112 bytes.
    Address(Vec<u8>),
    /// What `poll(2)` waits for (`pollfd`): the first four at most.
    Polled(Vec<u8>),
    /// The first request that is given to `io_submit(2)` (`iocb`): as far as its place in the file.
    Submitted(Vec<u8>),
}

/// What happened to a thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CallHappened {
    /// It makes a system call.
    Entered {
        /// Of the call.
        number: u32,
        /// As they were given.
        arguments: [u64; 6],
    },
    /// The call has returned.
    Returned {
        /// Of the call.
        number: u32,
        /// The result, or the number of an error below zero.
        value: i64,
    },
    /// Beside the record of the call, a little before or behind it.
    Pointed(Pointed),
    /// A processor goes from one thread to another.
    Switched {
        /// Its place among those that are online.
        processor: usize,
        /// It had the processor; the record is of it.
        from: Scheduled,
        /// Why it has it no more.
        left: Left,
        /// It has it now.
        to: Scheduled,
    },
    /// It makes another thread runnable that waited.
    Woke {
        /// Thread id.
        thread: u32,
        /// A device or a timer did, by an interrupt: who ran just then has nothing to do with it.
        is_interrupt: bool,
    },
    /// It has started a process or a thread.
    Forked {
        /// Thread id of the new one.
        child: u32,
    },
    /// It gave a request to a ring of `io_uring(7)`.
    Requested {
        /// Which one, as long as it is under way.
        request: u64,
        /// What it is for: `IORING_OP_READ` and so on.
        operation: u8,
    },
    /// Of which file that request is; none is said of files that are registered with the ring.
    RequestFile {
        /// Which one.
        request: u64,
        /// The number of the file in the process.
        descriptor: u32,
    },
    /// Some request is done.
    RequestDone {
        /// Which one.
        request: u64,
    },
    /// It runs another program from now on.
    Executed,
    /// It has ended.
    Ended {
        /// The name that it had in the end.
        name: [u8; 16],
    },
}

/// A record of the kernel of system calls and of the scheduler.
pub type CallEvent = Traced<CallHappened>;

/// Which record a tracepoint's is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Entered,
    Returned,
    Switched,
    Woke,
    Forked,
    Executed,
    Ended,
    Requested,
    RequestFile,
    RequestDone,
    /// Of our own program in the kernel.
    Pointed,
}

impl Kind {
    /// For tests that give any bytes.
    pub(super) const ALL: [Self; 11] = [
        Self::Entered,
        Self::Returned,
        Self::Switched,
        Self::Woke,
        Self::Forked,
        Self::Executed,
        Self::Ended,
        Self::Requested,
        Self::RequestFile,
        Self::RequestDone,
        Self::Pointed,
    ];
}

/// What our program writes first: no tracepoint has this number, because they count from below.
pub(super) const POINTED_ID: u16 = u16::MAX;
/// What it writes next.
pub(super) const PATH: u16 = 1;
pub(super) const ADDRESS: u16 = 2;
pub(super) const POLLED: u16 = 3;
pub(super) const SUBMITTED: u16 = 4;
/// Both, and the length in bytes.
pub(super) const POINTED_HEAD: usize = 8;

/// Reads the records of one tracepoint.
#[derive(Clone, Debug)]
pub(super) struct CallDecoder {
    id: u16,
    kind: Kind,
    /// Fields in the order that the kind of record has them.
    fields: [Field; 5],
}

impl CallDecoder {
    /// `None` where the tracepoint lacks a field.
    pub(super) fn new(kind: Kind, format: &Format) -> Option<Self> {
        let names = match kind {
            Kind::Entered => ["id", "args", "id", "id", "id"],
            Kind::Returned => ["id", "ret", "id", "id", "id"],
            Kind::Switched => ["prev_pid", "prev_comm", "prev_state", "next_pid", "next_comm"],
            Kind::Woke => ["pid", "common_flags", "pid", "pid", "pid"],
            Kind::Forked => ["child_pid"; 5],
            Kind::Executed => ["pid"; 5],
            Kind::Ended => ["comm"; 5],
            Kind::Requested => ["req", "opcode", "req", "req", "req"],
            Kind::RequestFile => ["req", "fd", "req", "req", "req"],
            Kind::RequestDone => ["req"; 5],
            Kind::Pointed => return Some(Self::of_program()),
        };
        let [one, two, three, four, five] = names.map(|name| format.field(name));
        Some(Self { id: format.id, kind, fields: [one?, two?, three?, four?, five?] })
    }

    /// For what our own program writes.
    pub(super) fn of_program() -> Self {
        Self { id: POINTED_ID, kind: Kind::Pointed, fields: [Field::default(); 5] }
    }
}

impl Decode for CallDecoder {
    type Happened = CallHappened;

    fn id(&self) -> u16 {
        self.id
    }

    fn decode(&self, record: &[u8], processor: usize) -> Option<CallHappened> {
        let [one, two, three, four, five] = self.fields;
        let scheduled = |number: Field, name: Field| {
            let name = *name.bytes(record)?.first_chunk()?;
            Some(Scheduled { thread: number.short(record)?, name })
        };
        Some(match self.kind {
            Kind::Entered => {
                CallHappened::Entered { number: one.short(record)?, arguments: six(two, record)? }
            }
            Kind::Returned => {
                let value = two.number(record)?.cast_signed();
                CallHappened::Returned { number: one.short(record)?, value }
            }
            Kind::Switched => CallHappened::Switched {
                processor,
                from: scheduled(one, two)?,
                left: Left::of(three.number(record)?),
                to: scheduled(four, five)?,
            },
            Kind::Woke => CallHappened::Woke {
                thread: one.short(record)?,
                is_interrupt: two.number(record)? & IN_INTERRUPT != 0,
            },
            Kind::Forked => CallHappened::Forked { child: one.short(record)? },
            Kind::Executed => CallHappened::Executed,
            Kind::Ended => CallHappened::Ended { name: *one.bytes(record)?.first_chunk()? },
            Kind::Requested => CallHappened::Requested {
                request: one.number(record)?,
                operation: u8::try_from(two.number(record)?).ok()?,
            },
            Kind::RequestFile => CallHappened::RequestFile {
                request: one.number(record)?,
                descriptor: two.short(record)?,
            },
            Kind::RequestDone => CallHappened::RequestDone { request: one.number(record)? },
            Kind::Pointed => CallHappened::Pointed(pointed(record)?),
        })
    }
}

fn six(field: Field, record: &[u8]) -> Option<[u64; 6]> {
    let mut words = field.bytes(record)?.as_chunks().0.iter().map(|word| u64_of(*word));
    let mut next = || words.next();
    Some([next()?, next()?, next()?, next()?, next()?, next()?])
}

fn pointed(record: &[u8]) -> Option<Pointed> {
    let kind = u16::try_from(u32_of(*record.first_chunk()?) >> 16).ok()?;
    let len = u32_of(*record.get(4..)?.first_chunk()?);
    let bytes = record.get(POINTED_HEAD..)?.get(..usize::try_from(len).ok()?)?;
    match kind {
        PATH => Some(Pointed::Path(bytes.split(|&byte| byte == 0).next()?.to_vec())),
        ADDRESS => Some(Pointed::Address(bytes.to_vec())),
        POLLED => Some(Pointed::Polled(bytes.to_vec())),
        SUBMITTED => Some(Pointed::Submitted(bytes.to_vec())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_says_why_a_thread_left() {
        let states = [0, 0x100, 0x1, 0x2, 0x102, 0x4, 0x8, 0x20, 0x80].map(Left::of);
        let expected = [
            Left::Runnable,
            Left::Runnable,
            Left::Sleeping,
            Left::Blocked,
            Left::Blocked,
            Left::Stopped,
            Left::Stopped,
            Left::Ended,
            Left::Blocked,
        ];
        assert_eq!(states, expected);
    }

    #[test]
    fn what_a_pointer_leads_to_is_as_long_as_it_says() {
        let record = |kind: u32, len: u32, bytes: &[u8]| {
            // The kind is in the upper half of a word of which nothing else is read.
            let mut record = host::native::u32_bytes(0xffff | kind << 16).to_vec();
            record.extend(host::native::u32_bytes(len));
            record.extend(bytes);
            pointed(&record)
        };
        assert_eq!(record(PATH.into(), 4, b"/a\0xrest"), Some(Pointed::Path(b"/a".to_vec())));
        assert_eq!(record(ADDRESS.into(), 2, b"ab"), Some(Pointed::Address(b"ab".to_vec())));
        assert_eq!(record(PATH.into(), 9, b"short"), None);
        assert_eq!(record(9, 0, b""), None);
    }
}
