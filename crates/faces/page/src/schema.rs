//! JSON schemas (draft of 2020-12) of reports. Their types declare them, and nothing else does:
//! members, which of them are always there, and what they mean.
//!
//! A schema is of what this program writes. A member that its type can do without when it reads a
//! report need not be there, so that reports of earlier programs are as the schema says, too.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

use crate::safe::json_pretty;

/// Keys under which there are schemas that hold for the same value.
const PARTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Schemas that refer to each other within an `OpenAPI` document.
#[derive(Debug)]
pub struct Schemas(SchemaGenerator);

impl Schemas {
    /// None yet.
    pub fn of_openapi() -> Self {
        let at = "/components/schemas".into();
        Self(settings().with(|settings| settings.definitions_path = at).into_generator())
    }

    /// With that of a type, and of all types in it.
    #[must_use]
    pub fn and<T: JsonSchema>(mut self) -> Self {
        self.0.subschema_for::<T>();
        self
    }

    /// By the names of the types. Objects have no other members than these.
    pub fn closed(mut self) -> Map<String, Value> {
        let mut schemas = self.0.take_definitions(true);
        schemas.values_mut().for_each(close);
        schemas
    }
}

/// The schema of a report, as JSON. Later programs may add members to its objects.
pub fn schema_json<T: JsonSchema>(title: &str) -> String {
    let mut schema = settings().into_generator().into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    json_pretty(&schema)
}

/// Objects of this schema, and of those in it, have no other members than it says.
pub fn close(schema: &mut Value) {
    close_part(schema, false);
}

/// `is_part`: further schemas hold for the same value, and have members of it.
fn close_part(schema: &mut Value, is_part: bool) {
    let Some(object) = schema.as_object_mut() else { return };
    let has_members = object.contains_key("properties");
    let is_joined = PARTS.iter().any(|key| object.contains_key(*key));
    for (key, value) in object.iter_mut() {
        match (key.as_str(), value) {
            ("properties" | "$defs", Value::Object(named)) => named.values_mut().for_each(close),
            (key, Value::Array(several)) if PARTS.contains(&key) => {
                let is_part = is_part || has_members;
                for one in several {
                    close_part(one, is_part);
                }
            }
            ("prefixItems", Value::Array(several)) => several.iter_mut().for_each(close),
            ("items" | "additionalProperties", of) => close(of),
            _ => {}
        }
    }
    if has_members && !is_part {
        let key = if is_joined { "unevaluatedProperties" } else { "additionalProperties" };
        object.entry(key).or_insert(false.into());
    }
}

fn settings() -> SchemaSettings {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.with_transform(RecursiveTransform(reworded))
}

/// A schema without what only Rust knows.
fn reworded(schema: &mut Schema) {
    // `uint64` and the like are of no vocabulary, and strict validators refuse them.
    let is_number = |format: &str| format.contains("int") || ["double", "float"].contains(&format);
    if schema.get("format").and_then(Value::as_str).is_some_and(is_number) {
        schema.remove("format");
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace("`None`", "nothing").replace("[`", "`").replace("`]", "`");
    }
    let Some(object) = schema.as_object_mut() else { return };
    let needed: Vec<String> = texts(object.get("required")).collect();
    let Some(Value::Object(members)) = object.get_mut("properties") else { return };
    // What is left out where there is nothing is never null.
    let others = members.iter_mut().filter(|(name, _)| !needed.contains(name));
    others.for_each(|(_, member)| without_null(member));
    let has_default =
        |name: &String| members.get(name).is_some_and(|of| of.get("default").is_some());
    let needed: Value = needed.into_iter().filter(|name| !has_default(name)).collect();
    object.insert("required".to_owned(), needed);
}

fn texts(of: Option<&Value>) -> impl Iterator<Item = String> {
    let of = of.and_then(Value::as_array).into_iter().flatten();
    of.filter_map(|text| text.as_str().map(str::to_owned))
}

fn without_null(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(Value::Array(kinds)) = object.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            let kind = kind.clone();
            object.insert("type".to_owned(), kind);
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let is_null = |one: &Value| one.get("type").is_some_and(|kind| kind == "null");
    if let Some(Value::Array(mut several)) = object.remove("anyOf") {
        several.retain(|one| !is_null(one));
        match several.as_slice() {
            [Value::Object(one)] => {
                let one = one.clone();
                // Here it may have a description of its own.
                one.into_iter().for_each(|(key, value)| {
                    object.entry(key).or_insert(value);
                });
            }
            _ => {
                object.insert("anyOf".to_owned(), several.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(dead_code, reason = "only the schemas of these types are asked for")]

    use serde_json::json;

    use super::*;

    #[derive(JsonSchema)]
    #[serde(tag = "state", rename_all = "snake_case")]
    enum State {
        Whole,
        Stale { since: u64 },
    }

    #[derive(JsonSchema)]
    struct Report {
        always: Option<u8>,
        #[serde(default)]
        lately: Vec<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        seldom: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        inner: Option<Inner>,
        #[serde(flatten)]
        state: State,
    }

    #[derive(JsonSchema)]
    struct Inner {
        /// `None` is not known.
        count: Option<i64>,
    }

    #[test]
    fn a_schema_is_of_what_is_written_and_of_what_earlier_programs_wrote() {
        let mut schema: Value = serde_json::from_str(&schema_json::<Report>("A report")).unwrap();
        assert_eq!(schema["title"], "A report");
        assert_eq!(schema["required"], json!(["always"]));
        let members = &schema["properties"];
        assert_eq!(members["always"]["type"], json!(["integer", "null"]));
        assert_eq!(members["always"].get("format"), None);
        assert_eq!(members["seldom"], json!({"type": "integer", "minimum": 0}));
        assert_eq!(members["inner"], json!({"$ref": "#/$defs/Inner"}));
        let inner = &schema["$defs"]["Inner"]["properties"]["count"];
        assert_eq!(inner["description"], "nothing is not known.");
        assert_eq!(schema.get("additionalProperties"), None);
        close(&mut schema);
        // What holds for the same object must not refuse each other's members.
        assert_eq!(schema["unevaluatedProperties"], false);
        assert_eq!(schema["oneOf"][1].get("additionalProperties"), None);
        assert_eq!(schema["$defs"]["Inner"]["additionalProperties"], false);
    }
}
