//! Whole flows of up to 300 000 packets through the session table with every parser behind it,
//! built compactly: see `tests/traffic` of the crate session. The first byte chooses the table's
//! bounds and, where it is 255, that flows may be that long: most inputs should be quick.
#![no_main]

#[path = "../../crates/sessions/session/tests/traffic/mod.rs"]
mod traffic;

use fuzz::{costs, oracles};
use session::Config;

/// Packets of an input that is quick.
const QUICK_COUNT_MAX: usize = 2000;

/// For the packet itself, and what the target keeps of the flows.
const OWN_BYTES: usize = 4 << 20;

fuzz::binary!(costs::JUDGED_BY_ITSELF, run);

fn run(input: &[u8]) {
    let Some((&bounds, program)) = input.split_first() else { return };
    let small = Config { session_count_max: 64, head_bytes_max: 1 << 20, ..Config::default() };
    let config = match bounds % 4 {
        0 => small,
        1 => Config { session_count_max: 3, piece_bytes_max: 1000, ..small },
        2 => Config { names_bytes_max: 100_000, head_bytes_max: 2000, ..small },
        _ => Config { slice_ns: None, tcp_timeout_ns: None, vlan_in_key: true, ..small },
    };
    let most = oracles::bytes_in_use() + config.memory_bytes_max() + OWN_BYTES;
    let sample = || assert!(oracles::bytes_in_use() <= most, "a table keeps to its budgets");
    let is_long = bounds == u8::MAX;
    let packets_max = if is_long { traffic::PACKET_COUNT_MAX } else { QUICK_COUNT_MAX };
    let report = traffic::run(program, packets_max, config, sample);
    assert_eq!(report.stats.packets, u64::try_from(report.packets).unwrap());
}
