//! Reports as text, table and JSON: the only room that serializes.
//!
//! Functions take the reports of the jobs and give text; nothing here prints, reads or decides.
//! Names of fields in JSON and CSV are those of queries and of the Parquet columns
//! (docs/sessions.md). Text from outside goes through `safe`, whatever it goes to.

mod chosen;
mod diagnosis;
mod disks;
mod explain;
mod facts;
mod hold;
mod io;
mod manifest;
mod map;
mod members;
mod plot;
mod prove;
mod qualify;
mod record;
mod replay;
mod runs;
mod salvage;
mod samples;
mod scrub;
mod session;
mod session_table;
mod sheet;
mod stenographer;
mod tag;
mod top;
mod traced;
mod verification;
mod volume;

pub use chosen::{ChosenTable, SessionColumns};
pub use diagnosis::{DiagnosisPage, diagnosis, diagnosis_html, diagnosis_json};
pub use explain::{explain, explain_json, fields, fields_json, unmet_names};
pub use facts::{differences, differences_json, facts_json};
pub use hold::{holds, holds_json};
pub use io::{io, io_json, touch, touch_json, touches};
pub use manifest::{Maker, manifest_json};
pub use map::{map, map_grid, map_svg, map_svg_grid};
pub use members::{
    erased, erased_json, grown, grown_json, joined, joined_json, resilvered, resilvered_json,
    status, status_json,
};
pub use plot::{plot, plot_json};
pub use prove::{limit, limit_json, proved, proved_json, trial_in_short};
pub use qualify::{
    choice, comparison, comparison_html, comparison_json, comparison_svg, qualification,
    qualification_csv, qualification_diff, qualification_diff_json, qualification_html,
    qualification_json, qualification_svg, qualify_estimate, qualify_plan, qualify_plan_json,
    volume_qualification, volume_qualification_json,
};
pub use record::{going_json, is_clean, recording, recording_json, recording_progress};
pub use replay::{replay_progress, replayed, replayed_json};
pub use runs::{Held, Ran, held, runs, runs_csv, runs_json};
pub use salvage::{salvaged, salvaged_json};
pub use samples::{SocketSamples, socket_series};
pub use scrub::{scrubbed, scrubbed_json};
pub use session::{csv_heading, csv_line, json_line, session_file_name, session_id, session_tag};
pub use session_table::SessionTable;
pub use sheet::{
    Cell, DiskGrouping, HEAD_SECONDS, RecorderGrouping, Sheet, SheetColumn, SheetLine, SheetOrder,
    SocketGrouping, VitalsGrouping, disks_sheet, dns_sheet, profile_head, profile_sheet,
    recorders_sheet, sheets_json, sockets_sheet, talkers_sheet, traffic_head, vitals_sheet,
};
pub use stenographer::stenographer_volume;
pub use tag::tag_line;
pub use top::{top, top_csv, top_json};
pub use traced::{traced, traced_json};
pub use verification::{verification, verification_json};
pub use volume::{created, created_json, inspection, inspection_json};
