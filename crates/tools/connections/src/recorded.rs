//! The same from recorded packets alone: what SYNs offered and what the answers to them kept.
//!
//! A listener answers alike, so where some of its answers keep options that were offered and others
//! do not, it is its own state that differs: its queue was full, and it sent a SYN cookie.

use std::collections::BTreeMap;

use format::session_row::{Direction, SessionRow};
use units::Timestamp;
use wire::{Address, TcpOptions};

use findings::Diagnosis;
use findings::words::{bits_per_second, percent, plural, some};
use findings::{Finding, Found, Remedy, Severity, Unseen};

/// Services beyond are counted, not looked at.
const SERVICES_MAX: usize = 100_000;
const EXAMPLES: usize = 6;

/// Handshakes by the service that they came to.
#[derive(Debug, Default)]
pub struct Handshakes {
    services: BTreeMap<(Address, u16), Service>,
    sessions: usize,
    with_both_syns: usize,
    passed_over: usize,
}

#[derive(Debug, Default)]
struct Service {
    whole: Side,
    lacking: Side,
    examples: Vec<String>,
    /// Earliest and latest of those that lack options.
    times: Option<(Timestamp, Timestamp)>,
    /// Answers with nothing but a segment size.
    bare: usize,
}

/// Connections that have their options, or lack some.
#[derive(Debug, Default)]
struct Side {
    connections: usize,
    payload_bytes: u64,
    nanos: u64,
    packets: u64,
    retransmitted: u64,
}

impl Side {
    fn take(&mut self, session: &SessionRow) {
        let both = |of: fn(&Direction) -> u64| of(&session.orig).saturating_add(of(&session.resp));
        let nanos = session.end.since(session.start).max(0).unsigned_abs();
        self.connections += 1;
        self.payload_bytes = self.payload_bytes.saturating_add(both(|side| side.payload_bytes));
        self.nanos = self.nanos.saturating_add(nanos);
        self.packets = self.packets.saturating_add(both(|side| side.packets));
        self.retransmitted =
            self.retransmitted.saturating_add(both(|side| side.retransmitted_packets));
    }

    /// In words: what a connection carried in the mean.
    fn line(&self, which: &str) -> String {
        let bits = u128::from(self.payload_bytes) * 8_000_000_000;
        let mean = bits.checked_div(u128::from(self.nanos)).unwrap_or(0);
        format!(
            "{which}: {} in the mean, {} of the packets sent again",
            bits_per_second(u64::try_from(mean).unwrap_or(u64::MAX)),
            percent(self.retransmitted, self.packets)
        )
    }
}

impl Handshakes {
    /// Takes a session.
    pub fn take(&mut self, session: &SessionRow) {
        self.sessions += 1;
        let (Some(offer), Some(answer)) = (session.orig.syn_options, session.resp.syn_options)
        else {
            return;
        };
        self.with_both_syns += 1;
        // Timestamps alone cost nothing that is felt.
        if !offer.sack_permitted || offer.window_scale.is_none() {
            return;
        }
        let at = (session.tuple.resp, session.tuple.resp_port);
        if self.services.len() >= SERVICES_MAX && !self.services.contains_key(&at) {
            self.passed_over += 1;
            return;
        }
        self.services.entry(at).or_default().take(session, answer);
    }

    /// The findings of the handshakes.
    pub fn diagnose(&self) -> Diagnosis {
        let of_service = |(at, service): (&(Address, u16), &Service)| service.finding(*at);
        let unseen = (self.passed_over > 0).then(|| Unseen {
            what: format!("handshakes with more than {SERVICES_MAX} services"),
            needs: "a query for some of them".to_owned(),
        });
        let looked_at = format!(
            "{}, {} with both SYNs",
            plural(self.sessions, "recorded session"),
            self.with_both_syns
        );
        let findings = self.services.iter().filter_map(of_service).map(Found::from).collect();
        Diagnosis {
            looked_at: vec![looked_at],
            findings,
            unseen: unseen.into_iter().collect(),
            ..Diagnosis::default()
        }
        .ranked()
    }
}

impl Service {
    fn take(&mut self, session: &SessionRow, answer: TcpOptions) {
        if answer.sack_permitted && answer.window_scale.is_some() {
            self.whole.take(session);
            return;
        }
        self.lacking.take(session);
        let is_bare = !answer.sack_permitted && answer.window_scale.is_none() && !answer.timestamps;
        self.bare += usize::from(is_bare);
        let start = session.start;
        let (first, last) = self.times.unwrap_or((start, start));
        self.times = Some((first.min(start), last.max(start)));
        if self.examples.len() < EXAMPLES {
            let mss = answer.mss.map_or_else(String::new, |mss| format!(" (segments of {mss})"));
            let end = end(session.tuple.orig, session.tuple.orig_port);
            self.examples.push(format!("{end}{mss}"));
        }
    }

    fn finding(&self, (address, port): (Address, u16)) -> Option<Finding> {
        let (lacking, all) =
            (self.lacking.connections, self.lacking.connections + self.whole.connections);
        let (first, last) = self.times?;
        // Where no answer has them, the service does not know them.
        if self.whole.connections == 0 {
            return None;
        }
        let is_cookie = self.bare * 2 > lacking;
        let (kind, cause) = if is_cookie {
            (
                "tcp.syn_cookies",
                "The same service keeps these options in other answers. Answers with nothing but \
                 a segment size are SYN cookies: the backlog of its listener was full when these \
                 connections came, or its machine sends nothing else (net.ipv4.tcp_syncookies=2).",
            )
        } else {
            (
                "tcp.options_differ",
                "The same service keeps them in other answers; something on the way takes them \
                 out of some, or several machines answer at this address.",
            )
        };
        let more = lacking.saturating_sub(self.examples.len());
        let mut examples = some(self.examples.iter().cloned());
        if more > 0 {
            examples = format!("{}, of {lacking}", self.examples.join(", "));
        }
        let verb = if lacking == 1 { "was" } else { "were" };
        Some(Finding {
            kind,
            severity: Severity::Problem,
            reach: lacking,
            what: format!(
                "{lacking} of {all} connections to {} {verb} answered without selective \
                 acknowledgements or window scale, which they had offered",
                end(address, port)
            ),
            evidence: vec![
                format!("without: {examples}"),
                format!("between {first} and {last}"),
                format!("{} of the answers have no option but the segment size", self.bare),
                self.lacking.line("these"),
                self.whole.line("the others"),
            ],
            cause: cause.to_owned(),
            remedies: vec![
                Remedy::by_hand(
                    "run wirespool diagnose tcp on that machine: it tells a full backlog from \
                     the setting, and names the program",
                ),
                Remedy::by_hand(
                    "timestamps on both sides (net.ipv4.tcp_timestamps=1): with them a cookie \
                     keeps the options",
                ),
            ],
        })
    }
}

fn end(address: Address, port: u16) -> String {
    match address {
        Address::V6(_) => format!("[{address}]:{port}"),
        _ => format!("{address}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use wire::{FiveTuple, Protocol};

    use super::*;

    const WHOLE: TcpOptions = TcpOptions {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: true,
    };
    const BARE: TcpOptions = TcpOptions {
        mss: Some(1440),
        window_scale: None,
        sack_permitted: false,
        timestamps: false,
    };

    fn session(number: u16, offer: TcpOptions, answer: TcpOptions) -> SessionRow {
        let tuple = FiveTuple {
            proto: Protocol::TCP,
            orig: Address::V4([10, 0, 0, 1].into()),
            orig_port: number,
            resp: Address::V4([10, 0, 0, 2].into()),
            resp_port: 9000,
        };
        let mut session = SessionRow::new(tuple, Timestamp(0));
        session.end = Timestamp(8_000_000_000);
        session.orig.syn_options = Some(offer);
        session.resp.syn_options = Some(answer);
        session.orig.payload_bytes = 1_000_000;
        session
    }

    fn diagnosis(sessions: &[(TcpOptions, TcpOptions)]) -> Diagnosis {
        let mut handshakes = Handshakes::default();
        for (number, (offer, answer)) in (1..).zip(sessions) {
            handshakes.take(&session(number, *offer, *answer));
        }
        handshakes.diagnose()
    }

    #[test]
    fn bare_answers_among_whole_ones_are_cookies() {
        let report = diagnosis(&[(WHOLE, WHOLE), (WHOLE, BARE), (WHOLE, WHOLE)]);
        assert_eq!(report.findings.len(), 1);
        let finding = &report.findings[0];
        assert_eq!((finding.kind, finding.reach), ("tcp.syn_cookies", 1));
        assert!(finding.what.starts_with("1 of 3 connections to 10.0.0.2:9000 was answered"));
        assert!(finding.evidence[0].contains("10.0.0.1:2 (segments of 1440)"), "{finding:?}");
        assert!(finding.evidence[3].contains("1.0 Mbit/s"), "{finding:?}");
    }

    #[test]
    fn a_service_that_never_has_them_and_a_client_that_does_not_offer_them_are_no_finding() {
        assert!(diagnosis(&[(WHOLE, BARE), (WHOLE, BARE)]).findings.is_empty());
        assert!(diagnosis(&[(BARE, BARE), (WHOLE, WHOLE)]).findings.is_empty());
        assert!(diagnosis(&[(WHOLE, WHOLE)]).findings.is_empty());
        let scaled = TcpOptions { window_scale: None, ..WHOLE };
        let report = diagnosis(&[(WHOLE, scaled), (WHOLE, WHOLE)]);
        assert_eq!(report.findings[0].kind, "tcp.options_differ");
    }
}
