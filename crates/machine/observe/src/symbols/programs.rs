//! Functions of programs and libraries, by the symbol tables of their files.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use blazesym::Pid;
use blazesym::symbolize::source::{Elf, Process, Source};
use blazesym::symbolize::{Input, Sym, Symbolizer};
use host::DeviceNumber;
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat, stat};

use super::place::Function;
use crate::sampling::Mapping;

/// More are closed, those that have not been asked for the longest first.
const FILES_MAX: usize = 128;
/// Places whose function is kept.
const PLACES_MAX: usize = 1 << 16;
/// Where functions cannot be distinguished, so many bytes stand for them.
const PAGE: u64 = 4096;

/// A file as mappings name it.
type FileKey = (DeviceNumber, u64, String);

#[derive(Debug, Default)]
pub(super) struct Programs {
    files: BTreeMap<FileKey, Program>,
    /// Counts files that are opened; each has a number of its own.
    opened: u64,
    /// By file and offset.
    places: BTreeMap<(u64, u64), Function>,
    asked: u64,
    vdso: Option<Vdso>,
}

#[derive(Debug)]
struct Program {
    number: u64,
    asked: u64,
    /// `None` where the file that was mapped cannot be reached, or has no tables.
    tables: Option<Tables>,
}

/// One file's tables: each has a cache of its own, so that closing one frees its memory.
#[derive(Debug)]
struct Tables {
    symbolizer: Symbolizer,
    source: Source<'static>,
}

#[derive(Debug)]
struct Vdso {
    symbolizer: Symbolizer,
    /// Where this process has it.
    begin: Option<u64>,
}

impl Programs {
    /// The function at an offset of a file that a process has mapped.
    pub(super) fn function(&mut self, process: u32, mapping: &Mapping, offset: u64) -> Function {
        self.asked += 1;
        let key = (mapping.device, mapping.inode, mapping.name.clone());
        if !self.files.contains_key(&key) {
            self.open(process, mapping, &key);
        }
        let Some(program) = self.files.get_mut(&key) else { return page(offset) };
        program.asked = self.asked;
        let place = (program.number, offset);
        if let Some(known) = self.places.get(&place) {
            return known.clone();
        }
        let tables = program.tables.as_ref();
        let name = tables.and_then(|tables| tables.name(Input::FileOffset(offset)));
        let function = name.map_or_else(|| page(offset), Function::Named);
        if self.places.len() >= PLACES_MAX {
            self.places.clear();
        }
        self.places.insert(place, function.clone());
        function
    }

    fn open(&mut self, process: u32, mapping: &Mapping, key: &FileKey) {
        if self.files.len() >= FILES_MAX {
            let oldest = self.files.iter().min_by_key(|(_, program)| program.asked);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.files.remove(&oldest);
            }
        }
        self.opened += 1;
        let tables = file_of(process, mapping).and_then(|file| Tables::of(&file));
        self.files.insert(key.clone(), Program { number: self.opened, asked: self.asked, tables });
    }

    /// The function so many bytes behind the beginning of the vdso, which is the same in all
    /// processes of 64 bits.
    pub(super) fn function_of_vdso(&mut self, offset: u64) -> Function {
        let vdso = self
            .vdso
            .get_or_insert_with(|| Vdso { symbolizer: symbolizer(), begin: begin_of_vdso() });
        let name = vdso.begin.and_then(|begin| {
            let source = Source::Process(Process::new(Pid::Slf));
            named(&vdso.symbolizer, &source, Input::AbsAddr(begin + offset))
        });
        name.map_or_else(|| page(offset), Function::Named)
    }
}

impl Tables {
    fn of(file: &OwnedFd) -> Option<Self> {
        // The file that was examined, whatever its path leads to by now.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let tables = Self { symbolizer: symbolizer(), source: Source::Elf(Elf::new(path)) };
        // The first question opens the file for good, or finds that it has no tables.
        let first = tables.symbolizer.symbolize_single(&tables.source, Input::FileOffset(0));
        first.is_ok().then_some(tables)
    }

    fn name(&self, input: Input<u64>) -> Option<Arc<str>> {
        named(&self.symbolizer, &self.source, input)
    }
}

fn symbolizer() -> Symbolizer {
    let builder = Symbolizer::builder().enable_auto_reload(false);
    builder.enable_code_info(false).enable_inlined_fns(false).build()
}

/// A name counts only where its table says how far it reaches: others would be given what lies
/// behind them, such as the jumps to other libraries.
fn named(symbolizer: &Symbolizer, source: &Source<'_>, input: Input<u64>) -> Option<Arc<str>> {
    let found = symbolizer.symbolize_single(source, input).ok()?.into_sym()?;
    let Sym { name, size: Some(1..), .. } = found else { return None };
    Some(name.into())
}

fn page(offset: u64) -> Function {
    Function::Page(offset - offset % PAGE)
}

/// The file itself, as the process sees it, as the kernel holds it for the process, or under its
/// path; only if it has the number of what was mapped.
fn file_of(process: u32, mapping: &Mapping) -> Option<OwnedFd> {
    let Mapping { begin, end, name, .. } = mapping;
    let paths = [
        format!("/proc/{process}/root{name}"),
        format!("/proc/{process}/map_files/{begin:x}-{end:x}"),
        name.clone(),
    ];
    let is_it = |found: &Stat| {
        let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        is_file && found.st_ino == mapping.inode
    };
    let open = |path: &String| {
        // Devices may do anything when they are opened.
        stat(&**path).ok().filter(is_it)?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = openat(CWD, &**path, flags, Mode::empty()).ok()?;
        fstat(&file).ok().filter(is_it)?;
        Some(file)
    };
    paths.iter().find_map(open)
}

fn begin_of_vdso() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = text.lines().find(|line| line.ends_with("[vdso]"))?;
    u64::from_str_radix(line.split_once('-')?.0, 16).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    use super::super::tests::{burn_in_the_test, own_mapping};
    use super::*;

    /// A mapping of a file that no process has, as its path and number name it.
    fn mapping(path: &Path) -> Mapping {
        let inode = std::fs::metadata(path).unwrap().ino();
        let name = path.to_str().unwrap().to_owned();
        Mapping { begin: 0, end: 1 << 30, offset: 0, device: DeviceNumber::default(), inode, name }
    }

    const NOBODY: u32 = u32::MAX;

    #[test]
    fn a_file_that_is_another_one_by_now_gives_no_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        std::fs::copy(std::env::current_exe().unwrap(), &path).unwrap();
        let mut mapping = mapping(&path);
        assert!(file_of(NOBODY, &mapping).is_some());
        mapping.inode += 1;
        assert!(file_of(NOBODY, &mapping).is_none());
        let function = Programs::default().function(NOBODY, &mapping, 0x1234);
        assert_eq!(function, Function::Page(0x1000));
    }

    #[test]
    fn a_program_without_tables_has_pages_and_no_wrong_names() {
        core::hint::black_box(burn_in_the_test(1));
        let (own, address) = own_mapping();
        let offset = address - own.begin + own.offset;
        let folder = tempfile::tempdir().unwrap();
        let (whole, stripped) = (folder.path().join("whole"), folder.path().join("stripped"));
        std::fs::copy(std::env::current_exe().unwrap(), &whole).unwrap();
        let mut programs = Programs::default();
        let found = programs.function(NOBODY, &mapping(&whole), offset);
        assert!(found.to_string().ends_with("burn_in_the_test"), "{found}");
        let mut strip = std::process::Command::new("strip");
        match strip.arg("-o").args([&stripped, &whole]).status() {
            Ok(status) => assert!(status.success()),
            Err(error) => return println!("not run: strip: {error}"),
        }
        let found = programs.function(NOBODY, &mapping(&stripped), offset);
        assert_eq!(found, Function::Page(offset & !0xfff));
    }

    #[test]
    fn what_is_no_program_has_pages() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, "no program").unwrap();
        let mut programs = Programs::default();
        let mapping = mapping(&path);
        assert_eq!(programs.function(NOBODY, &mapping, 0x2fff), Function::Page(0x2000));
        assert_eq!(programs.function(NOBODY, &mapping, 0x3000), Function::Page(0x3000));
    }

    #[test]
    fn files_and_places_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let mut programs = Programs::default();
        for number in 0..2 * FILES_MAX {
            let path = folder.path().join(number.to_string());
            std::fs::write(&path, "no program").unwrap();
            programs.function(NOBODY, &mapping(&path), 0);
        }
        assert_eq!((programs.files.len(), programs.places.len()), (FILES_MAX, 2 * FILES_MAX));
        let path = folder.path().join("0");
        for place in 0..1_u64 << 17 {
            programs.function(NOBODY, &mapping(&path), place);
        }
        assert!(programs.places.len() <= PLACES_MAX);
    }
}
