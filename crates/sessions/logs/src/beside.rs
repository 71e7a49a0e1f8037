//! What lies beside packets: the keys of sessions (Decryption Secrets Blocks) and the names of
//! addresses (Name Resolution Blocks). Of these an answer has what belongs to its packets, and
//! nothing of others: a line of a TLS key log opens the session whose `ClientHello` has the random
//! that it names, wherever the packets of that session are.
//!
//! A line and its packet come in any order. Each waits for the other, within a budget; what waits
//! at the end, or does not fit, is counted and not given. An answer that is asked for everything
//! gets the blocks as they are.

use std::collections::{BTreeMap, BTreeSet};

use app::client_random;
use format::pcapng::{Blocks, ByteOrder, View, block_type, put_block, put_option};
use units::unhex;
use wire::{Address, FiveTuple};

/// `secrets_type` of a TLS key log (pcapng 4.7).
const TLS_KEY_LOG: u32 = 0x544c_534b;
/// Kinds of records of names (pcapng 4.5): IPv4 and IPv6.
const NAME_OF_V4: u16 = 1;
const NAME_OF_V6: u16 = 2;
/// Bytes of lines and records that wait: key logs of 80 000 sessions.
const WAITING_BYTES_MAX: usize = 16 << 20;
/// Sessions and addresses of the answer that are remembered: 12 MiB.
const GIVEN_MAX: usize = 1 << 18;

type Random = [u8; 32];

/// What a line or a record is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Subject {
    Session(Random),
    Address(Address),
}

/// Lines or records of a subject.
#[derive(Default, Debug)]
struct Waiting {
    bytes: Vec<u8>,
    count: u64,
}

/// The blocks of one answer.
#[derive(Debug)]
pub struct Beside {
    gives_all: bool,
    has_place: bool,
    /// Hashes of the blocks that were met: pieces repeat them.
    met: BTreeSet<[u8; 32]>,
    given: BTreeSet<Subject>,
    waiting: BTreeMap<Subject, Waiting>,
    waiting_bytes: usize,
    left_out: u64,
    /// The row of the packet before.
    row: Option<u64>,
}

impl Beside {
    /// Of an answer that is asked for everything, or of some of it; into an output that has a place
    /// for blocks, or has none.
    pub fn new(is_everything: bool, has_place: bool) -> Self {
        Self {
            gives_all: is_everything,
            has_place,
            met: BTreeSet::new(),
            given: BTreeSet::new(),
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            left_out: 0,
            row: None,
        }
    }

    /// It has to be known what the packets of the answer are.
    pub fn looks_at_packets(&self) -> bool {
        !self.gives_all && self.has_place
    }

    /// Takes a block that was met; gives what of it goes out now.
    pub fn block(&mut self, block: &[u8]) -> Vec<u8> {
        if !self.met.insert(*blake3::hash(block).as_bytes()) {
            return Vec::new();
        }
        if self.gives_all && self.has_place {
            return block.to_vec();
        }
        let view = Blocks::new(block, ByteOrder::Little).next().and_then(Result::ok);
        let mut out = Vec::new();
        match view.map(|(_, block)| block.view()) {
            Some(Ok(View::DecryptionSecrets(found))) if found.secrets_type == TLS_KEY_LOG => {
                for line in found.secrets.split(|byte| *byte == b'\n') {
                    self.line(line.trim_ascii(), &mut out);
                }
            }
            Some(Ok(View::NameResolution(names))) => {
                for (kind, value) in names.records() {
                    self.record(kind, value, &mut out);
                }
            }
            // Other kinds of secrets do not say whose they are.
            _ => self.left_out = self.left_out.saturating_add(1),
        }
        out
    }

    /// Takes a packet that is given out, with the row that has it; gives what goes out with it.
    pub fn packet(&mut self, row: Option<u64>, tuple: &FiveTuple, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        if row.is_none() || self.row != row {
            self.row = row;
            self.give(Subject::Address(tuple.orig), &mut out);
            self.give(Subject::Address(tuple.resp), &mut out);
        }
        if let Some(random) = client_random(payload) {
            self.give(Subject::Session(random), &mut out);
        }
        out
    }

    /// Lines and records that were met and not given.
    pub fn left_out(&self) -> u64 {
        let waiting = self.waiting.values().map(|waiting| waiting.count);
        waiting.fold(self.left_out, u64::saturating_add)
    }

    fn line(&mut self, line: &[u8], out: &mut Vec<u8>) {
        if line.is_empty() || line.starts_with(b"#") {
            return;
        }
        let text = [line, b"\n"].concat();
        self.take(session_of(line).map(Subject::Session), &text, out);
    }

    fn record(&mut self, kind: u16, value: &[u8], out: &mut Vec<u8>) {
        let mut record = Vec::new();
        put_option(&mut record, kind, value);
        self.take(address_of(kind, value).map(Subject::Address), &record, out);
    }

    fn take(&mut self, subject: Option<Subject>, bytes: &[u8], out: &mut Vec<u8>) {
        let subject = subject.filter(|_| self.has_place);
        let fits = self.waiting_bytes.saturating_add(bytes.len()) <= WAITING_BYTES_MAX;
        match subject {
            Some(subject) if self.given.contains(&subject) => put(out, subject, bytes),
            Some(subject) if fits => {
                self.waiting_bytes += bytes.len();
                let waiting = self.waiting.entry(subject).or_default();
                waiting.bytes.extend_from_slice(bytes);
                waiting.count += 1;
            }
            _ => self.left_out = self.left_out.saturating_add(1),
        }
    }

    /// A packet of this subject is in the answer.
    fn give(&mut self, subject: Subject, out: &mut Vec<u8>) {
        if self.given.len() >= GIVEN_MAX || !self.given.insert(subject) {
            return;
        }
        if let Some(waiting) = self.waiting.remove(&subject) {
            self.waiting_bytes -= waiting.bytes.len();
            put(out, subject, &waiting.bytes);
        }
    }
}

/// Appends a block with these lines or records.
fn put(out: &mut Vec<u8>, subject: Subject, bytes: &[u8]) {
    match subject {
        Subject::Session(_) => put_block(out, block_type::DECRYPTION_SECRETS, |out| {
            let len = u32::try_from(bytes.len()).expect("what waits is below its budget");
            out.extend_from_slice(&TLS_KEY_LOG.to_le_bytes());
            out.extend_from_slice(&len.to_le_bytes());
            out.extend_from_slice(bytes);
        }),
        Subject::Address(_) => put_block(out, block_type::NAME_RESOLUTION, |out| {
            out.extend_from_slice(bytes);
            // nrb_record_end.
            put_option(out, 0, &[]);
        }),
    }
}

/// The random that a line of a key log names behind its label. Lines of another form name no
/// session that a packet shows.
fn session_of(line: &[u8]) -> Option<Random> {
    let mut words = core::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let (_label, random, _secret) = (words.next()?, words.next()?, words.next()?);
    unhex(random)
}

fn address_of(kind: u16, value: &[u8]) -> Option<Address> {
    match kind {
        NAME_OF_V4 => value.first_chunk::<4>().map(|bytes| Address::V4((*bytes).into())),
        NAME_OF_V6 => value.first_chunk::<16>().map(|bytes| Address::V6((*bytes).into())),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
