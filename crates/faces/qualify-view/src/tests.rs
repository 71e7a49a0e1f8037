use ::qualify::{
    Answer, Asked, Cause, Cpu, CpuStep, CurvePoint, Diff, Doubt, Drive, ExtentStep, Extents,
    FileLap, Files, Fill, FioRun, GroupLimit, Iops, IopsStep, Judged, Jump, JumpBy, Latencies,
    Latency, Layer, LimitOf, Lost, Meanwhile, Mix, Mixed, Need, Order, Part, PartResult, Passes,
    Qualification, ReadLoad, ReadResult, Reads, Sample, Share, SlowWrite, Sweep, SweepStep, Target,
    TargetKind, Trace, Unread, Verdict, Verified, Window, WithReaders, parse_qualification,
    proposals, typical,
};
use page::PlotStyle;
use units::Timestamp;

use super::{
    qualification, qualification_csv, qualification_diff, qualification_diff_json,
    qualification_html, qualification_json, qualification_svg, qualify_plan, qualify_plan_json,
};

fn latencies(values: impl Iterator<Item = u64>) -> Latencies {
    let mut latencies = Latencies::default();
    values.for_each(|value| latencies.add(value));
    latencies
}

fn fill() -> Fill {
    let window = |at: u64| Window {
        end_ns: (at + 1) * 1_000_000_000 + at * at * 100_000_000,
        bytes: 200_000_000,
        offset_low: at * 200_000_000,
        offset_high: (at + 1) * 200_000_000,
        latency_ns_max: 20_000_000 + at,
    };
    Fill {
        block_bytes: 2 << 20,
        depth: 8,
        windows: (0..8).map(window).collect(),
        samples: (0..8).map(|at| Sample { end_ns: at * 1_000_000_000, offset: at << 27 }).collect(),
        curve: vec![
            CurvePoint { pool_bytes: 16 << 20, bytes_per_s: 90_000_000 },
            CurvePoint { pool_bytes: 64 << 20, bytes_per_s: 95_000_000 },
        ],
        verified: Some(Verified { rows: 64, wrong: 0 }),
        trace: Trace::default(),
    }
}

fn judged() -> Judged {
    Judged {
        basis: Part::Fill,
        order: Order::FirstToLast,
        is_computed: false,
        is_by_reading: false,
        pool_bytes: 80 << 20,
        guaranteed_bytes_per_s: 95_000_000,
        mean_bytes_per_s: 140_000_000,
        minimum_bytes_per_s: 83_000_000,
        slow_ns: Some(6_000_000_000),
        fast_ns: Some(5_000_000_000),
        jump: None,
    }
}

fn mixed() -> Mixed {
    let reads = ReadResult {
        stream_bytes: 80_000_000,
        ns: 8_000_000_000,
        streams: latencies((1..=80).map(|value| value * 1_000_000)),
        random: latencies((1..=160).map(|value| value * 100_000)),
    };
    Mixed {
        load: ReadLoad { streams: 4, stream_bytes_per_s: 20_000_000, random_per_s: 20 },
        pool_bytes: 80 << 20,
        alone_bytes_per_s: 95_000_000,
        beside_bytes_per_s: 71_000_000,
        alone: fill(),
        beside: fill(),
        reads: reads.clone(),
        latency: Latency {
            offered_bytes_per_s: 57_000_000,
            from_arrival: latencies((1..=2000).map(|value| value * 10_000)),
            ..Latency::default()
        },
        reads_at_rate: reads,
    }
}

fn files() -> Files {
    let lap = |extents| FileLap {
        bytes: 7 << 30,
        ns: 10_000_000_000,
        files: 32,
        extents: Some(extents),
        extents_max: Some(extents / 8),
    };
    Files {
        budget_bytes: 8 << 30,
        file_bytes: 230 << 20,
        writers: 2,
        laps: vec![lap(40), lap(176)],
        fill: fill(),
        fio: Some(FioRun { version: "fio-3.33".to_owned(), bytes: 7 << 30, ns: 9_000_000_000 }),
    }
}

fn cpu_step(parity_columns: u32) -> CpuStep {
    let cpu_ns = 100_000_000 + 50_000_000 * u64::from(parity_columns);
    CpuStep { data_columns: 6, parity_columns, bytes: 1_000_000_000, cpu_ns }
}

fn target() -> Target {
    let layer = Layer {
        name: "sdb".to_owned(),
        size_bytes: 8_000_000_000_000,
        model: Some("EXAMPLE 8000".to_owned()),
        serial: Some("ZA1\u{1b}[2J".to_owned()),
        is_rotational: true,
        ..Layer::default()
    };
    Target {
        kind: TargetKind::Device,
        path: "/dev/sdb".to_owned(),
        size_bytes: 8_000_000_000_000,
        layers: vec![layer],
        is_in_memory: false,
        limits: Vec::new(),
    }
}

fn share() -> Share {
    Share {
        percent: 90,
        size_bytes: 7_200_000_000_000,
        order: Order::ZoneLevelled,
        is_computed: true,
        guaranteed_bytes_per_s: 101_000_000,
        mean_bytes_per_s: 150_000_000,
        minimum_bytes_per_s: 91_000_000,
    }
}

fn lost() -> Vec<Lost> {
    let (guaranteed, rebuild_ns) = (Some(94_000_000), Some(90_000_000_000_000));
    vec![
        Lost { members: 1, guaranteed_bytes_per_s: guaranteed, rebuild_ns },
        Lost { members: 2, guaranteed_bytes_per_s: None, rebuild_ns: None },
    ]
}

fn verdict() -> Verdict {
    let asked = Asked {
        bits_per_s: 1_000_000_000,
        needed_bytes_per_s: 128_000_000,
        margin_permille: -258,
        answer: Answer::TooSlow,
    };
    Verdict {
        judged: vec![judged()],
        pool_bytes: 1 << 30,
        mix: Mix::named("640").unwrap(),
        guaranteed_traffic_bit_per_s: 742_000_000,
        with_readers: Some(WithReaders {
            pool_bytes: 80 << 20,
            read_bytes_per_s: 10_000_000,
            reads_per_s: 20,
            guaranteed_bytes_per_s: 71_000_000,
            guaranteed_traffic_bit_per_s: 555_000_000,
        }),
        asked: Some(asked),
        shares: vec![share()],
        lost: lost(),
        doubts: Vec::new(),
    }
}

fn every_part() -> Qualification {
    let step =
        |at: u64| SweepStep { offset: at << 30, bytes: 1 << 30, ns: (4 + at) * 1_000_000_000 };
    let parts = vec![
        PartResult::Sweep(Sweep {
            is_write: true,
            block_bytes: 2 << 20,
            steps: (0..5).map(step).collect(),
            jump_ns: Some(9_000_000),
        }),
        PartResult::Fill(fill()),
        PartResult::Passes(Passes {
            first: fill(),
            second: fill(),
            cause: Cause::Place,
            by_place: 990,
            by_amount: -400,
            second_to_first: 1010,
        }),
        PartResult::Ring(fill()),
        PartResult::Extents(Extents {
            steps: vec![
                ExtentStep { extent_bytes: 1 << 20, extents: 8, ns: 100_000_000 },
                ExtentStep { extent_bytes: 64 << 20, extents: 8, ns: 100_000_000 },
            ],
            jump_ns: 9_000_000,
            bytes_per_s: 200_000_000,
            knee_bytes: Some(16 << 20),
        }),
        PartResult::Latency(Latency {
            offered_bytes_per_s: 80_000_000,
            ns: 10_000_000_000,
            block_bytes: 2 << 20,
            from_arrival: latencies((1..=2000).map(|value| value * 10_000)),
            of_device: latencies((1..=2000).map(|value| value * 5_000)),
            backlog_bytes_max: 6 << 20,
            slowest: vec![SlowWrite { latency_ns: 10_000_000, end_ns: 5, offset: 4096 }],
            eighths: Vec::new(),
        }),
        PartResult::Mixed(Box::new(mixed())),
        PartResult::Reads(Reads {
            latency: latencies((1..=1000).map(|value| 5_000_000 + value * 10_000)),
            cache_hits: 12,
            hit_ns_max: Some(200_000),
            eighths: Vec::new(),
        }),
        PartResult::Iops(Iops {
            steps: vec![IopsStep {
                depth: 64,
                ns: 1_000_000_000,
                latency: latencies((1..=1500).map(|value| value * 1000)),
                eighths: Vec::new(),
            }],
        }),
        PartResult::Files(files()),
        PartResult::Cpu(Cpu { steps: vec![cpu_step(0), cpu_step(2)] }),
    ];
    Qualification {
        target: target(),
        started: Timestamp(1_795_171_222_000_000_000),
        ns: 60_000_000_000,
        parts,
        verdict: Some(verdict()),
        written: vec![0..4096, 8192..16384],
        written_bytes: None,
        meanwhile: None,
        is_interrupted: false,
        unfinished: None,
        notes: vec!["buffered".to_owned()],
    }
}

/// Numbers of the schema: a file that is read again says the same.
#[test]
fn what_was_written_is_read_again() {
    let found = every_part();
    let text = qualification_json(&found);
    let again = parse_qualification(&text).unwrap();
    assert_eq!(qualification_json(&again), text);
    assert_eq!((again.target, again.verdict), (found.target, found.verdict));
    assert_eq!(again.parts.len(), 11);
}

#[test]
fn scripts_find_the_verdict_at_the_top() {
    let json: serde_json::Value = serde_json::from_str(&qualification_json(&every_part())).unwrap();
    assert_eq!(json["version"], 1);
    assert_eq!(json["guaranteed_bytes_per_s"], 95_000_000);
    assert_eq!(json["guaranteed_traffic_bit_per_s"], 742_000_000);
    assert_eq!(json["verdict"]["asked"]["answer"], "too_slow");
    assert_eq!(json["parts"][5]["part"], "latency");
    assert!(json["parts"][5]["from_arrival"]["p99_99_ns"].is_null(), "too few for that");
}

#[test]
fn other_files_and_other_versions_are_refused() {
    let error = |text: &str| parse_qualification(text).unwrap_err().to_string();
    assert!(error("{}").starts_with("not the file of a qualification: missing field `version`"));
    assert!(error("{\"version\": 2}").starts_with("a qualification of version 2; this program"));
    assert!(error("{\"version\": 1}").contains("missing field `target`"));
}

#[test]
fn a_summary_fits_its_terminal_and_cannot_steer_it() {
    let style = PlotStyle { width: 80, is_terminal: false };
    let text = qualification(&every_part(), style);
    for expected in [
        "verdict:       guarantees 742.00 Mbit/s of traffic (640, mean frame 640 bytes)\n",
        "1.00 Gbit/s need 128 MB/s: too slow by 25.8 %\n",
        "first to last (fill): guaranteed 95.0 MB/s, mean 140 MB/s,\n",
        "sweep:         5.00 GiB written at 5 places: 268 MB/s to 134 MB/s\n",
        "               #%*+=\n",
        "the rate follows the place on the surface; the second at 101.0 %\n",
        "a jump takes 9.0 ms, 90 % of 200 MB/s",
        "1.2 % of them from a cache, within 200.0 us\n",
        "with readers of 10.0 MB/s and 20 reads a second at random places:\n",
        "                 555.00 Mbit/s\n",
        "guaranteed 95.0 MB/s alone, 71.0 MB/s beside them, pool 80.0 MiB\n",
        "1 500 random writes of 4 KiB a second at most\n",
        "lap 2: 751 MB/s (7.00 GiB in 10.0 s); 5.5 extents a file, 22 at\n",
        "fio-3.33 beside it: 835 MB/s; the first lap is 89.9 % of that\n",
        "6 data columns: checksums\n",
        "12.0 KiB written",
        "serial ZA1\\u{1b}[2J",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    for line in text.lines() {
        assert!(line.len() <= 80, "{line}");
    }
}

fn limit() -> GroupLimit {
    GroupLimit {
        group: "/backup\u{1b}".to_owned(),
        file: "/sys/fs/cgroup/backup/io.max".to_owned(),
        disk: "sdb".to_owned(),
        is_write: true,
        of: LimitOf::Bytes,
        per_second: 5_000_000,
    }
}

fn doubted() -> Qualification {
    let mut found = every_part();
    found.target.limits = vec![limit()];
    let verdict = found.verdict.as_mut().unwrap();
    let (bytes, needed_bytes) = (12 << 30, 24 << 30);
    verdict.doubts = vec![
        Doubt::Limited { limit: limit() },
        Doubt::Step {
            bytes,
            before_bytes_per_s: 2_100_000_000,
            after_bytes_per_s: 180_000_000,
            needed_bytes,
        },
        Doubt::Cache { name: "vg-fast_cvol".to_owned(), bytes, needed_bytes: Some(needed_bytes) },
        Doubt::AboveDevice {
            bytes,
            bytes_per_s: 2_100_000_000,
            most_bytes_per_s: 600_000_000,
            needed_bytes,
        },
        Doubt::Memory,
        Doubt::Short { bytes, ns: 1_000_000_000, needed_bytes },
    ];
    let jump = Some(Jump { ns: 13_000_000, by: JumpBy::Reads });
    let order = Order::ZoneLevelled;
    verdict.judged.push(Judged { order, is_computed: true, jump, ..judged() });
    found
}

#[test]
fn what_a_guarantee_is_not_of_is_named_with_what_it_takes() {
    let found = doubted();
    let text = qualification(&found, PlotStyle { width: 300, is_terminal: false });
    for expected in [
        "               the control group /backup\\u{1b} limits writes to sdb to 5.00 MB/s\n",
        "verdict:       cannot judge the disk: the control group /backup\\u{1b} limits writes to \
         sdb to 5.00 MB/s; lift it (/sys/fs/cgroup/backup/io.max), or run outside of the group\n",
        "cannot judge beyond 12.0 GiB: there the rate falls from 2.10 GB/s to 180 MB/s, as behind \
         a cache that is full. The rate of the last part counts; write at least --size 24G to see",
        "cannot judge beyond 12.0 GiB: the write cache vg-fast_cvol may have taken all of it. The \
         rate behind it counts; write at least --size 24G\n",
        "2.10 GB/s is more than the 600 MB/s that the drives below can do at most",
        "pool 80.0 MiB, a jump 13.0 ms as measured by reading\n",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    let html = qualification_html(&found);
    for expected in [
        "Cannot judge the disk: the control group",
        "Cannot judge beyond 12.0 GiB",
        "a jump 13.0 ms as measured by reading",
    ] {
        assert!(html.contains(expected), "{expected}\n{html}");
    }
    let again = parse_qualification(&qualification_json(&found)).unwrap();
    assert_eq!((again.target, again.verdict), (found.target, found.verdict));
}

#[test]
fn a_narrow_terminal_has_whole_lines_that_begin_with_words() {
    let text = qualification(&doubted(), PlotStyle { width: 60, is_terminal: false });
    for line in text.lines() {
        assert!(line.chars().count() <= 60, "{line}");
        assert!(![": ", ", ", "; "].iter().any(|it| line.trim_start().starts_with(it)), "{line}");
        assert!(!line.contains("\\n"), "{line}");
        let words = line.trim_start().split(' ').next().unwrap_or_default();
        assert!(!["GB/s", "MB/s", "MB/s,", "Gbit/s", "MiB", "ms", "%"].contains(&words), "{line}");
    }
    let diff = Diff::of(&every_part(), &every_part(), 50);
    for line in qualification_diff(&diff, Some(60)).lines() {
        assert!(line.chars().count() <= 60, "{line}");
    }
}

#[test]
fn a_margin_of_many_times_is_no_percentage() {
    let mut found = every_part();
    let asked = found.verdict.as_mut().unwrap().asked.as_mut().unwrap();
    (asked.margin_permille, asked.answer) = (40_842_000, Answer::Fits);
    let text = qualification(&found, PlotStyle { width: 100, is_terminal: false });
    assert!(text.contains("it fits, with 40 843 times what is needed\n"), "{text}");
    let mut new = every_part();
    for part in &mut new.parts {
        if let PartResult::Extents(extents) = part {
            extents.jump_ns = 900_000_000;
        }
    }
    let text = qualification_diff(&Diff::of(&every_part(), &new, 50), Some(80));
    assert!(text.contains("100 times") && !text.contains("+9900"), "{text}");
}

/// Plots of a page with the counts of what is drawn in them.
fn drawn(html: &str) -> Vec<(String, Vec<u64>)> {
    let svgs = html.split("<svg ").skip(1);
    let of_svg = |svg: &str| {
        let svg = svg.split("</svg>").next().unwrap();
        let title = svg.split("</title>").next().unwrap().rsplit('>').next().unwrap();
        let counts = svg.split("data-points=\"").skip(1);
        let counts = counts.map(|rest| rest.split('"').next().unwrap().parse().unwrap());
        (title.to_owned(), counts.collect())
    };
    svgs.map(of_svg).collect()
}

#[test]
fn a_page_has_the_answer_all_plots_and_nothing_to_fetch() {
    let html = qualification_html(&every_part());
    for expected in [
        "<strong>It is too slow for 1.00 Gbit/s of this traffic.</strong>",
        "<dt>guaranteed</dt><dd>95.0 MB/s</dd>",
        "1.00 Gbit/s need 128 MB/s: 25.8 % are missing.",
        "<td class=\"n\">101 MB/s</td>",
        "what it holds is lost",
        "A cache answered 1.2 % of the reads",
        "ZA1\\u{1b}[2J",
        "content=\"default-src 'none'; style-src 'unsafe-inline'\"",
    ] {
        assert!(html.contains(expected), "{expected}\n{html}");
    }
    let plots = drawn(&html);
    let titles: Vec<&str> = plots.iter().map(|(title, _)| title.as_str()).collect();
    let expected = [
        "Rate over place",
        "Rate over time",
        "Guaranteed rate by pool",
        "Stalls",
        "Offset over time, first to last",
        "Offset over time, zones levelled",
        "Rate by the bytes between jumps",
        "Latency of writes",
        "Latency of writes beside readers",
        "Latency of random reads",
    ];
    assert_eq!(titles, expected);
    for (title, counts) in &plots {
        assert!(counts.iter().any(|count| *count > 1), "{title}: {counts:?}");
    }
    let of = |title: &str| &plots.iter().find(|(name, _)| name == title).unwrap().1;
    // Two fills and two passes of 8 windows at places, 5 steps of a sweep, and what is needed.
    assert_eq!(of("Rate over place"), &[8, 8, 8, 8, 5, 1]);
    assert_eq!(of("Offset over time, first to last"), &[8]);
    for never in ["<script", "http-equiv=\"refresh", "src=", "href=", "url(", "NaN", "inf"] {
        assert!(!html.contains(never), "{never}");
    }
    assert!(html.len() < 100_000, "{}", html.len());
}

#[test]
fn what_comes_from_a_disk_cannot_add_to_a_page() {
    let mut found = every_part();
    found.target.path = "/tmp/<img src=x onerror=alert(1)>&\"".to_owned();
    found.notes = vec!["</p><script>".to_owned()];
    found.target.layers[0].model = Some("<b>".to_owned());
    let html = qualification_html(&found);
    for never in ["<img", "<script", "<b>"] {
        assert!(!html.contains(never), "{never}");
    }
}

#[test]
fn a_page_says_how_the_drive_is_and_what_it_kept_to_itself() {
    let mut found = every_part();
    let unread = Unread { what: "SMART".to_owned(), needs: "it needs <root>".to_owned() };
    let drive = Drive { temperature_c: Some(38), unread: vec![unread], ..Drive::default() };
    found.target.layers.first_mut().unwrap().drive = Some(drive);
    let html = qualification_html(&found);
    assert!(html.contains("38 degrees Celsius.") && html.contains("What was seen: "), "{html}");
    assert!(html.contains("not read: SMART: it needs") && !html.contains("<root>"), "{html}");
}

#[test]
fn a_page_of_little_has_no_empty_plots() {
    let mut found = every_part();
    (found.parts, found.verdict) = (Vec::new(), None);
    let html = qualification_html(&found);
    assert!(html.contains("No part that was run says what rate it guarantees."));
    assert!(!html.contains("<svg") && !html.contains("<h2>Rates"));
    let Some(PartResult::Fill(mut fill)) = every_part().parts.into_iter().nth(1) else { panic!() };
    (fill.curve, fill.samples) = (Vec::new(), Vec::new());
    fill.windows.truncate(1);
    found.parts = vec![PartResult::Fill(fill)];
    let titles: Vec<String> =
        drawn(&qualification_html(&found)).into_iter().map(|(title, _)| title).collect();
    assert_eq!(titles, ["Rate over place", "Rate over time", "Stalls"]);
}

#[test]
fn the_largest_page_is_under_a_megabyte() {
    let step = |at: u64| SweepStep { offset: at << 20, bytes: 1 << 20, ns: 1_000_000 + at % 977 };
    let sample = |at: u64| Sample { end_ns: at << 20, offset: at << 30 };
    let mut found = every_part();
    for part in &mut found.parts {
        match part {
            PartResult::Sweep(sweep) => sweep.steps = (0..100_001).map(step).collect(),
            PartResult::Fill(fill) | PartResult::Ring(fill) => {
                fill.samples = (0..1100).map(sample).collect();
                let window = fill.windows[0];
                fill.windows = vec![window; 513];
            }
            _ => {}
        }
    }
    let len = qualification_html(&found).len();
    assert!(len < 1_000_000, "{len}");
}

#[test]
fn plots_stand_by_themselves_as_well() {
    let plots = qualification_svg(&every_part());
    assert_eq!(plots.len(), 10);
    for (name, svg) in plots {
        assert!(name.strip_suffix(".svg").is_some_and(|stem| !stem.contains([' ', '/', ','])));
        assert!(svg.starts_with("<svg xmlns") && svg.contains("prefers-color-scheme: dark"));
    }
}

#[test]
fn tables_have_a_heading_and_as_many_columns_in_every_row() {
    let tables = qualification_csv(&every_part());
    let names: Vec<&str> = tables.iter().map(|(name, _)| *name).collect();
    let expected = [
        "verdict.csv",
        "sweep.csv",
        "windows.csv",
        "samples.csv",
        "pools.csv",
        "extents.csv",
        "latencies.csv",
        "slowest.csv",
        "iops.csv",
        "files.csv",
        "cpu.csv",
    ];
    assert_eq!(names, expected);
    for (name, text) in &tables {
        let columns = text.lines().next().unwrap().split(',').count();
        assert!(text.lines().count() > 1, "{name}");
        assert!(text.lines().all(|line| line.split(',').count() == columns), "{name}");
    }
    // Seven runs of 8 windows.
    assert_eq!(tables[2].1.lines().count(), 57);
    assert!(tables[1].1.contains("\n0,1073741824,4000000000,268435456\n"), "{}", tables[1].1);
    assert!(tables[6].1.contains("\nwrite_of_device,"), "{}", tables[6].1);
}

#[test]
fn a_difference_names_what_changed() {
    let (old, mut new) = (every_part(), every_part());
    let verdict = new.verdict.as_mut().unwrap();
    verdict.judged[0].guaranteed_bytes_per_s = 85_000_000;
    new.target.layers[0].firmware = Some("2".to_owned());
    new.parts.retain(|part| part.part() != Part::Reads);
    let diff = Diff::of(&old, &new, 50);
    let text = qualification_diff(&diff, Some(80));
    for expected in [
        "firmware: ? before, 2 now\n",
        "guaranteed, fill, first to last  95.0 MB/s  85.0 MB/s  -10.5 %",
        "WORSE\n",
        "not compared: reads is only in the old one\n",
        "the guarantee fell by more than 5.0 %\n",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    let json: serde_json::Value = serde_json::from_str(&qualification_diff_json(&diff)).unwrap();
    assert_eq!(
        (&json["has_fallen"], &json["facts"][0]["name"]),
        (&true.into(), &"firmware".into())
    );
    let first = &json["compared"][0];
    assert_eq!((&first["what"], &first["change"]), (&"guaranteed".into(), &"worse".into()));
    assert_eq!(qualification_diff_json(&diff), include_str!("diff/frozen.json"));
    let same = Diff::of(&old, &old, 50);
    assert!(qualification_diff(&same, None).contains("did not fall by more than 5.0 %"));
    // Others were busy meanwhile.
    let stolen = Meanwhile { ns: 100, processors: 1, stolen_ns: 30, ..Meanwhile::default() };
    new.meanwhile = Some(stolen);
    let text = qualification_diff(&Diff::of(&old, &new, 50), Some(80));
    for expected in [
        "cannot tell\n",
        "disturbed now: the host of this machine gave 30.0 % of its processors to others\n",
        "cannot tell whether the guarantee fell: the machine was busy;",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
}

#[test]
fn a_plan_fits_its_terminal() {
    let need = Need {
        bits_per_s: 10_000_000_000,
        mean_bits_per_s: 1_000_000_000,
        days: 10,
        mix: Mix::named("640").unwrap(),
        pool_bytes: 4 << 30,
    };
    let disks = [typical("hdd-8tb").unwrap()];
    let found = proposals(&need, &disks, &[2], None);
    let text = qualify_plan(&need, &disks, &found, Some(80));
    let first = "10.00 Gbit/s of 640, mean frame 640 bytes, need 1.28 GB/s of disks, with a pool\n";
    for expected in [first, "10 days at a mean of 1.00 Gbit/s are 110.6 TB\n", "14+2", "  fits\n"] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    let table = text.lines().filter(|line| line.contains("hdd-8tb  ") || line.contains("margin"));
    assert!(table.clone().count() == 2 && table.into_iter().all(|line| line.len() <= 80), "{text}");
    let json = qualify_plan_json(&need, &disks, &found);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let proposal = &json["proposals"][0];
    assert_eq!((&proposal["fits"], &proposal["data_disks"]), (&true.into(), &14.into()));
    let few = proposals(&need, &disks, &[0], Some(2));
    let text = qualify_plan(&need, &disks, &few, None);
    assert!(text.contains("TOO SLOW, TOO SMALL\n") && text.ends_with("nothing of this fits\n"));
    let would = "hdd-8tb, 2: carries 3.1";
    assert!(text.contains(would) && text.contains(" of 10 days; 14 disks would do\n"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&qualify_plan_json(&need, &disks, &few)).unwrap();
    assert_eq!(json["proposals"][0]["enough"]["disks"], 14);
    let json = qualify_plan_json(&need, &disks, &[&found[..], &few[..]].concat());
    assert_eq!(json, include_str!("plan/frozen.json"));
    let narrow = qualify_plan(&Need { days: 30, ..need }, &disks, &few, Some(60));
    assert!(narrow.lines().all(|line| line.len() <= 60), "{narrow}");
}
