//! Recordings of a volume as JSON.

use page::safe::json_pretty;
use serde::Serialize;
use units::Timestamp;
use upkeep::Recording;

/// What one opening of the volume for recording left in the ring.
#[derive(Serialize)]
pub(crate) struct RecordingJson<'a> {
    /// As given with `record --name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    /// Number of the opening.
    epoch: u32,
    /// Oldest sequence left.
    first_sequence: u64,
    /// Newest sequence.
    last_sequence: u64,
    /// Earliest packet left.
    #[serde(skip_serializing_if = "Option::is_none")]
    start_ns: Option<i64>,
    /// Latest packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_ns: Option<i64>,
    /// Packets, as far as they are indexed.
    #[serde(skip_serializing_if = "Option::is_none")]
    packets: Option<u64>,
    /// Rows of sessions, as far as they are indexed.
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions: Option<u64>,
    /// Share that the ring has not taken; absent where it took an unknown part.
    #[serde(skip_serializing_if = "Option::is_none")]
    share_left: Option<f64>,
}

impl<'a> RecordingJson<'a> {
    pub(crate) fn new(recording: &'a Recording) -> Self {
        Self {
            name: recording.name.as_deref(),
            epoch: recording.epoch,
            first_sequence: recording.first,
            last_sequence: recording.last,
            start_ns: recording.times.map(|times| times.0.0),
            end_ns: recording.times.map(|times| times.1.0),
            packets: recording.indexed.map(|(packets, _)| packets),
            sessions: recording.indexed.map(|(_, sessions)| sessions),
            share_left: recording.share_left,
        }
    }

    /// Of it what lies within these times, without counts, which are of all of it; `None` where
    /// nothing does.
    fn within(self, (from, until): (Timestamp, Timestamp)) -> Option<Self> {
        let start = self.start_ns?.max(from.0);
        let end = self.end_ns?.min(until.0);
        (start <= end).then_some(Self {
            start_ns: Some(start),
            end_ns: Some(end),
            packets: None,
            sessions: None,
            share_left: None,
            ..self
        })
    }
}

/// Recordings that the ring holds something of.
#[derive(Serialize)]
struct RecordingsJson<'a> {
    /// The oldest first.
    recordings: Vec<RecordingJson<'a>>,
    /// Who asks sees a part of them: of their times, and without counts.
    is_narrowed: bool,
}

/// Recordings as a JSON object: all of them, or what lies within these times.
pub fn recordings_json(recordings: &[Recording], within: Option<(Timestamp, Timestamp)>) -> String {
    let seen = recordings.iter().map(RecordingJson::new).filter_map(|recording| match within {
        Some(times) => recording.within(times),
        None => Some(recording),
    });
    json_pretty(&RecordingsJson { recordings: seen.collect(), is_narrowed: within.is_some() })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn who_sees_a_part_of_time_sees_that_part_of_recordings_and_no_counts() {
        let recording = |first, from, to| Recording {
            name: None,
            epoch: 1,
            first,
            last: first + 9,
            times: Some((Timestamp(from), Timestamp(to))),
            indexed: Some((7, 2)),
            share_left: Some(1.0),
        };
        let all = [recording(10, 0, 99), recording(20, 100, 199), recording(30, 200, 299)];
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
