//! Wireshark's programs and Stenographer's names as callers.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::machine::{BINARY, CAPTURES, Ran, Volume, command, is_root, open_to_all, run};

/// Our interfaces in a folder of their own, and a volume that every user may read: Wireshark's
/// programs do not look into other folders for root.
fn installed(volume: &Volume) -> String {
    let folder = volume.file("extcap");
    // Copied by another process, as the build folder may be closed to others.
    let binary = volume.file("wirespool");
    assert!(Command::new("cp").args([BINARY, &binary]).status().unwrap().success());
    open_to_all(volume.folder.path());
    open_to_all(Path::new(&volume.path));
    let output = Command::new(&binary).args(["extcap", "--install", &folder]).output().unwrap();
    let ran = Ran::new(&output).done();
    assert!(ran.out.contains("wirespool-extcap"), "{ran:?}");
    folder
}

#[test]
fn the_folder_is_found_where_none_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (home, binary) = (folder.path().join("home"), folder.path().join("wirespool"));
    std::fs::create_dir(&home).unwrap();
    assert!(Command::new("cp").arg(BINARY).arg(&binary).status().unwrap().success());
    open_to_all(folder.path());
    std::fs::set_permissions(&home, PermissionsExt::from_mode(0o777)).unwrap();
    // Root would put it where all users of this machine have it.
    let mut command = Command::new("setpriv");
    if is_root() {
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    }
    command.arg(&binary).args(["extcap", "--install"]).env("HOME", &home).stdin(Stdio::null());
    let ran = Ran::new(&command.output().unwrap()).done();
    assert!(ran.out.contains("wirespool-extcap"), "{ran:?}");
    assert!(home.join(".local/lib/wireshark/extcap/wirespool-extcap").is_symlink());
}

/// tshark with our folder of extcap programs, as a user without rights where we are root.
fn tshark(folder: &str, arguments: &[&str]) -> Command {
    let mut command = if is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "tshark"]);
        command
    } else {
        Command::new("tshark")
    };
    command.env("WIRESHARK_EXTCAP_DIR", folder).env("HOME", "/nonexistent");
    command.args(arguments).stdin(Stdio::null());
    command
}

fn has_tshark() -> bool {
    let is_there = Command::new("tshark").arg("-v").output().is_ok();
    if !is_there {
        println!("not run: no tshark");
    }
    is_there
}

#[test]
fn wireshark_lists_interfaces_link_types_and_settings() {
    let volume = Volume::recorded();
    let folder = installed(&volume);
    let ran = run(&["extcap", "--extcap-interface", "wirespool", "--extcap-config"]).done();
    for setting in ["--volume", "--query", "--since", "--until", "--whole-sessions"] {
        assert!(ran.out.contains(&format!("{{call={setting}}}")), "{ran:?}");
    }
    run(&["extcap"]).fails_with(2, "--install");
    let capture = ["extcap", "--extcap-interface", "wirespool", "--capture", "--fifo", "/dev/null"];
    run(&capture).fails_with(2, "the volume is not set");
    if !has_tshark() {
        return;
    }
    let output = tshark(&folder, &["-D"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("wirespool (wirespool: recorded packets)"), "{output:?}");
    assert!(text.contains("wirespool-live ("), "{text}");
    let output = tshark(&folder, &["-i", "wirespool", "-L"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("EN10MB"), "{output:?}");
}

#[test]
fn tshark_captures_from_the_past_by_query() {
    if !has_tshark() {
        return;
    }
    let volume = Volume::recorded();
    let folder = installed(&volume);
    let set = format!("extcap.wirespool.volume:{}", volume.path);
    let dns = ["-i", "wirespool", "-o", &set, "-o", "extcap.wirespool.query:port 53"];
    let fields = ["-T", "fields", "-e", "dns.id"];
    let output = tshark(&folder, &[&dns[..], &fields].concat()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text.lines().count(), 16, "{output:?}");
    let late = [&dns[..], &["-o", "extcap.wirespool.since:1795339353.5"], &fields].concat();
    let output = tshark(&folder, &late).output().unwrap();
    assert!(output.stdout.is_empty(), "{output:?}");
}

#[test]
fn tshark_captures_what_is_recorded_meanwhile() {
    if !has_tshark() {
        return;
    }
    let volume = Volume::recorded();
    let folder = installed(&volume);
    let mut recorder = command(&["record", &volume.path, "--pool", "4M", "--read", "-"]);
    let recorder = recorder.args(["--index-dir", &volume.index]).stdin(Stdio::piped());
    let mut recorder = recorder.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let set = format!("extcap.wirespool_live.volume:{}", volume.path);
    let live = ["-i", "wirespool-live", "-o", &set, "-f", "udp port 53", "-c", "16"];
    let mut viewer = tshark(&folder, &[&live[..], &["-T", "fields", "-e", "dns.id"]].concat());
    let mut viewer = viewer.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The viewer shows what comes after it began, so the packets come again until it has enough.
    let capture = std::fs::read(format!("{CAPTURES}/dns.pcap")).unwrap();
    let mut input = recorder.stdin.take().unwrap();
    let begun = Instant::now();
    let (mut fed, mut next) = (begun, &capture[..]);
    while viewer.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(100), "16 packets come");
        if fed.elapsed() > Duration::from_secs(4) || fed == begun {
            std::io::Write::write_all(&mut input, next).unwrap();
            // Behind the file's header.
            (fed, next) = (Instant::now(), &capture[24..]);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("live: 16 packets {} ms after they were fed", fed.elapsed().as_millis());
    let output = viewer.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text.lines().count(), 16, "{output:?}");
    drop(input);
    assert!(recorder.wait().unwrap().success());
}

#[test]
fn names_of_stenographer_answer_its_queries() {
    let volume = Volume::recorded();
    let config = volume.file("config");
    std::fs::write(&config, format!("{{\"Threads\": [], \"Volume\": \"{}\"}}", volume.path))
        .unwrap();
    let call = |name: &str, arguments: &[&str]| {
        let link = volume.file(name);
        if !Path::new(&link).exists() {
            symlink(BINARY, &link).unwrap();
        }
        let mut command = Command::new(&link);
        command.env("STENOGRAPHER_CONFIG", &config).args(arguments).stdin(Stdio::null());
        command.output().unwrap()
    };
    let query = "port 53 and after 2000-01-01T00:00:00Z";
    let output = call("stenocurl", &["/query", "-d", query, "-s"]);
    assert!(output.status.success() && Ran::new(&output).err.is_empty(), "{output:?}");
    assert_eq!(output.stdout[..4], [0x4d, 0x3c, 0xb2, 0xa1], "pcap");
    let file = volume.file("out.pcap");
    let limit = ["/query", "-d", "port 53", "-H", "Steno-Limit-Packets: 3", "-o", &file];
    let output = call("stenocurl", &limit);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    assert!(std::fs::metadata(&file).unwrap().len() < 600);
    Ran::new(&call("stenocurl", &["/debug/stats", "-d", ""])).fails_with(2, "nothing that is");
    let nonsense = call("stenocurl", &["/query", "-d", "port"]);
    assert_eq!(nonsense.status.code(), Some(2));

    let output = call("stenoread", &[query, "-n", "-t"]);
    if String::from_utf8_lossy(&output.stderr).contains("cannot start tcpdump") {
        println!("not run: no tcpdump");
        return;
    }
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 16, "{output:?}");
    let output = call("stenoread", &[query, "-n", "-w", &file, "udp"]);
    assert!(output.status.success(), "{output:?}");
    assert!(std::fs::metadata(&file).unwrap().len() > 1000);
    let output = call("stenoread", &["port"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    std::fs::write(&config, "{}").unwrap();
    Ran::new(&call("stenoread", &[query])).fails_with(2, "no \"Volume\"");
}
