//! The algebra of statements: docs/extract.md, Complete, incomplete, unknown.

use proptest::prelude::*;
use units::{InterfaceId, Sequence};

use super::*;

fn at() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        8 => (0_i64..40).prop_map(Timestamp),
        1 => Just(Timestamp::MIN),
        1 => Just(Timestamp::MAX)
    ]
}

fn times() -> impl Strategy<Value = Times> {
    prop::collection::vec((at(), at()), 0..3).prop_map(Times::from_iter)
}

fn gap() -> impl Strategy<Value = Gap> {
    let cause = prop::sample::select(GapCause::ALL.to_vec());
    let count = || prop::option::of(0_u64..3);
    (cause, prop::option::of(0_u32..2), count(), count(), at(), at()).prop_map(
        |(cause, interface, packets, bytes, from, to)| Gap {
            cause,
            interface: interface.map(InterfaceId),
            packets,
            bytes,
            from,
            to,
        },
    )
}

fn damage() -> impl Strategy<Value = (StripeId, DamageKind)> {
    let kind = prop_oneof![
        Just(DamageKind::Missing),
        prop::collection::vec(0_u16..3, 1..3).prop_map(DamageKind::Rows),
        (0_usize..3).prop_map(DamageKind::Malformed),
    ];
    ((0_u64..5).prop_map(|sequence| StripeId { sequence: Sequence(sequence), sub: 0 }), kind)
}

fn stretch() -> impl Strategy<Value = Stretch> {
    let end = prop::sample::select(vec![
        StretchEnd::InOrder,
        StretchEnd::ClockSet,
        StretchEnd::Crash,
        StretchEnd::Going,
    ]);
    (at(), at(), any::<bool>(), end).prop_map(|(from, through, is_live, end)| Stretch {
        from,
        through,
        is_live,
        interfaces: vec!["a".to_owned()],
        interface_count: 1,
        end,
        is_cut: false,
    })
}

/// Nothing or one of a few reasons: most statements have few.
fn statement() -> impl Strategy<Value = Completeness> {
    let few = || prop_oneof![6 => Just(0_u64), 1 => 1_u64..4];
    let through = || prop_oneof![6 => Just(None), 1 => at().prop_map(Some)];
    let rare = || prop::bool::weighted(0.1);
    let doubts = prop::collection::vec((prop::sample::select(Doubt::ALL.to_vec()), times()), 0..3);
    let counts = (few(), few(), few(), few(), few(), few(), few());
    let lists = (
        prop::collection::vec(gap(), 0..3),
        prop::collection::vec(damage(), 0..2),
        prop::collection::vec(stretch(), 0..3),
    );
    let standing = (times(), times(), times(), doubts);
    (counts, lists, standing, (through(), through(), rare(), rare())).prop_map(
        |(
            counts,
            (gaps, damage, stretches),
            (forgotten, unrecorded, overwritten, doubts),
            rest,
        )| {
            let mut made = Completeness {
                retired_pieces: counts.0,
                missing_packets: counts.1,
                unindexed_packets: counts.2,
                left_out_packets: counts.3,
                unread_packets: counts.4,
                unknown_sessions: counts.5,
                unfit_packets: counts.6,
                disorder: Disorder { packets: counts.0 / 2, most_ns: counts.1 },
                expired_through: rest.0,
                erased_through: rest.1,
                limited: rest.2,
                unsought: rest.2 != rest.3,
                secrets_left_out: counts.3 / 2,
                split_sessions: counts.4 / 2,
                stopped: rest.3,
                forgotten,
                ..Completeness::default()
            };
            made.add_gaps(&gaps, Timestamp::MIN, Timestamp::MAX);
            if let Some(through) = made.expired_through {
                made.withhold(through, (through.plus_nanos(-3), through.plus_nanos(3)));
            }
            for (stripe, kind) in damage {
                made.add_damage(stripe, kind);
            }
            made.add_standing(&Standing { stretches, unrecorded, overwritten, doubts });
            made
        },
    )
}

fn join(parts: &[&Completeness]) -> Completeness {
    let mut whole = Completeness::default();
    for part in parts {
        whole.add(part);
    }
    whole
}

/// Everything that one says is missing or doubtful the other says, too.
fn says_all_of(whole: &Completeness, part: &Completeness) -> bool {
    let doubt_of = |doubt: Doubt| {
        let known = whole.doubts.iter().find(|(known, _)| *known == doubt);
        known.map(|(_, times)| times.clone()).unwrap_or_default()
    };
    part.gaps.iter().all(|gap| whole.gaps.contains(gap))
        && part.damage.iter().all(|damage| whole.damage.contains(damage))
        && part.recorded.iter().all(|stretch| whole.recorded.contains(stretch))
        && whole.unrecorded.has_all_of(&part.unrecorded)
        && whole.overwritten.has_all_of(&part.overwritten)
        && part.doubts.iter().all(|(doubt, times)| doubt_of(*doubt).has_all_of(times))
        && whole.retired_pieces >= part.retired_pieces
        && whole.missing_packets >= part.missing_packets
        && whole.unindexed_packets >= part.unindexed_packets
        && whole.left_out_packets >= part.left_out_packets
        && whole.unread_packets >= part.unread_packets
        && whole.split_sessions >= part.split_sessions
        && whole.unknown_sessions >= part.unknown_sessions
        && whole.unfit_packets >= part.unfit_packets
        && whole.secrets_left_out >= part.secrets_left_out
        && whole.unsought >= part.unsought
        && whole.expired_through >= part.expired_through
        && part
            .withheld
            .is_none_or(|(from, to)| whole.withheld.is_some_and(|it| it.0 <= from && it.1 >= to))
        && whole.erased_through >= part.erased_through
        && (whole.limited || !part.limited)
        && (whole.stopped || !part.stopped)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn parts_are_joined_in_any_order(a in statement(), b in statement(), c in statement()) {
        let whole = join(&[&a, &b, &c]);
        for other in [[&c, &b, &a], [&b, &a, &c], [&b, &c, &a]] {
            prop_assert_eq!(&whole, &join(&other));
        }
        let (mut left, mut right) = (join(&[&a, &b]), a.clone());
        left.add(&c);
        right.add(&join(&[&b, &c]));
        prop_assert_eq!(&left, &whole);
        prop_assert_eq!(&right, &whole);
        // Added twice is added once, and nothing adds nothing.
        prop_assert_eq!(&join(&[&whole, &a, &whole]), &whole);
        prop_assert_eq!(&join(&[&a, &Completeness::default()]), &a);
    }

    #[test]
    fn a_part_never_makes_the_whole_more_complete(a in statement(), b in statement()) {
        let whole = join(&[&a, &b]);
        prop_assert_eq!(whole.state(), a.state().max(b.state()));
        prop_assert!(says_all_of(&whole, &a) && says_all_of(&whole, &b));
    }

    /// What a search lacked that found the sessions of an answer, the answer lacks, too. What heads
    /// say, limits and names is noted where the answer is made.
    #[test]
    fn an_answer_is_no_better_than_the_search_for_its_sessions(a in statement()) {
        let searched = Completeness {
            unknown_sessions: 0,
            erased_through: None,
            limited: false,
            unsought: false,
            stopped: false,
            recorded: Vec::new(),
            unrecorded: Times::NONE,
            overwritten: Times::NONE,
            doubts: Vec::new(),
            ..a
        };
        let state = searched.state();
        let mut answer = Completeness::default();
        answer.add_search(searched, (Timestamp::MIN, Timestamp::MAX));
        prop_assert_eq!(answer.state(), state);
    }

    /// What is not complete says why, in a line of its own.
    #[test]
    fn every_loss_and_doubt_has_its_line(a in statement()) {
        let text = a.to_string();
        let mut lines = text.lines();
        prop_assert_eq!(lines.next(), Some(a.state().name()));
        let tells = ["recorded: ", "indexed on the way: "];
        let tells = |line: &str| tells.iter().any(|it| line.starts_with(it));
        let reasons = lines.filter(|line| !tells(line)).count();
        prop_assert_eq!(reasons > 0, !a.is_complete(), "{}", text);
    }
}

#[test]
fn a_crash_is_a_doubt_and_a_drop_is_a_loss() {
    let gap = |cause| Gap {
        cause,
        interface: None,
        packets: None,
        bytes: None,
        from: Timestamp(1),
        to: Timestamp(2),
    };
    let mut statement = Completeness::default();
    assert_eq!(statement.state(), State::Complete);
    statement.add_gaps(&[gap(GapCause::Crash)], Timestamp(3), Timestamp(4));
    assert_eq!(statement.state(), State::Complete, "it lies elsewhere");
    statement.add_gaps(&[gap(GapCause::Crash)], Timestamp(2), Timestamp(4));
    assert_eq!(statement.state(), State::Unknown);
    statement.add_gaps(&[gap(GapCause::KernelDrops)], Timestamp(2), Timestamp(4));
    assert_eq!(statement.state(), State::Incomplete);
}

#[test]
fn packets_behind_later_ones_are_said_and_are_no_loss() {
    let mut disorder = Disorder::default();
    for (latest, timestamp) in [(1_000_000_000, 1_000_000_000), (2_500_000_000, 0), (7, 6)] {
        disorder.note(Timestamp(latest), Timestamp(timestamp));
    }
    let statement = Completeness { disorder, ..Completeness::default() };
    let text = statement.to_string();
    assert!(text.starts_with("complete\nout of order: 2 packets "), "{text}");
    assert!(text.contains(" by at most 2.500000000 s: "), "{text}");
}
