//! The machine's time zone, as `TZ` or /etc/localtime says.

#![expect(unsafe_code, reason = "localtime_r has no safe wrapper")]

use core::mem::MaybeUninit;

/// Seconds that the machine's clocks are ahead of UTC at `unix_seconds`; 0 where that is not known.
pub fn local_offset_s(unix_seconds: i64) -> i32 {
    let mut broken_down = MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are to memory of this function, and zeros are a valid `tm`.
    let known =
        unsafe { !libc::localtime_r(&raw const unix_seconds, broken_down.as_mut_ptr()).is_null() };
    if !known {
        return 0;
    }
    // SAFETY: zeros are a valid `tm`, and so is what the call wrote.
    let offset = unsafe { broken_down.assume_init() }.tm_gmtoff;
    i32::try_from(offset).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_less_than_a_day_and_nothing_for_times_that_are_none() {
        for second in [0, 1_700_000_000, -3_000_000_000] {
            assert!(local_offset_s(second).abs() < 86_400);
        }
        assert_eq!(local_offset_s(i64::MAX), 0);
    }
}
