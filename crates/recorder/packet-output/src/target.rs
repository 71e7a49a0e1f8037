//! Where packets go.

use std::io::{self, Write};

use units::Timestamp;
use wire::{FiveTuple, LinkType};

/// Opens the output for packets of one link type.
pub type OpenOutput<'a> = dyn FnMut(LinkType) -> io::Result<Box<dyn Write>> + 'a;

/// Where a session's packets go to, and its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionStart {
    /// The session's id, by the first row of it that was taken.
    pub id: String,
    /// Originator and responder.
    pub tuple: FiveTuple,
    /// Its earliest packet, of its whole life.
    pub start: Timestamp,
}

/// Opens the output for packets of one session.
pub type OpenSession<'a> = dyn FnMut(&SessionStart) -> io::Result<Box<dyn Write>> + 'a;

/// Where packets go, and in which form.
pub enum Target<'a> {
    /// One pcapng section.
    Pcapng(&'a mut dyn Write),
    /// One pcap file with nanoseconds. Packets of a second link type get headers of the first;
    /// those that cannot are left out and counted.
    Pcap(&'a mut dyn Write),
    /// A pcap file for each link type, opened when its first packet comes.
    PcapByLinkType(&'a mut OpenOutput<'a>),
    /// A pcapng section for each session, opened when its first packet comes. There may be very
    /// many: what `open` gives is written to seldom, and need hold nothing open in between.
    BySession(&'a mut OpenSession<'a>),
}

impl core::fmt::Debug for Target<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Pcapng(_) => "Pcapng",
            Self::Pcap(_) => "Pcap",
            Self::PcapByLinkType(_) => "PcapByLinkType",
            Self::BySession(_) => "BySession",
        })
    }
}
