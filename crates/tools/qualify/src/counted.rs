//! What was written, as the kernel counts it, and what else the machine did.

use std::collections::BTreeMap;

use host::SystemClock;
use units::Clock;
use vitals::{MachineCounters, Meanwhile};

use crate::number::between;
use crate::report::{Target, WrittenBytes};

/// Counters at the beginning.
#[derive(Debug)]
pub(crate) struct Counted {
    own: Option<u64>,
    /// By the names of devices.
    disks: BTreeMap<String, u64>,
    machine: MachineCounters,
    begin_ns: i64,
}

impl Counted {
    /// From now on.
    pub(crate) fn begin() -> Self {
        Self {
            own: observe::io::written_here(),
            disks: disks(),
            machine: MachineCounters::now(),
            begin_ns: SystemClock.boottime_ns(),
        }
    }

    /// What else the machine did until now.
    pub(crate) fn meanwhile(&self, target: &Target) -> Meanwhile {
        let ns = between(self.begin_ns, SystemClock.boottime_ns());
        let disk = target.layers.first().map(|layer| &*layer.name);
        MachineCounters::now().since(&self.machine, ns, disk)
    }

    /// What came until now; `None` where the kernel does not count it.
    pub(crate) fn until_now(&self, target: &Target) -> Option<WrittenBytes> {
        let own = observe::io::written_here()?.saturating_sub(self.own?);
        let of_disk = |name: &str| {
            let after = disks().remove(name)?;
            Some(after.saturating_sub(self.disks.get(name).copied().unwrap_or(0)))
        };
        let disk = target.layers.first().and_then(|layer| of_disk(&layer.name));
        Some(WrittenBytes { own, disk })
    }
}

fn disks() -> BTreeMap<String, u64> {
    let all = observe::io::disks().into_values();
    all.map(|(name, counters)| (name, counters.written_bytes)).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::report::TargetKind;

    #[test]
    fn what_this_process_writes_is_counted() {
        let target = Target {
            kind: TargetKind::OwnFile,
            path: String::new(),
            size_bytes: 0,
            layers: Vec::new(),
            is_in_memory: false,
            limits: Vec::new(),
        };
        let counted = Counted::begin();
        let Some(before) = counted.until_now(&target) else {
            println!("not run: the kernel does not count what processes write");
            return;
        };
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![7; 1 << 20]).unwrap();
        file.as_file().sync_all().unwrap();
        let after = counted.until_now(&target).unwrap();
        assert_eq!(after.disk, None, "it lies on no disk");
        if after.own == before.own {
            println!("not run: temporary files are on no disk");
        }
        assert!(after.own == before.own || after.own >= before.own + (1 << 20), "{after:?}");
    }
}
