//! What the archive asks of a store: the real job, on a ring that is made up, with a store that
//! takes notes.

use core::ops::ControlFlow;
use std::cell::RefCell;
use std::rc::Rc;

use anyhow::{Context, Result};
use archive::{
    Bounds, Event, Listed, Manners, Memory, MemoryStore, Options, Sensor, Source, Store,
    StoreError, Uploader, archive, compact,
};
use completeness::Completeness;
use extract::{Lag, OpenSessions, PartReport};
use format::head::{StripeId, VolumeId};
use format::session_row::SessionRow;
use found::Found;
use units::number::to_u64;
use units::{Epoch, ManualClock, NANOS_PER_SECOND, Sequence, Timestamp};
use wire::{Address, FiveTuple, Protocol};

/// A full hour.
const BEGIN_NS: i64 = 1_795_168_800 * NANOS_PER_SECOND;
const HOUR_NS: i64 = 3600 * NANOS_PER_SECOND;
/// Sessions of a part: how many there are does not matter to which calls are made.
const ROWS: u16 = 20;

/// What is asked of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Rows are stored.
    PutRows,
    /// Anything else is.
    Put,
    Get,
    List,
    Delete,
}

/// A call of so many bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Call {
    pub(crate) kind: Kind,
    pub(crate) bytes: usize,
}

/// A store that takes notes.
#[derive(Debug, Default)]
struct Noting {
    store: MemoryStore,
    calls: Rc<RefCell<Vec<Call>>>,
}

impl Noting {
    fn note(&self, kind: Kind, bytes: usize) {
        self.calls.borrow_mut().push(Call { kind, bytes });
    }

    fn note_put(&self, name: &str, bytes: &[u8]) {
        let is_rows = name.starts_with("sessions/");
        self.note(if is_rows { Kind::PutRows } else { Kind::Put }, bytes.len());
    }
}

impl Store for Noting {
    fn url(&self) -> &str {
        self.store.url()
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.note_put(name, bytes);
        self.store.put(name, bytes)
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<bool, StoreError> {
        self.note_put(name, bytes);
        self.store.put_new(name, bytes)
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let bytes = self.store.get(name)?;
        self.note(Kind::Get, bytes.as_ref().map_or(0, Vec::len));
        Ok(bytes)
    }

    fn list(
        &self,
        folder: &str,
        after: Option<&str>,
        visit: &mut dyn FnMut(Listed),
    ) -> Result<(), StoreError> {
        self.note(Kind::List, 0);
        self.store.list(folder, after, visit)
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        self.note(Kind::Delete, 0);
        self.store.delete(name)
    }
}

/// A ring of so many parts of a minute each, recorded on.
struct Ring {
    parts: u64,
    behind: Vec<u64>,
}

fn stripe(sequence: u64) -> StripeId {
    StripeId { sequence: Sequence(sequence), sub: 0 }
}

/// When a part begins: so many of them share an hour evenly.
fn begin_ns(part: u64, parts: u64) -> i64 {
    BEGIN_NS + HOUR_NS / parts.cast_signed() * part.cast_signed()
}

impl Ring {
    fn bounds(&self, part: u64) -> Bounds {
        let time_min = Timestamp(begin_ns(part, self.parts));
        Bounds { first: stripe(10 * part + 1), last: stripe(10 * part + 10), time_min }
    }
}

fn row(port: u16, start_ns: i64) -> SessionRow {
    let tuple = FiveTuple {
        orig: Address::V4([10, 0, 0, 1].into()),
        resp: Address::V4([10, 0, 0, 2].into()),
        orig_port: port,
        resp_port: 443,
        proto: Protocol::TCP,
    };
    let mut row = SessionRow::new(tuple, Timestamp(start_ns));
    row.end = row.start.plus_nanos(NANOS_PER_SECOND / 100);
    // One of them goes on.
    row.continues = port == 0;
    row.orig.packets = 10;
    row
}

impl Source for Ring {
    fn look(&mut self) -> Result<(), archive::Error> {
        Ok(())
    }

    fn volume(&self) -> VolumeId {
        VolumeId([7; 16])
    }

    fn is_over(&self) -> bool {
        false
    }

    fn doubts(&self) -> Completeness {
        Completeness::default()
    }

    fn lost_behind(&self, _: StripeId) -> Option<StripeId> {
        None
    }

    fn newest(&self) -> Option<StripeId> {
        Some(stripe(10 * self.parts))
    }

    fn mark(&self, _: StripeId) -> Option<String> {
        Some(String::new())
    }

    fn lag(&self, _: Option<StripeId>) -> Lag {
        Lag::default()
    }

    fn parts(&mut self, read: Option<StripeId>) -> Vec<Bounds> {
        let is_behind = |part: &u64| Some(stripe(10 * part + 10)) > read;
        self.behind = (0..self.parts).filter(is_behind).collect();
        self.behind.iter().map(|part| self.bounds(*part)).collect()
    }

    fn read(
        &mut self,
        place: usize,
        open: &mut OpenSessions,
        take: &mut dyn FnMut(&Found) -> ControlFlow<()>,
    ) -> Result<PartReport, archive::Error> {
        let part = self.behind.get(place).copied().expect("one of those that were given");
        let start_ns = begin_ns(part, self.parts);
        let mut flow = open.begin((Epoch(1), true), Timestamp(start_ns), take);
        for port in 0..ROWS {
            if flow.is_continue() {
                let id = format!("{}.0-{port}", 10 * part + 1);
                flow = open.add(&id, row(port, start_ns + i64::from(port)), take);
            }
        }
        let latest = Some(Timestamp(start_ns + NANOS_PER_SECOND));
        Ok(PartReport { latest, rows: u64::from(ROWS), ..PartReport::default() })
    }
}

struct Forgetting;

impl Memory for Forgetting {
    fn newest(&self, _: VolumeId) -> Option<String> {
        None
    }

    fn remember(&self, _: VolumeId, _: &str) {}
}

/// What one run asks of the store.
fn run(
    store: &Noting,
    tell: &mut dyn FnMut(&Event),
    now_ns: i64,
    work: &dyn Fn(&mut Uploader<'_>, &Sensor) -> Result<(), archive::Error>,
) -> Result<()> {
    let clock = ManualClock::new(Timestamp(now_ns));
    let go_on = || ControlFlow::Continue(());
    let mut uploader = Uploader::new(store, &clock, &go_on, tell, Manners::default());
    let sensor: Sensor = "s".parse().ok().context("a plain name")?;
    Ok(work(&mut uploader, &sensor)?)
}

fn archive_hour(parts: u64) -> Result<(Noting, Vec<usize>)> {
    let (store, mut ends) = (Noting::default(), Vec::new());
    let calls = Rc::clone(&store.calls);
    let mut tell = |event: &Event| {
        if let Event::Archived { .. } = event {
            ends.push(calls.borrow().len());
        }
    };
    run(&store, &mut tell, BEGIN_NS, &|uploader, sensor| {
        let options = Options { sensor: sensor.clone(), follow: false };
        let mut ring = Ring { parts, behind: Vec::new() };
        archive(&options, &mut ring, uploader, &Forgetting).map(drop)
    })?;
    Ok((store, ends))
}

/// The calls of one part behind others.
pub(crate) fn of_part() -> Result<Vec<Call>> {
    let (store, ends) = archive_hour(4)?;
    let [.., from, to] = *ends else { anyhow::bail!("four parts were archived") };
    let calls = store.calls.borrow();
    Ok(calls.get(from..to).context("calls between two parts")?.to_vec())
}

/// The calls that merge an hour of so many parts, and those of the next run, which has nothing to
/// merge.
pub(crate) fn of_compaction(parts: u64) -> Result<[Vec<Call>; 2]> {
    let (store, _) = archive_hour(parts)?;
    let merge = || {
        store.calls.borrow_mut().clear();
        run(&store, &mut |_| {}, BEGIN_NS + 3 * HOUR_NS, &|uploader, sensor| {
            compact(uploader, sensor, "simulated", &mut |_| {}).map(drop)
        })?;
        Ok::<_, anyhow::Error>(store.calls.borrow().clone())
    };
    Ok([merge()?, merge()?])
}

/// How many calls are of a kind.
pub(crate) fn count(calls: &[Call], kinds: &[Kind]) -> u64 {
    to_u64(calls.iter().filter(|call| kinds.contains(&call.kind)).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_a_few_calls_with_one_object_of_rows() {
        let calls = of_part().unwrap();
        assert_eq!(count(&calls, &[Kind::PutRows]), 1, "{calls:?}");
        // What is about to be stored, what may go on, and the manifest.
        assert_eq!(count(&calls, &[Kind::Put]), 3, "{calls:?}");
        assert!(calls.len() <= 6, "{calls:?}");
    }

    #[test]
    fn compaction_reads_no_manifest_of_an_hour_that_is_settled() {
        let [[merging, idle], [_, idle_of_more]] =
            [6, 12].map(|parts| of_compaction(parts).unwrap());
        assert_eq!(count(&merging, &[Kind::PutRows]), 1, "{merging:?}");
        let reads = |calls: &[Call]| count(calls, &[Kind::Get]);
        assert_eq!(reads(&idle_of_more), reads(&idle), "{idle:?}");
    }
}
