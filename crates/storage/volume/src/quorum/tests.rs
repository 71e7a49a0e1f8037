//! Who may go on, and whose decisions count, by superblocks alone: each case is one that a
//! rule decides, and that comes out otherwise without it.

use device::{Device, Modelled};
use format::head::{HeadKey, VolumeId};
use format::superblock::{MemberEntry, NEVER, Superblock};
use units::{Epoch, MemberId, Sequence, Timestamp};

use super::*;
use crate::{CreateOptions, Identity, create, superblocks};

/// The epoch that all members know, and the one whose JOIN may have been cut short.
const BEFORE: Epoch = Epoch(4);
const NEWEST: Epoch = Epoch(5);
/// Where they start.
const BEFORE_START: Sequence = Sequence(2000);
const NEWEST_START: Sequence = Sequence(2100);

/// A volume of which an epoch was settled, and another one begun.
struct Story {
    made: Superblock,
    before_members: u32,
    newest_members: u32,
}

impl Story {
    fn new((data, parity): (u8, u8), before_members: u32, newest_members: u32) -> Self {
        let disks: Vec<Modelled> = (0..data + parity).map(|_| Modelled::instant(8 << 20)).collect();
        let boxed = |disk: &Modelled| -> Box<dyn Device> { Box::new(disk.clone()) };
        let entry = |member: u8| MemberEntry::new([member + 1; 16], String::new());
        let options = CreateOptions {
            piece_bytes: format::geometry::PIECE_BYTES_MIN,
            parity_columns: parity,
            ..CreateOptions::default()
        };
        let identity = Identity {
            volume_id: VolumeId([1; 16]),
            head_key: HeadKey([2; 32]),
            members: (0..data + parity).map(entry).collect(),
            spares: Vec::new(),
            created: Timestamp(0),
        };
        let mut devices: Vec<_> = disks.iter().map(boxed).collect();
        create(&mut devices, &options, &identity).unwrap();
        let made = superblocks::load_from(&disks[0]).unwrap();
        Self { made, before_members, newest_members }
    }

    /// From the newest epoch on the member lacks everything.
    fn lacks(mut self, member: u8) -> Self {
        let entry = &mut self.made.members[usize::from(member)];
        (entry.stale_from, entry.clean_from) = (NEWEST_START, NEVER);
        self
    }

    /// The newest epoch has given up this member.
    fn vacates(mut self, member: u8) -> Self {
        self.made.members[usize::from(member)] = MemberEntry::vacant();
        self
    }

    /// As the members at hand say it, of which those in `joined` know the newest epoch.
    fn told_by(&self, at_hand: &[u8], joined: &[u8]) -> Membership {
        let of = |&member: &u8| {
            let own = Superblock {
                member: MemberId(member),
                prepared_epoch: NEWEST,
                joined_epoch: BEFORE,
                joined_start: BEFORE_START,
                joined_members: self.before_members,
                previous_epoch: Epoch(BEFORE.get() - 1),
                previous_start: BEFORE_START - 100,
                previous_members: self.before_members,
                ..self.made.clone()
            };
            if !joined.contains(&member) {
                return own;
            }
            Superblock {
                joined_epoch: NEWEST,
                joined_start: NEWEST_START,
                joined_members: self.newest_members,
                previous_epoch: BEFORE,
                previous_start: BEFORE_START,
                previous_members: self.before_members,
                ..own
            }
        };
        Membership::assemble(at_hand.iter().map(of).collect()).unwrap()
    }

    /// The epoch by which a mount judges; `None` where it refuses. Nothing lies behind the EPOCH.
    fn mounts(&self, at_hand: &[u8], joined: &[u8], gone: &[u8]) -> Option<Epoch> {
        let mut membership = self.told_by(at_hand, joined);
        let gone: Vec<MemberId> = gone.iter().copied().map(MemberId).collect();
        settle(&mut membership, &gone, |_| false).ok()?;
        Some(membership.settled().epoch)
    }

    /// The newest epoch whose word a reader takes.
    fn reads(&self, at_hand: &[u8], joined: &[u8]) -> Epoch {
        let mut membership = self.told_by(at_hand, joined);
        settle_for_reading(&mut membership, |_| false);
        membership.settled().epoch
    }
}

#[test]
fn two_quorums_share_a_member_and_leave_fewer_than_k_outside() {
    for (data, parity, needed) in [(1, 1, 2), (2, 1, 2), (1, 2, 3), (2, 2, 3), (3, 2, 3), (4, 2, 4)]
    {
        let members = data + parity;
        let all: Vec<u8> = (0..members).collect();
        let story = Story::new((data, parity), (1 << members) - 1, (1 << members) - 1);
        for count in 1..=members {
            let here = &all[..usize::from(count)];
            let is_enough = story.mounts(here, &all, &[]) == Some(NEWEST);
            assert_eq!(is_enough, count >= needed, "{count} of {data}+{parity}");
        }
    }
}

#[test]
fn an_epoch_that_others_need_not_have_heard_of_decides_nothing() {
    let story = Story::new((2, 2), 0b1111, 0b1111);
    // Member 0 alone has joined: the others are a quorum that never heard of it.
    assert_eq!(story.mounts(&[0, 1, 2, 3], &[0], &[]), Some(BEFORE));
    assert_eq!(story.reads(&[0, 1, 2, 3], &[0]), BEFORE);
    // With one that returned they would be two histories.
    let story = Story::new((2, 2), 0b0111, 0b1001);
    assert_eq!(story.mounts(&[0, 3], &[0], &[]), None);
    assert_eq!(story.reads(&[0, 3], &[0]), BEFORE);
    // Those who joined are so many that the others are no quorum.
    let story = Story::new((2, 2), 0b1111, 0b1111);
    assert_eq!(story.mounts(&[0, 1, 2], &[0, 1], &[]), Some(NEWEST));
    assert_eq!(story.reads(&[0, 1, 2], &[0, 1]), NEWEST);
}

#[test]
fn all_who_belong_to_an_epoch_that_was_not_used_are_current() {
    let story = Story::new((2, 2), 0b1111, 0b1111);
    let mut membership = story.told_by(&[0, 1, 2, 3], &[0, 1]);
    settle(&mut membership, &[], |_| false).unwrap();
    assert!(MemberId::first(4).all(|member| membership.is_fresh(member)));
    // Where it was used, who lacks its name lacks more.
    let mut membership = story.told_by(&[0, 1, 2, 3], &[0, 1, 2]);
    settle(&mut membership, &[], |_| true).unwrap();
    assert_eq!(
        [0, 1, 2, 3].map(|member| membership.is_fresh(MemberId(member))),
        [true, true, true, false]
    );
}

#[test]
fn who_is_gone_is_neither_waited_for_nor_at_hand() {
    // The newest stripes lie on 0 and 2; 1 was left before.
    let story = Story::new((2, 1), 0b111, 0b101).lacks(1);
    assert_eq!(story.mounts(&[1, 2], &[2], &[0]), None);
    assert_eq!(story.mounts(&[0, 2], &[0, 2], &[1]), Some(NEWEST));
}

#[test]
fn a_reader_counts_who_is_gone_while_a_join_is_torn() {
    // Member 2 was called gone, and the JOIN that says so was cut behind member 0: a user who
    // brings 1 and 2 together goes on without it.
    let story = Story::new((2, 1), 0b111, 0b011).vacates(2);
    assert_eq!(story.reads(&[0, 1], &[0]), BEFORE);
    assert_eq!(story.reads(&[0, 1], &[0, 1]), NEWEST);
}
