//! A request about people, tokens or the audit, as its handlers get it.

use core::future::poll_fn;
use core::pin::Pin;
use core::time::Duration;
use std::sync::Arc;

use hyper::Uri;
use hyper::body::{Body as _, Incoming};
use hyper::header::{HOST, HeaderMap};
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use units::number::to_u64;

use crate::accounts::Accounts;
use crate::given::Given;
use crate::log::Entry;
use crate::peer::Peer;
use crate::problem::Problem;
use crate::service::Service;

/// The line of a request and its heading have at most so many bytes. The library reads up to twice
/// as much at once.
pub(crate) const HEADING_BYTES_MAX: usize = 64 << 10;
/// Beside a name and its value: a colon, a space, the end of the line.
const OF_LINE: usize = 4;
/// Names, passwords and codes have a tenth of it.
const BODY_BYTES_MAX: usize = 16 << 10;
const BODY_TIME: Duration = Duration::from_secs(5);

/// A request that was checked as far as the table of endpoints says.
pub(crate) struct Received<'a> {
    pub(crate) service: &'a Arc<Service>,
    pub(crate) peer: &'a Peer,
    pub(crate) headers: &'a HeaderMap,
    /// The part of the path in the place of `{id}`.
    pub(crate) id: &'a str,
    pub(crate) given: &'a Given,
    pub(crate) body: Option<Incoming>,
    pub(crate) entry: &'a mut Entry,
}

impl Received<'_> {
    /// The people, if this service has any.
    pub(crate) fn accounts(&self) -> Result<&Accounts, Problem> {
        let why = "this service has no people (--people-file)";
        self.service.credentials.accounts.as_ref().ok_or_else(|| Problem::not_found(why))
    }

    /// What the body says. Anybody may send one: few are read at a time, and not for long.
    pub(crate) async fn json<T: DeserializeOwned>(&mut self) -> Result<T, Problem> {
        let body = self.body.take().ok_or_else(Problem::wrong_body)?;
        let _place = self.service.bodies.try_acquire().map_err(|_| Problem::busy())?;
        let texts = ("the body was broken off", "a body has at most 16 KiB here");
        let bytes = timeout(BODY_TIME, whole(body, BODY_BYTES_MAX, texts)).await;
        let bytes = bytes.map_err(|_| Problem::late_body("it has 5 s to arrive"))??;
        // What is wrong in it is not repeated: it has secrets.
        serde_json::from_slice(&bytes).map_err(|_| Problem::wrong_body())
    }

    /// Puts down that something is about to be changed.
    pub(crate) async fn begin_change(&mut self) -> Result<(), Problem> {
        let is_put_down = self.entry.record.begin_change().await;
        is_put_down.then_some(()).ok_or_else(Problem::no_audit)
    }
}

/// All of what a client sends, which is short: what is said where it breaks off, and where it is
/// longer than `most` bytes.
pub(crate) async fn whole(
    mut body: Incoming,
    most: usize,
    (broken_off, too_long): (&str, &str),
) -> Result<Vec<u8>, Problem> {
    if body.size_hint().lower() > to_u64(most) {
        return Err(Problem::too_long(too_long));
    }
    let mut bytes: Vec<u8> = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|_| Problem::broken_body(broken_off))?;
        if let Ok(data) = frame.into_data() {
            bytes.extend_from_slice(&data);
        }
        if bytes.len() > most {
            return Err(Problem::too_long(too_long));
        }
    }
    Ok(bytes)
}

/// What of a heading the library that reads it does not check.
///
/// # Errors
/// When it is too long, or names several hosts (RFC 9112, 3.2).
pub(crate) fn check_heading(uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let lines = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + OF_LINE);
    let target = uri.path_and_query().map_or(0, |target| target.as_str().len());
    if lines.sum::<usize>() + target > HEADING_BYTES_MAX {
        return Err(Problem::long_heading());
    }
    match headers.get_all(HOST).iter().count() {
        0 | 1 => Ok(()),
        _ => Err(Problem::several_hosts()),
    }
}
