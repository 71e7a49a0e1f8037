use super::*;

/// Plays a script of segments, one word each: `>` or `<` for the sender, flag letters (S A F R and
/// P for payload of 100 bytes, Z for a zero window), and optionally `+n` or `-n` to move the
/// sender's sequence number first.
fn play(script: &str) -> Tcp {
    let mut words = script.split_whitespace().peekable();
    let is_turned = words.peek().is_some_and(|word| word.contains('S') && word.contains('A'));
    let first_sender = words.peek().and_then(|word| word.chars().next());
    let orig_mark = if is_turned && first_sender == Some('>') { '<' } else { '>' };
    let mut tcp = if is_turned { Tcp::turned() } else { Tcp::default() };
    let mut next = [1000_u32, 5000];
    for (at, word) in words.enumerate() {
        let side = if word.starts_with(orig_mark) { Side::Orig } else { Side::Resp };
        let me = usize::from(side == Side::Resp);
        let (letters, shift) =
            word[1..].split_at(word[1..].find(['+', '-']).unwrap_or(word.len() - 1));
        if !shift.is_empty() {
            next[me] = next[me].wrapping_add_signed(shift.parse::<i32>().unwrap());
        }
        let has = |letter| letters.contains(letter);
        let bit = |letter, bit| if has(letter) { bit } else { 0 };
        let flags = bit('S', SYN) | bit('F', FIN) | bit('R', RST) | bit('A', ACK);
        let header = TcpHeader {
            tcp_seq: next[me],
            tcp_ack: next[1 - me],
            flags,
            window: if has('Z') { 0 } else { 1000 },
            options: TcpOptions::default(),
        };
        let len = if has('P') { 100 } else { 0 };
        tcp.segment(side, Timestamp(i64::try_from(at).unwrap() * 1_000_000), &header, len);
        next[me] = next[me].wrapping_add(len + u32::from(has('S')) + u32::from(has('F')));
    }
    tcp
}

#[test]
fn a_gap_is_before_a_message_only_where_the_stream_was_seen_to_begin() {
    // Bytes 1101 to 1200 of the originator are missing.
    let (opened, met) = (play(">S <SA >AP >AP+100"), play(">AP >AP+100"));
    assert!(opened.is_ahead(Side::Orig, 1201));
    assert!(!opened.is_ahead(Side::Orig, 1101), "it is the next that is wanted");
    assert!(!opened.is_ahead(Side::Orig, 1001 + BEGINNING_LEN), "too far behind the beginning");
    assert!(!met.is_ahead(Side::Orig, 1200));
    assert!(play("<SA >AP >AP+100").is_ahead(Side::Orig, 1200), "the SYN-ACK shows it, too");
}

#[test]
fn states_and_histories_are_those_of_zeek() {
    for (script, state, history) in [
        (">S", State::S0, "S"),
        (">S >S-1", State::S0, "S"),
        (">S <SA", State::S1, "Sh"),
        (">S <SA >A", State::S1, "ShA"),
        (">S <SA >A >AP <AP >A", State::S1, "ShADd"),
        (">S <SA >A >AP <A <AP >A >AF <AF >A", State::Sf, "ShADadFf"),
        (">S <SA >A >AF", State::S2, "ShAF"),
        (">S <SA >A <AF >A", State::S3, "ShAf"),
        (">S <RA", State::Rej, "Sr"),
        (">S <SA >A >R", State::Rsto, "ShAR"),
        (">S <SA >A <R", State::Rstr, "ShAr"),
        (">S >R", State::Rstos0, "SR"),
        (">S >F", State::Sh, "SF"),
        ("<SA <R", State::Rstrh, "^hr"),
        ("<SA <F", State::Shr, "^hf"),
        ("<SA >A >AP", State::S1, "^hAD"),
        (">SA <A <AP", State::S1, "^hAD"),
        ("<SA >S", State::S1, "^hS"),
        (">AP <A >AP", State::Oth, "Da"),
        (">AP <AP", State::Oth, "Dd"),
        (">S <A <SA >A", State::S1, "SahA"),
        (">S <SA >A >FR", State::Rsto, "ShAI"),
        (">SF", State::Sh, "Q"),
        (">S <SA >A >AF <AF >A <R", State::Sf, "ShAFfr"),
        (">R", State::Oth, "R"),
        (">S <SA >R >R+100", State::Rsto, "ShRR"),
        (">S <SA >AF >AF-1", State::S2, "ShF"),
        (">S <SA >A >AP >AP-100 >AP-100", State::S1, "ShADT"),
        (">S <SA >AP <AZ <AZ >A", State::S1, "ShDawA"),
        (">S <SA >A >AP+50 <A >AP", State::S1, "ShADaG"),
    ] {
        let tcp = play(script);
        assert_eq!((tcp.state(), tcp.history.as_str()), (state, history), "{script}");
    }
}

#[test]
fn repeated_letters_stand_for_powers_of_ten() {
    let script = format!(">S <SA >AP {}", ">AP-100 ".repeat(99));
    assert_eq!(play(&script).history.as_str(), "ShDTT");
    assert_eq!(play(&format!("{script} >AP-100")).history.as_str(), "ShDTTT");
    assert_eq!(play(&script).orig.evidence.retransmitted_packets, 99);
    assert_eq!(play(&script).orig.evidence.retransmitted_bytes, 9900);
}

#[test]
fn a_history_keeps_its_first_letters() {
    let script = ">S ".repeat(100);
    assert_eq!(play(&script).history.as_str(), "S".repeat(31));
}

#[test]
fn missed_bytes_are_those_acknowledged_and_never_seen() {
    let tcp = play(">S <SA >AP >AP+300 <A");
    assert_eq!(tcp.orig.evidence.missed_bytes, 300);
    let reordered = play(">S <SA >AP >AP+100 >AP-200 <A+0");
    assert_eq!(reordered.orig.evidence.retransmitted_packets, 0);
    let one_way = play(">AP >AP >AP+500");
    assert_eq!(one_way.orig.evidence.missed_bytes, 0, "the other end did not acknowledge it");
}

#[test]
fn only_a_syn_with_another_initial_number_reuses_the_tuple() {
    let syn = |seq, flags| TcpHeader {
        tcp_seq: seq,
        tcp_ack: 0,
        flags,
        window: 1,
        options: TcpOptions::default(),
    };
    let tcp = play(">S <SA >A >AP");
    assert!(!tcp.is_reused_by(Side::Orig, &syn(1000, SYN)));
    assert!(tcp.is_reused_by(Side::Orig, &syn(1001, SYN)));
    assert!(!tcp.is_reused_by(Side::Orig, &syn(1001, SYN | ACK)));
    assert!(tcp.is_reused_by(Side::Resp, &syn(1001, SYN)));
    let midstream = play(">AP");
    assert!(!midstream.is_reused_by(Side::Orig, &syn(999, SYN)), "its SYN came late");
    assert!(!midstream.is_reused_by(Side::Resp, &syn(4999, SYN)));
    assert!(midstream.is_reused_by(Side::Resp, &syn(5000, SYN)));
}

#[test]
fn the_handshake_lasts_from_the_last_syn_to_the_acknowledgement_of_its_answer() {
    assert_eq!(play(">S <SA >A").handshake_ns, Some(2_000_000));
    assert_eq!(play(">S >S-1 <SA >A >A").handshake_ns, Some(2_000_000));
    assert_eq!(play(">S <SA").handshake_ns, None);
    assert_eq!(play("<SA >A").handshake_ns, None);
}
