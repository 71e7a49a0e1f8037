//! What programs wait for in system calls, as a user asks for it: situations that scripts make, and
//! counts that strace(1) makes, too.

#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fuse::{Hang, Hanging};
use crate::machine::{Ran, command, enter, folder_on_disk, is_root, run, run_unprivileged};

/// The interpreter itself, and no script that looks for it; `None` with a printed reason.
fn python() -> Option<String> {
    let ran = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let found = ran.ok().filter(|ran| ran.status.success());
    let Some(ran) = found else {
        println!("not run: no python3");
        return None;
    };
    Some(String::from_utf8_lossy(&ran.stdout).trim().to_owned())
}

/// The report of a watch with these arguments; `None` with a printed reason.
fn watched(arguments: &[&str]) -> Option<(Option<i32>, Value)> {
    reported(&run(&[&["diagnose", "calls", "--json"], arguments].concat()))
}

fn reported(ran: &Ran) -> Option<(Option<i32>, Value)> {
    if ran.code == Some(3) && ran.err.contains("cannot follow system calls") {
        println!("not run: {}", ran.err);
        return None;
    }
    let json: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"));
    let tracing = &json["tracing"];
    // A few turns of processors more or less change no finding.
    if tracing["lost_calls"] != 0 || tracing["lost_turns"].as_u64() > Some(50) {
        println!("not run: the kernel kept records back: {tracing}");
        assert!(json["unseen"].to_string().contains(" records of "), "{json:#}");
        return None;
    }
    Some((ran.code, json))
}

/// The findings but for the one that others have the processors: so it is where tests run beside
/// each other.
fn findings(json: &Value) -> Vec<&Value> {
    let others = ["calls.processor", "calls.held_back"];
    let all = json["findings"].as_array().unwrap().iter();
    all.filter(|finding| !others.contains(&finding["kind"].as_str().unwrap())).collect()
}

/// The first finding is of this kind, and says all this.
#[track_caller]
fn first_is(json: &Value, kind: &str, words: &[&str]) {
    let found = findings(json);
    assert_eq!(found.first().map(|it| &it["kind"]), Some(&kind.into()), "{found:#?}");
    let said = found[0].to_string();
    for word in words {
        assert!(said.contains(word), "{word} in {:#}", found[0]);
    }
}

fn call<'j>(json: &'j Value, name: &str) -> &'j Value {
    let mut all = json["calls"].as_array().unwrap().iter();
    all.find(|call| call["call"] == name).unwrap_or_else(|| panic!("{name} in {json:#}"))
}

#[test]
fn calls_are_counted_as_strace_counts_them() {
    let dd = ["dd", "if=/dev/zero", "of=/dev/null", "bs=512", "count=3000", "status=none"];
    let Some((_, json)) = watched(&[&["--"], &dd[..]].concat()) else { return };
    let counts = |name: &str| {
        let all = ["calls", "idle_calls"].map(|list| json[list].as_array().unwrap());
        let of = all.into_iter().flatten().filter(|call| call["call"] == name);
        let error = |call: &Value| {
            let errors = call["errors"].as_array().unwrap().iter();
            errors.map(|error| error["count"].as_u64().unwrap()).sum::<u64>()
        };
        let sums = of.map(|call| (call["count"].as_u64().unwrap(), error(call)));
        sums.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    };
    assert!((3000..3010).contains(&counts("read").0), "{:?}", counts("read"));
    assert_eq!(counts("write"), (3000, 0));
    assert_eq!(call(&json, "write")["bytes"], 3000 * 512);
    let folder = folder_on_disk();
    let table = folder.path().join("strace");
    let mut strace = Command::new("strace");
    strace.args(["-c", "-f", "-o"]).arg(&table).args(dd);
    if !strace.status().is_ok_and(|status| status.success()) {
        return println!("not run: no strace, or it may not trace");
    }
    let text = fs::read_to_string(&table).unwrap();
    let mut compared = 0;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, _, _, count, rest @ ..] = &words[..] else { continue };
        let (Ok(count), Some(name)) = (count.parse::<u64>(), rest.last()) else { continue };
        // `dd` asks for signals that it does not find ignored: who starts it decides how often.
        if ["total", "rt_sigaction"].contains(name) || name.starts_with("exit") {
            continue;
        }
        let errors = if rest.len() > 1 { rest[0].parse().unwrap() } else { 0 };
        assert_eq!(counts(name), (count, errors), "{name}: {text}\n{json:#}");
        compared += 1;
    }
    assert!(compared > 8, "{text}");
}

#[test]
fn who_makes_files_durable_is_named_with_the_file() {
    let (folder, Some(python)) = (folder_on_disk(), python()) else { return };
    let path = folder.path().join("ledger");
    let script = format!(
        "import os\nf = os.open({path:?}, os.O_CREAT | os.O_WRONLY)\n\
         for i in range(300):\n os.write(f, b'x' * 120)\n os.fsync(f)\n"
    );
    let Some((code, json)) = watched(&["--", &python, "-c", &script]) else { return };
    let sync = call(&json, "fsync");
    assert_eq!(sync["count"], 300, "{sync:#}");
    if sync["total_ns"].as_u64().unwrap() < 300_000_000 {
        return println!("not run: an fsync takes no time on this file system: {sync:#}");
    }
    assert_eq!(code, Some(1));
    first_is(&json, "calls.sync", &["/ledger", "300 calls", "python"]);
    let slow = json["slowest"].as_array().unwrap();
    let is_it = |call: &&Value| {
        call["call"] == "fsync" && call["arguments"].as_str().unwrap().ends_with("/ledger>")
    };
    assert!(slow.iter().any(|call| is_it(&call)), "{slow:#?}");
}

#[test]
fn who_looks_for_files_that_are_not_there_is_named_with_the_folders() {
    let Some(python) = python() else { return };
    let script = "import os\nfor i in range(3000):\n try: os.stat('/opt/no/such/%d' % (i % 30))\n \
                  except OSError: pass\n";
    let Some((_, json)) = watched(&["--", &python, "-c", script]) else { return };
    if json["tracing"]["has_paths"] == false {
        return println!("not run: paths take CAP_BPF");
    }
    first_is(&json, "calls.missing_files", &["/opt/no/such: 3000", "/opt/no/such/9: 100"]);
}

#[test]
fn who_writes_a_few_bytes_at_a_time_is_told_to_use_a_buffer() {
    let (folder, Some(python)) = (folder_on_disk(), python()) else { return };
    let path = folder.path().join("log");
    let script = format!(
        "import os\nf = os.open({path:?}, os.O_CREAT | os.O_WRONLY)\n\
         for i in range(200000): os.write(f, b'x')\n"
    );
    let Some((_, json)) = watched(&["--", &python, "-c", &script]) else { return };
    first_is(&json, "calls.small_writes", &["/log", "200000 calls", "1 B"]);
}

#[test]
fn who_waits_for_the_lock_of_a_file_is_told_who_had_it() {
    let (folder, Some(python)) = (folder_on_disk(), python()) else { return };
    let path = folder.path().join("lock");
    let script = format!(
        "import fcntl, os, time\nf = open({path:?}, 'w')\nfcntl.flock(f, fcntl.LOCK_EX)\n\
         if os.fork() == 0:\n g = open({path:?}, 'w')\n fcntl.flock(g, fcntl.LOCK_EX)\n \
         os._exit(0)\n\
         time.sleep(1.5)\nfcntl.flock(f, fcntl.LOCK_UN)\nos.wait()\n"
    );
    let Some((_, json)) = watched(&["--", &python, "-c", &script]) else { return };
    first_is(&json, "calls.file_lock", &["/lock", "flock(", "the waits were ended by python"]);
}

#[test]
fn threads_that_wait_for_a_lock_are_told_from_those_that_wait_for_work() {
    let Some(python) = python() else { return };
    let contended = "import threading, time\nl = threading.Lock()\ndef f():\n \
                     for i in range(12):\n  \
                     with l: time.sleep(0.06)\n  time.sleep(0.001)\n\
                     t = [threading.Thread(target=f) for i in range(3)]\n\
                     [x.start() for x in t]\n[x.join() for x in t]\n";
    let Some((_, json)) = watched(&["--", &python, "-c", contended]) else { return };
    first_is(&json, "calls.lock", &["python", "3 threads"]);
    let idle = "import threading, time, queue\nq = queue.Queue()\n\
                t = [threading.Thread(target=q.get) for i in range(3)]\n[x.start() for x in t]\n\
                time.sleep(1.5)\n[q.put(0) for x in t]\n";
    let Some((code, json)) = watched(&["--", &python, "-c", idle]) else { return };
    assert!(findings(&json).is_empty(), "{json:#}");
    assert!(code == Some(0) || !json["findings"].as_array().unwrap().is_empty());
}

#[test]
fn who_waits_for_a_name_server_is_named_with_the_server() {
    let Some(python) = python() else { return };
    let prepare = "ip link set lo up; echo 'nameserver 127.0.0.1' > /tmp/wirespool-resolv.$$; \
                   mount --bind /tmp/wirespool-resolv.$$ /etc/resolv.conf; \
                   rm /tmp/wirespool-resolv.$$";
    let name = "diagnose_calls::who_waits_for_a_name_server_is_named_with_the_server";
    if !enter(prepare, name) {
        return;
    }
    let server = UdpSocket::bind("127.0.0.1:53").unwrap();
    std::thread::Builder::new()
        .spawn(move || {
            let mut bytes = [0; 512];
            while let Ok((len, from)) = server.recv_from(&mut bytes) {
                std::thread::sleep(Duration::from_millis(400));
                // An answer: there is no such name.
                (bytes[2], bytes[3]) = (0x81, 0x83);
                server.send_to(&bytes[..len], from).unwrap();
            }
        })
        .unwrap();
    let script = "import socket\nfor i in range(3):\n \
                  try: socket.getaddrinfo('a%d.example' % i, 80)\n \
                  except OSError: pass\n";
    let Some((_, json)) = watched(&["--", &python, "-c", script]) else { return };
    first_is(&json, "calls.names", &["127.0.0.1:53", "python"]);
}

#[test]
fn who_reads_a_file_whose_server_is_slow_is_named_with_the_file_and_the_server() {
    let name = "diagnose_calls::\
                who_reads_a_file_whose_server_is_slow_is_named_with_the_file_and_the_server";
    if !enter("true", name) {
        return;
    }
    let folder = folder_on_disk();
    let path = folder.path().join("disk");
    fs::write(&path, vec![7; 1 << 20]).unwrap();
    let Some(disk) = Hanging::over(&path) else { return };
    let is_over = AtomicBool::new(false);
    let input = format!("if={}", path.display());
    let dd = ["dd", &*input, "of=/dev/null", "bs=64k", "iflag=direct", "status=none"];
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                disk.hang(&[Hang::Read]);
                std::thread::sleep(Duration::from_millis(60));
                disk.answer();
            }
        });
        // Also when the watch fails: the other thread would go on for ever.
        let _end = SetInTheEnd(&is_over);
        watched(&[&["--"], &dd[..]].concat())
    });
    let Some((_, json)) = report else { return };
    first_is(
        &json,
        "calls.slow_file",
        &["/disk", "fuse", "dd (process", "the waits were ended by"],
    );
    let mut slow = json["slowest"].as_array().unwrap().iter();
    let read = slow.find(|call| call["call"] == "read").unwrap();
    let arguments = read["arguments"].as_str().unwrap();
    assert!(arguments.contains("/disk>, 65536 bytes"), "{read:#}");
    assert_eq!(read["result"], "65536");
    assert!(read["duration_ns"].as_u64().unwrap() > 20_000_000, "{read:#}");
}

/// Sets a flag when it is dropped.
struct SetInTheEnd<'a>(&'a AtomicBool);

impl Drop for SetInTheEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Ends a program that is only there to be watched.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn who_has_the_processor_that_another_wants_is_named() {
    let Some(python) = python() else { return };
    let mut taskset = Command::new("taskset");
    let other = taskset.args(["-c", "0", "sh", "-c", "while :; do :; done"]);
    let Ok(child) = other.stderr(Stdio::null()).spawn() else {
        return println!("not run: no taskset");
    };
    let _ended = Ended(child);
    let spin = "import time\nt = time.time()\nwhile time.time() < t + 2: pass\n";
    let Some((code, json)) = watched(&["--", "taskset", "-c", "0", &python, "-c", spin]) else {
        return;
    };
    if json["tracing"]["lost_turns"] != 0 {
        // One of them may be that of a second.
        return println!("not run: the kernel kept turns back: {}", json["tracing"]);
    }
    let all = json["findings"].as_array().unwrap();
    assert_eq!(code, Some(1));
    assert_eq!(all[0]["kind"], "calls.processor", "{all:#?}");
    let said = all[0].to_string();
    assert!(said.contains("python") && said.contains("sh (thread "), "{said}");
}

#[test]
fn quiet_programs_give_no_finding() {
    let Some(python) = python() else { return };
    let server = "import socket, select\ns = socket.socket(); s.bind(('127.0.0.1', 0))\n\
                  s.listen()\n\
                  e = select.epoll(); e.register(s, 1); e.poll(1.2)\n";
    for program in [&["sleep", "1"][..], &[&python, "-c", server]] {
        let Some((_, json)) = watched(&[&["--"], program].concat()) else { return };
        assert!(findings(&json).is_empty(), "{program:?}: {:#}", json["findings"]);
        let waits = json["idle_calls"].as_array().unwrap();
        assert!(waits.iter().any(|call| call["max_ns"].as_u64() > Some(900_000_000)), "{waits:#?}");
        let slow = json["slowest"].as_array().unwrap();
        let is_long = |call: &&Value| call["duration_ns"].as_u64() > Some(900_000_000);
        assert!(!slow.iter().any(|call| is_long(&call)), "{slow:#?}");
    }
}

#[test]
fn a_process_that_runs_is_watched_with_what_it_starts_and_ctrl_c_ends_it() {
    let mut shell = Command::new("sh");
    let script = "while :; do cat /dev/null; sleep 0.05; done";
    let child = shell.args(["-c", script]).stdout(Stdio::null()).spawn().unwrap();
    let child = Ended(child);
    let process = child.0.id().to_string();
    let arguments = ["diagnose", "calls", "--json", "--pid", &process, "--for", "10m"];
    let watch = command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    std::thread::sleep(Duration::from_secs(3));
    let number = rustix::process::Pid::from_child(&watch);
    rustix::process::kill_process(number, rustix::process::Signal::INT).unwrap();
    let ran = Ran::new(&watch.wait_with_output().unwrap());
    assert!(begun.elapsed() < Duration::from_mins(1));
    let Some((_, json)) = reported(&ran) else { return };
    let names: Vec<&str> = json["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    for name in ["sh", "cat", "sleep"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    assert!(names.iter().all(|name| !name.is_empty()), "{names:?}");
}

#[test]
fn what_cannot_be_followed_is_refused_in_a_line() {
    run(&["diagnose", "calls", "--pid", "999999999"]).is_refused("there is no process 999999999");
    run(&["diagnose", "calls", "--cgroup", "/nonexistent"]).is_refused("/nonexistent");
    run(&["diagnose", "calls", "--unit", "no-such.service"]).is_refused("no-such.service");
    assert_eq!(run(&["diagnose", "calls", "--pid", "1", "--", "true"]).code, Some(2));
    if is_root() {
        let ran = run(&["diagnose", "calls", "--", "/nonexistent"]);
        if !ran.err.contains("cannot follow") {
            ran.is_refused("cannot start /nonexistent");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(ran) = run_unprivileged(folder.path(), &["diagnose", "calls", "--for", "1s"]) else {
        return;
    };
    ran.is_refused("which root has outside of a container");
}

#[test]
fn a_page_has_the_findings_and_what_was_called() {
    let folder = folder_on_disk();
    let page = folder.path().join("calls.html");
    let arguments = ["diagnose", "calls", "--html", page.to_str().unwrap(), "--", "ls", "/"];
    let ran = run(&arguments);
    if ran.err.contains("cannot follow system calls") {
        return println!("not run: {}", ran.err);
    }
    let html = fs::read_to_string(&page).unwrap();
    for words in ["Diagnosis of system calls", "What was called", "getdents64", "<svg "] {
        assert!(html.contains(words), "{words} in {html}");
    }
    assert!(ran.out.contains("System calls") && Path::new("/").exists(), "{ran:?}");
    let again = run(&arguments);
    again.is_refused("--force");
}
