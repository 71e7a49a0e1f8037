//! Which weights give a missing column.
//!
//! What is known adds up to what is missing ([`crate::sums`]), and a missing column takes part in
//! the two sums with the coefficients (1, 2^i) as data column i, (1, 0) as P and (0, 1) as Q. Two
//! missing columns X and Y are then the solution of
//!
//! ```text
//! sum[0] = x[0] X + y[0] Y
//! sum[1] = x[1] X + y[1] Y
//! ```
//!
//! by Cramer's rule. It always has one, because no two columns have proportional coefficients: the
//! powers of two below 255 differ. Where fewer than two are missing, parity that is not needed is
//! taken for missing, so that there is one case only and nothing is read in vain.

use crate::field::{inverse, multiply, power};

/// Weights of both sums that give the column `wanted`, when it and `other` are missing.
pub(crate) fn weights(wanted: usize, other: usize, data_count: usize) -> [u8; 2] {
    let (x, y) = (coefficients(wanted, data_count), coefficients(other, data_count));
    let determinant = multiply(x[0], y[1]) ^ multiply(y[0], x[1]);
    [y[1], y[0]].map(|coefficient| multiply(coefficient, inverse(determinant)))
}

fn coefficients(column: usize, data_count: usize) -> [u8; 2] {
    match column.checked_sub(data_count) {
        None => [1, power(2, u8::try_from(column).expect("at most 24 data columns"))],
        Some(0) => [1, 0],
        Some(_) => [0, 1],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_missing_data_columns_have_the_weights_of_linux() {
        // lib/raid6/recov.c: with x < y, X = A (P + Pxy) + B (Q + Qxy) and Y = P + Pxy + X, where
        // A = 2^(y-x) / (2^(y-x) + 1), B = 2^-x / (2^(y-x) + 1).
        for y in 1..24 {
            for x in 0..y {
                let exponent = u8::try_from(y - x).unwrap();
                let distance = power(2, exponent);
                let divisor = inverse(distance ^ 1);
                let a = multiply(distance, divisor);
                let b = multiply(inverse(power(2, u8::try_from(x).unwrap())), divisor);
                assert_eq!(weights(x, y, 24), [a, b], "{x} of {x} and {y}");
                assert_eq!(weights(y, x, 24), [a ^ 1, b], "{y} of {x} and {y}");
            }
        }
    }

    #[test]
    fn parity_comes_straight_from_the_sums() {
        for count in 1..=24 {
            assert_eq!(weights(count, count + 1, count), [1, 0]);
            assert_eq!(weights(count + 1, count, count), [0, 1]);
            assert_eq!(weights(0, count + 1, count), [1, 0], "data from P alone");
        }
    }
}
