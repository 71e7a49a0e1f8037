use super::walk::writer_drops;
use super::*;
use crate::directory::GapCause;
use crate::pcapng::{Blocks, ByteOrder, View};
use proptest::prelude::*;
use units::InterfaceId;

fn interface(id: u32, link_type: u16) -> EncodedInterface {
    let name = format!("if{id}");
    let link_type = LinkType(link_type);
    EncodedInterface::new(&InterfaceFields {
        id: InterfaceId(id),
        link_type,
        snaplen: 96,
        name: &name,
        recording: if id == 3 { "night shift" } else { "" },
        options: &[],
    })
}

fn parts(time: i64, data: &[u8]) -> PacketParts<'_> {
    let original_len = u32::try_from(data.len()).expect("short") + 4;
    PacketParts { timestamp: Timestamp(time), original_len, parts: [data, &[], &[]], options: &[] }
}

fn gap(from: i64) -> Gap {
    Gap {
        cause: GapCause::KernelDrops,
        interface: Some(InterfaceId(7)),
        packets: Some(3),
        bytes: None,
        from: Timestamp(from),
        to: Timestamp(from + 1),
    }
}

#[test]
fn packets_come_back_with_their_interfaces_and_gaps() {
    let mut column = vec![0xee; 16 << 10];
    let mut builder = PieceBuilder::new(column.len());
    assert!(builder.push(&mut column, &interface(7, 1), &parts(5, b"abcde")));
    assert!(builder.push(&mut column, &interface(3, 101), &parts(-4, b"")));
    let tagged = PacketParts {
        timestamp: Timestamp(9),
        original_len: 6,
        parts: [b"ab", b"cd", b"ef"],
        options: &[1, 0, 2, 0, b'h', b'i', 0, 0],
    };
    assert!(builder.push(&mut column, &interface(7, 1), &tagged));
    let totals = Statistics {
        interface: InterfaceId(7),
        received: 9,
        writer_drops: 2,
        ..Statistics::default()
    };
    let mut gaps = vec![gap(1), gap(2)];
    let rows = builder.finish(&mut column, &[totals], &mut gaps, 0);
    assert!(gaps.is_empty());
    let body = &column[ROW..ROW * (1 + usize::from(rows))];

    let mut walk = packets(body);
    let stored: Vec<_> = walk.by_ref().collect::<Result<_, _>>().expect("well formed");
    let seen: Vec<_> = stored.iter().map(|p| (p.timestamp.0, p.original_len, p.data)).collect();
    assert_eq!(seen, [(5, 9, &b"abcde"[..]), (-4, 4, b""), (9, 6, b"abcdef")]);
    assert_eq!(stored[2].options, [1, 0, 2, 0, b'h', b'i', 0, 0, 0, 0, 0, 0]);
    let ids: Vec<_> =
        walk.interfaces().iter().map(|i| (i.id.get(), i.link_type.0, i.snaplen)).collect();
    assert_eq!(ids, [(7, 1, 96), (3, 101, 96)]);
    assert_eq!(walk.gaps(), [gap(1), gap(2)]);
    let contents = builder.contents();
    assert_eq!((contents.packets, contents.captured_bytes), (3, 11));
    assert_eq!((contents.time_min.0, contents.time_max.0), (-4, 9));
}

#[test]
fn statistics_are_stored_as_totals() {
    let mut column = vec![0; 16 << 10];
    let mut builder = PieceBuilder::new(column.len());
    assert!(builder.push(&mut column, &interface(0, 1), &parts(5, b"abcde")));
    let totals = Statistics {
        interface: InterfaceId(0),
        received: 100,
        interface_drops: Some(4),
        kernel_drops: 3,
        writer_drops: 2,
    };
    let rows = builder.finish(&mut column, &[totals], &mut Vec::new(), 0);
    let body = &column[ROW..ROW * (1 + usize::from(rows))];
    let block = Blocks::new(body, ByteOrder::Little)
        .map(|block| block.expect("well formed").1.view().expect("readable"))
        .find_map(|view| match view {
            View::InterfaceStatistics(statistics) => Some(statistics),
            _ => None,
        })
        .expect("one statistics block");
    let counter = |code| block.options.clone().find_u64(code);
    assert_eq!(counter(OptionCode::STATISTICS_RECEIVED), Some(100));
    assert_eq!(counter(OptionCode::STATISTICS_INTERFACE_DROPS), Some(4));
    assert_eq!(counter(OptionCode::STATISTICS_KERNEL_DROPS), Some(3));
    assert_eq!(counter(OptionCode::STATISTICS_DELIVERED), Some(95));
    assert_eq!(writer_drops(block.options), Some(2));
}

#[test]
fn the_longest_packet_fits_an_empty_piece() {
    let mut column = vec![0; 16 << 10];
    let mut builder = PieceBuilder::new(column.len());
    let interface = interface(0, 1);
    let longest = vec![1; builder.captured_len_max(&interface)];
    assert!(builder.push(&mut column, &interface, &parts(0, &longest)));
    assert_eq!(builder.finish(&mut column, &[], &mut Vec::new(), 0), 3);
}

#[track_caller]
fn check(builder: &mut PieceBuilder, column: &mut [u8], expected: &[(i64, usize, u32)]) {
    let rows = builder.finish(column, &[], &mut Vec::new(), 0);
    let body = &column[ROW..ROW * (1 + usize::from(rows))];
    let mut walk = packets(body);
    let mut found = Vec::new();
    while let Some(packet) = walk.next() {
        let packet = packet.expect("well formed");
        found.push((
            packet.timestamp.0,
            packet.data.len(),
            walk.interfaces()[packet.interface].id.get(),
        ));
    }
    assert_eq!(found, expected);
    assert_eq!(usize::try_from(builder.contents().packets).expect("few"), expected.len());
    for known in builder.interfaces() {
        let count = expected.iter().filter(|&&(_, _, id)| id == known.id.get()).count();
        assert_eq!(usize::try_from(known.packets).expect("few"), count);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_full_piece_holds_what_was_pushed_and_a_cut_one_its_beginning(
        lengths in proptest::collection::vec((0_usize..900, 0_u32..3), 1..80),
        kept_rows in 3_u16..15,
    ) {
        let mut column = vec![0; 64 << 10];
        let mut builder = PieceBuilder::new(column.len());
        let payload = vec![0x5a; 1000];
        let mut pushed = Vec::new();
        for (place, &(length, id)) in lengths.iter().enumerate() {
            let data = &payload[..length];
            let time = i64::try_from(place).expect("few");
            if !builder.push(&mut column, &interface(id, 1), &parts(time, data)) {
                break;
            }
            pushed.push((time, length, id));
        }
        let (mut kept, mut kept_column) = (builder.clone(), column.clone());
        let mut rest_column = vec![0; column.len()];
        let rest = kept.split(&kept_column, kept_rows, &mut rest_column);
        check(&mut builder, &mut column, &pushed);
        let kept_packets = usize::try_from(kept.contents().packets).expect("few");
        match rest {
            Some(mut rest) => {
                prop_assert!(ROW * (1 + usize::from(kept_rows)) >= kept.at);
                check(&mut kept, &mut kept_column, &pushed[..kept_packets]);
                check(&mut rest, &mut rest_column, &pushed[kept_packets..]);
            }
            None => check(&mut kept, &mut kept_column, &pushed),
        }
    }

    #[test]
    fn arbitrary_bodies_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        prop_assert!(packets(&bytes).count() <= bytes.len());
    }
}

#[test]
fn a_part_of_a_body_walks_as_the_whole_does() {
    let (one, other) = (interface(3, 1), interface(4, 1));
    let mut column = vec![0; 64 << 10];
    let mut builder = PieceBuilder::new(column.len());
    for number in 0..20_i64 {
        let interface = if number < 15 { &one } else { &other };
        let data = vec![7; usize::try_from(10 * number).unwrap()];
        assert!(builder.push(&mut column, interface, &parts(number, &data)));
    }
    let rows = builder.finish(&mut column, &[], &mut Vec::new(), 0);
    let body = &column[ROW..ROW * (1 + usize::from(rows))];
    let whole: Vec<StoredPacket<'_>> = packets(body).map(Result::unwrap).collect();
    let known = interfaces_in_front(&body[..ROW]);
    assert_eq!(known.iter().map(|known| known.id).collect::<Vec<_>>(), [InterfaceId(3)]);
    assert_eq!(known[0].recording.as_deref(), Some("night shift"));
    let (first, last) = (&whole[4], &whole[14]);
    let part = &body[first.begin..last.end];
    let walked: Vec<StoredPacket<'_>> =
        packets_within(part, first.begin, known.clone()).map(Result::unwrap).collect();
    assert_eq!(walked, whole[4..=14]);
    // The sixteenth packet is of an interface that is not described in front.
    let later = &body[first.begin..whole[15].end];
    let last = packets_within(later, first.begin, known).last().unwrap();
    assert_eq!(last.unwrap_err().offset, whole[15].begin);
}
