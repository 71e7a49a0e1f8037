//! Stations that were met, with what they became: a key alone does not lead back to them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// Stations, and groups, that are remembered; more are counted.
const STATIONS_MAX: usize = 1 << 16;

/// The way back from other addresses of the link layer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stations {
    /// The station of the wire, by what it became.
    pub stations: BTreeMap<[u8; 6], [u8; 6]>,
    /// The last three bytes of groups that name an IPv6 address, likewise.
    pub groups: BTreeMap<[u8; 3], [u8; 3]>,
    /// So often one came that was not remembered, because there were too many.
    pub left_out: u64,
}

/// Where stations are put down that an [`crate::Anonymiser`] or a copy of it meets.
#[derive(Clone, Debug, Default)]
pub struct Met(Arc<Mutex<Stations>>);

impl Met {
    /// Those so far.
    pub fn stations(&self) -> Stations {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, Stations> {
        // Maps are whole whenever the lock is free.
        stage::lock(&self.0)
    }

    pub(crate) fn station(&self, new: [u8; 6], old: [u8; 6]) {
        let mut met = self.locked();
        if met.stations.len() < STATIONS_MAX || met.stations.contains_key(&new) {
            met.stations.insert(new, old);
        } else {
            met.left_out = met.left_out.saturating_add(1);
        }
    }

    pub(crate) fn group(&self, new: [u8; 3], old: [u8; 3]) {
        let mut met = self.locked();
        if met.groups.len() < STATIONS_MAX || met.groups.contains_key(&new) {
            met.groups.insert(new, old);
        } else {
            met.left_out = met.left_out.saturating_add(1);
        }
    }
}
