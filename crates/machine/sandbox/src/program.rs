//! What may be started.

use std::ffi::OsString;
use std::os::fd::BorrowedFd;

use crate::message::{Fields, Message};

/// Most descriptors that a child is handed.
pub const DESCRIPTORS_MAX: usize = 16;

const MYSELF: u8 = 1;
const SHELL: u8 = 2;

/// A program that may be started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Program {
    /// The running executable with these arguments, in the root directory and with no environment
    /// but that of the request. It gets its descriptors through [`handed`](crate::handed()), which
    /// it calls first, and does not outlive who started it.
    Myself(Vec<OsString>),
    /// A command of the user's, in a shell. It gets no descriptors and no input, its output goes to
    /// standard error, and it may take longer than who started it.
    Shell(OsString),
}

/// A child that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Which program. A launcher starts only those that were named when it was started.
    pub program: &'a Program,
    /// What it is handed, in this order; at most [`DESCRIPTORS_MAX`].
    pub descriptors: &'a [BorrowedFd<'a>],
    /// What is added to the environment of a command in a shell, and all that a process of ours
    /// gets.
    pub environment: &'a [(&'a str, String)],
}

impl<'a> Request<'a> {
    /// A child that is handed these descriptors.
    pub fn new(program: &'a Program, descriptors: &'a [BorrowedFd<'a>]) -> Self {
        assert!(descriptors.len() <= DESCRIPTORS_MAX, "a child is handed few descriptors");
        Self { program, descriptors, environment: &[] }
    }
}

impl Program {
    /// Whether it ends with who started it.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self, Self::Myself(_))
    }

    pub(crate) fn encode(&self, message: Message) -> Message {
        match self {
            Self::Myself(arguments) => message.byte(MYSELF).texts(arguments.iter()),
            Self::Shell(command) => message.byte(SHELL).text(command),
        }
    }

    pub(crate) fn decode(fields: &mut Fields<'_>) -> Option<Self> {
        match fields.byte()? {
            MYSELF => Some(Self::Myself(fields.texts()?)),
            SHELL => Some(Self::Shell(fields.text()?)),
            _ => None,
        }
    }
}

/// Variables as the system takes them.
pub(crate) fn environment(variables: &[(&str, String)]) -> Vec<(OsString, OsString)> {
    variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
}
