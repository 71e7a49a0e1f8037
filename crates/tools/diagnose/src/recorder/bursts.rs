//! Stretches in which more arrived than the disks wrote, and whether a larger pool bridges them.

use format::directory::Gap;
use units::number::{per_second, sum};
use units::{ByteSize, Timestamp};

use super::State;
use crate::finding::Remedy;
use crate::words::plural;

/// Losses so near to each other are of one burst: a column that comes free ends a gap.
const NEAR_NS: i64 = 2_000_000_000;
/// A rate of less time is none.
const RATE_NS: u64 = 100_000_000;
/// What a pool may be larger by, at most: qualification looks at pools of up to 16 GiB.
const POOL_MORE_MAX: u64 = 16 << 30;
/// A burst is for good when it lasts for so many hundredths of the recording.
const LASTING: u64 = 50;

/// A stretch with losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Burst {
    from: Timestamp,
    to: Timestamp,
    /// Bytes of the packets that were lost; `None` where a gap does not say it.
    lost_bytes: Option<u64>,
    /// Bytes a second that were written meanwhile, where the recorder says it.
    written_bytes_per_s: Option<u64>,
}

impl Burst {
    fn ns(&self) -> u64 {
        u64::try_from(self.to.0.saturating_sub(self.from.0)).unwrap_or(0)
    }

    /// Bytes a second that were lost; `None` of too short a time.
    fn lost_bytes_per_s(&self) -> Option<u64> {
        let is_long = self.ns() >= RATE_NS;
        self.lost_bytes.filter(|_| is_long).map(|bytes| per_second(bytes, self.ns()))
    }

    /// Bytes a second that arrived: what was written, and what was lost.
    fn offered_bytes_per_s(&self) -> Option<u64> {
        let lost = self.lost_bytes_per_s()?;
        Some(self.written_bytes_per_s?.saturating_add(lost))
    }
}

/// The bursts of gaps of one cause, in order of time.
pub(super) fn of(gaps: &[&Gap], state: Option<&State>) -> Vec<Burst> {
    let mut gaps: Vec<&Gap> = gaps.to_vec();
    gaps.sort_by_key(|gap| gap.from);
    let mut bursts: Vec<Burst> = Vec::new();
    for gap in gaps {
        match bursts.last_mut() {
            Some(last) if gap.from.0.saturating_sub(last.to.0) <= NEAR_NS => {
                last.to = last.to.max(gap.to);
                last.lost_bytes =
                    last.lost_bytes.zip(gap.bytes).map(|(sum, more)| sum.saturating_add(more));
            }
            _ => bursts.push(Burst {
                from: gap.from,
                to: gap.to,
                lost_bytes: gap.bytes,
                written_bytes_per_s: None,
            }),
        }
    }
    for burst in &mut bursts {
        burst.written_bytes_per_s = state.and_then(|state| written(state, burst));
    }
    bursts
}

/// What all queues that lost something stored from their first loss in a burst to their last. Of
/// many losses the recorder keeps the first ones: their rate stands for the rest.
fn written(state: &State, burst: &Burst) -> Option<u64> {
    let is_within = |(from, to): (Timestamp, Timestamp)| from >= burst.from && to <= burst.to;
    let losses = || state.losses.iter().filter(|loss| !loss.is_kernel && is_within(loss.times));
    let mut queues: Vec<u64> = losses().map(|loss| loss.queue).collect();
    queues.sort_unstable();
    queues.dedup();
    let of_queue = |queue: u64| {
        let of = || losses().filter(move |loss| loss.queue == queue);
        let stored = || of().filter_map(|loss| loss.stored_bytes);
        let first = stored().map(|[before, _]| before).min()?;
        let last = stored().map(|[_, behind]| behind).max()?;
        let (from, to) = (of().map(|it| it.times.0).min()?, of().map(|it| it.times.1).max()?);
        let ns = u64::try_from(to.0.saturating_sub(from.0)).ok().filter(|ns| *ns >= RATE_NS)?;
        Some(per_second(last.saturating_sub(first), ns))
    };
    let rates: Vec<u64> = queues.into_iter().filter_map(of_queue).collect();
    (!rates.is_empty()).then(|| sum(rates))
}

/// The one that lost most.
fn worst(bursts: &[Burst]) -> Option<&Burst> {
    bursts.iter().max_by_key(|burst| (burst.lost_bytes, burst.ns()))
}

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

/// Whether a larger pool helps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pool {
    /// It bridges the worst burst when it is larger by so many bytes.
    Helps {
        /// Bytes on top of what it has.
        more_bytes: u64,
    },
    /// As a rule more arrives than the disks guarantee: any pool fills.
    TooMuch {
        /// Bytes a second that arrived, the whole recording taken together.
        offered_bytes_per_s: u64,
        /// Bytes a second that all members guarantee.
        guaranteed_bytes_per_s: u64,
    },
    /// A burst is longer than what any pool bridges.
    TooLong {
        /// How long it lasted.
        ns: u64,
        /// Bytes that were too many.
        more_bytes: u64,
    },
    /// Neither bytes nor rates are known.
    Unknown,
}

/// What can be said of a larger pool.
pub(super) fn pool(bursts: &[Burst], state: Option<&State>) -> Pool {
    let mean = state.and_then(mean_bytes_per_s);
    let guaranteed = state.and_then(|state| state.headroom).map(|headroom| headroom.guaranteed);
    if let Some((offered_bytes_per_s, guaranteed_bytes_per_s)) = mean.zip(guaranteed)
        && offered_bytes_per_s > guaranteed_bytes_per_s
    {
        return Pool::TooMuch { offered_bytes_per_s, guaranteed_bytes_per_s };
    }
    let Some((ns, more_bytes)) = worst(bursts).and_then(|it| Some((it.ns(), it.lost_bytes?)))
    else {
        return Pool::Unknown;
    };
    let elapsed_ns = state.map_or(0, |state| u64::try_from(state.elapsed_ns).unwrap_or(0));
    let is_lasting =
        elapsed_ns > 0 && u128::from(ns) * 100 >= u128::from(elapsed_ns) * u128::from(LASTING);
    if more_bytes > POOL_MORE_MAX || is_lasting {
        return Pool::TooLong { ns, more_bytes };
    }
    Pool::Helps { more_bytes }
}

/// Bytes a second that all members would have been sent if nothing had been lost.
fn mean_bytes_per_s(state: &State) -> Option<u64> {
    let ns = u64::try_from(state.elapsed_ns).ok().filter(|ns| *ns >= RATE_NS)?;
    let sent = u128::from(state.member_bytes) * u128::from(state.offered);
    let offered = sent.checked_div(u128::from(state.stored))?;
    Some(per_second(u64::try_from(offered).unwrap_or(u64::MAX), ns))
}

impl Pool {
    /// Why packets were lost, as far as the pool has to do with it.
    pub(super) fn why(&self) -> String {
        match *self {
            Self::Helps { .. } => {
                "More arrived for a while than they wrote: a burst, or a stall of \
                                   a disk. A pool holds what comes meanwhile, or it loses."
                    .to_owned()
            }
            Self::TooMuch { offered_bytes_per_s, guaranteed_bytes_per_s } => format!(
                "Taken together {} arrived, heads and parity included, and the disks guarantee {}. \
                 No pool helps: a larger one only is full later.",
                rate(offered_bytes_per_s),
                rate(guaranteed_bytes_per_s)
            ),
            Self::TooLong { ns, more_bytes } => format!(
                "For {} more arrived than they wrote, {} in all. No pool bridges that: a larger \
                 one only is full later.",
                seconds(ns),
                ByteSize(more_bytes)
            ),
            Self::Unknown => {
                "A pool holds as much as arrives while the longest stall lasts, or it \
                              loses."
                    .to_owned()
            }
        }
    }

    /// What helps.
    pub(super) fn remedies(&self) -> Vec<Remedy> {
        let qualify = Remedy {
            what: "see what the disks guarantee, and with which pool".to_owned(),
            now: vec!["wirespool qualify VOLUME".to_owned()],
            for_good: Vec::new(),
        };
        let alone = Remedy::by_hand("let nothing else write to these disks");
        match *self {
            Self::Helps { more_bytes } => {
                let larger = format!(
                    "a pool that is larger by {} bridges the worst of it: record --pool",
                    ByteSize(more_bytes)
                );
                vec![Remedy::by_hand(&larger), qualify, alone]
            }
            Self::Unknown => vec![
                qualify,
                Remedy::by_hand(
                    "a larger pool, where bursts or stalls are short: record --pool 2G",
                ),
                alone,
            ],
            Self::TooMuch { .. } | Self::TooLong { .. } => vec![
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
}

#[cfg(test)]
mod tests {
    use format::directory::GapCause;

    use super::super::{Headroom, Loss, Recording, diagnose};
    use super::*;

    const S: i64 = 1_000_000_000;

    fn gap((from, to): (i64, i64), bytes: Option<u64>) -> Gap {
        let (from, to) = (Timestamp(from), Timestamp(to));
        let cause = GapCause::WriterDrops;
        Gap { cause, interface: None, packets: Some(1), bytes, from, to }
    }

    fn loss(queue: u64, (from, to): (i64, i64), stored: [u64; 2]) -> Loss {
        Loss {
            is_kernel: false,
            packets: Some(1),
            pool_free: 0,
            unfinished_slots: 1,
            queue,
            times: (Timestamp(from), Timestamp(to)),
            stored_bytes: Some(stored),
        }
    }

    /// 14 s with 0.4 GB/s too many, in 14 gaps.
    fn burst() -> Vec<Gap> {
        (0..14).map(|second| gap((second * S, (second + 1) * S), Some(400_000_000))).collect()
    }

    #[test]
    fn what_was_offered_stands_beside_what_was_written() {
        // Two queues, 400 MB/s each.
        let losses = (0..2).flat_map(|queue| {
            (0..14_i64).map(move |second| {
                let stored = 400_000_000 * u64::try_from(second).unwrap();
                loss(queue, (second * S, (second + 1) * S), [stored, stored + 400_000_000])
            })
        });
        let state = State {
            losses: losses.collect(),
            elapsed_ns: 3600 * S,
            offered: 110,
            stored: 100,
            member_bytes: 3_600_000_000,
            headroom: Some(Headroom { guaranteed: 900_000_000, offered_max: 1_200_000_000 }),
            ..State::default()
        };
        let found =
            diagnose(&Recording { gaps: burst(), state: Some(state), ..Recording::default() });
        let finding = found.findings.iter().find(|it| it.kind == "recorder.writer_drops").unwrap();
        let said = &finding.evidence[1];
        assert!(said.starts_with("offered 1.20 GB/s, written 800 MB/s for 14"), "{said}");
        assert!(finding.remedies[0].what.starts_with("a pool that is larger by 5.22 GiB"));
    }

    #[test]
    fn without_the_recorder_the_gaps_say_what_was_too_much() {
        let mut gaps = burst();
        gaps.push(gap((100 * S, 100 * S), Some(5)));
        let gaps: Vec<&Gap> = gaps.iter().collect();
        let said = evidence(&of(&gaps, None)).unwrap();
        assert!(said.starts_with("400 MB/s more than was written, for 14"), "{said}");
        assert!(said.ends_with("the worst of 2 bursts"), "{said}");
        assert_eq!(evidence(&of(&[&gap((0, 5), Some(9))], None)), None, "no rate of a moment");
        assert_eq!(pool(&of(&[&gap((0, S), None)], None), None), Pool::Unknown);
    }

    #[test]
    fn a_pool_is_advised_only_where_it_helps() {
        let gaps = burst();
        let gaps: Vec<&Gap> = gaps.iter().collect();
        let of_state = |state: &State| pool(&of(&gaps, Some(state)), Some(state));
        let calm = State { elapsed_ns: 3600 * S, ..State::default() };
        assert_eq!(of_state(&calm), Pool::Helps { more_bytes: 5_600_000_000 });
        // 1.1 GB/s arrive for the whole hour, and 0.9 are guaranteed.
        let much = State {
            offered: 110,
            stored: 100,
            member_bytes: 3_600_000_000_000,
            headroom: Some(Headroom { guaranteed: 900_000_000, offered_max: 1_200_000_000 }),
            ..calm.clone()
        };
        let found = of_state(&much);
        assert!(
            matches!(found, Pool::TooMuch { offered_bytes_per_s: 1_100_000_000, .. }),
            "{found:?}"
        );
        assert!(found.why().contains("No pool helps"), "{}", found.why());
        assert!(found.remedies().iter().all(|remedy| !remedy.what.contains("pool")));
        let short = State { elapsed_ns: 20 * S, ..calm };
        assert!(matches!(of_state(&short), Pool::TooLong { .. }));
        let endless = gap((0, 100 * S), Some(40_000_000_000));
        let found = pool(&of(&[&endless], None), None);
        assert!(matches!(found, Pool::TooLong { .. }) && found.why().contains("37.3 GiB"));
    }
}
