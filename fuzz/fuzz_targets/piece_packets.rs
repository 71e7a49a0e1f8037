//! A forged body: the walk over its packets ends, and every packet lies inside the body.
#![no_main]

use format::piece::packets;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    let mut walk = packets(body);
    let mut ordinal = 0;
    while let Some(Ok(packet)) = walk.next() {
        assert_eq!(packet.ordinal, ordinal, "packets are numbered without holes");
        assert!(packet.interface < walk.interfaces().len());
        assert!(packet.end <= body.len());
        ordinal += 1;
    }
    for interface in walk.interfaces() {
        assert!(body.get(interface.block.clone()).is_some());
    }
});
