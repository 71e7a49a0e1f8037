//! A volume of several members from the command line, with one of them away for a while.

use crate::machine::{CAPTURES, Volume, run};
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
    run(&[&["record", &members[0], "--read", CAPTURES], &index[..]].concat()).done();
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
