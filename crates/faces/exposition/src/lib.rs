//! The page that Prometheus scrapes: recorders and volumes as `status --json` prints them, and the
//! service itself, in the text form 0.0.4 of the exposition format.
//!
//! Counters are of a recording: they begin at 0 with each, as Prometheus expects of a process.

use core::fmt::Write as _;
use std::collections::BTreeMap;

use serde_json::Value;
use units::number::real;

/// Requests to one endpoint that were answered with one status.
#[derive(Clone, Debug)]
pub struct Answered {
    /// Path of the endpoint.
    pub endpoint: &'static str,
    /// Status of HTTP.
    pub status: u16,
    /// How many.
    pub count: u64,
    /// Nanoseconds from each to the last byte of its answer, in sum.
    pub took_ns: u64,
    /// Bytes of the answers.
    pub bytes: u64,
}

/// What a service counts of itself.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Requests by endpoint and status.
    pub answered: Vec<Answered>,
    /// Connections that are open.
    pub connections: usize,
    /// Requests that a process answers now, as many as may be, and as many of one credential.
    pub workers: (usize, usize, usize),
    /// Requests that wait, and credentials whose requests wait or are answered.
    pub queue: (usize, usize),
    /// Requests that found no room in the queue, by whose room it was.
    pub refused: [(&'static str, u64); 2],
    /// Idle connections that made room for others.
    pub pushed_out: u64,
    /// Handshakes of TLS that failed or took too long.
    pub bad_handshakes: u64,
    /// Lines of the log beyond its rate.
    pub lines_left_out: u64,
    /// Lines of the audit; `None` where there is none.
    pub audit_lines: Option<u64>,
}

/// A page under construction: families by name, with their samples.
#[derive(Debug, Default)]
pub struct Page {
    families: BTreeMap<&'static str, Family>,
}

#[derive(Debug)]
struct Family {
    kind: &'static str,
    help: &'static str,
    samples: Vec<String>,
}

type Labels<'a> = &'a [(&'a str, &'a str)];

/// Name, kind and meaning of a family.
type About = (&'static str, &'static str, &'static str);

/// Counters of an interface in the account of a recording: key, family, meaning.
const COUNTED: [(&str, &str, &str); 8] = [
    ("offered", "wirespool_packets_offered_total", "Packets that arrived and passed the filter"),
    ("stored", "wirespool_packets_stored_total", "Packets that are durable"),
    ("cut", "wirespool_packets_cut_total", "Packets left out by a traffic class"),
    ("copies", "wirespool_packets_copies_total", "Packets left out as copies of the one before"),
    ("filter_rejects", "wirespool_packets_filtered_total", "Packets that the filter refused"),
    ("too_long", "wirespool_packets_truncated_total", "Packets stored truncated: too long"),
    ("ring_freezes", "wirespool_kernel_ring_full_total", "Times that the kernel ring was full"),
    ("times_down", "wirespool_interface_down_total", "Times that the interface went down"),
];

/// Losses by cause.
const LOST: [(&str, &str); 3] = [
    ("kernel_drops", "kernel_ring_full"),
    ("writer_drops", "pool_exhausted"),
    ("interface_drops", "interface"),
];

/// Single numbers of a recording: key, family, kind, meaning, and by what the number is divided.
const NUMBERS: [(&str, &str, &str, &str, f64); 9] = [
    ("pool_columns", "wirespool_pool_columns", "gauge", "Columns of the packet buffer", 1.0),
    ("pool_columns_free", "wirespool_pool_columns_free", "gauge", "Columns that are free", 1.0),
    ("member_bytes", "wirespool_written_bytes_total", "counter", "Bytes written to members", 1.0),
    (
        "unindexed",
        "wirespool_unindexed_packets",
        "gauge",
        "Stored packets without rows: how far the index is behind",
        1.0,
    ),
    (
        "left_out",
        "wirespool_poison_packets",
        "gauge",
        "Packets that ended the indexer twice and have no rows",
        1.0,
    ),
    (
        "indexer_deaths",
        "wirespool_indexer_deaths_total",
        "counter",
        "Times that the indexer ended by itself",
        1.0,
    ),
    ("elapsed_ns", "wirespool_recording_seconds", "gauge", "Time since the recording began", 1e9),
    (
        "holds_ns",
        "wirespool_reach_back_seconds",
        "gauge",
        "How far back the ring reaches at the present rate",
        1e9,
    ),
    ("epoch", "wirespool_volume_epoch", "gauge", "Openings of the volume for writing", 1.0),
];

const TAKEN_BACK: About = (
    "wirespool_hand_overs_taken_back_total",
    "counter",
    "Hand-overs to another recorder that stored nothing, so that this one went on",
);

/// Of each device: key, family, kind, meaning, divisor.
const OF_DEVICES: [(&str, &str, &str, &str, f64); 5] = [
    ("writes", "wirespool_member_writes_total", "counter", "Writes to the member", 1.0),
    ("bytes", "wirespool_member_written_bytes_total", "counter", "Bytes written to it", 1.0),
    ("slow_writes", "wirespool_member_slow_writes_total", "counter", "Writes over the limit", 1.0),
    (
        "max_ns",
        "wirespool_member_write_latency_max_seconds",
        "gauge",
        "Longest write since the recording began",
        1e9,
    ),
    (
        "slower_than_qualified",
        "wirespool_member_slower_than_qualified_total",
        "counter",
        "Stretches of full load below the guaranteed rate",
        1.0,
    ),
];

const QUANTILES: [(&str, &str); 3] = [("p50_ns", "0.5"), ("p99_ns", "0.99"), ("p99_9_ns", "0.999")];
/// Words of `status` for a member.
const MEMBER_STATES: [&str; 5] = ["whole", "stale", "left out", "absent", "vacant"];

impl Page {
    fn add(&mut self, about: About, labels: Labels<'_>, value: f64) {
        self.add_as(about.0, about, labels, value);
    }

    fn add_as(&mut self, sample: &str, about: About, labels: Labels<'_>, value: f64) {
        let (name, kind, help) = about;
        let family = self.families.entry(name);
        let family = family.or_insert(Family { kind, help, samples: Vec::new() });
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        family.samples.push(format!("{sample}{labels} {value}"));
    }

    /// Adds a volume and its recorder; `None` where its superblocks cannot be read.
    pub fn volume(&mut self, volume: &str, state: Option<&Value>) {
        const READABLE: &str = "1 when the volume's superblocks can be read";
        const RECORDER: &str = "1 while a recorder of the volume answers";
        const WHOLE: &str = "1 while no member is absent or lacks something";
        let labels = [("volume", volume)];
        let is_readable = flag(state.is_some());
        self.add(("wirespool_volume_readable", "gauge", READABLE), &labels, is_readable);
        let Some(state) = state else { return };
        let is_recording = flag(state.get("interfaces").is_some());
        self.add(("wirespool_recorder_up", "gauge", RECORDER), &labels, is_recording);
        let is_whole = state.get("is_whole").and_then(Value::as_bool).unwrap_or(false);
        self.add(("wirespool_volume_whole", "gauge", WHOLE), &labels, flag(is_whole));
        self.members(volume, list(state.get("members")));
        for (key, name, kind, help, divisor) in NUMBERS {
            if let Some(value) = state.get(key).and_then(Value::as_f64) {
                self.add((name, kind, help), &labels, value / divisor);
            }
        }
        let handed = state.get("hand_over").and_then(|it| it.get("times_taken_back"));
        if let Some(times) = handed.and_then(Value::as_f64) {
            self.add(TAKEN_BACK, &labels, times);
        }
        for account in list(state.get("interfaces")) {
            self.interface(volume, account);
        }
        if let Some(disks) = state.get("disks") {
            self.disks(volume, disks);
        }
    }

    fn members(&mut self, volume: &str, members: &[Value]) {
        const STATE: &str = "1 for the state that the member is in";
        const LACKS: &str = "Bytes that the member lacks until it is resilvered";
        for (number, member) in (0_u64..).zip(members) {
            let number = number.to_string();
            let is_in = member.get("state").and_then(Value::as_str).unwrap_or_default();
            for word in MEMBER_STATES {
                let shown = word.replace(' ', "_");
                let labels = [("volume", volume), ("member", &*number), ("state", &*shown)];
                let about = ("wirespool_member_state", "gauge", STATE);
                self.add(about, &labels, flag(word == is_in));
            }
            let labels = [("volume", volume), ("member", &*number)];
            let lacks = member.get("stale_bytes").and_then(Value::as_f64).unwrap_or(0.0);
            self.add(("wirespool_member_stale_bytes", "gauge", LACKS), &labels, lacks);
        }
    }

    fn interface(&mut self, volume: &str, account: &Value) {
        const LOST_PACKETS: &str = "Packets that were lost";
        const IN_FLIGHT: &str = "Packets that are taken and not durable yet";
        const UP: &str = "0 while the interface is down or gone";
        let name = account.get("name").and_then(Value::as_str).unwrap_or("(files)");
        let labels = [("volume", volume), ("interface", name)];
        for (key, family, help) in COUNTED {
            // What is not known has no sample: it is not 0.
            if let Some(count) = account.get(key).and_then(Value::as_f64) {
                self.add((family, "counter", help), &labels, count);
            }
        }
        for (key, cause) in LOST {
            if let Some(count) = account.get(key).and_then(Value::as_f64) {
                let labels = [("volume", volume), ("interface", name), ("cause", cause)];
                let about = ("wirespool_packets_lost_total", "counter", LOST_PACKETS);
                self.add(about, &labels, count);
            }
        }
        let in_flight = account.get("in_flight").and_then(Value::as_f64).unwrap_or(0.0);
        self.add(("wirespool_packets_in_flight", "gauge", IN_FLIGHT), &labels, in_flight);
        let is_away = account.get("is_away").and_then(Value::as_bool).unwrap_or(false);
        self.add(("wirespool_interface_up", "gauge", UP), &labels, flag(!is_away));
    }

    fn disks(&mut self, volume: &str, disks: &Value) {
        const GUARANTEED: &str = "Rate that the disks guarantee";
        const OFFERED: &str = "Rate that is offered to them";
        const LATENCY: &str = "Time of a write, by quantile of the recording";
        let labels = [("volume", volume)];
        if let Some(headroom) = disks.get("headroom") {
            let number = |key| headroom.get(key).and_then(Value::as_f64).unwrap_or(0.0);
            let about = ("wirespool_guaranteed_bytes_per_second", "gauge", GUARANTEED);
            self.add(about, &labels, number("guaranteed_bytes_per_s"));
            let about = ("wirespool_offered_bytes_per_second", "gauge", OFFERED);
            self.add(about, &labels, number("offered_bytes_per_s"));
        }
        for device in list(disks.get("devices")) {
            let member = device.get("member").and_then(Value::as_u64);
            let member = member.map_or_else(|| "spare".to_owned(), |member| member.to_string());
            let labels = [("volume", volume), ("member", &*member)];
            for (key, name, kind, help, divisor) in OF_DEVICES {
                if let Some(value) = device.get(key).and_then(Value::as_f64) {
                    self.add((name, kind, help), &labels, value / divisor);
                }
            }
            for (key, quantile) in QUANTILES {
                let labels = [("volume", volume), ("member", &*member), ("quantile", quantile)];
                let value = device.get(key).and_then(Value::as_f64).unwrap_or(0.0) / 1e9;
                let about = ("wirespool_member_write_latency_seconds", "gauge", LATENCY);
                self.add(about, &labels, value);
            }
        }
    }

    /// Adds what a service counts of itself.
    pub fn service(&mut self, counts: &Counts) {
        const COUNT: &str = "Requests that were answered";
        const TIME: &str = "Time from a request to the last byte of its answer";
        const BYTES: &str = "Bytes of answers";
        for Answered { endpoint, status, count, took_ns, bytes } in &counts.answered {
            let status = status.to_string();
            let labels = [("endpoint", *endpoint), ("status", &*status)];
            let count = real(*count);
            self.add(("wirespool_http_requests_total", "counter", COUNT), &labels, count);
            let about = ("wirespool_http_request_seconds", "summary", TIME);
            let took = real(*took_ns) / 1e9;
            self.add_as("wirespool_http_request_seconds_sum", about, &labels, took);
            self.add_as("wirespool_http_request_seconds_count", about, &labels, count);
            let bytes = real(*bytes);
            self.add(("wirespool_http_sent_bytes_total", "counter", BYTES), &labels, bytes);
        }
        let count = |count: usize| units::number::real_usize(count);
        let (running, most, most_each) = counts.workers;
        let (waiting, credentials) = counts.queue;
        let gauges = [
            ("wirespool_http_connections", "Connections that are open", count(counts.connections)),
            ("wirespool_workers", "Requests that a process answers", count(running)),
            ("wirespool_workers_most", "As many may be", count(most)),
            ("wirespool_workers_most_each", "As many of one credential", count(most_each)),
            ("wirespool_queue_requests", "Requests that wait", count(waiting)),
            ("wirespool_queue_credentials", "Credentials in places and queue", count(credentials)),
        ];
        for (name, help, value) in gauges {
            self.add((name, "gauge", help), &[], value);
        }
        let counters = [
            (
                "wirespool_http_pushed_out_total",
                "Idle connections that made room for others",
                real(counts.pushed_out),
            ),
            (
                "wirespool_tls_failed_handshakes_total",
                "Handshakes that failed or took too long",
                real(counts.bad_handshakes),
            ),
            (
                "wirespool_log_lines_left_out_total",
                "Lines of the log beyond its rate",
                real(counts.lines_left_out),
            ),
        ];
        for (name, help, value) in counters {
            self.add((name, "counter", help), &[], value);
        }
        let refused = "Requests beyond the room in the queue";
        for (room, count) in counts.refused {
            let of = ("wirespool_queue_refused_total", "counter", refused);
            self.add(of, &[("room", room)], real(count));
        }
        if let Some(lines) = counts.audit_lines {
            let about = ("wirespool_audit_lines_total", "counter", "Lines of the audit");
            self.add(about, &[], real(lines));
        }
    }

    /// The text of the page.
    pub fn finish(self) -> String {
        let mut text = String::new();
        for (name, Family { kind, help, samples }) in self.families {
            // Writing to a string does not fail.
            let _infallible = writeln!(text, "# HELP {name} {help}.\n# TYPE {name} {kind}");
            for sample in samples {
                let _infallible = writeln!(text, "{sample}");
            }
        }
        text
    }
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn flag(is_so: bool) -> f64 {
    if is_so { 1.0 } else { 0.0 }
}

/// The value of a label, which may be anybody's name.
fn escaped(value: &str) -> String {
    page::safe::printable(value).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_recording_is_told_by_interface_and_cause_and_what_is_unknown_has_no_sample() {
        let account = json!({"name": "eth\"0\n", "offered": 10, "stored": 7, "kernel_drops": 2,
            "writer_drops": 1, "interface_drops": null, "in_flight": 0, "is_away": true});
        let state = json!({"is_whole": false, "members": [{"state": "left out", "stale_bytes": 5}],
            "interfaces": [account], "pool_columns": 8, "holds_ns": 1_500_000_000_u64,
            "disks": {"devices": [{"member": 0, "writes": 3, "p99_ns": 2_000_000}]}});
        let mut page = Page::default();
        page.volume("v", Some(&state));
        page.volume("w", None);
        let text = page.finish();
        for line in [
            "wirespool_packets_lost_total{volume=\"v\",interface=\"eth\\\"0\\\\n\",\
             cause=\"kernel_ring_full\"} 2",
            "wirespool_interface_up{volume=\"v\",interface=\"eth\\\"0\\\\n\"} 0",
            "wirespool_member_state{volume=\"v\",member=\"0\",state=\"left_out\"} 1",
            "wirespool_member_state{volume=\"v\",member=\"0\",state=\"whole\"} 0",
            "wirespool_reach_back_seconds{volume=\"v\"} 1.5",
            "wirespool_member_write_latency_seconds{volume=\"v\",member=\"0\",quantile=\"0.99\"} \
             0.002",
            "wirespool_recorder_up{volume=\"v\"} 1",
            "wirespool_volume_readable{volume=\"w\"} 0",
            "# TYPE wirespool_packets_lost_total counter",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} in\n{text}");
        }
        assert!(!text.contains("cause=\"interface\""), "unknown is not 0");
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            assert!(
                line.starts_with("wirespool_")
                    && line.rsplit(' ').next().unwrap().parse::<f64>().is_ok()
            );
        }
    }

    /// Every name of ours in a text.
    fn names(text: &str) -> impl Iterator<Item = &str> {
        let is_end = |character: char| !(character.is_ascii_lowercase() || character == '_');
        let name = move |(at, _)| text.get(at..).and_then(|rest| rest.split(is_end).next());
        text.match_indices("wirespool_").filter_map(name)
    }

    #[test]
    fn alerts_and_dashboard_name_only_metrics_that_are_given() {
        let own = include_str!("lib.rs");
        let rules = include_str!("../../../../contrib/prometheus/wirespool.rules.yml");
        let tests = include_str!("../../../../contrib/prometheus/wirespool.tests.yml");
        let dashboard = include_str!("../../../../contrib/grafana/wirespool.json");
        for text in [rules, tests, dashboard] {
            let count = names(text).count();
            assert!(count > 20, "{count}");
            for name in names(text) {
                assert!(own.contains(&format!("\"{name}\"")), "{name}");
            }
        }
        // Each alert is tried, with its cause and without.
        for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
            let tried = format!("ALERTS{{alertname=\"{alert}\"");
            assert_eq!(tests.matches(&tried).count(), 2, "{alert}");
        }
        serde_json::from_str::<Value>(dashboard).unwrap();
    }
}
