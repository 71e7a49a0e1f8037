//! A volume of several members from the command line, with one of them away for a while.

#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use std::path::Path;

use crate::machine::{CAPTURES, Loop, Volume, enter, run};
use serde_json::Value;

#[test]
fn a_volume_of_four_members_serves_without_any_one_of_them() {
    let volume = Volume::empty();
    let members = [0, 1, 2, 3].map(|number| volume.file(&format!("member-{number}")));
    let mut create = vec!["create", &members[0], "--size", "48M", "--sparse", "--parity", "1"];
    members[1..].iter().for_each(|member| create.extend(["--member", member]));
    let created = run(&create).done().out;
    assert!(created.contains("on each of 3 members, and 1 for parity"), "{created}");
    let index = ["--index-dir", &*volume.index];
    run(&[&["record", &members[2], "--read", CAPTURES], &index[..]].concat()).done();
    let extracts = |name: &str, member: &str| {
        let file = volume.file(name);
        let query = ["extract", member, "ip or ip6", "--write", &file];
        run(&[&query, &index[..]].concat()).done();
        std::fs::read(&file).unwrap()
    };
    let whole = extracts("whole.pcapng", &members[0]);
    assert!(run(&["verify", &members[3]]).done().out.contains("clean"));

    let away = volume.file("away");
    std::fs::rename(&members[1], &away).unwrap();
    assert!(extracts("without.pcapng", &members[0]) == whole, "the others have it all");
    let inspected = run(&["inspect", &members[0]]).done().out;
    assert!(inspected.contains("member-1: not found"), "{inspected}");
    let degraded = run(&[&["record", &members[0], "--read", CAPTURES], &index[..]].concat());
    assert_eq!(
        degraded.code,
        Some(1),
        "nothing is lost, but one loss less is survived: {degraded:?}"
    );
    std::fs::rename(&away, &members[1]).unwrap();
    let json = run(&["inspect", &members[1], "--json"]).done().out;
    let inspected: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(inspected["members"][1]["state"], "stale", "{json}");
    assert_eq!(inspected["members"][0]["state"], "whole", "{json}");

    // A member elsewhere is named; one of another volume is refused.
    std::fs::rename(&members[1], &away).unwrap();
    let named = run(&["inspect", &members[0], "--member", &away]).done().out;
    assert!(!named.contains("not found"), "{named}");
    run(&["inspect", &members[0], "--member", &volume.path]).is_refused("belongs to volume");
}

#[test]
fn members_are_known_wherever_their_names_have_moved() {
    let volume = Volume::empty();
    let members = [0, 1, 2].map(|number| volume.file(&format!("disk-{number}")));
    let create = ["create", &members[0], "--size", "48M", "--sparse", "--parity", "1"];
    let others = ["--member", &members[1], "--member", &members[2]];
    run(&[&create[..], &others].concat()).done();
    let record = ["record", &members[0], "--read", CAPTURES, "--index-dir", &volume.index];
    run(&record).done();
    // As a machine may name its disks when it starts: two swapped, then all three moved on.
    for order in [[0, 2, 1], [1, 2, 0], [2, 0, 1]] {
        let moved = [0, 1, 2].map(|number| volume.file(&format!("moved-{number}")));
        for number in 0..3 {
            std::fs::rename(&members[number], &moved[order[number]]).unwrap();
        }
        for number in 0..3 {
            std::fs::rename(&moved[number], &members[number]).unwrap();
        }
        for member in &members {
            let json = run(&["inspect", member, "--json"]).done().out;
            let inspected: Value = serde_json::from_str(&json).unwrap();
            let states = [0, 1, 2].map(|number| &inspected["members"][number]["state"]);
            assert_eq!(states, ["whole"; 3], "{order:?}: {json}");
        }
        let report = run(&[&record[..], &["--json"]].concat()).done().out;
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["members"].as_array().map(Vec::len), Some(0), "{order:?}: {report}");
        assert!(run(&["verify", &members[2]]).done().out.contains("clean"));
    }
}

/// How the members of a volume are, by number.
fn states(arguments: &[&str]) -> Vec<String> {
    let json = run(&[&["inspect", "--json"], arguments].concat()).done().out;
    let inspected: Value = serde_json::from_str(&json).unwrap();
    let members = inspected.pointer("/members").unwrap().as_array().unwrap().iter();
    members.map(|member| member.pointer("/state").unwrap().as_str().unwrap().to_owned()).collect()
}

#[test]
fn members_are_found_in_folders_and_a_half_made_one_is_left_out() {
    let volume = Volume::empty();
    let members = [0, 1, 2].map(|number| volume.file(&format!("disk-{number}")));
    let create = ["create", &members[0], "--size", "48M", "--sparse", "--parity", "1"];
    let others = ["--member", &members[1], "--member", &members[2]];
    run(&[&create[..], &others].concat()).done();
    run(&["record", &members[0], "--read", CAPTURES, "--index-dir", &volume.index]).done();
    let extract = |name: &str, more: &[&str]| {
        let file = volume.file(name);
        let fixed = ["extract", &members[0], "ip", "-w", &file, "--index-dir", &volume.index];
        (run(&[&fixed[..], more].concat()), std::fs::read(&file).unwrap_or_default())
    };
    let whole = extract("whole", &[]);
    assert_eq!(whole.0.code, Some(0), "{whole:?}");
    // Elsewhere, with names of their own, among what is no member.
    let folder = volume.file("elsewhere");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(format!("{folder}/a"), "no member").unwrap();
    std::fs::rename(&members[1], format!("{folder}/b")).unwrap();
    std::fs::rename(&members[2], format!("{folder}/c")).unwrap();
    assert_eq!(states(&[&members[0], "--member", &folder]), ["whole"; 3]);
    let record = ["record", &members[0], "--member", &folder, "--read", CAPTURES];
    run(&[&record[..], &["--index-dir", &volume.index]].concat()).done();
    std::fs::rename(format!("{folder}/b"), &members[1]).unwrap();

    // Zeros and garbage in the place of the third one.
    for byte in [0, 0xa5] {
        std::fs::write(&members[2], vec![byte; 48 << 20]).unwrap();
        let (ran, packets) = extract("beside", &["--force", "--member", &members[2]]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains("disk-2 has no superblock of a volume"), "{ran:?}");
        assert!(ran.err.contains("complete") && !packets.is_empty(), "{ran:?}");
    }
    // One that has nothing to do with it is a mistake.
    let (stranger, _) = extract("stranger", &["--member", &volume.path]);
    stranger.is_refused("belongs to volume");
}

#[test]
fn a_member_that_is_named_and_is_not_there_is_absent() {
    let volume = Volume::empty();
    let members = three(&volume);
    let record = ["--read", CAPTURES, "--index-dir", &*volume.index];
    run(&[&["record", &*members[0]], &record[..]].concat()).done();
    // The node of a dead disk goes with it, whether it is named first or behind.
    let away = volume.file("away");
    for gone in [0, 1] {
        std::fs::rename(&members[gone], &away).unwrap();
        let others: Vec<&str> =
            members.iter().skip(1).flat_map(|member| ["--member", member]).collect();
        let all = [&[&*members[0]], &others[..]].concat();
        let left = [&*members[1 - gone]];
        let verbs: [(&str, &[&str]); 8] = [
            ("inspect", &["--json"]),
            ("status", &["--json"]),
            ("verify", &[]),
            ("scrub", &["--dry-run"]),
            ("find", &["udp", "--index-dir", &volume.index]),
            ("extract", &["ip", "-w", "-", "--index-dir", &volume.index]),
            ("resilver", &[]),
            ("record", &record),
        ];
        for (verb, more) in verbs {
            let named = run(&[&[verb], &all[..], more].concat());
            let beside = run(&[&[verb], &left[..], more].concat());
            assert_eq!(named.code, beside.code, "{verb}: {named:?}, {beside:?}");
            assert!(matches!(named.code, Some(0 | 1)), "{verb}: {named:?}");
            assert_eq!(verb == "record", named.err.contains("absent"), "{verb}: {named:?}");
            // Each says by which name it was asked.
            let of = |out: &str| {
                let lines = out.lines().filter(|line| !line.starts_with("  \"path\":"));
                lines.map(str::to_owned).collect::<Vec<_>>()
            };
            let is_same = of(&named.out) == of(&beside.out);
            assert!(verb == "record" || is_same, "{verb}: {named:?}, {beside:?}");
        }
        std::fs::rename(&away, &members[gone]).unwrap();
        run(&["resilver", &members[gone]]).done();
    }
    let nowhere = volume.file("nowhere");
    run(&["inspect", &nowhere]).is_refused("nowhere does not exist");
    run(&["inspect", &nowhere, "--member", &away]).is_refused("nowhere does not exist");
}

#[test]
fn members_are_found_by_the_lasting_names_of_disks() {
    const NAME: &str = "members::members_are_found_by_the_lasting_names_of_disks";
    let prepare = "mkdir -p /dev/disk && mount -t tmpfs none /dev/disk && mkdir /dev/disk/by-id";
    if !enter(prepare, NAME) {
        return;
    }
    let devices = [(); 3].map(|()| Loop::new(48 << 20, &[], |_| {}));
    let [Some(first), Some(second), Some(third)] = devices else { return };
    let create = ["create", &first.path, "--parity", "1", "--piece", "256K"];
    run(&[&create[..], &["--member", &second.path, "--member", &third.path]].concat()).done();
    assert_eq!(states(&[&first.path]), ["whole"; 3]);
    // The third one gets a name that the volume does not know.
    let old = third.path.clone();
    let copy = |file: &Path| std::fs::write(file, std::fs::read(&old).unwrap()).unwrap();
    let moved = Loop::new(48 << 20, &[], copy);
    let Some(moved) = moved else { return };
    drop(third);
    assert_eq!(states(&[&first.path]), ["whole", "whole", "absent"]);
    std::os::unix::fs::symlink(&moved.path, "/dev/disk/by-id/ata-spool").unwrap();
    assert_eq!(states(&[&first.path]), ["whole"; 3]);
}

/// Overwrites `len` bytes with a pattern that no volume holds.
fn damage(member: &str, offset: u64, len: usize) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::options().write(true).open(member).unwrap();
    file.write_all_at(&vec![0x5a; len], offset).unwrap();
}

/// What lies on a member, without the row that says who had it open last: docs/format.md, Claim.
fn but_for_the_claim(member: &str) -> Vec<u8> {
    let mut bytes = std::fs::read(member).unwrap();
    bytes.drain(8192..12288);
    bytes
}

#[test]
fn a_scrub_repairs_what_it_can_and_lists_the_rest() {
    let volume = Volume::empty();
    let members = [0, 1, 2].map(|number| volume.file(&format!("member-{number}")));
    let create = ["create", &members[0], "--size", "48M", "--sparse", "--parity", "1"];
    let others = ["--member", &members[1], "--member", &members[2]];
    run(&[&create[..], &others].concat()).done();
    let record = ["record", &members[0], "--read", CAPTURES, "--index-dir", &volume.index];
    run(&record).done();
    let before = but_for_the_claim(&members[1]);
    let clean = run(&["scrub", &members[2]]).done().out;
    assert!(clean.starts_with("clean: ") && clean.contains("3 members"), "{clean}");

    // The slot of the first stripe with packets, behind the slot of the EPOCH, and a superblock.
    let piece_bytes = 2 << 20;
    damage(&members[1], 2 * piece_bytes, 3 * 4096);
    damage(&members[1], 4096, 4096);
    let looked = run(&["scrub", &members[0], "--dry-run"]);
    assert_eq!(looked.code, Some(1), "{looked:?}");
    assert!(looked.out.starts_with("damaged: 2 places, all repairable\n"), "{looked:?}");
    assert_eq!(run(&["verify", &members[0]]).code, Some(1));
    let repaired = run(&["scrub", &members[0]]).done().out;
    assert!(repaired.starts_with("repaired: 2 places; nothing is damaged any more"), "{repaired}");
    assert!(repaired.contains("member 1: superblock copy 2 of 4: repaired"), "{repaired}");
    assert!(but_for_the_claim(&members[1]) == before, "as it was");
    run(&["verify", &members[0]]).done();

    // The same rows on two members, of which one may be lost.
    damage(&members[1], 2 * piece_bytes + 4096, 4096);
    damage(&members[0], 2 * piece_bytes + 4096, 2 * 4096);
    let beyond = run(&["scrub", &members[0], "--json"]);
    assert_eq!(beyond.code, Some(1), "{beyond:?}");
    let report: Value = serde_json::from_str(&beyond.out).unwrap();
    let lost = |place: usize| &report["damage"][place];
    let (alone, shared) = if lost(0)["member"] == 1 { (0, 1) } else { (1, 0) };
    assert_eq!(
        (&lost(alone)["fate"], &lost(shared)["fate"]),
        (&"lost".into(), &"partly lost".into())
    );
    let first = Value::from(2 * piece_bytes + 4096);
    assert_eq!(lost(shared)["lost_row_offsets"], Value::from(vec![first]), "{report}");
}

/// Packets and lost packets of a salvage, and its exit code.
fn salvaged(arguments: &[&str]) -> (u64, u64, Option<i32>) {
    let ran = run(&[&["salvage"], arguments, &["--json"]].concat());
    let report: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"));
    let count = |name: &str| report.get(name).and_then(Value::as_u64).unwrap();
    (count("packets"), count("lost_packets"), ran.code)
}

#[test]
fn what_is_left_of_a_volume_is_salvaged_and_the_rest_counted() {
    let volume = Volume::empty();
    let members = [0, 1, 2, 3, 4, 5].map(|number| volume.file(&format!("member-{number}")));
    let mut create = vec!["create", &members[0], "--size", "24M", "--piece", "64K", "--sparse"];
    create.extend(["--parity", "2"]);
    members[1..].iter().for_each(|member| create.extend(["--member", member]));
    run(&create).done();
    let record = ["record", &members[0], "--read", CAPTURES, "--index-dir", &volume.index];
    let recorded = run(&[&record[..], &["--pool", "4M", "--json"]].concat()).done().out;
    let stored = serde_json::from_str::<Value>(&recorded).unwrap()["stored"].as_u64().unwrap();

    // Three of six members are gone: too few to compute anything.
    let left: Vec<&str> = [0, 2, 5].map(|number| &*members[number]).to_vec();
    run(&["extract", &members[0], "tcp", "-w", "-"]);
    let file = volume.file("left.pcapng");
    let (packets, lost, code) = salvaged(&[&left[..], &["-w", &file]].concat());
    assert_eq!((packets + lost, code), (stored, Some(1)));
    assert!(packets > stored / 4 && lost > stored / 4, "{packets} and {lost} of {stored}");

    for member in &members {
        damage(member, 0, 8192);
        damage(member, (24 << 20) - 8192, 8192);
    }
    run(&["inspect", &members[0]]).is_refused("is no wirespool volume");
    assert_eq!(
        salvaged(&[&left[..], &["-w", &file, "--force"]].concat()),
        (packets, lost, Some(1))
    );
    let all: Vec<&str> = members.iter().rev().map(String::as_str).collect();
    let whole = volume.file("whole.pcapng");
    assert_eq!(salvaged(&[&all[..], &["-w", &whole]].concat()), (stored, 0, Some(0)));
    let text = run(&[&["salvage"], &all[..], &["-w", &whole, "--force"]].concat()).done().out;
    assert!(text.contains("no superblock is left") && text.contains("nothing is lost"), "{text}");

    // What was written is what another recorder takes.
    assert_eq!(salvaged(&[&all[..], &["--into", &volume.path]].concat()), (stored, 0, Some(0)));
    let again = run(&["verify", &volume.path, "--json"]).done().out;
    assert_eq!(serde_json::from_str::<Value>(&again).unwrap()["packets"], stored, "{again}");

    let nothing = volume.file("nothing");
    std::fs::write(&nothing, vec![0; 8 << 20]).unwrap();
    run(&["salvage", &nothing, "-w", &whole, "--force"]).fails_with(4, "nothing of a volume");
    run(&["salvage", &nothing, "--into", &nothing]).fails_with(2, "must be another volume");
    run(&["salvage", &volume.file("absent"), "-w", "-"]).is_refused("does not exist");
}

#[test]
fn a_refusal_for_missing_members_says_how_to_go_on() {
    for is_recorded in [false, true] {
        let volume = Volume::empty();
        let members = [0, 1].map(|number| volume.file(&format!("member-{number}")));
        let create = ["create", &members[0], "--size", "48M", "--sparse", "--parity", "1"];
        run(&[&create[..], &["--member", &members[1]]].concat()).done();
        let record = ["record", &members[0], "--index-dir", &volume.index, "--read", CAPTURES];
        if is_recorded {
            run(&record).done();
        }
        std::fs::rename(&members[1], volume.file("away")).unwrap();
        run(&record).is_refused("if it is lost, give it up for ever: record --without 1\n");
        let ran = run(&[&record[..], &["--without", "1"]].concat()).done();
        assert!(ran.err.contains("members: the seat of member 1 is empty; replace"), "{ran:?}");
    }
    // A member whose data is nowhere else: no flag helps, and none is named.
    let volume = Volume::empty();
    let members = [0, 1].map(|number| volume.file(&format!("member-{number}")));
    let create = ["create", &members[0], "--size", "48M", "--sparse", "--member", &members[1]];
    run(&create).done();
    std::fs::rename(&members[1], volume.file("away")).unwrap();
    let record = ["record", &members[0], "--index-dir", &volume.index, "--read", CAPTURES];
    for arguments in [&record[..], &[&record[..], &["--without", "1"]].concat()] {
        run(arguments).is_refused("missing: 1; bring back what is missing\n");
    }
}

#[test]
fn a_member_given_up_is_refused_and_its_seat_is_filled_anew() {
    let volume = Volume::empty();
    let members = [0, 1, 2].map(|number| volume.file(&format!("member-{number}")));
    let [first, second, third] = &members;
    let create = ["create", first, "--size", "24M", "--piece", "64K", "--sparse", "--parity", "1"];
    run(&[&create[..], &["--member", second, "--member", third]].concat()).done();
    let record = ["record", first, "--read", CAPTURES, "--index-dir", &volume.index];
    let record = [&record[..], &["--pool", "4M"]].concat();
    run(&record).done();
    run(&[&record[..], &["--without", "3"]].concat())
        .is_refused("the volume has no member 3; its members are 0 to 2");

    let away = volume.file("away");
    std::fs::rename(second, &away).unwrap();
    run(&[&record[..], &["--without", "1"]].concat()).done();
    let status = run(&["status", first]);
    assert_eq!(status.code, Some(1));
    let advice = format!("fill seat 1: wirespool replace {first} 1 NEW");
    assert!(status.out.contains(&advice) && status.out.contains("vacant"), "{status:?}");

    // Found by itself it is left alone, and named it is refused.
    std::fs::rename(&away, second).unwrap();
    run(&["verify", third]).done();
    run(&record).done();
    let words = "it was member 1 until it was called gone for good; leave it out, or, to fill";
    run(&["verify", second]).is_refused(words);
    run(&["verify", first, "--member", second]).is_refused(words);

    run(&["replace", first, "1", second, "--sparse"]).is_refused("--force destroys what it holds");
    run(&["replace", first, "1", second, "--sparse", "--force"]).done();
    run(&["status", second]).done();
    std::fs::remove_file(third).unwrap();
    run(&["verify", first]).done();
}

/// Zeros all four superblock copies.
fn lose_superblocks(member: &str) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::options().write(true).open(member).unwrap();
    let end = file.metadata().unwrap().len();
    for offset in [0, end - 8192] {
        file.write_all_at(&[0; 8192], offset).unwrap();
    }
}

/// Two members and one of parity, in files.
fn three(volume: &Volume) -> [String; 3] {
    let members = [0, 1, 2].map(|number| volume.file(&format!("disk-{number}")));
    let create = ["create", &members[0], "--size", "48M", "--sparse", "--parity", "1"];
    run(&[&create[..], &["--member", &members[1], "--member", &members[2]]].concat()).done();
    members
}

fn state_of(volume: &str, member: usize) -> String {
    let json = run(&["inspect", volume, "--json"]).done().out;
    let inspected: Value = serde_json::from_str(&json).unwrap();
    let state = inspected.pointer(&format!("/members/{member}/state"));
    state.and_then(Value::as_str).unwrap().to_owned()
}

#[test]
fn a_scrub_names_a_member_again_that_lost_all_its_superblocks() {
    let volume = Volume::empty();
    let members = three(&volume);
    let record = ["record", &members[0], "--read", CAPTURES, "--index-dir", &volume.index];
    run(&record).done();

    lose_superblocks(&members[1]);
    let looked = run(&["scrub", &members[0], "--dry-run"]);
    assert_eq!(looked.code, Some(1), "{looked:?}");
    assert!(looked.out.contains("member 1: superblock copy 4 of 4: repairable"), "{looked:?}");
    let repaired = run(&["scrub", &members[0]]).done().out;
    assert!(repaired.starts_with("repaired: 4 places; nothing is damaged any more"), "{repaired}");
    assert_eq!(state_of(&members[0], 1), "whole");
    run(&["verify", &members[1]]).done();

    // Named first, it is found by another member, or the way to say so is.
    lose_superblocks(&members[0]);
    run(&["scrub", &members[0]]).is_refused("name a member that has one: scrub MEMBER --member ");
    let repaired = run(&["scrub", &members[0], "--member", &members[2]]).done().out;
    assert!(repaired.starts_with("repaired: 4 places; nothing is damaged any more"), "{repaired}");
    assert_eq!(state_of(&members[0], 0), "whole");

    // What was recorded meanwhile it does not have: it is named, and stale.
    lose_superblocks(&members[1]);
    assert_eq!(run(&record).code, Some(1), "it begins without a member");
    run(&["scrub", &members[2], "--member", &members[1]]).done();
    assert_eq!(state_of(&members[0], 1), "stale");
    run(&["resilver", &members[0]]).done();
    assert_eq!(state_of(&members[0], 1), "whole");
    run(&["scrub", &members[0]]).done();

    // One that went on alone with another does not get the past of the third.
    std::fs::rename(&members[0], volume.file("away")).unwrap();
    let alone = ["record", &members[1], "--read", CAPTURES, "--index-dir", &volume.index];
    assert_eq!(run(&alone).code, Some(1), "it begins without a member");
    std::fs::rename(volume.file("away"), &members[0]).unwrap();
    std::fs::remove_file(&members[2]).unwrap();
    lose_superblocks(&members[1]);
    run(&["scrub", &members[0]]).is_refused("has recorded since without the members at hand");

    // Of another volume: not touched where it lies, and refused where it is named.
    let other = Volume::recorded();
    lose_superblocks(&other.path);
    let before = std::fs::read(&other.path).unwrap();
    std::fs::copy(&other.path, &members[1]).unwrap();
    run(&["scrub", &members[0], "--member", &other.path]).is_refused("leave it out, or replace");
    let ran = run(&["scrub", &members[0]]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(std::fs::read(&members[1]).unwrap() == before, "it is not ours");
}

#[test]
fn of_copies_in_a_named_folder_the_newest_is_the_member() {
    let volume = Volume::empty();
    let members = three(&volume);
    let record = ["record", &members[0], "--read", CAPTURES, "--index-dir", &volume.index];
    run(&record).done();
    let folder = volume.file("put-aside");
    std::fs::create_dir(&folder).unwrap();
    // By its name the old one comes first.
    std::fs::copy(&members[1], format!("{folder}/a-copy")).unwrap();
    run(&record).done();
    std::fs::rename(&members[1], format!("{folder}/the-member")).unwrap();
    let json = run(&["inspect", &members[0], "--member", &folder, "--json"]).done().out;
    let inspected: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(inspected["members"][1]["state"], "whole", "{json}");
    // Nobody can tell which of two copies that are alike is the member.
    std::fs::copy(format!("{folder}/the-member"), format!("{folder}/another")).unwrap();
    run(&["inspect", &members[0], "--member", &folder]).is_refused("one of them is a copy");
}

#[test]
fn a_copy_that_is_named_does_not_take_the_place_of_the_member() {
    let volume = Volume::empty();
    let members = three(&volume);
    let record = ["record", &members[0], "--read", CAPTURES, "--index-dir", &volume.index];
    run(&record).done();
    let (folder, copy) = (volume.file("put-aside"), volume.file("put-aside/copy"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(&members[1], &copy).unwrap();
    let named = [&record[..], &["--member", &copy]].concat();
    let refused = run(&named);
    refused.is_refused("one of them is a copy");
    assert!(refused.err.contains(&copy) && refused.err.contains(&members[1]), "{refused:?}");
    // By another name it is the same disk.
    let link = volume.file("link");
    std::os::unix::fs::symlink(&members[1], &link).unwrap();
    run(&[&record[..], &["--member", &link]].concat()).done();
    // It is older now; the member itself may be anywhere.
    run(&named).is_refused("one of them is a copy");
    std::fs::rename(&members[1], volume.file("put-aside/disk")).unwrap();
    run(&[&record[..], &["--member", &volume.file("put-aside/disk")]].concat()).done();
}

#[test]
fn a_spare_that_has_moved_is_found_where_it_is_named() {
    let volume = Volume::empty();
    let members = [0, 1].map(|number| volume.file(&format!("disk-{number}")));
    let create = ["create", &members[0], "--size", "48M", "--sparse", "--parity", "1"];
    run(&[&create[..], &["--member", &members[1]]].concat()).done();
    let (spare, folder) = (volume.file("spare"), volume.file("elsewhere"));
    run(&["grow", &members[0], &spare, "--spare", "--sparse"]).done();
    std::fs::create_dir(&folder).unwrap();
    let moved = format!("{folder}/moved");
    std::fs::rename(&spare, &moved).unwrap();
    for named in [&moved, &folder] {
        let status = run(&["status", &members[0], "--member", named]).done().out;
        assert!(status.contains("moved") && !status.contains("not found"), "{named}: {status}");
        run(&["inspect", &members[0], "--member", named]).done();
        run(&["verify", &members[0], "--member", named]).done();
        let record = ["record", &members[0], "--read", CAPTURES, "--index-dir", &volume.index];
        run(&[&record[..], &["--member", named]].concat()).done();
    }
}

/// Whether `status` finds every member, and where the volume has the second one.
fn second_by_status(volume: &str) -> (bool, String) {
    let ran = run(&["status", volume, "--json"]);
    let status: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"));
    let members = status["members"].as_array().unwrap();
    let is_whole = members.iter().all(|member| member["state"] == "whole");
    (is_whole, members[1]["path"].as_str().unwrap().to_owned())
}

#[test]
fn where_a_member_has_moved_to_is_remembered() {
    let volume = Volume::empty();
    let members = three(&volume);
    let record = ["record", &members[0], "--read", CAPTURES, "--index-dir", &volume.index];
    run(&record).done();
    // By its folder and by its name, by a recording and by a verb that changes members.
    let spare = volume.file("spare");
    let grow = ["grow", &members[0], &spare, "--spare", "--sparse"];
    let ways: [(&str, bool, &[&str]); 3] =
        [("by-folder", true, &record), ("by-name", false, &record), ("by-a-verb", true, &grow)];
    let mut at = members[1].clone();
    for (name, by_folder, verb) in ways {
        let folder = volume.file(name);
        std::fs::create_dir(&folder).unwrap();
        let to = format!("{folder}/moved");
        std::fs::rename(&at, &to).unwrap();
        at = to;
        assert!(!second_by_status(&members[0]).0, "{name}: nobody knows yet");
        let ran = run(&[verb, &["--member", if by_folder { &folder } else { &at }]].concat());
        assert_eq!(ran.code, Some(0), "{name}: {ran:?}");
        let told = format!("member 1 is at {at} now: the volume remembers it");
        assert_eq!(ran.err.contains(&told), verb[0] == "record", "{name}: {ran:?}");
        for member in [&members[0], &at, &members[2]] {
            assert_eq!(second_by_status(member), (true, at.clone()), "{name}, {member}");
        }
        let again = run(&record);
        assert_eq!(again.code, Some(0), "{name}: {again:?}");
        assert!(!again.err.contains("remembers"), "{name}: {again:?}");
    }
    assert!(run(&["verify", &members[0]]).done().out.contains("clean"));
}

#[test]
fn a_link_and_a_copy_do_not_change_what_is_remembered() {
    let volume = Volume::empty();
    let members = three(&volume);
    let record = ["record", &members[0], "--read", CAPTURES, "--index-dir", &volume.index];
    run(&record).done();
    // A name of the moment for what a lasting one leads to.
    let link = volume.file("link");
    std::os::unix::fs::symlink(&members[1], &link).unwrap();
    run(&[&record[..], &["--member", &link]].concat()).done();
    std::fs::remove_file(&link).unwrap();
    assert_eq!(second_by_status(&members[0]), (true, members[1].clone()));
    // A refused copy.
    let folder = volume.file("copies");
    std::fs::create_dir(&folder).unwrap();
    let copy = format!("{folder}/copy");
    std::fs::copy(&members[1], &copy).unwrap();
    run(&[&record[..], &["--member", &copy]].concat()).is_refused("one of them is a copy");
    assert_eq!(second_by_status(&members[0]), (true, members[1].clone()));
    // One in a folder that is older than the member.
    run(&record).done();
    run(&[&record[..], &["--member", &folder]].concat()).done();
    assert_eq!(second_by_status(&members[0]), (true, members[1].clone()));
}

#[test]
fn where_a_spare_has_moved_to_is_remembered() {
    let volume = Volume::empty();
    let members = three(&volume);
    let (spare, folder) = (volume.file("spare"), volume.file("elsewhere"));
    run(&["grow", &members[0], &spare, "--spare", "--sparse"]).done();
    std::fs::create_dir(&folder).unwrap();
    let moved = format!("{folder}/moved");
    std::fs::rename(&spare, &moved).unwrap();
    let record = ["record", &members[0], "--read", CAPTURES, "--index-dir", &volume.index];
    run(&[&record[..], &["--member", &folder]].concat()).done();
    let status = run(&["status", &members[0], "--json"]).done().out;
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["spares"][0]["path"], *moved, "{status}");
}

#[test]
fn members_in_a_deep_folder_are_found_beside_each_other() {
    let volume = Volume::empty();
    // Longer than the path of a member in a superblock.
    let deep = volume.file(&"d".repeat(100));
    std::fs::create_dir(&deep).unwrap();
    let members = [0, 1, 2].map(|number| format!("{deep}/disk-{number}"));
    let create = ["create", &members[0], "--size", "48M", "--sparse", "--parity", "1"];
    run(&[&create[..], &["--member", &members[1], "--member", &members[2]]].concat()).done();
    let record = ["record", &members[0], "--read", CAPTURES, "--index-dir", &volume.index];
    let ran = run(&record);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for member in &members {
        assert_eq!(second_by_status(member), (true, members[1].clone()));
    }
    assert!(!run(&record).err.contains("remembers"));
}

#[test]
fn a_member_that_was_away_knows_where_others_went_by_those_it_finds() {
    let volume = Volume::empty();
    let members = three(&volume);
    let record = ["record", &members[0], "--read", CAPTURES, "--index-dir", &volume.index];
    run(&record).done();
    let (away, folder) = (volume.file("away"), volume.file("elsewhere"));
    std::fs::rename(&members[2], &away).unwrap();
    std::fs::create_dir(&folder).unwrap();
    let moved = format!("{folder}/moved");
    std::fs::rename(&members[1], &moved).unwrap();
    assert_eq!(run(&[&record[..], &["--member", &moved]].concat()).code, Some(1), "degraded");
    std::fs::rename(&away, &members[2]).unwrap();
    let json = run(&["inspect", &members[2], "--json"]).done().out;
    let inspected: Value = serde_json::from_str(&json).unwrap();
    let states = [0, 1, 2].map(|number| &inspected["members"][number]["state"]);
    assert_eq!(states, ["whole", "whole", "stale"], "{json}");
}
