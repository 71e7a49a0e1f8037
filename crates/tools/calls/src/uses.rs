//! What a process did with a file or socket, whatever its calls are named.

use std::collections::BTreeMap;

use crate::filesystems::is_served;
use crate::seen::{CallWatch, SlowCall, Use, UseKey};
use crate::shape::{Work, shape_of};
use crate::target::Target;

/// Calls of one process and kind of work, for one target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UsesOf {
    /// Process id.
    pub process: u32,
    /// Place of the target in [`CallWatch::targets`].
    pub target: Option<usize>,
    /// All of them together.
    pub all: Use,
    /// Names of the calls.
    pub calls: Vec<&'static str>,
}

impl CallWatch {
    /// Uses for one kind of work.
    pub fn uses_for(&self, work: Work) -> Vec<UsesOf> {
        let mut found: BTreeMap<(u32, Option<usize>), UsesOf> = BTreeMap::new();
        for (UseKey { process, number, target }, seen) in &self.uses {
            let name = self.names.get(number).filter(|name| shape_of(name).work == work);
            let Some(name) = name else { continue };
            let of = found.entry((*process, *target)).or_insert_with(|| UsesOf {
                process: *process,
                target: *target,
                all: Use::default(),
                calls: Vec::new(),
            });
            of.all.count += seen.count;
            of.all.total_ns += seen.total_ns;
            of.all.ran_ns += seen.ran_ns;
            of.all.waited_ns += seen.waited_ns;
            of.all.file_ns += seen.file_ns;
            of.all.bytes += seen.bytes;
            of.all.small += seen.small;
            of.all.threads.extend(&seen.threads);
            of.all.stands_in = of.all.stands_in.take().or_else(|| seen.stands_in.clone());
            of.all.woken_by.extend(seen.woken_by.iter().cloned());
            of.calls.push(name);
        }
        found.into_values().collect()
    }
}

impl UsesOf {
    /// The target, where there is one.
    pub fn target<'w>(&self, watch: &'w CallWatch) -> Option<&'w Target> {
        watch.targets.get(self.target?)
    }

    /// The same in words.
    pub fn target_name(&self, watch: &CallWatch) -> String {
        self.target(watch).map_or_else(|| "files".to_owned(), ToString::to_string)
    }

    /// Whether a call that took long was of this process, kind and target, by the target's name.
    pub fn has(&self, call: &SlowCall, target: &str) -> bool {
        call.process == self.process
            && self.calls.contains(&&*call.call)
            && (self.target.is_none() || call.arguments.contains(target))
    }

    /// Whether a program or another machine stands behind the file system of the target.
    pub fn is_of_server(&self, watch: &CallWatch) -> bool {
        let kind = self.target.and_then(|place| watch.filesystems.get(&place));
        kind.is_some_and(|kind| is_served(kind))
    }
}
