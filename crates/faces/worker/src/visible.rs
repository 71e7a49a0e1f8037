//! What a statement names to who sees a part of the time: nothing outside of that part.

use completeness::{Completeness, StretchEnd};
use units::{Times, Timestamp};

/// The same of these times. It hides no loss: what is missing was asked for, and lies in them.
pub(super) fn within(missing: &Completeness, sees: (Timestamp, Timestamp)) -> Completeness {
    let (from, until) = sees;
    let part = Times::of(from, until);
    let mut missing = missing.clone();
    missing.recorded.retain(|stretch| stretch.from <= until && stretch.through >= from);
    for stretch in &mut missing.recorded {
        if stretch.from < from {
            (stretch.from, stretch.is_cut) = (from, false);
        }
        if stretch.through > until {
            (stretch.through, stretch.end) = (until, StretchEnd::InOrder);
        }
    }
    for gap in &mut missing.gaps {
        (gap.from, gap.to) = (gap.from.clamp(from, until), gap.to.clamp(from, until));
    }
    let hull = missing.withheld.map(|(first, last)| (first.max(from), last.min(until)));
    missing.withheld = hull.filter(|(first, last)| first <= last);
    for through in [&mut missing.expired_through, &mut missing.erased_through] {
        *through = through.map(|through| through.min(until));
    }
    for times in [&mut missing.unrecorded, &mut missing.overwritten, &mut missing.forgotten] {
        *times = times.and(&part);
    }
    for (_, times) in &mut missing.doubts {
        *times = times.and(&part);
    }
    missing
}

#[cfg(test)]
mod tests {
    use completeness::Stretch;

    use super::*;

    fn stretch(from: i64, through: i64) -> Stretch {
        Stretch {
            from: Timestamp(from),
            through: Timestamp(through),
            is_live: true,
            interfaces: Vec::new(),
            interface_count: 0,
            end: StretchEnd::Going,
            is_cut: true,
        }
    }

    #[test]
    fn nothing_outside_of_the_times_that_are_seen_is_named() {
        let recorded = vec![stretch(0, 9), stretch(10, 25), stretch(26, 90), stretch(91, 99)];
        let hull = Some((Timestamp(5), Timestamp(50)));
        let whole = Times::of(Timestamp::MIN, Timestamp::MAX);
        let missing = Completeness {
            recorded,
            withheld: hull,
            expired_through: Some(Timestamp(50)),
            overwritten: whole,
            ..Completeness::default()
        };
        let seen = within(&missing, (Timestamp(20), Timestamp(30)));
        let times: Vec<_> = seen.recorded.iter().map(|it| (it.from.0, it.through.0)).collect();
        assert_eq!(times, [(20, 25), (26, 30)]);
        let ends: Vec<_> = seen.recorded.iter().map(|it| (it.end, it.is_cut)).collect();
        assert_eq!(ends, [(StretchEnd::Going, false), (StretchEnd::InOrder, true)]);
        assert_eq!(seen.withheld, Some((Timestamp(20), Timestamp(30))));
        assert_eq!(seen.expired_through, Some(Timestamp(30)));
        assert_eq!(seen.overwritten, Times::of(Timestamp(20), Timestamp(30)));
        assert_eq!(seen.state(), missing.state());
        let all = within(&missing, (Timestamp::MIN, Timestamp::MAX));
        assert_eq!(all, missing);
    }
}
