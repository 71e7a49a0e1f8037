//! Fabricated recordings: each flaw is named.

use super::*;
use crate::load::Sizes;

const KEY: u64 = 77;
const SENT: u64 = 10_000;

/// What was sent, by number.
fn sent(load: &Load) -> Vec<Vec<u8>> {
    let packet = |number| {
        let mut frame = Vec::new();
        load.packet(KEY, number, &mut frame);
        frame
    };
    (0..SENT).map(packet).collect()
}

/// Judges a recording that differs from what was sent as `change` wants it.
fn judged(drops: Drops, change: impl FnOnce(&Load, &mut Vec<Vec<u8>>)) -> Judged {
    let load = Load::made(Sizes::Imix, 50).unwrap();
    let mut packets = sent(&load);
    change(&load, &mut packets);
    let mut judge = Judge::new(&load, KEY, SENT);
    for packet in &packets {
        judge.packet(packet, u32::try_from(packet.len()).unwrap());
    }
    let judged = judge.finish(drops);
    assert!(judged.account.is_balanced());
    assert_eq!(judged.read, u64::try_from(packets.len()).unwrap());
    judged
}

/// The words of the only flaw.
#[track_caller]
fn check(account: Account, words: &str, change: impl FnOnce(&Load, &mut Vec<Vec<u8>>)) {
    let judged = judged(Drops::default(), change);
    assert_eq!(judged.account, Account { offered: SENT, ..account });
    let named: Vec<String> = judged.findings.iter().map(ToString::to_string).collect();
    assert_eq!(named.join("; "), words);
    assert_eq!(judged.account.is_flawless(), words.is_empty());
}

const ALL: Account = Account {
    offered: SENT,
    stored: SENT,
    altered: 0,
    interface_drops: 0,
    kernel_drops: 0,
    writer_drops: 0,
    unexplained: 0,
    duplicated: 0,
    reordered: 0,
    strangers: 0,
};

#[test]
fn what_came_back_as_it_was_sent_is_flawless() {
    check(ALL, "", |_, _| {});
}

#[test]
fn a_lost_packet_is_named() {
    let one = Account { stored: SENT - 1, unexplained: 1, ..ALL };
    check(one, "packet 4711 is missing", |_, packets| drop(packets.remove(4711)));
    let many = Account { stored: SENT - 300, unexplained: 300, ..ALL };
    check(many, "packets 100 to 398 are missing; packet 9999 is missing", |_, packets| {
        packets.drain(100..399);
        packets.pop();
    });
}

#[test]
fn an_altered_packet_is_named_with_its_first_wrong_byte() {
    let account = Account { stored: SENT - 1, altered: 1, ..ALL };
    check(account, "packet 12 is altered from byte 33 on", |_, packets| packets[12][33] ^= 1);
    // Its end is kept: a packet of the same number, cut in the middle.
    check(account, "packet 12 is altered from byte 14 on", |_, packets| {
        packets[12].drain(14..20);
    });
}

#[test]
fn a_packet_recorded_with_a_wrong_length_is_altered() {
    let load = Load::made(Sizes::Fixed(64), 2).unwrap();
    let mut judge = Judge::new(&load, KEY, 1);
    let mut frame = Vec::new();
    load.packet(KEY, 0, &mut frame);
    judge.packet(&frame, 65);
    let judged = judge.finish(Drops::default());
    assert_eq!((judged.account.stored, judged.account.altered), (0, 1));
}

#[test]
fn a_packet_without_its_stamp_is_lost_and_a_stranger_is_there() {
    let account = Account { stored: SENT - 1, unexplained: 1, strangers: 1, ..ALL };
    check(account, "packet 7 is missing", |_, packets| {
        *packets[7].last_mut().unwrap() ^= 0x80;
    });
}

#[test]
fn a_doubled_packet_is_named() {
    let account = Account { duplicated: 1, ..ALL };
    check(account, "packet 500 is there more than once", |_, packets| {
        packets.insert(600, packets[500].clone());
    });
}

#[test]
fn a_whole_copy_beside_an_altered_one_counts_as_stored() {
    let account = Account { duplicated: 1, ..ALL };
    let words = "packet 500 is altered from byte 40 on; packet 500 is there more than once";
    check(account, words, |_, packets| {
        let mut altered = packets[500].clone();
        altered[40] ^= 1;
        packets.insert(500, altered);
    });
}

#[test]
fn a_packet_behind_a_later_one_of_its_flow_is_named() {
    let account = Account { reordered: 1, ..ALL };
    let load = Load::made(Sizes::Imix, 50).unwrap();
    let flow = |number| load.packet(KEY, number, &mut Vec::new());
    let next = (1001..SENT).find(|&number| flow(number) == flow(1000)).unwrap();
    let words = format!("packet 1000 stands behind packet {next} of its flow");
    check(account, &words, |_, packets| {
        let packet = packets.remove(1000);
        packets.insert(usize::try_from(next).unwrap(), packet);
    });
}

#[test]
fn packets_of_other_flows_may_change_their_order() {
    let load = Load::made(Sizes::Imix, 50).unwrap();
    let flow = |number| load.packet(KEY, number, &mut Vec::new());
    assert_ne!(flow(1000), flow(1001));
    check(ALL, "", |_, packets| packets.swap(1000, 1001));
}

#[test]
fn a_number_that_was_never_sent_and_another_run_are_strangers() {
    let account = Account { strangers: 2, ..ALL };
    check(account, "", |load, packets| {
        let mut other = Vec::new();
        load.packet(KEY, SENT, &mut other);
        packets.push(other.clone());
        load.packet(KEY + 1, 5, &mut other);
        packets.push(other);
    });
}

#[test]
fn drops_explain_what_is_missing() {
    let drops = Drops { interface: 1, kernel: 30, writer: 4 };
    let Judged { account, findings, .. } = judged(drops, |_, packets| drop(packets.drain(50..90)));
    let Account { interface_drops, kernel_drops, writer_drops, unexplained, .. } = account;
    assert_eq!([interface_drops, kernel_drops, writer_drops, unexplained], [1, 30, 4, 5]);
    assert_eq!(findings, [Finding::Lost(50..90)]);
}

#[test]
fn only_the_first_flaws_are_named() {
    let judged = judged(Drops::default(), |_, packets| {
        let mut number = 0_u32;
        packets.retain(|_| {
            number += 1;
            number.is_multiple_of(2)
        });
    });
    assert_eq!((judged.findings.len(), judged.account.unexplained), (NAMED_MAX, SENT / 2));
}
