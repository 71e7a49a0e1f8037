//! Reading everything that is acknowledged from the medium, checking all of it, and making good
//! from parity what is damaged. No keys are needed: packets are never decoded.
//!
//! Checked are heads, rows, bodies against the manifest, parity against data, and the superblock
//! copies, of every member at hand. Repairs are written only by the process that owns the volume,
//! only inside (head - N + 2W, watermark], and only what the others of the same identity give; a
//! piece that shows a newer sequence was overwritten and is left alone. What was written is flushed
//! and read back. Not here: members that missed stripes while they were away (`resilver`), and
//! volumes without superblocks (`salvage`).

mod check;
mod flow;
mod mend;
mod outcome;
mod patrol;

use core::ops::ControlFlow;

use device::Device;
use parity::Codec;
use units::{Clock, MemberId};
use volume::{Error, Reader, superblocks};

use crate::claim::{Claiming, Opener};
use crate::member_writer::MemberWriter;
use crate::member_writers::MemberWriters;
use crate::verify::{Damage, VerifyReport};

pub(crate) use check::Checker;
pub(crate) use mend::Mend;
pub use outcome::Outcome;
pub use patrol::{Patrol, Wanted, patrol};

/// How a volume is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScrubOptions {
    /// Slots of each member that are read ahead of the one that is checked, by a thread for each
    /// member. With 0 everything is done in turn by the calling thread.
    pub slots_ahead: usize,
}

impl Default for ScrubOptions {
    fn default() -> Self {
        Self { slots_ahead: 4 }
    }
}

/// The members of a volume without a running recorder, held by this process alone: what may be
/// repaired.
pub struct Owner<'a> {
    writers: MemberWriters,
    clock: &'a dyn Clock,
}

impl<'a> Owner<'a> {
    /// Takes members that were opened for writing. What a killed writer left in their caches is
    /// made durable first, so that it is not judged and then gone.
    ///
    /// # Errors
    /// [`Error::Claimed`] when another process has the volume open for writing; those of the
    /// devices.
    pub fn claim(devices: Vec<Box<dyn Device>>, opener: &Opener<'a>) -> Result<Self, Error> {
        let writers = MemberWriter::open_all(devices).into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut writers = MemberWriters::assemble(writers)?;
        let failed = Claiming::run(opener, &mut writers)?.into_iter().chain(writers.reload()?);
        if let Some((_, error)) = failed.into_iter().next() {
            return Err(error);
        }
        Ok(Self { writers, clock: opener.clock })
    }

    /// Gives the members up in order: the next opener need not wait.
    ///
    /// # Errors
    /// [`Error::TakenOver`] when another process has opened the volume for writing; those of the
    /// devices.
    pub fn give_up(mut self) -> Result<(), Error> {
        self.writers.give_up(self.clock).map_err(|failed| failed.error)
    }

    /// Still owns the members; those that fail at saying so are left alone from now on.
    fn renew(&mut self) -> Result<(), Error> {
        while let Err(failed) = self.writers.renew(self.clock) {
            let Some(member) = failed.member else { return Err(failed.error) };
            self.writers.remove(member);
        }
        Ok(())
    }
}

impl core::fmt::Debug for Owner<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Owner").field("writers", &self.writers).finish_non_exhaustive()
    }
}

impl Outcome {
    /// All of it is as it was acknowledged.
    pub fn is_repaired(&self) -> bool {
        matches!(self, Self::Repaired)
    }
}

/// A damaged place in the ring.
#[derive(Debug)]
pub struct Finding {
    /// Where, and how much of it.
    pub damage: Damage,
    /// What became of it.
    pub outcome: Outcome,
}

/// A superblock copy that is not what its member's newest one says.
#[derive(Debug)]
pub struct BadCopy {
    /// Number of the member.
    pub member: MemberId,
    /// Which of the four.
    pub copy: u8,
    /// It is whole, and of an earlier state: a crash fell between the writes of the copies. No
    /// damage.
    pub is_old: bool,
    /// What became of it: the newest copy of the same member is all that it takes.
    pub outcome: Outcome,
}

impl BadCopy {
    /// It is as it should be, or only waits to be brought up to date.
    fn is_sound(&self) -> bool {
        self.outcome.is_repaired() || (self.is_old && matches!(self.outcome, Outcome::Repairable))
    }
}

/// What a scrub did.
#[derive(Debug, Default)]
pub struct ScrubReport {
    /// What was read, in numbers. Its list of damage is empty: that is in `findings`.
    pub verified: VerifyReport,
    /// Damage in the ring, in its order.
    pub findings: Vec<Finding>,
    /// Superblock copies that were not as they should be.
    pub copies: Vec<BadCopy>,
    /// Everything was checked; not so when it was broken off.
    pub is_complete: bool,
}

impl ScrubReport {
    /// Whether nothing was damaged.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
            && self.copies.iter().all(|copy| copy.is_old)
            && self.verified.parity_wrong.is_empty()
    }

    /// Nothing is damaged any more.
    pub fn is_sound(&self) -> bool {
        let mut outcomes = self.findings.iter().map(|finding| &finding.outcome);
        let mut copies = self.copies.iter();
        outcomes.all(Outcome::is_repaired)
            && copies.all(BadCopy::is_sound)
            && self.verified.parity_wrong.is_empty()
    }
}

/// Checks everything that `reader` may show; with an owner what is damaged is repaired. The reader
/// is opened after the owner was claimed, of the same members. `progress` hears (bytes done, bytes
/// in all) and may stop it: then what was found so far is reported.
///
/// # Errors
/// [`Error::Quorum`] when repairs are wanted and too few members are there to say what was
/// acknowledged; [`Error::TakenOver`] when another process opens the volume for writing meanwhile;
/// and where memory or a processor that computes rightly is missing.
pub fn scrub(
    reader: &Reader,
    owner: Option<&mut Owner<'_>>,
    options: ScrubOptions,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<ScrubReport, Error> {
    if owner.is_some() {
        reader.check_quorum(&[])?;
    }
    let mut checker = Checker::new(reader, Some(Codec::new()?));
    run(&mut checker, owner, options, progress)
}

/// Verifies the acknowledged part of the ring on every member, slot after slot in this thread;
/// `progress` hears (bytes done, bytes in all) and may stop it.
pub fn verify(
    reader: &Reader,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> VerifyReport {
    let report = check_in_turn(reader, progress);
    let damage = report.findings.into_iter().map(|finding| finding.damage).collect();
    VerifyReport { damage, ..report.verified }
}

/// As [`scrub`], without repairs: it cannot fail, and without a codec parity is taken as it is.
fn check_in_turn(
    reader: &Reader,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> ScrubReport {
    let mut checker = Checker::new(reader, Codec::new().ok());
    let options = ScrubOptions { slots_ahead: 0 };
    run(&mut checker, None, options, progress).expect("reading in turn needs no memory of a pool")
}

fn run(
    checker: &mut Checker<'_>,
    mut owner: Option<&mut Owner<'_>>,
    options: ScrubOptions,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<ScrubReport, Error> {
    let reader = checker.reader();
    let mut report = ScrubReport { is_complete: true, ..ScrubReport::default() };
    if let Some(owner) = &mut owner {
        owner.renew()?;
    }
    scrub_copies(reader, owner.as_deref_mut(), &mut report);
    let Some(span) = reader.span() else { return Ok(report) };
    let members = u64::try_from(reader.membership().present().count()).expect("at most 24");
    let slot_bytes = u64::from(reader.geometry().piece_bytes) * members;
    let total = (span.acknowledged.sequence + 1 - span.tail) * slot_bytes;
    let sequences = span.tail..=span.acknowledged.sequence;
    let mut lost = None;
    flow::each_slot(reader, sequences, options.slots_ahead, &mut |sequence, bytes| {
        if let Some(Err(error)) = owner.as_deref_mut().map(Owner::renew) {
            lost = Some(error);
            return ControlFlow::Break(());
        }
        for damage in checker.slot(span, sequence, bytes, &mut report.verified) {
            let mend = checker.mend(span, &damage, bytes);
            let outcome = settle(mend, owner.as_deref_mut());
            report.findings.push(Finding { damage, outcome });
        }
        report.verified.read.slots += 1;
        report.verified.read.bytes += slot_bytes;
        let flow = progress(report.verified.read.bytes, total);
        report.is_complete = flow.is_continue() || sequence == span.acknowledged.sequence;
        flow
    })?;
    report.verified.given_up = reader.given_up();
    lost.map_or(Ok(report), Err)
}

/// What becomes of a damaged place.
fn settle(mend: Result<Mend, Outcome>, owner: Option<&mut Owner<'_>>) -> Outcome {
    let mend = match mend {
        Ok(mend) => mend,
        Err(outcome) => return outcome,
    };
    let written = owner.map(|owner| {
        let writer =
            owner.writers.get_mut(mend.member()).ok_or(Error::Absent { member: mend.member() })?;
        mend.apply(writer.device_mut())
    });
    let (repaired, lost_rows) = (written.is_some(), mend.into_lost_rows());
    match written {
        Some(Err(error)) => Outcome::Failed(error),
        _ if !lost_rows.is_empty() => Outcome::Partly { lost_rows, repaired },
        Some(Ok(())) => Outcome::Repaired,
        None => Outcome::Repairable,
    }
}

/// Compares all copies with the newest of their member, and writes those anew that differ. Beside a
/// writer that is about to change them a copy counts only if it is wrong twice.
fn scrub_copies(reader: &Reader, mut owner: Option<&mut Owner<'_>>, report: &mut ScrubReport) {
    let first = reader.other_copies();
    let again = if first.is_empty() { Vec::new() } else { reader.other_copies() };
    for (member, copy, is_old) in first.into_iter().filter(|found| again.contains(found)) {
        let outcome = match owner.as_deref_mut() {
            None => Outcome::Repairable,
            Some(owner) => match rewrite_copy(owner, member, copy) {
                Ok(()) => Outcome::Repaired,
                Err(error) => Outcome::Failed(error),
            },
        };
        report.copies.push(BadCopy { member, copy, is_old, outcome });
    }
}

fn rewrite_copy(owner: &mut Owner<'_>, member: MemberId, copy: u8) -> Result<(), Error> {
    let writer = owner.writers.get_mut(member).ok_or(Error::Absent { member })?;
    let superblock = writer.superblock().clone();
    superblocks::rewrite(writer.device_mut(), &superblock, copy)
}
