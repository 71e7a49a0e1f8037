//! What the archive knows to be missing.

use query::Query;
use serde_json::Value;
use units::Timestamp;

use crate::question::among;

/// Packets or sessions of a sensor that are missing, by one cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missing {
    /// In words.
    pub text: String,
}

impl Missing {
    /// The statement that asks for what is missing from the times of a query.
    pub fn statement(query: &Query, sensors: &[String]) -> String {
        let (from, to) = query.time_range();
        let mut condition = Vec::from_iter(among(sensors));
        if from > Timestamp::MIN {
            condition.push(format!("(to_ns IS NULL OR to_ns >= {})", from.0));
        }
        if to < Timestamp::MAX {
            condition.push(format!("(from_ns IS NULL OR from_ns <= {})", to.0));
        }
        let condition = match condition.join(" AND ") {
            none if none.is_empty() => none,
            some => format!(" WHERE {some}"),
        };
        format!(
            "SELECT sensor, cause, count(*), sum(packets), min(from_ns), max(to_ns) FROM losses\
             {condition} GROUP BY sensor, cause ORDER BY sensor, cause"
        )
    }
}

/// What a row of the answer says; `None` where it says nothing.
pub fn missing(values: &[Value]) -> Option<Missing> {
    let [sensor, cause, count, packets, from, to] = values else { return None };
    let (sensor, cause) = (sensor.as_str()?, cause.as_str()?.replace('_', " "));
    let count = page::text::plural(count.as_u64()?, "time");
    let packets = match packets.as_u64() {
        Some(packets) => page::text::plural(packets, "packet"),
        None => "an unknown number of packets".to_owned(),
    };
    let time = |value: &Value| value.as_i64().map(|nanos| Timestamp(nanos).to_string());
    let when = match (time(from), time(to)) {
        (Some(from), Some(to)) => format!(", {from} to {to}"),
        _ => String::new(),
    };
    let text = format!("{sensor}: {cause} {count}, {packets} missing{when}");
    Some(Missing { text: page::safe::printable(&text) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn losses_are_asked_for_in_the_times_of_a_query() {
        let query = Query::parse("after 1970-01-02 and before 1970-01-03", Timestamp(0)).unwrap();
        let statement = Missing::statement(&query, &["west".to_owned()]);
        let condition = "FROM losses WHERE sensor IN ('west') AND (to_ns IS NULL OR to_ns >= \
                         86400000000000) AND (from_ns IS NULL OR from_ns <= 172799999999999) GROUP";
        assert!(statement.contains(condition), "{statement}");
        assert!(!Missing::statement(&Query::all(), &[]).contains("WHERE"));
    }

    #[test]
    fn a_loss_is_said_with_its_sensor_and_cause() {
        let text = |values: [Value; 6]| missing(&values).map(|missing| missing.text);
        assert_eq!(
            text([json!("west"), json!("kernel_drops"), json!(2), json!(7), json!(0), json!(1)]),
            Some(
                "west: kernel drops 2 times, 7 packets missing, 1970-01-01T00:00:00.000000000Z to \
                 1970-01-01T00:00:00.000000001Z"
                    .to_owned()
            )
        );
        let null = Value::Null;
        assert_eq!(
            text([json!("w\u{1b}"), json!("damage"), json!(1), null.clone(), null.clone(), null]),
            Some("w\\u{1b}: damage 1 time, an unknown number of packets missing".to_owned())
        );
        assert_eq!(missing(&[json!("west")]), None);
    }
}
