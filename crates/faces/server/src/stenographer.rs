//! Stenographer's door: `POST /query` with the query as the body, over TLS with a certificate of
//! the client, answered with a pcap file; errors as text. Its programs run against it unchanged.

use core::time::Duration;
use std::sync::Arc;

use host::SystemClock;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request};
use manifest::CaseInfo;
use tokio::time::timeout;
use units::Clock as _;

use people::Scope;
use questions::{ExtractWanted, Form, Narrowed, What};

use crate::api;
use crate::asking;
use crate::body::{Body, Reply};
use crate::checked::{QUERY_BYTES_MAX, checked, seen_times};
use crate::log::Entry;
use crate::peer::Peer;
use crate::problem::Problem;
use crate::received::{check_heading, whole};
use crate::service::Service;
use crate::stream::{self, Framing, Wanted};

const PATH: &str = "/query";
/// As Stenographer says of a capture.
const CAPTURE: &str = "application/octet-stream";
/// A query of at most 32 KiB has so long to arrive.
const BODY_TIME: Duration = Duration::from_secs(10);
/// Limits of an answer; 0 is none.
const LIMIT_PACKETS: &str = "steno-limit-packets";
const LIMIT_BYTES: &str = "steno-limit-bytes";

/// Answers a request at this door, and has a line written about it.
pub(crate) async fn answer(service: Arc<Service>, peer: Peer, request: Request<Incoming>) -> Reply {
    let mut entry = Entry::begin((&service.log, &service.trail), &service.requests, peer.address);
    entry.ask(request.method(), request.uri());
    entry.is_of("stenographer");
    let answered = query(&service, &peer, request, &mut entry).await;
    let reply = answered.unwrap_or_else(|problem| refused(&problem));
    api::finish(reply, entry, refused).await
}

/// As text, which is what its clients show.
fn refused(problem: &Problem) -> Reply {
    let mut reply = hyper::Response::new(Body::text(problem.text()));
    *reply.status_mut() = problem.status();
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    reply.headers_mut().insert(CONTENT_TYPE, text);
    reply
}

async fn query(
    service: &Arc<Service>,
    peer: &Peer,
    request: Request<Incoming>,
    entry: &mut Entry,
) -> Result<Reply, Problem> {
    check_heading(request.uri(), request.headers())?;
    let (shown, caller) = api::caller(service, peer, request.headers());
    entry.record.is_checked(shown);
    let caller = caller?.ok_or_else(Problem::no_credential)?;
    entry.is_by(&caller.name);
    if !caller.scopes.contains(&Scope::Extract) {
        return Err(Problem::no_scope(Scope::Extract.word()));
    }
    if request.uri().path() != PATH {
        return Err(Problem::not_found("/query is what is answered here"));
    }
    if request.method() != Method::POST {
        return Err(Problem::wrong_method(Method::POST.as_str()));
    }
    let packets_max = limit(request.headers(), LIMIT_PACKETS)?;
    let bytes_max = limit(request.headers(), LIMIT_BYTES)?;
    let body = timeout(BODY_TIME, text(request.into_body())).await;
    let query = body.map_err(|_| Problem::late_body("the query has 10 s to arrive"))??;
    entry.add_to_asked(&query);
    let now_ns = SystemClock.realtime().0;
    checked(&query, now_ns)?;
    let most = service.bounds.answer_bytes;
    let wanted = ExtractWanted {
        query: caller.narrowed(&query),
        now_ns,
        form: Form::Pcap,
        // As Stenographer: packets in the query's times.
        narrowed: Narrowed::default(),
        packets_max,
        bytes_max: Some(bytes_max.map_or(most, |bytes| bytes.min(most))),
        behind: None,
        case: CaseInfo::default(),
        approved: None,
    };
    // Stenographer has one; the first is it.
    let first = service.volumes.first().ok_or_else(Problem::no_worker)?;
    let volume = service.volume(Some(&first.name))?;
    entry.record.asks(&query, Some(&volume.name), asking::range(&caller.narrowed(&query)));
    let sees_ns = seen_times(caller.filter.as_deref())?;
    let wanted = Wanted {
        question: service.question(volume, What::Extract(Box::new(wanted)), sees_ns),
        volume_id: volume.id().to_owned(),
        query,
        framing: Framing::AsIs,
        media_type: CAPTURE,
    };
    stream::begin(service, &caller, wanted).await
}

fn limit(headers: &HeaderMap, name: &str) -> Result<Option<u64>, Problem> {
    let Some(given) = headers.get(name) else { return Ok(None) };
    let number = given.to_str().ok().and_then(|text| text.trim().parse::<u64>().ok());
    let number =
        number.ok_or_else(|| Problem::wrong_parameter(format!("{name} is no whole number")))?;
    Ok(Some(number).filter(|number| *number > 0))
}

/// All of a query.
async fn text(body: Incoming) -> Result<String, Problem> {
    let texts = ("the query was broken off", "a query has at most 32 KiB");
    let bytes = whole(body, QUERY_BYTES_MAX, texts).await?;
    String::from_utf8(bytes).map_err(|_| Problem::wrong_parameter("the query is no UTF-8"))
}
