//! The names, the order and the form of what reports say as JSON: programs read them, so they
//! change on purpose alone. Each report is filled in every part and compared as a whole with its
//! file in `wire/`.

use core::time::Duration;

use format::directory::{Gap, GapCause};
use format::geometry::{ExtentOrder, Geometry};
use format::head::{HeadKey, StripeId, VolumeId};
use format::key_row::DestroyedKey;
use format::superblock::{Mark, MemberEntry, Qualified, QualifiedBy, Superblock, TimeKnown};
use index::LeftOut;
use record::{
    Account, Change, Comeback, DiskWatch, Disks, Event, EventKind, GaveWay, HandOver, Loss,
    MemberChange, Progress, QueueAccount, Report, SlowWrite,
};
use units::{Epoch, InterfaceId, MemberId, QueueId, Sequence, Timestamp};
use upkeep::{
    AnchorFindings, AnchorVerdict, BadCopy, BadStripe, Cell, Content, Created, CreatedMember,
    Erased, Fate, GivenUp, Grown, IndexDamage, IndexSummary, InspectedMember, Inspection, Joined,
    Keys, LostRows, MemberState, MemberStatus, ReadBack, Recording, Redundancy, Rekeyed,
    Resilvered, RingMap, Scrubbed, SpareStatus, Status, StripeRange, Verification,
};
use volume::{MemberAt, Span};
use volume_view as view;

/// What a report is compared with.
macro_rules! frozen {
    ($text:expr, $name:literal) => {
        assert_eq!($text, include_str!(concat!("wire/", $name)));
    };
}

const fn stripe(sequence: u64, sub: u16) -> StripeId {
    StripeId { sequence: Sequence(sequence), sub }
}

fn qualified(by: QualifiedBy) -> Qualified {
    Qualified {
        by,
        at: Timestamp(13),
        guaranteed_bytes_per_s: 14,
        mean_bytes_per_s: 15,
        pool_bytes: 16,
        longest_write_ns: 17,
        report: [18; 16],
    }
}

fn geometry() -> Geometry {
    Geometry {
        data_columns: 2,
        parity_columns: 1,
        order: ExtentOrder::ZoneLevelled,
        zones: 4,
        piece_bytes: 16 << 10,
        slots: 40,
        slot0_offset: 2 << 20,
        slots_per_extent: 5,
        usable_begin: 1 << 20,
        usable_end: 8 << 20,
    }
}

fn superblock() -> Superblock {
    let entry = |path: &str| MemberEntry {
        uuid: [6; 16],
        path: path.to_owned(),
        stale_from: Sequence(5),
        clean_from: Sequence(7),
    };
    Superblock {
        volume_id: VolumeId([0xab; 16]),
        head_key: HeadKey([2; 32]),
        member: MemberId(0),
        generation: 5,
        geometry: geometry(),
        prepared_epoch: Epoch(4),
        joined_epoch: Epoch(3),
        joined_start: Sequence(99),
        previous_epoch: Epoch(2),
        previous_start: Sequence(88),
        previous_members: 1,
        joined_members: 1,
        expired_through: Timestamp(77),
        max_age_ns: 7,
        erases: true,
        qualified: Some(qualified(QualifiedBy::Writing)),
        given_up_before: Sequence(8),
        forgetting: None,
        erased_before: Sequence(9),
        mark: Mark {
            acknowledged: stripe(100, 2),
            until: Sequence(103),
            is_stopped: true,
            at: Timestamp(19),
        },
        time: TimeKnown {
            explained: Timestamp(20),
            boottime_ns: 21,
            boot: 24,
            early_before: Sequence(22),
            early_from: Timestamp(23),
        },
        created: Timestamp(12),
        window: 4,
        is_encrypted: true,
        parent: [3; 32],
        members: ["a", "b", "c", "d"].map(entry).to_vec(),
        spares: Vec::new(),
        earlier: Vec::new(),
    }
}

fn account(name: &str) -> Account {
    let queue =
        QueueAccount { received: 1, taken: 2, kernel_drops: 3, ring_freezes: 4, writer_drops: 5 };
    Account {
        name: name.to_owned(),
        offered: 1,
        stored: 2,
        cut: 3,
        copies: 4,
        headers_only: 5,
        kernel_drops: 6,
        writer_drops: 7,
        in_flight: 8,
        interface_drops: (!name.is_empty()).then_some(9),
        filter_rejects: None,
        ring_freezes: 10,
        too_long: 11,
        is_away: true,
        times_down: 12,
        queues: if name.is_empty() { Vec::new() } else { vec![queue] },
    }
}

fn changes() -> Vec<MemberChange> {
    let expelled = Change::Expelled { reason: "it hangs".to_owned(), comeback: Comeback::OnceGone };
    let all = [
        Change::Absent,
        Change::Vacant,
        Change::Returned,
        expelled,
        Change::Replaced,
        Change::Resilvered { bytes: 4096, lost: 0 },
        Change::Resilvered { bytes: 4096, lost: 2 },
    ];
    let change = |(member, what)| MemberChange { member, path: format!("/dev/{member}"), what };
    MemberId::all().zip(all).map(change).collect()
}

fn disks() -> Disks {
    let slow = |member: Option<MemberId>, zone| SlowWrite {
        at: Timestamp(1),
        member,
        offset: 2,
        len: 3,
        zone,
        latency_ns: 4,
        depth: 5,
    };
    let device = |member| DiskWatch {
        member,
        path: "/dev/a".to_owned(),
        writes: 1,
        bytes: 2,
        p50_ns: 900,
        p99_ns: 900,
        p99_9_ns: 900,
        max_ns: 900,
        depth_max: 3,
        loaded_ns: 4,
        loaded_bytes: 5,
        slow_writes: 6,
        slower_than_qualified: 7,
        is_slower_than_qualified: true,
        backlog_bytes_max: 8,
        places: vec![[2, 3, 4, 6]],
    };
    Disks {
        qualified: Some(qualified(QualifiedBy::Places)),
        headroom: None,
        slow_limit_ns: 1,
        slow_writes: 2,
        slow: vec![slow(Some(MemberId(0)), Some(3)), slow(None, None)],
        devices: vec![device(Some(MemberId(0))), device(None)],
    }
}

#[test]
fn a_recording_that_goes_on() {
    let event = |kind| Event { kind, at: Timestamp(1_000_000_007), text: "it was".to_owned() };
    let kinds = [
        EventKind::Setup,
        EventKind::InterfaceDown,
        EventKind::InterfaceUp,
        EventKind::InterfaceGone,
        EventKind::InputBroken,
        EventKind::Source,
        EventKind::DropsBegin,
        EventKind::DropsEnd,
        EventKind::ClockStep,
        EventKind::ClockDoubt,
        EventKind::Withheld,
        EventKind::Member,
        EventKind::IndexerEnded,
        EventKind::RowsUnkept,
        EventKind::Damage,
        EventKind::LongWait,
        EventKind::SlowWrite,
        EventKind::Promise,
        EventKind::Headroom,
        EventKind::TooMany,
    ];
    let progress = Progress {
        elapsed_ns: 1,
        interfaces: vec![account("eth0"), account("eth1")],
        total: account(""),
        member_bytes: 2,
        pool_columns_free: 3,
        pool_columns: 4,
        unindexed: 5,
        left_out: 6,
        indexer_deaths: 7,
        long_waits: vec!["ring waits".to_owned()],
        hand_over: Some(HandOver {
            process: Some(12),
            from_ns: 13,
            taken_back: Some("it ended".to_owned()),
            times_taken_back: 14,
        }),
        tail: Sequence(8),
        acknowledged: stripe(9, 1),
        slots: 10,
        news: vec![event(EventKind::Setup)],
        events: kinds.map(event).to_vec(),
        changes: changes(),
        holds_ns: Some(11),
        disks: disks(),
    };
    frozen!(view::going_json(77, &progress), "going.json");
}

#[test]
fn a_recording_that_has_ended() {
    let loss = |cause| Loss {
        gap: Gap {
            cause,
            interface: Some(InterfaceId(0)),
            packets: Some(1),
            bytes: None,
            from: Timestamp(2),
            to: Timestamp(3),
        },
        interface: "eth0".to_owned(),
        queue: QueueId(4),
        pool_free: 5,
        unfinished_slots: 6,
        stored_bytes_before: 7,
        stored_bytes_behind: 8,
    };
    let mut report = Report {
        interfaces: vec![account("eth0")],
        is_of_files: true,
        total: account(""),
        losses: GapCause::ALL.map(loss).to_vec(),
        unindexed: 1,
        indexed_late: 2,
        left_out: 3,
        unreadable: 4,
        withheld: 5,
        clock_doubt: None,
        indexer_deaths: 6,
        unread: 7,
        gave_way: GaveWay { names: 1, heads: 2, pieces: 3, sessions: 4 },
        pool_columns: 8,
        pool_columns_used_max: 9,
        rows: 10,
        segments: 11,
        index_bytes: 12,
        opening_ns: 13,
        elapsed_ns: 14,
        closing_ns: 15,
        cpu: Duration::from_nanos(16),
        epoch: Epoch(17),
        acknowledged: stripe(18, 1),
        changes: changes(),
        disks: disks(),
        notes: vec!["a note".to_owned()],
        news: vec![],
        broken_off: vec!["a.pcap".to_owned()],
        ..Report::default()
    };
    report.writer.stripes = 19;
    report.writer.bytes = 20;
    report.writer.flushes = 21;
    report.writer.write_latency_ns_max = 22;
    report.writer.discarded_bytes = 23;
    report.recovery.clean = true;
    report.recovery.kept = 24;
    report.recovery.voided = 25;
    frozen!(view::recording_json(&report), "recording.json");
}

fn states() -> [MemberState; 5] {
    [
        MemberState::Whole,
        MemberState::Stale { from: Sequence(7), to: Sequence(9) },
        MemberState::Stale { from: Sequence(7), to: Sequence::MAX },
        MemberState::Absent,
        MemberState::Vacant,
    ]
}

fn status() -> Status {
    let member = |state| MemberStatus { path: "/dev/a".into(), state, stale_bytes: 4096 };
    Status {
        path: "/data/spool".into(),
        volume_id: VolumeId([0xab; 16]),
        data_columns: 4,
        parity_columns: 2,
        members: states().map(member).to_vec(),
        spares: vec![SpareStatus { path: "/dev/f".into(), is_there: false }],
        redundancy: vec![
            Redundancy { first: Sequence(0), last: Sequence(9), spare_members: None },
            Redundancy { first: Sequence(10), last: Sequence(20), spare_members: Some(1) },
        ],
        epoch: Epoch(3),
        is_open: true,
        clean_stop: false,
        is_whole: false,
        last_alive: Some(Timestamp(1_700_000_000_000_000_000)),
    }
}

#[test]
fn what_a_volume_is_good_for() {
    frozen!(view::status_json(&status(), Some("{\"process\": 7}")), "status.json");
}

#[test]
fn a_status_is_shown_as_it_was() {
    let mut report = status();
    for (member, stale_bytes) in report.members.iter_mut().zip([0, 4096, 1 << 30, 0, 0]) {
        (member.path, member.stale_bytes) = ("d\u{1b}[31m".into(), stale_bytes);
    }
    let going = "{\"recording\":\"1 packet\",\"pid\":7,\"disk_lines\":[\"slow\"]}";
    for (report, going) in [
        (report.clone(), Some(going)),
        (Status { last_alive: None, redundancy: Vec::new(), ..report }, None),
    ] {
        let text = view::status_json(&report, going);
        let (read, said) = view::read_status(serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(view::status_json(&read, said.as_deref()), text);
        let shown = view::status(&report, going, None);
        assert_eq!(view::status(&read, said.as_deref(), None), shown);
        for (old, new) in [("\"whole\"", "\"well\""), ("abab", "abag"), ("\"epoch\": 3,", "")] {
            let wrong = serde_json::from_str(&text.replacen(old, new, 1)).unwrap();
            assert!(view::read_status(wrong).is_err(), "{old}");
        }
    }
}

#[test]
fn what_becomes_of_members() {
    let device = CreatedMember {
        path: "/dev/a".into(),
        size_bytes: 1,
        destroyed: Some("ext4".to_owned()),
        partitioned: true,
        sparse: true,
        notes: vec!["a note".to_owned()],
    };
    let given = Resilvered {
        bytes: 1,
        lost: vec![LostRows { stripe: stripe(2, 1), column: 3, rows: vec![4, 5] }],
        waits_for: vec![MemberId(6)],
        is_complete: false,
        is_stopped: true,
    };
    frozen!(view::resilvered_json(&given), "resilvered.json");
    let joined = |member| Joined { device: device.clone(), member };
    frozen!(view::joined_json(&joined(Some(MemberId(2))), Some(&given)), "joined.json");
    frozen!(view::joined_json(&joined(None), None), "spare.json");
    let after = Geometry { data_columns: 3, ..geometry() };
    let grown = Grown { joined: vec![joined(Some(MemberId(3)))], before: geometry(), after };
    frozen!(view::grown_json(&grown), "grown.json");
    let key =
        DestroyedKey { id: 1, from: Sequence(2), made: Timestamp(3), destroyed: Timestamp(4) };
    let erased = Erased { keys: vec![key], slots: 5, left: 6, is_stopped: true };
    frozen!(view::erased_json(&erased), "erased.json");
    let created = Created {
        superblock: superblock(),
        members: vec![device.clone(), CreatedMember { destroyed: None, ..joined(None).device }],
        zones_by_disk: true,
        recipients: vec!["age1".to_owned()],
    };
    frozen!(view::created_json(&created, &["because".to_owned()]), "created.json");
}

#[test]
fn who_can_read_it() {
    let keys = Keys {
        recipients: vec!["age1".to_owned()],
        keys: 1,
        made: Some((Timestamp(2), Timestamp(3))),
        destroyed: 4,
        destroyed_made: Some(Timestamp(5)),
    };
    frozen!(view::keys_json(&keys), "keys.json");
    frozen!(view::keys_json(&Keys::default()), "no_keys.json");
    let rekeyed =
        Rekeyed { keys, has_begun: true, rewrapped: 6, left: 7, absent: vec![MemberId(8)] };
    frozen!(view::rekeyed_json(&rekeyed), "rekeyed.json");
}

fn recordings() -> Vec<Recording> {
    let whole = Recording {
        name: Some("monday".to_owned()),
        epoch: Epoch(1),
        first: Sequence(2),
        last: Sequence(3),
        times: Some((Timestamp(4), Timestamp(5))),
        indexed: Some((6, 7)),
        share_left: Some(0.5),
    };
    let bare = Recording { name: None, times: None, indexed: None, share_left: None, ..whole };
    vec![whole, bare]
}

fn map() -> RingMap {
    let cell = |content| Cell {
        place: 10,
        slots: 2,
        sequence: Some(Sequence(3)),
        content,
        is_head: content == Content::Written,
        is_tail: content == Content::Damaged,
        has_index: content == Content::Opening,
        damaged: if content == Content::Damaged { vec![MemberId(1)] } else { Vec::new() },
    };
    let contents = [
        Content::Unwritten,
        Content::Written,
        Content::LeftEarly { unused_percent: 30 },
        Content::Opening,
        Content::AheadOfHead,
        Content::Damaged,
    ];
    RingMap {
        geometry: geometry(),
        span: Some(Span { tail: Sequence(1), acknowledged: stripe(2, 1) }),
        newest: Some(Sequence(3)),
        columns: 4,
        slots_per_cell: 5,
        cells: contents.map(cell).to_vec(),
        index_places: vec![6],
        written: vec![Some(Timestamp(7)), None],
        sampled_every: 8,
        members: states().to_vec(),
    }
}

fn inspection() -> Inspection {
    let member = |(path, state): (&str, MemberState)| InspectedMember {
        path: path.to_owned(),
        state,
        why_absent: (state == MemberState::Absent).then(|| "it is another".to_owned()),
    };
    Inspection {
        path: "/data/spool".into(),
        volume_id: VolumeId([0xab; 16]),
        created: Timestamp(12),
        members: ["a", "b", "c", "d"].into_iter().zip(states()).map(member).collect(),
        geometry: geometry(),
        qualified: Some(qualified(QualifiedBy::Writing)),
        slots: 40,
        slots_used: 5,
        slots_written: 6,
        window: 4,
        recipients: vec!["age1".to_owned()],
        max_age_ns: Some(7),
        expired_through: Some(Timestamp(77)),
        erases: true,
        epoch: Epoch(3),
        clean_stop: true,
        tail: Some(Sequence(2)),
        newest: Some(Sequence(4)),
        acknowledged: Some(stripe(3, 1)),
        times: Some((Timestamp(7), Timestamp(8))),
        reach_ns: Some(10),
        index: IndexSummary {
            segments: 1,
            sessions: 2,
            packets: 3,
            bytes: 4,
            segments_unindexed: 5,
            segments_with_gaps: 9,
            left_out: vec![LeftOut { first: stripe(6, 0), last: stripe(7, 1), packets: 8 }],
            broken_at: Some(stripe(10, 0)),
        },
        recordings: recordings(),
        smallest_member_bytes: 1,
    }
}

#[test]
fn a_volume_as_it_is() {
    let whole = inspection();
    frozen!(view::inspection_json(&whole, Some(&map())), "inspection.json");
    let bare = Inspection {
        members: whole.members.iter().take(1).cloned().collect(),
        geometry: Geometry { order: ExtentOrder::FirstToLast, ..geometry() },
        qualified: None,
        recipients: Vec::new(),
        max_age_ns: None,
        expired_through: None,
        erases: false,
        tail: None,
        newest: None,
        acknowledged: None,
        times: None,
        reach_ns: None,
        index: IndexSummary::default(),
        recordings: Vec::new(),
        ..whole
    };
    frozen!(view::inspection_json(&bare, None), "bare_inspection.json");
    frozen!(view::ring_json(&map(), &status(), &[0, 1]), "ring.json");
    frozen!(view::recordings_json(&recordings(), None), "recordings.json");
}

#[test]
fn what_is_damaged() {
    let read = ReadBack { slots: 1, bytes: 6, data_stripes: 2, index_stripes: 3, other_stripes: 4 };
    let given_up = vec![GivenUp { member: MemberId(1), failed: 2, seconds: 3 }];
    let bad = |member: Option<MemberId>| BadStripe {
        stripe: stripe(10, 1),
        member,
        slot_offset: 11,
        row_offsets: vec![12, 13],
        repairable: true,
        is_body_whole: member.is_none().then_some(true),
    };
    let damaged = |segment| IndexDamage {
        segment,
        index: stripe(14, 0),
        slot_offset: 15,
        reason: "cut".to_owned(),
    };
    let verification = Verification {
        path: "/data/spool".into(),
        volume_id: VolumeId([0xab; 16]),
        is_clean: false,
        read,
        packets: 5,
        overwritten: 7,
        parity_wrong: vec![stripe(9, 0)],
        given_up: given_up.clone(),
        damage: vec![bad(Some(MemberId(1))), bad(None)],
        bad_copies: vec![(MemberId(1), 2)],
        indexes: 16,
        sessions: 17,
        index_damage: vec![damaged(Some(stripe(13, 0))), damaged(None)],
        is_complete: true,
    };
    frozen!(view::verification_json(&verification), "verification.json");
    let fates = [
        Fate::Repaired,
        Fate::Repairable,
        Fate::Lost,
        Fate::Partly(vec![1, 2]),
        Fate::Passing,
        Fate::Failed("no room".to_owned()),
    ];
    let copy = |fate| BadCopy { member: MemberId(1), copy: 2, is_old: true, fate };
    let scrubbed = Scrubbed {
        path: "/data/spool".into(),
        volume_id: VolumeId([0xab; 16]),
        members: vec![MemberAt { member: MemberId(1), path: "/dev/a".into() }],
        absent: vec![MemberId(2)],
        dry_run: true,
        is_clean: false,
        read,
        degraded: 8,
        overwritten: 7,
        parity_wrong: vec![stripe(9, 0)],
        given_up,
        copies: fates.clone().map(copy).to_vec(),
        damage: fates.map(|fate| (bad(Some(MemberId(1))), fate)).to_vec(),
        is_complete: true,
        is_sound: true,
    };
    frozen!(view::scrubbed_json(&scrubbed), "scrubbed.json");
}

#[test]
fn a_volume_after_anchors() {
    let range = StripeRange { first: stripe(1, 0), last: stripe(2, 1), pieces: 3 };
    let whole = AnchorFindings {
        verdict: AnchorVerdict::Same,
        held: Some((Sequence(4), stripe(5, 0))),
        is_given_up: true,
        same: Some(range),
        same_contents: 6,
        contents: true,
        changed: vec![range],
        changed_bodies: 7,
        unreadable: vec![range],
        passed: Some(range),
        missing: Some(range),
    };
    let bare = |verdict| AnchorFindings {
        verdict,
        held: None,
        is_given_up: false,
        same: None,
        same_contents: 0,
        contents: false,
        changed: Vec::new(),
        changed_bodies: 0,
        unreadable: Vec::new(),
        passed: None,
        missing: None,
    };
    let verdicts = [
        AnchorVerdict::RolledBack,
        AnchorVerdict::Rewritten,
        AnchorVerdict::Unreadable,
        AnchorVerdict::NothingLeft,
        AnchorVerdict::OtherVolume,
    ];
    let bare = verdicts.map(|verdict| ("b".to_owned(), bare(verdict), Vec::new(), false));
    let whole = ("a".to_owned(), whole, vec!["signed".to_owned()], true);
    let all: Vec<_> = core::iter::once(whole).chain(bare).collect();
    frozen!(view::anchors_json(&all), "anchors.json");
}
