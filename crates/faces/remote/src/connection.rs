//! A connection, and the one request that it is for.

use std::io;

use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;

use crate::{Error, Origin};

/// What a heading may have: as much as the service takes of ours.
const HEADING_BYTES_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 64;

/// Sends a request over a new connection; gives the heading of its answer. The connection lasts as
/// long as the body is held.
pub(crate) async fn send(
    stream: Stream,
    request: Request<String>,
) -> Result<Response<Incoming>, hyper::Error> {
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEADING_BYTES_MAX).max_headers(HEADERS_MAX);
    match stream {
        Stream::Plain(stream) => {
            let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
            drop(tokio::spawn(connection));
            sender.send_request(request).await
        }
        Stream::Sealed(stream) => {
            let (mut sender, connection) = builder.handshake(TokioIo::new(*stream)).await?;
            drop(tokio::spawn(connection));
            sender.send_request(request).await
        }
    }
}

/// A way to the service.
pub(crate) enum Stream {
    Plain(TcpStream),
    Sealed(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

/// Opens one: to the first address that answers.
pub(crate) async fn open(origin: &Origin, tls: Option<&TlsConnector>) -> Result<Stream, Error> {
    let unreachable = |error: &io::Error| Error::Unreachable {
        origin: origin.clone(),
        why: page::safe::printable(&error.to_string()),
    };
    let found = lookup_host((origin.host.as_str(), origin.port)).await;
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let mut opened = None;
    for address in found.map_err(|error| unreachable(&error))? {
        if !origin.may_reach(address.ip()) {
            return Err(Error::Elsewhere { origin: origin.clone() });
        }
        match TcpStream::connect(address).await {
            Ok(stream) => {
                opened = Some(stream);
                break;
            }
            Err(error) => failed = error,
        }
    }
    let stream = opened.ok_or_else(|| unreachable(&failed))?;
    // A request is one small packet, and nothing waits for a second one.
    stream.set_nodelay(true).map_err(|error| unreachable(&error))?;
    let Some(tls) = tls else { return Ok(Stream::Plain(stream)) };
    let untrusted = |why: &dyn ToString| Error::Untrusted {
        origin: origin.clone(),
        why: page::safe::printable(&why.to_string()),
    };
    let name = ServerName::try_from(origin.host.clone()).map_err(|error| untrusted(&error))?;
    let sealed = tls.connect(name, stream).await.map_err(|error| untrusted(&error))?;
    Ok(Stream::Sealed(Box::new(sealed)))
}
