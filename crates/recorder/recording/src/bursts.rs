//! Stretches in which more arrived than the disks wrote, and whether a larger pool bridges them.

use format::directory::{Gap, GapCause};
use units::number::{per_second, sum};
use units::{QueueId, Timestamp};

use crate::account::Loss;
use crate::progress::Progress;
use crate::state::State;

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
pub struct Burst {
    /// The first packet that was lost.
    pub from: Timestamp,
    /// The last one.
    pub to: Timestamp,
    /// Bytes of the packets that were lost; `None` where a gap does not say it.
    pub lost_bytes: Option<u64>,
    /// Bytes a second that were written meanwhile, where the recorder says it.
    pub written_bytes_per_s: Option<u64>,
}

impl Burst {
    /// How long it lasted, in nanoseconds.
    pub fn ns(&self) -> u64 {
        u64::try_from(self.to.0.saturating_sub(self.from.0)).unwrap_or(0)
    }

    /// Bytes a second that were lost; `None` of too short a time.
    pub fn lost_bytes_per_s(&self) -> Option<u64> {
        let is_long = self.ns() >= RATE_NS;
        self.lost_bytes.filter(|_| is_long).map(|bytes| per_second(bytes, self.ns()))
    }

    /// Bytes a second that arrived: what was written, and what was lost.
    pub fn offered_bytes_per_s(&self) -> Option<u64> {
        let lost = self.lost_bytes_per_s()?;
        Some(self.written_bytes_per_s?.saturating_add(lost))
    }
}

/// The bursts of gaps of one cause, in order of time.
pub fn bursts(gaps: &[&Gap], losses: &[Loss]) -> Vec<Burst> {
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
        burst.written_bytes_per_s = written(losses, burst);
    }
    bursts
}

/// What all queues that lost something stored from their first loss in a burst to their last. Of
/// many losses the recorder keeps the first ones: their rate stands for the rest.
fn written(all: &[Loss], burst: &Burst) -> Option<u64> {
    let is_within = |gap: &Gap| gap.from >= burst.from && gap.to <= burst.to;
    let is_of_writer = |gap: &Gap| gap.cause != GapCause::KernelDrops;
    let losses = || all.iter().filter(|it| is_of_writer(&it.gap) && is_within(&it.gap));
    let mut queues: Vec<QueueId> = losses().map(|loss| loss.queue).collect();
    queues.sort_unstable();
    queues.dedup();
    let of_queue = |queue: QueueId| {
        let of = || losses().filter(move |loss| loss.queue == queue);
        let first = of().map(|loss| loss.stored_bytes_before).min()?;
        let last = of().map(|loss| loss.stored_bytes_behind).max()?;
        let (from, to) = (of().map(|it| it.gap.from).min()?, of().map(|it| it.gap.to).max()?);
        let ns = u64::try_from(to.0.saturating_sub(from.0)).ok().filter(|ns| *ns >= RATE_NS)?;
        Some(per_second(last.saturating_sub(first), ns))
    };
    let rates: Vec<u64> = queues.into_iter().filter_map(of_queue).collect();
    (!rates.is_empty()).then(|| sum(rates))
}

/// The burst that lost most.
pub fn worst(bursts: &[Burst]) -> Option<&Burst> {
    bursts.iter().max_by_key(|burst| (burst.lost_bytes, burst.ns()))
}

/// Whether a larger pool helps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pool {
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

/// What is known of the recording as a whole.
#[derive(Clone, Copy, Debug, Default)]
pub struct Whole {
    /// How long it lasted; 0 where that is not known.
    pub elapsed_ns: u64,
    /// Bytes a second that all members would have been sent if nothing had been lost.
    pub offered_bytes_per_s: Option<u64>,
    /// Bytes a second that all members guarantee.
    pub guaranteed_bytes_per_s: Option<u64>,
}

impl Whole {
    /// As a recorder says it.
    pub fn of(state: &State) -> Self {
        let Progress { elapsed_ns, member_bytes, total, disks, .. } = &state.now;
        let elapsed_ns = u64::try_from(*elapsed_ns).unwrap_or(0);
        let sent = u128::from(*member_bytes) * u128::from(total.offered);
        let offered = sent.checked_div(u128::from(total.stored)).filter(|_| elapsed_ns > 0);
        let offered = offered.map(|bytes| u64::try_from(bytes).unwrap_or(u64::MAX));
        Self {
            elapsed_ns,
            offered_bytes_per_s: offered.map(|bytes| per_second(bytes, elapsed_ns)),
            guaranteed_bytes_per_s: disks.headroom.as_ref().map(|it| it.guaranteed_bytes_per_s),
        }
    }
}

/// What can be said of a larger pool.
pub fn pool(bursts: &[Burst], whole: Whole) -> Pool {
    if let Some((offered_bytes_per_s, guaranteed_bytes_per_s)) =
        whole.offered_bytes_per_s.zip(whole.guaranteed_bytes_per_s)
        && offered_bytes_per_s > guaranteed_bytes_per_s
    {
        return Pool::TooMuch { offered_bytes_per_s, guaranteed_bytes_per_s };
    }
    let Some((ns, more_bytes)) = worst(bursts).and_then(|it| Some((it.ns(), it.lost_bytes?)))
    else {
        return Pool::Unknown;
    };
    let is_lasting = whole.elapsed_ns > 0
        && u128::from(ns) * 100 >= u128::from(whole.elapsed_ns) * u128::from(LASTING);
    if more_bytes > POOL_MORE_MAX || is_lasting {
        return Pool::TooLong { ns, more_bytes };
    }
    Pool::Helps { more_bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn gap((from, to): (i64, i64), bytes: Option<u64>) -> Gap {
        let (from, to) = (Timestamp(from), Timestamp(to));
        let cause = GapCause::WriterDrops;
        Gap { cause, interface: None, packets: Some(1), bytes, from, to }
    }

    /// 14 s with 0.4 GB/s too many, in 14 gaps.
    fn burst() -> Vec<Gap> {
        (0..14).map(|second| gap((second * S, (second + 1) * S), Some(400_000_000))).collect()
    }

    #[test]
    fn a_pool_is_advised_only_where_it_helps() {
        let gaps = burst();
        let gaps: Vec<&Gap> = gaps.iter().collect();
        let of_whole = |whole: Whole| pool(&bursts(&gaps, &[]), whole);
        let calm = Whole { elapsed_ns: 3_600_000_000_000, ..Whole::default() };
        assert_eq!(of_whole(calm), Pool::Helps { more_bytes: 5_600_000_000 });
        let much = Whole {
            offered_bytes_per_s: Some(1_100_000_000),
            guaranteed_bytes_per_s: Some(900_000_000),
            ..calm
        };
        let found = of_whole(much);
        assert!(matches!(found, Pool::TooMuch { .. }), "{found:?}");
        let short = Whole { elapsed_ns: 20_000_000_000, ..calm };
        assert!(matches!(of_whole(short), Pool::TooLong { .. }));
        let endless = gap((0, 100 * S), Some(40_000_000_000));
        let found = pool(&bursts(&[&endless], &[]), Whole::default());
        assert!(matches!(found, Pool::TooLong { .. }));
    }
}
