//! Small heads, superblocks, claims, blocks, bodies and parts, with names.

use format::claim::{Claim, Claimant};
use format::directory::{self, Gap, GapCause, SegmentEntry, Summary};
use format::geometry::{ExtentOrder, Geometry, PIECE_BYTES_MIN, RESERVED_BYTES};
use format::head::{Head, HeadKey, Kind, PieceHead, StripeHead, StripeId, Totals, VolumeId};
use format::key_row::{DestroyedKey, KeyEntry, KeyRow, WrappedKey};
use format::pcapng::{
    EnhancedPacketFields, OptionCode, block_type, put_block, put_comment, put_end_of_options,
    put_enhanced_packet, put_interface_description, put_interface_statistics, put_option,
    put_own_section_header,
};
use format::piece::{EncodedInterface, InterfaceFields, PacketParts, PieceBuilder, Statistics};
use format::recorded::Recorded;
use format::superblock::{EarlierShape, Mark, MemberEntry, Spare, Superblock, TimeKnown};
use units::{Epoch, InterfaceId, MemberId, Sequence, Timestamp};
use wire::LinkType;

fn at(sequence: Sequence, sub: u16) -> StripeId {
    StripeId { sequence, sub }
}

fn geometry(data_columns: u8, parity_columns: u8) -> Geometry {
    Geometry {
        data_columns,
        parity_columns,
        order: ExtentOrder::FirstToLast,
        zones: 1,
        piece_bytes: PIECE_BYTES_MIN,
        slots: 40,
        slot0_offset: RESERVED_BYTES,
        slots_per_extent: 1,
        usable_begin: 0,
        usable_end: 8 << 20,
    }
}

pub(crate) fn heads() -> [(&'static str, Head); 3] {
    [("data", head(Kind::Data)), ("key", head(Kind::Key)), ("void", head(Kind::Void))]
}

fn head(kind: Kind) -> Head {
    let rows = if kind.closes_slot() { 0 } else { 2 };
    let stripe = StripeHead {
        volume_id: VolumeId([9; 16]),
        geometry: geometry(2, 1),
        kind,
        clean_stop: true,
        extra_blocks: true,
        key_id: None,
        epoch: Epoch(3),
        stripe: at(Sequence(41), 2),
        first_row: 1,
        rows,
        acknowledged: at(Sequence(40), 7),
        previous: at(Sequence(41), 1),
        index: at(Sequence(12), 0),
        time_min: Timestamp(-5),
        time_max: Timestamp(1_700_000_000_000_000_000),
        realtime: Timestamp(17),
        boottime_ns: 19,
        totals: Totals { packets: 1, captured_bytes: 2, kernel_drops: 4, ..Totals::default() },
        previous_cid: [1; 32],
        manifest: vec![11, 12, 13],
        previous_manifest: vec![21, 22, 23],
        recorded: (kind != Kind::Key)
            .then(|| Recorded::new(true, at(Sequence(40), 0), Timestamp(3), &["eth0".to_owned()])),
    };
    let piece = PieceHead {
        member: MemberId(1),
        column: 2,
        packets: 1,
        member_uuid: [4; 16],
        row_crcs: vec![77; rows.into()],
    };
    Head::new(stripe, piece)
}

pub(crate) fn superblocks() -> [(&'static str, Superblock); 2] {
    let member = |number| MemberEntry::new([number; 16], format!("/dev/disk{number}"));
    let alone = Superblock {
        volume_id: VolumeId([1; 16]),
        head_key: HeadKey([2; 32]),
        member: MemberId(0),
        generation: 5,
        geometry: geometry(1, 0),
        prepared_epoch: Epoch(4),
        joined_epoch: Epoch(3),
        joined_start: Sequence(99),
        previous_epoch: Epoch(2),
        previous_start: Sequence(88),
        previous_members: 1,
        joined_members: 1,
        expired_through: Timestamp(-3),
        max_age_ns: 7,
        erases: true,
        qualified: None,
        given_up_before: Sequence(8),
        forgetting: Some((Sequence(7), Sequence(9))),
        erased_before: Sequence(9),
        mark: Mark {
            acknowledged: at(Sequence(100), 2),
            until: Sequence(103),
            is_stopped: true,
            at: Timestamp(19),
        },
        time: TimeKnown::default(),
        created: Timestamp(12),
        window: 4,
        is_encrypted: false,
        parent: [3; 32],
        members: vec![member(6)],
        spares: Vec::new(),
        earlier: Vec::new(),
    };
    let several = Superblock {
        member: MemberId(2),
        geometry: geometry(2, 1),
        previous_members: 3,
        joined_members: 7,
        members: vec![member(3), member(4), member(5)],
        spares: vec![Spare { uuid: [7; 16], path: "/dev/spare".to_owned() }],
        earlier: vec![EarlierShape { until: Sequence(50), data_columns: 1, parity_columns: 1 }],
        ..alone.clone()
    };
    [("alone", alone), ("several", several)]
}

pub(crate) fn key_rows() -> [(&'static str, KeyRow); 3] {
    let recipient = KeyEntry::Recipient("age1t7rxyev2z3rw82stdlrrepyc39nvn86l5078zq".to_owned());
    let key = |id: u64| {
        let (from, made) = (1000 * id, Timestamp(5));
        KeyEntry::Key(WrappedKey {
            id,
            from: Sequence(from),
            made,
            wrapped: b"age-encryption.org/v1".to_vec(),
        })
    };
    let gone =
        DestroyedKey { id: 3, from: Sequence(7), made: Timestamp(5), destroyed: Timestamp(6) };
    let keys = KeyRow { revision: 0, entries: Vec::from([recipient.clone(), key(1), key(2)]) };
    let revised = KeyRow { revision: 2, entries: Vec::from([KeyEntry::Destroyed(gone), key(4)]) };
    let alone = KeyRow { revision: 0, entries: Vec::from([recipient]) };
    [("keys", keys), ("revised", revised), ("recipient", alone)]
}

pub(crate) fn claims() -> [(&'static str, Claim); 2] {
    let claim = Claim {
        volume_id: VolumeId([1; 16]),
        member: MemberId(3),
        member_uuid: [4; 16],
        is_given_up: false,
        interval_ms: 500,
        id: [5; 16],
        turn: 6,
        count: 7,
        since: Timestamp(-8),
        claimant: Claimant {
            host: "sensor".to_owned(),
            machine: [13; 16],
            boot_id: [9; 16],
            pid_namespace: 10,
            started: 11,
            process: 12,
        },
    };
    [("held", claim.clone()), ("given-up", Claim { is_given_up: true, ..claim })]
}

/// The options of an interface whose times are in microseconds from an offset.
fn options() -> Vec<u8> {
    let mut options = Vec::new();
    put_option(&mut options, OptionCode::INTERFACE_NAME, b"eth0");
    put_option(&mut options, OptionCode::INTERFACE_RESOLUTION, &[6]);
    put_option(&mut options, OptionCode::INTERFACE_OFFSET, &(-1_i64).to_le_bytes());
    put_comment(&mut options, "a comment");
    put_end_of_options(&mut options);
    options
}

pub(crate) fn blocks() -> [(&'static str, Vec<u8>); 3] {
    let mut whole = Vec::new();
    put_own_section_header(&mut whole, "comment");
    put_interface_description(&mut whole, LinkType::ETHERNET, 96, &options());
    let fields = EnhancedPacketFields { interface: 0, time: 5, original_len: 9, options: &[] };
    put_enhanced_packet(&mut whole, &fields, [b"abcde", b"f", b""]);
    put_interface_statistics(&mut whole, 0, 6, &[]);

    let mut rare = Vec::new();
    put_block(&mut rare, block_type::SIMPLE_PACKET, |out| out.extend(b"\x05\0\0\0abcde"));
    let name = b"\x01\0\x06\0\x0a\0\0\x01a\0\0\0\0\0\0\0";
    put_block(&mut rare, block_type::NAME_RESOLUTION, |out| out.extend(name));
    let secrets = b"KSLT\x04\0\0\0abcd";
    put_block(&mut rare, block_type::DECRYPTION_SECRETS, |out| out.extend(secrets));
    put_block(&mut rare, block_type::CUSTOM, |out| out.extend([1, 2, 3, 4, 5]));
    let packet = [&[0; 4][..], &[0; 8], &[2, 0, 0, 0, 4, 0, 0, 0], b"ab"].concat();
    put_block(&mut rare, block_type::PACKET, |out| out.extend(packet));

    // A section and an interface in the other byte order.
    let big = b"\x0a\x0d\x0d\x0a\0\0\0\x1c\x1a\x2b\x3c\x4d\0\x01\0\0\xff\xff\xff\xff\xff\xff\xff\
        \xff\0\0\0\x1c\0\0\0\x01\0\0\0\x20\0\x01\0\0\0\0\0\x60\0\x09\0\x01\x06\0\0\0\0\0\0\0\
        \0\0\0\x20";
    [("whole", whole), ("rare", rare), ("big-endian", big.to_vec())]
}

pub(crate) fn bodies() -> [(&'static str, Vec<u8>); 2] {
    let interface = |id, link_type| {
        let fields = InterfaceFields {
            id: InterfaceId(id),
            link_type,
            snaplen: 96,
            name: "if",
            recording: "",
            options: &[],
        };
        EncodedInterface::new(&fields)
    };
    let mut column = vec![0; 16 << 10];
    let mut builder = PieceBuilder::new(column.len());
    let options = &[1, 0, 2, 0, b'h', b'i', 0, 0];
    let parts = PacketParts {
        timestamp: Timestamp(5),
        original_len: 9,
        parts: [b"abc", b"de", b""],
        options: &[],
    };
    let tagged = PacketParts { timestamp: Timestamp(-4), options, ..parts };
    assert!(builder.push(&mut column, &interface(7, LinkType::ETHERNET), &parts));
    assert!(builder.push(&mut column, &interface(3, LinkType::RAW), &tagged));
    let statistics = Statistics {
        interface: InterfaceId(7),
        received: 9,
        writer_drops: 2,
        ..Default::default()
    };
    let gap = Gap {
        cause: GapCause::KernelDrops,
        interface: Some(InterfaceId(7)),
        packets: Some(3),
        bytes: None,
        from: Timestamp(1),
        to: Timestamp(2),
    };
    builder.finish(&mut column, &[statistics], &mut vec![gap], 0);
    let body = &column[4096..];
    [("gap", body[..1024].to_vec()), ("interfaces", body[..400].to_vec())]
}

pub(crate) fn parts() -> [(&'static str, Vec<u8>); 3] {
    let entry = |number: u64| SegmentEntry {
        summary: Summary {
            first: at(Sequence(10 * number), 1),
            last: at(Sequence(10 * number + 7), 3),
            time_min: Timestamp(-5),
            time_max: Timestamp(1_795_171_222_000_000_000),
            sessions: 100_000,
            packets: 1_500_000,
            unindexed: number.is_multiple_of(2),
            gaps: number.is_multiple_of(3),
            unread: false,
        },
        index: at(Sequence(10 * number + 8), 2),
        parts: 3,
        bytes: 5_000_000,
    };
    let joined = |parquet: &[u8], older: &[SegmentEntry]| -> Vec<u8> {
        let parts = directory::split(parquet, &entry(9).summary, older, 512);
        let len = |part: &Vec<u8>| u16::try_from(part.len()).unwrap().to_be_bytes();
        parts.iter().flat_map(|part| [&len(part)[..], part].concat()).collect()
    };
    [
        ("one", joined(b"parquet", &[])),
        ("directory", joined(b"parquet", &[entry(8), entry(7)])),
        ("three", joined(&[7; 1000], &[entry(8)])),
    ]
}
