//! Packets one by one, as a page shows them: what the headers say, and the bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use format::pcapng::{Blocks, ByteOrder, EnhancedPacket, View};
use page::safe::json_line;
use schemars::JsonSchema;
use serde::Serialize;
use wire::{Address, Decoded, LinkType, TcpHeader, Transport, decode};

/// Bits of [`TcpHeader::flags`], in the order in which they are named.
const FLAGS: [(u8, &str); 8] = [
    (2, "SYN"),
    (1, "FIN"),
    (4, "RST"),
    (8, "PSH"),
    (16, "ACK"),
    (32, "URG"),
    (64, "ECE"),
    (128, "CWR"),
];
const ACK: u8 = 16;

/// A packet: what its headers say, and its bytes.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Packet")]
pub struct PacketLine<'a> {
    /// From 1.
    number: usize,
    time_ns: i64,
    /// Bytes on the wire.
    length: u32,
    /// Bytes that were captured of them.
    captured: usize,
    /// As registries of link types number them (LINKTYPE_ of pcap).
    link_type: u16,
    source: String,
    destination: String,
    protocol: String,
    /// What the headers say, in a line.
    info: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ack: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flags: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<u16>,
    payload_len: u32,
    /// Where the payload begins in the captured bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_at: Option<usize>,
    #[schemars(with = "String", extend("contentEncoding" = "base64"))]
    data: Encoded<'a>,
}

/// Bytes as base64 (RFC 4648).
#[derive(Debug)]
struct Encoded<'a>(&'a [u8]);

impl Serialize for Encoded<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(self.0))
    }
}

/// An object a line for each packet of a section of pcapng that an extract wrote: its number from
/// 1, time, length on the wire and captured, ends, protocol, a line of what its headers say, where
/// its payload lies, and its bytes.
pub fn packet_lines(section: &[u8]) -> impl Iterator<Item = String> {
    let mut link_types = Vec::new();
    let mut number = 0;
    let blocks = Blocks::new(section, ByteOrder::Little).map_while(Result::ok);
    blocks.filter_map(move |(_, block)| match block.view().ok()? {
        View::InterfaceDescription(interface) => {
            link_types.push(interface.link_type);
            None
        }
        View::EnhancedPacket(packet) => {
            let of = usize::try_from(packet.interface).ok()?;
            number += 1;
            Some(packet_line(number, *link_types.get(of)?, &packet))
        }
        _ => None,
    })
}

fn packet_line(number: usize, link_type: LinkType, packet: &EnhancedPacket<'_>) -> String {
    let decoded = decode(link_type, packet.data, packet.original_len);
    let tuple = &decoded.tuple;
    let has_ports = tuple.proto.has_ports();
    let tcp = match &decoded.transport {
        Transport::Tcp(header) => Some(header),
        _ => None,
    };
    let payload_at = decoded.payload.as_ptr().addr().checked_sub(packet.data.as_ptr().addr());
    json_line(&PacketLine {
        number,
        time_ns: packet.time.cast_signed(),
        length: packet.original_len,
        captured: packet.data.len(),
        link_type: link_type.0,
        source: end(tuple.orig, has_ports.then_some(tuple.orig_port)),
        destination: end(tuple.resp, has_ports.then_some(tuple.resp_port)),
        protocol: tuple.proto.name().map_or_else(|| tuple.proto.0.to_string(), str::to_owned),
        info: info(&decoded),
        seq: tcp.map(|header| header.tcp_seq),
        ack: tcp.filter(|header| header.flags & ACK != 0).map(|header| header.tcp_ack),
        flags: tcp.map(|header| header.flags),
        window: tcp.map(|header| header.window),
        payload_len: decoded.payload_len,
        payload_at: payload_at.filter(|_| !decoded.payload.is_empty()),
        data: Encoded(packet.data),
    })
}

/// An address, with its port as URLs have it (RFC 3986).
fn end(address: Address, port: Option<u16>) -> String {
    match (address, port) {
        (Address::None, _) => String::new(),
        (Address::V6(_), Some(port)) => format!("[{address}]:{port}"),
        (_, Some(port)) => format!("{address}:{port}"),
        (_, None) => address.to_string(),
    }
}

/// What the headers say, in a line.
fn info(decoded: &Decoded<'_>) -> String {
    let mut parts = vec![match &decoded.transport {
        Transport::Tcp(header) => tcp_info(header, decoded.payload_len),
        Transport::Udp | Transport::Sctp => format!("{} bytes of payload", decoded.payload_len),
        Transport::Icmp(header) => format!("type {}, code {}", header.kind, header.code),
        Transport::Arp(header) => format!("{} asks for or tells {}", header.sender, header.target),
        Transport::Other => format!("{} bytes", decoded.payload_len),
    }];
    if let Some(fragment) = &decoded.fragment {
        parts.push(format!("fragment from byte {}", fragment.offset));
    }
    for vlan in decoded.vlan.iter().flatten() {
        parts.push(format!("VLAN {vlan}"));
    }
    if let Some(tunnel) = &decoded.tunnel {
        let (kind, id) = (tunnel.kind.name(), tunnel.id);
        parts.push(format!("in {kind} {id} from {} to {}", tunnel.src, tunnel.dst));
    }
    if decoded.cut {
        parts.push("cut inside a header".to_owned());
    }
    parts.join(", ")
}

fn tcp_info(header: &TcpHeader, payload_len: u32) -> String {
    let TcpHeader { tcp_seq, tcp_ack, flags, window, .. } = header;
    let named = FLAGS.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| *name);
    let named = named.collect::<Vec<_>>().join(" ");
    let ack = if flags & ACK == 0 { String::new() } else { format!(", ack {tcp_ack}") };
    format!("[{named}] seq {tcp_seq}{ack}, window {window}, {payload_len} bytes of payload")
}

#[cfg(test)]
mod tests {
    use format::pcapng::{
        EnhancedPacketFields, put_enhanced_packet, put_interface_description,
        put_own_section_header,
    };
    use serde_json::Value;

    use super::*;

    /// Ethernet, IPv4, TCP from port 80 to 1234, a payload of four bytes, and padding behind it.
    const PACKET: [u8; 60] = *b"\x00\x11\x22\x33\x44\x55\x00\xaa\xbb\xcc\xdd\xee\x08\x00\
        \x45\x00\x00\x2c\x00\x00\x40\x00\x40\x06\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08\
        \x00\x50\x04\xd2\x00\x00\x00\x0a\x00\x00\x00\x0b\x50\x18\x01\x00\x00\x00\x00\x00\
        abcd\xff\xff";

    #[test]
    fn a_line_says_what_the_headers_do_and_where_the_payload_is() {
        let mut section = Vec::new();
        put_own_section_header(&mut section, "a query");
        put_interface_description(&mut section, LinkType::ETHERNET, 0, &[]);
        let fields = EnhancedPacketFields {
            interface: 0,
            time: 1_700_000_000_123_456_789,
            original_len: 60,
            options: &[],
        };
        put_enhanced_packet(&mut section, &fields, [&PACKET, &[], &[]]);
        let lines: Vec<Value> =
            packet_lines(&section).map(|line| serde_json::from_str(&line).unwrap()).collect();
        let [line] = &lines[..] else { panic!("{lines:?}") };
        let expected = serde_json::json!({
            "number": 1,
            "time_ns": 1_700_000_000_123_456_789_i64,
            "length": 60,
            "captured": 60,
            "link_type": 1,
            "source": "1.2.3.4:80",
            "destination": "5.6.7.8:1234",
            "protocol": "tcp",
            "info": "[PSH ACK] seq 10, ack 11, window 256, 4 bytes of payload",
            "seq": 10,
            "ack": 11,
            "flags": 24,
            "window": 256,
            "payload_len": 4,
            "payload_at": 54,
            "data": STANDARD.encode(PACKET),
        });
        assert_eq!(*line, expected);
    }

    #[test]
    fn a_packet_that_is_none_has_its_bytes_all_the_same() {
        let mut section = Vec::new();
        put_own_section_header(&mut section, "");
        put_interface_description(&mut section, LinkType::ETHERNET, 0, &[]);
        let fields = EnhancedPacketFields { interface: 0, time: 0, original_len: 3, options: &[] };
        put_enhanced_packet(&mut section, &fields, [&[1, 2, 3], &[], &[]]);
        let line = packet_lines(&section).next().unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&line["data"], &line["captured"]), (&"AQID".into(), &3.into()));
        assert_eq!(line.get("payload_at"), None);
    }
}
