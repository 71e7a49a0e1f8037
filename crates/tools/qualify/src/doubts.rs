//! Why the rate that a verdict stands on may be that of something else than the target: the
//! strongest reason first.

use crate::judged::{Doubt, Judged};
use crate::number::{real, whole};
use crate::plan::{Part, Plan};
use crate::report::{Fill, PartResult, Target, TargetKind};
use crate::step::step;

/// What is written in less proves nothing of a disk: its cache, or the host's, takes as much.
const PROVEN_NS: u64 = 2_000_000_000;
/// As many times what was written is to be written where nothing says how large a cache is.
const MORE: u64 = 4;
/// Of a cache so many times its size: as much behind it as in it.
const CACHES: u64 = 2;

/// What speaks against the verdict that stands on `first`; of a model nothing does.
pub(crate) fn doubts(
    (target, plan): (&Target, &Plan),
    parts: &[PartResult],
    first: &Judged,
) -> Vec<Doubt> {
    if target.kind == TargetKind::Model {
        return Vec::new();
    }
    if target.is_in_memory && !first.is_by_reading {
        return Vec::from([Doubt::Memory]);
    }
    let mut doubts: Vec<Doubt> = limited((target, plan), first).into_iter().collect();
    if first.is_by_reading {
        return doubts;
    }
    let basis = || parts.iter().filter(|part| part.part() == first.basis);
    if let Some(fill) = basis().find_map(PartResult::run) {
        doubts.extend(cached(target, fill).or_else(|| short(fill.bytes(), fill.ns())));
    } else {
        // Places that were written one after another fill a cache as well.
        let sweeps = basis().filter_map(|part| match part {
            PartResult::Sweep(sweep) if sweep.is_write => Some(sweep),
            _ => None,
        });
        doubts.extend(sweeps.filter_map(|sweep| short(sweep.bytes(), sweep.ns())));
    }
    doubts
}

fn limited((target, plan): (&Target, &Plan), first: &Judged) -> Option<Doubt> {
    let block_bytes = match first.basis {
        Part::Sweep => plan.sweep.block_bytes,
        _ => plan.block_bytes,
    };
    let rate = first.mean_bytes_per_s;
    let limit = target.limit_of(!first.is_by_reading, rate, block_bytes)?.clone();
    Some(Doubt::Limited { limit })
}

/// A cache took what was written, or may have.
fn cached(target: &Target, fill: &Fill) -> Option<Doubt> {
    let bytes = fill.bytes();
    if let Some(step) = step(fill) {
        return (!step.is_passed()).then(|| Doubt::Step {
            bytes: step.bytes,
            before_bytes_per_s: step.before_bytes_per_s,
            after_bytes_per_s: step.after_bytes_per_s,
            needed_bytes: step.needed_bytes(),
        });
    }
    if let Some((name, size_bytes)) = target.cache() {
        let needed_bytes = size_bytes.map(|size| size.saturating_mul(CACHES));
        return needed_bytes.is_none_or(|needed| bytes < needed).then(|| Doubt::Cache {
            name: name.to_owned(),
            bytes,
            needed_bytes,
        });
    }
    let (bytes_per_s, most_bytes_per_s) = (fill.rate(), target.most_bytes_per_s()?);
    (bytes_per_s > most_bytes_per_s).then(|| Doubt::AboveDevice {
        bytes,
        bytes_per_s,
        most_bytes_per_s,
        needed_bytes: bytes.saturating_mul(MORE),
    })
}

fn short(bytes: u64, ns: u64) -> Option<Doubt> {
    let needed = real(bytes) * real(PROVEN_NS) / real(ns.max(1));
    (bytes > 0 && ns < PROVEN_NS).then(|| Doubt::Short { bytes, ns, needed_bytes: whole(needed) })
}

#[cfg(test)]
mod tests {
    use blockdev::disk::Layer;
    use blockdev::drive::Drive;

    use super::*;
    use crate::judged::{Answer, Verdict};
    use crate::limits::{GroupLimit, LimitOf};
    use crate::plan::Ask;
    use crate::report::Window;
    use crate::traffic::Mix;
    use crate::verdict::judge;

    const GIB: u64 = 1 << 30;

    fn target(layers: Vec<Layer>) -> Target {
        Target {
            kind: TargetKind::OwnFile,
            path: String::new(),
            size_bytes: 64 * GIB,
            layers,
            is_in_memory: false,
            limits: Vec::new(),
        }
    }

    /// A fill with windows of a quarter of a GiB: so many GiB at so many MB/s each.
    fn fill(stretches: &[(u64, u64)]) -> Fill {
        let mut fill = Fill::default();
        let mut end_ns = 0;
        for &(gib, mb_per_s) in stretches {
            for _ in 0..gib * 4 {
                let ns = GIB / 4 * 1000 / mb_per_s;
                end_ns += ns;
                fill.trace.push(ns, GIB / 4);
                fill.windows.push(Window { end_ns, bytes: GIB / 4, ..Window::default() });
            }
        }
        fill
    }

    fn judged(target: &Target, fill: Fill, bits_per_s: u64) -> Verdict {
        let mix = Mix::named("640").unwrap();
        let ask = Ask { pool_bytes: GIB, mix, bits_per_s: Some(bits_per_s), array: None };
        let plan = Plan::quick(target.size_bytes);
        judge((target, &plan), &[PartResult::Fill(fill)], false, &ask).unwrap()
    }

    #[test]
    fn behind_a_cache_the_last_rate_counts_and_more_has_to_be_written() {
        let cached = judged(&target(Vec::new()), fill(&[(12, 2000), (4, 180)]), 1_000_000_000);
        let Doubt::Step { bytes, needed_bytes, after_bytes_per_s, .. } = cached.doubts[0] else {
            panic!("{:?}", cached.doubts)
        };
        assert_eq!((bytes, needed_bytes), (12 * GIB, 24 * GIB));
        assert!(after_bytes_per_s.abs_diff(180_000_000) < 1_000_000);
        assert!(cached.judged[0].guaranteed_bytes_per_s <= after_bytes_per_s);
        assert_eq!(cached.asked.unwrap().answer, Answer::CannotJudge);
        // What the last part does not carry, it does not carry.
        let slow = judged(&target(Vec::new()), fill(&[(12, 2000), (4, 180)]), 5_000_000_000);
        assert_eq!(slow.asked.unwrap().answer, Answer::TooSlow);
        let passed = judged(&target(Vec::new()), fill(&[(12, 2000), (13, 180)]), 1_000_000_000);
        assert_eq!((passed.doubts.len(), passed.asked.unwrap().answer), (0, Answer::Fits));
        let guaranteed = passed.judged[0].guaranteed_bytes_per_s;
        assert!(guaranteed.abs_diff(180_000_000) < 1_000_000, "{guaranteed}");
    }

    #[test]
    fn a_cache_by_name_and_a_rate_above_all_platters_are_doubted() {
        let layer = |name: &str| Layer { name: name.to_owned(), ..Layer::default() };
        let doubts = |layers, gib| judged(&target(layers), fill(&[(gib, 900)]), 1).doubts;
        let (model, size_bytes) = (Some("vg-fast_cvol".to_owned()), 8 * GIB);
        let part = Layer { model, size_bytes, ..layer("dm-2") };
        assert!(matches!(
            doubts(vec![part.clone()], 10)[..],
            [Doubt::Cache { needed_bytes: Some(needed), .. }] if needed == 16 * GIB
        ));
        assert_eq!(doubts(vec![part], 17), []);
        let drive = Some(Drive { turns_per_min: Some(7200), ..Drive::default() });
        let platters = Layer { drive, ..layer("sda") };
        assert!(matches!(
            doubts(vec![platters.clone()], 10)[..],
            [Doubt::AboveDevice { most_bytes_per_s: 600_000_000, .. }]
        ));
        assert_eq!(doubts(vec![platters.clone(), platters], 10), []);
    }

    #[test]
    fn a_limit_of_the_group_is_the_first_reason_and_leaves_the_disk_open() {
        let limit = GroupLimit {
            group: "/backup".to_owned(),
            file: "/sys/fs/cgroup/blkio/backup/blkio.throttle.write_bps_device".to_owned(),
            disk: "sda".to_owned(),
            is_write: true,
            of: LimitOf::Bytes,
            per_second: 5_000_000,
        };
        let limited = Target { limits: vec![limit.clone()], ..target(Vec::new()) };
        let slow = judged(&limited, fill(&[(1, 5)]), 1_000_000_000);
        assert_eq!(slow.doubts, [Doubt::Limited { limit }]);
        assert_eq!(slow.asked.unwrap().answer, Answer::CannotJudge);
        // What the limit lets through, the disk carries.
        let within = judged(&limited, fill(&[(1, 5)]), 1_000_000);
        assert_eq!(within.asked.unwrap().answer, Answer::Fits);
        assert_eq!(judged(&limited, fill(&[(1, 2)]), 1_000_000_000).doubts, []);
    }
}
