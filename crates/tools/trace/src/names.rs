//! Names of processes that the kernel reports by number, also of those that have ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use host::processes::Stat;
use network::sockets::Owner;

/// Processes that are remembered, and as many that have ended.
const NAMES_MAX: usize = 1 << 14;

#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Processes by number; `None` is a thread of the kernel.
    known: BTreeMap<u32, Option<Arc<Owner>>>,
    /// Names that processes had in the end.
    ended: BTreeMap<u32, String>,
}

impl Names {
    /// A process is looked up once, at the first thing that it does: programs start by another
    /// name.
    pub(crate) fn meet(&mut self, process: u32) {
        if self.known.len() >= NAMES_MAX {
            self.known.clear();
        }
        if !self.known.contains_key(&process)
            && let Some(stat) = Stat::of(process)
        {
            let owner = (!stat.is_kernel).then_some(Owner { process, name: stat.name });
            self.known.insert(process, owner.map(Arc::new));
        }
    }

    /// Takes in which processes have ended, and gives their numbers.
    pub(crate) fn end(&mut self, ended: Vec<(u32, String)>) -> Vec<u32> {
        if self.ended.len() >= NAMES_MAX {
            self.ended.clear();
        }
        let numbers = ended.iter().map(|(process, _)| *process).collect();
        self.ended.extend(ended);
        numbers
    }

    /// The process with its name; `None` is a thread of the kernel.
    pub(crate) fn owner(&self, process: u32) -> Option<Arc<Owner>> {
        if let Some(known) = self.known.get(&process) {
            return known.clone();
        }
        let name = self.ended.get(&process).cloned().unwrap_or_default();
        Some(Arc::new(Owner { process, name }))
    }

    /// The next process of such a number is another one.
    pub(crate) fn forget(&mut self, ended: &[u32]) {
        for process in ended {
            self.known.remove(process);
        }
    }
}
