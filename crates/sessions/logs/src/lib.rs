//! Logs of Suricata (EVE) and Zeek (tab-separated or JSON): which sessions they speak of.
//!
//! Text in, events out: nothing here opens a file or asks a volume. Called by the binary. And logs
//! that lie beside packets in blocks of pcapng, keys of TLS sessions and names of addresses
//! ([`Beside`]), for extracts.

mod beside;

use core::net::IpAddr;

use serde::Deserialize;
use serde_json::Value;
use units::number::to_u64;
use units::{NANOS_PER_SECOND, Timestamp};
use wire::{Address, CommunityId, FiveTuple, Protocol};

pub use beside::Beside;

/// An event in a log lies within this of its session's packets: clocks of two machines differ.
pub const MARGIN_NS: i64 = 60 * NANOS_PER_SECOND;

/// What a line of a log says of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogEvent {
    /// What it was: an alert's signature, a notice, the kind of event or the log's name.
    pub label: String,
    /// An alert of Suricata, or a notice of Zeek.
    pub is_alert: bool,
    /// Suricata's severity of an alert: 1 is the highest.
    pub severity: Option<u8>,
    /// Time of the event, or of the first packet of what it is about.
    pub time: Timestamp,
    /// Time of the last packet of what it is about, as far as the line says it; else the same.
    pub until: Timestamp,
    /// Community id, where the log has it.
    pub community_id: Option<String>,
    /// Both ends, with ports, and the protocol in small letters.
    pub ends: Option<LogEnds>,
}

/// The five-tuple of a line, as text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogEnds {
    /// Addresses of both hosts.
    pub hosts: [String; 2],
    /// Ports, where the protocol has them.
    pub ports: Option<[u16; 2]>,
    /// `tcp`, `udp`, `icmp`, ...
    pub proto: Option<String>,
}

/// Reads logs line by line. Zeek's tab-separated ones say in front what their columns are.
#[derive(Clone, Debug, Default)]
pub struct LogReader {
    fields: Vec<String>,
    name: String,
    has_read: bool,
}

#[derive(Deserialize)]
struct Eve {
    timestamp: String,
    event_type: String,
    src_ip: Option<String>,
    dest_ip: Option<String>,
    src_port: Option<u16>,
    dest_port: Option<u16>,
    proto: Option<String>,
    community_id: Option<String>,
    alert: Option<Alert>,
    flow: Option<Flow>,
    netflow: Option<Flow>,
}

#[derive(Deserialize)]
struct Alert {
    signature: Option<String>,
    severity: Option<u8>,
}

#[derive(Deserialize)]
struct Flow {
    start: Option<String>,
    end: Option<String>,
}

impl LogReader {
    /// What a line says of a session; `None` for lines that name none.
    ///
    /// # Errors
    /// The line is of neither log.
    pub fn line(&mut self, line: &str) -> Result<Option<LogEvent>, NoLog> {
        let event = self.read(line);
        self.has_read |= event.is_ok();
        event
    }

    /// Some line was one of a log.
    pub fn has_read(&self) -> bool {
        self.has_read
    }

    fn read(&mut self, line: &str) -> Result<Option<LogEvent>, NoLog> {
        let line = line.trim_end_matches(['\r', '\n']);
        if line.trim().is_empty() {
            return Ok(None);
        }
        if let Some(rest) = line.strip_prefix('#') {
            if let Some(fields) = rest.strip_prefix("fields\t") {
                self.fields = fields.split('\t').map(str::to_owned).collect();
            } else if let Some(name) = rest.strip_prefix("path\t") {
                name.clone_into(&mut self.name);
            }
            return Ok(None);
        }
        if line.starts_with('{') {
            let value: Value = serde_json::from_str(line).map_err(|_| NoLog)?;
            return if value.get("event_type").is_some() { eve(value) } else { zeek_json(&value) };
        }
        if self.fields.is_empty() { Err(NoLog) } else { Ok(self.zeek_tabs(line)) }
    }

    fn zeek_tabs(&self, line: &str) -> Option<LogEvent> {
        let values: Vec<&str> = line.split('\t').collect();
        let value = |name: &str| {
            let at = self.fields.iter().position(|field| field == name)?;
            values
                .get(at)
                .filter(|value| !matches!(**value, "-" | "(empty)"))
                .map(|v| (*v).to_owned())
        };
        zeek(&value, &self.name)
    }
}

/// The events of a whole log, and how many of its lines, comments apart, are about no session, or
/// are no events: a log that is being written ends within one. One event of Suricata, or a list of
/// them, may go over several lines.
///
/// # Errors
/// No line is of either log.
pub fn log_events(text: &str) -> Result<(Vec<LogEvent>, u64), NoLog> {
    let mut reader = LogReader::default();
    let by_line: Vec<_> = text.lines().map(|line| reader.line(line)).collect();
    let is_text = |line: &str| !line.trim().is_empty() && !line.starts_with('#');
    let is_event = |found: &Result<Option<_>, _>| matches!(found, Ok(Some(_)));
    if by_line.iter().any(Result::is_err) {
        if let Ok(events) = over_several_lines(text) {
            return Ok((events, 0));
        }
        if !by_line.iter().any(is_event) {
            return Err(NoLog);
        }
    }
    let lines = text.lines().zip(&by_line);
    let nameless = lines.filter(|(line, found)| !is_event(found) && is_text(line)).count();
    Ok((by_line.into_iter().flatten().flatten().collect(), to_u64(nameless)))
}

/// Of a text that is one event, or a list.
fn over_several_lines(text: &str) -> Result<Vec<LogEvent>, NoLog> {
    let (mut reader, mut events) = (LogReader::default(), Vec::new());
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        let values = match value.map_err(|_| NoLog)? {
            Value::Array(values) => values,
            one => vec![one],
        };
        for value in values {
            events.extend(reader.line(&value.to_string())?);
        }
    }
    Ok(events)
}

/// A line is of no log that is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoLog;

fn eve(value: Value) -> Result<Option<LogEvent>, NoLog> {
    let eve: Eve = serde_json::from_value(value).map_err(|_| NoLog)?;
    let is_alert = eve.alert.is_some();
    let logged = time(&eve.timestamp).ok_or(NoLog)?;
    // An alert is about one packet; the others are about what their flow had up to then.
    let (start, end) = eve
        .flow
        .or(eve.netflow)
        .filter(|_| !is_alert)
        .map_or((None, None), |flow| (flow.start, flow.end));
    let begin = start.map_or(Ok(logged), |start| time(&start).ok_or(NoLog))?;
    let until = end.map_or(Ok(logged), |end| time(&end).ok_or(NoLog))?.max(begin);
    let (signature, severity) =
        eve.alert.map_or((None, None), |alert| (alert.signature, alert.severity));
    let ends = eve.src_ip.zip(eve.dest_ip).map(|(from, to)| LogEnds {
        hosts: [from, to],
        ports: eve.src_port.zip(eve.dest_port).map(|(from, to)| [from, to]),
        proto: eve.proto.map(|proto| proto.to_ascii_lowercase()),
    });
    let label = signature.unwrap_or(eve.event_type);
    let community_id = eve.community_id;
    let event = LogEvent { label, is_alert, severity, time: begin, until, community_id, ends };
    Ok(Some(event).filter(|event| event.community_id.is_some() || event.ends.is_some()))
}

fn zeek_json(value: &Value) -> Result<Option<LogEvent>, NoLog> {
    let text = |name: &str| match value.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    if text("ts").is_none() {
        return Err(NoLog);
    }
    Ok(zeek(&text, "zeek"))
}

fn zeek(value: &dyn Fn(&str) -> Option<String>, log: &str) -> Option<LogEvent> {
    let port = |name| value(name).and_then(|port| port.parse().ok());
    let hosts = value("id.orig_h").zip(value("id.resp_h"));
    let proto = value("proto");
    let has_ports = proto.as_deref() != Some("icmp");
    let ends = hosts.map(|(orig, resp)| LogEnds {
        hosts: [orig, resp],
        ports: port("id.orig_p")
            .zip(port("id.resp_p"))
            .map(|(orig, resp)| [orig, resp])
            .filter(|_| has_ports),
        proto,
    });
    let time = time(&value("ts")?)?;
    let lasted_ns = value("duration").and_then(|text| duration_ns(&text));
    let event = LogEvent {
        is_alert: value("note").is_some(),
        label: value("note").or_else(|| value("name")).unwrap_or_else(|| log.to_owned()),
        severity: None,
        time,
        until: time.plus_nanos(lasted_ns.unwrap_or(0)),
        community_id: value("community_id"),
        ends,
    };
    Some(event).filter(|event| event.community_id.is_some() || event.ends.is_some())
}

/// A number of seconds, as Zeek writes how long a connection lasted.
fn duration_ns(text: &str) -> Option<i64> {
    let since_1970 = Timestamp::from_unix_text(text)?;
    Some(since_1970.0).filter(|ns| *ns >= 0)
}

/// Seconds since 1970, or a date with an offset such as `+0000`.
fn time(text: &str) -> Option<Timestamp> {
    if let Some(time) = Timestamp::from_unix_text(text) {
        return Some(time);
    }
    // RFC 3339 wants a colon in the offset.
    let offset = text.len().checked_sub(5).filter(|at| text.is_char_boundary(*at))?;
    let (rest, zone) = text.split_at(offset);
    let with_colon = match zone.as_bytes() {
        [b'+' | b'-', rest_of @ ..] if rest_of.iter().all(u8::is_ascii_digit) => {
            format!("{rest}{}:{}", zone.get(..3)?, zone.get(3..)?)
        }
        _ => text.to_owned(),
    };
    with_colon.parse().ok()
}

impl LogEvent {
    /// The query that finds the session, or all of them that the event spans: live within
    /// `margin_ns` of it.
    pub fn query(&self, margin_ns: i64) -> Option<String> {
        let (from, to) = (self.time.plus_nanos(-margin_ns), self.until.plus_nanos(margin_ns));
        let is_ours = |id: &str| self.ends.as_ref().is_none_or(|ends| ends.may_have(id));
        let is_usable = |id: &&String| is_ours(id) && query::is_community_id(id);
        let session = match (self.community_id.as_ref().filter(is_usable), &self.ends) {
            (Some(id), _) => format!("community_id \"{id}\""),
            (None, Some(ends)) => ends.query()?,
            _ => return None,
        };
        Some(format!("({session} and end_ns >= {from} and start_ns <= {to})"))
    }
}

impl LogEnds {
    /// Whether it is the community id that sessions of these ends have here. Tools can be told
    /// another seed, and differ in the ids of ICMP, of which each kind of message is a session to
    /// some.
    fn may_have(&self, id: &str) -> bool {
        if self.is_icmp() {
            return false;
        }
        self.tuple().is_none_or(|tuple| {
            CommunityId::of(&tuple, None).is_none_or(|own| own.0.as_str() == id)
        })
    }

    /// `None` where it is not known in full.
    fn tuple(&self) -> Option<FiveTuple> {
        let proto = match self.proto.as_deref()? {
            "tcp" => Protocol::TCP,
            "udp" => Protocol::UDP,
            "sctp" => Protocol::SCTP,
            _ => return None,
        };
        let address = |text: &String| text.parse::<IpAddr>().ok().map(Address::from);
        let ([orig, resp], [orig_port, resp_port]) = (&self.hosts, self.ports?);
        let (orig, resp) = (address(orig)?, address(resp)?);
        Some(FiveTuple { orig, resp, orig_port, resp_port, proto })
    }

    fn is_icmp(&self) -> bool {
        matches!(self.proto.as_deref(), Some("icmp" | "icmp6" | "ipv6-icmp"))
    }

    fn query(&self) -> Option<String> {
        const KNOWN: [&str; 5] = ["tcp", "udp", "sctp", "icmp", "icmp6"];
        let [a, b] = &self.hosts;
        // Whatever stands in a log, only addresses go into a query.
        let is_address = |text: &String| text.parse::<IpAddr>().is_ok();
        if ![a, b].into_iter().all(is_address) {
            return None;
        }
        let mut words = vec![format!("host {a} and host {b}")];
        if let Some([one, other]) = self.ports {
            words.push(format!("port {one} and port {other}"));
        }
        match self.proto.as_deref() {
            // Zeek says icmp of both.
            _ if self.is_icmp() && a.contains(':') => words.push("icmp6".to_owned()),
            Some(proto) if KNOWN.contains(&proto) => words.push(proto.to_owned()),
            _ => {}
        }
        Some(words.join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use units::NANOS_PER_SECOND;

    use super::*;

    const ALERT: &str = r#"{"timestamp":"2026-11-22T10:22:33.489812+0100","flow_id":1,
        "event_type":"alert","src_ip":"10.0.0.1","src_port":1000,"dest_ip":"10.0.0.2",
        "dest_port":53,"proto":"UDP","community_id":"1:3dOlp8ntUVx1pST5gnmqaqHNfUY=",
        "alert":{"signature_id":1,"signature":"ET BAD","severity":1},
        "flow":{"start":"2026-11-22T10:00:00.000000+0100"}}"#;

    fn read(lines: &str) -> Vec<LogEvent> {
        let mut reader = LogReader::default();
        lines.lines().filter_map(|line| reader.line(line).unwrap()).collect()
    }

    #[test]
    fn alerts_of_suricata_name_sessions() {
        let alert = ALERT.replace('\n', " ");
        let event = read(&alert).pop().unwrap();
        assert_eq!((event.label.as_str(), event.severity), ("ET BAD", Some(1)));
        assert_eq!(event.time.to_string(), "2026-11-22T09:22:33.489812000Z");
        let by_id = event.query(NANOS_PER_SECOND).unwrap();
        assert_eq!(
            by_id,
            "(community_id \"1:3dOlp8ntUVx1pST5gnmqaqHNfUY=\" \
             and end_ns >= 2026-11-22T09:22:32.489812000Z \
             and start_ns <= 2026-11-22T09:22:34.489812000Z)"
        );
        let by_tuple = LogEvent { community_id: None, ..event }.query(0).unwrap();
        let words = "host 10.0.0.1 and host 10.0.0.2 and port 1000 and port 53 and udp";
        assert!(by_tuple.starts_with(&format!("({words} and end_ns")), "{by_tuple}");
        let stats = r#"{"timestamp":"2026-11-22T10:22:33+0000","event_type":"stats"}"#;
        assert_eq!(read(stats), []);
    }

    /// `CommunityID::seed` of Zeek, `community-id-seed` of Suricata.
    #[test]
    fn an_id_that_is_made_with_another_seed_gives_way_to_the_ends() {
        let line = |id: &str, proto: &str| {
            format!(
                r#"{{"ts":1.5,"id.orig_h":"10.0.0.1","id.orig_p":1000,"id.resp_h":"10.0.0.2",
                "id.resp_p":53,"proto":"{proto}","community_id":"{id}"}}"#
            )
        };
        let query = |id: &str, proto: &str| {
            read(&line(id, proto).replace('\n', " ")).pop().unwrap().query(0).unwrap()
        };
        let [orig, resp] = [1, 2].map(|host| IpAddr::from([10, 0, 0, host]).into());
        let tuple = FiveTuple { orig, resp, orig_port: 1000, resp_port: 53, proto: Protocol::UDP };
        let own = CommunityId::of(&tuple, None).unwrap().0;
        let other = CommunityId::of(&FiveTuple { resp_port: 54, ..tuple }, None).unwrap().0;
        assert!(query(&own, "udp").starts_with(&format!("(community_id \"{own}\" and")));
        let by_ends = "(host 10.0.0.1 and host 10.0.0.2 and port 1000 and port 53 and udp and";
        assert!(query(&other, "udp").starts_with(by_ends), "{}", query(&other, "udp"));
        // Where the ends are not known in full nothing speaks against it.
        assert!(query(&other, "47").starts_with(&format!("(community_id \"{other}\" and")));
    }

    #[test]
    fn logs_of_zeek_name_sessions_in_both_forms() {
        let tabs = "#separator \\x09\n#path\tconn\n\
            #fields\tts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\tcommunity_id\n\
            1795339353.489812\tC1\tfe80::1\t1000\tfe80::2\t53\tudp\t1:x=\n\
            1795339354.0\tC2\t10.0.0.1\t8\t10.0.0.2\t0\ticmp\t-\n#close\t2026\n";
        let events = read(tabs);
        assert_eq!(events.len(), 2);
        assert_eq!(
            (events[0].label.as_str(), events[0].community_id.as_deref()),
            ("conn", Some("1:x="))
        );
        assert_eq!(events[0].time, Timestamp(1_795_339_353_489_812_000));
        // What is no community id is passed over.
        let udp = events[0].query(0).unwrap();
        assert!(
            udp.starts_with("(host fe80::1 and host fe80::2 and port 1000 and port 53"),
            "{udp}"
        );
        let icmp = events[1].query(0).unwrap();
        assert!(icmp.starts_with("(host 10.0.0.1 and host 10.0.0.2 and icmp and"), "{icmp}");
        let tabs = tabs.replace("10.0.0.", "fe80::").replace("icmp\t-", "icmp\t{ID}");
        let tabs = tabs.replace("{ID}", "1:iM/olWEXeq98jWti2NfJIzAOdM8=");
        let icmp = read(&tabs)[1].query(0).unwrap();
        assert!(icmp.starts_with("(host fe80::1 and host fe80::2 and icmp6 and"), "{icmp}");
        let json = r#"{"ts":1795339353.5,"id.orig_h":"10.0.0.1","id.orig_p":1,
            "id.resp_h":"10.0.0.2","id.resp_p":2,"proto":"tcp","note":"Scan::Port_Scan"}"#;
        assert_eq!(read(&json.replace('\n', " "))[0].label, "Scan::Port_Scan");
    }

    #[test]
    fn an_event_spans_the_time_that_its_line_says() {
        const SECOND: i64 = NANOS_PER_SECOND;
        let spans = |line: &str| {
            let event = read(&line.replace('\n', " ")).pop().unwrap();
            let text = event.query(60 * SECOND).unwrap();
            let (from, to) =
                (event.time.plus_nanos(-60 * SECOND), event.until.plus_nanos(60 * SECOND));
            assert!(text.ends_with(&format!("end_ns >= {from} and start_ns <= {to})")), "{text}");
            (event.time.0, event.until.0 - event.time.0)
        };
        let begin = 1_795_168_800 * SECOND;
        let ends = r#""id.orig_h":"10.0.0.1","id.resp_h":"10.0.0.2","proto":"udp""#;
        for (duration, lasted_ns) in [
            ("620.5", 620 * SECOND + SECOND / 2),
            ("0.25", SECOND / 4),
            ("\"7\"", 7 * SECOND),
            ("-1.0", 0),
            ("1e300", 0),
            ("\"long\"", 0),
            ("null", 0),
        ] {
            let line = format!(r#"{{"ts":1795168800.0,"duration":{duration},{ends}}}"#);
            assert_eq!(spans(&line), (begin, lasted_ns), "{line}");
        }
        let tabs = "#path\tconn\n#fields\tts\tid.orig_h\tid.resp_h\tproto\tduration\n\
            1795168800.0\t10.0.0.1\t10.0.0.2\tudp\t620.0\n\
            1795168800.0\t10.0.0.1\t10.0.0.2\tudp\t-\n";
        let lasted: Vec<_> = read(tabs).iter().map(|it| it.until.0 - it.time.0).collect();
        assert_eq!(lasted, [620 * SECOND, 0]);
        let eve = |of_flow: &str| {
            let ends = r#""src_ip":"10.0.0.1","dest_ip":"10.0.0.2","proto":"UDP""#;
            format!(r#"{{"timestamp":"2026-11-20T10:30:00+0000",{of_flow},{ends}}}"#)
        };
        let times = r#"{"start":"2026-11-20T10:00:00+0000","end":"2026-11-20T10:20:00+0000"}"#;
        let since = r#"{"start":"2026-11-20T10:00:00+0000"}"#;
        for (of_flow, expect) in [
            (format!(r#""event_type":"flow","flow":{times}"#), (begin, 1200 * SECOND)),
            (format!(r#""event_type":"netflow","netflow":{times}"#), (begin, 1200 * SECOND)),
            (format!(r#""event_type":"dns","flow":{since}"#), (begin, 1800 * SECOND)),
            (r#""event_type":"dns""#.to_owned(), (begin + 1800 * SECOND, 0)),
            // An alert is about one packet.
            (
                format!(r#""event_type":"alert","alert":{{}},"flow":{times}"#),
                (begin + 1800 * SECOND, 0),
            ),
        ] {
            assert_eq!(spans(&eve(&of_flow)), expect, "{of_flow}");
        }
    }

    #[test]
    fn what_is_no_log_is_said_and_nothing_else_gets_into_a_query() {
        assert_eq!(log_events(&format!("[{ALERT}, {ALERT}]")).unwrap().0.len(), 2);
        assert_eq!(log_events(ALERT).unwrap().0.len(), 1);
        assert_eq!(log_events("no log"), Err(NoLog));
        for line in ["hello", "{}", "{\"ts\": 1", "[1]"] {
            assert_eq!(LogReader::default().line(line), Err(NoLog), "{line}");
        }
        let ends = LogEnds { hosts: ["a or b".into(), "::1".into()], ports: None, proto: None };
        assert_eq!(ends.query(), None);
    }
}
