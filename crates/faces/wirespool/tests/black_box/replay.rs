//! `replay` as its users meet it, on a veth pair in a network namespace of each run's own.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::machine::{BINARY, CAPTURES, Ran, Volume, open_to_all, run, run_unprivileged, text};

/// A pair `left` and `right` that sends nothing by itself and takes frames of any length.
const PAIR: &str = "set -e
    mount --make-rprivate /
    mount -t sysfs none /sys
    if [ -d /proc/sys/net/ipv6 ]; then
        echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6
        echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6
    fi
    ip link add left mtu 65521 type veth peer name right mtu 65521
    ip link set left arp off up
    ip link set right arp off up
    set +e
    ";

/// Runs a script beside such a pair; `$W` is the binary. `None` with a printed reason where there
/// is no namespace to be had.
fn beside_a_pair(script: &str) -> Option<Ran> {
    let shell = |script: &str| -> std::io::Result<Output> {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--net", "--mount", "sh", "-c", script]);
        command.env("W", BINARY).stdin(Stdio::null()).output()
    };
    match shell(PAIR) {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
            println!("not run: no namespace of its own: {said}");
            return None;
        }
        Err(error) => {
            println!("not run: no namespace of its own: {error}");
            return None;
        }
    }
    Some(Ran::new(&shell(&format!("{PAIR}{script}")).unwrap()))
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// Bytes of the packets of a pcap file in little endian, one link type.
fn packets(path: &str) -> Vec<Vec<u8>> {
    let file = std::fs::read(path).unwrap();
    let (mut rest, mut packets) = (file.split_at(24).1, Vec::new());
    while let Some((header, behind)) = rest.split_first_chunk::<16>() {
        let len = u32::from_le_bytes(header[8..12].try_into().unwrap());
        let (packet, after) = behind.split_at(usize::try_from(len).unwrap());
        packets.push(packet.to_vec());
        rest = after;
    }
    packets
}

#[test]
fn a_query_of_a_volume_is_replayed_and_recorded_again_byte_for_byte() {
    let volume = Volume::recorded();
    let (from, again) = (&volume.path, volume.file("again"));
    let [was, is] = ["was.pcap", "is.pcap"].map(|name| volume.file(name));
    let caches = format!("--index-dir {}", volume.index);
    let Some(ran) = beside_a_pair(&format!(
        "$W create {again} --size 64M --piece 256K --sparse > /dev/null
        $W record {again} --interface right --pool 4M {caches} > /dev/null & recorder=$!
        until ip -d link show right | grep -q 'promiscuity [1-9]'; do sleep 0.05; done
        $W replay {from} 'tcp or udp' --interface left --pps 5000 {caches} --json; code=$?
        sleep 0.3; kill -INT $recorder; wait $recorder || exit 99
        $W extract {from} 'tcp or udp' -w {was} --format pcap {caches} || exit 98
        $W extract {again} '' -w {is} --format pcap {caches} || exit 97
        exit $code"
    )) else {
        return;
    };
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (was, is) = (packets(&was), packets(&is));
    assert!(was.len() > 50 && was == is, "{} and {}", was.len(), is.len());
    let report = json(&ran);
    assert_eq!(report["packets"], was.len());
    assert_eq!((&report["clean"], &report["loops"]), (&Value::Bool(true), &Value::from(1)));
    assert!(report["lateness"]["p50_ns"].as_u64().is_some(), "{report}");
}

#[test]
fn a_replay_that_is_interrupted_reports_what_it_sent() {
    for (loops, code, words) in [("0", 0, "\"stopped\": true"), ("1000000", 1, "\"packets\": ")] {
        let script = format!(
            "$W replay {CAPTURES} --interface left --pps 2000 --loops {loops} --json & replay=$!
            sleep 0.7; kill -INT $replay; wait $replay"
        );
        let Some(ran) = beside_a_pair(&script) else { return };
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(ran.out.contains(words), "{ran:?}");
        let sent = json(&ran)["packets"].as_u64().unwrap();
        assert!((1..10_000).contains(&sent), "{sent}");
    }
}

#[test]
fn standard_input_is_replayed_once_or_from_memory() {
    let script = format!(
        "cat {CAPTURES}/dns.pcap | $W replay - --interface left --top --loops 3 &&
        cat {CAPTURES}/dns.pcap | $W replay - --interface left --top --speed x2; echo $?"
    );
    let Some(ran) = beside_a_pair(&script) else { return };
    assert!(ran.out.starts_with("all packets were sent\n"), "{ran:?}");
    assert!(ran.out.contains("; 3 loops\n") && ran.out.ends_with("\n2\n"), "{ran:?}");
    assert!(ran.err.contains("cannot be used with"), "{ran:?}");
}

#[test]
fn a_replay_of_nothing_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let none = text(folder.path().join("none.pcap"));
    std::fs::write(&none, crate::golden::pcap(std::iter::empty())).unwrap();
    open_to_all(folder.path());
    let Some(ran) = beside_a_pair(&format!("$W replay {none} --interface left --top")) else {
        return;
    };
    assert!(ran.code == Some(1) && ran.out == "there was no packet to send\n", "{ran:?}");
}

#[test]
fn what_cannot_be_replayed_is_refused_in_one_line() {
    let volume = Volume::recorded();
    let (from, words) = (&volume.path, volume.file("words"));
    std::fs::write(&words, "no capture, just a text of some length").unwrap();
    for (arguments, says) in [
        (format!("{CAPTURES} --interface absent0"), "there is no network interface absent0"),
        (
            format!("{words} --interface left"),
            "not a pcap, pcapng or snoop file; to replay a volume",
        ),
        (format!("{from} --interface left"), "to replay a volume give a query"),
        (format!("{words} '' --interface left"), "is no wirespool volume"),
        (format!("{words}.absent --interface left"), "cannot read"),
        (format!("{CAPTURES} --interface lo"), "interface lo is down; bring it up"),
    ] {
        let Some(ran) = beside_a_pair(&format!("$W replay {arguments}")) else { return };
        ran.is_refused(says);
        assert!(ran.out.is_empty(), "{ran:?}");
    }
    let wrong = run(&["replay", &words, "", "--interface", "lo", "--gbit", "fast"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[test]
fn a_user_without_the_capability_is_told_how_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    open_to_all(folder.path());
    let file = text(folder.path().join("dns.pcap"));
    std::fs::copy(format!("{CAPTURES}/dns.pcap"), &file).unwrap();
    let arguments = ["replay", &file, "--interface", "lo"];
    let Some(ran) = run_unprivileged(folder.path(), &arguments) else { return };
    ran.is_refused("not permitted to send on lo; run as root or give the program the capability");
    assert!(ran.err.contains("setcap cap_net_raw+ep"), "{ran:?}");
}
