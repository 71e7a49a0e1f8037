//! Whose place an instruction is: process, library, function.
//!
//! Names of functions are read from the tables of the files that are mapped, demangled. A name is
//! shown only where it is certain: the file is the one that was mapped, by its number, and the
//! function reaches as far. Where tables were stripped, a page of the file stands for its
//! functions. Everything kept is bounded; what was not asked for long is read again.

mod kernel;
mod place;
mod programs;
mod spaces;

use std::sync::Arc;

use crate::sampling::{Mapping, Noted, Record, Sample};
use kernel::Kernel;
pub(crate) use kernel::address_of;
pub use place::{Function, Library, Place};
use programs::Programs;
use spaces::Spaces;

/// What is known of processes, files and the kernel. It stays in the thread that made it.
#[derive(Debug, Default)]
pub struct Symbols {
    spaces: Spaces,
    programs: Programs,
    /// Read when it is needed for the first time.
    kernel: Option<Kernel>,
}

impl Symbols {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes note of what a process does: records of the sampler, in their order.
    pub fn note(&mut self, record: &Record) {
        match &record.noted {
            Noted::Sample(_) => {}
            Noted::Named { process, name, is_new_program } => {
                self.spaces.name(*process, name, *is_new_program);
            }
            Noted::Forked { process, parent } => self.spaces.fork(*process, *parent),
            Noted::Ended { process } => self.spaces.end(*process),
            Noted::Mapped { process, mapping } => self.spaces.map(*process, mapping),
        }
    }

    /// The name of a process, as the kernel has it; `-` of one that had ended before it could be
    /// asked.
    pub fn name_of(&mut self, process: u32) -> Arc<str> {
        self.spaces.name_of(process)
    }

    /// Where a sample of this time was.
    pub fn place_of(&mut self, time_ns: u64, sample: &Sample) -> Place {
        if sample.is_kernel {
            return self.kernel().place(sample.address);
        }
        let Some(mapping) = self.spaces.mapping(sample.process, sample.address, time_ns) else {
            return Place { library: Library::Unknown, function: Function::Unknown };
        };
        let library = library_of(&mapping);
        let function = match library {
            Library::Vdso => self.programs.function_of_vdso(sample.address - mapping.begin),
            Library::File(_) => {
                let offset = sample.address - mapping.begin + mapping.offset;
                self.programs.function(sample.process, &mapping, offset)
            }
            _ => Function::Unknown,
        };
        Place { library, function }
    }

    /// Whether the kernel shows where its functions are; otherwise it takes `CAP_SYSLOG`, or
    /// `kernel.kptr_restrict=0`.
    pub fn knows_kernel(&mut self) -> bool {
        !self.kernel().is_empty()
    }

    fn kernel(&mut self) -> &Kernel {
        self.kernel.get_or_insert_with(Kernel::of_this_machine)
    }
}

/// By the name that the kernel gives a mapping (`proc_pid_maps(5)`).
fn library_of(mapping: &Mapping) -> Library {
    match &*mapping.name {
        "[vdso]" => Library::Vdso,
        name if name.starts_with('/') => {
            Library::File(name.strip_suffix(" (deleted)").unwrap_or(name).into())
        }
        _ => Library::Anonymous,
    }
}

/// For tests that give any text: names of the kernel, and a process's mappings.
pub(crate) fn read_any_text(text: &str) -> usize {
    let kernel = Kernel::parse(text);
    let mut mappings = spaces::read(text);
    for mapping in spaces::read(text) {
        drop(kernel.place(mapping.begin));
        spaces::insert(&mut mappings, &mapping);
    }
    mappings.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::{Noted, Sampler};

    #[test]
    fn mappings_are_told_apart_by_their_names() {
        let of = |name: &str| {
            let device = host::DeviceNumber::default();
            let name = name.to_owned();
            let mapping = Mapping { begin: 0, end: 1, offset: 0, device, inode: 0, name };
            library_of(&mapping).to_string()
        };
        assert_eq!(of("/usr/bin/cat"), "/usr/bin/cat");
        assert_eq!(of("/tmp/old (deleted)"), "/tmp/old");
        assert_eq!(of("[vdso]"), "[vdso]");
        assert_eq!(of(""), "[anonymous]");
        assert_eq!(of("[heap]"), "[anonymous]");
    }

    #[inline(never)]
    pub(super) fn burn_in_the_test(rounds: u64) -> u64 {
        (0..rounds).fold(0, |sum: u64, one| core::hint::black_box(sum.wrapping_mul(31) ^ one))
    }

    /// What this program has of itself in its memory, and where [`burn_in_the_test`] is.
    #[expect(clippy::as_conversions, reason = "a function's address is had in no other way")]
    pub(super) fn own_mapping() -> (Mapping, u64) {
        let address = (burn_in_the_test as fn(u64) -> u64 as *const ()).addr();
        let address = u64::try_from(address).unwrap();
        let found = Spaces::default().mapping(std::process::id(), address, 1);
        (found.unwrap(), address)
    }

    #[test]
    fn the_function_that_works_is_named() {
        let mut sampler = match Sampler::open(997) {
            Ok(sampler) => sampler,
            Err(error) => return println!("not run: sampling takes {error}"),
        };
        let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let (mut symbols, mut records, mut named) = (Symbols::new(), Vec::new(), 0);
        while named < 20 {
            core::hint::black_box(burn_in_the_test(1 << 20));
            sampler.read(&mut records);
            for record in records.drain(..) {
                symbols.note(&record);
                let Noted::Sample(sample) = record.noted else { continue };
                let place = symbols.place_of(record.time_ns, &sample);
                let is_ours = sample.thread == thread && !sample.is_kernel;
                if is_ours && place.function.to_string().contains("burn_in_the_test") {
                    named += 1;
                    let Library::File(path) = &place.library else { panic!("{place:?}") };
                    assert_eq!(Some(&**path), std::env::current_exe().unwrap().to_str());
                }
            }
        }
        let name = symbols.name_of(std::process::id());
        let comm = std::fs::read_to_string("/proc/self/comm").unwrap();
        assert_eq!(&*name, comm.trim_end());
    }
}
