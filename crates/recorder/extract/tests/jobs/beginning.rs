//! A recorder that begins while the volume is opened to be read.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use completeness::{Completeness, State};
use device::Pool;
use extract::{Options, Recorder, find, gaps};
use format::geometry::PIECE_BYTES_MIN;
use format::head::{HEAD_BYTES, Kind};
use format::recorded::Recorded;
use query::Query;
use units::{ManualClock, NANOS_PER_SECOND, Timestamp};
use writer::{Filled, Opener, mount};

use crate::recorder::Volume;

const BEGAN: Timestamp = Timestamp(1_000 * NANOS_PER_SECOND);

/// A volume whose recorder wrote one stripe and has not stopped.
fn unfinished() -> Volume {
    let volume = Volume::new(PIECE_BYTES_MIN, 16 << 20);
    let device = device::open(&volume.path, &device::Options::default()).unwrap();
    let clock = ManualClock::new(BEGAN);
    let mut writer = mount(vec![device], &Opener::alone(&clock)).unwrap().0;
    writer.set_recorded(Recorded::new(true, writer.next(), BEGAN, &[]));
    let pool = Pool::new(4, usize::try_from(PIECE_BYTES_MIN).unwrap()).unwrap();
    let mut column = pool.take().unwrap();
    format::local::fill_with_padding(&mut column[HEAD_BYTES..]);
    let rows = writer.plan(0).room;
    writer.append(Filled::without_packets(vec![column], Kind::Data, rows), &clock).unwrap();
    writer.drain(&clock).unwrap();
    volume
}

/// What is said so long after it was begun, and how often a recorder was asked for that then is
/// there or is not.
fn said(volume: &Volume, seconds: i64, is_there: bool) -> (Completeness, u32) {
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let recorder = Recorder::new(move |patience: Duration| {
        assert!(patience > Duration::ZERO);
        count.fetch_add(1, Ordering::Relaxed);
        is_there
    });
    let options = Options { recorder, ..volume.options() };
    let clock = ManualClock::new(BEGAN.plus_nanos(seconds * NANOS_PER_SECOND));
    let mut pass = |_: found::Event<'_>| ControlFlow::Continue(());
    let report = find(&options, &Query::all(), None, &clock, &mut pass).unwrap();
    (report.completeness, asked.load(Ordering::Relaxed))
}

#[test]
fn who_has_begun_since_it_was_asked_for_is_no_crash() {
    let volume = unfinished();
    let (running, asked) = said(&volume, 1, true);
    assert_eq!((running.state(), asked), (State::Complete, 1), "{running}");
    let (killed, asked) = said(&volume, 1, false);
    assert_eq!((killed.state(), asked), (State::Unknown, 1), "{killed}");
    let (long_ago, asked) = said(&volume, 3_600, true);
    assert_eq!((long_ago.state(), asked), (State::Unknown, 0), "{long_ago}");
}

#[test]
fn a_list_of_gaps_says_of_its_times_what_a_search_says() {
    let volume = unfinished();
    let clock = ManualClock::new(BEGAN.plus_nanos(3_600 * NANOS_PER_SECOND));
    let (searched, _) = said(&volume, 3_600, false);
    let listed = gaps(&volume.options(), &(Timestamp::MIN..=Timestamp::MAX), &clock).unwrap();
    assert_eq!(searched.state(), State::Unknown, "{searched}");
    assert_eq!(listed.completeness, searched);
}
