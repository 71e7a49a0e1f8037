//! Functions of the kernel and its modules, by `/proc/kallsyms`.

use std::fs;
use std::sync::Arc;

use super::place::{Function, Library, Place};

/// No function of the kernel is longer: behind that is code without a name, as of programs that
/// were loaded into it.
const FUNCTION_MAX: u64 = 256 << 10;

/// All of them, by address.
#[derive(Debug, Default)]
pub(super) struct Kernel {
    symbols: Vec<Symbol>,
    /// All names, one behind the other.
    names: String,
    modules: Vec<Arc<str>>,
}

#[derive(Clone, Copy, Debug)]
struct Symbol {
    address: u64,
    /// Where its name is among the names.
    begin: usize,
    end: usize,
    /// Of its module; `None` is the kernel itself.
    module: Option<usize>,
}

/// Where a function of the kernel begins; `None` where there is none, or we are not told.
pub(crate) fn address_of(function: &str) -> Option<u64> {
    address_in(&fs::read_to_string("/proc/kallsyms").unwrap_or_default(), function)
}

fn address_in(text: &str, function: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.split(' ').nth(2) == Some(function))?;
    u64::from_str_radix(line.split(' ').next()?, 16).ok().filter(|&address| address != 0)
}

impl Kernel {
    /// As this kernel lists them. Without rights it lists names with no addresses
    /// (`kernel.kptr_restrict`), and none are known.
    pub(super) fn of_this_machine() -> Self {
        Self::parse(&fs::read_to_string("/proc/kallsyms").unwrap_or_default())
    }

    /// `ffffffff81000000 T name [module]`; only what can be run has a name.
    pub(super) fn parse(text: &str) -> Self {
        let mut kernel = Self::default();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some("t" | "T" | "w" | "W"), Some(name)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let address = u64::from_str_radix(address, 16).unwrap_or(0);
            if address == 0 {
                continue;
            }
            let module = words.next().map(|module| kernel.module(module));
            let begin = kernel.names.len();
            kernel.names.push_str(name);
            kernel.symbols.push(Symbol { address, begin, end: kernel.names.len(), module });
        }
        let Self { symbols, names, .. } = &mut kernel;
        let hidden = |symbol: &Symbol| {
            let name = names.get(symbol.begin..symbol.end).unwrap_or_default();
            name.len() - name.trim_start_matches('_').len()
        };
        // Of several names of one place the plainest comes last, and is taken.
        symbols.sort_by(|one, other| {
            one.address.cmp(&other.address).then_with(|| hidden(other).cmp(&hidden(one)))
        });
        kernel
    }

    fn module(&mut self, name: &str) -> usize {
        // Symbols of a module stand together.
        if self.modules.last().is_none_or(|last| &**last != name) {
            self.modules.push(name.into());
        }
        self.modules.len() - 1
    }

    pub(super) fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    pub(super) fn place(&self, address: u64) -> Place {
        let before = self.symbols.partition_point(|symbol| symbol.address <= address);
        let found = before.checked_sub(1).and_then(|at| self.symbols.get(at));
        match found.filter(|symbol| address - symbol.address < FUNCTION_MAX) {
            Some(symbol) => {
                let module = symbol.module.and_then(|at| self.modules.get(at)).cloned();
                let name = self.names.get(symbol.begin..symbol.end).unwrap_or_default();
                Place {
                    library: module.map_or(Library::Kernel, Library::Module),
                    function: Function::Named(name.into()),
                }
            }
            None => Place { library: Library::Kernel, function: Function::Unknown },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "ffffffff81000000 T __plain\n\
                        ffffffff81000000 T plain\n\
                        ffffffff81000000 t _plain\n\
                        ffffffff81000100 t second\n\
                        ffffffff81000180 D some_data\n\
                        ffffffffc0000000 t of_module\t[veth]\n\
                        ffffffffc0001000 t of_other\t[tun]\n";

    #[test]
    fn functions_reach_to_the_next_one_and_have_their_modules() {
        let kernel = Kernel::parse(TEXT);
        let of = |address| {
            let Place { library, function } = kernel.place(address);
            (library.to_string(), function.to_string())
        };
        let is = |library: &str, function: &str| (library.to_owned(), function.to_owned());
        assert_eq!(of(0xffff_ffff_8100_00ff), is("[kernel]", "plain"));
        assert_eq!(of(0xffff_ffff_8100_0190), is("[kernel]", "second"));
        assert_eq!(of(0xffff_ffff_c000_0fff), is("[veth]", "of_module"));
        assert_eq!(of(0xffff_ffff_c000_1000), is("[tun]", "of_other"));
        assert_eq!(of(0xffff_ffff_8200_0000), is("[kernel]", "-"), "far behind every name");
        assert_eq!(of(0xffff_ffff_0000_0000), is("[kernel]", "-"), "before every name");
    }

    #[test]
    fn a_function_is_found_by_its_whole_name() {
        let text = "ffffffff81000000 t one_more\nffffffff81000100 t one\n0000000000000000 t two\n";
        assert_eq!(address_in(text, "one"), Some(0xffff_ffff_8100_0100));
        assert_eq!((address_in(text, "two"), address_in(text, "three")), (None, None));
    }

    #[test]
    fn names_without_addresses_are_none() {
        assert!(Kernel::parse("0000000000000000 T _stext\n").is_empty());
        assert!(Kernel::parse("").is_empty());
        assert!(!Kernel::parse(TEXT).is_empty());
    }
}
