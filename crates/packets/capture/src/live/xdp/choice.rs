//! Whether `AF_XDP` may be taken unasked: where it takes nothing from the host, copies nothing, and
//! what was asked for means the same as with packet sockets. Where it copies, no gain was measured
//! (docs/benchmarks.md).

use std::io;

use super::socket::{Binding, CopyMode, Receiver, chunk_for};
use super::umem::Umem;
use crate::Error;
use crate::live::ethtool::Card;
use crate::live::port::{LINK_HEADER_MAX, Port};
use crate::live::{LiveOptions, Timestamps, dedicated, open_socket};

/// Enough for asking.
const CHUNKS: u32 = 64;

/// Why packet sockets are taken instead; `None` where nothing speaks for them.
pub(super) fn why_not(options: &LiveOptions) -> Result<Option<String>, Error> {
    if options.filter.is_some() {
        return Ok(Some("a filter would see tags that the kernel's does not".to_owned()));
    }
    if options.timestamps == Timestamps::Adapter {
        return Ok(Some("AF_XDP has no times of the adapter".to_owned()));
    }
    for name in &options.interfaces {
        if let Some(reason) = of_interface(name)? {
            return Ok(Some(format!("interface {name}: {reason}")));
        }
    }
    Ok(None)
}

fn of_interface(name: &str) -> Result<Option<String>, Error> {
    let port = Port::new(name, open_socket(name)?, false)?;
    if let Some(reason) = dedicated::use_of(&port.socket, name) {
        return Ok(Some(reason.to_owned()));
    }
    let card = port.card();
    if card.takes_tags_out() {
        return Ok(Some("it takes VLAN tags out of frames".to_owned()));
    }
    if splits_sessions(card) {
        return Ok(Some("its hash may put both directions of a session on two queues".to_owned()));
    }
    let refused = zero_copy(&port).err();
    Ok(refused.map(|error| format!("no zero-copy: {error}")))
}

/// Whether the card chooses queues in a way that does not keep sessions together.
pub(super) fn splits_sessions(card: Card<'_>) -> bool {
    card.receive_queues() > 1 && !card.hashes_symmetrically()
}

/// Asks the driver; one that cannot is not touched (`xp_assign_dev` in the kernel).
fn zero_copy(port: &Port) -> io::Result<()> {
    let (chunk_bytes, is_whole) = chunk_for(port.mtu + LINK_HEADER_MAX);
    let (ifindex, mode) = (port.socket.ifindex(), CopyMode::Zero);
    let binding = Binding { ifindex, queue: 0, mode, in_parts: !is_whole };
    Receiver::open(Umem::new(chunk_bytes, CHUNKS)?, binding).map(drop)
}
