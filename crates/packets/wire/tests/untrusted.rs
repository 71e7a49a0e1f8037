//! What the fuzz target of packets starts from (`fuzz/seeds`), whole, cut everywhere and with bytes
//! changed: what is found lies inside of the packet.

#[path = "../../../../fuzz/src/made.rs"]
mod made;
#[path = "../../../../fuzz/src/packet.rs"]
#[expect(unreachable_pub, reason = "it is the library of the fuzz targets, too")]
mod packet;
mod packets;
#[path = "../../../../fuzz/src/replay.rs"]
mod replay;

use packets::{Case, links, tunnels};
use wire::LinkType;

/// Samples of link layers, one in so many.
const LINKS_STEP: usize = 16;
const TUNNELS_STEP: usize = 8;

#[test]
fn packets_of_any_link_type_may_say_anything() {
    let links = links().into_iter().step_by(LINKS_STEP);
    let tunnels = tunnels().into_iter().step_by(TUNNELS_STEP);
    let tunnels =
        tunnels.map(|(kind, _, packet)| -> Case { (kind.name(), LinkType::ETHERNET, packet) });
    for (name, link_type, packet) in links.chain(tunnels) {
        let len = u32::try_from(packet.len()).expect("test packets are short");
        let input = [&link_type.0.to_be_bytes()[..], &len.to_be_bytes(), &packet].concat();
        let words = name.to_lowercase().replace(|letter: char| !letter.is_alphanumeric(), "-");
        made::made("wire_decode", &words, &input);
    }
    replay::replay("wire_decode", packet::run);
}
