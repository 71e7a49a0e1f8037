//! What is seen of a machine and of programs on it: findings, disks, sockets, system calls, live
//! tables; and runs that were made to see it: replays, proofs, repeated commands.
//!
//! Functions take the reports of the tools and give text; nothing here prints, reads or decides.
//! Text from outside goes through [`page::safe`], whatever it goes to.

mod calls;
mod diagnosis;
mod facts;
mod io;
mod prove;
mod replay;
mod runs;
mod samples;
mod sheet;
mod tables;
mod traced;

pub use calls::{calls, calls_json};
pub use diagnosis::{DiagnosisPage, Explained, diagnosis, diagnosis_html, diagnosis_json};
pub use facts::{differences, differences_json, facts_json};
pub use io::{io, io_json, touch, touch_json, touches};
pub use prove::{limit, limit_json, proved, proved_json, trial_in_short};
pub use replay::{replay_progress, replayed, replayed_json};
pub use runs::{Held, Ran, held, runs, runs_csv, runs_json};
pub use samples::{Followed, Sampled, SocketSamples, socket_series};
pub use sheet::{
    Cell, DiskGrouping, HEAD_SECONDS, RecorderGrouping, Sheet, SheetColumn, SheetLine, SheetOrder,
    SocketGrouping, VitalsGrouping, disks_sheet, dns_sheet, profile_head, profile_sheet,
    recorders_sheet, sheets_json, sockets_sheet, talkers_sheet, traffic_head, vitals_sheet,
};
pub use traced::{traced, traced_json};
