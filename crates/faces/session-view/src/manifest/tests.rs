use completeness::{Completeness, Damage, DamageKind, Disorder, Doubt, Stretch, StretchEnd};
use evidence::{ClockSteps, ClockUse, OutputSummary, TimesBy};
use extract::GivenUp;
use format::directory::{Gap, GapCause};
use format::head::{StripeId, VolumeId};
use format::session_row::PieceId;
use manifest::{Asked, CaseInfo, Limits, NamedEscrow, PieceRead};
use units::{Epoch, InterfaceId, MemberId, Sequence, Times, Timestamp};

use super::*;

/// What is missing, with everything that there is to say.
fn missing() -> Completeness {
    let gap = |cause, packets: Option<u64>| Gap {
        cause,
        interface: packets.map(|_| InterfaceId(1)),
        packets,
        bytes: packets.map(|packets| 100 * packets),
        from: Timestamp(10),
        to: Timestamp(20),
    };
    let damage = |sequence, kind| Damage { stripe: StripeId { sequence, sub: 2 }, kind };
    let kinds = [
        DamageKind::Missing,
        DamageKind::Rows(vec![3, 4]),
        DamageKind::Locked,
        DamageKind::Malformed(4096),
    ];
    let live = Stretch {
        from: Timestamp(1),
        through: Timestamp(90),
        is_live: true,
        interfaces: vec!["eth0".to_owned()],
        interface_count: 2,
        end: StretchEnd::InOrder,
        is_cut: true,
    };
    let of_end = |end| Stretch { end, ..live.clone() };
    let files = Stretch {
        is_live: false,
        interfaces: Vec::new(),
        interface_count: 0,
        ..of_end(StretchEnd::Going)
    };
    let stretches = [StretchEnd::ClockSet, StretchEnd::Crash].map(of_end);
    let mut unrecorded = Times::of(Timestamp::MIN, Timestamp(0));
    unrecorded.add(&Times::of(Timestamp(95), Timestamp(96)));
    let after = Times::of(Timestamp(97), Timestamp::MAX);
    Completeness {
        gaps: vec![gap(GapCause::KernelDrops, Some(7)), gap(GapCause::Crash, None)],
        damage: (8..).zip(kinds).map(|(sequence, kind)| damage(Sequence(sequence), kind)).collect(),
        retired_pieces: 1,
        missing_packets: 2,
        unindexed_packets: 3,
        left_out_packets: 4,
        unread_packets: 5,
        split_sessions: 10,
        expired_through: Some(Timestamp(30)),
        withheld: Some((Timestamp(25), Timestamp(30))),
        erased_through: Some(Timestamp(24)),
        unfit_packets: 6,
        secrets_left_out: 7,
        unknown_sessions: 8,
        disorder: Disorder { packets: 9, most_ns: 1_000_000_001 },
        given_up: vec![GivenUp { member: MemberId(1), failed: 3, seconds: 4 }],
        limited: true,
        unsought: true,
        stopped: true,
        recorded: [live].into_iter().chain(stretches).chain([files]).collect(),
        unrecorded,
        overwritten: Times::of(Timestamp(40), Timestamp(50)),
        forgotten: Times::of(Timestamp(51), Timestamp(52)),
        doubts: vec![
            (Doubt::Crash, Times::of(Timestamp(60), Timestamp(61))),
            (Doubt::Going, after),
            (Doubt::Unsaid, Times::NONE),
        ],
    }
}

fn full() -> Manifest {
    let text = |words: &str| Some(words.to_owned());
    let kernel = ClockUse {
        epoch: Epoch(3),
        times_by: TimesBy::Kernel,
        is_synchronised: Some(true),
        pieces: 2,
        times: (Timestamp(5), Timestamp(6)),
        estimated_error_us: Some(10),
        largest_error_us: Some(500),
        set: Some(ClockSteps { steps: 4, steps_between: 1 }),
    };
    let times = (Timestamp(7), Timestamp(6));
    let clock = |times_by| ClockUse { times_by, times, ..kernel };
    let files = ClockUse { set: None, ..clock(TimesBy::Files) };
    let unsaid = ClockUse {
        times_by: TimesBy::Unsaid,
        is_synchronised: None,
        estimated_error_us: None,
        largest_error_us: None,
        ..files
    };
    let others = [TimesBy::Adapter, TimesBy::Both].map(clock);
    let output = OutputSummary {
        file: None,
        link_type: None,
        packets: 11,
        bytes: 2000,
        sha256: [0xab; 32],
        blake3: [0x0c; 32],
    };
    Manifest {
        case: CaseInfo { case: text("7"), purpose: text("test"), requester: text("me") },
        query: "tcp".to_owned(),
        asked: Asked {
            whole_sessions: true,
            sessions_named: Some(1),
            around_ns: Some(2),
            packet_filter: text("udp"),
            payload: text("x"),
            limits: Limits { sessions: Some(3), packets: Some(4), bytes: Some(5) },
            comments: true,
            anonymised: true,
            escrow: Some(NamedEscrow { sha256: [1; 32], key_id: [2; 16] }),
            filter: text("port 53"),
            approved: None,
            raw_blake3: text("00"),
            is_raw: true,
        },
        made: Timestamp(100),
        volume: VolumeId([0x1f; 16]),
        from: Timestamp(1),
        to: Timestamp(99),
        rows: 12,
        outputs: vec![output.clone(), OutputSummary { packets: 1, ..output }],
        pieces: vec![PieceRead {
            piece: PieceId { sequence: Sequence(8), sub: 1, column: 2 },
            body_crc: 0xfe,
            cid: [0x11; 32],
            packets: 11,
            blake3: [0x22; 32],
        }],
        clocks: [kernel].into_iter().chain(others).chain([files, unsaid]).collect(),
        completeness: missing(),
    }
}

fn maker() -> Maker {
    let [program, host, user] = ["wirespool 1", "h", "u"].map(str::to_owned);
    Maker { program, host, user, called_by: None }
}

#[test]
fn a_manifest_says_everything_under_names_that_stay() {
    let said = manifest_json(&full(), &maker(), &["a.pcap".to_owned()], None);
    assert_eq!(said, include_str!("full.json"));
}

#[test]
fn what_a_manifest_has_not_it_leaves_out() {
    let full = full();
    let plain = Manifest {
        case: CaseInfo::default(),
        asked: Asked::default(),
        from: Timestamp::MIN,
        to: Timestamp::MAX,
        pieces: Vec::new(),
        clocks: Vec::new(),
        completeness: Completeness::default(),
        ..full
    };
    assert_eq!(manifest_json(&plain, &maker(), &[], None), include_str!("plain.json"));
}
