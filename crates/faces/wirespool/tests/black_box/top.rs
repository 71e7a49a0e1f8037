//! `top`: beside other tools on the same packets, over a volume, with keys in a terminal.

use std::collections::BTreeMap;
use std::fs;
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::golden::pcap;
use crate::machine::{BINARY, CAPTURES, Volume, command, enter, run, run_unprivileged};

/// An interface without a listener at the other end.
const LINK: &str = "set -e
    ip link set lo up
    ip link add near type veth peer name far
    echo 1 > /proc/sys/net/ipv6/conf/near/disable_ipv6
    echo 1 > /proc/sys/net/ipv6/conf/far/disable_ipv6
    ip addr add 192.0.2.1/24 dev near
    ip link set near up
    ip link set far up
    ip neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 dev near
    mount -t tmpfs none /run";
const FRAME: u64 = 14 + 20 + 8 + 1000;

fn once(arguments: &[&str]) -> Value {
    let ran = run(&[&["top"], arguments, &["--once", "--json"]].concat()).done();
    serde_json::from_str(&ran.out).unwrap()
}

/// A column by the names in the first one.
fn column(lines: &Value, name: &str, of: &str) -> BTreeMap<String, u64> {
    let lines = lines["lines"].as_array().unwrap().iter();
    let line = |line: &Value| Some((line[name].as_str()?.to_owned(), line[of].as_u64()?));
    lines.filter_map(line).collect()
}

#[test]
fn a_file_is_shown_by_all_groupings_and_lines_have_queries_that_find_them() {
    let file = format!("{CAPTURES}/http.pcap");
    let all = once(&[&file, "--tab", "talkers"]);
    let talkers = &all["tabs"]["talkers"];
    for grouping in ["session", "pair", "host", "port", "protocol"] {
        assert!(!talkers[grouping]["lines"].as_array().unwrap().is_empty(), "{grouping}");
    }
    let volume = Volume::recorded();
    for line in talkers["session"]["lines"].as_array().unwrap() {
        let query = line["query"].as_str().unwrap();
        let selected = once(&[&file, "--tab", "talkers", "--by", "session", "--query", query]);
        let lines = selected["tabs"]["talkers"]["session"]["lines"].as_array().unwrap();
        assert_eq!(lines.len(), 1, "{query}");
        assert_eq!(lines[0]["who"], line["who"]);
        let found = run(&["find", &volume.path, query, "--json", "--index-dir", &volume.index]);
        assert_eq!(found.done().out.lines().count(), 1, "{query}");
    }
    let text = run(&["top", &file, "--once", "--tab", "talkers", "--by", "protocol"]).done().out;
    assert!(text.contains("talkers by protocol") && text.contains("http"), "{text}");
}

/// Ten packets in four and a half seconds: no rate may be over the longer windows.
#[test]
fn rates_are_over_the_time_that_was_seen() {
    let packet = |number: u64| (1_795_000_000_000_000_000 + number * 500_000_000, vec![7; 1000]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("short.pcap");
    fs::write(&file, pcap((0..10).map(packet))).unwrap();
    let file = file.to_str().unwrap();
    let sheet = &once(&[file, "--tab", "talkers"])["tabs"]["talkers"]["protocol"];
    assert_eq!(
        sheet["rates_over_ns"],
        json!([1_500_000_000, 4_500_000_000_u64, 4_500_000_000_u64])
    );
    let line = &sheet["lines"][0];
    // The last two windows have all of it, the first one the last four packets.
    for (key, expected) in [
        ("bits_per_s_2s", 4 * 8000 * 10 / 15),
        ("bits_per_s_10s", 10 * 8000 * 10 / 45),
        ("bits_per_s_40s", 10 * 8000 * 10 / 45),
        ("packets_per_s_10s", 2),
        ("bytes_40s", 10_000),
    ] {
        assert_eq!(line[key].as_u64(), Some(expected), "{key}: {line}");
    }
    let text = run(&["top", file, "--once", "--tab", "talkers"]).done().out;
    assert!(text.contains("seen so far: "), "{text}");
}

#[test]
fn questions_are_those_that_dnstop_counts() {
    let file = format!("{CAPTURES}/dns.pcap");
    let output = match Command::new("dnstop").args(["-l", "9", &file]).output() {
        Ok(output) => output,
        Err(error) => return println!("not run: dnstop: {error}"),
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let all = once(&[&file, "--tab", "dns"]);
    // Tables of dnstop: a title with its first column, a rule, lines of name and count.
    let theirs = |title: &str, place: usize| -> BTreeMap<String, u64> {
        let tables = said.split("\n\n").filter(|table| table.starts_with(title));
        let table = tables.filter(|table| table.contains("cum%")).nth(place).unwrap_or_default();
        let line = |line: &str| {
            let mut words = line.split_whitespace();
            Some((words.next()?.to_ascii_lowercase(), words.next()?.parse().ok()?))
        };
        table.lines().skip(2).filter_map(line).collect()
    };
    for (title, place, grouping) in [
        ("Sources", 0, "source"),
        ("Destinations", 0, "destination"),
        ("Query Name", 1, "domain"),
        ("Query Name", 8, "name"),
    ] {
        let ours = column(&all["tabs"]["dns"][grouping], "key", "questions_40s");
        let theirs = theirs(title, place);
        assert!(!theirs.is_empty(), "{title} in {said}");
        // Names of one label are none of the second level there.
        let ours = ours.into_iter().filter(|(name, _)| grouping != "domain" || name.contains('.'));
        assert_eq!(ours.collect::<BTreeMap<_, _>>(), theirs, "{grouping}");
    }
}

#[test]
fn what_cannot_be_shown_is_said_in_one_line() {
    let file = format!("{CAPTURES}/http.pcap");
    run(&["top", &file]).fails_with(2, "top needs a terminal; --once");
    run(&["top", "nosuch0", "--once"]).is_refused("nosuch0: neither an interface nor a file");
    let wrong = run(&["top", &file, "--once", "--query", "nonsense 7"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("no word of the query"), "{wrong:?}");
    run(&["top", &file, "--once", "--tab", "dns", "--by", "host"]).fails_with(2, "--by");
    run(&["top", "lo", "--once", "--at", "10:40"]).fails_with(2, "an interface has no past");
    run(&["top", &file, "--once", "--filter", "tcp"]).fails_with(2, "--query");
    let text = format!("{CAPTURES}/README.md");
    run(&["top", &text, "--once"]).is_refused("README.md");

    // On a terminal, which draws or does not.
    let mut script = Command::new("script");
    script.args(["-qec", &format!("{BINARY} top {file}"), "/dev/null"]).stdin(Stdio::null());
    let Ok(output) = script.env("TERM", "dumb").output() else {
        return println!("not run to its end: no script");
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code() == Some(2) && said.contains("takes lines alone"), "{output:?}");
    assert!(!said.contains('\u{1b}'), "{said:?}");
}

#[test]
fn without_privileges_it_shows_what_it_may_and_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["top", "--once", "--for", "1s", "--json"];
    let Some(ran) = run_unprivileged(folder.path(), &arguments) else { return };
    let all: Value = serde_json::from_str(&ran.done().out).unwrap();
    let tab = |tab: &str, by: &str| all["tabs"][tab][by].clone();
    let notes = |tab: &Value| tab["notes"].to_string();
    assert!(notes(&tab("talkers", "host")).contains("cap_net_raw"), "{all}");
    assert!(notes(&tab("disk", "process")).contains("which root has outside"), "{all}");
    assert!(!tab("host", "memory")["lines"].as_array().unwrap().is_empty());
    assert!(!tab("disk", "device")["lines"].is_null());
}

/// A program that does not outlive its test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Sends datagrams of 1000 bytes, a hundred in each tenth of a second.
fn send(seconds: u32) -> u64 {
    let socket = UdpSocket::bind("192.0.2.1:4000").unwrap();
    let begun = Instant::now();
    let mut count = 0;
    for step in 1..=10 * seconds {
        for _ in 0..100 {
            socket.send_to(&[7; 1000], "192.0.2.2:9").unwrap();
            count += 1;
        }
        sleep((Duration::from_millis(100) * step).saturating_sub(begun.elapsed()));
    }
    count
}

#[test]
fn an_interface_has_the_bytes_that_iftop_counts() {
    const THIS: &str = "top::an_interface_has_the_bytes_that_iftop_counts";
    if !enter(LINK, THIS) {
        return;
    }
    let mut iftop = Command::new("iftop");
    iftop.args(["-t", "-s", "8", "-n", "-N", "-P", "-i", "near", "-L", "5"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("iftop");
    let output = fs::File::create(&path).unwrap();
    let mut iftop = match iftop.stdout(output).stderr(Stdio::null()).spawn() {
        Ok(iftop) => Ends(iftop),
        Err(error) => return println!("not run: iftop: {error}"),
    };
    let mut top = command(&["top", "near", "--once", "--json", "--for", "7s", "--tab", "talkers"]);
    let top = top.stdout(Stdio::piped()).spawn().unwrap();
    // Both listen before the first packet goes, and after the last one.
    sleep(Duration::from_secs(2));
    let sent = send(2);
    let ours: Value = serde_json::from_slice(&top.wait_with_output().unwrap().stdout).unwrap();
    let line = &ours["tabs"]["talkers"]["session"]["lines"][0];
    assert_eq!(line["who"], "192.0.2.1:4000 > 192.0.2.2:9 udp", "{ours}");
    assert_eq!(line["bytes_40s"].as_u64(), Some(sent * FRAME), "{ours}");
    // It looked for seven seconds, not for forty.
    let over_ns = ours["tabs"]["talkers"]["session"]["rates_over_ns"][2].as_u64().unwrap();
    assert!((4_000_000_000..=8_500_000_000).contains(&over_ns), "{ours}");
    let rate = u128::from(sent * FRAME * 8) * 1_000_000_000 / u128::from(over_ns);
    assert_eq!(line["bits_per_s_40s"].as_u64().map(u128::from), Some(rate), "{ours}");
    // It looks at the clock when a packet comes.
    let other = UdpSocket::bind("192.0.2.1:4001").unwrap();
    let begun = Instant::now();
    while iftop.0.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(30), "iftop does not end");
        other.send_to(&[7; 10], "192.0.2.2:9").unwrap();
        sleep(Duration::from_millis(100));
    }
    let said = fs::read_to_string(&path).unwrap();
    let theirs = said.lines().find(|line| line.contains("192.0.2.1:4000")).unwrap_or(&said);
    // Without the header of the link, in units of 1024, and three figures of it.
    let theirs = bytes(theirs.split_whitespace().last().unwrap());
    let expected = sent * (FRAME - 14);
    assert!(theirs.abs_diff(expected) * 100 <= expected, "{theirs} and {expected}: {said}");
}

/// `1.96MB`, by powers of 1024.
fn bytes(text: &str) -> u64 {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match text.trim_start_matches(digits) {
        "KB" => 1024.0,
        "MB" => 1024.0 * 1024.0,
        _ => 1.0,
    };
    let number: f64 = digits.parse().unwrap();
    format!("{:.0}", number * unit).parse().unwrap()
}

#[test]
fn a_volume_is_shown_while_it_grows_and_at_any_past_moment() {
    const THIS: &str = "top::a_volume_is_shown_while_it_grows_and_at_any_past_moment";
    if !enter(LINK, THIS) {
        return;
    }
    let volume = Volume::empty();
    let fixed = ["record", &volume.path, "--interface", "near", "--pool", "4M"];
    let mut recorder = command(&[&fixed[..], &["--index-dir", &volume.index]].concat());
    let recorder = recorder.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut recorder = Ends(recorder);
    sleep(Duration::from_secs(2));
    let index = ["--index-dir", &volume.index];
    let live = ["top", &volume.path, "--once", "--json", "--for", "11s", "--tab", "talkers"];
    let live = command(&live).args(index).stdout(Stdio::piped()).spawn().unwrap();
    sleep(Duration::from_secs(1));
    let sent = send(2);
    let after = Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%S"]).output().unwrap();
    let after = String::from_utf8(after.stdout).unwrap();
    let live: Value = serde_json::from_slice(&live.wait_with_output().unwrap().stdout).unwrap();
    let bytes = |all: &Value| all["tabs"]["talkers"]["session"]["lines"][0]["bytes_40s"].as_u64();
    assert_eq!(bytes(&live), Some(sent * FRAME), "{live}");
    let shown = once(&["--tab", "recorder", "--by", "interface"]);
    assert_eq!(shown["tabs"]["recorder"]["interface"]["lines"][0]["interface"], "near");
    let stop = Command::new("kill").arg(recorder.0.id().to_string()).status().unwrap();
    assert!(stop.success() && recorder.0.wait().unwrap().success());
    let at = |time: &str| {
        let arguments = [&volume.path, "--tab", "talkers", "--at", time];
        once(&[&arguments[..], &index].concat())
    };
    assert_eq!(bytes(&at(after.trim())), Some(sent * FRAME), "{after}");
    let before = at("2001-01-01T10:40");
    assert_eq!(bytes(&before), None, "there was nothing then");
    let notes = before["tabs"]["talkers"]["session"]["notes"].to_string();
    assert!(notes.contains("2001-01-01"), "{notes}");
}

#[test]
fn a_moment_outside_of_a_capture_is_told_from_one_without_traffic() {
    let file = format!("{CAPTURES}/http.pcap");
    let notes = |at: &str| {
        let arguments = ["top", &file, "--once", "--json", "--tab", "talkers", "--at", at];
        let all: Value = serde_json::from_str(&run(&arguments).done().out).unwrap();
        all["tabs"]["talkers"]["host"]["notes"].to_string()
    };
    assert!(notes("2001-01-01T10:40").contains("is before all packets, which are from"));
    assert!(notes("2099-01-01T10:40").contains("is behind all packets, which are from"));
}

/// A terminal of 100 by 30 with `top` in it, in a folder of its own.
struct Screen {
    folder: tempfile::TempDir,
    name: String,
}

impl Screen {
    /// `None` with a printed reason where there is no tmux.
    fn start(arguments: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().file_name().unwrap().to_str().unwrap();
        let name = format!("wirespool-test-{}-{name}", std::process::id());
        let screen = Self { folder, name };
        let quoted: Vec<String> = arguments.iter().map(|word| format!("'{word}'")).collect();
        let shell = format!("'{BINARY}' top {}; echo ended $?; sleep 60", quoted.join(" "));
        let place = screen.folder.path().display().to_string();
        let size = ["-x", "100", "-y", "30", "-c", &place];
        match screen.tmux(&[&["new-session", "-d"][..], &size, &["sh", "-c", &shell]].concat()) {
            Ok(_) => Some(screen),
            Err(why) => {
                println!("not run: tmux: {why}");
                None
            }
        }
    }

    fn tmux(&self, arguments: &[&str]) -> Result<String, String> {
        let mut tmux = Command::new("tmux");
        tmux.args(["-L", &self.name, "-f", "/dev/null"]).args(arguments).env("TERM", "xterm");
        let output = tmux.output().map_err(|error| error.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// Presses keys, and waits until the screen has a text.
    #[track_caller]
    fn press(&self, keys: &[&str], text: &str) -> String {
        if !keys.is_empty() {
            self.tmux(&[&["send-keys"], keys].concat()).unwrap();
        }
        let begun = Instant::now();
        loop {
            let screen = self.tmux(&["capture-pane", "-p"]).unwrap();
            if screen.contains(text) {
                return screen;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{text:?} is not on\n{screen}");
            sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        drop(self.tmux(&["kill-server"]));
    }
}

/// Whether a process is there that has this among its arguments.
fn is_running_with(argument: &str) -> bool {
    let lines = fs::read_dir("/proc").unwrap().flatten();
    let mut lines = lines.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.any(|line| line.split('\0').any(|word| word == argument))
}

#[test]
fn it_ends_with_its_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("http.pcap").into_os_string().into_string().unwrap();
    fs::copy(format!("{CAPTURES}/http.pcap"), &file).unwrap();
    let Some(screen) = Screen::start(&[&file]) else { return };
    screen.press(&[], "tcp");
    assert!(is_running_with(&file));
    drop(screen);
    let begun = Instant::now();
    while is_running_with(&file) {
        assert!(begun.elapsed() < Duration::from_secs(20), "top runs on without a terminal");
        sleep(Duration::from_millis(50));
    }
}

#[test]
fn keys_choose_filter_go_back_write_and_quit() {
    let Some(screen) = Screen::start(&[&format!("{CAPTURES}/http.pcap")]) else { return };
    screen.press(&[], "tcp");
    screen.press(&["g", "g"], "HOST ");
    screen.press(&["2"], "by name domain");
    let shown = screen.press(&["1", "G", "G", "/"], "query: ");
    assert!(shown.contains("SESSION"), "{shown}");
    screen.press(&["port 80", "Enter"], "filter: port 80");
    screen.press(&["Enter"], "(port 80) and (host");
    screen.press(&["w"], "written to top-");
    let written = fs::read_dir(screen.folder.path()).unwrap().flatten().count();
    assert_eq!(written, 1);
    let time = |screen: &str| screen.lines().next().map(|line| line[60..].to_owned());
    let now = time(&screen.press(&["n"], "talkers"));
    let past = time(&screen.press(&["Left", "Left", "?"], "one second back"));
    assert!(past < now, "{past:?} {now:?}");
    screen.press(&["x", "Escape"], "SESSION");
    screen.press(&["?"], "write the packets of the line");
    screen.press(&["x", "p"], "PAUSED");
    // A window that is made small and large again.
    screen.tmux(&["resize-window", "-x", "40", "-y", "8"]).unwrap();
    screen.press(&[" "], "1 talkers");
    screen.tmux(&["resize-window", "-x", "120", "-y", "40"]).unwrap();
    screen.press(&["5"], "by socket process");
    screen.press(&["q"], "ended 0");
}
