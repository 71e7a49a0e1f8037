//! Where an instruction is, in words.

use core::fmt;
use std::sync::Arc;

/// Where an instruction is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// In what.
    pub library: Library,
    /// Where in it.
    pub function: Function,
}

/// What an instruction is in.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Library {
    /// The kernel itself.
    Kernel,
    /// A module of it, such as `[veth]`.
    Module(Arc<str>),
    /// A file that is mapped: a program or a library, by its path.
    File(Arc<str>),
    /// What the kernel maps into every process.
    Vdso,
    /// Memory without a file: made at run time.
    Anonymous,
    /// The process had ended before it could be asked, or may not be asked.
    Unknown,
}

/// Where in a library an instruction is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Function {
    /// In the function of this name.
    Named(Arc<str>),
    /// In some function of the 4 KiB of the file that begin here.
    Page(u64),
    /// Nobody knows.
    Unknown,
}

/// `[kernel]`, `/usr/bin/cat`, `[vdso]`.
impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel => "[kernel]",
            Self::Module(name) | Self::File(name) => name,
            Self::Vdso => "[vdso]",
            Self::Anonymous => "[anonymous]",
            Self::Unknown => "-",
        })
    }
}

/// `main`, `+0x3000`, `-`.
impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::Page(offset) => write!(f, "+{offset:#x}"),
            Self::Unknown => f.write_str("-"),
        }
    }
}
