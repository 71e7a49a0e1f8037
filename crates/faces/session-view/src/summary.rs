//! What sessions sum up to, as JSON: bytes over time by protocol, and the values of fields with the
//! most, each with the query that selects it.

use extract::{Measure, Top, Traffic, Weight};
use page::safe::json_line;
use page::text::Zone;
use query::Field;
use serde::Serialize;

use crate::plot::{Band, Chart};
use crate::session::Value;
use crate::top::{name, text};

/// A screen has not many more pixels.
const COLUMNS_MAX: usize = 1024;

#[derive(Serialize)]
struct SummaryJson<'a> {
    total: MeasureJson,
    traffic: TrafficJson<'a>,
    top: Vec<FieldJson>,
}

#[derive(Serialize)]
struct MeasureJson {
    sessions: u64,
    packets: u64,
    bytes: u64,
}

impl From<&Measure> for MeasureJson {
    fn from(measure: &Measure) -> Self {
        let &Measure { sessions, packets, bytes } = measure;
        Self { sessions, packets, bytes }
    }
}

#[derive(Serialize)]
struct TrafficJson<'a> {
    width_ns: i64,
    series: Vec<&'a str>,
    /// The last series is no protocol: it is what so many further ones share.
    #[serde(skip_serializing_if = "Option::is_none")]
    others: Option<usize>,
    /// Where each begins, and its bytes by series; those without traffic are left out.
    buckets: Vec<(i64, Vec<u64>)>,
}

impl<'a> TrafficJson<'a> {
    fn new(chart: Option<&'a Chart>) -> Self {
        let Some(chart) = chart else {
            return Self { width_ns: 0, series: Vec::new(), others: None, buckets: Vec::new() };
        };
        let bucket = |column: usize| {
            let far = chart.column_ns.saturating_mul(i64::try_from(column).ok()?);
            let of = |band: &Band| band.columns.get(column).copied().unwrap_or(0);
            let bytes: Vec<u64> = chart.bands.iter().map(of).collect();
            let has_traffic = bytes.iter().any(|bytes| *bytes > 0);
            has_traffic.then(|| (chart.from.plus_nanos(far).0, bytes))
        };
        Self {
            width_ns: chart.column_ns,
            series: chart.bands.iter().map(|band| &*band.name).collect(),
            others: chart.others,
            buckets: (0..chart.columns).filter_map(bucket).collect(),
        }
    }
}

#[derive(Serialize)]
struct FieldJson {
    field: &'static str,
    /// How many values there are.
    distinct: usize,
    absent: MeasureJson,
    /// Sessions with values beyond those that are counted one by one.
    uncounted: MeasureJson,
    values: Vec<ValueJson>,
}

#[derive(Serialize)]
struct ValueJson {
    value: Value<'static>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
    text: String,
    query: String,
    #[serde(flatten)]
    measure: MeasureJson,
}

/// One object: sums, bytes over time, and for each field at most `limit` values, those with the
/// most first.
pub fn summary_json(
    total: &Measure,
    traffic: &Traffic,
    tops: Vec<(&'static Field, Top)>,
    (weight, limit): (Weight, usize),
) -> String {
    let chart = Chart::new(traffic, COLUMNS_MAX);
    json_line(&SummaryJson {
        total: total.into(),
        traffic: TrafficJson::new(chart.as_ref()),
        top: tops.into_iter().map(|(field, top)| of_field(field, top, weight, limit)).collect(),
    })
}

fn of_field(field: &'static Field, top: Top, weight: Weight, limit: usize) -> FieldJson {
    let (distinct, absent, uncounted) = (top.values(), top.absent, top.uncounted);
    let rows = top.rows(weight, limit).into_iter().map(|row| ValueJson {
        name: name(field.kind, &row.value),
        text: text(field.kind, &row.value, Zone::Utc),
        query: field.condition(row.value.reading()),
        measure: (&row.measure).into(),
        value: row.value.into(),
    });
    FieldJson {
        field: field.name,
        distinct,
        absent: (&absent).into(),
        uncounted: (&uncounted).into(),
        values: rows.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_comes_with_the_query_that_selects_it() {
        let found = crate::session::tests::found("/a");
        let fields = ["orig_ip", "resp_port", "http_path"].map(|name| Field::find(name).unwrap());
        let mut tops = fields.map(|field| (field, Top::new(field)));
        let mut traffic = Traffic::default();
        traffic.add(&found.session);
        for (_, top) in &mut tops {
            top.add(&found);
        }
        let total = Measure::of(&found);
        let text = summary_json(&total, &traffic, tops.into(), (Weight::Sessions, 1));
        let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(summary["total"]["sessions"], 1);
        assert_eq!(summary["top"][0]["values"][0]["sessions"], 1);
        let query = |at: usize| summary["top"][at]["values"][0]["query"].as_str().unwrap();
        assert_eq!(query(0), "orig_ip = 2001:db8::1");
        assert_eq!((query(1), query(2)), ("resp_port = 80", "http_path = \"/a\""));
        let buckets = summary["traffic"]["buckets"].as_array().unwrap();
        let bytes = buckets.iter().flat_map(|bucket| bucket[1].as_array().unwrap());
        let sum: u64 = bytes.map(|bytes| bytes.as_u64().unwrap()).sum();
        assert_eq!(summary["total"]["bytes"], sum);
    }
}
