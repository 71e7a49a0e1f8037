//! Who touches which file: those that are wanted, counted.

use core::ops::ControlFlow;
use core::time::Duration;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use observe::io::{Touch, TouchKind, Watched};
use units::Sleep;

/// A process by its number or its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Who {
    /// A process id.
    Process(u32),
    /// A name of processes.
    Name(String),
}

impl Who {
    fn is(&self, touch: &Touch) -> bool {
        match self {
            Self::Process(process) => touch.process == *process,
            Self::Name(name) => touch.name == *name,
        }
    }
}

/// Which touches are wanted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TouchFilter {
    /// These kinds; none are all.
    pub kinds: Vec<TouchKind>,
    /// By these; none are all.
    pub only: Vec<Who>,
    /// And not by these.
    pub without: Vec<Who>,
    /// Of this file, or below this folder.
    pub below: Option<PathBuf>,
}

impl TouchFilter {
    /// What of a touch is wanted.
    pub fn pass(&self, mut touch: Touch) -> Option<Touch> {
        let is_by = |all: &[Who]| all.iter().any(|who| who.is(&touch));
        let is_wanted = (self.only.is_empty() || is_by(&self.only)) && !is_by(&self.without);
        let is_below = self.below.as_ref().is_none_or(|below| touch.path.starts_with(below));
        if !is_wanted || !is_below {
            return None;
        }
        if !self.kinds.is_empty() {
            touch.kinds.retain(|kind| self.kinds.contains(kind));
        }
        (!touch.kinds.is_empty()).then_some(touch)
    }
}

/// A process and a file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Toucher {
    /// Path of the file.
    pub path: PathBuf,
    /// Name of the process.
    pub name: String,
    /// Process id.
    pub process: u32,
}

/// How often which file was touched by whom.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Touches {
    /// Counts by process, file and kind.
    pub counts: BTreeMap<Toucher, BTreeMap<TouchKind, u64>>,
    /// Touches of files for which there was no memory.
    pub uncounted: u64,
    /// How often the kernel's queue was full.
    pub overflows: u64,
}

/// Files and processes that are kept apart.
const COUNTS_MAX: usize = 1 << 16;

impl Touches {
    /// Counts a touch.
    pub fn take(&mut self, touch: &Touch) {
        let Touch { process, name, kinds, path } = touch;
        let who = Toucher { path: path.clone(), name: name.clone(), process: *process };
        if self.counts.len() >= COUNTS_MAX && !self.counts.contains_key(&who) {
            self.uncounted += 1;
            return;
        }
        let counts = self.counts.entry(who).or_default();
        for kind in kinds {
            *counts.entry(*kind).or_default() += 1;
        }
    }
}

/// Between two looks at most: `each` may end the watch.
const NAP: Duration = Duration::from_millis(50);

/// Begins to watch the file system of a place, or all that are on disks.
///
/// # Errors
///
/// We may watch nothing, or not that place.
pub fn watch_files(place: Option<&Path>) -> Result<Watched, host::Error> {
    let places = match place {
        Some(place) => vec![place.to_path_buf()],
        None => blockdev::placement::filesystems().into_values().map(|it| it.mount_point).collect(),
    };
    Watched::open(&places)
}

/// Watches for so long; each touch that is wanted goes to `each` as it comes. It is asked without
/// one before each look, and may end the watch: then with one more look, or, when it has got a
/// touch, at once.
pub fn touches(
    watched: &mut Watched,
    filter: &TouchFilter,
    clock: &dyn Sleep,
    duration_ns: i64,
    each: &mut dyn FnMut(Option<&Touch>) -> ControlFlow<()>,
) -> Touches {
    let mut all = Touches::default();
    let begun_ns = clock.boottime_ns();
    let mut found = Vec::new();
    loop {
        let now_ns = clock.boottime_ns();
        // Asked before the look, so that what happened until the end is in it.
        let is_over = now_ns - begun_ns >= duration_ns || each(None).is_break();
        watched.read(&mut found);
        all.overflows = watched.overflows();
        for touch in found.drain(..).filter_map(|touch| filter.pass(touch)) {
            all.take(&touch);
            if each(Some(&touch)).is_break() {
                return all;
            }
        }
        if is_over {
            return all;
        }
        if !watched.wait(NAP) {
            clock.sleep_until(now_ns + units::nanos(NAP));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(process: u32, name: &str, kinds: &[TouchKind], path: &str) -> Touch {
        let (name, path) = (name.to_owned(), PathBuf::from(path));
        Touch { process, name, kinds: kinds.to_vec(), path }
    }

    #[test]
    fn only_what_is_wanted_passes() {
        let all = [TouchKind::Opened, TouchKind::Read];
        let filter = TouchFilter {
            kinds: vec![TouchKind::Read, TouchKind::Written],
            only: vec![Who::Process(7), Who::Name("cat".to_owned())],
            without: vec![Who::Process(9)],
            below: Some(PathBuf::from("/data")),
        };
        let pass = |process, name, path| filter.pass(touch(process, name, &all, path));
        assert_eq!(pass(7, "sh", "/data/a").unwrap().kinds, [TouchKind::Read]);
        assert!(pass(8, "cat", "/data/b").is_some());
        assert_eq!(pass(9, "cat", "/data/b"), None, "excluded");
        assert_eq!(pass(8, "sh", "/data/b"), None, "another one");
        assert_eq!(pass(7, "sh", "/database"), None, "not below");
        let opened = touch(7, "sh", &[TouchKind::Opened], "/data/a");
        assert_eq!(filter.pass(opened), None, "another kind");
        let open = touch(1, "x", &all, "/etc/x");
        assert_eq!(TouchFilter::default().pass(open.clone()), Some(open));
    }

    #[test]
    fn counts_are_bounded() {
        let mut all = Touches::default();
        for file in 0..=COUNTS_MAX {
            all.take(&touch(1, "x", &[TouchKind::Read], &format!("/{file}")));
        }
        all.take(&touch(1, "x", &[TouchKind::Read], "/0"));
        assert_eq!((all.counts.len(), all.uncounted), (COUNTS_MAX, 1));
    }
}
