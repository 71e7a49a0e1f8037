//! The language by example: one line, one claim.

use format::session_row::SessionRow;
use query::{Error, Problem, Query, Required};
use units::Timestamp;

use crate::sessions::{ID, NOW, arp, at, dns, http, ping, tls};

fn parse(text: &str) -> Query {
    Query::parse(text, NOW).unwrap_or_else(|error| panic!("{}", error.render(text)))
}

fn fails(text: &str) -> Error {
    Query::parse(text, NOW).expect_err(text)
}

#[track_caller]
fn check(row: &SessionRow, cases: &[(&str, bool)]) {
    for &(text, expected) in cases {
        let query = parse(text);
        assert_eq!(query.matches(row, &[ID.to_owned()]), expected, "{text}");
        assert_eq!(Query::parse(&query.to_string(), NOW), Ok(query), "{text} printed");
    }
}

#[test]
fn blank_text_means_all() {
    assert_eq!(parse(" \n\t"), Query::all());
    check(&tls(), &[("", true)]);
    assert_eq!(Query::all().to_string(), "");
    assert_eq!(Query::all().time_range(), (Timestamp::MIN, Timestamp::MAX));
    assert!(Query::all().columns().is_empty());
}

#[test]
fn addresses_and_networks() {
    check(
        &tls(),
        &[
            ("host 10.0.0.5", true),
            ("host 192.0.2.80", true),
            ("host ::ffff:10.0.0.5", true),
            ("host 10.0.0.6", false),
            ("10.0.0.5", true),
            ("10.0.0.0/24", true),
            ("src 10.0.0.5", true),
            ("ip host 10.0.0.5", true),
            ("ip6 host 10.0.0.5", false),
            ("tcp host 10.0.0.5", true),
            ("net 10", true),
            ("net 10.0", true),
            ("net 10.1", false),
            ("net 10.0.0.5", true),
            ("net 10.0.0.0", false),
            ("net 10.0.0.0/8", true),
            ("net 10.0.0.0 / 8", true),
            ("net 10.0.0.0 mask 255.0.0.0", true),
            ("net 192.0.2.0 mask 255.255.255.0", true),
            ("net 192.0.3.0 mask 255.255.255.0", false),
            ("src net 10.0.0.0 mask 255.0.0.0", true),
            ("net 2001:db8::/32", false),
            ("ether host 00:1b:2c:3d:4e:5f", false),
        ],
    );
    check(
        &http(),
        &[
            ("host 2001:db8::5", true),
            ("net 2001:db8::/32", true),
            ("net 2001:db8:: mask ffff:ffff::", true),
            ("net 2001:db8:2::/48", false),
            ("net 0.0.0.0/0", false),
        ],
    );
    check(
        &arp(),
        &[
            ("arp", true),
            ("ether proto \\arp", true),
            ("ether proto 0x0806", true),
            ("ether host 001b.2c3d.4e5f", true),
            ("host 00-1b-2c-3d-4e-5f", true),
            ("ether src 00:1b:2c:3d:4e:5f", true),
            ("ether dst ff:ff:ff:ff:ff:ff", true),
            ("ether src 00:1b:2c:3d:4e:5e", false),
            ("orig_ip = 00:1b:2c:3d:4e:5f", true),
            ("net 0.0.0.0/0 or net ::/0", false),
            ("ip or ip6", false),
            ("port 0", false),
            ("arp host 10.0.0.5", true),
            ("arp host 10.0.0.1 or 10.0.0.77", true),
            ("arp src host 10.0.0.1", true),
            ("arp src host 10.0.0.5", false),
            ("arp dst host 10.0.0.6", true),
            ("arp dst host 10.0.0.1", false),
            ("arp src and dst host 10.0.0.1", false),
            ("arp src or dst host 10.0.0.6", true),
            ("arp src 10.0.0.1 and arp dst 10.0.0.6", true),
            ("arp host 10.0.0.55", false),
            ("rarp host 10.0.0.5", false),
        ],
    );
}

#[test]
fn ports_and_protocols() {
    check(
        &tls(),
        &[
            ("tcp", true),
            ("udp", false),
            ("ip proto 6", true),
            ("ip proto \\tcp", true),
            ("ip6 proto 6", false),
            ("proto tcp", true),
            ("proto 0x06", true),
            ("proto in {udp, tcp}", true),
            ("ip", true),
            ("ip6", false),
            ("ether proto ip", true),
            ("ether proto 0x86dd", false),
            ("port 443", true),
            ("port https", true),
            ("port 0443", true),
            ("port 80", false),
            ("tcp port 443", true),
            ("udp port 443", false),
            ("tcp src port 443", true),
            ("portrange 440-450", true),
            ("portrange 450-440", true),
            ("portrange ftp-data-https", true),
            ("portrange 443", true),
            ("udp portrange 440-450", false),
            ("port in {80, 443}", true),
            ("resp_port < 1024", true),
            ("orig_port < 1024", false),
        ],
    );
    check(
        &ping(),
        &[("icmp", true), ("icmp6", false), ("port 0", false), ("orig_port = 0", false)],
    );
    check(&ping(), &[("icmp_type 8 and icmp_code = 0", true), ("has icmp_type", true)]);
    check(&http(), &[("ip proto 6", true), ("ip6 proto 6", true), ("ip and proto 6", false)]);
}

#[test]
fn src_and_dst_ask_for_a_packet_in_that_direction() {
    check(
        &tls(),
        &[
            ("src host 10.0.0.5", true),
            ("src host 192.0.2.80", true),
            ("src host 10.0.0.5 and dst port 443", true),
            ("src host 10.0.0.5 and src port 443", false),
            ("src port 443 and dst host 10.0.0.5", true),
            ("src and dst net 10", false),
            ("src and dst port 443", false),
            ("dst or src host 10.0.0.5", true),
            ("not src host 10.0.0.5", true),
            ("not orig host 10.0.0.5", false),
            ("orig host 10.0.0.5", true),
            ("resp host 10.0.0.5", false),
            ("orig net 10 and resp port 443", true),
            ("orig port 443", false),
        ],
    );
    check(
        &dns(),
        &[
            ("src host 10.0.0.53", false),
            ("dst host 10.0.0.53", true),
            ("not src host 10.0.0.5", false),
            ("src and dst net 10.0.0.0/8", true),
            ("resp host 10.0.0.53", true),
        ],
    );
}

#[test]
fn labels_and_tunnels() {
    check(
        &tls(),
        &[
            ("vlan", true),
            ("vlan 100", true),
            ("vlan 200", true),
            ("vlan 300", false),
            ("vlan_inner 200 and vlan_inner != 100", true),
            ("vlan 100 && vlan 200", true),
            ("vlan && vlan 200 && ip", true),
            ("vlan and not vlan in {1, 2}", true),
            ("mpls", true),
            ("mpls 1024", true),
            ("mpls 1025", false),
            ("vxlan", true),
            ("vxlan 5000", true),
            ("vxlan 0x1388", true),
            ("geneve", false),
            ("pppoes 0x27", false),
            ("vni 5000", true),
            ("vni", true),
            ("vni 1", false),
            ("teid 5000", false),
            ("tunnel", true),
            ("tunnel vxlan", true),
            ("tunnel host 172.16.0.1", true),
            ("tunnel net 172.16/12", true),
            ("tunnel src host 172.16.0.1 and src host 10.0.0.5", true),
            ("tunnel src host 172.16.0.1 and src host 192.0.2.80", false),
            ("tunnel orig host 172.16.0.2", false),
            ("tunnel host 10.0.0.5", false),
            ("tunnel_id = 5000 and tunnel_dst = 172.16.0.0/16", true),
        ],
    );
    check(&dns(), &[("vlan", false), ("mpls", false), ("tunnel", false), ("vni", false)]);
}

#[test]
fn and_and_or_bind_alike_from_left_to_right_and_not_binds_tighter() {
    check(
        &tls(),
        &[
            // (tcp or udp) and udp
            ("tcp or udp and udp", false),
            ("tcp or (udp and udp)", true),
            ("udp and udp or tcp", true),
            ("not udp and tcp", true),
            ("not (udp and tcp)", true),
            ("! udp && ! icmp || icmp", true),
            ("not not tcp", true),
            ("!!!tcp", false),
            ("((tcp))", true),
            ("TCP AND NOT Port 80", true),
        ],
    );
    assert_eq!(
        parse("tcp or udp and port 80").to_string(),
        "(proto = 6 or proto = 17) and port 80"
    );
}

#[test]
fn bare_ids_take_the_qualifiers_before_them() {
    for (short, long) in [
        ("port 80 or 443", "port 80 or port 443"),
        (
            "tcp dst port ftp or ftp-data or domain",
            "tcp dst port ftp or tcp dst port ftp-data or tcp dst port domain",
        ),
        ("not host 10.0.0.1 and 10.0.0.2", "not host 10.0.0.1 and host 10.0.0.2"),
        (
            "host 10.0.0.1 and (10.0.0.2 or 10.0.0.3)",
            "host 10.0.0.1 and (host 10.0.0.2 or host 10.0.0.3)",
        ),
        ("ip host 10.0.0.1 and not 10.0.0.2", "ip host 10.0.0.1 and not ip host 10.0.0.2"),
        ("src host (10.0.0.1 or 10.0.0.2)", "src host 10.0.0.1 or src host 10.0.0.2"),
        ("ip proto 6 or 17", "ip proto 6 or ip proto 17"),
        ("net 10.1 or 10.2", "net 10.1.0.0/16 or net 10.2.0.0/16"),
    ] {
        assert_eq!(parse(short), parse(long), "{short}");
    }
    for text in ["port 80 and tcp or 443", "vlan 100 or 200", "443"] {
        assert!(matches!(fails(text).problem, Problem::UnknownWord { .. }), "{text}");
    }
}

#[test]
fn times_are_absolute_or_relative_to_now() {
    check(
        &tls(),
        &[
            ("before 2026-11-20T11:00:00Z", false),
            ("before 2026-11-20T11:00:00.000000001Z", true),
            ("after 2026-11-20T11:10:00.5Z", true),
            ("after 2026-11-20T11:10:00.500000001Z", false),
            ("after 2026-11-20T12:10:00+01:00", true),
            ("since 49m ago", false),
            ("since 50m ago", true),
            ("since 1h30m ago", true),
            ("before 1h ago", false),
            ("before now", true),
            ("before \"2026-11-20 11:30\"", true),
            ("after 2026-11-20T12:10[Europe/Berlin]", true),
            ("after \"2026-11-20 12:11 Europe/Berlin\"", false),
            ("before 2026-11-20T13:00[Europe/Berlin]", true),
            ("start > 2026-11-20T11:59[Europe/Berlin]", true),
            ("after 2026-11-20", true),
            ("start_ns = 2026-11-20T11:00:00Z", true),
            ("start_ns = 1795172400000000000", true),
            ("end > 51m ago", true),
            ("session_start <= 62m ago", true),
            ("start in {1h ago, 2h ago}", true),
        ],
    );
}

#[test]
fn numbers_sizes_and_durations() {
    check(
        &tls(),
        &[
            ("packets = 1000", true),
            ("packets == 1000", true),
            ("packets != 1000", false),
            ("orig_packets < 101", true),
            ("orig_packets<=100", true),
            ("resp_packets > 900", false),
            ("resp_packets>=900", true),
            ("bytes > 1M", true),
            ("bytes > 1.3M", false),
            ("frame_bytes = 1310000", true),
            ("orig_bytes = 10000", true),
            ("ip_bytes > 1200K", true),
            ("payload_bytes = 1256000", true),
            ("duration > 10m", true),
            ("duration = 600.5s", true),
            ("duration_ns > 10m1s", false),
            ("handshake < 21ms", true),
            ("interface in {0}", true),
            ("orig_tcp_flags = 0x1b", true),
            ("continues", false),
            ("truncated_packets = 0 and fragments = 0", true),
        ],
    );
    check(&http(), &[("continues", true), ("interface 2", true), ("handshake < 1s", false)]);
}

#[test]
fn tcp_quality() {
    check(
        &tls(),
        &[
            ("tcp.sack = no and tcp.retransmitted > 0", true),
            ("tcp_sack", false),
            ("orig_syn_sack_permitted", true),
            ("retransmitted_bytes = 300", true),
            ("zero_windows = 2", true),
            ("missed_bytes > 0", false),
            ("orig_syn_mss 1460 and resp_syn_mss 1400", true),
            ("has orig_syn_window_scale and not has resp_syn_window_scale", true),
            ("state SF and history ShAD*", true),
            ("state = sf", true),
            ("history shad*", false),
        ],
    );
    check(&http(), &[("tcp.sack = no", false), ("has tcp.sack", false), ("tcp.sack != yes", true)]);
}

#[test]
fn names_and_texts() {
    check(
        &tls(),
        &[
            ("sni", true),
            ("has sni", true),
            ("exists(sni)", true),
            ("exists ( sni )", true),
            ("sni www.example.com", true),
            ("sni *.example.com", true),
            ("sni = *.EXAMPLE.com", true),
            ("sni = *.example.org", false),
            ("sni = \"www.example.com\"", true),
            ("sni = \"*.example.com\"", true),
            ("sni = \"\\*.example.com\"", false),
            ("sni != *.example.com", false),
            ("alpn http/1.1", true),
            ("alpn = h2 and alpn != h3", true),
            ("tls_version = 1.3", true),
            ("tls.version < 1.3", false),
            ("app = tls", true),
            ("app in {http tls}", true),
            ("app SSL", true),
            ("app = cifs", false),
            ("app = t*s", true),
            ("app_by = content", true),
            ("app_by = port*", false),
            ("app in {http, dns}", false),
            ("http_host", false),
            ("http_host != x", true),
            ("session_id = 812-4", true),
            ("session_id = \"812-5\"", false),
        ],
    );
    check(
        &http(),
        &[
            ("http.host = intranet.*", true),
            ("http.method = post", true),
            ("http.path /Login*", true),
            ("http.path /login*", false),
            ("http.path \"/Login?next=/\"", true),
            ("http.path = \"/a b\"", true),
            ("http.status >= 500", true),
            ("http.status >= 500 and http.status < 300", true),
            ("user_agent \"*X11; Linux*\"", true),
            ("sni", false),
        ],
    );
    check(
        &dns(),
        &[
            ("dns.name mail.example.org", true),
            ("dns.name *.example.net", true),
            ("dns_names in {*.com, *.net}", true),
            ("dns.type = AAAA", true),
            ("dns.type = 28", true),
            ("dns.type MX", false),
            ("dns.rcode = nxdomain", true),
            ("dns.answer 192.0.2.1", true),
        ],
    );
}

#[test]
fn community_ids_need_no_quotes() {
    let word = parse("community_id 1:iM/olWEXeq98jWti2NfJIzAOdM8= and tcp");
    assert_eq!(word, parse("community_id = \"1:iM/olWEXeq98jWti2NfJIzAOdM8=\" and tcp"));
}

#[test]
fn a_session_without_an_id_has_no_session_id() {
    assert!(!parse("session_id = *").matches(&tls(), &[]));
}

#[test]
fn stenographers_examples_work_unchanged() {
    // README.md, "Query Language".
    for text in [
        "host 8.8.8.8",
        "net 1.0.0.0/8",
        "net 1.0.0.0 mask 255.255.255.0",
        "port 80",
        "ip proto 6",
        "icmp",
        "tcp",
        "udp",
        "before 2012-11-03T11:05:00Z",
        "after 2012-11-03T11:05:00-07:00",
        "before 45m ago",
        "before 3h ago",
        "(udp and port 514) or (tcp and port 8080)",
        "host 1.2.3.4 and port 6543",
        "port 8765",
        "net 1.1.1.0/24",
        // query/query_test.go, valid queries.
        "net 1.2.3.4/8",
        "net 1.2.3.4 mask 255.255.254.0",
        "after 3h ago",
        "after 2015-01-01T13:14:15Z",
        "before 2015-01-01T13:14:15+01:00",
        "host 1.2.3.4 and port 255",
        "(port 80 or (host 1.2.3.4 and tcp) or port 7)",
        "udp and port 514 or tcp and port 80",
        "(udp && port 514) or (tcp and port 80)",
        "(port 80 && after 2015-01-01T13:14:15Z) || (host 1.2.3.4 && before 2015-01-01T13:14:15Z)",
    ] {
        parse(text);
    }
    // Invalid ones.
    for text in [
        "host 1.2.3",
        "net 1.2.3.4/44",
        "port 8 and port 77777",
        "port 77777 and port 8",
        "ip proto -1",
        "ip proto 256",
        "last 4",
    ] {
        fails(text);
    }
}

#[test]
fn stenographers_forms_mean_the_same_with_any_blanks() {
    // query/parser.y: each production, and what its lexer takes without blanks between.
    for (form, ours) in [
        ("host 1.2.3.4", "host 1.2.3.4"),
        ("host\t2001:db8::1", "host 2001:db8::1"),
        ("port  80", "port 80"),
        ("vlan 7", "vlan 7"),
        ("mpls 1024", "mpls 1024"),
        ("ip proto 47", "ip proto 47"),
        ("net 1.2.0.0/16", "net 1.2.0.0/16"),
        ("net 1.2.0.0 /16", "net 1.2.0.0/16"),
        ("net 1.2.0.0 / 16", "net 1.2.0.0/16"),
        ("net 1.2.0.0 mask 255.255.0.0", "net 1.2.0.0/16"),
        ("net 2001:db8:: mask ffff:ffff::", "net 2001:db8::/32"),
        ("( tcp )", "proto = 6"),
        ("udp", "proto = 17"),
        ("icmp", "proto = 1"),
        ("(tcp)and(port 80)", "tcp and port 80"),
        ("tcp&&port 80||udp", "(tcp and port 80) or udp"),
        ("tcp or udp and port 80", "(tcp or udp) and port 80"),
        ("before 2015-01-01T13:14:15.5+01:00", "before 2015-01-01T12:14:15.5Z"),
        ("after 1h30m ago", "after 90m ago"),
        ("after 1.5h ago", "after 90m ago"),
        ("before 250\u{b5}s ago", "before 0.25ms ago"),
    ] {
        assert_eq!(parse(form), parse(ours), "{form}");
    }
}

#[test]
fn examples_of_the_pcap_filter_manual_work_with_addresses_for_names() {
    for text in [
        "net 128.3",
        "port 20",
        "portrange 6000-6008",
        "dst net 128.3",
        "src or dst port ftp-data",
        "tcp port 21",
        "udp portrange 7000-7009",
        "host 192.0.2.1 and not port ftp and not port ftp-data",
        "tcp dst port ftp or ftp-data or domain",
        "ether proto \\ip and host 192.0.2.1",
        "dst port 513",
        "port domain",
        "vlan 100 && vlan 200",
        "vlan && vlan 300 && ip",
        "mpls 100000 && mpls 1024",
        "mpls && mpls 1024 && host 192.9.200.1",
        "pppoes 0x27 && ip",
        "geneve 0xb && ip",
        "not host 192.0.2.1 and 192.0.2.2",
        "host 192.0.2.1 and (192.0.2.2 or 192.0.2.3)",
        "ip host 192.0.2.1 and not 192.0.2.2",
        "ip and not net 192.0.2",
        "not src and dst net 192.0.2",
    ] {
        parse(text);
    }
}

/// A query, where it is wrong, what is suggested, and how the message begins.
const WRONG: &[(&str, usize, Option<&str>, &str)] = &[
    ("hsot 10.0.0.1", 0, Some("host"), "\"hsot\" is no word of the query language"),
    ("host 10.0.0.1 and prot 80", 18, Some("port"), "\"prot\" is no word of the query language"),
    ("443", 0, Some("port 443"), "\"443\" is no word of the query language"),
    ("tcp 80", 4, None, "expected \"and\", \"or\" or the end, found \"80\""),
    ("tcp prot 80", 4, Some("port"), "expected \"and\", \"or\" or the end, found \"prot\""),
    ("bytse > 5", 0, Some("bytes"), "\"bytse\" is no word of the query language"),
    ("has snii", 4, Some("sni"), "\"snii\" is no word of the query language"),
    ("host", 4, None, "expected an IP address; names are not resolved"),
    ("host example.com", 5, None, "\"example.com\" is not an IP address; names are not resolved"),
    ("host 10.0.0.0/8", 5, Some("net"), "\"10.0.0.0/8\" is not an IP address"),
    ("port 1-9", 5, Some("portrange"), "\"1-9\" is not a port"),
    ("port 65536", 5, None, "\"65536\" is not a port"),
    (
        "ether port 80",
        6,
        None,
        "expected a word that fits the one before it, such as host, found \"port\"",
    ),
    ("(tcp or udp", 11, None, "expected \"and\", \"or\" or \")\", found the end"),
    ("tcp)", 3, None, "expected \"and\", \"or\" or the end, found \")\""),
    ("tcp and", 7, None, "expected a condition such as \"host 10.0.0.1\", found the end"),
    ("tcp & udp", 4, Some("&&"), "expected \"and\", \"or\" or the end, found \"&\""),
    (
        "tcp and \"x\"",
        8,
        None,
        "expected a condition such as \"host 10.0.0.1\", found the quoted text \"x\"",
    ),
    ("sni = \"a", 6, None, "this quote is not closed"),
    ("sni = 'a", 6, None, "this quote is not closed"),
    ("sni = \u{201c}a\"", 6, None, "this quote is not closed"),
    ("app_detail ftp.user=*", 19, None, "expected quotes around a value with such signs"),
    ("app_detail = ftp.user=*", 21, None, "expected quotes around a value with such signs"),
    ("sni > a", 4, None, "sni has no order"),
    ("sni ~ a", 4, None, "\"~\" cannot be asked of sessions"),
    ("bytes > lots", 8, None, "\"lots\" is not a size"),
    ("duration > 5", 11, None, "\"5\" is not a duration with its unit"),
    ("state = SFX", 8, None, "\"SFX\" is not a state: S0,"),
    ("community_id garbage", 13, None, "\"garbage\" is not a community id such as 1:"),
    ("community_id = \"1:abc=\"", 15, None, "\"1:abc=\" is not a community id"),
    ("after 5m", 8, None, "expected \"ago\", found the end"),
    (
        "after 2026-11-20[Europe/Brelin]",
        6,
        Some("2026-11-20[Europe/Berlin]"),
        "\"2026-11-20[Europe/Brelin]\" is not a time",
    ),
    ("after yesterday", 6, None, "\"yesterday\" is not a time"),
    ("after 99999w ago", 6, None, "\"99999w\" is not a time"),
    ("port in 80", 8, None, "expected \"{\", found \"80\""),
    ("port in {}", 9, None, "expected a number, found \"}\""),
    ("arp net 10.0.0.0/8", 0, None, "\"arp net\" cannot be asked of sessions"),
    ("arp port 80", 0, None, "\"arp port\" cannot be asked of sessions"),
    ("tcp[13] & 2 != 0", 0, None, "\"tcp[13]\" cannot be asked of sessions"),
    ("tcp and greater 500", 8, None, "\"greater\" cannot be asked of sessions"),
    ("ip multicast", 3, None, "\"multicast\" cannot be asked of sessions"),
];

#[test]
fn errors_point_at_the_character_and_suggest() {
    for &(text, at, suggestion, message) in WRONG {
        let error = fails(text);
        assert_eq!((error.at, error.suggestion.as_deref()), (at, suggestion), "{text}: {error}");
        assert!(error.to_string().starts_with(message), "{text}: {error}");
    }
}

#[test]
fn quotes_are_those_of_programs_and_of_word_processors() {
    let plain = parse("dns_names \"tcpdump.org\" and http_path \"a b\"");
    for (opens, closes) in [
        ("'", "'"),
        ("\u{201c}", "\u{201d}"),
        ("\u{201e}", "\u{201c}"),
        ("\u{201e}", "\u{201d}"),
        ("\u{201d}", "\u{201d}"),
        ("\u{2018}", "\u{2019}"),
        ("\u{201a}", "\u{2018}"),
        ("\u{ab}", "\u{bb}"),
    ] {
        let text = format!("dns_names {opens}tcpdump.org{closes} and http_path={opens}a b{closes}");
        assert_eq!(parse(&text), plain, "{text}");
    }
    // A backslash takes the meaning from what follows, and other quotes are characters.
    assert_eq!(parse("http_path \"say \\\"hi\\\"\""), parse("http_path 'say \"hi\"'"));
    assert_eq!(parse("http_path 'it\\'s'"), parse("http_path \"it's\""));
    assert_eq!(parse("http_path it's"), parse("http_path \"it's\""));
    assert_ne!(parse("http_path \"a\\*b\""), parse("http_path \"a*b\""));
}

#[test]
fn words_of_wireshark_zeek_and_arkime_mean_the_same_here() {
    for (theirs, ours) in [
        (
            "ip.addr == 10.0.0.5 && tcp.port == 443",
            "host = 10.0.0.5 and (proto = 6 and port = 443)",
        ),
        ("!(udp.port == 53) || dns", "not (proto = 17 and port = 53) or app = dns"),
        ("tcp.port != 80", "proto = 6 and not port = 80"),
        ("tcp.port in {80, 443}", "proto = 6 and port in {80, 443}"),
        ("http.response.code >= 500", "http_status >= 500"),
        ("tls.handshake.extensions_server_name == \"www.example.com\"", "sni www.example.com"),
        ("id.orig_h = 10.0.0.5 and id.resp_p = 443", "orig_ip 10.0.0.5 and resp_port 443"),
        ("port.dst == 443 && protocols == tls", "resp_port = 443 and app = tls"),
        ("host.http == *.example.com", "http_host *.example.com"),
        ("has(host.dns)", "has dns_names"),
        ("ssl or http", "app tls or app http"),
        ("tls.handshake.version == 1.2", "tls_version = 1.2"),
        ("SSL.handshake.ciphersuite == *RC4*", "tls_cipher = *RC4*"),
        ("lldp", "ether proto 0x88cc"),
        ("host 10.0.0.1 and dns", "host 10.0.0.1 and app dns"),
        ("port 8080 or http", "port 8080 or port 80"),
        ("ts > 1795171222.5", "start > 1795171222500000000"),
    ] {
        assert_eq!(parse(theirs), parse(ours), "{theirs}");
    }
    for (text, message) in [
        ("ip.src == 10.0.0.1", "here write src host ADDRESS"),
        ("tcp and eth.addr == 00:1b:2c:3d:4e:5f", "here write ether host STATION"),
        ("tcp.analysis.retransmission", "here write retransmitted_packets > 0"),
        ("http.host contains \"example\"", "here write =, with * for any"),
        ("has uid", "here write community_id"),
        ("http contains x", "here write =, with * for any"),
        ("tcp.port eq 80", "here write = (or ==), as in tcp.port = 80"),
        ("packets gt 10", "here write >, as in packets > 10"),
        ("tls.handshake.type == 1", "here write has ja4"),
        ("ssl.handshake.type == 1", "here write has ja4"),
        ("node == x", "here write the query without it"),
        ("tcp port 443 and http", "write \"port http\" or \"app http\""),
    ] {
        let error = fails(text).to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn a_name_is_found_wherever_it_stands() {
    check(&tls(), &[("name www.example.com", true), ("name *.example.org", false)]);
    check(&http(), &[("has name", true)]);
    check(&dns(), &[("has name", true)]);
    check(&ping(), &[("has name", false), ("name != x", true)]);
    let required = parse("name WWW.example.com").required();
    assert_eq!(required, [Required::Name("www.example.com".to_owned())]);
}

#[test]
fn cipher_suites_have_names() {
    let mut row = tls();
    row.names.tls = Some(Box::new(wire::Tls { cipher: Some(0xc02f), ..wire::Tls::default() }));
    check(
        &row,
        &[
            ("tls_cipher = TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", true),
            ("tls_cipher = 0xc02f", true),
            ("tls_cipher = *GCM*", true),
            ("tls_cipher in {*RC4*, *3DES*}", false),
        ],
    );
    assert!(fails("tls_cipher = TLS_NONE").to_string().contains("is not a cipher suite"));
}

#[test]
fn errors_are_shown_with_a_caret() {
    let text = "tcp and\n\thsot 10.0.0.1";
    assert_eq!(
        fails(text).render(text),
        "\"hsot\" is no word of the query language (at byte 9); did you mean \"host\"?\n  \thsot \
         10.0.0.1\n  \t^"
    );
}

#[test]
fn a_word_that_begins_a_condition_is_no_suggestion_for_itself() {
    for (text, meant) in [
        ("dns_names *.x after 3h ago", Some("and after")),
        ("sni x Port 53", Some("and Port")),
        ("sni x prot 53", Some("port")),
        ("sni x zebra", None),
    ] {
        assert_eq!(fails(text).suggestion.as_deref(), meant, "{text}");
    }
}

#[test]
fn depth_is_bounded_and_length_is_not() {
    let nested = |depth: usize| format!("{}tcp{}", "(".repeat(depth), ")".repeat(depth));
    parse(&nested(query::MAXIMUM_DEPTH));
    assert_eq!(fails(&nested(query::MAXIMUM_DEPTH + 1)).problem, Problem::TooDeep);
    assert_eq!(fails(&nested(1_000_000)).problem, Problem::TooDeep);
    assert_eq!(fails(&"tcp and udp or ".repeat(100_000)).problem, Problem::TooDeep);
    assert!(!parse(&format!("{}tcp", "not ".repeat(1_000_001))).matches(&tls(), &[]));

    let long = parse(&format!("host 10.0.0.5{}", " or 10.0.0.6".repeat(200_000)));
    assert!(long.matches(&tls(), &[]));
}

#[test]
fn time_ranges_prune_and_cut() {
    let (min, max) = (Timestamp::MIN, Timestamp::MAX);
    let (ten, eleven) = (at("2026-11-20T10:00:00Z"), at("2026-11-20T11:00:00Z"));
    let before = |time: Timestamp| time.plus_nanos(-1);
    for (text, rows, packets) in [
        ("tcp", (min, max), (min, max)),
        ("after 2h ago and before 1h ago", (ten, before(eleven)), (ten, before(eleven))),
        ("after 1h ago and before 2h ago", (eleven, before(ten)), (eleven, before(ten))),
        ("after 2h ago or after 1h ago", (ten, max), (ten, max)),
        ("(tcp and before 2h ago) or before 1h ago", (min, before(eleven)), (min, before(eleven))),
        ("tcp or before 1h ago", (min, max), (min, max)),
        ("not before 1h ago", (min, max), (min, max)),
        ("not (not after 1h ago)", (eleven, max), (eleven, max)),
        ("start_ns >= 2h ago and end_ns < 1h ago", (ten, before(eleven)), (min, max)),
        ("start_ns > 2h ago", (ten.plus_nanos(1), max), (min, max)),
        ("end_ns = 2h ago", (ten, ten), (min, max)),
        ("session_start >= 2h ago", (ten, max), (min, max)),
        ("session_start <= 2h ago", (min, max), (min, max)),
    ] {
        let query = parse(text);
        assert_eq!((query.time_range(), query.packet_time_range()), (rows, packets), "{text}");
    }
}

#[test]
fn a_text_mentions_what_stands_in_it_by_itself() {
    let mut session = http();
    session.names.http_path = vec!["/to/192.0.2.12".to_owned(), "/from?a=192.0.2.1:80".to_owned()];
    for (text, expected) in [
        ("http_path mentions 192.0.2.1", true),
        ("http.path MENTIONS \"192.0.2.12\"", true),
        ("http_path mentions 192.0.2.1 and tcp", true),
        ("not http_path mentions 192.0.2", true),
        ("http_path mentions to and http_path mentions FROM", true),
        ("http_path mentions fro", false),
        ("sni mentions 192.0.2.1", false),
    ] {
        let query = parse(text);
        assert_eq!(query.matches(&session, &[]), expected, "{text}");
        let again = parse(&query.to_string());
        assert_eq!(again.matches(&session, &[]), expected, "{query}");
    }
    // Without a word behind it, it is one.
    assert_eq!(parse("sni mentions and udp").to_string(), "sni = \"mentions\" and proto = 17");
    for text in ["sni mentions a*", "sni mentions \"\"", "packets mentions 3"] {
        assert!(Query::parse(text, Timestamp(0)).is_err(), "{text}");
    }
}

#[test]
fn what_is_required_no_match_can_do_without() {
    let host = |text: &str| Required::Host(text.parse().unwrap());
    let name = |text: &str| Required::Name(text.to_owned());
    let sum = |columns, least| Required::Sum(columns, least);
    for (text, required) in [
        ("", vec![]),
        ("tcp and port 443", vec![Required::Ports(443, 443)]),
        (
            "src portrange 30-20 and orig_port = 7",
            vec![Required::Ports(7, 7), Required::Ports(20, 30)],
        ),
        ("not port 443", vec![]),
        ("port in {1, 2} or resp_port > 3 or port 4", vec![]),
        ("host 10.0.0.1", vec![host("10.0.0.1")]),
        (
            "src host 10.0.0.2 and dst host 10.0.0.1 and port 80",
            vec![host("10.0.0.1"), host("10.0.0.2"), Required::Ports(80, 80)],
        ),
        ("host 10.0.0.1 or host 10.0.0.2", vec![]),
        ("(host 10.0.0.1 and tcp) or (udp and host 10.0.0.1)", vec![host("10.0.0.1")]),
        ("not host 10.0.0.1", vec![]),
        ("net 10.0.0.0/8 and host ::ffff:10.0.0.1", vec![host("10.0.0.1")]),
        ("tunnel host 10.0.0.1", vec![]),
        (
            "sni WWW.example.com and dns.name example.org",
            vec![name("example.org"), name("www.example.com")],
        ),
        ("sni *.example.com or http.user_agent curl", vec![]),
        ("ja4 T13D1516H2", vec![Required::Value("ja4", "t13d1516h2".to_owned())]),
        ("http.status = 404", vec![Required::Value("http_status", "404".to_owned())]),
        ("http.status > 404 and cert.issuer *a*", vec![]),
        ("packets = 3", vec![sum(&["orig_packets", "resp_packets"], 3)]),
        (
            "duration > 1s and orig_frame_bytes >= 10",
            vec![sum(&["duration_ns"], 1_000_000_001), sum(&["orig_frame_bytes"], 10)],
        ),
        ("duration < 1s and bytes <= 1k and session_age_ns > 1s and packets != 1", vec![]),
        ("http.host = \"a\\*b\"", vec![name("a*b")]),
        ("sni != example.com", vec![]),
        (
            "community_id 1:iM/olWEXeq98jWti2NfJIzAOdM8=",
            vec![Required::CommunityId("1:iM/olWEXeq98jWti2NfJIzAOdM8=".to_owned())],
        ),
        ("session_id 12.0-7", vec![Required::SessionId("12.0-7".to_owned())]),
    ] {
        assert_eq!(parse(text).required(), required, "{text}");
    }
}

#[test]
fn columns_are_those_that_the_answer_depends_on() {
    for (text, columns) in [
        ("host 10.0.0.1", &["orig_ip", "resp_ip"][..]),
        ("src host 10.0.0.1", &["orig_ip", "orig_packets", "resp_ip", "resp_packets"]),
        ("port 80", &["orig_port", "proto", "resp_port"]),
        ("bytes > 1M and sni", &["orig_frame_bytes", "resp_frame_bytes", "sni"]),
        ("after 1h ago", &["duration_ns", "start_ns"]),
        ("vni 5", &["tunnel", "tunnel_id"]),
    ] {
        assert_eq!(parse(text).columns(), columns, "{text}");
    }
}
