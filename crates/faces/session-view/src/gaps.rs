//! Stretches in which packets are missing.

use extract::GapsReport;
use format::directory::{Gap, GapCause};
use page::safe::json_pretty;
use serde::Serialize;
use serde_json::Value;
use units::number::to_u64;

/// A stretch in which packets are missing.
#[derive(Serialize)]
pub(crate) struct GapJson {
    /// `interface_drops`, `kernel_drops`, `writer_drops`, `crash` or `damage`.
    cause: &'static str,
    /// Number of the interface, where the loss can be laid to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    interface: Option<u32>,
    /// Packets lost; absent is unknown, not zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    packets: Option<u64>,
    /// Bytes lost; absent is unknown, not zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// The loss happened at or after this time.
    from_ns: i64,
    /// The loss happened at or before this time.
    to_ns: i64,
}

impl GapJson {
    pub(crate) fn new(gap: &Gap) -> Self {
        Self {
            cause: gap.cause.name(),
            interface: gap.interface,
            packets: gap.packets,
            bytes: gap.bytes,
            from_ns: gap.from.0,
            to_ns: gap.to.0,
        }
    }
}

/// What was lost for one reason.
#[derive(Serialize)]
struct CauseJson {
    cause: &'static str,
    gaps: u64,
    /// Packets of the gaps in which they were counted.
    packets: u64,
    /// Gaps in which they were not.
    uncounted_gaps: u64,
}

/// Gaps, and what they come to.
#[derive(Serialize)]
struct GapsJson {
    /// By their begin, the earliest first.
    gaps: Vec<GapJson>,
    /// How many there are, also where fewer are shown.
    count: u64,
    /// Of all of them; only causes that there are.
    lost: Vec<CauseJson>,
    statement: Value,
}

/// The gaps of a report as a JSON object: the first `limit` of them, sums of all, and a statement
/// of what is missing besides.
pub fn gaps_json(report: &GapsReport, limit: usize, statement: Value) -> String {
    json_pretty(&GapsJson {
        gaps: report.gaps.iter().take(limit).map(GapJson::new).collect(),
        count: to_u64(report.gaps.len()),
        lost: GapCause::ALL.iter().filter_map(|cause| lost(&report.gaps, *cause)).collect(),
        statement,
    })
}

fn lost(gaps: &[Gap], cause: GapCause) -> Option<CauseJson> {
    let of_cause: Vec<&Gap> = gaps.iter().filter(|gap| gap.cause == cause).collect();
    let uncounted = of_cause.iter().filter(|gap| gap.packets.is_none()).count();
    let counted = of_cause.iter().filter_map(|gap| gap.packets);
    (!of_cause.is_empty()).then(|| CauseJson {
        cause: cause.name(),
        gaps: to_u64(of_cause.len()),
        packets: counted.fold(0, u64::saturating_add),
        uncounted_gaps: to_u64(uncounted),
    })
}

#[cfg(test)]
mod tests {
    use units::Timestamp;

    use super::*;

    #[test]
    fn sums_are_of_all_gaps_and_unknown_is_not_zero() {
        let gap = |cause, packets, from| Gap {
            cause,
            interface: Some(0),
            packets,
            bytes: None,
            from: Timestamp(from),
            to: Timestamp(from + 1),
        };
        let gaps = vec![
            gap(GapCause::KernelDrops, Some(3), 1),
            gap(GapCause::Crash, None, 2),
            gap(GapCause::KernelDrops, Some(u64::MAX), 3),
        ];
        let report = GapsReport { gaps, ..GapsReport::default() };
        let text = gaps_json(&report, 1, Value::Null);
        let said: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((said["gaps"].as_array().unwrap().len(), &said["count"]), (1, &3.into()));
        assert_eq!(said["lost"][0]["packets"], u64::MAX);
        let crash = &said["lost"][1];
        assert_eq!((&crash["cause"], &crash["uncounted_gaps"]), (&"crash".into(), &1.into()));
    }
}
