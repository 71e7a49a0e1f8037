//! Parts with few numbers, in tables: readers, random writes, files, the processor.

use ::qualify::{Cpu, FileLap, Files, Iops, Mixed, PartResult, Qualification};
use page::text::disk_rate as rate;
use page::text::{bits, grouped, nanos, plural};
use page::{Cell, Document};
use units::ByteSize;

pub(super) fn add(page: &mut Document, found: &Qualification) {
    let readers = found.verdict.as_ref().and_then(|verdict| verdict.with_readers.as_ref());
    for part in &found.parts {
        match part {
            PartResult::Mixed(mixed) => {
                mixed_part(page, mixed);
                if let Some(readers) = readers {
                    page.paragraph(&format!(
                        "The verdict beside these readers: {}, {} of traffic, with a pool of {}.",
                        rate(readers.guaranteed_bytes_per_s),
                        bits(readers.guaranteed_traffic_bit_per_s),
                        ByteSize(readers.pool_bytes)
                    ));
                }
            }
            PartResult::Iops(iops) => iops_part(page, iops),
            PartResult::Files(files) => files_part(page, files),
            PartResult::Cpu(cpu) => cpu_part(page, cpu),
            _ => {}
        }
    }
}

fn mixed_part(page: &mut Document, mixed: &Mixed) {
    page.section("Writing beside readers");
    let load = &mixed.load;
    page.paragraph(&format!(
        "{} of {} each, and {} of 4 KiB a second, asked for.",
        plural(u64::from(load.streams), "reader"),
        rate(load.stream_bytes_per_s),
        plural(load.random_per_s, "read"),
    ));
    let row = |name: &str, guaranteed: u64, mean: u64| {
        vec![Cell::text(name), Cell::number(rate(guaranteed)), Cell::number(rate(mean))]
    };
    let rows = [
        row("alone", mixed.alone_bytes_per_s, mixed.alone.rate()),
        row("beside readers", mixed.beside_bytes_per_s, mixed.beside.rate()),
    ];
    let caption =
        format!("The same stretches of the surface, with a pool of {}", ByteSize(mixed.pool_bytes));
    page.table(&caption, &["", "guaranteed", "mean"], &rows);
}

fn iops_part(page: &mut Document, iops: &Iops) {
    page.section("Random writes of 4 KiB");
    let row = |step: &::qualify::IopsStep| {
        vec![
            Cell::number(step.depth.to_string()),
            Cell::number(grouped(step.writes_per_s())),
            Cell::number(grouped(step.latency.count())),
            Cell::number(nanos(step.ns)),
        ]
    };
    let rows: Vec<Vec<Cell>> = iops.steps.iter().map(row).collect();
    page.table(
        "By the writes under way",
        &["under way", "writes a second", "writes", "time"],
        &rows,
    );
}

fn files_part(page: &mut Document, files: &Files) {
    page.section("Files of a directory, written and removed");
    page.paragraph(&format!(
        "{} at a time, files of {}, the oldest removed when {} are used.",
        plural(u64::from(files.writers), "writer"),
        ByteSize(files.file_bytes),
        ByteSize(files.budget_bytes / 10 * 9)
    ));
    let row = |(lap, number): (&FileLap, u32)| {
        let known = |value: Option<String>| Cell::number(value.unwrap_or_else(|| "?".to_owned()));
        let mean = lap.extents.map(|extents| {
            let tenths = extents.saturating_mul(10) / lap.files.max(1);
            format!("{}.{}", tenths / 10, tenths % 10)
        });
        vec![
            Cell::number(number.to_string()),
            Cell::number(rate(lap.rate())),
            Cell::number(lap.files.to_string()),
            known(mean),
            known(lap.extents_max.map(|extents| extents.to_string())),
            Cell::number(nanos(lap.ns)),
        ]
    };
    let rows: Vec<Vec<Cell>> = files.laps.iter().zip(1..).map(row).collect();
    let headings = ["lap", "rate", "files", "extents a file", "at most", "time"];
    page.table("By lap: a file system that ages gets slower", &headings, &rows);
    if let Some(fio) = &files.fio {
        let (version, found) = (page::safe::printable(&fio.version), rate(fio.rate()));
        page.paragraph(&format!("The same job of {version}: {found}."));
    }
}

fn cpu_part(page: &mut Document, cpu: &Cpu) {
    page.section("Processor");
    let row = |step: &::qualify::CpuStep| {
        // Nanoseconds for a byte are seconds for a gigabyte.
        let micros = u128::from(step.cpu_ns) * 1_000_000 / u128::from(step.bytes.max(1));
        vec![
            Cell::text(format!("{}+{}", step.data_columns, step.parity_columns)),
            Cell::number(format!("{}.{:03} s", micros / 1_000_000, micros / 1000 % 1000)),
        ]
    };
    let rows: Vec<Vec<Cell>> = cpu.steps.iter().map(row).collect();
    page.table("Time for checksums and parity", &["columns", "for a gigabyte"], &rows);
}
