//! The store as a job uses it: as patiently as it is told, no faster than it may, and never longer
//! than until it is to stop.

use core::fmt;
use core::ops::ControlFlow;

use units::{NANOS_PER_SECOND, Sleep};

use crate::Error;
use crate::event::Event;
use crate::store::{Listed, Store, StoreError};

/// Between two attempts, at first and at most.
const PAUSE_NS: i64 = NANOS_PER_SECOND / 4;
const PAUSE_NS_MAX: i64 = 30 * NANOS_PER_SECOND;
/// So long is tried where nothing else is to be waited for.
const PATIENCE_NS: i64 = 10 * NANOS_PER_SECOND;
/// That the store is away is said so often.
const SAY_EVERY_NS: i64 = 60 * NANOS_PER_SECOND;
/// A wait hears that it is to stop after this time.
const SLICE_NS: i64 = NANOS_PER_SECOND / 20;

/// How a store is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Manners {
    /// Bytes a second that are stored at most.
    pub rate: Option<u64>,
    /// A store that is away is waited for, however long.
    pub waits: bool,
}

/// A store, and who uses it.
pub struct Uploader<'a> {
    store: &'a dyn Store,
    clock: &'a dyn Sleep,
    go_on: &'a dyn Fn() -> ControlFlow<()>,
    tell: &'a mut dyn FnMut(&Event),
    manners: Manners,
    /// The store has answered: what it refuses from now on may pass.
    has_answered: bool,
    /// Not before this time the next object is stored.
    next_ns: i64,
}

impl fmt::Debug for Uploader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uploader").field("store", &self.store).finish_non_exhaustive()
    }
}

impl<'a> Uploader<'a> {
    /// Uses `store` until `go_on` says that it is to stop, and tells what happens.
    pub fn new(
        store: &'a dyn Store,
        clock: &'a dyn Sleep,
        go_on: &'a dyn Fn() -> ControlFlow<()>,
        tell: &'a mut dyn FnMut(&Event),
        manners: Manners,
    ) -> Self {
        Self { store, clock, go_on, tell, manners, has_answered: false, next_ns: i64::MIN }
    }

    pub(crate) fn tell(&mut self, event: &Event) {
        (self.tell)(event);
    }

    pub(crate) fn clock(&self) -> &'a dyn Sleep {
        self.clock
    }

    pub(crate) fn is_to_stop(&self) -> bool {
        (self.go_on)().is_break()
    }

    /// Waits so long, or until it is to stop.
    pub(crate) fn rest(&self, ns: i64) -> Result<(), Error> {
        self.rest_until(self.clock.boottime_ns().saturating_add(ns))
    }

    fn rest_until(&self, until_ns: i64) -> Result<(), Error> {
        loop {
            if self.is_to_stop() {
                return Err(StoreError::Stopped.into());
            }
            let now = self.clock.boottime_ns();
            if now >= until_ns {
                return Ok(());
            }
            self.clock.sleep_until(until_ns.min(now.saturating_add(SLICE_NS)));
        }
    }

    /// Stores an object, no sooner than the rate allows.
    pub(crate) fn put(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        if let Some(rate) = self.manners.rate {
            self.rest_until(self.next_ns)?;
            let length = i128::from(units::number::to_u64(bytes.len()));
            let takes = length * i128::from(NANOS_PER_SECOND) / i128::from(rate.max(1));
            let takes = i64::try_from(takes).unwrap_or(i64::MAX);
            self.next_ns = self.next_ns.max(self.clock.boottime_ns()).saturating_add(takes);
        }
        self.patiently(&mut |store| store.put(name, bytes))
    }

    /// The same where there is none of that name; whether there was none.
    pub(crate) fn put_new(&mut self, name: &str, bytes: &[u8]) -> Result<bool, Error> {
        self.patiently(&mut |store| store.put_new(name, bytes))
    }

    pub(crate) fn get(&mut self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.patiently(&mut |store| store.get(name))
    }

    pub(crate) fn delete(&mut self, name: &str) -> Result<(), Error> {
        self.patiently(&mut |store| store.delete(name))
    }

    /// The objects below a folder behind `after`, by name.
    pub(crate) fn list(&mut self, folder: &str, after: Option<&str>) -> Result<Vec<Listed>, Error> {
        let mut listed = self.patiently(&mut |store| {
            let mut listed = Vec::new();
            store.list(folder, after, &mut |object| listed.push(object))?;
            Ok(listed)
        })?;
        listed.sort();
        Ok(listed)
    }

    fn patiently<T>(
        &mut self,
        attempt: &mut dyn FnMut(&dyn Store) -> Result<T, StoreError>,
    ) -> Result<T, Error> {
        let begun = self.clock.boottime_ns();
        let (mut pause, mut next_said) = (PAUSE_NS, begun.saturating_add(PAUSE_NS));
        let mut was_said = false;
        loop {
            let error = match attempt(self.store) {
                Ok(value) => {
                    self.has_answered = true;
                    if was_said {
                        let after_ns = self.clock.boottime_ns() - begun;
                        self.tell(&Event::Back { after_ns });
                    }
                    return Ok(value);
                }
                Err(error) => error,
            };
            let waited = self.clock.boottime_ns() - begun;
            let may_pass = match error {
                StoreError::Away { .. } => self.manners.waits || waited < PATIENCE_NS,
                StoreError::Refused { .. } => self.manners.waits && self.has_answered,
                StoreError::Stopped => false,
            };
            if !may_pass {
                return Err(error.into());
            }
            if self.manners.waits && begun.saturating_add(waited) >= next_said {
                next_said = begun.saturating_add(waited).saturating_add(SAY_EVERY_NS);
                was_said = true;
                self.tell(&Event::Away { why: error.to_string(), for_ns: waited });
            }
            self.rest(pause)?;
            pause = pause.saturating_mul(2).min(PAUSE_NS_MAX);
        }
    }
}
