//! What this program has of the operating system for itself: clocks, random bytes, signals, files
//! and folders for the user, the caches of volumes, programs beside it and their sockets, the
//! processors, memory and limits of its process; and what the crates above need to ask the kernel.
//!
//! Not here: disks and partitions (`blockdev`), networks (`network`), and what other processes do
//! (`observe`); reading and writing of members (`device`) and of packets (`capture`). Nothing here
//! decides.

mod adopted;
mod affinity;
mod cached;
mod caches;
mod claimant;
mod clock;
mod control;
mod credential;
mod daemon;
mod device_number;
mod directory;
mod draft;
mod duplex;
mod error;
mod given_back;
mod input;
mod install;
mod last_resort;
mod launch;
mod ledger;
mod listener;
mod listing;
pub mod native;
mod near;
mod notice;
mod objects;
mod orphans;
mod output;
mod passphrase;
mod pipe;
mod piped;
mod private;
mod process;
pub mod processes;
mod program;
mod signals;
mod spared;
mod tail;
mod takes;
mod target;
mod temporary;
mod timed;
#[doc(hidden)]
pub mod untrusted;
mod user;
mod zone;

pub use adopted::Adopted;
pub use affinity::{allowed_cpus, keep_thread_on, node_of_processor, pin_thread};
pub use cached::{cached_share, page_bytes};
pub use caches::{CachedVolume, index_folder, open_index};
pub use claimant::{claimant, host_name, is_gone};
pub use clock::SystemClock;
pub use control::{
    ControlSocket, SYSTEM_FOLDER, Said, Talk, answering_process, ask, control_sockets,
    make_system_folder,
};
pub use credential::open_credential;
pub use daemon::{Daemon, Exit, SPEAKS_AS, program_mark};
pub use device_number::DeviceNumber;
pub use directory::{Directory, Locked, OpenFile, default_cache_directory};
pub use duplex::{Duplex, Heard};
pub use error::Error;
pub use given_back::give_back_outputs;
pub use input::{
    keep_inputs, open_input, read_input, read_input_bytes, read_input_text, read_stdin_text,
    read_text,
};
pub use install::{install_link, is_wireshark_folder, wireshark_folders};
pub use last_resort::LastResort;
pub use launch::{Launch, Launched, not_started};
pub use ledger::{Ledger, NotAppended, is_ledger_open, remove_file};
pub use listener::{HandedListener, handed_listener};
pub use listing::{children, files_in};
pub use near::MemoryNear;
pub use notice::{log_warning, tell_manager};
pub use objects::{ObjectFile, ObjectFolder};
pub use orphans::reap_orphans;
pub use output::{Appended, Output, OutputFolder, write_file};
pub use passphrase::ask_passphrase;
pub use pipe::{NamedEnd, pipe};
pub use piped::Piped;
pub use private::{change_private, may_replace, read_key, read_key_bytes, read_private};
pub use process::{
    CpuTime, children_cpu_time, cpu_time, file_size_limit_bytes, keep_freed_memory,
    memlock_limit_bytes, memory_available_bytes, own_process, random_bytes, terminal_columns,
};
pub use program::{Ended, Program};
pub use signals::{ReloadFlag, StopFlag, is_signalled};
pub use spared::{check_folder, check_output, claim_output, is_device, is_there, keep_folder};
pub use tail::Tail;
pub use takes::takes_a_line;
pub use target::{Target, target};
pub use temporary::TemporaryDirectory;
pub use timed::{Taken, Timed, can_start};
pub use user::{User, this_user};
pub use zone::{local_offset_s, unknown_zone};
