//! Groups of processes that a limit holds back at a disk: what each asked for, what it got, and how
//! long it stood still.
//!
//! What a limit holds back is with the disk's queue only when it may go, and a worker of the kernel
//! makes the request then. So the wait is seen at the threads, which are looked at again and again,
//! and the request is given to the process of the group that has asked for more than it was given.

use std::collections::{BTreeMap, BTreeSet};

use host::DeviceNumber;
use observe::cgroups::{DiskLimit, GroupLook, Limited, Member, Moved, Unit};
use observe::tracepoints::{BlockRequest, Operation};
use serde::{Serialize, Serializer};
use units::number::between;

use super::tally::Amount;

/// Between two looks at the processes of groups that have limits.
const LOOK_NS: i64 = 50_000_000;
/// Between two searches for such groups.
const SEARCH_NS: i64 = 2_000_000_000;
/// Groups that are looked at.
const GROUPS_MAX: usize = 64;

/// What is asked of a machine about its groups.
pub trait Groups {
    /// Groups of processes that have limits at disks.
    fn limited(&mut self) -> Vec<Limited>;
    /// One of them, now.
    fn group(&mut self, group: &Limited) -> GroupLook;
}

/// A group with limits, as it was seen.
#[derive(Clone, Debug, Serialize)]
pub struct GroupSeen {
    /// The group, and its limits. In JSON its name.
    #[serde(rename = "name", serialize_with = "serialize_name")]
    pub limited: Limited,
    /// How long any of its threads waited for a disk.
    pub standing_ns: u64,
    /// What it moved in that time.
    #[serde(skip)]
    pub moved: BTreeMap<DeviceNumber, Moved>,
    /// Its processes that waited.
    #[serde(skip)]
    pub waits: BTreeMap<u32, Wait>,
    /// Reads, and writes, that the kernel held back, and sent off later, by disk.
    #[serde(skip)]
    pub held: BTreeMap<DeviceNumber, [Amount; 2]>,
    /// How long the group stood still as a whole, where the kernel counts that.
    pub stalled_us: Option<u64>,
}

fn serialize_name<S: Serializer>(limited: &Limited, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&limited.name)
}

/// How long a process waited.
#[derive(Clone, Debug, Default)]
pub struct Wait {
    /// Time in which any of its threads waited for a disk.
    pub ns: u64,
    /// What the whole group moved in that time.
    pub moved: BTreeMap<DeviceNumber, Moved>,
}

/// How much was moved of that which a limit counts.
pub(super) fn moved_of(moved: &BTreeMap<DeviceNumber, Moved>, limit: &DiskLimit) -> u64 {
    let moved = moved.get(&limit.device).copied().unwrap_or_default();
    let [read, written] = match limit.unit {
        Unit::Bytes => moved.bytes,
        Unit::Requests => moved.requests,
    };
    if limit.is_write { written } else { read }
}

impl GroupSeen {
    /// What it moved of that which a limit counts.
    pub fn moved_of(&self, limit: &DiskLimit) -> u64 {
        moved_of(&self.moved, limit)
    }

    /// What was held back at the disk of a limit, and sent off later.
    pub fn held_of(&self, limit: &DiskLimit) -> Amount {
        let [read, written] = self.held.get(&limit.device).copied().unwrap_or_default();
        if limit.is_write { written } else { read }
    }
}

/// A group while it is watched.
#[derive(Debug)]
struct Group {
    seen: GroupSeen,
    last: GroupLook,
    stalled_before_us: Option<u64>,
}

/// What a process has asked disks for, and what it was given of it: bytes read and written.
#[derive(Debug, Default)]
struct Account {
    asked: [u64; 2],
    given: [u64; 2],
}

/// All groups with limits.
#[derive(Debug, Default)]
pub(super) struct Held {
    groups: BTreeMap<String, Group>,
    accounts: BTreeMap<u32, Account>,
    /// Threads that send off what was held back.
    releasing: BTreeSet<u32>,
    looked_ns: Option<i64>,
    searched_ns: Option<i64>,
}

impl Held {
    /// Looks at the groups when it is time to. Gives the processes that wait.
    pub(super) fn look<M: Groups + ?Sized>(&mut self, machine: &mut M, now_ns: i64) -> Vec<u32> {
        let is_due = |last: Option<i64>, every| last.is_none_or(|last| now_ns - last >= every);
        if is_due(self.searched_ns, SEARCH_NS) {
            self.searched_ns = Some(now_ns);
            self.search(machine);
        }
        if !is_due(self.looked_ns, LOOK_NS) {
            return Vec::new();
        }
        let passed_ns = self.looked_ns.map_or(0, |last| between(last, now_ns));
        self.looked_ns = Some(now_ns);
        let mut waiting = Vec::new();
        for group in self.groups.values_mut() {
            let look = machine.group(&group.seen.limited);
            for member in &look.members {
                let account = self.accounts.entry(member.process).or_default();
                account.asked = [member.read_bytes, member.written_bytes];
                // Before the watch it was given all that it had asked for.
                if !group.last.members.iter().any(|known| known.process == member.process) {
                    account.given = account.asked;
                }
            }
            waiting.extend(group.take(look, passed_ns));
        }
        waiting
    }

    fn search<M: Groups + ?Sized>(&mut self, machine: &mut M) {
        for limited in machine.limited() {
            if let Some(known) = self.groups.get_mut(&limited.name) {
                known.seen.limited = limited;
            } else if self.groups.len() < GROUPS_MAX {
                let look = machine.group(&limited);
                for Member { process, read_bytes, written_bytes, .. } in &look.members {
                    let asked = [*read_bytes, *written_bytes];
                    self.accounts.insert(*process, Account { asked, given: asked });
                }
                self.groups.insert(limited.name.clone(), Group::new(limited, look));
            }
        }
    }

    /// A thread of the kernel begins to send off, or has sent off, what was held back.
    pub(super) fn releasing(&mut self, thread: u32, is_begun: bool) {
        if is_begun {
            self.releasing.insert(thread);
        } else {
            self.releasing.remove(&thread);
        }
    }

    /// Who asked for a request that a thread makes; `None` where it makes its own, or nobody is
    /// known who may have.
    pub(super) fn asker(&mut self, thread: u32, request: &BlockRequest) -> Option<u32> {
        if !self.releasing.contains(&thread) {
            return None;
        }
        let is_write = request.purpose.operation != Operation::Read;
        let side = usize::from(is_write);
        let is_of =
            |limit: &DiskLimit| limit.device == request.device && limit.is_write == is_write;
        // A device that is built on others may have the limit.
        let exact = self.groups.values().any(|group| group.seen.limited.limits.iter().any(is_of));
        let fits = |group: &&mut Group| {
            let limits = &group.seen.limited.limits;
            limits.iter().any(|limit| if exact { is_of(limit) } else { limit.is_write == is_write })
        };
        let accounts = &self.accounts;
        let lacks = |process: u32| {
            let [asked, given] = accounts.get(&process).map_or([0; 2], |account| {
                [&account.asked, &account.given]
                    .map(|sides| sides.get(side).copied().unwrap_or_default())
            });
            i128::from(asked) - i128::from(given)
        };
        // One that waits has asked; among several, the one that lacks most of what it asked for.
        let rank = |member: &Member| (member.waiting > 0, lacks(member.process));
        let best = self.groups.values_mut().filter(fits).filter_map(|group| {
            let most = group.last.members.iter().max_by_key(|member| rank(member)).copied()?;
            Some((rank(&most), most.process, group))
        });
        let (_, process, group) = best.max_by_key(|(rank, ..)| *rank)?;
        let held = group.seen.held.entry(request.device).or_default();
        held.get_mut(side)?.add(request.bytes());
        Some(process)
    }

    /// A process was given so much, held back or not.
    pub(super) fn given(&mut self, process: u32, operation: Operation, bytes: u64) {
        if let Some(account) = self.accounts.get_mut(&process) {
            let [read, written] = &mut account.given;
            *(if operation == Operation::Read { read } else { written }) += bytes;
        }
    }

    /// What was seen of groups of which anything waited.
    pub(super) fn finish(self) -> Vec<GroupSeen> {
        let groups = self.groups.into_values().map(|group| GroupSeen {
            stalled_us: group
                .last
                .stalled_us
                .and_then(|now| Some(now.saturating_sub(group.stalled_before_us?))),
            ..group.seen
        });
        groups.filter(|group| group.standing_ns > 0).collect()
    }
}

impl Group {
    fn new(limited: Limited, look: GroupLook) -> Self {
        let seen = GroupSeen {
            limited,
            standing_ns: 0,
            moved: BTreeMap::new(),
            waits: BTreeMap::new(),
            held: BTreeMap::new(),
            stalled_us: None,
        };
        Self { seen, stalled_before_us: look.stalled_us, last: look }
    }

    /// Counts the time since the last look for those that wait now; gives them.
    fn take(&mut self, look: GroupLook, passed_ns: u64) -> Vec<u32> {
        let waiting = look.members.iter().filter(|member| member.waiting > 0);
        let waiting: Vec<u32> = waiting.map(|member| member.process).collect();
        for process in &waiting {
            let wait = self.seen.waits.entry(*process).or_default();
            wait.ns += passed_ns;
            add(&mut wait.moved, &look.moved, &self.last.moved);
        }
        if !waiting.is_empty() {
            self.seen.standing_ns += passed_ns;
            add(&mut self.seen.moved, &look.moved, &self.last.moved);
        }
        self.last = look;
        waiting
    }
}

type ByDisk = BTreeMap<DeviceNumber, Moved>;

/// Adds what was moved between two looks.
fn add(sums: &mut ByDisk, now: &ByDisk, before: &ByDisk) {
    for (device, now) in now {
        let before = before.get(device).copied().unwrap_or_default();
        let sum = sums.entry(*device).or_default();
        for (sum, now, before) in [
            (&mut sum.bytes, now.bytes, before.bytes),
            (&mut sum.requests, now.requests, before.requests),
        ] {
            for ((sum, now), before) in sum.iter_mut().zip(now).zip(before) {
                *sum += now.saturating_sub(before);
            }
        }
    }
}
