//! Any file may be given as a capture: reading it ends, and every packet counted is handed out.
#![no_main]

use std::time::Duration;

use capture::{FileOptions, FileSource, Next, Source as _};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let name = format!("wirespool-fuzz-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, bytes).expect("the temporary folder can be written");
    let Ok(mut source) = FileSource::open(&path, FileOptions::default()) else { return };
    let mut packets = 0;
    loop {
        match source.next_batch(Duration::ZERO) {
            Ok(Next::Packets(batch)) => packets += batch.count() as u64,
            Ok(Next::End) => break,
            Ok(Next::Block(_) | Next::Idle) | Err(_) => {}
        }
    }
    let delivered: u64 = source.counters().iter().map(|counters| counters.delivered).sum();
    assert_eq!(delivered, packets);
});
