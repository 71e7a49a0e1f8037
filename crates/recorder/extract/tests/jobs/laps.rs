//! What is said of a recording whose beginning the ring has overwritten.

use completeness::{Asking, standing};
use device::Pool;
use format::geometry::PIECE_BYTES_MIN;
use format::head::{HEAD_BYTES, Kind};
use format::recorded::Recorded;
use units::{ManualClock, Timestamp};
use writer::{Filled, Opener, mount};

use crate::recorder::Volume;

/// Packets that came before the clock was set back have later times than the heads behind them.
#[test]
fn a_clock_that_was_set_back_makes_nothing_held_that_is_overwritten() {
    let volume = Volume::new(PIECE_BYTES_MIN, 16 << 20);
    let device = device::open(&volume.path, &device::Options::default()).unwrap();
    let (before, after) = (Timestamp(9_000), Timestamp(1_000));
    let (early, late) = (ManualClock::new(before), ManualClock::new(after));
    let mut writer = mount(vec![device], &Opener::alone(&early)).unwrap().0;
    let pool = Pool::new(80, usize::try_from(PIECE_BYTES_MIN).unwrap()).unwrap();
    let first = writer.next();
    let laps = writer.geometry().slots + 8;
    for number in 0..laps {
        let clock = if number < 8 { &early } else { &late };
        let mut recorded = Recorded::new(true, first, Timestamp(100), &[]);
        recorded.through = before;
        writer.set_recorded(recorded);
        let rows = writer.plan(0).room;
        let mut column = pool.take().unwrap();
        format::local::fill_with_padding(&mut column[HEAD_BYTES..]);
        let filled = Filled::without_packets(vec![column], Kind::Data, rows);
        writer.append(filled, clock).unwrap();
        writer.drain(clock).unwrap();
    }
    let reader = volume::open_reader(&volume.path, &[]).unwrap();
    let span = reader.span().unwrap();
    assert!(span.tail > first.sequence + 8, "the first stripes are overwritten");
    let asking =
        Asking { times: Timestamp(200)..=Timestamp(8_000), now: before, is_recorded: false };
    let said = standing(&reader, &asking);
    assert_eq!(said.overwritten.iter().collect::<Vec<_>>(), [(Timestamp(200), Timestamp(8_000))]);
    assert_eq!(said.stretches, [], "nothing of it is held");
}
