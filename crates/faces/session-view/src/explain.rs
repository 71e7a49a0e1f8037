//! What a query cost, in words and as JSON, and the list of fields that it can ask for.

use extract::{Explain, NamesMet};
use page::safe::{json_line, json_pretty, printable};
use page::text::{duration, grouped, plural};
use query::{Field, Query};
use schemars::JsonSchema;
use serde::Serialize;
use units::ByteSize;

/// What to say where a query asks for interfaces or recordings by names that the volume does not
/// have; `None` where it does not.
pub fn unmet_names(query: &Query, met: &NamesMet) -> Option<String> {
    let kinds = [
        ("interface_name", "interface", &met.interfaces),
        ("recording", "recording", &met.recordings),
    ];
    let lines = kinds.into_iter().filter_map(|(field, what, names)| {
        let unmet = query.unmet(field, names);
        if unmet.is_empty() {
            return None;
        }
        let list = |names: Vec<String>| printable(&names.join(", "));
        let there = if names.is_empty() {
            format!("no {what} here has a name")
        } else {
            format!("{what}s here: {}", list(names.iter().cloned().collect()))
        };
        Some(format!("there is no {what} {}; {there}", list(unmet)))
    });
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// What a query cost, in words.
pub fn explain(explain: &Explain) -> String {
    let Explain { segments, rows, rows_matched, .. } = explain;
    let opened = segments.saturating_sub(explain.segments_pruned());
    let steps = if explain.list_ns + explain.look_ns + explain.rows_ns > 0 {
        format!(
            " ({} to list segments, {} to look into them, {} for rows)",
            duration(explain.list_ns),
            duration(explain.look_ns),
            duration(explain.rows_ns),
        )
    } else {
        String::new()
    };
    format!(
        "segments: {} of {} opened, {} of index; {} rebuilt from packets\n\
         ruled out: {} by time, {} by session id, {} by the filter of their group, \
         {} by their own\n\
         rows: {} read, {} matched; {} indexed on the way\n\
         packets: {} read, {} looked at, {} from the volume\n\
         time: {} to open, {} to select{steps}, {} for packets\n",
        grouped(opened),
        grouped(*segments),
        ByteSize(explain.index_bytes),
        grouped(explain.segments_rebuilt),
        grouped(explain.pruned_by_time),
        grouped(explain.pruned_by_id),
        grouped(explain.pruned_by_group),
        grouped(explain.pruned_by_filter),
        grouped(*rows),
        grouped(*rows_matched),
        plural(explain.stripes_indexed, "stripe"),
        plural(explain.pieces_read, "piece"),
        plural(explain.packets_seen, "packet"),
        ByteSize(explain.bytes_read),
        duration(explain.open_ns),
        duration(explain.select_ns),
        duration(explain.packets_ns),
    )
}

/// The same as one line of JSON: an object under the key `explain`.
pub fn explain_json(explain: &Explain) -> String {
    json_line(&serde_json::json!({ "explain": explain }))
}

/// The fields as lines of text.
pub fn fields(fields: &[Field]) -> String {
    let line = |field: &Field| {
        let also = match field.aliases {
            [] => String::new(),
            aliases => format!(" (also {})", aliases.join(", ")),
        };
        format!("{:<26}  {:<9}  {}{also}\n", field.name, field.kind, field.meaning)
    };
    fields.iter().map(line).collect()
}

/// A field that a query can ask for.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Field")]
pub struct ListedField {
    name: &'static str,
    aliases: &'static [&'static str],
    kind: String,
    meaning: &'static str,
}

impl ListedField {
    /// A field as it is listed.
    pub fn of(field: &Field) -> Self {
        Self {
            name: field.name,
            aliases: field.aliases,
            kind: field.kind.to_string(),
            meaning: field.meaning,
        }
    }
}

/// The fields as a JSON array.
pub fn fields_json(fields: &[Field]) -> String {
    json_pretty(&fields.iter().map(ListedField::of).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_nobody_has_are_said_with_those_there_are() {
        let names = ["eth0", "\u{1b}[31m"].map(str::to_owned);
        let met = NamesMet { interfaces: names.into(), ..NamesMet::default() };
        let said = |text: &str| {
            let query = Query::parse(text, units::Timestamp(0)).unwrap();
            unmet_names(&query, &met)
        };
        let expected = "there is no interface \"eth9\", \"br*\"; \
                        interfaces here: \\u{1b}[31m, eth0";
        assert_eq!(said("interface in {eth9, 3, eth0, br*}").as_deref(), Some(expected));
        let expected = "there is no recording \"night\"; no recording here has a name";
        assert_eq!(said("not recording night").as_deref(), Some(expected));
        assert_eq!(said("interface eth* and interface 7 and sni eth9"), None);
    }

    #[test]
    fn the_cost_says_what_ruled_segments_out_and_where_the_time_went() {
        let explain = Explain {
            segments: 2000,
            pruned_by_time: 10,
            pruned_by_id: 0,
            pruned_by_group: 1900,
            pruned_by_filter: 80,
            select_ns: 3_000_000,
            list_ns: 1_000_000,
            look_ns: 2_000_000,
            ..Explain::default()
        };
        let text = super::explain(&explain);
        assert!(text.starts_with("segments: 10 of 2 000 opened"), "{text}");
        assert!(text.contains("10 by time, 0 by session id, 1 900 by the filter of their"));
        assert!(text.contains("3.0 ms to select (1.0 ms to list segments, 2.0 ms to look"));
        let json: serde_json::Value = serde_json::from_str(&explain_json(&explain)).unwrap();
        assert_eq!(json["explain"]["pruned_by_group"], 1900);
        assert!(!super::explain(&Explain::default()).contains("to list"), "nothing was measured");
    }

    #[test]
    fn every_field_is_listed_with_its_other_names() {
        let text = fields(&query::FIELDS);
        assert!(
            text.contains("frame_bytes                 size       bytes on the wire"),
            "{text}"
        );
        assert!(text.contains("(also bytes)"));
        let json: serde_json::Value = serde_json::from_str(&fields_json(&query::FIELDS)).unwrap();
        assert_eq!(json.as_array().unwrap().len(), query::FIELDS.len());
        let sni = json.as_array().unwrap().iter().find(|field| field["name"] == "sni").unwrap();
        assert_eq!((&sni["kind"], &sni["aliases"][0]), (&"name".into(), &"tls.sni".into()));
    }
}
