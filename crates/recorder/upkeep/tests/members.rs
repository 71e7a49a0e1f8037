//! What scrubbing, replacing, growing and erasing do to the members of a volume in files, what they
//! refuse, and that a refusal changes no byte.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a helper of tests may stop at once, and damages files"
)]

use core::ops::ControlFlow;
use core::time::Duration;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use device::Pool;
use format::head::{HEAD_BYTES, Kind};
use format::local::fill_with_padding;
use units::{Clock, ManualClock, MemberId, Sleep, Timestamp};
use upkeep::{
    CreateOptions, Erasing, Error, Fate, MemberState, NewMember, Scrubbed, Target, add_spare,
    create, erase, grow, replace, resilver, scrub, status, verify,
};
use volume::Usable;
use writer::{Filled, Opener, mount};

const MIB: u64 = 1 << 20;
const PIECE_BYTES: u32 = 64 << 10;
/// Body rows of a full stripe: the head takes one of sixteen.
const ROWS: u16 = 15;
const ROW_BYTES: u64 = 4096;
const NOW: Timestamp = Timestamp(1_700_000_000_000_000_000);

/// Goes on, whatever was done.
fn on(_: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// A volume of files, into which stripes of padding were recorded.
struct Volume {
    folder: tempfile::TempDir,
    members: Vec<PathBuf>,
    clock: ManualClock,
}

impl Volume {
    fn new(members: usize, parity_columns: u8) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let members = (0..members).map(|number| folder.path().join(format!("m{number}")));
        let (members, clock): (Vec<PathBuf>, _) = (members.collect(), ManualClock::new(NOW));
        let options = CreateOptions {
            missing: 0,
            spares: Vec::new(),
            members: members.clone(),
            parity_columns,
            size_bytes: Some(16 * MIB),
            piece_bytes: PIECE_BYTES,
            zones: Some(1),
            extent_bytes: None,
            usable: Usable::default(),
            qualified: None,
            max_age: None,
            recipients: Vec::new(),
            sparse: true,
            raw: false,
            force: false,
        };
        create(&options, &clock, &mut on).unwrap();
        Self { folder, members, clock }
    }

    /// With as many stripes as told, and an orderly stop behind them.
    fn recorded(members: usize, parity_columns: u8, stripes: usize) -> Self {
        let volume = Self::new(members, parity_columns);
        volume.record(&volume.members, stripes);
        volume
    }

    fn record(&self, members: &[PathBuf], stripes: usize) {
        let open = |path: &PathBuf| device::open(path, &device::Options::default()).unwrap();
        let devices = members.iter().map(open).collect();
        let (mut writer, _) = mount(devices, &Opener::alone(&self.clock)).unwrap();
        let pool = Pool::new(8, usize::try_from(PIECE_BYTES).unwrap()).unwrap();
        for _ in 0..stripes {
            let columns = (0..writer.geometry().data_columns).map(|_| {
                let mut column = pool.take().unwrap();
                fill_with_padding(&mut column[HEAD_BYTES..]);
                column
            });
            let filled = Filled::without_packets(columns.collect(), Kind::Data, ROWS);
            writer.append(filled, &self.clock).unwrap();
            writer.drain(&self.clock).unwrap();
            self.clock.advance_nanos(1_000_000_000);
        }
        writer.close(&self.clock).unwrap();
    }

    fn target(&self) -> Target {
        let (volume, members) = (self.members[0].clone(), Vec::new());
        Target { volume, members, without: Vec::new() }
    }

    fn file(&self, name: &str) -> NewMember {
        let path = self.folder.path().join(name);
        NewMember { path, sparse: true, raw: false, force: false }
    }

    /// Every byte of every member.
    fn bytes(&self) -> Vec<Vec<u8>> {
        self.members.iter().map(|path| fs::read(path).unwrap()).collect()
    }

    fn scrub(&self, dry_run: bool) -> Scrubbed {
        scrub(&self.members[0], &[], dry_run, &self.clock, &mut on).unwrap()
    }

    fn is_clean(&self) -> bool {
        let found = verify(&self.members[0], &[], &mut on).unwrap();
        found.is_clean && found.is_complete && found.read.data_stripes > 0
    }

    fn states(&self) -> Vec<MemberState> {
        let status = status(&self.members[0], &self.members[1..]).unwrap();
        status.members.into_iter().map(|member| member.state).collect()
    }
}

/// Destroys the row of a member at this offset.
fn damage(path: &Path, offset: u64) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&[0xa5; 4096], offset).unwrap();
}

/// Where a body row of the member lies: slots begin behind 2 MiB.
fn row_at(slot: u64, row: u64) -> u64 {
    2 * MIB + slot * u64::from(PIECE_BYTES) + row * ROW_BYTES
}

#[test]
fn a_scrub_makes_good_what_the_other_members_have_byte_for_byte() {
    let volume = Volume::recorded(3, 1, 20);
    assert!(volume.is_clean() && volume.scrub(false).is_clean);
    let before = volume.bytes();
    // A row of a body, a whole piece, and the first copy of the superblock.
    damage(&volume.members[1], row_at(7, 5));
    (0..16).for_each(|row| damage(&volume.members[2], row_at(9, row)));
    damage(&volume.members[1], 0);
    let damaged = volume.bytes();

    let dry = volume.scrub(true);
    assert!(dry.dry_run && dry.is_complete && !dry.is_sound && !dry.is_clean);
    assert_eq!(volume.bytes(), damaged, "a dry run writes nothing");
    assert!(dry.damage.iter().all(|(_, fate)| *fate == Fate::Repairable), "{:?}", dry.damage);
    let mut members: Vec<_> = dry.damage.iter().map(|(bad, _)| bad.member).collect();
    members.sort_unstable();
    assert_eq!(members, [Some(MemberId(1)), Some(MemberId(2))]);
    let of_body = dry.damage.iter().find(|(bad, _)| bad.member == Some(MemberId(1))).unwrap();
    assert_eq!(of_body.0.row_offsets, [row_at(7, 5)]);
    let copies: Vec<_> = dry.copies.iter().map(|copy| (copy.member, copy.copy)).collect();
    assert_eq!(copies, [(MemberId(1), 0)]);

    let done = volume.scrub(false);
    assert!(done.is_sound && !done.is_clean);
    assert!(done.damage.iter().all(|(_, fate)| *fate == Fate::Repaired), "{:?}", done.damage);
    // What says who holds the volume may differ; the ring may not.
    let ring = usize::try_from(2 * MIB).unwrap();
    let ring = ring..before[0].len() - ring;
    let after = volume.bytes();
    assert!(after.iter().zip(&before).all(|(is, was)| is[ring.clone()] == was[ring.clone()]));
    assert!(volume.is_clean() && volume.scrub(false).is_clean);
}

#[test]
fn what_no_member_has_is_lost_and_named_by_every_scrub() {
    let volume = Volume::recorded(3, 1, 20);
    damage(&volume.members[0], row_at(7, 5));
    damage(&volume.members[1], row_at(7, 5));
    // The same row of two members is beyond one parity; another row of the stripe is not.
    damage(&volume.members[0], row_at(7, 6));
    for round in 0..2 {
        let done = volume.scrub(false);
        assert!(!done.is_sound && done.is_complete, "round {round}");
        let lost: Vec<u64> = done
            .damage
            .iter()
            .flat_map(|(bad, fate)| match fate {
                Fate::Lost => bad.row_offsets.clone(),
                Fate::Partly(rows) => rows.clone(),
                _ => Vec::new(),
            })
            .collect();
        assert_eq!(lost, [row_at(7, 5); 2], "round {round}: {:?}", done.damage);
    }
}

#[test]
fn a_scrub_that_is_broken_off_says_so() {
    let volume = Volume::recorded(3, 1, 20);
    let stop = &mut |_, _| ControlFlow::Break(());
    let scrubbed = scrub(&volume.members[0], &[], true, &volume.clock, stop).unwrap();
    assert!(!scrubbed.is_complete);
    let verified = verify(&volume.members[0], &[], stop).unwrap();
    assert!(!verified.is_complete && verified.indexes == 0);
}

#[test]
fn a_scrub_is_refused_beside_a_writer_and_a_dry_run_is_not() {
    let volume = Volume::recorded(2, 1, 5);
    let held = device::open(&volume.members[0], &device::Options::default()).unwrap();
    let refused = scrub(&volume.members[0], &[], false, &volume.clock, &mut on);
    assert!(matches!(&refused, Err(Error::Recording { path }) if *path == volume.members[0]));
    assert!(volume.scrub(true).is_clean);
    drop(held);
    assert!(volume.scrub(false).is_clean);
}

#[test]
fn what_has_no_superblock_is_no_volume_to_any_job() {
    let volume = Volume::recorded(2, 1, 5);
    let stranger = volume.folder.path().join("stranger");
    fs::write(&stranger, vec![7; 16 << 20]).unwrap();
    let refused = scrub(&stranger, &[], false, &volume.clock, &mut on).unwrap_err();
    assert!(matches!(&refused, Error::Nameless { path } if *path == stranger), "{refused}");
    for refused in [status(&stranger, &[]).err(), verify(&stranger, &[], &mut on).err()] {
        let refused = refused.unwrap();
        assert!(matches!(&refused, Error::NotAVolume { path } if *path == stranger), "{refused}");
    }
    let target = Target { volume: stranger.clone(), ..volume.target() };
    assert!(grow(&target, &[volume.file("new")], None, &volume.clock, &mut on).is_err());
    // Named as a member of a volume, it is not taken for one.
    let members = [stranger.clone()];
    let refused = scrub(&volume.members[0], &members, false, &volume.clock, &mut on).unwrap_err();
    assert!(matches!(&refused, Error::Stranger { path } if *path == stranger), "{refused}");
    assert!(fs::read(&stranger).unwrap().iter().all(|byte| *byte == 7));
    assert!(!volume.folder.path().join("new").exists());
}

#[test]
fn a_member_that_missed_something_gets_it_back() {
    let volume = Volume::recorded(3, 1, 5);
    let away = volume.folder.path().join("away");
    fs::rename(&volume.members[2], &away).unwrap();
    volume.record(&volume.members[..2], 7);
    fs::rename(&away, &volume.members[2]).unwrap();
    assert!(matches!(volume.states()[..], [_, _, MemberState::Stale { .. }]));
    // Broken off at once, it goes on the next time.
    let stopped = resilver(&volume.target(), &volume.clock, &mut |_, _| ControlFlow::Break(()));
    assert!(stopped.unwrap().is_stopped);
    let report = resilver(&volume.target(), &volume.clock, &mut on).unwrap();
    assert!(report.is_complete && report.bytes > 0 && report.lost.is_empty(), "{report:?}");
    assert_eq!(volume.states(), [MemberState::Whole; 3]);
    assert!(volume.is_clean());
    let again = resilver(&volume.target(), &volume.clock, &mut on).unwrap();
    assert_eq!((again.bytes, again.is_complete), (0, true));
}

#[test]
fn a_device_takes_the_place_of_a_member_with_all_that_the_others_have() {
    let mut volume = Volume::recorded(3, 1, 20);
    fs::remove_file(&volume.members[1]).unwrap();
    let new = volume.file("new");
    let target = volume.target();
    let (joined, report) = replace(&target, (MemberId(1), &new), &volume.clock, &mut on).unwrap();
    assert_eq!((joined.member, &joined.device.path), (Some(MemberId(1)), &new.path));
    assert!(report.is_complete && report.lost.is_empty() && report.bytes > 0, "{report:?}");
    volume.members[1] = new.path;
    assert_eq!(volume.states(), [MemberState::Whole; 3]);
    assert!(volume.is_clean());
}

#[test]
fn a_member_whose_data_the_others_lack_is_not_replaced() {
    let volume = Volume::recorded(3, 1, 20);
    fs::remove_file(&volume.members[1]).unwrap();
    let before = [0, 2].map(|member: usize| fs::read(&volume.members[member]).unwrap());
    let new = volume.file("new");
    let refused =
        replace(&volume.target(), (MemberId(2), &new), &volume.clock, &mut on).unwrap_err();
    assert!(matches!(refused, Error::StillNeeded { member: MemberId(2), .. }), "{refused}");
    let unknown =
        replace(&volume.target(), (MemberId(3), &new), &volume.clock, &mut on).unwrap_err();
    let Error::Volume {
        source: volume::Error::NoSuchMember { member: MemberId(3), last: MemberId(2) },
        ..
    } = unknown
    else {
        panic!("{unknown}");
    };
    assert!(!new.path.exists(), "a refusal makes no file");
    assert_eq!([0, 2].map(|member: usize| fs::read(&volume.members[member]).unwrap()), before);
}

#[test]
fn a_volume_grows_and_keeps_what_it_has() {
    let mut volume = Volume::recorded(2, 1, 10);
    let new = [volume.file("m2"), volume.file("m3")];
    let grown = grow(&volume.target(), &new, Some(2), &volume.clock, &mut on).unwrap();
    let shape =
        |geometry: &format::geometry::Geometry| (geometry.data_columns, geometry.parity_columns);
    assert_eq!((shape(&grown.before), shape(&grown.after)), ((1, 1), (2, 2)));
    let numbers: Vec<_> = grown.joined.iter().map(|joined| joined.member).collect();
    assert_eq!(numbers, [Some(MemberId(2)), Some(MemberId(3))]);
    volume.members.extend(new.map(|new| new.path));
    let held = verify(&volume.members[0], &[], &mut on).unwrap().read.data_stripes;
    assert_eq!(held, 10);
    volume.record(&volume.members, 10);
    assert!(volume.is_clean());
    assert_eq!(verify(&volume.members[0], &[], &mut on).unwrap().read.data_stripes, 20);
    assert_eq!(volume.states(), [MemberState::Whole; 4]);
}

#[test]
fn a_shape_that_cannot_be_is_refused_before_a_device_is_touched() {
    let volume = Volume::recorded(2, 1, 5);
    let new = volume.file("m2");
    // All of three members for parity.
    let refused =
        grow(&volume.target(), std::slice::from_ref(&new), Some(3), &volume.clock, &mut on);
    assert!(refused.is_err() && !new.path.exists(), "{refused:?}");
    let taken = NewMember { path: volume.members[1].clone(), ..new };
    let refused = grow(&volume.target(), &[taken], None, &volume.clock, &mut on);
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(volume.states(), [MemberState::Whole; 2]);
    assert!(volume.is_clean());
}

#[test]
fn a_spare_is_known_and_no_member() {
    let volume = Volume::recorded(2, 1, 5);
    let spare = volume.file("spare");
    let joined = add_spare(&volume.target(), &spare, &volume.clock, &mut on).unwrap();
    assert_eq!((joined.member, &joined.device.path), (None, &spare.path));
    let seen = status(&volume.members[0], &[]).unwrap();
    let spares: Vec<_> = seen.spares.iter().map(|it| (&it.path, it.is_there)).collect();
    assert_eq!((spares, seen.members.len()), (vec![(&spare.path, true)], 2));
    fs::remove_file(&spare.path).unwrap();
    let seen = status(&volume.members[0], &[]).unwrap();
    assert!(seen.is_whole && !seen.spares[0].is_there);
}

/// A clock that says a time, on a machine that has run for a minute.
struct Says(Timestamp, ManualClock);

impl Clock for Says {
    fn realtime(&self) -> Timestamp {
        self.0
    }

    fn boottime_ns(&self) -> i64 {
        self.1.boottime_ns()
    }
}

impl Sleep for Says {
    fn sleep_until(&self, until_ns: i64) {
        self.1.sleep_until(until_ns);
    }
}

fn erasing(volume: &Volume, max_age: Option<Duration>) -> Erasing {
    let index_dir = Some(volume.folder.path().join("index"));
    Erasing {
        target: volume.target(),
        max_age,
        clock_is_right: false,
        keys_alone: false,
        index_dir,
    }
}

#[test]
fn nothing_is_erased_where_nobody_says_what_is_too_old() {
    let volume = Volume::recorded(2, 1, 20);
    let before = volume.bytes();
    let refused = erase(&erasing(&volume, None), &volume.clock, &mut on).unwrap_err();
    assert!(matches!(refused, Error::NoMaximumAge { .. }), "{refused}");
    assert_eq!(volume.bytes(), before);
}

#[test]
fn nothing_is_erased_by_a_clock_that_nothing_explains() {
    let volume = Volume::recorded(2, 1, 20);
    let held = verify(&volume.members[0], &[], &mut on).unwrap().read.data_stripes;
    // Three years later.
    let minute = ManualClock::new(Timestamp(60_000_000_000));
    let late = Says(Timestamp(NOW.0 + 100_000_000_000_000_000), minute);
    let hour = Some(Duration::from_hours(1));
    let refused = erase(&erasing(&volume, hour), &late, &mut on).unwrap_err();
    assert!(matches!(refused, Error::ClockDoubt { .. }), "{refused}");
    assert_eq!(verify(&volume.members[0], &[], &mut on).unwrap().read.data_stripes, held);
    // Unless somebody vouches for it.
    let vouched = Erasing { clock_is_right: true, ..erasing(&volume, hour) };
    let erased = erase(&vouched, &late, &mut on).unwrap();
    assert!(erased.slots > 0 && !erased.is_stopped, "{erased:?}");
    let left = verify(&volume.members[0], &[], &mut on).unwrap();
    assert!(left.is_clean && left.read.data_stripes < held, "{}", left.read.data_stripes);
}
