//! Rare states that a campaign must come to: one that does not has tested less than it says.

use crate::orders::Kind;
use crate::sum::Sum;

/// A state by the name of its counter, and in how many histories it is reached once at least.
type Probe = (&'static str, u64);

/// Reached ten times as often, as measured, so that chance alone hardly ever fails a campaign.
const OF_VOLUME: &[Probe] = &[
    ("crashes behind a failed flush", 30),
    ("crashes in a mount", 2),
    ("crashes in a resilver", 20),
    ("crashes in a scrub", 30),
    ("crashes while stopping", 25),
    ("encrypted bodies", 5),
    ("fault: a flush fails and forgets", 35),
    ("fault: a flush fails and forgets, without parity", 25),
    ("fault: a member fails in a mount", 20),
    ("fault: a member hangs in a mount", 20),
    ("fault: a piece is lost", 16),
    ("fault: a piece of another slot", 16),
    ("fault: all superblock copies gone", 350),
    ("fault: honest member loses a write", 20),
    ("fault: honest member misdirects a write", 80),
    ("fault: members lost for good", 350),
    ("fault: rollback of a member", 30),
    ("in flight: gone after a mount", 2),
    ("in flight: kept by a mount", 2),
    ("in flight: seen under an unknown number", 90),
    ("members taken back while recording", 35),
    ("mount: members left out", 20),
    ("mount: slots voided", 2),
    ("mount: stripes completed", 2),
    ("mounts after a stop", 10),
    ("mounts refused with too few members", 15),
    ("paused writers that stop", 30),
    ("readers before a mount", 3),
    ("readers beside writes that show row by row", 3),
    ("readers beyond the budget", 125),
    ("reads behind damage", 150),
    ("resilvers that lack something", 140),
    ("resilvers that made all whole", 10),
    ("rivals refused", 3),
    ("scrub: pieces repaired", 10),
    ("slots erased", 2),
    ("verify: no head is left", 20),
];

const OF_RECORDER: &[Probe] = &[
    ("recordings judged to the packet", 10),
    ("recordings refused", 40),
    ("mounts behind a crash", 10),
    ("recorder: a disk fails", 60),
    ("recorder: a disk hangs", 65),
    ("recorder: a disk is pulled", 60),
    ("recorder: a disk is put back", 170),
    ("recorder: a flush fails and forgets", 110),
    ("recorder: a flush fails and forgets, without parity", 90),
    ("recorder: names swapped", 15),
    ("recorder: one write or flush fails", 65),
    ("recorder: questions answered", 2),
    ("recorder: segments found", 2),
    ("recorder: starts without a maximum age between", 40),
    ("recorder: members given up", 90),
    ("recorder: rivals refused", 15),
    ("recorder: power cuts behind a crash", 17),
    ("recorder: power cuts behind a mount", 30),
    ("recorder: power cuts behind an end in order", 26),
    ("recorder: taken over while it stood still", 70),
    ("recorder: damage without an index", 60),
    ("recorder: damage found while indexing", 100),
    ("recorder: pieces read by rows", 2),
    ("crashes in verbs", 36),
    ("verbs: grow", 32),
    ("verbs: replace", 48),
    ("verbs: restore superblocks", 65),
    ("verbs: restored as current", 100),
    ("verbs: salvage", 33),
];

const OF_SEARCH: &[Probe] = &[
    ("search: W of 64", 4),
    ("search: holes close before the newest stripe", 20),
    ("search: holes of more than a tenth of the ring", 17),
    ("search: holes over the newest stripe", 25),
    ("search: on the first lap", 8),
    ("search: rings of 2^23 slots and more", 50),
    ("search: slots of 512 rows", 35),
];

/// A state that was reached too rarely.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TooRare {
    pub(crate) name: &'static str,
    pub(crate) count: u64,
    pub(crate) least: u64,
}

/// Of a campaign of this size.
pub(crate) fn missing(of: Kind, sum: &Sum) -> Vec<TooRare> {
    let probes = match of {
        Kind::Volume => OF_VOLUME,
        Kind::Recorder => OF_RECORDER,
        Kind::Search => OF_SEARCH,
    };
    let too_rare = |&(name, histories): &Probe| {
        let (count, least) = (sum.counters.get(name), sum.seeds / histories);
        (count < least).then_some(TooRare { name, count, least })
    };
    probes.iter().filter_map(too_rare).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_campaign_that_misses_a_rare_state_says_so_when_it_is_large_enough() {
        let mut sum = Sum { seeds: 99, ..Sum::default() };
        for (name, histories) in OF_VOLUME.iter().filter(|(name, _)| *name != "slots erased") {
            sum.counters.add(name, sum.seeds / histories);
        }
        sum.counters.add("slots erased", 48);
        let too_rare = TooRare { name: "slots erased", count: 48, least: 49 };
        assert_eq!(missing(Kind::Volume, &sum), [too_rare]);
        sum.counters.add("slots erased", 1);
        assert_eq!(missing(Kind::Volume, &sum), []);
        // One history need not come to anything.
        assert_eq!(missing(Kind::Volume, &Sum { seeds: 1, ..Sum::default() }), []);
    }
}
