//! Packet headers by reference: link layers, tunnels, five-tuples, community ids.
//!
//! [`decode`] walks one packet from its link layer to the innermost transport header and says to
//! which session it belongs. It allocates nothing, reads every header field with a bound check, and
//! never fails: what cannot be parsed becomes a link-level pair, because nothing is dropped for
//! being unparsable. Pure: no clock, no I/O, no state.

mod app;
mod checksum;
mod community_id;
mod decode;
mod decoded;
mod ether_type;
mod ethernet;
mod ip;
mod link;
mod link_type;
mod names;
mod network;
mod packed_names;
mod stamp;
mod transport;
mod tunnel;
mod tuple;
mod walk;
mod wireless;

pub use app::{App, AppBy, Recognised};
pub use checksum::ChecksumChange;
pub use community_id::{CommunityId, is_of_first_icmp};
pub use decode::{decode, decode_datagram, decode_into, part_of_datagram};
pub use decoded::{
    ArpHeader, Decoded, Fragment, IcmpHeader, TcpHeader, TcpOptions, Transport, Tunnel, TunnelKind,
};
pub use link_type::LinkType;
pub use names::{Names, Ssh, Tls};
pub use network::{MADE_HEADER_BYTES_MAX, made_header, network_layer};
pub use packed_names::PackedNames;
pub use stamp::{STAMP_BYTES, stamp, stamped};
pub use tuple::{Address, FiveTuple, Protocol};
pub use walk::Part;
