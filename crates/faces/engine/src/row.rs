//! A row of the table `sessions` as what a search here finds.

use found::Found;
use serde_json::{Map, Value};
use session_view::{NoSession, read_session};

/// A row is no session of a sensor.
#[derive(Debug, thiserror::Error)]
pub enum NoRow {
    /// It names no sensor.
    #[error("a row without a sensor")]
    NoSensor,
    /// What it says of a session cannot be.
    #[error("a row that is no session: {0}")]
    NoSession(#[from] NoSession),
}

/// The sensor and the session of a row, of which these are the columns.
///
/// # Errors
/// When it is none.
pub fn row(names: &[String], values: Vec<Value>) -> Result<(String, Found), NoRow> {
    let mut object: Map<String, Value> =
        names.iter().cloned().zip(values).filter(|(_, value)| !value.is_null()).collect();
    let Some(Value::String(sensor)) = object.remove("sensor") else { return Err(NoRow::NoSensor) };
    let found = read_session(&Value::Object(object).to_string())?;
    Ok((sensor, found))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_is_a_session_whatever_else_it_has() {
        let columns = [
            ("session_id", json!("5.0-1")),
            ("sensor", json!("west")),
            ("proto", json!(6)),
            ("session_start_ns", json!(1)),
            ("start_ns", json!(1)),
            ("end_ns", json!(2)),
            ("sni", json!(null)),
            ("dns_names", json!(["a", "b"])),
            ("start_time", json!("2026-11-20 10:00:00.000000000 UTC")),
            ("hour", json!("10")),
        ];
        let names = columns.each_ref().map(|(name, _)| (*name).to_owned());
        let (sensor, found) = row(&names, columns.map(|(_, value)| value).to_vec()).unwrap();
        assert_eq!((&*sensor, &*found.id), ("west", "5.0-1"));
        assert_eq!(found.session.names.dns_names, ["a", "b"]);
        assert_eq!(found.session.names.sni, None);
        assert!(matches!(row(&names, vec![json!("5.0-1")]), Err(NoRow::NoSensor)));
        let values = vec![json!("5.0-1"), json!("west"), json!("six")];
        assert!(matches!(row(&names, values), Err(NoRow::NoSession(_))));
    }
}
