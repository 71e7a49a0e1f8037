//! Whether a process has a member open for writing whose lock this machine does not see: its claim
//! moves. Rules: docs/format.md, Claim.

use std::path::Path;

use device::{ROW_SIZE, ReadAt, Row};
use format::claim::{CLAIM_OFFSET, Claim, ClaimError, INTERVAL_ROTATING_MS, lease_ns};
use format::head::HeadKey;
use format::superblock::{SUPERBLOCK_COPIES, Superblock, copy_offset};
use units::Sleep;
use units::number::to_u64;

use crate::refusal::Refusal;

/// How often a claim is looked at.
const LOOK_NS: i64 = 250_000_000;

/// Watches a claim as long as a writer that is alive may take to renew it.
///
/// # Errors
/// [`Refusal::Owned`] when it moves.
pub fn refuse_owned(path: &Path, reader: &dyn ReadAt, clock: &dyn Sleep) -> Result<(), Refusal> {
    if reader.size_bytes() < CLAIM_OFFSET + to_u64(ROW_SIZE) {
        return Ok(());
    }
    let key = key_of(reader)?;
    let row = claim_of(reader)?;
    let Some(interval_ms) = interval_ms(&Claim::decode(&row, &key)) else { return Ok(()) };
    let until_ns = clock.boottime_ns().saturating_add(lease_ns(interval_ms));
    while clock.boottime_ns() < until_ns {
        clock.sleep_until(until_ns.min(clock.boottime_ns() + LOOK_NS));
        let found = claim_of(reader)?;
        if found == row {
            continue;
        }
        return match Claim::decode(&found, &key) {
            // It has just ended.
            Ok(by) if by.is_given_up => Ok(()),
            by => Err(Refusal::Owned { path: path.to_path_buf(), by: by.ok().map(Box::new) }),
        };
    }
    Ok(())
}

/// How often a writer that may be alive renews what was found.
fn interval_ms(found: &Result<Claim, ClaimError>) -> Option<u32> {
    match found {
        Err(ClaimError::Empty | ClaimError::Magic) => None,
        // Damaged, or of a volume whose superblocks are.
        Err(_) => Some(INTERVAL_ROTATING_MS),
        Ok(claim) if claim.is_given_up || host::is_gone(&claim.claimant) => None,
        Ok(claim) => Some(claim.interval_ms),
    }
}

fn claim_of(reader: &dyn ReadAt) -> Result<Row, device::Error> {
    let mut row = [0; ROW_SIZE];
    reader.read_at(CLAIM_OFFSET, &mut row)?;
    Ok(row)
}

/// What claims are signed with; of a volume without a readable superblock no key.
fn key_of(reader: &dyn ReadAt) -> Result<HeadKey, device::Error> {
    let mut row = [0; ROW_SIZE];
    for copy in 0..SUPERBLOCK_COPIES {
        reader.read_at(copy_offset(copy, reader.size_bytes()), &mut row)?;
        if let Ok(superblock) = Superblock::decode(&row, copy) {
            return Ok(superblock.head_key);
        }
    }
    Ok(HeadKey([0; 32]))
}
