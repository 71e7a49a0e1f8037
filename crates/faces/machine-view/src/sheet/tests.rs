use super::*;

fn sheet() -> Sheet {
    let columns =
        vec![SheetColumn::words("name", "NAME", 4, 0), SheetColumn::number("bytes", "BYTES", 0)];
    let line = |name: &str, bytes: Cell| SheetLine {
        cells: vec![Cell::Text(name.to_owned()), bytes],
        query: (name == "b").then(|| "host b".to_owned()),
    };
    let lines = vec![
        line("a", Cell::Bytes(1)),
        line("b", Cell::Absent),
        line("c\u{1b}[31m", Cell::Bytes(2048)),
    ];
    Sheet { columns, lines, notes: vec!["something was not seen".to_owned()], ..Sheet::default() }
}

fn names(sheet: &Sheet) -> Vec<String> {
    sheet.lines.iter().map(|line| line.cells[0].shown()).collect()
}

#[test]
fn numbers_go_down_words_up_and_what_is_absent_is_last_both_ways() {
    let mut sheet = sheet();
    sheet.sort(SheetOrder { column: 1, is_reversed: false });
    assert_eq!(names(&sheet), ["c\\u{1b}[31m", "a", "b"]);
    sheet.sort(SheetOrder { column: 1, is_reversed: true });
    assert_eq!(names(&sheet), ["a", "c\\u{1b}[31m", "b"]);
    sheet.sort(SheetOrder { column: 0, is_reversed: true });
    assert_eq!(names(&sheet), ["c\\u{1b}[31m", "b", "a"]);
}

#[test]
fn text_marks_the_order_and_escapes_what_came_from_outside() {
    let order = SheetOrder { column: 1, is_reversed: false };
    let (heading, lines) = sheet().shown(0..3, 40, Some(order));
    assert_eq!(heading, "NAME           BYTESv");
    assert_eq!(lines[2], "c\\u{1b}[31m  2.00 KiB");
    assert_eq!(
        sheet().text(1, None),
        "NAME  BYTES\na       1 B\nand 2 more\nsomething was not seen\n"
    );
}

#[test]
fn words_select_lines_that_have_all_of_them() {
    let mut sheet = sheet();
    sheet.keep("KiB C");
    assert_eq!(sheet.lines.len(), 1);
    sheet.keep("nothing");
    assert!(sheet.lines.is_empty());
}

#[test]
fn json_has_numbers_without_units_and_leaves_out_what_is_absent() {
    let text = sheets_json(7, [("talkers", "host", &sheet())]);
    let value: Value = serde_json::from_str(&text).unwrap();
    let lines = &value["tabs"]["talkers"]["host"]["lines"];
    assert_eq!(value["time_ns"], 7);
    assert_eq!(lines[0], json!({ "name": "a", "bytes": 1 }));
    assert_eq!(lines[1], json!({ "name": "b", "query": "host b" }));
}

#[test]
fn large_numbers_have_three_figures_and_a_prefix() {
    let shown = |bits| Cell::BitsPerSecond(bits).shown();
    assert_eq!(shown(0), "0 bit/s");
    assert_eq!(shown(999), "999 bit/s");
    assert_eq!(shown(1000), "1.0 kbit/s");
    assert_eq!(shown(12_345), "12.3 kbit/s");
    assert_eq!(shown(999_950_000), "1.0 Gbit/s");
    assert_eq!(shown(u64::MAX), "18446 Pbit/s");
    assert_eq!(Cell::Permille(125).shown(), "12.5 %");
    assert_eq!(Cell::Real(1.251).shown(), "1.25");
}
