//! Disks that are slow, requests that wait for others, and requests that are too small.

use host::DeviceNumber;
use observe::tracepoints::Operation;
use units::ByteSize;

use super::super::tally::{DiskSeen, OperationSeen};
use super::super::watch::IoWatch;
use super::subjects;
use findings::words::{percent, time};
use findings::{Finding, Found, Remedy, Severity};

/// Of fewer, a quantile says nothing: ten of them lie above the 99th percentile.
const ENOUGH: u64 = 1000;
const SLOW_NS: u64 = 100_000_000;
const WAIT_NS: u64 = 1_000_000;
/// So many requests at the same time make each other wait.
const DEEP: u64 = 4;
const SMALL_BYTES: u64 = 16 << 10;

pub(super) fn findings(watch: &IoWatch) -> Vec<Found> {
    let of = |(disk, seen): (&DeviceNumber, &DiskSeen)| {
        let name = watch.device_name(*disk);
        let mut findings = Vec::new();
        for (operation, of) in &seen.operations {
            let Some(verb) = verb(*operation) else { continue };
            let one = OneKind { watch, device: *disk, disk: &name, verb, seen: of, all: seen };
            let found = [one.slow(), one.waits().or_else(|| one.waits_inside()), one.small()]
                .into_iter()
                .flatten();
            let about = |finding: Finding| finding.about(subjects::disk_and_users(watch, *disk));
            findings.extend(found.map(about));
        }
        findings
    };
    watch.disks.iter().flat_map(of).collect()
}

fn verb(operation: Operation) -> Option<&'static str> {
    match operation {
        Operation::Read => Some("reads"),
        Operation::Write => Some("writes"),
        _ => None,
    }
}

/// Times in words, for evidence.
fn times(what: &str, of: &units::Histogram) -> String {
    format!(
        "{what}: half of them {}, 99 % {}, the longest {}",
        time(of.quantile_ns(500)),
        time(of.quantile_ns(990)),
        time(of.max_ns()),
    )
}

/// Reads, or writes, of one disk.
struct OneKind<'w> {
    watch: &'w IoWatch,
    device: DeviceNumber,
    disk: &'w str,
    verb: &'static str,
    seen: &'w OperationSeen,
    /// All kinds of this disk.
    all: &'w DiskSeen,
}

impl OneKind<'_> {
    fn fact(&self, name: &str) -> Option<&String> {
        self.watch.facts.get(&format!("block.{}.queue.{name}", self.disk))
    }

    fn reach(&self, share: u64) -> usize {
        usize::try_from(self.seen.all.count / share.max(1)).unwrap_or(usize::MAX)
    }

    fn slow(&self) -> Option<Finding> {
        let slow_ns = self.seen.device.quantile_ns(990);
        if self.seen.all.count < ENOUGH || slow_ns < SLOW_NS || self.explains_by_depth(slow_ns) {
            return None;
        }
        let (disk, verb) = (self.disk, self.verb);
        Some(Finding {
            kind: "io.slow_disk",
            severity: Severity::Warning,
            reach: self.reach(100),
            what: format!("one in a hundred {verb} of {disk} takes {} or longer", time(slow_ns)),
            evidence: vec![
                times("at the disk", &self.seen.device),
                times("before it", &self.seen.queue),
            ],
            cause: "The disk itself takes the time: these requests had left the kernel.".to_owned(),
            remedies: vec![Remedy::by_hand(
                "see what the disk says of itself, and what it can (wirespool qualify)",
            )],
        })
    }

    /// How long the disk is busy with a request, of all kinds together.
    fn each_ns(&self) -> u64 {
        let count: u64 = self.all.operations.values().map(|of| of.all.count).sum();
        self.watch.busy_ns(self.device) / count.max(1)
    }

    /// Whether a request takes so long because the disk has others at the same time, and does each
    /// of them in a small part of that.
    fn explains_by_depth(&self, ns: u64) -> bool {
        let (each_ns, most) = (self.each_ns(), u64::from(self.all.under_way_max));
        let in_turn_ns = each_ns.saturating_mul(most);
        most >= DEEP && each_ns.saturating_mul(4) < ns && ns <= in_turn_ns.saturating_mul(2)
    }

    /// Requests that wait for each other in the disk, which has taken many of them.
    fn waits_inside(&self) -> Option<Finding> {
        let slow_ns = self.seen.device.quantile_ns(990);
        if self.seen.all.count < ENOUGH || slow_ns < SLOW_NS || !self.explains_by_depth(slow_ns) {
            return None;
        }
        let (disk, verb) = (self.disk, self.verb);
        let (most, each) = (self.all.under_way_max, time(self.each_ns()));
        let mean = self.all.device_ns / self.watch.busy_ns(self.device).max(1);
        Some(Finding {
            kind: "io.queue",
            severity: Severity::Warning,
            reach: self.reach(100),
            what: format!(
                "{verb} of {disk} wait for each other in the disk: one in a hundred takes {} or \
                 longer",
                time(slow_ns)
            ),
            evidence: vec![
                times("at the disk", &self.seen.device),
                format!("it had {most} requests at the same time at most, {mean} in the mean"),
                format!("and did one every {each}"),
                format!("most requests to {disk} are of {}", self.most()),
            ],
            cause: "More is asked of the disk than it does: the kernel hands it many requests at \
                    the same time, and each waits there until those before it are done."
                .to_owned(),
            remedies: vec![
                Remedy::by_hand("fewer requests at the same time, or less to read and write"),
                Remedy::by_hand("a faster disk, or several"),
            ],
        })
    }

    fn waits(&self) -> Option<Finding> {
        let (wait_ns, device_ns) =
            (self.seen.queue.quantile_ns(500), self.seen.device.quantile_ns(500));
        if self.seen.queue.count() < ENOUGH || wait_ns < WAIT_NS || wait_ns < device_ns {
            return None;
        }
        let (disk, verb) = (self.disk, self.verb);
        let mut evidence =
            vec![times("waiting", &self.seen.queue), times("at the disk", &self.seen.device)];
        for name in ["scheduler", "nr_requests", "wbt_lat_usec"] {
            let fact = self.fact(name);
            evidence.extend(fact.map(|value| format!("/sys/block/{disk}/queue/{name}: {value}")));
        }
        Some(Finding {
            kind: "io.queue",
            severity: Severity::Warning,
            reach: self.reach(2),
            what: format!("{verb} of {disk} wait longer in the kernel than at the disk"),
            evidence,
            cause:
                "More is asked of the disk than it takes at the same time: requests wait in the \
                    scheduler's queue."
                    .to_owned(),
            remedies: vec![
                Remedy::by_hand("fewer requests at the same time, or larger ones"),
                Remedy::by_hand(
                    "another scheduler, where one fits better (wirespool diagnose host)",
                ),
            ],
        })
    }

    /// Who asks most of the disk.
    fn most(&self) -> String {
        let most = self.all.by.iter().max_by_key(|(_, part)| part.all.count);
        most.map_or_else(
            || "nobody".to_owned(),
            |(process, part)| format!("{}: {}", self.watch.process_label(*process), part.all.count),
        )
    }

    fn small(&self) -> Option<Finding> {
        let OperationSeen { all, sequential, .. } = self.seen;
        let mean = all.bytes / all.count.max(1);
        let is_small = all.count >= 5 * ENOUGH && mean <= SMALL_BYTES;
        if !is_small || sequential * 10 < all.count * 8 {
            return None;
        }
        let (disk, verb) = (self.disk, self.verb);
        Some(Finding {
            kind: "io.small_requests",
            severity: Severity::Note,
            reach: self.reach(1),
            what: format!("{verb} of {disk} follow each other in small requests"),
            evidence: vec![
                format!(
                    "{} of {} begin where another one ended, {} each in the mean",
                    percent(*sequential, all.count),
                    all.count,
                    ByteSize(mean)
                ),
                format!("most requests to {disk} are of {}", self.most()),
            ],
            cause: "Each costs a turn to the disk and back; one larger request would cost one."
                .to_owned(),
            remedies: vec![Remedy::by_hand(
                "larger requests, or several at the same time, so that the kernel can join them",
            )],
        })
    }
}
