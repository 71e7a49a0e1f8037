//! The interface under `/api/v1`: requests are checked by the table of endpoints, and answered.

use std::sync::Arc;

use audit::Credential;
use host::SystemClock;
use hyper::body::{Body as _, Incoming};
use hyper::header::{
    AUTHORIZATION, CACHE_CONTROL, HeaderMap, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request};
use interface::{Endpoint, Matter, Needs};
use people::{Holder, Scope, hash_of};
use units::Clock as _;

use crate::access::{Caller, bearer};
use crate::body::Reply;
use crate::given::Given;
use crate::log::Entry;
use crate::peer::Peer;
use crate::problem::Problem;
use crate::received::{Received, check_heading};
use crate::service::Service;
use crate::{asking, bundle, manage, of_volumes};

/// A page of another origin cannot send it without asking, and is refused then.
const FROM_PAGE: HeaderName = HeaderName::from_static("x-wirespool");
/// What a browser says of the page that asks (Fetch Metadata); pages cannot set it.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const OTHER_SITES: [&str; 2] = ["cross-site", "same-site"];

/// Answers a request at the interface, and has a line written about it.
pub(crate) async fn answer(service: Arc<Service>, peer: Peer, request: Request<Incoming>) -> Reply {
    let mut entry = Entry::begin((&service.log, &service.trail), &service.requests, peer.address);
    entry.ask(request.method(), request.uri());
    if request.method() == Method::HEAD {
        // Its answer has no bytes that could be missing.
        entry.end();
    }
    let answered = route(&service, &peer, request, &mut entry).await;
    let reply = answered.unwrap_or_else(|problem| problem.reply());
    finish(reply, entry, Problem::reply).await
}

/// With the headings that all answers have, once it is put down what is answered.
pub(crate) async fn finish(
    mut reply: Reply,
    mut entry: Entry,
    refuse: fn(&Problem) -> Reply,
) -> Reply {
    let has_begun = entry.record.has_begun();
    let is_put_down = entry.record.answer(reply.status(), reply.body().ready_bytes()).await;
    if !is_put_down {
        let none = if has_begun { Problem::no_audit_of_change } else { Problem::no_audit };
        reply = refuse(&none());
    }
    entry.answer_with(reply.status());
    let headers = reply.headers_mut();
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    reply.map(|body| body.logged(entry))
}

async fn route(
    service: &Arc<Service>,
    peer: &Peer,
    request: Request<Incoming>,
    entry: &mut Entry,
) -> Result<Reply, Problem> {
    let (request, body) = request.into_parts();
    let (method, headers) = (&request.method, &request.headers);
    check_heading(&request.uri, headers)?;
    let path = request.uri.path();
    let found = interface::find(path, method.as_str());
    let (mut shown, mut caller) = caller(service, peer, headers);
    let is_entering = found.is_some_and(|(endpoint, _)| endpoint.needs == Needs::Secret);
    if is_entering && !headers.contains_key(AUTHORIZATION) {
        // Who was there before does not count.
        (shown, caller) = (None, Ok(None));
    }
    if let Ok(Some(caller)) = &caller {
        entry.is_by(&caller.name);
    }
    if let Some(file) = bundle::file(path) {
        entry.is_of("page");
        // Behind the question mark may be what a provider has sent.
        entry.leave_out_query();
        return file.answer(method, headers);
    }
    match found {
        Some((endpoint, _)) if endpoint.needs == Needs::Nothing => entry.record.is_open(shown),
        _ => entry.record.is_checked(shown),
    }
    let Some((endpoint, id)) = found else {
        // Who may not ask does not learn what there is.
        caller?.ok_or_else(Problem::no_credential)?;
        return Err(Problem::not_found("/api/v1/openapi.json lists what there is"));
    };
    entry.is_of(endpoint.path);
    let caller = permitted(endpoint, caller)?;
    if method.as_str() != endpoint.method.word() {
        return Err(Problem::wrong_method(&interface::methods(endpoint)));
    }
    check_origin(endpoint, headers)?;
    if endpoint.body.is_empty() && !body.is_end_stream() {
        return Err(Problem::takes_no_body());
    }
    let given = Given::read(endpoint, request.uri.query().unwrap_or_default())?;
    let (what, of_volumes) = (endpoint.what, endpoint.what.is_of_volumes());
    if let (true, Some(caller)) = (of_volumes, &caller) {
        put_down(service, caller, (endpoint, &given), entry);
        return of_volumes::answer(service, (caller, headers, entry), (what, id, &given)).await;
    }
    if what == Matter::Health {
        return Ok(asking::health(service, None));
    }
    let (given, body) = (&given, Some(body));
    let received = Received { service, peer, headers, id, given, body, entry };
    match caller {
        Some(caller) if !is_entering => manage::answer(received, &caller, what).await,
        caller => manage::answer_entering(received, caller.as_ref(), what).await,
    }
}

/// Who may ask at an endpoint; none where anybody may.
fn permitted(
    endpoint: &Endpoint,
    caller: Result<Option<Caller>, Problem>,
) -> Result<Option<Caller>, Problem> {
    let scopes: &[Scope] = match &endpoint.needs {
        Needs::Nothing => return Ok(caller.unwrap_or_default()),
        Needs::Secret => return caller,
        Needs::Credential => &[],
        Needs::Scope(scope) => core::slice::from_ref(scope),
        Needs::OneOf(scopes) => scopes,
    };
    let caller = caller?.ok_or_else(Problem::no_credential)?;
    let must_change = caller.person.as_ref().is_some_and(|person| person.must_change_password);
    if must_change && !endpoint.what.is_before_change() {
        return Err(Problem::must_change_password());
    }
    let has_one = scopes.iter().any(|scope| caller.scopes.contains(scope));
    if scopes.is_empty() || has_one {
        return Ok(Some(caller));
    }
    let words: Vec<&str> = scopes.iter().map(|scope| scope.word()).collect();
    Err(Problem::no_scope(&words.join(" or ")))
}

/// What changes something was sent by a page of ours, or by no page.
fn check_origin(endpoint: &Endpoint, headers: &HeaderMap) -> Result<(), Problem> {
    if endpoint.method == interface::Method::Get {
        return Ok(());
    }
    let site = headers.get(FETCH_SITE).and_then(|value| value.to_str().ok());
    if site.is_some_and(|site| OTHER_SITES.contains(&site)) {
        return Err(Problem::cross_origin());
    }
    let is_sent = headers.contains_key(FROM_PAGE);
    let why = "the heading X-Wirespool is missing";
    is_sent.then_some(()).ok_or_else(|| Problem::wrong_parameter(why))
}

/// What is shown, and who asks; none where nothing is shown, and a problem where it is not known,
/// or not any more.
pub(crate) fn caller(
    service: &Service,
    peer: &Peer,
    headers: &HeaderMap,
) -> (Option<Credential>, Result<Option<Caller>, Problem>) {
    service.refresh_access();
    let now = SystemClock.realtime();
    let (shown, known) = if headers.contains_key(AUTHORIZATION) {
        let token = bearer(headers);
        let known =
            token.and_then(|token| service.credentials.access.by_hash(&hash_of(token), now));
        (Credential::Token, known)
    } else if let Some(holder) = service.credentials.logins.holder(headers, peer.has_tls) {
        match holder {
            Holder::Token(hash) => {
                (Credential::Cookie, service.credentials.access.by_hash(&hash, now))
            }
            Holder::Person { name, stamp } => {
                let accounts = service.credentials.accounts.as_ref();
                let known = accounts.and_then(|accounts| accounts.caller(&name, &stamp));
                (Credential::Person, known)
            }
            Holder::Provider { subject, name, role } => {
                let accounts = service.credentials.accounts.as_ref();
                (Credential::Provider, accounts.map(|it| it.guest((&name, &subject), &role)))
            }
        }
    } else if let Some(common_name) = &peer.certificate {
        (Credential::Certificate, service.credentials.access.by_certificate(common_name, now))
    } else {
        return (None, Ok(None));
    };
    (Some(shown), known.map(Some).ok_or_else(Problem::no_credential))
}

/// Puts down what is asked of which volume.
fn put_down(
    service: &Service,
    caller: &Caller,
    (endpoint, given): (&Endpoint, &Given),
    entry: &mut Entry,
) {
    if endpoint.parameters.iter().any(|parameter| parameter.name == "query") {
        let volume = service.volume(given.text("volume")).ok();
        let query = given.query();
        let range = asking::range(&caller.narrowed(&query));
        entry.record.asks(&query, volume.map(|volume| &*volume.name), range);
    }
}
