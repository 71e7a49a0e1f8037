//! Stretches in which packets are missing.

use completeness::form;
use extract::GapsReport;
use format::directory::{Gap, GapCause};
use page::safe::json_pretty;
use schemars::JsonSchema;
use serde::Serialize;
use units::number::to_u64;

/// What was lost for one reason.
#[derive(Debug, Serialize, JsonSchema)]
struct Lost {
    cause: GapCause,
    gaps: u64,
    /// Packets of the gaps in which they were counted.
    packets: u64,
    /// Gaps in which they were not.
    uncounted_gaps: u64,
}

/// Gaps, and what they come to.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Gaps")]
pub struct Missing<'a, S> {
    /// By their begin, the earliest first.
    #[serde(serialize_with = "form::gaps")]
    #[schemars(with = "Vec<form::GapForm>")]
    gaps: &'a [Gap],
    /// How many there are, also where fewer are shown.
    count: u64,
    /// Of all of them; only causes that there are.
    lost: Vec<Lost>,
    /// What is missing besides.
    statement: S,
}

/// The gaps of a report as a JSON object: the first `limit` of them, sums of all, and a statement
/// of what is missing besides.
pub fn gaps_json(report: &GapsReport, limit: usize, statement: impl Serialize) -> String {
    json_pretty(&Missing {
        gaps: report.gaps.get(..limit).unwrap_or(&report.gaps),
        count: to_u64(report.gaps.len()),
        lost: GapCause::ALL.iter().filter_map(|cause| lost(&report.gaps, *cause)).collect(),
        statement,
    })
}

fn lost(gaps: &[Gap], cause: GapCause) -> Option<Lost> {
    let of_cause: Vec<&Gap> = gaps.iter().filter(|gap| gap.cause == cause).collect();
    let uncounted = of_cause.iter().filter(|gap| gap.packets.is_none()).count();
    let counted = of_cause.iter().filter_map(|gap| gap.packets);
    (!of_cause.is_empty()).then(|| Lost {
        cause,
        gaps: to_u64(of_cause.len()),
        packets: counted.fold(0, u64::saturating_add),
        uncounted_gaps: to_u64(uncounted),
    })
}

#[cfg(test)]
mod tests {
    use units::{InterfaceId, Timestamp};

    use super::*;

    const ONE_OF_THREE: &str = r#"{
  "gaps": [
    {
      "cause": "kernel_drops",
      "interface": 0,
      "packets": 3,
      "from_ns": 1,
      "to_ns": 2
    }
  ],
  "count": 3,
  "lost": [
    {
      "cause": "kernel_drops",
      "gaps": 2,
      "packets": 18446744073709551615,
      "uncounted_gaps": 0
    },
    {
      "cause": "crash",
      "gaps": 1,
      "packets": 0,
      "uncounted_gaps": 1
    }
  ],
  "statement": null
}
"#;

    #[test]
    fn sums_are_of_all_gaps_and_unknown_is_not_zero() {
        let gap = |cause, packets, from| Gap {
            cause,
            interface: Some(InterfaceId(0)),
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
        let text = gaps_json(&report, 1, ());
        assert_eq!(text, ONE_OF_THREE);
    }
}
