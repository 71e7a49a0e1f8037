use super::*;

/// Of each kind that is not harmless one, and what is harmless.
const HOSTILE: &[&str] = &[
    "\u{1b}]0;title\u{7}\u{1b}[2J",
    "\0\u{8}\t\r\n\u{7f}",
    "\u{85}\u{9b}31m\u{9f}",
    "\u{202e}gnp.exe\u{202c}",
    "\u{2066}\u{2067}\u{2068}\u{2069}\u{200e}\u{200f}\u{61c}",
    "a\u{200b}b\u{200d}c\u{feff}d\u{2060}e\u{ad}f",
    "\u{2028}\u{2029}\u{a0}\u{3000}",
    "e\u{301}\u{20dd}\u{fe0f}",
    "\u{3164}\u{115f}\u{ffa0}\u{34f}",
    "\u{e000}\u{fffe}\u{e0041}\u{10ffff}\u{fffd}",
    "<script>alert(1)</script>&amp;\"'",
    "]]><!--",
    "=cmd|' /C calc'!A0",
    "+1",
    "-1",
    "@SUM(A1)",
    "'=1",
    "''+",
    "'quoted'",
    "a,b\"c\"",
    "\\u{1b}\\u{5c}u{",
    "\\ \\\\ C:\\u",
    "b\u{fc}cher.example \u{2588}\u{b7} \u{5317}\u{4eac} \u{1f600} \u{20ac}",
];

fn all() -> impl Iterator<Item = String> {
    // Each, each twice in a row, and every character by itself.
    let doubled = HOSTILE.iter().map(|text| format!("{text}{text}"));
    let single = (0..=0x3_0000).chain(0xe_0000..=0x10_ffff).step_by(1);
    let single = single.filter_map(char::from_u32).map(String::from);
    HOSTILE.iter().map(|text| (*text).to_owned()).chain(doubled).chain(single)
}

fn steers(text: &str) -> bool {
    let is_bad = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(letter, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
            || matches!(letter, '\u{ad}' | '\u{34f}' | '\u{180e}' | '\u{e0000}'..='\u{e0fff}')
    };
    text.chars().any(is_bad)
}

#[test]
fn nothing_that_steers_or_hides_reaches_a_terminal() {
    for text in all() {
        for safe in [printable(&text), path(&text)] {
            assert!(!steers(&safe), "{text:?} as {safe:?}");
        }
        assert!(!steers(&lines(&text).replace('\n', "")), "{text:?}");
        assert!(!steers(&coloured_lines(&text).replace('\n', "")), "{text:?}");
    }
    assert_eq!(printable("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
    assert_eq!(printable("x\u{202e}y\n"), "x\\u{202e}y\\n");
    let harmless = "b\u{fc}cher.example \u{2588}\u{b7} \u{5317}\u{4eac} \u{20ac} \u{2013}";
    assert_eq!(printable(harmless), harmless);
}

#[test]
fn colours_stay_and_no_other_sequence_does() {
    let text = "\u{1b}[31mred\u{1b}[0m\n\u{1b}[2J\u{1b}[m\u{1b}[1;31m\u{1b}";
    let safe = coloured_lines(text);
    let expected = "\u{1b}[31mred\u{1b}[0m\n\\u{1b}[2J\u{1b}[m\\u{1b}[1;31m\\u{1b}";
    assert_eq!(safe, expected);
}

/// One row of cells as a reader of RFC 4180 takes them.
fn parsed(line: &str) -> Vec<String> {
    let (mut cells, mut cell, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cell.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(core::mem::take(&mut cell)),
            letter => cell.push(letter),
        }
    }
    cells.push(cell);
    cells
}

/// As docs/query.md says.
fn undone(cell: &str) -> String {
    let stripped = cell.strip_prefix('\'').filter(|rest| {
        let text = rest.trim_start_matches('\'');
        let first = text.strip_prefix("\\u{").map_or_else(
            || text.chars().next(),
            |hex| {
                let code = u32::from_str_radix(hex.split('}').next().unwrap(), 16);
                code.ok().and_then(char::from_u32)
            },
        );
        first.is_some_and(|first| "=+-@\t\r\n\u{ff1d}\u{ff0b}\u{ff0d}\u{ff20}".contains(first))
    });
    let mut text = String::new();
    let mut rest = stripped.unwrap_or(cell);
    while let Some((before, after)) = rest.split_once("\\u{") {
        let (hex, behind) = after.split_once('}').unwrap();
        text.push_str(before);
        text.push(char::from_u32(u32::from_str_radix(hex, 16).unwrap()).unwrap());
        rest = behind;
    }
    text + rest
}

#[test]
fn csv_comes_back_as_it_was_has_one_line_and_no_formula() {
    for text in all() {
        let line = format!("{},{},1", csv_cell(&text), csv_cell(&text));
        assert!(!steers(&line), "{text:?} as {line:?}");
        let cells = parsed(&line);
        assert_eq!(cells.len(), 3, "{line:?}");
        assert!(!cells[0].starts_with(['=', '+', '-', '@']), "{line:?}");
        assert_eq!(undone(&cells[0]), text, "{line:?}");
        assert_eq!(undone(&cells[1]), text, "{line:?}");
    }
    assert_eq!(csv_cell("www.example.com"), "www.example.com");
    assert_eq!(csv_cell("C:\\Windows"), "C:\\Windows");
    assert_eq!(csv_cell("=1+1"), "'=1+1");
}

#[test]
fn json_comes_back_as_it_was_and_stands_on_a_terminal() {
    for text in all() {
        let value = serde_json::json!({ text.as_str(): [text.as_str()] });
        for json in [json_line(&value), json_pretty(&value), json_part(&value)] {
            assert!(!steers(&json.replace('\n', "")), "{text:?} as {json:?}");
            let read: serde_json::Value = serde_json::from_str(&json).unwrap();
            assert_eq!(read, value);
        }
        assert_eq!(json_line(&value).matches('\n').count(), 1);
    }
}

#[test]
fn markup_has_no_element_and_no_end_of_an_attribute() {
    for text in all() {
        let safe = markup(&text);
        assert!(!safe.contains(['<', '>', '"', '\'']), "{text:?} as {safe:?}");
        assert!(!steers(&safe.replace('\u{202f}', "")), "{text:?} as {safe:?}");
        for (at, _) in safe.match_indices('&') {
            let entity = safe[at..].split_inclusive(';').next().unwrap();
            assert!(["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"].contains(&entity), "{safe:?}");
        }
    }
}
