//! The search of one session: which payload is looked at, and by whom.
//!
//! TCP payload is looked at where a segment begins like a message. Segments that overtook others
//! wait for these ([`Reorder`]); a message that goes on in later segments is collected in a head
//! buffer until it is complete, 16 KiB long or 64 segments old, and then freed. The space that all
//! of them together take is bounded by the caller. What a damaged or cut message still shows is
//! kept.

use wire::{Names, PackedNames, Protocol};

use crate::application::{Application, Memory};
use crate::head::{Head, Progress};
use crate::payload::Segment;
use crate::quic::Quic;
use crate::reorder::Reorder;
use crate::{Budget, Reading, Side, Step, http, tls};

/// Bytes of a segment or datagram that are looked at. Offloading hands over segments of up to
/// 512 KiB; what names a session stands at their beginning.
pub(crate) const LOOK_LEN_MAX: usize = 16 << 10;

/// Messages of a segment that are read.
const MESSAGE_COUNT_MAX: usize = 32;

/// Bytes of memory that the search of one session takes at most, besides what it holds of payload:
/// 8 lists of 16 values and one of 32 details, each of up to 256 bytes and a key, and 10 KiB for
/// texts of TLS and SSH, keys of QUIC and places of what is held.
pub const SEARCH_BYTES_MAX: usize = 64 << 10;

/// UDP packets of a session looked at before it is taken for something else.
pub(crate) const ATTEMPT_COUNT_MAX: u8 = 8;

/// The names of one session and the messages that are being collected for them.
#[derive(Debug, Default)]
pub struct Search {
    /// What was found so far.
    pub names: Names,
    pub(crate) memory: Memory,
    pub(crate) quic: Option<Box<Quic>>,
    heads: [Option<Head<Application>>; 2],
    reorder: Reorder,
    /// The last hello of a TLS handshake was read, or SSH's key exchange, by side.
    openings: [bool; 2],
    /// Bytes that were taken for it from the space of the names.
    taken: usize,
}

/// Whether anything of the session is still looked at; small, so that it can lie in the hot record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Interest {
    pub(crate) attempts: u8,
    pub(crate) stage: Stage,
}

/// What there is of a session's names, for those who do not look at their place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Stage {
    /// Nothing, or names at rest of an unknown protocol.
    #[default]
    Unnamed,
    /// A search.
    Search,
    /// Names at rest of a known protocol.
    Named,
}

impl Interest {
    /// Nothing more is to be found.
    pub(crate) const NONE: Self = Self { attempts: ATTEMPT_COUNT_MAX, stage: Stage::Unnamed };

    /// Whether sessions of this protocol have names to be found.
    pub fn of(proto: Protocol) -> Self {
        match proto {
            Protocol::TCP | Protocol::UDP
            // Of these the headers say it.
            | Protocol::ICMP | Protocol::ICMPV6 | Protocol::ARP | Protocol::RARP => Self::default(),
            _ => Self::NONE,
        }
    }

    /// Nothing more is looked at; what was found stays.
    pub(crate) fn over(self) -> Self {
        Self { attempts: ATTEMPT_COUNT_MAX, ..self }
    }

    pub(crate) fn has_search(self) -> bool {
        self.stage == Stage::Search
    }

    /// Nothing more is to be found: payload need not be shown.
    pub fn is_none(self) -> bool {
        self.attempts == ATTEMPT_COUNT_MAX
    }
}

impl Search {
    /// A search that goes on from names at rest.
    pub(crate) fn resumed(names: &PackedNames, openings: [bool; 2]) -> Self {
        let taken = names.heap_bytes();
        Self { names: names.unpack(), openings, taken, ..Self::default() }
    }

    /// Names, openings and what was taken from the space of the names: all there is of one that is
    /// idle.
    pub(crate) fn into_parts(self) -> (Names, [bool; 2], usize) {
        (self.names, self.openings, self.taken)
    }

    /// No message is under way.
    pub(crate) fn is_idle(&self) -> bool {
        let Self { names: _, memory, quic, heads, reorder, openings: _, taken: _ } = self;
        heads.iter().all(Option::is_none)
            && reorder.is_empty()
            && quic.is_none()
            && *memory == Memory::default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        // What was taken has to be given back.
        self.taken == 0
            && self.openings == [false; 2]
            && self.is_idle()
            && self.names == Names::NONE
    }

    /// Bytes of memory that it takes, besides what it holds of payload.
    fn memory_bytes(&self) -> usize {
        let quic = self.quic.as_deref().map_or(0, Quic::memory_bytes);
        let target = self.memory.simple_target.as_deref().map_or(0, <[u8]>::len);
        size_of::<Self>() + self.names.heap_bytes() + self.reorder.memory_bytes() + quic + target
    }

    /// Takes from the space of the names what it has grown.
    pub(crate) fn account(&mut self, budget: &mut Budget) {
        let bytes = self.memory_bytes();
        budget.names.change(self.taken, bytes);
        self.taken = bytes;
    }

    /// Whether the next segment of this side is looked at whatever it begins with.
    pub(crate) fn awaits(&self, side: Side) -> bool {
        side.of(&self.heads).is_some()
            || self.memory.dialog.is_open()
            || !self.reorder.is_empty()
            || self.memory.simple_target.is_some()
    }

    /// Takes a segment, and those that waited for it.
    pub(crate) fn push(&mut self, segment: &Segment<'_>, budget: &mut Budget) {
        let is_ahead = match segment.side.of(&self.heads) {
            Some(head) => segment.start.wrapping_sub(head.next_sequence()).cast_signed() > 0,
            None => segment.is_ahead && self.kind(segment.payload, segment.ports).is_none(),
        };
        if is_ahead && self.reorder.hold(segment, budget) {
            return;
        }
        self.take(segment, budget);
        if !self.reorder.is_empty() {
            self.release(segment, budget);
        }
    }

    /// Takes what waited for the end of this segment.
    fn release(&mut self, segment: &Segment<'_>, budget: &mut Budget) {
        let end = |start: u32, payload: &[u8]| {
            start.wrapping_add(u32::try_from(payload.len()).unwrap_or(u32::MAX))
        };
        let mut next = end(segment.start, segment.payload);
        while let Some(held) = self.reorder.release(segment.side, next, budget) {
            let after = end(held.start, &held.payload);
            if after.wrapping_sub(next).cast_signed() > 0 {
                next = after;
                self.take(&held.like(segment), budget);
            }
        }
    }

    fn take(&mut self, segment: &Segment<'_>, budget: &mut Budget) {
        let Some(mut head) = segment.side.of(&mut self.heads).take() else {
            self.begin(segment, budget);
            return;
        };
        let is_whole = !segment.is_truncated;
        match head.add(segment.start, segment.payload, budget) {
            Progress::Waiting if is_whole => *segment.side.of(&mut self.heads) = Some(head),
            Progress::Grown if is_whole => match self.read(segment, head.kind, head.bytes(), false)
            {
                Step::More => *segment.side.of(&mut self.heads) = Some(head),
                Step::Foreign => {
                    // What came before was not what it looked like: this may begin something.
                    head.free(budget);
                    self.begin(segment, budget);
                }
                Step::Done(len) => {
                    // More messages may follow in the same bytes.
                    let rest = head.bytes().get(len..).unwrap_or_default().to_vec();
                    let start = head
                        .next_sequence()
                        .wrapping_sub(u32::try_from(rest.len()).expect("a head is at most 16 KiB"));
                    head.free(budget);
                    self.begin(&Segment { start, payload: &rest, ..*segment }, budget);
                }
            },
            _ => {
                self.read(segment, head.kind, head.bytes(), true);
                head.free(budget);
            }
        }
    }

    /// Reads the messages in a segment that begins with one; collects the last if it is not
    /// complete.
    fn begin(&mut self, segment: &Segment<'_>, budget: &mut Budget) {
        if segment.side == Side::Resp
            && let Some(target) = self.memory.simple_target.take()
            && http::is_page(segment.payload)
        {
            http::keep_simple(&target, &mut self.names);
        }
        let (mut payload, mut start) = (segment.payload, segment.start);
        for _ in 0..MESSAGE_COUNT_MAX {
            let Some(kind) = self.kind(payload, segment.ports).filter(|_| !payload.is_empty())
            else {
                return;
            };
            let is_last = segment.is_truncated || !kind.is_collected();
            match self.read(segment, kind, payload, is_last) {
                Step::Done(len) => {
                    let len = len.clamp(1, payload.len());
                    payload = payload.get(len..).unwrap_or_default();
                    start = start.wrapping_add(u32::try_from(len).unwrap_or(u32::MAX));
                }
                Step::More if !is_last => {
                    let head = Head::begin(kind, start, payload, budget);
                    *segment.side.of(&mut self.heads) = head;
                    return;
                }
                Step::More | Step::Foreign => return,
            }
        }
    }

    /// What these bytes begin with; in a dialog whatever is nothing else goes on with it.
    fn kind(&self, payload: &[u8], ports: (u16, u16)) -> Option<Application> {
        let is_open = self.memory.dialog.is_open();
        match Application::of_segment(payload, ports) {
            Some(Application::Tls) => Some(Application::Tls),
            _ if is_open => Some(Application::Dialog),
            kind => kind,
        }
    }

    fn read(
        &mut self,
        segment: &Segment<'_>,
        kind: Application,
        bytes: &[u8],
        is_last: bool,
    ) -> Step {
        let Segment { side, time_ns, .. } = *segment;
        let reading = Reading { side, time_ns, is_last };
        let step = kind.read(bytes, reading, &mut self.names, &mut self.memory);
        let is_opening = match kind {
            Application::Tls => !tls::is_retry_request(bytes),
            Application::Ssh => true,
            _ => false,
        };
        if is_opening && matches!(step, Step::Done(_)) {
            *side.of(&mut self.openings) = true;
        }
        step
    }

    /// TLS and SSH show their names once; after both openings the rest is ciphertext.
    pub(crate) fn is_complete(&self) -> bool {
        self.openings == [true; 2]
    }

    /// The session is over: what incomplete messages show is kept, and their space given back.
    pub(crate) fn finish(&mut self, budget: &mut Budget) {
        for side in [Side::Orig, Side::Resp] {
            if let Some(head) = side.of(&mut self.heads).take() {
                let reading = Reading { side, time_ns: i64::MIN, is_last: true };
                head.kind.read(head.bytes(), reading, &mut self.names, &mut self.memory);
                head.free(budget);
            }
        }
        self.reorder.clear(budget);
        if let Some(quic) = self.quic.take() {
            quic.free(budget);
        }
        budget.names.give(core::mem::take(&mut self.taken));
    }
}

#[cfg(test)]
mod tests;
