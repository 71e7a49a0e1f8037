//! What a volume takes from a qualification, on modelled disks with published profiles.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use core::ops::ControlFlow;
use std::path::Path;

use format::superblock::QualifiedBy;
use qualify::{
    Ask, Bench, Choice, Doubt, Given, Latencies, Mix, Part, PartResult, Plan, Qualification, Reads,
    Reason, choose, modelled, run,
};
use units::Timestamp;

const SINGLE: &str = include_str!("../profiles/single-8tb.csv");
const FLAT: &str = "offset_bytes,mb_per_s\n0,500\n1000000000000,500\n";

const GIVEN: Given = Given {
    zones: None,
    extent_bytes: None,
    has_usable: false,
    data_members: 1,
    member_bytes: None,
};

fn qualified(csv: &str, parts: &[Part], bits_per_s: Option<u64>) -> Qualification {
    let (disk, timeline, target) = modelled(Path::new("x"), csv, (None, 1), Timestamp(7)).unwrap();
    let plan = Plan::of_model(target.size_bytes).only(parts);
    let mix = Mix::named("1514").unwrap();
    let ask = Ask { pool_bytes: 2 << 30, mix, bits_per_s, array: None };
    let mut writer = disk.clone();
    let mut tell = |_, _, _| ControlFlow::Continue(());
    let bench = Bench::new((&disk, Some(&mut writer)), &timeline, 1, &mut tell);
    run(bench, target, &plan, &ask).unwrap()
}

fn choice(found: &Qualification, given: Given) -> Choice {
    choose(found, given, [9; 16]).unwrap()
}

fn megabytes(bytes_per_s: u64) -> u64 {
    bytes_per_s / 1_000_000
}

#[test]
fn a_disk_with_platters_gets_zones_and_extents_that_jumps_do_not_cost() {
    let found = qualified(SINGLE, &[Part::Sweep, Part::Extents], None);
    let chosen = choice(&found, GIVEN);
    assert_eq!((chosen.zones, chosen.usable_percent), (8, None));
    let extent_bytes = chosen.extent_bytes.unwrap();
    // A jump of some 15 ms is 1.5 % of a second: about 250 MB.
    assert!([128 << 20, 256 << 20, 512 << 20].contains(&extent_bytes), "{extent_bytes}");
    let kept = chosen.qualified;
    assert!((195..215).contains(&megabytes(kept.guaranteed_bytes_per_s)), "{kept:?}");
    assert_eq!((kept.by, kept.at, kept.report), (QualifiedBy::Places, Timestamp(7), [9; 16]));
    assert!(chosen.reasons.iter().any(|reason| matches!(reason, Reason::Zones { zones: 8, .. })));

    let straight = choice(&found, Given { zones: Some(1), ..GIVEN });
    assert_eq!((straight.zones, straight.extent_bytes), (1, None));
    let guaranteed = straight.qualified.guaranteed_bytes_per_s;
    assert!((125..140).contains(&megabytes(guaranteed)), "{guaranteed}");
}

/// A disk of which only rates at places are known gets its extents by the time of its reads, and
/// the jumps of extents that are shorter than those of the qualification are charged.
#[test]
fn extents_follow_the_jumps_of_reads_where_none_were_written() {
    let found = qualified(SINGLE, &[Part::Sweep], None);
    let chosen = choice(&found, GIVEN);
    assert!([128 << 20, 256 << 20].contains(&chosen.extent_bytes.unwrap()), "{chosen:?}");
    let guaranteed = |extent_bytes| {
        let given = Given { extent_bytes: Some(extent_bytes), ..GIVEN };
        choice(&found, given).qualified.guaranteed_bytes_per_s
    };
    // 13 ms for each 16 MiB, which take 80: a seventh, where it was a hundredth.
    let (short, long) = (guaranteed(16 << 20), guaranteed(1 << 30));
    assert!(short * 100 < long * 90 && short * 100 > long * 80, "{short} {long}");
    assert_eq!(long, guaranteed(256 << 20), "no credit for longer ones");
}

#[test]
fn a_disk_that_is_the_same_everywhere_gets_no_zones() {
    let chosen = choice(&qualified(FLAT, &[Part::Sweep, Part::Extents], None), GIVEN);
    assert_eq!((chosen.zones, chosen.extent_bytes, chosen.usable_percent), (1, None, None));
    let guaranteed = chosen.qualified.guaranteed_bytes_per_s;
    assert!((480..=500).contains(&megabytes(guaranteed)), "{guaranteed}");
}

#[test]
fn what_has_no_arm_gets_no_zones_however_its_rates_differ() {
    let mut found = qualified(SINGLE, &[Part::Sweep], None);
    assert_eq!(choice(&found, GIVEN).zones, 8);
    let latency = Latencies::from_buckets(&[(90_000, 1000)], (80_000, 90_000, 85_000));
    found.parts.push(PartResult::Reads(Reads { latency, ..Reads::default() }));
    let chosen = choice(&found, GIVEN);
    assert_eq!((chosen.zones, chosen.extent_bytes), (1, None));
    let is_said = |reason: &Reason| matches!(reason, Reason::NoArm { access_ns: 80_000..=90_000 });
    assert!(chosen.reasons.iter().any(is_said), "{:?}", chosen.reasons);
    // A small ring on such a disk has shorter extents than the disk would.
    let small = Given { member_bytes: Some(64 << 20), ..GIVEN };
    let found = qualified(SINGLE, &[Part::Sweep], None);
    assert_eq!((choice(&found, small).zones, choice(&found, small).extent_bytes), (8, None));
    assert!(choice(&found, GIVEN).extent_bytes.is_some());
    // Who asks for extents wants zones.
    assert_eq!(choice(&found, Given { extent_bytes: Some(1 << 20), ..GIVEN }).zones, 8);
}

#[test]
fn the_slowest_part_is_left_out_only_for_a_rate_that_needs_it() {
    let asked = |gbit_thousandths: u64| {
        qualified(SINGLE, &[Part::Sweep], Some(gbit_thousandths * 1_000_000))
    };
    // All of it carries 203 MB/s, 1.6 Gbit/s; the outer half about 250.
    assert_eq!(choice(&asked(1500), GIVEN).usable_percent, None);
    let chosen = choice(&asked(1800), GIVEN);
    let percent = chosen.usable_percent.unwrap();
    assert!((60..95).contains(&percent), "{percent}");
    let needed = Mix::named("1514").unwrap().bytes_of(1_800_000_000);
    assert!(chosen.qualified.guaranteed_bytes_per_s >= needed);
    let by_hand = Given { has_usable: true, ..GIVEN };
    assert_eq!(choice(&asked(1800), by_hand).usable_percent, None);
    // Two members share what arrives.
    let shared = Given { data_members: 2, ..GIVEN };
    assert_eq!(choice(&asked(1800), shared).usable_percent, None);
    let hopeless = choice(&asked(2600), GIVEN);
    assert_eq!(hopeless.usable_percent, None);
    let is_said = |reason: &Reason| matches!(reason, Reason::TooSlow { .. });
    assert!(hopeless.reasons.iter().any(is_said), "{:?}", hopeless.reasons);
}

#[test]
fn no_more_memory_is_taken_than_raises_the_rate() {
    let chosen = choice(&qualified(FLAT, &[Part::Fill], None), GIVEN);
    assert!(chosen.qualified.pool_bytes <= 1 << 30, "{:?}", chosen.qualified);
    assert_eq!(chosen.qualified.by, QualifiedBy::Writing);
    assert!(chosen.qualified.longest_write_ns > 0);
    let ring = choice(&qualified(SINGLE, &[Part::Ring], None), GIVEN);
    assert_eq!((ring.zones, ring.qualified.by), (8, QualifiedBy::Writing));
}

#[test]
fn an_empty_guarantee_is_said_first() {
    let mut found = qualified(FLAT, &[Part::Fill], None);
    assert!(!choice(&found, GIVEN).reasons.contains(&Reason::Doubted));
    found.verdict.as_mut().unwrap().doubts = vec![Doubt::Memory];
    assert_eq!(choice(&found, GIVEN).reasons.first(), Some(&Reason::Doubted));
}

#[test]
fn what_judged_no_rate_advises_nothing() {
    assert_eq!(choose(&qualified(FLAT, &[Part::Reads], None), GIVEN, [0; 16]), None);
}
