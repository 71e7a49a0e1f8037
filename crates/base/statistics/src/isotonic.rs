//! The falling line through values that is nearest to them.

use units::number::real_usize;

/// Of values in their order, the nearest that never rise (pool adjacent violators: Ayer and others
/// 1955; in the mean of squares). Values that are not finite give an empty answer.
pub fn falling(values: &[f64]) -> Vec<f64> {
    if !values.iter().all(|value| value.is_finite()) {
        return Vec::new();
    }
    // Stretches of one level: sum and length.
    let mut levels: Vec<(f64, usize)> = Vec::new();
    for &value in values {
        let mut new = (value, 1);
        while let Some(&(sum, len)) = levels.last()
            && mean((sum, len)) < mean(new)
        {
            levels.pop();
            new = (new.0 + sum, new.1 + len);
        }
        levels.push(new);
    }
    levels.into_iter().flat_map(|level| std::iter::repeat_n(mean(level), level.1)).collect()
}

fn mean((sum, len): (f64, usize)) -> f64 {
    sum / real_usize(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_falls_stays_and_what_rises_is_levelled() {
        assert_eq!(falling(&[5.0, 4.0, 1.0]), [5.0, 4.0, 1.0]);
        assert_eq!(falling(&[1.0, 2.0, 3.0]), [2.0, 2.0, 2.0]);
        assert_eq!(falling(&[6.0, 2.0, 4.0, 1.0, 1.0]), [6.0, 3.0, 3.0, 1.0, 1.0]);
        assert!(falling(&[]).is_empty());
        assert!(falling(&[1.0, f64::NAN]).is_empty());
    }

    #[test]
    fn it_is_no_farther_than_any_other_falling_line() {
        let values = [9.0, 7.0, 8.0, 8.5, 3.0, 4.0, 4.0, 1.0];
        let off = |line: &[f64]| -> f64 {
            values.iter().zip(line).map(|(value, on)| (value - on).powi(2)).sum()
        };
        let best = off(&falling(&values));
        let mut random = units::Random::new(5);
        for _ in 0..2000 {
            let mut line: Vec<f64> = (0..8)
                .map(|_| f64::from(u32::try_from(random.below(10_000)).unwrap()) / 1000.0)
                .collect();
            line.sort_by(|one, other| other.total_cmp(one));
            assert!(off(&line) >= best - 1e-9);
        }
    }
}
