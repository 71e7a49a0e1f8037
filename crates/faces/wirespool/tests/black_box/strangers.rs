//! Members in the wrong place, of the wrong volume, twice, cut or grown: each is distinguished,
//! with the reason and what to do.

use std::path::Path;

use crate::machine::{CAPTURES, Volume, run};

/// Three members of which one may be lost, with packets.
struct Members {
    volume: Volume,
    paths: [String; 3],
}

impl Members {
    fn new() -> Self {
        let volume = Volume::empty();
        let paths = [0, 1, 2].map(|number| volume.file(&format!("member-{number}")));
        let shape = ["--size", "32M", "--piece", "64K", "--sparse", "--parity", "1"];
        let others = ["--member", &paths[1], "--member", &paths[2]];
        run(&[&["create", &paths[0]], &others[..], &shape].concat()).done();
        let members = Self { volume, paths };
        assert_eq!(members.record(&members.paths[0], &[]).code, Some(0));
        members
    }

    fn record(&self, path: &str, arguments: &[&str]) -> crate::machine::Ran {
        let fixed = ["record", path, "--pool", "4M", "--read", CAPTURES];
        run(&[&fixed[..], &["--index-dir", &self.volume.index], arguments].concat())
    }

    /// Every verb refuses in one line with these words.
    fn all_refuse(&self, path: &str, arguments: &[&str], (code, words): (i32, &str)) {
        for verb in ["inspect", "verify", "scrub", "find"] {
            run(&[&[verb, path], arguments].concat()).fails_with(code, words);
        }
        self.record(path, arguments).fails_with(code, words);
    }
}

fn set_len(path: &str, len: u64) {
    std::fs::File::options().write(true).open(path).unwrap().set_len(len).unwrap();
}

#[test]
fn members_are_known_by_what_they_hold_in_any_order() {
    let members = Members::new();
    let [first, second, third] = &members.paths;
    let renamed = members.volume.file("renamed");
    std::fs::rename(second, &renamed).unwrap();
    for order in [[third, &renamed, first], [&renamed, first, third]] {
        let others = ["--member", order[1], "--member", order[2]];
        let text = run(&[&["inspect", order[0]], &others[..]].concat()).done().out;
        assert!(!text.contains("not found"), "{text}");
        run(&[&["verify", order[0]], &others[..]].concat()).done();
        assert_eq!(members.record(order[0], &others).code, Some(0));
    }
}

#[test]
fn a_member_of_another_volume_is_refused() {
    let members = Members::new();
    let other = Volume::recorded();
    let words = (3, "it belongs to volume");
    members.all_refuse(&members.paths[0], &["--member", &other.path], words);
}

#[test]
fn two_copies_of_one_member_are_refused() {
    let members = Members::new();
    let [first, second, _] = &members.paths;
    let copy = members.volume.file("copy");
    std::fs::copy(second, &copy).unwrap();
    let twice = |one: &str, other: &str| {
        let remedy = "one of them is a copy; take it away, and give the original alone";
        format!("member 1 is there twice, {one} and {other}: {remedy}")
    };
    let words = (3, &*twice(&copy, second));
    members.all_refuse(first, &["--member", &copy, "--member", second], words);
    members.all_refuse(second, &["--member", &copy], (3, &twice(second, &copy)));
}

#[test]
fn a_cut_member_is_named_and_the_others_go_on() {
    let members = Members::new();
    let [first, second, _] = &members.paths;
    set_len(second, 10 << 20);
    let words = "it was cut to 10485760 bytes and the ring reaches to 31260672";
    members.all_refuse(second, &[], (4, words));
    members.all_refuse(first, &["--member", second], (4, words));
    // Found by itself it counts as absent, and inspect says why.
    let text = run(&["inspect", first]).done().out;
    assert!(text.contains(&format!("{second}: absent: {words}")), "{text}");
    run(&["verify", first]).done();
    assert_eq!(members.record(first, &[]).code, Some(1), "without one of them");
}

#[test]
fn a_member_on_a_larger_or_a_slightly_smaller_device_is_the_same() {
    let members = Members::new();
    let [first, second, third] = &members.paths;
    set_len(second, 40 << 20);
    // The ring leaves a share free for that; the copies of the superblock behind it are gone.
    set_len(third, 31 << 20);
    let text = run(&["inspect", first]).done().out;
    assert!(!text.contains("absent"), "{text}");
    assert_eq!(members.record(first, &[]).code, Some(0));
    run(&["verify", first]).done();
}

#[test]
fn a_copy_of_a_whole_volume_does_not_mix_with_the_original() {
    let members = Members::new();
    let place = members.volume.file("elsewhere");
    std::fs::create_dir(&place).unwrap();
    let copies = members.paths.each_ref().map(|path| {
        let copy = Path::new(&place).join(Path::new(path).file_name().unwrap());
        std::fs::copy(path, &copy).unwrap();
        copy.into_os_string().into_string().unwrap()
    });
    let before = members.paths.each_ref().map(|path| std::fs::read(path).unwrap());
    assert_eq!(members.record(&copies[1], &[]).code, Some(0));
    let after = members.paths.each_ref().map(|path| std::fs::read(path).unwrap());
    assert!(before == after, "the original is as it was");
    let text = run(&["inspect", &copies[0]]).done().out;
    assert!(!text.contains("missed"), "{text}");
}
