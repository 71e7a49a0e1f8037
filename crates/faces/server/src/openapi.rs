//! The `OpenAPI` 3.1 document, made of the table of endpoints and of the fields of a session.

use std::sync::OnceLock;

use extract::Weight;
use hyper::Method;
use serde_json::{Map, Value, json};

use crate::endpoints::{ARROW, ENDPOINTS, Endpoint, Matter, NDJSON, Needs, PCAPNG, Parameter};
use crate::question::{CURSOR_PATTERN, Order};

/// The document as it is served.
pub(crate) fn document() -> String {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| page::safe::json_pretty(&value())).clone()
}

fn value() -> Value {
    let mut paths = Map::new();
    for endpoint in &ENDPOINTS {
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            path.insert(method(endpoint), operation(endpoint));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "wirespool",
            "version": "1",
            "description": "Sessions and packets of a recorder. Queries: docs/query.md; fields: \
                            docs/sessions.md; the service: docs/service.md.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "certificate": {"type": "mutualTLS"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "wirespool",
                    "description": "Of /api/v1/login; with TLS its name is __Host-wirespool"},
            },
            "schemas": schemas(),
        },
    })
}

fn method(endpoint: &Endpoint) -> String {
    endpoint.method.as_str().to_lowercase()
}

fn operation(endpoint: &Endpoint) -> Value {
    let scope = match endpoint.needs {
        Needs::Nothing => "No credential is needed; with one it says more.".to_owned(),
        Needs::Secret => "No credential is needed but what the request brings.".to_owned(),
        Needs::Credential => "Any credential.".to_owned(),
        Needs::Scope(scope) => format!("A credential with the scope `{}`.", scope.word()),
    };
    let security = match endpoint.needs {
        Needs::Nothing => json!([{}, {"token": []}, {"certificate": []}]),
        Needs::Secret => json!([{}, {"token": []}]),
        _ => json!([{"token": []}, {"cookie": []}, {"certificate": []}]),
    };
    let mut parameters: Vec<Value> = endpoint
        .parameters
        .iter()
        .map(|parameter| {
            json!({
                "name": parameter.name,
                "in": "query",
                "description": parameter.meaning,
                "schema": parameter_schema(parameter),
            })
        })
        .collect();
    if endpoint.method != Method::GET {
        let why = "Any text: a page of another origin cannot send it";
        parameters.push(required("X-Wirespool", "header", why));
    }
    if endpoint.path.contains("{id}") {
        let what = match endpoint.what {
            Matter::Release => "The name of the hold's file",
            Matter::RevokeToken => "The name of the token",
            Matter::EndKey => "The id of the key, as whoami lists it",
            _ if endpoint.path.starts_with("/api/v1/people/") => "The name of the person",
            _ => "What the header Wirespool-Answer of an answer said",
        };
        parameters.push(required("id", "path", what));
    }
    let mut operation = json!({
        "summary": endpoint.summary,
        "description": scope,
        "operationId": format!("{:?}", endpoint.what).to_lowercase(),
        "security": security,
        "parameters": parameters,
        "responses": responses(endpoint),
    });
    if let (false, Some(operation)) = (endpoint.body.is_empty(), operation.as_object_mut()) {
        operation.insert("requestBody".to_owned(), request_body(endpoint));
    }
    operation
}

/// The JSON that a request has as its body.
fn request_body(endpoint: &Endpoint) -> Value {
    let members = endpoint.body.iter().map(|member| {
        let schema = json!({"type": member.kind, "description": member.meaning});
        (member.name.to_owned(), schema)
    });
    let is_needed = |name: &&str| match *name {
        "code" => {
            [Matter::ConfirmSecondFactor, Matter::FinishAtProvider].contains(&endpoint.what)
        }
        "iss" => false,
        "key" => endpoint.what == Matter::ConfirmKey,
        _ => true,
    };
    let needed: Vec<&str> =
        endpoint.body.iter().map(|member| member.name).filter(is_needed).collect();
    let schema = json!({
        "type": "object",
        "required": needed,
        "additionalProperties": false,
        "properties": members.collect::<Map<String, Value>>(),
    });
    // A login by token has none.
    let is_required = endpoint.what != Matter::Login;
    json!({"required": is_required, "content": {"application/json": {"schema": schema}}})
}

fn required(name: &str, place: &str, description: &str) -> Value {
    let schema = json!({"type": "string"});
    json!({"name": name, "in": place, "required": true, "description": description,
        "schema": schema})
}

fn parameter_schema(parameter: &Parameter) -> Value {
    match (parameter.name, parameter.kind) {
        ("sha256", kind) => json!({"type": kind, "pattern": "^[0-9a-f]{64}$"}),
        ("cursor", kind) => json!({"type": kind, "pattern": CURSOR_PATTERN}),
        ("order", kind) => json!({"type": kind, "enum": Order::ALL.map(Order::word)}),
        ("by", kind) => json!({"type": kind, "enum": Weight::ALL.map(Weight::word)}),
        (_, kind @ "integer") => json!({"type": kind, "minimum": 1}),
        (_, kind) => json!({ "type": kind }),
    }
}

fn responses(endpoint: &Endpoint) -> Value {
    let mut content = Map::new();
    for media_type in endpoint.media_types {
        content.insert((*media_type).to_owned(), json!({ "schema": schema(endpoint, media_type) }));
    }
    let mut responses = Map::new();
    let mut answer = json!({"description": "The answer", "content": content});
    if let (true, Some(answer)) = (endpoint.what.asks_volume(), answer.as_object_mut()) {
        answer.insert("headers".to_owned(), answer_headers(endpoint.what));
    }
    responses.insert("200".to_owned(), answer);
    let problem = json!({"application/problem+json":
        {"schema": {"$ref": "#/components/schemas/Problem"}}});
    let mut refuse = |status: &str, description: &str| {
        let mut refused = json!({"description": description, "content": problem});
        if let ("429" | "503", Some(refused)) = (status, refused.as_object_mut()) {
            let headers = json!({"Retry-After": header("integer", "Seconds to wait")});
            refused.insert("headers".to_owned(), headers);
        }
        responses.insert(status.to_owned(), refused);
    };
    refuse("400", "A parameter or the query is wrong");
    refuse("405", "The method is not answered here");
    if endpoint.needs != Needs::Nothing {
        refuse("401", "There is no credential, or it does not count");
    }
    if matches!(endpoint.needs, Needs::Scope(_)) {
        refuse("403", "The credential lacks the scope");
    }
    if !endpoint.body.is_empty() {
        refuse("413", "The body is too long, or did not arrive in time");
        refuse("429", "After too many failures the next attempt waits");
    }
    let is_of_people = !endpoint.what.is_of_volumes() && endpoint.what != Matter::LoginWays;
    if is_of_people && endpoint.what != Matter::Logout && endpoint.what != Matter::Caller {
        refuse("404", "There is nothing of this name, or the service has no such file");
        refuse("409", "It is taken, or the last administrator, or nothing was begun");
        refuse("410", "The link, or the login at the provider, is over");
        refuse("500", "A file could not be read or changed");
    }
    if [Matter::BeginAtProvider, Matter::FinishAtProvider].contains(&endpoint.what) {
        refuse("403", "The provider's claims give no role");
        refuse("502", "The identity provider does not answer as it should");
    }
    let asks_volume = endpoint.what.asks_volume();
    if endpoint.what == Matter::Hold {
        refuse("507", "The folder of holds is full");
    }
    if [Matter::Holds, Matter::Release].contains(&endpoint.what) {
        refuse("404", "There is no such hold, or no folder of holds");
        refuse("500", "The folder of holds cannot be used");
    }
    if endpoint.needs != Needs::Nothing {
        refuse("503", "It cannot be put down in the audit");
    }
    if asks_volume {
        refuse("404", "No volume of this name is served");
        refuse("409", conflict(endpoint.what));
        refuse("413", "The query is too long");
        refuse("500", "The volume cannot be read");
        refuse("503", "Too many requests are being answered");
        refuse("504", "The time of the request was over before its first byte");
    }
    if [Matter::Answer, Matter::Manifest].contains(&endpoint.what) {
        refuse("404", "No answer of this credential has this id, or none any more");
    }
    if endpoint.what == Matter::Health {
        let health = json!({"$ref": "#/components/schemas/Health"});
        let content = json!({"application/json": {"schema": health}});
        let unwell = json!({"description": "It is not well", "content": content});
        responses.insert("503".to_owned(), unwell);
    }
    responses.into()
}

fn conflict(what: Matter) -> &'static str {
    match what {
        Matter::Extract => {
            "The volume is encrypted, and the service has no key that opens it, or the extract \
             does not begin with the bytes of offset any more"
        }
        _ => "The volume is encrypted, and the service has no key that opens it",
    }
}

fn header(kind: &str, description: &str) -> Value {
    json!({"description": description, "schema": {"type": kind}})
}

/// Of an answer that comes from a volume.
fn answer_headers(what: Matter) -> Value {
    let mut headers = json!({
        "Wirespool-Answer": header("string", "Id of this answer, for /api/v1/answers"),
        "Link": header("string", "The same as a link, with rel=describedby: what is missing"),
    });
    if let (Matter::Extract, Some(headers)) = (what, headers.as_object_mut()) {
        let why = "What relative times count from: now_ns for who goes on with it";
        headers.insert("Wirespool-Now".to_owned(), header("integer", why));
    }
    headers
}

fn schema(endpoint: &Endpoint, media_type: &str) -> Value {
    let of = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    match (endpoint.what, media_type) {
        (_, PCAPNG) => json!({"type": "string", "contentMediaType": PCAPNG}),
        (_, ARROW) => json!({"type": "string", "contentMediaType": ARROW}),
        (Matter::Sql, NDJSON) => json!({"type": "string", "description":
            "A row a line, as `wirespool sql --json` prints them"}),
        (Matter::Sql, _) => of("Rows"),
        (Matter::Sessions, NDJSON) => json!({"type": "string", "description":
            "A Session a line, as `wirespool find --json` prints them"}),
        (Matter::Sessions, _) => of("Page"),
        (Matter::Summary, _) => of("Summary"),
        (Matter::Packets, _) => of("Packets"),
        (
            Matter::Login
            | Matter::First
            | Matter::FinishAtProvider
            | Matter::Caller
            | Matter::ChangePassword
            | Matter::EndSecondFactor
            | Matter::EndKey,
            _,
        ) => of("Caller"),
        (Matter::AddPerson | Matter::PersonPassword, _) => of("NewPerson"),
        (
            Matter::People
            | Matter::RemovePerson
            | Matter::PersonRole
            | Matter::DisablePerson
            | Matter::EnablePerson
            | Matter::ResetSecondFactor,
            _,
        ) => of("People"),
        (Matter::Tokens | Matter::RevokeToken, _) => of("Tokens"),
        (Matter::Audit, _) => of("AuditPage"),
        (Matter::AuditCheck, _) => of("AuditCheck"),
        (Matter::Fields, _) => of("Fields"),
        (Matter::Holds, _) => of("Holds"),
        (Matter::Hold, _) => of("Held"),
        (Matter::Release, _) => of("Hold"),
        (Matter::Health, _) => of("Health"),
        (Matter::Answer, _) => of("Answer"),
        (Matter::Metrics, _) => json!({"type": "string"}),
        _ => json!({"type": "object"}),
    }
}

fn statement_schema() -> Value {
    let text = json!({"type": "string"});
    json!({
        "description": "What is missing from an answer",
        "type": "object",
        "required": ["state", "text", "completeness"],
        "properties": {
            "state": {"enum": ["complete", "incomplete", "unknown"]},
            "state_within_limit": {"enum": ["complete", "incomplete", "unknown"],
                "description": "The same where a limit that was asked for is no verdict"},
            "text": text,
            "cut_by": {"enum": ["time", "bytes", "limit"]},
            "notes": {"type": "array", "items": text},
            "hint": text,
            "left_out": {"type": "integer", "minimum": 0},
            "completeness": {"type": "object"},
        },
    })
}

fn schemas() -> Value {
    let text = json!({"type": "string"});
    let count = json!({"type": "integer", "minimum": 0});
    let maybe_text = json!({"type": ["string", "null"]});
    json!({
        "Session": session_view::session_schema(),
        "Statement": statement_schema(),
        "Page": {
            "type": "object",
            "required": ["sessions", "next_cursor", "count", "answer", "statement"],
            "properties": {
                "sessions": {"type": "array", "items": {"$ref": "#/components/schemas/Session"}},
                "next_cursor": maybe_text,
                "count": count,
                "answer": text,
                "statement": {"$ref": "#/components/schemas/Statement"},
            },
        },
        "Summary": summary_schema(),
        "Rows": rows_schema(),
        "Packets": packets_schema(),
        "Caller": caller_schema(),
        "People": people_schema(),
        "NewPerson": object(&[("name", "string"), ("password", "string")]),
        "Tokens": tokens_schema(),
        "AuditPage": audit_page_schema(),
        "AuditCheck": audit_check_schema(),
        "Hold": hold_schema(),
        "Holds": holds_schema(),
        "Held": held_schema(),
        "Fields": fields_schema(),
        "Answer": {
            "type": "object",
            "required": ["id", "query", "state"],
            "properties": {
                "id": text,
                "query": text,
                "state": {"enum": ["going", "done", "broken_off"]},
                "count": count,
                "statement": {"$ref": "#/components/schemas/Statement"},
                "next_cursor": text,
            },
        },
        "Health": {
            "type": "object",
            "required": ["ok"],
            "properties": {
                "ok": {"type": "boolean"},
                "is_stopping": {"type": "boolean"},
                "workers_start": {"type": "boolean"},
                "audit_written": {"type": "boolean"},
                "workers": count,
                "queue": count,
                "volumes": {"type": "array", "items": text},
            },
        },
        "Problem": problem_schema(),
    })
}

fn rows_schema() -> Value {
    json!({
        "type": "object",
        "required": ["rows", "count", "answer", "statement"],
        "properties": {
            "rows": {"type": "array", "items": {"type": "object"}},
            "next_cursor": {"type": "null"},
            "count": {"type": "integer", "minimum": 0},
            "answer": {"type": "string"},
            "statement": {"$ref": "#/components/schemas/Statement"},
        },
    })
}

/// An object of members of simple types, all of which are there.
fn object(members: &[(&str, &str)]) -> Value {
    let names: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    let of = |(name, kind): &(&str, &str)| ((*name).to_owned(), json!({ "type": kind }));
    let properties: Map<String, Value> = members.iter().map(of).collect();
    json!({"type": "object", "required": names, "properties": properties})
}

fn people_schema() -> Value {
    let person = object(&[
        ("name", "string"),
        ("role", "string"),
        ("is_disabled", "boolean"),
        ("must_change_password", "boolean"),
        ("has_second_factor", "boolean"),
        ("keys", "integer"),
        ("recovery_codes", "integer"),
        ("since", "string"),
    ]);
    let role = object(&[("name", "string"), ("scopes", "array")]);
    json!({
        "type": "object",
        "required": ["people", "roles"],
        "properties": {
            "people": {"type": "array", "items": person},
            "roles": {"type": "array", "items": role},
        },
    })
}

fn tokens_schema() -> Value {
    let token = object(&[("name", "string"), ("scopes", "array"), ("is_certificate", "boolean")]);
    json!({
        "type": "object",
        "required": ["tokens", "can_change"],
        "properties": {
            "tokens": {"type": "array", "items": token},
            "can_change": {"type": "boolean",
                "description": "The service may write the file of tokens"},
        },
    })
}

fn audit_check_schema() -> Value {
    object(&[
        ("is_whole", "boolean"),
        ("lines", "integer"),
        ("last", "integer"),
        ("head", "string"),
        ("torn", "integer"),
        ("faults_count", "integer"),
        ("faults", "array"),
    ])
}

fn audit_page_schema() -> Value {
    json!({
        "type": "object",
        "required": ["lines", "next", "check"],
        "properties": {
            "lines": {"type": "array", "items": object(&[("line", "object"),
                ("has_end", "boolean")])},
            "next": {"type": ["integer", "null"],
                "description": "What before has to be for the next page"},
            "check": {"$ref": "#/components/schemas/AuditCheck"},
        },
    })
}

fn caller_schema() -> Value {
    let text = json!({"type": "string"});
    json!({
        "type": "object",
        "required": ["name", "scopes", "volumes", "version", "now_ns"],
        "properties": {
            "name": text,
            "scopes": {"type": "array", "items": text},
            "filter": {"type": ["string", "null"],
                "description": "A query that is asked besides whatever is asked"},
            "person": {"type": ["object", "null"], "description": "How a person stands"},
            "guest": {"type": ["object", "null"],
                "description": "How somebody stands who has logged in at the identity provider"},
            "keys_at": {"type": ["string", "null"],
                "description": "The address of the page at which keys can be used"},
            "manages": {"type": "object", "description": "Which files the service has"},
            "volumes": {"type": "array", "items": {
                "type": "object",
                "required": ["name", "id"],
                "properties": {"name": text, "id": text},
            }},
            "version": text,
            "now_ns": {"type": "integer"},
        },
    })
}

fn hold_schema() -> Value {
    let (text, count) = (json!({"type": "string"}), json!({"type": "integer", "minimum": 0}));
    json!({
        "type": "object",
        "required": ["file", "query", "volume_id", "packets", "bytes", "complete"],
        "properties": {
            "file": text,
            "query": text,
            "volume_id": text,
            "packets": count,
            "bytes": count,
            "complete": {"type": "boolean"},
            "case": text,
            "purpose": text,
            "requester": text,
        },
    })
}

fn holds_schema() -> Value {
    let count = json!({"type": "integer", "minimum": 0});
    json!({
        "type": "object",
        "required": ["holds", "bytes", "bytes_most"],
        "properties": {
            "holds": {"type": "array", "items": {"$ref": "#/components/schemas/Hold"}},
            "bytes": {"type": "integer", "minimum": 0, "description": "Of these holds' packets"},
            "bytes_most": count,
        },
    })
}

fn held_schema() -> Value {
    let (text, count) = (json!({"type": "string"}), json!({"type": "integer", "minimum": 0}));
    json!({
        "type": "object",
        "required": ["hold", "count", "answer", "statement"],
        "properties": {
            "hold": {
                "type": "object",
                "required": ["file", "packets"],
                "properties": {"file": text, "packets": count},
            },
            "count": count,
            "answer": text,
            "statement": {"$ref": "#/components/schemas/Statement"},
            "next_cursor": {"type": "null"},
        },
    })
}

fn fields_schema() -> Value {
    let text = json!({"type": "string"});
    json!({
        "type": "object",
        "required": ["fields"],
        "properties": {"fields": {"type": "array", "items": {
            "type": "object",
            "required": ["name", "aliases", "kind", "meaning"],
            "properties": {
                "name": text,
                "aliases": {"type": "array", "items": text},
                "kind": text,
                "meaning": text,
            },
        }}},
    })
}

fn summary_schema() -> Value {
    let (text, count) = (json!({"type": "string"}), json!({"type": "integer", "minimum": 0}));
    let measure = json!({"sessions": count, "packets": count, "bytes": count});
    let sums = json!({"type": "object", "required": ["sessions", "packets", "bytes"],
        "properties": measure});
    json!({
        "type": "object",
        "required": ["total", "traffic", "top", "count", "answer", "statement"],
        "properties": {
            "total": sums,
            "traffic": {
                "type": "object",
                "required": ["width_ns", "series", "buckets"],
                "properties": {
                    "width_ns": count,
                    "series": {"type": "array", "items": text,
                        "description": "Protocols, in the order of a bucket's bytes"},
                    "buckets": {"type": "array", "items": {"type": "array"},
                        "description": "Start in ns and bytes by series, of those with traffic"},
                },
            },
            "top": {"type": "array", "items": {
                "type": "object",
                "required": ["field", "distinct", "absent", "uncounted", "values"],
                "properties": {
                    "field": text,
                    "distinct": count,
                    "absent": sums,
                    "uncounted": sums,
                    "values": {"type": "array", "items": {
                        "type": "object",
                        "required": ["value", "text", "query", "sessions", "packets", "bytes"],
                        "properties": {
                            "value": {"type": ["string", "integer", "boolean"]},
                            "name": text,
                            "text": text,
                            "query": {"type": "string", "description": "It selects this value"},
                            "sessions": count,
                            "packets": count,
                            "bytes": count,
                        },
                    }},
                },
            }},
            "count": count,
            "answer": text,
            "statement": {"$ref": "#/components/schemas/Statement"},
            "next_cursor": {"type": "null"},
        },
    })
}

fn packets_schema() -> Value {
    let (text, count) = (json!({"type": "string"}), json!({"type": "integer", "minimum": 0}));
    json!({
        "type": "object",
        "required": ["packets", "count", "answer", "statement"],
        "properties": {
            "packets": {"type": "array", "items": {
                "type": "object",
                "required": ["number", "time_ns", "length", "captured", "source", "destination",
                    "protocol", "info", "payload_len", "data"],
                "properties": {
                    "number": count,
                    "time_ns": {"type": "integer"},
                    "length": count,
                    "captured": count,
                    "source": text,
                    "destination": text,
                    "protocol": text,
                    "info": text,
                    "seq": count,
                    "ack": count,
                    "flags": count,
                    "window": count,
                    "payload_len": count,
                    "payload_at": count,
                    "data": {"type": "string", "contentEncoding": "base64"},
                },
            }},
            "count": count,
            "answer": text,
            "statement": {"$ref": "#/components/schemas/Statement"},
            "next_cursor": {"type": "null"},
        },
    })
}

fn problem_schema() -> Value {
    let text = json!({"type": "string"});
    json!({
        "description": "RFC 9457",
        "type": "object",
        "required": ["type", "title", "status"],
        "properties": {
            "type": text,
            "title": text,
            "status": {"type": "integer"},
            "detail": text,
            "query": {
                "description": "Where a query is wrong",
                "type": "object",
                "required": ["at", "shown"],
                "properties": {
                    "at": {"type": "integer", "minimum": 0, "description": "In bytes"},
                    "suggestion": text,
                    "shown": text,
                },
            },
            "second_factor": {"type": "object",
                "description": "What counts as a second factor, of who has shown the password"},
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_leads_somewhere_and_every_operation_has_a_name_of_its_own() {
        let document: Value = serde_json::from_str(&document()).unwrap();
        let mut references = Vec::new();
        collect(&document, &mut references);
        assert!(references.len() > 10);
        for reference in references {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
        let paths = document["paths"].as_object().unwrap();
        let names: Vec<&str> = paths
            .values()
            .flat_map(|path| path.as_object().unwrap().values())
            .map(|operation| operation["operationId"].as_str().unwrap())
            .collect();
        let mut once = names.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!((once.len(), names.len()), (ENDPOINTS.len(), ENDPOINTS.len()));
    }

    fn collect(value: &Value, into: &mut Vec<String>) {
        match value {
            Value::Object(object) => {
                if let Some(Value::String(reference)) = object.get("$ref") {
                    into.push(reference.clone());
                }
                object.values().for_each(|value| collect(value, into));
            }
            Value::Array(array) => array.iter().for_each(|value| collect(value, into)),
            _ => {}
        }
    }
}
