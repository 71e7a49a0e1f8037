//! Which rules are worth a look at a payload: most are ruled out by its first bytes and its ports.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::payload::{Carrier, Payload};
use super::rule::Rule;
use super::{ports, tcp, udp};

/// First bytes by which rules are ruled out.
const STARTS: usize = 4;

/// Sets of a table's rules, one bit each.
#[derive(Debug)]
struct Candidates {
    /// Those that each of the first bytes leaves.
    starts: [[u128; 256]; STARTS],
    /// Those that are left when the first bytes are not text.
    binary: u128,
    /// Those that are left at ports where no protocol is at home that needs its port.
    elsewhere: u128,
    /// The ports where one is, one bit each.
    homes: [u64; 1 << 10],
    /// These ports in their order, each with the rules that count there besides.
    at_home: Vec<(u16, u128)>,
}

static OVER_TCP: LazyLock<Box<Candidates>> =
    LazyLock::new(|| Candidates::new(tcp::RULES, Carrier::Tcp));
static OVER_UDP: LazyLock<Box<Candidates>> =
    LazyLock::new(|| Candidates::new(udp::RULES, Carrier::Udp));

impl Candidates {
    fn new(rules: &[Rule], carrier: Carrier) -> Box<Self> {
        assert!(rules.len() <= 128, "a rule has a bit of 128");
        let those = |is_left: &dyn Fn(&Rule) -> bool| {
            let numbered = rules.iter().enumerate();
            numbered.fold(0, |bits, (number, rule)| bits | u128::from(is_left(rule)) << number)
        };
        let mut candidates = Box::new(Self {
            starts: [[0; 256]; STARTS],
            binary: those(&|rule| !rule.is_line),
            elsewhere: those(&|rule| !rule.is_on_port()),
            homes: [0; 1 << 10],
            at_home: Vec::new(),
        });
        for (place, start) in candidates.starts.iter_mut().enumerate() {
            for (byte, bits) in (0..=u8::MAX).zip(start) {
                *bits = those(&|rule| rule.allows(place, byte));
            }
        }
        let mut at_home = BTreeMap::new();
        for (number, rule) in rules.iter().enumerate().filter(|(_, rule)| rule.is_on_port()) {
            for &port in ports::over(rule.app, carrier) {
                *at_home.entry(port).or_default() |= 1 << number;
                let word = candidates.homes.get_mut(usize::from(port >> 6));
                *word.expect("every port has a bit") |= 1 << (port & 63);
            }
        }
        candidates.at_home = at_home.into_iter().collect();
        candidates
    }

    fn is_home(&self, port: u16) -> bool {
        let word = self.homes.get(usize::from(port >> 6));
        word.is_some_and(|word| word >> (port & 63) & 1 == 1)
    }

    /// The rules that count at this port only, or at others too.
    fn at(&self, port: u16) -> u128 {
        if !self.is_home(port) {
            return 0;
        }
        let place = self.at_home.binary_search_by_key(&port, |(port, _)| *port);
        place.ok().and_then(|place| self.at_home.get(place)).map_or(0, |(_, rules)| *rules)
    }

    fn of(&self, payload: &Payload<'_>) -> u128 {
        if payload.bytes.is_empty() {
            return 0;
        }
        let left = |(start, &byte): (&[u128; 256], &u8)| start.get(usize::from(byte)).copied();
        let starts = self.starts.iter().zip(payload.bytes);
        let mut bits = starts.filter_map(left).fold(u128::MAX, |bits, left| bits & left);
        if !payload.begins_like_text() {
            bits &= self.binary;
        }
        let (orig, resp) = payload.ports;
        bits & (self.elsewhere | self.at(orig) | self.at(resp))
    }
}

/// The rules that a payload matches.
pub(super) fn matches<'a>(payload: &Payload<'a>) -> impl Iterator<Item = &'static Rule> + use<'a> {
    let (rules, candidates) = match payload.carrier {
        Carrier::Tcp => (tcp::RULES, &OVER_TCP),
        Carrier::Udp => (udp::RULES, &OVER_UDP),
    };
    let (mut bits, payload) = (candidates.of(payload), *payload);
    core::iter::from_fn(move || {
        while bits != 0 {
            let number = bits.trailing_zeros();
            bits &= bits - 1;
            let rule = usize::try_from(number).ok().and_then(|number| rules.get(number))?;
            if rule.shows(&payload) {
                return Some(rule);
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Side;

    /// What payloads of several protocols begin with.
    const STARTS: [&str; 6] = ["", "\0\0\0\0", "USER a\r\n", "220 ", "<34>", "\x04\x01"];
    const PORTS: [u16; 6] = [21, 53, 123, 161, 3389, 40_000];

    proptest! {
        #[test]
        fn nothing_that_matches_is_ruled_out(
            mut bytes in prop::collection::vec(any::<u8>(), 1..80),
            start in prop::sample::select(&STARTS),
            port in prop::sample::select(&PORTS),
            is_tcp in any::<bool>(),
        ) {
            let len = bytes.len().min(start.len());
            bytes[..len].copy_from_slice(&start.as_bytes()[..len]);
            let carrier = if is_tcp { Carrier::Tcp } else { Carrier::Udp };
            let rules = if is_tcp { tcp::RULES } else { udp::RULES };
            let (side, ports) = (Side::Orig, (50_000, port));
            let payload = Payload { carrier, side, ports, bytes: &bytes, len: bytes.len() };
            let is_text = payload.begins_like_text();
            let counts = |rule: &Rule| {
                !rule.is_on_port() || ports::is_on_own(rule.app, &payload)
            };
            let of_kind = rules.iter().filter(|rule| is_text || !rule.is_line);
            let those = of_kind.filter(|rule| counts(rule) && rule.shows(&payload));
            let all: Vec<_> =
                those.map(|rule| rule.app).collect();
            let left: Vec<_> = matches(&payload).map(|rule| rule.app).collect();
            prop_assert_eq!(left, all);
        }
    }
}
