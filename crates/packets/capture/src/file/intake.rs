//! What the parsers of all formats fill: the batch under way, the interfaces and their counters.
//!
//! What a file says of interfaces is repeated in whatever stores its packets, and kept for as long
//! as it is read. So it is bounded: texts and options of one interface, those of all, and their
//! number.

use std::collections::HashMap;
use std::mem;
use std::path::PathBuf;

use filters::Programs;
use format::pcapng::{BlockError, ByteOrder, Options, put_option};
use wire::LinkType;

use crate::source::Record;
use crate::{Counters, Damage, Error, Interface};

use super::options::FileOptions;

/// Packets of one batch: as many as a buffer without large blocks has, 32 bytes each.
const BATCH_PACKETS_MAX: usize = 8192;
/// Interfaces that are kept as they are described. Those that follow share one for each link type.
const DESCRIBED_MAX: usize = 1024;
/// Bytes of all their descriptions: a quarter of a piece, in which they are repeated.
const DESCRIPTIONS_BYTES_MAX: usize = 256 << 10;
/// Interfaces in all, the shared ones among them: there are fewer than 300 link types.
const INTERFACES_MAX: usize = DESCRIBED_MAX + 512;
/// Bytes of an interface's name, description, filter expression and further options.
const NAME_BYTES_MAX: usize = 256;
const DESCRIPTION_BYTES_MAX: usize = 1024;
const FILTER_BYTES_MAX: usize = 4096;
const OPTIONS_BYTES_MAX: usize = 4096;
/// Notes of one source; the rest is counted.
const NOTES_MAX: usize = 100;

/// The largest packet of any link type.
pub(super) const PACKET_BYTES_MAX: usize = 128 << 20;

/// Largest packet that libpcap and Wireshark read and write, with the exceptions that both make: a
/// larger size can only be damage.
pub(super) fn largest_packet(link_type: LinkType) -> usize {
    const DBUS: LinkType = LinkType(231);
    const USBPCAP: LinkType = LinkType(249);
    const EBHSCR: LinkType = LinkType(279);
    match link_type {
        DBUS | USBPCAP => PACKET_BYTES_MAX,
        EBHSCR => 8 << 20,
        _ => 256 << 10,
    }
}

/// The damage of a record or block of this size, which is over the limit.
pub(super) fn too_large(what: &'static str, size: usize, limit: usize) -> Damage {
    let wide = |size: usize| u64::try_from(size).unwrap_or(u64::MAX);
    Damage::TooLarge { what, size: wide(size), limit: wide(limit) }
}

/// How far a parser came in the bytes it was given.
#[derive(Debug)]
pub(super) struct Parsed {
    /// Bytes dealt with; what stopped it lies behind them.
    pub(super) consumed: usize,
    pub(super) stop: Stop,
}

/// Why a parser stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// What follows is not all there: `what` needs `needed` bytes.
    More { what: &'static str, needed: usize },
    /// The batch so far is to be handed out first.
    HandOut,
    /// A block to be kept; no packet waits before it.
    Block(Vec<u8>),
    /// Nothing behind `consumed` can be read.
    Refused(Refused),
}

/// Why bytes could not be taken.
#[derive(Debug)]
pub(super) enum Refused {
    Damage(Damage),
    /// It is no capture, or the filter means nothing for its link type.
    Error(Error),
}

impl From<Damage> for Refused {
    fn from(damage: Damage) -> Self {
        Self::Damage(damage)
    }
}

impl From<BlockError> for Refused {
    fn from(error: BlockError) -> Self {
        Self::Damage(Damage::Block(error))
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl Parsed {
    pub(super) fn more(consumed: usize, what: &'static str, needed: usize) -> Self {
        Self { consumed, stop: Stop::More { what, needed } }
    }

    pub(super) fn refused(consumed: usize, why: impl Into<Refused>) -> Self {
        Self { consumed, stop: Stop::Refused(why.into()) }
    }
}

/// The batch under way, and all that outlives a file.
#[derive(Debug, Default)]
pub(super) struct Intake {
    pub(super) interfaces: Vec<Interface>,
    notes: Vec<String>,
    /// Notes given so far, and those left out.
    noted: usize,
    unnoted: u64,
    /// Bytes of all descriptions kept.
    described_bytes: usize,
    /// What was shortened or shared was said.
    is_shortening_noted: bool,
    is_sharing_noted: bool,
    /// The file under way, for notes.
    pub(super) path: PathBuf,
    pub(super) records: Vec<Record>,
    /// Options of the records, in little endian.
    pub(super) options: Vec<u8>,
    settings: FileOptions,
    counters: Vec<Counters>,
    /// Position of each interface's program in `programs`; none without a filter.
    program_of: Vec<usize>,
    programs: Option<Programs>,
    known: HashMap<(usize, Interface), u32>,
}

impl Intake {
    pub(super) fn new(settings: FileOptions) -> Result<Self, Error> {
        let programs = settings.filter.as_deref().map(Programs::of_all).transpose()?;
        Ok(Self { settings, programs, ..Self::default() })
    }

    pub(super) fn clear(&mut self) {
        self.records.clear();
        self.options.clear();
    }

    /// The batch is to be handed out before more is parsed.
    pub(super) fn is_full(&self) -> bool {
        self.records.len() >= BATCH_PACKETS_MAX
    }

    /// Keeps a note, unless there were many.
    pub(super) fn note(&mut self, text: impl FnOnce() -> String) {
        if self.has_space() {
            self.noted += 1;
            self.notes.push(text());
        } else {
            self.unnoted += 1;
        }
    }

    /// There is space for one more note.
    pub(super) fn has_space(&self) -> bool {
        self.noted < NOTES_MAX
    }

    /// Tells how many notes were left out.
    pub(super) fn end_notes(&mut self) {
        let unnoted = mem::take(&mut self.unnoted);
        if unnoted > 0 {
            self.notes.push(format!("{unnoted} further notes on the files are left out"));
        }
    }

    pub(super) fn take_notes(&mut self) -> Vec<String> {
        mem::take(&mut self.notes)
    }

    pub(super) fn counters(&self) -> Vec<Counters> {
        self.counters.clone()
    }

    /// The number of the interface at `position` of a file or section. The same interface at the
    /// same position of several sections or files, as rotated captures have it, is one
    /// interface.
    pub(super) fn describe(
        &mut self,
        position: usize,
        mut interface: Interface,
    ) -> Result<u32, Refused> {
        if shorten(&mut interface) && !mem::replace(&mut self.is_shortening_noted, true) {
            let path = self.path.display().to_string();
            self.note(|| {
                format!("{path}: its descriptions of interfaces are too long and were cut")
            });
        }
        if self.settings.snaplen != 0 && is_longer(interface.snaplen, self.settings.snaplen) {
            interface.snaplen = self.settings.snaplen;
        }
        let mut program = None;
        if let Some(programs) = &mut self.programs {
            program = Some(programs.index_of(interface.link_type).map_err(Error::Filter)?);
            let expression = programs.expression();
            interface.filter = Some(match interface.filter {
                Some(earlier) => format!("({earlier}) and ({expression})"),
                None => expression.to_owned(),
            });
        }
        let mut key = (position, interface);
        if let Some(&number) = self.known.get(&key) {
            return Ok(number);
        }
        let bytes = len_bytes(&key.1);
        let is_one_too_many = self.known.len() >= DESCRIBED_MAX
            || self.described_bytes + bytes > DESCRIPTIONS_BYTES_MAX;
        if is_one_too_many {
            key = self.shared(&key.1);
            if let Some(&number) = self.known.get(&key) {
                return Ok(number);
            }
            if self.interfaces.len() >= INTERFACES_MAX {
                let limit = INTERFACES_MAX;
                return Err(Damage::Interfaces { limit }.into());
            }
        } else {
            self.described_bytes += bytes;
        }
        let number = u32::try_from(self.interfaces.len()).expect("they are few");
        self.interfaces.push(key.1.clone());
        self.program_of.extend(program);
        self.counters.push(Counters { filter_rejects: Some(0), ..Counters::default() });
        self.known.insert(key, number);
        Ok(number)
    }

    /// What is kept of an interface for which there is no space: the link type.
    fn shared(&mut self, interface: &Interface) -> (usize, Interface) {
        if !mem::replace(&mut self.is_sharing_noted, true) {
            let path = self.path.display().to_string();
            self.note(|| {
                format!(
                    "{path}: more interfaces than the limit ({DESCRIBED_MAX}, in 256 KiB); \
                     packets of the others are stored with their link type alone"
                )
            });
        }
        let filter = self.programs.as_ref().map(|programs| programs.expression().to_owned());
        let (link_type, snaplen) = (interface.link_type, 0);
        let (name, options) = (String::new(), Vec::new());
        let shared = Interface { name, description: None, link_type, snaplen, filter, options };
        // No interface of a file is at that position.
        (usize::MAX, shared)
    }

    /// Adds a packet of `data` to the batch, unless the filter refuses it.
    #[inline]
    pub(super) fn push(&mut self, data: &[u8], mut record: Record) {
        let index = usize::try_from(record.interface).expect("interfaces are counted in memory");
        let counters = self.counters.get_mut(index).expect("the interface was described");
        if let Some(programs) = &self.programs {
            let program = self.program_of.get(index).expect("the interface was described");
            let program = programs.get(*program);
            let bytes = data.get(record.bytes.clone()).expect("a record lies in its data");
            let tagged = record.tag.map(|tag| with_tag(bytes, tag));
            if !program.accepts(tagged.as_deref().unwrap_or(bytes), record.original_len) {
                counters.filter_rejects = counters.filter_rejects.map(|count| count + 1);
                return;
            }
        }
        counters.received += 1;
        counters.delivered += 1;
        if self.settings.snaplen != 0 {
            let snaplen = usize::try_from(self.settings.snaplen).unwrap_or(usize::MAX);
            record.bytes.end = record.bytes.end.min(record.bytes.start.saturating_add(snaplen));
        }
        self.records.push(record);
    }
}

/// Cuts what is too long in an interface's description; true when anything was.
fn shorten(interface: &mut Interface) -> bool {
    let before = len_bytes(interface);
    interface.name.truncate(interface.name.floor_char_boundary(NAME_BYTES_MAX));
    if let Some(text) = &mut interface.description {
        text.truncate(text.floor_char_boundary(DESCRIPTION_BYTES_MAX));
    }
    // A part of an expression means something else.
    interface.filter.take_if(|text| text.len() > FILTER_BYTES_MAX);
    if interface.options.len() > OPTIONS_BYTES_MAX {
        let all = mem::take(&mut interface.options);
        for option in Options::new(&all, ByteOrder::Little) {
            if interface.options.len() + 4 + option.value.len() <= OPTIONS_BYTES_MAX {
                put_option(&mut interface.options, option.code, option.value);
            }
        }
    }
    len_bytes(interface) < before
}

/// Bytes of an interface's texts and options.
fn len_bytes(interface: &Interface) -> usize {
    let Interface { name, description, filter, options, .. } = interface;
    let texts = [description, filter].map(|text| text.as_ref().map_or(0, String::len));
    name.len() + texts.iter().sum::<usize>() + options.len()
}

/// A frame as it was on the wire: the tag stands behind both addresses (IEEE 802.1Q, 9.3).
fn with_tag(frame: &[u8], tag: [u8; 4]) -> Vec<u8> {
    let (addresses, rest) = frame.split_at_checked(12).unwrap_or((frame, &[]));
    [addresses, &tag, rest].concat()
}

/// Compares two snaplens, of which 0 is the longest.
fn is_longer(left: u32, right: u32) -> bool {
    right != 0 && (left == 0 || left > right)
}
