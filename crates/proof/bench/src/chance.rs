//! Distributions of what traffic is made of.

use core::f64::consts::TAU;

use units::Random;
use units::number::to_u64;

/// Draws beyond even ones.
pub(crate) trait Chance {
    /// In (0, 1].
    fn unit(&mut self) -> f64;

    /// Pareto from 1 on: heavy-tailed, the more so the smaller the exponent.
    fn pareto(&mut self, exponent: f64) -> f64 {
        self.unit().powf(-1.0 / exponent)
    }

    /// Exponential with this mean.
    fn exponential(&mut self, mean: f64) -> f64 {
        -self.unit().ln() * mean
    }

    /// The exponential of a normal variable (Box and Muller 1958).
    fn log_normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        (radius * (TAU * self.unit()).cos()).exp()
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T;
}

impl Chance for Random {
    fn unit(&mut self) -> f64 {
        (f64::from(bits32(self)) + 1.0) / (f64::from(u32::MAX) + 1.0)
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        let place = usize::try_from(self.below(to_u64(all.len()))).expect("a short list");
        all.get(place).expect("below its length")
    }
}

pub(crate) fn bits16(random: &mut Random) -> u16 {
    u16::try_from(random.below(1 << 16)).expect("below 2^16")
}

pub(crate) fn bits32(random: &mut Random) -> u32 {
    u32::try_from(random.below(1 << 32)).expect("below 2^32")
}
