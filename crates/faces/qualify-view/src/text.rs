//! The summary for a terminal.

use core::fmt::Write as _;

use ::qualify::{
    Answer, Cause, Cpu, Doubt, Extents, Files, Fill, GroupLimit, Iops, Judged, Jump, JumpBy,
    Latencies, Latency, LimitOf, Mixed, Order, PartResult, Passes, Qualification, Reads, Share,
    Sweep, Target, TargetKind, Verdict, seen,
};
use page::safe::printable;
use page::text::disk_rate as rate;
use page::text::{bits, duration, grouped, nanos, percent, plural, time, wrapped};
use page::{PlotStyle, sparkline};
use units::ByteSize;

use super::drive;

/// Where the values of lines begin.
const INDENT: usize = 15;
/// Rows of numbers are at least this wide, whatever the terminal.
const SPARK_MIN: usize = 20;

/// What is going to happen, and how long it takes at `bytes_per_s`.
pub fn qualify_estimate(bytes: u64, bytes_per_s: u64, fixed_ns: i64) -> String {
    let moving = i128::from(bytes) * 1_000_000_000 / i128::from(bytes_per_s.max(1));
    let ns = i64::try_from(moving).unwrap_or(i64::MAX).saturating_add(fixed_ns);
    format!(
        "about {}: {} at {}, as a first look found it{}",
        duration(ns),
        ByteSize(bytes),
        rate(bytes_per_s),
        if fixed_ns > 0 {
            format!(", and {} of latencies", duration(fixed_ns))
        } else {
            String::new()
        }
    )
}

/// A qualification, in words and rows of blocks.
pub fn qualification(found: &Qualification, style: PlotStyle) -> String {
    let mut lines = Lines::new(style);
    lines.add("target", &target(&found.target));
    for layer in found.target.layers.iter().take(8) {
        lines.add("", &self::layer(layer));
        layer.drive.iter().flat_map(drive::lines).for_each(|line| lines.add("", &line));
    }
    found.target.limits.iter().for_each(|limit| lines.add("", &self::limit(limit)));
    if let Some(seen) = drive::seen(&found.target, seen(&found.parts)) {
        lines.add("seen", &seen);
    }
    if let Some(verdict) = &found.verdict {
        self::verdict(&mut lines, verdict);
    }
    for part in &found.parts {
        match part {
            PartResult::Sweep(sweep) => self::sweep(&mut lines, sweep),
            PartResult::Fill(fill) => self::fill(&mut lines, "fill", fill),
            PartResult::Ring(fill) => self::fill(&mut lines, "ring", fill),
            PartResult::Passes(passes) => self::passes(&mut lines, passes),
            PartResult::Extents(extents) => self::extents(&mut lines, extents),
            PartResult::Latency(latency) => self::latency(&mut lines, latency),
            PartResult::Mixed(mixed) => self::mixed(&mut lines, mixed),
            PartResult::Reads(reads) => self::reads(&mut lines, reads),
            PartResult::Iops(iops) => self::iops(&mut lines, iops),
            PartResult::Files(files) => self::files(&mut lines, files),
            PartResult::Cpu(cpu) => self::cpu(&mut lines, cpu),
        }
    }
    lines.add("took", &took(found));
    for note in &found.notes {
        lines.add("note", &printable(note));
    }
    lines.text
}

/// Between a number and its unit while a line is wrapped.
const JOIN: char = '\u{a0}';
/// What stays with the number before it.
const UNITS: [&str; 18] = [
    "B", "KiB", "MiB", "GiB", "TiB", "kB/s", "MB/s", "GB/s", "kbit/s", "Mbit/s", "Gbit/s", "ns",
    "us", "ms", "s", "min", "h", "%",
];

/// The same with numbers and their units as one word.
fn joined(text: &str) -> String {
    let mut joined = String::new();
    let mut is_number = false;
    for (place, word) in text.split(' ').enumerate() {
        let unit = word.trim_end_matches([',', ';', ':', '.', ')']);
        if place > 0 {
            joined.push(if is_number && UNITS.contains(&unit) { JOIN } else { ' ' });
        }
        joined.push_str(word);
        let digits = word.trim_start_matches(['(', '+', '-']);
        is_number = !digits.is_empty()
            && digits.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
    }
    joined
}

/// Lines of a name and a value, and rows of blocks below them.
pub(super) struct Lines {
    pub(super) text: String,
    style: PlotStyle,
}

impl Lines {
    pub(super) fn new(style: PlotStyle) -> Self {
        Self { text: String::new(), style }
    }

    pub(super) fn add(&mut self, name: &str, value: &str) {
        let mut name = if name.is_empty() { String::new() } else { format!("{name}:") };
        let width = self.style.width.saturating_sub(INDENT).max(SPARK_MIN);
        if name.chars().count() >= INDENT {
            writeln!(self.text, "{name}").expect("a string takes all text");
            name.clear();
        }
        for line in wrapped(&joined(value), width, 2) {
            let line = line.replace(JOIN, " ");
            writeln!(self.text, "{name:<14} {line}").expect("a string takes all text");
            name.clear();
        }
    }

    /// Numbers as a row, below the line that says what they are.
    pub(super) fn row(&mut self, values: &[u64]) {
        let width = self.style.width.saturating_sub(INDENT).max(SPARK_MIN);
        let row = sparkline(values, width, self.style.is_terminal);
        writeln!(self.text, "{:INDENT$}{}", "", row.trim_end()).expect("a string takes all text");
    }
}

pub(super) fn target(target: &Target) -> String {
    let (path, size) = (printable(&target.path), ByteSize(target.size_bytes));
    match target.kind {
        TargetKind::OwnFile => format!("a file of {size} at {path}, made for this and removed"),
        TargetKind::File => format!("{path}, a file of {size}, read only"),
        TargetKind::Device => format!("{path}, a device of {size}"),
        TargetKind::Model => format!("a modelled disk of {size} after {path}"),
    }
}

fn layer(layer: &::qualify::Layer) -> String {
    let ::qualify::Layer { name, size_bytes, model, serial, firmware, .. } = layer;
    let of = |what: &str, value: &Option<String>| {
        value.as_ref().map(|value| format!(", {what}{}", printable(value))).unwrap_or_default()
    };
    format!(
        "on {name}, {}{}{}{}{}{}{}",
        ByteSize(*size_bytes),
        of("", model),
        of("serial ", serial),
        of("firmware ", firmware),
        if layer.is_rotational { ", says that it turns" } else { "" },
        of("cache ", &layer.write_cache),
        of("scheduler ", &layer.scheduler),
    )
}

fn verdict(lines: &mut Lines, verdict: &Verdict) {
    let Some(first) = verdict.judged.first() else { return };
    let mix = &verdict.mix;
    let of_mix = format!("{}, mean frame {} bytes", printable(&mix.name), mix.mean_frame_bytes());
    let by_reading = if first.is_by_reading { ", if it writes as it reads" } else { "" };
    let traffic = bits(verdict.guaranteed_traffic_bit_per_s);
    for (number, doubt) in verdict.doubts.iter().enumerate() {
        let label = if number == 0 { "verdict" } else { "" };
        lines.add(label, &self::doubt(doubt));
    }
    let (label, what) = match verdict.doubts[..] {
        [] => ("verdict", "guarantees"),
        _ => ("", "measured"),
    };
    lines.add(label, &format!("{what} {traffic} of traffic ({of_mix}){by_reading}"));
    if let Some(asked) = &verdict.asked {
        let needed = rate(asked.needed_bytes_per_s);
        let asked_for = format!("{} need {needed}", bits(asked.bits_per_s));
        let margin = margin(asked.margin_permille);
        lines.add(
            "",
            &match asked.answer {
                Answer::Fits => format!("{asked_for}: it fits, with {margin}"),
                Answer::TooSlow => {
                    let missing = percent(asked.margin_permille.unsigned_abs(), 1000);
                    format!("{asked_for}: too slow by {missing}")
                }
                Answer::CannotJudge => format!("{asked_for}: what was measured does not say"),
            },
        );
    }
    if let Some(readers) = &verdict.with_readers {
        let traffic = bits(readers.guaranteed_traffic_bit_per_s);
        let read = format!(
            "{} and {} a second at random places",
            rate(readers.read_bytes_per_s),
            plural(readers.reads_per_s, "read"),
        );
        lines.add("", &format!("with readers of {read}: {traffic}"));
    }
    for judged in &verdict.judged {
        lines.add("", &self::judged(judged));
        if let (Some(slow), Some(fast)) = (judged.slow_ns, judged.fast_ns)
            && slow > 0
        {
            let of_lap = match [slow, fast].map(nanos) {
                [slow, _] if fast == 0 => format!("below it for all of a lap, {slow}"),
                [slow, fast] => format!("of a lap at that rate {slow} below it, {fast} above"),
            };
            lines.add("", &format!("  {of_lap}"));
        }
    }
    if first.pool_bytes < verdict.pool_bytes {
        let (asked, used) = (ByteSize(verdict.pool_bytes), ByteSize(first.pool_bytes));
        lines.add("", &format!("pool {asked}, of which so short a run proves {used}"));
    }
    shares(lines, verdict);
    lost(lines, verdict);
}

/// Of what is needed: `25.8 % are missing`, `12.5 % to spare`, from ten times on the number of
/// times.
pub(super) fn margin(permille: i64) -> String {
    let share = percent(permille.unsigned_abs(), 1000);
    match permille {
        ..0 => format!("{share} are missing"),
        9000.. => format!("{} times what is needed", grouped(permille.unsigned_abs() / 1000 + 1)),
        _ => format!("{share} to spare"),
    }
}

/// What a control group allows: `the control group /backup limits writes to vda to 5.00 MB/s`.
pub(super) fn limit(limit: &GroupLimit) -> String {
    let verb = if limit.is_write { "writes to" } else { "reads from" };
    let most = match limit.of {
        LimitOf::Bytes => rate(limit.per_second),
        LimitOf::Requests => format!("{} a second", plural(limit.per_second, "request")),
    };
    let (group, disk) = (printable(&limit.group), printable(&limit.disk));
    format!("the control group {group} limits {verb} {disk} to {most}")
}

/// Why what was measured guarantees nothing, and what would.
pub(super) fn doubt(doubt: &Doubt) -> String {
    match doubt {
        Doubt::Memory => {
            "cannot judge: what is written there lies in memory (tmpfs); name a folder on a disk"
                .to_owned()
        }
        Doubt::Limited { limit } => format!(
            "cannot judge the disk: {}; lift it ({}), or run outside of the group",
            self::limit(limit),
            printable(&limit.file)
        ),
        Doubt::Step { bytes, before_bytes_per_s, after_bytes_per_s, needed_bytes } => format!(
            "cannot judge beyond {}: there the rate falls from {} to {}, as behind a cache that is \
             full. The rate of the last part counts; write at least {} to see enough of it",
            ByteSize(*bytes),
            rate(*before_bytes_per_s),
            rate(*after_bytes_per_s),
            size(*needed_bytes)
        ),
        Doubt::Cache { name, bytes, needed_bytes } => format!(
            "cannot judge beyond {}: the write cache {} may have taken all of it. The rate behind \
             it counts; write {}",
            ByteSize(*bytes),
            printable(name),
            needed_bytes.map_or_else(
                || "until the rate falls by a clear step".to_owned(),
                |needed| format!("at least {}", size(needed))
            )
        ),
        Doubt::AboveDevice { bytes, bytes_per_s, most_bytes_per_s, needed_bytes } => format!(
            "cannot judge beyond {}: {} is more than the {} that the drives below can do at most, \
             so a cache took it. The rate of the last part counts; write at least {}",
            ByteSize(*bytes),
            rate(*bytes_per_s),
            rate(*most_bytes_per_s),
            size(*needed_bytes)
        ),
        Doubt::Short { bytes, ns, needed_bytes } => format!(
            "cannot judge: {} were written in {}, which a cache may have taken; it takes {} or \
             more",
            ByteSize(*bytes),
            nanos(*ns),
            size(*needed_bytes)
        ),
    }
}

/// Bytes to write, as the flag that asks for them.
fn size(bytes: u64) -> String {
    format!("--size {}", whole_gib(bytes))
}

/// Rounded up, as `--size` takes it.
fn whole_gib(bytes: u64) -> String {
    format!("{}G", bytes.div_ceil(1 << 30))
}

/// What it comes to where the slow end of the surface is left out.
fn shares(lines: &mut Lines, verdict: &Verdict) {
    let of_share = |share: &Share| {
        let traffic = bits(verdict.mix.bits_of(share.guaranteed_bytes_per_s));
        let computed = if share.is_computed { ", computed" } else { "" };
        format!(
            "first {} % of the surface{computed}: guaranteed {}, {traffic}",
            share.percent,
            rate(share.guaranteed_bytes_per_s)
        )
    };
    // All of it is said already.
    let parts = verdict.shares.iter().filter(|share| share.percent < 100);
    parts.for_each(|share| lines.add("", &of_share(share)));
}

fn lost(lines: &mut Lines, verdict: &Verdict) {
    for lost in &verdict.lost {
        let members = plural(u64::from(lost.members), "member");
        lines.add(
            "",
            &match lost.guaranteed_bytes_per_s {
                Some(guaranteed) => format!(
                    "{members} lost and replaced: guaranteed {}, {}{}",
                    rate(guaranteed),
                    bits(verdict.mix.bits_of(guaranteed)),
                    match lost.rebuild_ns {
                        Some(ns) => format!("; rebuilt in {}", nanos(ns)),
                        None => String::new(),
                    }
                ),
                None => format!("{members} lost: what it holds is lost as well"),
            },
        );
    }
}

fn judged(judged: &Judged) -> String {
    let order = match judged.order {
        Order::FirstToLast => "first to last",
        Order::ZoneLevelled => "zones levelled",
    };
    let computed = if judged.is_computed { ", computed" } else { "" };
    let jump = judged.jump.map_or_else(String::new, |jump| format!(", {}", self::jump(jump)));
    format!(
        "{order} ({}{computed}): guaranteed {}, mean {}, slowest {}, pool {}{jump}",
        judged.basis,
        rate(judged.guaranteed_bytes_per_s),
        rate(judged.mean_bytes_per_s),
        rate(judged.minimum_bytes_per_s),
        ByteSize(judged.pool_bytes),
    )
}

/// What a jump was charged with, and how that is known.
pub(super) fn jump(jump: Jump) -> String {
    let took = nanos(jump.ns);
    match jump.by {
        JumpBy::Extents => format!("a jump {took} as measured by writing"),
        JumpBy::Reads => format!("a jump {took} as measured by reading"),
        JumpBy::Assumed => format!("a jump taken as {took}, not measured"),
    }
}

fn sweep(lines: &mut Lines, sweep: &Sweep) {
    let rates: Vec<u64> = sweep.steps.iter().map(::qualify::SweepStep::rate).collect();
    let done = if sweep.is_write { "written" } else { "read" };
    let bytes: u64 = sweep.steps.iter().map(|step| step.bytes).sum();
    let places = plural(u64::try_from(rates.len()).unwrap_or(u64::MAX), "place");
    lines.add(
        "sweep",
        &format!("{} {done} at {places}: {}", ByteSize(bytes), range(rates.iter().copied())),
    );
    lines.row(&rates);
}

fn fill(lines: &mut Lines, name: &str, fill: &Fill) {
    let rates: Vec<u64> = fill.rates().collect();
    let longest = fill.windows.iter().map(|window| window.latency_ns_max).max().unwrap_or(0);
    let verified = match fill.verified {
        Some(verified) if verified.wrong > 0 => {
            let (wrong, rows) = (verified.wrong, plural(verified.rows, "row"));
            format!("; {wrong} of {rows} READ BACK WRONG")
        }
        _ => String::new(),
    };
    lines.add(
        name,
        &format!(
            "{} in {}, {}; longest write {}{verified}",
            ByteSize(fill.bytes()),
            nanos(fill.ns()),
            range(rates.iter().copied()),
            nanos(longest),
        ),
    );
    lines.row(&rates);
    let mut shown = 0;
    let points = fill.curve.iter().filter(|point| {
        let is_new = point.bytes_per_s > shown + shown / 100;
        shown = shown.max(point.bytes_per_s);
        is_new && point.pool_bytes <= fill.bytes() / 20
    });
    let points: Vec<String> = points
        .map(|point| format!("{} {}", ByteSize(point.pool_bytes), rate(point.bytes_per_s)))
        .collect();
    if !points.is_empty() {
        lines.add("", &format!("guaranteed by pool: {}", points.join(", ")));
    }
}

fn passes(lines: &mut Lines, passes: &Passes) {
    let cause = match passes.cause {
        Cause::Steady => "the rate is steady",
        Cause::Place => "the rate follows the place on the surface",
        Cause::Amount => "the rate follows the bytes written, as with a cache that fills",
        Cause::Pass => "one pass was slower as a whole: heat, wear, or what was there before",
        Cause::Unknown => "the rate varies, and neither place nor amount explains it",
    };
    fill(lines, "passes", &passes.first);
    fill(lines, "", &passes.second);
    let second = percent(passes.second_to_first, 1000);
    lines.add("", &format!("{cause}; the second at {second} of the first"));
}

fn extents(lines: &mut Lines, extents: &Extents) {
    let rates: Vec<u64> = extents.steps.iter().map(::qualify::ExtentStep::rate).collect();
    let knee = match extents.knee_bytes {
        Some(knee) => format!("90 % of {} from {} on", rate(extents.bytes_per_s), ByteSize(knee)),
        None => "jumps cost nothing that can be seen".to_owned(),
    };
    let jump = nanos(extents.jump_ns);
    lines.add("extents", &format!("{}; a jump takes {jump}, {knee}", range(rates.iter().copied())));
    let steps = extents.steps.iter();
    let steps: Vec<String> = steps
        .map(|step| format!("{} {}", ByteSize(step.extent_bytes), rate(step.rate())))
        .collect();
    for steps in steps.chunks(4) {
        lines.add("", &steps.join(", "));
    }
}

fn latency(lines: &mut Lines, latency: &Latency) {
    lines.add(
        "latency",
        &format!(
            "{} offered for {}: {} waited at most, a pool that large is enough",
            rate(latency.offered_bytes_per_s),
            nanos(latency.ns),
            ByteSize(latency.backlog_bytes_max),
        ),
    );
    lines.add("", &format!("from arrival {}", quantiles(&latency.from_arrival)));
    lines.add("", &format!("of the device {}", quantiles(&latency.of_device)));
    lines.row(&counts(&latency.from_arrival));
}

fn mixed(lines: &mut Lines, mixed: &Mixed) {
    let Mixed { load, alone, beside, reads, latency, .. } = mixed;
    lines.add(
        "mixed",
        &format!(
            "{} written at {}; beside {} of {} in all and {} at random places a second at {}",
            ByteSize(alone.bytes()),
            rate(alone.rate()),
            plural(u64::from(load.streams), "reading stream"),
            rate(load.stream_bytes_per_s),
            plural(load.random_per_s, "read"),
            rate(beside.rate()),
        ),
    );
    lines.row(&beside.rates().collect::<Vec<u64>>());
    let (alone, beside) = (rate(mixed.alone_bytes_per_s), rate(mixed.beside_bytes_per_s));
    let pool = ByteSize(mixed.pool_bytes);
    lines.add("", &format!("guaranteed {alone} alone, {beside} beside them, pool {pool}"));
    lines.add(
        "",
        &format!(
            "streams got {}; random reads {}",
            rate(reads.stream_rate()),
            quantiles(&reads.random)
        ),
    );
    let offered = rate(latency.offered_bytes_per_s);
    let from_arrival = quantiles(&latency.from_arrival);
    lines.add("", &format!("writes at {offered} beside them: from arrival {from_arrival}"));
}

fn iops(lines: &mut Lines, iops: &Iops) {
    let peak = grouped(iops.peak());
    lines.add("iops", &format!("{peak} random writes of 4 KiB a second at most"));
    for step in &iops.steps {
        let (depth, writes) = (step.depth, grouped(step.writes_per_s()));
        let latency = quantiles(&step.latency);
        lines.add("", &format!("{depth} under way: {writes} a second; {latency}"));
    }
}

fn files(lines: &mut Lines, files: &Files) {
    let of = format!(
        "files of {} by {} in {}, the oldest removed at 90 %",
        ByteSize(files.file_bytes),
        plural(u64::from(files.writers), "writer"),
        ByteSize(files.budget_bytes),
    );
    lines.add("files", &of);
    for (lap, number) in files.laps.iter().zip(1..) {
        let extents = match (lap.extents, lap.extents_max) {
            (Some(extents), Some(most)) => {
                let tenths = extents * 10 / lap.files.max(1);
                format!("; {}.{} extents a file, {most} at most", tenths / 10, tenths % 10)
            }
            _ => String::new(),
        };
        let (bytes, took) = (ByteSize(lap.bytes), nanos(lap.ns));
        lines.add("", &format!("lap {number}: {} ({bytes} in {took}){extents}", rate(lap.rate())));
    }
    lines.row(&files.fill.rates().collect::<Vec<u64>>());
    if let Some((fio, first)) = files.fio.as_ref().zip(files.laps.first()) {
        let ours = percent(first.rate(), fio.rate());
        let version = printable(&fio.version);
        let said =
            format!("{version} beside it: {}; the first lap is {ours} of that", rate(fio.rate()));
        lines.add("", &said);
    }
}

fn cpu(lines: &mut Lines, cpu: &Cpu) {
    let steps = cpu.steps.iter().map(|step| {
        let parity = match step.parity_columns {
            0 => "checksums",
            1 => "and P",
            _ => "and P and Q",
        };
        format!("{parity} {}", nanos(step.ns_per_gb()))
    });
    let steps: Vec<String> = steps.collect();
    let columns = cpu.steps.first().map_or(0, |step| step.data_columns);
    let of = format!("of one processor for a gigabyte, {columns} data columns: ");
    lines.add("cpu", &(of + &steps.join(", ")));
}

fn reads(lines: &mut Lines, reads: &Reads) {
    lines.add(
        "reads",
        &format!(
            "{} of 4 KiB at random places: {}",
            plural(reads.latency.count(), "read"),
            quantiles(&reads.latency)
        ),
    );
    if let Some(ns) = reads.hit_ns_max {
        let share = percent(reads.cache_hits, reads.latency.count());
        lines.add("", &format!("{share} of them from a cache, within {}", nanos(ns)));
    }
    lines.row(&counts(&reads.latency));
}

/// Counts of equal steps on a logarithmic scale, empty ones in between.
fn counts(latencies: &Latencies) -> Vec<u64> {
    const STEPS_PER_DOUBLING: u32 = 2;
    let buckets: Vec<(u64, u64)> = latencies.buckets().collect();
    let step = |ns: u64| {
        let doubling = ns.max(2).ilog2();
        let within = (ns.max(2) >> (doubling - 1)) & 1;
        u64::from(doubling * STEPS_PER_DOUBLING) + within
    };
    let first = buckets.first().map_or(0, |(ns, _)| step(*ns));
    let mut counts = Vec::new();
    for (ns, count) in buckets {
        let at = usize::try_from(step(ns) - first).unwrap_or(0);
        counts.resize(counts.len().max(at + 1), 0);
        if let Some(sum) = counts.get_mut(at) {
            *sum += count;
        }
    }
    counts
}

fn quantiles(latencies: &Latencies) -> String {
    let shares = [(500_000, "p50"), (990_000, "p99"), (999_000, "p99.9"), (999_900, "p99.99")];
    let known = shares.into_iter().filter_map(|(share, name)| {
        Some(format!("{name} {}, ", nanos(latencies.quantile_ns(share)?)))
    });
    format!("{}longest {}", known.collect::<String>(), nanos(latencies.max_ns()))
}

pub(super) fn took(found: &Qualification) -> String {
    let written: u64 = found.written.iter().map(|range| range.end - range.start).sum();
    let begun = time(found.started);
    let own = found.written_bytes.map(|counted| counted.own);
    let written = match (written, found.target.kind) {
        (_, TargetKind::Model) => "no disk touched".to_owned(),
        (0, TargetKind::File | TargetKind::Device) => "nothing written".to_owned(),
        (_, TargetKind::OwnFile) => match own {
            Some(bytes) => format!("{} written, all to files of its own", ByteSize(bytes)),
            None => "only files of its own written".to_owned(),
        },
        (bytes, _) => {
            let ends = found.written.first().zip(found.written.last());
            let (low, high) = ends.map_or((0, 0), |(low, high)| (low.start, high.end));
            let (low, high) = (grouped(low), grouped(high));
            format!("{} written between byte {low} and {high}", ByteSize(bytes))
        }
    };
    let on_disk =
        found.written_bytes.and_then(|counted| counted.disk).zip(found.target.layers.first());
    let all = on_disk.filter(|_| own != Some(0)).map_or_else(String::new, |(bytes, layer)| {
        format!("; {} counted {}", layer.name, ByteSize(bytes))
    });
    let written = written + &all;
    let busy = found.meanwhile.map_or_else(Vec::new, |it| it.disturbances());
    let busy: Vec<String> = busy.iter().map(super::diff::disturbed).collect();
    let busy =
        if busy.is_empty() { String::new() } else { format!("; not alone: {}", busy.join("; ")) };
    let stopped = if found.is_interrupted { "; stopped before the end" } else { "" };
    format!("{} from {begun} UTC on; {written}{busy}{stopped}", nanos(found.ns))
}

/// From the largest to the smallest.
pub(super) fn range(rates: impl Iterator<Item = u64> + Clone) -> String {
    let (most, least) = (rates.clone().max().unwrap_or(0), rates.min().unwrap_or(0));
    format!("{} to {}", rate(most), rate(least))
}
