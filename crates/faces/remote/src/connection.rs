//! A way to the service.

use std::io;

use https::Unreached;
use hyper::body::Incoming;
use hyper::{Request, Response};
use rustls::CertificateError;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::{Error, Origin};

/// What a heading may have: as much as the service takes of ours.
const HEADING_BYTES_MAX: usize = 64 << 10;

/// Sends a request over a new connection; gives the heading of its answer. The connection lasts as
/// long as the body is held.
pub(crate) async fn send(
    stream: Stream,
    request: Request<String>,
) -> Result<Response<Incoming>, hyper::Error> {
    match stream {
        Stream::Plain(stream) => https::send(stream, request, HEADING_BYTES_MAX).await,
        Stream::Sealed(stream) => https::send(*stream, request, HEADING_BYTES_MAX).await,
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
    let place = (origin.host.as_str(), origin.port);
    let opened = https::connect(place, |address| origin.may_reach(address)).await;
    let stream = opened.map_err(|why| match why {
        Unreached::Elsewhere => Error::Elsewhere { origin: origin.clone() },
        Unreached::Failed(error) => unreachable(&error),
    })?;
    // A request is one small packet, and nothing waits for a second one.
    stream.set_nodelay(true).map_err(|error| unreachable(&error))?;
    let Some(tls) = tls else { return Ok(Stream::Plain(stream)) };
    let untrusted = |why: &dyn ToString| Error::Untrusted {
        origin: origin.clone(),
        why: page::safe::printable(&why.to_string()),
    };
    let name = ServerName::try_from(origin.host.clone()).map_err(|error| untrusted(&error))?;
    let sealed = tls.connect(name, stream).await.map_err(|error| untrusted(&in_words(&error)))?;
    Ok(Stream::Sealed(Box::new(sealed)))
}

/// What is wrong with TLS. The library has no words for a certificate that is its own authority,
/// which is what `openssl req -x509` makes.
fn in_words(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(why)))
            if format!("{why:?}").contains("CaUsedAsEndEntity") =>
        {
            "its certificate is one of an authority (CA:TRUE), as many that sign themselves are; a \
             service needs one with CA:FALSE (openssl: basicConstraints=critical,CA:FALSE)"
                .to_owned()
        }
        _ => error.to_string(),
    }
}
