//! What the kernel's records of sampling say (`perf_event_open(2)`, "MMAP layout").

use host::DeviceNumber;
use host::native::{u32_of, u64_of};

use crate::perf::{HEADER, PERF_RECORD_SAMPLE};

/// Which parts a sample has: `PERF_SAMPLE_IP`, `_TID`, `_TIME`, `_CPU` and `_PERIOD`. All but the
/// first and the last also stand at the end of other records.
pub(super) const PARTS: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8;
/// Process and thread, time, processor: the end of every other record.
const TRAILER: usize = 24;
/// `enum perf_event_type`
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const MMAP2: u32 = 10;
/// `PERF_RECORD_MISC_CPUMODE_MASK`, `PERF_RECORD_MISC_USER` and `PERF_RECORD_MISC_GUEST_USER`.
const MODE: u32 = 7;
const USER: u32 = 2;
const GUEST_USER: u32 = 5;
/// `PERF_RECORD_MISC_COMM_EXEC`
const EXEC: u32 = 1 << 13;

/// A record of the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Time by `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// What the record says.
    pub noted: Noted,
}

/// Content of a record of the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Noted {
    /// What a processor did at a moment.
    Sample(Sample),
    /// A process has a name, or another one.
    Named {
        /// Process id.
        process: u32,
        /// The name, as the kernel has it.
        name: String,
        /// It runs another program from now on, and nothing else is mapped any more.
        is_new_program: bool,
    },
    /// A process has begun, as a copy of another one.
    Forked {
        /// Process id.
        process: u32,
        /// The other one.
        parent: u32,
    },
    /// A process has ended.
    Ended {
        /// Process id.
        process: u32,
    },
    /// A process has mapped something that can be run.
    Mapped {
        /// Process id.
        process: u32,
        /// The mapped file and its place in memory.
        mapping: Mapping,
    },
}

/// What a processor did at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// The process that ran; 0 is the idle task, [`u32::MAX`] one that cannot be seen from here.
    pub process: u32,
    /// Thread id.
    pub thread: u32,
    /// Processor on which it ran.
    pub processor: u32,
    /// Address of the instruction.
    pub address: u64,
    /// It was in the kernel.
    pub is_kernel: bool,
    /// What it stands for: nanoseconds, or cycles.
    pub weight: u64,
}

/// Something that can be run, in the memory of a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// First address of the mapping.
    pub begin: u64,
    /// The address behind it.
    pub end: u64,
    /// Where it begins in its file.
    pub offset: u64,
    /// What the file system of its file is on.
    pub device: DeviceNumber,
    /// The number of the file; 0 of memory without one.
    pub inode: u64,
    /// Path of the file, or a name of the kernel's such as `[vdso]`; empty without either.
    pub name: String,
}

/// Reads a record; `None` of one that says nothing here, or is not whole.
pub(super) fn decode(kind: u32, record: &[u8]) -> Option<Record> {
    if kind == PERF_RECORD_SAMPLE {
        return sample(record);
    }
    let (body, trailer) = record.split_at_checked(record.len().checked_sub(TRAILER)?)?;
    let time_ns = long(trailer, 8)?;
    let (process, second) = (word(body, HEADER)?, word(body, HEADER + 4)?);
    let noted = match kind {
        // The name of the process is that of its first thread.
        COMM if process == second => Noted::Named {
            process,
            name: text(body.get(HEADER + 8..)?),
            is_new_program: flags(body)? & EXEC != 0,
        },
        MMAP2 => Noted::Mapped { process, mapping: mapping(body)? },
        FORK | EXIT => {
            let (thread, parent) = (word(body, HEADER + 8)?, second);
            match kind {
                FORK if process == thread && process != parent => Noted::Forked { process, parent },
                EXIT if process == thread => Noted::Ended { process },
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(Record { time_ns, noted })
}

fn sample(record: &[u8]) -> Option<Record> {
    let mode = flags(record)? & MODE;
    let sample = Sample {
        address: long(record, HEADER)?,
        process: word(record, HEADER + 8)?,
        thread: word(record, HEADER + 12)?,
        processor: word(record, HEADER + 24)?,
        is_kernel: mode != USER && mode != GUEST_USER,
        weight: long(record, HEADER + 32)?,
    };
    Some(Record { time_ns: long(record, HEADER + 16)?, noted: Noted::Sample(sample) })
}

fn mapping(body: &[u8]) -> Option<Mapping> {
    let begin = long(body, HEADER + 8)?;
    let name = text(body.get(HEADER + 64..)?);
    Some(Mapping {
        begin,
        end: begin.checked_add(long(body, HEADER + 16)?)?,
        offset: long(body, HEADER + 24)?,
        device: DeviceNumber { major: word(body, HEADER + 32)?, minor: word(body, HEADER + 36)? },
        inode: long(body, HEADER + 40)?,
        // What the kernel says of memory without a file.
        name: if name == "//anon" { String::new() } else { name },
    })
}

/// The low half of the header's second word.
fn flags(record: &[u8]) -> Option<u32> {
    Some(word(record, 4)? & 0xffff)
}

fn word(record: &[u8], at: usize) -> Option<u32> {
    Some(u32_of(*record.get(at..)?.first_chunk()?))
}

fn long(record: &[u8], at: usize) -> Option<u64> {
    Some(u64_of(*record.get(at..)?.first_chunk()?))
}

/// Characters up to the first zero.
fn text(bytes: &[u8]) -> String {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::native::u32_bytes;

    /// A record with its header; words of 32 bits, as on the machine.
    fn record(kind: u32, flags: u32, words: &[u32], text: &str) -> Vec<u8> {
        let mut body: Vec<u8> = words.iter().flat_map(|word| u32_bytes(*word)).collect();
        if !text.is_empty() {
            body.extend(text.bytes());
            body.resize((body.len() + 1).next_multiple_of(8), 0);
        }
        if kind != PERF_RECORD_SAMPLE {
            body.extend([7, 7, 99, 0, 3, 0].iter().flat_map(|word: &u32| u32_bytes(*word)));
        }
        let len = u32::try_from(HEADER + body.len()).unwrap();
        let header = [kind, flags | len << 16];
        header.iter().flat_map(|word| u32_bytes(*word)).chain(body).collect()
    }

    fn noted(kind: u32, flags: u32, words: &[u32], text: &str) -> Option<Noted> {
        let found = decode(kind, &record(kind, flags, words, text))?;
        assert_eq!(found.time_ns, 99);
        Some(found.noted)
    }

    #[test]
    fn a_sample_says_who_ran_where() {
        let words = [0x1000, 0, 7, 8, 99, 0, 3, 0, 1_010_101, 0];
        let expected = Sample {
            process: 7,
            thread: 8,
            processor: 3,
            address: 0x1000,
            is_kernel: false,
            weight: 1_010_101,
        };
        let user = noted(PERF_RECORD_SAMPLE, USER, &words, "");
        assert_eq!(user, Some(Noted::Sample(expected)));
        let kernel = noted(PERF_RECORD_SAMPLE, 1, &words, "");
        assert_eq!(kernel, Some(Noted::Sample(Sample { is_kernel: true, ..expected })));
        let cut = record(PERF_RECORD_SAMPLE, USER, &words[..9], "");
        assert_eq!(decode(PERF_RECORD_SAMPLE, &cut), None);
    }

    #[test]
    fn processes_are_told_from_threads() {
        let named = Noted::Named { process: 7, name: "cat".to_owned(), is_new_program: true };
        assert_eq!(noted(COMM, EXEC, &[7, 7], "cat"), Some(named));
        assert_eq!(noted(COMM, 0, &[7, 8], "worker"), None, "a thread of it");
        let forked = Noted::Forked { process: 9, parent: 7 };
        assert_eq!(noted(FORK, 0, &[9, 7, 9, 7, 99, 0], ""), Some(forked));
        assert_eq!(noted(FORK, 0, &[7, 7, 8, 7, 99, 0], ""), None, "a thread of it");
        let ended = Noted::Ended { process: 7 };
        assert_eq!(noted(EXIT, 0, &[7, 1, 7, 1, 99, 0], ""), Some(ended));
        assert_eq!(noted(EXIT, 0, &[7, 1, 8, 1, 99, 0], ""), None, "a thread of it");
    }

    #[test]
    fn a_mapping_has_its_file() {
        let mut words = [0; 16];
        words[..8].copy_from_slice(&[7, 7, 0x4000, 0, 0x2000, 0, 0x1000, 0]);
        words[8..11].copy_from_slice(&[254, 1, 77]);
        let expected = Mapping {
            begin: 0x4000,
            end: 0x6000,
            offset: 0x1000,
            device: DeviceNumber { major: 254, minor: 1 },
            inode: 77,
            name: "/lib/x.so".to_owned(),
        };
        let found = noted(MMAP2, USER, &words, "/lib/x.so");
        assert_eq!(found, Some(Noted::Mapped { process: 7, mapping: expected.clone() }));
        words[10] = 0;
        let unnamed = Mapping { inode: 0, name: String::new(), ..expected };
        let found = noted(MMAP2, USER, &words, "//anon");
        assert_eq!(found, Some(Noted::Mapped { process: 7, mapping: unnamed }));
        assert_eq!(noted(MMAP2, USER, &words[..8], ""), None);
    }
}
