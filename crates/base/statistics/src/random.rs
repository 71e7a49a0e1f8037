//! What statistics draw from a source of chance.

use units::Random;

/// Shares, places and orders by chance.
pub trait Draw {
    /// From 0 to 1, neither of them: the middles of 2^52 equal parts.
    fn share(&mut self) -> f64;

    /// A place below `len`, which is above 0.
    fn place(&mut self, len: usize) -> usize;

    /// Any order, each as likely (Fisher and Yates).
    fn shuffle<T>(&mut self, values: &mut [T]);
}

impl Draw for Random {
    fn share(&mut self) -> f64 {
        // 52 bits have an exact fraction, and so has the half behind them.
        let part = u32::try_from(self.next() >> 32).expect("32 bits");
        let rest = u32::try_from(self.next() >> 44).expect("20 bits");
        (f64::from(part) + (f64::from(rest) + 0.5) / 1_048_576.0) / 4_294_967_296.0
    }

    fn place(&mut self, len: usize) -> usize {
        let bound = u64::try_from(len).expect("usize has at most 64 bits");
        usize::try_from(self.below(bound)).expect("below a usize")
    }

    fn shuffle<T>(&mut self, values: &mut [T]) {
        for at in (1..values.len()).rev() {
            values.swap(at, self.place(at + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_fill_the_interval() {
        let mut random = Random::new(1);
        let shares: Vec<f64> = (0..10_000).map(|_| random.share()).collect();
        assert!(shares.iter().all(|&share| 0.0 < share && share < 1.0));
        let mean = shares.iter().sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
    }

    #[test]
    fn a_shuffle_keeps_all_and_moves_most() {
        let mut values: Vec<u32> = (0..1000).collect();
        Random::new(2).shuffle(&mut values);
        assert!(values.iter().zip(0..).filter(|(value, at)| **value == *at).count() < 10);
        values.sort_unstable();
        assert!(values.into_iter().eq(0..1000));
    }
}
