//! Which processors there are for this process, and a thread that stays on one.

use std::path::Path;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::Error;
use crate::listing::children;

/// The processors that this thread may run on.
pub fn allowed_cpus() -> Result<Vec<usize>, Error> {
    let set = sched_getaffinity(None)
        .map_err(|errno| Error::system("ask for the processors of this process", errno))?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Keeps this thread, and those that it starts from now on, on one processor.
pub fn pin_thread(cpu: usize) -> Result<(), Error> {
    keep_thread_on(&[cpu])
}

/// The same with several processors to choose from; programs that it starts inherit that.
pub fn keep_thread_on(cpus: &[usize]) -> Result<(), Error> {
    let mut set = CpuSet::new();
    cpus.iter().filter(|&&cpu| cpu < CpuSet::MAX_CPU).for_each(|&cpu| set.set(cpu));
    sched_setaffinity(None, &set)
        .map_err(|errno| Error::system("keep a thread on the processor asked for", errno))
}

/// The memory node of a processor; `None` where the kernel knows of no nodes.
pub fn node_of_processor(cpu: usize) -> Option<u32> {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}");
    let nodes = children(Path::new(&folder))
        .into_iter()
        .filter_map(|path| path.file_name()?.to_str()?.strip_prefix("node")?.parse().ok());
    nodes.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_on_the_processor_it_was_given() {
        let last = *allowed_cpus().unwrap().last().unwrap();
        let seen = std::thread::scope(|scope| {
            let pinned = scope.spawn(move || {
                pin_thread(last).unwrap();
                allowed_cpus().unwrap()
            });
            pinned.join().unwrap()
        });
        assert_eq!(seen, [last]);
        assert!(allowed_cpus().unwrap().len() >= seen.len(), "other threads are as free as before");
        assert!(pin_thread(CpuSet::MAX_CPU).is_err());
    }
}
