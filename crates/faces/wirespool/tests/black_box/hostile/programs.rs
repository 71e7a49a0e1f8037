//! Hostile names through what other programs call, what sends, and what starts programs; and that
//! no verb is forgotten.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{FILE, Hostile, NAME, PROCESS, checks};
use crate::machine::{BINARY, PAIR, Ran, command, enter, run, text, verbs_of, write_key};
use crate::trace::{WORLD, answer, listener_far_away};

/// A name that the kernel takes for an interface: neither blanks nor slashes, and 15 bytes.
const INTERFACE: &str = "=\u{1b}[2J\u{202e}<b>\"";
/// A pair whose taking end has that name, once it is renamed.
const HOSTILE_PAIR: &str = "ip link set lo up; ip link add sender type veth peer name taker; \
                            name=$(printf '=\\033[2J\\342\\200\\256<b>\"'); \
                            ip link set sender up; ip link set taker name \"$name\" && \
                            ip link set \"$name\" up";

#[test]
fn every_verb_of_the_help_is_tried_with_hostile_names() {
    let tried = concat!(include_str!("mod.rs"), include_str!("programs.rs"));
    let verbs = verbs_of(&run(&["--help"]).done().out);
    assert!(verbs.len() > 25, "{verbs:?}");
    let forgotten: Vec<&String> =
        verbs.iter().filter(|verb| !tried.contains(&format!("\"{verb}\""))).collect();
    assert!(forgotten.is_empty(), "no test runs these: {forgotten:?}");
}

#[test]
fn many_services_are_asked_in_the_words_of_anybody() {
    let hostile = Hostile::new();
    let call = |arguments: &[&str]| {
        let ran = run(&[&["fleet"], arguments].concat());
        checks::ran(&format!("fleet {arguments:?}"), &ran);
        ran
    };
    let (file, out) = (hostile.file(FILE), hostile.file("fleet.pcapng"));
    let ask = || {
        for words in [&["find", NAME][..], &["find", "tcp", "--csv"], &["status"]] {
            let ran = call(&[words, &["--fleet", &file]].concat());
            assert_ne!(ran.code, Some(0), "{ran:?}");
        }
        assert_ne!(call(&["extract", "tcp", "-w", &out, "--fleet", &file]).code, Some(0));
        call(&["status", "--json", "--fleet", &file]);
    };
    ask();
    // Nothing listens at this port.
    let nobody = "url = \"http://127.0.0.1:9\"\n";
    for text in [
        NAME.to_owned(),
        format!("[sensor.west]\n{nobody}"),
        format!("[sensor.west]\nurl = '{NAME}'\n"),
        format!("[sensor.west]\n{nobody}token_file = '{FILE}'\n"),
        format!("[sensor.west]\n{nobody}'{NAME}' = 1\n"),
        format!("[sensor.'{NAME}']\n{nobody}"),
    ] {
        std::fs::write(&file, text).unwrap();
        ask();
    }
    let folder = hostile.file("authority");
    call(&["enrol", "init", &folder]).done();
    call(&["enrol", "server", &folder, NAME, "--address", NAME]);
    call(&["enrol", "server", &folder, "west", "--address", NAME]);
    call(&["enrol", "client", &folder, NAME]);
    call(&["enrol", "revoke", &folder, NAME]);
    call(&["enrol", "client", &file, "alice"]);
}

#[test]
fn what_wireshark_calls_is_harmless() {
    let hostile = Hostile::new();
    let call = |arguments: &[&str]| {
        let ran = run(&[&["extcap"], arguments].concat());
        checks::ran(&format!("extcap {arguments:?}"), &ran);
        ran
    };
    let volume = ["--volume", &hostile.path, "--query", NAME];
    call(&[&["--extcap-interfaces"][..], &volume].concat()).done();
    for interface in ["wirespool", "wirespool-live"] {
        let of_interface = ["--extcap-interface", interface];
        for question in ["--extcap-dlts", "--extcap-config"] {
            call(&[&of_interface[..], &[question], &volume].concat()).done();
        }
    }
    let folder = hostile.file("extcap");
    assert!(call(&["--install", &folder]).done().out.contains("wirespool-extcap"));
    let out = hostile.file(FILE);
    let capture = ["--extcap-interface", "wirespool", "--capture", "--fifo", &out];
    let captured = call(&[&capture[..], &["--volume", &hostile.path, "--query", "tcp"]].concat());
    assert!(captured.code == Some(0) && std::fs::metadata(&out).unwrap().len() > 1000);
    let absent = hostile.file("absent");
    for arguments in [
        &["--volume", &absent][..],
        &["--volume", &out],
        &["--volume", &hostile.path, "--query", NAME],
        &["--volume", &hostile.path, "--since", NAME],
        &["--volume", &hostile.path, "--until", NAME],
        &["--volume", &hostile.path, "--extcap-capture-filter", NAME],
    ] {
        assert_ne!(call(&[&capture[..], arguments].concat()).code, Some(0), "{arguments:?}");
    }
    call(&["--extcap-interface", NAME, "--extcap-dlts"]).code.unwrap();
}

#[test]
fn what_scripts_for_stenographer_call_is_harmless() {
    let hostile = Hostile::new();
    let config = hostile.file("config");
    let settings = serde_json::json!({ "Threads": [], "Volume": hostile.path, "x": NAME });
    std::fs::write(&config, settings.to_string()).unwrap();
    let call = |arguments: &[&str]| {
        let mut command = command(arguments);
        let output = command.env("STENOGRAPHER_CONFIG", &config).output().unwrap();
        let (out, err) = (output.stdout, String::from_utf8_lossy(&output.stderr).into_owned());
        checks::terminal(&format!("{arguments:?}"), &err);
        (output.status.code(), out)
    };
    let (code, capture) = call(&["stenocurl", "/query", "-d", "port 80"]);
    assert!(code == Some(0) && capture.len() > 300, "{} bytes", capture.len());
    let (out, absent) = (hostile.file(FILE), hostile.file("absent"));
    assert_eq!(call(&["stenocurl", "/query", "-d", "tcp", "-o", &out]).0, Some(0));
    let limit = format!("Steno-Limit-Packets: {NAME}");
    for arguments in [
        &[NAME, "-d", "tcp"][..],
        &["/query", "-d", NAME],
        &["/query", "-d", "tcp", "-H", &limit],
        &["/query", "-d", "tcp", "-m", NAME],
        &["/query", "-d", "tcp", "-o", &absent, "--volume", &absent],
        &["/query", "-d", "tcp", "-o", &format!("{absent}/out")],
    ] {
        assert_ne!(call(&[&["stenocurl"], arguments].concat()).0, Some(0), "{arguments:?}");
    }
    if Command::new("tcpdump").arg("--version").output().is_err() {
        println!("not run: no tcpdump for stenoread");
        return;
    }
    // What stands on standard output is tcpdump's.
    let (code, lines) = call(&["stenoread", "tcp", "-n", "-q"]);
    assert!(code == Some(0) && !lines.is_empty(), "{code:?}");
    assert_eq!(call(&["stenoread", "--volume", &hostile.path, "tcp", "-w", &out]).0, Some(0));
    for arguments in [&[NAME][..], &["--limit-packets", NAME, "tcp"], &["--volume", &absent, "tcp"]]
    {
        assert_ne!(call(&[&["stenoread"], arguments].concat()).0, Some(0), "{arguments:?}");
    }
    std::fs::write(&config, NAME).unwrap();
    assert_ne!(call(&["stenoread", "tcp"]).0, Some(0));
}

#[test]
fn what_the_service_says_and_answers_is_harmless() {
    let hostile = Hostile::new();
    let (tokens, absent) = (hostile.file("tokens"), hostile.file(FILE));
    let call = |arguments: &[&str]| {
        let ran = run(&[&["serve"], arguments].concat());
        checks::ran(&format!("serve {arguments:?}"), &ran);
        ran
    };
    let create = ["token", "create", NAME, "--token-file", &tokens];
    assert_eq!(call(&create).code, Some(2));
    assert_ne!(call(&[&absent, "--token-file", &absent]).code, Some(0));
    write_key(&tokens, &format!("{NAME}:sessions:0"));
    assert_eq!(call(&[&hostile.path, "--token-file", &tokens]).code, Some(3));
    write_key(&tokens, "");
    for flags in [["--listen", NAME], ["--tls-cert", NAME], ["--max-time", NAME]] {
        let words = [&[&*hostile.path, "--token-file", &tokens], &flags[..]].concat();
        assert_eq!(call(&words).code, Some(2), "{flags:?}");
    }
    let tls = ["--tls-cert", &absent, "--tls-key", &absent];
    let words = [&[&*hostile.path, "--token-file", &tokens, "--listen", "127.0.0.1:0"], &tls[..]];
    assert_eq!(call(&words.concat()).code, Some(3));
}

#[test]
fn what_setup_says_is_harmless() {
    let hostile = Hostile::new();
    let folder = hostile.file(FILE);
    let settled = ["--yes", "--dry-run", "--qualify", "none", "--start", "no"];
    for arguments in [
        &["--interface", NAME, "--folder", &folder, "--size", "100M"][..],
        &["--folder", &folder, "--size", "100M", "--name", NAME],
        &["--folder", &folder, "--size", "100M", "--config", &folder],
        &["--folder", &hostile.path, "--size", "100M", "--config", &hostile.file("absent")],
        &["--member", &folder],
        &["--member", &hostile.path, "--parity", NAME],
    ] {
        checks::ran(
            &format!("setup {arguments:?}"),
            &run(&[&["setup"], arguments, &settled].concat()),
        );
    }
    assert!(!Path::new(&folder).exists(), "a dry run makes nothing");
}

#[test]
fn what_is_read_of_a_hostile_audit_is_harmless() {
    let hostile = Hostile::new();
    let file = hostile.file(&format!("{FILE}.jsonl"));
    let line = serde_json::json!({
        "prev": "0".repeat(64), "seq": 1, "time": NAME, "event": "request", "number": 1,
        "from": NAME, "credential": NAME, "kind": "token", "method": NAME, "path": NAME,
        "parameters": NAME, "query": NAME, "volume": NAME, "range": [NAME, null], "status": 200,
        "bytes": 1, "ended": "cut", "cut_by": NAME, "sha256": NAME, "blake3": NAME, "took_ms": 1,
    });
    for text in [format!("{line}\n"), format!("{NAME}\n{line}"), NAME.repeat(10_000)] {
        write_key(&file, &text);
        for arguments in [
            &["verify", &file][..],
            &["verify", &file, "--head", NAME],
            &["show", &file],
            &["show", &file, "--credential", NAME, "--path", NAME],
            &["show", &file, "--since", NAME],
            &["show", "--head", &file],
            &["show", "--json", &file],
        ] {
            checks::ran(&format!("audit {arguments:?}"), &run(&[&["audit"], arguments].concat()));
        }
    }
    assert_ne!(run(&["audit", "verify", &file]).code, Some(0));
}

#[test]
fn what_is_sent_of_hostile_files_and_volumes_is_told_harmless() {
    let test = "hostile::programs::what_is_sent_of_hostile_files_and_volumes_is_told_harmless";
    if !enter(PAIR, test) {
        return;
    }
    let hostile = Hostile::new();
    let (capture, index) = (hostile.file(&format!("{FILE}.pcapng")), hostile.file("index"));
    let from_volume = [&hostile.path, "tcp", "--index-dir", &index];
    for from in [&[&*capture][..], &from_volume] {
        for form in [&[][..], &["--json"]] {
            let replay = ["--interface", "sender", "--pps", "1000"];
            let arguments = [&["replay"], from, &replay, form].concat();
            let ran = run(&arguments).done();
            checks::ran(&format!("{arguments:?}"), &ran);
            if !form.is_empty() {
                checks::json("replay --json", &ran.out);
            }
        }
    }
    // It makes its own links.
    for form in [&[][..], &["--json"]] {
        let prove = ["prove", "--frames", &capture, "--pps", "2000", "--packets", "500"];
        let ran = run(&[&prove[..], form].concat());
        checks::ran("prove", &ran);
        if ran.code == Some(3) {
            println!("not run: prove: {}", ran.err.trim());
        } else if !form.is_empty() {
            checks::json("prove --json", &ran.out);
        }
    }
}

#[test]
fn what_a_program_of_a_hostile_name_sends_is_told_harmless() {
    let test = "hostile::programs::what_a_program_of_a_hostile_name_sends_is_told_harmless";
    if !enter(WORLD, test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| text(folder.path().join(name));
    let (program, out) = (path(PROCESS), path(&format!("{FILE}.pcapng")));
    assert!(Command::new("cp").args(["/bin/bash", &program]).status().unwrap().success());
    for form in [&[][..], &["--json"]] {
        let listener: TcpListener = listener_far_away();
        let port = listener.local_addr().unwrap().port();
        let server = answer(listener);
        let script = format!(
            "exec 3<>/dev/tcp/192.0.2.2/{port}; read -t 0.1 < /dev/zero; echo >&3; read line <&3"
        );
        let trace = [&["trace", "-o", &out, "--force"], form, &["--", &program, "-c", &script]];
        let ran = run(&trace.concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        server.join().unwrap();
        checks::ran("trace", &ran);
        assert!(ran.err.contains("INJ"), "the name is in it: {ran:?}");
        if !form.is_empty() {
            checks::json("trace --json", &ran.err);
        }
    }
    checks::ran("trace", &run(&["trace", "-o", &out, "--", &program]));
}

#[test]
fn an_interface_of_a_hostile_name_is_told_harmless() {
    let test = "hostile::programs::an_interface_of_a_hostile_name_is_told_harmless";
    if !enter(HOSTILE_PAIR, test) {
        return;
    }
    let hostile = Hostile::new();
    let index = hostile.file("index");
    let within = |seconds: &str, arguments: &[&str]| {
        let mut command = Command::new("timeout");
        command.args(["--foreground", "--preserve-status", "--signal=INT", seconds, BINARY]);
        let ran = Ran::new(&command.args(arguments).stdin(Stdio::null()).output().unwrap());
        checks::ran(&format!("{arguments:?}"), &ran);
        if arguments.contains(&"--json") && !ran.out.is_empty() {
            checks::json(&format!("{arguments:?}"), &ran.out);
        }
        ran
    };
    let record = ["record", &hostile.path, "--pool", "4M", "--index-dir", &index];
    for form in [&[][..], &["--json"]] {
        let ran = within("3", &[&record, &["--interface", INTERFACE][..], form].concat()).done();
        assert!((ran.out + &ran.err).contains("<b>"), "the name is in it");
    }
    for arguments in [
        &["inspect", &hostile.path][..],
        &["inspect", &hostile.path, "--json"],
        &["find", &hostile.path, "--index-dir", &index],
        &["top", INTERFACE, "--once", "--for", "1s"],
        &["top", INTERFACE, "--once", "--for", "1s", "--json"],
        &["diagnose", "host", "--for", "1s"],
        &["diagnose", "host", "--for", "1s", "--json"],
        &["replay", &hostile.path, "tcp", "--interface", INTERFACE, "--top"],
    ] {
        within("20", arguments).code.unwrap();
    }
}

#[test]
fn a_demo_in_a_folder_of_a_hostile_name_is_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let kept = text(folder.path().join(FILE));
    let ran = run(&["demo", "--keep", &kept]).done();
    checks::ran("demo", &ran);
    assert!(ran.out.contains("INJECTED") && Path::new(&kept).is_dir(), "{ran:?}");
    let again = run(&["demo", "--keep", &kept]);
    checks::ran("demo", &again);
    assert_ne!(again.code, Some(0), "it must be new");
}
