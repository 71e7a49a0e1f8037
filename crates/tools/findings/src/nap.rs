//! Waiting that can be ended early.

use core::ops::ControlFlow;

use units::{NANOS_PER_SECOND, Sleep};

/// Between two questions whether to go on.
const NAP_NS: i64 = NANOS_PER_SECOND / 10;

/// Sleeps for so long, or until `go_on` says no, which is asked ten times a second; gives the
/// nanoseconds that it was.
pub fn nap(clock: &dyn Sleep, duration_ns: i64, go_on: &mut dyn FnMut() -> ControlFlow<()>) -> u64 {
    let begun_ns = clock.boottime_ns();
    let end_ns = begun_ns.saturating_add(duration_ns);
    let mut now_ns = begun_ns;
    while now_ns < end_ns && go_on().is_continue() {
        clock.sleep_until(now_ns.saturating_add(NAP_NS).min(end_ns));
        now_ns = clock.boottime_ns();
    }
    units::number::between(begun_ns, now_ns)
}

#[cfg(test)]
mod tests {
    use units::{ManualClock, Timestamp};

    use super::*;

    #[test]
    fn a_nap_is_as_long_as_it_should_be_or_ends_early() {
        let clock = ManualClock::new(Timestamp(0));
        let mut asked = 0;
        let mut go_on = |most| {
            asked += 1;
            if asked > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        assert_eq!(nap(&clock, 250_000_000, &mut || go_on(9)), 250_000_000);
        assert_eq!(asked, 3);
        asked = 0;
        let mut go_on = || {
            asked += 1;
            if asked > 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        assert_eq!(nap(&clock, i64::MAX, &mut go_on), 200_000_000);
        assert_eq!(nap(&clock, 0, &mut || unreachable!("it is over")), 0);
    }
}
