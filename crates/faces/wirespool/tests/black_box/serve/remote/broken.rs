//! Connections that break in the middle of an extract, through something between client and service
//! that cuts them: it goes on without a lost or doubled packet, or says why it cannot.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::super::{PATIENCE, Served};
use crate::machine::{CAPTURES, Ran, Volume, command, run};

/// Passes requests on, and cuts answers to `extract`.
struct Between {
    address: SocketAddr,
    extracts: Arc<AtomicUsize>,
}

impl Between {
    /// `cut` says of the extract of this number behind how many bytes it is cut.
    fn new(to: SocketAddr, cut: impl Fn(usize) -> Option<usize> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (cut, extracts) = (Arc::new(cut), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&extracts);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, cut, counted) =
                    (client.unwrap(), Arc::clone(&cut), Arc::clone(&counted));
                thread::spawn(move || pass(client, to, &*cut, &counted));
            }
        });
        Self { address, extracts }
    }
}

fn pass(
    mut client: TcpStream,
    to: SocketAddr,
    cut: &dyn Fn(usize) -> Option<usize>,
    extracts: &AtomicUsize,
) {
    let mut head = vec![0; 64 << 10];
    let mut len = 0;
    while !head[..len].windows(4).any(|four| four == b"\r\n\r\n") {
        match client.read(&mut head[len..]) {
            Ok(count) if count > 0 => len += count,
            _ => return,
        }
    }
    let is_extract = head.starts_with(b"GET /api/v1/extract");
    let number = if is_extract { extracts.fetch_add(1, Ordering::SeqCst) } else { 0 };
    let mut left = if is_extract { cut(number) } else { None };
    let Ok(mut service) = TcpStream::connect(to) else { return };
    service.set_read_timeout(Some(PATIENCE)).unwrap();
    service.write_all(&head[..len]).unwrap();
    let mut bytes = [0; 4096];
    loop {
        let count = service.read(&mut bytes).unwrap_or(0);
        let passed = left.map_or(count, |left| left.min(count));
        if count == 0 || client.write_all(&bytes[..passed]).is_err() || passed < count {
            break;
        }
        left = left.map(|left| left - passed);
    }
    drop(client.shutdown(Shutdown::Both));
}

fn extract(address: SocketAddr, token: &str, words: &[&str]) -> Ran {
    let url = format!("http://{address}");
    let mut command = command(&[&["--remote", &url, "extract", "volume"], words].concat());
    Ran::new(&command.env("WIRESPOOL_TOKEN", token).output().unwrap())
}

#[test]
fn an_extract_goes_on_where_its_connection_broke_without_a_lost_or_doubled_packet() {
    let served = Served::over(Volume::recorded());
    let token = served.token("a", "extract");
    let whole = served.volume.file("whole.pcapng");
    let words = ["extract", &served.volume.path, "--index-dir", &served.volume.index];
    run(&[&words[..], &["", "-w", &whole]].concat());
    let whole = fs::read(whole).unwrap();
    assert!(whole.len() > 20_000, "{}", whole.len());
    // Within a heading, a block, a chunk; behind nothing; several times.
    for (name, cuts) in [
        ("a", vec![9000]),
        ("b", vec![600, 1, 0, 4097]),
        ("c", vec![whole.len() / 2, 12_000, 15_000]),
        ("d", vec![whole.len()]),
    ] {
        let count = cuts.len();
        let between = Between::new(served.address, move |number| cuts.get(number).copied());
        let file = served.volume.file(&format!("{name}.pcapng"));
        let ran = extract(between.address, &token, &["", "-w", &file]);
        assert!(ran.err.contains(" packets, complete"), "{name}: {ran:?}");
        assert!(fs::read(&file).unwrap() == whole, "{name}: {ran:?}");
        assert!(between.extracts.load(Ordering::SeqCst) > count, "{name}: it was cut");
        run(&["verify-extract", &format!("{file}.json"), &file]).done();
        let piped = Between::new(served.address, |number| (number == 0).then_some(10_000));
        let piped = extract(piped.address, &token, &["", "-w", "-"]);
        assert_eq!(piped.out, String::from_utf8_lossy(&whole));
    }
}

#[test]
fn an_extract_that_cannot_go_on_says_so_and_leaves_no_file() {
    let served = Served::over(Volume::recorded());
    let token = served.token("a", "extract");
    let file = served.volume.file("x.pcapng");
    // More is recorded within its times, before the client comes back.
    let (path, index) = (served.volume.path.clone(), served.volume.index.clone());
    let between = Between::new(served.address, move |number| {
        if number == 1 {
            let words = ["record", &path, "--pool", "4M", "--index-dir", &index];
            run(&[&words[..], &["--read", CAPTURES]].concat()).done();
        }
        (number == 0).then_some(30_000)
    });
    let ran = extract(between.address, &token, &["", "-w", &file]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let last = ran.err.lines().last().unwrap();
    assert!(last.contains("cannot go on where it was broken off"), "{ran:?}");
    // A service that is gone for good.
    let between = Between::new(served.address, |number| Some(if number == 0 { 9000 } else { 0 }));
    let ran = extract(between.address, &token, &["", "-w", &file]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.err.lines().last().unwrap().contains("broke the answer off"), "{ran:?}");
    for left in [file.clone(), format!("{file}.json")] {
        assert!(fs::metadata(&left).is_err(), "{left}");
    }
    let wrong = format!("/api/v1/extract?offset=5&sha256={}", "0".repeat(64));
    served.get(&wrong, &token).is_refused(409, "moved-on");
    for wrong in ["offset=5", "sha256=00", "offset=5&sha256=00", "whole_sessions=1&only_range=1"] {
        let wrong = format!("/api/v1/extract?{wrong}");
        served.get(&wrong, &token).is_refused(400, "wrong-parameter");
    }
}

#[test]
fn a_client_does_not_say_what_now_is_to_its_filter() {
    // In the middle of what was recorded, by the packets' clocks.
    const NOW_NS: &str = "1460049200000000000";
    let served = Served::over(Volume::recorded());
    let all = served.token("all", "sessions,extract");
    let file = served.volume.file("tokens");
    let words = ["serve", "token", "create", "few", "--token-file", &file];
    let filter = ["--scope", "sessions,extract", "--filter", "since 1h ago"];
    let few = run(&[&words[..], &filter].concat()).done().out.trim().to_owned();
    thread::sleep(Duration::from_millis(1100));
    let extract = format!("/api/v1/extract?query=since+1h+ago&now_ns={NOW_NS}");
    // One of no query, made to stand behind no session and to count from another time.
    let page = served.get("/api/v1/sessions?limit=1", &all).ok().json();
    let mark = page["next_cursor"].as_str().unwrap().rsplit('_').next().unwrap().to_owned();
    let cursor = format!("1_0_0.0-0_0_{NOW_NS}_{mark}");
    let sessions = format!("/api/v1/sessions?cursor={cursor}");
    let bytes = |token: &str| served.get(&extract, token).ok().body.len();
    let count = |token: &str| served.get(&sessions, token).ok().json()["count"].clone();
    assert!(bytes(&all) > 1000, "from then on {}", bytes(&all));
    assert!(bytes(&few) < 1000, "{}", bytes(&few));
    assert_eq!(count(&few), 0);
    assert_ne!(count(&all), 0);
    for more in ["around_ms=1000", "whole_sessions=true"] {
        let asked = format!("/api/v1/extract?{more}");
        served.get(&asked, &few).is_refused(400, "wrong-parameter");
        served.get(&asked, &all).ok();
    }
}
