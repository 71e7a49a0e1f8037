//! The values of a field with the most traffic, as a table and as JSON lines.

use found::{Measure, Top, TopRow, TopValue, Weight};
use page::safe::{json_line, printable};
use page::table::{Column, render};
use page::text::{Zone, duration, grouped, percent};
use query::{Field, Kind, cipher_name, dns_rcode_name, dns_type_name, tls_version_name};
use serde::Serialize;
use units::ByteSize;
use wire::Protocol;

use crate::session::Value;

const COLUMNS: [Column<'_>; 6] = [
    Column { title: "VALUE", is_number: false, least: 16, rank: 0 },
    Column { title: "SESSIONS", is_number: true, least: 0, rank: 1 },
    Column { title: "PACKETS", is_number: true, least: 0, rank: 2 },
    Column::whole("BYTES", true),
    Column::whole("SHARE", true),
    Column { title: "", is_number: false, least: 0, rank: 3 },
];
/// Length of the longest bar.
const BAR: u64 = 20;

/// The values with the most, and what the rest is; within `width` characters if there is a bound.
pub fn top(
    field: &Field,
    top: Top,
    (weight, limit): (Weight, usize),
    (width, zone): (Option<usize>, Zone),
) -> String {
    let (total, absent, uncounted) = (top.total, top.absent, top.uncounted);
    let values = top.values();
    let rows = top.rows(weight, limit);
    let most = rows.first().map_or(0, |row| row.measure.weight(weight)).max(1);
    let line = |name: String, measure: &Measure| {
        let own = measure.weight(weight);
        let bar = u128::from(own) * u128::from(BAR) / u128::from(most);
        let bar = usize::try_from(bar).unwrap_or(0).min(20);
        vec![
            name,
            grouped(measure.sessions),
            grouped(measure.packets),
            ByteSize(measure.bytes).to_string(),
            percent(own, total.weight(weight)),
            "=".repeat(bar),
        ]
    };
    let mut lines: Vec<Vec<String>> = rows
        .iter()
        .map(|row| line(printable(&text(field.kind, &row.value, zone)), &row.measure))
        .collect();
    if uncounted.sessions > 0 {
        lines.push(line("(values beyond those counted)".to_owned(), &uncounted));
    }
    if absent.sessions > 0 {
        lines.push(line(format!("(no {})", field.name), &absent));
    }
    let shown = rows.len();
    let mut answer = render(&COLUMNS, &lines, width);
    if shown < values {
        answer.push_str(&grouped(u64::try_from(values - shown).unwrap_or(u64::MAX)));
        answer.push_str(" further values\n");
    }
    answer
}

#[derive(Serialize)]
struct Row<'a> {
    field: &'a str,
    value: serde_json::Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(flatten)]
    measure: Measure,
    share: f64,
}

/// One object a line: value, its sessions, packets and bytes, and its share of all.
pub fn top_json(field: &Field, top: Top, weight: Weight, limit: usize) -> String {
    let total = top.total.weight(weight);
    let line = |row: TopRow| {
        let json = Row {
            field: field.name,
            value: match &row.value {
                TopValue::Number(number) => (*number).into(),
                TopValue::Time(time) => time.0.into(),
                TopValue::Flag(flag) => (*flag).into(),
                value => text(field.kind, value, Zone::Utc).into(),
            },
            name: name(field.kind, &row.value),
            measure: row.measure,
            share: share(row.measure.weight(weight), total),
        };
        json_line(&json)
    };
    top.rows(weight, limit).into_iter().map(line).collect()
}

/// A heading and a line for each value, with what [`top_json`] has.
pub fn top_csv(field: &Field, top: Top, weight: Weight, limit: usize) -> String {
    let total = top.total.weight(weight);
    let line = |row: TopRow| {
        let value = Value::from(row.value.clone());
        let name = name(field.kind, &row.value).unwrap_or_default();
        let Measure { sessions, packets, bytes } = row.measure;
        let share = share(row.measure.weight(weight), total);
        let (field, value) = (field.name, value.csv());
        format!("{field},{value},{name},{sessions},{packets},{bytes},{share}\n")
    };
    let lines = top.rows(weight, limit).into_iter().map(line);
    core::iter::once("field,value,name,sessions,packets,bytes,share\n".to_owned())
        .chain(lines)
        .collect()
}

pub(crate) fn text(kind: Kind, value: &TopValue, zone: Zone) -> String {
    match value {
        TopValue::Number(nanos) if kind == Kind::Duration => {
            duration(i64::try_from(*nanos).unwrap_or(i64::MAX))
        }
        TopValue::Number(number) => {
            name(kind, value).map_or_else(|| number.to_string(), |name| format!("{number} {name}"))
        }
        TopValue::Time(at) => zone.time(*at),
        TopValue::Text(text) => text.clone(),
        TopValue::Address(address) => address.to_string(),
        TopValue::Flag(flag) => if *flag { "yes" } else { "no" }.to_owned(),
    }
}

/// What a number is called.
pub(crate) fn name(kind: Kind, value: &TopValue) -> Option<&'static str> {
    let TopValue::Number(number) = value else { return None };
    let number = u16::try_from(*number).ok()?;
    match kind {
        Kind::Protocol => Protocol(number).name(),
        Kind::DnsType => dns_type_name(number),
        Kind::DnsRcode => dns_rcode_name(number),
        Kind::TlsVersion => tls_version_name(number),
        Kind::Cipher => cipher_name(number),
        _ => None,
    }
}

/// Rounded to six digits.
fn share(part: u64, whole: u64) -> f64 {
    let millionths = u128::from(part) * 1_000_000 / u128::from(whole.max(1));
    f64::from(u32::try_from(millionths).unwrap_or(u32::MAX)) / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_whole() {
        assert_eq!((percent(1, 3), percent(0, 0)), ("33.3 %".to_owned(), "0.0 %".to_owned()));
        assert!((share(1, 4) - 0.25).abs() < 1e-9);
    }

    #[test]
    fn values_are_written_as_their_kind_is() {
        for (kind, value, expected) in [
            (Kind::Protocol, TopValue::Number(6), "6 tcp"),
            (Kind::Count, TopValue::Number(6), "6"),
            (Kind::Duration, TopValue::Number(1_500_000_000), "1.5 s"),
            (Kind::Flag, TopValue::Flag(true), "yes"),
            (Kind::DnsRcode, TopValue::Number(3), "3 NXDOMAIN"),
            (Kind::TlsVersion, TopValue::Number(0x0303), "771 TLS 1.2"),
            (Kind::Cipher, TopValue::Number(0x1301), "4865 TLS_AES_128_GCM_SHA256"),
            (Kind::Name, TopValue::Text("a.example".to_owned()), "a.example"),
        ] {
            assert_eq!(text(kind, &value, Zone::Utc), expected);
        }
    }

    #[test]
    fn a_line_of_json_says_everything_under_names_that_stay() {
        let line = |name: &str| {
            let field = Field::find(name).unwrap();
            let mut top = Top::new(field);
            top.add(&crate::session::tests::found("/"));
            top_json(field, top, Weight::Bytes, 5)
        };
        let proto = concat!(
            r#"{"field":"proto","value":6,"name":"tcp","sessions":1,"packets":3,"bytes":1500,"#,
            r#""share":1.0}"#,
            "\n"
        );
        assert_eq!(line("proto"), proto);
        let orig_ip = concat!(
            r#"{"field":"orig_ip","value":"2001:db8::1","sessions":1,"packets":3,"bytes":1500,"#,
            r#""share":1.0}"#,
            "\n"
        );
        assert_eq!(line("orig_ip"), orig_ip);
    }

    #[test]
    fn an_empty_answer_is_a_heading() {
        let field = Field::find("sni").unwrap();
        let text = top(field, Top::new(field), (Weight::Bytes, 5), (None, Zone::Utc));
        assert_eq!(text.trim_end(), "VALUE  SESSIONS  PACKETS  BYTES  SHARE");
        assert_eq!(top_json(field, Top::new(field), Weight::Bytes, 5), "");
        let heading = "field,value,name,sessions,packets,bytes,share\n";
        assert_eq!(top_csv(field, Top::new(field), Weight::Bytes, 5), heading);
    }
}
