//! Answers against the document that the service has of them.

use serde_json::{Value, json};

use super::Served;
use super::browser::HEADING;
use super::decoded::{TSHARK, has_tshark};
use crate::machine::Volume;

/// A service with all files that it may have, a token that may do everything, and its document.
struct Documented {
    served: Served,
    token: String,
    document: Value,
}

impl Documented {
    fn new() -> Self {
        let volume = Volume::recorded();
        let folder = volume.file("holds");
        std::fs::create_dir(&folder).unwrap();
        let [audit, people, requests, tags] =
            ["audit", "people", "requests", "tags"].map(|name| volume.file(name));
        let decodes: &[&str] = if has_tshark() { &["--tshark", TSHARK] } else { &[] };
        let served = Served::with(
            volume,
            &[
                &["--audit", &*audit][..],
                &["--hold-dir", &*folder],
                &["--people-file", &*people],
                &["--requests-file", &*requests],
                &["--tags-file", &*tags],
                decodes,
            ]
            .concat(),
        );
        let token = served.token("all", "admin,hold,payload,request,sessions");
        let document = served.get("/api/v1/openapi.json", &token).ok().json();
        Self { served, token, document }
    }

    /// The answer to a method and an address, whose path the document calls so.
    #[track_caller]
    fn is_as_said(&self, what: &str, path: &str, token: &str) -> Value {
        let (method, _) = what.split_once(' ').unwrap();
        let answer = self.served.ask(what, token, &[HEADING]).ok().json();
        let said = &self.document["paths"][path][method.to_lowercase()]["responses"]["200"];
        let name = said["content"]["application/json"]["schema"]["$ref"].as_str().unwrap();
        // The references of a schema lead into the document.
        let schema = json!({ "$ref": name, "components": self.document["components"] });
        let validator = jsonschema::validator_for(&schema).unwrap();
        let wrong: Vec<String> =
            validator.iter_errors(&answer).map(|error| error.to_string()).collect();
        assert_eq!(wrong, [""; 0], "{what}: {answer}");
        let mut more = answer.clone();
        more["unknown"] = true.into();
        assert!(!validator.is_valid(&more), "{what}: {name} takes anything");
        answer
    }

    #[track_caller]
    fn ask(&self, what: &str) -> Value {
        let path = what.split([' ', '?']).nth(1).unwrap();
        self.is_as_said(what, path, &self.token)
    }

    /// Of something that has this id.
    #[track_caller]
    fn ask_of(&self, method: &str, kind: &str, id: &Value) -> Value {
        let id = id.as_str().unwrap();
        let path = format!("/api/v1/{kind}/{{id}}");
        self.is_as_said(&format!("{method} /api/v1/{kind}/{id}"), &path, &self.token)
    }
}

#[test]
fn what_is_managed_is_answered_as_the_document_says() {
    let documented = Documented::new();
    let ask = |what: &str| documented.ask(what);
    ask("POST /api/v1/people?name=anna&role=viewer");
    let people = ask("GET /api/v1/people");
    assert_eq!(people["people"][0]["name"], "anna", "{people}");
    let path = "/api/v1/people/{id}/password";
    documented.is_as_said("POST /api/v1/people/anna/password", path, &documented.token);
    let tokens = ask("GET /api/v1/tokens");
    assert_eq!(tokens["tokens"].as_array().unwrap().len(), 1);
    let audit = ask("GET /api/v1/audit");
    assert!(!audit["lines"].as_array().unwrap().is_empty());
    ask("GET /api/v1/audit/check");
    ask("GET /api/v1/whoami");
    if has_tshark() {
        ask("GET /api/v1/decode?query=port+53&limit=3");
    }
    ask("GET /api/v1/health");
    documented.ask_of("DELETE", "people", &"anna".into());
}

#[test]
fn what_is_kept_is_answered_as_the_document_says() {
    let documented = Documented::new();
    let ask = |what: &str| documented.ask(what);
    let tagged = ask("POST /api/v1/tags?query=port+53&tag=odd&severity=1");
    let tags = ask("GET /api/v1/tags?limit=1");
    assert_eq!(tags["cut_by"], "limit", "{tags}");
    documented.ask_of("DELETE", "tags", &tagged["tags"][0]["id"]);
    let held = ask("POST /api/v1/holds?query=port+53");
    ask("GET /api/v1/holds");
    documented.ask_of("DELETE", "holds", &held["hold"]["file"]);
    let job = ask("POST /api/v1/jobs?kind=verify");
    documented.ask_of("GET", "jobs", &job["id"]);
    ask("GET /api/v1/jobs");
    let asked = ask("POST /api/v1/requests?query=port+53&case=17&purpose=a+leak");
    let id = asked["id"].as_str().unwrap();
    let other = documented.served.token("bert", "approve");
    let what = format!("POST /api/v1/requests/{id}/approve");
    let approved = documented.is_as_said(&what, "/api/v1/requests/{id}/approve", &other);
    assert_eq!(approved["state"], "approved", "{approved}");
    documented.ask_of("GET", "requests", &asked["id"]);
    ask("GET /api/v1/requests");
    let ended = documented.ask_of("DELETE", "requests", &asked["id"]);
    assert_eq!(ended["ended_by"]["name"], "all", "{ended}");
}
