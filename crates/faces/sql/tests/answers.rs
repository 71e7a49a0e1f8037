//! What a query is answered over sessions of real length, in which types, and what is refused.
//!
//! The sessions are those of the small corpus, whose maker says what is in them: the answers are
//! held to its table, which no code of the engine or of ours has touched.

#![expect(clippy::unwrap_used, reason = "helpers may stop at once")]

use core::ops::ControlFlow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampNanosecondType};
use arrow_schema::{DataType, SchemaRef, TimeUnit};
use capture::{FileOptions, FileSource, Next, Source as _};
use format::head::{StripeId, VolumeId};
use format::session_row::PieceId;
use index::SegmentMeta;
use session::{Config, PacketView, Table};
use sql::{Error, Event, Report, Source, run};
use testdata::Corpus;
use units::{Epoch, ManualClock, Sequence, Timestamp};

const FILE: &str = "protocols.pcap";

/// The sessions of a capture as a Parquet file, and its rows in the maker's table.
struct Sessions {
    folder: tempfile::TempDir,
    stated: Vec<BTreeMap<String, String>>,
}

impl Sessions {
    fn new() -> Self {
        let small = Corpus::small();
        let text = fs::read_to_string(small.path().join("ref/tshark_sessions.tsv")).unwrap();
        let mut lines = text.lines().map(|line| line.split('\t').map(str::to_owned));
        let head: Vec<String> = lines.next().unwrap().collect();
        let rows = lines.map(|line| head.iter().cloned().zip(line).collect::<BTreeMap<_, _>>());
        let stated = rows.filter(|row| row["file"] == FILE).collect();
        let folder = tempfile::tempdir().unwrap();
        let parquet = parquet(&small.path().join("pcap").join(FILE));
        fs::write(folder.path().join("sessions.parquet"), parquet).unwrap();
        Self { folder, stated }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("sessions.parquet")
    }

    /// The maker's values of a column where it has any, in order.
    fn stated(&self, column: &str) -> Vec<String> {
        let values = self.stated.iter().map(|row| row[column].clone());
        let mut values: Vec<String> = values.filter(|value| !value.is_empty()).collect();
        values.sort();
        values
    }

    fn ask(&self, text: &str) -> Answer {
        ask(&Source::Files(self.path()), text).unwrap()
    }

    fn refused(&self, text: &str) -> String {
        match ask(&Source::Files(self.path()), text) {
            Err(Error::Query(error)) => error.render(),
            other => panic!("{text}: {:?}", other.map(|answer| answer.report)),
        }
    }
}

/// A capture's sessions as the indexer would write them.
fn parquet(capture: &Path) -> Vec<u8> {
    let mut source = FileSource::open(capture, FileOptions::default()).unwrap();
    let (mut table, mut rows) = (Table::new(Config::default(), 1), Vec::new());
    let mut begin = 0;
    loop {
        match source.next_batch(Duration::from_secs(1)).unwrap() {
            Next::Packets(batch) => {
                for packet in batch {
                    let view = PacketView {
                        timestamp: packet.timestamp,
                        interface: units::InterfaceId(packet.interface),
                        link_type: wire::LinkType::ETHERNET,
                        original_len: packet.original_len,
                        data: packet.head,
                        piece: PieceId { sequence: Sequence(0), sub: 0, column: 0 },
                        begin,
                        end: begin + 4,
                    };
                    begin += 4;
                    table.push_all([view], &mut rows);
                }
            }
            Next::End => break,
            Next::Block(_) | Next::Idle => {}
        }
    }
    table.finish(&mut rows);
    let id = StripeId { sequence: Sequence(1), sub: 0 };
    let meta = SegmentMeta {
        time_max: Timestamp(i64::MAX / 2),
        ..SegmentMeta::new(VolumeId([1; 16]), Epoch(1), id, id)
    };
    index::encode(&meta, &rows).unwrap().parquet
}

/// All of an answer.
struct Answer {
    columns: SchemaRef,
    batches: Vec<RecordBatch>,
    report: Report,
}

fn ask(source: &Source, text: &str) -> Result<Answer, Error> {
    let (mut columns, mut batches) = (None, Vec::new());
    let clock = Arc::new(ManualClock::new(Timestamp(0)));
    let report = run(source, text, clock, &mut |event| {
        match event {
            Event::Columns(schema) => assert!(columns.replace(schema).is_none(), "they come once"),
            Event::Rows(batch) => batches.push(batch),
        }
        ControlFlow::Continue(())
    })?;
    Ok(Answer { columns: columns.expect("they come before rows"), batches, report })
}

impl Answer {
    /// A column of texts, absent values as none.
    fn texts(&self, at: usize) -> Vec<Option<String>> {
        let of = |batch: &RecordBatch| {
            let column = batch.column(at).as_string::<i32>().clone();
            column.iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>()
        };
        self.batches.iter().flat_map(of).collect()
    }

    fn number(&self) -> i64 {
        assert_eq!(self.report.rows, 1);
        let batch = self.batches.iter().find(|batch| batch.num_rows() == 1).unwrap();
        batch.column(0).as_primitive::<Int64Type>().value(0)
    }
}

/// The types that whoever shows an answer needs to know.
fn is_plain(data_type: &DataType) -> bool {
    match data_type {
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => zone.as_deref() == Some("UTC"),
        DataType::List(element) => is_plain(element.data_type()),
        plain => [
            DataType::Null,
            DataType::Boolean,
            DataType::Int32,
            DataType::Int64,
            DataType::UInt64,
            DataType::Float64,
            DataType::Utf8,
        ]
        .contains(plain),
    }
}

#[test]
fn every_column_of_an_answer_has_a_plain_type_and_so_have_its_rows() {
    let sessions = Sessions::new();
    let answer = sessions.ask("SELECT * FROM sessions");
    assert!(answer.columns.fields().len() > 60);
    for field in answer.columns.fields() {
        assert!(is_plain(field.data_type()), "{field:?}");
    }
    assert!(answer.batches.iter().all(|batch| batch.schema() == answer.columns));
    let rows: usize = answer.batches.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows, sessions.stated.len());
    assert_eq!(answer.report.rows, u64::try_from(rows).unwrap());
}

#[test]
fn what_the_engine_computes_comes_in_plain_types_too() {
    let sessions = Sessions::new();
    let cases = [
        ("CAST(7 AS SMALLINT)", DataType::Int32),
        ("CAST(7 AS BIGINT)", DataType::Int64),
        ("CAST(7 AS BIGINT UNSIGNED)", DataType::UInt64),
        ("CAST(1.5 AS DECIMAL(10, 2))", DataType::Float64),
        ("CAST(1.5 AS REAL)", DataType::Float64),
        ("1 = 1", DataType::Boolean),
        ("NULL", DataType::Null),
        ("'text'", DataType::Utf8),
        ("INTERVAL '1 day'", DataType::Utf8),
        ("DATE '2026-11-26'", DataType::Utf8),
        ("max(start_ns)", DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()))),
    ];
    for (text, expected) in cases {
        let answer = sessions.ask(&format!("SELECT {text} FROM sessions"));
        assert_eq!(*answer.columns.field(0).data_type(), expected, "{text}");
        assert!(answer.report.rows > 0, "{text}");
    }
    let dates = sessions.ask("SELECT DATE '2026-11-26'").texts(0);
    assert_eq!(dates, [Some("2026-11-26".to_owned())]);
    let halves = sessions.ask("SELECT CAST(1.5 AS DECIMAL(10, 2))");
    assert_eq!(halves.batches[0].column(0).as_primitive::<Float64Type>().values(), &[1.5]);
}

#[test]
fn sessions_are_those_that_were_made_with_their_counts_and_times() {
    let sessions = Sessions::new();
    let count = |name: &str| -> i64 {
        sessions.stated(name).iter().map(|text| text.parse::<i64>().unwrap()).sum()
    };
    let sum =
        |text: &str| sessions.ask(&format!("SELECT CAST({text} AS BIGINT) FROM sessions")).number();
    assert_eq!(sum("sum(orig_packets) + sum(resp_packets)"), count("pkts"));
    assert_eq!(sum("sum(orig_frame_bytes) + sum(resp_frame_bytes)"), count("frame_bytes"));
    let tcp = sessions.stated.iter().filter(|row| row["proto"] == "6").count();
    assert_eq!(sum("count(*) FILTER (WHERE proto = 6)"), i64::try_from(tcp).unwrap());
    let nanos = |text: &String| text.replace('.', "").parse::<i64>().unwrap();
    let lives = sessions.stated.iter().map(|row| nanos(&row["last"]) - nanos(&row["first"]));
    assert_eq!(sum("sum(duration_ns)"), lives.sum::<i64>());
    let starts = sessions.ask("SELECT start_ns FROM sessions ORDER BY start_ns");
    let of = |batch: &RecordBatch| {
        batch.column(0).as_primitive::<TimestampNanosecondType>().values().to_vec()
    };
    let starts: Vec<i64> = starts.batches.iter().flat_map(of).collect();
    assert!(starts.into_iter().eq(sessions.stated("first").iter().map(nanos)));
}

#[test]
fn a_name_that_nobody_said_is_null_and_not_an_empty_text() {
    let sessions = Sessions::new();
    let names = sessions.ask("SELECT sni FROM sessions ORDER BY sni NULLS LAST").texts(0);
    let said: Vec<String> = names.iter().flatten().cloned().collect();
    assert_eq!(said, sessions.stated("sni"));
    assert_eq!(names.len() - said.len(), sessions.stated.len() - said.len());
    assert!(said.iter().all(|name| !name.is_empty()));
    // They are counted, compared and joined as absent values are.
    let empty = sessions.ask("SELECT count(*) FROM sessions WHERE sni = ''").number();
    let other = sessions.ask("SELECT count(*) FROM sessions WHERE sni <> 'x'").number();
    let absent = sessions.ask("SELECT count(*) FROM sessions WHERE sni IS NULL").number();
    assert_eq!(empty, 0);
    assert_eq!(other, i64::try_from(said.len()).unwrap());
    assert_eq!(other + absent, i64::try_from(sessions.stated.len()).unwrap());
    // Of columns that are numbers, too: only TLS tells a version.
    let versions = sessions.ask("SELECT count(*) - count(tls_version) FROM sessions").number();
    assert!(versions > 0 && versions < i64::try_from(sessions.stated.len()).unwrap());
}

#[test]
fn a_query_only_reads() {
    let sessions = Sessions::new();
    let before = fs::read(sessions.path()).unwrap();
    let copy = sessions.folder.path().join("copy.parquet");
    let copied = format!("COPY sessions TO '{}'", copy.display());
    let written = [
        "INSERT INTO sessions SELECT * FROM sessions",
        "UPDATE sessions SET sni = 'x'",
        "DELETE FROM sessions",
        "DROP TABLE sessions",
        "CREATE TABLE mine AS SELECT 1",
        "CREATE VIEW mine AS SELECT 1",
        "CREATE EXTERNAL TABLE mine STORED AS CSV LOCATION '/etc/passwd'",
        "SET datafusion.execution.batch_size = 1",
        &copied,
    ];
    for text in written {
        assert_eq!(sessions.refused(text), "a query only reads: write SELECT", "{text}");
    }
    assert!(!copy.exists());
    assert_eq!(fs::read(sessions.path()).unwrap(), before);
}

#[test]
fn a_query_of_many_terms_is_answered_or_refused_in_one_line() {
    let sessions = Sessions::new();
    for (term, join) in [("1", "+"), ("orig_ip = 'a'", " OR "), ("sni LIKE 'x%'", " AND ")] {
        let text =
            format!("SELECT count(*) FROM sessions WHERE ({}) IS NULL", [term; 1000].join(join));
        assert!(sessions.ask(&text).number() >= 0, "1000 times {term}");
        let refused = sessions.refused(&vec![term; 5000].join(join));
        assert!(refused.contains("4999 operators, of at most 4000") && !refused.contains('\n'));
    }
    // Of a long query the part around a mistake is shown.
    let refused = sessions.refused(&format!("SELECT {} snii FROM sessions", "sni,".repeat(1000)));
    assert!(refused.len() < 700 && refused.contains("snii FROM"), "{refused}");
    // Signs in texts are none.
    let list = vec!["'1:a+/b='' and c'"; 5000].join(",");
    let list = format!("SELECT count(*) FROM sessions WHERE sni IN ({list})");
    assert_eq!(sessions.ask(&list).number(), 0);
}

#[test]
fn a_file_is_read_only_as_the_source_that_was_named() {
    let sessions = Sessions::new();
    let other = sessions.folder.path().join("other.csv");
    fs::write(&other, "a,b\n1,2\n").unwrap();
    let text = format!("SELECT * FROM '{}'", other.display());
    assert!(sessions.refused(&text).contains("there is no table"), "{}", sessions.refused(&text));
}

#[test]
fn a_wrong_query_is_told_with_its_place_and_what_was_meant() {
    let sessions = Sessions::new();
    let cases = [
        (
            "SELECT snii FROM sessions",
            "there is no column \"snii\" (line 1, column 8); did you mean \"sni\"?\n  \
             SELECT snii FROM sessions\n         ^",
        ),
        (
            "SELECT 1 FROM session",
            "there is no table \"session\" (tables: sessions) (line 1, column 15); \
             did you mean \"sessions\"?\n  SELECT 1 FROM session\n                ^",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(sessions.refused(text), expected);
    }
    for (text, place) in [
        ("SELECT FROM WHERE", "line 1"),
        ("SELECT 1,\n  nonsense(2) FROM sessions", "nonsense"),
        ("SELECT sni FROM sessions a, sessions b", "sni"),
        ("", ""),
    ] {
        let said = sessions.refused(text);
        assert!(said.contains(place), "{text}: {said}");
        assert!(!said.contains("datafusion") && !said.contains("DataFusion"), "{said}");
    }
}

#[test]
fn who_has_seen_enough_gets_no_more() {
    let sessions = Sessions::new();
    let clock = Arc::new(ManualClock::new(Timestamp(0)));
    let source = Source::Files(sessions.path());
    // A billion rows, none of which waits to be wanted.
    let text =
        "SELECT 1 FROM sessions a, sessions b, sessions c, sessions d, sessions e, sessions f";
    let mut batches = 0;
    let report = run(&source, text, clock, &mut |event| match event {
        Event::Columns(_) => ControlFlow::Continue(()),
        Event::Rows(_) => {
            batches += 1;
            ControlFlow::Break(())
        }
    });
    assert!(batches == 1 && report.unwrap().rows <= 8192);
    let clock = Arc::new(ManualClock::new(Timestamp(0)));
    let report = run(&source, text, clock, &mut |_| ControlFlow::Break(()));
    assert_eq!(report.unwrap().rows, 0, "it was over with its columns");
}

#[test]
fn folders_of_files_are_one_table_and_their_names_are_columns() {
    let sessions = Sessions::new();
    let root = sessions.folder.path().join("export");
    for day in ["2026-11-25", "2026-11-26"] {
        let folder = root.join(format!("day={day}"));
        fs::create_dir_all(&folder).unwrap();
        fs::copy(sessions.path(), folder.join("part.parquet")).unwrap();
        fs::write(folder.join("notes.txt"), "not read").unwrap();
    }
    let source = Source::Files(root);
    let all = ask(&source, "SELECT count(*) FROM sessions").unwrap().number();
    assert_eq!(all, 2 * i64::try_from(sessions.stated.len()).unwrap());
    let one = ask(&source, "SELECT count(*) FROM sessions WHERE day = '2026-11-26'").unwrap();
    assert_eq!(2 * one.number(), all);
}

#[test]
fn what_is_no_parquet_file_is_an_error_and_no_empty_answer() {
    let folder = tempfile::tempdir().unwrap();
    let said = |path: &Path| {
        let source = Source::Files(path.to_owned());
        ask(&source, "SELECT 1 FROM sessions").err().expect("no answer").to_string()
    };
    assert_eq!(said(folder.path()), "no Parquet file is there");
    let broken = folder.path().join("broken.parquet");
    fs::write(&broken, b"PAR1 and nothing that follows from it").unwrap();
    let broken = said(&broken);
    assert!(broken.lines().count() == 1 && !broken.is_empty(), "{broken}");
    let cut = Sessions::new();
    let bytes = fs::read(cut.path()).unwrap();
    fs::write(cut.path(), &bytes[..bytes.len() / 2]).unwrap();
    assert!(!said(&cut.path()).is_empty());
}

#[test]
fn what_is_no_volume_answers_nothing_not_even_what_needs_no_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stranger");
    fs::write(&path, vec![7; 8 << 20]).unwrap();
    let options = extract::Options { volume: path, ..extract::Options::default() };
    let answered = ask(&Source::Volume(options), "SELECT 1");
    assert!(matches!(answered, Err(Error::Volume(_))));
}
