//! One machine at 100 Gbit/s: what each part of it has to do, and which is full first.
//!
//! A step costs instructions for each packet and for each session (`bench costs`); cycles are
//! instructions times what one took in the same run without callgrind. A part that is one thread
//! for all queues is full when its steps take one core.

use std::collections::BTreeMap;

use anyhow::Result;
use session::Config;
use units::number::real_usize;

use crate::inputs::Inputs;
use crate::table::{Table, number, percent, time};

/// Bytes a second of the link.
const LINK: f64 = 100e9 / 8.0;
/// Preamble, checksum and gap around a frame.
const AROUND_BYTES: f64 = 24.0;
const CORES: f64 = 16.0;
/// Members of the volume: data and parity.
const DATA: f64 = 8.0;
const PARITY: f64 = 2.0;

/// Traffic at the link's rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) packets: f64,
    pub(crate) sessions: f64,
    /// Bytes of frames.
    pub(crate) bytes: f64,
}

impl Load {
    /// Of whole conversations, as `bench mix --traffic` makes them, at a share of 100 Gbit/s.
    pub(crate) fn of(inputs: &Inputs, share: f64) -> Result<Self> {
        let frame = inputs.get("frame_bytes")?;
        let packets = LINK * share / (frame + AROUND_BYTES);
        let sessions = packets / inputs.get("packets_per_session")?;
        Ok(Self { packets, sessions, bytes: packets * frame })
    }
}

/// Cores that each thread's steps take, and its share of a queue's work.
fn cores(inputs: &Inputs, load: Load) -> Result<BTreeMap<String, f64>> {
    let nanos = inputs.get("ns_per_instruction")?;
    let mut cores = BTreeMap::new();
    for step in inputs.steps()? {
        let instructions = step.packet * load.packets + step.session * load.sessions;
        *cores.entry(step.thread).or_default() += instructions * nanos / 1e9;
    }
    Ok(cores)
}

/// Parts that are full below the link's rate, with the share of it that they reach, the lowest
/// first.
pub(crate) fn limits(inputs: &Inputs) -> Result<Vec<(String, f64)>> {
    let load = Load::of(inputs, 1.0)?;
    let mut limits: Vec<(String, f64)> = Vec::new();
    for (thread, cores) in cores(inputs, load)? {
        // All queues together may have the cores that the single threads leave.
        let has = if thread == "queue" { CORES - 4.0 } else { 1.0 };
        limits.push((thread, has / cores));
    }
    let live = load.sessions * inputs.get("session_life_s")?;
    limits.push(("session table".to_owned(), table_sessions() / live));
    let disks = inputs.get("disk_bytes_per_s")? * (DATA + PARITY);
    limits.push((format!("{DATA}+{PARITY} disks"), disks / written(inputs, load)?));
    let memory = inputs.get("memory_bytes_per_s")?;
    limits.push(("memory bandwidth".to_owned(), memory / (passes_sum() * load.bytes)));
    let lanes = inputs.get("pcie_bytes_per_s")?;
    limits.push(("PCIe of the card, 4.0 x16".to_owned(), lanes / load.bytes));
    limits.sort_by(|a, b| a.1.total_cmp(&b.1));
    Ok(limits)
}

/// Bytes a second that go to all members.
fn written(inputs: &Inputs, load: Load) -> Result<f64> {
    let block = 1.0 + inputs.get("block_bytes")? / inputs.get("frame_bytes")?;
    let index = load.sessions * inputs.get("index_bytes_per_session")?;
    Ok((load.bytes * block + index) * (DATA + PARITY) / DATA)
}

/// How often each byte of a packet passes between memory and the rest.
const PASSES: [(&str, f64); 6] = [
    ("the card writes it into the kernel ring", 1.0),
    ("the intake reads it there", 1.0),
    ("and writes it into a column, whose lines are read first", 2.0),
    ("checksums and parity read the column: it is larger than a cache", 1.0),
    ("parity is written", PARITY / DATA),
    ("disks read columns and parity", 1.0 + PARITY / DATA),
];

fn passes_sum() -> f64 {
    PASSES.iter().map(|(_, times)| times).sum()
}

/// Sessions that the table has at most.
fn table_sessions() -> f64 {
    real_usize(Config::default().session_count_max)
}

pub(crate) fn tables(inputs: &Inputs) -> Result<Vec<Table>> {
    Ok(vec![steps(inputs)?, resources(inputs)?, first(inputs)?])
}

fn steps(inputs: &Inputs) -> Result<Table> {
    let load = Load::of(inputs, 1.0)?;
    let (nanos, giga) = (inputs.get("ns_per_instruction")?, inputs.get("clock_ghz")?);
    let heads =
        ["step", "by", "instructions a packet", "a session", "cycles a packet, all", "cores"];
    let title = format!(
        "Steps, at 100 Gbit/s: {} packets/s, {} sessions/s",
        number(load.packets),
        number(load.sessions)
    );
    let mut table = Table::new(&title, &heads);
    let mut sum = [0.0; 4];
    for step in inputs.steps()? {
        let all = step.packet + step.session * load.sessions / load.packets;
        let (cycles, cores) = (all * nanos * giga, all * nanos * load.packets / 1e9);
        let figures = [step.packet, step.session, cycles, cores];
        sum.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure);
        table.push([step.name, step.thread].into_iter().chain(figures.map(number)));
    }
    table.push(["**all**", ""].map(str::to_owned).into_iter().chain(sum.map(number)));
    Ok(table)
}

fn resources(inputs: &Inputs) -> Result<Table> {
    let load = Load::of(inputs, 1.0)?;
    let mut table = Table::new("What else it takes", &["what", "needs", "has", "share"]);
    let mut line = |what: &str, needs: f64, has: f64, unit: &str| {
        let amount = |value| format!("{}{unit}", number(value));
        table.push([what.to_owned(), amount(needs), amount(has), percent(needs / has)]);
    };
    for (what, times) in PASSES {
        line(what, times * load.bytes, inputs.get("memory_bytes_per_s")?, "B/s");
    }
    let memory = inputs.get("memory_bytes_per_s")?;
    line("memory bandwidth, all", passes_sum() * load.bytes, memory, "B/s");
    line("PCIe of the card", load.bytes, inputs.get("pcie_bytes_per_s")?, "B/s");
    let disks = inputs.get("disk_bytes_per_s")? * (DATA + PARITY);
    line(&format!("disks, {DATA}+{PARITY}"), written(inputs, load)?, disks, "B/s");
    let alive = load.sessions * inputs.get("session_life_s")?;
    line("sessions alive", alive, table_sessions(), "");
    let memory = real_usize(Config::default().memory_bytes_max());
    line("memory of a table of as many", alive / table_sessions() * memory, memory, "B");
    let index = load.sessions * inputs.get("index_bytes_per_session")?;
    line("index", index, load.bytes, "B/s");
    let rows = inputs.get("segment_rows")?;
    let text = [time(rows / load.sessions), "60 s of 1 GiB, aimed at".to_owned(), String::new()];
    table.push(["a segment is full after".to_owned()].into_iter().chain(text));
    Ok(table)
}

fn first(inputs: &Inputs) -> Result<Table> {
    let mut table = Table::new("What breaks first", &["part", "full at", "of 100 Gbit/s"]);
    for (part, share) in limits(inputs)? {
        let rate = format!("{} Gbit/s", number(share * 100.0));
        table.push([part, rate, percent(share)]);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_packets_is_that_of_the_wire() {
        let inputs = Inputs::of_repository();
        let load = Load::of(&inputs, 1.0).unwrap();
        let frame = inputs.get("frame_bytes").unwrap();
        assert!((load.packets * (frame + AROUND_BYTES) * 8.0 / 1e11 - 1.0).abs() < 1e-9);
        assert!((500.0..800.0).contains(&frame), "{frame}");
    }

    /// At the share at which a thread is full its steps take one core.
    #[test]
    fn a_thread_is_full_when_its_steps_take_a_core() {
        let inputs = Inputs::of_repository();
        let limits = limits(&inputs).unwrap();
        assert!(limits.is_sorted_by(|a, b| a.1 <= b.1));
        let (_, share) = limits.iter().find(|(part, _)| part == "indexer").unwrap();
        let load = Load::of(&inputs, *share).unwrap();
        let cores = cores(&inputs, load).unwrap();
        assert!((cores["indexer"] - 1.0).abs() < 1e-9, "{cores:?}");
    }

    #[test]
    fn every_table_has_figures() {
        let tables = tables(&Inputs::of_repository()).unwrap();
        let text: String = tables.iter().map(Table::text).collect();
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}
