//! Texts of others, as the fuzzer has them: manifests, logs, and what recorders say.

#[path = "../../../../fuzz/src/seeds.rs"]
mod seeds;
#[path = "../../../../fuzz/src/texts.rs"]
#[expect(unreachable_pub, reason = "it is the library of the fuzz targets, too")]
mod target;

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
