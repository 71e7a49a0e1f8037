//! `--remote`: what a service answers is shown as what this machine answers, byte for byte; who may
//! ask, what is refused, connections that break, and services that are hostile.
//!
//! What differs by nature: who made an extract and when, its seal, and that the service bounds its
//! bytes (`limit_bytes`).

mod broken;
mod hostile;

use std::fs;

use serde_json::Value;

use super::Served;
use super::doors::Certificates;
use crate::machine::{Ran, Volume, command, run, write_key};

/// A service over two volumes, with TLS, and what a client needs.
struct Remote {
    served: Served,
    certificates: Certificates,
    second: String,
    token: String,
}

impl Remote {
    /// `None` with a printed reason where there are no certificates.
    fn new() -> Option<Self> {
        let volume = Volume::recorded();
        let certificates = Certificates::new(&volume)?;
        let second = volume.file("second");
        run(&["create", &second, "--size", "64M", "--piece", "256K", "--sparse"]).done();
        let dns = concat!(env!("CARGO_MANIFEST_DIR"), "/demo/dns.pcap");
        let words = ["record", &second, "--pool", "4M", "--index-dir", &volume.file("i2")];
        run(&[&words[..], &["--read", dns]].concat()).done();
        let mut flags = certificates.flags();
        flags.push(second.clone());
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let served = Served::with(volume, &flags);
        let token = served.token("all", "sessions,extract");
        let file = served.volume.file("token");
        write_key(&file, &token);
        Some(Self { served, certificates, second, token: file })
    }

    fn url(&self) -> String {
        format!("https://{}", self.served.address)
    }

    /// The same words, of the volume of this path, here and there.
    fn both(&self, verb: &str, name: &str, words: &[&str]) -> (Ran, Ran) {
        let path = if name == "volume" { &self.served.volume.path } else { &self.second };
        let index = ["--index-dir", &self.served.volume.index];
        let index: &[&str] = if ["status", "inspect"].contains(&verb) { &[] } else { &index };
        (run(&[&[verb, path], words, index].concat()), self.ask(verb, &[&[name], words].concat()))
    }

    fn ask(&self, verb: &str, words: &[&str]) -> Ran {
        let (url, ca) = (self.url(), self.certificates.file("ca_cert"));
        let trust = ["--remote", &url, "--remote-ca", &ca, "--remote-token-file", &self.token];
        run(&[&trust[..], &[verb], words].concat())
    }

    #[track_caller]
    fn same(&self, verb: &str, name: &str, words: &[&str]) -> Ran {
        let (here, there) = self.both(verb, name, words);
        assert_eq!(there.out, here.out, "{verb} {words:?}: {there:?}");
        assert_eq!(there.err, here.err, "{verb} {words:?}");
        assert_eq!(there.code, here.code, "{verb} {words:?}");
        there
    }
}

#[test]
fn sessions_of_a_service_are_shown_as_those_of_this_machine() {
    let Some(remote) = Remote::new() else { return };
    let mut sessions = 0;
    for name in ["volume", "second"] {
        for words in [
            &[][..],
            &["--json"],
            &["--csv"],
            &["port", "53", "--json"],
            &["tcp and bytes > 1000"],
            &["--limit", "3"],
            &["--limit", "3", "--json", "udp"],
            &["--limit", "1"],
            &["--limit", "0"],
            &["--limit", "0", "--json", "--sort", "start_ns:desc"],
            &["--limit", "0", "--sort", "bytes"],
            &["--limit", "16", "port", "53"],
            &["--sort", "bytes:desc"],
            &["--sort", "bytes:desc", "--limit", "5", "--csv"],
            &["--sort", "sni", "--json"],
            &["--sort", "start_ns:desc", "--limit", "4"],
            &["--sort", "start_ns:desc", "--json"],
            &["--columns", "start,resp_ip,sni,app_detail,name"],
            &["--columns", "start,resp_ip,proto_name,tls_cipher,port", "--json"],
            &["--columns", "sni,bytes", "--csv", "--sort", "bytes"],
            &["--top", "app"],
            &["--top", "resp_ip", "--by", "sessions", "--limit", "2", "--json"],
            &["--top", "sni", "--csv", "app tls"],
            &["host 1.2.3.4"],
            &["interface_name absent"],
            &["recording nothing"],
            &["after 2099-01-01T00:00:00Z"],
            &["before 2001-01-01T00:00:00Z", "--json"],
        ] {
            sessions += remote.same("find", name, words).out.lines().count();
        }
    }
    assert!(sessions > 100, "{sessions}");
    let wrong = remote.same("find", "volume", &["port 53 and sn = 5"]);
    assert!(wrong.code == Some(2) && wrong.err.contains('^'), "{wrong:?}");
    for words in [["--sort", "nothing"], ["--columns", "nothing"], ["--top", "nothing"]] {
        assert_eq!(remote.same("find", "volume", &words).code, Some(2));
    }
}

#[test]
fn how_volumes_stand_is_shown_as_on_this_machine() {
    let Some(remote) = Remote::new() else { return };
    for name in ["volume", "second"] {
        for words in [&[][..], &["--json"]] {
            let there = remote.same("status", name, words).done();
            assert!(there.out.contains("whole"), "{there:?}");
        }
    }
}

#[test]
fn what_a_volume_holds_is_shown_as_on_this_machine() {
    let Some(remote) = Remote::new() else { return };
    for name in ["volume", "second"] {
        for words in [&[][..], &["--json"], &["--map"], &["--map", "--json"]] {
            let there = remote.same("inspect", name, words).done();
            assert!(there.out.contains("slots"), "{there:?}");
        }
    }
    remote.ask("inspect", &["volume", "--map-svg", "x.svg"]).fails_with(2, "--map-svg");
    for words in [["volume", "--member=x"], ["volume", "second"]] {
        let ran = remote.ask("inspect", &words);
        assert!(ran.code == Some(2) && ran.err.starts_with("error: "), "{ran:?}");
    }
}

#[test]
fn events_of_a_log_tag_the_sessions_of_a_service() {
    let Some(remote) = Remote::new() else { return };
    let volume = &remote.served.volume;
    let index = ["--index-dir", &*volume.index];
    let words = ["find", &volume.path, "port 53", "--json", "--limit", "3"];
    let found = run(&[&words[..], &index].concat()).out;
    let log = volume.file("conn.log");
    let line = |line: &str| {
        let session: Value = serde_json::from_str(line).unwrap();
        let seconds = session["start_ns"].as_i64().unwrap() / 1_000_000_000;
        serde_json::json!({
            "ts": seconds,
            "uid": "x",
            "id.orig_h": session["orig_ip"], "id.orig_p": session["orig_port"],
            "id.resp_h": session["resp_ip"], "id.resp_p": session["resp_port"],
            "proto": if session["proto"] == 17 { "udp" } else { "tcp" },
            "note": "Scan::Port_Scan", "msg": "x",
        })
        .to_string()
            + "\n"
    };
    fs::write(&log, found.lines().map(line).collect::<String>()).unwrap();
    let there = remote.same("tag", "volume", &["--log", &log, "--all-events"]).done();
    assert_eq!(there.out.lines().count(), 3, "{there:?}");
    let folder = volume.file("holds");
    let held = remote.ask("tag", &["volume", "--log", &log, "--hold-dir", &folder]);
    held.fails_with(2, "--hold-dir");
}

/// A manifest without what differs by nature.
fn comparable(path: &str) -> Value {
    let mut manifest: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let object = manifest.as_object_mut().unwrap();
    for name in ["made_ns", "made_by", "seal"] {
        assert!(object.remove(name).is_some(), "{name}");
    }
    let request = object["request"].as_object_mut().unwrap();
    if request.get("limit_bytes") == Some(&Value::from(64_u64 << 30)) {
        request.remove("limit_bytes");
    }
    manifest
}

#[test]
fn packets_of_a_service_are_those_of_this_machine_with_statement_and_manifest() {
    let Some(remote) = Remote::new() else { return };
    let file = |name: &str| remote.served.volume.file(name);
    let (here, there) = (file("here/x.pcapng"), file("there/x.pcapng"));
    for folder in ["here", "there"] {
        fs::create_dir(file(folder)).unwrap();
    }
    let mut bytes = 0;
    for words in [
        &["port 53"][..],
        &[""],
        &["tcp", "--limit-packets", "3"],
        &["", "--limit", "2"],
        &["port 53", "--comments"],
        &["port 53", "--around", "1s"],
        &["tcp", "--payload", "re:(?i)get /"],
        &["tcp", "--payload", "hex:16 03", "--whole-sessions"],
        &["after 2001-01-01T00:00:00Z", "--only-range"],
        &["host 1.2.3.4"],
        &["port 53", "--limit-bytes", "300"],
    ] {
        let run_into = |path: &str, verb: &[&str], more: &[&str]| {
            run(&[verb, words, &["-w", path, "--force"], more].concat())
        };
        let volume = &remote.served.volume;
        let index = ["--index-dir", &volume.index];
        let expected = run_into(&here, &["extract", &volume.path], &index);
        let (url, ca) = (remote.url(), remote.certificates.file("ca_cert"));
        let trust = ["--remote-ca", &ca, "--remote-token-file", &remote.token];
        let came = run_into(&there, &["extract", "volume", "--remote", &url], &trust);
        assert_eq!((came.code, &came.err), (expected.code, &expected.err), "{words:?}");
        let (own, theirs) = (fs::read(&here).unwrap(), fs::read(&there).unwrap());
        assert!(own == theirs, "{words:?}: {} and {} bytes", own.len(), theirs.len());
        bytes += theirs.len();
        let json = format!("{there}.json");
        assert_eq!(comparable(&json), comparable(&format!("{here}.json")), "{words:?}");
        run(&["verify-extract", &json, &there]).done();
        let piped = remote.ask("extract", &[&["volume"], words, &["-w", "-"]].concat());
        assert_eq!(piped.out, String::from_utf8_lossy(&own), "{words:?}");
        assert_eq!((piped.code, &piped.err), (came.code, &came.err));
    }
    assert!(bytes > 50_000, "{bytes}");
    let key = file("key");
    run(&["keygen", &key]).done();
    let words = ["volume", "port 53", "-w", &there, "--force", "--sign", &key];
    remote.ask("extract", &words).done();
    let (json, public) = (format!("{there}.json"), format!("{key}.pub"));
    run(&["verify-extract", &json, &there, "--public-key", &public]).done();
    remote.ask("extract", &words[..4]).is_refused("exists already; --force replaces it");
}

#[cfg(feature = "sql")]
#[test]
fn rows_of_a_service_are_those_of_this_machine() {
    let Some(remote) = Remote::new() else { return };
    for query in [
        "SELECT app, count(*) AS n, sum(orig_frame_bytes) FROM sessions GROUP BY app ORDER BY app",
        "SELECT * FROM sessions ORDER BY start_ns",
        "SELECT * FROM gaps",
        "SELECT start_ns, dns_names, NULL AS x, 1.5 AS y FROM sessions ORDER BY start_ns LIMIT 4",
        "DESCRIBE sessions",
        "SELECT 1 WHERE false",
    ] {
        for form in [&[][..], &["--json"], &["--csv"]] {
            remote.same("sql", "volume", &[&[query], form].concat());
        }
    }
    for wrong in ["SELECT nothing FROM sessions", "SELEC 1", "DROP TABLE sessions"] {
        assert_eq!(remote.same("sql", "volume", &[wrong]).code, Some(2));
    }
    let file = remote.served.volume.file("rows.parquet");
    let words = ["volume", "SELECT sni FROM sessions", "--parquet", &file];
    let written = remote.ask("sql", &words);
    assert!(written.err.contains(" rows, "), "{written:?}");
    let read = run(&["sql", &file, "SELECT count(*) AS n FROM sessions", "--json"]).done();
    assert!(read.out.starts_with("{\"n\":"), "{read:?}");
}

#[test]
fn a_volume_is_named_as_the_service_names_it() {
    let Some(remote) = Remote::new() else { return };
    let has = "has: volume, second";
    remote.ask("find", &[]).fails_with(2, has);
    remote.ask("find", &["port", "53"]).fails_with(2, "\"port\" is no volume of");
    remote.ask("status", &["third"]).fails_with(2, has);
    let id = run(&["status", &remote.second, "--json"]).done();
    let id: Value = serde_json::from_str(&id.out).unwrap();
    let by_id = remote.ask("find", &[id["volume_id"].as_str().unwrap(), "--json"]);
    assert_eq!(by_id.out, remote.ask("find", &["second", "--json"]).out);
    // Of one volume its name may be left out.
    let served = Served::over(Volume::recorded());
    let (url, token) = (format!("http://{}", served.address), served.token("a", "sessions"));
    let ask = |words: &[&str]| {
        let mut command = command(&[&["--remote", &url], words].concat());
        Ran::new(&command.env("WIRESPOOL_TOKEN", &token).output().unwrap())
    };
    let named = ask(&["find", "volume", "port", "53", "--json"]);
    assert!(!named.out.is_empty(), "{named:?}");
    assert_eq!(ask(&["find", "port", "53", "--json"]).out, named.out);
    assert_eq!(ask(&["find", "", "--json"]).out, ask(&["find", "--json"]).out);
    run(&["find", ""]).fails_with(2, "which volume?");
    let long = |count| format!("host 1.2.3.4{}", " or host 1.2.3.4".repeat(count));
    ask(&["find", &long(2500)]).fails_with(2, "too long");
    ask(&["find", &long(6000)]).fails_with(2, "too long");
    assert!(ask(&["status"]).done().out.contains("whole"));
    ask(&["status", "other"]).fails_with(2, "\"other\" is no volume of");
}

#[test]
fn who_asks_shows_a_credential_and_believes_certificates() {
    let Some(remote) = Remote::new() else { return };
    let (url, ca) = (remote.url(), remote.certificates.file("ca_cert"));
    let find = |words: &[&str]| run(&[&["--remote", &url, "find", "volume"], words].concat());
    find(&["--remote-ca", &ca]).is_refused("a credential is needed");
    // Nobody has vouched for it.
    find(&["--remote-token-file", &remote.token]).is_refused("is not trusted");
    let other = remote.certificates.file("foreign_cert");
    find(&["--remote-ca", &other, "--remote-token-file", &remote.token])
        .is_refused("is not trusted");
    // One that is its own authority, as openssl makes it without further words.
    let volume = Volume::recorded();
    let tokens = volume.file("tokens");
    write_key(&tokens, "");
    let key = remote.certificates.file("foreign_key");
    let own = Served::with(volume, &["--tls-cert", &other, "--tls-key", &key]);
    let url = format!("https://{}", own.address);
    let trust = ["--remote-ca", &other, "--remote-token-file", &remote.token];
    let ran = run(&[&["--remote", &url, "find", "volume"], &trust[..]].concat());
    ran.is_refused("one of an authority");
    assert!(!ran.err.contains("OtherError"), "{ran:?}");
    let open = remote.served.volume.file("open");
    fs::copy(&remote.token, &open).unwrap();
    crate::machine::open_to_all(std::path::Path::new(&open));
    find(&["--remote-ca", &ca, "--remote-token-file", &open]).is_refused("others may read");
    write_key(&open, "\u{1b}[31m\n");
    find(&["--remote-ca", &ca, "--remote-token-file", &open]).is_refused("the token is none");
    let poor = remote.served.token("poor", "");
    write_key(&open, &poor);
    find(&["--remote-ca", &ca, "--remote-token-file", &open]).is_refused("lacks the scope");
    // A certificate of a client.
    let tokens = remote.served.volume.file("tokens");
    let lines = fs::read_to_string(&tokens).unwrap();
    write_key(&tokens, &(lines + "sensor:sessions:certificate\n"));
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let [cert, key] = ["client_cert", "client_key"].map(|name| remote.certificates.file(name));
    let shown = ["--remote-ca", &ca, "--remote-cert", &cert, "--remote-key", &key, "--json"];
    let by_certificate = find(&shown);
    assert_eq!(by_certificate.out, remote.ask("find", &["volume", "--json"]).out);
    find(&["--remote-cert", &cert]).fails_with_usage();
    // The name in a certificate counts, too.
    let elsewhere = url.replace("127.0.0.1", "127.0.0.2");
    let ran = run(&["--remote", &elsewhere, "find", "--remote-ca", &ca]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
}

#[test]
fn what_means_nothing_there_is_refused_by_name() {
    // Nothing is asked: nobody is there.
    let url = ["--remote", "http://127.0.0.1:9"];
    let ran = |words: &[&str]| run(&[&url[..], words].concat());
    for flag in [
        &["--plot"][..],
        &["--explain"],
        &["--index-dir", "x"],
        &["--member", "x"],
        &["--keep-sessions", "1d"],
        &["--vlan-in-key"],
        &["--identity", "x"],
    ] {
        ran(&[&["find", "v", "tcp"], flag].concat()).fails_with(2, flag[0]);
    }
    for flag in [
        &["--format", "pcap"][..],
        &["--split", "sessions"],
        &["--explain"],
        &["--anonymise", "x"],
        &["--sessions", "x"],
        &["--mmdb", "x"],
        &["--index-dir", "x"],
    ] {
        let words = [&["extract", "v", "tcp", "-w", "/dev/null/x"], flag].concat();
        ran(&words).fails_with(2, flag[0]);
    }
    ran(&["find", "v"]).is_refused("cannot reach http://127.0.0.1:9");
    for url in ["http://10.0.0.1", "https://a/b", "ftp://a", "https://me:secret@a", "a:1"] {
        let ran = run(&["--remote", url, "find", "v"]);
        ran.fails_with(2, "");
        assert!(!ran.err.contains("lacks"), "{ran:?}");
    }
    for verb in ["record", "verify", "hold"] {
        let ran = ran(&[verb, "v"]);
        assert!(ran.code == Some(2) && ran.err.contains("--remote"), "{ran:?}");
    }
}

impl Ran {
    #[track_caller]
    fn fails_with_usage(&self) {
        assert_eq!(self.code, Some(2), "{self:?}");
    }
}
