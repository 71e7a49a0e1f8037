//! Names of addresses, as answers of DNS in the traffic gave them.

use core::net::IpAddr;
use std::collections::HashMap;
use std::sync::Arc;

use wire::Address;

/// Addresses that have a name; beyond it all are learned anew.
const NAMES_MAX: usize = 1 << 16;

/// The newest name of each address.
#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<Address, Arc<str>>);

impl Names {
    /// Bytes at most: names have up to 256.
    pub(crate) const MEMORY_BYTES_MAX: usize =
        NAMES_MAX * 2 * (size_of::<(Address, Arc<str>)>() + 300);

    /// A host asked for the name, and the answer had the address.
    pub(crate) fn learn(&mut self, address: IpAddr, name: &Arc<str>) {
        if self.0.len() >= NAMES_MAX {
            self.0.clear();
        }
        self.0.insert(address.into(), Arc::clone(name));
    }

    /// The name of an address.
    pub(crate) fn get(&self, address: Address) -> Option<Arc<str>> {
        self.0.get(&address).cloned()
    }
}
