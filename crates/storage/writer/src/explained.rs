//! Which time it may be, by what a volume knows: the rule of docs/format.md, Maximum age.
//!
//! Superblocks say how late it was when they were written, as far as anything explained it, and
//! how long the machine was up. Time since then is explained by the time since boot, and by
//! nothing else: a head has the time of a clock that may be wrong.

use format::superblock::{Superblock, TimeKnown};
use thiserror::Error;
use units::{Clock, Epoch, NANOS_PER_SECOND, Sequence, Timestamp};

use crate::Recovery;

/// Why packets do not expire by the clock, which says `now`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[expect(missing_docs, reason = "the text of each variant says what its fields are")]
pub enum ClockDoubt {
    /// It says a time that nothing explains.
    #[error(
        "the clock says {now}, and what was recorded last and the time since boot explain no more \
         than {explained}: packets expire as if it were that late; {ASKED}"
    )]
    Ahead { now: Timestamp, explained: Timestamp },
    /// It says an earlier time than the volume knows: one of the two is wrong.
    #[error(
        "the clock says {now}, and by what was recorded before it is {explained} at least: packets \
         recorded by a clock that is behind count as older than they are; nothing recorded up to \
         now is erased before its age has passed since then; {ASKED}"
    )]
    Back { now: Timestamp, explained: Timestamp },
    /// What it says has expired already.
    #[error(
        "packets up to {expired_through} count as expired, and the clock says {now}: what is \
         recorded now is never given out; {ASKED}"
    )]
    Behind { now: Timestamp, expired_through: Timestamp },
}

const ASKED: &str = "if the clock is right, say so once with --clock-is-right";

/// Which time it may be, as far as the volume and the time since boot explain it. One start with a
/// clock that is years ahead would else make everything expire, for good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Explained {
    earliest: Timestamp,
    latest: Timestamp,
    /// When that was.
    boottime_ns: i64,
}

/// How two times since boot belong together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Boot {
    Same,
    Other,
    /// Nobody says whether it is another one.
    Unknown,
}

impl Boot {
    fn of(before: u64, now: u64) -> Self {
        match (before, now) {
            (0, _) | (_, 0) => Self::Unknown,
            _ if before == now => Self::Same,
            _ => Self::Other,
        }
    }
}

impl Explained {
    /// What a mount knows.
    pub(crate) fn of(superblock: &Superblock, recovery: &Recovery, clock: &dyn Clock) -> Self {
        let TimeKnown { explained, boottime_ns, boot, .. } = superblock.time;
        let is_known = superblock.time != TimeKnown::default();
        let last = Self { earliest: explained, latest: explained, boottime_ns };
        let last = if is_known { last } else { Self::by_heads(superblock, recovery) };
        // Heads of the epoch that the superblocks name follow them in the same boot; those of a
        // later one follow them in any.
        let is_later = |&(epoch, up_ns): &(Epoch, i64)| {
            epoch >= superblock.joined_epoch && up_ns > last.boottime_ns
        };
        let now = Boot::of(boot, clock.boot());
        let (last, now) = match recovery.last_boottime.filter(is_later) {
            None => (last, now),
            Some((epoch, up_ns)) if epoch == superblock.joined_epoch => {
                (last.up(up_ns, Boot::Same), now)
            }
            Some((_, up_ns)) => (last.up(up_ns, Boot::Unknown), Boot::Unknown),
        };
        last.up(clock.boottime_ns(), now)
    }

    /// What a volume says that was written by a version without the time in its superblocks: when
    /// packets were last declared expired, or else the newest head.
    fn by_heads(superblock: &Superblock, recovery: &Recovery) -> Self {
        let declared = Some(superblock.expired_through)
            .filter(|through| *through > Timestamp::MIN && superblock.max_age_ns > 0)
            .map(|through| Timestamp(through.0.saturating_add(superblock.max_age_ns)));
        let newest = recovery.last_alive.unwrap_or(superblock.created);
        let boottime_ns = recovery.last_boottime.map_or(i64::MIN, |(_, up_ns)| up_ns);
        let known = declared.map_or(newest, |declared| newest.min(declared));
        Self { earliest: known, latest: known, boottime_ns }
    }

    /// The same when a machine is up for so long. Only in the same boot it is certain how much
    /// later that is. Another machine may have been up for weeks when this was written; if it is
    /// the same machine, all the time since its boot has passed.
    fn up(self, up_ns: i64, boot: Boot) -> Self {
        let between_ns = match self.boottime_ns {
            before_ns @ 0.. if before_ns <= up_ns => Some(up_ns - before_ns),
            _ => None,
        };
        let since_boot_ns = if self.boottime_ns < 0 { 0 } else { up_ns.max(0) };
        let (least_ns, most_ns) = match boot {
            Boot::Same => (between_ns.unwrap_or(0), between_ns.unwrap_or(since_boot_ns)),
            Boot::Other => (0, since_boot_ns),
            Boot::Unknown => (0, between_ns.unwrap_or(since_boot_ns)),
        };
        let after = |time: Timestamp, ns| Timestamp(time.0.saturating_add(ns));
        let (earliest, latest) = (after(self.earliest, least_ns), after(self.latest, most_ns));
        Self { earliest, latest, boottime_ns: up_ns }
    }

    pub(crate) fn now(clock: &dyn Clock) -> Self {
        let now = clock.realtime();
        Self { earliest: now, latest: now, boottime_ns: clock.boottime_ns() }
    }

    /// What keeps the clock from being believed, where packets of this age expire by it.
    pub(crate) fn doubt(self, age_ns: i64, clock: &dyn Clock) -> Option<ClockDoubt> {
        let now = clock.realtime();
        let Self { earliest, latest, .. } = self.up(clock.boottime_ns(), Boot::Same);
        let slack_ns = slack_ns(age_ns);
        if now.0 > latest.0.saturating_add(slack_ns) {
            return Some(ClockDoubt::Ahead { now, explained: latest });
        }
        let is_back = now.0 < earliest.0.saturating_sub(slack_ns);
        is_back.then_some(ClockDoubt::Back { now, explained: earliest })
    }

    /// A superblock that says how late it is. A clock that nothing explains says nothing; one that
    /// is behind is believed, for it makes nothing expire, but what is written by it may be younger
    /// than it seems.
    pub(crate) fn noted(self, own: Superblock, clock: &dyn Clock) -> Superblock {
        let TimeKnown { explained, boottime_ns, boot, .. } = TimeKnown::by(clock);
        let mut time = TimeKnown { explained, boottime_ns, boot, ..own.time };
        match self.doubt(own.max_age_ns, clock) {
            Some(ClockDoubt::Ahead { explained, .. }) => time.explained = explained,
            Some(ClockDoubt::Back { explained, .. }) => {
                let mark = own.mark;
                let last = if mark.is_stopped { mark.acknowledged.sequence } else { mark.until };
                let is_first = time.early_before == Sequence(0);
                time.early_from = if is_first { explained } else { explained.max(time.early_from) };
                time.early_before = last + 1;
            }
            _ => {}
        }
        Superblock { time, ..own }
    }
}

/// How far a clock is believed beyond what explains it: time that the machine was off.
const SLACK_SHARE: i64 = 8;
const SLACK_NS_MIN: i64 = 3600 * NANOS_PER_SECOND;
const SLACK_NS_MAX: i64 = 24 * SLACK_NS_MIN;

/// By how much of an age the clock may be ahead of what explains it.
fn slack_ns(max_age_ns: i64) -> i64 {
    (max_age_ns / SLACK_SHARE).clamp(SLACK_NS_MIN, SLACK_NS_MAX)
}

#[cfg(test)]
mod tests {
    use units::ManualClock;

    use super::*;

    #[test]
    fn heads_and_superblocks_may_say_any_time() {
        let clock = ManualClock::new(Timestamp(5));
        clock.advance_nanos(1000);
        let device = device::Modelled::instant(64 << 20);
        let identity = volume::Identity {
            volume_id: format::head::VolumeId([1; 16]),
            head_key: format::head::HeadKey([2; 32]),
            members: vec![format::superblock::MemberEntry::new([3; 16], String::new())],
            spares: Vec::new(),
            created: Timestamp(0),
        };
        let devices: &mut [Box<dyn device::Device>] = &mut [Box::new(device.clone())];
        let made = volume::create(devices, &volume::CreateOptions::default(), &identity).unwrap();
        let edges = [i64::MIN, -1, 0, 999, 1000, 1001, i64::MAX];
        for time in edges.map(Timestamp) {
            for up_ns in edges {
                let last_boottime = Some((Epoch(1), up_ns));
                let last_alive = Some(time);
                let recovery = Recovery { last_alive, last_boottime, ..Recovery::default() };
                let known = TimeKnown { explained: time, boottime_ns: up_ns, ..made.time };
                for own in [made.clone(), Superblock { time: known, ..made.clone() }] {
                    let explained = Explained::of(&own, &recovery, &clock);
                    for since_ns in [explained.earliest.since(time), explained.latest.since(time)] {
                        assert!((0..=1005).contains(&since_ns), "{time} {up_ns}: {since_ns}");
                    }
                    explained.noted(own, &clock);
                }
            }
        }
    }
}
