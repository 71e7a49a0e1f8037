//! Bursts in words: what arrived beside what was written, and whether a larger pool helps.

use recording::{Burst, Pool, worst};
use units::ByteSize;

use findings::Remedy;
use findings::words::plural;

/// What arrived beside what was written, in the worst burst.
pub(super) fn evidence(bursts: &[Burst]) -> Option<String> {
    let burst = worst(bursts)?;
    let lasted = seconds(burst.ns());
    let rates = match (burst.offered_bytes_per_s(), burst.written_bytes_per_s) {
        (Some(offered), Some(written)) => {
            format!("offered {}, written {} for {lasted}", rate(offered), rate(written))
        }
        _ => format!("{} more than was written, for {lasted}", rate(burst.lost_bytes_per_s()?)),
    };
    let others = match bursts.len() {
        1 => String::new(),
        count => format!(", the worst of {}", plural(count, "burst")),
    };
    Some(format!("{rates}, from {} on{others}", burst.from))
}

/// `1.20 GB/s`, `800 MB/s`: powers of 1000, as rates of disks are given.
fn rate(bytes_per_s: u64) -> String {
    match bytes_per_s {
        0..1_000_000 => format!("{} kB/s", bytes_per_s / 1000),
        1_000_000..1_000_000_000 => format!("{} MB/s", bytes_per_s / 1_000_000),
        _ => {
            let hundredths = bytes_per_s / 10_000_000;
            format!("{}.{:02} GB/s", hundredths / 100, hundredths % 100)
        }
    }
}

/// `0.4 s`, `14.0 s`.
fn seconds(ns: u64) -> String {
    format!("{}.{} s", ns / 1_000_000_000, ns / 100_000_000 % 10)
}

/// Why packets were lost, as far as the pool has to do with it.
pub(super) fn why(pool: Pool) -> String {
    match pool {
        Pool::Helps { .. } => "More arrived for a while than they wrote: a burst, or a stall of \
                               a disk. A pool holds what comes meanwhile, or it loses."
            .to_owned(),
        Pool::TooMuch { offered_bytes_per_s, guaranteed_bytes_per_s } => format!(
            "Taken together {} arrived, heads and parity included, and the disks guarantee {}. \
             No pool helps: a larger one only is full later.",
            rate(offered_bytes_per_s),
            rate(guaranteed_bytes_per_s)
        ),
        Pool::TooLong { ns, more_bytes } => format!(
            "For {} more arrived than they wrote, {} in all. No pool bridges that: a larger \
             one only is full later.",
            seconds(ns),
            ByteSize(more_bytes)
        ),
        Pool::Unknown => "A pool holds as much as arrives while the longest stall lasts, or it \
                          loses."
            .to_owned(),
    }
}

/// What helps.
pub(super) fn remedies(pool: Pool) -> Vec<Remedy> {
    let qualify = Remedy {
        what: "see what the disks guarantee, and with which pool".to_owned(),
        now: vec!["wirespool qualify VOLUME".to_owned()],
        for_good: Vec::new(),
    };
    let alone = Remedy::by_hand("let nothing else write to these disks");
    match pool {
        Pool::Helps { more_bytes } => {
            let larger = format!(
                "a pool that is larger by {} bridges the worst of it: record --pool",
                ByteSize(more_bytes)
            );
            vec![Remedy::by_hand(&larger), qualify, alone]
        }
        Pool::Unknown => vec![
            qualify,
            Remedy::by_hand("a larger pool, where bursts or stalls are short: record --pool 2G"),
            alone,
        ],
        Pool::TooMuch { .. } | Pool::TooLong { .. } => vec![
            Remedy {
                what: "more or faster disks: see how many it takes".to_owned(),
                now: vec!["wirespool qualify plan --rate RATE --disk REPORT.json".to_owned()],
                for_good: Vec::new(),
            },
            Remedy::by_hand("leave out what is not needed: record --class"),
            alone,
        ],
    }
}

#[cfg(test)]
mod tests {
    use events::{Disks, Headroom};
    use format::directory::{Gap, GapCause};
    use recording::{Account, Loss, Progress, Whole, bursts};
    use units::Timestamp;

    use super::super::{Recording, State, diagnose};
    use super::*;
    use units::QueueId;

    const S: i64 = 1_000_000_000;

    fn gap((from, to): (i64, i64), bytes: Option<u64>) -> Gap {
        let (from, to) = (Timestamp(from), Timestamp(to));
        let cause = GapCause::WriterDrops;
        Gap { cause, interface: None, packets: Some(1), bytes, from, to }
    }

    fn loss(queue: QueueId, times: (i64, i64), stored: [u64; 2]) -> Loss {
        let [stored_bytes_before, stored_bytes_behind] = stored;
        Loss {
            interface: "eth0".to_owned(),
            queue,
            gap: gap(times, None),
            pool_free: 0,
            unfinished_slots: 1,
            stored_bytes_before,
            stored_bytes_behind,
        }
    }

    /// An hour in which 110 packets were offered, of disks that guarantee 0.9 GB/s.
    fn hour(member_bytes: u64) -> Progress {
        let mut headroom = Headroom::default();
        headroom.guaranteed_bytes_per_s = 900_000_000;
        headroom.offered_bytes_per_s_max = 1_200_000_000;
        Progress {
            total: Account { offered: 110, stored: 100, ..Account::default() },
            elapsed_ns: 3600 * S,
            member_bytes,
            disks: Disks { headroom: Some(headroom), ..Disks::default() },
            ..Progress::default()
        }
    }

    /// 14 s with 0.4 GB/s too many, in 14 gaps.
    fn burst() -> Vec<Gap> {
        (0..14).map(|second| gap((second * S, (second + 1) * S), Some(400_000_000))).collect()
    }

    #[test]
    fn what_was_offered_stands_beside_what_was_written() {
        // Two queues, 400 MB/s each.
        let losses = QueueId::first(2).flat_map(|queue| {
            (0..14_i64).map(move |second| {
                let stored = 400_000_000 * u64::try_from(second).unwrap();
                loss(queue, (second * S, (second + 1) * S), [stored, stored + 400_000_000])
            })
        });
        let now = hour(3_600_000_000);
        let state = State { losses: losses.collect(), now, ..State::default() };
        let found =
            diagnose(&Recording { gaps: burst(), state: Some(state), ..Recording::default() });
        let finding = found.findings.iter().find(|it| it.kind == "recorder.writer_drops").unwrap();
        let said = &finding.evidence[1];
        assert!(said.starts_with("offered 1.20 GB/s, written 800 MB/s for 14"), "{said}");
        assert!(finding.remedies[0].what.starts_with("a pool that is larger by 5.21 GiB"));
    }

    #[test]
    fn without_the_recorder_the_gaps_say_what_was_too_much() {
        let mut gaps = burst();
        gaps.push(gap((100 * S, 100 * S), Some(5)));
        let gaps: Vec<&Gap> = gaps.iter().collect();
        let said = evidence(&bursts(&gaps, &[])).unwrap();
        assert!(said.starts_with("400 MB/s more than was written, for 14"), "{said}");
        assert!(said.ends_with("the worst of 2 bursts"), "{said}");
        assert_eq!(evidence(&bursts(&[&gap((0, 5), Some(9))], &[])), None, "no rate of a moment");
        assert_eq!(
            recording::pool(&bursts(&[&gap((0, S), None)], &[]), Whole::default()),
            Pool::Unknown
        );
    }

    #[test]
    fn where_no_pool_helps_none_is_advised() {
        let (offered_bytes_per_s, guaranteed_bytes_per_s) = (1_100_000_000, 900_000_000);
        let much = Pool::TooMuch { offered_bytes_per_s, guaranteed_bytes_per_s };
        let long = Pool::TooLong { ns: 100_000_000_000, more_bytes: 40_000_000_000 };
        assert!(why(much).contains("No pool helps") && why(long).contains("37.2 GiB"));
        for pool in [much, long] {
            assert!(remedies(pool).iter().all(|remedy| !remedy.what.contains("pool")));
        }
    }

    #[test]
    fn what_arrived_as_a_rule_is_what_was_sent_and_what_was_lost() {
        // 1.1 GB/s arrive for the whole hour, and 0.9 are guaranteed.
        let state = State { now: hour(3_600_000_000_000), ..State::default() };
        let found =
            diagnose(&Recording { gaps: burst(), state: Some(state), ..Recording::default() });
        let finding = found.findings.iter().find(|it| it.kind == "recorder.writer_drops").unwrap();
        let said = "Taken together 1.10 GB/s arrived, heads and parity included, and the disks \
                    guarantee 900 MB/s.";
        assert!(finding.cause.contains(said), "{}", finding.cause);
    }
}
