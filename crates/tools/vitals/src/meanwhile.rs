//! What else the machine did while a report was made: a figure that others had a part in says
//! nothing of another figure.

use core::time::Duration;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::number::to_u64;

/// So many thousandths of the time work had to wait for a processor, which others had for
/// `OTHERS`.
const WAITED: u64 = 50;
/// Thousandths of one processor that others had.
const OTHERS: u64 = 200;
/// Where nothing counts who waited: thousandths of all processors that were busy.
const BUSY: u64 = 800;
/// Thousandths of all processors that the host of a virtual machine gave to others.
const STOLEN: u64 = 20;
/// Thousandths of what went to the disk and came from it that were of others, and their bytes.
const FOREIGN: u64 = 30;
const FOREIGN_BYTES: u64 = 64 << 20;

/// What else the machine did.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Meanwhile {
    /// How long it was watched.
    pub ns: u64,
    /// Processors of the machine.
    pub processors: u64,
    /// Their time that others had.
    pub others_ns: u64,
    /// Their time that the host of a virtual machine gave to others.
    pub stolen_ns: u64,
    /// Time in which some work waited for a processor; `None` where the kernel does not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ns: Option<u64>,
    /// Bytes that this program read and wrote.
    pub own_bytes: u64,
    /// Bytes that others read and wrote on the disk of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_bytes: Option<u64>,
}

/// Why a report says less than it seems to. Shares in thousandths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disturbance {
    /// Work waited for a processor for this share of the time; others had so much of one.
    Processors {
        /// Of the time.
        waited: u64,
        /// Of one processor.
        others: u64,
    },
    /// The host of a virtual machine gave this share of its processors to others.
    Stolen(u64),
    /// Others read and wrote so much on the disk.
    Disk(u64),
}

impl Meanwhile {
    /// What disturbed it, the strongest first; nothing where it was quiet.
    pub fn disturbances(&self) -> Vec<Disturbance> {
        let share = |part: u64, of: u64| {
            let permille = u128::from(part) * 1000 / u128::from(of.max(1));
            u64::try_from(permille).unwrap_or(u64::MAX)
        };
        let all_ns = self.ns.saturating_mul(self.processors.max(1));
        let others = share(self.others_ns, self.ns);
        let waited = match self.waited_ns {
            Some(waited_ns) => Some(share(waited_ns, self.ns)).filter(|waited| *waited >= WAITED),
            None => Some(share(self.others_ns, all_ns)).filter(|busy| *busy >= BUSY),
        };
        let processors = waited.filter(|_| others >= OTHERS);
        let stolen = Some(share(self.stolen_ns, all_ns)).filter(|share| *share >= STOLEN);
        let is_foreign = |bytes: &u64| {
            let all = bytes.saturating_add(self.own_bytes);
            *bytes >= FOREIGN_BYTES && share(*bytes, all) >= FOREIGN
        };
        let disk = self.others_bytes.filter(is_foreign);
        let found = [
            disk.map(Disturbance::Disk),
            processors.map(|waited| Disturbance::Processors { waited, others }),
            stolen.map(Disturbance::Stolen),
        ];
        found.into_iter().flatten().collect()
    }
}

/// Counters at one moment.
#[derive(Clone, Debug, Default)]
pub struct MachineCounters {
    busy_ns: u64,
    stolen_ns: u64,
    processors: u64,
    own_ns: u64,
    waited_ns: Option<u64>,
    own_bytes: u64,
    disks: BTreeMap<String, u64>,
}

impl MachineCounters {
    /// Now; what cannot be read is 0.
    pub fn now() -> Self {
        let processors = observe::processor_counters().unwrap_or_default();
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        // Programs that it ran are of it.
        let times = [host::cpu_time(), host::children_cpu_time()];
        let own = times.into_iter().flatten().map(|time| ns(time.user + time.system)).sum();
        let moved = |it: &observe::io::DiskCounters| it.read_bytes.saturating_add(it.written_bytes);
        let disks = observe::io::disks().into_values();
        Self {
            busy_ns: processors.all.busy_ns(),
            stolen_ns: processors.all.stolen_ns,
            processors: to_u64(processors.each.len()),
            own_ns: own,
            waited_ns: observe::waited_for_processors_ns(),
            own_bytes: observe::io::moved_here().unwrap_or(0),
            disks: disks.map(|(name, counters)| (name, moved(&counters))).collect(),
        }
    }

    /// What came since; of disks that one counts which the target is on.
    #[must_use]
    pub fn since(&self, before: &Self, ns: u64, disk: Option<&str>) -> Meanwhile {
        let own_ns = self.own_ns.saturating_sub(before.own_ns);
        let busy_ns = self.busy_ns.saturating_sub(before.busy_ns);
        let own_bytes = self.own_bytes.saturating_sub(before.own_bytes);
        let of_disk = |name: &str| {
            let all = self.disks.get(name)?.saturating_sub(*before.disks.get(name)?);
            Some(all.saturating_sub(own_bytes))
        };
        Meanwhile {
            ns,
            processors: self.processors,
            others_ns: busy_ns.saturating_sub(own_ns),
            stolen_ns: self.stolen_ns.saturating_sub(before.stolen_ns),
            waited_ns: self.waited_ns.zip(before.waited_ns).map(|(it, was)| it.saturating_sub(was)),
            own_bytes,
            others_bytes: disk.and_then(of_disk),
        }
    }
}
