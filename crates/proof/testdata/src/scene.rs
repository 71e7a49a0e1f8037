//! A capture as it is made: frames with the session each belongs to.

use std::collections::BTreeMap;

use crate::layers::{Ends, Link, Side};

/// When captures begin, in nanoseconds of Unix time.
pub(crate) const BEGIN_NS: u64 = 1_700_000_000_123_456_000;

/// One frame, and what its maker knows of it.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) time_ns: u64,
    pub(crate) interface: usize,
    /// As on the wire; a capture may keep less.
    pub(crate) bytes: Vec<u8>,
    pub(crate) session: usize,
    pub(crate) side: Side,
    /// The length of the innermost IP packet, its headers included.
    pub(crate) ip_bytes: usize,
    /// What TCP or UDP carries.
    pub(crate) payload_bytes: usize,
    pub(crate) tcp_flags: u8,
}

/// What the maker of a session says of it, besides its frames.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// None for what is not IP.
    pub(crate) ends: Option<Ends>,
    /// The first ICMP message's type and code.
    pub(crate) icmp: Option<(u8, u8)>,
    /// By the columns of the reference table: `sni`, `dns`, `http_host`, `ssh`, `ja3`, `subject`.
    pub(crate) names: BTreeMap<&'static str, Vec<String>>,
    /// nDPI's word for what it speaks.
    pub(crate) app: Option<&'static str>,
}

/// What a capture says of an interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    pub(crate) link: Link,
    /// Digits of a second that its times have.
    pub(crate) digits: u32,
}

/// The form of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Form {
    pub(crate) is_pcapng: bool,
    pub(crate) is_big_endian: bool,
    /// Bytes of a frame that are kept.
    pub(crate) snaplen: usize,
}

impl Form {
    pub(crate) const PCAP: Self = Self { is_pcapng: false, is_big_endian: false, snaplen: 262_144 };
    pub(crate) const PCAP_BE: Self = Self { is_big_endian: true, ..Self::PCAP };
    pub(crate) const PCAPNG: Self = Self { is_pcapng: true, ..Self::PCAP };
    pub(crate) const PCAPNG_BE: Self = Self { is_pcapng: true, ..Self::PCAP_BE };
}

/// One capture.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    /// The file's name below `pcap`.
    pub(crate) file: &'static str,
    pub(crate) form: Form,
    pub(crate) ports: Vec<Port>,
    /// In the order of time once the scene has ended.
    pub(crate) frames: Vec<Frame>,
    pub(crate) sessions: Vec<Session>,
    /// From which frame on each further section goes; pcapng only.
    pub(crate) sections: Vec<usize>,
    /// Blocks of names and secrets at its beginning, as type and body; pcapng only.
    pub(crate) blocks: Vec<(u32, Vec<u8>)>,
}

impl Scene {
    /// A capture of one interface, in microseconds.
    pub(crate) fn new(file: &'static str, form: Form, link: Link) -> Self {
        Self {
            file,
            form,
            ports: vec![Port { link, digits: 6 }],
            frames: Vec::new(),
            sessions: Vec::new(),
            sections: Vec::new(),
            blocks: Vec::new(),
        }
    }

    /// The same with times in nanoseconds.
    pub(crate) fn in_nanoseconds(mut self) -> Self {
        self.ports.iter_mut().for_each(|port| port.digits = 9);
        self
    }

    /// Brings the frames into the order of time, each at a time that its interface can say.
    pub(crate) fn ended(mut self) -> Self {
        self.frames.sort_by_key(|frame| frame.time_ns);
        for (number, frame) in (0_u64..).zip(&mut self.frames) {
            // Digits that coarser times do not have, so that a reader that loses them is found.
            let is_fine = self.ports[frame.interface].digits == 9;
            frame.time_ns += if is_fine { number * 7 % 1000 } else { 0 };
        }
        self.frames.sort_by_key(|frame| frame.time_ns);
        self
    }

    /// How many bytes of a frame are kept.
    pub(crate) fn kept(&self, frame: &Frame) -> usize {
        frame.bytes.len().min(self.form.snaplen)
    }
}
