//! Golden images: small volumes under version control, made by the binary of their time and opened
//! by today's. What they hold is known by formula, not only by what came out once.
//!
//! `tests/golden/NAME` of this crate holds the members, compressed, and `expected.json`, in which
//! every value must stay as it is; new ones may come. How a new version of the format adds
//! images: docs/testing.md, Golden images.

#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]
#![expect(clippy::as_conversions, reason = "the numbers are small")]
#![expect(clippy::cast_possible_truncation, reason = "the numbers are small")]

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::machine::{command, run, text};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

fn number(bytes: &mut &[u8]) -> u32 {
    let (own, rest) = bytes.split_first_chunk().unwrap();
    *bytes = rest;
    u32::from_le_bytes(*own)
}

/// Time of packet 0 of every image.
const FIRST_NS: u64 = 1_700_000_000_000_000_000;

/// Packet `number`: UDP from one of five hosts to 10.2.0.1 with 900 zeros, a millisecond after the
/// one before.
pub(crate) fn packet(first_ns: u64, number: u32) -> (u64, Vec<u8>) {
    let mut frame = vec![0; 14 + 20 + 8 + 900];
    frame[12] = 8;
    let ip_length = (frame.len() - 14) as u16;
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&ip_length.to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 17]);
    frame[26..30].copy_from_slice(&[10, 1, 0, (number % 5) as u8]);
    frame[30..34].copy_from_slice(&[10, 2, 0, 1]);
    frame[34..38].copy_from_slice(&[(number % 7) as u8 + 1, 0, 0, 9]);
    frame[38..40].copy_from_slice(&(ip_length - 20).to_be_bytes());
    frame[42..46].copy_from_slice(&number.to_be_bytes());
    (first_ns + u64::from(number) * 1_000_000, frame)
}

/// The packets as a pcap file with nanoseconds.
pub(crate) fn capture(first_ns: u64, numbers: core::ops::Range<u32>) -> Vec<u8> {
    pcap(numbers.map(|number| packet(first_ns, number)))
}

/// UDP packets of 1000 bytes from 50 ports in turn, as a pcap file with nanoseconds.
pub(crate) fn from_50_ports(count: u32) -> Vec<u8> {
    let packet = |number: u32| {
        let mut packet = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 3, 218];
        packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 192, 168, 0, 1, 192, 168, 0, 2, 0x90]);
        packet.extend([u8::try_from(number % 50).unwrap(), 0, 53, 3, 198, 0, 0]);
        packet.resize(1000, 7);
        (1_000_000_000 + u64::from(number) * 1000, packet)
    };
    pcap((0..count).map(packet))
}

/// Frames with their times as a pcap file with nanoseconds.
pub(crate) fn pcap(packets: impl Iterator<Item = (u64, Vec<u8>)>) -> Vec<u8> {
    pcap_of(1, packets)
}

/// The same of any link type.
pub(crate) fn pcap_of(
    link_type: u32,
    packets: impl IntoIterator<Item = (u64, Vec<u8>)>,
) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, link_type] {
        file.extend(word.to_le_bytes());
    }
    for (time, frame) in packets {
        let length = frame.len() as u32;
        let (seconds, nanos) = (time / 1_000_000_000, time % 1_000_000_000);
        for word in [seconds as u32, nanos as u32, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

/// The numbers of the packets that a volume gives back, each compared with its formula.
pub(crate) fn extracted(volume: &str, folder: &Path, first_ns: u64) -> BTreeSet<u32> {
    let out = text(folder.join("out.pcap"));
    let index = text(folder.join("index"));
    let query = ["extract", volume, "udp", "--format", "pcap", "--force", "-w", &out];
    let ran = run(&[&query[..], &["--index-dir", &index]].concat());
    assert!(ran.code.is_some_and(|code| code < 2 || code == 5), "{ran:?}");
    let file = std::fs::read(&out).unwrap();
    let mut rest = &file[24..];
    let mut numbers = BTreeSet::new();
    while !rest.is_empty() {
        let [seconds, nanos, captured, original] = [0; 4].map(|_: u8| number(&mut rest));
        let (bytes, behind) = rest.split_at(captured as usize);
        rest = behind;
        let id = u32::from_be_bytes(bytes[42..46].try_into().unwrap());
        let expected = packet(first_ns, id);
        let time = u64::from(seconds) * 1_000_000_000 + u64::from(nanos);
        assert_eq!((time, bytes), (expected.0, &expected.1[..]));
        assert_eq!(captured, original);
        assert!(numbers.insert(id), "packet {id} comes twice");
    }
    numbers
}

/// Every value that is in `expected` is the same in `found`.
#[track_caller]
fn assert_holds(expected: &Value, found: &Value, place: &str) {
    match (expected, found) {
        (Value::Object(fields), Value::Object(others)) => {
            for (name, value) in fields {
                let other = others.get(name).unwrap_or(&Value::Null);
                assert_holds(value, other, &format!("{place}.{name}"));
            }
        }
        (Value::Array(items), Value::Array(others)) => {
            assert_eq!(items.len(), others.len(), "{place}");
            for (number, (item, other)) in items.iter().zip(others).enumerate() {
                assert_holds(item, other, &format!("{place}[{number}]"));
            }
        }
        _ => assert_eq!(expected, found, "{place}"),
    }
}

fn inspected(volume: &Path) -> Value {
    let json = run(&["inspect", &text(volume.to_path_buf()), "--json"]).done().out;
    let mut json: Value = serde_json::from_str(&json).unwrap();
    // Where it lies today.
    json.as_object_mut().unwrap().remove("path");
    json
}

fn images() -> Vec<PathBuf> {
    let mut images: Vec<PathBuf> =
        std::fs::read_dir(GOLDEN).unwrap().map(|entry| entry.unwrap().path()).collect();
    images.sort();
    images
}

#[test]
fn volumes_of_every_earlier_format_open_as_they_were() {
    let images = images();
    assert!(images.len() >= 5, "{images:?}");
    for image in images {
        println!("{}", image.display());
        let folder = tempfile::tempdir().unwrap();
        unpack(&image, folder.path());
        let expected = std::fs::read_to_string(image.join("expected.json")).unwrap();
        let expected: Value = serde_json::from_str(&expected).unwrap();
        let volume = folder.path().join("member-0");
        assert_holds(&expected["inspect"], &inspected(&volume), "inspect");
        let volume = text(volume);
        run(&["verify", &volume]).done();
        let held = extracted(&volume, folder.path(), FIRST_NS);
        let bound = |name: &str| u32::try_from(expected[name].as_u64().unwrap()).unwrap();
        let (first, last) = (bound("first_packet"), bound("last_packet"));
        assert_eq!(held, (first..=last).collect());

        // Today's writer goes on where that of the image ended.
        let more = folder.path().join("more.pcap");
        std::fs::write(&more, capture(FIRST_NS, last + 1..last + 4)).unwrap();
        let index = text(folder.path().join("index"));
        let record = ["record", &volume, "--pool", "4M", "--index-dir", &index, "--read"];
        run(&[&record[..], &[&text(more)]].concat()).done();
        run(&["verify", &volume]).done();
        let after = extracted(&volume, folder.path(), FIRST_NS);
        let newest: BTreeSet<u32> = (last - 2..last + 4).collect();
        assert!(after.is_superset(&newest), "{after:?}");
    }
}

/// What an image is made by.
struct Recipe {
    name: &'static str,
    members: usize,
    parity: &'static str,
    create: &'static [&'static str],
    /// How many packets each recording takes.
    recordings: &'static [u32],
    /// The last of them is killed.
    crash: bool,
    /// A member that is away for the last of them.
    away: Option<usize>,
}

const WHOLE: Recipe = Recipe {
    name: "",
    members: 1,
    parity: "0",
    create: &[],
    recordings: &[],
    crash: false,
    away: None,
};

/// A report that chooses the zones of an image.
const REPORT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/qualification.json");

const RECIPES: [Recipe; 7] = [
    Recipe { name: "v1-k1p0-stop", recordings: &[20, 12], ..WHOLE },
    Recipe { name: "v1-k1p0-laps", recordings: &[90, 130, 60], ..WHOLE },
    Recipe {
        name: "v1-k1p0-zones",
        create: &["--zones", "4", "--extent", "32K"],
        recordings: &[150, 100, 40],
        ..WHOLE
    },
    Recipe {
        name: "v1-k2p1-crash",
        members: 3,
        parity: "1",
        recordings: &[20, 30],
        crash: true,
        ..WHOLE
    },
    Recipe { name: "v1-k4p2-stop", members: 6, parity: "2", recordings: &[60, 70], ..WHOLE },
    Recipe {
        name: "v1-k2p1-degraded",
        members: 3,
        parity: "1",
        recordings: &[20, 30],
        away: Some(1),
        ..WHOLE
    },
    Recipe {
        name: "v1-k1p0-qualified",
        create: &["--qualification", REPORT, "--of-other-disks"],
        recordings: &[60, 30],
        ..WHOLE
    },
];

/// Members as they were, from `member-0.zst` on.
fn unpack(image: &Path, folder: &Path) {
    for number in 0.. {
        let Ok(packed) = std::fs::read(image.join(format!("member-{number}.zst"))) else { return };
        let member = folder.join(format!("member-{number}"));
        std::fs::write(member, zstd::decode_all(&packed[..]).unwrap()).unwrap();
    }
}

#[test]
#[ignore = "makes the images that are missing; needed when the format gets another version"]
fn make_missing_images() {
    for recipe in RECIPES {
        let place = Path::new(GOLDEN).join(recipe.name);
        if place.exists() {
            println!("{}: kept", recipe.name);
            continue;
        }
        // A place that says nothing of the machine: superblocks keep it.
        let folder = PathBuf::from("/tmp/golden");
        std::fs::create_dir(&folder).unwrap();
        let members = make(&recipe, &folder);
        let held = extracted(&text(members[0].clone()), &folder, FIRST_NS);
        let expected = serde_json::json!({
            "first_packet": held.first(),
            "last_packet": held.last(),
            "inspect": inspected(&members[0]),
        });
        std::fs::create_dir_all(&place).unwrap();
        for member in &members {
            let packed = zstd::encode_all(&std::fs::read(member).unwrap()[..], 19).unwrap();
            let name = member.file_name().unwrap();
            std::fs::write(place.join(name).with_extension("zst"), packed).unwrap();
        }
        let expected = serde_json::to_string_pretty(&expected).unwrap() + "\n";
        std::fs::write(place.join("expected.json"), expected).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        println!("{}: made", recipe.name);
    }
}

fn make(recipe: &Recipe, folder: &Path) -> Vec<PathBuf> {
    let members: Vec<PathBuf> =
        (0..recipe.members).map(|number| folder.join(format!("member-{number}"))).collect();
    let volume = text(members[0].clone());
    let mut create: Vec<String> = ["create", &volume, "--size", "4608K", "--piece", "16K"]
        .iter()
        .chain(&["--sparse", "--parity", recipe.parity])
        .chain(recipe.create)
        .map(|part| (*part).to_owned())
        .collect();
    for member in &members[1..] {
        create.extend(["--member".to_owned(), text(member.clone())]);
    }
    run(&create.iter().map(String::as_str).collect::<Vec<_>>()).done();
    let index = text(folder.join("index"));
    let mut next = 0;
    for (number, count) in recipe.recordings.iter().enumerate() {
        let is_last = number + 1 == recipe.recordings.len();
        let away = recipe.away.filter(|_| is_last).map(|member| members[member].clone());
        let hidden = folder.join("away");
        if let Some(member) = &away {
            std::fs::rename(member, &hidden).unwrap();
        }
        let capture = capture(FIRST_NS, next..next + count);
        let name = format!("recording {number}");
        let record = ["record", &volume, "--pool", "4M", "--index-dir", &index, "--name", &name];
        let mut recorder = command(&[&record[..], &["--read", "-"]].concat());
        let mut recorder = recorder.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut input = recorder.stdin.take().unwrap();
        input.write_all(&capture).unwrap();
        if recipe.crash && is_last {
            // A second makes the packets durable, and a little more the watermark.
            std::thread::sleep(std::time::Duration::from_secs(3));
            recorder.kill().unwrap();
        }
        drop(input);
        recorder.wait().unwrap();
        if let Some(member) = &away {
            std::fs::rename(&hidden, member).unwrap();
        }
        next += count;
    }
    members
}
