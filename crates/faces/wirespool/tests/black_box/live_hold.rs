//! A standing hold beside a link: a veth pair in a namespace of the test's own.

#![expect(clippy::indexing_slicing, clippy::as_conversions, reason = "a test may stop at once")]

use std::collections::BTreeSet;
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use capture::FrameSender;

use crate::golden::packet;
use crate::machine::{BINARY, Volume, enter, run};

const LINKS: &str = "set -e
    [ ! -d /proc/sys/net/ipv6 ] || echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6
    ip link add left type veth peer name right
    ip link set left arp off up
    ip link set right arp off up";
/// Two thirds more than the ring holds.
const PACKETS: u32 = 100_000;

/// The numbers of the UDP packets that a volume gives back.
fn numbers(volume: &Volume) -> BTreeSet<u32> {
    let out = volume.file("numbers.pcap");
    let query = ["extract", &volume.path, "udp", "--format", "pcap", "--force", "-w", &out];
    let ran = run(&[&query[..], &["--index-dir", &volume.index]].concat());
    assert!(ran.code.is_some_and(|code| code < 2 || code == 5), "{ran:?}");
    let file = std::fs::read(&out).unwrap();
    let mut rest = &file[24..];
    let mut numbers = BTreeSet::new();
    while let Some((head, behind)) = rest.split_first_chunk::<16>() {
        let len = u32::from_le_bytes(*head[8..].first_chunk().unwrap()) as usize;
        let number = u32::from_be_bytes(*behind[42..].first_chunk().unwrap());
        assert_eq!(behind[..len], packet(0, number).1, "byte for byte");
        assert!(numbers.insert(number), "packet {number} comes twice");
        rest = &behind[len..];
    }
    numbers
}

fn held(holds: &str) -> BTreeSet<u32> {
    let mut all = BTreeSet::new();
    for entry in std::fs::read_dir(holds).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "pcapng") {
            let volume = Volume::empty();
            volume.record(&["--read", path.to_str().unwrap()]).done();
            let found = numbers(&volume);
            assert!(all.is_disjoint(&found), "{}", path.display());
            all.extend(found);
        }
    }
    all
}

#[test]
fn a_standing_hold_beside_a_link_loses_nothing_and_holds_all() {
    if !enter(LINKS, "live_hold::a_standing_hold_beside_a_link_loses_nothing_and_holds_all") {
        return;
    }
    let volume = Volume::empty();
    let holds = volume.file("holds");
    let hold = ["--hold", "src host 10.1.0.3", "--hold-dir", &holds, "--hold-budget", "1G"];
    let record = ["record", &volume.path, "--interface", "right", "--index-dir", &volume.index];
    let mut command = Command::new(BINARY);
    command.args(record).args(["--pool", "32M", "--kernel-ring", "32M"]).args(hold);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Until its first words the volume is not open, nor the link.
    let mut said = vec![0; 1];
    let mut told = child.stderr.take().unwrap();
    told.read_exact(&mut said).unwrap();
    let teller = std::thread::spawn(move || {
        let mut rest = String::new();
        told.read_to_string(&mut rest).unwrap();
        rest
    });
    sleep(Duration::from_millis(500));
    let sender = FrameSender::open("left").unwrap();
    for number in 0..PACKETS {
        sender.send(&packet(0, number).1).unwrap();
        if number % 50 == 0 {
            sleep(Duration::from_millis(8));
        }
    }
    sleep(Duration::from_millis(500));
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    let said = teller.join().unwrap() + &String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "nothing was lost, everything held: {said}");
    let in_ring = numbers(&volume);
    assert!(*in_ring.first().unwrap() > PACKETS / 5, "the ring has gone round");
    assert_eq!(in_ring.last(), Some(&(PACKETS - 1)));
    let mut all = held(&holds);
    assert!(!all.is_empty() && all.iter().all(|number| number % 5 == 3));
    all.extend(in_ring.into_iter().filter(|number| number % 5 == 3));
    assert_eq!(all, (0..PACKETS).filter(|number| number % 5 == 3).collect());
}
