//! Application names of a session: TLS, HTTP/1 and DNS, recognised by content.
//!
//! TCP payload is looked at where a segment begins like a message; a message that goes on in later
//! segments is collected in a head buffer until it is complete, 16 KiB long or 64 segments old, and
//! then freed. The room that all heads together take is bounded by the table. What a damaged or cut
//! message still shows is kept. Payload is never trusted: every read is checked, and every list and
//! value is bounded.

use wire::{Names, Protocol};

use crate::head::{Budget, Head, Progress};
use crate::{Side, Step, dns, http, tls};

/// UDP packets of a session looked at before it is taken for something else.
const ATTEMPT_COUNT_MAX: u8 = 8;

const DNS_PORTS: [u16; 3] = [53, 5353, 5355];

/// Its messages have the form of DNS and another meaning (RFC 1002 4.2).
const NETBIOS_NAME_PORT: u16 = 137;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Application {
    Tls,
    Http,
    Dns,
}

impl Application {
    /// What a TCP segment begins with.
    fn of_segment(payload: &[u8], is_dns_port: bool) -> Option<Self> {
        if is_dns_port {
            Some(Self::Dns)
        } else if tls::begins(payload) {
            Some(Self::Tls)
        } else if http::begins(payload) {
            Some(Self::Http)
        } else if dns::is_tcp_message(payload) {
            Some(Self::Dns)
        } else {
            None
        }
    }

    /// Reads one message from the start of `bytes`; the `last` reading takes what an incomplete one
    /// shows.
    fn read(self, bytes: &[u8], last: bool, names: &mut Names) -> Step {
        let (name, step) = match self {
            Self::Tls => ("tls", tls::read(bytes, last, names)),
            Self::Http => ("http", http::read(bytes, last, names)),
            Self::Dns => ("dns", dns::read_tcp(bytes, last, names)),
        };
        if let Step::Done(_) = step {
            names.app.get_or_insert(name);
        }
        step
    }
}

/// The names of one session and the heads that are being collected for them.
#[derive(Debug, Default)]
pub struct Search {
    /// What was found so far.
    pub names: Names,
    heads: [Option<Head<Application>>; 2],
    /// TLS hellos read, by side.
    hellos: [bool; 2],
}

/// Whether anything of the session is still looked at; small, so that it can lie in the hot record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Interest {
    attempts: u8,
    /// There is a search; while there is none, its place need not be looked at.
    has_search: bool,
}

impl Interest {
    /// Nothing more is to be found.
    const NONE: Self = Self { attempts: ATTEMPT_COUNT_MAX, has_search: false };

    /// Whether sessions of this protocol have names to be found.
    pub fn of(proto: Protocol) -> Self {
        if proto == Protocol::TCP || proto == Protocol::UDP { Self::default() } else { Self::NONE }
    }

    /// Nothing more is to be found: payload need not be shown.
    pub fn is_none(self) -> bool {
        self.attempts == ATTEMPT_COUNT_MAX
    }
}

fn is_dns(ports: (u16, u16)) -> bool {
    DNS_PORTS.contains(&ports.0) || DNS_PORTS.contains(&ports.1)
}

/// Looks at a UDP payload. The search is made when there is something to keep.
pub fn datagram(
    search: &mut Option<Box<Search>>,
    interest: &mut Interest,
    ports: (u16, u16),
    payload: &[u8],
) {
    let is_dns_port = is_dns(ports);
    let is_netbios = [ports.0, ports.1].contains(&NETBIOS_NAME_PORT);
    if is_dns_port || !is_netbios && dns::is_message(payload) {
        let is_read = with(search, interest, |search| {
            let is_read = dns::read(payload, &mut search.names);
            if is_read {
                search.names.app.get_or_insert("dns");
            }
            is_read
        });
        if is_read {
            return;
        }
    }
    if http::begins(payload) {
        let read = |search: &mut Search| Application::Http.read(payload, true, &mut search.names);
        if with(search, interest, read) != Step::Foreign {
            return;
        }
    }
    let has_app = |search: &Search| search.names.app.is_some();
    let found = interest.has_search && search.as_deref().is_some_and(has_app);
    if !found && !is_dns_port {
        interest.attempts = (interest.attempts + 1).min(ATTEMPT_COUNT_MAX);
    }
}

/// A TCP payload on its way to the search.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// Who sent it.
    pub side: Side,
    /// Sequence number of the first payload byte.
    pub start: u32,
    /// The payload as it was captured.
    pub payload: &'a [u8],
    /// Less was captured than was on the wire.
    pub is_truncated: bool,
    /// Of sender and receiver.
    pub ports: (u16, u16),
}

/// Looks at a TCP payload.
pub fn segment(
    search: &mut Option<Box<Search>>,
    interest: &mut Interest,
    segment: &Segment<'_>,
    budget: &mut Budget,
) {
    let is_dns_port = segment.ports.0 == 53 || segment.ports.1 == 53;
    let collecting = interest.has_search
        && search.as_ref().is_some_and(|search| search.is_collecting(segment.side));
    if !collecting && Application::of_segment(segment.payload, is_dns_port).is_none() {
        return;
    }
    let is_complete = with(search, interest, |search| {
        search.take(segment, is_dns_port, budget);
        search.is_complete()
    });
    if is_complete {
        *interest = Interest::NONE;
    }
}

/// Works on the session's search. One that is new is kept only when there is something in it: much
/// of what is looked at is nothing that is known.
fn with<T>(
    search: &mut Option<Box<Search>>,
    interest: &mut Interest,
    work: impl FnOnce(&mut Search) -> T,
) -> T {
    if interest.has_search
        && let Some(search) = search
    {
        return work(search);
    }
    let mut fresh = Search::default();
    let result = work(&mut fresh);
    if !fresh.is_empty() {
        *search = Some(Box::new(fresh));
        interest.has_search = true;
    }
    result
}

impl Search {
    fn is_empty(&self) -> bool {
        let Self { names, heads, hellos } = self;
        *hellos == [false; 2] && heads.iter().all(Option::is_none) && *names == Names::default()
    }

    fn is_collecting(&self, side: Side) -> bool {
        let [orig, resp] = &self.heads;
        if side == Side::Orig { orig.is_some() } else { resp.is_some() }
    }

    fn head_mut(&mut self, side: Side) -> &mut Option<Head<Application>> {
        let [orig, resp] = &mut self.heads;
        if side == Side::Orig { orig } else { resp }
    }

    fn take(&mut self, segment: &Segment<'_>, is_dns_port: bool, budget: &mut Budget) {
        let Some(mut head) = self.head_mut(segment.side).take() else {
            self.begin(segment, is_dns_port, budget);
            return;
        };
        match head.add(segment.start, segment.payload, budget) {
            Progress::Waiting if !segment.is_truncated => {
                *self.head_mut(segment.side) = Some(head);
                return;
            }
            Progress::Grown if !segment.is_truncated => {
                let step = self.read(segment.side, head.kind, head.bytes(), false);
                match step {
                    Step::More => {
                        *self.head_mut(segment.side) = Some(head);
                        return;
                    }
                    Step::Foreign => {}
                    Step::Done(len) => {
                        // More messages may follow in the same bytes.
                        let rest = head.bytes().get(len..).unwrap_or_default().to_vec();
                        let start = head.next_sequence().wrapping_sub(
                            u32::try_from(rest.len()).expect("a head is at most 16 KiB"),
                        );
                        head.free(budget);
                        let rest = Segment { start, payload: &rest, ..*segment };
                        self.begin(&rest, is_dns_port, budget);
                        return;
                    }
                }
            }
            _ => {
                self.read(segment.side, head.kind, head.bytes(), true);
            }
        }
        head.free(budget);
    }

    /// Reads the messages in a segment that begins with one; collects the last if it is not
    /// complete.
    fn begin(&mut self, segment: &Segment<'_>, is_dns_port: bool, budget: &mut Budget) {
        let (mut payload, mut start) = (segment.payload, segment.start);
        while !payload.is_empty()
            && let Some(kind) = Application::of_segment(payload, is_dns_port)
        {
            match self.read(segment.side, kind, payload, segment.is_truncated) {
                Step::Done(len) => {
                    let len = len.clamp(1, payload.len());
                    payload = payload.get(len..).unwrap_or_default();
                    start = start.wrapping_add(u32::try_from(len).unwrap_or(u32::MAX));
                }
                Step::More if !segment.is_truncated => {
                    *self.head_mut(segment.side) = Head::begin(kind, start, payload, budget);
                    return;
                }
                Step::More | Step::Foreign => return,
            }
        }
    }

    fn read(&mut self, side: Side, kind: Application, bytes: &[u8], last: bool) -> Step {
        let step = kind.read(bytes, last, &mut self.names);
        if kind == Application::Tls && matches!(step, Step::Done(_)) {
            let [orig, resp] = &mut self.hellos;
            *(if side == Side::Orig { orig } else { resp }) = true;
        }
        step
    }

    /// TLS shows its names once; after both hellos the rest is ciphertext.
    fn is_complete(&self) -> bool {
        self.hellos == [true; 2]
    }

    /// The session is over: what incomplete heads show is kept, and their room given back.
    pub fn finish(&mut self, budget: &mut Budget) {
        for head in self.heads.iter_mut().filter_map(Option::take) {
            head.kind.read(head.bytes(), true, &mut self.names);
            head.free(budget);
        }
    }
}

#[cfg(test)]
mod tests;
