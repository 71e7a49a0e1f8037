//! Which time it may be, by what a volume knows.

use format::superblock::Superblock;
use units::{Clock, NANOS_PER_SECOND, Timestamp};

use crate::Recovery;

/// The latest moment that now may be, as far as the volume and the time since boot explain it. One
/// start with a clock that is years ahead would else make everything expire, for good.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Explained {
    realtime: Timestamp,
    /// When that was.
    boottime_ns: i64,
}

impl Explained {
    /// What a mount knows: when packets were last declared expired, or else the newest head; and
    /// how long it is since then, or since boot. The clock of a run that was wrong is in its heads,
    /// but not in what has expired.
    pub(crate) fn of(superblock: &Superblock, recovery: &Recovery, clock: &dyn Clock) -> Self {
        let Some(newest) = recovery.last_alive else {
            // Nothing is there yet that could expire, and the volume may have waited for long.
            let latest = Timestamp(superblock.created.0.saturating_add(FRESH_NS_MAX));
            let now = Self::now(clock);
            return Self { realtime: now.realtime.min(latest), ..now };
        };
        let expired = Some(superblock.expired_through)
            .filter(|through| *through > Timestamp::MIN && superblock.max_age_ns > 0);
        let declared = expired.map(|through| through.0.saturating_add(superblock.max_age_ns));
        let last = declared.map_or(newest, |declared| newest.min(Timestamp(declared)));
        let boottime_ns = clock.boottime_ns();
        // Another boot may have been longer ago, which nothing here knows.
        let since_ns = match recovery.last_boottime_ns.filter(|before_ns| *before_ns >= 0) {
            Some(before_ns) if before_ns <= boottime_ns => boottime_ns - before_ns,
            Some(_) => boottime_ns,
            None => 0,
        };
        Self { realtime: Timestamp(last.0.saturating_add(since_ns)), boottime_ns }
    }

    pub(super) fn now(clock: &dyn Clock) -> Self {
        Self { realtime: clock.realtime(), boottime_ns: clock.boottime_ns() }
    }

    pub(super) fn at(self, clock: &dyn Clock) -> Timestamp {
        let since_ns = clock.boottime_ns().saturating_sub(self.boottime_ns);
        Timestamp(self.realtime.0.saturating_add(since_ns))
    }
}

/// How long after it was made a volume may be recorded into for the first time.
const FRESH_NS_MAX: i64 = 366 * SLACK_NS_MAX;

/// How far a clock is believed beyond what explains it: time that the machine was off.
const SLACK_SHARE: i64 = 8;
const SLACK_NS_MIN: i64 = 3600 * NANOS_PER_SECOND;
const SLACK_NS_MAX: i64 = 24 * SLACK_NS_MIN;

/// By how much of an age the clock may be ahead of what explains it.
pub(super) fn slack_ns(max_age_ns: i64) -> i64 {
    (max_age_ns / SLACK_SHARE).clamp(SLACK_NS_MIN, SLACK_NS_MAX)
}

#[cfg(test)]
mod tests {
    use units::ManualClock;

    use super::*;

    #[test]
    fn heads_may_say_any_time() {
        let clock = ManualClock::new(Timestamp(5));
        clock.advance_nanos(1000);
        let device = device::Modelled::instant(64 << 20);
        let identity = crate::Identity {
            volume_id: format::head::VolumeId([1; 16]),
            head_key: format::head::HeadKey([2; 32]),
            members: vec![format::superblock::MemberEntry::new([3; 16], String::new())],
            spares: Vec::new(),
            created: Timestamp(0),
        };
        let devices: &mut [Box<dyn device::Device>] = &mut [Box::new(device.clone())];
        let made = crate::create(devices, &crate::CreateOptions::default(), &identity).unwrap();
        let edges = [i64::MIN, -1, 0, 999, 1000, 1001, i64::MAX];
        for time in edges {
            for last_boottime_ns in edges.map(Some).into_iter().chain([None]) {
                let last_alive = Some(Timestamp(time));
                let recovery = Recovery { last_alive, last_boottime_ns, ..Recovery::default() };
                let at = Explained::of(&made, &recovery, &clock).at(&clock);
                let since_ns = at.since(Timestamp(time));
                assert!((0..=1005).contains(&since_ns), "{time} {last_boottime_ns:?}: {since_ns}");
            }
        }
    }
}
