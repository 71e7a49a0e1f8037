//! Schemas of what a service keeps: tags, requests and jobs.

use serde_json::{Map, Value, json};

use crate::form::{counts, form, list, of, text, time};

/// By their names.
pub(crate) fn schemas() -> Map<String, Value> {
    let all = [
        ("Tag", tag()),
        ("Tags", tags()),
        ("Tagged", tagged()),
        ("Request", request()),
        ("Requests", requests()),
        ("Job", job()),
        ("Jobs", form(&[("jobs", list(&of("Job")))], &[])),
    ];
    all.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

fn tag() -> Value {
    form(
        &[
            ("id", text()),
            ("session_id", text()),
            ("tag", text()),
            ("event_ns", time()),
            ("start_ns", time()),
            ("volume_id", text()),
            ("by", text()),
            ("made_ns", time()),
        ],
        &[
            ("community_id", text(), "Where there is IP"),
            ("severity", counts(), "1 is the highest"),
            ("provisional", json!({"type": "boolean"}), "The id held only for a while"),
            ("filter", text(), "What who put it there sees at most"),
        ],
    )
}

fn tags() -> Value {
    form(
        &[("tags", list(&of("Tag"))), ("count", counts()), ("count_most", counts())],
        &[("cut_by", json!({"enum": ["limit"]}), "Fewer are shown than there are")],
    )
}

fn tagged() -> Value {
    form(&[("tags", list(&of("Tag"))), ("count", counts()), ("statement", of("Statement"))], &[])
}

fn request() -> Value {
    let who = || form(&[("name", text()), ("kind", text())], &[]);
    form(
        &[
            ("id", text()),
            ("state", json!({"enum": ["waiting", "approved", "expired", "withdrawn", "refused"]})),
            ("is_yours", json!({"type": "boolean"})),
            ("query", text()),
            ("volume", text()),
            ("volume_id", text()),
            ("only_range", json!({"type": "boolean"})),
            ("case", text()),
            ("purpose", text()),
            ("requester", who()),
            ("made_ns", time()),
            ("until_ns", time()),
        ],
        &[
            ("filter", text(), "What who asked saw at most; the query has it, too"),
            ("approver", who(), "Who has approved it"),
            ("approved_ns", time(), "When"),
            ("approval_blake3", text(), "As the manifest of its extract has it"),
            ("note", text(), "What the approver has said"),
            ("ended_by", who(), "Who has withdrawn or refused it"),
            ("ended_ns", time(), "When"),
            ("ended_note", text(), "What they have said"),
        ],
    )
}

fn requests() -> Value {
    form(
        &[("requests", list(&of("Request"))), ("count", counts())],
        &[("cut_by", json!({"enum": ["limit"]}), "Fewer are shown than there are")],
    )
}

fn job() -> Value {
    form(
        &[
            ("id", text()),
            ("kind", json!({"enum": ["verify", "scrub", "hold"]})),
            ("volume", text()),
            ("by", text()),
            ("state", json!({"enum": ["waiting", "running", "done", "failed", "cancelled"]})),
            ("made_ns", time()),
            ("done", counts()),
        ],
        &[
            ("query", text(), "Of a hold: which sessions"),
            ("begun_ns", time(), "When its turn came"),
            ("ended_ns", time(), "When it ended"),
            ("of", counts(), "Of so much, where that is known before"),
            ("is_clean", json!({"type": "boolean"}), "Nothing is damaged, or missing"),
            ("result", json!({"type": "object"}), "What the verb prints with --json"),
            ("reason", text(), "Why it failed or was ended early"),
        ],
    )
}
