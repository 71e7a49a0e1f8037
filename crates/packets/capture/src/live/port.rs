//! One interface as a whole, however its packets are taken: whether it is there, what it and its
//! driver lost, and what its packets show of its settings.

use std::io;

use crate::{Counters, Error};

use super::ethtool::{Card, Losses};
use super::socket::PacketSocket;

/// Counters of a driver are read with every so manieth look.
const LOOKS_PER_DRIVER_COUNT: u32 = 5;
/// Ethernet header, two tags, and the frame check sequence that some cards leave.
pub(super) const LINK_HEADER_MAX: usize = 14 + 8 + 4;

/// An interface that is captured from.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) socket: PacketSocket,
    pub(super) name: String,
    pub(super) mtu: usize,
    /// How the driver counts what it loses, and what it had lost at the start.
    losses: Losses,
    drops_at_start: Option<u64>,
    too_long_at_start: Option<u64>,
    /// No frame is longer that was alone on the wire.
    longest: u32,
    /// How often the counters were read.
    looks: u32,
    told: Told,
    times_down: u64,
    /// The first queue reports and counts what concerns the interface.
    is_first: bool,
    pub(super) is_gone: bool,
}

/// Longest frame of an interface with this MTU.
fn longest_of(mtu: usize) -> u32 {
    u32::try_from(mtu.saturating_add(LINK_HEADER_MAX)).unwrap_or(u32::MAX)
}

/// What is reported once.
#[derive(Clone, Copy, Default, Debug)]
struct Told {
    merged: bool,
    too_long: bool,
}

impl Port {
    /// The interface of this name, to which the socket is bound.
    pub(super) fn new(name: &str, socket: PacketSocket, is_first: bool) -> Result<Self, Error> {
        let card = Card { socket: &socket, name };
        let losses = if is_first { card.find_losses() } else { Losses::default() };
        let (drops_at_start, too_long_at_start) = (card.drops(&losses), card.too_long());
        let asked = socket.link(name).map_err(|source| {
            let operation = "asking for the MTU";
            Error::System { name: name.to_owned(), operation, source }
        });
        let mtu = asked?.mtu;
        Ok(Self {
            socket,
            name: name.to_owned(),
            mtu,
            losses,
            drops_at_start,
            too_long_at_start,
            longest: longest_of(mtu),
            looks: 0,
            told: Told::default(),
            times_down: 0,
            is_first,
            is_gone: false,
        })
    }

    pub(super) fn card(&self) -> Card<'_> {
        Card { socket: &self.socket, name: &self.name }
    }

    /// Counts what the interface lost, and notes whether it is there.
    pub(super) fn count(&mut self, counters: &mut Counters, is_last: bool) {
        if !self.is_first {
            counters.interface_drops = Some(0);
            return;
        }
        // Some drivers ask their card, which takes a while.
        let is_due = self.looks.is_multiple_of(LOOKS_PER_DRIVER_COUNT);
        self.looks = self.looks.wrapping_add(1);
        // What an interface had lost before it was removed stays known.
        if (is_due || is_last)
            && !self.is_gone
            && let Some(drops) = self.card().drops(&self.losses)
        {
            let start = self.drops_at_start;
            counters.interface_drops = start.map(|start| drops.saturating_sub(start));
        }
        let is_up = self.socket.is_up(&self.name);
        counters.is_away = self.is_gone || is_up.is_ok_and(|is_up| !is_up);
        counters.times_down = self.times_down;
    }

    /// What was counted so far is another recording's.
    pub(super) fn count_anew(&mut self, counted: Option<u64>) {
        self.drops_at_start = self.drops_at_start.zip(counted).map(|(start, new)| start + new);
        self.times_down = 0;
    }

    /// The interface went down.
    pub(super) fn goes_down(&mut self) {
        self.times_down = self.times_down.saturating_add(1);
    }

    /// Learns how long the longest of some packets was.
    pub(super) fn see_longest(&mut self, longest: Option<u32>) {
        self.told.merged |= longest.is_some_and(|longest| longest > self.longest);
    }

    /// Whether no frame of now may be longer than was thought: somebody may have raised the MTU.
    fn is_longest_of_now(&mut self) -> bool {
        let Ok(link) = self.socket.link(&self.name) else { return true };
        let longest = longest_of(link.mtu);
        let is_raised = longest > self.longest;
        self.longest = self.longest.max(longest);
        !is_raised
    }

    /// What the packets and counters so far show of the interface's settings, once each.
    pub(super) fn findings(&mut self, notes: &mut Vec<String>) {
        if !self.is_first {
            return;
        }
        let name = &self.name;
        let refused = self.card().too_long().zip(self.too_long_at_start);
        if refused.is_some_and(|(now, start)| now > start) && !self.told.too_long {
            notes.push(format!(
                "interface {name} refuses frames for their length: its MTU may be too small; ip \
                 link set {name} mtu 9216"
            ));
            self.told.too_long = true;
        }
        if core::mem::take(&mut self.told.merged) && self.is_longest_of_now() {
            let name = &self.name;
            notes.push(format!(
                "interface {name} gave frames longer than its MTU: segments merged on the way, or \
                 not yet cut; ethtool -K {name} lro off gro off tso off gso off"
            ));
            self.longest = u32::MAX;
        }
    }

    /// The socket reported an error: the interface went down, or away. True where the latter is to
    /// be reported.
    pub(super) fn learn_of_change(&mut self) -> Result<bool, Error> {
        let pending = self.socket.take_error().map_err(|source| self.error("SO_ERROR", source))?;
        let is_news = self.notice_removal()?;
        if self.is_gone {
            return Ok(is_news);
        }
        if pending == libc::ENETDOWN {
            self.goes_down();
        } else if pending != 0 {
            return Err(self.error("receiving", io::Error::from_raw_os_error(pending)));
        }
        Ok(false)
    }

    /// Whether the interface was removed; true once, where it is to be reported. One that went down
    /// before reports no error any more.
    pub(super) fn notice_removal(&mut self) -> Result<bool, Error> {
        let hardware_type = self.socket.hardware_type();
        let hardware_type = hardware_type.map_err(|source| self.error("getsockname", source))?;
        let is_news = hardware_type.is_none() && !self.is_gone;
        self.is_gone |= is_news;
        Ok(is_news && self.is_first)
    }

    pub(super) fn error(&self, operation: &'static str, source: io::Error) -> Error {
        Error::System { name: self.name.clone(), operation, source }
    }
}
