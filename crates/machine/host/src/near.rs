//! Memory near a card: on the node, of a machine with several, that the card is connected to.

#![expect(unsafe_code, reason = "set_mempolicy(2) has no wrapper")]

use core::ptr;
use std::fs;

/// While this lives, memory that this thread has the kernel provide comes from the node of a card,
/// as long as there is some.
#[derive(Debug)]
pub struct MemoryNear {
    is_set: bool,
}

impl MemoryNear {
    /// Of the first of these interfaces that is on a node. Nothing changes where there is one node
    /// only, or the kernel knows of none.
    pub fn interfaces(names: &[String]) -> Self {
        let node = names.iter().find_map(|name| node_of(name)).filter(|_| has_several_nodes());
        Self { is_set: node.is_some_and(|node| prefer(Some(node))) }
    }
}

impl Drop for MemoryNear {
    fn drop(&mut self) {
        if self.is_set {
            prefer(None);
        }
    }
}

fn has_several_nodes() -> bool {
    fs::exists("/sys/devices/system/node/node1").unwrap_or(false)
}

/// The node of a card; -1 says that it is near to none.
fn node_of(interface: &str) -> Option<u32> {
    let path = format!("/sys/class/net/{interface}/device/numa_node");
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// False where the kernel would not.
fn prefer(node: Option<u32>) -> bool {
    /// `MPOL_DEFAULT` and `MPOL_PREFERRED` of `linux/mempolicy.h`.
    const DEFAULT: usize = 0;
    const PREFERRED: usize = 1;
    let Some(mask) = node.map_or(Some(0_u64), |node| 1_u64.checked_shl(node)) else { return false };
    let (mode, nodes, bits) = match node {
        Some(_) => (PREFERRED, &raw const mask, 65_usize),
        None => (DEFAULT, ptr::null(), 0),
    };
    // SAFETY: the mask has 64 bits, of which the kernel reads one fewer than the argument says, and
    // the call changes nothing but where this thread's new pages come from.
    unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, nodes, bits) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_that_is_on_no_node_changes_nothing() {
        assert_eq!(node_of("lo"), None);
        assert!(!MemoryNear::interfaces(&["lo".to_owned()]).is_set);
    }

    #[test]
    fn a_preference_can_be_given_up() {
        if !prefer(Some(0)) {
            println!("not run: this kernel knows no memory nodes");
            return;
        }
        assert!(prefer(None));
    }
}
