//! Sockets that were open before the service began: of a manager of services, or of the supervisor
//! that starts it again.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::lines::Lines;
use crate::machine::{BINARY, Volume, command, run, write_key};
use crate::supervised::{Supervised, process, signal};

const PATIENCE: Duration = Duration::from_mins(1);

fn as_input(listener: &TcpListener) -> Stdio {
    OwnedFd::from(listener.try_clone().unwrap()).into()
}

fn loopback() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Asks whether the service is well, over a connection that may have waited.
fn health(stream: &mut TcpStream) -> String {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
        .write_all(b"GET /api/v1/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn tokens(volume: &Volume) -> String {
    let tokens = volume.file("tokens");
    write_key(&tokens, "");
    run(&["serve", "token", "create", "me", "--token-file", &tokens]).done();
    tokens
}

/// Until no thread of it goes on: each stops by itself, and one that was not told yet may accept.
fn stop(process: u32) {
    signal("-STOP", process);
    let goes_on = |thread: io::Result<fs::DirEntry>| {
        let stat = fs::read_to_string(thread.unwrap().path().join("stat")).unwrap_or_default();
        !stat.rsplit(") ").next().is_some_and(|state| state.starts_with('T'))
    };
    let begun = Instant::now();
    while fs::read_dir(format!("/proc/{process}/task")).unwrap().any(goes_on) {
        assert!(begun.elapsed() < PATIENCE, "it goes on");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn who_connects_while_the_service_is_started_again_waits() {
    let volume = Volume::recorded();
    let (listener, address) = loopback();
    let text = format!(
        "[api]\nvolumes = ['{}']\ntoken_file = '{}'\nlisten = '127.0.0.1:1'\n",
        volume.path,
        tokens(&volume)
    );
    let mut it = Supervised::with_input(volume, &text, as_input(&listener));
    drop(listener);
    let service = process(&it.hear("api: process"));
    let line = it.hear("listening at ");
    assert!(line.contains(&address.to_string()), "what was handed over counts: {line}");
    assert!(health(&mut TcpStream::connect(address).unwrap()).contains("{\"ok\":true}"));
    // Stopped, it answers nobody; killed, it is gone, and the connection is still there.
    stop(service);
    let mut waiting = TcpStream::connect(address).unwrap();
    signal("-KILL", service);
    it.hear("api: was ended after");
    let mut late = TcpStream::connect(address).unwrap();
    assert!(health(&mut late).contains("{\"ok\":true}"));
    assert!(health(&mut waiting).contains("{\"ok\":true}"), "it had not been taken");
    assert_eq!(it.end(), Some(0));
    assert!(TcpStream::connect(address).is_err(), "nobody has it any more");
}

#[test]
fn a_socket_beyond_the_loopback_needs_what_the_flag_needs() {
    let volume = Volume::recorded();
    let tokens = tokens(&volume);
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let mut command = command(&["serve", &volume.path, "--token-file", &tokens]);
    let output = command.stdin(as_input(&listener)).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--tls-cert"), "{said}");
    // A connection is none that listens, and no reason to refuse: it is an input.
    let (listener, address) = loopback();
    let connected = TcpStream::connect(address).unwrap();
    let mut command = crate::machine::command(&["serve", &volume.path]);
    let output = command.stdin(Stdio::from(OwnedFd::from(connected))).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "without a credential nothing listens: {output:?}");
    drop(listener);
}

/// Starts the service as a manager of services does: `sd_listen_fds(3)`.
fn by_manager(prepare: &str, volume: &Volume, tokens: &str) -> Option<Command> {
    if !Command::new("python3").arg("-V").output().is_ok_and(|ran| ran.status.success()) {
        println!("not run: there is no python3 here");
        return None;
    }
    let script = volume.file("manager.py");
    let text = format!(
        "import os, socket, sys\n\
         {prepare}\n\
         os.environ['LISTEN_PID'] = str(os.getpid())\n\
         os.execv(sys.argv[1], sys.argv[1:])\n"
    );
    fs::write(&script, text).unwrap();
    let mut command = Command::new("python3");
    command.args([&script, BINARY, "serve", &volume.path, "--token-file", tokens]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    Some(command)
}

#[test]
fn a_manager_of_services_hands_its_socket_over_by_number() {
    let volume = Volume::recorded();
    let tokens = tokens(&volume);
    let open = "s = socket.socket()\ns.bind(('127.0.0.1', 0))\ns.listen()\n\
                os.dup2(s.fileno(), 3)\nos.set_inheritable(3, True)\n\
                os.environ['LISTEN_FDS'] = '1'";
    let Some(mut command) = by_manager(open, &volume, &tokens) else { return };
    let mut child = command.spawn().unwrap();
    let mut lines = Lines::of(child.stderr.take().unwrap());
    let line = lines.hear("listening at ", PATIENCE);
    let address: SocketAddr = line.rsplit("//").next().unwrap().trim().parse().unwrap();
    assert!(health(&mut TcpStream::connect(address).unwrap()).contains("{\"ok\":true}"));
    signal("-TERM", child.id());
    assert!(child.wait().unwrap().success());
    for (wrong, words) in [
        ("os.environ['LISTEN_FDS'] = '2'", "there are 2 of them"),
        ("os.closerange(3, 9)\nos.environ['LISTEN_FDS'] = '1'", "take the socket"),
        (
            "os.dup2(os.open('/dev/null', 0), 3)\nos.set_inheritable(3, True)\n\
             os.environ['LISTEN_FDS'] = '1'",
            "does not listen",
        ),
        (
            "s = socket.socket(socket.AF_UNIX)\ns.bind('\\0wirespool-test-%d' % os.getpid())\n\
             s.listen()\nos.dup2(s.fileno(), 3)\nos.set_inheritable(3, True)\n\
                os.environ['LISTEN_FDS'] = '1'",
            "take the socket",
        ),
    ] {
        let output = by_manager(wrong, &volume, &tokens).unwrap().output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{wrong}: {said}");
        assert!(said.contains(words), "{wrong}: {said}");
    }
}
