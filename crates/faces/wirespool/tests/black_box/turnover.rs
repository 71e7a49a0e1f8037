//! A volume's members come and go from the command line; what was recorded stays.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::golden::{capture, extracted};
use crate::machine::{CAPTURES, Volume, run, text};

fn status(member: &str) -> (Value, Option<i32>) {
    let ran = run(&["status", member, "--json"]);
    (serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}")), ran.code)
}

/// How many members the worst part of the ring may still lose.
fn survives(status: &Value) -> Option<u64> {
    let parts = status["redundancy"].as_array().unwrap();
    let left = parts.iter().map(|part| part["survives_members"].as_u64());
    left.min().flatten()
}

#[test]
fn members_are_missing_replaced_resilvered_and_added() {
    let volume = Volume::empty();
    let path = |name: &str| volume.file(name);
    let members = [0, 1, 2, 3, 4].map(|number| path(&format!("member-{number}")));
    let away = path("away");
    let [first, second, third, fourth, fifth] = &members;
    let create =
        ["create", first, "--member", second, "--member", third, "--parity", "1", "--missing", "1"];
    let shape = ["--size", "24M", "--piece", "64K", "--sparse"];
    run(&[&create[..], &shape].concat()).done();
    let record = |further: &[&str]| {
        let record = ["record", first, "--read", CAPTURES, "--index-dir", &volume.index];
        run(&[&record[..], &["--pool", "4M"], further].concat())
    };
    let extract = || {
        let file = path("all.pcapng");
        let query = ["extract", first, "ip or ip6", "--write", &file, "--force"];
        let query = [&query[..], &["--index-dir", &volume.index]].concat();
        run(&query).done();
        std::fs::read(&file).unwrap()
    };
    record(&[]).done();
    let (begun, code) = status(second);
    assert_eq!((&begun["members"][3]["state"], code), (&"vacant".into(), Some(1)));
    assert_eq!(survives(&begun), Some(0));

    // The missing one comes, and any one may go.
    run(&["replace", second, "3", fourth, "--sparse"]).done();
    let (whole, code) = status(fourth);
    assert_eq!((survives(&whole), code), (Some(1), Some(0)), "{whole}");
    run(&["verify", third]).done();
    let packets = extract();

    // One is away for first recording, and is given what it missed.
    std::fs::rename(second, &away).unwrap();
    let said = path("said");
    let hook = format!("echo $WIRESPOOL_CHANGE $WIRESPOOL_MEMBER >> {said}");
    let degraded = record(&["--on-member-change", &hook]);
    assert_eq!(degraded.code, Some(1), "{degraded:?}");
    assert_eq!(std::fs::read_to_string(&said).unwrap(), "absent 1\n");
    let twice = extract();
    std::fs::rename(&away, second).unwrap();
    assert_eq!(survives(&status(first).0), Some(0));
    // Without it no other member may be replaced: it is needed for that.
    std::fs::rename(second, &away).unwrap();
    run(&["replace", first, "2", fifth, "--sparse"]).is_refused("cannot be replaced yet");
    std::fs::rename(&away, second).unwrap();
    run(&["resilver", first]).done();
    assert_eq!(status(first).1, Some(0));
    std::fs::rename(third, &away).unwrap();
    assert!(extract() == twice && twice.len() > packets.len(), "any one may go again");
    std::fs::rename(&away, third).unwrap();

    // It grows by parity, and what was there stays.
    let grown = run(&["grow", third, fifth, "--parity", "2", "--sparse"]).done().out;
    assert!(grown.contains("3 columns of data, 2 of parity; before: 3"), "{grown}");
    record(&[]).done();
    run(&["verify", fifth]).done();
    let (grown, _) = status(fifth);
    assert_eq!(grown["redundancy"].as_array().unwrap().len(), 2, "{grown}");
    let thrice = extract();
    std::fs::remove_file(fourth).unwrap();
    assert!(extract() == thrice);
    run(&["scrub", first]).done();
}

const FIRST_NS: u64 = 1_700_000_000_000_000_000;

/// What verbs say of what a volume holds: packets by an index, sessions in words and in sums, and
/// how many an archive gets; a hold takes all packets.
fn answers(volume: &Volume, ring: &str, hold: &str) -> (BTreeSet<u32>, [String; 3]) {
    let packets = extracted(ring, Path::new(&volume.file("")), FIRST_NS);
    let found = run(&["find", ring, "udp", "--index-dir", &volume.index]).out;
    let sums = "SELECT count(*), sum(orig_packets), sum(resp_packets) FROM sessions";
    let sums = run(&["sql", ring, sums, "--index-dir", &volume.index]).out;
    assert!(!cfg!(feature = "sql") || sums.contains("5000"), "{sums}");
    let folder = volume.file(&format!("hold-{hold}"));
    let aside = ["hold", ring, "udp", "--hold-dir", &folder, "--index-dir", &volume.index];
    let aside = run(&aside).err;
    let aside = aside.split_once(" in ").map_or("", |(count, _)| count).to_owned();
    let to = format!("file://{folder}-archive");
    let archive = ["archive", ring, "--to", &to, "--sensor", "s", "--index-dir", &volume.index];
    let archived = run(&[&archive[..], &["--json"]].concat()).out;
    let archived: Value = serde_json::from_str(archived.lines().last().unwrap()).unwrap();
    assert!(
        aside.ends_with("5 000 packets") && archived.get("cut_sessions") == Some(&Value::from(0)),
        "{aside:?}, {archived}"
    );
    (packets, [found, sums, archived.get("sessions").map(Value::to_string).unwrap()])
}

#[test]
fn a_grown_volume_answers_as_before() {
    for (parity, count) in [("1", 3), ("0", 2), ("0", 1), ("2", 3)] {
        let volume = Volume::empty();
        let members: Vec<String> =
            (0..count).map(|number| volume.file(&format!("member-{number}"))).collect();
        let (first, others) = members.split_first().unwrap();
        let others = others.iter().flat_map(|path| ["--member", path]);
        let create = ["create", first, "--parity", parity, "--size", "32M", "--piece", "256K"];
        let create = create.into_iter().chain(["--sparse"]).chain(others);
        run(&create.collect::<Vec<_>>()).done();
        let file = volume.file("sent.pcap");
        std::fs::write(&file, capture(FIRST_NS, 0..5000)).unwrap();
        run(&["record", first, "--read", &file, "--index-dir", &volume.index]).done();
        let before = answers(&volume, first, "before");
        assert!(before.0.iter().copied().eq(0..5000), "{} packets", before.0.len());
        for more in ["more", "most"] {
            run(&["grow", first, &volume.file(more), "--sparse"]).done();
            let after = answers(&volume, first, more);
            assert!(after == before, "{count} members: {:?}, {:?}", after.1, before.1);
        }
        // Without the index in its folder as well.
        std::fs::remove_dir_all(&volume.index).unwrap();
        assert!(answers(&volume, first, "alone") == before, "{count} members");
    }
}

#[test]
fn what_members_cannot_be_is_refused_in_one_line() {
    let volume = Volume::recorded();
    let new = volume.file("new");
    run(&["replace", &volume.path, "0", &new, "--sparse"]).is_refused("cannot be replaced yet");
    run(&["replace", &volume.path, "7", &new, "--sparse"]).is_refused("has no member 7");
    run(&["grow", &volume.path, &volume.path]).is_refused("already");
    run(&["status", &new]).is_refused("does not exist");
    // One of data and two of parity would be three members.
    run(&["grow", &volume.path, &new, "--sparse", "--parity", "2"]).is_refused("2 for parity");
    let folder = text(volume.folder.path().to_path_buf());
    run(&["grow", &volume.path, &folder]).is_refused("neither a regular file nor");
    run(&["grow", &volume.path, &volume.path, "--spare"]).is_refused("already");
    assert!(!Path::new(&new).exists(), "what is refused leaves nothing behind");
    // Nor the end of a recorder that crashed, which makes every later answer unknown.
    let status = run(&["status", &volume.path]).done();
    assert!(status.out.contains("stopped in order"), "{status:?}");
    run(&["find", &volume.path, "host 192.0.2.1", "--index-dir", &volume.index]).done();
}
