//! The form of a session in JSON, for programs that check or generate by it.

use std::borrow::Cow;

use found::Found;
use query::{Field, Kind};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, json};

use crate::session::{FIELDS, Read, Value, fieldless};

/// Of which type the values of a field are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldType {
    /// Integer of 64 bits.
    Integer,
    /// Several of such.
    Integers,
    /// Yes or no.
    Flag,
    /// Text.
    Text,
    /// Several texts.
    Texts,
}

/// A field of sessions, as [`json_line`](crate::json_line) writes it.
#[derive(Clone, Copy, Debug)]
pub struct SessionField {
    /// The key in JSON, the heading in CSV.
    pub name: &'static str,
    /// Of its values.
    pub values: FieldType,
    read: Read,
}

impl SessionField {
    /// Every field, in their order.
    pub fn all() -> impl Iterator<Item = Self> {
        let empty = fieldless();
        FIELDS.iter().map(move |&(name, read)| {
            let values = match read.of(&empty) {
                Value::Texts(_) => FieldType::Texts,
                Value::Numbers(_) => FieldType::Integers,
                Value::Count(_) | Value::Nanos(_) => FieldType::Integer,
                Value::Flag(_) => FieldType::Flag,
                Value::Text(_) | Value::Several(_) => FieldType::Text,
                Value::Absent => type_of(name),
            };
            Self { name, values, read }
        })
    }

    /// What it means, where a query knows the field by this name.
    pub fn meaning(&self) -> Option<&'static str> {
        field(self.name).map(|field| field.meaning)
    }

    /// Its value in a session.
    pub fn of<'a>(&self, session: &'a Found) -> Value<'a> {
        self.read.of(session)
    }
}

/// The schema of what [`json_line`](crate::json_line) writes: every key with its type and, where a
/// query knows the field, its meaning. Keys that are absent from a session have no value.
#[derive(Debug)]
pub struct Session;

impl JsonSchema for Session {
    fn schema_name() -> Cow<'static, str> {
        "Session".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut properties = Map::new();
        for field in SessionField::all() {
            let mut property = match field.values {
                FieldType::Texts => json!({"type": "array", "items": {"type": "string"}}),
                FieldType::Integers => json!({"type": "array", "items": {"type": "integer"}}),
                FieldType::Integer => json!({"type": "integer"}),
                FieldType::Flag => json!({"type": "boolean"}),
                FieldType::Text => json!({"type": "string"}),
            };
            if let (Some(meaning), Some(property)) = (field.meaning(), property.as_object_mut()) {
                property.insert("description".to_owned(), meaning.into());
            }
            properties.insert(field.name.to_owned(), property);
        }
        json_schema!({"type": "object", "properties": properties})
    }
}

/// The field of this name, and not one that has it as another word.
fn field(name: &str) -> Option<&'static Field> {
    Field::find(name).filter(|field| field.name == name)
}

/// The type of a value that an empty session lacks.
fn type_of(name: &str) -> FieldType {
    match field(name).map(|field| field.kind) {
        _ if name == "provisional" => FieldType::Flag,
        Some(Kind::Flag) => FieldType::Flag,
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
        ) => FieldType::Integer,
        _ => FieldType::Text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::*;

    #[test]
    fn a_session_is_as_its_schema_says() {
        let schema = Session::json_schema(&mut SchemaGenerator::default());
        let schema = schema.as_value();
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
