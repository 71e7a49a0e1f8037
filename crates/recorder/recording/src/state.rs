//! What a recorder says of itself, read again: by `status` while it runs, as its report when it
//! has ended.

use serde::Deserialize;

use crate::account::Loss;
use crate::progress::Progress;

/// What a recorder says of itself.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
pub struct State {
    /// Its process while it records; `None` of one that has ended.
    #[serde(default)]
    pub process: Option<u32>,
    /// How the recording stands, or stood when it ended.
    #[serde(flatten)]
    pub now: Progress,
    /// Packets that were not looked at for names; the report says it.
    #[serde(default)]
    pub unread: u64,
    /// Losses with the state of the pool, as far as they are kept; the report says it.
    #[serde(default)]
    pub losses: Vec<Loss>,
}

/// The state of a recorder: what it answers while it runs, or its report.
pub fn parse_recorder(text: &str) -> Result<State, serde_json::Error> {
    serde_json::from_str(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorder_of_another_version_is_read_and_other_json_is_not() {
        let later = r#"{"process":7,"offered":5,"unindexed":0,"pool_columns":8,"elapsed_ns":1,
            "interfaces":[],"disks":{"headroom":{"guaranteed_bytes_per_s":9,"level":"new"}},
            "events":[{"at_ns":1,"kind":"new","text":""}],"new":1}"#;
        let State { process, now, .. } = parse_recorder(later).unwrap();
        assert_eq!((process, now.total.offered, now.pool_columns), (Some(7), 5, 8));
        let headroom = now.disks.headroom.unwrap();
        assert_eq!(headroom.guaranteed_bytes_per_s, 9);
        for other in ["{}", r#"{"offered":5}"#, "[]"] {
            assert!(parse_recorder(other).is_err(), "{other}");
        }
    }
}
