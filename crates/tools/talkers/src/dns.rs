//! Who asks whom for which name, and what comes of it: each query with its answer.

use core::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use app::DnsMessage;
use query::Query;
use units::{NANOS_PER_SECOND, Timestamp};
use wire::{Address, Decoded, FiveTuple, Transport};

use crate::exchange::{DNS_PORT, Exchange};
use crate::history::{History, Moment, WINDOWS};
use crate::names::Names;

/// Ports whose messages name addresses, and are no questions to a server: mDNS (RFC 6762) and
/// LLMNR (RFC 4795).
const LINK_LOCAL_PORTS: [u16; 2] = [5353, 5355];
/// A query that was not answered for so long will not be: resolvers give up after 5 s
/// (resolv.conf(5), `timeout`).
const PATIENCE_NS: i64 = 5 * NANOS_PER_SECOND;
/// Queries that wait for their answers; the oldest goes as not answered when one more comes.
const WAITING_MAX: usize = 1 << 16;

/// Questions that are kept of a second.
const ENDED_MAX: usize = 1 << 14;

/// What came to an end in a second, as far as there is memory for it.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    exchanges: Vec<Exchange>,
    /// Those for which there was no memory, since the beginning.
    pub(crate) left_out: u64,
}

impl Ended {
    fn push(&mut self, exchange: Exchange) {
        if self.exchanges.len() < ENDED_MAX {
            self.exchanges.push(exchange);
        } else {
            self.left_out += 1;
        }
    }

    /// Those so far; a second begins.
    pub(crate) fn take(&mut self) -> Vec<Exchange> {
        core::mem::take(&mut self.exchanges)
    }
}

/// By what questions are put together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DnsGrouping {
    /// The host that asks.
    Source,
    /// The server that is asked.
    Destination,
    /// The type asked for.
    Type,
    /// The response code.
    Rcode,
    /// The last two labels of the name asked for.
    Domain,
    /// The name asked for.
    Name,
}

/// What questions have in common.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DnsKey {
    /// The host that asks.
    Source(Address),
    /// The server that is asked.
    Destination(Address),
    /// The type asked for.
    Type(u16),
    /// The answer's code; `None` where no answer came.
    Rcode(Option<u16>),
    /// The last two labels of the name asked for.
    Domain(Arc<str>),
    /// The name asked for.
    Name(Arc<str>),
}

impl fmt::Display for DnsKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(address) | Self::Destination(address) => address.fmt(f),
            Self::Type(kind) => match query::dns_type_name(*kind) {
                Some(name) => f.write_str(name),
                None => write!(f, "TYPE{kind}"),
            },
            Self::Rcode(None) => f.write_str("no answer"),
            Self::Rcode(Some(rcode)) => match query::dns_rcode_name(*rcode) {
                Some(name) => f.write_str(name),
                None => write!(f, "RCODE{rcode}"),
            },
            Self::Domain(name) | Self::Name(name) => f.write_str(name),
        }
    }
}

impl DnsKey {
    /// A query that selects the sessions with such questions.
    pub fn query(&self) -> String {
        let quoted = |name: &str| {
            let escaped = name.replace('\\', "\\\\").replace('"', "\\\"").replace('*', "\\*");
            format!("\"{escaped}\"")
        };
        match self {
            Self::Source(address) => format!("app dns and orig host {address}"),
            Self::Destination(address) => format!("app dns and resp host {address}"),
            Self::Type(kind) => format!("dns_types = {kind}"),
            Self::Rcode(Some(rcode)) => format!("dns_rcodes = {rcode}"),
            Self::Rcode(None) => "app dns and resp_packets = 0".to_owned(),
            Self::Name(name) => format!("dns_names = {}", quoted(name)),
            Self::Domain(name) => {
                let below = quoted(&format!(".{name}")).replacen('"', "\"*", 1);
                format!("(dns_names = {} or dns_names = {below})", quoted(name))
            }
        }
    }
}

/// One line of what is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// What the questions have in common.
    pub key: DnsKey,
    /// Questions in each of [`WINDOWS`]; what follows is of the longest.
    pub questions: [u64; 3],
    /// Those that were answered with an error other than that there is no such name.
    pub errors: u64,
    /// Those answered with NXDOMAIN.
    pub absent: u64,
    /// Questions without an answer.
    pub unanswered: u64,
    /// Half of the answers took no longer.
    pub latency_median_ns: Option<u64>,
    /// The longest that an answer took.
    pub latency_max_ns: Option<u64>,
}

type Asker = (FiveTuple, u16);

#[derive(Debug)]
struct Question {
    time: Timestamp,
    name: Arc<str>,
    kind: u16,
}

/// Questions without an answer so far.
#[derive(Debug, Default)]
pub(crate) struct Dns {
    waiting: HashMap<Asker, Question>,
    order: VecDeque<(Timestamp, Asker)>,
}

/// The message that a packet is, if it is one.
fn message(decoded: &Decoded<'_>) -> Option<DnsMessage> {
    let FiveTuple { orig_port, resp_port, .. } = decoded.tuple;
    let is_on = |port| orig_port == port || resp_port == port;
    let payload = match decoded.transport {
        Transport::Udp if is_on(DNS_PORT) || LINK_LOCAL_PORTS.into_iter().any(is_on) => {
            decoded.payload
        }
        // One message in one segment, after its length (RFC 1035 4.2.2).
        Transport::Tcp(_) if is_on(DNS_PORT) => {
            let (len, message) = decoded.payload.split_first_chunk::<2>()?;
            message.get(..usize::from(u16::from_be_bytes(*len)))?
        }
        _ => return None,
    };
    app::dns_message(payload)
}

impl Dns {
    /// Bytes of the questions that wait, at most: names have up to 256.
    pub(crate) const MEMORY_BYTES_MAX: usize =
        WAITING_MAX * 2 * (size_of::<(Asker, Question)>() + size_of::<(Timestamp, Asker)>() + 300);

    /// Takes a packet in; what came to an end with it goes to `ended`.
    pub(crate) fn take(
        &mut self,
        time: Timestamp,
        decoded: &Decoded<'_>,
        names: &mut Names,
        ended: &mut Ended,
    ) {
        let Some(message) = message(decoded) else { return };
        let name: Arc<str> = message.name.to_ascii_lowercase().into();
        if message.is_response {
            message.addresses.iter().for_each(|&address| names.learn(address, &name));
        }
        let tuple = decoded.tuple;
        if LINK_LOCAL_PORTS
            .into_iter()
            .any(|port| [tuple.orig_port, tuple.resp_port].contains(&port))
        {
            return;
        }
        if message.is_response {
            let asker = (tuple.reversed(), message.id);
            let question = self.waiting.remove(&asker);
            let latency_ns =
                question.as_ref().and_then(|it| u64::try_from(time.since(it.time)).ok());
            let (name, kind) =
                question.map_or((name, message.kind), |question| (question.name, question.kind));
            let rcode = Some(message.rcode);
            ended.push(Exchange::new(&asker.0, (name, kind), rcode, latency_ns));
        } else {
            let asker = (tuple, message.id);
            // Asked again before an answer came: still one question.
            self.waiting.entry(asker).or_insert_with(|| {
                self.order.push_back((time, asker));
                Question { time, name, kind: message.kind }
            });
            if self.order.len() > WAITING_MAX {
                self.give_up_oldest(ended);
            }
        }
    }

    fn give_up_oldest(&mut self, ended: &mut Ended) {
        let Some((time, asker)) = self.order.pop_front() else { return };
        // The same numbers may have been used again.
        if self.waiting.get(&asker).is_some_and(|question| question.time == time)
            && let Some(Question { name, kind, .. }) = self.waiting.remove(&asker)
        {
            ended.push(Exchange::new(&asker.0, (name, kind), None, None));
        }
    }

    /// Gives up on questions that have waited too long.
    pub(crate) fn expire(&mut self, now: Timestamp, ended: &mut Ended) {
        while let Some(&(time, _)) = self.order.front()
            && now.since(time) > PATIENCE_NS
        {
            self.give_up_oldest(ended);
        }
    }
}

/// Below these the label that tells is the third from the end.
const REVERSE: [&str; 2] = [".in-addr.arpa", ".ip6.arpa"];

/// The last two labels, three of a name for an address.
fn domain(name: &Arc<str>) -> Arc<str> {
    let is_reverse = REVERSE.iter().any(|end| name.ends_with(end));
    let mut dots = name.rmatch_indices('.');
    match dots.nth(if is_reverse { 2 } else { 1 }) {
        Some((at, _)) => name.get(at + 1..).map_or_else(|| Arc::clone(name), Arc::from),
        None => Arc::clone(name),
    }
}

/// The group that an exchange belongs to.
fn key_of(exchange: &Exchange, grouping: DnsGrouping) -> DnsKey {
    match grouping {
        DnsGrouping::Source => DnsKey::Source(exchange.client),
        DnsGrouping::Destination => DnsKey::Destination(exchange.server),
        DnsGrouping::Type => DnsKey::Type(exchange.kind),
        DnsGrouping::Rcode => DnsKey::Rcode(exchange.rcode),
        DnsGrouping::Domain => DnsKey::Domain(domain(&exchange.name)),
        DnsGrouping::Name => DnsKey::Name(Arc::clone(&exchange.name)),
    }
}

/// What is asked in the windows that end at a moment, most in the longest first.
pub(crate) fn asked(
    history: &History,
    grouping: DnsGrouping,
    at: Moment,
    query: &Query,
) -> Vec<Asked> {
    let is_all = *query == Query::all();
    let mut groups: HashMap<DnsKey, (Asked, Vec<u64>)> = HashMap::new();
    for (count, second) in history.window(at) {
        for exchange in &second.exchanges {
            if !is_all && !query.matches(&exchange.row(), &[]) {
                continue;
            }
            let (asked, latencies) = groups
                .entry(key_of(exchange, grouping))
                .or_insert_with_key(|key| (Asked::new(key.clone()), Vec::new()));
            asked.questions.iter_mut().skip(WINDOWS.len() - count).for_each(|sum| *sum += 1);
            match exchange.rcode {
                None => asked.unanswered += 1,
                Some(0) => {}
                Some(NXDOMAIN) => asked.absent += 1,
                Some(_) => asked.errors += 1,
            }
            latencies.extend(exchange.latency_ns);
        }
    }
    let mut all: Vec<Asked> = groups.into_values().map(finished).collect();
    all.sort_by(|a, b| {
        let key = |asked: &Asked| asked.questions.map(Reverse);
        let ([_, a10, a40], [_, b10, b40]) = (key(a), key(b));
        (a40, a10, &a.key).cmp(&(b40, b10, &b.key))
    });
    all
}

const NXDOMAIN: u16 = 3;

impl Asked {
    fn new(key: DnsKey) -> Self {
        Self {
            key,
            questions: [0; 3],
            errors: 0,
            absent: 0,
            unanswered: 0,
            latency_median_ns: None,
            latency_max_ns: None,
        }
    }
}

fn finished((mut asked, mut latencies): (Asked, Vec<u64>)) -> Asked {
    latencies.sort_unstable();
    asked.latency_median_ns = latencies.get(latencies.len().saturating_sub(1) / 2).copied();
    asked.latency_max_ns = latencies.last().copied();
    asked
}
