//! Any payloads of a session: one decision, which is final.
#![no_main]

use app::Side;
use app::signature::{Carrier, Payload, Watch, look};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (bool, (u16, u16), Vec<(bool, u16, Vec<u8>)>)| {
    let (is_tcp, ports, payloads) = input;
    let carrier = if is_tcp { Carrier::Tcp } else { Carrier::Udp };
    let mut watch = Watch::default();
    for (is_orig, cut, bytes) in &payloads {
        let side = if *is_orig { Side::Orig } else { Side::Resp };
        let len = bytes.len() + usize::from(*cut);
        let is_done = watch.take(side, &look(&Payload { carrier, side, ports, bytes, len }));
        assert!(!is_done || watch.found().is_some());
        if is_done {
            let found = watch.found();
            watch.take(side, &look(&Payload { carrier, side, ports, bytes, len }));
            assert_eq!(watch.found(), found);
        }
    }
});
