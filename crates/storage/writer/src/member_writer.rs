//! One member under an open writer: what is on its way to it, and what of that is durable.
//!
//! Writes complete in any order. A flush makes durable what had completed before it began; one is
//! under way at a time.

use std::collections::{BTreeMap, VecDeque};

use core::ops::Range;
use core::time::Duration;

use device::{Completion, Device, ROW_SIZE, Row, Shared};
use format::claim::CLAIM_OFFSET;
use format::geometry::ROW_BYTES;
use format::superblock::Superblock;
use units::Sequence;
use volume::{Error, superblocks};

use crate::claim::{Hold, Kept};
use crate::steps::{BEAT, RENEWAL, Step};

/// Longest time that a completed write waits for others to share its flush.
const FLUSH_AFTER_NS: i64 = 20_000_000;
/// Set in the tokens of flushes.
const FLUSH_TOKEN: u64 = 1 << 63;
/// The token of the discard under way.
const DISCARD_TOKEN: u64 = 1 << 62;
/// The token of the step under way.
const STEP_TOKEN: u64 = 1 << 61;
/// Set in the tokens of reads ahead; the other bits are where, in rows.
const READ_TOKEN: u64 = 1 << 60;
/// Most that is read ahead of a member: a scan of the whole ring must not fill the memory.
const AHEAD_BYTES_MAX: usize = 4 << 20;
/// Who has made the head wait this long by a discard ...
const DISCARD_WAIT_NS: i64 = 20_000_000;
/// ... is not given another one for so long.
const DISCARD_REST_NS: i64 = 60_000_000_000;

/// How far the piece of one stripe is on this member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// So many writes have not completed.
    Submitted(u8),
    Written,
    /// The flush under way covers it.
    Flushing,
    Durable,
}

#[derive(Debug)]
struct Piece {
    /// Number of the stripe since the writer began.
    stripe: u64,
    stage: Stage,
}

/// What a step under way is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    CompareClaim,
    CompareSuperblock,
    Renew,
    Other,
}

/// A write of a piece that was not sent yet.
#[derive(Debug)]
struct HeldWrite {
    token: u64,
    offset: u64,
    data: Shared,
    len: usize,
}

/// A member opened for writing.
#[derive(Debug)]
pub(crate) struct MemberWriter {
    device: Box<dyn Device>,
    superblock: Superblock,
    /// Not all durable, in the order of submission.
    pieces: VecDeque<Piece>,
    /// Token and submission time of what is under way, oldest first.
    under_way: VecDeque<(u64, i64)>,
    flush_under_way: bool,
    oldest_unflushed_ns: Option<i64>,
    /// What is to be done one after the other, beside the pieces.
    steps: VecDeque<Step>,
    step_under_way: Option<Kind>,
    /// That no other process writes here; `None` before it is claimed.
    hold: Option<Hold>,
    /// A renewal is among the steps.
    is_renewing: bool,
    /// Writes of pieces that wait for it.
    held: VecDeque<HeldWrite>,
    /// Why nothing is expected of the member any more, until a caller has heard of it.
    failure: Option<Error>,
    /// What was read ahead, by its offset.
    ahead: BTreeMap<u64, Vec<u8>>,
    /// Reads ahead under way.
    reading: usize,
    takes_discards: bool,
    /// The sequences whose slots are being discarded.
    discarding: Option<Range<Sequence>>,
    /// Since when a caller waits for the end of that.
    discard_awaited_ns: Option<i64>,
    discards_rest_until_ns: i64,
    flushes: u64,
    write_latency_ns_max: u64,
    completions: Vec<Completion>,
}

impl MemberWriter {
    pub(crate) fn open(device: Box<dyn Device>) -> Result<Self, Error> {
        Self::open_all(vec![device]).pop().expect("as many as there are devices")
    }

    /// The same of several members at the same time, in their order.
    pub(crate) fn open_all(mut devices: Vec<Box<dyn Device>>) -> Vec<Result<Self, Error>> {
        let all = devices.iter_mut().map(|device| -> &mut dyn Device { &mut **device });
        let loaded = superblocks::load_all(&mut all.collect::<Vec<_>>());
        let opened = devices.into_iter().zip(loaded);
        opened.map(|(device, loaded)| Ok(Self::with(device, loaded?))).collect()
    }

    /// A newcomer: nothing on it counts, and `superblock` is what it is going to be.
    pub(crate) fn blank(device: Box<dyn Device>, superblock: Superblock) -> Self {
        Self::with(device, superblock)
    }

    fn with(device: Box<dyn Device>, superblock: Superblock) -> Self {
        Self {
            device,
            superblock,
            pieces: VecDeque::new(),
            under_way: VecDeque::new(),
            flush_under_way: false,
            oldest_unflushed_ns: None,
            steps: VecDeque::new(),
            step_under_way: None,
            hold: None,
            is_renewing: false,
            held: VecDeque::new(),
            failure: None,
            ahead: BTreeMap::new(),
            reading: 0,
            takes_discards: false,
            discarding: None,
            discard_awaited_ns: None,
            discards_rest_until_ns: i64::MIN,
            flushes: 0,
            write_latency_ns_max: 0,
            completions: Vec::new(),
        }
    }

    /// Takes what the copies say, read again now that no other process writes.
    pub(crate) fn reloaded(&mut self, superblock: Superblock) {
        self.superblock = superblock;
        self.issue(self.superblock.clone());
    }

    pub(crate) fn read_claim(&self) -> Result<Row, Error> {
        let mut row = [0; ROW_SIZE];
        self.read_at(CLAIM_OFFSET, &mut row)?;
        Ok(row)
    }

    pub(crate) fn write_claim(&mut self, row: &Row) -> Result<(), Error> {
        Ok(self.device.write_at(CLAIM_OFFSET, row)?)
    }

    /// From now on the member is written to only while this holds.
    pub(crate) fn hold(&mut self, hold: Hold) {
        self.hold = Some(hold);
    }

    /// The same of a member that comes to others which are held: its claim is passed over, before
    /// anything else is written.
    pub(crate) fn pass_over(&mut self, kept: &Kept) -> Result<(), Error> {
        self.hold = Some(Hold::over(kept, &self.superblock)?);
        Ok(())
    }

    /// A superblock is about to be sent.
    pub(crate) fn issue(&mut self, superblock: Superblock) {
        if let Some(hold) = &mut self.hold {
            hold.issue(superblock);
        }
    }

    /// Another writer has the volume: what was not sent is not sent any more.
    pub(crate) fn cease(&mut self) {
        self.steps.clear();
        self.held.clear();
        if let Some(hold) = &mut self.hold {
            hold.cease();
        }
    }

    pub(crate) fn may_write(&self, now_ns: i64) -> bool {
        self.hold.as_ref().is_some_and(|hold| hold.may_write(now_ns))
    }

    /// Renews the claim, if it is time.
    pub(crate) fn renew(&mut self, now_ns: i64) {
        let Some(hold) = self.hold.as_ref().filter(|hold| hold.is_due(now_ns)) else { return };
        if !self.is_renewing && self.failure.is_none() {
            let steps = if hold.looks_further() { RENEWAL.into() } else { BEAT.into() };
            self.is_renewing = true;
            self.begin(steps, now_ns);
        }
    }

    /// What this member's copies say.
    pub(crate) fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Takes this for what the copies say: all of them were written anew.
    pub(crate) fn stored(&mut self, superblock: Superblock) {
        assert_eq!(superblock.member, self.superblock.member, "each member has its own number");
        self.superblock = superblock;
    }

    /// Puts steps behind those that are not done yet.
    pub(crate) fn begin(&mut self, steps: Vec<Step>, now_ns: i64) {
        self.steps.extend(steps);
        self.next_step(now_ns);
    }

    fn next_step(&mut self, now_ns: i64) {
        if self.step_under_way.is_some() {
            return;
        }
        if matches!(self.steps.front(), Some(Step::Write { .. })) && !self.may_write(now_ns) {
            RENEWAL.into_iter().rev().for_each(|step| self.steps.push_front(step));
        }
        let Some(step) = self.steps.pop_front() else { return };
        self.under_way.push_back((STEP_TOKEN, now_ns));
        let mut hold = self.hold.as_mut();
        let mut claim = |page: fn(&mut Hold) -> Shared| {
            page(hold.as_mut().expect("a member is claimed before it is written to"))
        };
        let kind = match step {
            Step::Write { offset, data } => {
                let len = data.len();
                self.device.submit_write(STEP_TOKEN, offset, data, len);
                Kind::Other
            }
            Step::Flush => {
                self.device.submit_flush(STEP_TOKEN);
                Kind::Other
            }
            Step::CompareClaim => {
                hold.as_mut().expect("there is something to compare").begin(now_ns);
                self.device.submit_read(STEP_TOKEN, CLAIM_OFFSET, ROW_SIZE);
                Kind::CompareClaim
            }
            Step::CompareSuperblock => {
                self.device.submit_read(STEP_TOKEN, 0, ROW_SIZE);
                Kind::CompareSuperblock
            }
            Step::Renew => {
                self.device.submit_write(STEP_TOKEN, CLAIM_OFFSET, claim(Hold::renewal), ROW_SIZE);
                Kind::Renew
            }
            Step::EndClaim => {
                self.device.submit_write(STEP_TOKEN, CLAIM_OFFSET, claim(Hold::end), ROW_SIZE);
                Kind::Other
            }
        };
        self.step_under_way = Some(kind);
    }

    /// A step has ended; gives what it says about other writers.
    fn step_done(&mut self, completion: Completion, now_ns: i64) -> Result<(), Error> {
        let kind = self.step_under_way.take().expect("its completion came");
        let hold = self.hold.as_mut();
        let row = completion.read.as_ref().and_then(|read| read.first_chunk());
        match (kind, hold, row) {
            // Where nothing can be read no other writer is to be seen; a write mends it, or fails.
            (Kind::CompareClaim, Some(hold), Some(row)) if completion.result.is_ok() => {
                hold.check_claim(row)?;
            }
            (Kind::CompareSuperblock, Some(hold), Some(row)) if completion.result.is_ok() => {
                hold.check_superblock(row)?;
            }
            (Kind::CompareClaim | Kind::CompareSuperblock, ..) => {}
            (Kind::Renew, Some(hold), _) => {
                completion.result?;
                hold.renewed();
                self.is_renewing = false;
                self.release(now_ns);
            }
            _ => completion.result?,
        }
        self.next_step(now_ns);
        Ok(())
    }

    /// Sends what waited for the renewal.
    fn release(&mut self, now_ns: i64) {
        while self.may_write(now_ns) {
            let Some(HeldWrite { token, offset, data, len }) = self.held.pop_front() else {
                return;
            };
            self.device.submit_write(token, offset, data, len);
        }
        self.renew(now_ns);
    }

    /// Starts reading what will be asked for, as far as it is not there.
    pub(crate) fn read_ahead(&mut self, offsets: &[u64], len: usize, now_ns: i64) {
        let is_here = |offset: &u64| self.ahead.get(offset).is_some_and(|bytes| bytes.len() >= len);
        let wanted: Vec<u64> = offsets.iter().copied().filter(|offset| !is_here(offset)).collect();
        let held: usize = self.ahead.values().map(Vec::len).sum();
        if held + wanted.len() * len > AHEAD_BYTES_MAX {
            self.ahead.clear();
        }
        for offset in wanted {
            let token = READ_TOKEN | (offset / u64::from(ROW_BYTES));
            if !self.under_way.iter().any(|&(other, _)| other == token) {
                self.reading += 1;
                self.under_way.push_back((token, now_ns));
                self.device.submit_read(token, offset, len);
            }
        }
    }

    /// Reads ahead are to be waited for.
    pub(crate) fn is_reading(&self) -> bool {
        self.failure.is_none() && self.reading > 0
    }

    /// Reads as the device does, or what was read ahead.
    pub(crate) fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        match self.ahead.get(&offset).and_then(|bytes| bytes.get(..into.len())) {
            Some(bytes) => into.copy_from_slice(bytes),
            None => self.device.read_at(offset, into)?,
        }
        Ok(())
    }

    /// What was read ahead may be written over from now on.
    pub(crate) fn forget(&mut self) {
        self.ahead.clear();
    }

    /// Steps are to be waited for.
    pub(crate) fn has_steps(&self) -> bool {
        self.failure.is_none() && (self.step_under_way.is_some() || !self.steps.is_empty())
    }

    /// Nothing is expected of the member any more.
    pub(crate) fn fail(&mut self, error: Error) {
        self.steps.clear();
        self.failure.get_or_insert(error);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    pub(crate) fn take_failure(&mut self) -> Option<Error> {
        self.failure.take()
    }

    pub(crate) fn device(&self) -> &dyn Device {
        self.device.as_ref()
    }

    pub(crate) fn device_mut(&mut self) -> &mut dyn Device {
        self.device.as_mut()
    }

    pub(crate) fn flushes(&self) -> u64 {
        self.flushes
    }

    pub(crate) fn write_latency_ns_max(&self) -> u64 {
        self.write_latency_ns_max
    }

    /// Submission time of the oldest operation under way. Discards may take their time, until
    /// a caller waits for them.
    pub(crate) fn oldest_ns(&self) -> Option<i64> {
        let oldest = self.under_way.front().map(|&(_, submitted_ns)| submitted_ns);
        oldest.into_iter().chain(self.discard_awaited_ns).min()
    }

    /// Starts one write of the piece of stripe `stripe`, a number that never falls.
    pub(crate) fn submit(
        &mut self,
        (stripe, part): (u64, u8),
        offset: u64,
        (data, len): (Shared, usize),
        now_ns: i64,
    ) {
        assert!(stripe < READ_TOKEN >> 1 && part < 2, "tokens are unique");
        match self.pieces.back_mut().filter(|piece| piece.stripe == stripe) {
            Some(Piece { stage: Stage::Submitted(writes), .. }) => *writes += 1,
            Some(_) => unreachable!("the writes of a piece are submitted together"),
            None => self.pieces.push_back(Piece { stripe, stage: Stage::Submitted(1) }),
        }
        let token = stripe << 1 | u64::from(part);
        self.under_way.push_back((token, now_ns));
        // After a pause of this process, say, another process may have the member.
        if self.may_write(now_ns) && self.held.is_empty() {
            self.device.submit_write(token, offset, data, len);
        } else {
            self.held.push_back(HeldWrite { token, offset, data, len });
            self.renew(now_ns);
        }
    }

    /// Takes completions; with a wait it returns when something completed or the time is over.
    /// Returns how many there were.
    pub(crate) fn reap(&mut self, wait: Option<Duration>, now_ns: i64) -> Result<usize, Error> {
        let mut completions = core::mem::take(&mut self.completions);
        self.device.reap(wait, &mut completions);
        let count = completions.len();
        let taken = completions.drain(..).try_for_each(|completion| self.take(completion, now_ns));
        self.completions = completions;
        taken.map(|()| count)
    }

    fn take(&mut self, completion: Completion, now_ns: i64) -> Result<(), Error> {
        if completion.token == DISCARD_TOKEN {
            let awaited_ns = self.discard_awaited_ns.map_or(0, |since_ns| now_ns - since_ns);
            (self.discarding, self.discard_awaited_ns) = (None, None);
            self.takes_discards &= completion.result.is_ok();
            if awaited_ns >= DISCARD_WAIT_NS {
                self.discards_rest_until_ns = now_ns.saturating_add(DISCARD_REST_NS);
            }
            return Ok(());
        }
        let place = self.under_way.iter().position(|&(token, _)| token == completion.token);
        self.under_way.remove(place.expect("a completion belongs to an operation under way"));
        if completion.token == STEP_TOKEN {
            return self.step_done(completion, now_ns);
        }
        if completion.token & READ_TOKEN != 0 {
            self.reading -= 1;
            let offset = (completion.token & !READ_TOKEN) * u64::from(ROW_BYTES);
            // What cannot be read is asked for again, by the code that needs it.
            let read = completion.read.filter(|_| completion.result.is_ok());
            self.ahead.extend(read.map(|read| (offset, read)));
            return Ok(());
        }
        completion.result?;
        if completion.token & FLUSH_TOKEN != 0 {
            self.flush_under_way = false;
            self.flushes += 1;
            for piece in &mut self.pieces {
                if piece.stage == Stage::Flushing {
                    piece.stage = Stage::Durable;
                }
            }
            while self.pieces.pop_front_if(|piece| piece.stage == Stage::Durable).is_some() {}
            return Ok(());
        }
        self.write_latency_ns_max = completion.latency_ns.max(self.write_latency_ns_max);
        let stripe = completion.token >> 1;
        let piece = self.pieces.iter_mut().find(|piece| piece.stripe == stripe);
        let piece = piece.expect("a piece stays until it is durable");
        let Stage::Submitted(writes) = &mut piece.stage else {
            unreachable!("a piece is written by its own writes");
        };
        *writes -= 1;
        if *writes == 0 {
            piece.stage = Stage::Written;
            self.oldest_unflushed_ns.get_or_insert(now_ns);
        }
        Ok(())
    }

    /// Whether discards do it good.
    pub(crate) fn takes_discards(&self) -> bool {
        self.takes_discards
    }

    pub(crate) fn set_discards(&mut self, is_wanted: bool) {
        self.takes_discards = is_wanted;
    }

    /// The sequences whose slots are being discarded: nothing may be written there.
    pub(crate) fn discarding(&self) -> Option<&Range<Sequence>> {
        self.discarding.as_ref()
    }

    /// Starts discarding slots, if the member takes it now; gives the bytes.
    pub(crate) fn discard(
        &mut self,
        slots: Range<Sequence>,
        (offset, len): (u64, u64),
        now_ns: i64,
    ) -> u64 {
        let may_write = self.may_write(now_ns);
        if !self.takes_discards || now_ns < self.discards_rest_until_ns || !may_write {
            return 0;
        }
        assert_eq!(self.discarding, None, "one discard is under way at a time");
        self.discarding = Some(slots);
        self.device.submit_discard(DISCARD_TOKEN, offset, len);
        len
    }

    /// A caller waits for the discard under way.
    pub(crate) fn await_discard(&mut self, now_ns: i64) {
        self.discard_awaited_ns = self.discard_awaited_ns.or(Some(now_ns));
    }

    /// Starts a flush when none is under way and one is due: `enough` pieces are written, or the
    /// oldest of them has waited long enough.
    pub(crate) fn start_flush(&mut self, enough: usize, now_ns: i64) {
        let Some(oldest) = self.oldest_unflushed_ns else { return };
        let written = self.pieces.iter().filter(|piece| piece.stage == Stage::Written).count();
        let waited = now_ns.saturating_sub(oldest) >= FLUSH_AFTER_NS;
        if self.flush_under_way || !(waited || written >= enough) {
            return;
        }
        for piece in &mut self.pieces {
            if piece.stage == Stage::Written {
                piece.stage = Stage::Flushing;
            }
        }
        self.oldest_unflushed_ns = None;
        self.flush_under_way = true;
        let token = FLUSH_TOKEN | self.flushes;
        self.under_way.push_back((token, now_ns));
        self.device.submit_flush(token);
    }

    /// Stripes below this number are durable here; `None`: all that were submitted.
    pub(crate) fn durable_below(&self) -> Option<u64> {
        self.pieces.front().map(|piece| piece.stripe)
    }

    /// Writes and flushes under way.
    pub(crate) fn in_flight(&self) -> usize {
        self.under_way.len()
    }

    /// Of a member that is not used any more: what became of its last operations is of no
    /// interest, only that they have ended.
    pub(crate) fn is_at_rest(&mut self) -> bool {
        self.device.reap(None, &mut Vec::new());
        self.device.in_flight() == 0
    }

    /// Something is under way, a discard included.
    pub(crate) fn is_busy(&self) -> bool {
        !self.under_way.is_empty() || self.discarding.is_some()
    }
}
