//! The verbs that look at disks, connections and this machine: qualify, diagnose, top, trace,
//! bench, replay and prove; the doors for programs that know other recorders: extcap, stenoread and
//! stenocurl; and fields, which looks at nothing. Of
//! `fleet find` the part that asks an engine. Each has a module with its flags and its run.

pub mod bench;
pub mod diagnose;
pub mod engine;
pub mod extcap;
pub mod fields;
pub mod prove;
pub mod qualify;
pub mod replay;
pub mod steno;
pub mod top;
pub mod trace;

use flags::{arguments, reading};
use verbs::{extracted, failure, output_file, progress, recorder, stdout};
