//! The state of one run: members, the writer's memory, and what is true about them.

use std::collections::VecDeque;
use std::fmt;

use crate::checker::Truth;
use crate::device::{Head, Kind, Member, Position, Row, Superblock, Write};
use crate::mutants::Mutant;
use crate::read::View;
use crate::rng::Rng;

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

    /// Bit set of every member.
    pub(crate) fn all(&self) -> usize {
        (1 << self.members()) - 1
    }
}

/// Which faults a run injects, beside crashes at every moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scenario {
    /// No fault but the crash; up to P members absent at a mount, which return stale.
    Honest,
    /// Up to P members lose, misdirect and rot rows, lie about flushes, or are absent.
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
    pub(crate) members: Vec<Member>,
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
        let created =
            Superblock { generation: 1, prepared: 0, joined: 0, start: 0, members: geometry.all() };
        let member = Member::new(geometry.slots * geometry.rows, created);
        Self {
            geometry,
            scenario,
            mutant,
            rng: Rng::new(seed),
            members: vec![member; geometry.members()],
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
        View { geometry: self.geometry, members: &self.members, present, mutant: self.mutant }
    }

    pub(crate) fn new_head(&mut self, kind: Kind, at: Position, row: usize, rows: usize) -> Head {
        let identity = self.rng.next() | 1;
        Head { epoch: self.epoch, at, row, rows, kind, identity, watermark: self.acknowledged }
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
        for member in &mut self.members {
            if power {
                member.power_cut(&mut self.rng);
            } else {
                member.kill(&mut self.rng);
            }
        }
        self.pending.clear();
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
