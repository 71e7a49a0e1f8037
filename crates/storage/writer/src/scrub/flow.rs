//! The slots of all members in ring order, read ahead of the checks.
//!
//! Each member has a thread with one read under way, and a few slots in a queue: no member waits
//! for another, and checking costs no reading. Queues are bounded, so each member has its share of
//! the memory.

use core::ops::{ControlFlow, RangeInclusive};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, Scope};

use device::{Buffer, Pool};
use units::{EachSequence, MemberId, Sequence};
use volume::slot_view::SlotBytes;
use volume::{Error, Reader};

/// Calls `work` with every slot until it breaks; with `ahead` 0 without any thread.
///
/// # Errors
/// When there is no memory for reading ahead.
pub(super) fn each_slot(
    reader: &Reader,
    sequences: RangeInclusive<Sequence>,
    ahead: usize,
    work: &mut dyn FnMut(Sequence, &SlotBytes) -> ControlFlow<()>,
) -> Result<(), Error> {
    if ahead == 0 {
        in_turn(reader, sequences, work);
        return Ok(());
    }
    let members = reader.membership().present().count();
    // Of each member: those in its queue, one being read, one being checked, and one that it keeps
    // while it hangs.
    let pool = Pool::new(members * (ahead + 3), reader.piece_bytes())?;
    thread::scope(|scope| {
        let queues: Option<Vec<Queue>> = reader
            .membership()
            .numbers()
            .map(|member| match reader.membership().of(member) {
                Some(_) => start(scope, (reader, &pool), (member, sequences.clone()), ahead),
                None => Some(Queue::Absent),
            })
            .collect();
        let Some(queues) = queues else {
            // No thread is to be had: it takes longer, and goes on.
            in_turn(reader, sequences, work);
            return;
        };
        for sequence in sequences.each() {
            let buffers = queues.iter().map(Queue::next).collect();
            if work(sequence, &SlotBytes::of_buffers(buffers)).is_break() {
                return;
            }
        }
    });
    Ok(())
}

fn in_turn(
    reader: &Reader,
    sequences: RangeInclusive<Sequence>,
    work: &mut dyn FnMut(Sequence, &SlotBytes) -> ControlFlow<()>,
) {
    let mut bytes = SlotBytes::default();
    for sequence in sequences.each() {
        reader.with_heads(|heads| bytes.fill(heads, sequence));
        if work(sequence, &bytes).is_break() {
            return;
        }
    }
}

/// The slots of one member.
enum Queue {
    Ahead(Receiver<Buffer>),
    Absent,
}

impl Queue {
    fn next(&self) -> Option<Buffer> {
        match self {
            Self::Ahead(queue) => Some(queue.recv().expect("a member is read to the last slot")),
            Self::Absent => None,
        }
    }
}

fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    (reader, pool): (&'scope Reader, &'scope Pool),
    (member, sequences): (MemberId, RangeInclusive<Sequence>),
    ahead: usize,
) -> Option<Queue> {
    let (sender, queue) = sync_channel(ahead);
    let body = move || read(reader, pool, (member, sequences), &sender);
    let thread = thread::Builder::new().name(format!("scrub-{member}"));
    thread.spawn_scoped(scope, body).ok().map(|_| Queue::Ahead(queue))
}

/// Reads until the last slot, or until the caller wants no more.
fn read(
    reader: &Reader,
    pool: &Pool,
    (member, sequences): (MemberId, RangeInclusive<Sequence>),
    queue: &SyncSender<Buffer>,
) {
    for sequence in sequences.each() {
        let buffer = reader.slot_buffer(member, sequence, pool);
        if queue.send(buffer.expect("every member has its share")).is_err() {
            return;
        }
    }
}
