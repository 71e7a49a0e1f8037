//! Packets in: capture files, standard input, `AF_PACKET` rings, `AF_XDP`. And frames out:
//! [`Outlet`].
//!
//! A crate of the system boundary: it may call the operating system. Every way in is a [`Source`],
//! which hands out packets in batches of about one kernel block or one read buffer. A packet is
//! never copied here: a [`Packet`] borrows the kernel ring or the read buffer until the next call,
//! and who stores it makes the one copy there is. Nothing is allocated per packet.
//!
//! A source loses nothing in silence: what the kernel dropped stands in [`Counters`], what a
//! damaged file no longer shows is an [`Error`] that names the byte, after every packet before it
//! was handed out.

#![expect(unsafe_code, reason = "kernel rings, socket options and bpf(2) are C")]
#![expect(non_ascii_idents, reason = "names inside of what zerocopy derives; the text is ASCII")]

mod error;
mod file;
mod live;
mod source;
#[doc(hidden)]
pub mod untrusted;

pub use error::{Damage, Error};
pub use file::{FILE_BYTES_MAX, FileOptions, FileSource};
pub use live::{
    FrameLimits, FrameSender, LiveOptions, LiveSource, Outlet, Timestamps, Transmitter, Unfit,
    XdpSource, XdpTransmitter,
};
pub use source::{Batch, Counters, Interface, MadePackets, Next, Packet, Source};
