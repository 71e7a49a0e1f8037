//! What the fuzz target of queries starts from (`fuzz/seeds`), whole, cut everywhere and with bytes
//! changed: it is a query, or refused with a place.

#[path = "../../../../fuzz/src/made.rs"]
mod made;
#[path = "../../../../fuzz/src/query_text.rs"]
#[expect(unreachable_pub, reason = "it is the library of the fuzz targets, too")]
mod query_text;
#[path = "../../../../fuzz/src/replay.rs"]
mod replay;

const QUERIES: [(&str, &str); 7] = [
    ("hosts", "host 10.0.0.5 and port 443 or net 10.0.0.0 mask 255.0.0.0 and not ip6 proto 17"),
    ("times", "after 2026-11-20T10:00:00Z and before 2026-11-20T10:05:00+01:00 or since 3h ago"),
    ("fields", "sni *.example.com or (bytes > 100M and duration > 1h and tcp.sack = no)"),
    ("bytes-of-headers", "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0 and ip[2:2] - 20 > 0x10"),
    ("lists", "port 80 or 443 or 8080 and dns.rcode = NXDOMAIN and portrange 6000-6008"),
    ("deep", "not ((((((((!(!(host ::ffff:10.0.0.5)))))))))) or ether host 00:1b:2c:3d:4e:5f"),
    ("zone-that-is-none", "after 2026-21p[i1x:hzero_windowsttp_user_agent4] - 20 d  befotcpYret 2"),
];

#[test]
fn texts_that_are_no_queries_are_refused_with_a_place() {
    for (name, text) in QUERIES {
        made::made("query_parse", name, text.as_bytes());
    }
    replay::replay("query_parse", query_text::run);
}
