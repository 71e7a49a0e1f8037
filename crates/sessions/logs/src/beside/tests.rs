use units::number::to_u64;

use super::*;

fn random_of(number: u8) -> Random {
    [number; 32]
}

/// Two lines of each session, as TLS 1.3 has several.
fn key_log(sessions: &[u8]) -> Vec<u8> {
    let line = |label: &str, number: u8| {
        format!("{label} {} {}\n", units::hex(&random_of(number)), units::hex(&[number | 0x80; 48]))
    };
    let lines = |&number: &u8| line("CLIENT_RANDOM", number) + &line("EXPORTER_SECRET", number);
    block_of(TLS_KEY_LOG, sessions.iter().map(lines).collect::<String>().as_bytes())
}

fn block_of(kind: u32, bytes: &[u8]) -> Vec<u8> {
    let mut block = Vec::new();
    put_block(&mut block, block_type::DECRYPTION_SECRETS, |out| {
        out.extend_from_slice(&kind.to_le_bytes());
        out.extend_from_slice(&u32::try_from(bytes.len()).unwrap().to_le_bytes());
        out.extend_from_slice(bytes);
    });
    block
}

fn names(numbers: &[u8]) -> Vec<u8> {
    let mut records = Vec::new();
    for &number in numbers {
        let value = [&[10, 0, 0, number][..], b"host", &[b'0' + number, 0]].concat();
        put_option(&mut records, NAME_OF_V4, &value);
    }
    put_option(&mut records, 0x8000, &[1, 2]);
    let mut block = Vec::new();
    put_block(&mut block, block_type::NAME_RESOLUTION, |out| {
        out.extend_from_slice(&records);
        put_option(out, 0, &[]);
    });
    block
}

fn hello(number: u8, is_datagram: bool) -> Vec<u8> {
    let head: &[u8] = if is_datagram {
        &[
            22, 0xfe, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 60, 1, 0, 0, 48, 0, 0, 0, 0, 0, 0, 0, 48,
            254, 253,
        ]
    } else {
        &[22, 3, 1, 0, 60, 1, 0, 0, 56, 3, 3]
    };
    [head, &random_of(number), &[0; 8]].concat()
}

fn tuple(number: u8) -> FiveTuple {
    let address = |last| Address::V4([10, 0, 0, last].into());
    FiveTuple {
        orig: address(number),
        resp: address(100),
        orig_port: 1,
        resp_port: 443,
        proto: wire::Protocol::TCP,
    }
}

/// Sessions whose secrets are among these bytes, each as often as it has a line.
fn sessions_in(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let hex_of = |number| units::hex(&random_of(number));
    let mut found: Vec<u8> =
        (0..8).flat_map(|number| vec![number; text.matches(&hex_of(number)).count()]).collect();
    found.sort_unstable();
    found
}

#[test]
fn a_line_comes_with_the_client_hello_that_it_is_of_before_or_after_it() {
    for (is_first, is_datagram) in [(true, false), (false, true)] {
        let mut beside = Beside::new(false, true);
        let mut out = Vec::new();
        if is_first {
            out.extend(beside.block(&key_log(&[1, 2, 3])));
            assert!(out.is_empty());
        }
        out.extend(beside.packet(Some(7), &tuple(2), &hello(2, is_datagram)));
        if !is_first {
            assert!(out.is_empty());
            out.extend(beside.block(&key_log(&[1, 2, 3])));
        }
        assert_eq!(sessions_in(&out), [2, 2]);
        assert_eq!(beside.left_out(), 4);
        assert!(beside.block(&key_log(&[1, 2, 3])).is_empty(), "pieces repeat blocks");
        let blocks: Result<Vec<_>, _> = Blocks::new(&out, ByteOrder::Little).collect();
        assert!(blocks.unwrap().iter().all(|(_, block)| block.view().is_ok()));
    }
}

#[test]
fn what_does_not_say_whose_it_is_stays_and_is_counted() {
    let mut beside = Beside::new(false, true);
    beside.packet(None, &tuple(1), &hello(1, false));
    let log = b"# a comment\nRSA 0123456789abcdef 00\nCLIENT_RANDOM 01\n\n\xff\xff \xff \xff\n";
    assert!(beside.block(&block_of(TLS_KEY_LOG, log)).is_empty());
    assert_eq!(beside.left_out(), 3);
    let wireguard = block_of(0x5747_4b4c, b"LOCAL_STATIC_PRIVATE_KEY=x");
    assert!(beside.block(&wireguard).is_empty());
    assert_eq!(beside.left_out(), 4);
    // Cut, of another kind, or in the middle of something.
    let cut = &hello(1, false)[..40];
    assert!(
        [cut, b"\x16", b"", b"\x16\x03\x01\x00\x40\x02", &[0; 80]]
            .iter()
            .all(|payload| { client_random(payload).is_none() })
    );
}

#[test]
fn names_come_for_the_addresses_of_the_answer() {
    let mut beside = Beside::new(false, true);
    assert!(beside.block(&names(&[1, 2, 3])).is_empty());
    let given = beside.packet(Some(1), &tuple(2), b"");
    assert!(given.windows(5).any(|part| part == b"host2"));
    assert!(!given.windows(5).any(|part| part == b"host1"));
    assert_eq!(beside.left_out(), 3, "two names, and a record that is no address");
    assert!(beside.packet(Some(1), &tuple(2), b"").is_empty());
}

#[test]
fn all_of_them_come_where_everything_is_asked_for_and_none_without_a_place() {
    let blocks = [key_log(&[1, 2]), names(&[1]), block_of(9, b"x")];
    let mut beside = Beside::new(true, true);
    for block in &blocks {
        assert_eq!(beside.block(block), *block);
    }
    assert_eq!(beside.left_out(), 0);
    let mut beside = Beside::new(true, false);
    assert!(blocks.iter().all(|block| beside.block(block).is_empty()));
    assert!(beside.packet(None, &tuple(1), &hello(1, false)).is_empty());
    assert_eq!(beside.left_out(), 7);
}

#[test]
fn more_than_the_budget_is_counted_and_not_kept() {
    let mut beside = Beside::new(false, true);
    let line = [units::hex(&random_of(1)).into_bytes(), vec![b'a'; WAITING_BYTES_MAX / 2]];
    for label in ["A", "B", "C"] {
        let line = [label.as_bytes(), b" ", &line[0], b" ", &line[1]].concat();
        assert!(beside.block(&block_of(TLS_KEY_LOG, &line)).is_empty());
    }
    assert_eq!(
        (beside.left_out(), sessions_in(&beside.packet(None, &tuple(1), &hello(1, false)))),
        (3, vec![1])
    );
    assert_eq!(beside.left_out(), 2);
}

proptest::proptest! {
    /// Whatever the order of blocks and packets: exactly the lines of what is in the answer.
    #[test]
    fn an_answer_has_the_secrets_of_its_sessions_and_no_others(
        steps in proptest::collection::vec((proptest::bool::ANY, 0_u8..8, 0_u8..8), 0..40),
    ) {
        let mut beside = Beside::new(false, true);
        let (mut out, mut logged, mut taken) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let mut lines = Vec::new();
        for (is_block, first, second) in steps {
            if is_block {
                out.extend(beside.block(&key_log(&[first, second])));
                if logged.insert((first, second)) {
                    lines.extend([first, first, second, second]);
                }
            } else {
                out.extend(beside.packet(None, &tuple(first), &hello(first, false)));
                taken.insert(first);
            }
        }
        let mut expected: Vec<u8> =
            lines.iter().copied().filter(|number| taken.contains(number)).collect();
        expected.sort_unstable();
        proptest::prop_assert_eq!(beside.left_out(), to_u64(lines.len() - expected.len()));
        proptest::prop_assert_eq!(sessions_in(&out), expected);
    }
}
