//! What was probably meant: columns and tables for names that are none.

use query::{Field, nearest};

/// The tables of a volume.
pub(crate) const TABLES: [&str; 3] = ["sessions", "pieces", "gaps"];

/// The column with the most in common: one that a query knows by that name, or one with few edits.
pub(crate) fn column(name: &str, known: impl Iterator<Item = String>) -> Option<String> {
    let known: Vec<String> = known.collect();
    let of_field = Field::find(name).map(|field| field.name);
    let of_field = of_field.filter(|name| known.iter().any(|known| known == name));
    of_field.or_else(|| nearest(name, known.iter().map(String::as_str))).map(str::to_owned)
}

/// A message of the planner, shortened, with the one of `tables` that was probably meant.
pub(crate) fn plan(message: &str, tables: &[String]) -> (String, Option<String>) {
    if let Some(rest) = message.strip_prefix("table 'datafusion.public.")
        && let Some((name, _)) = rest.split_once('\'')
    {
        let meant = nearest(name, tables.iter().map(String::as_str)).map(str::to_owned);
        let tables = tables.join(", ");
        return (format!("there is no table {name:?} (tables: {tables})"), meant);
    }
    if ["DDL not supported", "DML not supported", "Statement not supported"]
        .iter()
        .any(|refused| message.starts_with(refused))
    {
        return ("a query only reads: write SELECT".to_owned(), None);
    }
    let message = message.split(" No function matches").next().unwrap_or(message);
    (message.trim().replace('\n', " "), None)
}
