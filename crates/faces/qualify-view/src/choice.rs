//! Why a new volume is as a qualification advises.

use ::qualify::{Choice, Reason};
use page::text::{disk_rate, duration};
use units::ByteSize;

/// A line for each decision.
pub fn choice(choice: &Choice) -> Vec<String> {
    choice.reasons.iter().map(reason).collect()
}

fn reason(reason: &Reason) -> String {
    match *reason {
        Reason::Zones { zones, levelled, straight } => {
            let (levelled, straight) = (disk_rate(levelled), disk_rate(straight));
            let rates = format!("{levelled} guaranteed with them, {straight} without");
            if zones > 1 {
                format!("{zones} zones: {rates}")
            } else {
                format!("no zones: they gain less than a tenth ({rates})")
            }
        }
        Reason::Doubted => {
            "WHAT WAS MEASURED IS NO GUARANTEE: `qualify show` of the report says why".to_owned()
        }
        Reason::OneOrder => {
            "no zones: only one order of writing was judged; the part sweep judges both".to_owned()
        }
        Reason::NoArm { access_ns } => format!(
            "no zones: it does not turn, an access takes {}",
            duration(i64::try_from(access_ns).unwrap_or(i64::MAX)),
        ),
        Reason::Extent { bytes, jump_ns, bytes_per_s } => format!(
            "extents of {}: a jump takes {}, little beside them at {}",
            ByteSize(bytes),
            duration(i64::try_from(jump_ns).unwrap_or(i64::MAX)),
            disk_rate(bytes_per_s),
        ),
        Reason::Usable { percent, guaranteed, whole, needed } => format!(
            "the first {percent} % of each disk: they guarantee {}, all of it {}, and {} were \
             asked for",
            disk_rate(guaranteed),
            disk_rate(whole),
            disk_rate(needed),
        ),
        Reason::TooSlow { whole, needed } => format!(
            "too slow for {} a disk, whatever part of it is used: all of it guarantees {}",
            disk_rate(needed),
            disk_rate(whole),
        ),
        Reason::Pool { bytes, guaranteed, mean } => format!(
            "a pool of {} for each disk: {} guaranteed, {} in the mean",
            ByteSize(bytes),
            disk_rate(guaranteed),
            disk_rate(mean),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_lines_with_their_figures() {
        let zones =
            |zones| reason(&Reason::Zones { zones, levelled: 203_000_000, straight: 134_000_000 });
        assert_eq!(zones(8), "8 zones: 203 MB/s guaranteed with them, 134 MB/s without");
        assert!(zones(1).starts_with("no zones: they gain less than a tenth (203 MB/s"));
        let extent =
            Reason::Extent { bytes: 128 << 20, jump_ns: 8_000_000, bytes_per_s: 250_000_000 };
        let text = "extents of 128 MiB: a jump takes 8.0 ms, little beside them at 250 MB/s";
        assert_eq!(reason(&extent), text);
    }
}
