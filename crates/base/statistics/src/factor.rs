//! Which of the things that were recorded separates two modes.

use units::number::real_usize;

use crate::random::Draw as _;
use units::Random;

/// Orders of the labels that a factor is held against, at least.
const SHUFFLES: usize = 1999;
/// And for each factor, so that of many one can still be below the largest chance.
const SHUFFLES_EACH: usize = 200;
/// A chance below this, after it was multiplied by the number of factors, is none.
const P_MAX: f64 = 0.01;

/// What was recorded with each value.
#[derive(Clone, Copy, Debug)]
pub enum Levels<'a> {
    /// One of a few, such as a target or whether a run was odd.
    Kinds(&'a [u32]),
    /// A number, such as a place or a temperature: it is cut where that separates best.
    Numbers(&'a [f64]),
}

/// A factor.
#[derive(Clone, Copy, Debug)]
pub struct Factor<'a> {
    /// What it is called.
    pub name: &'a str,
    /// One level for each value.
    pub levels: Levels<'a>,
}

/// A factor that says which mode a value belongs to.
#[derive(Clone, PartialEq, Debug)]
pub struct Explanation {
    /// What it is called.
    pub name: String,
    /// How much of it: mutual information over the entropy of the modes, 1 for all.
    pub share: f64,
    /// The chance that one of the factors says as much by accident.
    pub p: f64,
    /// Of a number, where it was cut: those below it belong together.
    pub cut: Option<f64>,
}

/// The factors that separate the modes, the best first: `is_upper` says of each value which of
/// both it belongs to. By shuffling (Phipson and Smyth 2010), for values that do not resemble
/// their neighbours more than others: runs, and not the windows of one.
///
/// # Panics
/// If a factor has not one level for each value.
pub fn explain(is_upper: &[bool], factors: &[Factor<'_>], random: &mut Random) -> Vec<Explanation> {
    let whole = entropy(&[is_upper.iter().filter(|upper| **upper).count(), is_upper.len()]);
    let mut found: Vec<Explanation> = Vec::new();
    if whole <= 0.0 {
        return found;
    }
    let shuffles = SHUFFLES.max(SHUFFLES_EACH * factors.len());
    for factor in factors {
        let (order, is_number) = order(factor, is_upper.len());
        let separate = |labels: &[bool]| separation(&order, is_number, labels);
        let (shared, cut) = separate(is_upper);
        let mut labels = is_upper.to_vec();
        let as_much = (0..shuffles).filter(|_| {
            random.shuffle(&mut labels);
            separate(&labels).0 >= shared - 1e-12
        });
        let chance = (1.0 + real_usize(as_much.count())) / (1.0 + real_usize(shuffles));
        let p = (chance * real_usize(factors.len())).min(1.0);
        if p < P_MAX && shared > 0.0 {
            let (name, share) = (factor.name.to_owned(), shared / whole);
            found.push(Explanation { name, share, p, cut });
        }
    }
    found.sort_by(|a, b| b.share.total_cmp(&a.share));
    found
}

/// The levels in ascending order, each with the place of its value.
fn order(factor: &Factor<'_>, count: usize) -> (Vec<(f64, usize)>, bool) {
    let (levels, is_number): (Vec<f64>, bool) = match factor.levels {
        Levels::Kinds(kinds) => (kinds.iter().map(|&kind| f64::from(kind)).collect(), false),
        Levels::Numbers(numbers) => (numbers.to_vec(), true),
    };
    assert_eq!(levels.len(), count, "factor {} has one level for each value", factor.name);
    let mut order: Vec<(f64, usize)> = levels.into_iter().zip(0..).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    (order, is_number)
}

/// Mutual information of labels and levels; of a number, with its best cut.
fn separation(order: &[(f64, usize)], is_number: bool, labels: &[bool]) -> (f64, Option<f64>) {
    let groups = order.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()).map(|group| {
        let upper = group.iter().filter(|(_, place)| labels.get(*place) == Some(&true));
        let level = group.first().map_or(0.0, |(level, _)| *level);
        (level, [upper.count(), group.len()])
    });
    let all = [labels.iter().filter(|upper| **upper).count(), labels.len()];
    let shared = |parts: &[[usize; 2]]| {
        let of_part = |part: &[usize; 2]| real_usize(part[1]) / real_usize(all[1]) * entropy(part);
        entropy(&all) - parts.iter().map(of_part).sum::<f64>()
    };
    if !is_number {
        let parts: Vec<[usize; 2]> = groups.map(|(_, part)| part).collect();
        return (shared(&parts), None);
    }
    let (mut below, mut best) = ([0, 0], (0.0, None));
    for (level, [upper, count]) in groups {
        if below[1] > 0 {
            let found = shared(&[below, [all[0] - below[0], all[1] - below[1]]]);
            best = if found > best.0 { (found, Some(level)) } else { best };
        }
        below = [below[0] + upper, below[1] + count];
    }
    best
}

/// Of so many out of so many, in nats.
fn entropy(&[part, whole]: &[usize; 2]) -> f64 {
    let share = real_usize(part) / real_usize(whole.max(1));
    let of = |share: f64| if share > 0.0 { -share * share.ln() } else { 0.0 };
    of(share) + of(1.0 - share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_factor_that_separates_is_named_and_others_are_not() {
        let slow: Vec<bool> = (0..30).map(|at| at % 3 != 0).collect();
        let same: Vec<u32> = (0..30).map(|at| u32::from(at % 3 == 0)).collect();
        let parity: Vec<u32> = (0..30).map(|at| at % 2).collect();
        let heat: Vec<f64> = slow
            .iter()
            .zip(0..)
            .map(|(slow, at)| f64::from(at % 4) + if *slow { 50.0 } else { 30.0 })
            .collect();
        let factors = [
            Factor { name: "parity", levels: Levels::Kinds(&parity) },
            Factor { name: "same", levels: Levels::Kinds(&same) },
            Factor { name: "heat", levels: Levels::Numbers(&heat) },
        ];
        let found = explain(&slow, &factors, &mut Random::new(51));
        let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["same", "heat"], "{found:?}");
        assert!(found.iter().all(|one| one.share > 0.999 && one.p < 0.01), "{found:?}");
        assert_eq!(found[1].cut, Some(50.0));
    }

    #[test]
    fn chance_explains_nothing() {
        let mut random = Random::new(52);
        let mut alarms = 0;
        for _ in 0..100 {
            let slow: Vec<bool> = (0..40).map(|_| random.share() < 0.3).collect();
            let numbers: Vec<f64> = (0..40).map(|_| random.share()).collect();
            let kinds: Vec<u32> = (0..40).map(|at| at % 5).collect();
            let factors = [
                Factor { name: "number", levels: Levels::Numbers(&numbers) },
                Factor { name: "kind", levels: Levels::Kinds(&kinds) },
            ];
            alarms += usize::from(!explain(&slow, &factors, &mut random).is_empty());
        }
        assert!(alarms <= 4, "{alarms} of 100");
        assert!(explain(&[true; 5], &[], &mut random).is_empty());
    }
}
