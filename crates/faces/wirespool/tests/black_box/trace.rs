//! One program's packets, on a machine of our own with a world behind it.

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use capture::{FileOptions, FileSource, Next, Source};
use format::pcapng::{ByteOrder, OptionCode, Options};
use network::sockets::Namespace;
use wire::{Address, LinkType, decode};

use crate::machine::{Ran, enter, run, run_unprivileged};

/// A machine with one way out, to a machine in another namespace, whose process is in `FAR`.
pub(crate) const WORLD: &str = "set -e
    ip link set lo up
    unshare --net sleep 120 < /dev/null > /dev/null 2>&1 &
    export FAR=$!
    while [ $(readlink /proc/$FAR/ns/net) = $(readlink /proc/self/ns/net) ]; do sleep 0.01; done
    ip link add name near type veth peer name far netns $FAR
    ip addr add 192.0.2.1/24 dev near
    ip link set dev near up
    nsenter --target $FAR --net sh -c '
        ip link set lo up; ip addr add 192.0.2.2/24 dev far; ip link set far up'
    ip route add default via 192.0.2.2
    echo 0 > /proc/sys/net/ipv4/conf/near/forwarding
    mount -t tmpfs none /run";
const FORWARDING: &str = "/proc/sys/net/ipv4/conf/near/forwarding";

pub(crate) fn listener_far_away() -> TcpListener {
    let far = std::env::var("FAR").unwrap().parse().unwrap();
    let namespace = Namespace::of_process(far).unwrap();
    namespace.within(|| TcpListener::bind("192.0.2.2:0").unwrap()).unwrap()
}

/// Answers one connection and returns who it was.
pub(crate) fn answer(listener: TcpListener) -> std::thread::JoinHandle<IpAddr> {
    let serve = move || {
        let (mut stream, from) = listener.accept().unwrap();
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        stream.write_all(b"hello\n").unwrap();
        from.ip()
    };
    std::thread::Builder::new().spawn(serve).unwrap()
}

/// Addresses, the ports and the comments of the packets of a capture.
fn packets(path: &str) -> Vec<(Address, Address, [u16; 2], String)> {
    let mut source = FileSource::open(path.as_ref(), FileOptions::default()).unwrap();
    let mut found = Vec::new();
    loop {
        match source.next_batch(Duration::from_secs(1)).unwrap() {
            Next::Packets(batch) => found.extend(batch.map(|packet| {
                let tuple = decode(LinkType::ETHERNET, packet.head, packet.original_len).tuple;
                let options = Options::new(packet.options, ByteOrder::Little);
                let comment = options.find_value(OptionCode::COMMENT).unwrap_or_default();
                let comment = String::from_utf8_lossy(comment).into_owned();
                (tuple.orig, tuple.resp, [tuple.orig_port, tuple.resp_port], comment)
            })),
            Next::End => return found,
            Next::Block(_) | Next::Idle => {}
        }
    }
}

/// The programs of these tests speak TCP alone: what has no ports finds neighbours or joins groups.
/// The port of `discard` is what `trace` itself would ask.
fn those_of_the_kernel_are_nobodys(found: &[(Address, Address, [u16; 2], String)]) {
    for (from, to, ports, comment) in found {
        let has_process = !comment.is_empty();
        assert_eq!(has_process, *ports != [0; 2], "{from:?} to {to:?}: {comment}");
        assert!(!ports.contains(&9), "{found:?}");
    }
}

fn is_as_before() -> bool {
    let interfaces = fs::read_to_string("/proc/net/dev").unwrap();
    let notes = fs::read_dir("/run/wirespool").map_or(0, Iterator::count);
    fs::read_to_string(FORWARDING).unwrap().trim() == "0"
        && !interfaces.contains("trace")
        && notes == 0
}

fn wait_until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it never happens");
}

#[test]
fn a_program_reaches_the_world_and_its_packets_have_its_name() {
    if !enter(WORLD, "trace::a_program_reaches_the_world_and_its_packets_have_its_name") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.pcapng").to_str().unwrap().to_owned();
    let listener = listener_far_away();
    let port = listener.local_addr().unwrap().port();
    let server = answer(listener);
    // The owner of a socket that is gone within a few milliseconds may be unknown.
    let script = format!(
        "exec 3<>/dev/tcp/192.0.2.2/{port}; sleep 0.1; echo >&3; read line <&3; \
         [ $line = hello ] && exit 7"
    );
    let ran: Ran = run(&["trace", "-o", &file, "--", "bash", "-c", &script]);
    assert_eq!(ran.code, Some(7), "{ran:?}");
    assert_eq!(server.join().unwrap(), Ipv4Addr::new(192, 0, 2, 1), "not under its own address");
    assert!(ran.err.contains("bash (process "), "{ran:?}");
    let far = Address::V4(Ipv4Addr::new(192, 0, 2, 2));
    let found = packets(&file);
    those_of_the_kernel_are_nobodys(&found);
    let sent = found.iter().filter(|(_, to, ports, _)| (*to, ports[1]) == (far, port));
    assert!(sent.clone().count() >= 4, "{found:?}");
    let is_private = |address| matches!(address, Address::V4(ip) if ip.octets()[..2] == [10, 213]);
    assert!(sent.clone().all(|(from, ..)| is_private(*from)), "{found:?}");
    assert!(sent.clone().all(|(.., comment)| comment.starts_with("bash (process ")), "{found:?}");
    assert!(is_as_before());

    let ran = run(&["trace", "-o", &file, "--", "true"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.err.contains("exists"), "{ran:?}");
    let ran = run(&["trace", "-o", &file, "--force", "--", "/nonexistent"]);
    assert_eq!(ran.code, Some(127), "{ran:?}");
    assert!(is_as_before());
}

/// What a program says of itself that was run with these variables and options.
fn said_by_program(variables: &[(&str, &str)], options: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut program = crate::machine::command(&[&["trace"], options].concat());
    program.args(["--", "sh", "-c", "id -u; id -g; id -G; echo $HOME"]);
    program.envs(variables.iter().copied()).current_dir(folder.path());
    let ran = Ran::new(&program.output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.out.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_program_runs_as_who_called_sudo_unless_told_otherwise() {
    let name = "trace::a_program_runs_as_who_called_sudo_unless_told_otherwise";
    if !enter(WORLD, name) {
        return;
    }
    // Debian's base system has the user games, 5, with the group games, 60.
    let known = [("SUDO_UID", "5"), ("SUDO_GID", "60"), ("HOME", "/root")];
    let as_games = said_by_program(&known, &[]);
    assert_eq!(as_games, "5 60 60 /usr/games");
    assert!(said_by_program(&known, &["--user", "root"]).starts_with("0 0 "));
    assert_eq!(said_by_program(&known, &["--user", "games"]), as_games);
    // A number without a user, with the group that is said and none of root's.
    let unknown = [("SUDO_UID", "54321"), ("SUDO_GID", "54322"), ("HOME", "/root")];
    assert_eq!(said_by_program(&unknown, &[]), "54321 54322 54322 /root");
    assert!(said_by_program(&[("HOME", "/root")], &[]).starts_with("0 0 "), "root called");
}

/// Each connects, asks and is gone within a few milliseconds, and so is its socket.
#[test]
fn processes_that_end_at_once_have_their_packets() {
    if !enter(WORLD, "trace::processes_that_end_at_once_have_their_packets") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.pcapng").to_str().unwrap().to_owned();
    let listener = listener_far_away();
    let port = listener.local_addr().unwrap().port();
    let serve = move || {
        for stream in listener.incoming().take(10) {
            let mut stream = stream.unwrap();
            stream.read_exact(&mut [0; 4]).unwrap();
            stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nhello\n").unwrap();
        }
    };
    let server = std::thread::Builder::new().spawn(serve).unwrap();
    // Names by UDP to nobody, too: one datagram each.
    let script = format!(
        "for one in 1 2 3 4 5 6 7 8 9 10; do curl -s --max-time 5 http://192.0.2.2:{port}/; \
         bash -c 'echo asked > /dev/udp/192.0.2.2/5353'; done"
    );
    let ran = run(&["trace", "-o", &file, "--json", "--", "sh", "-c", &script]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    server.join().unwrap();
    if ran.err.contains("processes that end at once have no name") {
        return println!("not run: {}", ran.err);
    }
    let found = packets(&file);
    let of = |port: u16| found.iter().filter(move |(.., ports, _)| ports.contains(&port));
    let names = |port: u16| -> std::collections::BTreeSet<&str> {
        of(port).map(|(.., comment)| comment.as_str()).collect()
    };
    // A connection has seven packets or more.
    assert!(of(port).count() >= 70 && of(5353).count() >= 10, "{found:#?}");
    assert_eq!((names(port).len(), names(5353).len()), (10, 10), "{found:#?}");
    assert!(names(port).iter().all(|name| name.starts_with("curl (process ")), "{found:#?}");
    assert!(names(5353).iter().all(|name| name.starts_with("bash (process ")), "{found:#?}");
}

#[test]
fn a_program_reaches_the_world_by_ipv6() {
    let world = format!(
        "{WORLD}
        ip -6 addr add 2001:db8::1/64 dev near nodad
        nsenter --target $FAR --net ip -6 addr add 2001:db8::2/64 dev far nodad
        ip -6 route add default via 2001:db8::2"
    );
    if !enter(&world, "trace::a_program_reaches_the_world_by_ipv6") {
        return;
    }
    let setting = "/proc/sys/net/ipv6/conf/near/force_forwarding";
    if !std::path::Path::new(setting).exists() {
        return println!("not run: this kernel forwards IPv6 for all interfaces or for none");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.pcapng").to_str().unwrap().to_owned();
    let far = std::env::var("FAR").unwrap().parse().unwrap();
    let namespace = Namespace::of_process(far).unwrap();
    let listener = namespace.within(|| TcpListener::bind("[2001:db8::2]:0").unwrap()).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = answer(listener);
    let script = format!(
        "exec 3<>/dev/tcp/2001:db8::2/{port}; echo >&3; read line <&3; [ $line = hello ] && exit 7"
    );
    let ran = run(&["trace", "-o", &file, "--", "bash", "-c", &script]);
    assert_eq!(ran.code, Some(7), "{ran:?}");
    let from: IpAddr = "2001:db8::1".parse().unwrap();
    assert_eq!(server.join().unwrap(), from, "not under its own address");
    let found = packets(&file);
    those_of_the_kernel_are_nobodys(&found);
    let sent = found.iter().filter(|(.., ports, _)| ports[1] == port);
    assert!(sent.clone().count() >= 4, "{found:?}");
    assert!(sent.clone().all(|(.., comment)| comment.starts_with("bash (process ")), "{found:?}");
    assert_eq!(fs::read_to_string(setting).unwrap().trim(), "0");
    assert!(is_as_before());
}

#[test]
fn who_is_refused_on_the_loopback_is_told_that_it_is_another_one() {
    let name = "trace::who_is_refused_on_the_loopback_is_told_that_it_is_another_one";
    if !enter(WORLD, name) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.pcapng").to_str().unwrap().to_owned();
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = service.local_addr().unwrap().port();
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    let ran = run(&["trace", "-o", &file, "--", "bash", "-c", &script]);
    assert!(ran.err.contains("note: the program was refused on 127.0.0.1"), "{ran:?}");
    assert!(ran.err.contains(&port.to_string()), "{ran:?}");
    let ran = run(&["trace", "-o", &file, "--force", "--", "true"]);
    assert!(!ran.err.contains("refused"), "{ran:?}");
}

#[test]
fn nothing_stays_of_one_that_is_killed() {
    if !enter(WORLD, "trace::nothing_stays_of_one_that_is_killed") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_wirespool"));
    // One child, and one of that child, which does not die of a signal to its parent.
    let script = "(trap '' HUP; sleep 599.25 & wait) & wait";
    program.args(["trace", "-o", "t.pcapng", "--", "sh", "-c", script]);
    program.current_dir(folder.path()).stdin(Stdio::null()).stderr(Stdio::null());
    let mut program = program.spawn().unwrap();
    let sleeps = || {
        let text = |entry: fs::DirEntry| fs::read(entry.path().join("cmdline")).ok();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        entries.filter_map(text).any(|line| line == b"sleep\x00599.25\x00")
    };
    wait_until(sleeps);
    assert!(!is_as_before());
    program.kill().unwrap();
    program.wait().unwrap();
    wait_until(|| is_as_before() && !sleeps());
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Connects again and again until it is dropped. A connection is open for a moment, as a question
/// and its answer are; one that is closed at once is gone before anybody looks.
struct Client(Child);

impl Client {
    fn start(port: u16) -> Self {
        let script = format!(
            "while exec 3<>/dev/tcp/127.0.0.1/{port}; do echo >&3; sleep 0.1; exec 3>&-; done"
        );
        Self(Command::new("bash").args(["-c", &script]).spawn().unwrap())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Begins to trace a process that runs.
fn traced(process: u32, file: &str) -> Child {
    let process = process.to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_wirespool"));
    command.args(["trace", "--pid", &process, "-o", file, "--json"]);
    command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// What it says in the end, which is a good one.
fn said_by(mut program: Child) -> String {
    let mut said = String::new();
    program.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(program.wait().unwrap().success(), "{said}");
    said
}

#[test]
fn packets_of_a_program_that_runs_are_told_from_those_of_others() {
    let name = "trace::packets_of_a_program_that_runs_are_told_from_those_of_others";
    if !enter("ip link set lo up", name) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.pcapng").to_str().unwrap().to_owned();
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [wanted, other] = [0, 1].map(|at| listeners[at].local_addr().unwrap().port());
    let client = Client::start(wanted);
    let program = traced(client.0.id(), &file);
    let mut streams = Vec::new();
    for _ in 0..60 {
        let mut stream = TcpStream::connect(("127.0.0.1", other)).unwrap();
        stream.write_all(b"other").unwrap();
        streams.push(stream);
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(client);
    let said = said_by(program);
    let found = packets(&file);
    assert!(found.len() >= 8, "{} packets: {said}", found.len());
    assert!(found.iter().all(|(.., ports, _)| ports.contains(&wanted)), "{said}");
    assert!(found.iter().all(|(.., comment)| comment.contains("(process ")), "{said}");
    let report: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(report["left_out"].as_u64().unwrap() > 50, "{said}");

    let ran = run(&["trace", "--pid", "4194305", "-o", &file, "--force"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(3), "wirespool: there is no process 4194305\n"));
}

#[test]
fn connections_of_children_that_end_at_once_are_kept() {
    let name = "trace::connections_of_children_that_end_at_once_are_kept";
    if !enter("ip link set lo up", name) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.pcapng").to_str().unwrap().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let wanted = listener.local_addr().unwrap().port();
    // Each connection is of a process of its own, which ends with it.
    let script =
        format!("while sleep 0.05; do bash -c 'exec 3<>/dev/tcp/127.0.0.1/{wanted}'; done");
    let mut parent = Command::new("bash").args(["-c", &script]).spawn().unwrap();
    let program = traced(parent.id(), &file);
    let asked: Vec<u16> =
        (0..60).map(|_| listener.accept().map(|(_, from)| from.port()).unwrap()).collect();
    parent.kill().unwrap();
    parent.wait().unwrap();
    let said = said_by(program);
    if said.contains("may be missing") {
        return println!("not run: {said}");
    }
    let found = packets(&file);
    let has = |port: &u16| found.iter().any(|(_, _, ports, _)| ports.contains(port));
    // From the first one that it saw, but for those that its end may have cut.
    let first = asked.iter().position(has).unwrap_or_else(|| panic!("none of them: {said}"));
    let missing: Vec<_> = asked[first..58].iter().filter(|port| !has(port)).collect();
    assert!(first < 50 && missing.is_empty(), "{first}, {missing:?}: {said}");
}

#[test]
fn a_process_of_somebody_else_and_a_right_that_is_missing_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let own = std::process::id().to_string();
    let Some(ran) = run_unprivileged(folder.path(), &["trace", "--pid", &own]) else { return };
    let expected =
        format!("wirespool: process {own} belongs to another user; run as that user, or as root\n");
    assert_eq!((ran.code, ran.err.as_str()), (Some(3), expected.as_str()));
    let ran = run(&["trace", "--via", "nosuch", "--", "true"]);
    assert!(ran.err.contains("there is no interface \"nosuch\""), "{ran:?}");
}
