//! Sessions, and what is taken out of a volume by them: rows, extracts with their manifests, holds.
//!
//! Functions take the reports of `extract` and give text; nothing here prints, reads or decides.
//! Names of fields in JSON and CSV are those of queries and of the Parquet columns
//! (docs/sessions.md). Text from outside goes through [`page::safe`], whatever it goes to.

mod by_value;
mod chosen;
mod compared;
mod explain;
mod gaps;
mod hold;
mod manifest;
mod packet;
mod plot;
mod read;
mod report;
mod salvage;
mod schema;
mod session;
mod session_table;
mod stenographer;
mod summary;
mod tag;
mod top;

pub use chosen::{ChosenTable, SessionColumns};
pub use compared::{
    NotCompared, attested, covered, receipt_lines, signer, stamped, unlike_file, unlike_folder,
};
pub use evidence::Maker;
pub use explain::{ListedField, explain, explain_json, fields, fields_json, unmet_names};
pub use gaps::{Missing, gaps_json};
pub use hold::{holds, holds_json};
pub use manifest::{
    anchor_json, approval_json, completeness_json, made_json, manifest_json, manifest_of,
    receipt_json, request_json, sealed_json, witness_line,
};
pub use packet::{PacketLine, packet_lines};
pub use plot::{plot, plot_json};
pub use read::{NoSession, read_session};
pub use report::{CheckedAgainst, CheckedExtract, counted, extract_report};
pub use salvage::{salvaged, salvaged_json};
pub use schema::{FieldType, Session, SessionField};
pub use session::{
    Value, csv_heading, csv_line, json_line, session_file_name, session_id, session_tag,
};
pub use session_table::SessionTable;
pub use stenographer::stenographer_volume;
pub use summary::{OverTime, Summary, summary_json};
pub use tag::tag_line;
pub use top::{top, top_csv, top_json};
