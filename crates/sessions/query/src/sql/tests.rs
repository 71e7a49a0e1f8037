use units::Timestamp;

use super::*;
use crate::field::FIELDS;

fn pushed(query: &str) -> Pushed {
    Query::parse(query, Timestamp(0)).unwrap().sql(Dialect::Trino)
}

#[track_caller]
fn exactly(query: &str, condition: &str) {
    let expected = Pushed { condition: condition.to_owned(), undecided: Vec::new() };
    assert_eq!(pushed(query), expected, "{query}");
}

const FOLDED_SNI: &str =
    "translate(sni, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')";

#[test]
fn every_operator_has_words() {
    for (query, condition) in [
        ("", "TRUE"),
        ("packets = 3", "(orig_packets + resp_packets) = 3"),
        ("orig_packets < 3", "orig_packets < 3"),
        ("orig_packets <= 3", "orig_packets <= 3"),
        ("orig_packets > 3", "orig_packets > 3"),
        ("orig_packets >= 3", "orig_packets >= 3"),
        ("orig_packets != 3", "NOT COALESCE(orig_packets = 3, FALSE)"),
        ("resp_port in {80, 443}", "resp_port IN (80, 443)"),
        ("port in {80}", "(orig_port = 80 OR resp_port = 80)"),
        ("has ja3", "ja3 IS NOT NULL"),
        ("has packets", "(orig_packets + resp_packets) IS NOT NULL"),
        ("has vlan", "(vlan IS NOT NULL OR vlan_inner IS NOT NULL)"),
        ("tcp_sack no", "(orig_syn_sack_permitted AND resp_syn_sack_permitted) = FALSE"),
        ("duration > 1s", "GREATEST(duration_ns, 0) > 1000000000"),
        ("session_age_ns = 2ns", "GREATEST(start_ns - session_start_ns, 0) = 2"),
        ("vni 7", "CASE WHEN tunnel IN ('vxlan', 'vxlan-gpe', 'geneve') THEN tunnel_id END = 7"),
        ("http_status = 404", "any_match(http_status, item -> item = 404)"),
        ("recording Ab", "recording = 'Ab'"),
        ("tls_version < 1.2", "tls_version < 771"),
        ("proto gre", "proto = 47"),
        ("bytes > 18446744073709551615", "FALSE"),
        ("bytes <= 18446744073709551615", "(orig_frame_bytes + resp_frame_bytes) IS NOT NULL"),
    ] {
        exactly(query, condition);
    }
}

#[test]
fn texts_are_compared_as_here() {
    exactly("sni A.example", &format!("{FOLDED_SNI} = 'a.example'"));
    exactly("sni *.A_b", &format!("{FOLDED_SNI} LIKE '%.a!_b' ESCAPE '!'"));
    exactly(r#"sni "50%!\*""#, &format!("{FOLDED_SNI} = '50%!*'"));
    exactly(r#"sni "50%!*""#, &format!("{FOLDED_SNI} LIKE '50!%!!%' ESCAPE '!'"));
    exactly("recording in {a, b*}", "(recording = 'a' OR recording LIKE 'b%' ESCAPE '!')");
    exactly("session_id in {a, b}", "session_id IN ('a', 'b')");
}

#[test]
fn no_text_leaves_its_literal() {
    exactly(r#"recording "' OR 1=1 --""#, "recording = ''' OR 1=1 --'");
    exactly(
        "recording \"a\u{0}\n\u{202e}b\"",
        "recording = ('a' || chr(0) || chr(10) || chr(8238) || 'b')",
    );
    exactly("recording \"\"", "recording = ''");
}

#[test]
fn places_know_directions() {
    exactly(
        "host 10.0.0.1",
        "(orig_ip IN ('10.0.0.1', '::ffff:10.0.0.1') OR \
         resp_ip IN ('10.0.0.1', '::ffff:10.0.0.1'))",
    );
    exactly("orig host 2001:DB8::1", "orig_ip = '2001:db8::1'");
    exactly("resp port 22", "resp_port = 22");
    exactly(
        "src and dst portrange 1-2",
        "(orig_port BETWEEN 1 AND 2 AND resp_port BETWEEN 1 AND 2)",
    );
    exactly(
        "src port 5 and dst port 6",
        "((orig_packets > 0 AND (orig_port = 5 AND resp_port = 6)) OR \
         (resp_packets > 0 AND (resp_port = 5 AND orig_port = 6)))",
    );
    exactly(
        "ether host 0:1b:2c:3d:4e:5f",
        "(orig_ip = '00:1b:2c:3d:4e:5f' OR resp_ip = '00:1b:2c:3d:4e:5f')",
    );
    exactly(
        "tunnel src host 172.16.0.1",
        "((orig_packets > 0 AND tunnel_src IN ('172.16.0.1', '::ffff:172.16.0.1')) OR \
         (resp_packets > 0 AND tunnel_dst IN ('172.16.0.1', '::ffff:172.16.0.1')))",
    );
}

#[test]
fn networks_are_compared_by_their_bytes_and_digits() {
    let four = "(orig_ip LIKE '%.%' AND orig_ip NOT LIKE '%:%')";
    let second = "TRY_CAST(split_part(orig_ip, '.', 2) AS BIGINT)";
    let six = "(orig_ip LIKE '%::%' OR length(orig_ip) - length(replace(orig_ip, ':', '')) = 7)";
    let digits = "to_hex(CAST(TRY_CAST(orig_ip AS IPADDRESS) AS VARBINARY))";
    exactly("orig net 10", &format!("({four} AND orig_ip LIKE '10.%')"));
    exactly(
        "orig net 172.16/12",
        &format!("({four} AND orig_ip LIKE '172.%' AND {second} BETWEEN 16 AND 31)"),
    );
    exactly(
        "orig net 10.0.0.0 mask 255.1.0.0",
        &format!(
            "({four} AND orig_ip LIKE '10.%' AND {second} IN ({}))",
            (0..128).map(|half| (2 * half).to_string()).collect::<Vec<_>>().join(", ")
        ),
    );
    exactly("orig net 1.2.3.4/32", "orig_ip = '1.2.3.4'");
    exactly("orig net 0.0.0.0/0", four);
    exactly("orig net 2001:db8::/32", &format!("({six} AND {digits} LIKE '20010DB8%')"));
    exactly(
        "orig net 2001:db8::/30",
        &format!(
            "({six} AND substr({digits}, 8, 1) IN ('8', '9', 'A', 'B') AND \
             {digits} LIKE '20010DB%')"
        ),
    );
    exactly("orig net ::/0", six);
}

#[test]
fn times_choose_partitions() {
    exactly(
        "after 2026-11-20T10:30:00Z and before 2026-11-21",
        "(end_ns >= 1795170600000000000 AND start_ns < 1795219200000000000) AND \
         (\"date\" > '2026-11-20' OR (\"date\" = '2026-11-20' AND \"hour\" >= '10'))",
    );
    exactly("before 2026-11-20", "start_ns < 1795132800000000000");
    exactly("not after 2026-11-20", "NOT COALESCE(end_ns >= 1795132800000000000, FALSE)");
}

/// What an engine cannot decide makes the condition wider, also where it is negated.
#[test]
fn what_is_left_open_is_named_and_never_loses_a_session() {
    let open = |query: &str| {
        let Pushed { condition, undecided } = pushed(query);
        (condition, undecided)
    };
    let (condition, undecided) = open("http_path mentions 192.0.2.7 and port 80");
    assert!(condition.contains("LIKE '%192.0.2.7%'"), "{condition}");
    assert_eq!(undecided, ["http_path mentions \"192.0.2.7\""]);
    let (condition, undecided) = open("not (http_path mentions x)");
    assert_eq!(condition, "NOT COALESCE(FALSE, FALSE)");
    assert_eq!(undecided.len(), 1);
    let (condition, _) = open("not (not (http_path mentions x))");
    assert!(condition.contains("LIKE '%x%'"), "{condition}");
    assert_eq!(open("country = NL").0, "TRUE");
    let id = "1:iM/olWEXeq98jWti2NfJIzAOdM8=";
    let (condition, undecided) = open(&format!("community_id {id}"));
    assert!(condition.contains(&format!("community_id = '{id}'")), "{condition}");
    assert_eq!(undecided.len(), 1);
}

#[test]
fn every_field_has_columns_and_what_is_one_number_an_order() {
    for field in FIELDS.iter() {
        assert!(!columns(field).is_empty(), "{}", field.name);
    }
    let order = |name| Field::find(name).unwrap().sql_number();
    assert_eq!(order("bytes").unwrap(), "(orig_frame_bytes + resp_frame_bytes)");
    assert_eq!(order("start").unwrap(), "start_ns");
    for name in ["sni", "http_status", "port", "asn", "orig_ip"] {
        assert_eq!(order(name), None, "{name}");
    }
}

/// What an engine reads in the literals of a statement, one after the other: `'a' || chr(10)`.
fn literals(statement: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut rest = statement;
    let mut goes_on = false;
    while let Some(at) = rest.find(['\'', 'c']) {
        let text = if let Some(tail) = rest[at..].strip_prefix("chr(") {
            let (number, tail) = tail.split_once(')').unwrap();
            rest = tail;
            char::from_u32(number.parse().unwrap()).unwrap().to_string()
        } else if let Some(mut tail) = rest[at..].strip_prefix('\'') {
            let mut text = String::new();
            loop {
                let (part, behind) = tail.split_once('\'').expect("a literal has an end");
                text.push_str(part);
                tail = behind;
                match tail.strip_prefix('\'') {
                    Some(further) => {
                        text.push('\'');
                        tail = further;
                    }
                    None => break,
                }
            }
            rest = tail;
            text
        } else {
            rest = &rest[at + 1..];
            continue;
        };
        match all.last_mut() {
            Some(last) if goes_on => *last = format!("{last}{text}"),
            _ => all.push(text),
        }
        goes_on = rest.starts_with(" || ");
    }
    all
}

proptest::proptest! {
    /// Whatever a text has, an engine reads it back, and nothing of it outside of a literal.
    #[test]
    fn texts_arrive_as_they_are(
        text in "\\PC{0,20}|[\u{0}-\u{7f}]{0,20}|['|!%_\\\\ ()chr0-9]{0,20}",
    ) {
        let quoted = crate::pattern::Pattern::exactly(&text).to_string();
        let Pushed { condition, undecided } = pushed(&format!("recording = {quoted}"));
        proptest::prop_assert!(condition.bytes().all(|byte| matches!(byte, b' '..=b'~')));
        proptest::prop_assert!(undecided.is_empty());
        proptest::prop_assert_eq!(literals(&condition), [text]);
        proptest::prop_assert!(condition.starts_with("recording = "));
    }
}
