//! A made-up service that answers as no service does: each time one clear line and an exit code,
//! and never an answer that looks whole; and clients that leave or are slow.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::super::until;
use crate::machine::{BINARY, Ran, command, run};

/// The lines of two sessions.
const SESSIONS: [&str; 2] = [
    r#"{"session_id":"7.0-1","proto":17,"session_start_ns":5,"start_ns":5,"end_ns":6}"#,
    r#"{"session_id":"7.0-2","proto":17,"session_start_ns":6,"start_ns":6,"end_ns":7}"#,
];
const STATEMENT: &str = r#"{"state":"complete","text":"2 sessions, complete","completeness":{}}"#;

type Reply = dyn Fn(&str, &mut TcpStream) -> std::io::Result<()> + Send + Sync;

/// Answers to paths as a test wants, and counts those that were sent to the end.
struct MadeUp {
    url: String,
    taken: Arc<AtomicUsize>,
}

impl MadeUp {
    /// What says who it is and how an answer ended is as it should be where `reply` leaves it.
    fn new(
        reply: impl Fn(&str, &mut TcpStream) -> Option<std::io::Result<()>> + Send + Sync + 'static,
    ) -> Self {
        let all = move |path: &str, stream: &mut TcpStream| match reply(path, stream) {
            Some(done) => done,
            None if path.ends_with("/whoami") => {
                stream.write_all(&json(r#"{"volumes":[{"name":"v","id":"0"}]}"#))
            }
            None if path.ends_with("/manifest") => stream.write_all(&problem(404, "not-found")),
            None if path.contains("/answers/") => stream.write_all(&json(&format!(
                r#"{{"state":"done","count":2,"statement":{STATEMENT}}}"#
            ))),
            None => stream.write_all(&problem(500, "unreadable")),
        };
        Self::serve(Arc::new(all))
    }

    fn serve(reply: Arc<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let taken = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&taken);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (reply, counted) = (Arc::clone(&reply), Arc::clone(&counted));
                thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                    let Some(Ok(line)) = lines.next() else { return };
                    while lines.next().is_some_and(|line| line.is_ok_and(|it| !it.is_empty())) {}
                    let path = line.split([' ', '?']).nth(1).unwrap_or_default().to_owned();
                    drop(reply(&path, &mut stream));
                    counted.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Self { url, taken }
    }

    /// Of the sessions, whatever is asked.
    fn of_sessions(
        reply: impl Fn(&mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self::new(move |path, stream| path.ends_with("/sessions").then(|| reply(stream)))
    }

    fn find(&self, words: &[&str]) -> Ran {
        run(&[&["--remote", &self.url, "--remote-timeout", "1s", "find", "v"], words].concat())
    }
}

fn with_length(kind: &str, body: &str, status: &str, more: &str) -> Vec<u8> {
    let len = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\n{more}\r\n{body}"
    )
    .into_bytes()
}

fn json(body: &str) -> Vec<u8> {
    with_length("application/json", body, "200 OK", "")
}

fn problem(status: u16, word: &str) -> Vec<u8> {
    let body = format!(
        r#"{{"type":"urn:wirespool:problem:{word}","title":"so it is","status":{status},
        "detail":"\u001b[31m of \u202e it\nINJECTED"}}"#
    );
    with_length("application/problem+json", &body, &format!("{status} No"), "")
}

/// An answer in chunks that names its id.
fn chunks(kind: &str, chunks: &[&[u8]], has_end: bool) -> Vec<u8> {
    let mut bytes = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\
         Wirespool-Answer: a1\r\n\r\n"
    )
    .into_bytes();
    for chunk in chunks {
        bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
        bytes.extend(*chunk);
        bytes.extend(b"\r\n");
    }
    bytes.extend(if has_end { &b"0\r\n\r\n"[..] } else { b"" });
    bytes
}

const LINES: &str = "application/x-ndjson";

fn lines(rows: &[&str], has_end: bool) -> Vec<u8> {
    chunks(LINES, &[(rows.join("\n") + "\n").as_bytes()], has_end)
}

/// One line on standard error, harmless, with these words.
#[track_caller]
fn check(ran: &Ran, code: i32, words: &str) {
    assert_eq!(ran.code, Some(code), "{words:?}: {ran:?}");
    assert_eq!(ran.err.lines().count(), 1, "{words:?}: {ran:?}");
    assert!(ran.err.contains(words), "{words:?}: {ran:?}");
    assert!(!ran.err.contains('\u{1b}') && !ran.err.contains('\u{202e}'), "{ran:?}");
    assert!(!ran.out.contains('\u{1b}'), "{ran:?}");
}

#[test]
fn a_service_that_answers_as_it_should_is_believed() {
    let made_up = MadeUp::of_sessions(|stream| stream.write_all(&lines(&SESSIONS, true)));
    let ran = made_up.find(&["--json"]).done();
    assert_eq!((ran.out.lines().count(), &*ran.err), (2, ""), "{ran:?}");
}

#[test]
fn answers_that_break_off_or_stall_are_no_answers() {
    type Case = (&'static str, fn(&mut TcpStream) -> std::io::Result<()>);
    let stall = |stream: &mut TcpStream| stream.read(&mut [0; 1]).map(drop);
    let stall: fn(&mut TcpStream) -> std::io::Result<()> = stall;
    let cases: [Case; 6] = [
        ("broke the answer off", |_| Ok(())),
        ("broke the answer off", |stream| stream.write_all(&lines(&SESSIONS, false))),
        ("broke the answer off", |stream| {
            stream.write_all(&with_length(LINES, SESSIONS[0], "200 OK", "")[..150])
        }),
        ("has said nothing for", stall),
        ("has said nothing for", |stream| {
            stream.write_all(&lines(&SESSIONS, false))?;
            stream.read(&mut [0; 1]).map(drop)
        }),
        // A heading that never ends, byte by byte.
        ("has said nothing for", |stream| {
            stream.write_all(b"HTTP/1.1 200 OK\r\nX: ")?;
            loop {
                stream.write_all(b"x")?;
                thread::sleep(Duration::from_millis(100));
            }
        }),
    ];
    for (words, case) in cases {
        let ran = MadeUp::of_sessions(case).find(&["--json"]);
        check(&ran, 3, words);
    }
    // A service that answers questions for its health and nothing else is given up, too.
    let healthy = MadeUp::new(move |path, stream| match path {
        "/api/v1/health" => Some(stream.write_all(&json("{\"ok\":true}"))),
        _ => Some(stall(stream)),
    });
    check(&healthy.find(&[]), 3, "has said nothing for 1 s");
}

#[test]
fn answers_of_another_kind_are_no_answers() {
    let endless = |stream: &mut TcpStream, text: &[u8]| -> std::io::Result<()> {
        loop {
            stream.write_all(text)?;
        }
    };
    let page = with_length("text/html", "<html>", "200 OK", "");
    let moved = with_length("text/html", "", "302 Found", "Location: https://evil\u{1b}/\r\n");
    let moved_well = with_length("text/html", "", "307 Go", "Location: https://evil.example/\r\n");
    let bare = format!("HTTP/1.1 200 OK\r\nContent-Type: {LINES}\r\n\r\n{}\n", SESSIONS[0]);
    let not_ours = lines(&["{\"session_id\":\"x\"}"], true);
    let nonsense = lines(&["\u{1b}[2J{"], true);
    let cases: [(&str, Vec<u8>); 9] = [
        ("its status is 502", with_length("text/html", "x", "502 Bad", "")),
        ("\"text/html\" came", page),
        ("does not answer as wirespool serve does", moved),
        ("redirects to https://evil.example/, which is not followed", moved_well),
        ("its answer has no length", bare.into_bytes()),
        ("a session that is none: it has no", not_ours),
        ("a session that is none: it is no object", nonsense),
        ("does not answer as wirespool serve does", b"220 mail.example ESMTP\r\n\r\n".to_vec()),
        ("its last line has no end", chunks(LINES, &[SESSIONS[0].as_bytes()], true)),
    ];
    for (words, bytes) in cases {
        let ran = MadeUp::of_sessions(move |stream| stream.write_all(&bytes)).find(&["--json"]);
        check(&ran, 3, words);
    }
    let headers = MadeUp::of_sessions(move |stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
        endless(stream, b"X-More: and more\r\n")
    });
    check(&headers.find(&[]), 3, "does not answer as wirespool serve does");
    let line = MadeUp::of_sessions(move |stream| {
        stream.write_all(&chunks(LINES, &[], false))?;
        endless(stream, &[&b"10000\r\n"[..], &vec![b'x'; 0x10000], b"\r\n"].concat())
    });
    check(&line.find(&[]), 3, "one of its lines is too long");
    let document = MadeUp::new(move |_, stream| {
        Some(stream.write_all(&chunks("application/json", &[], false)).and_then(|()| {
            endless(stream, &[&b"10000\r\n"[..], &vec![b' '; 0x10000], b"\r\n"].concat())
        }))
    });
    check(&document.find(&[]), 3, "it says more than");
}

#[test]
fn a_problem_is_one_line_with_its_exit_code() {
    for (status, word, code) in [
        (500, "unreadable", 3),
        (500, "damaged", 4),
        (401, "no-credential", 3),
        (400, "wrong-parameter", 2),
        (503, "busy", 3),
        (404, "not-found", 3),
    ] {
        let made_up = MadeUp::of_sessions(move |stream| stream.write_all(&problem(status, word)));
        let ran = made_up.find(&[]);
        check(&ran, code, "so it is: ");
        assert!(ran.err.contains("INJECTED") && ran.out.is_empty(), "{ran:?}");
    }
    let empty = with_length("application/problem+json", "{}", "500 No", "");
    let made_up = MadeUp::of_sessions(move |stream| stream.write_all(&empty));
    check(&made_up.find(&[]), 3, "its status is 500");
}

#[test]
fn statements_that_do_not_fit_their_answers_are_not_believed() {
    let ended = |said: &'static str| {
        MadeUp::new(move |path, stream| match path {
            "/api/v1/sessions" => Some(stream.write_all(&lines(&SESSIONS, true))),
            path if path.contains("/answers/") => Some(stream.write_all(&json(said))),
            _ => None,
        })
    };
    for (said, words) in [
        (r#"{"state":"going"}"#, "it says itself that it is not done"),
        (r#"{"state":"broken_off","count":2}"#, "it says itself that it is not done"),
        (
            r#"{"state":"done","count":3,"statement":
            {"state":"complete","text":"","completeness":{}}}"#,
            "2 came, and it says that it sent 3",
        ),
        (
            r#"{"state":"done","count":2,"statement":
            {"state":"splendid","text":"","completeness":{}}}"#,
            "its statement is none",
        ),
        (r#"{"state":"done","count":2,"statement":{"state":"complete"}}"#, "missing field"),
        ("[]", "/api/v1/answers/a1"),
    ] {
        check(&ended(said).find(&["--json"]), 3, words);
    }
    // More than was asked for.
    let made_up = MadeUp::of_sessions(|stream| stream.write_all(&lines(&SESSIONS, true)));
    check(&made_up.find(&["--limit", "1", "--json"]), 3, "more sessions than were asked for");
    // What it says counts as it is: a limit excuses only what its limit has cut.
    let incomplete = ended(
        r#"{"state":"done","count":2,"statement":{"state":"incomplete","text":"a\u001b[2Jb",
        "state_within_limit":"complete","completeness":{}}}"#,
    );
    check(&incomplete.find(&["--json"]), 1, "a\\u{1b}[2Jb");
    assert_eq!(incomplete.find(&["--json", "--limit", "2"]).code, Some(0));
}

#[test]
fn packets_that_are_not_those_of_their_manifest_make_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.pcapng").to_str().unwrap().to_owned();
    let manifest = r#"{
  "version": 2,
  "complete": true,
  "outputs": [
    {"packets": 1, "bytes": 4, "sha256": "00", "blake3": "00"}
  ],
  "seal": {"blake3": "00"}
}
"#;
    let made_up = MadeUp::new(move |path, stream| match path {
        "/api/v1/extract" => {
            Some(stream.write_all(&chunks("application/x-pcapng", &[b"abcd"], true)))
        }
        path if path.ends_with("/manifest") => Some(stream.write_all(&json(manifest))),
        _ => None,
    });
    let ran = run(&["--remote", &made_up.url, "extract", "v", "tcp", "-w", &file]);
    check(&ran, 3, "its manifest is not that of the bytes that came");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
    // Where it keeps none that is said, and is no clean end.
    let made_up = MadeUp::new(move |path, stream| match path {
        "/api/v1/extract" => {
            Some(stream.write_all(&chunks("application/x-pcapng", &[b"abcd"], true)))
        }
        _ => None,
    });
    let ran = run(&["--remote", &made_up.url, "extract", "v", "tcp", "-w", &file]);
    assert!(ran.code == Some(1) && ran.err.contains("keeps no manifest"), "{ran:?}");
    assert!(fs::metadata(format!("{file}.json")).is_err());
}

/// Sessions without an end, of which each has its own start.
fn endless_sessions() -> MadeUp {
    MadeUp::of_sessions(|stream| {
        stream.write_all(&chunks(LINES, &[], false))?;
        let many = (SESSIONS[0].to_owned() + "\n").repeat(400);
        loop {
            write!(stream, "{:x}\r\n{many}\r\n", many.len())?;
        }
    })
}

#[test]
fn a_reader_that_leaves_ends_the_request() {
    let made_up = endless_sessions();
    let script = format!("'{BINARY}' --remote {} find v --json | head -n 3", made_up.url);
    let ran = Command::new("bash").args(["-o", "pipefail", "-c", &script]).output().unwrap();
    let ran = Ran::new(&ran);
    assert_eq!((ran.code, ran.out.lines().count(), &*ran.err), (Some(0), 3, ""), "{ran:?}");
    until("the service sees that nobody is there", || made_up.taken.load(Ordering::SeqCst) == 2);
}

#[test]
fn ctrl_c_ends_a_request_at_once() {
    let silent = MadeUp::new(|path, stream| {
        path.ends_with("/sessions").then(|| stream.read(&mut [0; 1]).map(drop))
    });
    for made_up in [silent, endless_sessions()] {
        let mut find = command(&["--remote", &made_up.url, "find", "v", "--json"]);
        let find = find.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // Who it is has been asked, and sessions are on their way or awaited.
        until("it asks", || made_up.taken.load(Ordering::SeqCst) == 1);
        thread::sleep(Duration::from_millis(300));
        let signalled = Instant::now();
        let id = find.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        let ran = Ran::new(&find.wait_with_output().unwrap());
        // 50 ms between two looks, and what a busy machine needs.
        assert!(signalled.elapsed() < Duration::from_secs(2), "{:?}", signalled.elapsed());
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains("incomplete"), "{ran:?}");
    }
}

#[test]
fn an_extract_of_any_size_takes_little_memory() {
    const PIECE: usize = 1 << 20;
    const PIECES: usize = 700;
    let made_up = MadeUp::new(|path, stream| {
        path.ends_with("/extract").then(|| {
            stream.write_all(&chunks("application/x-pcapng", &[], false))?;
            let piece = vec![0; PIECE];
            for _ in 0..PIECES {
                write!(stream, "{PIECE:x}\r\n")?;
                stream.write_all(&piece)?;
                stream.write_all(b"\r\n")?;
            }
            Ok(())
        })
    });
    let mut extract = command(&["--remote", &made_up.url, "extract", "v", "tcp", "-w", "-"]);
    let mut extract = extract.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", extract.id());
    let mut most_kib = 0;
    while extract.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(&status).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        most_kib = most_kib.max(kib.unwrap_or(0));
        thread::sleep(Duration::from_millis(20));
    }
    let ran = Ran::new(&extract.wait_with_output().unwrap());
    // All of it came, and it has no end.
    assert!(ran.code == Some(3) && ran.err.contains("broke the answer off"), "{ran:?}");
    assert_eq!(made_up.taken.load(Ordering::SeqCst), 2);
    assert!((1..200_000).contains(&most_kib), "{most_kib} KiB");
}
