//! The table of the stored fields.

use units::{InterfaceId, Sequence, Timestamp};
use wire::{Address, App, AppBy, Recognised, TcpOptions, Tunnel, TunnelKind};

use super::{Access, Layout, NumberOf, Presence, StoredField, Width, field};
use crate::geometry::MEMBERS_MAX;
use crate::head::SEQUENCE_MAX;
use crate::kind::Kind;
use crate::session_row::{Direction, SessionRow, State};

impl StoredField {
    /// The field of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        STORED_FIELDS.iter().find(|field| field.name == name)
    }
}

/// An integer as it lies in a column.
trait Stored: Copy {
    fn store(self) -> i64;
    fn load(stored: i64) -> Option<Self>;
}

impl Stored for u64 {
    fn store(self) -> i64 {
        self.cast_signed()
    }

    fn load(stored: i64) -> Option<Self> {
        Some(stored.cast_unsigned())
    }
}

impl Stored for InterfaceId {
    fn store(self) -> i64 {
        self.get().store()
    }

    fn load(stored: i64) -> Option<Self> {
        u32::load(stored).map(Self)
    }
}

impl Stored for i64 {
    fn store(self) -> i64 {
        self
    }

    fn load(stored: i64) -> Option<Self> {
        Some(stored)
    }
}

macro_rules! stored {
    ($($small:ty)*) => {$(
        impl Stored for $small {
            fn store(self) -> i64 {
                self.into()
            }

            fn load(stored: i64) -> Option<Self> {
                stored.try_into().ok()
            }
        }
    )*};
}

stored!(u8 u16 u32);

/// An integer of one row, and the same of many.
macro_rules! numbers {
    (|$row:ident| $value:expr) => {
        NumberOf { of_all: |rows| rows.iter().map(|$row| $value).collect(), of: |$row| $value }
    };
}

/// An integer field that is always there.
macro_rules! number {
    ($name:literal: $kind:ident, $meaning:literal, $width:ident, $layout:ident, $($of:tt)+) => {
        field($name, Kind::$kind, $meaning, Layout::$layout, Access::Number(
            Width::$width,
            numbers!(|row| row.$($of)+.store()),
            |row, stored| {
                row.$($of)+ = Stored::load(stored)?;
                Some(())
            },
        ))
    };
}

/// An integer field that may be absent.
macro_rules! maybe {
    ($name:literal: $kind:ident, $meaning:literal, $width:ident, $layout:ident, $($of:tt)+) => {
        field($name, Kind::$kind, $meaning, Layout::$layout, Access::MaybeNumber(
            Width::$width,
            |row| row.$($of)+.map(Stored::store),
            |row, stored| {
                row.$($of)+ = Some(Stored::load(stored)?);
                Some(())
            },
        ))
    };
}

/// A text of a group of names that most sessions lack.
macro_rules! grouped_text {
    ($name:literal: $kind:ident, $meaning:literal, $layout:ident, $group:ident.$of:ident) => {
        field(
            $name,
            Kind::$kind,
            $meaning,
            Layout::$layout,
            Access::Text(
                |row| row.names.$group.as_ref()?.$of.as_deref(),
                |row, text| {
                    row.names.$group.get_or_insert_default().$of = Some(text.to_owned());
                    Some(())
                },
            ),
        )
        .of_payload()
    };
}

/// An integer of such a group.
macro_rules! grouped_number {
    (
        $name:literal: $kind:ident, $meaning:literal, $width:ident, $layout:ident,
        $group:ident.$of:ident
    ) => {
        field(
            $name,
            Kind::$kind,
            $meaning,
            Layout::$layout,
            Access::MaybeNumber(
                Width::$width,
                |row| row.names.$group.as_ref()?.$of.map(Stored::store),
                |row, stored| {
                    row.names.$group.get_or_insert_default().$of = Some(Stored::load(stored)?);
                    Some(())
                },
            ),
        )
        .of_payload()
    };
}

/// A list of the names.
macro_rules! list {
    ($name:literal: $kind:ident, $meaning:literal, $access:ident, $layout:ident, $of:ident) => {
        field(
            $name,
            Kind::$kind,
            $meaning,
            Layout::$layout,
            Access::$access(|row| &row.names.$of, |row| &mut row.names.$of),
        )
        .of_payload()
    };
}

/// An end of the session.
macro_rules! address {
    ($name:literal: $meaning:literal, $($of:tt)+) => {
        field($name, Kind::Address, $meaning, Layout::Zstd, Access::Address(
            |row| row.$($of)+,
            |row, address| row.$($of)+ = address,
        ))
    };
}

/// An end of the outermost tunnel.
macro_rules! tunnel_address {
    ($name:literal: $meaning:literal, $of:ident) => {
        field(
            $name,
            Kind::Address,
            $meaning,
            Layout::Dictionary,
            Access::Address(
                |row| row.tunnel.map_or(Address::None, |tunnel| tunnel.$of),
                |row, address| tunnel(row).$of = address,
            ),
        )
    };
}

/// A number of the SYN's options.
macro_rules! syn_number {
    ($name:literal: $meaning:literal, $side:ident.$of:ident) => {
        field(
            $name,
            Kind::Count,
            $meaning,
            Layout::Dictionary,
            Access::MaybeNumber(
                Width::Narrow,
                |row| row.$side.syn_options?.$of.map(Stored::store),
                |row, stored| {
                    options(&mut row.$side).$of = Some(Stored::load(stored)?);
                    Some(())
                },
            ),
        )
    };
}

/// A flag of them.
macro_rules! syn_flag {
    ($name:literal: $meaning:literal, $side:ident.$of:ident) => {
        field(
            $name,
            Kind::Flag,
            $meaning,
            Layout::Dictionary,
            Access::MaybeFlag(
                |row| Some(row.$side.syn_options?.$of),
                |row, flag| options(&mut row.$side).$of = flag,
            ),
        )
    };
}

/// The tunnel that the columns fill one after the other.
fn tunnel(row: &mut SessionRow) -> &mut Tunnel {
    row.tunnel.get_or_insert(Tunnel {
        kind: TunnelKind::Gre,
        id: 0,
        src: Address::None,
        dst: Address::None,
    })
}

fn tunnel_kind(name: &str) -> Option<TunnelKind> {
    TunnelKind::ALL.into_iter().find(|kind| kind.name() == name)
}

fn state(name: &str) -> Option<State> {
    State::ALL.into_iter().find(|state| state.name() == name)
}

/// The protocol whose columns follow each other.
fn recognised(row: &mut SessionRow) -> &mut Recognised {
    row.app.get_or_insert(Recognised { app: App::Tls, by: AppBy::Content })
}

fn options(direction: &mut Direction) -> &mut TcpOptions {
    direction.syn_options.get_or_insert_default()
}

/// The time that lies `stored` nanoseconds from `start`; wraps, so that every pair of times
/// survives.
fn apart(start: Timestamp, stored: i64) -> Timestamp {
    Timestamp(start.0.wrapping_add(stored))
}

/// Every stored field, in the order of a file's columns.
pub static STORED_FIELDS: &[StoredField] = &[
    field(
        "start_ns",
        Kind::Time,
        "its earliest packet",
        Layout::Delta,
        Access::Time(numbers!(|row| row.start.0), |row, stored| row.start = Timestamp(stored)),
    )
    .also(&["start"]),
    field(
        "duration_ns",
        Kind::Duration,
        "time from its earliest to its latest packet",
        Layout::Delta,
        Access::Number(
            Width::Wide,
            numbers!(|row| row.end.0.wrapping_sub(row.start.0)),
            |row, stored| {
                row.end = apart(row.start, stored);
                Some(())
            },
        ),
    )
    .also(&["duration"]),
    field(
        "session_age_ns",
        Kind::Duration,
        "time from there to the earliest packet that is left of it",
        Layout::Delta,
        Access::Number(
            Width::Wide,
            numbers!(|row| row.start.0.wrapping_sub(row.session_start.0)),
            |row, stored| {
                row.session_start = apart(row.start, stored.wrapping_neg());
                Some(())
            },
        ),
    ),
    number!("proto": Protocol, "IP protocol, or EtherType of a session without IP",
        Narrow, Dictionary, tuple.proto.0)
    .also(&["proto_name"]),
    field(
        "proto_name",
        Kind::Name,
        "",
        Layout::Dictionary,
        Access::Text(|row| row.tuple.proto.name(), |_, _| Some(())),
    ),
    address!("orig_ip": "address of the originator, the sender of the first packet", tuple.orig),
    number!("orig_port": Count, "port of the originator (TCP, UDP and SCTP)",
        Narrow, Delta, tuple.orig_port),
    address!("resp_ip": "address of the responder", tuple.resp),
    number!("resp_port": Count, "port of the responder (TCP, UDP and SCTP)",
        Narrow, Delta, tuple.resp_port),
    maybe!("vlan": Count, "VLAN ids of the first packet, outer and inner",
        Narrow, Dictionary, vlan[0]),
    maybe!("vlan_inner": Count, "inner VLAN id of the first packet", Narrow, Dictionary, vlan[1]),
    maybe!("mpls": Count, "outermost MPLS label of the first packet", Wide, Dictionary, mpls),
    field(
        "tunnel",
        Kind::Name,
        "kind of the outermost tunnel: vxlan, geneve, gre, gtp-u, ...",
        Layout::Dictionary,
        Access::Text(
            |row| Some(row.tunnel?.kind.name()),
            |row, text| {
                tunnel(row).kind = tunnel_kind(text)?;
                Some(())
            },
        ),
    ),
    field(
        "tunnel_id",
        Kind::Count,
        "its VNI, TEID, key or session number",
        Layout::Delta,
        Access::MaybeNumber(
            Width::Wide,
            |row| Some(row.tunnel?.id.store()),
            |row, stored| {
                tunnel(row).id = Stored::load(stored)?;
                Some(())
            },
        ),
    ),
    tunnel_address!("tunnel_src": "outer source address of the first packet", src),
    tunnel_address!("tunnel_dst": "outer destination address of the first packet", dst),
    field(
        "icmp_type",
        Kind::Count,
        "type of the first ICMP message",
        Layout::Dictionary,
        Access::MaybeNumber(
            Width::Narrow,
            |row| Some(row.icmp?.0.store()),
            |row, stored| {
                row.icmp.get_or_insert_default().0 = Stored::load(stored)?;
                Some(())
            },
        ),
    ),
    field(
        "icmp_code",
        Kind::Count,
        "code of the first ICMP message",
        Layout::Dictionary,
        Access::MaybeNumber(
            Width::Narrow,
            |row| Some(row.icmp?.1.store()),
            |row, stored| {
                row.icmp.get_or_insert_default().1 = Stored::load(stored)?;
                Some(())
            },
        ),
    ),
    number!("orig_packets": Count, "packets from the originator", Wide, Delta, orig.packets),
    number!("resp_packets": Count, "packets from the responder", Wide, Delta, resp.packets),
    number!("orig_payload_bytes": Bytes, "the same from the originator",
        Wide, Delta, orig.payload_bytes),
    number!("resp_payload_bytes": Bytes, "the same from the responder",
        Wide, Delta, resp.payload_bytes),
    number!("orig_ip_bytes": Bytes, "the same from the originator", Wide, Delta, orig.ip_bytes),
    number!("resp_ip_bytes": Bytes, "the same from the responder", Wide, Delta, resp.ip_bytes),
    number!("orig_frame_bytes": Bytes, "the same from the originator",
        Wide, Delta, orig.frame_bytes)
    .also(&["orig_bytes"]),
    number!("resp_frame_bytes": Bytes, "the same from the responder",
        Wide, Delta, resp.frame_bytes)
    .also(&["resp_bytes"]),
    number!("orig_tcp_flags": Count,
        "all TCP flags of the originator, or-ed: FIN 1, SYN 2, RST 4, ACK 16",
        Narrow, Dictionary, orig.tcp_flags),
    number!("resp_tcp_flags": Count, "all TCP flags of the responder, or-ed",
        Narrow, Dictionary, resp.tcp_flags),
    number!("orig_retransmitted_packets": Count, "the same from the originator",
        Wide, Delta, orig.retransmitted_packets),
    number!("resp_retransmitted_packets": Count, "the same from the responder",
        Wide, Delta, resp.retransmitted_packets),
    number!("orig_retransmitted_bytes": Bytes, "the same from the originator",
        Wide, Delta, orig.retransmitted_bytes),
    number!("resp_retransmitted_bytes": Bytes, "the same from the responder",
        Wide, Delta, resp.retransmitted_bytes),
    number!("orig_out_of_order_packets": Count, "the same from the originator",
        Wide, Delta, orig.out_of_order_packets)
    .since(3),
    number!("resp_out_of_order_packets": Count, "the same from the responder",
        Wide, Delta, resp.out_of_order_packets)
    .since(3),
    number!("orig_resets": Count, "the same from the originator",
        Wide, Delta, orig.resets)
    .since(3),
    number!("resp_resets": Count, "the same from the responder", Wide, Delta, resp.resets).since(3),
    number!("orig_zero_windows": Count, "the same from the originator",
        Wide, Delta, orig.zero_windows),
    number!("resp_zero_windows": Count, "the same from the responder",
        Wide, Delta, resp.zero_windows),
    number!("orig_missed_bytes": Bytes, "the same of the originator's",
        Wide, Delta, orig.missed_bytes),
    number!("resp_missed_bytes": Bytes, "the same of the responder's",
        Wide, Delta, resp.missed_bytes),
    syn_number!("orig_syn_mss": "maximum segment size in the originator's SYN", orig.mss),
    syn_number!("resp_syn_mss": "maximum segment size in the responder's SYN", resp.mss),
    syn_number!("orig_syn_window_scale": "window scale in the originator's SYN", orig.window_scale),
    syn_number!("resp_syn_window_scale": "window scale in the responder's SYN", resp.window_scale),
    syn_flag!("orig_syn_sack_permitted": "the originator's SYN permits SACK", orig.sack_permitted),
    syn_flag!("resp_syn_sack_permitted": "the responder's SYN permits SACK", resp.sack_permitted),
    syn_flag!("orig_syn_timestamps": "the originator's SYN offers timestamps", orig.timestamps),
    syn_flag!("resp_syn_timestamps": "the responder's SYN offers timestamps", resp.timestamps),
    field(
        "state",
        Kind::State,
        "state of the connection in Zeek's words: S0, SF, REJ, ...",
        Layout::Dictionary,
        Access::Text(
            |row| Some(row.state.name()),
            |row, text| {
                row.state = state(text)?;
                Some(())
            },
        ),
    )
    .also(&["conn_state"]),
    field(
        "history",
        Kind::Text,
        "Zeek's history letters, upper case from the originator",
        Layout::Dictionary,
        Access::Text(
            |row| Some(row.history.as_str()),
            |row, text| {
                row.history = text.parse().ok()?;
                Some(())
            },
        ),
    ),
    maybe!("handshake_ns": Duration, "from the SYN to the ACK of the SYN-ACK",
        Wide, Delta, handshake_ns)
    .also(&["handshake", "tcp.handshake"]),
    number!("truncated_packets": Count, "packets of which less was captured than was on the wire",
        Wide, Delta, truncated_packets),
    number!("fragments": Count, "IP fragments", Wide, Delta, fragments),
    field(
        "continues",
        Kind::Flag,
        "it went on when its last row was written",
        Layout::Plain,
        Access::Flag(|row| row.continues, |row, flag| row.continues = flag),
    ),
    field(
        "app",
        Kind::App,
        "application protocol: tls, http, dns, ... (docs/protocols.md)",
        Layout::Dictionary,
        Access::Text(
            |row| Some(row.app?.app.name()),
            |row, text| {
                recognised(row).app = App::of_name(text)?;
                Some(())
            },
        ),
    )
    .also(&["application", "service"])
    .of_payload(),
    field(
        "app_by",
        Kind::Name,
        "how the application protocol is known: content, port+content, port",
        Layout::Dictionary,
        Access::Text(
            |row| Some(row.app?.by.name()),
            |row, text| {
                recognised(row).by = AppBy::of_name(text)?;
                Some(())
            },
        ),
    )
    .since(3)
    .of_payload(),
    field(
        "sni",
        Kind::Name,
        "TLS server name",
        Layout::Dictionary,
        Access::Text(
            |row| row.names.sni.as_deref(),
            |row, text| {
                row.names.sni = Some(text.to_owned());
                Some(())
            },
        ),
    )
    .also(&["tls.sni"])
    .of_payload(),
    list!("alpn": Name, "ALPN protocols that the client offers",
        Texts, Dictionary, alpn)
    .also(&["tls.alpn"]),
    grouped_text!("alpn_chosen": Name, "ALPN protocol that the server chose, up to TLS 1.2",
        Dictionary, tls.alpn_chosen)
    .also(&["tls.alpn_chosen"])
    .since(3),
    maybe!("tls_version": TlsVersion, "TLS version",
        Narrow, Dictionary, names.tls_version)
    .also(&["tls.version", "tls_version_name"])
    .of_payload(),
    grouped_number!("tls_cipher": Cipher, "TLS cipher suite that the server chose",
        Narrow, Dictionary, tls.cipher)
    .also(&["tls.cipher", "tls_cipher_name"])
    .since(3),
    grouped_text!("ja3": Name, "JA3 fingerprint of the client hello",
        Zstd, tls.ja3)
    .also(&["tls.ja3"])
    .since(3),
    grouped_text!("ja3s": Name, "JA3S fingerprint of the server hello",
        Dictionary, tls.ja3s)
    .also(&["tls.ja3s"])
    .since(3),
    grouped_text!("ja4": Name, "JA4 fingerprint of the client hello",
        Dictionary, tls.ja4)
    .also(&["tls.ja4"])
    .since(3),
    grouped_text!("cert_subject": Name, "subject of the server's certificate, up to TLS 1.2",
        Dictionary, tls.cert_subject)
    .also(&["cert.subject", "tls.cert_subject"])
    .since(3),
    grouped_text!("cert_issuer": Name, "its issuer",
        Dictionary, tls.cert_issuer)
    .also(&["cert.issuer", "tls.cert_issuer"])
    .since(3),
    grouped_number!("cert_not_before_ns": Time, "its validity begins",
        Wide, Dictionary, tls.cert_not_before_ns)
    .also(&["cert.not_before", "cert_not_before"])
    .since(3),
    grouped_number!("cert_not_after_ns": Time, "its validity ends",
        Wide, Dictionary, tls.cert_not_after_ns)
    .also(&["cert.not_after", "cert_not_after"])
    .since(3),
    list!("http_host": Name, "HTTP Host", Texts, Dictionary, http_host).also(&["http.host"]),
    list!("http_method": Name, "HTTP method",
        Texts, Dictionary, http_method)
    .also(&["http.method"]),
    list!("http_path": Text, "HTTP request target", Texts, Zstd, http_path).also(&["http.path"]),
    list!("http_status": Count, "HTTP status",
        Numbers, Dictionary, http_status)
    .also(&["http.status"]),
    list!("http_user_agent": Name, "HTTP User-Agent",
        Texts, Dictionary, http_user_agent)
    .also(&["http.user_agent", "user_agent"]),
    list!("http_content_type": Name, "HTTP Content-Type, of requests and responses",
        Texts, Dictionary, http_content_type)
    .also(&["http.content_type", "content_type"])
    .since(3),
    list!("dns_names": Name, "DNS names asked for",
        Texts, Zstd, dns_names)
    .also(&["dns.name", "dns.names", "dns_name"]),
    list!("dns_types": DnsType, "DNS types asked for",
        Numbers, Dictionary, dns_types)
    .also(&["dns.type", "dns.types", "dns_type"]),
    list!("dns_rcodes": DnsRcode, "DNS response codes",
        Numbers, Dictionary, dns_rcodes)
    .also(&["dns.rcode", "dns.rcodes", "dns_rcode"]),
    list!("dns_answers": Name, "addresses and names in DNS answers",
        Texts, Zstd, dns_answers)
    .also(&["dns.answer", "dns.answers", "dns_answer"]),
    maybe!("dns_rtt_ns": Duration, "from the first DNS query to the answer with its id",
        Wide, Delta, names.dns_rtt_ns)
    .also(&["dns.rtt", "dns_rtt"])
    .since(3)
    .of_payload(),
    grouped_text!("ssh_client": Name, "SSH identification of the originator",
        Dictionary, ssh.client)
    .also(&["ssh.client"])
    .since(3),
    grouped_text!("ssh_server": Name, "SSH identification of the responder",
        Dictionary, ssh.server)
    .also(&["ssh.server"])
    .since(3),
    grouped_text!("hassh": Name, "HASSH fingerprint of the originator's offer",
        Dictionary, ssh.hassh)
    .also(&["ssh.hassh"])
    .since(3),
    grouped_text!("hassh_server": Name, "HASSH fingerprint of the responder's offer",
        Dictionary, ssh.hassh_server)
    .also(&["ssh.hassh_server"])
    .since(3),
    list!("app_detail": Name,
        "what else the application says, as key=value: smb.tree=..., ftp.user=..., ...",
        Texts, Zstd, app_detail)
    .also(&["detail"])
    .since(3),
    number!("interface": Interface, "interface of the first packet, by number",
        Wide, Delta, interface)
    .also(&["frame.interface_id"]),
    field(
        "piece_sequences",
        Kind::Count,
        "",
        Layout::Delta,
        Access::Pieces(
            Presence::Always,
            |span| span.piece.sequence.get().store(),
            |span, stored| {
                let sequence =
                    u64::load(stored).map(Sequence).filter(|sequence| *sequence <= SEQUENCE_MAX);
                span.piece.sequence = sequence?;
                Some(())
            },
        ),
    ),
    field(
        "piece_subs",
        Kind::Count,
        "",
        Layout::Dictionary,
        Access::Pieces(
            Presence::UnlessZero,
            |span| span.piece.sub.store(),
            |span, stored| {
                span.piece.sub = Stored::load(stored)?;
                Some(())
            },
        ),
    ),
    field(
        "piece_columns",
        Kind::Count,
        "",
        Layout::Dictionary,
        Access::Pieces(
            Presence::UnlessZero,
            |span| span.piece.column.store(),
            |span, stored| {
                let column = u8::load(stored).filter(|column| usize::from(*column) < MEMBERS_MAX);
                span.piece.column = column?;
                Some(())
            },
        ),
    ),
    field(
        "piece_begins",
        Kind::Count,
        "",
        Layout::Delta,
        Access::Pieces(
            Presence::Always,
            |span| (span.begin / 4).store(),
            |span, stored| {
                span.begin = u32::load(stored)?.checked_mul(4)?;
                Some(())
            },
        ),
    )
    .since(2),
    // Behind the beginnings, to which it adds.
    field(
        "piece_lengths",
        Kind::Count,
        "",
        Layout::Delta,
        Access::Pieces(
            Presence::Always,
            |span| ((span.end - span.begin) / 4).store(),
            |span, stored| {
                span.end = u32::load(stored)?.checked_mul(4)?.checked_add(span.begin)?;
                Some(())
            },
        ),
    )
    .since(2),
];
