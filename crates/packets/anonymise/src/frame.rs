//! Where the addresses of a frame are, layer by layer. What cannot be read is blanked: an address
//! that was not found would get out.

use core::ops::Range;

use wire::{ChecksumChange, LinkType};

use super::addresses::Addresses;

/// More layers than any frame has that is meant well.
const LAYERS_MAX: u8 = 24;

const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;
const BRIDGED: u16 = 0x6558;
const RARP: u16 = 0x8035;
const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
const IPV6: u16 = 0x86dd;
const MPLS: [u16; 2] = [0x8847, 0x8848];
const PPPOE: u16 = 0x8864;
const ERSPAN: [u16; 2] = [0x88be, 0x22eb];

const ICMP: u8 = 1;
const IPIP: u8 = 4;
const TCP: u8 = 6;
const UDP: u8 = 17;
const DCCP: u8 = 33;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;
const ESP: u8 = 50;
const ICMPV6: u8 = 58;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

const VXLAN_PORTS: [u16; 2] = [4789, 8472];
const GENEVE_PORT: u16 = 6081;
const GTP_PORT: u16 = 2152;

/// A frame under way. Everything is read from the old bytes and written to the new ones, which are
/// as many.
pub(super) struct Frame<'a> {
    pub(super) names: &'a mut Addresses,
    pub(super) old: &'a [u8],
    pub(super) new: &'a mut [u8],
    pub(super) layers: u8,
}

/// A layer ends early: nothing behind that place can be read.
struct Unread(usize);

type Walked = Result<(), Unread>;

impl Frame<'_> {
    /// Exchanges the addresses; false for link types whose addresses are not known.
    pub(super) fn link(&mut self, link_type: LinkType) -> bool {
        let end = self.old.len();
        let walked = match link_type {
            LinkType::ETHERNET => self.ethernet(0..end),
            LinkType::RAW
            | LinkType::RAW_BSD
            | LinkType::RAW_OPENBSD
            | LinkType::IPV4
            | LinkType::IPV6 => self.ip(0..end),
            LinkType::NULL | LinkType::LOOP => self.ip(4..end),
            LinkType::LINUX_SLL => self.cooked(6, 14, 16..end),
            LinkType::LINUX_SLL2 => self.cooked(12, 0, 20..end),
            _ => return false,
        };
        if let Err(Unread(at)) = walked {
            self.blank(at..end);
        }
        true
    }

    fn byte(&self, at: usize) -> Result<u8, Unread> {
        self.old.get(at).copied().ok_or(Unread(at))
    }

    fn number(&self, at: usize) -> Result<u16, Unread> {
        self.bytes(at).map(u16::from_be_bytes)
    }

    fn bytes<const N: usize>(&self, at: usize) -> Result<[u8; N], Unread> {
        let bytes = self.old.get(at..).and_then(<[u8]>::first_chunk);
        bytes.copied().ok_or(Unread(at.min(self.old.len())))
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.new.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    fn blank(&mut self, range: Range<usize>) {
        let end = range.end.min(self.new.len());
        if let Some(place) = self.new.get_mut(range.start.min(end)..end) {
            place.fill(0);
        }
    }

    fn station(&mut self, at: usize) -> Walked {
        let new = self.names.station(self.bytes(at)?);
        self.put(at, &new);
        Ok(())
    }

    fn ipv4_address(&mut self, at: usize) -> Walked {
        let old = self.bytes(at)?;
        let new = self.names.ipv4(old);
        self.put(at, &new);
        Ok(())
    }

    fn ipv6_address(&mut self, at: usize) -> Walked {
        let old = self.bytes(at)?;
        let new = self.names.ipv6(old);
        self.put(at, &new);
        Ok(())
    }

    /// How bytes were exchanged so far.
    fn change(&self, range: Range<usize>) -> ChecksumChange {
        let mut change = ChecksumChange::default();
        let range = range.start..range.end.min(self.old.len());
        if let (Some(old), Some(new)) = (self.old.get(range.clone()), self.new.get(range)) {
            change.add(old, new);
        }
        change
    }

    fn enter(&mut self, at: usize) -> Walked {
        self.layers = self.layers.saturating_add(1);
        if self.layers > LAYERS_MAX { Err(Unread(at)) } else { Ok(()) }
    }

    fn ethernet(&mut self, layer: Range<usize>) -> Walked {
        let at = layer.start;
        self.enter(at)?;
        self.station(at)?;
        self.station(at + 6)?;
        self.ether_type(self.number(at + 12)?, at + 14..layer.end)
    }

    /// Linux's cooked header: the sender's station, the type, what is behind it.
    fn cooked(&mut self, station: usize, kind: usize, behind: Range<usize>) -> Walked {
        self.station(station)?;
        self.ether_type(self.number(kind)?, behind)
    }

    fn ether_type(&mut self, mut kind: u16, layer: Range<usize>) -> Walked {
        let (mut at, end) = (layer.start, layer.end);
        while VLAN.contains(&kind) {
            self.enter(at)?;
            kind = self.number(at + 2)?;
            at += 4;
        }
        match kind {
            IPV4 | IPV6 => self.ip(at..end),
            ARP | RARP => self.arp(at),
            BRIDGED => self.ethernet(at..end),
            PPPOE => match self.number(at + 6)? {
                0x0021 | 0x0057 => self.ip(at + 8..end),
                _ => Err(Unread(at + 8)),
            },
            label if MPLS.contains(&label) => {
                // Labels of four bytes end with the one whose bottom bit is set (RFC 3032).
                while self.byte(at + 2)? & 1 == 0 {
                    self.enter(at)?;
                    at += 4;
                }
                self.ip(at + 4..end)
            }
            _ => Err(Unread(at)),
        }
    }

    fn arp(&mut self, at: usize) -> Walked {
        // Ethernet stations and IPv4 (RFC 826).
        let [_, _, 0x08, 0x00, 6, 4] = self.bytes(at)? else { return Err(Unread(at)) };
        self.station(at + 8)?;
        self.ipv4_address(at + 14)?;
        self.station(at + 18)?;
        self.ipv4_address(at + 24)
    }

    fn ip(&mut self, layer: Range<usize>) -> Walked {
        self.enter(layer.start)?;
        if layer.start >= layer.end {
            // What is around it says that it ends before it begins.
            return Err(Unread(layer.start));
        }
        match self.byte(layer.start)? >> 4 {
            4 => self.ipv4(layer),
            6 => self.ipv6(layer),
            _ => Err(Unread(layer.start)),
        }
    }

    fn ipv4(&mut self, layer: Range<usize>) -> Walked {
        let at = layer.start;
        let header = usize::from(self.byte(at)? & 15) * 4;
        let [_, _, length @ .., _, _, f0, f1, _, protocol] = self.bytes::<10>(at)?;
        // 0 where the card was to cut it into segments.
        let length = usize::from(u16::from_be_bytes(length));
        let length = if length == 0 { layer.end - at } else { length };
        let (behind, end) = (at + header, layer.end.min(at + length));
        self.ipv4_address(at + 12)?;
        self.ipv4_address(at + 16)?;
        self.ipv4_options(at + 20..behind);
        let walked = if header < 20 {
            Err(Unread(at + 20))
        } else if end < behind {
            // Whatever it is, the packet's own length disowns it.
            Err(Unread(behind))
        } else if u16::from_be_bytes([f0, f1]) & 0x1fff != 0 {
            later_fragment(protocol, behind)
        } else {
            self.transport(protocol, behind..end, self.change(at + 12..at + 20))
        };
        // Behind the packet's end are rests of other packets, or whatever the sender's memory held.
        self.blank(end.max(behind)..layer.end);
        if let Err(Unread(unread)) = walked {
            self.blank(unread..layer.end);
        }
        let checksum = self.change(at..behind).apply(self.number(at + 10)?);
        self.put(at + 10, &checksum.to_be_bytes());
        Ok(())
    }

    /// Routes and time stamps have addresses: their places are blanked.
    fn ipv4_options(&mut self, options: Range<usize>) {
        const RECORDS: [u8; 4] = [7, 68, 131, 137];
        let mut at = options.start;
        while at < options.end {
            let (Ok(kind), Ok(len)) = (self.byte(at), self.byte(at + 1)) else { return };
            let len = match kind {
                0 => return,
                1 => 1,
                _ => usize::from(len.max(2)),
            };
            if RECORDS.contains(&kind) {
                self.blank(at + 3..options.end.min(at + len));
            }
            at += len;
        }
    }

    fn ipv6(&mut self, layer: Range<usize>) -> Walked {
        const HOP_BY_HOP: u8 = 0;
        const ROUTING: u8 = 43;
        const FRAGMENT: u8 = 44;
        const AUTHENTICATION: u8 = 51;
        const DESTINATION: u8 = 60;
        let start = layer.start;
        let length = usize::from(self.number(start + 4)?);
        let length = if length == 0 { layer.end - start } else { length + 40 };
        let (mut next, end) = (self.byte(start + 6)?, layer.end.min(start + length));
        self.ipv6_address(start + 8)?;
        self.ipv6_address(start + 24)?;
        let (mut at, mut pseudo) = (start + 40, self.change(start + 8..start + 40));
        loop {
            let of = next;
            let (len, following) = match of {
                HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION => {
                    self.enter(at)?;
                    (usize::from(self.byte(at + 1)?), self.byte(at)?)
                }
                protocol => return self.transport(protocol, at..end, pseudo),
            };
            match of {
                FRAGMENT if self.number(at + 2)? & !7 != 0 => {
                    return later_fragment(following, at + 8);
                }
                FRAGMENT => at += 8,
                AUTHENTICATION => at += len * 4 + 8,
                ROUTING => {
                    pseudo = self.route(start, at..at + len * 8 + 8)?;
                    at += len * 8 + 8;
                }
                _ => {
                    // Home addresses and the like.
                    self.blank(at + 2..at + len * 8 + 8);
                    at += len * 8 + 8;
                }
            }
            next = following;
        }
    }

    /// Exchanges the hops of a routing header; gives the change of the addresses that checksums
    /// cover, which end with the last hop (RFC 8200, 8.1).
    fn route(&mut self, header: usize, route: Range<usize>) -> Result<ChecksumChange, Unread> {
        const SEGMENTS: u8 = 4;
        let [kind, left] = self.bytes(route.start + 2)?;
        let count = route.len().saturating_sub(8) / 16;
        for hop in 0..count {
            self.ipv6_address(route.start + 8 + hop * 16)?;
        }
        self.blank(route.start + 8 + count * 16..route.end);
        // Segment lists are written from the end (RFC 8754).
        let last = if kind == SEGMENTS { 0 } else { count.saturating_sub(1) };
        let destination =
            if left > 0 && count > 0 { route.start + 8 + last * 16 } else { header + 24 };
        let mut change = self.change(header + 8..header + 24);
        change.join(self.change(destination..destination + 16));
        Ok(change)
    }

    /// A transport, or what else IP carries; `pseudo` is the change of both addresses.
    fn transport(&mut self, protocol: u8, layer: Range<usize>, pseudo: ChecksumChange) -> Walked {
        let at = layer.start;
        if at > layer.end {
            return Err(Unread(at));
        }
        match protocol {
            TCP | DCCP | UDP_LITE => {
                let checksum = at + if protocol == TCP { 16 } else { 6 };
                self.sum(checksum, layer, Some(pseudo));
                Ok(())
            }
            UDP => self.udp(layer, pseudo),
            ICMP => self.icmp(layer),
            ICMPV6 => self.icmpv6(layer, pseudo),
            IPIP | IPV6_IN_IP => self.ip(layer),
            GRE => self.gre(layer),
            SCTP | ESP => Ok(()),
            _ => Err(Unread(at)),
        }
    }

    /// Brings a checksum over a layer up to date.
    fn sum(&mut self, checksum: usize, layer: Range<usize>, pseudo: Option<ChecksumChange>) {
        let Ok(old) = self.number(checksum) else { return };
        if checksum + 2 > layer.end {
            return;
        }
        let mut change = self.change(layer);
        if let Some(pseudo) = pseudo {
            change.join(pseudo);
        }
        let new = change.apply(old);
        self.put(checksum, &new.to_be_bytes());
    }

    /// What is inside of a layer; what cannot be read there is blanked, and the layer goes on.
    fn inside(&mut self, walked: &Walked, layer: &Range<usize>) {
        if let Err(Unread(at)) = walked {
            self.blank(*at..layer.end);
        }
    }

    fn udp(&mut self, layer: Range<usize>, pseudo: ChecksumChange) -> Walked {
        let at = layer.start;
        let ports = [self.number(at)?, self.number(at + 2)?];
        let to = |port: u16| ports.contains(&port);
        let walked = if VXLAN_PORTS.into_iter().any(to) {
            self.ethernet(at + 16..layer.end)
        } else if to(GENEVE_PORT) {
            self.geneve(at + 8..layer.end)
        } else if to(GTP_PORT) {
            self.gtp(at + 8..layer.end)
        } else {
            Ok(())
        };
        self.inside(&walked, &layer);
        let checksum = at + 6;
        // 0 says that there is none (RFC 768).
        if self.number(checksum).unwrap_or(0) == 0 {
            return Ok(());
        }
        self.sum(checksum, layer, Some(pseudo));
        if self.new.get(checksum..checksum + 2).is_some_and(|sum| sum == [0, 0]) {
            self.put(checksum, &[0xff, 0xff]);
        }
        Ok(())
    }

    fn geneve(&mut self, layer: Range<usize>) -> Walked {
        let at = layer.start;
        let options = usize::from(self.byte(at)? & 0x3f) * 4;
        // Options may say anything.
        self.blank(at + 8..at + 8 + options);
        self.ether_type(self.number(at + 2)?, at + 8 + options..layer.end)
    }

    /// GTP version 1, user data (3GPP TS 29.281).
    fn gtp(&mut self, layer: Range<usize>) -> Walked {
        const USER_DATA: u8 = 255;
        let mut at = layer.start;
        let [flags, kind] = self.bytes(at)?;
        if flags >> 5 != 1 || kind != USER_DATA {
            return Err(Unread(at + 8));
        }
        at += if flags.trailing_zeros() >= 3 { 8 } else { 12 };
        if flags & 4 != 0 {
            while self.byte(at - 1)? != 0 {
                self.enter(at)?;
                at += usize::from(self.byte(at)?.max(1)) * 4;
            }
        }
        self.ip(at..layer.end)
    }

    fn gre(&mut self, layer: Range<usize>) -> Walked {
        const CHECKSUM: u16 = 0x8000;
        const ROUTED_OR_LATER: u16 = 0x4007;
        let at = layer.start;
        let [flags, kind] = [self.number(at)?, self.number(at + 2)?];
        if flags & ROUTED_OR_LATER != 0 {
            return Err(Unread(at + 4));
        }
        let fields = [CHECKSUM, 0x2000, 0x1000];
        let fields = fields.iter().filter(|field| flags & **field != 0).count();
        let mut behind = at + 4 + fields * 4;
        let walked = if ERSPAN.contains(&kind) {
            // Type I has no sequence number, and no header of its own.
            let is_first = flags & 0x1000 == 0;
            behind += match kind {
                0x88be if is_first => 0,
                0x88be => 8,
                _ => 12,
            };
            self.ethernet(behind..layer.end)
        } else {
            self.ether_type(kind, behind..layer.end)
        };
        self.inside(&walked, &layer);
        if flags & CHECKSUM != 0 {
            self.sum(at + 4, layer, None);
        }
        Ok(())
    }

    fn icmp(&mut self, layer: Range<usize>) -> Walked {
        const REDIRECT: u8 = 5;
        let at = layer.start;
        let kind = self.byte(at)?;
        let walked = match kind {
            REDIRECT => self.ipv4_address(at + 4).and_then(|()| self.ip(at + 8..layer.end)),
            3 | 4 | 11 | 12 => self.ip(at + 8..layer.end),
            // Echo and time stamps.
            0 | 8 | 13 | 14 => Ok(()),
            _ => Err(Unread(at + 4)),
        };
        self.inside(&walked, &layer);
        self.sum(at + 2, layer, None);
        Ok(())
    }

    fn icmpv6(&mut self, layer: Range<usize>, pseudo: ChecksumChange) -> Walked {
        let (at, end) = (layer.start, layer.end);
        let walked = match self.byte(at)? {
            1..=4 => self.ip(at + 8..end),
            128 | 129 => Ok(()),
            // Multicast listeners ask and answer (RFC 2710).
            130..=132 => self.ipv6_address(at + 8),
            133 => self.neighbour_options(at + 8..end),
            134 => self.neighbour_options(at + 16..end),
            135 | 136 => {
                let target = self.ipv6_address(at + 8);
                target.and_then(|()| self.neighbour_options(at + 24..end))
            }
            137 => {
                let target = self.ipv6_address(at + 8);
                let both = target.and_then(|()| self.ipv6_address(at + 24));
                both.and_then(|()| self.neighbour_options(at + 40..end))
            }
            143 => self.listener_report(at..end),
            _ => Err(Unread(at + 4)),
        };
        self.inside(&walked, &layer);
        self.sum(at + 2, layer, Some(pseudo));
        Ok(())
    }

    /// Options of neighbour discovery (RFC 4861, 4.6).
    fn neighbour_options(&mut self, options: Range<usize>) -> Walked {
        let mut at = options.start;
        while at < options.end {
            let [kind, units] = self.bytes(at)?;
            let len = usize::from(units) * 8;
            match kind {
                _ if len == 0 => return Err(Unread(at)),
                1 | 2 => self.station(at + 2)?,
                3 => self.ipv6_address(at + 16)?,
                4 => self.ip(at + 8..options.end.min(at + len))?,
                // The largest packet; a nonce.
                5 | 14 => {}
                _ => self.blank(at + 2..options.end.min(at + len)),
            }
            at += len;
        }
        Ok(())
    }

    /// A report of multicast listeners, version 2 (RFC 3810, 5.2).
    fn listener_report(&mut self, layer: Range<usize>) -> Walked {
        let mut at = layer.start + 8;
        for _ in 0..self.number(layer.start + 6)? {
            self.enter(at)?;
            let sources = usize::from(self.number(at + 2)?);
            for address in 0..=sources {
                self.ipv6_address(at + 4 + address * 16)?;
            }
            at += 20 + sources * 16 + usize::from(self.byte(at + 1)?) * 4;
        }
        Ok(())
    }
}

/// No header begins here, but only data of protocols that are known to have no addresses.
fn later_fragment(protocol: u8, at: usize) -> Walked {
    match protocol {
        TCP | UDP | DCCP | UDP_LITE | SCTP | ESP | ICMP | ICMPV6 => Ok(()),
        _ => Err(Unread(at)),
    }
}
