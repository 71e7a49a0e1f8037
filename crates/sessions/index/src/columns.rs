//! The columns of a segment, one line each: name, type, encoding, and how a slice gives and takes
//! the value.
//!
//! Order matters in one place: `start_ns` comes first, because later times are stored as
//! differences to it. Unsigned counters are stored as signed 64-bit integers with the same bits,
//! because no distributed engine reads unsigned ones without a declaration; a count above 2^63
//! would show as negative there and is exact here.

use format::geometry::MEMBERS_MAX;
use format::head::SEQUENCE_MAX;
use format::session_row::{Direction, PieceId, PieceSpan, SessionRow};
use units::Timestamp;
use wire::{Address, App, AppBy, FiveTuple, Protocol, Recognised, TcpOptions, Tunnel, TunnelKind};

use crate::names;

/// How the values of a column are laid out. Compression costs more than all the rest of encoding,
/// so only columns of text that repeats in part have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layout {
    /// One after the other: pays for flags.
    Plain,
    /// One after the other, compressed: pays for texts.
    Zstd,
    /// A dictionary of the distinct values: pays for a few words or flags.
    Dictionary,
    /// Differences to the value before, bit-packed: pays for numbers and times.
    Delta,
}

/// Integers are INT32 where every value fits, else INT64.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Width {
    Narrow,
    Wide,
}

/// The value of a column in a slice; the setter returns `None` for what no slice can hold.
pub(crate) enum Access {
    /// TIMESTAMP(NANOS, UTC), required.
    Time(fn(&[&SessionRow]) -> Vec<i64>, fn(&mut SessionRow, i64)),
    /// Integer, required. Values are taken from many slices at once.
    Number(Width, fn(&[&SessionRow]) -> Vec<i64>, fn(&mut SessionRow, i64) -> Option<()>),
    /// Integer, absent where there is none.
    MaybeNumber(Width, fn(&SessionRow) -> Option<i64>, fn(&mut SessionRow, i64) -> Option<()>),
    /// Boolean, required.
    Flag(fn(&SessionRow) -> bool, fn(&mut SessionRow, bool)),
    /// Boolean, absent where there is none.
    MaybeFlag(fn(&SessionRow) -> Option<bool>, fn(&mut SessionRow, bool)),
    /// Text, absent where there is none; the getter may write it into the buffer it is given.
    Text(
        for<'a> fn(&'a SessionRow, &'a mut String) -> Option<&'a str>,
        fn(&mut SessionRow, &str) -> Option<()>,
    ),
    /// List of texts, empty where there is none.
    Texts(fn(&SessionRow) -> &Vec<String>, fn(&mut SessionRow) -> &mut Vec<String>),
    /// List of small numbers, empty where there is none.
    Numbers(fn(&SessionRow) -> &Vec<u16>, fn(&mut SessionRow) -> &mut Vec<u16>),
    /// List with one integer for each piece; empty where all are zero, unless `Presence::Always`.
    Pieces(Presence, fn(&PieceSpan) -> i64, fn(&mut PieceSpan, i64) -> Option<()>),
}

/// Whether a list of the pieces may be left empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Presence {
    Always,
    UnlessZero,
}

/// One column.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) layout: Layout,
    pub(crate) access: Access,
}

/// The columns by which hosts are looked for.
pub(crate) const ADDRESS_COLUMNS: [&str; 2] = ["orig_ip", "resp_ip"];

/// Those by which ports are.
pub(crate) const PORT_COLUMNS: [&str; 2] = ["orig_port", "resp_port"];

/// The columns that every reading needs: other times are differences to the first.
pub(crate) const TIME_COLUMNS: [&str; 2] = ["start_ns", "duration_ns"];

/// The version of the columns that came after version 1; all others were there from the start.
const ADDED: [(u16, &[&str]); 2] = [
    (2, &["piece_begins", "piece_lengths"]),
    (
        3,
        &[
            "orig_out_of_order_packets",
            "resp_out_of_order_packets",
            "orig_resets",
            "resp_resets",
            "app_by",
            "alpn_chosen",
            "tls_cipher",
            "ja3",
            "ja3s",
            "ja4",
            "cert_subject",
            "cert_issuer",
            "cert_not_before_ns",
            "cert_not_after_ns",
            "http_content_type",
            "dns_rtt_ns",
            "ssh_client",
            "ssh_server",
            "hassh",
            "hassh_server",
            "app_detail",
        ],
    ),
];

/// Whether segments of this version have the column.
pub(crate) fn is_in_version(column: &str, version: u16) -> bool {
    ADDED.iter().all(|(since, columns)| *since <= version || !columns.contains(&column))
}

/// A piece before its columns are read.
pub(crate) const NO_SPAN: PieceSpan =
    PieceSpan { piece: PieceId { sequence: 0, sub: 0, column: 0 }, begin: 0, end: 0 };

/// A slice before its columns are read.
pub(crate) fn blank() -> SessionRow {
    let tuple = FiveTuple {
        orig: Address::None,
        resp: Address::None,
        orig_port: 0,
        resp_port: 0,
        proto: Protocol(0),
    };
    SessionRow::new(tuple, Timestamp::default())
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

const fn column(name: &'static str, layout: Layout, access: Access) -> Column {
    Column { name, layout, access }
}

/// An integer field that is always there.
macro_rules! number {
    ($name:literal, $width:ident, $layout:ident, $($field:tt)+) => {
        column($name, Layout::$layout, Access::Number(
            Width::$width,
            |slices| slices.iter().map(|slice| slice.$($field)+.store()).collect(),
            |slice, stored| {
                slice.$($field)+ = Stored::load(stored)?;
                Some(())
            },
        ))
    };
}

/// An integer field that may be absent.
macro_rules! maybe {
    ($name:literal, $width:ident, $layout:ident, $($field:tt)+) => {
        column($name, Layout::$layout, Access::MaybeNumber(
            Width::$width,
            |slice| slice.$($field)+.map(Stored::store),
            |slice, stored| {
                slice.$($field)+ = Some(Stored::load(stored)?);
                Some(())
            },
        ))
    };
}

/// A text of a group of names that most sessions lack.
macro_rules! grouped_text {
    ($name:literal, $layout:ident, $group:ident, $field:ident) => {
        column(
            $name,
            Layout::$layout,
            Access::Text(
                |slice, _| slice.names.$group.as_ref()?.$field.as_deref(),
                |slice, text| {
                    slice.names.$group.get_or_insert_default().$field = Some(text.to_owned());
                    Some(())
                },
            ),
        )
    };
}

/// An integer of such a group.
macro_rules! grouped_number {
    ($name:literal, $width:ident, $layout:ident, $group:ident, $field:ident) => {
        column(
            $name,
            Layout::$layout,
            Access::MaybeNumber(
                Width::$width,
                |slice| slice.names.$group.as_ref()?.$field.map(Stored::store),
                |slice, stored| {
                    let group = slice.names.$group.get_or_insert_default();
                    group.$field = Some(Stored::load(stored)?);
                    Some(())
                },
            ),
        )
    };
}

/// A list of the names.
macro_rules! list {
    ($name:literal, $kind:ident, $layout:ident, $field:ident) => {
        column(
            $name,
            Layout::$layout,
            Access::$kind(|slice| &slice.names.$field, |slice| &mut slice.names.$field),
        )
    };
}

/// An address field.
macro_rules! address {
    ($name:literal, $($field:tt)+) => {
        column($name, Layout::Zstd, Access::Text(
            |slice, buffer| names::address(slice.$($field)+, buffer),
            |slice, text| {
                slice.$($field)+ = names::parse_address(text)?;
                Some(())
            },
        ))
    };
}

/// A field of the outermost tunnel.
macro_rules! tunnel_address {
    ($name:literal, $field:ident) => {
        column(
            $name,
            Layout::Dictionary,
            Access::Text(
                |slice, buffer| names::address(slice.tunnel?.$field, buffer),
                |slice, text| {
                    tunnel(slice).$field = names::parse_address(text)?;
                    Some(())
                },
            ),
        )
    };
}

/// A field of the SYN's options.
macro_rules! syn_number {
    ($name:literal, $side:ident, $field:ident) => {
        column(
            $name,
            Layout::Dictionary,
            Access::MaybeNumber(
                Width::Narrow,
                |slice| slice.$side.syn_options?.$field.map(Stored::store),
                |slice, stored| {
                    options(&mut slice.$side).$field = Some(Stored::load(stored)?);
                    Some(())
                },
            ),
        )
    };
}

macro_rules! syn_flag {
    ($name:literal, $side:ident, $field:ident) => {
        column(
            $name,
            Layout::Dictionary,
            Access::MaybeFlag(
                |slice| Some(slice.$side.syn_options?.$field),
                |slice, flag| options(&mut slice.$side).$field = flag,
            ),
        )
    };
}

/// The tunnel that the columns fill one after the other.
fn tunnel(slice: &mut SessionRow) -> &mut Tunnel {
    slice.tunnel.get_or_insert(Tunnel {
        kind: TunnelKind::Gre,
        id: 0,
        src: Address::None,
        dst: Address::None,
    })
}

/// The protocol whose columns follow each other.
fn recognised(slice: &mut SessionRow) -> &mut Recognised {
    slice.app.get_or_insert(Recognised { app: App::Tls, by: AppBy::Content })
}

fn options(direction: &mut Direction) -> &mut TcpOptions {
    direction.syn_options.get_or_insert_default()
}

/// The time that lies `stored` nanoseconds from `start`; wraps, so that every pair of times
/// survives.
fn apart(start: Timestamp, stored: i64) -> Timestamp {
    Timestamp(start.0.wrapping_add(stored))
}

/// Every column, in the order of the file.
pub(crate) static COLUMNS: &[Column] = &[
    column(
        "start_ns",
        Layout::Delta,
        Access::Time(
            |slices| slices.iter().map(|slice| slice.start.0).collect(),
            |slice, stored| slice.start = Timestamp(stored),
        ),
    ),
    column(
        "duration_ns",
        Layout::Delta,
        Access::Number(
            Width::Wide,
            |slices| slices.iter().map(|slice| slice.end.0.wrapping_sub(slice.start.0)).collect(),
            |slice, stored| {
                slice.end = apart(slice.start, stored);
                Some(())
            },
        ),
    ),
    column(
        "session_age_ns",
        Layout::Delta,
        Access::Number(
            Width::Wide,
            |slices| {
                let age = |slice: &&SessionRow| slice.start.0.wrapping_sub(slice.session_start.0);
                slices.iter().map(age).collect()
            },
            |slice, stored| {
                slice.session_start = apart(slice.start, stored.wrapping_neg());
                Some(())
            },
        ),
    ),
    number!("proto", Narrow, Dictionary, tuple.proto.0),
    column(
        "proto_name",
        Layout::Dictionary,
        Access::Text(|slice, _| slice.tuple.proto.name(), |_, _| Some(())),
    ),
    address!("orig_ip", tuple.orig),
    number!("orig_port", Narrow, Delta, tuple.orig_port),
    address!("resp_ip", tuple.resp),
    number!("resp_port", Narrow, Delta, tuple.resp_port),
    maybe!("vlan", Narrow, Dictionary, vlan[0]),
    maybe!("vlan_inner", Narrow, Dictionary, vlan[1]),
    maybe!("mpls", Wide, Dictionary, mpls),
    column(
        "tunnel",
        Layout::Dictionary,
        Access::Text(
            |slice, _| Some(slice.tunnel?.kind.name()),
            |slice, text| {
                tunnel(slice).kind = names::parse_tunnel(text)?;
                Some(())
            },
        ),
    ),
    column(
        "tunnel_id",
        Layout::Delta,
        Access::MaybeNumber(
            Width::Wide,
            |slice| Some(slice.tunnel?.id.store()),
            |slice, stored| {
                tunnel(slice).id = Stored::load(stored)?;
                Some(())
            },
        ),
    ),
    tunnel_address!("tunnel_src", src),
    tunnel_address!("tunnel_dst", dst),
    column(
        "icmp_type",
        Layout::Dictionary,
        Access::MaybeNumber(
            Width::Narrow,
            |slice| Some(slice.icmp?.0.store()),
            |slice, stored| {
                slice.icmp.get_or_insert_default().0 = Stored::load(stored)?;
                Some(())
            },
        ),
    ),
    column(
        "icmp_code",
        Layout::Dictionary,
        Access::MaybeNumber(
            Width::Narrow,
            |slice| Some(slice.icmp?.1.store()),
            |slice, stored| {
                slice.icmp.get_or_insert_default().1 = Stored::load(stored)?;
                Some(())
            },
        ),
    ),
    number!("orig_packets", Wide, Delta, orig.packets),
    number!("resp_packets", Wide, Delta, resp.packets),
    number!("orig_payload_bytes", Wide, Delta, orig.payload_bytes),
    number!("resp_payload_bytes", Wide, Delta, resp.payload_bytes),
    number!("orig_ip_bytes", Wide, Delta, orig.ip_bytes),
    number!("resp_ip_bytes", Wide, Delta, resp.ip_bytes),
    number!("orig_frame_bytes", Wide, Delta, orig.frame_bytes),
    number!("resp_frame_bytes", Wide, Delta, resp.frame_bytes),
    number!("orig_tcp_flags", Narrow, Dictionary, orig.tcp_flags),
    number!("resp_tcp_flags", Narrow, Dictionary, resp.tcp_flags),
    number!("orig_retransmitted_packets", Wide, Delta, orig.retransmitted_packets),
    number!("resp_retransmitted_packets", Wide, Delta, resp.retransmitted_packets),
    number!("orig_retransmitted_bytes", Wide, Delta, orig.retransmitted_bytes),
    number!("resp_retransmitted_bytes", Wide, Delta, resp.retransmitted_bytes),
    number!("orig_out_of_order_packets", Wide, Delta, orig.out_of_order_packets),
    number!("resp_out_of_order_packets", Wide, Delta, resp.out_of_order_packets),
    number!("orig_resets", Wide, Delta, orig.resets),
    number!("resp_resets", Wide, Delta, resp.resets),
    number!("orig_zero_windows", Wide, Delta, orig.zero_windows),
    number!("resp_zero_windows", Wide, Delta, resp.zero_windows),
    number!("orig_missed_bytes", Wide, Delta, orig.missed_bytes),
    number!("resp_missed_bytes", Wide, Delta, resp.missed_bytes),
    syn_number!("orig_syn_mss", orig, mss),
    syn_number!("resp_syn_mss", resp, mss),
    syn_number!("orig_syn_window_scale", orig, window_scale),
    syn_number!("resp_syn_window_scale", resp, window_scale),
    syn_flag!("orig_syn_sack_permitted", orig, sack_permitted),
    syn_flag!("resp_syn_sack_permitted", resp, sack_permitted),
    syn_flag!("orig_syn_timestamps", orig, timestamps),
    syn_flag!("resp_syn_timestamps", resp, timestamps),
    column(
        "state",
        Layout::Dictionary,
        Access::Text(
            |slice, _| Some(slice.state.name()),
            |slice, text| {
                slice.state = names::parse_state(text)?;
                Some(())
            },
        ),
    ),
    column(
        "history",
        Layout::Dictionary,
        Access::Text(
            |slice, _| Some(slice.history.as_str()),
            |slice, text| {
                slice.history = text.parse().ok()?;
                Some(())
            },
        ),
    ),
    maybe!("handshake_ns", Wide, Delta, handshake_ns),
    number!("truncated_packets", Wide, Delta, truncated_packets),
    number!("fragments", Wide, Delta, fragments),
    column(
        "continues",
        Layout::Plain,
        Access::Flag(|slice| slice.continues, |slice, flag| slice.continues = flag),
    ),
    column(
        "app",
        Layout::Dictionary,
        Access::Text(
            |slice, _| Some(slice.app?.app.name()),
            |slice, text| {
                recognised(slice).app = App::of_name(text)?;
                Some(())
            },
        ),
    ),
    column(
        "app_by",
        Layout::Dictionary,
        Access::Text(
            |slice, _| Some(slice.app?.by.name()),
            |slice, text| {
                recognised(slice).by = AppBy::of_name(text)?;
                Some(())
            },
        ),
    ),
    column(
        "sni",
        Layout::Dictionary,
        Access::Text(
            |slice, _| slice.names.sni.as_deref(),
            |slice, text| {
                slice.names.sni = Some(text.to_owned());
                Some(())
            },
        ),
    ),
    list!("alpn", Texts, Dictionary, alpn),
    grouped_text!("alpn_chosen", Dictionary, tls, alpn_chosen),
    maybe!("tls_version", Narrow, Dictionary, names.tls_version),
    grouped_number!("tls_cipher", Narrow, Dictionary, tls, cipher),
    grouped_text!("ja3", Zstd, tls, ja3),
    grouped_text!("ja3s", Dictionary, tls, ja3s),
    grouped_text!("ja4", Dictionary, tls, ja4),
    grouped_text!("cert_subject", Dictionary, tls, cert_subject),
    grouped_text!("cert_issuer", Dictionary, tls, cert_issuer),
    grouped_number!("cert_not_before_ns", Wide, Dictionary, tls, cert_not_before_ns),
    grouped_number!("cert_not_after_ns", Wide, Dictionary, tls, cert_not_after_ns),
    list!("http_host", Texts, Dictionary, http_host),
    list!("http_method", Texts, Dictionary, http_method),
    list!("http_path", Texts, Zstd, http_path),
    list!("http_status", Numbers, Dictionary, http_status),
    list!("http_user_agent", Texts, Dictionary, http_user_agent),
    list!("http_content_type", Texts, Dictionary, http_content_type),
    list!("dns_names", Texts, Zstd, dns_names),
    list!("dns_types", Numbers, Dictionary, dns_types),
    list!("dns_rcodes", Numbers, Dictionary, dns_rcodes),
    list!("dns_answers", Texts, Zstd, dns_answers),
    maybe!("dns_rtt_ns", Wide, Delta, names.dns_rtt_ns),
    grouped_text!("ssh_client", Dictionary, ssh, client),
    grouped_text!("ssh_server", Dictionary, ssh, server),
    grouped_text!("hassh", Dictionary, ssh, hassh),
    grouped_text!("hassh_server", Dictionary, ssh, hassh_server),
    list!("app_detail", Texts, Zstd, app_detail),
    number!("interface", Wide, Delta, interface),
    column(
        "piece_sequences",
        Layout::Delta,
        Access::Pieces(
            Presence::Always,
            |span| span.piece.sequence.store(),
            |span, stored| {
                let sequence = u64::load(stored).filter(|sequence| *sequence <= SEQUENCE_MAX);
                span.piece.sequence = sequence?;
                Some(())
            },
        ),
    ),
    column(
        "piece_subs",
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
    column(
        "piece_columns",
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
    column(
        "piece_begins",
        Layout::Delta,
        Access::Pieces(
            Presence::Always,
            |span| (span.begin / 4).store(),
            |span, stored| {
                span.begin = u32::load(stored)?.checked_mul(4)?;
                Some(())
            },
        ),
    ),
    // Behind the beginnings, to which it adds.
    column(
        "piece_lengths",
        Layout::Delta,
        Access::Pieces(
            Presence::Always,
            |span| ((span.end - span.begin) / 4).store(),
            |span, stored| {
                span.end = u32::load(stored)?.checked_mul(4)?.checked_add(span.begin)?;
                Some(())
            },
        ),
    ),
];

/// Whether a column holds what was found in payload.
pub fn is_name(column: &str) -> bool {
    let of_protocol = ["app_", "tls_", "cert_", "http_", "dns_", "ssh_"];
    ["app", "sni", "alpn", "alpn_chosen", "ja3", "ja3s", "ja4", "hassh", "hassh_server"]
        .contains(&column)
        || of_protocol.iter().any(|prefix| column.starts_with(prefix))
}
