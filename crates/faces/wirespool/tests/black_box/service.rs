//! The unit file that is in the package: how exposed it leaves the recorder, and that a recorder
//! gets along with what it allows.

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::machine::{BINARY, Volume, enter, run};

const UNIT: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../xtask/package/wirespool@.service");
/// In tenths, as `--threshold` takes it.
const EXPOSURE_MAX: u32 = 20;

/// What a program prints; `None` with a printed reason where it is not here.
fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).stdin(Stdio::null()).output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) => {
            println!("not run: {program}: {error}");
            None
        }
    }
}

fn values(setting: &str) -> Vec<String> {
    let unit = std::fs::read_to_string(UNIT).unwrap();
    let lines = unit.lines().filter_map(|line| line.strip_prefix(setting)?.strip_prefix('='));
    let values: Vec<String> = lines.map(str::to_owned).collect();
    assert!(!values.is_empty(), "the unit has {setting}");
    values
}

#[test]
fn systemd_finds_the_unit_exposed_to_at_most_2_0() {
    let arguments = ["security", "--offline=yes", "--no-pager", UNIT];
    let Some(said) = output_of("systemd-analyze", &arguments) else { return };
    let Some((_, score)) = said.split_once("Overall exposure level for ") else {
        println!("not run: this systemd-analyze does not judge files: {said}");
        return;
    };
    let score = score.split_once(": ").unwrap().1.split(' ').next().unwrap();
    let tenths: u32 = score.replace('.', "").parse().unwrap();
    assert!(tenths <= EXPOSURE_MAX, "{said}");
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/service.md");
    let document = std::fs::read_to_string(document).unwrap();
    assert!(document.contains(&format!("gives {score} with systemd 252")), "{score}");
}

/// What each directive has to say. Who loosens one finds here what it is for.
const DIRECTIVES: [(&str, &[&str]); 25] = [
    // A recorder has a user of its own, no group that opens disks, and no way to more rights.
    ("User", &["wirespool"]),
    ("NoNewPrivileges", &["yes"]),
    ("RestrictSUIDSGID", &["yes"]),
    // Its folders are its alone; at its control socket others are refused by name.
    ("StateDirectory", &["wirespool"]),
    ("StateDirectoryMode", &["0700"]),
    ("RuntimeDirectory", &["wirespool/%i"]),
    ("RuntimeDirectoryMode", &["0711"]),
    ("UMask", &["0077"]),
    ("LimitCORE", &["0"]),
    // It calls, opens and maps what a recorder needs.
    ("SystemCallArchitectures", &["native"]),
    ("RestrictAddressFamilies", &["AF_PACKET AF_NETLINK AF_UNIX"]),
    ("RestrictNamespaces", &["yes"]),
    ("MemoryDenyWriteExecute", &["yes"]),
    ("LockPersonality", &["yes"]),
    ("DevicePolicy", &["closed"]),
    // It sees and changes nothing of the machine besides.
    ("ProtectKernelTunables", &["yes"]),
    ("ProtectKernelModules", &["yes"]),
    ("ProtectKernelLogs", &["yes"]),
    ("ProtectControlGroups", &["yes"]),
    ("ProtectProc", &["invisible"]),
    ("ProtectSystem", &["strict"]),
    ("ProtectHome", &["yes"]),
    ("PrivateTmp", &["yes"]),
    // It starts again however often it fails.
    ("StartLimitIntervalSec", &["0"]),
    ("Restart", &["always"]),
];

#[test]
fn the_unit_has_each_directive_that_it_promises_once_and_with_its_value() {
    for (directive, expected) in DIRECTIVES {
        assert_eq!(values(directive), expected, "{directive}");
    }
    // A list that leaves calls and one that takes away, in this order; the rest is refused.
    let calls = values("SystemCallFilter");
    assert_eq!(calls.first().map(String::as_str), Some("@system-service"));
    assert!(calls.contains(&"~@privileged".to_owned()), "{calls:?}");
    let unit = std::fs::read_to_string(UNIT).unwrap();
    for group in ["SupplementaryGroups", "Group=disk", "CAP_SYS_ADMIN", "CAP_DAC_OVERRIDE"] {
        assert!(!unit.contains(group), "{group}: it opens every disk");
    }
}

#[test]
fn nothing_in_the_unit_keeps_a_recorder_that_failed_from_starting_again() {
    assert_eq!(values("StartLimitIntervalSec"), ["0"]);
    assert_eq!(values("Restart"), ["always"]);
    assert_eq!(values("RestartPreventExitStatus"), ["2"], "wrong usage alone");
    let unit = std::fs::read_to_string(UNIT).unwrap();
    assert!(!unit.contains("SupplementaryGroups"), "no group reads every disk");
}

/// System calls that the filter lets through, groups taken apart.
fn allowed_calls() -> Option<BTreeSet<String>> {
    let mut allowed = BTreeSet::new();
    for value in values("SystemCallFilter") {
        let (names, is_denied) = match value.strip_prefix('~') {
            Some(names) => (names, true),
            None => (value.as_str(), false),
        };
        for name in names.split(' ') {
            let calls = calls_of(name)?;
            allowed = if is_denied { &allowed - &calls } else { &allowed | &calls };
        }
    }
    Some(allowed)
}

fn calls_of(name: &str) -> Option<BTreeSet<String>> {
    if !name.starts_with('@') {
        return Some(BTreeSet::from([name.to_owned()]));
    }
    let said = output_of("systemd-analyze", &["--no-pager", "syscall-filter", name])?;
    let names = said.lines().skip(1).map(str::trim).filter(|name| !name.starts_with('#'));
    let mut calls = BTreeSet::new();
    for name in names.filter(|name| !name.is_empty()) {
        calls.append(&mut calls_of(name)?);
    }
    assert!(!calls.is_empty(), "{name} is a group");
    Some(calls)
}

#[test]
fn every_system_call_of_a_recorder_is_one_that_the_unit_allows() {
    let name = "service::every_system_call_of_a_recorder_is_one_that_the_unit_allows";
    let Some(_) = output_of("strace", &["-V"]) else { return };
    let Some(allowed) = allowed_calls() else { return };
    if !enter("ip link set lo up", name) {
        return;
    }
    let volume = Volume::empty();
    let log = volume.file("calls");
    let mut recorder = Command::new("strace");
    recorder.args(["-f", "-qq", "-o", &log, "timeout", "--foreground", "--preserve-status"]);
    recorder.args(["--signal=INT", "4"]);
    recorder.args([BINARY, "record", &volume.path, "--interface", "lo", "--pool", "4M"]);
    recorder.args(["--queues", "2", "--index-dir", &volume.index]);
    let mut recorder = recorder.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..100 {
        socket.send_to(b"packet", "127.0.0.1:9").unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    // One who asks, too.
    run(&["status", &volume.path]).done();
    assert!(recorder.wait().unwrap().success());
    let log = std::fs::read_to_string(&log).unwrap();
    let lines = log.lines().filter_map(|line| line.split_once(' ')?.1.trim_start().split_once('('));
    let is_name =
        |call: &str| call.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let lines = lines.filter(|(call, _)| is_name(call));
    let families = values("RestrictAddressFamilies");
    let (mut calls, mut sockets) = (BTreeSet::new(), 0);
    for (call, rest) in lines {
        calls.insert(call.to_owned());
        if call == "socket" {
            let family = rest.split(',').next().unwrap();
            assert!(families[0].split(' ').any(|known| known == family), "{rest}");
            sockets += 1;
        }
        assert!(!(rest.contains("PROT_WRITE") && rest.contains("PROT_EXEC")), "{call}: {rest}");
    }
    assert!(calls.len() > 40 && sockets > 1, "{calls:?}");
    // An indexer becomes `nobody` where it may; refused, it goes on as the user of the service.
    let may_be_refused = ["setgroups", "setresuid", "setresgid"];
    let refused =
        calls.difference(&allowed).filter(|call| !may_be_refused.contains(&call.as_str()));
    let refused: Vec<&String> = refused.collect();
    assert!(refused.is_empty(), "{refused:?}");
}
