//! The `OpenAPI` 3.1 document, made of the table of endpoints.

use serde_json::{Map, Value, json};

use crate::endpoint::{
    ARROW, EVENTS, Endpoint, Matter, Method, NDJSON, Needs, PCAPNG, PLAIN, Parameter,
};
use crate::table::ENDPOINTS;

/// The document, with the schemas of answers by their names.
pub fn document(schemas: Map<String, Value>) -> Value {
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
            "schemas": Value::Object(schemas),
        },
    })
}

fn method(endpoint: &Endpoint) -> String {
    endpoint.method.word().to_lowercase()
}

fn operation(endpoint: &Endpoint) -> Value {
    let scope = match endpoint.needs {
        Needs::Nothing => "No credential is needed; with one it says more.".to_owned(),
        Needs::Secret => "No credential is needed but what the request brings.".to_owned(),
        Needs::Credential => "Any credential.".to_owned(),
        Needs::Scope(scope) => format!("A credential with the scope `{}`.", scope.word()),
        Needs::OneOf(scopes) => {
            let words: Vec<String> =
                scopes.iter().map(|scope| format!("`{}`", scope.word())).collect();
            format!("A credential with the scope {}.", words.join(" or "))
        }
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
    if endpoint.method != Method::Get {
        let why = "Any text: a page of another origin cannot send it";
        parameters.push(required("X-Wirespool", "header", why));
    }
    if endpoint.path.contains("{id}") {
        let what = match endpoint.what {
            Matter::Release => "The name of the hold's file",
            Matter::RevokeToken => "The name of the token",
            Matter::RemoveTag => "The id of the tag",
            what if what.is_of_requests() => "The id of the request",
            Matter::EndKey => "The id of the key, as whoami lists it",
            Matter::Job | Matter::JobEvents | Matter::CancelJob => "The id of the job",
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
        "code" => [Matter::ConfirmSecondFactor, Matter::FinishAtProvider].contains(&endpoint.what),
        "key" => endpoint.what == Matter::ConfirmKey,
        "iss" => false,
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
    match (parameter.kind, parameter.words, parameter.pattern) {
        (kind, _, Some(pattern)) => json!({"type": kind, "pattern": pattern}),
        (kind @ "integer", ..) => json!({"type": kind, "minimum": 1}),
        (kind, [], None) => json!({ "type": kind }),
        (kind, words, None) => json!({"type": kind, "enum": words}),
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
    let mut refuse = |status: &str, description: &str| {
        responses.insert(status.to_owned(), refused(status, description));
    };
    refuse_all(endpoint, &mut refuse);
    refuse_of_people(endpoint, &mut refuse);
    if endpoint.needs != Needs::Nothing {
        refuse("503", "It cannot be put down in the audit, or too much is being done");
    }
    refuse_of_volumes(endpoint.what, &mut refuse);
    refuse_of_kept(endpoint.what, &mut refuse);
    if endpoint.what == Matter::Health {
        let health = json!({"$ref": "#/components/schemas/Health"});
        let content = json!({"application/json": {"schema": health}});
        let unwell = json!({"description": "It is not well", "content": content});
        responses.insert("503".to_owned(), unwell);
    }
    responses.into()
}

/// A problem with this status.
fn refused(status: &str, description: &str) -> Value {
    let problem = json!({"application/problem+json":
        {"schema": {"$ref": "#/components/schemas/Problem"}}});
    let mut refused = json!({"description": description, "content": problem});
    if let ("429" | "503", Some(refused)) = (status, refused.as_object_mut()) {
        let headers = json!({"Retry-After": header("integer", "Seconds to wait")});
        refused.insert("headers".to_owned(), headers);
    }
    refused
}

type Refuse<'a> = &'a mut dyn FnMut(&str, &str);

fn refuse_all(endpoint: &Endpoint, refuse: Refuse<'_>) {
    refuse("400", "A parameter or the query is wrong");
    refuse("405", "The method is not answered here");
    if endpoint.needs != Needs::Nothing {
        refuse("401", "There is no credential, or it does not count");
    }
    if matches!(endpoint.needs, Needs::Scope(_) | Needs::OneOf(_))
        || endpoint.what == Matter::Inspection
    {
        refuse("403", "The credential lacks the scope, or sees a part of the sessions");
    }
    if !endpoint.body.is_empty() {
        refuse("413", "The body is too long, or did not arrive in time");
        refuse("429", "After too many failures the next attempt waits");
    }
}

fn refuse_of_people(endpoint: &Endpoint, refuse: Refuse<'_>) {
    let is_of_people = !endpoint.what.is_of_volumes() && endpoint.what != Matter::LoginWays;
    if is_of_people && endpoint.what != Matter::Logout && endpoint.what != Matter::Caller {
        refuse("404", "There is nothing of this name, or the service has no such file");
        refuse("409", "It is taken, or the last administrator, or nothing was begun");
        refuse("410", "The link, or the login at the provider, is over");
        refuse("500", "A file could not be read or changed");
    }
    if endpoint.what == Matter::LoginWays {
        refuse("404", "The service knows no people");
    }
    if endpoint.what.is_of_an_account() {
        refuse("403", "The credential is no person's");
    }
    if [Matter::BeginAtProvider, Matter::FinishAtProvider].contains(&endpoint.what) {
        refuse("403", "The provider's claims give no role");
        refuse("502", "The identity provider does not answer as it should");
    }
}

/// Of what a service keeps: holds, tags, jobs, answers.
fn refuse_of_kept(what: Matter, refuse: Refuse<'_>) {
    match what {
        Matter::Hold => refuse("507", "The folder of holds is full"),
        Matter::Holds | Matter::Release => {
            refuse("404", "There is no such hold, or no folder of holds");
            refuse("500", "The folder of holds cannot be used");
        }
        Matter::Tags | Matter::AddTags | Matter::RemoveTag => {
            refuse("404", "There is no such tag or volume, or no file of tags");
            refuse("500", "The file of tags cannot be used");
            if what == Matter::AddTags {
                refuse("413", "The query or the event is too long");
                refuse("507", "The file of tags is full");
            }
        }
        Matter::Jobs | Matter::StartJob | Matter::Job | Matter::JobEvents | Matter::CancelJob => {
            refuse("404", "There is no such job, or no volume of this name");
            refuse("409", "The job has ended");
            if what == Matter::StartJob {
                refuse("429", "Too many jobs of this credential wait or run");
            }
        }
        what if what.is_of_requests() => refuse_of_requests(what, refuse),
        Matter::Answer | Matter::Manifest => {
            refuse("404", "No answer of this credential has this id, or none any more");
        }
        _ => {}
    }
}

/// Of extracts that one asks for and another one approves.
fn refuse_of_requests(what: Matter, refuse: Refuse<'_>) {
    refuse("404", "There is no such request or volume, or no file of requests");
    match what {
        Matter::AskExtract => {
            refuse("409", "Too many requests of this credential are open");
            refuse("413", "The query, the case or the purpose is too long");
            refuse("500", "The file of requests cannot be changed");
            refuse("507", "The file of requests is full");
        }
        Matter::Approve | Matter::EndRequest => {
            refuse("403", "The credential lacks the scope, or one person would do both");
            refuse("409", "It was approved before");
            refuse("410", "It has expired, or was withdrawn or refused");
            refuse("413", "The note is too long");
            refuse("500", "The file of requests cannot be changed");
        }
        Matter::ApprovedExtract => {
            refuse("403", "The credential lacks the scope, or nobody who counts has approved it");
            refuse("410", "It has expired, or was withdrawn or refused");
        }
        _ => {}
    }
}

fn refuse_of_volumes(what: Matter, refuse: Refuse<'_>) {
    if what.asks_volume() || what.is_looked_at() {
        refuse("404", "No volume of this name is served");
        refuse("409", conflict(what));
        refuse("413", "The query is too long");
        refuse("500", "The volume cannot be read");
        refuse("429", "Too many requests of this credential wait");
        refuse("503", "Too many requests are being answered");
        refuse("504", "The time of the request was over before its first byte");
    }
}

fn conflict(what: Matter) -> &'static str {
    match what {
        Matter::Extract | Matter::ApprovedExtract => {
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
        (Matter::Decode, _) => of("Decoded"),
        (
            Matter::Login
            | Matter::First
            | Matter::FinishAtProvider
            | Matter::EndKey
            | Matter::Caller
            | Matter::ChangePassword
            | Matter::EndSecondFactor,
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
        (Matter::Inspection, PLAIN) => json!({"type": "string", "description":
            "As `wirespool inspect` prints it"}),
        (Matter::Inspection, _) => of("Inspection"),
        (Matter::Ring, _) => of("Ring"),
        (Matter::Recordings, _) => of("Recordings"),
        (Matter::Gaps, _) => of("Gaps"),
        (Matter::Qualification, _) => of("QualificationOfVolume"),
        (Matter::Findings, _) => of("Diagnosis"),
        (Matter::Tags, NDJSON) => json!({"type": "string", "description":
            "A Tag a line, as `wirespool tag` prints them"}),
        (Matter::Tags, _) => of("Tags"),
        (Matter::AddTags, _) => of("Tagged"),
        (Matter::RemoveTag, _) => of("Tag"),
        (Matter::Requests, _) => of("Requests"),
        (Matter::AskExtract | Matter::Request | Matter::Approve | Matter::EndRequest, _) => {
            of("Request")
        }
        (Matter::Jobs, _) => of("Jobs"),
        (Matter::StartJob | Matter::Job | Matter::CancelJob, _) => of("Job"),
        (Matter::JobEvents, _) => json!({"type": "string", "contentMediaType": EVENTS,
            "description": "Events `progress` and, as the last one, `end`, each with a Job"}),
        (Matter::Health, _) => of("Health"),
        (Matter::Answer, _) => of("Answer"),
        (Matter::Metrics, _) => json!({"type": "string"}),
        _ => json!({"type": "object"}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_a_name_of_its_own() {
        let document = document(Map::new());
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
}
