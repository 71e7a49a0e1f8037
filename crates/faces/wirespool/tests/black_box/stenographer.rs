//! Stenographer's own script `stenoread`, as Debian has it and unchanged, over our `stenocurl`.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::golden::pcap_of;
use crate::machine::{BINARY, Ran, Volume};

const PACKAGE: &str = "stenographer-client";

/// Their scripts, of the package that is installed or else fetched; `None` with a printed reason.
pub(crate) fn scripts(folder: &Path) -> Option<[PathBuf; 2]> {
    let below = |folder: &Path| ["stenoread", "stenocurl"].map(|name| folder.join(name));
    let installed = below(Path::new("/usr/bin"));
    if installed.iter().all(|script| script.exists()) {
        return Some(installed);
    }
    let called = |command: &mut Command| {
        let output = command.current_dir(folder).stdin(Stdio::null()).output();
        output.is_ok_and(|output| output.status.success())
    };
    let mut fetch = Command::new("timeout");
    fetch.args(["60", "apt-get", "download", PACKAGE]);
    if !called(&mut fetch) {
        println!("not run: apt-get cannot fetch {PACKAGE}");
        return None;
    }
    let packages = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut packages = packages.filter(|path| path.extension().is_some_and(|it| it == "deb"));
    let package = packages.next().expect("it was fetched");
    let mut unpack = Command::new("dpkg");
    unpack.arg("-x").arg(package).arg(folder.join("unpacked"));
    if !called(&mut unpack) {
        println!("not run: no dpkg");
        return None;
    }
    Some(below(&folder.join("unpacked/usr/bin")))
}

/// A folder with the script, and our program under the name of the one that it calls.
struct Theirs {
    volume: Volume,
    script: String,
}

impl Theirs {
    fn over(volume: Volume) -> Option<Self> {
        let there = |name: &str| Command::new(name).arg("--version").output().is_ok();
        if !there("tcpdump") {
            println!("not run: no tcpdump");
            return None;
        }
        let fetched = volume.file("fetched");
        std::fs::create_dir(&fetched).unwrap();
        let [found, _] = scripts(Path::new(&fetched))?;
        // The script looks for stenocurl beside itself first.
        let bin = volume.file("bin");
        std::fs::create_dir(&bin).unwrap();
        let script = format!("{bin}/stenoread");
        std::fs::copy(&found, &script).unwrap();
        assert_eq!(std::fs::read(&found).unwrap(), std::fs::read(&script).unwrap());
        symlink(BINARY, format!("{bin}/stenocurl")).unwrap();
        let config = format!("{{\"Threads\": [], \"Volume\": \"{}\"}}", volume.path);
        std::fs::write(volume.file("config"), config).unwrap();
        Some(Self { volume, script })
    }

    fn call(&self, arguments: &[&str]) -> Ran {
        let mut command = Command::new(&self.script);
        command.env("STENOGRAPHER_CONFIG", self.volume.file("config"));
        let output: Output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
        Ran::new(&output)
    }
}

fn lines(ran: &Ran) -> usize {
    ran.out.lines().count()
}

#[test]
fn stenographer_s_own_script_runs_over_ours() {
    let Some(theirs) = Theirs::over(Volume::recorded()) else { return };
    let query = "port 53 and after 2000-01-01T00:00:00Z";
    let all = theirs.call(&[query, "-n", "-t"]).done();
    assert_eq!(lines(&all), 16, "{all:?}");
    assert!(all.err.contains("Running stenographer query"), "it is the script: {all:?}");
    let some = theirs.call(&["--limit-packets", "3", query, "-n", "-t"]).done();
    assert_eq!(lines(&some), 3, "{some:?}");
    assert_eq!(some.out.lines().collect::<Vec<_>>(), all.out.lines().take(3).collect::<Vec<_>>());
    let few = theirs.call(&["--limit-bytes", "300", query, "-n", "-t"]).done();
    assert!((1..16).contains(&lines(&few)), "{few:?}");
    let both = ["--limit-packets", "2", "--limit-bytes", "100000", query, "-n", "-t"];
    assert_eq!(lines(&theirs.call(&both).done()), 2);
    // What stands behind the query is tcpdump's.
    let file = theirs.volume.file("out.pcap");
    theirs.call(&[query, "-n", "-w", &file, "udp"]).done();
    assert!(std::fs::metadata(&file).unwrap().len() > 1000);
    let wrong = theirs.call(&["port", "-n"]);
    assert!(wrong.err.contains("wirespool: ") && lines(&wrong) == 0, "{wrong:?}");
}

/// A question to DNS in a packet without link layer.
pub(crate) fn question() -> Vec<u8> {
    let dns = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x04test\x00\x00\x01\x00\x01";
    let udp_len = u16::try_from(8 + dns.len()).unwrap();
    let mut packet = vec![0x45, 0];
    packet.extend((20 + udp_len).to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(40_000_u16.to_be_bytes());
    packet.extend(53_u16.to_be_bytes());
    packet.extend(udp_len.to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(dns);
    packet
}

#[test]
fn an_answer_with_several_link_types_reaches_tcpdump_whole() {
    let volume = Volume::empty();
    let ethernet = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0][..], &question()].concat();
    let linux_cooked =
        [&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 2, 0, 0, 8, 0][..], &question()].concat();
    let inputs = [(1, ethernet), (101, question()), (113, linux_cooked)];
    for (number, (link_type, packet)) in (0..).zip(inputs) {
        let file = volume.file(&format!("{link_type}.pcap"));
        let time_ns = (1_700_000_000 + number) * 1_000_000_000;
        std::fs::write(&file, pcap_of(link_type, [(time_ns, packet)])).unwrap();
        volume.record(&["--read", &file]).done();
    }
    let Some(theirs) = Theirs::over(volume) else { return };
    let ran = theirs.call(&["port 53", "-n", "-t"]).done();
    assert_eq!(ran.out.matches("10.0.0.1.40000 > 10.0.0.2.53").count(), 3, "{ran:?}");
}
