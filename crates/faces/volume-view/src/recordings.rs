//! Recordings of a volume as JSON.

use page::safe::json_pretty;
use schemars::JsonSchema;
use serde::Serialize;
use units::Timestamp;
use upkeep::Recording;

/// Recordings that the ring holds something of.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Recordings {
    /// The oldest first.
    recordings: Vec<Recording>,
    /// Who asks sees a part of them: of their times, and without counts.
    is_narrowed: bool,
}

/// Of a recording what lies within these times, without counts, which are of all of it; `None`
/// where nothing does.
fn within(recording: Recording, (from, until): (Timestamp, Timestamp)) -> Option<Recording> {
    let (start, end) = recording.times?;
    let (start, end) = (start.max(from), end.min(until));
    let part =
        Recording { times: Some((start, end)), indexed: None, share_left: None, ..recording };
    (start <= end).then_some(part)
}

/// Recordings as a JSON object: all of them, or what lies within these times.
pub fn recordings_json(all: &[Recording], times: Option<(Timestamp, Timestamp)>) -> String {
    let seen = all.iter().cloned().filter_map(|recording| match times {
        Some(times) => within(recording, times),
        None => Some(recording),
    });
    json_pretty(&Recordings { recordings: seen.collect(), is_narrowed: times.is_some() })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use units::{Epoch, Sequence};

    use super::*;

    #[test]
    fn who_sees_a_part_of_time_sees_that_part_of_recordings_and_no_counts() {
        let recording = |first, from, to| Recording {
            name: None,
            epoch: Epoch(1),
            first,
            last: first + 9,
            times: Some((Timestamp(from), Timestamp(to))),
            indexed: Some((7, 2)),
            share_left: Some(1.0),
        };
        let all = [
            recording(Sequence(10), 0, 99),
            recording(Sequence(20), 100, 199),
            recording(Sequence(30), 200, 299),
        ];
        let read = |within| serde_json::from_str::<Value>(&recordings_json(&all, within)).unwrap();
        assert_eq!(read(None)["recordings"].as_array().unwrap().len(), 3);
        let part = read(Some((Timestamp(150), Timestamp(200))));
        let times = |at: usize| {
            let recording = &part["recordings"][at];
            json!([recording["start_ns"], recording["end_ns"], recording["packets"]])
        };
        assert_eq!((times(0), times(1)), (json!([150, 199, null]), json!([200, 200, null])));
        assert_eq!(part["is_narrowed"], true);
    }
}
