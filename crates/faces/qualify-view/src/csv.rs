//! A qualification as tables, one file for each: docs/qualification.md has the columns.

use core::fmt::Write as _;

use ::qualify::{
    Cpu, Extents, Files, Fill, Iops, Judged, Latencies, Latency, Mixed, Order, PartResult,
    Qualification, Reads, Sweep,
};

/// A file that is being written: a heading, and rows of numbers and plain words.
struct Table {
    name: &'static str,
    text: String,
}

impl Table {
    fn new(name: &'static str, columns: &str) -> Self {
        Self { name, text: format!("{columns}\n") }
    }

    fn add(&mut self, row: core::fmt::Arguments<'_>) {
        writeln!(self.text, "{row}").expect("a string takes all text");
    }

    fn is_empty(&self) -> bool {
        self.text.lines().nth(1).is_none()
    }
}

/// Names of files with their content; none for what was not measured.
pub fn qualification_csv(found: &Qualification) -> Vec<(&'static str, String)> {
    let mut tables = Tables::new();
    if let Some(verdict) = &found.verdict {
        verdict.judged.iter().for_each(|judged| tables.judged(judged));
    }
    for part in &found.parts {
        match part {
            PartResult::Sweep(sweep) => tables.sweep(sweep),
            PartResult::Fill(fill) => tables.fill("fill", fill),
            PartResult::Ring(fill) => tables.fill("ring", fill),
            PartResult::Passes(passes) => {
                tables.fill("passes_first", &passes.first);
                tables.fill("passes_second", &passes.second);
            }
            PartResult::Extents(extents) => tables.extents(extents),
            PartResult::Latency(latency) => tables.latency(latency),
            PartResult::Mixed(mixed) => tables.mixed(mixed),
            PartResult::Reads(reads) => tables.reads(reads),
            PartResult::Iops(iops) => tables.iops(iops),
            PartResult::Files(files) => tables.files(files),
            PartResult::Cpu(cpu) => tables.cpu(cpu),
        }
    }
    tables.finish()
}

struct Tables {
    verdict: Table,
    sweep: Table,
    windows: Table,
    samples: Table,
    pools: Table,
    extents: Table,
    latencies: Table,
    slowest: Table,
    iops: Table,
    files: Table,
    cpu: Table,
}

impl Tables {
    fn new() -> Self {
        Self {
            verdict: Table::new(
                "verdict.csv",
                "basis,order,is_computed,is_by_reading,pool_bytes,guaranteed_bytes_per_s,\
                 mean_bytes_per_s,minimum_bytes_per_s,slow_ns,fast_ns",
            ),
            sweep: Table::new("sweep.csv", "offset,bytes,ns,bytes_per_s"),
            windows: Table::new(
                "windows.csv",
                "run,end_ns,bytes,bytes_per_s,offset_low,offset_high,latency_ns_max",
            ),
            samples: Table::new("samples.csv", "run,end_ns,offset"),
            pools: Table::new("pools.csv", "run,pool_bytes,bytes_per_s"),
            extents: Table::new("extents.csv", "extent_bytes,extents,ns,bytes_per_s"),
            latencies: Table::new("latencies.csv", "of,latency_ns,count"),
            slowest: Table::new("slowest.csv", "end_ns,offset,latency_ns"),
            iops: Table::new("iops.csv", "depth,writes,ns,writes_per_s"),
            files: Table::new("files.csv", "lap,bytes,ns,bytes_per_s,files,extents,extents_max"),
            cpu: Table::new("cpu.csv", "data_columns,parity_columns,bytes,cpu_ns"),
        }
    }

    fn judged(&mut self, judged: &Judged) {
        let order = match judged.order {
            Order::FirstToLast => "first_to_last",
            Order::ZoneLevelled => "zone_levelled",
        };
        let known = |ns: Option<u64>| ns.map_or_else(String::new, |ns| ns.to_string());
        self.verdict.add(format_args!(
            "{},{order},{},{},{},{},{},{},{},{}",
            judged.basis,
            judged.is_computed,
            judged.is_by_reading,
            judged.pool_bytes,
            judged.guaranteed_bytes_per_s,
            judged.mean_bytes_per_s,
            judged.minimum_bytes_per_s,
            known(judged.slow_ns),
            known(judged.fast_ns),
        ));
    }

    fn sweep(&mut self, sweep: &Sweep) {
        for step in &sweep.steps {
            let rate = step.rate();
            self.sweep.add(format_args!("{},{},{},{rate}", step.offset, step.bytes, step.ns));
        }
    }

    fn fill(&mut self, run: &str, fill: &Fill) {
        for (window, rate) in fill.windows.iter().zip(fill.rates()) {
            self.windows.add(format_args!(
                "{run},{},{},{rate},{},{},{}",
                window.end_ns,
                window.bytes,
                window.offset_low,
                window.offset_high,
                window.latency_ns_max
            ));
        }
        for sample in &fill.samples {
            self.samples.add(format_args!("{run},{},{}", sample.end_ns, sample.offset));
        }
        for point in &fill.curve {
            self.pools.add(format_args!("{run},{},{}", point.pool_bytes, point.bytes_per_s));
        }
    }

    fn extents(&mut self, extents: &Extents) {
        for step in &extents.steps {
            let rate = step.rate();
            self.extents
                .add(format_args!("{},{},{},{rate}", step.extent_bytes, step.extents, step.ns));
        }
    }

    fn latency(&mut self, latency: &Latency) {
        self.latencies("write_from_arrival", &latency.from_arrival);
        self.latencies("write_of_device", &latency.of_device);
        for slow in &latency.slowest {
            self.slowest.add(format_args!("{},{},{}", slow.end_ns, slow.offset, slow.latency_ns));
        }
    }

    fn mixed(&mut self, mixed: &Mixed) {
        self.fill("mixed_alone", &mixed.alone);
        self.fill("mixed_beside", &mixed.beside);
        self.latencies("mixed_write_from_arrival", &mixed.latency.from_arrival);
        self.latencies("mixed_stream_read", &mixed.reads.streams);
        self.latencies("mixed_random_read", &mixed.reads.random);
    }

    fn iops(&mut self, iops: &Iops) {
        for step in &iops.steps {
            let (writes, rate) = (step.latency.count(), step.writes_per_s());
            self.iops.add(format_args!("{},{writes},{},{rate}", step.depth, step.ns));
        }
    }

    fn files(&mut self, files: &Files) {
        self.fill("files", &files.fill);
        let known = |count: Option<u64>| count.map_or_else(String::new, |count| count.to_string());
        for (lap, number) in files.laps.iter().zip(1..) {
            self.files.add(format_args!(
                "{number},{},{},{},{},{},{}",
                lap.bytes,
                lap.ns,
                lap.rate(),
                lap.files,
                known(lap.extents),
                known(lap.extents_max)
            ));
        }
    }

    fn cpu(&mut self, cpu: &Cpu) {
        for step in &cpu.steps {
            let (data, parity) = (step.data_columns, step.parity_columns);
            self.cpu.add(format_args!("{data},{parity},{},{}", step.bytes, step.cpu_ns));
        }
    }

    fn reads(&mut self, reads: &Reads) {
        self.latencies("read", &reads.latency);
    }

    fn latencies(&mut self, of: &str, latencies: &Latencies) {
        for (ns, count) in latencies.buckets() {
            self.latencies.add(format_args!("{of},{ns},{count}"));
        }
    }

    fn finish(self) -> Vec<(&'static str, String)> {
        let Self { verdict, sweep, windows, samples, pools, extents, .. } = self;
        let Self { latencies, slowest, iops, files, cpu, .. } = self;
        let all = [
            verdict, sweep, windows, samples, pools, extents, latencies, slowest, iops, files, cpu,
        ];
        let filled = all.into_iter().filter(|table| !table.is_empty());
        filled.map(|table| (table.name, table.text)).collect()
    }
}
