//! Synthetic sessions, drawn from a table of real ones.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use format::head::StripeId;
use format::session_row::{Direction, History, Names, PieceId, PieceSpan, SessionRow, State};
use units::{Random, Timestamp};
use wire::{Address, App, AppBy, CommunityId, FiveTuple, Protocol, Recognised};

/// The same question twice.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// In our words.
    pub(super) query: String,
    /// In SQL over the Parquet files.
    pub(super) condition: String,
}

/// One session in so many is a needle.
const NEEDLE_EVERY: u64 = 100;
/// Clients that sessions are opened by.
const CLIENTS: u64 = 200_000;
/// From the start of one session to that of the next.
const APART_NS: i64 = 1_000_000;
/// 2026-11-01.
const BEGIN: Timestamp = Timestamp(1_793_491_200_000_000_000);
/// Needles that are remembered, to choose from.
const REMEMBERED: usize = 4096;

/// What a real session was like.
#[derive(Clone, Debug)]
struct Example {
    proto: Protocol,
    port: u16,
    server: Address,
    packets: [u64; 2],
    frame_bytes: [u64; 2],
    ip_bytes: [u64; 2],
    payload_bytes: [u64; 2],
    sni: Option<String>,
    dns: Option<String>,
    host: Option<String>,
}

/// A session that nothing else is like.
#[derive(Clone, Debug)]
pub(super) struct Needle {
    tuple: FiveTuple,
    sni: String,
}

impl Needle {
    pub(super) fn by_address(&self) -> Question {
        let ip = self.tuple.resp;
        Question {
            query: format!("host {ip}"),
            condition: format!("orig_ip = '{ip}' OR resp_ip = '{ip}'"),
        }
    }

    pub(super) fn by_name(&self) -> Question {
        let name = &self.sni;
        Question { query: format!("sni {name}"), condition: format!("sni = '{name}'") }
    }

    /// The files have no community ids, so the peer compares what they are made of.
    pub(super) fn by_community_id(&self) -> Question {
        let FiveTuple { orig, resp, orig_port, resp_port, .. } = self.tuple;
        let id = CommunityId::of(&self.tuple, None).map(|id| id.0.clone()).unwrap_or_default();
        Question {
            query: format!("community_id {id}"),
            condition: format!(
                "orig_ip = '{orig}' AND resp_ip = '{resp}' AND orig_port = {orig_port} AND \
                 resp_port = {resp_port} AND proto = 6"
            ),
        }
    }
}

/// Makes sessions, the same ones every time.
#[derive(Debug)]
pub(super) struct Sessions {
    examples: Vec<Example>,
    random: Random,
    made: u64,
    needles: Vec<Needle>,
}

impl Sessions {
    /// From a table with a heading: protocol, responder, counts each way, and names.
    pub(super) fn read(table: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(table)
            .with_context(|| format!("cannot read {}", table.display()))?;
        let mut lines = text.lines();
        let heading = lines.next().context("the table is empty")?.split('\t');
        let places: HashMap<&str, usize> = heading.zip(0..).collect();
        let examples: Vec<Example> = lines
            .filter_map(|line| example(&places, &line.split('\t').collect::<Vec<_>>()))
            .collect();
        ensure!(!examples.is_empty(), "{} has no sessions of TCP or UDP", table.display());
        Ok(Self { examples, random: Random::new(5), made: 0, needles: Vec::new() })
    }

    /// When the next session begins.
    pub(super) fn now(&self) -> Timestamp {
        BEGIN.plus_nanos(i64::try_from(self.made).unwrap_or(i64::MAX) * APART_NS)
    }

    /// Some of the needles made so far, evenly spread.
    pub(super) fn needles(&self, count: usize) -> Vec<Needle> {
        let step = (self.needles.len() / count.max(1)).max(1);
        self.needles.iter().skip(step / 2).step_by(step).take(count).cloned().collect()
    }

    /// The next sessions, with their packets in a piece of this stripe.
    pub(super) fn take(&mut self, count: usize, stripe: StripeId) -> Vec<SessionRow> {
        (0..count).map(|_| self.session(stripe)).collect()
    }

    fn session(&mut self, StripeId { sequence, sub }: StripeId) -> SessionRow {
        let start = self.now();
        let is_needle = self.made % NEEDLE_EVERY == NEEDLE_EVERY / 2;
        let at = self.random.below(u64::try_from(self.examples.len()).unwrap_or(1));
        let at = usize::try_from(at).unwrap_or(0);
        let example = self.examples.get(at).expect("drawn below their number").clone();
        // Few clients open most sessions.
        let client = self.random.below(CLIENTS) * self.random.below(CLIENTS) / CLIENTS;
        let bytes = u32::try_from(client).unwrap_or(0).to_be_bytes();
        let [_, a, b, c] = bytes;
        let mut tuple = FiveTuple {
            orig: Address::V4([10, a, b, c].into()),
            resp: example.server,
            orig_port: 1024 + u16::try_from(self.random.below(64_000)).unwrap_or(0),
            resp_port: example.port,
            proto: example.proto,
        };
        let mut names = Names {
            sni: example.sni.clone(),
            dns_names: example.dns.iter().cloned().collect(),
            http_host: example.host.iter().cloned().collect(),
            ..Names::default()
        };
        if is_needle {
            let number = u32::try_from(self.made / NEEDLE_EVERY).unwrap_or(u32::MAX);
            // 100.64.0.0/10 has space for four million; beyond them the second byte goes on.
            tuple.resp = Address::V4((0x6440_0000_u32.wrapping_add(number)).into());
            (tuple.resp_port, tuple.proto) = (443, Protocol::TCP);
            let sni = format!("needle-{number}.example");
            names.sni = Some(sni.clone());
            self.remember(Needle { tuple, sni });
        }
        self.made += 1;
        let side = |way: usize| Direction {
            packets: example.packets.get(way).copied().unwrap_or(0),
            frame_bytes: example.frame_bytes.get(way).copied().unwrap_or(0),
            ip_bytes: example.ip_bytes.get(way).copied().unwrap_or(0),
            payload_bytes: example.payload_bytes.get(way).copied().unwrap_or(0),
            ..Direction::default()
        };
        let length = i64::try_from(self.random.below(30_000_000_000)).unwrap_or(0);
        let app = [
            (App::Tls, names.sni.is_some()),
            (App::Http, !names.http_host.is_empty()),
            (App::Dns, !names.dns_names.is_empty()),
        ];
        let app = app.into_iter().find_map(|(app, is_it)| is_it.then_some(app));
        SessionRow {
            end: start.plus_nanos(length),
            orig: side(0),
            resp: side(1),
            state: State::Sf,
            history: "ShADadFf".parse().unwrap_or(History::default()),
            handshake_ns: (example.proto == Protocol::TCP).then(|| self.random.below(200_000_000)),
            app: app.map(|app| Recognised { app, by: AppBy::Content }),
            names: names.into(),
            pieces: vec![PieceSpan {
                piece: PieceId { sequence, sub, column: 0 },
                begin: 0,
                end: 4,
            }],
            ..SessionRow::new(tuple, start)
        }
    }

    /// Keeps some needles of the whole time: when there is no space, every second one goes.
    fn remember(&mut self, needle: Needle) {
        if self.needles.len() == REMEMBERED {
            let mut keep = false;
            self.needles.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.needles.push(needle);
    }
}

fn example(places: &HashMap<&str, usize>, cells: &[&str]) -> Option<Example> {
    let cell = |name: &str| cells.get(*places.get(name)?).copied().filter(|cell| !cell.is_empty());
    let number = |name: &str| cell(name).and_then(|cell| cell.parse::<u64>().ok());
    let pair = |name: &str| {
        Some([number(&format!("{name}_ab"))?, number(&format!("{name}_ba")).unwrap_or(0)])
    };
    let first = |name: &str| cell(name).and_then(|cell| cell.split(',').next()).map(str::to_owned);
    let proto = Protocol(u16::try_from(number("proto")?).ok()?);
    if proto != Protocol::TCP && proto != Protocol::UDP {
        return None;
    }
    let server: core::net::IpAddr = cell("ip_b")?.parse().ok()?;
    Some(Example {
        proto,
        port: u16::try_from(number("port_b")?).ok()?,
        server: server.into(),
        packets: pair("pkts")?,
        frame_bytes: pair("frame_bytes")?,
        ip_bytes: pair("ip_bytes")?,
        payload_bytes: pair("payload")?,
        sni: first("sni"),
        dns: first("dns"),
        host: first("http_host"),
    })
}
