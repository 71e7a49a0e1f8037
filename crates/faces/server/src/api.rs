//! The interface under `/api/v1`: requests are checked by the table of endpoints, and answered.

use core::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use audit::Credential;
use extract::Weight;
use host::SystemClock;
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, HeaderMap, HeaderName, HeaderValue, REFERRER_POLICY,
    SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request};
use query::{Field, Query};
use serde_json::{Value, json};
use units::{Clock as _, Timestamp};

use crate::access::{Caller, hash_of};
use crate::body::{Body, Reply, reply};
use crate::endpoints::{Endpoint, JSON, Matter, NDJSON, Needs, PCAPNG};
use crate::listen::Peer;
use crate::log::Entry;
use crate::problem::Problem;
use crate::question::{
    Cursor, ExtractWanted, Form, Order, PacketsWanted, SessionsWanted, SummaryWanted, What,
};
use crate::service::Service;
use crate::stream::{self, Framing, Wanted};
use crate::{bundle, endpoints, holds, openapi};

/// A page of another origin cannot send it without asking, and is refused then.
const FROM_PAGE: HeaderName = HeaderName::from_static("x-wirespool");

const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
/// A longer query is none that anybody wrote.
pub(crate) const QUERY_BYTES_MAX: usize = 32 << 10;
/// Sessions of a page, if the request does not say how many.
const PAGE: u64 = 100;
const PAGE_MAX: u64 = 10_000;
/// Values of a field in a summary, and how many fields it may have.
const VALUES: u64 = 10;
const VALUES_MAX: u64 = 1000;
const FIELDS_MAX: usize = 16;
/// Packets that are shown.
const PACKETS: u64 = 1000;
const PACKETS_MAX: u64 = 10_000;

/// Answers a request at the interface, and has a line written about it.
pub(crate) async fn answer(service: Arc<Service>, peer: Peer, request: Request<Incoming>) -> Reply {
    let mut entry = Entry::begin((&service.log, &service.trail), &service.requests, peer.address);
    entry.ask(request.method(), request.uri());
    if request.method() == Method::HEAD {
        // Its answer has no bytes that could be missing.
        entry.end();
    }
    let answered = route(&service, &peer, &request, &mut entry).await;
    let reply = answered.unwrap_or_else(|problem| problem.reply());
    finish(reply, entry, Problem::reply).await
}

/// With the headings that all answers have, once it is put down what is answered.
pub(crate) async fn finish(
    mut reply: Reply,
    mut entry: Entry,
    refuse: fn(&Problem) -> Reply,
) -> Reply {
    let is_put_down = entry.record.answer(reply.status(), reply.body().ready_bytes()).await;
    if !is_put_down {
        reply = refuse(&Problem::no_audit());
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
    request: &Request<Incoming>,
    entry: &mut Entry,
) -> Result<Reply, Problem> {
    let (shown, caller) = caller(service, peer, request.headers());
    if let Ok(Some(caller)) = &caller {
        entry.is_by(&caller.name);
    }
    let path = request.uri().path();
    if let Some(file) = bundle::file(path) {
        entry.is_of("page");
        return file.answer(request.method(), request.headers());
    }
    let found = endpoints::find(path, request.method());
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
    let caller = match endpoint.needs {
        Needs::Nothing => caller.unwrap_or_default(),
        Needs::Credential => Some(caller?.ok_or_else(Problem::no_credential)?),
        Needs::Scope(scope) => {
            let caller = caller?.ok_or_else(Problem::no_credential)?;
            if !caller.scopes.contains(&scope) {
                return Err(Problem::no_scope(scope.word()));
            }
            Some(caller)
        }
    };
    if request.method() != endpoint.method {
        return Err(Problem::wrong_method(&endpoints::methods(endpoint)));
    }
    if endpoint.method != Method::GET && !request.headers().contains_key(FROM_PAGE) {
        return Err(Problem::wrong_parameter("the heading X-Wirespool is missing"));
    }
    let given = Given::read(endpoint, request.uri().query().unwrap_or_default())?;
    let Some(caller) = caller else { return Ok(health(service, None)) };
    put_down(service, &caller, (endpoint, &given), entry);
    let changes = [Matter::Hold, Matter::Release].contains(&endpoint.what);
    if changes && !entry.record.begin_change().await {
        return Err(Problem::no_audit());
    }
    answer_to(service, (peer, request.headers()), &caller, (endpoint.what, id, &given)).await
}

/// What was checked is answered.
async fn answer_to(
    service: &Arc<Service>,
    (peer, headers): (&Peer, &HeaderMap),
    caller: &Caller,
    (what, id, given): (Matter, &str, &Given),
) -> Result<Reply, Problem> {
    match what {
        Matter::Health => Ok(health(service, Some(caller))),
        Matter::OpenApi => Ok(reply(JSON, Body::text(openapi::document()))),
        Matter::Login => login(service, peer, caller, headers),
        Matter::Logout => Ok(logout(service, peer, headers)),
        Matter::Caller => Ok(whoami(service, caller)),
        Matter::Fields => Ok(reply(JSON, Body::text(fields()))),
        Matter::Volumes => volumes(service).await,
        Matter::Sessions => sessions(service, caller, given, headers).await,
        Matter::Summary => summary(service, caller, given).await,
        Matter::Packets => packets(service, caller, given).await,
        Matter::Extract => extract(service, caller, given).await,
        Matter::Holds => holds::list(service, caller, given.text("volume")).await,
        Matter::Hold => hold(service, caller, given).await,
        Matter::Release => holds::release(service, caller, id).await,
        Matter::Answer => known_answer(service, caller, id),
        Matter::Manifest => manifest(service, caller, id),
        Matter::Metrics => Ok(reply(PROMETHEUS, Body::text(service.scrape().await))),
    }
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
        let known = token(headers).and_then(|token| service.access.by_hash(&hash_of(token), now));
        (Credential::Token, known)
    } else if let Some(hash) = service.logins.credential(headers, peer.has_tls) {
        (Credential::Cookie, service.access.by_hash(&hash, now))
    } else if let Some(common_name) = &peer.certificate {
        (Credential::Certificate, service.access.by_certificate(common_name, now))
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
        let range = range(&caller.narrowed(&query));
        entry.record.asks(&query, volume.map(|volume| &*volume.name), range);
    }
}

/// The times that a query permits.
pub(crate) fn range(query: &str) -> [Option<String>; 2] {
    let parsed = (query.len() <= 2 * QUERY_BYTES_MAX)
        .then(|| Query::parse(query, SystemClock.realtime()).ok())
        .flatten();
    let Some((from, until)) = parsed.map(|query| query.time_range()) else { return [None, None] };
    let bound = |time: Timestamp, none: i64| (time.0 != none).then(|| time.to_string());
    [bound(from, i64::MIN), bound(until, i64::MAX)]
}

/// The token that a request shows.
fn token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The parameters of a request, each once and each known to its endpoint.
struct Given(Vec<(&'static str, String)>);

impl Given {
    fn read(endpoint: &Endpoint, query: &str) -> Result<Self, Problem> {
        let mut given: Vec<(&'static str, String)> = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let known = endpoint.parameters.iter().find(|parameter| parameter.name == name);
            let Some(known) = known else {
                let names = endpoint.parameters.iter().map(|parameter| parameter.name);
                let meant = query::nearest(&name, names);
                let meant =
                    meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
                let why = format!("{name:?} is no parameter of {}{meant}", endpoint.path);
                return Err(Problem::wrong_parameter(why));
            };
            if given.iter().any(|(other, _)| *other == known.name) {
                return Err(Problem::wrong_parameter(format!("{name} is given twice")));
            }
            given.push((known.name, value.into_owned()));
        }
        Ok(Self(given))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| *other == name).map(|(_, value)| &**value)
    }

    /// The query that is asked; all sessions without it.
    fn query(&self) -> String {
        self.text("query").unwrap_or_default().to_owned()
    }

    fn number(&self, name: &str) -> Result<Option<u64>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number = text.parse().ok().filter(|number| *number > 0);
        let why = || Problem::wrong_parameter(format!("{name} is no whole number above 0"));
        number.map(Some).ok_or_else(why)
    }

    /// A number of this name, `usual` without it.
    fn at_most(&self, name: &str, usual: u64, most: u64) -> Result<u64, Problem> {
        let number = self.number(name)?.unwrap_or(usual);
        let why = || Problem::wrong_parameter(format!("{name} is at most {most}"));
        Some(number).filter(|number| *number <= most).ok_or_else(why)
    }

    /// One of these by its word, `usual` without it.
    fn choice<T: Copy>(
        &self,
        name: &str,
        (all, usual): (&[T], T),
        word: fn(T) -> &'static str,
    ) -> Result<T, Problem> {
        let Some(text) = self.text(name) else { return Ok(usual) };
        let words: Vec<&str> = all.iter().copied().map(word).collect();
        let why = || Problem::wrong_parameter(format!("{name} is {}", words.join(" or ")));
        all.iter().copied().find(|one| word(*one) == text).ok_or_else(why)
    }

    fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.text(name) {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1" | "") => Ok(true),
            Some(_) => Err(Problem::wrong_parameter(format!("{name} is true or false"))),
        }
    }
}

/// Of who has no credential whether it is well, and of others why.
fn health(service: &Service, caller: Option<&Caller>) -> Reply {
    let is_stopping = service.is_stopping.load(Ordering::Relaxed);
    let can_start = service.workers.can_start();
    let knows_credentials = service.knows_credentials();
    let writes_audit = service.trail.is_well();
    let is_well = !is_stopping && can_start && knows_credentials && writes_audit;
    let mut said = json!({ "ok": is_well });
    if let (Some(_), Some(said)) = (caller, said.as_object_mut()) {
        said.insert("is_stopping".to_owned(), is_stopping.into());
        said.insert("workers_start".to_owned(), can_start.into());
        said.insert("audit_written".to_owned(), writes_audit.into());
        said.insert("workers".to_owned(), service.workers.running().into());
        said.insert("queue".to_owned(), service.workers.waiting().into());
        let names = service.volumes.iter().map(|volume| volume.name.clone());
        said.insert("volumes".to_owned(), names.collect());
    }
    let mut reply = reply(JSON, Body::text(page::safe::json_line(&said)));
    if !is_well {
        *reply.status_mut() = hyper::StatusCode::SERVICE_UNAVAILABLE;
    }
    reply
}

/// Begins a session of a browser in the name of the token that was sent.
fn login(
    service: &Service,
    peer: &Peer,
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<Reply, Problem> {
    let token = token(headers).ok_or_else(Problem::no_credential)?;
    let cookie = service.logins.begin(hash_of(token), peer.has_tls);
    let cookie = cookie.ok_or_else(Problem::no_worker)?;
    let mut reply = whoami(service, caller);
    reply.headers_mut().insert(SET_COOKIE, cookie);
    Ok(reply)
}

fn logout(service: &Service, peer: &Peer, headers: &HeaderMap) -> Reply {
    let mut reply = reply(JSON, Body::text("{}\n"));
    reply.headers_mut().insert(SET_COOKIE, service.logins.end(headers, peer.has_tls));
    reply
}

fn whoami(service: &Service, caller: &Caller) -> Reply {
    let volumes = service.volumes.iter();
    let volumes: Vec<Value> =
        volumes.map(|volume| json!({"name": volume.name, "id": volume.id})).collect();
    let scopes: Vec<&str> = caller.scopes.iter().map(|scope| scope.word()).collect();
    let said = json!({
        "name": caller.name,
        "scopes": scopes,
        "filter": caller.filter,
        "volumes": volumes,
        "version": service.version,
        "now_ns": SystemClock.realtime().0,
    });
    reply(JSON, Body::text(page::safe::json_line(&said)))
}

/// What a query can ask for here.
fn fields() -> String {
    static TEXT: OnceLock<String> = OnceLock::new();
    let of_rows = || query::FIELDS.iter().copied().filter(|field| !field.needs_atlas());
    let text = || {
        let fields = session_view::fields_json(&of_rows().collect::<Vec<_>>());
        format!("{{\"fields\":{fields}}}")
    };
    TEXT.get_or_init(text).clone()
}

async fn volumes(service: &Arc<Service>) -> Result<Reply, Problem> {
    let mut volumes = Vec::new();
    for volume in &service.volumes {
        let state = service.statuses.of(service, volume).await;
        let (name, id) = (&volume.name, &volume.id);
        volumes.push(match state {
            Ok(Value::Object(mut state)) => {
                state.insert("name".to_owned(), name.clone().into());
                Value::Object(state)
            }
            Ok(_) => json!({"name": name, "volume_id": id}),
            Err(problem) => json!({"name": name, "volume_id": id, "problem": problem}),
        });
    }
    Ok(reply(JSON, Body::text(page::safe::json_pretty(&json!({ "volumes": volumes })))))
}

/// The query of a request; what is wrong with it costs no process.
pub(crate) fn checked(text: &str, now_ns: i64) -> Result<(), Problem> {
    if text.len() > QUERY_BYTES_MAX {
        return Err(Problem::too_long("a query has at most 32 KiB"));
    }
    let query = Query::parse(text, Timestamp(now_ns))
        .map_err(|error| Problem::wrong_query(&error, text))?;
    match query.needs_atlas() {
        Some(field) => Err(needs_atlas(field)),
        None => Ok(()),
    }
}

fn needs_atlas(field: &Field) -> Problem {
    Problem::wrong_parameter(format!(
        "{} needs a database of addresses, or tags: there is none here",
        field.name
    ))
}

async fn sessions(
    service: &Arc<Service>,
    caller: &Caller,
    given: &Given,
    headers: &HeaderMap,
) -> Result<Reply, Problem> {
    let query = given.query();
    let cursor = given.text("cursor");
    let after = cursor.map(|text| {
        let why = "this cursor is none of this query's";
        Cursor::from_text(text, &query).ok_or_else(|| Problem::wrong_parameter(why))
    });
    let after = after.transpose()?;
    let now_ns = after.as_ref().map_or_else(|| SystemClock.realtime().0, |after| after.now_ns);
    checked(&query, now_ns)?;
    let are_lines = wants_lines(headers);
    let order = given.choice("order", (&Order::ALL, Order::Oldest), Order::word)?;
    let order = after.as_ref().map_or(order, |after| after.order);
    // Those that come last are held until the first is known.
    let limit = match (are_lines, order) {
        (true, Order::Oldest) => given.number("limit")?,
        (true, Order::Newest) => Some(given.at_most("limit", PAGE_MAX, PAGE_MAX)?),
        (false, _) => Some(given.at_most("limit", PAGE, PAGE_MAX)?),
    };
    let volume = service.volume(given.text("volume"))?;
    let bytes_max = service.bounds.answer_bytes;
    let asked = caller.narrowed(&query);
    let wanted = SessionsWanted { query: asked, now_ns, order, after, limit, bytes_max };
    let framing = if are_lines { Framing::AsIs } else { Framing::Elements("sessions") };
    let wanted = Wanted {
        question: service.question(volume, What::Sessions(wanted)),
        query,
        framing,
        media_type: if are_lines { NDJSON } else { JSON },
    };
    stream::begin(service, caller, wanted).await
}

/// What stands first in `Accept` of the two; a page where neither does.
fn wants_lines(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut kinds = accepted
        .flat_map(|value| value.split(','))
        .map(|kind| kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    kinds.find(|kind| kind == JSON || kind == NDJSON).is_some_and(|kind| kind == NDJSON)
}

async fn summary(service: &Arc<Service>, caller: &Caller, given: &Given) -> Result<Reply, Problem> {
    let (query, now_ns) = asked_now(given)?;
    let names = given.text("fields").unwrap_or_default().split(',').filter(|it| !it.is_empty());
    let fields: Vec<String> = names.map(groupable).collect::<Result<_, _>>()?;
    if fields.len() > FIELDS_MAX {
        return Err(Problem::wrong_parameter("fields has at most 16 names"));
    }
    let volume = service.volume(given.text("volume"))?;
    let wanted = SummaryWanted {
        query: caller.narrowed(&query),
        now_ns,
        fields,
        limit: usize::try_from(given.at_most("limit", VALUES, VALUES_MAX)?).unwrap_or(0),
        by: given.choice("by", (&Weight::ALL, Weight::Bytes), Weight::word)?,
    };
    let wanted = Wanted {
        question: service.question(volume, What::Summary(wanted)),
        query,
        framing: Framing::Members,
        media_type: JSON,
    };
    stream::begin(service, caller, wanted).await
}

/// The query, which is one, and what its relative times count from.
fn asked_now(given: &Given) -> Result<(String, i64), Problem> {
    let (query, now_ns) = (given.query(), SystemClock.realtime().0);
    checked(&query, now_ns)?;
    Ok((query, now_ns))
}

/// The field of this name, if sessions can be summed up by it here.
fn groupable(name: &str) -> Result<String, Problem> {
    match Field::find(name) {
        Some(field) if field.needs_atlas() => Err(needs_atlas(field)),
        Some(field) => Ok(field.name.to_owned()),
        None => {
            let meant = Field::meant_by(name);
            let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
            Err(Problem::wrong_parameter(format!("{name:?} is no field{meant}")))
        }
    }
}

async fn packets(service: &Arc<Service>, caller: &Caller, given: &Given) -> Result<Reply, Problem> {
    let (query, now_ns) = asked_now(given)?;
    let volume = service.volume(given.text("volume"))?;
    let packets_max = given.at_most("limit", PACKETS, PACKETS_MAX)?;
    let only_range = caller.filter.is_some();
    let asked = caller.narrowed(&query);
    let wanted = PacketsWanted { query: asked, now_ns, only_range, packets_max };
    let wanted = Wanted {
        question: service.question(volume, What::Packets(wanted)),
        query,
        framing: Framing::Elements("packets"),
        media_type: JSON,
    };
    stream::begin(service, caller, wanted).await
}

async fn extract(service: &Arc<Service>, caller: &Caller, given: &Given) -> Result<Reply, Problem> {
    let (query, now_ns) = asked_now(given)?;
    let volume = service.volume(given.text("volume"))?;
    let most = service.bounds.answer_bytes;
    let wanted = ExtractWanted {
        query: caller.narrowed(&query),
        now_ns,
        form: Form::Pcapng,
        only_range: given.flag("only_range")? || caller.filter.is_some(),
        packets_max: given.number("limit_packets")?,
        bytes_max: Some(given.number("limit_bytes")?.map_or(most, |bytes| bytes.min(most))),
    };
    let wanted = Wanted {
        question: service.question(volume, What::Extract(wanted)),
        query,
        framing: Framing::AsIs,
        media_type: PCAPNG,
    };
    stream::begin(service, caller, wanted).await
}

async fn hold(service: &Arc<Service>, caller: &Caller, given: &Given) -> Result<Reply, Problem> {
    let (query, now_ns) = asked_now(given)?;
    let volume = service.volume(given.text("volume"))?;
    let only_range = given.flag("only_range")? || caller.filter.is_some();
    let wanted = holds::wanted(service, caller.narrowed(&query), (now_ns, only_range))?;
    let wanted = Wanted {
        question: service.question(volume, What::Hold(wanted)),
        query,
        framing: Framing::Members,
        media_type: JSON,
    };
    stream::begin(service, caller, wanted).await
}

fn known_answer(service: &Service, caller: &Caller, id: &str) -> Result<Reply, Problem> {
    let answer = service.answers.of(id, &caller.name);
    let answer = answer.ok_or_else(|| Problem::not_found("no answer of yours has this id"))?;
    Ok(reply(JSON, Body::text(page::safe::json_pretty(&answer))))
}

fn manifest(service: &Service, caller: &Caller, id: &str) -> Result<Reply, Problem> {
    let answer = service.answers.of(id, &caller.name);
    let manifest = answer.and_then(|answer| answer.manifest);
    let why = "no extract of yours has this id, it is still going, or its manifest is too long";
    let manifest = manifest.ok_or_else(|| Problem::not_found(why))?;
    Ok(reply(JSON, Body::text(manifest)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoints::ENDPOINTS;

    #[test]
    fn a_path_has_at_most_one_endpoint_and_an_id_is_one_part() {
        let of = |path| {
            let fitting = ENDPOINTS.iter().filter_map(|it| Some((it.what, it.fits(path)?)));
            fitting.collect::<Vec<_>>()
        };
        assert_eq!(of("/api/v1/sessions"), [(Matter::Sessions, "")]);
        assert_eq!(of("/api/v1/answers/a1"), [(Matter::Answer, "a1")]);
        assert_eq!(of("/api/v1/answers/a1/manifest"), [(Matter::Manifest, "a1")]);
        for path in ["", "/", "/api/v1/answers/", "/api/v1/answers/a/b", "/api/v1/sessions/"] {
            assert!(of(path).is_empty(), "{path}");
        }
    }

    #[test]
    fn lines_are_sent_to_who_names_them_before_a_page() {
        for (accept, are_lines) in [
            ("application/x-ndjson", true),
            ("text/html, Application/X-NDJSON;q=0.9, application/json", true),
            ("application/json, application/x-ndjson", false),
            ("*/*", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            assert_eq!(wants_lines(&headers), are_lines, "{accept}");
        }
        assert!(!wants_lines(&HeaderMap::new()));
    }

    #[test]
    fn each_parameter_is_known_and_given_once() {
        let sessions = ENDPOINTS.iter().find(|it| it.what == Matter::Sessions).unwrap();
        let given = Given::read(sessions, "query=port+53%20and%20tcp&limit=7").unwrap();
        assert_eq!(given.text("query"), Some("port 53 and tcp"));
        assert_eq!(given.number("limit").unwrap(), Some(7));
        for wrong in ["limits=7", "limit=7&limit=8"] {
            assert!(Given::read(sessions, wrong).is_err(), "{wrong}");
        }
        assert!(Given::read(sessions, "limit=-1").unwrap().number("limit").is_err());
    }
}
