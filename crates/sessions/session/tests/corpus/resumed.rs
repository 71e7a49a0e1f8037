//! Captures whose packets two tables get, one behind the other: the second one goes on from the
//! rows of the first, and sessions come out as one table makes them.

use session::Before;
use units::{InterfaceId, Sequence};

use super::*;

/// Of a session: when it began, packets and payload of both directions.
type Counted = (Tuple, Timestamp, [(u64, u64); 2]);

struct Session {
    counted: Counted,
    row: SessionRow,
}

/// Rows into sessions.
fn sessions(rows: Vec<SessionRow>) -> Vec<Session> {
    let mut joined: BTreeMap<(Tuple, Timestamp), SessionRow> = BTreeMap::new();
    for row in rows {
        let identity = (tuple_of_slice("", &row), row.session_start);
        match joined.get_mut(&identity) {
            Some(session) => session.join(row),
            None => drop(joined.insert(identity, row)),
        }
    }
    let counted = |((tuple, start), row): ((Tuple, Timestamp), SessionRow)| {
        let counts = [&row.orig, &row.resp].map(|side| (side.packets, side.payload_bytes));
        Session { counted: (tuple, start, counts), row }
    };
    joined.into_iter().map(counted).collect()
}

/// The sessions of packets that are cut at `at`: of one table, and of two.
fn both_ways(
    (packets, interfaces): (&[Copied], &[Interface]),
    at: usize,
    config: Config,
) -> [Vec<Session>; 2] {
    let views = |packets: &[Copied], from: usize, table: &mut Table, rows: &mut Vec<SessionRow>| {
        for (packet, place) in packets.iter().zip(from..) {
            let interface = &interfaces[usize::try_from(packet.interface).unwrap()];
            let sequence = u64::try_from(place / 50).unwrap();
            let begin = u32::try_from(place % 50 * 4).unwrap();
            let view = PacketView {
                timestamp: packet.timestamp,
                interface: InterfaceId(packet.interface),
                link_type: interface.link_type,
                original_len: packet.original_len,
                data: &packet.data,
                piece: PieceId { sequence: Sequence(sequence), sub: 0, column: 0 },
                begin,
                end: begin + 4,
            };
            table.push(&view, rows);
        }
    };
    let (before, behind) = packets.split_at(at);
    let mut table = Table::new(config, 1);
    let mut rows = Vec::new();
    views(before, 0, &mut table, &mut rows);
    table.cut(&mut rows);
    let rows_before = rows.clone();
    views(behind, at, &mut table, &mut rows);
    table.finish(&mut rows);
    let one = sessions(rows);

    let mut second = Table::new(config, 2);
    let mut by_start = rows_before.clone();
    by_start.sort_by_key(|row| row.start);
    let at = behind.first().map_or(Timestamp::MAX, |packet| packet.timestamp);
    let last_row = Before { segment: 0, at };
    for row in by_start {
        second.resume(row, last_row);
    }
    let mut rows = rows_before;
    views(behind, before.len(), &mut second, &mut rows);
    second.finish(&mut rows);
    [one, sessions(rows)]
}

/// Without the time that an answer took whose query the other table saw.
fn names(row: &SessionRow) -> Names {
    Names { dns_rtt_ns: None, ..(*row.names).clone() }
}

/// One in a hundred of those that are in several pieces may differ, and each is printed: sequence
/// numbers are not in rows, nor is the beginning of a message that was cut. Of sessions only those
/// are not there whose datagrams were cut: later fragments have no ports.
#[test]
fn a_second_table_goes_on_from_the_rows_of_the_first() {
    let (mut all, mut resumed) = (0, 0);
    let mut differ = BTreeMap::from([("sessions", 0), ("state", 0), ("names", 0), ("app", 0)]);
    for corpus in Corpus::all() {
        for path in corpus.captures() {
            let (packets, interfaces) = packets(&path);
            for part in [1, 2, 3] {
                let at = packets.len() * part / 4;
                let [one, two] = both_ways((&packets, &interfaces), at, Config::default());
                all += one.len();
                let known: BTreeMap<&Counted, &SessionRow> =
                    two.iter().map(|session| (&session.counted, &session.row)).collect();
                for Session { counted, row } in &one {
                    let Some(other) = known.get(counted) else {
                        println!("{path:?} at {at}: {counted:?} is not there");
                        *differ.get_mut("sessions").unwrap() += 1;
                        continue;
                    };
                    resumed += usize::from(row.continues || row.pieces.len() > 1);
                    for (what, is_same) in [
                        ("state", row.state == other.state),
                        ("names", names(row) == names(other)),
                        ("app", row.app == other.app),
                    ] {
                        if !is_same {
                            println!("{path:?} at {at}: {what} of {counted:?}: {row:?} {other:?}");
                            *differ.get_mut(what).unwrap() += 1;
                        }
                    }
                }
            }
        }
    }
    println!("of {all} sessions, {resumed} of them in several pieces, differ: {differ:?}");
    assert!(resumed > 100 && differ.values().all(|&count| count * 100 <= resumed));
    assert!(differ["sessions"] * 500 <= resumed);
}
