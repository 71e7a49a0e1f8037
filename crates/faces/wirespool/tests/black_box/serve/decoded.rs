//! Packets as tshark decodes them, in a process without rights.

use std::path::Path;

use super::Served;
use crate::machine::{Volume, run};

/// As Debian has it.
pub(super) const TSHARK: &str = "/usr/bin/tshark";

/// Whether it is installed here.
pub(super) fn has_tshark() -> bool {
    let is_there = Path::new(TSHARK).exists();
    if !is_there {
        println!("not run: no tshark");
    }
    is_there
}

#[test]
fn tshark_decodes_the_packets_that_are_shown() {
    if !has_tshark() {
        return;
    }
    let served = Served::with(Volume::recorded(), &["--tshark", TSHARK]);
    let token = served.token("reader", "sessions,payload");
    let get = |path: &str| served.get(&format!("/api/v1/{path}"), &token).ok().json();
    assert_eq!(get("whoami")["manages"]["decodes"], true);
    let shown = get("packets?query=port+53&limit=40");
    let shown = shown["packets"].as_array().unwrap();
    let lines = get("decode?query=port+53&limit=40");
    let listed = lines["xml"].as_str().unwrap();
    assert_eq!(lines["count"], shown.len());
    assert_eq!(listed.matches("<packet>").count(), shown.len(), "{listed}");
    assert!(listed.contains("<section>DNS</section>\n<section>Standard query"), "{listed}");
    for number in [1, shown.len()] {
        let time_ns = shown[number - 1]["time_ns"].as_i64().unwrap();
        let time = format!("{}.{:09}", time_ns / 1_000_000_000, time_ns % 1_000_000_000);
        let one = get(&format!("decode?query=port+53&packet={number}"));
        let pdml = one["xml"].as_str().unwrap();
        assert_eq!(pdml.matches("<packet>").count(), 1, "{pdml}");
        assert!(pdml.contains(&format!("value=\"{time}\"")), "{time} in {pdml}");
        assert!(pdml.contains("<proto name=\"dns\""), "{pdml}");
        assert_eq!(one["statement"]["state_within_limit"], "complete", "{one}");
    }
    assert_eq!(get("decode?query=port+53+and+port+54")["xml"], "");
    // More than tshark's filters can count.
    let far = served.get("/api/v1/decode?query=port+53&packet=4294967296", &token);
    far.is_refused(400, "wrong-parameter");
}

#[test]
fn who_may_not_see_packets_gets_none_decoded_and_what_fails_says_why() {
    let without = Served::over(Volume::recorded());
    let token = without.token("reader", "sessions,payload");
    let answer = without.get("/api/v1/decode?query=port+53", &token);
    answer.is_refused(404, "not-found");
    assert!(answer.text().contains("--tshark"), "{}", answer.text());
    let volume = Volume::recorded();
    let (path, file) = (volume.path.clone(), volume.file("tokens"));
    let words = ["serve", &path, "--token-file", &file, "--tshark", "/nonexistent/tshark"];
    drop(without);
    let served = Served::with(volume, &["--tshark", "/bin/false"]);
    let reader = served.token("sums", "sessions,extract,admin");
    served.get("/api/v1/decode?query=port+53", &reader).is_refused(403, "no-scope");
    let token = served.token("reader", "payload");
    let failed = served.get("/api/v1/decode?query=port+53", &token);
    failed.is_refused(500, "not-decoded");
    assert!(failed.text().contains("the program that decodes packets failed"), "{failed:?}");
    run(&words).is_refused("cannot open /nonexistent/tshark");
}
