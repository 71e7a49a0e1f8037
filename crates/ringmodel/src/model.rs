//! The state of one run: members, the writer's memory, and what is true about them.

use std::collections::VecDeque;
use std::fmt;

use crate::checker::Truth;
use crate::device::{Head, Kind, Member, Position, Row, Write};
use crate::mutants::Mutant;
use crate::read::View;
use crate::resilver::Resilver;
use crate::rng::Rng;
use crate::superblock::{Entry, SEATS, Settled, Shape, Superblock, each};

/// Rows of a slot in every geometry: room for several short stripes and a VOID.
pub(crate) const ROWS: usize = 8;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    /// K: pieces needed to read a stripe.
    pub(crate) data: usize,
    /// P: pieces that may be missing.
    pub(crate) parity: usize,
    pub(crate) slots: usize,
    /// Rows of a slot, heads included.
    pub(crate) rows: usize,
    /// W: stripes not yet acknowledged, and slots they may reach beyond the acknowledged one.
    pub(crate) window: usize,
}

impl Geometry {
    pub(crate) fn members(&self) -> usize {
        self.data + self.parity
    }

    /// Without parity nothing may be faulty, but rot is to be reported exactly.
    pub(crate) fn scenarios(&self) -> [Scenario; 2] {
        let second = if self.parity == 0 { Scenario::Rot } else { Scenario::Faulty };
        [Scenario::Honest, second]
    }

    fn superblock(&self, missing: usize) -> Superblock {
        let shape = Shape { first: 0, data: self.data, parity: self.parity };
        let all = (1 << self.members()) - 1;
        let mut entries = [Entry::default(); SEATS];
        for (uuid, seat) in (1..).zip(each(all)) {
            entries[seat] = if missing >> seat & 1 == 1 {
                Entry::EMPTY
            } else {
                Entry { uuid, ..Entry::default() }
            };
        }
        Superblock {
            generation: 1,
            prepared: 0,
            joined: 0,
            previous: Settled {
                epoch: 0,
                start: 0,
                members: all & !missing,
                replaced: 0,
                data: self.data,
            },
            start: 0,
            members: all & !missing,
            shapes: [shape; 3],
            entries,
        }
    }
}

/// Which faults a run injects, beside crashes at every moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scenario {
    /// No fault but the crash. Any members leave and return, up to P at a time, are replaced, and
    /// new ones are added.
    Honest,
    /// The same up to P members lose, misdirect and rot rows, lie about flushes, leave and return.
    Faulty,
    /// Rows and superblock copies rot on a volume without redundancy.
    Rot,
}

/// Why a mount did not come up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    Crashed,
    Refused,
    Violation(String),
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stats {
    pub(crate) runs: u64,
    pub(crate) crashes: u64,
    pub(crate) crashes_in_mount: u64,
    pub(crate) acknowledged: u64,
    pub(crate) mounts: u64,
    pub(crate) readers: u64,
    pub(crate) clean_stops: u64,
    pub(crate) voids: u64,
    pub(crate) rewritten: u64,
    pub(crate) rots: u64,
    pub(crate) refused: u64,
    pub(crate) unavailable: u64,
    pub(crate) without: u64,
    pub(crate) expelled: u64,
    pub(crate) returned: u64,
    pub(crate) replaced: u64,
    pub(crate) grown: u64,
    pub(crate) resilvered: u64,
    pub(crate) full_scans: usize,
    pub(crate) probes_max: usize,
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, crashes, crashes_in_mount, acknowledged, mounts, readers, .. } = self;
        write!(f, "runs {runs} crashes {crashes} (in mount {crashes_in_mount}) ")?;
        write!(f, "acknowledged {acknowledged} mounts {mounts} readers {readers} ")?;
        let Self { clean_stops, voids, rewritten, rots, refused, unavailable, .. } = self;
        write!(f, "clean stops {clean_stops} voids {voids} rewritten {rewritten} rots {rots} ")?;
        write!(f, "refused {refused} unavailable {unavailable} ")?;
        let Self { without, expelled, returned, replaced, grown, resilvered, .. } = self;
        write!(f, "without {without} expelled {expelled} returned {returned} ")?;
        write!(f, "replaced {replaced} grown {grown} resilvered {resilvered} ")?;
        write!(f, "full scans {} probes at most {}", self.full_scans, self.probes_max)
    }
}

/// How far a member is with a stripe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    Writing { requests: usize },
    Landed,
    Durable,
}

#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) at: Position,
    pub(crate) progress: Vec<Progress>,
}

/// Where the writer puts its next stripe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next {
    pub(crate) at: Position,
    pub(crate) row: usize,
}

#[derive(Debug)]
pub(crate) struct Sim<'a> {
    pub(crate) geometry: &'a Geometry,
    pub(crate) scenario: Scenario,
    pub(crate) mutant: Mutant,
    pub(crate) rng: Rng,
    /// By seat: the devices in service.
    pub(crate) members: Vec<Member>,
    /// Devices out of service, and the seats they claim.
    pub(crate) aside: Vec<(usize, Member)>,
    pub(crate) next_uuid: u64,
    /// The superblock that the running writer goes by; of a mount, the newest at hand.
    pub(crate) known: Superblock,
    /// The newest epoch that the mount or writer may rely on.
    pub(crate) settled: Settled,
    /// Bit set of those that take part in the running epoch.
    pub(crate) part: usize,
    /// Bit set of those that lie, leave and return, where only some may.
    pub(crate) restless: usize,
    /// Bit set of those that the operator says are gone for good, for one mount.
    pub(crate) gone: usize,
    /// How often members come and go, in thousandths of the writer's steps.
    pub(crate) churn: usize,
    pub(crate) resilver: Option<Resilver>,
    pub(crate) truth: Truth,
    pub(crate) epoch: usize,
    pub(crate) next: Next,
    pub(crate) acknowledged: Position,
    pub(crate) pending: VecDeque<Pending>,
    /// The last thing written was the final VOID of a clean stop.
    pub(crate) stopped: bool,
    /// Crash points left until the mount dies.
    pub(crate) points_left: Option<usize>,
    pub(crate) stats: &'a mut Stats,
}

impl<'a> Sim<'a> {
    pub(crate) fn new(
        seed: u64,
        geometry: &'a Geometry,
        (scenario, mutant): (Scenario, Mutant),
        stats: &'a mut Stats,
    ) -> Self {
        let mut rng = Rng::new(seed);
        let missing = if scenario != Scenario::Rot && geometry.parity > 0 && rng.percent(10) {
            1 << rng.below(geometry.members())
        } else {
            0
        };
        let known = geometry.superblock(missing);
        let rows = geometry.slots * geometry.rows;
        let members = (0..geometry.members()).map(|seat| {
            let uuid = known.entries[seat].uuid;
            Member::new(rows, uuid, (uuid > 0).then_some(&known))
        });
        let churn = [0, 8, 25][rng.below(3)];
        Self {
            geometry,
            scenario,
            mutant,
            rng,
            members: members.collect(),
            aside: Vec::new(),
            next_uuid: 100,
            known,
            settled: known.previous,
            part: 0,
            restless: missing,
            gone: 0,
            churn,
            resilver: None,
            truth: Truth::new(geometry.slots),
            epoch: 0,
            next: Next { at: Position::new(1, 0), row: 0 },
            acknowledged: Position::default(),
            pending: VecDeque::new(),
            stopped: false,
            points_left: None,
            stats,
        }
    }

    pub(crate) fn view(&self, present: usize) -> View<'_> {
        self.view_by(&self.known, present)
    }

    /// What the members of a set show to one who knows `known`.
    pub(crate) fn view_by<'b>(&'b self, known: &'b Superblock, present: usize) -> View<'b> {
        self.view_of(&self.members, known, present)
    }

    pub(crate) fn view_of<'b>(
        &'b self,
        members: &'b [Member],
        known: &'b Superblock,
        present: usize,
    ) -> View<'b> {
        View { geometry: self.geometry, members, present, known, mutant: self.mutant }
    }

    pub(crate) fn new_head(&mut self, kind: Kind, at: Position, row: usize, rows: usize) -> Head {
        let identity = self.rng.next() | 1;
        let watermark = self.acknowledged;
        let columns = self.known.shape_at(at.sequence).columns();
        Head { epoch: self.epoch, at, row, rows, kind, identity, watermark, columns }
    }

    pub(crate) fn submit_rows(&mut self, member: usize, at: Position, row: usize, rows: Vec<Row>) {
        let first = at.sequence % self.geometry.slots * self.geometry.rows + row;
        self.members[member].submit(Write { first, rows, owner: Some(at) });
    }

    pub(crate) fn flush_present(&mut self, set: usize) {
        for (index, member) in self.members.iter_mut().enumerate() {
            if set >> index & 1 == 1 {
                member.flush(&mut self.rng);
            }
        }
    }

    pub(crate) fn crash(&mut self) {
        self.stats.crashes += 1;
        let power = self.rng.percent(70);
        let aside = self.aside.iter_mut().map(|(_, member)| member);
        for member in self.members.iter_mut().chain(aside) {
            if power {
                member.power_cut(&mut self.rng);
            } else {
                member.kill(&mut self.rng);
            }
        }
        self.pending.clear();
        self.resilver = None;
    }

    /// A row or a superblock copy goes bad without a word.
    pub(crate) fn rot(&mut self) {
        let (slots, rows) = (self.geometry.slots, self.geometry.rows);
        let member = self.rng.below(self.members.len());
        let may_rot = self.scenario == Scenario::Rot || self.members[member].bad;
        if !may_rot {
            return;
        }
        self.stats.rots += 1;
        let (slot, row) = (self.rng.below(slots), self.rng.below(rows));
        let wide = self.scenario == Scenario::Rot && self.rng.percent(10);
        match self.rng.below(10) {
            0 if self.scenario == Scenario::Rot => {
                let copy = self.rng.below(crate::device::COPIES);
                self.members[member].rot_superblock(copy);
            }
            1..4 => {
                let width = if wide { 1 + self.rng.below(self.geometry.window) } else { 1 };
                (slot..slots).take(width).for_each(|slot| self.rot_row(member, slot, 0));
            }
            4 if wide => (0..rows).for_each(|row| self.rot_row(member, slot, row)),
            _ => self.rot_row(member, slot, row),
        }
    }

    fn rot_row(&mut self, member: usize, slot: usize, row: usize) {
        self.members[member].rot(slot * self.geometry.rows + row);
        if self.geometry.parity == 0 {
            self.truth.rot(slot, row);
        }
    }
}
