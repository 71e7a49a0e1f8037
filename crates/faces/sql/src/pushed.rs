//! What a query's conditions say of the rows that need be read at all.
//!
//! Both ask about whole sessions, so that a condition means the same in the words of the query
//! language.

use core::net::IpAddr;

use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use units::Timestamp;

/// The condition in the words of the query language; `None` where it rules nothing out.
pub(crate) fn of_sessions(condition: &Expr) -> Option<String> {
    let (column, operator, value) = comparison(condition)?;
    match (column, operator) {
        ("orig_ip" | "resp_ip", Operator::Eq) => {
            let host: IpAddr = text(value)?.parse().ok()?;
            Some(format!("host {host}"))
        }
        ("community_id", Operator::Eq) => {
            let id = text(value)?;
            query::is_community_id(id).then(|| format!("community_id = \"{id}\""))
        }
        ("start_ns" | "end_ns", _) => {
            let than = match operator {
                Operator::Gt => ">",
                Operator::GtEq => ">=",
                Operator::Lt => "<",
                Operator::LtEq => "<=",
                Operator::Eq => "=",
                _ => return None,
            };
            Some(format!("{column} {than} {}", Timestamp(nanos(value)?)))
        }
        _ => None,
    }
}

/// The bounds that a condition sets to pieces and gaps, which have one row each.
pub(crate) fn of_times(condition: &Expr) -> (Timestamp, Timestamp) {
    let all = (Timestamp::MIN, Timestamp::MAX);
    let Some((column, operator, value)) = comparison(condition) else { return all };
    let Some(time) = nanos(value).map(Timestamp) else { return all };
    match (column, operator) {
        ("start_ns" | "from_ns" | "end_ns" | "to_ns", Operator::Gt | Operator::GtEq) => {
            (time, Timestamp::MAX)
        }
        ("start_ns" | "from_ns" | "end_ns" | "to_ns", Operator::Lt | Operator::LtEq) => {
            (Timestamp::MIN, time)
        }
        _ => all,
    }
}

/// A column compared with a constant, the column first.
fn comparison(condition: &Expr) -> Option<(&str, Operator, &ScalarValue)> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = condition else { return None };
    match (&**left, &**right) {
        (Expr::Column(Column { name, .. }), Expr::Literal(value, _)) => Some((name, *op, value)),
        (Expr::Literal(value, _), Expr::Column(Column { name, .. })) => {
            Some((name, op.swap()?, value))
        }
        _ => None,
    }
}

fn text(value: &ScalarValue) -> Option<&str> {
    value.try_as_str().flatten()
}

fn nanos(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::TimestampNanosecond(nanos, _) => *nanos,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::{col, lit};

    use super::*;

    fn time(nanos: i64) -> Expr {
        Expr::Literal(ScalarValue::TimestampNanosecond(Some(nanos), Some("UTC".into())), None)
    }

    #[test]
    fn ends_and_times_are_pushed_and_nothing_else() {
        const ID: &str = "1:iM/olWEXeq98jWti2NfJIzAOdM8=";
        let (hour, of_id) = (3600 * units::NANOS_PER_SECOND, format!("community_id = \"{ID}\""));
        for (condition, expected) in [
            (col("orig_ip").eq(lit("10.0.0.1")), Some("host 10.0.0.1")),
            (lit("2001:db8::1").eq(col("resp_ip")), Some("host 2001:db8::1")),
            (col("orig_ip").eq(lit("no address")), None),
            (col("orig_ip").not_eq(lit("10.0.0.1")), None),
            (col("community_id").eq(lit(ID)), Some(of_id.as_str())),
            (col("community_id").eq(lit("1:a=")), None),
            (col("community_id").eq(lit("1:*")), None),
            (col("start_ns").gt_eq(time(hour)), Some("start_ns >= 1970-01-01T01:00:00.000000000Z")),
            (time(hour).lt(col("start_ns")), Some("start_ns > 1970-01-01T01:00:00.000000000Z")),
            (col("end_ns").lt(time(hour)), Some("end_ns < 1970-01-01T01:00:00.000000000Z")),
            (col("start_ns").not_eq(time(hour)), None),
            (col("sni").eq(lit("a.example")), None),
            (col("orig_packets").gt(lit(5)), None),
        ] {
            assert_eq!(of_sessions(&condition).as_deref(), expected, "{condition}");
        }
    }

    #[test]
    fn bounds_of_pieces_are_the_times_themselves() {
        let all = (Timestamp::MIN, Timestamp::MAX);
        for (condition, expected) in [
            (col("start_ns").gt(time(5)), (Timestamp(5), Timestamp::MAX)),
            (col("to_ns").lt_eq(time(5)), (Timestamp::MIN, Timestamp(5))),
            (col("epoch").lt_eq(lit(5)), all),
        ] {
            assert_eq!(of_times(&condition), expected, "{condition}");
        }
    }
}
