//! How the processors of this machine are: their clock, their heat, and how busy.

use std::fs;
use std::path::Path;

use host::children;

use crate::processor_counters::ProcessorTimes;

/// Sensors of processors, by the names of their drivers.
const SENSORS: [&str; 5] = ["coretemp", "k10temp", "zenpower", "cpu_thermal", "soc_thermal"];

/// The clock of a processor at this moment in MHz; `None` where the kernel does not set it, as in
/// most virtual machines.
pub fn processor_mhz(cpu: usize) -> Option<f64> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
    let khz: f64 = fs::read_to_string(path).ok()?.trim().parse().ok()?;
    Some(khz / 1000.0)
}

/// The hottest sensor of the processors in degrees Celsius; `None` of a machine without.
pub fn processor_temperature_c() -> Option<f64> {
    hottest(Path::new("/sys/class/hwmon"))
}

/// Thousandths of a degree (Documentation/hwmon/sysfs-interface).
fn hottest(root: &Path) -> Option<f64> {
    let read = |path: &Path| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let chips = children(root)
        .into_iter()
        .filter(|chip| read(&chip.join("name")).is_some_and(|name| SENSORS.contains(&&*name)));
    let is_input = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("temp") && name.ends_with("_input")
    };
    let inputs = chips.flat_map(|chip| children(&chip)).filter(|path| is_input(path));
    let degrees = inputs.filter_map(|path| Some(read(&path)?.parse::<f64>().ok()? / 1000.0));
    degrees.max_by(f64::total_cmp)
}

/// What all processors together did since the start of the machine, in steps of 10 ms.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ProcessorUse {
    /// Time that they worked, for whomever.
    pub busy_ns: u64,
    /// Time that the host of a virtual machine gave to others while there was work.
    pub stolen_ns: u64,
}

impl ProcessorUse {
    /// Until now.
    pub fn now() -> Option<Self> {
        Self::of(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// What came since an earlier look.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            busy_ns: self.busy_ns.saturating_sub(before.busy_ns),
            stolen_ns: self.stolen_ns.saturating_sub(before.stolen_ns),
        }
    }

    fn of(text: &str) -> Option<Self> {
        let times = ProcessorTimes::of(text.lines().next()?.strip_prefix("cpu ")?)?;
        Some(Self { busy_ns: times.busy_ns(), stolen_ns: times.stolen_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_all_processors_is_told_and_grows() {
        let line = "cpu  100 5 50 1000 7 2 3 11 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        let use_ = ProcessorUse::of(line).unwrap();
        assert_eq!((use_.busy_ns, use_.stolen_ns), (1_600_000_000, 110_000_000));
        assert_eq!(ProcessorUse::of("intr 5\n"), None);
        let before = ProcessorUse::now().unwrap();
        while ProcessorUse::now().unwrap().since(before).busy_ns == 0 {}
    }

    #[test]
    fn the_hottest_sensor_of_a_processor_counts() {
        let folder = tempfile::tempdir().unwrap();
        for (chip, name, inputs) in [
            ("hwmon0", "nvme", &["90000"][..]),
            ("hwmon1", "coretemp", &["48500", "51000", "50000"]),
        ] {
            let chip = folder.path().join(chip);
            fs::create_dir(&chip).unwrap();
            fs::write(chip.join("name"), format!("{name}\n")).unwrap();
            for (at, input) in inputs.iter().enumerate() {
                fs::write(chip.join(format!("temp{at}_input")), format!("{input}\n")).unwrap();
            }
        }
        assert_eq!(hottest(folder.path()), Some(51.0));
        assert_eq!(hottest(&folder.path().join("absent")), None);
    }
}
