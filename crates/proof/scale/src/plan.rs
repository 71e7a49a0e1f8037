//! A fleet on paper: what its sensors bring, what that is in a store of objects, what keeps it in
//! order, and how long questions take.

use anyhow::Result;

use crate::archiving::calls::{self, Kind};
use crate::inputs::Inputs;
use crate::machine::Load;
use crate::table::{Table, count, number, time};

/// Names in one answer of S3.
const LISTED_AT_ONCE: f64 = 1000.0;
const DAY_S: f64 = 86_400.0;
const FLEETS: [f64; 3] = [10.0, 100.0, 1000.0];
const GBITS: [f64; 2] = [10.0, 100.0];

/// Calls of the archive for a part of the ring: to store it, and to merge it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requests {
    puts: f64,
    deletes: f64,
    /// Its manifest, and its objects, when it is merged.
    gets: f64,
}

impl Requests {
    /// As the archive's own jobs make them.
    pub(crate) fn measured() -> Result<Self> {
        let part = calls::of_part()?;
        let real = |count: u64| units::number::real(count);
        let [[few, _], [more, _]] = [calls::of_compaction(6)?, calls::of_compaction(12)?];
        let gets = [few, more].map(|run| real(calls::count(&run, &[Kind::Get])));
        let [few, more] = gets;
        Ok(Self {
            puts: real(calls::count(&part, &[Kind::Put, Kind::PutRows])),
            deletes: real(calls::count(&part, &[Kind::Delete])),
            gets: (more - few) / 6.0,
        })
    }
}

/// What one sensor brings at a rate, at its mean load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sensor {
    /// A second, at full load and in the mean.
    pub(crate) sessions_full: f64,
    pub(crate) sessions: f64,
    /// A part is closed so often in the mean.
    pub(crate) part_s: f64,
    pub(crate) part_rows: f64,
    pub(crate) bytes_day: f64,
}

impl Sensor {
    pub(crate) fn at(inputs: &Inputs, gbit: f64) -> Result<Self> {
        let full = Load::of(inputs, gbit / 100.0)?;
        let mean = inputs.get("mean_load")?;
        let sessions = full.sessions * mean;
        // A segment ends with so many rows, or so many bytes of packets that are old enough.
        let by_rows_s = inputs.get("segment_rows")? / sessions;
        let by_bytes_s =
            (inputs.get("segment_bytes")? / (full.bytes * mean)).max(inputs.get("segment_s")?);
        let part_s = by_rows_s.min(by_bytes_s);
        Ok(Self {
            sessions_full: full.sessions,
            sessions,
            part_s,
            part_rows: sessions * part_s,
            bytes_day: sessions * inputs.get("archive_bytes_per_session")? * DAY_S,
        })
    }
}

pub(crate) fn tables(inputs: &Inputs) -> Result<Vec<Table>> {
    let requests = Requests::measured()?;
    Ok(vec![stored(inputs, requests)?, asked(inputs)?, merged(inputs, requests)?])
}

fn each(inputs: &Inputs, visit: &mut dyn FnMut(f64, f64, Sensor) -> Result<()>) -> Result<()> {
    for gbit in GBITS {
        for fleet in FLEETS {
            visit(fleet, gbit, Sensor::at(inputs, gbit)?)?;
        }
    }
    Ok(())
}

fn stored(inputs: &Inputs, requests: Requests) -> Result<Table> {
    let heads = [
        "sensors, Gbit/s each",
        "sessions/s, full",
        "in the mean",
        "archive a day",
        "a part every",
        "writes a day",
        "they cost a day",
        "90 days cost a month",
    ];
    let mut table = Table::new("What a fleet stores", &heads);
    let (put, gb) = (inputs.get("put_dollars")?, inputs.get("gb_month_dollars")?);
    each(inputs, &mut |fleet, gbit, sensor| {
        let parts = DAY_S / sensor.part_s * fleet;
        let puts = parts * (requests.puts + requests.deletes);
        let bytes = sensor.bytes_day * fleet;
        table.push([
            format!("{fleet} x {gbit}"),
            number(sensor.sessions_full * fleet),
            number(sensor.sessions * fleet),
            format!("{}B", number(bytes)),
            time(sensor.part_s),
            number(puts),
            format!("{} $", number(parts * requests.puts * put)),
            format!("{} $", number(bytes * 90.0 / 1e9 * gb)),
        ]);
        Ok(())
    })?;
    Ok(table)
}

/// Objects of a day once they are merged.
fn merged_objects_day(inputs: &Inputs, sensor: Sensor) -> Result<f64> {
    let rows = sensor.sessions * DAY_S;
    let by_rows = rows / inputs.get("merged_rows")?;
    let by_bytes = sensor.bytes_day / inputs.get("merged_bytes")?;
    // At least one an hour.
    Ok(by_rows.max(by_bytes).max(24.0))
}

fn asked(inputs: &Inputs) -> Result<Table> {
    let heads = [
        "sensors, Gbit/s each",
        "objects of a day, merged",
        "sessions of a day",
        "one address of a day, one node",
        "nodes for 10 s",
        "top talkers of a day, one node",
        "nodes for a minute",
    ];
    let mut table = Table::new("How long an engine takes", &heads);
    let cores = inputs.get("engine_cores")?;
    let (open, scan) = (inputs.get("engine_open_s")?, inputs.get("engine_rows_per_s")?);
    // Two reads of an object, its end and a filter, of which many are under way at once.
    let wait = 2.0 * inputs.get("store_call_s")? / inputs.get("engine_reads")?;
    let look = wait.max(open / cores);
    each(inputs, &mut |fleet, gbit, sensor| {
        let objects = merged_objects_day(inputs, sensor)? * fleet;
        let rows = sensor.sessions * DAY_S * fleet;
        let find = objects * look;
        let all = rows / (scan * cores);
        table.push([
            format!("{fleet} x {gbit}"),
            number(objects),
            number(rows),
            time(find),
            count((find / 10.0).ceil()),
            time(all),
            count((all / 60.0).ceil()),
        ]);
        Ok(())
    })?;
    Ok(table)
}

fn merged(inputs: &Inputs, requests: Requests) -> Result<Table> {
    let heads = [
        "sensors, Gbit/s each",
        "rows merged/s",
        "cores that merge",
        "reads a day",
        "names listed by each run after a year",
        "lists a day by hourly merges then",
        "all cost a day",
    ];
    let mut table = Table::new("What merging takes", &heads);
    let (row_ns, get) = (inputs.get("merge_ns_per_session")?, inputs.get("get_dollars")?);
    each(inputs, &mut |fleet, gbit, sensor| {
        let gets = DAY_S / sensor.part_s * requests.gets * fleet;
        let names = merged_objects_day(inputs, sensor)? * 365.0;
        let lists = (names / LISTED_AT_ONCE).ceil() * 24.0 * fleet;
        let rows = sensor.sessions * fleet;
        table.push([
            format!("{fleet} x {gbit}"),
            number(rows),
            count((rows * row_ns / 1e9).ceil()),
            number(gets),
            number(names),
            number(lists),
            // A list costs what a write does.
            format!("{} $", number(gets * get + lists * inputs.get("put_dollars")?)),
        ]);
        Ok(())
    })?;
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_ends_by_rows_where_there_are_many_sessions() {
        let inputs = Inputs::of_repository();
        let sensor = Sensor::at(&inputs, 100.0).unwrap();
        let rows = inputs.get("segment_rows").unwrap();
        assert!((sensor.part_rows / rows - 1.0).abs() < 1e-9, "{sensor:?}");
        // A link with little on it closes a part after a gibibyte.
        let slow = Sensor::at(&inputs, 0.01).unwrap();
        assert!(slow.part_s > 600.0 && slow.part_rows < rows, "{slow:?}");
    }

    #[test]
    fn ten_times_the_sensors_store_ten_times_as_much() {
        let tables = tables(&Inputs::of_repository()).unwrap();
        let text: String = tables.iter().map(Table::text).collect();
        assert_eq!(text.matches("| 1000 x 100 |").count(), 3, "{text}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }

    #[test]
    fn a_part_takes_as_many_requests_as_the_archive_makes() {
        let requests = Requests::measured().unwrap();
        assert!((3.0..=6.0).contains(&requests.puts), "{requests:?}");
        assert!((2.0..=3.0).contains(&requests.gets), "{requests:?}");
    }
}
