//! Packets of any bytes and times to who adds them up, and every question that can be asked.
#![no_main]

use capture::{Interface, Packet};
use libfuzzer_sys::fuzz_target;
use query::Query;
use talkers::{DnsGrouping, Grouping, Limits, Talkers};
use units::{NANOS_PER_SECOND, Timestamp};
use wire::LinkType;

const GROUPINGS: [Grouping; 5] =
    [Grouping::Session, Grouping::Pair, Grouping::Host, Grouping::Port, Grouping::Protocol];

fuzz_target!(|input: &[u8]| {
    let interface = Interface {
        name: String::new(),
        description: None,
        link_type: LinkType::ETHERNET,
        snaplen: 0,
        filter: None,
        options: Vec::new(),
    };
    let limits = Limits { packet_bytes: 0, lines: 64, sessions: 8 };
    let mut talkers = Talkers::new(limits, 1);
    let mut rest = input;
    // Each packet: its time in seconds, its length, its bytes.
    while let Some((&[second, len], bytes)) = rest.split_first_chunk() {
        let (head, behind) = bytes.split_at_checked(len.into()).unwrap_or((bytes, &[]));
        rest = behind;
        let packet = Packet {
            timestamp: Timestamp(i64::from(second) * NANOS_PER_SECOND),
            interface: 0,
            original_len: len.into(),
            outbound: None,
            head,
            tag: None,
            tail: &[],
            options: &[],
        };
        talkers.take(&[interface.clone()], [packet]);
    }
    talkers.end();
    let Some((_, at)) = talkers.held().seconds else { return };
    for grouping in GROUPINGS {
        for talker in talkers.talkers(grouping, at, &Query::all(), 10).0 {
            let query = talker.who.query();
            Query::parse(&query, at.end()).expect("the query of a line can be read");
        }
    }
    for asked in talkers.asked(DnsGrouping::Name, at, &Query::all()) {
        let query = asked.key.query();
        Query::parse(&query, at.end()).expect("the query of a line can be read");
    }
});
