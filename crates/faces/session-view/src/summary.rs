//! What sessions sum up to, as JSON: traffic over time, and the values of fields with the most,
//! each with the query that selects it.

use found::{Found, Measure, Top, TopRow, Traffic, Weight};
use page::safe::json_line;
use page::text::Zone;
use query::Field;
use schemars::JsonSchema;
use serde::Serialize;

use crate::by_value::TrafficByValue;
use crate::plot::{BANDS_MAX, Band, Chart};
use crate::session::Value;
use crate::top::{name, text};

/// A screen has not many more pixels.
const COLUMNS_MAX: usize = 1024;

/// What sessions sum up to.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Summary<'a> {
    total: &'a Measure,
    traffic: Drawn<'a>,
    top: Vec<TopOf>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Drawn<'a> {
    /// Of a bucket.
    width_ns: i64,
    /// Protocols or values, in the order of a bucket's counts.
    series: Vec<&'a str>,
    /// The last series is no protocol: it is what so many further ones share.
    #[serde(skip_serializing_if = "Option::is_none")]
    others: Option<usize>,
    /// Of values of a field, what selects each; null for what no query selects.
    #[serde(skip_serializing_if = "Option::is_none")]
    queries: Option<Vec<Option<String>>>,
    /// Where each begins, and its counts by series; those without traffic are left out.
    buckets: Vec<(i64, Vec<u64>)>,
}

impl<'a> Drawn<'a> {
    fn new(chart: Option<&'a Chart>, conditions: Option<&[String]>) -> Self {
        let Some(chart) = chart else {
            let (series, buckets) = (Vec::new(), Vec::new());
            return Self { width_ns: 0, series, others: None, queries: None, buckets };
        };
        let query = |band: &Band, all: &[String]| all.get(band.series?).cloned();
        let queries = |all| chart.bands.iter().map(|band| query(band, all)).collect();
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
            queries: conditions.map(queries),
            buckets: (0..chart.columns).filter_map(bucket).collect(),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
struct TopOf {
    field: &'static str,
    /// How many values there are.
    distinct: usize,
    absent: Measure,
    /// Sessions with values beyond those that are counted one by one.
    uncounted: Measure,
    values: Vec<ValueOf>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ValueOf {
    #[schemars(with = "serde_json::Value", extend("type" = ["string", "integer", "boolean"]))]
    value: Value<'static>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
    text: String,
    /// It selects this value.
    query: String,
    #[serde(flatten)]
    measure: Measure,
}

/// Values of a field that a plot tells apart: with what is without it and all others as many series
/// as a chart has.
const NAMED_MAX: usize = BANDS_MAX - 1;

/// Traffic over time by protocol, or by values of a field with the queries that select them.
#[derive(Debug)]
pub struct OverTime {
    traffic: OverTimeOf,
    weight: Weight,
}

#[derive(Debug)]
enum OverTimeOf {
    Protocols(Traffic),
    Values(TrafficByValue, Vec<String>),
}

impl OverTime {
    /// By protocol.
    pub fn by_protocol(weight: Weight) -> Self {
        Self { traffic: OverTimeOf::Protocols(Traffic::default()), weight }
    }

    /// By those values of a field that have the most.
    pub fn by_value(field: &'static Field, top: Top, weight: Weight) -> Self {
        let rows = top.rows(weight, NAMED_MAX);
        let condition = |row: &TopRow| field.condition(row.value.reading());
        let mut conditions: Vec<String> = rows.iter().map(condition).collect();
        conditions.push(format!("not has {}", field.name));
        let named = |row: TopRow| {
            let name = text(field.kind, &row.value, Zone::Utc);
            (row.value, name)
        };
        let values = rows.into_iter().map(named).collect();
        let traffic = TrafficByValue::new(field, values, weight);
        Self { traffic: OverTimeOf::Values(traffic, conditions), weight }
    }

    /// Adds a session.
    pub fn add(&mut self, found: &Found) {
        match &mut self.traffic {
            OverTimeOf::Protocols(traffic) => {
                traffic.add_by_protocol(&found.session, self.weight);
            }
            OverTimeOf::Values(traffic, _) => traffic.add(found),
        }
    }

    fn parts(&self) -> (&Traffic, Option<&[String]>) {
        match &self.traffic {
            OverTimeOf::Protocols(traffic) => (traffic, None),
            OverTimeOf::Values(traffic, conditions) => (traffic.traffic(), Some(conditions)),
        }
    }
}

/// One object: sums, traffic over time, and for each field at most `limit` values, those with the
/// most first.
pub fn summary_json(
    total: &Measure,
    over_time: &OverTime,
    tops: Vec<(&'static Field, Top)>,
    (weight, limit): (Weight, usize),
) -> String {
    let (traffic, conditions) = over_time.parts();
    let chart = Chart::new(traffic, COLUMNS_MAX);
    json_line(&Summary {
        total,
        traffic: Drawn::new(chart.as_ref(), conditions),
        top: tops.into_iter().map(|(field, top)| of_field(field, top, weight, limit)).collect(),
    })
}

fn of_field(field: &'static Field, top: Top, weight: Weight, limit: usize) -> TopOf {
    let (distinct, absent, uncounted) = (top.values(), top.absent, top.uncounted);
    let rows = top.rows(weight, limit).into_iter().map(|row| ValueOf {
        name: name(field.kind, &row.value),
        text: text(field.kind, &row.value, Zone::Utc),
        query: field.condition(row.value.reading()),
        measure: row.measure,
        value: row.value.into(),
    });
    TopOf { field: field.name, distinct, absent, uncounted, values: rows.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOP: &str = concat!(
        r#"{"field":"orig_ip","distinct":1,"absent":{"sessions":0,"packets":0,"bytes":0},"#,
        r#""uncounted":{"sessions":0,"packets":0,"bytes":0},"values":[{"value":"2001:db8::1","#,
        r#""text":"2001:db8::1","query":"orig_ip = 2001:db8::1","sessions":1,"packets":3,"#,
        r#""bytes":1500}]"#
    );

    #[test]
    fn each_value_comes_with_the_query_that_selects_it() {
        let found = crate::session::tests::found("/a");
        let fields = ["orig_ip", "resp_port", "http_path"].map(|name| Field::find(name).unwrap());
        let mut tops = fields.map(|field| (field, Top::new(field)));
        let mut traffic = OverTime::by_protocol(Weight::Bytes);
        traffic.add(&found);
        for (_, top) in &mut tops {
            top.add(&found);
        }
        let total = Measure::of(&found);
        let text = summary_json(&total, &traffic, tops.into(), (Weight::Sessions, 1));
        let (_, top) = text.split_once("\"top\":[").unwrap();
        assert_eq!(top.split_once("},{").unwrap().0, TOP);
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

    #[test]
    fn series_of_a_field_come_with_the_queries_that_select_them() {
        let found = crate::session::tests::found("/a");
        let total = Measure::of(&found);
        let summary = |name: &str, weight| -> serde_json::Value {
            let field = Field::find(name).unwrap();
            let mut top = Top::new(field);
            top.add(&found);
            let mut over_time = OverTime::by_value(field, top, weight);
            over_time.add(&found);
            let text = summary_json(&total, &over_time, Vec::new(), (weight, 1));
            serde_json::from_str(&text).unwrap()
        };
        let sum = |summary: &serde_json::Value, series: usize| -> u64 {
            let buckets = summary["traffic"]["buckets"].as_array().unwrap();
            buckets.iter().map(|bucket| bucket[1][series].as_u64().unwrap()).sum()
        };
        let by_path = summary("http_path", Weight::Packets);
        assert_eq!(by_path["traffic"]["queries"][0], "http_path = \"/a\"");
        assert_eq!(sum(&by_path, 0), total.packets);
        let without = summary("sni", Weight::Sessions);
        assert_eq!(without["traffic"]["series"][0], "without sni");
        assert_eq!(without["traffic"]["queries"], serde_json::json!(["not has sni", null]));
        assert_eq!(sum(&without, 0), 1);
    }
}
