use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::process::geteuid;
use units::{Clock as _, Sleep as _};

use super::client::ask_in;
use super::place::Place;
use super::*;

const PATIENCE: Duration = Duration::from_secs(5);

fn place(path: &Path) -> Place {
    Place::open(path, |owner| owner == geteuid().as_raw()).unwrap()
}

fn asked(path: &Path, question: &str) -> String {
    ask_in(&place(path), "socket", (question, after(PATIENCE))).unwrap()
}

/// Runs `body` beside a socket in a folder that answers with what it was asked.
fn beside(body: impl FnOnce(&Path, &AtomicU64)) {
    let folder = tempfile::tempdir().unwrap();
    let socket = ControlSocket::bind_in(place(folder.path()), "socket").unwrap();
    let (is_ending, held_ms) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let answer = |question: &str| {
                let held = Duration::from_millis(held_ms.load(Ordering::Relaxed));
                if question == "slow" {
                    SystemClock.sleep_until(after(held));
                }
                format!("heard {question}")
            };
            socket.serve((&answer, &|_: &str, talk| Some(talk)), &|| {
                is_ending.load(Ordering::Relaxed)
            });
        });
        // Ends the server also where an assertion fails.
        let ends = Ends(&is_ending);
        body(folder.path(), &held_ms);
        drop(ends);
    });
}

struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_question_has_one_answer_and_nobody_is_none() {
    let name = format!("test-{}", std::process::id());
    let nobody = ask(&name, "anybody?", PATIENCE);
    // Where root has recorded once, somebody might be there whom nobody else may ask.
    if let Err(crate::Error::Path { source, path, .. }) = &nobody
        && source.kind() == io::ErrorKind::PermissionDenied
    {
        return println!("not run: {}: {source}", path.display());
    }
    assert!(matches!(nobody, Ok(None)), "{nobody:?}");
    let socket = ControlSocket::bind(&name).unwrap();
    let is_ending = AtomicBool::new(false);
    let answer = |question: &str| format!("to {question}");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            socket.serve((&answer, &|_: &str, talk| Some(talk)), &|| {
                is_ending.load(Ordering::Relaxed)
            });
        });
        assert_eq!(ask(&name, "how?", PATIENCE).unwrap().unwrap(), "to how?");
        assert!(ControlSocket::bind(&name).is_err(), "another socket has it");
        is_ending.store(true, Ordering::Relaxed);
    });
    assert!(control_sockets().contains(&name));
    drop(socket);
    assert!(!control_sockets().contains(&name));
    assert!(matches!(ask(&name, "anybody?", PATIENCE), Ok(None)));
}

#[test]
fn a_program_that_was_killed_leaves_a_socket_that_the_next_one_replaces() {
    let folder = tempfile::tempdir().unwrap();
    drop(UnixListener::bind(folder.path().join("socket")).unwrap());
    drop(ControlSocket::bind_in(place(folder.path()), "socket").unwrap());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn sockets_of_killed_programs_are_swept_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let going = UnixListener::bind(path("going")).unwrap();
    drop(UnixListener::bind(path("killed")).unwrap());
    fs::write(path("file"), "").unwrap();
    let left = || {
        let names = fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    };
    let place = place(folder.path());
    let now = SystemClock.realtime();
    for clock in [now, now.plus_nanos(-3_600_000_000_000)] {
        server::sweep(&place, clock);
        assert_eq!(left(), ["file", "going", "killed"], "it may have just begun");
    }
    server::sweep(&place, now.plus_nanos(3_600_000_000_000));
    assert_eq!(left(), ["file", "going"]);
    drop(going);
}

#[test]
fn many_who_hang_keep_nobody_from_being_answered() {
    beside(|folder, _| {
        let path = folder.join("socket");
        let mut hanging = Vec::new();
        for number in 0..200 {
            let mut stream = UnixStream::connect(&path).unwrap();
            if number % 2 == 0 {
                stream.write_all(b"never en").unwrap();
            }
            hanging.push(stream);
        }
        let started_ns = SystemClock.boottime_ns();
        for _ in 0..20 {
            assert_eq!(asked(folder, "how?"), "heard how?");
        }
        let took_ns = SystemClock.boottime_ns() - started_ns;
        assert!(took_ns < 1_000_000_000, "{took_ns} ns");
    });
}

#[test]
fn a_question_that_comes_byte_by_byte_is_given_up_after_its_time() {
    beside(|folder, _| {
        let mut stream = UnixStream::connect(folder.join("socket")).unwrap();
        let started_ns = SystemClock.boottime_ns();
        // Each byte is in time; the question as a whole is not.
        while stream.write_all(b"x").is_ok() {
            SystemClock.sleep_until(after(Duration::from_millis(50)));
        }
        let took_ns = SystemClock.boottime_ns() - started_ns;
        assert!((900_000_000..4_000_000_000).contains(&took_ns), "{took_ns} ns");
    });
}

#[test]
fn an_answer_that_takes_its_time_holds_up_nobody_else() {
    beside(|folder, held_ms| {
        held_ms.store(1500, Ordering::Relaxed);
        let mut slow = UnixStream::connect(folder.join("socket")).unwrap();
        slow.write_all(b"slow\n").unwrap();
        let started_ns = SystemClock.boottime_ns();
        assert_eq!(asked(folder, "how?"), "heard how?");
        let took_ns = SystemClock.boottime_ns() - started_ns;
        assert!(took_ns < 1_000_000_000, "{took_ns} ns");
        let mut answer = String::new();
        slow.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "heard slow");
    });
}

#[test]
fn an_endless_question_is_not_kept() {
    beside(|folder, _| {
        let mut stream = UnixStream::connect(folder.join("socket")).unwrap();
        let part = vec![b'x'; 64 << 10];
        let kept = (0..64).take_while(|_| stream.write_all(&part).is_ok()).count();
        assert!(kept < 64, "4 MiB were taken");
        assert_eq!(asked(folder, "how?"), "heard how?");
    });
}

#[test]
fn another_user_is_not_heard() {
    use rustix::thread::set_thread_uid;
    if !geteuid().is_root() {
        println!("not run: needs root to become another user");
        return;
    }
    beside(|folder, _| {
        // As wide open as a folder and a socket can be.
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
        let path = folder.join("socket");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let answer = std::thread::scope(|scope| {
            let ask = || {
                // Of this thread alone.
                set_thread_uid(rustix::process::Uid::from_raw(65_534)).unwrap();
                let mut stream = UnixStream::connect(&path).unwrap();
                stream.write_all(b"how?\n").unwrap();
                let mut answer = Vec::new();
                stream.read_to_end(&mut answer).map(|_| answer).unwrap_or_default()
            };
            scope.spawn(ask).join().unwrap()
        });
        assert_eq!(String::from_utf8(answer).unwrap(), "");
    });
}

#[test]
fn one_who_answers_byte_by_byte_holds_nobody_for_longer_than_the_patience() {
    let folder = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
    let is_ending = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            while !is_ending.load(Ordering::Relaxed) && stream.write_all(b"x").is_ok() {
                SystemClock.sleep_until(after(Duration::from_millis(50)));
            }
        });
        let started_ns = SystemClock.boottime_ns();
        let until_ns = after(Duration::from_millis(500));
        let answer = ask_in(&place(folder.path()), "socket", ("how?", until_ns));
        is_ending.store(true, Ordering::Relaxed);
        assert_eq!(answer.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let took_ns = SystemClock.boottime_ns() - started_ns;
        assert!(took_ns < 2_000_000_000, "{took_ns} ns");
    });
}

#[test]
fn hundreds_who_ask_at_the_same_moment_are_all_answered() {
    beside(|path, held_ms| {
        held_ms.store(20, Ordering::Relaxed);
        let ask_at_once = || {
            let asks = || ask_in(&place(path), "socket", ("slow", after(PATIENCE)));
            std::thread::scope(|scope| {
                let all: Vec<_> = (0..250).map(|_| scope.spawn(asks)).collect();
                all.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
            })
        };
        for answer in ask_at_once() {
            assert_eq!(answer.unwrap(), "heard slow");
        }
    });
}

#[test]
fn a_full_backlog_holds_nobody_for_longer_than_the_patience() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let _waiting = UnixStream::connect(&path).unwrap();
    let until_ns = after(Duration::from_millis(300));
    let answer = ask_in(&place(folder.path()), "socket", ("how?", until_ns));
    assert_eq!(answer.unwrap_err().kind(), io::ErrorKind::TimedOut);
}

#[test]
fn a_folder_that_others_can_change_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::DirBuilder::new().mode(0o700).create(&inner).unwrap();
    let open = |path: &Path| Place::open(path, |owner| owner == geteuid().as_raw());
    assert!(open(&inner).is_ok());
    for mode in [0o770, 0o707, 0o720, 0o1777] {
        fs::set_permissions(&inner, fs::Permissions::from_mode(mode)).unwrap();
        let error = open(&inner).unwrap_err().to_string();
        assert!(error.ends_with("inner is not used: others may write to it"), "{error}");
    }
    let link = folder.path().join("link");
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o700)).unwrap();
    symlink(&inner, &link).unwrap();
    assert!(open(&link).is_err(), "a link may lead anywhere");
    let error = Place::open(&inner, |_| false).unwrap_err().to_string();
    assert!(error.ends_with("inner is not used: it belongs to another user"), "{error}");
}

#[test]
fn a_socket_in_a_folder_of_another_user_is_believed_by_that_user_and_by_root() {
    use rustix::process::{Gid, Pid, Uid};
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path());
    let peer = |user| rustix::net::UCred {
        pid: Pid::INIT,
        uid: Uid::from_raw(user),
        gid: Gid::from_raw(0),
    };
    let own = geteuid().as_raw();
    assert!(place.trusts(&peer(own)) && place.trusts(&peer(0)));
    assert!(!place.trusts(&peer(own + 1)));
}
