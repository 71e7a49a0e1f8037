//! Sessions of many sensors as a table, lines of JSON or CSV: those of one volume, with the name of
//! the sensor before them, and of one that another sensor saw first, where that was.

use found::Found;
use page::safe::{csv_cell, json_part};
use page::table::Column;
use page::text::Zone;
use serde::Serialize;
use session_view::{ChosenTable, SessionColumns, SessionTable};

use crate::marks::Sighting;

const COLUMNS: [Column<'_>; 2] = [
    Column { title: "SENSOR", is_number: false, least: 0, rank: 0 },
    Column { title: "SAME AS", is_number: false, least: 0, rank: 1 },
];

/// The forms of an answer.
#[derive(Debug)]
pub enum Form {
    /// For people.
    Table(SessionTable),
    /// The same of chosen columns.
    ChosenTable(ChosenTable),
    /// Lines of JSON.
    Json(Option<SessionColumns>),
    /// Lines of CSV.
    Csv(Option<SessionColumns>),
}

#[derive(Serialize)]
struct Before<'a> {
    sensor: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    same_as: Option<SameAs<'a>>,
}

#[derive(Serialize)]
struct SameAs<'a> {
    sensor: &'a str,
    session_id: &'a str,
}

impl Form {
    /// A table at most `width` characters wide, its times as they are in `zone`.
    pub fn table(columns: Option<SessionColumns>, width: Option<usize>, zone: Zone) -> Self {
        match columns {
            Some(columns) => Self::ChosenTable(ChosenTable::behind(&COLUMNS, columns, width, zone)),
            None => Self::Table(SessionTable::behind(&COLUMNS, width, zone)),
        }
    }

    /// What stands before the first session.
    pub fn heading(&self) -> String {
        let own = match self {
            Self::Csv(Some(columns)) => columns.csv_heading(),
            Self::Csv(None) => session_view::csv_heading(),
            _ => return String::new(),
        };
        format!("sensor,same_as,{own}")
    }

    /// Takes a session of a sensor; gives the text that is ready to be shown.
    #[must_use]
    pub fn take(&mut self, names: &[String], at: usize, row: (&Found, Option<Sighting>)) -> String {
        let (found, sighting) = row;
        let name = |at: usize| names.get(at).map_or("", String::as_str);
        let same_as = sighting.as_ref().map(|sighting| SameAs {
            sensor: name(sighting.sensor),
            session_id: &sighting.session_id,
        });
        let cell = same_as.as_ref().map(|it| format!("{} {}", it.sensor, it.session_id));
        let cell = page::safe::printable(&cell.unwrap_or_default());
        let sensor = name(at);
        match self {
            Self::Table(table) => table.push_behind(vec![sensor.to_owned(), cell], found),
            Self::ChosenTable(table) => table.push_behind(vec![sensor.to_owned(), cell], found),
            Self::Json(columns) => {
                let own = match columns {
                    Some(columns) => columns.json_line(found),
                    None => session_view::json_line(found),
                };
                joined(&json_part(&Before { sensor, same_as }), &own)
            }
            Self::Csv(columns) => {
                let own = match columns {
                    Some(columns) => columns.csv_line(found),
                    None => session_view::csv_line(found),
                };
                format!("{},{},{own}", csv_cell(sensor), csv_cell(&cell))
            }
        }
    }

    /// The rest of the text.
    #[must_use]
    pub fn finish(self) -> String {
        match self {
            Self::Table(table) => table.finish(),
            Self::ChosenTable(table) => table.finish(),
            Self::Json(_) | Self::Csv(_) => String::new(),
        }
    }
}

/// One object of the members of two, of which the first has some.
fn joined(before: &str, line: &str) -> String {
    let before = before.trim_end().strip_suffix('}').expect("it is an object");
    match line.strip_prefix('{').expect("it is an object") {
        "}\n" => format!("{before}}}\n"),
        members => format!("{before},{members}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, Value, json};

    /// What a sensor says may be anything that a row can hold.
    #[test]
    fn rows_with_the_largest_values_are_shown_in_every_form() {
        let schema = page::schema::schema_json::<session_view::Session>("a session");
        let schema: Value = serde_json::from_str(&schema).unwrap();
        let properties = schema["properties"].as_object().unwrap();
        let base = "{\"session_id\":\"5.0-1\",\"proto\":6,\"session_start_ns\":1,\"start_ns\":1,\
                    \"end_ns\":2}";
        let base: Map<String, Value> = serde_json::from_str(base).unwrap();
        let reads = |row: &Map<String, Value>| {
            session_view::read_session(&Value::from(row.clone()).to_string()).ok()
        };
        let values = [
            json!(u64::MAX),
            json!(i64::MAX),
            json!(i64::MIN),
            json!(u32::MAX),
            json!(u16::MAX),
            json!(u8::MAX),
            json!(true),
            json!("\u{1b}\u{202e}\"x"),
            json!([u32::MAX]),
            json!(["\n"]),
        ];
        let mut most = base.clone();
        let mut rows = Vec::new();
        for name in properties.keys() {
            for value in &values {
                let mut row = base.clone();
                row.insert(name.clone(), value.clone());
                let Some(found) = reads(&row) else { continue };
                rows.push(found);
                most.insert(name.clone(), value.clone());
            }
        }
        for (start, end) in [(i64::MIN, i64::MAX), (i64::MAX, i64::MIN), (0, i64::MAX)] {
            most.insert("start_ns".to_owned(), start.into());
            most.insert("end_ns".to_owned(), end.into());
            rows.extend(reads(&most));
        }
        assert!(rows.len() > properties.len(), "{}", rows.len());
        let names = ["west".to_owned()];
        let all: Vec<String> = properties.keys().cloned().collect();
        let mut marks = crate::Marks::default();
        for chosen in [None, SessionColumns::new(&all).ok()] {
            let table = Form::table(chosen.clone(), Some(200), Zone::Utc);
            for mut form in [table, Form::Json(chosen.clone()), Form::Csv(chosen)] {
                for found in &rows {
                    let _shown = form.take(&names, 0, (found, marks.mark(0, found)));
                }
                let _shown = form.finish();
            }
        }
    }

    #[test]
    fn sensors_and_first_sights_stand_before_a_session_in_every_form() {
        let line = "{\"session_id\":\"5.0-1\",\"proto\":6,\"session_start_ns\":1,\"start_ns\":1,\
                    \"end_ns\":2}";
        let found = session_view::read_session(line).unwrap();
        let names = ["west".to_owned(), "east".to_owned()];
        let first = || Some(Sighting { sensor: 0, session_id: "7.0-\"x\n".to_owned() });
        let columns = SessionColumns::new(&["sni".to_owned()]).unwrap();
        let json: Value =
            serde_json::from_str(&Form::Json(None).take(&names, 1, (&found, first()))).unwrap();
        assert_eq!(json["sensor"], "east");
        assert_eq!(json["same_as"]["session_id"], "7.0-\"x\n");
        assert_eq!(json["session_id"], "5.0-1");
        let mut chosen = Form::Json(Some(columns.clone()));
        assert_eq!(chosen.take(&names, 0, (&found, None)), "{\"sensor\":\"west\"}\n");
        let mut csv = Form::Csv(Some(columns));
        assert_eq!(csv.heading(), "sensor,same_as,sni\n");
        assert_eq!(csv.take(&names, 0, (&found, None)), "west,,\n");
        assert_eq!(csv.take(&names, 1, (&found, first())).lines().count(), 1);
        let mut table = Form::table(None, None, Zone::Utc);
        let text = table.take(&names, 1, (&found, first())) + &table.finish();
        assert!(text.lines().nth(1).unwrap().starts_with("east    west 7.0-"), "{text}");
        assert_eq!(text.lines().count(), 2, "{text}");
    }
}
