//! The state of one walk through a packet's headers.
//!
//! Every layer is a function of the walk and the layer's captured bytes; it writes what it learnt
//! and calls the next layer. Three invariants hold everywhere:
//! * `out` describes the innermost layer that was read completely, so a walk may stop anywhere.
//! * `missing` is how many bytes of the current layer were on the wire behind its captured bytes;
//!   lengths of the wire are always `captured + missing`.
//! * The calls are bounded: every cycle of layers passes `enter`, which counts down.

use crate::decoded::{ArpHeader, Decoded, Fragment, Transport, Tunnel, TunnelKind};
use crate::{Address, FiveTuple, Protocol};

/// Deep enough for eight nested VXLANs; a packet that goes deeper is taken as read so far.
const LAYERS_MAX: u8 = 24;

/// The layer's bytes ended inside its header.
#[derive(Debug)]
pub(crate) struct Short;

/// What comes behind a tunnel's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layer {
    Ethernet,
    EtherType(u16),
    Ip,
    /// IP, if its lengths fit.
    GuessedIp,
    Ipv4,
    Ipv6,
    Mpls,
    Ppp,
    Wireless,
}

/// A layer ends well when it was understood or was none of ours, and `Short` when its bytes ended
/// first.
pub(crate) type Walked = Result<(), Short>;

#[derive(Debug)]
pub(crate) struct Walk<'a, 'out> {
    out: &'out mut Decoded<'a>,
    missing: u32,
    tunnel: Option<Tunnel>,
    has_ip: bool,
    layers_left: u8,
    part: Part<'a>,
    /// What a tunnel carries, and is still to be walked.
    next: Option<(Layer, &'a [u8])>,
}

/// What a fragment carries of its datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Part<'a> {
    /// Number of the header that the datagram begins with, which in IPv6 only the first fragment
    /// says for certain (RFC 8200 4.5).
    pub protocol: u8,
    /// Its bytes, as far as they were captured.
    pub bytes: &'a [u8],
    /// All of them were captured.
    pub is_whole: bool,
}

/// The next `N` bytes, taken off the front.
#[inline]
pub(crate) fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], Short> {
    let (head, rest) = bytes.split_first_chunk::<N>().ok_or(Short)?;
    *bytes = rest;
    Ok(*head)
}

/// Leaves out the next `count` bytes.
#[inline]
pub(crate) fn skip(bytes: &mut &[u8], count: usize) -> Walked {
    *bytes = bytes.get(count..).ok_or(Short)?;
    Ok(())
}

#[inline]
pub(crate) fn wire_len(captured: &[u8]) -> u32 {
    u32::try_from(captured.len()).unwrap_or(u32::MAX)
}

impl<'a, 'out> Walk<'a, 'out> {
    #[inline]
    pub(crate) fn new(out: &'out mut Decoded<'a>, packet: &'a [u8], original_len: u32) -> Self {
        let missing = original_len.saturating_sub(wire_len(packet));
        let part = Part::default();
        let (tunnel, has_ip, layers_left, next) = (None, false, LAYERS_MAX, None);
        Self { out, missing, tunnel, has_ip, layers_left, part, next }
    }

    /// A header that ends early was cut by the capture only where more of the packet was on the
    /// wire.
    #[inline]
    pub(crate) fn finish(self, end: &Walked) {
        self.out.cut |= end.is_err() && self.missing > 0;
    }

    /// Counts one more layer; false when the packet is nested too deeply to go on.
    #[inline]
    pub(crate) fn enter(&mut self) -> bool {
        let left = self.layers_left;
        self.layers_left = left.saturating_sub(1);
        left > 0
    }

    /// Bytes of the current layer that were on the wire, of which `bytes` were captured.
    #[inline]
    pub(crate) fn on_wire(&self, bytes: &[u8]) -> u32 {
        wire_len(bytes).saturating_add(self.missing)
    }

    /// Ends the current layer after `len` bytes of the wire, so that trailers and padding do not
    /// count. A header that claims more than there was changes nothing.
    #[inline]
    pub(crate) fn limit(&mut self, bytes: &'a [u8], len: u32) -> &'a [u8] {
        let len = len.min(self.on_wire(bytes));
        let kept = usize::try_from(len).ok().and_then(|len| bytes.get(..len)).unwrap_or(bytes);
        self.missing = len.saturating_sub(wire_len(kept));
        kept
    }

    /// What follows a header of `header_len` bytes. Where the capture ends inside that header, the
    /// rest of it is not counted with the payload.
    #[inline]
    pub(crate) fn behind(&mut self, bytes: &'a [u8], header_len: usize) -> Result<&'a [u8], Short> {
        bytes.get(header_len..).ok_or_else(|| {
            self.out.cut |= self.missing > 0;
            let uncaptured = header_len.saturating_sub(bytes.len());
            let uncaptured = u32::try_from(uncaptured).unwrap_or(u32::MAX);
            self.missing = self.missing.saturating_sub(uncaptured);
            Short
        })
    }

    /// The pair of stations of a link layer; an Ethernet inside IP does not replace the addresses
    /// of that IP.
    #[inline]
    pub(crate) fn stations(&mut self, orig: [u8; 6], resp: [u8; 6]) {
        if !self.has_ip {
            self.out.tuple.orig = Address::Mac(orig);
            self.out.tuple.resp = Address::Mac(resp);
        }
    }

    /// The sender's station, where a link layer has no other.
    pub(crate) fn sender(&mut self, orig: [u8; 6]) {
        self.out.tuple.orig = Address::Mac(orig);
    }

    /// What a link layer carries. Numbers below 0x0600 are not `EtherType`s (IEEE 802.3, 3.2.6).
    #[inline]
    pub(crate) fn ether_type(&mut self, ether_type: u16) {
        if !self.has_ip && ether_type >= 0x0600 {
            self.out.tuple.proto = Protocol(ether_type);
        }
    }

    pub(crate) fn vlan(&mut self, id: u16) {
        if let Some(free) = self.out.vlan.iter_mut().find(|vlan| vlan.is_none()) {
            *free = Some(id & 0x0fff);
        }
    }

    pub(crate) fn mpls(&mut self, label: u32) {
        self.out.mpls.get_or_insert(label);
    }

    /// Remembers a tunnel from the addresses known so far. It becomes part of the result only when
    /// an IP packet is found in it.
    pub(crate) fn tunnel(&mut self, kind: TunnelKind, id: u32) {
        let FiveTuple { orig: src, resp: dst, .. } = self.out.tuple;
        self.tunnel.get_or_insert(Tunnel { kind, id, src, dst });
    }

    /// Leaves what stands behind a tunnel's header to whoever began the walk.
    #[expect(clippy::unnecessary_wraps, reason = "what layers end with")]
    pub(crate) fn then(&mut self, layer: Layer, bytes: &'a [u8]) -> Walked {
        self.next = Some((layer, bytes));
        Ok(())
    }

    /// What is still to be walked.
    #[inline]
    pub(crate) fn take_next(&mut self) -> Option<(Layer, &'a [u8])> {
        self.next.take()
    }

    /// A complete IP header: from here on the packet belongs to this pair.
    #[inline]
    pub(crate) fn ip(&mut self, orig: Address, resp: Address, ip_len: u32) {
        self.has_ip = true;
        self.out.tuple =
            FiveTuple { orig, resp, orig_port: 0, resp_port: 0, proto: Protocol::UNPARSED };
        self.out.transport = Transport::Other;
        self.out.ip_len = ip_len;
        self.out.fragment = None;
        if self.tunnel.is_some() {
            self.out.tunnel = self.tunnel;
        }
    }

    /// The protocol of the current IP packet's payload, as far as its headers were read.
    #[inline]
    pub(crate) fn protocol(&mut self, protocol: u8, payload: &'a [u8]) {
        self.out.tuple.proto = Protocol(u16::from(protocol));
        self.payload(payload);
    }

    #[inline]
    pub(crate) fn fragment(&mut self, fragment: Fragment, protocol: u8, bytes: &'a [u8]) {
        self.out.fragment = Some(fragment);
        self.part = Part { protocol, bytes, is_whole: self.missing == 0 };
    }

    /// What the packet carries of its datagram, if it is a fragment.
    pub(crate) fn part(&self) -> Option<Part<'a>> {
        self.is_fragment().then_some(self.part)
    }

    /// A fragmented datagram is one session by its own addresses, because the later fragments
    /// cannot be walked into.
    #[inline]
    pub(crate) fn is_fragment(&self) -> bool {
        self.out.fragment.is_some()
    }

    #[inline]
    pub(crate) fn ports(&mut self, orig_port: u16, resp_port: u16) {
        self.out.tuple.orig_port = orig_port;
        self.out.tuple.resp_port = resp_port;
    }

    #[inline]
    pub(crate) fn transport(&mut self, transport: Transport, payload: &'a [u8]) {
        self.out.transport = transport;
        self.payload(payload);
    }

    /// Who ARP is about; inside IP it is payload.
    pub(crate) fn arp(&mut self, header: ArpHeader) {
        if !self.has_ip {
            self.out.transport = Transport::Arp(header);
        }
    }

    /// A transport's header begins here: what follows it is known only once it was read.
    #[inline]
    pub(crate) fn no_payload(&mut self) {
        self.out.payload = &[];
        self.out.payload_len = 0;
    }

    #[inline]
    fn payload(&mut self, payload: &'a [u8]) {
        self.out.payload = payload;
        self.out.payload_len = self.on_wire(payload);
    }
}
