//! Sessions as a table for people.

use found::{Found, Held};
use page::safe::printable;
use page::table::{Column, LongTable};
use page::text::{Zone, duration, grouped};
use units::Timestamp;
use wire::Address;

use crate::session::has_ports;

/// Tables narrower than this have times to the second, so that packets, bytes and names have
/// space.
const WIDE: usize = 120;
/// Date and clock in a time: `2026-11-20 10:40:22`. A ring may hold more than one year.
const SHORT_TIME: core::ops::Range<usize> = 0..19;

const COLUMNS: [Column<'_>; 11] = [
    Column { title: "SESSION", is_number: false, least: 0, rank: 2 },
    Column::whole("START", false),
    Column { title: "DURATION", is_number: true, least: 0, rank: 4 },
    Column { title: "PROTO", is_number: false, least: 0, rank: 3 },
    Column { title: "ORIGINATOR", is_number: false, least: 15, rank: 0 },
    Column { title: "RESPONDER", is_number: false, least: 15, rank: 0 },
    Column::whole("PACKETS", true),
    Column::whole("BYTES", true),
    Column { title: "STATE", is_number: false, least: 0, rank: 5 },
    Column { title: "STORED", is_number: false, least: 0, rank: 6 },
    Column { title: "NAME", is_number: false, least: 8, rank: 1 },
];

/// Session rows as a table of any length, in constant memory.
#[derive(Debug)]
pub struct SessionTable {
    table: LongTable,
    zone: Zone,
    is_wide: bool,
}

impl SessionTable {
    /// A table at most `width` characters wide, its times as they are in `zone`.
    pub fn new(width: Option<usize>, zone: Zone) -> Self {
        Self::behind(&[], width, zone)
    }

    /// The same behind further columns.
    pub fn behind(before: &[Column<'_>], width: Option<usize>, zone: Zone) -> Self {
        let start = format!("START ({})", zone.name());
        let own = COLUMNS.map(|column| match column.title {
            "START" => Column { title: &start, ..column },
            _ => column,
        });
        let columns = [before, &own].concat();
        let is_wide = width.is_none_or(|width| width >= WIDE);
        Self { table: LongTable::new(&columns, width), zone, is_wide }
    }

    /// Takes a row; gives the text that is ready to be shown.
    #[must_use]
    pub fn push(&mut self, row: &Found) -> String {
        self.push_behind(Vec::new(), row)
    }

    /// The same behind cells of the further columns.
    #[must_use]
    pub fn push_behind(&mut self, mut before: Vec<String>, row: &Found) -> String {
        let start = self.start(row.session.start);
        before.extend(cells(row, start));
        self.table.push(before)
    }

    /// The rest of the text: of no rows, none.
    #[must_use]
    pub fn finish(self) -> String {
        if self.table.is_empty() { String::new() } else { self.table.finish() }
    }

    fn start(&self, at: Timestamp) -> String {
        let whole = self.zone.time(at);
        let short = whole.get(SHORT_TIME).filter(|_| !self.is_wide);
        short.map(str::to_owned).unwrap_or(whole)
    }
}

fn cells(row: &Found, start: String) -> Vec<String> {
    let slice = &row.session;
    let proto = slice.tuple.proto;
    let end = |address: Address, port: u16| match address {
        Address::V6(_) if has_ports(slice) => format!("[{address}]:{port}"),
        _ if has_ports(slice) => format!("{address}:{port}"),
        _ => address.to_string(),
    };
    let stored = match row.packets {
        Held::Held => "all",
        Held::Partly => "partly",
        Held::Retired => "none",
    };
    vec![
        row.id.clone(),
        start,
        duration(slice.end.since(slice.start)),
        proto.name().map_or_else(|| proto.0.to_string(), str::to_owned),
        end(slice.tuple.orig, slice.tuple.orig_port),
        end(slice.tuple.resp, slice.tuple.resp_port),
        grouped(slice.orig.packets.saturating_add(slice.resp.packets)),
        grouped(slice.orig.frame_bytes.saturating_add(slice.resp.frame_bytes)),
        slice.state.name().to_owned(),
        stored.to_owned(),
        printable(&name(row)),
    ]
}

/// What the session is best known by.
fn name(row: &Found) -> String {
    let names = &row.session.names;
    let first = |texts: &[String]| texts.first().cloned().unwrap_or_default();
    let app = row.session.app.map(|known| known.app.name());
    match (&names.sni, app) {
        (Some(sni), _) => sni.clone(),
        (None, Some("http")) => format!("{}{}", first(&names.http_host), first(&names.http_path)),
        (None, Some("dns")) => names.dns_names.join(" "),
        (None, app) => app.unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use wire::{FiveTuple, Protocol};

    use super::*;
    use crate::session::tests::found;

    #[test]
    fn a_table_shows_ends_and_the_best_name_harmlessly() {
        let mut table = SessionTable::new(None, Zone::Utc);
        assert_eq!(table.push(&found("/\u{1b}[31m")), "");
        let text = table.finish();
        let row = text.lines().nth(1).unwrap();
        assert!(row.contains("[2001:db8::1]:40000  [2001:db8::2]:80"), "{row}");
        assert!(row.ends_with("S1     partly  example.com/\\u{1b}[31m"), "{row}");
        assert_eq!(SessionTable::new(None, Zone::Utc).finish(), "");
    }

    #[test]
    fn at_eighty_columns_start_packets_and_bytes_stay() {
        let mut row = found("/a/rather/long/path/that/does/not/fit?with=a&query=behind");
        let tuple = &mut row.session.tuple;
        let address = |last| Address::V4([192, 168, 100, last].into());
        *tuple = FiveTuple { orig: address(101), resp: address(202), ..*tuple };
        tuple.proto = Protocol::TCP;
        (row.session.orig.packets, row.session.orig.frame_bytes) = (123_456, 123_456_789);
        for width in [80, 100, 120, 200] {
            let mut table = SessionTable::new(Some(width), Zone::Utc);
            assert_eq!(table.push(&row), "");
            let text = table.finish();
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            // An address that does not fit is cut before its port.
            for part in ["START (UTC)", "01-01 00:00:00", "123 457", "123 457 289", ":40000", ":80"]
            {
                assert!(text.contains(part), "{width}: {text}");
            }
            let has_name = text.contains("NAME") && text.contains("example");
            assert_eq!(has_name, width > 80, "{width}: {text}");
        }
        row.session.orig.frame_bytes = 12_345;
        let mut table = SessionTable::new(Some(80), Zone::Utc);
        assert_eq!(table.push(&row), "");
        let text = table.finish();
        assert!(text.contains("NAME") && text.contains("example"), "{text}");
    }
}
