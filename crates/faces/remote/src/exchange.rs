//! Requests to a server that is none of ours, over the same way: certificates, credentials,
//! deadlines and bounds are those of a service.

use core::time::Duration;

use host::SystemClock;
use hyper::{Method, Request, StatusCode};
use units::{Clock as _, Sleep as _, nanos};

use crate::answer::Answer;
use crate::asker::{Asker, Settings};
use crate::{Error, JSON, Origin};

/// A server that has too much to do is asked again after so long.
const AGAIN: Duration = Duration::from_millis(100);
/// What a server says of why it refuses.
const WHY_BYTES_MAX: usize = 4 << 10;

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub enum Sent<'a> {
    /// `POST` of this text.
    Post(&'a str),
    /// `GET`.
    Get,
    /// `DELETE`.
    Delete,
}

/// A server that is asked.
#[derive(Debug)]
pub struct Exchange {
    asker: Asker,
    headings: Vec<(&'static str, String)>,
}

impl Exchange {
    /// A server at this place, which is told these headings each time; nothing is sent yet.
    ///
    /// # Errors
    /// When a file of credentials or certificates is none, or may be read by others.
    pub fn new(
        origin: Origin,
        settings: Settings,
        headings: Vec<(&'static str, String)>,
    ) -> Result<Self, Error> {
        Ok(Self { asker: Asker::new(origin, settings)?, headings })
    }

    /// Sends a request to a path, and gives the body of the answer, of so many bytes at most. While
    /// the server says that it has too much to do, it is asked again.
    ///
    /// # Errors
    /// When there is no answer, or one that is no success.
    pub fn ask(&self, path: &str, sent: Sent<'_>, bytes_max: usize) -> Result<Vec<u8>, Error> {
        let since_ns = SystemClock.boottime_ns();
        loop {
            let response = self.asker.send(self.request(path, sent)?)?;
            let (head, body) = response.into_parts();
            let status = head.status;
            let mut answer = Answer::new(&self.asker, &head.headers, body);
            if status.is_success() {
                return answer.whole(bytes_max);
            }
            let passed_ns = SystemClock.boottime_ns().saturating_sub(since_ns);
            let is_patient = passed_ns < nanos(self.asker.silence());
            if is_busy(status) && is_patient && !self.asker.is_stopped() {
                let again_ns = SystemClock.boottime_ns().saturating_add(nanos(AGAIN));
                SystemClock.sleep_until(again_ns);
                continue;
            }
            let why = answer.whole(WHY_BYTES_MAX).unwrap_or_default();
            let why = String::from_utf8_lossy(&why);
            let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
            return Err(self.asker.unlike(&format!("its status is {status}: {why}")));
        }
    }

    fn request(&self, path: &str, sent: Sent<'_>) -> Result<Request<String>, Error> {
        let mut request = self.asker.request(path, &[], JSON)?;
        let (method, body) = match sent {
            Sent::Post(text) => (Method::POST, text.to_owned()),
            Sent::Get => (Method::GET, String::new()),
            Sent::Delete => (Method::DELETE, String::new()),
        };
        *request.method_mut() = method;
        *request.body_mut() = body;
        for (name, value) in &self.headings {
            let value = value.parse().map_err(|_| Error::TooLong)?;
            request.headers_mut().insert(*name, value);
        }
        Ok(request)
    }
}

/// The three of Trino's protocol, and too many requests.
fn is_busy(status: StatusCode) -> bool {
    [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::BAD_GATEWAY,
        StatusCode::SERVICE_UNAVAILABLE,
        StatusCode::GATEWAY_TIMEOUT,
    ]
    .contains(&status)
}
