//! What is missing, and whose fault that is.

use std::collections::BTreeMap;

use format::directory::{Gap, GapCause};
use recording::{Loss, State, Whole};
use units::Timestamp;
use units::number::{permille, sum};

use super::bursts;
use super::seen::Recording;
use findings::words::{percent, plural};
use findings::{Finding, Remedy, Severity};

pub(super) fn findings(recording: &Recording) -> Vec<Finding> {
    let mut by_cause: BTreeMap<(GapCause, bool), Vec<&Gap>> = BTreeMap::new();
    for gap in &recording.gaps {
        // What a card loses is counted; what passed while its interface was away is not.
        let is_away = gap.cause == GapCause::InterfaceDrops && gap.packets.is_none();
        by_cause.entry((gap.cause, is_away)).or_default().push(gap);
    }
    let state = recording.state.as_ref();
    by_cause.into_iter().map(|(cause, gaps)| finding(cause, &gaps, state)).collect()
}

fn finding(cause: (GapCause, bool), gaps: &[&Gap], state: Option<&State>) -> Finding {
    let packets = sum(gaps.iter().filter_map(|gap| gap.packets));
    let is_counted = gaps.iter().all(|gap| gap.packets.is_some());
    let count = match (is_counted, packets) {
        (true, packets) => packets.to_string(),
        (false, 0) => "an unknown number of".to_owned(),
        (false, packets) => format!("at least {packets}"),
    };
    let stretches = plural(gaps.len(), "stretch").replace("stretchs", "stretches");
    let from = gaps.iter().map(|gap| gap.from).min().unwrap_or_default();
    let to = gaps.iter().map(|gap| gap.to).max().unwrap_or_default();
    // What an import that was killed had read may have any time.
    let when = if from == Timestamp::MIN {
        "of any time".to_owned()
    } else {
        format!("from {from} to {to}")
    };
    let mut evidence = vec![format!("gaps {when}, in {stretches}")];
    let Words { kind, what, why, remedies } = words(cause, gaps, state, &mut evidence);
    Finding {
        kind,
        severity: Severity::Problem,
        reach: usize::try_from(packets).unwrap_or(usize::MAX),
        what: format!("{count} packets {what}"),
        evidence,
        cause: why,
        remedies,
    }
}

struct Words {
    kind: &'static str,
    what: &'static str,
    why: String,
    remedies: Vec<Remedy>,
}

fn words(
    (cause, is_away): (GapCause, bool),
    gaps: &[&Gap],
    state: Option<&State>,
    evidence: &mut Vec<String>,
) -> Words {
    match cause {
        GapCause::KernelDrops => kernel_drops(state, evidence),
        GapCause::WriterDrops => writer_drops(gaps, state, evidence),
        GapCause::InterfaceDrops if is_away => Words {
            kind: "recorder.interface_away",
            what: "may have passed while an interface was down, or not there",
            why:
                "The interface was set down, lost its link's other end, was removed, or was moved \
                  to another namespace. What passed meanwhile came to no recorder, and nothing \
                  counted it."
                    .to_owned(),
            remedies: vec![Remedy {
                what: "see who sets it down, and when".to_owned(),
                now: vec!["ip -timestamp monitor link".to_owned()],
                for_good: Vec::new(),
            }],
        },
        GapCause::InterfaceDrops => Words {
            kind: "recorder.interface_drops",
            what: "were lost in the network card or its driver",
            why: "The ring of the card was full: it is short, or interrupts came too late. The \
                  recorder never saw them."
                .to_owned(),
            remedies: vec![
                Remedy {
                    what: "a longer ring of the card".to_owned(),
                    now: vec!["ethtool -G INTERFACE rx 4096".to_owned()],
                    for_good: Vec::new(),
                },
                Remedy::by_hand("more queues of the card, each on a processor of its own"),
            ],
        },
        GapCause::Crash => Words {
            kind: "recorder.crash",
            what: "were not recorded: the recorder ended without a stop",
            why: "It was killed, or the machine lost power. What was acknowledged is there; what \
                  passed until the next start is not."
                .to_owned(),
            remedies: vec![Remedy::by_hand(
                "stop it by SIGTERM, and let the service manager start it again at once",
            )],
        },
        GapCause::Damage => Words {
            kind: "recorder.damage",
            what: "were stored and cannot be read any more",
            why: "Rows of a member do not have their checksum, and too few others are left to \
                  compute them from."
                .to_owned(),
            remedies: vec![Remedy {
                what: "repair what can be repaired, and see which member it is".to_owned(),
                now: vec!["wirespool scrub VOLUME".to_owned()],
                for_good: Vec::new(),
            }],
        },
    }
}

/// Free columns at the losses of one kind, least and most.
fn free_columns(losses: &[Loss], is_kernel: bool) -> Option<(usize, usize)> {
    let is_of = |loss: &&Loss| (loss.gap.cause == GapCause::KernelDrops) == is_kernel;
    let free = || losses.iter().filter(is_of).map(|loss| loss.pool_free);
    Some((free().min()?, free().max()?))
}

fn kernel_drops(state: Option<&State>, evidence: &mut Vec<String>) -> Words {
    let mut remedies = vec![
        Remedy::by_hand("several threads, each on a processor of its own: record --queues auto"),
        Remedy::by_hand("a larger ring of the kernel: record --kernel-ring 256M"),
    ];
    let mut why = "The ring between kernel and recorder was full: the recorder had too little \
                   processor time. That is not the disk."
        .to_owned();
    if let Some(state) = state {
        if let Some((least, most)) = free_columns(&state.losses, true) {
            evidence.push(format!(
                "{least} to {most} of {} columns of the pool were free at that time",
                state.now.pool_columns
            ));
        }
        for interface in &state.now.interfaces {
            let drops = || interface.queues.iter().map(|queue| queue.kernel_drops);
            let (drops, worst) = (sum(drops()), drops().max().unwrap_or(0));
            if interface.queues.len() > 1 && drops > 0 && permille(worst, drops) >= 900 {
                evidence.push(format!(
                    "{}: one of {} queues has {} of the drops",
                    interface.name,
                    interface.queues.len(),
                    percent(worst, drops)
                ));
                "One of several threads has nearly all of the load: one large session, or \
                 addresses that the hash does not distinguish, go to one queue."
                    .clone_into(&mut why);
                remedies.push(Remedy::by_hand(
                    "leave out what is not needed of the large session: record --class",
                ));
            }
        }
    }
    let what = "were dropped by the kernel before the recorder took them";
    Words { kind: "recorder.kernel_drops", what, why, remedies }
}

fn writer_drops(gaps: &[&Gap], state: Option<&State>, evidence: &mut Vec<String>) -> Words {
    let seen = recording::bursts(gaps, state.map_or(&[], |state| &state.losses));
    evidence.extend(bursts::evidence(&seen));
    if let Some(state) = state {
        if let Some((least, most)) = free_columns(&state.losses, false) {
            let slots = state.losses.iter().map(|loss| loss.unfinished_slots).max().unwrap_or(0);
            evidence.push(format!(
                "{least} to {most} of {} columns of the pool were free, at most {slots} stripes \
                 were being written",
                state.now.pool_columns
            ));
        }
        let slowest = state.now.disks.devices.iter().max_by_key(|device| device.max_ns);
        if let Some(device) = slowest {
            let ms = device.max_ns / 1_000_000;
            evidence.push(format!("longest write {ms} ms, on {}", device.path));
        }
    }
    let pool = recording::pool(&seen, state.map(Whole::of).unwrap_or_default());
    Words {
        kind: "recorder.writer_drops",
        what: "were taken, and the pool was exhausted: the disks were too slow",
        why: format!("All columns of the pool waited for the disks. {}", bursts::why(pool)),
        remedies: bursts::remedies(pool),
    }
}

#[cfg(test)]
mod tests {
    use recording::{Account, Progress, QueueAccount};
    use units::Timestamp;

    use super::super::diagnose;
    use super::*;
    use units::QueueId;

    fn gap(cause: GapCause, packets: Option<u64>) -> Gap {
        let (from, to) = (Timestamp(0), Timestamp(2_000_000_000));
        Gap { cause, interface: None, packets, bytes: None, from, to }
    }

    #[test]
    fn each_cause_is_named_with_what_was_free() {
        let gaps = vec![
            gap(GapCause::WriterDrops, Some(7)),
            gap(GapCause::WriterDrops, Some(8)),
            gap(GapCause::KernelDrops, None),
        ];
        let loss = |cause, pool_free| Loss {
            interface: "eth0".to_owned(),
            queue: QueueId(0),
            gap: gap(cause, Some(1)),
            pool_free,
            unfinished_slots: 3,
            stored_bytes_before: 0,
            stored_bytes_behind: 0,
        };
        let losses = vec![loss(GapCause::WriterDrops, 0), loss(GapCause::KernelDrops, 90)];
        let now = Progress { pool_columns: 128, ..Progress::default() };
        let state = State { losses, now, ..State::default() };
        let found = diagnose(&Recording { gaps, state: Some(state), ..Recording::default() });
        let kinds: Vec<&str> = found.findings.iter().map(|finding| finding.kind).collect();
        assert_eq!(kinds, ["recorder.writer_drops", "recorder.kernel_drops"]);
        assert!(found.findings[0].what.starts_with("15 packets were taken"), "{found:?}");
        assert!(found.findings[0].evidence[0].ends_with("in 2 stretches"), "{found:?}");
        assert!(found.findings[0].evidence[1].contains("0 to 0 of 128"), "{found:?}");
        assert!(found.findings[1].what.starts_with("an unknown number of packets"), "{found:?}");
        assert!(found.findings[1].evidence[1].contains("90 to 90 of 128"), "{found:?}");
    }

    #[test]
    fn one_queue_with_all_of_the_load_is_told() {
        let queue = |kernel_drops| QueueAccount { kernel_drops, ..QueueAccount::default() };
        let interface = Account {
            name: "eth0".to_owned(),
            queues: vec![queue(99), queue(1)],
            ..Account::default()
        };
        let now = Progress { interfaces: vec![interface], ..Progress::default() };
        let state = State { now, ..State::default() };
        let gaps = vec![gap(GapCause::KernelDrops, Some(100))];
        let found = diagnose(&Recording { gaps, state: Some(state), ..Recording::default() });
        assert!(found.findings[0].evidence[1].contains("one of 2 queues has 99 %"), "{found:?}");
        assert!(found.findings[0].cause.contains("One of several threads"), "{found:?}");
    }

    #[test]
    fn a_whole_recording_gives_nothing() {
        let found = diagnose(&Recording { state: Some(State::default()), ..Recording::default() });
        assert_eq!((found.findings, found.unseen), (vec![], vec![]));
        let found = diagnose(&Recording::default());
        assert_eq!(found.unseen.len(), 1);
    }
}
