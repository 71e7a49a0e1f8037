//! Any file may be given as a capture: reading it ends, and every packet counted is handed out.

use std::time::Duration;

use capture::{FileOptions, FileSource, Next, Source as _};

/// Gives how many packets there are. What is called after each batch can look at what is held.
///
/// # Panics
/// Reading does, or counts otherwise; when there is no temporary folder.
pub fn run(bytes: &[u8], sample: impl Fn()) -> usize {
    let name = format!("wirespool-fuzz-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, bytes).expect("the temporary folder can be written");
    let packets = FileSource::open(&path, FileOptions::default()).map_or(0, |mut source| {
        let mut packets = 0;
        loop {
            sample();
            match source.next_batch(Duration::ZERO) {
                Ok(Next::Packets(batch)) => packets += batch.count(),
                Ok(Next::End) => break,
                Ok(Next::Block(_) | Next::Idle) | Err(_) => {}
            }
        }
        let delivered: u64 = source.counters().iter().map(|counters| counters.delivered).sum();
        assert_eq!(usize::try_from(delivered), Ok(packets));
        packets
    });
    std::fs::remove_file(&path).expect("it was written");
    packets
}
