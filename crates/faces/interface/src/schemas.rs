//! Schemas of answers that are made as JSON, not of a type.

use serde_json::{Map, Value, json};

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

/// Those of answers that no type describes.
pub(crate) fn schemas(session: &Value) -> Map<String, Value> {
    let text = json!({"type": "string"});
    let count = json!({"type": "integer", "minimum": 0});
    let maybe_text = json!({"type": ["string", "null"]});
    let schemas = json!({
        "Session": session,
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
                "volumes_unread": {"type": "array", "items": text},
            },
        },
        "Problem": problem_schema(),
    });
    match schemas {
        Value::Object(schemas) => schemas,
        _ => Map::new(),
    }
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
                        "description": "Protocols or values, in the order of a bucket's counts"},
                    "others": {"type": "integer", "minimum": 1, "description":
                        "The last series is no protocol: so many further ones share it"},
                    "queries": {"type": "array", "items": {"type": ["string", "null"]},
                        "description": "Of values: what selects each, null for all others"},
                    "buckets": {"type": "array", "items": {"type": "array"},
                        "description": "Start in ns and counts by series, of those with traffic"},
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
                "required": ["number", "time_ns", "length", "captured", "link_type", "source",
                    "destination", "protocol", "info", "payload_len", "data"],
                "properties": {
                    "number": count,
                    "time_ns": {"type": "integer"},
                    "length": count,
                    "captured": count,
                    "link_type": {"type": "integer", "minimum": 0,
                        "description": "As LINKTYPE_ of pcap numbers them"},
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
