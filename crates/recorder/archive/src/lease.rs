//! The right to merge a sensor's objects: an object that says who has it and until when.
//!
//! It is taken with a conditional put, so of two that begin at once one gets it. One whose time has
//! passed is of a process that died; who takes it over removes it first, and of several that do so
//! at once the conditional put chooses one. Nobody goes on merging for longer than its time without
//! renewing it.

use serde::{Deserialize, Serialize};
use units::{NANOS_PER_SECOND, Timestamp};

use crate::Error;
use crate::names::{self, Sensor};
use crate::uploader::Uploader;

/// For one merge: reading, encoding and storing of at most a quarter of a gigabyte.
const TIME_NS: i64 = 600 * NANOS_PER_SECOND;
/// Clocks of two machines differ by less.
const MARGIN_NS: i64 = 60 * NANOS_PER_SECOND;

/// What the object says. Fields are keys in JSON.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Claim {
    /// Who has it.
    pub holder: String,
    /// Until when, in nanoseconds since 1970.
    pub until_ns: i64,
}

impl Claim {
    /// One that is taken or renewed now.
    pub fn new(holder: &str, now: Timestamp) -> Self {
        Self { holder: holder.to_owned(), until_ns: now.plus_nanos(TIME_NS).0 }
    }

    /// Somebody else has it who may be alive: none is taken for longer.
    pub fn bars(&self, holder: &str, now: Timestamp) -> bool {
        let left_ns = self.until_ns.saturating_sub(now.0);
        let counts = (-MARGIN_NS < left_ns) && (left_ns <= TIME_NS + MARGIN_NS);
        counts && self.holder != holder
    }

    /// So much of its time is over that it is to be renewed before a further step.
    pub fn is_old(&self, now: Timestamp) -> bool {
        self.until_ns.saturating_sub(now.0) <= TIME_NS / 2
    }

    /// It is this holder's, and its time is not over.
    fn is_held_by(&self, holder: &str, now: Timestamp) -> bool {
        self.holder == holder && self.until_ns > now.0
    }
}

/// A lease that is held.
#[derive(Debug)]
pub(crate) struct Lease {
    name: String,
    claim: Claim,
}

impl Lease {
    /// Takes it, or says who has it.
    pub(crate) fn take(
        uploader: &mut Uploader<'_>,
        sensor: &Sensor,
        holder: &str,
    ) -> Result<Self, Error> {
        let name = names::lease(sensor);
        let now = uploader.clock().realtime();
        if let Some(bytes) = uploader.get(&name)? {
            let claim: Option<Claim> = serde_json::from_slice(&bytes).ok();
            if let Some(claim) = claim.filter(|claim| claim.bars(holder, now)) {
                return Err(leased(sensor, claim));
            }
            uploader.delete(&name)?;
        }
        let claim = Claim::new(holder, now);
        if !uploader.put_new(&name, &bytes_of(&claim))? {
            let bytes = uploader.get(&name)?.unwrap_or_default();
            return match serde_json::from_slice::<Claim>(&bytes) {
                // A call whose answer was lost was repeated.
                Ok(other) if other == claim => Ok(Self { name, claim }),
                Ok(other) => Err(leased(sensor, other)),
                Err(_) => {
                    let holder = "another process".to_owned();
                    Err(leased(sensor, Claim { holder, ..claim }))
                }
            };
        }
        Ok(Self { name, claim })
    }

    /// Before each step that cannot be undone: whether it is still ours, renewed if half of its
    /// time is over.
    pub(crate) fn keep(
        &mut self,
        uploader: &mut Uploader<'_>,
        sensor: &Sensor,
    ) -> Result<(), Error> {
        let now = uploader.clock().realtime();
        if !self.claim.is_old(now) {
            return Ok(());
        }
        let bytes = uploader.get(&self.name)?.unwrap_or_default();
        let there: Option<Claim> = serde_json::from_slice(&bytes).ok();
        match there {
            Some(there) if there.is_held_by(&self.claim.holder, now) => {
                self.claim = Claim::new(&self.claim.holder, now);
                uploader.put(&self.name, &bytes_of(&self.claim))
            }
            Some(there) => Err(leased(sensor, there)),
            None => {
                let nobody = Claim { holder: "nobody".to_owned(), until_ns: now.0 };
                Err(leased(sensor, nobody))
            }
        }
    }

    /// Gives it back, unless somebody else has it by now.
    pub(crate) fn end(self, uploader: &mut Uploader<'_>) -> Result<(), Error> {
        let bytes = uploader.get(&self.name)?.unwrap_or_default();
        let there: Option<Claim> = serde_json::from_slice(&bytes).ok();
        let is_own = there.is_some_and(|there| there.holder == self.claim.holder);
        if is_own { uploader.delete(&self.name) } else { Ok(()) }
    }
}

fn bytes_of(claim: &Claim) -> Vec<u8> {
    page::safe::json_line(claim).into_bytes()
}

fn leased(sensor: &Sensor, claim: Claim) -> Error {
    let Claim { holder, until_ns } = claim;
    let until = Timestamp(until_ns).to_string();
    Error::Leased { sensor: sensor.to_string(), holder: page::safe::printable(&holder), until }
}
