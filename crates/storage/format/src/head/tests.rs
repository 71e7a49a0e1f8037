use super::*;
use crate::geometry::{ExtentOrder, PIECE_BYTES_MIN, RESERVED_BYTES};
use crate::pcapng::{BlockHeader, ByteOrder, OptionCode, View};
use proptest::prelude::*;
use units::{Epoch, MemberId, Sequence};

const KEY: HeadKey = HeadKey([7; 32]);

fn geometry() -> Geometry {
    Geometry {
        data_columns: 2,
        parity_columns: 1,
        order: ExtentOrder::FirstToLast,
        zones: 1,
        piece_bytes: PIECE_BYTES_MIN,
        slots: 40,
        slot0_offset: RESERVED_BYTES,
        slots_per_extent: 1,
        usable_begin: 0,
        usable_end: u64::MAX,
    }
}

fn head(kind: Kind) -> Head {
    let stripe = StripeHead {
        volume_id: VolumeId([9; 16]),
        geometry: geometry(),
        kind,
        clean_stop: true,
        extra_blocks: true,
        key_id: None,
        epoch: Epoch(3),
        stripe: StripeId { sequence: Sequence(41), sub: 2 },
        first_row: 1,
        rows: if kind.closes_slot() { 0 } else { 2 },
        acknowledged: StripeId { sequence: Sequence(40), sub: 7 },
        previous: StripeId { sequence: Sequence(41), sub: 1 },
        index: StripeId { sequence: Sequence(12), sub: 0 },
        time_min: Timestamp(-5),
        time_max: Timestamp(1_700_000_000_000_000_000),
        realtime: Timestamp(17),
        boottime_ns: 19,
        totals: Totals {
            packets: 1,
            captured_bytes: 2,
            interface_drops: 3,
            kernel_drops: 4,
            writer_drops: 5,
        },
        previous_cid: [1; 32],
        manifest: vec![11, 12, 13],
        previous_manifest: vec![21, 22, 23],
        recorded: (kind != Kind::Key).then(|| {
            let names = ["eth0".to_owned()];
            Recorded::new(true, StripeId { sequence: Sequence(40), sub: 0 }, Timestamp(3), &names)
        }),
    };
    let rows = usize::from(stripe.rows);
    let piece = PieceHead {
        member: MemberId(1),
        column: 2,
        packets: 1,
        member_uuid: [4; 16],
        row_crcs: vec![77; rows],
    };
    Head::new(stripe, piece)
}

#[test]
fn heads_round_trip() {
    for kind in [Kind::Data, Kind::Index, Kind::Key, Kind::Void, Kind::Epoch, Kind::Heartbeat] {
        let head = head(kind);
        assert_eq!(Head::decode(&head.encode(&KEY), Some(&KEY)), Ok(head.clone()));
        assert_eq!(Head::decode(&head.encode(&KEY), None), Ok(head));
    }
}

/// Puts the checksums of a page right that was changed.
fn sealed_again(mut page: [u8; HEAD_BYTES]) -> [u8; HEAD_BYTES] {
    let cid = cid_of(&page);
    put(&mut page, at::CID, &cid);
    put(&mut page, at::MAC, &[0; 16]);
    put(&mut page, at::CRC, &[0; 4]);
    let crc = crc32c(&page);
    put(&mut page, at::CRC, &crc.to_le_bytes());
    let mac = KEY.mac(&page);
    put(&mut page, at::MAC, &mac);
    page
}

/// What is decoded has the identity that it was decoded with: every byte of the common part is of
/// a field, or refused.
#[test]
fn nothing_of_the_common_part_is_lost_by_writing_it_again() {
    let page = head(Kind::Data).encode(&KEY);
    assert_eq!(sealed_again(page), page);
    let mut unknown = 0;
    for offset in at::COMMON..at::CID {
        for bits in [1, 4, 0x80, 0xff] {
            let mut changed = page;
            changed[offset] ^= bits;
            match Head::decode(&sealed_again(changed), Some(&KEY)) {
                Ok(head) => assert_eq!(Head::new(head.stripe.clone(), head.piece.clone()), head),
                Err(error) => unknown += usize::from(error == HeadError::Unknown),
            }
        }
    }
    // Flags, the key's number, hashes of bodies, manifests of columns that are not there.
    assert!(unknown > 4 * (2 + 8 + 384), "{unknown}");
}

#[test]
fn every_flipped_bit_is_noticed() {
    let page = head(Kind::Data).encode(&KEY);
    for bit in 0..HEAD_BYTES * 8 {
        let mut damaged = page;
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(Head::decode(&damaged, Some(&KEY)).is_err(), "bit {bit}");
        // Without the key the MAC itself is the only unprotected field.
        let in_mac = (at::MAC * 8..at::MAC * 8 + 128).contains(&bit);
        assert_eq!(Head::decode(&damaged, None).is_err(), !in_mac, "bit {bit}");
    }
}

#[test]
fn another_key_is_refused() {
    let page = head(Kind::Data).encode(&HeadKey([8; 32]));
    assert_eq!(Head::decode(&page, Some(&KEY)), Err(HeadError::Mac));
}

#[test]
fn a_head_is_a_section_header_and_a_closing_one_opens_a_block_to_the_end_of_its_slot() {
    let data = head(Kind::Data).encode(&KEY);
    assert_eq!(
        (get_u32(&data, 0), get_u32(&data, 4), get_u32(&data, 4092)),
        (0x0a0d_0d0a, 4096, 4096)
    );
    assert_eq!(get_i64(&data, 16), 2 * i64::from(ROW_BYTES));

    let void = head(Kind::Void).encode(&KEY);
    assert_eq!((get_u32(&void, 4), get_u32(&void, 4080)), (4084, 4084));
    // The head is in row 1 of 4.
    assert_eq!((get_u32(&void, 4088), get_i64(&void, 16)), (12 + 2 * ROW_BYTES, 12 + 2 * 4096));
    for page in [data, void] {
        let section = BlockHeader::read(&page, ByteOrder::Little).expect("a block");
        let (block, verdict) = section.split(&page).expect("whole");
        assert_eq!(verdict, Ok(()));
        let View::SectionHeader(header) = block.view().expect("readable") else {
            panic!("{block:?}")
        };
        let name = header.options.find_value(OptionCode::SECTION_USER_APPLICATION);
        assert_eq!(name, Some(&b"wirespool"[..]));
    }
}

#[test]
fn a_closing_head_in_the_last_row_is_complete() {
    let mut void = head(Kind::Void);
    void.stripe.first_row = 3;
    let page = Head::new(void.stripe, void.piece).encode(&KEY);
    assert_eq!((get_u32(&page, 4088), get_u32(&page, 4092)), (12, 12));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), HEAD_BYTES)) {
        let mut page: [u8; HEAD_BYTES] = bytes.try_into().expect("as long as a head");
        prop_assert_eq!(Head::decode(&page, None), Err(HeadError::Magic));
        put(&mut page, at::MAGIC, &MAGIC);
        put(&mut page, at::VERSION, &VERSION.to_le_bytes());
        prop_assert_eq!(Head::decode(&page, None), Err(HeadError::Checksum));
        // Behind the checksum: the range checks alone must hold as well.
        if let Ok(stripe) = StripeHead::decode(&page) {
            prop_assert!(stripe.geometry.check().is_ok());
        }
    }
}

#[test]
fn places_of_stripes_follow_one_another() {
    let at = |sequence, sub| StripeId { sequence: Sequence(sequence), sub };
    assert_eq!((at(7, 3).after(), at(7, 3).before()), (at(7, 4), at(7, 2)));
    assert_eq!((at(7, u16::MAX).after(), at(8, 0).before()), (at(8, 0), at(7, u16::MAX)));
    let last = at(u64::MAX, u16::MAX);
    assert_eq!((last.after(), at(0, 0).before()), (last, at(0, u16::MAX)));
}
