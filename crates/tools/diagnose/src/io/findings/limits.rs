//! Processes that wait because a limit of their group holds them back.

use observe::cgroups::{DiskLimit, Unit};
use observe::tracepoints::Operation;
use units::ByteSize;

use super::super::held::{GroupSeen, Wait, moved_of};
use super::super::watch::{IoWatch, Tracing};
use super::subjects;
use findings::words::{percent, time};
use findings::{Finding, Found, Remedy, Severity, Subject};

/// Hundredths of the watch that a process waits at least.
const WAITS: u64 = 10;
/// Hundredths of the limit that a group comes to at least: the kernel counts in slices of a tenth
/// of a second, so that it never comes to all of it.
const NEAR: u64 = 80;

pub(super) fn findings(watch: &IoWatch) -> Vec<Found> {
    let at = |group: &'_ GroupSeen| -> Vec<Found> {
        // The process that waits most stands for the others.
        let most = group.waits.iter().max_by_key(|(_, wait)| wait.ns);
        let of = |(process, wait): (&u32, _)| {
            let limits = group.limited.limits.iter();
            let waiting = || group.waits.keys().map(|process| Subject::Process(*process));
            let found = |limit: &DiskLimit| {
                let of_disk = subjects::disk(watch, limit.device).into_iter();
                let at = At { watch, group, limit, process: *process, wait };
                Some(at.finding()?.about(of_disk.chain(waiting())))
            };
            limits.filter_map(found).collect()
        };
        most.map(of).unwrap_or_default()
    };
    watch.groups.iter().flat_map(at).collect()
}

/// A group, one of its limits, and a process that waits.
struct At<'w> {
    watch: &'w IoWatch,
    group: &'w GroupSeen,
    limit: &'w DiskLimit,
    process: u32,
    wait: &'w Wait,
}

impl At<'_> {
    fn finding(&self) -> Option<Finding> {
        let waits = self.hundredths(self.wait.ns);
        let is_near = self.rate() * 100 >= self.limit.per_second.saturating_mul(NEAR);
        // The queue and the disk may be what it waits for, whatever the limit is.
        if waits < WAITS || !is_near || self.at_disk_ns().saturating_mul(2) > self.wait.ns {
            return None;
        }
        let disk = self.watch.device_name(self.limit.device);
        let verb = if self.limit.is_write { "writes to" } else { "reads from" };
        let severity = if waits >= 50 { Severity::Problem } else { Severity::Warning };
        Some(Finding {
            kind: "io.cgroup_limit",
            severity,
            reach: usize::try_from(self.requests()).unwrap_or(usize::MAX),
            what: format!(
                "{} waits for the limit of its cgroup {}: {} of {verb} {disk}",
                self.watch.process_label(self.process),
                self.group.limited.name,
                self.amount(self.limit.per_second),
            ),
            evidence: self.evidence(),
            cause: "The kernel holds requests back, before they come to the queue of the disk, \
                    once the group has had what its limit allows: the disk could do more, and its \
                    own times do not show the wait."
                .to_owned(),
            remedies: self.remedies(),
        })
    }

    fn hundredths(&self, ns: u64) -> u64 {
        let all = u64::try_from(self.watch.ns).unwrap_or(0).max(1);
        ns.saturating_mul(100) / all
    }

    /// What the group moved a second while the process waited.
    fn rate(&self) -> u64 {
        units::number::per_second(moved_of(&self.wait.moved, self.limit), self.wait.ns)
    }

    /// `4.8 MiB/s`, or `200 requests/s`.
    fn amount(&self, a_second: u64) -> String {
        match self.limit.unit {
            Unit::Bytes => format!("{}/s", ByteSize(a_second)),
            Unit::Requests => format!("{a_second} requests/s"),
        }
    }

    /// How long the queue and the disk had requests of the process; where these were not seen one
    /// by one, how long the disk had any at all.
    fn at_disk_ns(&self) -> u64 {
        match self.watch.tracing {
            Tracing::Seen { .. } => {
                self.watch.processes.get(&self.process).map_or(0, |seen| seen.total_ns)
            }
            Tracing::Refused(_) => self.watch.busy_ns(self.limit.device),
        }
    }

    /// Requests of the kind that is limited, of the whole group in that time.
    fn requests(&self) -> u64 {
        let requests = DiskLimit { unit: Unit::Requests, ..self.limit.clone() };
        moved_of(&self.wait.moved, &requests).max(1)
    }

    fn evidence(&self) -> Vec<String> {
        let (limit, group) = (self.limit, self.group);
        let mut evidence = vec![
            format!(
                "{}/{}: {} for {}; it had {} while it waited, {} of that",
                group.limited.folder.display(),
                limit.file,
                limit.per_second,
                self.watch.device_name(limit.device),
                self.amount(self.rate()),
                percent(self.rate(), limit.per_second),
            ),
            format!(
                "{} waited {} of {:.1} s; the queue and the disk had requests for {} of it",
                self.watch.process_label(self.process),
                time(self.wait.ns),
                self.watch.seconds(),
                time(self.at_disk_ns()),
            ),
        ];
        let requests = self.requests();
        if requests > 1 {
            let (all, each) = (time(self.wait.ns), time(self.wait.ns / requests));
            evidence.push(format!("{requests} requests in {all}: one every {each}"));
        }
        let held = group.held_of(limit);
        if held.count > 0 {
            evidence.push(format!(
                "{} requests, {}, were held back, and sent off later by a worker of the kernel",
                held.count,
                ByteSize(held.bytes),
            ));
        }
        if let Some(stalled_us) = group.stalled_us.filter(|stalled| *stalled > 0) {
            let stalled = time(stalled_us.saturating_mul(1000));
            evidence.push(format!("io.pressure of the group: all of it stood still for {stalled}"));
        }
        evidence.push(self.disk());
        evidence
    }

    /// What the disk itself did, which tells that it is not the bottleneck.
    fn disk(&self) -> String {
        let name = self.watch.device_name(self.limit.device);
        let operation = if self.limit.is_write { Operation::Write } else { Operation::Read };
        let seen = self.watch.disks.get(&self.limit.device);
        if let Some(seen) = seen.and_then(|seen| seen.operations.get(&operation)) {
            let [half, most] = [500, 990].map(|permille| time(seen.device.quantile_ns(permille)));
            return format!("at {name} itself: half of the requests {half}, 99 % {most}");
        }
        let busy = time(self.watch.busy_ns(self.limit.device));
        format!("{name} had anything to do for {busy} of the watch")
    }

    fn remedies(&self) -> Vec<Remedy> {
        let DiskLimit { file, unlimited, unit, .. } = self.limit;
        let place = self.group.limited.folder.join(file);
        let last = self.group.limited.name.rsplit('/').next().unwrap_or_default();
        let is_unit = [".service", ".slice", ".scope"].iter().any(|kind| last.ends_with(kind));
        let property = match (self.limit.is_write, unit) {
            (false, Unit::Bytes) => "IOReadBandwidthMax",
            (true, Unit::Bytes) => "IOWriteBandwidthMax",
            (false, Unit::Requests) => "IOReadIOPSMax",
            (true, Unit::Requests) => "IOWriteIOPSMax",
        };
        let for_good = is_unit.then(|| format!("systemctl set-property {last} {property}="));
        let lift = Remedy {
            what: "a higher limit, or none: who runs the group has set it (systemd, a container)"
                .to_owned(),
            now: vec![format!("echo '{unlimited}' > '{}'", place.display())],
            for_good: for_good.into_iter().collect(),
        };
        let larger = (*unit == Unit::Requests).then(|| {
            Remedy::by_hand("fewer and larger requests: the limit counts them, not their bytes")
        });
        let keep = Remedy::by_hand(
            "where the limit is meant: less to read and write; another disk does not help",
        );
        [lift].into_iter().chain(larger).chain([keep]).collect()
    }
}
