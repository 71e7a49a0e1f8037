//! What this machine is and how it is set, as names and texts: kernel, command line, configuration,
//! settings, mitigations, processors, memory, disks, mounts, network interfaces.
//!
//! Names are paths in words, parts of a list joined by dots: `kernel.release`,
//! `block.sda.queue.scheduler`, `sysctl.vm.dirty_ratio`. Each fact says by its name where it comes
//! from. What cannot be read is absent.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;

/// Facts by their names.
pub type Facts = BTreeMap<String, String>;

/// Longer files of settings are tables, not settings.
const TEXT_MAX: usize = 1024;
const CONFIGURATION_MAX: u64 = 4 << 20;
/// Folders below `/proc/sys` with one setting a device or connection, or that count.
const SYSCTL_PASSED_OVER: [&str; 9] = [
    "net/ipv4/conf",
    "net/ipv4/neigh",
    "net/ipv6/conf",
    "net/ipv6/neigh",
    "net/netfilter",
    "net/mptcp",
    "kernel/random",
    "fs/binfmt_misc",
    "dev",
];
/// Settings that change by themselves.
const SYSCTL_COUNTERS: [&str; 12] = [
    "fs.dentry-state",
    "fs.file-nr",
    "fs.inode-nr",
    "fs.inode-state",
    "fs.aio-nr",
    "fs.quota.syncs",
    "kernel.ns_last_pid",
    "kernel.pty.nr",
    "kernel.tainted",
    "kernel.hostname",
    "kernel.domainname",
    "vm.stat_refresh",
];

/// What of the kernel's counters of memory moves and says something.
const VMSTAT: [&str; 9] = [
    "pgpgin",
    "pgpgout",
    "pswpin",
    "pswpout",
    "allocstall_normal",
    "oom_kill",
    "pgmajfault",
    "workingset_refault_anon",
    "workingset_refault_file",
];

/// Everything that stays as it is until it is changed.
pub fn facts() -> Facts {
    let mut facts = Facts::new();
    kernel(&mut facts);
    sysctl(&mut facts, Path::new("/proc/sys"), "");
    processors(&mut facts);
    blocks(&mut facts);
    mounts(&mut facts);
    links(&mut facts);
    facts
}

/// Of these what is said of disks, by names that begin with `block.`.
pub fn disk_facts() -> Facts {
    let mut facts = Facts::new();
    blocks(&mut facts);
    facts
}

/// What moves: pressure, memory, load, packets dropped because a processor was too slow. Values are
/// of this moment or counted since the start of the machine.
pub fn moving_facts() -> Facts {
    let mut facts = Facts::new();
    for resource in ["cpu", "memory", "io"] {
        for line in lines(format!("/proc/pressure/{resource}")) {
            let Some((kind, rest)) = line.split_once(' ') else { continue };
            for (name, value) in rest.split(' ').filter_map(|pair| pair.split_once('=')) {
                set(&mut facts, &["pressure", resource, kind, name], value);
            }
        }
    }
    for line in lines("/proc/meminfo") {
        if let Some((name, value)) = line.split_once(':') {
            set(&mut facts, &["memory", name], value.trim().trim_end_matches(" kB"));
        }
    }
    // Hexadecimal: processed, dropped, time squeezed.
    for (cpu, line) in lines("/proc/net/softnet_stat").iter().enumerate() {
        for (name, value) in ["processed", "dropped", "squeezed"].iter().zip(line.split(' ')) {
            if let Ok(count) = u64::from_str_radix(value, 16) {
                set(&mut facts, &["softnet", &cpu.to_string(), name], &count.to_string());
            }
        }
    }
    for line in lines("/proc/vmstat") {
        if let Some((name, value)) = line.split_once(' ')
            && VMSTAT.contains(&name)
        {
            set(&mut facts, &["vmstat", name], value);
        }
    }
    // Runnable and waiting tasks in the mean of so many minutes.
    for line in lines("/proc/loadavg") {
        for (name, value) in ["1", "5", "15"].iter().zip(line.split(' ')) {
            set(&mut facts, &["load", name], value);
        }
    }
    facts
}

fn set(facts: &mut Facts, name: &[&str], value: &str) {
    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
    facts.insert(name.join("."), value);
}

fn lines(path: impl AsRef<Path>) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// A small file of text.
fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty() && text.len() <= TEXT_MAX).then(|| text.to_owned())
}

/// Some files of a folder.
fn files(facts: &mut Facts, folder: &Path, name: &[&str], wanted: &[&str]) {
    for file in wanted {
        if let Some(value) = text(&folder.join(file)) {
            let dotted = file.replace('/', ".");
            set(facts, &[name, &[&*dotted]].concat(), &value);
        }
    }
}

/// Entries of a folder, sorted.
fn entries(folder: impl AsRef<Path>) -> Vec<String> {
    let found = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        found.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

fn kernel(facts: &mut Facts) {
    let kernel = Path::new("/proc/sys/kernel");
    files(facts, kernel, &["kernel"], &["osrelease", "version"]);
    for option in lines("/proc/cmdline").iter().flat_map(|line| line.split_whitespace()) {
        let (name, value) = option.split_once('=').unwrap_or((option, "set"));
        set(facts, &["command_line", name], value);
    }
    for line in configuration().lines() {
        if let Some((name, value)) = line.split_once('=') {
            set(facts, &["configuration", name], value);
        }
    }
    let flaws = Path::new("/sys/devices/system/cpu/vulnerabilities");
    for name in entries(flaws) {
        files(facts, flaws, &["mitigation"], &[&name]);
    }
    let parts = [
        ("transparent_huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled"),
        ("clock_source", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        ("clock_sources", "/sys/devices/system/clocksource/clocksource0/available_clocksource"),
        ("hypervisor", "/sys/hypervisor/type"),
        ("product", "/sys/class/dmi/id/product_name"),
        ("vendor", "/sys/class/dmi/id/sys_vendor"),
        ("lockdown", "/sys/kernel/security/lockdown"),
    ];
    for (name, path) in parts {
        if let Some(value) = text(Path::new(path)) {
            set(facts, &["machine", name], &value);
        }
    }
    for group in entries("/sys/kernel/iommu_groups") {
        let folder = Path::new("/sys/kernel/iommu_groups").join(&group);
        files(facts, &folder, &["iommu", &group], &["type"]);
    }
}

/// As the kernel has it, or as its package brought it.
fn configuration() -> String {
    let mut text = String::new();
    if let Ok(bytes) = fs::read("/proc/config.gz")
        && GzDecoder::new(&*bytes).take(CONFIGURATION_MAX).read_to_string(&mut text).is_ok()
    {
        return text;
    }
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    fs::read_to_string(format!("/boot/config-{}", release.trim())).unwrap_or_default()
}

fn sysctl(facts: &mut Facts, root: &Path, below: &str) {
    if SYSCTL_PASSED_OVER.contains(&below) {
        return;
    }
    for entry in entries(root.join(below)) {
        let place = if below.is_empty() { entry } else { format!("{below}/{entry}") };
        let path = root.join(&place);
        if path.is_dir() {
            sysctl(facts, root, &place);
        } else if let Some(value) = text(&path) {
            let name = place.replace('/', ".");
            if !SYSCTL_COUNTERS.contains(&&*name) {
                set(facts, &["sysctl", &name], &value);
            }
        }
    }
}

fn processors(facts: &mut Facts) {
    let info = lines("/proc/cpuinfo");
    let field = |name: &str| {
        let line = info.iter().find(|line| line.split(':').next().map(str::trim) == Some(name));
        line.and_then(|line| Some(line.split_once(':')?.1.trim().to_owned()))
    };
    for (name, of) in [("model", "model name"), ("microcode", "microcode"), ("flags", "flags")] {
        if let Some(value) = field(of) {
            set(facts, &["cpu", name], &value);
        }
    }
    let folder = Path::new("/sys/devices/system/cpu");
    files(facts, folder, &["cpu"], &["online", "isolated", "smt/active", "nohz_full"]);
    for cpu in entries(folder).iter().filter(|name| name.starts_with("cpu")) {
        let wanted = ["scaling_governor", "scaling_driver", "scaling_max_freq"];
        files(facts, &folder.join(cpu).join("cpufreq"), &[cpu], &wanted);
    }
    let total = lines("/proc/meminfo").into_iter().find(|line| line.starts_with("MemTotal:"));
    if let Some((_, value)) = total.as_deref().and_then(|line| line.split_once(':')) {
        set(facts, &["cpu", "memory"], value.trim());
    }
}

/// What a device is that is built on others.
const STACK: [&str; 11] = [
    "loop/offset",
    "dm/name",
    "dm/uuid",
    "md/level",
    "md/chunk_size",
    "md/raid_disks",
    "md/stripe_cache_size",
    "md/group_thread_cnt",
    "md/array_state",
    "md/sync_action",
    "md/degraded",
];

/// What may be changed and not written yet, of one disk. In bytes it moves with free memory.
const WRITEBACK: [&str; 2] = ["max_ratio", "strict_limit"];

fn blocks(facts: &mut Facts) {
    const QUEUE: [&str; 17] = [
        "rotational",
        "scheduler",
        "write_cache",
        "fua",
        "zoned",
        "nr_requests",
        "max_sectors_kb",
        "max_hw_sectors_kb",
        "logical_block_size",
        "physical_block_size",
        "optimal_io_size",
        "discard_max_bytes",
        "read_ahead_kb",
        "wbt_lat_usec",
        "rq_affinity",
        "nomerges",
        "io_poll",
    ];
    const DEVICE: [&str; 10] = [
        "size",
        "ro",
        "device/model",
        "device/vendor",
        "device/rev",
        "device/firmware_rev",
        "device/serial",
        "device/queue_depth",
        "device/transport",
        "device/timeout",
    ];
    let root = Path::new("/sys/block");
    for disk in entries(root) {
        let folder = root.join(&disk);
        let size = text(&folder.join("size"));
        if size.is_none_or(|size| size == "0") {
            continue;
        }
        files(facts, &folder.join("queue"), &["block", &disk, "queue"], &QUEUE);
        files(facts, &folder, &["block", &disk], &DEVICE);
        files(facts, &folder, &["block", &disk], &STACK);
        files(facts, &folder.join("bdi"), &["block", &disk, "writeback"], &WRITEBACK);
        for partition in entries(&folder).iter().filter(|name| name.starts_with(&*disk)) {
            let wanted = ["start", "size", "alignment_offset"];
            let name = ["block", &disk, "partition", partition];
            files(facts, &folder.join(partition), &name, &wanted);
        }
        let below = entries(folder.join("slaves"));
        if !below.is_empty() {
            set(facts, &["block", &disk, "on"], &below.join(" "));
        }
        let driver = fs::read_link(folder.join("device/driver"));
        if let Some(name) = driver.ok().as_deref().and_then(Path::file_name) {
            set(facts, &["block", &disk, "driver"], &name.to_string_lossy());
        }
    }
}

fn mounts(facts: &mut Facts) {
    for line in lines("/proc/self/mounts") {
        let mut fields = line.split(' ');
        let (Some(device), Some(place), Some(kind), Some(options)) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        if device.starts_with('/') {
            set(facts, &["mount", place], &format!("{kind} {options} {device}"));
        }
    }
    for (number, line) in lines("/proc/swaps").iter().skip(1).enumerate() {
        let name = line.split_whitespace().next().unwrap_or_default();
        set(facts, &["swap", &number.to_string()], name);
    }
}

fn links(facts: &mut Facts) {
    let root = Path::new("/sys/class/net");
    for link in entries(root) {
        let folder = root.join(&link);
        let wanted = ["mtu", "speed", "duplex", "operstate", "tx_queue_len", "threaded"];
        files(facts, &folder, &["net", &link], &wanted);
        let queues = entries(folder.join("queues"));
        set(facts, &["net", &link, "queues"], &queues.len().to_string());
        let driver = fs::read_link(folder.join("device/driver"));
        if let Some(name) = driver.ok().as_deref().and_then(Path::file_name) {
            set(facts, &["net", &link, "driver"], &name.to_string_lossy());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_the_facts_that_every_one_has() {
        let facts = facts();
        for name in ["kernel.osrelease", "sysctl.vm.swappiness", "net.lo.mtu", "cpu.online"] {
            assert!(facts.contains_key(name), "{name}");
        }
        assert!(!facts.keys().any(|name| name.starts_with("sysctl.net.ipv4.conf")), "a table");
        assert_eq!(facts.get("net.lo.mtu"), Some(&"65536".to_owned()));
    }

    #[test]
    fn facts_stay_as_they_are_while_nobody_changes_them() {
        let (one, other) = (facts(), facts());
        let moved = |(name, value): &(&String, &String)| other.get(*name) != Some(*value);
        let moved: Vec<_> = one.iter().filter(moved).map(|(name, _)| name).collect();
        assert_eq!(moved, Vec::<&String>::new());
    }

    #[test]
    fn what_moves_is_there_too() {
        let facts = moving_facts();
        assert!(facts.contains_key("memory.MemAvailable"));
        assert!(facts.contains_key("softnet.0.processed"));
        assert!(facts.contains_key("load.15") && facts.contains_key("vmstat.pgpgin"));
    }
}
