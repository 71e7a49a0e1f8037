//! What a browser gets: the page, a session of its own, and the answers that the page shows.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use base64::Engine as _;
use serde_json::Value;

use super::{Served, find};
use crate::machine::{Volume, run};

pub(super) const HEADING: &str = "X-Wirespool: 1";

/// The cookie of an answer as a request sends it.
#[track_caller]
pub(super) fn cookie(answer: &super::Answer) -> String {
    let given = answer.headers.get("set-cookie").expect("a cookie");
    assert!(given.contains("HttpOnly") && given.contains("SameSite=Strict"), "{given}");
    format!("Cookie: {}", given.split(';').next().unwrap())
}

#[test]
fn the_page_comes_without_a_credential_and_loads_nothing_from_elsewhere() {
    let served = Served::over(Volume::recorded());
    let page = served.get("/", "").ok();
    assert!(page.headers["content-type"].starts_with("text/html"));
    let policy = &page.headers["content-security-policy"];
    for word in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"] {
        assert!(policy.contains(word), "{policy}");
    }
    assert!(page.text().contains("app.js"));
    let script = served.get("/app.js", "").ok();
    assert!(script.body.len() > 10_000, "the page was not built: {} bytes", script.body.len());
    let known = format!("If-None-Match: {}", script.headers["etag"]);
    let again = served.ask("GET /app.js", "", &[&known]);
    assert_eq!((again.status, again.body.len()), (304, 0));
    served.ask("POST /", "", &[]).is_refused(405, "wrong-method");
    served.get("/app.js.map", "").is_refused(401, "no-credential");
}

#[test]
fn a_browser_shows_its_token_once_and_is_let_in_until_it_leaves_or_the_token_is_revoked() {
    let served = Served::over(Volume::recorded());
    let token = served.token("anna", "sessions");
    let ask = |what: &str, cookie: &str| served.ask(what, "", &[cookie, HEADING]);
    served.ask("POST /api/v1/login", &token, &[]).is_refused(400, "wrong-parameter");
    served.ask("POST /api/v1/login", "wirespool_x", &[HEADING]).is_refused(401, "no-credential");
    let login = served.ask("POST /api/v1/login", &token, &[HEADING]).ok();
    let cookie_of_login = cookie(&login);
    let caller = login.json();
    assert_eq!((&caller["name"], &caller["scopes"][0]), (&"anna".into(), &"sessions".into()));
    assert_eq!(caller["volumes"][0]["name"], "volume");
    let page = ask("GET /api/v1/sessions?limit=1", &cookie_of_login).ok();
    assert_eq!(page.json()["count"], 1);
    // It permits what the token does.
    ask("GET /api/v1/extract", &cookie_of_login).is_refused(403, "no-scope");
    // It makes no other session, and a token that is shown counts before it.
    ask("POST /api/v1/login", &cookie_of_login).is_refused(401, "no-credential");
    let both = served.ask("GET /api/v1/whoami", "wirespool_x", &[&cookie_of_login]);
    both.is_refused(401, "no-credential");
    let other = cookie(&served.ask("POST /api/v1/login", &token, &[HEADING]).ok());
    ask("POST /api/v1/logout", &cookie_of_login).ok();
    ask("GET /api/v1/whoami", &cookie_of_login).is_refused(401, "no-credential");
    ask("GET /api/v1/whoami", &other).ok();
    fs::write(served.volume.file("tokens"), "").unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    ask("GET /api/v1/whoami", &other).is_refused(401, "no-credential");
}

#[test]
fn a_summary_is_what_find_sums_up() {
    let served = Served::over(Volume::recorded());
    let token = served.token("reader", "sessions");
    for (query, field, by) in [("", "resp_port", "bytes"), ("port 53", "app", "sessions")] {
        let asked = query.replace(' ', "+");
        let path = format!("/api/v1/summary?query={asked}&fields={field}&limit=5&by={by}");
        let summary = served.get(&path, &token).ok().json();
        let words = [query, "--top", field, "--by", by, "--limit", "5"];
        let expected = find(&served, &words);
        let expected: Vec<Value> =
            expected.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let values = summary["top"][0]["values"].as_array().unwrap();
        assert!(!values.is_empty() && values.len() == expected.len(), "{summary}");
        for (value, expected) in values.iter().zip(&expected) {
            for key in ["value", "sessions", "packets", "bytes"] {
                assert_eq!(value[key], expected[key], "{key} of {value}");
            }
            // The query of a value finds what it counts.
            let condition = value["query"].as_str().unwrap();
            let both = if query.is_empty() {
                condition.to_owned()
            } else {
                format!("({query}) and {condition}")
            };
            let found = find(&served, &[&both]).lines().count();
            assert_eq!(value["sessions"], found, "{both}");
        }
        let found = find(&served, &[query]);
        assert_eq!(summary["total"]["sessions"], found.lines().count());
        let buckets = summary["traffic"]["buckets"].as_array().unwrap();
        let of_bucket = |bucket: &Value| -> u64 {
            bucket[1].as_array().unwrap().iter().map(|bytes| bytes.as_u64().unwrap()).sum()
        };
        let bytes: u64 = buckets.iter().map(of_bucket).sum();
        assert_eq!(summary["total"]["bytes"], bytes);
        assert_eq!(summary["statement"]["state"], "complete", "{summary}");
    }
    for (wrong, word) in [
        ("fields=prot", "did you mean proto"),
        ("fields=country", "database"),
        ("by=weight", "bytes or packets or sessions"),
        ("over_time=weight", "bytes or packets or sessions"),
        ("series=prot", "did you mean proto"),
        ("series=country", "database"),
        ("limit=1001", "1000"),
    ] {
        let refused = served.get(&format!("/api/v1/summary?{wrong}"), &token);
        refused.is_refused(400, "wrong-parameter");
        assert!(refused.json()["detail"].as_str().unwrap().contains(word), "{refused:?}");
    }
}

#[test]
fn traffic_over_time_adds_up_to_the_values_of_any_field() {
    let served = Served::over(Volume::recorded());
    let token = served.token("reader", "sessions");
    for (field, measure) in [("resp_port", "bytes"), ("dns_names", "packets"), ("app", "sessions")]
    {
        let path = format!("/api/v1/summary?fields={field}&limit=1000&by={measure}");
        let path = format!("{path}&series={field}&over_time={measure}");
        let summary = served.get(&path, &token).ok().json();
        let traffic = &summary["traffic"];
        let sum = |series: usize| -> u64 {
            let buckets = traffic["buckets"].as_array().unwrap().iter();
            buckets.map(|bucket| bucket[1][series].as_u64().unwrap()).sum()
        };
        let queries = traffic["queries"].as_array().unwrap();
        let sums: Vec<u64> = (0..queries.len()).map(sum).collect();
        let total = summary["total"][measure].as_u64().unwrap();
        assert_eq!(sums.iter().sum::<u64>(), total, "{summary}");
        let values = summary["top"][0]["values"].as_array().unwrap();
        for (query, sum) in queries.iter().zip(sums) {
            let value = values.iter().find(|value| value["query"] == *query);
            let expected = match value {
                Some(value) => value[measure].as_u64().unwrap(),
                None if *query == format!("not has {field}") => {
                    summary["top"][0]["absent"][measure].as_u64().unwrap()
                }
                // All others, whatever they are.
                None => {
                    assert!(query.is_null(), "{summary}");
                    continue;
                }
            };
            // A session with several values counts for one of them.
            let is_shared = field == "dns_names" && value.is_some();
            assert!(sum == expected || (is_shared && sum < expected), "{query}: {summary}");
        }
    }
}

#[test]
fn pages_of_the_newest_sessions_are_those_of_the_oldest_backwards() {
    let served = Served::over(Volume::recorded());
    let token = served.token("reader", "sessions");
    let all = find(&served, &["tcp or udp"]);
    let mut expected: Vec<Value> =
        all.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Sessions of one start stay in the order of the ring.
    expected.sort_by_key(|session| std::cmp::Reverse(session["start_ns"].as_i64().unwrap()));
    for limit in [1, 7, 10_000] {
        let (mut cursor, mut rows) = (String::new(), Vec::new());
        while rows.len() < 40 {
            let path = "/api/v1/sessions?query=tcp+or+udp&order=newest";
            let page = served.get(&format!("{path}&limit={limit}{cursor}"), &token).ok().json();
            rows.extend(page["sessions"].as_array().unwrap().clone());
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert!(rows.len() >= expected.len().min(40));
        assert_eq!(rows, expected[..rows.len()], "by {limit}");
    }
}

#[test]
fn packets_that_are_shown_are_those_of_an_extract() {
    let served = Served::over(Volume::recorded());
    let token = served.token("analyst", "payload");
    let sessions = find(&served, &["tcp or udp"]);
    let first: Value = serde_json::from_str(sessions.lines().next().unwrap()).unwrap();
    let id = first["session_id"].as_str().unwrap();
    let path = format!("/api/v1/packets?query=session_id+{id}");
    let answer = served.get(&path, &token).ok().json();
    let packets = answer["packets"].as_array().unwrap();
    let count = |key: &str| first[key].as_u64().unwrap_or_default();
    let of_session = count("orig_packets") + count("resp_packets");
    assert_eq!(u64::try_from(packets.len()).unwrap(), of_session);
    let lengths: u64 = packets.iter().map(|packet| packet["length"].as_u64().unwrap()).sum();
    assert_eq!(lengths, count("orig_frame_bytes") + count("resp_frame_bytes"));
    let file = served.volume.file("one.pcapng");
    let fixed = ["extract", &served.volume.path, "--index-dir", &served.volume.index];
    run(&[&fixed[..], &[&format!("session_id {id}"), "-w", &file]].concat());
    let written = fs::read(&file).unwrap();
    let mut ends: BTreeMap<&str, u64> = BTreeMap::new();
    for packet in packets {
        let data = packet["data"].as_str().unwrap();
        let data = base64::engine::general_purpose::STANDARD.decode(data).unwrap();
        assert_eq!(packet["captured"], data.len());
        assert_eq!(packet["link_type"], 1, "Ethernet, as the traffic is");
        assert!(written.windows(data.len()).any(|bytes| bytes == data), "{packet}");
        let (at, len) = (packet["payload_at"].as_u64(), packet["payload_len"].as_u64().unwrap());
        assert!(at.unwrap_or_default() + len <= packet["length"].as_u64().unwrap(), "{packet}");
        *ends.entry(packet["source"].as_str().unwrap()).or_default() += 1;
    }
    let orig = format!("{}:{}", first["orig_ip"].as_str().unwrap(), count("orig_port"));
    assert_eq!(ends.get(&*orig), Some(&count("orig_packets")), "{ends:?}");
    let few = served.get(&format!("{path}&limit=1"), &token).ok().json();
    assert_eq!((&few["count"], &few["statement"]["cut_by"]), (&1.into(), &"limit".into()));
}

#[test]
fn a_filter_holds_on_every_path_whatever_is_asked() {
    let served = Served::over(Volume::recorded());
    let file = served.volume.file("tokens");
    let words = ["serve", "token", "create", "lab", "--scope", "sessions,payload,extract"];
    let filter = ["--filter", "port 53", "--token-file", &file];
    let token = run(&[&words[..], &filter].concat()).done().out.trim().to_owned();
    let wrong = ["--filter", "hsot x", "--token-file", &file];
    run(&[&["serve", "token", "create", "b"], &wrong[..]].concat()).fails_with(2, "no query");
    std::thread::sleep(Duration::from_millis(1100));
    let inside = find(&served, &["port 53"]).lines().count();
    let all = find(&served, &[""]).lines().count();
    assert!(inside > 0 && inside < all);
    for (query, expected) in
        [("", inside), ("tcp+or+udp", inside), ("not+port+53", 0), ("port+443", 0)]
    {
        let page = served.get(&format!("/api/v1/sessions?query={query}"), &token).ok().json();
        assert_eq!(page["count"], expected, "{query}");
        let note = page["statement"]["notes"][0].as_str().unwrap();
        assert!(note.ends_with("matches port 53"), "{note}");
        let summary = served.get(&format!("/api/v1/summary?query={query}"), &token).ok().json();
        assert_eq!(summary["total"]["sessions"], expected, "{query}");
        let shown = served.get(&format!("/api/v1/packets?query={query}"), &token).ok().json();
        let extract = served.get(&format!("/api/v1/extract?query={query}"), &token).ok();
        let id = &extract.headers["wirespool-answer"];
        let known = served.get(&format!("/api/v1/answers/{id}"), &token).ok().json();
        for count in [&shown["count"], &known["count"]] {
            assert_eq!(count.as_u64().unwrap() > 0, expected > 0, "{query}: {count}");
        }
    }
    // A parenthesis too many does not lead out of it.
    let out = served.get("/api/v1/sessions?query=port+443)+or+(port+443", &token);
    out.is_refused(400, "wrong-query");
    let who = served.get("/api/v1/whoami", &token).ok().json();
    assert_eq!(who["filter"], "port 53");
}
