//! The form of a session in JSON, for programs that check or generate by it.

use query::{Field, Kind};
use serde_json::{Map, Value as Json, json};

use crate::session::{FIELDS, Value, fieldless};

/// A JSON Schema of what [`json_line`](crate::json_line) writes: every key with its type and, where
/// a query knows the field, its meaning. Keys that are absent from a session have no value.
pub fn session_schema() -> Json {
    let empty = fieldless();
    let mut properties = Map::new();
    for (name, read) in &FIELDS {
        let mut property = match read(&empty) {
            Value::Texts(_) => json!({"type": "array", "items": {"type": "string"}}),
            Value::Numbers(_) => json!({"type": "array", "items": {"type": "integer"}}),
            Value::Count(_) | Value::Nanos(_) => json!({"type": "integer"}),
            Value::Flag(_) => json!({"type": "boolean"}),
            Value::Text(_) | Value::Several(_) => json!({"type": "string"}),
            Value::Absent => json!({"type": word(name)}),
        };
        if let Some(field) = field(name)
            && let Some(property) = property.as_object_mut()
        {
            property.insert("description".to_owned(), field.meaning.into());
        }
        properties.insert((*name).to_owned(), property);
    }
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

/// The field of this name, and not one that has it as another word.
fn field(name: &str) -> Option<&'static Field> {
    Field::find(name).filter(|field| field.name == name)
}

/// The type of a value that an empty session lacks.
fn word(name: &str) -> &'static str {
    match field(name).map(|field| field.kind) {
        _ if name == "provisional" => "boolean",
        Some(Kind::Flag) => "boolean",
        Some(
            Kind::Count
            | Kind::Bytes
            | Kind::Duration
            | Kind::Time
            | Kind::Protocol
            | Kind::DnsType
            | Kind::DnsRcode
            | Kind::TlsVersion
            | Kind::Cipher
            | Kind::Interface,
        ) => "integer",
        _ => "string",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_as_its_schema_says() {
        let schema = session_schema();
        let row = crate::json_line(&crate::session::tests::found("/a"));
        let row: Map<String, Json> = serde_json::from_str(&row).unwrap();
        for (key, value) in row {
            let expected = schema["properties"][&key]["type"].as_str().unwrap();
            let is_so = match expected {
                "array" => value.is_array(),
                "integer" => value.is_i64() || value.is_u64(),
                "boolean" => value.is_boolean(),
                "string" => value.is_string(),
                _ => false,
            };
            assert!(is_so, "{key}: {value} is no {expected}");
        }
        for key in ["tls_version", "orig_syn_mss", "tunnel_id", "cert_not_before_ns", "vlan"] {
            assert_eq!(schema["properties"][key]["type"], "integer", "{key}");
        }
        for key in ["tls_version_name", "tls_cipher_name", "proto_name", "packets_overwritten"] {
            assert_eq!(schema["properties"][key]["type"], "string", "{key}");
        }
        for key in ["orig_syn_timestamps", "provisional", "continues"] {
            assert_eq!(schema["properties"][key]["type"], "boolean", "{key}");
        }
    }
}
