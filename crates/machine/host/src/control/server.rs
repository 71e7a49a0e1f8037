//! The end that answers.

use core::time::Duration;
use std::io::{self, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, chmodat};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, listen, socket_with};
use rustix::process::geteuid;
use units::{Clock as _, NANOS_PER_SECOND, Sleep as _, Timestamp};

use super::place::Place;
use super::talk::Talk;
use super::{after, send_all, timespec};
use crate::{Error, SystemClock};

/// Between two looks whether the program ends.
const LOOK: Duration = Duration::from_millis(100);
/// A question is asked as soon as a client connects: all of it, and not each byte of it.
const QUESTION_PATIENCE: Duration = Duration::from_secs(1);
const QUESTION_BYTES_MAX: usize = 4096;
/// So long may the answer as a whole take to be read.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);
/// Who have not yet asked; of more the first one goes.
const CLIENTS_MAX: usize = 256;
/// Questions that are answered at the same time, and those that wait for it.
const ANSWERED_AT_ONCE: usize = 8;
const WAITING_MAX: usize = 256;
/// A socket that is older and without a listener is one of a program that was killed.
const SWEPT_AGE_NS: i64 = 60 * NANOS_PER_SECOND;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 256;

/// What answers a question.
pub(super) type Answer<'a> = dyn Fn(&str) -> String + Sync + 'a;
/// What goes on talking with who asks a question; gives the connection back where the question has
/// one answer.
pub(super) type Converse<'a> = dyn Fn(&str, Talk) -> Option<Talk> + Sync + 'a;

/// A socket that answers.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    place: Place,
    name: String,
}

/// A client that has connected.
struct Client {
    stream: UnixStream,
    question: Vec<u8>,
    until_ns: i64,
}

/// What comes of a client after a look.
enum Step {
    Wait,
    Answer,
    Drop,
}

impl ControlSocket {
    /// The socket of this name, which belongs to the user who runs the program; that user and root
    /// may ask.
    ///
    /// # Errors
    /// When there is no folder that only this user can change, the socket cannot be made, or a
    /// running program has it.
    pub fn bind(name: &str) -> Result<Self, Error> {
        Self::bind_in(Place::own()?, name)
    }

    pub(super) fn bind_in(place: Place, name: &str) -> Result<Self, Error> {
        sweep(&place, SystemClock.realtime());
        let listener = listen_at(&place, name);
        let fail = |error| Error::path("open the socket", &place.path_of(name), error);
        Ok(Self { listener: listener.map_err(fail)?, place, name: name.to_owned() })
    }

    /// Path of the socket.
    pub fn path(&self) -> std::path::PathBuf {
        self.place.path_of(&self.name)
    }

    /// Has another program make a socket of this name: this one is asked no more, and goes on with
    /// those who have asked. False where it stays.
    pub fn hide(&self) -> bool {
        self.place.rename(&self.name, &hidden(&self.name)).is_ok()
    }

    /// Takes its name again.
    pub fn show(&self) -> bool {
        self.place.rename(&hidden(&self.name), &self.name).is_ok()
    }

    /// Answers questions until `is_ending`, which is asked ten times a second. `answer` is called
    /// on several threads: one that takes its time holds up only its own client. Before that
    /// `converse` may go on with a client.
    pub fn serve(
        &self,
        (answer, converse): (&Answer<'_>, &Converse<'_>),
        is_ending: &dyn Fn() -> bool,
    ) {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let receiver = Mutex::new(receiver);
        thread::scope(|scope| {
            for number in 0..ANSWERED_AT_ONCE {
                let builder = thread::Builder::new().name(format!("answer-{number}"));
                // With fewer threads answers come later.
                drop(builder.spawn_scoped(scope, || answer_all(&receiver, (answer, converse))));
            }
            self.hear(sender, is_ending);
        });
    }

    /// Hears questions and hands them on.
    fn hear(&self, heard: SyncSender<Client>, is_ending: &dyn Fn() -> bool) {
        let mut clients: Vec<Client> = Vec::new();
        while !is_ending() {
            let streams = clients.iter().map(|client| PollFd::new(&client.stream, PollFlags::IN));
            let listener = PollFd::new(&self.listener, PollFlags::IN);
            let mut ready: Vec<PollFd<'_>> = [listener].into_iter().chain(streams).collect();
            let look_ns = units::nanos(LOOK);
            poll(&mut ready, Some(&timespec(look_ns))).unwrap_or_default();
            let now_ns = SystemClock.boottime_ns();
            for mut client in core::mem::take(&mut clients) {
                match client.look(now_ns) {
                    Step::Wait => clients.push(client),
                    // More questions than can wait: the asker goes on without an answer.
                    Step::Answer => drop(heard.try_send(client)),
                    Step::Drop => {}
                }
            }
            self.accept(&mut clients);
        }
        drop(heard);
    }

    fn accept(&self, clients: &mut Vec<Client>) {
        for _ in 0..CLIENTS_MAX {
            match self.listener.accept() {
                Ok((stream, _)) if is_allowed(&stream) && stream.set_nonblocking(true).is_ok() => {
                    if clients.len() == CLIENTS_MAX {
                        clients.remove(0);
                    }
                    clients.push(Client::new(stream));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Without descriptors, for one: the listener stays ready, and would be asked again
                // at once.
                Err(_) => return SystemClock.sleep_until(after(LOOK)),
            }
        }
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // What is left behind answers no client, and the next one replaces it. A name that another
        // program has by now is that one's.
        let hidden = hidden(&self.name);
        let name = if self.place.made(&hidden).is_some() { &hidden } else { &self.name };
        self.place.remove(name).unwrap_or_default();
    }
}

impl Client {
    fn new(stream: UnixStream) -> Self {
        Self { stream, question: Vec::new(), until_ns: after(QUESTION_PATIENCE) }
    }

    /// Reads what is there.
    fn look(&mut self, now_ns: i64) -> Step {
        let mut bytes = [0; 512];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return Step::Drop,
                Ok(len) => self.question.extend(bytes.iter().take(len)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Step::Drop,
            }
            if self.question.contains(&b'\n') {
                return Step::Answer;
            }
            if self.question.len() > QUESTION_BYTES_MAX {
                return Step::Drop;
            }
        }
        if now_ns >= self.until_ns { Step::Drop } else { Step::Wait }
    }
}

fn answer_all(
    questions: &Mutex<Receiver<Client>>,
    (answer, converse): (&Answer<'_>, &Converse<'_>),
) {
    loop {
        let next = stage::lock(questions).recv();
        let Ok(Client { stream, question, .. }) = next else { return };
        let Some(line) = line_of(&question) else { continue };
        if let Some(talk) = converse(line, Talk::new(stream.into())) {
            let sent = send_all(talk.stream(), answer(line).as_bytes(), after(ANSWER_PATIENCE));
            // Who asks and goes away before the answer does not want it.
            sent.unwrap_or_default();
        }
    }
}

/// The name of a socket that is asked no more: names that begin so are no programs'.
fn hidden(name: &str) -> String {
    format!(".{name}")
}

/// The first line of a question, if it is text.
fn line_of(question: &[u8]) -> Option<&str> {
    let line = question.split(|byte| *byte == b'\n').next().unwrap_or_default();
    core::str::from_utf8(line).ok().map(str::trim_end)
}

/// The same user, and root.
fn is_allowed(stream: &UnixStream) -> bool {
    socket_peercred(stream).is_ok_and(|peer| peer.uid == geteuid() || peer.uid.is_root())
}

/// Takes away the sockets of programs that were killed: only so many names are looked at by those
/// who ask.
pub(super) fn sweep(place: &Place, now: Timestamp) {
    for name in place.sockets() {
        // A program that has just begun may not listen yet.
        let is_old = place.made(&name).is_some_and(|made| now.since(made) > SWEPT_AGE_NS);
        let refuses = || connect(open()?, &place.address(&name)?).map_err(io::Error::from);
        let is_dead = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        if is_old && refuses().is_err_and(|error| is_dead(&error)) {
            // Another program may have been faster.
            place.remove(&name).unwrap_or_default();
        }
    }
}

fn open() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

fn listen_at(place: &Place, name: &str) -> io::Result<UnixListener> {
    let address = place.address(name)?;
    match connect(open()?, &address) {
        Err(Errno::NOENT) => {}
        // A program that was killed leaves its socket behind.
        Err(Errno::CONNREFUSED) => place.remove(name)?,
        Ok(()) | Err(Errno::AGAIN) => return Err(io::ErrorKind::AddrInUse.into()),
        Err(errno) => return Err(errno.into()),
    }
    let socket = open()?;
    bind(&socket, &address)?;
    // No client connects before it listens.
    chmodat(place.folder(), name, Mode::from_raw_mode(0o600), AtFlags::empty())?;
    listen(&socket, BACKLOG)?;
    Ok(UnixListener::from(socket))
}

/// For tests that give any bytes: a question that comes in parts, each its length and that many
/// bytes. Gives the line that is answered.
pub(crate) fn read_any_question(mut parts: &[u8]) -> Option<String> {
    use std::io::Write as _;

    let (mut asker, stream) = UnixStream::pair().ok()?;
    stream.set_nonblocking(true).ok()?;
    let mut client = Client::new(stream);
    while let Some((len, rest)) = parts.split_first() {
        let (part, after) = rest.split_at(rest.len().min(usize::from(*len)));
        parts = after;
        asker.write_all(part).ok()?;
        match client.look(0) {
            Step::Wait => assert!(client.question.len() <= QUESTION_BYTES_MAX, "it is bounded"),
            Step::Answer => return line_of(&client.question).map(str::to_owned),
            Step::Drop => return None,
        }
    }
    None
}
