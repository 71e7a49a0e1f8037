//! The order of extents and the map of the ring, as a user asks for them.

use std::os::unix::fs::FileExt;
use std::path::Path;

use serde_json::Value;

use crate::machine::{CAPTURES, Loop, Volume, run};

/// A ring of 4 zones with 150 or so slots, and more than a lap of packets in it.
fn levelled() -> Volume {
    let volume = Volume::empty();
    std::fs::remove_file(&volume.path).unwrap();
    let zones = ["--zones", "4", "--extent", "128K", "--usable", "10%..90%"];
    let create = ["create", &volume.path, "--size", "16M", "--piece", "64K", "--sparse"];
    run(&[&create[..], &zones].concat()).done();
    volume
}

fn fill(volume: &Volume, times: usize) {
    let inputs = volume.named_often(CAPTURES, times);
    let inputs: Vec<&str> = inputs.iter().flat_map(|input| ["--read", input]).collect();
    volume.record(&inputs).done();
}

fn inspected(volume: &Volume, arguments: &[&str]) -> Value {
    let json = run(&[&["inspect", &volume.path, "--json"], arguments].concat()).done().out;
    serde_json::from_str(&json).unwrap()
}

#[test]
fn a_ring_in_zones_gives_back_what_was_recorded_lap_after_lap() {
    let volume = levelled();
    for _ in 0..3 {
        fill(&volume, 100);
        run(&["verify", &volume.path]).done();
        let found =
            run(&["find", &volume.path, "--index-dir", &volume.index, "sni", "www.github.com"]);
        assert!(found.done().out.lines().count() > 10);
    }
    let json = inspected(&volume, &[]);
    assert!(json["slots_written"].as_u64() > json["slots"].as_u64(), "{json:#}");
    let layout = &json["layout"];
    assert_eq!((&layout["zones"], &layout["extent_bytes"]), (&4.into(), &131_072.into()));
    assert!(layout["ring_begin"].as_u64() >= layout["usable_begin"].as_u64());
    assert!(layout["ring_end"].as_u64() <= layout["usable_end"].as_u64());
    assert_eq!(layout["usable_end"], (16 << 20) * 9 / 10);
    let text = run(&["inspect", &volume.path]).done().out;
    assert!(text.contains("4 zones in turn, extents of 128 KiB, from "), "{text}");
}

#[test]
fn a_map_shows_every_slot_once_from_outside_to_inside() {
    let volume = levelled();
    let empty = inspected(&volume, &["--map"]);
    let slots = empty["slots"].as_u64().unwrap();
    let contents = |json: &Value| -> Vec<String> {
        let cells = json["map"]["cells"].as_array().unwrap().iter();
        cells.map(|cell| cell["content"].as_str().unwrap().to_owned()).collect()
    };
    assert!(contents(&empty).iter().all(|content| content == "unwritten"));
    fill(&volume, 20);
    let json = inspected(&volume, &["--map"]);
    let cells = json["map"]["cells"].as_array().unwrap();
    let mut place = 0;
    for cell in cells {
        assert_eq!(cell["place"], place, "{json:#}");
        place += cell["slots"].as_u64().unwrap();
    }
    assert_eq!(place, slots);
    let unwritten = contents(&json).iter().filter(|content| *content == "unwritten").count();
    let free = slots - json["slots_used"].as_u64().unwrap();
    assert_eq!(usize::try_from(free), Ok(unwritten), "one slot a cell");
    assert_eq!(contents(&json).iter().filter(|content| *content == "opening").count(), 1);
    for mark in ["head", "tail"] {
        let marked: Vec<&Value> = cells.iter().filter(|cell| cell[mark] == true).collect();
        assert_eq!(marked.len(), 1, "{mark}");
        let named = if mark == "head" { "newest_sequence" } else { "tail_sequence" };
        assert_eq!(marked[0]["sequence"], json[named]);
    }
    // Sequences n and n + 1 lie in one extent or in neighbouring zones.
    let text = run(&["inspect", &volume.path, "--map"]).done().out;
    let map: Vec<&str> = text.lines().filter(|line| line.starts_with("zone ")).collect();
    assert_eq!(map.len(), 4, "{text}");
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    for (letter, count) in [('>', 1), ('<', 1), ('e', 0), ('.', unwritten)] {
        let letters = map.iter().flat_map(|line| line[17..].chars());
        assert_eq!(letters.filter(|other| *other == letter).count(), count, "{letter}\n{text}");
    }
}

#[test]
fn a_map_shows_what_is_damaged_and_who_is_away() {
    let volume = Volume::empty();
    let members = [0, 1, 2].map(|number| volume.file(&format!("member-{number}")));
    let create = ["create", &members[0], "--member", &members[1], "--member", &members[2]];
    let shape = ["--size", "16M", "--piece", "64K", "--sparse", "--parity", "1"];
    run(&[&create[..], &shape].concat()).done();
    let index = ["--index-dir", &*volume.index, "--pool", "4M"];
    let inputs = volume.named_often(CAPTURES, 60);
    let inputs: Vec<&str> = inputs.iter().flat_map(|input| ["--read", input]).collect();
    run(&[&["record", &members[0]], &inputs[..], &index].concat()).done();
    // The head of the second slot, on one member.
    let file = std::fs::OpenOptions::new().write(true).open(&members[1]).unwrap();
    file.write_all_at(&[7; 4096], (2 << 20) + (64 << 10)).unwrap();
    let map = run(&["inspect", &members[0], "--map", "--json"]).done().out;
    let json: Value = serde_json::from_str(&map).unwrap();
    let cell = &json["map"]["cells"][1];
    assert_eq!(cell["damaged_members"], serde_json::json!([1]), "{cell}");
    let text = run(&["inspect", &members[0], "--map"]).done().out;
    assert!(text.contains("!     damaged") && text.contains("member 1          !---"), "{text}");
    std::fs::remove_file(&members[2]).unwrap();
    let text = run(&["inspect", &members[0], "--map"]).done().out;
    assert!(text.contains("member 2          xx"), "{text}");
    let svg = volume.file("map.svg");
    let draw = ["inspect", &members[0], "--map-svg", &svg];
    run(&draw).done();
    let drawing = std::fs::read_to_string(&svg).unwrap();
    assert!(drawing.contains("member 2 (absent)") && drawing.contains("class=\"damaged\""));
    run(&draw).is_refused("exists already; --force replaces it");
    run(&[&draw[..], &["--force"]].concat()).done();
}

#[test]
fn layouts_that_cannot_be_are_refused_in_one_line() {
    let volume = Volume::empty();
    let path = volume.file("new");
    let create = |arguments: &[&str]| {
        run(&[&["create", &path, "--size", "64M", "--piece", "64K", "--sparse"], arguments]
            .concat())
    };
    create(&["--zones", "8", "--extent", "16M"]).is_refused("too small for 8 zones");
    create(&["--extent", "1M"]).is_refused("one zone has no extents");
    create(&["--usable", "5G.."]).is_refused("are no part of a member of 67108864 bytes");
    create(&["--usable", "50%..51%"]).is_refused("the usable range has space for");
    create(&["--extent", "100K", "--zones", "2"]).fails_with(2, "no multiple of the piece");
    create(&["--extent", "1M", "--zones", "1"]).fails_with(2, "no meaning with --zones 1");
    for wrong in [["--zones", "3"], ["--zones", "0"], ["--usable", "110%"], ["--usable", "x"]] {
        assert_eq!(create(&wrong).code, Some(2), "{wrong:?}");
    }
    assert!(!Path::new(&path).exists());
}

#[test]
fn a_rotating_disk_gets_zones_and_flash_gets_none() {
    let Some(disk) = Loop::new(64 << 20, &[], |_| {}) else { return };
    let name = disk.path.trim_start_matches("/dev/");
    let queue = format!("/sys/block/{name}/queue/rotational");
    for (rotational, zones) in [("1", 8), ("0", 1)] {
        if std::fs::write(&queue, rotational).is_err() {
            println!("not run: {queue} cannot be set");
            return;
        }
        let create = ["create", &disk.path, "--piece", "64K", "--force", "--json"];
        let json: Value = serde_json::from_str(&run(&create).done().out).unwrap();
        assert_eq!(json["layout"]["zones"], zones, "rotational {rotational}");
    }
}
