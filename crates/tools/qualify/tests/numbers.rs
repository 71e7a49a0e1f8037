//! Files of qualifications that say any number: they are read or refused, and a layout is chosen
//! by what they say without a panic.

use std::path::Path;

use qualify::{Given, choose, parse_qualification};

/// Puts each of `values` in place of each number of a JSON text, in turn.
fn with_other_numbers(text: &str, values: &[&str], mut run: impl FnMut(&str)) -> usize {
    let is_number = |byte: u8| byte.is_ascii_digit() || byte == b'-' || byte == b'.';
    let (mut at, mut count, mut is_text) = (0, 0, false);
    while let Some(&byte) = text.as_bytes().get(at) {
        is_text ^= byte == b'"';
        let len = text[at..].bytes().take_while(|byte| is_number(*byte)).count();
        if is_text || len == 0 {
            at += 1;
            continue;
        }
        for value in values {
            run(&format!("{}{value}{}", &text[..at], &text[at + len..]));
        }
        count += 1;
        at += len;
    }
    count
}

#[test]
fn a_qualification_may_say_any_number() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../faces/wirespool/tests/data");
    let text = std::fs::read_to_string(path.join("qualification.json")).unwrap();
    let given = |has_usable| Given {
        zones: None,
        extent_bytes: None,
        has_usable,
        data_members: 3,
        member_bytes: None,
    };
    let values = ["0", "-1", "1", "18446744073709551615", "9223372036854775807", "1e308", "65535"];
    let mut chosen = 0;
    let count = with_other_numbers(&text, &values, |changed| {
        let Ok(found) = parse_qualification(changed) else { return };
        for has_usable in [false, true] {
            chosen += usize::from(choose(&found, given(has_usable), [0; 16]).is_some());
        }
    });
    assert!(count > 20 && chosen > count, "{chosen} choices by {count} numbers");
}
