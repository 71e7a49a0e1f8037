//! The interface as an `OpenAPI` document: of the table of endpoints, and of the types that answers
//! are written from.

use std::sync::OnceLock;

use jobs::JobList;
use machine_view::Explained;
use page::schema::Schemas;
use questions::Statement;
use serde_json::{Map, Value};
use session_view::{Missing, Summary};
use tags::{TagList, Tagged};
use volume_view::{OfVolume, Recordings, Ring, WithMap};

use crate::answers::Answer;
use crate::approving::RequestList;
use crate::asking::{Fields, Health};
use crate::audit_page::AuditPage;
use crate::entrance::CallerSaid;
use crate::framed::{Decoded, Framed, Held, Packets, Page, Rows};
use crate::holds::HoldList;
use crate::problem::Problem;
use crate::staff::{NewPerson, People};
use crate::token_list::TokenList;

/// The document.
pub(crate) fn document() -> String {
    static TEXT: OnceLock<String> = OnceLock::new();
    let text = || page::safe::json_pretty(&interface::document(schemas()));
    TEXT.get_or_init(text).clone()
}

fn schemas() -> Map<String, Value> {
    Schemas::of_openapi()
        .and::<Problem>()
        .and::<Health<'_>>()
        .and::<CallerSaid<'_>>()
        .and::<People<'_>>()
        .and::<NewPerson<'_>>()
        .and::<TokenList>()
        .and::<AuditPage>()
        .and::<Framed<Page>>()
        .and::<Framed<Summary<'_>>>()
        .and::<Framed<Packets>>()
        .and::<Framed<Decoded>>()
        .and::<Framed<Rows>>()
        .and::<Framed<Held>>()
        .and::<Answer>()
        .and::<Fields>()
        .and::<HoldList>()
        .and::<TagList>()
        .and::<Tagged<Statement>>()
        .and::<RequestList<'_>>()
        .and::<JobList>()
        .and::<WithMap<'_>>()
        .and::<Ring<'_>>()
        .and::<Recordings>()
        .and::<Missing<'_, Statement>>()
        .and::<OfVolume<'_>>()
        .and::<Explained<'_>>()
        .closed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_leads_somewhere() {
        let document: Value = serde_json::from_str(&document()).unwrap();
        let mut references = Vec::new();
        collect(&document, &mut references);
        assert!(references.len() > 100);
        for reference in references {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
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
