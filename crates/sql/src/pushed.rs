//! What a query's conditions say of the rows that need be read at all.
//!
//! A session is joined from its slices, so a condition on the session is not one on each slice: a
//! slice that is left out must belong to a session that the condition refuses even without it. All
//! slices have the same addresses. They follow one another within [`JOIN_IDLE_NS`], as `find` joins
//! them; so with that margin a session that begins too early still shows a slice before the bound,
//! and one that ends too late a slice behind it. A session that ends late enough needs all its
//! slices, however early: a lower bound of `end_ns` rules out nothing.

use core::net::IpAddr;

use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use extract::JOIN_IDLE_NS;
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
            let is_plain = id.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
            (is_plain && !id.contains(['\\', '*'])).then(|| format!("community_id = \"{id}\""))
        }
        ("start_ns", Operator::Gt | Operator::GtEq | Operator::Eq) => {
            let from = Timestamp(nanos(value)?).plus_nanos(-JOIN_IDLE_NS);
            Some(format!("end_ns >= {from}"))
        }
        ("end_ns", Operator::Lt | Operator::LtEq | Operator::Eq) => {
            let to = Timestamp(nanos(value)?).plus_nanos(JOIN_IDLE_NS);
            Some(format!("start_ns <= {to}"))
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
    fn ends_and_times_are_pushed_with_their_margin_and_nothing_else() {
        let hour = 3600 * units::NANOS_PER_SECOND;
        for (condition, expected) in [
            (col("orig_ip").eq(lit("10.0.0.1")), Some("host 10.0.0.1")),
            (lit("2001:db8::1").eq(col("resp_ip")), Some("host 2001:db8::1")),
            (col("orig_ip").eq(lit("no address")), None),
            (col("orig_ip").not_eq(lit("10.0.0.1")), None),
            (col("community_id").eq(lit("1:a=")), Some("community_id = \"1:a=\"")),
            (col("community_id").eq(lit("1:*")), None),
            (col("start_ns").gt_eq(time(hour)), Some("end_ns >= 1970-01-01T00:45:00.000000000Z")),
            (time(hour).lt(col("start_ns")), Some("end_ns >= 1970-01-01T00:45:00.000000000Z")),
            (col("end_ns").lt(time(hour)), Some("start_ns <= 1970-01-01T01:15:00.000000000Z")),
            // A session that begins before may go on for long, one that ends behind begin early.
            (col("start_ns").lt(time(hour)), None),
            (col("end_ns").gt(time(hour)), None),
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
