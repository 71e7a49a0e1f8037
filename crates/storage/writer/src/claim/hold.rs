//! The claim that this process holds on one member: compared, renewed, and how long it counts.

use device::{Pool, ROW_SIZE, Row, Shared};
use format::claim::{CLAIM_BYTES, Claim, interval_ns, lease_ns};
use format::head::HeadKey;
use format::superblock::Superblock;
use volume::Error;

/// So many renewals from one comparison of the superblock to the next.
const FURTHER_EVERY: u64 = 8;

/// What every member's claim says alike.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    claim: Claim,
    key: HeadKey,
}

impl Kept {
    pub(crate) fn new(claim: Claim, key: HeadKey) -> Self {
        Self { claim, key }
    }

    /// The claim as it lies on the member of `own`.
    pub(super) fn on(&self, own: &Superblock) -> Claim {
        let (member, member_uuid) = (own.member, own.own_uuid());
        Claim { member, member_uuid, ..self.claim.clone() }
    }
}

/// The claim on one member.
#[derive(Debug)]
pub(crate) struct Hold {
    claim: Claim,
    key: HeadKey,
    /// What lies there, as far as this process knows.
    row: Box<Row>,
    /// When the last comparison began that a renewal has followed.
    compared_ns: i64,
    /// When the one under way began, or the last one.
    begun_ns: i64,
    /// The last superblock that this process sent there: nothing newer may be found.
    issued: Superblock,
    /// It was given up, or is another's.
    has_ended: bool,
    pages: Pool,
}

impl Hold {
    /// Of a member on which whatever is found first is passed over: before anything else is written
    /// there the claim is.
    pub(crate) fn over(kept: &Kept, own: &Superblock) -> Result<Self, Error> {
        Ok(Self {
            claim: kept.on(own),
            key: kept.key,
            row: Box::new([0; ROW_SIZE]),
            compared_ns: i64::MIN,
            begun_ns: i64::MIN,
            issued: own.clone(),
            has_ended: false,
            // One is on its way, and one may be made before its completion was taken.
            pages: Pool::new(2, CLAIM_BYTES)?,
        })
    }

    /// What this process has claimed with `row`, and seen there when it looked at `compared_ns`.
    pub(crate) fn taken(
        kept: &Kept,
        own: &Superblock,
        (row, count): (&Row, u64),
        compared_ns: i64,
    ) -> Result<Self, Error> {
        let hold = Self::over(kept, own)?;
        let claim = Claim { count, ..hold.claim };
        Ok(Self { claim, row: Box::new(*row), compared_ns, begun_ns: compared_ns, ..hold })
    }

    /// The claim has not been there yet.
    fn is_new(&self) -> bool {
        self.compared_ns == i64::MIN
    }

    /// Nothing is sent from now on.
    pub(crate) fn cease(&mut self) {
        self.has_ended = true;
    }

    /// Something may be sent to the member.
    pub(crate) fn may_write(&self, now_ns: i64) -> bool {
        !self.has_ended
            && now_ns.saturating_sub(self.compared_ns) < lease_ns(self.claim.interval_ms)
    }

    /// It is time for a renewal.
    pub(crate) fn is_due(&self, now_ns: i64) -> bool {
        !self.has_ended
            && now_ns.saturating_sub(self.begun_ns) >= interval_ns(self.claim.interval_ms)
    }

    /// The next renewal compares the superblock, too: a seek more.
    pub(crate) fn looks_further(&self) -> bool {
        self.is_new() || self.claim.count.is_multiple_of(FURTHER_EVERY)
    }

    /// A comparison begins.
    pub(crate) fn begin(&mut self, now_ns: i64) {
        self.begun_ns = now_ns;
    }

    /// A superblock is about to be sent.
    pub(crate) fn issue(&mut self, superblock: Superblock) {
        self.issued = superblock;
    }

    /// What was found in the place of the claim. What is not another's claim, and not of before
    /// this one, is damage: the renewal mends it.
    ///
    /// # Errors
    /// [`Error::TakenOver`]
    pub(crate) fn check_claim(&self, found: &Row) -> Result<(), Error> {
        if self.is_new() || *found == *self.row {
            return Ok(());
        }
        match Claim::decode(found, &self.key) {
            Ok(by) if by.id != self.claim.id && by.turn >= self.claim.turn => {
                Err(Error::TakenOver { by: Box::new(by) })
            }
            _ => Ok(()),
        }
    }

    /// What was found in the place of the first superblock copy. One that is damaged, older, or of
    /// another member says nothing about writers. A member that gave back something else before is
    /// a bad one; where a program writes that makes no claims, all members show it.
    ///
    /// # Errors
    /// [`Error::Changed`]
    pub(crate) fn check_superblock(&self, found: &Row) -> Result<(), Error> {
        let own = &self.issued;
        if self.is_new() {
            return Ok(());
        }
        let Ok(found) = Superblock::decode(found, 0) else { return Ok(()) };
        let is_same_member = found.volume_id == own.volume_id && found.member == own.member;
        let is_newer = found.generation > own.generation
            || (found.generation == own.generation && found != *own);
        if found.volume_id != own.volume_id || (is_same_member && is_newer) {
            return Err(Error::Changed { member: own.member });
        }
        Ok(())
    }

    /// The next renewal, to be written now.
    pub(crate) fn renewal(&mut self) -> Shared {
        self.claim.count += 1;
        self.page()
    }

    /// The end of it, to be written now.
    pub(crate) fn end(&mut self) -> Shared {
        (self.claim.is_given_up, self.has_ended) = (true, true);
        self.renewal()
    }

    fn page(&mut self) -> Shared {
        *self.row = self.claim.encode(&self.key);
        let mut page = self.pages.take().expect("one renewal is under way at a time");
        page.copy_from_slice(&self.row[..]);
        page.freeze()
    }

    /// The renewal has arrived: what was sent counts from its comparison on.
    pub(crate) fn renewed(&mut self) {
        self.compared_ns = self.begun_ns;
    }
}
