//! A connection, and the one request that it is for.

use core::net::IpAddr;
use std::io;

use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};

const HTTPS_PORT: u16 = 443;
const HTTP_PORT: u16 = 80;
/// Headings of an answer.
const HEADERS_MAX: usize = 64;

/// Why a host was not reached.
#[derive(Debug, thiserror::Error)]
pub enum Unreached {
    /// It has an address that may not be asked.
    #[error("it may not be asked at this address")]
    Elsewhere,
    /// The last reason of several.
    #[error(transparent)]
    Failed(#[from] io::Error),
}

/// Connects to the first address of a host that answers. The address is looked at, not the name:
/// the name may have others a moment later.
///
/// # Errors
/// When none answers, or one comes first that `may_reach` refuses.
pub async fn connect(
    (host, port): (&str, u16),
    may_reach: impl Fn(IpAddr) -> bool,
) -> Result<TcpStream, Unreached> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in lookup_host((host, port)).await? {
        if !may_reach(address.ip()) {
            return Err(Unreached::Elsewhere);
        }
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed.into())
}

/// Sends a request over a new connection; gives the heading of its answer, which may have so many
/// bytes. The connection lasts as long as the body is held.
///
/// # Errors
/// When there is no answer.
pub async fn send(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<String>,
    heading_bytes_max: usize,
) -> Result<Response<Incoming>, hyper::Error> {
    let mut builder = http1::Builder::new();
    builder.max_buf_size(heading_bytes_max).max_headers(HEADERS_MAX);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    drop(tokio::spawn(connection));
    sender.send_request(request).await
}

/// Host and port as a request names them: brackets around IPv6, and no port where it is the usual
/// one. The host has no brackets.
pub fn authority(host: &str, port: u16, has_tls: bool) -> String {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let usual = if has_tls { HTTPS_PORT } else { HTTP_PORT };
    if port == usual { host } else { format!("{host}:{port}") }
}
