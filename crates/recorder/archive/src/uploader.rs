//! The store as a job uses it: as patiently as it is told, no faster than it may, and never longer
//! than until it is to stop.

use core::fmt;
use core::ops::ControlFlow;

use units::{NANOS_PER_SECOND, Sleep};

use crate::Error;
use crate::event::Event;
use crate::manners::{Manners, PAUSE_NS, Patience, Throttle};
use crate::store::{Listed, Store, StoreError};

/// That the store is away is said so often.
const SAY_EVERY_NS: i64 = 60 * NANOS_PER_SECOND;
/// A wait hears that it is to stop after this time.
const SLICE_NS: i64 = NANOS_PER_SECOND / 20;

/// A store, and who uses it.
pub struct Uploader<'a> {
    store: &'a dyn Store,
    clock: &'a dyn Sleep,
    go_on: &'a dyn Fn() -> ControlFlow<()>,
    tell: &'a mut dyn FnMut(&Event),
    manners: Manners,
    /// The store has answered: what it refuses from now on may pass.
    has_answered: bool,
    throttle: Throttle,
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
        let throttle = Throttle::new(manners.rate);
        Self { store, clock, go_on, tell, manners, has_answered: false, throttle }
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
        if let Some(next_ns) = self.throttle.next_ns() {
            self.rest_until(next_ns)?;
        }
        self.throttle.count(bytes.len(), self.clock.boottime_ns());
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
        let mut patience = Patience::new(self.manners, begun);
        // What the second attempt mends is not worth a word.
        let (mut was_said, mut next_said) = (false, begun.saturating_add(PAUSE_NS));
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
            let now = self.clock.boottime_ns();
            let Some(pause) = patience.pause(&error, self.has_answered, now) else {
                return Err(error.into());
            };
            if self.manners.waits && now >= next_said {
                next_said = now.saturating_add(SAY_EVERY_NS);
                was_said = true;
                self.tell(&Event::Away { why: error.to_string(), for_ns: now - begun });
            }
            self.rest(pause)?;
        }
    }
}
