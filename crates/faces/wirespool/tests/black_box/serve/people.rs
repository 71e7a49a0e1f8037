//! People in the service: first start, logins, second factors, roles, tokens and the audit by
//! administrators, and what attackers try.

#![expect(clippy::similar_names, clippy::format_collect, reason = "a test names what it sees")]

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hmac::{Hmac, Mac as _};
use serde_json::{Value, json};

use super::audit::Small;
use super::browser::{HEADING, cookie};
use super::{Answer, PATIENCE, Served, send, until};
use crate::machine::{Volume, command, run, write_key};

const PASSWORD: &str = "correct horse battery";
const OTHER: &str = "staple of another horse";

/// A service with people, beside its tokens.
fn staffed(flags: &[&str]) -> Served {
    let volume = Volume::recorded();
    let people = volume.file("people");
    Served::with(volume, &[&["--people-file", &people], flags].concat())
}

/// Makes an account from the command line, with the usual password.
fn add(served: &Served, name: &str, role: &str) {
    let file = served.volume.file("people");
    let words = ["serve", "person", "add", name, "--role", role, "--people-file", &file];
    let mut child = command(&[&words[..], &["--stdin"]].concat());
    let mut child = child.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{PASSWORD}\n").as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

/// Someone with this role who has logged in: the cookie.
pub(super) fn member(served: &Served, name: &str, role: &str) -> String {
    add(served, name, role);
    noticed();
    cookie(&login(served, name, PASSWORD).ok())
}

/// The service looks at its files once a second.
fn noticed() {
    thread::sleep(Duration::from_millis(1100));
}

fn post(served: &Served, what: &str, body: &Value, headers: &[&str]) -> Answer {
    let mut stream = served.connect();
    let body = body.to_string();
    let length = format!("Content-Length: {}", body.len());
    let fixed = ["Content-Type: application/json", &length];
    send(&mut stream, what, "", &[&fixed[..], headers].concat());
    stream.write_all(body.as_bytes()).unwrap();
    Answer::read(&mut stream)
}

fn change(served: &Served, what: &str, body: &Value, cookie: &str) -> Answer {
    post(served, what, body, &[HEADING, cookie])
}

fn login(served: &Served, name: &str, password: &str) -> Answer {
    let body = json!({"name": name, "password": password});
    post(served, "POST /api/v1/login", &body, &[HEADING])
}

fn login_with(served: &Served, name: &str, code: &str) -> Answer {
    let body = json!({"name": name, "password": PASSWORD, "code": code});
    post(served, "POST /api/v1/login", &body, &[HEADING])
}

fn ask(served: &Served, what: &str, cookie: &str) -> Answer {
    served.ask(what, "", &[cookie, HEADING])
}

/// The secret of the link that a service says at its start.
fn first_link(served: &mut Served) -> String {
    let line = served.hear("no administrator yet");
    let link = line.split_once("#/first?link=").unwrap().1;
    let secret = link.split(' ').next().unwrap().to_owned();
    assert_eq!(secret.len(), 64, "{line}");
    secret
}

#[test]
fn the_first_start_shows_a_link_that_makes_one_administrator_and_no_second_one() {
    let mut served = staffed(&[]);
    let link = first_link(&mut served);
    let make = |link: &str, name: &str, password: &str| {
        let body = json!({"link": link, "name": name, "password": password});
        post(&served, "POST /api/v1/first", &body, &[HEADING])
    };
    make(&link.replace(&link[..1], "x"), "eve", PASSWORD).is_refused(410, "link-over");
    make("", "eve", PASSWORD).is_refused(410, "link-over");
    make(&link, "a b", PASSWORD).is_refused(400, "wrong-parameter");
    make(&link, "anna", "too short").is_refused(400, "wrong-parameter");
    // A GET changes nothing, whatever stands behind it.
    ask(&served, "GET /api/v1/first", "X: 1").is_refused(405, "wrong-method");
    // Of many who use it at once one is made.
    let made: Vec<Answer> = thread::scope(|scope| {
        let one = |number: usize| make(&link, &format!("anna{number}"), PASSWORD);
        let all: Vec<_> = (0..6).map(|number| scope.spawn(move || one(number))).collect();
        all.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let (done, others): (Vec<Answer>, Vec<Answer>) =
        made.into_iter().partition(|answer| answer.status == 200);
    assert_eq!(done.len(), 1);
    assert!(others.iter().all(|answer| [409, 410].contains(&answer.status)), "{others:?}");
    let who = ask(&served, "GET /api/v1/whoami", &cookie(&done[0])).ok().json();
    assert_eq!(who["person"]["role"], "administrator", "{who}");
    make(&link, "eve", PASSWORD).is_refused(410, "link-over");
    let mode = fs::metadata(served.volume.file("people")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777, 0o600);
    // With an administrator there is no link, and the old one counts nowhere.
    served.signal("-TERM");
    served.hear("ended in order");
    let volume = std::mem::replace(&mut served.volume, Volume::empty());
    let people = volume.file("people");
    let again = Served::with(volume, &["--people-file", &people]);
    assert!(!again.said.iter().any(|line| line.contains("link=")), "{:?}", again.said);
    let body = json!({"link": link, "name": "eve", "password": PASSWORD});
    post(&again, "POST /api/v1/first", &body, &[HEADING]).is_refused(410, "link-over");
}

#[test]
fn an_unknown_name_is_refused_as_a_wrong_password_is_in_words_and_time() {
    let served = staffed(&[]);
    add(&served, "anna", "viewer");
    add(&served, "gone", "viewer");
    let file = served.volume.file("people");
    run(&["serve", "person", "disable", "gone", "--people-file", &file]).done();
    noticed();
    login(&served, "anna", PASSWORD).ok();
    let mut times: [Vec<Duration>; 3] = Default::default();
    let mut bodies = Vec::new();
    for _ in 0..5 {
        for (at, (name, password)) in
            [("anna", OTHER), ("nobody", PASSWORD), ("gone", PASSWORD)].into_iter().enumerate()
        {
            let began = Instant::now();
            let refused = login(&served, name, password);
            times[at].push(began.elapsed());
            refused.is_refused(401, "wrong-login");
            bodies.push(refused.body);
        }
    }
    assert!(bodies.iter().all(|body| *body == bodies[0]));
    // The quickest of five says what it takes; a name that is not there is not quicker.
    let [wrong, unknown, disabled] = times.map(|times| times.into_iter().min().unwrap());
    for other in [unknown, disabled] {
        assert!(other * 2 > wrong && wrong * 2 > other, "{wrong:?} {unknown:?} {disabled:?}");
    }
}

#[test]
fn a_session_ends_with_logout_password_and_disabling_and_no_cookie_is_taken_over() {
    let served = staffed(&[]);
    let planted = format!("Cookie: wirespool={}", "0".repeat(64));
    let admin = member(&served, "chief", "administrator");
    add(&served, "anna", "analyst");
    noticed();
    let body = json!({"name": "anna", "password": PASSWORD});
    let entered = post(&served, "POST /api/v1/login", &body, &[HEADING, &planted]).ok();
    let first = cookie(&entered);
    assert!(first != planted && entered.json()["person"]["role"] == "analyst");
    ask(&served, "GET /api/v1/whoami", &planted).is_refused(401, "no-credential");
    let second = cookie(&login(&served, "anna", PASSWORD).ok());
    let third = cookie(&login(&served, "anna", PASSWORD).ok());
    ask(&served, "POST /api/v1/logout", &third).ok();
    ask(&served, "GET /api/v1/whoami", &third).is_refused(401, "no-credential");
    let new = |old: &str, new: &str| json!({"password": old, "new_password": new});
    let path = "POST /api/v1/account/password";
    change(&served, path, &new(OTHER, OTHER), &first).is_refused(401, "wrong-login");
    change(&served, path, &new("wrong", OTHER), &first).is_refused(401, "wrong-login");
    change(&served, path, &new(PASSWORD, "short"), &first).is_refused(400, "wrong-parameter");
    change(&served, path, &new(PASSWORD, PASSWORD), &first).is_refused(400, "wrong-parameter");
    ask(&served, "GET /api/v1/whoami", &first).ok();
    let fourth = cookie(&change(&served, path, &new(PASSWORD, OTHER), &first).ok());
    for over in [&first, &second] {
        ask(&served, "GET /api/v1/whoami", over).is_refused(401, "no-credential");
    }
    ask(&served, "GET /api/v1/sessions?limit=1", &fourth).ok();
    login(&served, "anna", PASSWORD).is_refused(401, "wrong-login");
    // Another role counts at once.
    ask(&served, "POST /api/v1/people/anna/role?role=viewer", &admin).ok();
    ask(&served, "GET /api/v1/extract?query=port+9", &fourth).is_refused(403, "no-scope");
    ask(&served, "POST /api/v1/people/anna/disable", &admin).ok();
    ask(&served, "GET /api/v1/whoami", &fourth).is_refused(401, "no-credential");
    login(&served, "anna", OTHER).is_refused(401, "wrong-login");
    ask(&served, "POST /api/v1/people/anna/enable", &admin).ok();
    ask(&served, "GET /api/v1/whoami", &fourth).is_refused(401, "no-credential");
    // One that is made anew under the name is another one.
    let fifth = cookie(&login(&served, "anna", OTHER).ok());
    ask(&served, "DELETE /api/v1/people/anna", &admin).ok();
    ask(&served, "POST /api/v1/people?name=anna&role=viewer", &admin).ok();
    ask(&served, "GET /api/v1/whoami", &fifth).is_refused(401, "no-credential");
}

#[test]
fn a_page_of_another_origin_changes_nothing() {
    let served = staffed(&[]);
    let admin = member(&served, "chief", "administrator");
    let path = "POST /api/v1/people?name=eve&role=administrator";
    served.ask(path, "", &[&admin]).is_refused(400, "wrong-parameter");
    for site in ["cross-site", "same-site"] {
        let from = format!("Sec-Fetch-Site: {site}");
        served.ask(path, "", &[&admin, HEADING, &from]).is_refused(403, "cross-origin");
        let body = json!({"name": "chief", "password": PASSWORD});
        let login = post(&served, "POST /api/v1/login", &body, &[HEADING, &from]);
        login.is_refused(403, "cross-origin");
    }
    for way in ["disable", "enable", "password", "role?role=viewer"] {
        let path = format!("GET /api/v1/people/chief/{way}");
        ask(&served, &path, &admin).is_refused(405, "wrong-method");
    }
    ask(&served, "GET /api/v1/logout", &admin).is_refused(405, "wrong-method");
    served.ask(path, "", &[&admin, HEADING, "Sec-Fetch-Site: same-origin"]).ok();
    let people = ask(&served, "GET /api/v1/people", &admin).ok().json();
    assert_eq!(people["people"].as_array().unwrap().len(), 2, "{people}");
}

#[test]
fn who_fails_waits_longer_each_time_and_others_do_not() {
    let served = staffed(&[]);
    add(&served, "anna", "viewer");
    add(&served, "bert", "viewer");
    noticed();
    // Many at once all count.
    let statuses: Vec<u16> = thread::scope(|scope| {
        let all: Vec<_> = (0..12).map(|_| scope.spawn(|| login(&served, "anna", OTHER))).collect();
        all.into_iter().map(|it| it.join().unwrap().status).collect()
    });
    let failed = statuses.iter().filter(|status| **status == 401).count();
    assert_eq!(failed, 6, "{statuses:?}");
    let locked = login(&served, "anna", PASSWORD);
    locked.is_refused(429, "locked");
    let left_s: u64 = locked.headers["retry-after"].parse().unwrap();
    assert!(locked.json()["retry_after_s"] == left_s && (1..=2).contains(&left_s), "{locked:?}");
    login(&served, "bert", PASSWORD).ok();
    thread::sleep(Duration::from_secs(left_s));
    login(&served, "anna", OTHER).is_refused(401, "wrong-login");
    let locked = login(&served, "anna", PASSWORD);
    locked.is_refused(429, "locked");
    assert!((3..=4).contains(&locked.json()["retry_after_s"].as_u64().unwrap()), "{locked:?}");
    thread::sleep(Duration::from_secs(4));
    login(&served, "anna", PASSWORD).ok();
    login(&served, "anna", OTHER).is_refused(401, "wrong-login");
    login(&served, "anna", PASSWORD).ok();
}

#[test]
fn a_flood_of_wrong_logins_takes_little_memory_and_others_are_served() {
    let served = staffed(&[]);
    let token = served.token("prometheus", "sessions");
    let anna = member(&served, "anna", "viewer");
    let (slowest, statuses) = thread::scope(|scope| {
        let one = |number: usize| {
            let served = &served;
            // A connection that has no room is closed at once.
            move || {
                let body = json!({"name": format!("n{number}"), "password": OTHER}).to_string();
                let mut stream = TcpStream::connect(served.address).ok()?;
                stream.set_read_timeout(Some(PATIENCE)).ok()?;
                let length = format!("Content-Length: {}", body.len());
                send(&mut stream, "POST /api/v1/login", "", &[HEADING, &length]);
                stream.write_all(body.as_bytes()).ok()?;
                let mut bytes = Vec::new();
                std::io::Read::read_to_end(&mut stream, &mut bytes).ok()?;
                (!bytes.is_empty()).then(|| Answer::of(&bytes).status)
            }
        };
        let floods: Vec<_> = (0..1000).map(|number| scope.spawn(one(number))).collect();
        let mut slowest = Duration::ZERO;
        for _ in 0..20 {
            let began = Instant::now();
            served.get("/api/v1/whoami", &token).ok();
            ask(&served, "GET /api/v1/volumes", &anna);
            slowest = slowest.max(began.elapsed());
        }
        let all = floods.into_iter().map(|it| it.join().unwrap());
        (slowest, all.collect::<Vec<Option<u16>>>())
    });
    assert!(slowest < Duration::from_secs(10), "{slowest:?}");
    let of = |status: u16| statuses.iter().filter(|it| **it == Some(status)).count();
    // The address has failed 21 times; whoever comes meanwhile is refused without a hash.
    assert!((1..=21).contains(&of(401)) && of(429) + of(503) > 500, "{statuses:?}");
    let status = fs::read_to_string(format!("/proc/{}/status", served.child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak_kib: u64 = peak.trim().trim_end_matches(" kB").trim().parse().unwrap();
    assert!(peak_kib < 300 << 10, "{peak_kib} KiB");
    ask(&served, "GET /api/v1/whoami", &anna).ok();
}

#[test]
fn bodies_that_are_huge_slow_or_none_are_refused_and_keep_nobody_out() {
    let served = staffed(&[]);
    let anna = member(&served, "anna", "viewer");
    let huge = "x".repeat(17 << 10);
    login(&served, &huge, PASSWORD).is_refused(413, "too-long");
    login(&served, "anna", &"x".repeat(2000)).is_refused(400, "wrong-parameter");
    for body in [json!([]), json!({"name": 1, "password": 2}), json!({"name": "a"}), json!(null)] {
        let refused = post(&served, "POST /api/v1/login", &body, &[HEADING]);
        refused.is_refused(400, "wrong-body");
    }
    let more = json!({"name": "anna", "password": PASSWORD, "role": "administrator"});
    post(&served, "POST /api/v1/login", &more, &[HEADING]).is_refused(400, "wrong-body");
    // More announce a body than are read at once, and send none of it.
    let slow: Vec<TcpStream> = (0..100)
        .map(|_| {
            let mut stream = served.connect();
            send(&mut stream, "POST /api/v1/login", "", &[HEADING, "Content-Length: 100"]);
            stream
        })
        .collect();
    let began = Instant::now();
    ask(&served, "GET /api/v1/sessions?limit=1", &anna).ok();
    assert!(began.elapsed() < Duration::from_secs(5));
    until("they were given up", || login(&served, "anna", PASSWORD).status == 200);
    drop(slow);
    let mut endless = served.connect();
    send(&mut endless, "POST /api/v1/login", "", &[HEADING, "Transfer-Encoding: chunked"]);
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000));
    let sent = (0..64).take_while(|_| endless.write_all(chunk.as_bytes()).is_ok()).count();
    let mut bytes = Vec::new();
    let read = std::io::Read::read_to_end(&mut endless, &mut bytes);
    // The service closes before all is sent, which may take the answer along.
    if read.is_ok() && !bytes.is_empty() {
        Answer::of(&bytes).is_refused(413, "too-long");
    } else {
        assert!(sent > 0, "{read:?}");
    }
    login(&served, "anna", PASSWORD).ok();
}

#[test]
fn a_torn_file_lets_nobody_in_until_it_is_mended_and_a_full_disk_breaks_nothing() {
    let served = staffed(&[]);
    let admin = member(&served, "chief", "administrator");
    let file = served.volume.file("people");
    let text = fs::read_to_string(&file).unwrap();
    write_key(&file, &text[..text.len() / 2]);
    noticed();
    ask(&served, "GET /api/v1/whoami", &admin).is_refused(401, "no-credential");
    login(&served, "chief", PASSWORD).is_refused(401, "wrong-login");
    assert_eq!(served.get("/api/v1/health", "").status, 503);
    assert_eq!(fs::read_to_string(&file).unwrap(), text[..text.len() / 2]);
    write_key(&file, &text);
    noticed();
    ask(&served, "GET /api/v1/whoami", &admin).ok();
    served.get("/api/v1/health", "").ok();
    let volume = Volume::recorded();
    let Some(small) = Small::mount(volume.file("small")) else {
        return println!("not run: no file system can be mounted");
    };
    let (kept, filler) = (format!("{}/people", small.0), format!("{}/filler", small.0));
    write_key(&kept, &text);
    let served = Served::with(volume, &["--people-file", &kept]);
    let admin = cookie(&login(&served, "chief", PASSWORD).ok());
    drop(fs::write(&filler, vec![0; 1 << 20]));
    let add = "POST /api/v1/people?name=anna&role=viewer";
    ask(&served, add, &admin).is_refused(500, "not-written");
    assert_eq!(fs::read_to_string(&kept).unwrap(), text);
    let left: Vec<_> = fs::read_dir(&small.0).unwrap().flatten().collect();
    assert_eq!(left.len(), 2, "no half of a file is left: {left:?}");
    // Who is there goes on, and others may log in.
    login(&served, "chief", PASSWORD).ok();
    fs::remove_file(&filler).unwrap();
    ask(&served, add, &admin).ok();
    drop(served);
}

/// RFC 6238, by its text, for a secret in base 32.
fn code(secret: &str, steps_later: i64) -> String {
    let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let bits: String =
        secret.chars().map(|it| format!("{:05b}", letters.find(it).unwrap())).collect();
    let bytes: Vec<u8> = bits.as_bytes().chunks_exact(8).map(byte_of).collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let step = (now / 30).checked_add_signed(steps_later).unwrap();
    let mut mac = Hmac::<sha1::Sha1>::new_from_slice(&bytes).unwrap();
    mac.update(&step.to_be_bytes());
    let hash = mac.finalize().into_bytes();
    let at = usize::from(hash[19] & 15);
    let number = u32::from_be_bytes(hash[at..at + 4].try_into().unwrap()) & 0x7fff_ffff;
    format!("{:06}", number % 1_000_000)
}

fn byte_of(bits: &[u8]) -> u8 {
    u8::from_str_radix(std::str::from_utf8(bits).unwrap(), 2).unwrap()
}

#[test]
fn a_second_factor_is_set_up_asked_for_and_each_code_counts_once() {
    let served = staffed(&[]);
    let anna = member(&served, "anna", "viewer");
    let begin = "POST /api/v1/account/second-factor";
    let proof = |password: &str| json!({ "password": password });
    let confirm = "POST /api/v1/account/second-factor/confirm";
    change(&served, confirm, &json!({"code": "123456"}), &anna).is_refused(409, "no-enrolment");
    change(&served, begin, &proof(OTHER), &anna).is_refused(401, "wrong-login");
    let begun = change(&served, begin, &proof(PASSWORD), &anna).ok().json();
    let secret = begun["secret"].as_str().unwrap().to_owned();
    let link = begun["link"].as_str().unwrap();
    assert!(link.starts_with("otpauth://totp/") && link.contains(&secret), "{link}");
    assert!(begun["qr"]["size"].as_u64().unwrap() > 20);
    // Until a code is typed it is not asked for.
    login(&served, "anna", PASSWORD).ok();
    let wrong = change(&served, confirm, &json!({"code": code(&secret, 9)}), &anna);
    wrong.is_refused(400, "wrong-new-code");
    let enrolled = change(&served, confirm, &json!({"code": code(&secret, -1)}), &anna).ok();
    let own = cookie(&enrolled);
    let codes: Vec<String> =
        serde_json::from_value(enrolled.json()["recovery_codes"].clone()).unwrap();
    assert_eq!(codes.len(), 10);
    ask(&served, "GET /api/v1/whoami", &anna).is_refused(401, "no-credential");
    ask(&served, "GET /api/v1/whoami", &own).ok();
    let text = fs::read_to_string(served.volume.file("people")).unwrap();
    assert!(codes.iter().all(|code| !text.contains(&**code)), "they are stored hashed");
    login(&served, "anna", PASSWORD).is_refused(401, "needs-code");
    login(&served, "anna", OTHER).is_refused(401, "wrong-login");
    login_with(&served, "anna", &code(&secret, 9)).is_refused(401, "wrong-code");
    // Of many with one code, one enters.
    let now = code(&secret, 0);
    let statuses: Vec<u16> = thread::scope(|scope| {
        let all: Vec<_> =
            (0..3).map(|_| scope.spawn(|| login_with(&served, "anna", &now))).collect();
        all.into_iter().map(|it| it.join().unwrap().status).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    login_with(&served, "anna", &now).is_refused(401, "wrong-code");
    let late = cookie(&login_with(&served, "anna", &code(&secret, 1)).ok());
    login_with(&served, "anna", &codes[4].to_uppercase()).ok();
    login_with(&served, "anna", &codes[4]).is_refused(401, "wrong-code");
    let who = ask(&served, "GET /api/v1/whoami", &late).ok().json();
    assert_eq!(who["person"]["recovery_codes"], 9, "{who}");
    // A service that starts again has not forgotten which codes were used.
    let mut served = served;
    served.signal("-TERM");
    served.hear("ended in order");
    let volume = std::mem::replace(&mut served.volume, Volume::empty());
    let people = volume.file("people");
    let again = Served::with(volume, &["--people-file", &people]);
    login_with(&again, "anna", &code(&secret, 0)).is_refused(401, "wrong-code");
    let own = cookie(&login_with(&again, "anna", &codes[5]).ok());
    let end = json!({"password": PASSWORD, "code": codes[6]});
    change(&again, "DELETE /api/v1/account/second-factor", &proof(PASSWORD), &own)
        .is_refused(401, "needs-code");
    let own = cookie(&change(&again, "DELETE /api/v1/account/second-factor", &end, &own).ok());
    ask(&again, "GET /api/v1/whoami", &own).ok();
    login(&again, "anna", PASSWORD).ok();
}

#[test]
fn an_administrator_adds_people_who_choose_their_password_and_stays_the_last_one() {
    let served = staffed(&["--role", "few=sessions port 53"]);
    let admin = member(&served, "chief", "administrator");
    let change = |what: &str| ask(&served, what, &admin);
    let added = change("POST /api/v1/people?name=anna&role=few").ok().json();
    let password = added["password"].as_str().unwrap().to_owned();
    change("POST /api/v1/people?name=anna&role=few").is_refused(409, "taken");
    change("POST /api/v1/people?name=bert&role=king").is_refused(400, "wrong-parameter");
    let anna = cookie(&login(&served, "anna", &password).ok());
    let who = ask(&served, "GET /api/v1/whoami", &anna).ok().json();
    assert_eq!(
        (&who["person"]["must_change_password"], &who["scopes"]),
        (&true.into(), &json!([]))
    );
    for path in ["/api/v1/sessions", "/api/v1/volumes", "/metrics", "/api/v1/openapi.json"] {
        let refused = ask(&served, &format!("GET {path}"), &anna);
        refused.is_refused(403, "must-change-password");
    }
    let new = json!({"password": password, "new_password": PASSWORD});
    let set = post(&served, "POST /api/v1/account/password", &new, &[HEADING, &anna]).ok();
    let anna = cookie(&set);
    let page = ask(&served, "GET /api/v1/sessions", &anna).ok().json();
    let note = page["statement"]["notes"][0].as_str().unwrap();
    assert!(note.ends_with("matches port 53"), "the role has a filter: {note}");
    for what in [
        "POST /api/v1/people/chief/role?role=viewer",
        "POST /api/v1/people/chief/disable",
        "DELETE /api/v1/people/chief",
    ] {
        change(what).is_refused(409, "administrator");
    }
    change("POST /api/v1/people/anna/role?role=administrator").ok();
    change("POST /api/v1/people/chief/role?role=viewer").ok();
    change("GET /api/v1/people").is_refused(403, "no-scope");
    let list = ask(&served, "GET /api/v1/people", &anna).ok().json();
    assert_eq!(list["people"][0]["name"], "anna", "{list}");
    assert!(!list.to_string().contains("argon2") && list["roles"].as_array().unwrap().len() == 4);
    // An answer of a token is not one of the person of its name.
    let token = served.token("anna", "sessions");
    let page = ask(&served, "GET /api/v1/sessions?limit=1", &anna).ok().json();
    let known = format!("/api/v1/answers/{}", page["answer"].as_str().unwrap());
    ask(&served, &format!("GET {known}"), &anna).ok();
    served.get(&known, &token).is_refused(404, "not-found");
}

#[test]
fn an_administrator_makes_and_revokes_tokens() {
    let served = staffed(&[]);
    let admin = member(&served, "chief", "administrator");
    let ask = |what: &str| ask(&served, what, &admin);
    let made = ask("POST /api/v1/tokens?name=lab&scopes=sessions&filter=port+53").ok().json();
    let token = made["token"].as_str().unwrap().to_owned();
    served.get("/api/v1/sessions?limit=1", &token).ok();
    ask("POST /api/v1/tokens?name=lab&scopes=sessions").is_refused(409, "taken");
    ask("POST /api/v1/tokens?name=x&scopes=king").is_refused(400, "wrong-parameter");
    ask("POST /api/v1/tokens?name=x&scopes=&filter=hsot+x").is_refused(400, "wrong-parameter");
    ask("POST /api/v1/tokens?name=x&scopes=&expires=soon").is_refused(400, "wrong-parameter");
    let list = ask("GET /api/v1/tokens").ok().json();
    assert_eq!((&list["tokens"][0]["name"], &list["can_change"]), (&"lab".into(), &true.into()));
    let file = fs::read_to_string(served.volume.file("tokens")).unwrap();
    let hash = file.trim().split(':').nth(2).unwrap();
    assert!(!list.to_string().contains(hash), "{list}");
    ask("DELETE /api/v1/tokens/lab").ok();
    served.get("/api/v1/sessions?limit=1", &token).is_refused(401, "no-credential");
    ask("DELETE /api/v1/tokens/lab").is_refused(404, "not-found");
}

#[test]
fn the_audit_is_read_by_administrators_and_says_when_its_chain_is_broken() {
    let volume = Volume::recorded();
    let [file, people] = ["audit", "people"].map(|name| volume.file(name));
    let flags = ["--audit", &file, "--people-file", &people];
    let served = Served::with(volume, &flags);
    let admin = member(&served, "chief", "administrator");
    login(&served, "chief", OTHER).is_refused(401, "wrong-login");
    login(&served, "the password by mistake", OTHER).is_refused(401, "wrong-login");
    ask(&served, "POST /api/v1/people?name=anna&role=viewer", &admin).ok();
    let page = ask(&served, "GET /api/v1/audit", &admin).ok().json();
    let lines = page["lines"].as_array().unwrap();
    let said: Vec<(String, String, String, u64)> = lines
        .iter()
        .filter(|line| line["line"]["event"] == "request")
        .map(|line| {
            let text = |name: &str| line["line"][name].as_str().unwrap_or("-").to_owned();
            let status = line["line"]["status"].as_u64().unwrap();
            (text("credential"), text("kind"), text("about"), status)
        })
        .collect();
    let of = |one: (&str, &str, &str), status| {
        (one.0.to_owned(), one.1.to_owned(), one.2.to_owned(), status)
    };
    let expected = [
        of(("chief", "person", "-"), 200),
        of(("-", "password", "-"), 401),
        of(("-", "password", "chief"), 401),
        of(("chief", "password", "chief"), 200),
    ];
    assert_eq!(said, expected);
    let text = fs::read_to_string(&file).unwrap();
    let secret = admin.split('=').nth(1).unwrap();
    for hidden in [PASSWORD, OTHER, "by mistake", secret] {
        assert!(!text.contains(hidden), "{hidden}");
    }
    assert!(text.contains("\"begun\"") && text.contains("people"), "a change is put down before");
    assert_eq!(page["check"]["is_whole"], true, "{page}");
    let mut before = String::new();
    let mut seen = Vec::new();
    for _ in 0..50 {
        let page = format!("GET /api/v1/audit?limit=2&path=/api/v1/login{before}");
        let page = ask(&served, &page, &admin).ok().json();
        let lines = page["lines"].as_array().unwrap();
        seen.extend(lines.iter().map(|line| line["line"]["seq"].as_u64().unwrap()));
        let Some(next) = page["next"].as_u64() else { break };
        before = format!("&before={next}");
    }
    assert!(seen.len() == 3 && seen.is_sorted_by(|one, other| one > other), "{seen:?}");
    let whole = ask(&served, "GET /api/v1/audit/check", &admin).ok().json();
    assert_eq!((&whole["is_whole"], &whole["faults_count"]), (&true.into(), &0.into()), "{whole}");
    // The command line finds the same.
    run(&["audit", "verify", &file]).done();
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("\"status\":401", "\"status\":200", 1)).unwrap();
    let broken = ask(&served, "GET /api/v1/audit/check", &admin).ok().json();
    assert_eq!(broken["is_whole"], false, "{broken}");
    assert!(broken["faults"][0]["why"].as_str().unwrap().contains("was changed"), "{broken}");
}

#[test]
fn accounts_are_managed_from_the_command_line() {
    let served = staffed(&[]);
    let file = served.volume.file("people");
    let person =
        |words: &[&str]| run(&[&["serve", "person"], words, &["--people-file", &file]].concat());
    let made = person(&["add", "anna", "--role", "administrator"]).done().out;
    assert_eq!(person(&["list"]).done().out.lines().count(), 1);
    person(&["add", "anna", "--role", "viewer"]).is_refused("there is a person of this name");
    person(&["add", "bert"]).fails_with(2, "--role is missing");
    person(&["add", "bert", "--role", "a king"]).fails_with(2, "no role of this name");
    person(&["add", "b c", "--role", "viewer"]).fails_with(2, "letters, digits");
    person(&["disable", "bert"]).is_refused("no person of this name");
    noticed();
    let entered = login(&served, "anna", made.trim()).ok();
    assert_eq!(entered.json()["person"]["must_change_password"], true);
    let own = cookie(&entered);
    let another = person(&["password", "anna"]).done().out;
    noticed();
    ask(&served, "GET /api/v1/whoami", &own).is_refused(401, "no-credential");
    login(&served, "anna", made.trim()).is_refused(401, "wrong-login");
    login(&served, "anna", another.trim()).ok();
    person(&["reset-second-factor", "anna"]).done();
    person(&["role", "anna", "--role", "viewer"]).done();
    person(&["disable", "anna"]).done();
    let listed = person(&["list"]).done().out;
    assert!(listed.starts_with("anna  viewer  disabled"), "{listed}");
    person(&["enable", "anna"]).done();
    person(&["remove", "anna"]).done();
    assert_eq!(person(&["list"]).done().out, "");
    fs::write(&file, "{").unwrap();
    person(&["list"]).is_refused("no file of people");
}
