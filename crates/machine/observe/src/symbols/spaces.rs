//! Processes with their names and what they have mapped: from the kernel's records where the
//! process began while they were listened to, else from `/proc` when it is first asked for.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use host::DeviceNumber;
use host::processes::place;

use crate::io::process;
use crate::sampling::Mapping;

/// More are forgotten, those that have not been asked for the longest first.
const PROCESSES_MAX: usize = 4096;
/// Mappings of one process that are kept.
const MAPPINGS_MAX: usize = 4096;
/// A process whose mappings do not fit what it does is not read again before.
const READ_AGAIN_NS: u64 = 1_000_000_000;
/// Of the processor itself (`idle`), and of processes that cannot be seen from here.
const IDLE: u32 = 0;

#[derive(Debug, Default)]
pub(super) struct Spaces {
    processes: BTreeMap<u32, Known>,
    /// Counts what is asked.
    asked: u64,
}

#[derive(Debug)]
struct Known {
    name: Arc<str>,
    /// Sorted by address; `None` until it is asked for.
    mappings: Option<Arc<Vec<Mapping>>>,
    /// Time of the sample for which they were read.
    read_ns: u64,
    asked: u64,
}

impl Spaces {
    pub(super) fn name(&mut self, process: u32, name: &str, is_new_program: bool) {
        let known = self.known(process);
        known.name = name.into();
        if is_new_program {
            known.mappings = Some(Arc::default());
        }
    }

    pub(super) fn fork(&mut self, process: u32, parent: u32) {
        let Known { name, mappings, read_ns, .. } = self.known(parent);
        // Where the parent was never asked for, the child is asked itself when it is.
        let copy = Known {
            name: Arc::clone(name),
            mappings: mappings.clone(),
            read_ns: *read_ns,
            asked: 0,
        };
        let asked = self.asked;
        self.processes.insert(process, Known { asked, ..copy });
    }

    /// It stays known, because threads of it may have been noted elsewhere. The number may be given
    /// to another one, which is then forked.
    pub(super) fn end(&mut self, process: u32) {
        if let Some(known) = self.processes.get_mut(&process) {
            // It is read no more.
            known.mappings.get_or_insert_default();
            known.read_ns = u64::MAX;
        }
    }

    pub(super) fn map(&mut self, process: u32, mapping: &Mapping) {
        // One that was never asked for is read whole when it is.
        if let Some(mappings) = &mut self.known(process).mappings {
            insert(Arc::make_mut(mappings), mapping);
        }
    }

    pub(super) fn name_of(&mut self, process: u32) -> Arc<str> {
        Arc::clone(&self.known(process).name)
    }

    /// What the process has at an address.
    pub(super) fn mapping(&mut self, number: u32, address: u64, time_ns: u64) -> Option<Mapping> {
        let known = self.known(number);
        let found = known.mappings.as_ref().and_then(|mappings| at(mappings, address));
        let is_due = known.mappings.is_none()
            || time_ns.checked_sub(known.read_ns).is_some_and(|since| since >= READ_AGAIN_NS);
        if found.is_some() || !is_due {
            return found.cloned();
        }
        known.read_ns = time_ns;
        let text = fs::read_to_string(place(number).join("maps")).unwrap_or_default();
        let read = read(&text);
        if !read.is_empty() || known.mappings.is_none() {
            known.mappings = Some(Arc::new(read));
        }
        known.mappings.as_ref().and_then(|mappings| at(mappings, address)).cloned()
    }

    fn known(&mut self, number: u32) -> &mut Known {
        self.asked += 1;
        if self.processes.len() >= PROCESSES_MAX && !self.processes.contains_key(&number) {
            self.forget();
        }
        let asked = self.asked;
        let known = self.processes.entry(number).or_insert_with(|| Known {
            name: name_now(number),
            mappings: None,
            read_ns: 0,
            asked,
        });
        known.asked = asked;
        known
    }

    /// The half that has not been asked for the longest.
    fn forget(&mut self) {
        let mut asked: Vec<u64> = self.processes.values().map(|known| known.asked).collect();
        asked.sort_unstable();
        let middle = asked.get(asked.len() / 2).copied().unwrap_or(0);
        self.processes.retain(|_, known| known.asked >= middle);
    }
}

fn name_now(number: u32) -> Arc<str> {
    match number {
        IDLE => "idle".into(),
        _ => process(number).map_or_else(|| "-".into(), |found| found.name.into()),
    }
}

fn at(mappings: &[Mapping], address: u64) -> Option<&Mapping> {
    let before = mappings.partition_point(|mapping| mapping.begin <= address);
    let found = before.checked_sub(1).and_then(|index| mappings.get(index));
    found.filter(|mapping| address < mapping.end)
}

/// What the lines of `proc_pid_maps(5)` say.
pub(super) fn read(text: &str) -> Vec<Mapping> {
    text.lines().filter_map(line).take(MAPPINGS_MAX).collect()
}

/// In the place of what was there: the kernel has taken it away, and says nothing of that.
pub(super) fn insert(mappings: &mut Vec<Mapping>, new: &Mapping) {
    mappings.retain(|old| old.end <= new.begin || new.end <= old.begin);
    if mappings.len() < MAPPINGS_MAX {
        let place = mappings.partition_point(|old| old.begin < new.begin);
        mappings.insert(place, new.clone());
    }
}

/// A line of `proc_pid_maps(5)` of something that can be run.
fn line(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut word = || {
        let (word, behind) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = behind.trim_start();
        word
    };
    let (begin, end) = word().split_once('-')?;
    let permissions = word();
    let offset = word();
    let (major, minor) = word().split_once(':')?;
    let inode = word();
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let number = |text: &str| u32::from_str_radix(text, 16).ok();
    let mapping = Mapping {
        begin: hex(begin)?,
        end: hex(end)?,
        offset: hex(offset)?,
        device: DeviceNumber { major: number(major)?, minor: number(minor)? },
        inode: inode.parse().ok()?,
        name: rest.to_owned(),
    };
    permissions.contains('x').then_some(mapping)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(begin: u64, end: u64, name: &str) -> Mapping {
        let name = name.to_owned();
        Mapping { begin, end, offset: 0, device: DeviceNumber::default(), inode: 0, name }
    }

    #[test]
    fn a_line_has_a_file_whose_name_may_have_blanks() {
        let text = "7f00-7fff r-xp 00002000 fe:01 325835                     /usr/lib/a b.so";
        let found = line(text).unwrap();
        assert_eq!((found.begin, found.end, found.offset), (0x7f00, 0x7fff, 0x2000));
        assert_eq!((found.device.to_string(), found.inode), ("254:1".to_owned(), 325_835));
        assert_eq!(found.name, "/usr/lib/a b.so");
        assert_eq!(line("7f00-7fff rw-p 00000000 00:00 0 [heap]"), None, "nothing is run there");
        assert_eq!(line("7f00-7fff r-xp 00000000 00:00 0").unwrap().name, "");
        assert_eq!(line("7f00-7fff r-xp"), None);
    }

    #[test]
    fn what_is_mapped_over_something_takes_its_place() {
        let mut all = Vec::new();
        for new in [mapping(30, 40, "c"), mapping(10, 20, "a"), mapping(15, 32, "b")] {
            insert(&mut all, &new);
        }
        assert_eq!(all, [mapping(15, 32, "b")]);
        insert(&mut all, &mapping(0, 15, "a"));
        let of = |address| at(&all, address).map(|found| &*found.name);
        assert_eq!(
            [of(0), of(14), of(15), of(31), of(32)],
            [Some("a"), Some("a"), Some("b"), Some("b"), None]
        );
    }

    #[test]
    fn a_child_has_what_its_parent_has_until_it_runs_another_program() {
        let mut spaces = Spaces::default();
        spaces.name(70_000_001, "shell", true);
        spaces.map(70_000_001, &mapping(10, 20, "/bin/sh"));
        spaces.fork(70_000_002, 70_000_001);
        let mut of = |process, address| {
            let found = spaces.mapping(process, address, 0);
            (spaces.name_of(process).to_string(), found.map(|found| found.name))
        };
        assert_eq!(of(70_000_002, 10), ("shell".to_owned(), Some("/bin/sh".to_owned())));
        spaces.name(70_000_002, "cat", true);
        spaces.map(70_000_002, &mapping(10, 15, "/bin/cat"));
        spaces.end(70_000_002);
        let mut of = |process, address| {
            let found = spaces.mapping(process, address, 0);
            (spaces.name_of(process).to_string(), found.map(|found| found.name))
        };
        assert_eq!(of(70_000_002, 10), ("cat".to_owned(), Some("/bin/cat".to_owned())));
        assert_eq!(of(70_000_002, 17), ("cat".to_owned(), None));
        assert_eq!(of(70_000_001, 17), ("shell".to_owned(), Some("/bin/sh".to_owned())));
        assert_eq!(of(70_000_003, 17), ("-".to_owned(), None), "there is no such process");
    }

    #[test]
    fn a_process_that_was_there_before_is_read() {
        let mut spaces = Spaces::default();
        let own = std::process::id();
        let (_, address) = super::super::tests::own_mapping();
        let found = spaces.mapping(own, address, 1).unwrap();
        assert_eq!(Some(&*found.name), std::env::current_exe().unwrap().to_str());
        assert_eq!(spaces.mapping(own, 1, 2), None);
        assert_eq!(spaces.mapping(own, 1, READ_AGAIN_NS + 2), None);
        assert_eq!(spaces.mapping(own, address, READ_AGAIN_NS + 3), Some(found));
    }

    #[test]
    fn what_is_known_is_bounded() {
        let mut spaces = Spaces::default();
        let first = 70_000_000;
        for number in first..first + 3 * 4096 {
            spaces.name(number, "x", false);
            spaces.name(first, "stays", false);
        }
        assert!(spaces.processes.len() <= PROCESSES_MAX);
        assert_eq!(&*spaces.name_of(first), "stays");
    }
}
