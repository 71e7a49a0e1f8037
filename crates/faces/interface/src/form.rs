//! Parts of schemas.

use serde_json::{Map, Value, json};

/// A member that need not be there, and what it means.
pub(crate) type Optional = (&'static str, Value, &'static str);

pub(crate) fn text() -> Value {
    json!({"type": "string"})
}

pub(crate) fn counts() -> Value {
    json!({"type": "integer", "minimum": 0})
}

/// Nanoseconds since 1970, or so many of them.
pub(crate) fn time() -> Value {
    json!({"type": "integer"})
}

pub(crate) fn list(of: &Value) -> Value {
    json!({"type": "array", "items": of})
}

/// The schema of this name.
pub(crate) fn of(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Members that need not be there, and whose names say enough.
pub(crate) fn optional(members: &[(&'static str, Value)]) -> Vec<Optional> {
    members.iter().map(|(name, schema)| (*name, schema.clone(), "")).collect()
}

/// An object of these members and no others: those that are always there, and the rest.
pub(crate) fn form(always: &[(&'static str, Value)], else_also: &[Optional]) -> Value {
    let mut properties = Map::new();
    for (name, schema) in always {
        properties.insert((*name).to_owned(), schema.clone());
    }
    for (name, schema, meaning) in else_also {
        let mut schema = schema.clone();
        if let (false, Some(schema)) = (meaning.is_empty(), schema.as_object_mut()) {
            schema.insert("description".to_owned(), (*meaning).into());
        }
        properties.insert((*name).to_owned(), schema);
    }
    let required: Vec<&str> = always.iter().map(|(name, _)| *name).collect();
    json!({
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": false,
    })
}
