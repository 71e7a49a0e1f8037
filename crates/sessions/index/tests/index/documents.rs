//! docs/sessions.md against the files that are written.

use bytes::Bytes;
use index::encode;
use parquet::basic::Repetition;
use parquet::file::reader::FileReader as _;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::schema::types::Type;

use crate::examples::meta;

/// The type as the document writes it.
fn type_name(column: &Type) -> String {
    let leaf = |leaf: &Type| match leaf.get_physical_type() {
        parquet::basic::Type::BYTE_ARRAY => "STRING".to_owned(),
        other => other.to_string(),
    };
    let repetition = column.get_basic_info().repetition();
    if column.is_group() {
        format!("LIST of {}", leaf(&column.get_fields()[0].get_fields()[0]))
    } else if column.name() == "start_ns" {
        "TIMESTAMP(NANOS, UTC)".to_owned()
    } else {
        let optional = if repetition == Repetition::OPTIONAL { ", optional" } else { "" };
        leaf(column) + optional
    }
}

#[test]
fn the_documented_columns_are_those_of_the_file() {
    let bytes = Bytes::from(encode(&meta(), &[]).unwrap().parquet);
    let reader = SerializedFileReader::new(bytes).unwrap();
    let metadata = reader.metadata().file_metadata();
    let columns: Vec<(String, String)> = metadata
        .schema()
        .get_fields()
        .iter()
        .map(|column| (column.name().to_owned(), type_name(column)))
        .collect();
    let documented: Vec<(String, String)> = include_str!("../../../../../docs/sessions.md")
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| {
            let (name, rest) = line.split_once("` | ")?;
            Some((name.to_owned(), rest.split_once(" |")?.0.to_owned()))
        })
        .collect();
    assert_eq!(columns, documented);
    assert_eq!(metadata.created_by(), Some("wirespool"));
}
