//! Connections: at most so many, none that is silent or slow keeps another one out, and all of them
//! end in order.
//!
//! When there is no room for one more, the one that has waited longest without a request leaves.
//! One that is being answered stays.

use core::pin::pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use host::{HandedListener, SystemClock};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use units::Clock as _;

use crate::Error;
use crate::body::Reply;
use crate::busy::Busy;
use crate::peer::Peer;
use crate::received::HEADING_BYTES_MAX;
use crate::service::Service;
use crate::tls::{self, Certificates, Current};
use crate::{api, stenographer};

/// A client has so long for the heading of a request, and between two requests.
const HEADING_TIME: Duration = Duration::from_secs(10);
/// And for the handshake before the first one.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
const HEADERS_MAX: usize = 64;
/// Where the system has no descriptor for one more connection.
const AGAIN: Duration = Duration::from_millis(100);

/// Who is answered at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Interface,
    Stenographer,
}

/// An address that is listened at.
pub(crate) struct Door {
    pub(crate) address: SocketAddr,
    /// Where it is open already.
    pub(crate) handed: Option<HandedListener>,
    pub(crate) tls: Option<Arc<Certificates>>,
    pub(crate) kind: Kind,
}

/// An address that is taken: who connects waits.
pub(crate) struct Taken {
    listener: TcpListener,
    door: Door,
    pub(crate) address: SocketAddr,
}

impl Door {
    /// Takes the address.
    pub(crate) async fn take(self) -> Result<Taken, Error> {
        let address = self.address;
        let refused = |source| Error::Listen { address, source };
        let listener = match &self.handed {
            Some(handed) => TcpListener::from_std(handed.nonblocking()?),
            None => TcpListener::bind(address).await,
        };
        let listener = listener.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok(Taken { listener, door: self, address })
    }
}

/// All that listen, and their connections.
#[derive(Clone, Debug)]
pub(crate) struct Doors {
    service: Arc<Service>,
    open: Arc<Mutex<Open>>,
    draining: watch::Receiver<bool>,
}

#[derive(Debug)]
struct Open {
    most: usize,
    next: u64,
    /// By age.
    connections: BTreeMap<u64, Connection>,
}

#[derive(Debug)]
struct Connection {
    /// A request of it is being answered.
    is_busy: Arc<AtomicBool>,
    /// `None` until its task runs.
    task: Option<AbortHandle>,
}

impl Doors {
    pub(crate) fn new(service: Arc<Service>, most: usize, draining: watch::Receiver<bool>) -> Self {
        let open = Open { most, next: 0, connections: BTreeMap::new() };
        Self { service, open: Arc::new(Mutex::new(open)), draining }
    }

    /// How many connections there are.
    pub(crate) fn count(&self) -> usize {
        stage::lock(&self.open).connections.len()
    }

    /// Begins to answer at an address; a line that says so.
    pub(crate) fn open(&self, taken: Taken) -> String {
        let Taken { listener, door, address } = taken;
        let line = open_line(door.kind, address, door.tls.is_some());
        tokio::spawn(self.clone().listen(listener, door));
        line
    }

    async fn listen(self, listener: TcpListener, door: Door) {
        let mut draining = self.draining.clone();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = draining.changed() => return,
            };
            let Ok((stream, address)) = accepted else {
                sleep(AGAIN).await;
                continue;
            };
            let Some((guard, is_busy)) = self.enter() else { continue };
            let number = guard.number;
            let (doors, tls, kind) = (self.clone(), door.tls.clone(), door.kind);
            let task = tokio::spawn(async move {
                let _guard = guard;
                // Small answers are not held back for more.
                stream.set_nodelay(true).unwrap_or_default();
                let Some(certificates) = tls else {
                    let peer = Peer { address, has_tls: false, certificate: None };
                    return doors.converse(stream, kind, &|| peer.clone(), &is_busy).await;
                };
                let current = doors.current(&certificates);
                let accepted = timeout(HANDSHAKE_TIME, current.acceptor.accept(stream)).await;
                let stream = match accepted {
                    Ok(Ok(stream)) => stream,
                    Ok(Err(error)) => return doors.note_bad_handshake(address, &error.to_string()),
                    Err(_) => return doors.note_bad_handshake(address, "it took too long"),
                };
                let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
                let certificate = shown.and_then(tls::common_name);
                let peer = Peer { address, has_tls: true, certificate };
                // A connection that stays open outlives no certificate of its client.
                let peer_now = || {
                    let is_current = |_: &String| doors.current(&certificates).is_as(&current);
                    let certificate = peer.certificate.clone().filter(is_current);
                    Peer { certificate, ..peer }
                };
                doors.converse(stream, kind, &peer_now, &is_busy).await;
            });
            self.is_run_by(number, task.abort_handle());
        }
    }

    /// A client that shows a certificate that does not count asks nothing, and has no other line.
    fn note_bad_handshake(&self, address: SocketAddr, why: &str) {
        self.service.requests.note_bad_handshake();
        let (now, why) = (SystemClock.realtime(), page::safe::printable(why));
        self.service.log.say_of_request(&format!("{now} - {address} no TLS: {why}"));
    }

    /// The certificates that count now.
    fn current(&self, certificates: &Certificates) -> Current {
        let (current, wrong) = certificates.now();
        if let Some(error) = wrong {
            self.service.log.say(&format!("the certificates of before count: {error}"));
        }
        current
    }

    /// Takes a connection in. `None` where all others are being answered.
    fn enter(&self) -> Option<(Guard, Arc<AtomicBool>)> {
        let mut open = stage::lock(&self.open);
        if open.connections.len() >= open.most {
            let idle = open.connections.iter().find(|(_, it)| !it.is_busy.load(Ordering::Relaxed));
            let number = *idle?.0;
            let oldest = open.connections.remove(&number);
            if let Some(task) = oldest.and_then(|connection| connection.task) {
                task.abort();
            }
            self.service.requests.note_pushed_out();
        }
        let number = open.next;
        open.next += 1;
        let is_busy = Arc::new(AtomicBool::new(false));
        let connection = Connection { is_busy: Arc::clone(&is_busy), task: None };
        open.connections.insert(number, connection);
        self.service.requests.note_connections(open.connections.len());
        Some((Guard { number, doors: self.clone() }, is_busy))
    }

    fn is_run_by(&self, number: u64, task: AbortHandle) {
        let mut open = stage::lock(&self.open);
        if let Some(connection) = open.connections.get_mut(&number) {
            connection.task = Some(task);
        }
    }

    /// Answers requests until the client leaves, is too slow, or the service ends.
    async fn converse(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        kind: Kind,
        peer: &(dyn Fn() -> Peer + Sync),
        is_busy: &Arc<AtomicBool>,
    ) {
        let answer = |request: hyper::Request<Incoming>| {
            let (service, peer) = (Arc::clone(&self.service), peer());
            is_busy.store(true, Ordering::Relaxed);
            let busy = Busy(Arc::clone(is_busy));
            async move {
                let reply: Reply = match kind {
                    Kind::Interface => api::answer(service, peer, request).await,
                    Kind::Stenographer => stenographer::answer(service, peer, request).await,
                };
                Ok::<_, core::convert::Infallible>(reply.map(|body| body.keeping(busy)))
            }
        };
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEADING_TIME);
        builder.max_buf_size(HEADING_BYTES_MAX).max_headers(HEADERS_MAX);
        let mut connection =
            pin!(builder.serve_connection(TokioIo::new(stream), service_fn(answer)));
        let mut draining = self.draining.clone();
        tokio::select! {
            // A client that breaks off is no error of ours.
            _ = connection.as_mut() => return,
            _ = draining.wait_for(|is_draining| *is_draining) => {}
        }
        connection.as_mut().graceful_shutdown();
        drop(connection.await);
    }
}

/// A connection is counted until this is dropped.
struct Guard {
    number: u64,
    doors: Doors,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut open = stage::lock(&self.doors.open);
        open.connections.remove(&self.number);
        self.doors.service.requests.note_connections(open.connections.len());
    }
}

/// Where a door is open, in a line.
fn open_line(kind: Kind, address: SocketAddr, has_tls: bool) -> String {
    let scheme = if has_tls { "https" } else { "http" };
    let what = match kind {
        Kind::Interface => "listening at",
        Kind::Stenographer => "answering Stenographer's clients at",
    };
    page::safe::printable(&format!("{what} {scheme}://{address}"))
}
