//! Packets of any bytes and times are added up, and every question that can be asked is.
//!
//! The input, for each packet: its time in seconds in a byte, its length in one, its bytes.

use capture::{Interface, Packet};
use query::Query;
use talkers::{DnsGrouping, Grouping, Limits, Talkers};
use units::{NANOS_PER_SECOND, Timestamp};
use wire::LinkType;

const GROUPINGS: [Grouping; 5] =
    [Grouping::Session, Grouping::Pair, Grouping::Host, Grouping::Port, Grouping::Protocol];

/// Gives how many lines are shown.
///
/// # Panics
/// Adding up does, or the query of a line is none.
pub fn run(mut input: &[u8]) -> usize {
    let interfaces = [Interface {
        name: String::new(),
        description: None,
        link_type: LinkType::ETHERNET,
        snaplen: 0,
        filter: None,
        options: Vec::new(),
    }];
    let limits = Limits { packet_bytes: 0, lines: 64, sessions: 8 };
    let mut talkers = Talkers::new(limits, 1);
    while let Some((&[second, len], bytes)) = input.split_first_chunk() {
        let (head, behind) = bytes.split_at_checked(len.into()).unwrap_or((bytes, &[]));
        input = behind;
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
        talkers.take(&interfaces, [packet]);
    }
    talkers.end();
    let Some((_, at)) = talkers.held().seconds else { return 0 };
    let mut queries = Vec::new();
    for grouping in GROUPINGS {
        let shown = talkers.talkers(grouping, at, &Query::all(), 10).0;
        queries.extend(shown.iter().map(|talker| talker.who.query()));
    }
    let asked = talkers.asked(DnsGrouping::Name, at, &Query::all());
    queries.extend(asked.iter().map(|asked| asked.key.query()));
    for query in &queries {
        Query::parse(query, at.end()).expect("the query of a line can be read");
    }
    queries.len()
}
