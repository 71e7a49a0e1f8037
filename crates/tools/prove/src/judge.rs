//! What came back, against what was sent.

use core::fmt;
use core::ops::Range;

use serde::{Serialize, Serializer};
use units::number::to_u64;
use wire::stamped;

use crate::account::{Account, Drops};
use crate::load::Load;

/// So many flaws are named one by one.
const NAMED_MAX: usize = 10;
const WORD_BITS: u64 = 64;

/// One flaw, by the numbers of the packets concerned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Finding {
    /// These are not in the volume.
    Lost(Range<u64>),
    /// This one has other bytes.
    Altered {
        /// Number of the packet.
        number: u64,
        /// The first byte that differs; where one of the two ends, its length.
        byte: usize,
    },
    /// This one is there again.
    Duplicated(u64),
    /// This one stands behind a later one of its flow.
    Reordered {
        /// Number of the packet.
        number: u64,
        /// The later one.
        behind: u64,
    },
}

/// In words.
impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(numbers) if numbers.end - numbers.start == 1 => {
                write!(f, "packet {} is missing", numbers.start)
            }
            Self::Lost(Range { start, end }) => {
                write!(f, "packets {start} to {} are missing", end - 1)
            }
            Self::Altered { number, byte } => {
                write!(f, "packet {number} is altered from byte {byte} on")
            }
            Self::Duplicated(number) => write!(f, "packet {number} is there more than once"),
            Self::Reordered { number, behind } => {
                write!(f, "packet {number} stands behind packet {behind} of its flow")
            }
        }
    }
}

/// Takes the packets of a recording, one after the other.
#[derive(Debug)]
pub struct Judge<'a> {
    load: &'a Load,
    key: u64,
    intact: Numbers,
    altered: Numbers,
    /// The highest number so far, for each flow.
    newest: Vec<Option<u64>>,
    account: Account,
    findings: Vec<Finding>,
    /// The packet that is expected.
    expected: Vec<u8>,
}

/// What a judge found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Judged {
    /// Where each packet went.
    pub account: Account,
    /// Packets that were read.
    pub read: u64,
    /// The first flaws.
    pub findings: Vec<Finding>,
}

impl<'a> Judge<'a> {
    /// For packets 0 to `sent` of a load, stamped with `key`.
    pub fn new(load: &'a Load, key: u64, sent: u64) -> Self {
        Self {
            load,
            key,
            intact: Numbers::new(sent),
            altered: Numbers::new(sent),
            newest: vec![None; load.flow_count()],
            account: Account { offered: sent, ..Account::default() },
            findings: Vec::new(),
            expected: Vec::new(),
        }
    }

    /// The next packet of the recording: its bytes, and its length on the wire as it was recorded.
    pub fn packet(&mut self, bytes: &[u8], original_len: u32) {
        let number = stamped(bytes, self.key).filter(|&number| number < self.account.offered);
        let Some(number) = number else {
            self.account.strangers += 1;
            return;
        };
        let flow = self.load.packet(self.key, number, &mut self.expected);
        let is_whole = usize::try_from(original_len) == Ok(self.expected.len());
        let is_intact = bytes == self.expected && is_whole;
        let is_first = !self.intact.has(number) && !self.altered.has(number);
        if is_intact {
            self.intact.add(number);
        } else {
            self.altered.add(number);
            let pairs = bytes.iter().zip(&self.expected);
            let byte = pairs.take_while(|(one, other)| one == other).count();
            self.find(Finding::Altered { number, byte });
        }
        if !is_first {
            self.account.duplicated += 1;
            self.find(Finding::Duplicated(number));
            return;
        }
        let newest = self.newest.get_mut(flow).expect("the load has this flow");
        match *newest {
            Some(behind) if behind > number => {
                self.account.reordered += 1;
                self.find(Finding::Reordered { number, behind });
            }
            _ => *newest = Some(number),
        }
    }

    fn find(&mut self, finding: Finding) {
        if self.findings.len() < NAMED_MAX {
            self.findings.push(finding);
        }
    }

    /// Adds up, with what the interfaces, the kernel and the recorder say that they dropped.
    pub fn finish(mut self, drops: Drops) -> Judged {
        let mut account = self.account;
        account.stored = self.intact.count();
        account.altered = self.altered.count_without(&self.intact);
        let read = account.stored + account.altered + account.duplicated + account.strangers;
        let missing = self.intact.gaps(&self.altered, NAMED_MAX - self.findings.len());
        self.findings.extend(missing.into_iter().map(Finding::Lost));
        Judged { account: account.explain(drops), read, findings: self.findings }
    }
}

/// A set of numbers below a bound, one bit each.
#[derive(Debug)]
struct Numbers {
    words: Vec<u64>,
    bound: u64,
}

impl Numbers {
    fn new(bound: u64) -> Self {
        let words = usize::try_from(bound.div_ceil(WORD_BITS)).expect("a run fits into memory");
        Self { words: vec![0; words], bound }
    }

    fn word(number: u64) -> (usize, u64) {
        let at = usize::try_from(number / WORD_BITS).expect("checked when it was made");
        (at, 1 << (number % WORD_BITS))
    }

    fn add(&mut self, number: u64) {
        let (at, bit) = Self::word(number);
        *self.words.get_mut(at).expect("numbers are below the bound") |= bit;
    }

    fn has(&self, number: u64) -> bool {
        let (at, bit) = Self::word(number);
        self.words.get(at).is_some_and(|word| word & bit != 0)
    }

    fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    fn count_without(&self, other: &Self) -> u64 {
        let words = self.words.iter().zip(&other.words);
        words.map(|(one, other)| u64::from((one & !other).count_ones())).sum()
    }

    /// The first runs of numbers that are in neither set.
    fn gaps(&self, other: &Self, most: usize) -> Vec<Range<u64>> {
        let mut gaps: Vec<Range<u64>> = Vec::new();
        let is_full = |(at, (one, other)): (usize, (&u64, &u64))| {
            ((one | other) != u64::MAX).then(|| to_u64(at))
        };
        let words = self.words.iter().zip(&other.words).enumerate().filter_map(is_full);
        for number in words.flat_map(|word| word * WORD_BITS..(word + 1) * WORD_BITS) {
            if number >= self.bound || self.has(number) || other.has(number) {
                continue;
            }
            match gaps.pop() {
                Some(last) if last.end == number => gaps.push(last.start..number + 1),
                last => {
                    gaps.extend(last);
                    if gaps.len() == most {
                        break;
                    }
                    gaps.push(number..number + 1);
                }
            }
        }
        gaps
    }
}

#[cfg(test)]
mod tests;
