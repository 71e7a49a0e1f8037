//! The status of a volume out of the JSON that [`crate::status_json`] makes of it, so that what a
//! service says of its volumes is shown by the code that shows those of this machine.

use serde::Deserialize;
use serde_json::{Map, Value};
use upkeep::Status;

/// JSON that is no status of a volume.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct NoStatus(serde_json::Error);

/// A status, and what is beside it.
#[derive(Deserialize)]
struct Standing {
    #[serde(flatten)]
    status: Status,
    #[serde(flatten)]
    going: Map<String, Value>,
}

/// The status, and what the recorder said of the recording that goes on, as
/// [`crate::status`] takes them. A member that is behind has not kept which stripes it lacks.
///
/// # Errors
/// When it is none: see [`NoStatus`].
pub fn read_status(status: Value) -> Result<(Status, Option<String>), NoStatus> {
    let Standing { status, going } = serde_json::from_value(status).map_err(NoStatus)?;
    let going = (!going.is_empty()).then(|| page::safe::json_line(&going));
    Ok((status, going))
}

#[cfg(test)]
mod tests {
    use format::head::VolumeId;
    use units::Timestamp;
    use upkeep::{MemberState, MemberStatus, Redundancy, SpareStatus};

    use super::*;
    use crate::{status, status_json};

    #[test]
    fn a_status_is_shown_as_it_was() {
        let member =
            |path: &str, state, stale_bytes| MemberStatus { path: path.into(), state, stale_bytes };
        let report = Status {
            path: "/data/spool".into(),
            volume_id: VolumeId([0xab; 16]),
            data_columns: 4,
            parity_columns: 2,
            members: vec![
                member("a", MemberState::Whole, 0),
                member("b", MemberState::Stale { from: 7, to: 9 }, 4096),
                member("c", MemberState::Stale { from: 7, to: u64::MAX }, 1 << 30),
                member("d\u{1b}[31m", MemberState::Absent, 0),
                member("e", MemberState::Vacant, 0),
            ],
            spares: vec![SpareStatus { path: "f".into(), is_there: false }],
            redundancy: vec![
                Redundancy { first: 0, last: 9, spare_members: None },
                Redundancy { first: 10, last: 20, spare_members: Some(1) },
            ],
            epoch: 3,
            is_open: true,
            clean_stop: false,
            last_alive: Some(Timestamp(1_700_000_000_000_000_000)),
            is_whole: false,
        };
        let going = "{\"recording\":\"1 packet\",\"pid\":7,\"disk_lines\":[\"slow\"]}";
        for (report, going) in [
            (report.clone(), Some(going)),
            (Status { last_alive: None, redundancy: Vec::new(), ..report }, None),
        ] {
            let text = status_json(&report, going);
            let (read, said) = read_status(serde_json::from_str(&text).unwrap()).unwrap();
            assert_eq!(status_json(&read, said.as_deref()), text);
            assert_eq!(status(&read, said.as_deref(), None), status(&report, going, None));
            for (old, new) in [("\"whole\"", "\"well\""), ("abab", "abag"), ("\"epoch\": 3,", "")] {
                let wrong = serde_json::from_str(&text.replacen(old, new, 1)).unwrap();
                assert!(read_status(wrong).is_err(), "{old}");
            }
        }
    }
}
