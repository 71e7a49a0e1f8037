//! Caches of volumes that are there, replaced, gone, and of what only looks like one.

#![expect(clippy::disallowed_methods, reason = "a test makes folders old")]

use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::time::SystemTime;

use tempfile::TempDir;
use units::Clock as _;

use super::*;
use crate::SystemClock;

const FILE: &str = "00000000000000000001-00000-0123456789abcdef-0123456789abcdef.parquet";
const DAY: Duration = Duration::from_hours(24);

/// A folder for caches, one for volumes.
struct World {
    folder: TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for part in ["caches", "volumes"] {
            fs::create_dir(folder.path().join(part)).unwrap();
            let only_ours = Permissions::from_mode(0o700);
            fs::set_permissions(folder.path().join(part), only_ours).unwrap();
        }
        Self { folder }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("caches")
    }

    fn cache(&self, number: u32) -> PathBuf {
        self.root().join(format!("{number:032x}"))
    }

    fn volume(&self, name: &str) -> PathBuf {
        self.folder.path().join("volumes").join(name)
    }

    /// The volume of this number is opened under this name.
    fn open(&self, number: u32, name: &str, keeps_sessions: bool) {
        let path = self.volume(name);
        fs::write(&path, b"a volume").unwrap();
        let cache = self.cache(number);
        if !cache.exists() {
            fs::create_dir(&cache).unwrap();
            fs::set_permissions(&cache, Permissions::from_mode(0o700)).unwrap();
            fs::write(cache.join(FILE), b"rows").unwrap();
            fs::write(cache.join("00000000000000000001-00000-8-64.groups"), b"").unwrap();
            fs::write(cache.join(".x.0123456789abcdef.draft"), b"").unwrap();
        }
        let id = format!("{number:032x}");
        let volume = CachedVolume { id: &id, path: &path, keeps_sessions };
        note_volume(&self.root(), &volume, SystemClock.realtime());
    }

    /// A volume that was opened once, and is gone since, so many days ago.
    fn gone(&self, number: u32, days: u32) {
        let name = format!("gone-{number}");
        self.open(number, &name, false);
        fs::remove_file(self.volume(&name)).unwrap();
        self.age(number, days);
    }

    fn age(&self, number: u32, days: u32) {
        let then = SystemTime::now() - days * DAY;
        File::open(self.cache(number))
            .unwrap()
            .set_times(FileTimes::new().set_modified(then))
            .unwrap();
    }

    fn left(&self) -> Vec<u32> {
        let names = fs::read_dir(self.root()).unwrap().map(|entry| entry.unwrap().file_name());
        let number = |name: &std::ffi::OsString| u32::from_str_radix(name.to_str()?, 16).ok();
        let mut left: Vec<u32> = names.filter_map(|name| number(&name)).collect();
        left.sort_unstable();
        left
    }
}

#[test]
fn a_cache_goes_when_another_volume_is_where_its_own_was() {
    let world = World::new();
    world.open(1, "spool", false);
    world.open(2, "other", false);
    world.open(3, "spool", false);
    assert_eq!(world.left(), [2, 3]);
    // One that was there and is elsewhere now stays.
    world.open(2, "moved", false);
    world.open(4, "other", false);
    assert_eq!(world.left(), [2, 3, 4]);
    // Opened again, nothing is news.
    world.open(3, "spool", false);
    assert_eq!(world.left(), [2, 3, 4]);
}

#[test]
fn a_cache_of_a_volume_that_is_gone_goes_after_thirty_days() {
    let world = World::new();
    world.gone(1, 31);
    world.gone(2, 29);
    world.open(3, "there", false);
    world.age(3, 31);
    world.open(4, "new", false);
    assert_eq!(world.left(), [2, 3, 4]);
}

#[test]
fn rows_that_are_kept_stay_whatever_became_of_their_volume() {
    let world = World::new();
    world.open(1, "spool", true);
    world.open(1, "spool", false);
    world.age(1, 100);
    world.open(2, "spool", false);
    assert_eq!(world.left(), [1, 2]);
    assert!(world.cache(1).join(FILE).exists());
}

#[test]
fn sixteen_go_at_a_time() {
    let world = World::new();
    (1..=40).for_each(|number| world.gone(number, 0));
    (1..=40).for_each(|number| world.age(number, 31));
    world.open(100, "new", false);
    assert_eq!(world.left().len(), 40 - DROPPED_MAX + 1);
    world.open(101, "newer", false);
    world.open(102, "newest", false);
    assert_eq!(world.left(), [100, 101, 102]);
}

#[test]
fn nothing_goes_that_is_not_plainly_a_cache_of_ours() {
    let world = World::new();
    let outside = world.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join(FILE), b"theirs").unwrap();
    // Each would go but for one thing.
    (1..=8).for_each(|number| world.gone(number, 0));
    fs::write(world.cache(1).join("holiday.jpg"), b"").unwrap();
    fs::create_dir(world.cache(2).join("9.parquet")).unwrap();
    symlink(outside.join(FILE), world.cache(3).join("7.parquet")).unwrap();
    fs::remove_file(world.cache(4).join(NOTE)).unwrap();
    fs::rename(world.cache(5).join(NOTE), outside.join("note")).unwrap();
    symlink(outside.join("note"), world.cache(5).join(NOTE)).unwrap();
    fs::rename(world.cache(6), outside.join("cache")).unwrap();
    symlink(outside.join("cache"), world.cache(6)).unwrap();
    fs::set_permissions(world.cache(7), Permissions::from_mode(0o770)).unwrap();
    fs::rename(world.cache(8), world.root().join("8")).unwrap();
    (1..=5).chain([7]).for_each(|number| world.age(number, 31));
    world.open(9, "new", false);
    let all: Vec<u32> = (1..=9).collect();
    assert_eq!(world.left(), all);
    for number in 1..=7 {
        assert!(world.cache(number).join(FILE).exists(), "{number}");
    }
    assert_eq!(fs::read(outside.join(FILE)).unwrap(), b"theirs");
}

#[test]
fn what_belongs_to_another_user_stays() {
    let world = World::new();
    (1..=2).for_each(|number| world.gone(number, 0));
    let others = [world.cache(1), world.cache(2).join(FILE)];
    if others.iter().any(|path| chown(path, Some(1), None).is_err()) {
        println!("not run: only root gives files away");
        return;
    }
    (1..=2).for_each(|number| world.age(number, 31));
    world.open(3, "new", false);
    assert_eq!(world.left(), [1, 2, 3]);
    assert!(others.iter().all(|path| path.exists()));
}

#[test]
fn in_a_folder_that_others_may_write_to_nothing_is_noted_or_dropped() {
    let world = World::new();
    world.gone(1, 31);
    fs::set_permissions(world.root(), Permissions::from_mode(0o777)).unwrap();
    world.open(2, "new", false);
    assert_eq!(world.left(), [1, 2]);
    assert!(!world.cache(2).join(NOTE).exists());
}

#[test]
fn a_note_is_read_back_and_knows_the_last_places() {
    let mut note = Note::default();
    for number in 0..20 {
        note = note.with(format!("/a\n{number}").into(), number == 3);
    }
    assert_eq!(note.paths.len(), PATHS_MAX);
    assert_eq!(Note::parse(&note.to_bytes()), Some(note.clone()));
    assert_eq!(
        note.clone().with("/a\n15".into(), false).paths.last().unwrap(),
        Path::new("/a\n15")
    );
    assert_eq!(Note::parse(b"something else"), None);
    assert_eq!(Note::parse(HEADING), Some(Note::default()));
}
