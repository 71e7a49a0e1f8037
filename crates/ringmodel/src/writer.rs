//! The recording side: short and full stripes, early closed slots, flushes, acknowledgement in
//! order, and the clean stop.

use crate::device::{Kind, Position};
use crate::model::{Next, Pending, Progress, Sim};
use crate::mutants::Mutant;
use crate::superblock::each;

impl Sim<'_> {
    /// A stripe may start in `sequence` only inside both windows.
    fn admitted(&self, sequence: usize) -> bool {
        let window = self.geometry.window;
        let (stripes, reach) = match self.mutant {
            Mutant::NoWindowLimit => (8 * window, 4 * window),
            Mutant::WindowInSlots => (usize::MAX, window),
            _ => (window, window),
        };
        let free = !self.resilver_holds(sequence % self.geometry.slots);
        free && self.pending.len() < stripes && sequence <= self.acknowledged.sequence + reach
    }

    /// Submits one stripe of `kind` with `rows` body rows at the next place.
    fn submit(&mut self, kind: Kind, rows: usize) {
        let Next { at, row } = self.next;
        let head = self.new_head(kind, at, row, rows);
        self.truth.submitted(head, self.geometry.slots);
        let content = head.content();
        let mut progress = vec![Progress::Durable; self.members.len()];
        for member in each(self.part) {
            // The head and the trailer of a VOID are two requests; between them nothing is written.
            let requests = if kind == Kind::Void && rows > 0 {
                let last = self.geometry.rows - 1;
                self.submit_rows(member, at, row, vec![content[0]]);
                self.submit_rows(member, at, last, vec![content[rows]]);
                2
            } else {
                self.submit_rows(member, at, row, content.clone());
                1
            };
            progress[member] = Progress::Writing { requests };
        }
        if kind != Kind::Void || self.mutant != Mutant::VoidNotAcknowledged {
            self.pending.push_back(Pending { at, progress });
        }
        let row = row + 1 + rows;
        let at = if kind.closes() || row == self.geometry.rows {
            Position::new(at.sequence + 1, 0)
        } else {
            Position::new(at.sequence, at.sub + 1)
        };
        self.next = Next { at, row: if at.sub == 0 { 0 } else { row } };
    }

    /// A column is sealed: full, cut short by time, or nothing but a heartbeat.
    pub(crate) fn seal(&mut self) {
        let rows = match self.rng.below(10) {
            0 => 0,
            1..4 => self.geometry.rows - 1,
            _ => 1 + self.rng.below(self.geometry.rows - 2),
        };
        self.seal_rows(rows);
    }

    fn seal_rows(&mut self, rows: usize) {
        if !self.admitted(self.next.at.sequence) {
            return;
        }
        if self.next.row + 1 + rows > self.geometry.rows {
            self.submit(Kind::Void, self.geometry.rows - self.next.row - 1);
            if !self.admitted(self.next.at.sequence) {
                return;
            }
        }
        self.submit(if rows == 0 { Kind::Heartbeat } else { Kind::Data }, rows);
    }

    /// One request of a random member completes.
    pub(crate) fn complete(&mut self) {
        let index = self.rng.below(self.members.len());
        let member = &mut self.members[index];
        if member.in_flight.is_empty() {
            return;
        }
        let write = member.in_flight.swap_remove(self.rng.below(member.in_flight.len()));
        member.land(&write, &mut self.rng);
        if write.owner.is_none() {
            self.resilver_landed(index);
        }
        let owner = self.pending.iter_mut().find(|pending| Some(pending.at) == write.owner);
        if let Some(pending) = owner {
            pending.progress[index] = match pending.progress[index] {
                Progress::Writing { requests } if requests > 1 => {
                    Progress::Writing { requests: requests - 1 }
                }
                _ if self.mutant == Mutant::AcknowledgeBeforeFlush => Progress::Durable,
                _ => Progress::Landed,
            };
        }
        self.acknowledge();
    }

    /// One member is flushed; what had landed on it before is durable.
    pub(crate) fn flush_one(&mut self) {
        let index = self.rng.below(self.members.len());
        if self.part >> index & 1 == 1 {
            self.flush_member(index);
        }
    }

    pub(crate) fn flush_member(&mut self, index: usize) {
        self.members[index].flush(&mut self.rng);
        for pending in &mut self.pending {
            if pending.progress[index] == Progress::Landed {
                pending.progress[index] = Progress::Durable;
            }
        }
        self.acknowledge();
    }

    pub(crate) fn acknowledge(&mut self) {
        while let Some(first) = self.pending.front() {
            if first.progress.iter().any(|progress| *progress != Progress::Durable) {
                return;
            }
            self.acknowledged = first.at;
            self.stats.acknowledged += 1;
            self.truth.keep(first.at, self.geometry.slots);
            self.pending.pop_front();
        }
    }

    fn drain(&mut self) {
        while each(self.part).any(|seat| !self.members[seat].in_flight.is_empty()) {
            self.complete();
        }
        for index in each(self.part) {
            self.flush_member(index);
        }
    }

    /// INDEX stripes, then a VOID that carries the final watermark.
    pub(crate) fn stop(&mut self) {
        self.stats.clean_stops += 1;
        self.drain();
        for _ in 0..self.rng.below(3) {
            let rows = 1 + self.rng.below(self.geometry.rows - 1);
            self.seal_rows(rows);
        }
        self.drain();
        if self.mutant != Mutant::NoFinalVoid {
            self.submit(Kind::Void, self.geometry.rows - self.next.row - 1);
        }
        if self.rng.percent(70) {
            self.drain();
            // A lying member may have kept nothing of it.
            self.stopped = self.members.iter().all(|member| !member.bad);
        }
    }
}
