//! Indexers that die, of what they are given or because a process kills them: packets are stored
//! all the same, and what can be indexed is.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use indexer::{Fate, Faulty, Seen, Workers};
use record::{Input, Report};
use units::Sequence;

use crate::numbered;
use crate::volumes::{new_volume, options, packets_of_file, packets_of_volume, run, stripes};

const PIECE_BYTES: u32 = 64 << 10;
const PACKETS: u64 = 4000;

/// Records numbered packets with such indexers, and checks that every packet is stored.
fn recorded(folder: &Path, ends: impl Fn(Seen) -> Option<Fate> + Send + Sync + 'static) -> Report {
    let (volume, capture) = (folder.join("volume"), folder.join("capture.pcap"));
    new_volume(&volume, PIECE_BYTES, 24 << 20);
    std::fs::write(&capture, numbered::capture(1, PACKETS)).unwrap();
    let mut options = options(&volume, Input::Files(vec![capture.clone()]));
    options.workers = Workers::new(Arc::new(Faulty::new(ends)));
    let report = run(&options);
    assert_eq!((report.total.stored, report.total.offered), (PACKETS, PACKETS));
    assert!(packets_of_volume(&volume) == packets_of_file(&capture), "every byte is there");
    report
}

#[test]
fn stripes_that_end_the_indexer_are_left_out_and_all_others_have_rows() {
    let folder = tempfile::tempdir().unwrap();
    let is_poison = |sequence: Sequence| sequence.get() % 11 == 3;
    let report = recorded(folder.path(), move |seen| {
        seen.stripe.is_some_and(|stripe| is_poison(stripe.sequence)).then_some(Fate::Crashes)
    });
    let volume = folder.path().join("volume");
    let all = stripes(&volume::open_reader(&volume, &[]).unwrap());
    let poison = all.iter().filter(|stripe| is_poison(stripe.id.sequence));
    let packets: u64 = poison.clone().map(|stripe| stripe.packets.len() as u64).sum();
    assert!(packets > 0 && report.indexer_deaths >= 2 * poison.count() as u64, "{report:?}");
    assert_eq!((report.left_out, report.unindexed), (packets, packets), "{:?}", report.notes);
    assert!(report.notes.iter().any(|note| note.contains("without an index: ")));
    // Copies are capture files.
    let index = std::fs::read_dir(volume.with_extension("index")).unwrap();
    let copies = index.map(|entry| entry.unwrap().path());
    let copies: Vec<_> = copies.filter(|path| path.to_string_lossy().contains("poison-")).collect();
    assert!(!copies.is_empty());
    assert!(copies.iter().all(|copy| !packets_of_file(copy).is_empty()));
}

#[test]
fn an_indexer_that_somebody_kills_again_and_again_leaves_nothing_out() {
    let folder = tempfile::tempdir().unwrap();
    let killed = AtomicU32::new(0);
    // Each after the beginning and three more frames, until twenty are dead.
    let report = recorded(folder.path(), move |seen| {
        let is_due = seen.frames >= 4 && killed.fetch_add(1, Ordering::Relaxed) < 20;
        is_due.then_some(Fate::IsKilled)
    });
    assert_eq!((report.left_out, report.unindexed), (0, 0), "{:?}", report.notes);
    assert!(report.indexer_deaths >= 10 && report.indexed_late > 0, "{report:?}");
}

#[test]
fn an_indexer_that_never_starts_costs_the_index_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let report = recorded(folder.path(), |_| Some(Fate::Crashes));
    assert_eq!((report.left_out, report.unindexed, report.rows), (0, PACKETS, 0));
}
