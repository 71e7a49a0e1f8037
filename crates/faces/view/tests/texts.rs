//! Texts of others, as the fuzzer has them: manifests, logs, and what recorders say.

#[path = "../../../../fuzz/src/seeds.rs"]
mod seeds;
#[path = "../../../../fuzz/src/texts.rs"]
#[expect(unreachable_pub, reason = "it is the library of the fuzz targets, too")]
mod target;

use std::path::Path;

fn each(folder: &str, run: fn(&[u8])) {
    for seed in seeds::of(folder, 4) {
        run(&seed);
    }
}

#[test]
fn manifests_of_the_fuzzer_are_read_or_refused() {
    each("manifest", target::manifest);
}

#[test]
fn logs_of_the_fuzzer_are_read_or_refused() {
    each("log_lines", target::log);
}

#[test]
fn recorders_of_the_fuzzer_are_shown_or_refused() {
    let states = seeds::of("recorder_state", 4);
    assert!(states.iter().filter(|state| target::recorder(state)).count() >= 4);
}

#[test]
fn what_is_deep_long_or_out_of_range_is_refused() {
    let deep = "[".repeat(100_000);
    let eve = |rest: &str| {
        format!(r#"{{"timestamp":"2026-11-20T10:40:22.000000+0000","event_type":"alert"{rest}}}"#)
    };
    let ends = r#","src_ip":"10.0.0.1","dest_ip":"10.0.0.2","proto":"TCP""#;
    for line in [
        eve(&format!(r#","alert":{deep}"#)),
        eve(&format!("{ends},\"src_port\":1e999,\"dest_port\":-1")),
        eve(ends).replace("2026-11-20T10:40:22.000000+0000", "9999-12-31T23:59:60.999999999-9959"),
        eve(ends).replace("2026-11-20T10:40:22.000000+0000", "0000-01-01T00:00:00+0000"),
        eve(ends).replace("2026", &"9".repeat(1 << 20)),
        r#"{"ts":NaN,"id.orig_h":"10.0.0.1","id.resp_h":"10.0.0.2"}"#.to_owned(),
        r#"{"ts":1e308,"id.orig_h":"10.0.0.1","id.resp_h":"10.0.0.2"}"#.to_owned(),
        r#"{"ts":-9223372036.854775808,"id.orig_h":"10.0.0.1","id.resp_h":"10.0.0.2"}"#.to_owned(),
        r#"{"ts":9223372036.854775807,"id.orig_h":"::1","id.resp_h":"::2"}"#.to_owned(),
        "#fields\tts\tid.orig_h\tid.resp_h\n99999999999999999999\t::\t::".to_owned(),
        format!("#fields\t{}\n{}", "ts\t".repeat(100_000), "1\t".repeat(100_000)),
    ] {
        target::log(line.as_bytes());
    }
}

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
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wirespool/tests/data");
    let text = std::fs::read_to_string(path.join("qualification.json")).unwrap();
    let given = |has_usable| qualify::Given {
        zones: None,
        extent_bytes: None,
        has_usable,
        data_members: 3,
    };
    let values = ["0", "-1", "1", "18446744073709551615", "9223372036854775807", "1e308", "65535"];
    let mut chosen = 0;
    let count = with_other_numbers(&text, &values, |changed| {
        let Ok(found) = qualify::parse_qualification(changed) else { return };
        for has_usable in [false, true] {
            chosen += usize::from(qualify::choose(&found, given(has_usable), [0; 16]).is_some());
        }
    });
    assert!(count > 20 && chosen > count, "{chosen} choices by {count} numbers");
}
