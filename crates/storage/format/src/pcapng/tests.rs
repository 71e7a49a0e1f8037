use proptest::prelude::*;

use super::*;
use wire::LinkType;

/// The same block in the other byte order, for blocks whose body is given in words.
fn block(order: ByteOrder, block_type: u32, body: &[u8]) -> Vec<u8> {
    let total = u32::try_from(body.len() + 12).unwrap();
    [&number(order, block_type)[..], &number(order, total), body, &number(order, total)].concat()
}

fn number(order: ByteOrder, value: u32) -> [u8; 4] {
    match order {
        ByteOrder::Little => value.to_le_bytes(),
        ByteOrder::Big => value.to_be_bytes(),
    }
}

fn only(bytes: &[u8], order: ByteOrder) -> Block<'_> {
    let mut blocks = Blocks::new(bytes, order);
    let (offset, block) = blocks.next().unwrap().unwrap();
    assert_eq!((offset, blocks.next()), (0, None));
    block
}

#[test]
fn an_enhanced_packet_reads_back_as_written() {
    let mut options = Vec::new();
    put_option(&mut options, OptionCode::COMMENT, b"hello");
    let fields = EnhancedPacketFields {
        interface: 7,
        time: 0x0102_0304_0506_0708,
        original_len: 1500,
        options: &options,
    };
    let mut bytes = Vec::new();
    put_enhanced_packet(&mut bytes, &fields, [b"abc", b"", b"de"]);
    let View::EnhancedPacket(packet) = only(&bytes, ByteOrder::Little).view().unwrap() else {
        panic!("not an enhanced packet");
    };
    assert_eq!((packet.interface, packet.time), (7, 0x0102_0304_0506_0708));
    assert_eq!((packet.original_len, packet.data), (1500, &b"abcde"[..]));
    let read: Vec<_> = packet.options.collect();
    assert_eq!(read, [RawOption { code: OptionCode::COMMENT, value: b"hello" }]);
}

#[test]
fn a_section_of_ours_says_what_it_is_and_who_wrote_it() {
    let mut bytes = Vec::new();
    put_own_section_header(&mut bytes, "all");
    let View::SectionHeader(header) = only(&bytes, ByteOrder::Little).view().unwrap() else {
        panic!("not a section header");
    };
    let read: Vec<_> = header.options.map(|option| (option.code, option.value)).collect();
    let writer = (OptionCode::SECTION_USER_APPLICATION, &b"wirespool"[..]);
    assert_eq!(read, [(OptionCode::COMMENT, &b"all"[..]), writer]);
}

#[test]
fn long_comments_are_cut_at_a_character() {
    let mut options = Vec::new();
    put_comment(&mut options, &"\u{20ac}".repeat(COMMENT_BYTES));
    put_comment(&mut options, &format!("a{}", "\u{20ac}".repeat(COMMENT_BYTES)));
    let lengths: Vec<_> = Options::new(&options, ByteOrder::Little)
        .map(|option| str::from_utf8(option.value).unwrap().len())
        .collect();
    assert_eq!(lengths, [COMMENT_BYTES, COMMENT_BYTES - 2]);
}

#[test]
fn a_section_header_turns_the_byte_order_for_what_follows() {
    let mut bytes = Vec::new();
    put_section_header(&mut bytes, &[]);
    put_interface_description(&mut bytes, LinkType::ETHERNET, 96, &[]);
    let header: Vec<u8> =
        [&BYTE_ORDER_MAGIC.to_be_bytes()[..], &[0, 1, 0, 0], &[0, 0, 0, 0, 0, 0, 0, 24]].concat();
    bytes.extend(block(ByteOrder::Big, block_type::SECTION_HEADER, &header));
    bytes.extend(block(
        ByteOrder::Big,
        block_type::INTERFACE_DESCRIPTION,
        &[0, 1, 0, 0, 0, 0, 0, 96],
    ));
    let mut seen = Vec::new();
    for read in Blocks::new(&bytes, ByteOrder::Little) {
        let (offset, block) = read.unwrap();
        match block.view().unwrap() {
            View::SectionHeader(section) => {
                assert_eq!(section.major, 1);
                seen.push((offset, section.section_len));
            }
            View::InterfaceDescription(interface) => {
                assert_eq!((interface.link_type, interface.snaplen), (LinkType::ETHERNET, 96));
                seen.push((offset, None));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, [(0, None), (28, None), (48, Some(24)), (76, None)]);
}

#[test]
fn broken_framing_is_named() {
    let mut good = Vec::new();
    put_interface_description(&mut good, LinkType::ETHERNET, 0, &[]);
    let check = |change: &dyn Fn(&mut Vec<u8>), expect: BlockError| {
        let mut bytes = good.clone();
        change(&mut bytes);
        assert_eq!(Blocks::new(&bytes, ByteOrder::Little).next(), Some(Err(expect)));
    };
    check(&|bytes| bytes.truncate(7), BlockError::Incomplete { needed: 12 });
    check(&|bytes| bytes.truncate(19), BlockError::Incomplete { needed: 20 });
    check(&|bytes| bytes[4] = 21, BlockError::Length { total_len: 21 });
    check(&|bytes| bytes[4] = 8, BlockError::Length { total_len: 8 });
    check(&|bytes| bytes[16] = 24, BlockError::Trailer { leading: 20, trailing: 24 });
    check(
        &|bytes| bytes[..4].copy_from_slice(&block_type::SECTION_HEADER.to_le_bytes()),
        BlockError::Magic { found: [1, 0, 0, 0] },
    );
}

#[test]
fn times_become_nanoseconds_rounded_down() {
    for (tsresol, offset, units, nanos) in [
        (6, 0, 1_500_000_000_123_456, 1_500_000_000_123_456_000),
        (9, 0, 1_500_000_000_123_456_789, 1_500_000_000_123_456_789),
        (0, 5, 7, 12_000_000_000),
        (12, 0, 1_999, 1),
        (12, -1, 1_999, -999_999_999),
        (18, 0, 1_000_000_001, 1),
        (29, 0, u64::MAX, 0),
        (127, 0, u64::MAX, 0),
        (0x80, 0, 3, 3_000_000_000),
        (0x80 | 0x14, 1_000_000_000, 1, 1_000_000_000_000_000_953),
        (0x80 | 0x1e, 0, 1, 0),
        (0x80 | 0x20, 0, 0xffff_ffff, 999_999_999),
        (0x80 | 0x7f, 0, u64::MAX, 0),
        (0, 0, u64::MAX, i64::MAX),
        (0, i64::MIN, 0, i64::MIN),
        (0x80 | 0x0a, i64::MAX, u64::MAX, i64::MAX),
    ] {
        let resolution = Resolution::new(tsresol, offset);
        assert_eq!(resolution.to_nanos(units), nanos, "{tsresol:#x} {offset} {units}");
    }
    assert_eq!(Resolution::default().to_nanos(3), 3000);
    assert_eq!(Resolution::NANOSECONDS.to_nanos(3), 3);
}

#[test]
fn numbers_in_options_are_turned_and_text_is_not() {
    let big: &[u8] = &[
        0, 2, 0, 4, 0, 0, 0, 2, // epb_flags
        0, 1, 0, 4, b't', b'e', b'x', b't', // comment
        0, 4, 0, 8, 0, 0, 0, 0, 0, 0, 0, 9, // epb_dropcount
        0, 7, 0, 9, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, // epb_verdict
        0x4b, 0xad, 0, 5, 0, 0, 0x7e, 0xd9, 1, 0, 0, 0, // opt_custom
        0, 0, 0, 0,
    ];
    let mut out = Vec::new();
    normalize_options(OptionScope::Packet, Options::new(big, ByteOrder::Big), &mut out);
    let little: &[u8] = &[
        2, 0, 4, 0, 2, 0, 0, 0, //
        1, 0, 4, 0, b't', b'e', b'x', b't', //
        4, 0, 8, 0, 9, 0, 0, 0, 0, 0, 0, 0, //
        7, 0, 9, 0, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, //
        0xad, 0x4b, 5, 0, 0xd9, 0x7e, 0, 0, 1, 0, 0, 0,
    ];
    assert_eq!(out, little);
    let mut again = Vec::new();
    normalize_options(OptionScope::Packet, Options::new(&out, ByteOrder::Little), &mut again);
    assert_eq!(again, little);
}

#[test]
fn an_option_that_does_not_fit_ends_the_list_and_is_told() {
    let bytes = [1, 0, 1, 0, b'x', 0, 0, 0, 1, 0, 9, 0, b'y'];
    let mut options = Options::new(&bytes, ByteOrder::Little);
    assert_eq!(options.next(), Some(RawOption { code: 1, value: b"x" }));
    assert!(!options.is_damaged());
    assert_eq!(options.next(), None);
    assert!(options.is_damaged());
}

#[test]
fn name_and_secrets_blocks_become_little_endian() {
    let names = block(
        ByteOrder::Big,
        block_type::NAME_RESOLUTION,
        &[
            0, 1, 0, 6, 10, 0, 0, 1, b'a', 0, 0, 0, // nrb_record_ipv4
            0, 0, 0, 0, // nrb_record_end
            0, 2, 0, 1, b'd', 0, 0, 0, // ns_dnsname
            0, 0, 0, 0,
        ],
    );
    let expect = block(
        ByteOrder::Little,
        block_type::NAME_RESOLUTION,
        &[
            1, 0, 6, 0, 10, 0, 0, 1, b'a', 0, 0, 0, //
            0, 0, 0, 0, //
            2, 0, 1, 0, b'd', 0, 0, 0, //
            0, 0, 0, 0,
        ],
    );
    assert_eq!(only(&names, ByteOrder::Big).to_little_endian(), Ok(Some(expect)));

    let secrets = [
        &0x544c_534b_u32.to_be_bytes()[..],
        &5_u32.to_be_bytes(),
        b"CLIEN\0\0\0",
        &[0, 1, 0, 1, b'c', 0, 0, 0],
    ]
    .concat();
    let expect = [
        &0x544c_534b_u32.to_le_bytes()[..],
        &5_u32.to_le_bytes(),
        b"CLIEN\0\0\0",
        &[1, 0, 1, 0, b'c', 0, 0, 0, 0, 0, 0, 0],
    ]
    .concat();
    let bytes = block(ByteOrder::Big, block_type::DECRYPTION_SECRETS, &secrets);
    let expect = block(ByteOrder::Little, block_type::DECRYPTION_SECRETS, &expect);
    assert_eq!(only(&bytes, ByteOrder::Big).to_little_endian(), Ok(Some(expect)));
}

#[test]
fn a_simple_packet_is_as_long_as_the_snaplen_allows() {
    let body = [&9_u32.to_le_bytes()[..], b"123456789\0\0\0"].concat();
    let bytes = block(ByteOrder::Little, block_type::SIMPLE_PACKET, &body);
    let View::SimplePacket(packet) = only(&bytes, ByteOrder::Little).view().unwrap() else {
        panic!("not a simple packet");
    };
    assert_eq!(packet.data(0), Some(&b"123456789"[..]));
    assert_eq!(packet.data(4), Some(&b"1234"[..]));
    let body = [&13_u32.to_le_bytes()[..], b"123456789\0\0\0"].concat();
    let bytes = block(ByteOrder::Little, block_type::SIMPLE_PACKET, &body);
    let View::SimplePacket(packet) = only(&bytes, ByteOrder::Little).view().unwrap() else {
        panic!("not a simple packet");
    };
    assert_eq!(packet.data(0), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_bytes_make_the_decoder_panic(
        words in prop::collection::vec(prop_oneof![0_u32..40, any::<u32>()], 0..40),
        kind in prop_oneof![0_u32..12, any::<u32>()],
        big in any::<bool>(),
    ) {
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        let body: Vec<u8> = words.iter().flat_map(|&word| number(order, word)).collect();
        for bytes in [block(order, kind, &body), body] {
            for read in Blocks::new(&bytes, order) {
                let Ok((_, block)) = read else { break };
                if let Ok(Some(little)) = block.to_little_endian() {
                    prop_assert_eq!(only(&little, ByteOrder::Little).block_type, block.block_type);
                }
                let Ok(View::InterfaceDescription(interface)) = block.view() else { continue };
                interface.resolution().to_nanos(u64::MAX);
            }
        }
    }

    #[test]
    fn decimal_times_agree_with_plain_division(exponent in 0_u8..=19, units in any::<u64>()) {
        let scale = 10_i128.pow(u32::from(exponent));
        let nanos = i128::from(units) * 1_000_000_000 / scale;
        let expect = i64::try_from(nanos).unwrap_or(i64::MAX);
        prop_assert_eq!(Resolution::new(exponent, 0).to_nanos(units), expect);
    }
}
