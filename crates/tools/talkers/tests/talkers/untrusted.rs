//! What the fuzz target of talkers starts from (`fuzz/seeds`), whole, cut everywhere and with bytes
//! changed: every line that is shown has a query.

#[path = "../../../../../fuzz/src/made.rs"]
mod made;
#[path = "../../../../../fuzz/src/replay.rs"]
mod replay;
#[path = "../../../../../fuzz/src/talkers.rs"]
#[expect(unreachable_pub, reason = "it is the library of the fuzz targets, too")]
mod target;

use crate::frames::{Made, dns, udp};

fn input(packets: &[Made]) -> Vec<u8> {
    let packet = |packet: &Made| {
        let head = [packet.second().try_into().unwrap(), packet.data.len().try_into().unwrap()];
        [&head[..], &packet.data].concat()
    };
    packets.iter().flat_map(packet).collect()
}

#[test]
fn packets_of_any_bytes_and_times_are_added_up() {
    let plain = |second: i64, from, to| udp(second * 1000, (from, 1000), (to, 80), b"payload");
    let asked = udp(1000, (1, 5000), (9, 53), &dns(7, 0x0100, "www.example.com", &[]));
    let answer = dns(7, 0x8180, "www.example.com", &[[192, 0, 2, 1]]);
    let answer = udp(2000, (9, 53), (1, 5000), &answer);
    let backwards = [plain(200, 1, 2), plain(3, 2, 1), plain(255, 1, 3), plain(0, 3, 1)];
    made::made("talkers_take", "names", &input(&[asked, answer]));
    made::made("talkers_take", "backwards", &input(&backwards));
    let hosts: Vec<Made> = (0..10).map(|host| plain(5, host, 77)).collect();
    made::made("talkers_take", "hosts", &input(&hosts));
    replay::replay("talkers_take", target::run);
}
