//! A forged body: the walk over its packets ends, and every packet lies inside the body, behind the
//! one before.
#![no_main]

use format::piece::packets;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    let mut walk = packets(body);
    let mut end = 0;
    while let Some(Ok(packet)) = walk.next() {
        assert!(end <= packet.begin && packet.begin < packet.end, "blocks follow one another");
        assert!(packet.interface < walk.interfaces().len());
        assert!(packet.end <= body.len());
        end = packet.end;
    }
    for interface in walk.interfaces() {
        assert!(body.get(interface.block.clone()).is_some());
    }
});
