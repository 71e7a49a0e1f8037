//! Changes of the members while a recording goes on, and where they are reported.

use core::error::Error as _;
use core::time::Duration;
use std::sync::Arc;

use events::{EventKind, Events};
use recording::{Change, Comeback, MemberChange};
use sandbox::{Child, Launcher, Program, Request};
use units::MemberId;
use volume::Membership;
use writer::Recovery;

use crate::options::Options;

/// How long the end of a recording waits for each command that was started.
const COMMAND_PATIENCE: Duration = Duration::from_secs(10);

/// Where a member is, as the volume knows it.
fn path_of(membership: &Membership, member: MemberId) -> String {
    let entry = membership.superblock().members.get(member.place());
    entry.map(|entry| entry.path.clone()).unwrap_or_default()
}

/// What is not as it should be when a recording begins.
pub(crate) fn at_start(membership: &Membership, recovery: &Recovery) -> Vec<MemberChange> {
    let change = |member: MemberId| {
        let failed = recovery.failed.iter().find(|failed| failed.member == member);
        let what = if let Some(failed) = failed {
            let reason = &failed.reason;
            let reason = format!("it failed while the volume was opened: {reason}");
            Change::Expelled { reason, comeback: Comeback::ByItself }
        } else if membership.is_vacant(member) {
            Change::Vacant
        } else if membership.of(member).is_none() {
            Change::Absent
        } else if membership.gap(member).end == membership.superblock().joined_start {
            Change::Returned
        } else {
            return None;
        };
        Some(MemberChange { member, path: path_of(membership, member), what })
    };
    membership.numbers().filter_map(change).collect()
}

/// Changes that are kept: a disk may come and go for years.
const CHANGES_MAX: usize = 1000;

/// What became of members: the first and the newest changes, and how many there were between.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    kept: Vec<MemberChange>,
    left_out: usize,
}

impl Changes {
    pub(crate) fn new(first: Vec<MemberChange>) -> Self {
        Self { kept: first, left_out: 0 }
    }

    /// Something became of a member.
    pub(crate) fn note_change(&mut self, membership: &Membership, member: MemberId, what: Change) {
        self.add(MemberChange { member, path: path_of(membership, member), what });
    }

    fn add(&mut self, change: MemberChange) {
        if self.kept.len() >= CHANGES_MAX {
            self.kept.remove(CHANGES_MAX / 2);
            self.left_out = self.left_out.saturating_add(1);
        }
        self.kept.push(change);
    }

    fn count(&self) -> usize {
        self.kept.len().saturating_add(self.left_out)
    }

    /// Those behind the first `told`, as far as they are kept.
    fn behind(&self, told: usize) -> &[MemberChange] {
        let new = self.count().saturating_sub(told);
        self.kept.get(self.kept.len().saturating_sub(new)..).unwrap_or_default()
    }

    /// Those that are kept, in the order of time.
    pub(crate) fn into_kept(self) -> Vec<MemberChange> {
        self.kept
    }

    /// What is missing between them.
    pub(crate) fn note(&self) -> Option<String> {
        let (left_out, half) = (self.left_out, CHANGES_MAX / 2);
        (left_out > 0)
            .then(|| format!("{left_out} changes of members behind the first {half} are left out"))
    }
}

/// Tells each change once: to the system log, to the stream of events, and to a command of the
/// user's.
#[derive(Debug)]
pub(crate) struct Notifier {
    command: Option<String>,
    /// The system log.
    log: fn(&str),
    volume: String,
    /// Starts the commands; without it this process does.
    launcher: Option<Arc<Launcher>>,
    /// Commands that have not ended, as far as is known.
    running: Vec<Child>,
    told: usize,
}

impl Notifier {
    pub(crate) fn new(options: &Options, log: fn(&str)) -> Self {
        Self {
            log,
            command: options.on_member_change.clone(),
            volume: options.volume.display().to_string(),
            launcher: options.launcher.clone(),
            running: Vec::new(),
            told: 0,
        }
    }

    /// Reports the new changes; gives those that could not be reported.
    pub(crate) fn tell(&mut self, changes: &Changes, events: &Events) -> Vec<String> {
        let new = changes.behind(self.told);
        self.told = changes.count();
        let mut failures = Vec::new();
        for change in new {
            (self.log)(&format!("{}: {change}", self.volume));
            let subject = format!("{} {}", change.member, change.what.word());
            events.say(EventKind::Member, &subject, format!("members: {change}"));
            if let Some(command) = self.command.clone()
                && let Err(error) = self.start(command, change)
            {
                let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
                failures.push(format!("the command of --on-member-change: {error}{cause}"));
            }
        }
        failures
    }

    /// Starts the command and does not wait for it.
    fn start(&mut self, command: String, change: &MemberChange) -> Result<(), sandbox::Error> {
        let program = Program::Shell(command.into());
        let environment = [
            ("WIRESPOOL_VOLUME", self.volume.clone()),
            ("WIRESPOOL_MEMBER", change.member.to_string()),
            ("WIRESPOOL_MEMBER_PATH", change.path.clone()),
            ("WIRESPOOL_CHANGE", change.what.word().to_owned()),
            ("WIRESPOOL_TEXT", change.to_string()),
        ];
        let request = Request { environment: &environment, ..Request::new(&program, &[]) };
        let child = match &self.launcher {
            Some(launcher) => launcher.spawn(&request),
            None => sandbox::spawn(&request),
        };
        self.running.retain_mut(|child| child.is_running().unwrap_or(false));
        self.running.push(child?);
        Ok(())
    }

    /// Waits for the commands, which take their time; gives a line for those that still run then.
    pub(crate) fn finish(mut self) -> Option<String> {
        let still = |child: &mut Child| matches!(child.wait_timeout(COMMAND_PATIENCE), Ok(None));
        let running =
            self.running.iter_mut().filter_map(|child| still(child).then_some(())).count();
        let seconds = COMMAND_PATIENCE.as_secs();
        (running > 0).then(|| {
            format!("{running} commands of --on-member-change still run after {seconds} s")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_comes_and_goes_for_years_is_told_of_and_fills_no_memory() {
        let change = |number: usize| MemberChange {
            member: MemberId(1),
            path: number.to_string(),
            what: Change::Returned,
        };
        let mut changes = Changes::new(vec![change(0)]);
        let mut told = 0;
        for number in 1..10 * CHANGES_MAX {
            assert_eq!(changes.behind(told), [change(number - 1)]);
            told = changes.count();
            assert!(changes.behind(told).is_empty());
            changes.add(change(number));
        }
        assert!(changes.note().unwrap().starts_with("9000 changes"));
        let kept = changes.into_kept();
        assert_eq!((kept.len(), &kept[0]), (CHANGES_MAX, &change(0)));
        assert_eq!(kept.last(), Some(&change(10 * CHANGES_MAX - 1)));
    }
}
