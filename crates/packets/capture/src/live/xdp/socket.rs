//! A socket of `AF_XDP`, bound to one queue of an interface, with its memory and its rings.

use core::ops::Range;
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
    XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpDescOptions,
    XdpStatistics, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};
use units::number::to_u64;

use super::ring::{FromKernel, ToKernel};
use super::umem::Umem;
use crate::live::option;

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

/// Packets that one turn of busy polling may bring; the kernel's own default is 8.
const BUSY_POLL_BUDGET_PACKETS: libc::c_int = 64;

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
    pub(super) ifindex: u32,
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
    packets: FromKernel<XdpDesc>,
    socket: OwnedFd,
    umem: Umem,
}

/// A packet that was taken out of a ring.
#[derive(Debug)]
pub(super) struct Taken {
    /// Where it lies in the memory.
    pub(super) bytes: Range<usize>,
    /// The eight bytes before it.
    pub(super) stamp: u64,
    /// Descriptors that it took.
    pub(super) parts: u32,
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
        // SAFETY: the socket is new, and no other code maps its ring.
        let fill = unsafe { ToKernel::map(fd, XDP_UMEM_PGOFF_FILL_RING, places.fr, room) }?;
        let packets = FromKernel::map(fd, XDP_PGOFF_RX_RING, places.rx, chunks)?;
        let mut receiver = Self { fill, packets, socket, umem };
        let chunk_bytes = to_u64(receiver.umem.chunk_bytes());
        (0..u64::from(chunks)).for_each(|number| receiver.lend(number * chunk_bytes));
        receiver.fill.publish();
        bind_to(&receiver.socket, binding)?;
        Ok(receiver)
    }

    /// Puts a chunk of ours into the ring to the kernel.
    fn lend(&mut self, chunk: u64) {
        assert!(self.umem.lend(chunk), "a chunk is given back once");
        // SAFETY: the chunk was ours and is the kernel's now, until `take` finds it in the ring of
        // packets.
        unsafe { self.fill.put(chunk) };
    }

    /// Descriptors that wait.
    pub(super) fn waiting(&self) -> u32 {
        self.packets.waiting()
    }

    /// The next packet, all of whose parts have come; its chunks are appended to `lent`. Parts are
    /// put together in the area.
    pub(super) fn take(&mut self, lent: &mut Vec<u64>) -> Option<Taken> {
        let is_last = |ahead: &u32| {
            let descriptor = self.packets.peek(*ahead);
            descriptor.is_some_and(|it| !it.options.contains(XdpDescOptions::XDP_PKT_CONTD))
        };
        let parts = (0..self.waiting()).find(is_last)? + 1;
        let mut bytes = self.take_part(lent)?;
        let stamp = self.umem.stamp(bytes.start);
        if parts > 1 {
            let start = self.umem.area();
            self.umem.join(bytes);
            for _ in 1..parts {
                let part = self.take_part(lent)?;
                self.umem.join(part);
            }
            bytes = start..self.umem.area();
        }
        Some(Taken { bytes, stamp, parts })
    }

    fn take_part(&mut self, lent: &mut Vec<u64>) -> Option<Range<usize>> {
        let descriptor = self.packets.take()?;
        let bytes = self.umem.take(descriptor.addr, descriptor.len);
        lent.push(descriptor.addr);
        Some(bytes.expect("the kernel describes packets in chunks that it was given"))
    }

    /// The memory that packets lie in.
    pub(super) fn umem(&self) -> &Umem {
        &self.umem
    }

    /// Forgets the packets that were put together.
    pub(super) fn clear(&mut self) {
        self.umem.clear();
    }

    /// Has calls on this socket look for packets in the driver for up to this time, and keeps
    /// interrupts away while they do (`SO_PREFER_BUSY_POLL`).
    pub(super) fn poll_busily(&self, time: Duration) -> io::Result<()> {
        let micros = libc::c_int::try_from(time.as_micros()).unwrap_or(libc::c_int::MAX);
        option::PREFER_BUSY_POLL.set(self.as_fd(), &1)?;
        option::BUSY_POLL.set(self.as_fd(), &micros)?;
        option::BUSY_POLL_BUDGET.set(self.as_fd(), &BUSY_POLL_BUDGET_PACKETS)
    }

    /// Whether the kernel knows whose queue to look at, once a packet has come.
    pub(super) fn can_poll_busily(&self) -> bool {
        option::INCOMING_NAPI_ID.get(self.as_fd()).is_ok_and(|number| number != 0)
    }

    /// Gives chunks back, by any address in each.
    pub(super) fn give_back(&mut self, chunks: &[u64]) {
        if chunks.is_empty() {
            return;
        }
        for &chunk in chunks {
            self.lend(chunk);
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
    packets: ToKernel<XdpDesc>,
    done: FromKernel<u64>,
    socket: OwnedFd,
    umem: Umem,
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
        // SAFETY: the socket is new, and no other code maps its ring.
        let packets = unsafe { ToKernel::map(fd, XDP_PGOFF_TX_RING, places.tx, room) }?;
        bind_to(&socket, binding)?;
        Ok(Self { packets, done, socket, umem })
    }

    /// Bytes of a chunk.
    pub(super) fn chunk_bytes(&self) -> usize {
        self.umem.chunk_bytes()
    }

    /// Writes a part of a frame into a free chunk, and puts it into the ring.
    pub(super) fn put(&mut self, chunk: u64, part: &[u8], options: XdpDescOptions) {
        let at = usize::try_from(chunk).expect("addresses lie in the memory");
        assert!(part.len() <= self.umem.chunk_bytes(), "a part fits into a chunk");
        self.umem.write(at, part);
        assert!(self.umem.lend(chunk), "a chunk is sent once");
        let len = u32::try_from(part.len()).expect("chunks are small");
        // SAFETY: the chunk was ours and is the kernel's now, until `collect` finds it in the ring
        // of those that were sent.
        unsafe { self.packets.put(XdpDesc { addr: chunk, len, options }) };
    }

    /// Shows the kernel what was put in.
    pub(super) fn publish(&self) {
        self.packets.publish();
    }

    /// Descriptors that the kernel has not taken yet.
    pub(super) fn pending(&self) -> u32 {
        self.packets.pending()
    }

    /// Whether the kernel sends only when it is woken.
    pub(super) fn needs_wakeup(&self) -> bool {
        self.packets.needs_wakeup()
    }

    /// A chunk that was sent.
    pub(super) fn collect(&mut self) -> Option<u64> {
        let address = self.done.take()?;
        let taken = self.umem.take(address, 0);
        assert!(taken.is_some(), "the kernel gives back chunks that it was given");
        let chunk = to_u64(self.umem.chunk_bytes());
        Some(address - address % chunk)
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
    let number = |value: usize| to_u64(value);
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
    Ok(bind(socket, &SocketAddrXdp::new(flags, binding.ifindex, binding.queue))?)
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
        // SAFETY: the only one of this ring.
        let fill = unsafe { ToKernel::map(memory.as_fd(), 0, places, room(chunks)) };
        let mut fill: ToKernel<u64> = fill.unwrap();
        for _ in 0..2 {
            // SAFETY: no code looks at what the entries name.
            (0..u64::from(chunks)).for_each(|chunk| unsafe { fill.put(chunk) });
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
