//! Tables of what is in the captures, in the form of the large corpus's tables.
//!
//! A column of theirs is left out where no test reads it. `tshark_sessions.tsv` has its name from
//! them, too: tshark has made none of these rows.

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

use crate::layers::{Ends, Side, TCP, UDP};
use crate::scene::{Frame, Scene, Session};

/// Columns of names in the table of sessions.
const NAMES: [&str; 6] = ["sni", "dns", "http_host", "ja3", "ssh", "subject"];

/// A table: a file's name below `ref`, and its lines.
pub(crate) struct Table {
    pub(crate) file: &'static str,
    lines: Vec<String>,
}

impl Table {
    fn new(file: &'static str, columns: &[&str]) -> Self {
        Self { file, lines: vec![columns.join("\t")] }
    }

    fn row(&mut self, cells: &[String]) {
        self.lines.push(cells.join("\t"));
    }

    pub(crate) fn text(&self) -> String {
        self.lines.join("\n") + "\n"
    }
}

pub(crate) fn all(scenes: &[Scene]) -> Vec<Table> {
    vec![
        sessions(scenes),
        agreed(scenes),
        protocols(scenes),
        community_ids(scenes),
        times(scenes),
        containers(scenes),
    ]
}

fn frames_of(scene: &Scene, session: usize) -> Vec<(usize, &Frame)> {
    (1..).zip(&scene.frames).filter(|(_, frame)| frame.session == session).collect()
}

/// Both ends as columns; a protocol without ports has none.
fn tuple(scene: &Scene, session: &Session) -> [String; 6] {
    let file = scene.file.to_owned();
    let Some(Ends { a, b, proto }) = session.ends else {
        return [
            file,
            "nonip:arp".into(),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
        ];
    };
    let port = |port: u16| {
        if [TCP, UDP].contains(&proto) { port.to_string() } else { String::new() }
    };
    [file, proto.to_string(), a.0.to_string(), port(a.1), b.0.to_string(), port(b.1)]
}

/// Seconds with nine decimals.
fn seconds(time_ns: u64) -> String {
    format!("{}.{:09}", time_ns / 1_000_000_000, time_ns % 1_000_000_000)
}

fn sum(frames: &[(usize, &Frame)], side: Option<Side>, of: impl Fn(&Frame) -> usize) -> String {
    let is_wanted = |frame: &Frame| side.is_none_or(|side| side == frame.side);
    let wanted = frames.iter().map(|(_, frame)| *frame).filter(|frame| is_wanted(frame));
    wanted.map(of).sum::<usize>().to_string()
}

fn flags(frames: &[(usize, &Frame)], side: Side) -> String {
    let of_side = frames.iter().filter(|(_, frame)| frame.side == side);
    let seen = of_side.fold(0, |seen, (_, frame)| seen | frame.tcp_flags);
    if seen == 0 { String::new() } else { format!("0x{seen:02x}") }
}

/// The numbers as `1-4,9`.
fn ranges(numbers: impl Iterator<Item = usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = |(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

fn sessions(scenes: &[Scene]) -> Table {
    let columns = "file proto ip_a port_a ip_b port_b first last pkts pkts_ab pkts_ba frame_bytes \
                   frame_bytes_ab frame_bytes_ba cap_bytes ip_bytes_ab ip_bytes_ba payload_ab \
                   payload_ba tcp_flags_ab tcp_flags_ba community_id sni dns http_host ja3 ssh \
                   subject frames";
    let columns: Vec<&str> = columns.split_whitespace().collect();
    let mut table = Table::new("tshark_sessions.tsv", &columns);
    let (a, b) = (Some(Side::A), Some(Side::B));
    for scene in scenes {
        for (number, session) in scene.sessions.iter().enumerate() {
            let frames = &frames_of(scene, number)[..];
            let [first, last] =
                [frames.first(), frames.last()].map(|frame| frame.expect("a packet").1.time_ns);
            let wire = |frame: &Frame| frame.bytes.len();
            let mut row = tuple(scene, session).to_vec();
            row.extend([first, last].map(seconds));
            row.extend([None, a, b].map(|side| sum(frames, side, |_| 1)));
            row.extend([None, a, b].map(|side| sum(frames, side, wire)));
            row.push(sum(frames, None, |frame| scene.kept(frame)));
            row.extend([a, b].map(|side| sum(frames, side, |frame| frame.ip_bytes)));
            row.extend([a, b].map(|side| sum(frames, side, |frame| frame.payload_bytes)));
            row.extend([Side::A, Side::B].map(|side| flags(frames, side)));
            row.push(community_id(session).unwrap_or_default());
            let names = |column| session.names.get(column).map(|names| names.join(","));
            row.extend(NAMES.iter().map(|column| names(column).unwrap_or_default()));
            row.push(ranges(frames.iter().map(|(number, _)| *number)));
            table.row(&row);
        }
    }
    table
}

/// Sessions on whose counts at least two agree: here the maker, who need ask nobody.
fn agreed(scenes: &[Scene]) -> Table {
    let columns = [
        "file",
        "proto",
        "ip_a",
        "port_a",
        "ip_b",
        "port_b",
        "pkts",
        "frame_bytes",
        "ip_bytes",
        "n_agree",
    ];
    let mut table = Table::new("sessions_consensus.tsv", &columns);
    for scene in scenes {
        for (number, session) in scene.sessions.iter().enumerate() {
            if session.ends.is_none() {
                continue;
            }
            let frames = &frames_of(scene, number)[..];
            let mut row = tuple(scene, session).to_vec();
            row.push(sum(frames, None, |_| 1));
            row.push(sum(frames, None, |frame| frame.bytes.len()));
            row.push(sum(frames, None, |frame| frame.ip_bytes));
            row.push("2".into());
            table.row(&row);
        }
    }
    table
}

/// What sessions speak, in nDPI's words.
fn protocols(scenes: &[Scene]) -> Table {
    let columns = ["file", "peer", "proto", "ip_a", "port_a", "ip_b", "port_b", "app"];
    let mut table = Table::new("peers_expected.tsv", &columns);
    for scene in scenes {
        for session in &scene.sessions {
            if let Some(app) = session.app {
                let [file, ends @ ..] = tuple(scene, session);
                let row = [&[file, "ndpi".into()], &ends[..], &[app.into()]].concat();
                table.row(&row);
            }
        }
    }
    table
}

fn community_ids(scenes: &[Scene]) -> Table {
    let columns =
        ["file", "proto", "ip_a", "port_a", "ip_b", "port_b", "icmp", "pycommunityid", "agree"];
    let mut table = Table::new("community_id.tsv", &columns);
    for scene in scenes {
        for session in &scene.sessions {
            let Some(id) = community_id(session) else { continue };
            let mut row = tuple(scene, session).to_vec();
            let icmp = session.icmp.map(|(kind, code)| format!("{kind}/{code}"));
            row.extend([icmp.unwrap_or_default(), id, "y".into()]);
            table.row(&row);
        }
    }
    table
}

/// Community ID v1 with seed 0: SHA-1 over the ends in order.
fn community_id(session: &Session) -> Option<String> {
    let Ends { mut a, mut b, proto } = session.ends?;
    if let Some((kind, _)) = session.icmp {
        // Of ICMP the ports are the message's type and that of its answer.
        let answer = match kind {
            8 => 0,
            128 => 129,
            _ => return None,
        };
        (a.1, b.1) = (kind.into(), answer);
    }
    let octets = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let mut ends = [(octets(a.0), a.1), (octets(b.0), b.1)];
    ends.sort();
    let [(low, low_port), (high, high_port)] = ends;
    let ports = [low_port.to_be_bytes(), high_port.to_be_bytes()].concat();
    let hashed = [&[0, 0], &low[..], &high, &[proto, 0], &ports].concat();
    Some(format!("1:{}", STANDARD.encode(Sha1::digest(hashed))))
}

fn times(scenes: &[Scene]) -> Table {
    let mut table = Table::new("capinfos.tsv", &["File name", "Start time", "End time"]);
    for scene in scenes {
        let time = |frame: Option<&Frame>| seconds(frame.expect("a packet").time_ns);
        let [first, last] = [scene.frames.first(), scene.frames.last()].map(time);
        table.row(&[scene.file.into(), first, last]);
    }
    table
}

fn containers(scenes: &[Scene]) -> Table {
    let columns = [
        "file",
        "packets",
        "wire_bytes",
        "cap_bytes",
        "interfaces",
        "sections",
        "bad_frac",
        "blocks",
        "truncated",
        "corrupt",
    ];
    let mut table = Table::new("container.tsv", &columns);
    for scene in scenes {
        let wire: usize = scene.frames.iter().map(|frame| frame.bytes.len()).sum();
        let captured: usize = scene.frames.iter().map(|frame| scene.kept(frame)).sum();
        let counts = [scene.frames.len(), wire, captured, scene.ports.len()];
        let mut row = vec![scene.file.to_owned()];
        row.extend(counts.map(|count| count.to_string()));
        row.extend([(1 + scene.sections.len()).to_string(), "0".into()]);
        row.push(format!("{{\"NRB\": {}}}", scene.blocks.len()));
        row.extend([String::new(), String::new()]);
        table.row(&row);
    }
    table
}
