//! A processor quota of a cgroup that was used up: what shows it, what it does, and what helps.

use std::path::Path;

use findings::Remedy;

/// Periods that say anything.
const PERIODS: u64 = 5;
/// Hundredths of the periods in which a group was stopped at least.
const STOPPED: u64 = 10;

/// What a group did in the periods of a watch.
pub(crate) struct UsedUp<'a> {
    /// The file that the quota stands in.
    pub(crate) file: &'a Path,
    /// What is written there to be without it.
    pub(crate) unlimited: &'a str,
    /// So much in each period.
    pub(crate) quota_us: u64,
    /// Length of a period.
    pub(crate) period_us: u64,
    /// Periods in which the group ran.
    pub(crate) periods: u64,
    /// Of these, those in which it was stopped.
    pub(crate) stopped: u64,
}

/// What the kernel does.
pub(crate) const CAUSE: &str = "The kernel stops a group until the next period once it has used \
                                up its quota, whether processors are idle or not";

impl UsedUp<'_> {
    /// Often enough to matter.
    pub(crate) fn is_often(&self) -> bool {
        self.periods >= PERIODS
            && self.stopped.saturating_mul(100) >= self.periods.saturating_mul(STOPPED)
    }

    pub(crate) fn evidence(&self) -> [String; 2] {
        let Self { file, quota_us, period_us, periods, stopped, .. } = self;
        [
            format!("{}: {quota_us} us in {period_us} us", file.display()),
            format!("it had used that up in {stopped} of {periods} periods, and stood still then"),
        ]
    }

    pub(crate) fn remedies(&self) -> Vec<Remedy> {
        vec![
            Remedy {
                what: "a higher quota, or none: who runs the group has set it (a container's \
                       limit, CPUQuota= of systemd)"
                    .to_owned(),
                now: vec![format!("echo {} > '{}'", self.unlimited, self.file.display())],
                for_good: Vec::new(),
            },
            Remedy::by_hand("fewer threads at once: all of them use the same quota up"),
        ]
    }
}
