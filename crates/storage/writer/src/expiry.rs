//! Taking what has expired off the members of a volume that no recorder has open.

use core::ops::ControlFlow;

use format::key_row::DestroyedKey;
use serde::{Serialize, Serializer};
use units::Clock;
use units::number::to_u64;
use volume::{Error, Reader};

use crate::Writer;

/// Slots that are looked at before they are given up: it costs a few flushes.
const SLOTS_AT_ONCE: u64 = 1024;

/// Result of erasing.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Erased {
    /// Keys that were destroyed first, of a volume that is encrypted: by their end nobody can read
    /// any more what they encrypted, whatever is still to be overwritten.
    #[serde(rename = "keys_destroyed", serialize_with = "count")]
    pub keys: Vec<DestroyedKey>,
    /// Slots that were given up now.
    pub slots: u64,
    /// Slots that were given up, now or before, and are not overwritten.
    pub left: u64,
    /// It was broken off.
    #[serde(rename = "stopped")]
    pub is_stopped: bool,
}

fn count<S: Serializer>(keys: &[DestroyedKey], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(to_u64(keys.len()))
}

/// Erases everything that is older than `age_ns` and has expired, on a volume that no recorder has
/// open, and what slots in front of the head still hold of an older lap; `progress` gets (bytes
/// done, bytes in all, as far as known) and may stop it. What an earlier writer left undone is done
/// first. With `keys_alone` nothing is overwritten.
pub fn erase(
    writer: &mut Writer,
    (age_ns, keys_alone): (i64, bool),
    open_reader: &dyn Fn(&Writer) -> Result<Reader, Error>,
    clock: &dyn Clock,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Erased, Error> {
    writer.leave_slot(clock)?;
    let through = writer.erasable_through(age_ns, clock);
    let piece_bytes = u64::from(writer.geometry().piece_bytes);
    let first = writer.erasable().start;
    let keys = writer.destroy_keys(age_ns, clock)?;
    let slots = writer.superblock().given_up_before.since(first);
    let left = writer.left_to_erase();
    let mut erased = Erased { keys, slots, left, is_stopped: false };
    if keys_alone {
        return Ok(erased);
    }
    let (mut done, mut total) = (0, writer.left_to_erase());
    loop {
        while writer.erase_next(clock)? {
            writer.poll_at_once(clock)?;
            let left = writer.left_to_erase();
            done = total - left.min(total);
            if progress(done * piece_bytes, total * piece_bytes).is_break() {
                erased.is_stopped = true;
                break;
            }
        }
        writer.drain(clock)?;
        writer.note_erased(clock)?;
        let all = writer.erasable();
        let sequences = all.start..all.end.min(all.start + SLOTS_AT_ONCE);
        let found = open_reader(writer)?.expired_until(sequences.clone(), through);
        if erased.is_stopped || found == sequences.start {
            erased.left = writer.left_to_erase();
            if !erased.is_stopped {
                writer.erase_older_lap(clock)?;
            }
            return Ok(erased);
        }
        writer.give_up_before(found, clock)?;
        erased.slots += found - sequences.start;
        total = done + writer.left_to_erase();
    }
}
