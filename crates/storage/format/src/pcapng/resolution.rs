//! Time units of an interface: `if_tsresol` and `if_tsoffset` (section 4.2, "Interface Description
//! Block Options").

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// How the 64-bit timestamps of an interface become nanoseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resolution {
    scale: Scale,
    offset_ns: i128,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scale {
    /// Units of one nanosecond or more.
    Multiply(u64),
    /// Decimal units below one nanosecond; zero divides everything away.
    Divide(u64),
    /// Units of 2^-n seconds.
    Shift(u8),
}

impl Default for Resolution {
    /// Microseconds, the resolution of interfaces without `if_tsresol`.
    fn default() -> Self {
        Self { scale: Scale::Multiply(1000), offset_ns: 0 }
    }
}

impl Resolution {
    /// Nanoseconds, as in all that wirespool writes.
    pub const NANOSECONDS: Self = Self { scale: Scale::Multiply(1), offset_ns: 0 };

    /// From the byte of `if_tsresol` (top bit: a negative power of 2, else of 10) and `if_tsoffset`
    /// in seconds.
    pub fn new(tsresol: u8, tsoffset_s: i64) -> Self {
        let exponent = tsresol & 0x7f;
        let scale = if tsresol & 0x80 != 0 {
            Scale::Shift(exponent)
        } else if exponent <= 9 {
            Scale::Multiply(10_u64.pow(u32::from(9 - exponent)))
        } else {
            // Beyond 10^-28 no 64-bit count reaches a nanosecond.
            Scale::Divide(10_u64.checked_pow(u32::from(exponent - 9)).unwrap_or(0))
        };
        Self { scale, offset_ns: i128::from(tsoffset_s) * i128::from(NANOS_PER_SECOND) }
    }

    /// Nanoseconds since 1970 of a timestamp; what is finer is rounded down, what does not fit
    /// saturates.
    #[inline]
    pub fn to_nanos(self, units: u64) -> i64 {
        let nanos = match self.scale {
            // 2^64 seconds are less than 2^94 nanoseconds.
            Scale::Multiply(factor) => i128::from(units) * i128::from(factor),
            Scale::Divide(0) => 0,
            Scale::Divide(divisor) => i128::from(units / divisor),
            Scale::Shift(bits) => (i128::from(units) * i128::from(NANOS_PER_SECOND)) >> bits,
        };
        let sum = nanos + self.offset_ns;
        i64::try_from(sum).unwrap_or(if sum < 0 { i64::MIN } else { i64::MAX })
    }
}
