//! DNS messages (RFC 1035), over UDP and TCP; mDNS (RFC 6762) and LLMNR (RFC 4795) use the same.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::Names;

mod name;

use crate::reader::Reader;
use crate::values::{VALUE_COUNT_MAX, keep, keep_text};
use crate::{Reading, Side, Step};
use name::NameReader;

/// Its port, on which every payload is one of its messages.
pub(crate) const PORT: u16 = 53;

const HEADER_LEN: usize = 12;

/// Records read of one section; more are of no use as names.
const RECORD_COUNT_MAX: u16 = 64;

const A: u16 = 1;
const NS: u16 = 2;
const CNAME: u16 = 5;
const PTR: u16 = 12;
const MX: u16 = 15;
const AAAA: u16 = 28;
const SRV: u16 = 33;

/// The first query of a session, until its answer comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Query {
    id: u16,
    side: Side,
    time_ns: i64,
}

#[derive(Clone, Copy, Debug)]
struct Header {
    id: u16,
    is_response: bool,
    opcode: u16,
    rcode: u16,
    questions: u16,
    answers: u16,
    others: u16,
    is_z_set: bool,
}

fn header(message: &[u8]) -> Option<Header> {
    let mut reader = Reader::new(message);
    let id = reader.u16()?;
    let flags = reader.u16()?;
    let (questions, answers) = (reader.u16()?, reader.u16()?);
    let others = reader.u16()?.saturating_add(reader.u16()?);
    Some(Header {
        id,
        is_response: flags & 0x8000 != 0,
        opcode: flags >> 11 & 15,
        rcode: flags & 15,
        questions,
        answers,
        others,
        is_z_set: flags & 0x40 != 0,
    })
}

/// Whether these bytes look like a DNS message on a port that says nothing: strict, for they may be
/// anything.
pub(crate) fn is_message(message: &[u8]) -> bool {
    let Some(header) = header(message) else {
        return false;
    };
    if header.questions != 1
        || header.opcode != 0
        || header.is_z_set
        || header.answers.max(header.others) > RECORD_COUNT_MAX
        || (!header.is_response && (header.answers != 0 || header.rcode != 0))
    {
        return false;
    }
    let mut names = NameReader::new(message);
    let Some((name, after)) = names.text(HEADER_LEN).zip(names.skip(HEADER_LEN)) else {
        return false;
    };
    let is_plain = |&byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let mut reader = Reader::new(message.get(after..).unwrap_or_default());
    let (Some(kind), Some(class)) = (reader.u16(), reader.u16()) else {
        return false;
    };
    let is_alone = header.answers == 0 && header.others == 0;
    name.iter().all(is_plain)
        && (1..=260).contains(&kind)
        && matches!(class, 1 | 3 | 255)
        && reader.rest().is_empty() == is_alone
}

/// What one message asks or answers, without the session around it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DnsMessage {
    /// By which an answer is matched with its question.
    pub id: u16,
    /// It is an answer.
    pub is_response: bool,
    /// Its code, of an answer.
    pub rcode: u16,
    /// The name asked for, its labels joined by dots.
    pub name: String,
    /// The type asked for.
    pub kind: u16,
    /// Addresses among the answers.
    pub addresses: Vec<IpAddr>,
}

/// Reads the payload of a datagram, or a message of a TCP stream without its length. `None` for
/// what is no standard query (RFC 1035 4.1.1, opcode 0) with a question, or none of its answers.
pub fn dns_message(message: &[u8]) -> Option<DnsMessage> {
    let header = header(message).filter(|header| header.opcode == 0 && is_believed(*header))?;
    let mut names = Names::default();
    let reading = Reading { side: Side::Resp, time_ns: 0, is_last: true };
    let after = NameReader::new(message).skip(HEADER_LEN).filter(|_| header.questions > 0)?;
    let (kind, _) = question(message, after)?;
    read(message, reading, &mut names, &mut None);
    let addresses = names.dns_answers.iter().filter_map(|answer| answer.parse().ok());
    Some(DnsMessage {
        id: header.id,
        is_response: header.is_response,
        rcode: header.rcode,
        addresses: addresses.collect(),
        name: names.dns_names.into_iter().next()?,
        kind,
    })
}

/// Whether a datagram on a port of its own may be a message: a cheap look.
pub(crate) fn may_be_message(message: &[u8]) -> bool {
    header(message).is_some_and(is_believed)
}

fn is_believed(header: Header) -> bool {
    header.opcode <= 6 && header.questions <= RECORD_COUNT_MAX
}

/// Whether a segment on its port may begin a message, as far as it goes: a cheap look.
pub(crate) fn may_begin(bytes: &[u8]) -> bool {
    match bytes {
        [high, low, message @ ..] => {
            usize::from(u16::from_be_bytes([*high, *low])) >= HEADER_LEN
                && header(message).is_none_or(is_believed)
        }
        _ => true,
    }
}

/// Whether a TCP segment begins with a DNS message after its length (RFC 1035 4.2.2) and nothing
/// else.
pub(crate) fn is_tcp_message(bytes: &[u8]) -> bool {
    let mut reader = Reader::new(bytes);
    let len = reader.u16().map(usize::from);
    len == Some(reader.rest().len()) && is_message(reader.rest())
}

/// Reads the message of a TCP stream at the start of `bytes`.
pub(crate) fn read_tcp(
    bytes: &[u8],
    reading: Reading,
    names: &mut Names,
    query: &mut Option<Query>,
) -> Step {
    let mut reader = Reader::new(bytes);
    let Some(len) = reader.u16().map(usize::from) else {
        return if reading.is_last { Step::Foreign } else { Step::More };
    };
    // Enough of the message shows whether it is one, before its end is waited for.
    let looks_wrong = header(reader.rest()).is_some_and(|header| {
        header.opcode > 6 || header.questions > RECORD_COUNT_MAX || header.is_z_set
    });
    if len < HEADER_LEN || looks_wrong {
        return Step::Foreign;
    }
    match reader.take(len) {
        Some(message) if read(message, reading, names, query) => Step::Done(2 + len),
        None if !reading.is_last => Step::More,
        None if read(reader.rest(), reading, names, query) => Step::Done(bytes.len()),
        _ => Step::Foreign,
    }
}

/// Keeps what a message says, as far as it goes. False when not even a question or a whole header
/// could be read.
pub(crate) fn read(
    message: &[u8],
    reading: Reading,
    names: &mut Names,
    query: &mut Option<Query>,
) -> bool {
    let Some(header) = header(message) else {
        return false;
    };
    if !is_believed(header) {
        return false;
    }
    time(header, reading, names, query);
    let mut texts = NameReader::new(message);
    let Some(at) = read_questions((message, header.questions), &mut texts, names) else {
        return false;
    };
    if header.is_response {
        keep(&mut names.dns_rcodes, header.rcode);
        read_answers((message, at), header.answers, names, &mut texts);
    }
    true
}

/// Keeps the questions, as far as they go, and gives the offset after them; nothing when not even
/// the first can be read.
fn read_questions(
    (message, count): (&[u8], u16),
    texts: &mut NameReader<'_>,
    names: &mut Names,
) -> Option<usize> {
    let mut at = HEADER_LEN;
    for number in 0..count {
        let Some((kind, after)) = texts.skip(at).and_then(|after| question(message, after)) else {
            return (number > 0).then_some(message.len());
        };
        let name = texts.text(at);
        if number == 0 && name.is_none() {
            return None;
        }
        keep_text(&mut names.dns_names, &name.unwrap_or_default());
        keep(&mut names.dns_types, kind);
        at = after;
    }
    Some(at)
}

fn read_answers(
    (message, mut at): (&[u8], usize),
    count: u16,
    names: &mut Names,
    texts: &mut NameReader<'_>,
) {
    // What was asked for may be answered, too.
    texts.forget();
    for _ in 0..count.min(RECORD_COUNT_MAX) {
        let Some(after) = read_answer((message, at), texts, names) else {
            break;
        };
        at = after;
    }
}

/// Measures from the first query to its answer, by the id, once.
fn time(header: Header, reading: Reading, names: &mut Names, query: &mut Option<Query>) {
    let Reading { side, time_ns, .. } = reading;
    if !header.is_response {
        query.get_or_insert(Query { id: header.id, side, time_ns });
    } else if let Some(query) = query
        && names.dns_rtt_ns.is_none()
        && (query.id, query.side != side) == (header.id, true)
    {
        names.dns_rtt_ns = u64::try_from(time_ns.saturating_sub(query.time_ns)).ok();
    }
}

/// Type and the offset after the class, which follow a question's name.
fn question(message: &[u8], at: usize) -> Option<(u16, usize)> {
    let mut reader = Reader::new(message.get(at..)?);
    let kind = reader.u16()?;
    reader.u16()?;
    Some((kind, at + 4))
}

/// Keeps an answer that is an address or a name; gives the offset after it.
fn read_answer(
    (message, at): (&[u8], usize),
    texts: &mut NameReader<'_>,
    names: &mut Names,
) -> Option<usize> {
    let after = texts.skip(at)?;
    let mut reader = Reader::new(message.get(after..)?);
    let kind = reader.u16()?;
    reader.take(6)?; // Class and time to live.
    let data = reader.vector16()?;
    let data_at = after + 10;
    let prefix_len = match kind {
        A => {
            let &octets = data.first_chunk::<4>()?;
            keep(&mut names.dns_answers, Ipv4Addr::from(octets).to_string());
            None
        }
        AAAA => {
            let &octets = data.first_chunk::<16>()?;
            keep(&mut names.dns_answers, Ipv6Addr::from(octets).to_string());
            None
        }
        NS | CNAME | PTR => Some(0),
        MX => Some(2),
        SRV => Some(6),
        _ => None,
    };
    if let Some(prefix_len) = prefix_len
        && names.dns_answers.len() < VALUE_COUNT_MAX
        && let Some(target) = texts.text(data_at + prefix_len)
    {
        keep_text(&mut names.dns_answers, &target);
    }
    Some(data_at + data.len())
}
