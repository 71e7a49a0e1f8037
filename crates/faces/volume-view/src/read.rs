//! The status of a volume out of the JSON that [`crate::status_json`] makes of it, so that what a
//! service says of its volumes is shown by the code that shows those of this machine.

use format::head::VolumeId;
use serde_json::Value;
use units::{Timestamp, unhex};
use upkeep::{MemberState, MemberStatus, Redundancy, SpareStatus, Status};

use crate::members::StatusJson;

/// JSON that is no status of a volume.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoStatus {
    /// Not of this shape.
    #[error("{0}")]
    Json(serde_json::Error),
    /// An id or a state that is none.
    #[error("{0:?} is no {1}")]
    Wrong(String, &'static str),
}

/// The status, and what the recorder said of the recording that goes on, as
/// [`crate::status`] takes them. A member that is behind has not kept which stripes it lacks.
///
/// # Errors
/// When it is none: see [`NoStatus`].
pub fn read_status(status: Value) -> Result<(Status, Option<String>), NoStatus> {
    let read: StatusJson = serde_json::from_value(status).map_err(NoStatus::Json)?;
    let wrong_id = || NoStatus::Wrong(read.volume_id.clone(), "id of a volume");
    let volume_id = VolumeId(unhex(&read.volume_id).ok_or_else(wrong_id)?);
    let members = read.members.into_iter().map(|member| {
        let state = match member.state.as_str() {
            "whole" => MemberState::Whole,
            "absent" => MemberState::Absent,
            "vacant" => MemberState::Vacant,
            "stale" => MemberState::Stale { from: 0, to: 0 },
            "left out" => MemberState::Stale { from: 0, to: u64::MAX },
            _ => return Err(NoStatus::Wrong(member.state, "state of a member")),
        };
        Ok(MemberStatus { path: member.path.into(), state, stale_bytes: member.stale_bytes })
    });
    let spares = read.spares.into_iter();
    let spares =
        spares.map(|spare| SpareStatus { path: spare.path.into(), is_there: spare.is_there });
    let redundancy = read.redundancy.into_iter().map(|part| Redundancy {
        first: part.first_sequence,
        last: part.last_sequence,
        spare_members: part.survives_members,
    });
    let going = (!read.going.is_empty()).then(|| page::safe::json_line(&read.going));
    let status = Status {
        path: read.path.into(),
        volume_id,
        data_columns: read.data_columns,
        parity_columns: read.parity_columns,
        members: members.collect::<Result<_, _>>()?,
        spares: spares.collect(),
        redundancy: redundancy.collect(),
        epoch: read.epoch,
        is_open: read.is_open,
        clean_stop: read.clean_stop,
        last_alive: read.last_alive_ns.map(Timestamp),
    };
    Ok((status, going))
}

#[cfg(test)]
mod tests {
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
