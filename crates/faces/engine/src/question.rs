//! The statement for a query.

use found::SortBy;
use query::{Dialect, Query, sql_literal};

/// Sessions that are wanted of an engine.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// Which sessions.
    pub query: &'a Query,
    /// Only of these sensors; of all where there are none.
    pub sensors: &'a [String],
    /// In this order; by their start without one.
    pub order: Option<SortBy>,
    /// At most so many.
    pub limit: Option<u64>,
}

/// What an engine is asked for a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// The statement.
    pub statement: String,
    /// Tests that it leaves open: its rows are to be asked the query again.
    pub undecided: Vec<String>,
    /// So many of what is left are wanted: the engine does not know how many it has to look at.
    pub limit: Option<u64>,
}

/// An engine orders texts, addresses and lists otherwise than a search here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("an engine orders sessions by one number or time, which {0} is not: order them afterwards")]
pub struct NoOrder(&'static str);

impl Question<'_> {
    /// The statement.
    ///
    /// # Errors
    /// For an order that no engine has.
    pub fn asked(&self, dialect: Dialect) -> Result<Asked, NoOrder> {
        let pushed = self.query.sql(dialect);
        let mut order = String::new();
        if let Some(SortBy { field, is_descending }) = self.order {
            let number = field.sql_number().ok_or(NoOrder(field.name))?;
            let direction = if is_descending { "DESC" } else { "ASC" };
            order = format!("{number} {direction} NULLS LAST, ");
        }
        let mut condition = pushed.condition;
        if let Some(sensors) = among(self.sensors) {
            condition = format!("{sensors} AND ({condition})");
        }
        let mut statement = format!(
            "SELECT * FROM sessions WHERE {condition} ORDER BY {order}start_ns, sensor, session_id"
        );
        let is_decided = pushed.undecided.is_empty();
        if let Some(limit) = self.limit.filter(|_| is_decided) {
            statement = format!("{statement} LIMIT {limit}");
        }
        Ok(Asked { statement, undecided: pushed.undecided, limit: self.limit })
    }
}

/// Rows of these sensors.
pub(crate) fn among(sensors: &[String]) -> Option<String> {
    let all: Vec<String> = sensors.iter().map(|sensor| sql_literal(sensor)).collect();
    (!all.is_empty()).then(|| format!("sensor IN ({})", all.join(", ")))
}

#[cfg(test)]
mod tests {
    use query::Field;
    use units::Timestamp;

    use super::*;

    fn asked(text: &str, sensors: &[String], order: Option<SortBy>) -> Asked {
        let query = Query::parse(text, Timestamp(0)).unwrap();
        let question = Question { query: &query, sensors, order, limit: Some(5) };
        question.asked(Dialect::Trino).unwrap()
    }

    #[test]
    fn a_statement_has_condition_sensors_order_and_limit() {
        let sensors = ["a'b".to_owned()];
        let order = SortBy { field: Field::find("bytes").unwrap(), is_descending: true };
        let all = asked("orig_port 5 or orig_port 6", &sensors, Some(order));
        assert_eq!(
            all.statement,
            "SELECT * FROM sessions WHERE sensor IN ('a''b') AND \
             ((orig_port = 5 OR orig_port = 6)) ORDER BY (orig_frame_bytes + resp_frame_bytes) \
             DESC NULLS LAST, start_ns, sensor, session_id LIMIT 5"
        );
    }

    #[test]
    fn what_is_looked_at_again_is_not_limited_before() {
        let all = asked("recording mentions x", &[], None);
        assert!(all.statement.ends_with("session_id"), "{all:?}");
        assert_eq!((all.limit, all.undecided.len()), (Some(5), 1));
    }

    #[test]
    fn an_order_that_engines_do_not_share_is_refused() {
        let query = Query::all();
        let order = Some(SortBy { field: Field::find("sni").unwrap(), is_descending: false });
        let question = Question { query: &query, sensors: &[], order, limit: None };
        assert_eq!(question.asked(Dialect::Trino), Err(NoOrder("sni")));
    }
}
