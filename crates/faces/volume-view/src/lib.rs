//! Recordings, and what is done to volumes, in words, as tables and as JSON.
//!
//! Functions take the reports of `record` and `upkeep` and give text; nothing here prints, reads or
//! decides. Text from outside goes through [`page::safe`], whatever it goes to.

mod anchor;
mod disks;
mod keys;
mod map;
mod members;
mod qualification;
mod read;
mod record;
mod recordings;
mod scrub;
mod verification;
mod volume;

pub use anchor::{anchor_findings, anchors_json};
pub use keys::{keys, keys_json, rekeyed, rekeyed_json};
pub use map::{Ring, map, map_grid, map_svg, map_svg_grid, ring_json};
pub use members::{
    Standing, erased, erased_json, grown, grown_json, joined, joined_json, resilvered,
    resilvered_json, status, status_json,
};
pub use qualification::{OfVolume, QualificationReport, qualification_json};
pub use read::{NoStatus, read_status};
pub use record::{going_json, is_clean, recording, recording_json, recording_progress};
pub use recordings::{Recordings, recordings_json};
pub use scrub::{scrubbed, scrubbed_json};
pub use verification::{verification, verification_json};
pub use volume::{WithMap, created, created_json, inspection, inspection_json};
