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

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Form {
    holder: String,
    until_ns: i64,
}

/// A lease that is held.
#[derive(Debug)]
pub(crate) struct Lease {
    name: String,
    holder: String,
    until: Timestamp,
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
            let form: Option<Form> = serde_json::from_slice(&bytes).ok();
            let held = form.filter(|form| counts(form.until_ns, now));
            if let Some(form) = held.filter(|form| form.holder != holder) {
                return Err(leased(sensor, form));
            }
            uploader.delete(&name)?;
        }
        let mut lease = Self { name, holder: holder.to_owned(), until: now };
        let form = lease.renewed(now);
        if !uploader.put_new(&lease.name, &bytes_of(&form))? {
            let bytes = uploader.get(&lease.name)?.unwrap_or_default();
            return match serde_json::from_slice::<Form>(&bytes) {
                // A call whose answer was lost was repeated.
                Ok(other) if other == form => Ok(lease),
                Ok(other) => Err(leased(sensor, other)),
                Err(_) => {
                    let holder = "another process".to_owned();
                    Err(leased(sensor, Form { holder, until_ns: form.until_ns }))
                }
            };
        }
        Ok(lease)
    }

    fn renewed(&mut self, now: Timestamp) -> Form {
        self.until = now.plus_nanos(TIME_NS);
        Form { holder: self.holder.clone(), until_ns: self.until.0 }
    }

    /// Before each step that cannot be undone: whether it is still ours, renewed if half of its
    /// time is over.
    pub(crate) fn keep(
        &mut self,
        uploader: &mut Uploader<'_>,
        sensor: &Sensor,
    ) -> Result<(), Error> {
        let now = uploader.clock().realtime();
        if self.until.since(now) > TIME_NS / 2 {
            return Ok(());
        }
        let bytes = uploader.get(&self.name)?.unwrap_or_default();
        let form: Option<Form> = serde_json::from_slice(&bytes).ok();
        match form {
            Some(form) if form.holder == self.holder && form.until_ns > now.0 => {
                let form = self.renewed(now);
                uploader.put(&self.name, &bytes_of(&form))
            }
            Some(form) => Err(leased(sensor, form)),
            None => Err(leased(sensor, Form { holder: "nobody".to_owned(), until_ns: now.0 })),
        }
    }

    /// Gives it back, unless somebody else has it by now.
    pub(crate) fn end(self, uploader: &mut Uploader<'_>) -> Result<(), Error> {
        let bytes = uploader.get(&self.name)?.unwrap_or_default();
        let form: Option<Form> = serde_json::from_slice(&bytes).ok();
        let is_own = form.is_some_and(|form| form.holder == self.holder);
        if is_own { uploader.delete(&self.name) } else { Ok(()) }
    }
}

/// Whether a lease until this time may be held by a process that lives: none is taken for longer.
fn counts(until_ns: i64, now: Timestamp) -> bool {
    let left_ns = until_ns.saturating_sub(now.0);
    (-MARGIN_NS < left_ns) && (left_ns <= TIME_NS + MARGIN_NS)
}

fn bytes_of(form: &Form) -> Vec<u8> {
    page::safe::json_line(form).into_bytes()
}

fn leased(sensor: &Sensor, form: Form) -> Error {
    let Form { holder, until_ns } = form;
    let until = Timestamp(until_ns).to_string();
    Error::Leased { sensor: sensor.to_string(), holder: page::safe::printable(&holder), until }
}
