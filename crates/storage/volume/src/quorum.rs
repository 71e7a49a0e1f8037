//! Who must be there before anything is judged, and whose word counts.
//!
//! Two mounts that share no member could each judge what the other has shown, and so could a mount
//! by members that were absent from the newest epoch. So a mount needs more than half of the
//! members of the newest epoch that it sees, and so many that fewer than K are left outside: they
//! must not be enough to bring back what this mount voids.
//!
//! A crash inside a JOIN leaves some members of the newest epoch without its name. If nothing was
//! written in it, every member that belongs to it still has a say. [One that lacks only the name
//! would be taken for stale, and with one more fault what it holds be lost.] And then those that
//! lack the name may be enough to go on without ever hearing of it: the epoch is not settled.
//! Nothing is shown by it, what it judged is judged again, and a mount needs a quorum of the epoch
//! before, too. [Two histories, when a member that returned made up the quorum of the new epoch.]

use units::{EachSequence, Epoch, MemberId, Sequence};

use crate::Error;
use crate::heads::Heads;
use crate::membership::Membership;
use crate::slot_view::SlotBytes;

/// Refuses a mount without a quorum, and settles whose word counts. With every member at hand it
/// never refuses. Members that are `gone` for good are not waited for.
pub fn settle(
    membership: &mut Membership,
    gone: &[MemberId],
    epoch_used: impl FnOnce(&Membership) -> bool,
) -> Result<(), Error> {
    let is_here = |member: &MemberId| membership.of(*member).is_some();
    // No statement of the user makes up for columns that there is no member for.
    let data_columns = usize::from(membership.geometry().data_columns);
    if membership.present().count() < data_columns {
        return Err(refusal(membership, data_columns));
    }
    // Who is gone is not waited for, but does not count as if it were here: the newest stripes lie
    // on the members of the newest epoch alone, and others at hand cannot stand in for them.
    let all = membership.absent().next().is_none();
    if membership.superblock().joined_epoch == Epoch::NONE {
        // Nothing was ever recorded: a volume begins with all that it was made with.
        let made_with =
            membership.numbers().filter(|&member| !membership.gap(member).contains(&Sequence(0)));
        let needed = made_with.clone().count();
        let whole = made_with.clone().all(|member| is_here(&member) || gone.contains(&member));
        return if whole { Ok(()) } else { Err(refusal(membership, needed)) };
    }
    let entitled: Vec<MemberId> = membership.of_newest_epoch().filter(is_here).collect();
    let needed = quorum(membership, membership.superblock().joined_members, gone);
    if entitled.len() < needed && !all {
        return Err(refusal(membership, needed));
    }
    let joined = entitled.iter().filter(|&&member| membership.has_joined(member)).count();
    let is_settled = outweighs(membership, gone);
    if is_settled && joined == entitled.len() {
        return Ok(());
    }
    if epoch_used(membership) {
        return if joined >= needed || all { Ok(()) } else { Err(refusal(membership, needed)) };
    }
    if !is_settled {
        let before = membership.superblock().previous_members;
        let needed = quorum(membership, before, gone);
        let mut witnesses = membership.of_bits(before).filter(is_here).collect::<Vec<_>>();
        witnesses.retain(|&member| !membership.is_newcomer(member));
        if witnesses.len() < needed && !all {
            return Err(refusal(membership, needed));
        }
        membership.unsettle();
    }
    let present: Vec<MemberId> = membership.present().collect();
    membership.trust(if entitled.len() < needed { &present } else { &entitled });
    Ok(())
}

/// The same for a reader, which judges nothing: it is content with the members that are there.
pub(crate) fn settle_for_reading(
    membership: &mut Membership,
    epoch_used: impl Fn(&Membership) -> bool,
) {
    let is_settled = outweighs(membership, &[]) || epoch_used(membership);
    match settle(membership, &[], |_| is_settled) {
        Ok(()) | Err(_) if is_settled => {}
        Ok(()) | Err(_) => membership.unsettle(),
    }
}

/// Those of the epoch before that may not have heard of the newest one are too few to go on without
/// it.
fn outweighs(membership: &Membership, gone: &[MemberId]) -> bool {
    let before = membership.superblock().previous_members;
    let unaware = membership
        .of_bits(before)
        .filter(|&member| !membership.has_joined(member) || membership.is_newcomer(member))
        .filter(|member| !gone.contains(member));
    before == 0 || unaware.count() < quorum(membership, before, gone)
}

/// max(K, M - K + 1) of M members. More than half of them follows from it.
fn quorum(membership: &Membership, members: u32, gone: &[MemberId]) -> usize {
    let superblock = membership.superblock();
    // Of the epoch before, which may have had fewer columns.
    let start = if members == superblock.joined_members {
        superblock.joined_start
    } else {
        superblock.previous_start
    };
    let data = usize::from(membership.geometry_at(start).data_columns);
    let members = membership.of_bits(members).filter(|member| !gone.contains(member)).count();
    data.max((members + 1).saturating_sub(data))
}

fn refusal(membership: &Membership, needed: usize) -> Error {
    let newest = membership.superblock().joined_epoch;
    let expected = |member: &MemberId| match newest {
        Epoch::NONE => !membership.gap(*member).contains(&Sequence(0)),
        _ => membership.of_newest_epoch().any(|number| number == *member),
    };
    let missing: Vec<MemberId> = membership
        .numbers()
        .filter(expected)
        .filter(|&member| membership.of(member).is_none() || !membership.has_joined(member))
        .collect();
    let expected = membership.numbers().filter(expected).count();
    let (present, data_columns) = (expected - missing.len(), membership.geometry().data_columns);
    Error::Quorum { present, needed, data_columns, missing, failed: Vec::new() }
}

/// Whether anything lies behind the EPOCH stripe of the newest epoch: then its JOIN was complete.
pub fn epoch_used(heads: &Heads<'_>) -> bool {
    let membership = heads.membership();
    let superblock = membership.superblock();
    let start = superblock.joined_start;
    if superblock.mark.acknowledged.sequence >= start {
        return true;
    }
    (start + 1..=start + u64::from(superblock.window) + 1).each().any(|sequence| {
        let slot = heads.geometry().slot(sequence);
        let bytes = SlotBytes::read(heads, sequence);
        membership.present().any(|member| {
            let found = heads.all_in_slot(member, slot, bytes.of(member));
            found.iter().any(|head| {
                let stripe = &head.stripe;
                stripe.epoch == superblock.joined_epoch && stripe.stripe.sequence > start
            })
        })
    })
}

#[cfg(test)]
mod tests;
