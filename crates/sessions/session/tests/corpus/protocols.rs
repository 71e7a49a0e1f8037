//! Names of protocols against nDPI's, over the whole corpus.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use format::session_row::SessionRow;
use testdata::Corpus;
use wire::App;

use super::{Row, Tuple, all_sessions, read_table, tuple_of_reference};

/// nDPI's word for a protocol, and ours that are as good. Where it knows the same bytes by a port
/// or by what is inside, ours is the protocol that was seen.
const EQUAL: &[(&str, &[App])] = &[
    ("BGP", &[App::Bgp]),
    ("BitTorrent", &[App::Bittorrent]),
    ("CLDAP", &[App::Cldap]),
    ("DHCP", &[App::Dhcp]),
    ("DHCPV6", &[App::Dhcpv6]),
    ("DNP3", &[App::Dnp3]),
    ("DNS", &[App::Dns]),
    ("FTP_CONTROL", &[App::Ftp]),
    ("HTTP", &[App::Http]),
    ("HTTP2", &[App::Http2]),
    ("IMAP", &[App::Imap]),
    ("IMAPS", &[App::Tls]),
    ("Kerberos", &[App::Kerberos]),
    ("LDAP", &[App::Ldap, App::Cldap]),
    ("LLMNR", &[App::Llmnr]),
    ("MDNS", &[App::Mdns]),
    ("MQTT", &[App::Mqtt]),
    ("Modbus", &[App::Modbus]),
    ("MySQL", &[App::Mysql]),
    ("NTP", &[App::Ntp]),
    ("NetBIOS", &[App::Netbiosns, App::Netbiosdgm, App::Netbiosssn, App::Smb]),
    ("OpenVPN", &[App::Openvpn]),
    ("POP3", &[App::Pop3]),
    ("POPS", &[App::Tls, App::Pop3]),
    ("PostgreSQL", &[App::Postgresql]),
    ("QUIC", &[App::Quic]),
    ("RDP", &[App::Rdp]),
    ("RTCP", &[App::Rtcp]),
    ("RTP", &[App::Rtp]),
    ("RTSP", &[App::Rtsp]),
    ("Redis", &[App::Redis]),
    ("S7Comm", &[App::S7comm]),
    ("SIP", &[App::Sip]),
    ("SMBv1", &[App::Smb]),
    ("SMBv23", &[App::Smb]),
    ("SMTP", &[App::Smtp]),
    ("SMTPS", &[App::Tls]),
    ("SNMP", &[App::Snmp]),
    ("SRTP", &[App::Rtp]),
    ("SSH", &[App::Ssh]),
    ("STUN", &[App::Stun]),
    ("TFTP", &[App::Tftp]),
    ("TLS", &[App::Tls]),
    ("Telnet", &[App::Telnet]),
    ("WireGuard", &[App::Wireguard]),
];

/// What became of one session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Outcome {
    Equal,
    /// It has no payload: nDPI went by the port.
    WithoutPayload,
    /// We have no name for its payload.
    Nameless,
    Other,
    /// The key is another: nDPI takes the outer addresses, or a fragment for itself.
    Absent,
}

/// nDPI's word without its number, the tunnel before it, and the service after it.
fn word(row: &Row) -> &str {
    let name = row["app"].rsplit('/').next().unwrap();
    name.split('.').next().unwrap()
}

/// The reference writes some addresses of version 6 in another form.
fn plain(mut tuple: Tuple) -> Tuple {
    for (ip, _) in &mut tuple.2 {
        if let Ok(parsed) = ip.parse::<IpAddr>() {
            *ip = parsed.to_string();
        }
    }
    tuple.2.sort();
    tuple
}

fn outcome(slices: Option<&Vec<SessionRow>>, equal: &[App]) -> (Outcome, &'static str) {
    let Some(slices) = slices else { return (Outcome::Absent, "") };
    let named: Vec<_> = slices.iter().filter_map(|slice| slice.app).collect();
    if let Some(same) = named.iter().find(|named| equal.contains(&named.app)) {
        return (Outcome::Equal, same.app.name());
    }
    if let Some(other) = named.first() {
        return (Outcome::Other, other.app.name());
    }
    let payload: u64 =
        slices.iter().map(|slice| slice.orig.payload_bytes + slice.resp.payload_bytes).sum();
    (if payload == 0 { Outcome::WithoutPayload } else { Outcome::Nameless }, "")
}

#[test]
fn names_of_protocols_are_ndpis() {
    Corpus::all().iter().for_each(compare);
}

fn compare(corpus: &Corpus) {
    let mut reference = read_table(&corpus.path().join("ref/peers_expected.tsv"));
    reference.retain(|row| row["peer"] == "ndpi");
    let ours: BTreeMap<Tuple, Vec<SessionRow>> = all_sessions(corpus.path(), &reference)
        .into_iter()
        .map(|(tuple, slices)| (plain(tuple), slices))
        .collect();
    let mut kinds = BTreeMap::<(Outcome, &str, &str), (u32, String)>::new();
    let mut beyond = BTreeMap::<(&str, &str), u32>::new();
    for row in &reference {
        let tuple = plain(tuple_of_reference(row));
        let slices = ours.get(&tuple);
        let word = word(row);
        let Some((_, equal)) = EQUAL.iter().find(|(known, _)| *known == word) else {
            let named = slices.into_iter().flatten().find_map(|slice| slice.app);
            *beyond.entry((word, named.map_or("", |named| named.app.name()))).or_default() += 1;
            continue;
        };
        let (outcome, name) = outcome(slices, equal);
        let entry = kinds.entry((outcome, word, name)).or_insert((0, format!("{tuple:?}")));
        entry.0 += 1;
    }
    for ((outcome, word, name), (count, example)) in &kinds {
        println!("{outcome:?}: nDPI {word}, ours {name}: {count}, such as {example}");
    }
    for ((word, name), count) in beyond {
        println!("not compared: nDPI {word}, ours {name}: {count}");
    }
    let sum = |wanted: Option<Outcome>| -> u32 {
        let is_wanted = |found: Outcome| wanted.is_none_or(|wanted| wanted == found);
        kinds.iter().filter(|(kind, _)| is_wanted(kind.0)).map(|(_, (count, _))| count).sum()
    };
    let (equal, count) = (sum(Some(Outcome::Equal)), sum(None));
    println!("{equal} of {count} sessions have nDPI's name");
    let (least, percent) = if corpus.is_large { (1000, 95) } else { (150, 100) };
    assert!(count > least && equal * 100 >= count * percent);
    // A name that is neither nDPI's nor none is the worst kind.
    assert!(sum(Some(Outcome::Other)) * 100 < count);
    let words: BTreeSet<&str> = kinds.keys().map(|kind| kind.1).collect();
    println!("{} of nDPI's words compared", words.len());
    assert!(words.len() >= 11);
}
