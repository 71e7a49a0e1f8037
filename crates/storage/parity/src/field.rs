//! The field GF(2^8) of Linux md's RAID 6: bytes as polynomials over GF(2), modulo
//! x^8 + x^4 + x^3 + x^2 + 1 (0x11d), of which 2 is a generator.
//!
//! Single bytes, bit by bit: what the coefficients of a reconstruction are computed with, and the
//! definition that every path of [`crate::Codec`] is tested against.

/// What remains of x^8.
pub(crate) const REDUCTION: u8 = 0x1d;

/// Sum of `a`, `2a`, `4a`, ... over the bits of `b`.
pub(crate) const fn multiply(a: u8, b: u8) -> u8 {
    let (mut sum, mut a, mut b) = (0, a, b);
    while b != 0 {
        if b & 1 != 0 {
            sum ^= a;
        }
        a = (a << 1) ^ if a & 0x80 == 0 { 0 } else { REDUCTION };
        b >>= 1;
    }
    sum
}

/// `base` to the power `exponent`.
pub(crate) const fn power(base: u8, exponent: u8) -> u8 {
    let (mut product, mut step) = (1, 0);
    while step < exponent {
        product = multiply(product, base);
        step += 1;
    }
    product
}

/// What gives 1 when multiplied by `a`: the 255th power of every element but 0 is 1.
pub(crate) const fn inverse(a: u8) -> u8 {
    assert!(a != 0, "zero has no inverse");
    power(a, 254)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_powers_of_two_are_those_of_linux() {
        // Beginning and end of raid6_gfexp (lib/raid6/tables.c, made by mktables.c).
        let first = [
            0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x1d, 0x3a, 0x74, 0xe8, 0xcd, 0x87,
            0x13, 0x26, 0x4c, 0x98, 0x2d, 0x5a, 0xb4, 0x75, 0xea, 0xc9,
        ];
        for (exponent, value) in (0..).zip(first) {
            assert_eq!(power(2, exponent), value, "2^{exponent}");
        }
        let last = [0xd8, 0xad, 0x47, 0x8e, 0x01];
        for (exponent, value) in (251..=255).zip(last) {
            assert_eq!(power(2, exponent), value, "2^{exponent}");
        }
    }

    #[test]
    fn the_inverses_are_those_of_linux() {
        // Beginning of raid6_gfinv, without that of 0.
        let first = [
            0x01, 0x8e, 0xf4, 0x47, 0xa7, 0x7a, 0xba, 0xad, 0x9d, 0xdd, 0x98, 0x3d, 0xaa, 0x5d,
            0x96,
        ];
        for (element, value) in (1..).zip(first) {
            assert_eq!(inverse(element), value, "1/{element}");
        }
        assert!((1..=255).all(|a| multiply(a, inverse(a)) == 1));
    }

    #[test]
    fn two_generates_every_element_but_zero() {
        let mut elements: Vec<u8> = (0..255).map(|exponent| power(2, exponent)).collect();
        elements.sort_unstable();
        assert_eq!(elements, (1..=255).collect::<Vec<u8>>());
    }
}
