//! One question to a provider: a connection, a deadline, a bound, and no redirection.

use core::future::poll_fn;
use core::pin::Pin;
use core::time::Duration;
use std::path::Path;
use std::sync::Arc;

use https::{Unreached, Untrusted};
use hyper::body::{Body as _, Incoming};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::{Method, Request, StatusCode};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::error::Error;
use crate::reach::is_public;
use crate::url::Url;

/// From the name of the host to the last byte.
const PATIENCE: Duration = Duration::from_secs(10);
const HEADING_BYTES_MAX: usize = 32 << 10;
const NAME: &str = "wirespool";
const JSON: &str = "application/json";

/// What is asked.
#[derive(Clone, Debug)]
pub(crate) struct Question<'a> {
    pub(crate) url: &'a Url,
    /// What a form sends; a question without it is a plain one.
    pub(crate) form: Option<String>,
    pub(crate) authorization: Option<String>,
    /// An answer of more bytes is none.
    pub(crate) bytes_max: usize,
}

/// What came.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) is_success: bool,
    pub(crate) bytes: Vec<u8>,
}

/// How providers are asked.
#[derive(Clone)]
pub(crate) struct Fetch {
    /// The provider's own host may be a private one, for somebody has written it down.
    home: Url,
    tls: TlsConnector,
}

impl core::fmt::Debug for Fetch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Fetch").field("home", &self.home).finish_non_exhaustive()
    }
}

impl Fetch {
    /// Of a provider at an address, by certificates of a file, or of the system.
    pub(crate) fn new(home: Url, ca: Option<&Path>) -> Result<Self, Error> {
        let roots = https::roots(ca).map_err(untrusted)?;
        let mut config = https::client(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { home, tls: TlsConnector::from(Arc::new(config)) })
    }

    /// Asks; why there is no answer.
    pub(crate) async fn ask(&self, question: Question<'_>) -> Result<Answer, String> {
        let host = question.url.authority();
        let asked = timeout(PATIENCE, self.asked(question)).await;
        let asked = asked.unwrap_or_else(|_| Err("it takes longer than 10 s".to_owned()));
        asked.map_err(|why| page::safe::printable(&format!("{host}: {why}")))
    }

    async fn asked(&self, question: Question<'_>) -> Result<Answer, String> {
        let (url, bytes_max) = (question.url, question.bytes_max);
        let request = request(question)?;
        let stream = self.connect(url).await?;
        let response = if url.is_sealed {
            let name = ServerName::try_from(url.host.clone()).map_err(|error| error.to_string())?;
            let sealed = self.tls.connect(name, stream).await.map_err(|error| error.to_string())?;
            https::send(sealed, request, HEADING_BYTES_MAX).await
        } else {
            https::send(stream, request, HEADING_BYTES_MAX).await
        };
        let response = response.map_err(|error| error.to_string())?;
        let status = response.status();
        if status.is_redirection() {
            return Err("it sends us elsewhere, which is not followed".to_owned());
        }
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return Err(format!("it answers with status {}", status.as_u16()));
        }
        let bytes = whole(response.into_body(), bytes_max).await?;
        Ok(Answer { is_success: status.is_success(), bytes })
    }

    async fn connect(&self, url: &Url) -> Result<TcpStream, String> {
        let may_be_private = url.is_at_one(&self.home);
        let may_reach = |address| may_be_private || is_public(address);
        let opened = https::connect((url.host.as_str(), url.port), may_reach).await;
        opened.map_err(|why| match why {
            Unreached::Elsewhere => {
                "its address is a private one, on another host than the provider's".to_owned()
            }
            Unreached::Failed(error) => error.to_string(),
        })
    }
}

fn request(question: Question<'_>) -> Result<Request<String>, String> {
    let wrong = |_| "it cannot be asked so".to_owned();
    let form = question.form;
    let method = if form.is_some() { Method::POST } else { Method::GET };
    let mut builder = Request::builder()
        .method(method)
        .uri(&question.url.path)
        .header(HOST, question.url.authority())
        .header(USER_AGENT, NAME)
        .header(ACCEPT, JSON);
    if form.is_some() {
        builder = builder.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
    }
    if let Some(secret) = question.authorization {
        let mut value = HeaderValue::try_from(secret).map_err(|_| "a secret is none".to_owned())?;
        value.set_sensitive(true);
        builder = builder.header(AUTHORIZATION, value);
    }
    builder.body(form.unwrap_or_default()).map_err(wrong)
}

async fn whole(mut body: Incoming, most: usize) -> Result<Vec<u8>, String> {
    let mut bytes: Vec<u8> = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|_| "its answer breaks off".to_owned())?;
        if let Ok(data) = frame.into_data() {
            bytes.extend_from_slice(&data);
        }
        if bytes.len() > most {
            return Err(format!("its answer has more than {most} bytes"));
        }
    }
    Ok(bytes)
}

fn untrusted(error: Untrusted) -> Error {
    match error {
        Untrusted::Host(error) => error.into(),
        Untrusted::File { path, why } => Error::Settings { path, why: page::safe::printable(&why) },
    }
}
