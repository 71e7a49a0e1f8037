//! The interface under `/api/v1`: one table of endpoints, by which requests are routed and checked,
//! and the handlers.

use core::sync::atomic::Ordering;
use std::sync::Arc;

use host::SystemClock;
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, HeaderMap, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request};
use query::Query;
use serde_json::{Value, json};
use units::Clock as _;

use crate::access::{Caller, Scope};
use crate::body::{Body, Reply, reply};
use crate::listen::Peer;
use crate::log::Entry;
use crate::problem::Problem;
use crate::question::{Cursor, ExtractWanted, Form, SessionsWanted, What};
use crate::service::Service;
use crate::stream::{self, Framing, Wanted};
use crate::{metrics, openapi};

const JSON: &str = "application/json";
pub(crate) const NDJSON: &str = "application/x-ndjson";
/// `draft-ietf-opsawg-pcapng`, and what Wireshark's people registered with IANA for pcap.
pub(crate) const PCAPNG: &str = "application/x-pcapng";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
/// A longer query is none that anybody wrote.
pub(crate) const QUERY_BYTES_MAX: usize = 32 << 10;
/// Sessions of a page, if the request does not say how many.
const PAGE: u64 = 100;
const PAGE_MAX: u64 = 10_000;

/// Who may ask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Needs {
    /// Anybody.
    Nothing,
    /// Any credential.
    Credential,
    Scope(Scope),
}

/// What stands at a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Matter {
    Health,
    OpenApi,
    Volumes,
    Sessions,
    Extract,
    Answer,
    Manifest,
    Metrics,
}

/// A parameter of a query string.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    /// `string`, `integer` or `boolean`.
    pub(crate) kind: &'static str,
    pub(crate) meaning: &'static str,
}

/// An endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoint {
    /// `{id}` stands for one part.
    pub(crate) path: &'static str,
    pub(crate) what: Matter,
    pub(crate) needs: Needs,
    pub(crate) summary: &'static str,
    pub(crate) parameters: &'static [Parameter],
    /// What it answers with.
    pub(crate) media_types: &'static [&'static str],
}

const QUERY: Parameter = Parameter {
    name: "query",
    kind: "string",
    meaning: "Which sessions, in the query language (docs/query.md); all without it",
};
const VOLUME: Parameter = Parameter {
    name: "volume",
    kind: "string",
    meaning: "Name or id of the volume; needed where several are served",
};

pub(crate) const ENDPOINTS: [Endpoint; 8] = [
    Endpoint {
        path: "/api/v1/health",
        what: Matter::Health,
        needs: Needs::Nothing,
        summary: "Whether the service is well",
        parameters: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/openapi.json",
        what: Matter::OpenApi,
        needs: Needs::Credential,
        summary: "This document",
        parameters: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/volumes",
        what: Matter::Volumes,
        needs: Needs::Credential,
        summary: "The volumes and their recorders, as `wirespool status --json` tells of them",
        parameters: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/sessions",
        what: Matter::Sessions,
        needs: Needs::Scope(Scope::Sessions),
        summary: "Sessions that match a query, oldest first: a page, or all as lines",
        parameters: &[
            QUERY,
            VOLUME,
            Parameter {
                name: "limit",
                kind: "integer",
                meaning: "At most so many sessions; of a page 100 without it, 10000 at most",
            },
            Parameter {
                name: "cursor",
                kind: "string",
                meaning: "Go on behind the page that gave this as its next_cursor",
            },
        ],
        media_types: &[JSON, NDJSON],
    },
    Endpoint {
        path: "/api/v1/extract",
        what: Matter::Extract,
        needs: Needs::Scope(Scope::Extract),
        summary: "The packets of the sessions that match a query",
        parameters: &[
            QUERY,
            VOLUME,
            Parameter {
                name: "only_range",
                kind: "boolean",
                meaning: "Of the sessions' packets only those between the query's before and after",
            },
            Parameter {
                name: "limit_packets",
                kind: "integer",
                meaning: "At most so many packets",
            },
            Parameter {
                name: "limit_bytes",
                kind: "integer",
                meaning: "At most so many bytes of packets",
            },
        ],
        media_types: &[PCAPNG],
    },
    Endpoint {
        path: "/api/v1/answers/{id}",
        what: Matter::Answer,
        needs: Needs::Credential,
        summary: "What is missing from an answer that was sent, for who asked for it",
        parameters: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/answers/{id}/manifest",
        what: Matter::Manifest,
        needs: Needs::Scope(Scope::Extract),
        summary: "The sealed manifest of an extract that was sent, for who asked for it",
        parameters: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/metrics",
        what: Matter::Metrics,
        needs: Needs::Credential,
        summary: "Metrics of recorders, volumes and this service, for Prometheus",
        parameters: &[],
        media_types: &["text/plain"],
    },
];

impl Endpoint {
    /// Whether a path is this one's; the part in the place of `{id}`.
    fn fits<'p>(&self, path: &'p str) -> Option<&'p str> {
        let Some((before, behind)) = self.path.split_once("{id}") else {
            return (self.path == path).then_some("");
        };
        let id = path.strip_prefix(before)?.strip_suffix(behind)?;
        (!id.is_empty() && !id.contains('/')).then_some(id)
    }
}

/// Answers a request at the interface, and has a line written about it.
pub(crate) async fn answer(service: Arc<Service>, peer: Peer, request: Request<Incoming>) -> Reply {
    let mut entry = Entry::begin(&service.log, &service.requests, peer.address);
    entry.ask(request.method(), request.uri());
    if request.method() == Method::HEAD {
        // Its answer has no bytes that could be missing.
        entry.end();
    }
    let answered = route(&service, &peer, &request, &mut entry).await;
    let reply = answered.unwrap_or_else(|problem| problem.reply());
    finish(reply, entry)
}

/// With the headings that all answers have.
pub(crate) fn finish(mut reply: Reply, mut entry: Entry) -> Reply {
    entry.answer_with(reply.status());
    let headers = reply.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    reply.map(|body| body.logged(entry))
}

async fn route(
    service: &Arc<Service>,
    peer: &Peer,
    request: &Request<Incoming>,
    entry: &mut Entry,
) -> Result<Reply, Problem> {
    let caller = caller(service, peer, request.headers());
    if let Ok(Some(caller)) = &caller {
        entry.is_by(&caller.name);
    }
    let path = request.uri().path();
    let found = ENDPOINTS.iter().find_map(|endpoint| Some((endpoint, endpoint.fits(path)?)));
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
    if request.method() != Method::GET {
        return Err(Problem::wrong_method("GET"));
    }
    let given = Given::read(endpoint, request.uri().query().unwrap_or_default())?;
    let Some(caller) = caller else { return Ok(health(service, None)) };
    match endpoint.what {
        Matter::Health => Ok(health(service, Some(&caller))),
        Matter::OpenApi => Ok(reply(JSON, Body::text(openapi::document()))),
        Matter::Volumes => volumes(service).await,
        Matter::Sessions => sessions(service, &caller, &given, request.headers()).await,
        Matter::Extract => extract(service, &caller, &given).await,
        Matter::Answer => known_answer(service, &caller, id),
        Matter::Manifest => manifest(service, &caller, id),
        Matter::Metrics => Ok(reply(PROMETHEUS, Body::text(metrics::scrape(service).await))),
    }
}

/// Who asks; none where no credential is shown.
///
/// # Errors
/// When one is shown that is not known, or not any more.
pub(crate) fn caller(
    service: &Service,
    peer: &Peer,
    headers: &HeaderMap,
) -> Result<Option<Caller>, Problem> {
    service.refresh_access();
    let now = SystemClock.realtime();
    let known = if let Some(given) = headers.get(AUTHORIZATION) {
        let given = given.to_str().ok().and_then(|given| given.split_once(' '));
        let token = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        token.and_then(|(_, token)| service.access.by_token(token.trim(), now))
    } else if let Some(common_name) = &peer.certificate {
        service.access.by_certificate(common_name, now)
    } else {
        return Ok(None);
    };
    known.map(Some).ok_or_else(Problem::no_credential)
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

    fn number(&self, name: &str) -> Result<Option<u64>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number = text.parse().ok().filter(|number| *number > 0);
        let why = || Problem::wrong_parameter(format!("{name} is no whole number above 0"));
        number.map(Some).ok_or_else(why)
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
    let is_well = !is_stopping && can_start && knows_credentials;
    let mut said = json!({ "ok": is_well });
    if let (Some(_), Some(said)) = (caller, said.as_object_mut()) {
        said.insert("is_stopping".to_owned(), is_stopping.into());
        said.insert("workers_start".to_owned(), can_start.into());
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
    let query = Query::parse(text, units::Timestamp(now_ns))
        .map_err(|error| Problem::wrong_query(&error, text))?;
    match query.needs_atlas() {
        Some(field) => Err(Problem::wrong_parameter(format!(
            "{} needs a database of addresses, or tags: there is none here",
            field.name
        ))),
        None => Ok(()),
    }
}

async fn sessions(
    service: &Arc<Service>,
    caller: &Caller,
    given: &Given,
    headers: &HeaderMap,
) -> Result<Reply, Problem> {
    let query = given.text("query").unwrap_or_default().to_owned();
    let cursor = given.text("cursor");
    let after = cursor.map(|text| {
        let why = "this cursor is none of this query's";
        Cursor::from_text(text, &query).ok_or_else(|| Problem::wrong_parameter(why))
    });
    let after = after.transpose()?;
    let now_ns = after.as_ref().map_or_else(|| SystemClock.realtime().0, |after| after.now_ns);
    checked(&query, now_ns)?;
    let are_lines = wants_lines(headers);
    let limit = match (given.number("limit")?, are_lines) {
        (Some(limit), false) if limit > PAGE_MAX => {
            return Err(Problem::wrong_parameter("a page has at most 10000 sessions"));
        }
        (limit, true) => limit,
        (limit, false) => Some(limit.unwrap_or(PAGE)),
    };
    let volume = service.volume(given.text("volume"))?;
    let bytes_max = service.bounds.answer_bytes;
    let wanted = SessionsWanted { query: query.clone(), now_ns, after, limit, bytes_max };
    let framing = if are_lines { Framing::AsIs } else { Framing::Page };
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

async fn extract(service: &Arc<Service>, caller: &Caller, given: &Given) -> Result<Reply, Problem> {
    let query = given.text("query").unwrap_or_default().to_owned();
    let now_ns = SystemClock.realtime().0;
    checked(&query, now_ns)?;
    let volume = service.volume(given.text("volume"))?;
    let most = service.bounds.answer_bytes;
    let wanted = ExtractWanted {
        query: query.clone(),
        now_ns,
        form: Form::Pcapng,
        only_range: given.flag("only_range")?,
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
