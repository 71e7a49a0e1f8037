//! The chain of lines: each has the hash of the one before and a number above its.

use units::hex;

use crate::line::{Event, Line};
use crate::raw::RawLine;

/// The end of a chain: what the next line stands behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Link {
    /// Number of the last line; 0 of none.
    pub seq: u64,
    /// Its SHA-256, with the line feed.
    pub hash: [u8; 32],
}

/// Where a chain is broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Line of its file, from 1.
    pub line: u64,
    /// What is wrong.
    pub why: String,
}

/// Takes lines one after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chain {
    end: Link,
    has_begun: bool,
    /// The line before is none. The next one may say why.
    bad: Option<Bad>,
    /// Lines that are none, of which the next line said so.
    torn: u64,
}

#[derive(Clone, Copy, Debug)]
struct Bad {
    line: u64,
    len: u64,
    behind: [u8; 32],
}

impl Bad {
    fn fault(self) -> Fault {
        Fault { line: self.line, why: "it is no line of an audit".to_owned() }
    }

    /// Whether this line states that one, and stands right behind it.
    fn is_stated_by(&self, line: &Line, end: Link) -> bool {
        let Event::Torn { bytes, behind } = &line.event else { return false };
        *bytes == self.len && *behind == hex(&self.behind) && line.prev == hex(&end.hash)
    }
}

impl Chain {
    /// What the next line stands behind.
    pub(crate) fn end(&self) -> Link {
        self.end
    }

    pub(crate) fn torn(&self) -> u64 {
        self.torn
    }

    /// Takes a line; what it says, and what is wrong with it or the one before.
    pub(crate) fn take(&mut self, raw: &RawLine, at: u64) -> (Option<Line>, Vec<Fault>) {
        let mut faults = Vec::new();
        let is_ours = raw.len == units::number::to_u64(raw.text.len());
        let line = Some(&*raw.text).filter(|_| is_ours).and_then(Line::read);
        let Some(line) = line else {
            faults.extend(self.bad.map(Bad::fault));
            self.bad = Some(Bad { line: at, len: raw.len, behind: self.end.hash });
            // The next one is expected behind it.
            self.end.hash = raw.hash;
            self.has_begun = true;
            return (None, faults);
        };
        match self.bad.take() {
            Some(bad) if bad.is_stated_by(&line, self.end) => self.torn += 1,
            bad => faults.extend(bad.map(Bad::fault)),
        }
        let why = self.wrong(&line);
        faults.extend(why.map(|why| Fault { line: at, why }));
        self.end = Link { seq: line.seq, hash: raw.hash };
        self.has_begun = true;
        (Some(line), faults)
    }

    /// What is wrong at the end of all lines, the last of which is `at`.
    pub(crate) fn finish(&mut self) -> Option<Fault> {
        self.bad.take().map(Bad::fault)
    }

    /// Why a line cannot stand behind the one before.
    fn wrong(&self, line: &Line) -> Option<String> {
        let Link { seq, hash } = self.end;
        let is_first = !self.has_begun;
        let is_further = matches!(line.event, Event::Continued { .. });
        if is_first && is_further && line.seq > 1 {
            return None;
        }
        let next = seq.saturating_add(1);
        let (own, before) = (line.seq, line.seq.saturating_sub(1));
        let missing = |from: u64| {
            if from == before {
                format!("line {from} of the chain is missing before it")
            } else {
                format!("lines {from} to {before} of the chain are missing before it")
            }
        };
        if own > next {
            return Some(missing(next));
        }
        if own < next {
            let why = format!("line {own} of the chain stands behind line {seq}: moved or put in");
            return Some(why);
        }
        if line.prev != hex(&hash) {
            return Some(match seq {
                0 => "it says that lines are before it, and there are none".to_owned(),
                _ => format!("line {seq} of the chain, before it, was changed"),
            });
        }
        let Event::Exchanged { missing, hash } = &line.event else { return None };
        Some(format!(
            "the file was put in the place of another one while a service wrote it: line {missing} \
             of that one is missing, with the hash {hash}"
        ))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::line::tests::request;
    use crate::raw::next_line;

    /// A chain of so many requests.
    pub(crate) fn chain(count: u64) -> Vec<String> {
        let mut end = Link::default();
        (1..=count)
            .map(|seq| {
                let event = Event::Request(Box::new(request("anna", seq)));
                let text = behind(end, event);
                end = Link { seq, hash: hash(&text) };
                text
            })
            .collect()
    }

    pub(crate) fn behind(end: Link, event: Event) -> String {
        let time = "2026-01-01T00:00:00Z".to_owned();
        Line { prev: hex(&end.hash), seq: end.seq + 1, time, event }.to_text()
    }

    pub(crate) fn hash(text: &str) -> [u8; 32] {
        next_line(&mut text.as_bytes()).unwrap().unwrap().hash
    }

    /// Lines of the file with a fault.
    fn faults(lines: &[String]) -> Vec<(u64, String)> {
        let (mut chain, mut found) = (Chain::default(), Vec::new());
        for (at, line) in (1..).zip(lines) {
            let raw = next_line(&mut line.as_bytes()).unwrap().unwrap();
            found.extend(chain.take(&raw, at).1);
        }
        found.extend(chain.finish());
        found.into_iter().map(|fault| (fault.line, fault.why)).collect()
    }

    #[test]
    fn every_edit_within_is_found_where_it_is() {
        let whole = chain(9);
        assert_eq!(faults(&whole), []);
        for at in 0..8 {
            let mut changed = whole.clone();
            changed[at] = changed[at].replace("anna", "bert");
            let number = u64::try_from(at).unwrap() + 1;
            let why = format!("line {number} of the chain, before it, was changed");
            assert_eq!(faults(&changed), [(number + 1, why)]);
            let mut removed = whole.clone();
            removed.remove(at);
            let why = format!("line {number} of the chain is missing before it");
            assert_eq!(faults(&removed), [(number, why)]);
            let mut swapped = whole.clone();
            swapped.swap(at, at + 1);
            assert!(!faults(&swapped).is_empty(), "{at}");
            let mut twice = whole.clone();
            twice.insert(at, whole[at].clone());
            assert!(!faults(&twice).is_empty(), "{at}");
            let mut other = whole.clone();
            other.insert(at, "{}\n".to_owned());
            assert!(!faults(&other).is_empty(), "{at}");
        }
        // What is cut off at the end leaves no trace in what is left.
        assert_eq!(faults(&whole[..5]), []);
    }

    #[test]
    fn every_flipped_bit_before_the_last_line_is_found() {
        let whole = chain(3);
        for at in 0..2 {
            for bit in 0..(whole[at].len() - 1) * 8 {
                let mut bytes = whole[at].clone().into_bytes();
                bytes[bit / 8] ^= 1 << (bit % 8);
                let text = [&*bytes, whole[at + 1].as_bytes()].concat();
                let mut input = [&*whole[..at].concat().into_bytes(), &*text].concat();
                input.extend(whole[at + 2..].concat().bytes());
                let (mut chain, mut found, mut input) = (Chain::default(), 0, &*input);
                while let Some(raw) = next_line(&mut input).unwrap() {
                    found += chain.take(&raw, 1).1.len();
                }
                found += usize::from(chain.finish().is_some());
                assert!(found > 0, "line {at} bit {bit}");
            }
        }
    }

    #[test]
    fn a_torn_line_is_none_unless_the_next_one_states_it() {
        let whole = chain(3);
        let torn = whole[2][..40].to_owned() + "\n";
        let end = Link { seq: 2, hash: hash(&torn) };
        let state = |bytes, behind: &[u8; 32]| Event::Torn { bytes, behind: hex(behind) };
        let stated = |event| [&whole[..2], &[torn.clone(), behind(end, event)]].concat();
        assert_eq!(faults(&stated(state(40, &hash(&whole[1])))), []);
        let none = [(3, "it is no line of an audit".to_owned())];
        assert_eq!(faults(&stated(state(41, &hash(&whole[1])))), none);
        assert_eq!(faults(&stated(state(40, &hash(&whole[0])))), none);
        assert_eq!(faults(&stated(Event::Stop {})), none);
        assert_eq!(faults(&[&whole[..2], &[torn]].concat()), none);
    }
}
