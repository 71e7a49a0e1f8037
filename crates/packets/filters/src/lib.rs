//! Packet filters in the words of pcap-filter(7): compiled by libpcap, and run.
//!
//! A crate of the system boundary: it loads a library of the system and calls it. [`Libpcap`]
//! compiles an expression into a [`Program`] for one link type, for the kernel or for this process;
//! [`Programs`] does so for every link type that is met; [`PacketFilter`] judges stored packets,
//! as somebody asks for them. Every compilation ends within ten seconds, and nothing here asks a
//! name server where an expression comes from outside.

#![expect(unsafe_code, reason = "libpcap is C")]

mod compiler;
mod error;
mod packet_filter;

pub use compiler::{Instruction, LONGEST_PACKET, Libpcap, Program, Programs};
pub use error::Error;
pub use packet_filter::PacketFilter;
