//! kill -9 of the recorder on six members, again and again: what was acknowledged is there, in one
//! piece, and nothing else is.

use core::ops::ControlFlow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use format::head::StripeId;
use units::Epoch;

use crate::feed::{Fed, done, number};

/// Kills of a run in CI; `WIRESPOOL_KILLS` asks for more.
const KILLS: u64 = 40;

/// First and last packet of each epoch, all numbers between them there.
type Epochs = BTreeMap<Epoch, (u64, u64)>;

/// What a reader without a lock sees.
fn look(volume: &str) -> (StripeId, Epochs) {
    let options = extract::Options { volume: PathBuf::from(volume), ..Default::default() };
    let mut epochs = Epochs::new();
    let report = extract::packets(&options, &host::SystemClock, |found| {
        let number = number(found.packet.data);
        let (_, last) = epochs.entry(found.epoch).or_insert((number, number.wrapping_sub(1)));
        assert_eq!(number, last.wrapping_add(1), "epoch {}, {}", found.epoch, found.stripe);
        *last = number;
        ControlFlow::Continue(())
    });
    let completeness = report.unwrap().completeness;
    assert!(completeness.damage.is_empty(), "{completeness}");
    (watermark(volume), epochs)
}

fn watermark(volume: &str) -> StripeId {
    let reader = volume::open_reader(&PathBuf::from(volume), &[]).unwrap();
    reader.newest().map(|newest| newest.acknowledged).unwrap_or_default()
}

#[test]
fn killed_recorders_lose_nothing_that_was_acknowledged() {
    let kills = std::env::var("WIRESPOOL_KILLS").map_or(KILLS, |count| count.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let file = |name: String| folder.path().join(name).into_os_string().into_string().unwrap();
    let members: Vec<String> = (0..6).map(|number| file(format!("member-{number}"))).collect();
    let mut create = vec!["create", &members[0], "--size", "16M", "--piece", "64K", "--sparse"];
    create.extend(["--parity", "2"]);
    members[1..].iter().for_each(|member| create.extend(["--member", member]));
    done(&create);
    let index = file("index".to_owned());
    let record = ["record", &members[0], "--pool", "4M", "--index-dir", &index];
    let (mut seen, mut packets, begun) = (Epochs::new(), 0, Instant::now());
    let mut state = 0x9e37_79b9_u64;
    for kill in 0..kills {
        let fed = Fed::start(&record, Duration::from_micros(500));
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        thread::sleep(Duration::from_millis(30 + (state >> 33) % 400));
        let acknowledged = watermark(&members[0]);
        thread::sleep(Duration::from_millis((state >> 50) % 20));
        fed.kill();
        let (now, epochs) = look(&members[0]);
        assert!(now >= acknowledged, "kill {kill}: {now} after {acknowledged}");
        // An epoch may have lost its oldest packets to the ring, and gained what the next mount
        // completed; it never loses its newest.
        for (epoch, (_, last)) in &seen {
            if let Some((_, last_now)) = epochs.get(epoch) {
                assert!(last_now >= last, "kill {kill}, epoch {epoch}: {last_now} after {last}");
            }
        }
        let newest_before = seen.keys().next_back().copied().unwrap_or_default();
        packets += epochs
            .iter()
            .filter(|(epoch, _)| **epoch > newest_before)
            .map(|(_, (first, last))| last.wrapping_sub(*first).wrapping_add(1))
            .sum::<u64>();
        seen = epochs;
    }
    let clean = done(&["scrub", &members[3]]);
    println!(
        "{kills} kills in {} s, {packets} packets acknowledged, none lost; {clean}",
        begun.elapsed().as_secs()
    );
}
