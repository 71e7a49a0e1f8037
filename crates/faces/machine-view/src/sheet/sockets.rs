//! TCP sockets, each or put together.

use std::collections::BTreeMap;

use connections::{TcpInfo, TcpState, Track, Watch};
use units::number::{between, per_second};

use super::{Cell, Sheet, SheetColumn, SheetLine, unseen};

/// By what sockets are put together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SocketGrouping {
    /// Each by itself.
    Socket,
    /// The process that has it.
    Process,
    /// The address at the other end.
    Peer,
    /// Listeners, with their queues.
    Listener,
}

/// Lines of sockets as a watch saw them; rates are those of the watch.
pub fn sockets_sheet(
    watch: &Watch,
    grouping: SocketGrouping,
    is_wanted: &dyn Fn(&Track) -> bool,
) -> Sheet {
    let wanted = watch.tracks.values().filter(|track| is_wanted(track));
    let listens = |track: &&Track| track.last.state == TcpState::Listen;
    let mut sheet = match grouping {
        SocketGrouping::Socket => each(watch, wanted.filter(|track| !listens(track))),
        SocketGrouping::Listener => listeners(wanted.filter(listens)),
        SocketGrouping::Process => {
            together(watch, ("process", "PROCESS"), wanted.filter(|it| !listens(it)), owner)
        }
        SocketGrouping::Peer => {
            let peer = |track: &Track| track.last.remote.ip().to_canonical().to_string();
            together(watch, ("peer", "PEER"), wanted.filter(|it| !listens(it)), peer)
        }
    };
    sheet.notes.extend(watch.unseen.iter().map(unseen));
    sheet
}

/// What a socket had moved during the watch.
#[derive(Clone, Copy, Default)]
struct Moved {
    sockets: u64,
    sent: u64,
    received: u64,
    retransmitted: u64,
    queued: u64,
    rtt_us_max: Option<u32>,
}

impl Moved {
    fn of(track: &Track) -> Self {
        let gained = |of: fn(&TcpInfo) -> Option<u64>| {
            let [first, last] = [&track.first, &track.last].map(|socket| socket.info.as_ref());
            let count = |info: Option<&TcpInfo>| info.and_then(of).unwrap_or(0);
            count(last).saturating_sub(count(first))
        };
        Self {
            sockets: 1,
            sent: gained(|info| info.bytes_acked),
            received: gained(|info| info.bytes_received),
            retransmitted: gained(|info| Some(info.retransmitted.into())),
            queued: u64::from(track.last.send_queue) + u64::from(track.last.receive_queue),
            rtt_us_max: track.last.info.map(|info| info.rtt_us),
        }
    }

    fn add(&mut self, other: Self) {
        self.sockets += other.sockets;
        self.sent += other.sent;
        self.received += other.received;
        self.retransmitted += other.retransmitted;
        self.queued += other.queued;
        self.rtt_us_max = self.rtt_us_max.max(other.rtt_us_max);
    }
}

fn owner(track: &Track) -> String {
    track.owner.as_ref().map_or_else(|| "of no known process".to_owned(), ToString::to_string)
}

fn bits(watch: &Watch, bytes: u64) -> Cell {
    Cell::BitsPerSecond(per_second(bytes.saturating_mul(8), between(0, watch.ns)))
}

fn micros(us: Option<u32>) -> Cell {
    Cell::nanos(us.map(|us| u64::from(us) * 1000))
}

fn most_first(mut moved: Vec<(Moved, SheetLine)>) -> Vec<SheetLine> {
    moved.sort_by_key(|(moved, _)| core::cmp::Reverse((moved.sent + moved.received, moved.queued)));
    moved.into_iter().map(|(_, line)| line).collect()
}

fn each<'w>(watch: &Watch, tracks: impl Iterator<Item = &'w Track>) -> Sheet {
    let columns = vec![
        SheetColumn::words("local", "LOCAL", 15, 0),
        SheetColumn::words("remote", "REMOTE", 15, 0),
        SheetColumn::words("process", "PROCESS", 8, 0),
        SheetColumn::words("state", "STATE", 4, 6),
        SheetColumn::number("sent_bits_per_s", "SENT", 1),
        SheetColumn::number("received_bits_per_s", "RECEIVED", 1),
        SheetColumn::number("rtt_ns", "RTT", 2),
        SheetColumn::number("cwnd_segments", "CWND", 3),
        SheetColumn::number("retransmitted", "AGAIN", 3),
        SheetColumn::number("send_queue_bytes", "TO SEND", 4),
        SheetColumn::number("receive_queue_bytes", "TO READ", 4),
        SheetColumn::number("delivery_bytes_per_s", "DELIVERY", 7),
        SheetColumn::words("congestion", "CONTROL", 5, 8),
    ];
    let line = |track: &Track| {
        let (moved, socket) = (Moved::of(track), &track.last);
        let info = socket.info.as_ref();
        let cells = vec![
            Cell::Text(socket.local.to_string()),
            Cell::Text(socket.remote.to_string()),
            Cell::Text(owner(track)),
            Cell::Text(state(socket.state).to_owned()),
            bits(watch, moved.sent),
            bits(watch, moved.received),
            micros(moved.rtt_us_max),
            info.map_or(Cell::Absent, |info| Cell::Count(info.congestion_window.into())),
            Cell::Count(moved.retransmitted),
            Cell::Bytes(socket.send_queue.into()),
            Cell::Bytes(socket.receive_queue.into()),
            info.and_then(|info| info.delivery_rate).map_or(Cell::Absent, Cell::BytesPerSecond),
            Cell::text(socket.congestion.clone()),
        ];
        (moved, SheetLine { cells, query: Some(query(track)) })
    };
    Sheet { columns, lines: most_first(tracks.map(line).collect()), ..Sheet::default() }
}

/// Selects the session that a socket is an end of.
fn query(track: &Track) -> String {
    let (local, remote) = (track.last.local, track.last.remote);
    let host = |end: core::net::SocketAddr| end.ip().to_canonical();
    format!(
        "host {} and host {} and port {} and port {} and tcp",
        host(local),
        host(remote),
        local.port(),
        remote.port()
    )
}

fn state(state: TcpState) -> &'static str {
    match state {
        TcpState::Established => "open",
        TcpState::SynSent => "syn sent",
        TcpState::SynReceived => "syn received",
        TcpState::Listen => "listens",
        TcpState::TimeWait => "time wait",
        TcpState::CloseWait => "close wait",
        TcpState::Closing => "closing",
    }
}

fn listeners<'w>(tracks: impl Iterator<Item = &'w Track>) -> Sheet {
    let columns = vec![
        SheetColumn::words("local", "LISTENS AT", 15, 0),
        SheetColumn::words("process", "PROCESS", 8, 1),
        SheetColumn::number("waiting", "WAITING", 0),
        SheetColumn::number("waiting_max", "AT MOST", 2),
        SheetColumn::number("backlog", "BACKLOG", 0),
    ];
    let mut all: Vec<&Track> = tracks.collect();
    all.sort_by_key(|track| (core::cmp::Reverse(track.queue_max), track.last.local));
    let line = |track: &Track| SheetLine {
        cells: vec![
            Cell::Text(track.last.local.to_string()),
            Cell::Text(owner(track)),
            Cell::Count(track.last.receive_queue.into()),
            Cell::Count(track.queue_max.into()),
            Cell::Count(track.last.send_queue.into()),
        ],
        query: Some(format!("tcp and resp port {}", track.last.local.port())),
    };
    Sheet { columns, lines: all.into_iter().map(line).collect(), ..Sheet::default() }
}

fn together<'w>(
    watch: &Watch,
    (key, title): (&'static str, &'static str),
    tracks: impl Iterator<Item = &'w Track>,
    group: impl Fn(&Track) -> String,
) -> Sheet {
    let columns = vec![
        SheetColumn::words(key, title, 15, 0),
        SheetColumn::number("sockets", "SOCKETS", 2),
        SheetColumn::number("sent_bits_per_s", "SENT", 0),
        SheetColumn::number("received_bits_per_s", "RECEIVED", 0),
        SheetColumn::number("rtt_max_ns", "LONGEST RTT", 1),
        SheetColumn::number("retransmitted", "AGAIN", 2),
        SheetColumn::number("queued_bytes", "QUEUED", 3),
    ];
    let mut groups: BTreeMap<String, Moved> = BTreeMap::new();
    for track in tracks {
        groups.entry(group(track)).or_default().add(Moved::of(track));
    }
    let lines = groups.into_iter().map(|(name, moved)| {
        let query = (key == "peer").then(|| format!("tcp and host {name}"));
        let cells = vec![
            Cell::Text(name),
            Cell::Count(moved.sockets),
            bits(watch, moved.sent),
            bits(watch, moved.received),
            micros(moved.rtt_us_max),
            Cell::Count(moved.retransmitted),
            Cell::Bytes(moved.queued),
        ];
        (moved, SheetLine { cells, query })
    });
    Sheet { columns, lines: most_first(lines.collect()), ..Sheet::default() }
}
