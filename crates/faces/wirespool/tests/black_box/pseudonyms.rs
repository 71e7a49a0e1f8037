//! Other addresses, and the way back for who holds the key of the escrow.

#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use std::path::Path;

use crate::encrypted::{PUBLIC, SECRET};
use crate::machine::{Ran, Volume, run, write_key};

const OTHER: &str = "AGE-SECRET-KEY-184JMZMVQH3E6U0PSL869004Y3U2NYV7R30EU99CSEDNPH02YUVFSZW44VU";

/// The packets of a pcapng file in little endian.
fn packets(path: &str) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).unwrap();
    let (mut at, mut all) = (0, Vec::new());
    while at < bytes.len() {
        let word = |from: usize| {
            let word = bytes[at + from..at + from + 4].try_into().unwrap();
            usize::try_from(u32::from_le_bytes(word)).unwrap()
        };
        if word(0) == 6 {
            all.push(bytes[at + 28..at + 28 + word(20)].to_vec());
        }
        at += word(4);
    }
    all
}

/// Source of an IPv4 packet in an Ethernet frame.
fn source(frame: &[u8]) -> String {
    let [a, b, c, d] = frame[26..30].try_into().unwrap();
    std::net::Ipv4Addr::new(a, b, c, d).to_string()
}

fn station(frame: &[u8]) -> String {
    let parts: Vec<String> = frame[6..12].iter().map(|byte| format!("{byte:02x}")).collect();
    parts.join(":")
}

#[expect(clippy::struct_field_names, reason = "one of two files is the shared one")]
struct Shared {
    volume: Volume,
    key: String,
    own: String,
    shared: String,
    escrow: String,
}

const QUERY: &str = "app dns and ip";

fn shared(more: &[&str]) -> Shared {
    let volume = Volume::recorded();
    let [own, shared, key] =
        ["own.pcapng", "shared.pcapng", "officer.key"].map(|it| volume.file(it));
    write_key(&key, SECRET);
    run(&["extract", &volume.path, QUERY, "-w", &own]).done();
    let words = ["extract", &volume.path, QUERY, "--escrow", PUBLIC, "-w", &shared];
    run(&[&words[..], more].concat()).done();
    let escrow = format!("{shared}.escrow");
    Shared { volume, key, own, shared, escrow }
}

impl Shared {
    fn reveal(&self, words: &[&str]) -> Ran {
        run(&[&["reveal", &self.escrow, "--identity", &self.key], words].concat())
    }
}

#[test]
fn addresses_are_others_and_come_back_with_the_key_of_the_escrow() {
    let of = shared(&[]);
    let (own, other) = (packets(&of.own), packets(&of.shared));
    assert!(own.len() > 2 && own.len() == other.len());
    let (first, pseudonym) = (&own[0], &other[0]);
    assert_ne!(source(first), source(pseudonym));
    let shown = of.reveal(&[&source(pseudonym), &station(pseudonym)]).done().out;
    assert_eq!(
        shown,
        format!(
            "{} {}\n{} {}\n",
            source(pseudonym),
            source(first),
            station(pseudonym),
            station(first)
        )
    );
    let back = of.volume.file("back.pcapng");
    let done = of.reveal(&["--file", &of.shared, "-w", &back]).done();
    assert!(done.out.contains("have their own addresses"), "{done:?}");
    assert!(packets(&back) == own, "each packet is what it was");
    of.reveal(&["--file", &of.shared, "-w", &back]).is_refused("exists already");
}

#[test]
fn a_key_of_ones_own_gives_the_same_addresses_in_every_extract() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("addresses.key");
    write_key(file.to_str().unwrap(), &"5a".repeat(32));
    let file = file.to_str().unwrap();
    let (one, two) = (shared(&["--anonymise", file]), shared(&["--anonymise", file]));
    assert!(packets(&one.shared) == packets(&two.shared));
    let each = (shared(&[]), shared(&[]));
    assert!(packets(&each.0.shared) != packets(&each.1.shared), "else each has its own");
    // The escrow of one leads back what the other wrote.
    let back = one.volume.file("back.pcapng");
    let said = one.reveal(&["--file", &two.shared, "-w", &back]).done();
    assert_eq!(said.err, "", "the manifest beside the file names the key");
    assert!(packets(&back) == packets(&one.own));
}

/// Another key gives other addresses, which look right.
#[test]
fn the_escrow_of_another_extract_is_refused_where_that_is_known() {
    let (one, two) = (shared(&[]), shared(&[]));
    let back = one.volume.file("back.pcapng");
    one.reveal(&["--file", &two.shared, "-w", &back]).is_refused("that of another extract");
    assert!(!Path::new(&back).exists());
    // Of a copy, or a part, only who made it knows what it is of.
    let part = one.volume.file("part.pcapng");
    std::fs::copy(&one.shared, &part).unwrap();
    let same = one.reveal(&["--file", &part, "-w", &back]).done();
    assert_eq!(same.err, "", "it has the bytes that the escrow names");
    std::fs::copy(&two.shared, &part).unwrap();
    let said = one.reveal(&["--file", &part, "-w", &back, "--force"]).done();
    assert!(said.err.contains("part.pcapng is not shared.pcapng itself"), "{said:?}");

    let check = || run(&["verify-extract", &format!("{}.json", one.shared), &one.shared]);
    check().done();
    std::fs::copy(&two.escrow, &one.escrow).unwrap();
    let said = check();
    let words = "not the escrow that was written with the extract";
    assert!(said.code == Some(1) && said.out.contains(words), "{said:?}");
    // Who analyses has none.
    std::fs::remove_file(&one.escrow).unwrap();
    check().done();
}

#[test]
fn nobody_else_leads_them_back() {
    let of = shared(&[]);
    let other = of.volume.file("other.key");
    write_key(&other, OTHER);
    let address = source(&packets(&of.shared)[0]);
    run(&["reveal", &of.escrow, &address]).fails_with(2, "--identity FILE");
    let strange = ["reveal", &of.escrow, &address, "--identity", &other];
    run(&strange).is_refused("for others than the identities given");
    of.reveal(&["10.0.0"]).fails_with(2, "neither an IP address nor that of a station");
    let back = of.volume.file("back.pcapng");
    let capture = of.volume.file("shared.pcapng.json");
    of.reveal(&["--file", &capture, "-w", &back]).is_refused("no capture file");
    let whole = std::fs::read(&of.shared).unwrap();
    std::fs::write(&of.shared, &whole[..whole.len() - 9]).unwrap();
    of.reveal(&["--file", &of.shared, "-w", &back]).is_refused("damaged at byte");
    assert!(!Path::new(&back).exists());
    let sealed = std::fs::read(&of.escrow).unwrap();
    for cut in [0, 100, sealed.len() - 1] {
        std::fs::write(&of.escrow, &sealed[..cut]).unwrap();
        of.reveal(&[&address]).is_refused("escrow");
    }
    let words = ["extract", &of.volume.path, QUERY, "--escrow", PUBLIC, "-w", "-"];
    run(&words).fails_with(2, "--escrow writes FILE.escrow");
    run(&["extract", &of.volume.path, QUERY, "--escrow", "age1x", "-w", &back]);
    assert!(!Path::new(&back).exists());
}
