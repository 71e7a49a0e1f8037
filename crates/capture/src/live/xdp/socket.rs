//! A socket of `AF_XDP`, bound to one queue of an interface, with its memory and its rings.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{
    set_xdp_rx_ring_size, set_xdp_tx_ring_size, set_xdp_umem_completion_ring_size,
    set_xdp_umem_fill_ring_size, set_xdp_umem_reg, xdp_mmap_offsets, xdp_statistics,
};
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING,
    XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpStatistics, XdpUmemReg,
    XdpUmemRegFlags,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};

use super::ring::{FromKernel, ToKernel};
use super::umem::Umem;
use crate::live::socket::{get_option, set_option};

/// `XDP_PACKET_HEADROOM` of the kernel, which stands before every packet.
pub(super) const HEADROOM: usize = 256;
/// The smallest chunks, and the largest: a page.
pub(super) const CHUNKS: [usize; 2] = [2048, 4096];
/// The kernel wants both rings of chunks, also where one of them is not used.
const UNUSED_RING: u32 = 64;

/// Entries of a ring to the kernel. It shows packets before it moves its counter beyond the entries
/// whose chunks they lie in (`xsk_flush`), so for a moment a chunk that is given back at once is in
/// the ring a second time.
fn room(chunks: u32) -> u32 {
    chunks * 2
}

/// `asm-generic/socket.h`
const SO_BUSY_POLL: libc::c_int = 46;
const SO_INCOMING_NAPI_ID: libc::c_int = 56;
const SO_PREFER_BUSY_POLL: libc::c_int = 69;
const SO_BUSY_POLL_BUDGET: libc::c_int = 70;
/// Packets that one turn of busy polling may bring; the kernel's own default is 8.
const BUSY_POLL_BUDGET: libc::c_int = 64;

/// Whether packets are copied into the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CopyMode {
    /// The card writes them there.
    Zero,
    Copied,
}

/// Where a socket is bound, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Binding {
    pub(super) interface: u32,
    pub(super) queue: u32,
    pub(super) mode: CopyMode,
    /// Packets may take several chunks.
    pub(super) in_parts: bool,
}

/// Chunks for frames of this length: their size, and whether one is enough.
pub(super) fn chunk_for(frame_bytes: usize) -> (usize, bool) {
    let fitting = CHUNKS.into_iter().find(|chunk| frame_bytes <= chunk - HEADROOM);
    fitting.map_or((CHUNKS[1], false), |chunk| (chunk, true))
}

/// A socket that receives.
#[derive(Debug)]
pub(super) struct Receiver {
    // The rings are unmapped before the socket is closed, and the memory after it.
    fill: ToKernel<u64>,
    pub(super) packets: FromKernel<XdpDesc>,
    socket: OwnedFd,
    pub(super) umem: Umem,
}

impl Receiver {
    pub(super) fn open(umem: Umem, binding: Binding) -> io::Result<Self> {
        let socket = new_socket(&umem)?;
        let chunks = umem.chunks();
        let room = room(chunks);
        set_xdp_umem_fill_ring_size(&socket, room)?;
        set_xdp_umem_completion_ring_size(&socket, UNUSED_RING)?;
        set_xdp_rx_ring_size(&socket, chunks)?;
        let places = xdp_mmap_offsets(&socket)?;
        let fd = socket.as_fd();
        let mut fill = ToKernel::map(fd, XDP_UMEM_PGOFF_FILL_RING, places.fr, room)?;
        let packets = FromKernel::map(fd, XDP_PGOFF_RX_RING, places.rx, chunks)?;
        let chunk_bytes = u64::try_from(umem.chunk_bytes()).expect("chunks are small");
        (0..u64::from(chunks)).for_each(|number| fill.put(number * chunk_bytes));
        fill.publish();
        bind_to(&socket, binding)?;
        Ok(Self { fill, packets, socket, umem })
    }

    /// Has calls on this socket look for packets in the driver for up to this time, and keeps
    /// interrupts away while they do (`SO_PREFER_BUSY_POLL`).
    pub(super) fn poll_busily(&self, time: Duration) -> io::Result<()> {
        let micros = libc::c_int::try_from(time.as_micros()).unwrap_or(libc::c_int::MAX);
        let options = [
            (SO_PREFER_BUSY_POLL, 1),
            (SO_BUSY_POLL, micros),
            (SO_BUSY_POLL_BUDGET, BUSY_POLL_BUDGET),
        ];
        options
            .into_iter()
            .try_for_each(|(name, value)| set_option(self.as_fd(), libc::SOL_SOCKET, name, &value))
    }

    /// Whether the kernel knows whose queue to look at, once a packet has come.
    pub(super) fn can_poll_busily(&self) -> bool {
        let mut number: libc::c_int = 0;
        let asked = get_option(self.as_fd(), libc::SOL_SOCKET, SO_INCOMING_NAPI_ID, &mut number);
        asked.is_ok() && number != 0
    }

    /// Gives chunks back, by any address in each.
    pub(super) fn give_back(&mut self, chunks: &[u64]) {
        if chunks.is_empty() {
            return;
        }
        for &chunk in chunks {
            self.fill.put(chunk);
        }
        self.fill.publish();
        if self.fill.needs_wakeup() {
            self.look();
        }
    }

    /// Has the driver look at its queue. That there is nothing is no error.
    pub(super) fn look(&self) {
        recv(&self.socket, &mut [0_u8; 0], RecvFlags::DONTWAIT).unwrap_or_default();
    }

    pub(super) fn statistics(&self) -> io::Result<XdpStatistics> {
        Ok(xdp_statistics(&self.socket)?)
    }
}

impl AsFd for Receiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A socket that sends.
#[derive(Debug)]
pub(super) struct Sender {
    // As above.
    pub(super) packets: ToKernel<XdpDesc>,
    pub(super) done: FromKernel<u64>,
    socket: OwnedFd,
    pub(super) umem: Umem,
}

impl Sender {
    pub(super) fn open(umem: Umem, binding: Binding) -> io::Result<Self> {
        let socket = new_socket(&umem)?;
        let chunks = umem.chunks();
        set_xdp_umem_fill_ring_size(&socket, UNUSED_RING)?;
        set_xdp_umem_completion_ring_size(&socket, chunks)?;
        let room = room(chunks);
        set_xdp_tx_ring_size(&socket, room)?;
        let places = xdp_mmap_offsets(&socket)?;
        let fd = socket.as_fd();
        let done = FromKernel::map(fd, XDP_UMEM_PGOFF_COMPLETION_RING, places.cr, chunks)?;
        let packets = ToKernel::map(fd, XDP_PGOFF_TX_RING, places.tx, room)?;
        bind_to(&socket, binding)?;
        Ok(Self { packets, done, socket, umem })
    }

    /// Has the kernel send what is in the ring: without a driver of its own, up to 32 packets.
    pub(super) fn kick(&self) -> Result<(), Errno> {
        send(&self.socket, &[], SendFlags::DONTWAIT).map(drop)
    }
}

impl AsFd for Sender {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn new_socket(umem: &Umem) -> io::Result<OwnedFd> {
    let (family, kind) = (AddressFamily::XDP, SocketType::RAW);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    let number = |value: usize| u64::try_from(value).expect("sizes have at most 64 bits");
    let request = XdpUmemReg {
        addr: umem.address(),
        len: number(umem.chunks_len()),
        chunk_size: u32::try_from(umem.chunk_bytes()).expect("chunks are small"),
        headroom: 0,
        flags: XdpUmemRegFlags::empty(),
        tx_metadata_len: 0,
    };
    set_xdp_umem_reg(&socket, request)?;
    Ok(socket)
}

fn bind_to(socket: &OwnedFd, binding: Binding) -> io::Result<()> {
    let mut flags = SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
    flags |= match binding.mode {
        CopyMode::Zero => SocketAddrXdpFlags::XDP_ZEROCOPY,
        CopyMode::Copied => SocketAddrXdpFlags::XDP_COPY,
    };
    if binding.in_parts {
        flags |= SocketAddrXdpFlags::XDP_USE_SG;
    }
    Ok(bind(socket, &SocketAddrXdp::new(flags, binding.interface, binding.queue))?)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use rustix::net::xdp::XdpRingOffset;

    use super::*;

    /// The kernel shows packets before it moves its counter beyond their chunks: for that moment it
    /// is as if it had taken none, and all that came back are in the ring a second time.
    #[test]
    fn chunks_that_come_back_at_once_find_room() {
        let chunks = 64;
        let memory = memfd_create("ring", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&memory, 1 << 16).unwrap();
        let places = XdpRingOffset { producer: 0, consumer: 32, desc: 128, flags: Some(64) };
        let mut fill: ToKernel<u64> =
            ToKernel::map(memory.as_fd(), 0, places, room(chunks)).unwrap();
        for _ in 0..2 {
            (0..u64::from(chunks)).for_each(|chunk| fill.put(chunk));
            fill.publish();
        }
        assert_eq!(fill.pending(), 2 * chunks);
    }

    #[test]
    fn a_frame_takes_the_smallest_chunk_that_holds_it_with_its_headroom() {
        for (frame, expect) in [
            (64, (2048, true)),
            (1792, (2048, true)),
            (1793, (4096, true)),
            (3840, (4096, true)),
            (3841, (4096, false)),
            (9018, (4096, false)),
        ] {
            assert_eq!(chunk_for(frame), expect, "{frame} bytes");
        }
    }
}
