//! The columns of an answer that lists sessions, as they were chosen.

use core::slice::from_ref;
use std::sync::Arc;

use found::{Found, TopValue};
use page::safe;
use page::table::{Column, LongTable};
use page::text::{Zone, duration, grouped};
use query::{Atlas, Field, Kind};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::session::{self, Read, Value};
use crate::top;

/// Fields that are computed and may have several values: in JSON always a list.
const SEVERAL: [&str; 7] = ["host", "port", "country", "asn", "as_name", "name", "tag"];

/// One column.
#[derive(Clone, Copy, Debug)]
struct Choice {
    name: &'static str,
    /// As it stands in JSON without a choice.
    listed: Option<Read>,
    /// As queries know it.
    field: Option<&'static Field>,
}

/// Columns by the names that `wirespool fields` and the JSON of sessions have.
#[derive(Clone, Debug)]
pub struct SessionColumns {
    choices: Vec<Choice>,
    atlas: Option<Arc<Atlas>>,
}

impl SessionColumns {
    /// These columns in this order; an error is the first name that is none.
    pub fn new(names: &[String]) -> Result<Self, &str> {
        let listed_as = |wanted: &str| {
            session::FIELDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted))
        };
        let choice = |name: &String| {
            let field = Field::find(name);
            // "proto_name" is another word for proto in queries, and a column of its own here.
            let listed = listed_as(name).or_else(|| field.and_then(|field| listed_as(field.name)));
            let name = listed.map(|(name, _)| *name).or_else(|| field.map(|field| field.name))?;
            Some(Choice { name, listed: listed.map(|(_, read)| *read), field })
        };
        let choices: Result<Vec<Choice>, &str> =
            names.iter().map(|name| choice(name).ok_or(name.as_str())).collect();
        Ok(Self { choices: choices?, atlas: None })
    }

    /// The same, with what an atlas knows about addresses.
    #[must_use]
    pub fn with_atlas(self, atlas: Option<Arc<Atlas>>) -> Self {
        Self { atlas, ..self }
    }

    /// A field among them that has values only with an atlas.
    pub fn needing_atlas(&self) -> Option<&'static Field> {
        self.choices.iter().filter_map(|choice| choice.field).find(|field| field.needs_atlas())
    }

    /// The names as a line of CSV.
    pub fn csv_heading(&self) -> String {
        let names: Vec<&str> = self.choices.iter().map(|choice| choice.name).collect();
        names.join(",") + "\n"
    }

    /// A row as a line of CSV.
    pub fn csv_line(&self, row: &Found) -> String {
        let cells: Vec<String> =
            self.choices.iter().map(|choice| self.value(choice, row).csv()).collect();
        cells.join(",") + "\n"
    }

    /// One JSON object and a line feed; absent fields are left out.
    pub fn json_line(&self, row: &Found) -> String {
        safe::json_line(&Json { columns: self, row })
    }

    fn value<'r>(&self, choice: &Choice, row: &'r Found) -> Value<'r> {
        if let Some(read) = choice.listed {
            return read.of(row);
        }
        let values = self.readings(choice, row).into_iter().map(Value::from);
        if SEVERAL.contains(&choice.name) {
            return Value::Several(values.collect());
        }
        values.into_iter().next().unwrap_or(Value::Absent)
    }

    fn readings(&self, choice: &Choice, row: &Found) -> Vec<TopValue> {
        let mut values = Vec::new();
        if let Some(field) = choice.field {
            field.each((&row.session, from_ref(&row.id)), self.atlas.as_deref(), |reading| {
                values.push(TopValue::as_written(reading));
            });
        }
        values.dedup();
        values
    }

    /// What stands in a table, for people.
    fn cell(&self, choice: &Choice, row: &Found, zone: Zone) -> String {
        let Some(field) = choice.field else { return self.value(choice, row).plain() };
        let text = |value: &TopValue| match (field.kind, value) {
            (Kind::Bytes, TopValue::Number(bytes)) => grouped(*bytes),
            (Kind::Duration, TopValue::Number(nanos)) => {
                duration(i64::try_from(*nanos).unwrap_or(i64::MAX))
            }
            (_, TopValue::Number(number)) => {
                top::name(field.kind, value).map_or_else(|| number.to_string(), str::to_owned)
            }
            (_, TopValue::Time(at)) => zone.time(*at),
            (kind, value) => top::text(kind, value, zone),
        };
        self.readings(choice, row).iter().map(text).collect::<Vec<_>>().join(" ")
    }
}

impl From<TopValue> for Value<'_> {
    fn from(value: TopValue) -> Self {
        match value {
            TopValue::Number(number) => Self::Count(number),
            TopValue::Time(time) => Self::Nanos(time.0),
            TopValue::Text(text) => Self::Text(text.into()),
            TopValue::Address(address) => Self::Text(address.to_string().into()),
            TopValue::Flag(flag) => Self::Flag(flag),
        }
    }
}

struct Json<'a> {
    columns: &'a SessionColumns,
    row: &'a Found,
}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for choice in &self.columns.choices {
            let value = self.columns.value(choice, self.row);
            if !value.is_absent() {
                map.serialize_entry(choice.name, &value)?;
            }
        }
        map.end()
    }
}

/// Chosen columns as a table of any length, in constant memory.
#[derive(Debug)]
pub struct ChosenTable {
    columns: SessionColumns,
    table: LongTable,
    zone: Zone,
}

impl ChosenTable {
    /// A table at most `width` characters wide, as far as shortened texts make it so.
    pub fn new(columns: SessionColumns, width: Option<usize>, zone: Zone) -> Self {
        Self::behind(&[], columns, width, zone)
    }

    /// The same behind further columns.
    pub fn behind(
        before: &[Column<'_>],
        columns: SessionColumns,
        width: Option<usize>,
        zone: Zone,
    ) -> Self {
        let titles: Vec<String> = columns.choices.iter().map(title).collect();
        let own: Vec<Column<'_>> = (columns.choices.iter().zip(&titles))
            .map(|(choice, title)| {
                let kind = choice.field.map(|field| field.kind);
                Column {
                    title,
                    is_number: matches!(
                        kind,
                        Some(Kind::Count | Kind::Interface | Kind::Bytes | Kind::Duration)
                    ),
                    least: if matches!(kind, Some(Kind::Name | Kind::Text)) { 12 } else { 0 },
                    rank: 0,
                }
            })
            .collect();
        let table = LongTable::new(&[before, &own].concat(), width);
        Self { columns, table, zone }
    }

    /// Takes a row; gives the text that is ready to be shown.
    #[must_use]
    pub fn push(&mut self, row: &Found) -> String {
        self.push_behind(Vec::new(), row)
    }

    /// The same behind cells of the further columns.
    #[must_use]
    pub fn push_behind(&mut self, mut before: Vec<String>, row: &Found) -> String {
        let columns = &self.columns;
        before.extend(columns.choices.iter().map(|choice| columns.cell(choice, row, self.zone)));
        self.table.push(before)
    }

    /// The rest of the text: of no rows, none.
    #[must_use]
    pub fn finish(self) -> String {
        if self.table.is_empty() { String::new() } else { self.table.finish() }
    }
}

/// Units stand in the cells.
fn title(choice: &Choice) -> String {
    let title = choice.name.strip_suffix("_ns").unwrap_or(choice.name);
    title.replace('_', " ").to_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::tests::found;

    fn columns(names: &[&str]) -> SessionColumns {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        SessionColumns::new(&names).unwrap()
    }

    #[test]
    fn every_field_can_be_a_column_in_every_form() {
        for name in query::FIELDS.iter().map(|field| field.name).chain(["provisional"]) {
            let columns = columns(&[name]);
            let row = found("/");
            let json: serde_json::Value = serde_json::from_str(&columns.json_line(&row)).unwrap();
            let csv = columns.csv_line(&row);
            assert_eq!(columns.csv_heading(), format!("{name}\n"));
            assert_eq!(json.get(name).is_none(), csv == "\n", "{name}: {json} {csv}");
            let mut table = ChosenTable::new(columns, None, Zone::Utc);
            assert_eq!(table.push(&row), "");
            assert_eq!(table.finish().lines().count(), 2, "{name}");
        }
    }

    #[test]
    fn columns_keep_their_order_and_their_names_are_looked_up() {
        let chosen = columns(&["bytes", "http.host", "port", "start"]);
        let row = found("/");
        assert_eq!(chosen.csv_heading(), "frame_bytes,http_host,port,start_ns\n");
        assert_eq!(chosen.csv_line(&row), "1500,example.com,40000|80,0\n");
        let mut table = ChosenTable::new(chosen, None, Zone::Utc);
        assert_eq!(table.push(&row), "");
        let text = table.finish();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("FRAME BYTES  HTTP HOST"), "{text}");
        assert_eq!(lines[1], "      1 500  example.com  40000 80  1970-01-01 00:00:00.000");
        assert_eq!(SessionColumns::new(&["sni".to_owned(), "no".to_owned()]).err(), Some("no"));
    }

    #[test]
    fn a_field_with_several_values_is_always_a_list() {
        let json = columns(&["host", "packets"]).json_line(&found("/"));
        assert_eq!(json, "{\"host\":[\"2001:db8::1\",\"2001:db8::2\"],\"packets\":3}\n");
    }
}
