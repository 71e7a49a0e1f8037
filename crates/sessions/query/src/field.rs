//! The fields of a session: one flat table from which queries, their documentation and `wirespool
//! fields` come.
//!
//! A field is named as in JSON and SQL. It may have no value (absent is not empty), one, or
//! several; a comparison holds if it holds for any of them.

mod ends;
mod reading;
mod several;

use format::session_row::{Direction, SessionRow};
use units::Timestamp;
use wire::{Address, TunnelKind};

use crate::atlas::Atlas;
use crate::field::ends::{as_name, as_number, country, ends};
use crate::field::reading::{Found, number};
use crate::field::several::{agreed, source_name};
use crate::kind::Kind;
use crate::nearest::nearest;
use crate::pattern::Pattern;

pub use reading::Reading;
pub(crate) use reading::{Row, has_ports};

/// A field of the session table.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The name, as in JSON and SQL.
    pub name: &'static str,
    /// Other words for it in queries.
    pub aliases: &'static [&'static str],
    /// How its values are written.
    pub kind: Kind,
    /// What it means.
    pub meaning: &'static str,
    /// The stored columns it is computed from; empty when it is a column itself.
    sources: &'static [&'static str],
    needs_atlas: bool,
    read: fn(&Row<'_>, &mut Found<'_>) -> bool,
}

impl Field {
    /// The field of this name or alias, in either case.
    pub fn find(word: &str) -> Option<&'static Self> {
        let is = |name: &&str| name.eq_ignore_ascii_case(word);
        FIELDS.iter().find(|field| is(&field.name) || field.aliases.iter().any(is))
    }

    /// Every word for a field: its name and its aliases.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        FIELDS.iter().flat_map(|field| [&[field.name], field.aliases].concat())
    }

    /// The word for a field that was probably meant by one that is none.
    pub fn meant_by(word: &str) -> Option<&'static str> {
        nearest(word, Self::names())
    }

    /// The columns of the session table that hold it.
    pub fn columns(&'static self) -> &'static [&'static str] {
        if self.sources.is_empty() { core::slice::from_ref(&self.name) } else { self.sources }
    }

    /// The query of sessions in which it has this value.
    pub fn condition(&self, value: Reading<'_>) -> String {
        let value = match value {
            Reading::Name(text) | Reading::Text(text) if is_plain(text) => text.to_owned(),
            Reading::Name(text) | Reading::Text(text) => Pattern::exactly(text).to_string(),
            Reading::Number(nanos) if self.kind == Kind::Duration => format!("{nanos}ns"),
            Reading::Number(number) => number.to_string(),
            Reading::Time(time) => time.to_string(),
            Reading::Address(address) => address.to_string(),
            Reading::Flag(flag) => if flag { "yes" } else { "no" }.to_owned(),
        };
        format!("{} = {value}", self.name)
    }

    /// Whether it has values only where there is an [`Atlas`].
    pub fn needs_atlas(&self) -> bool {
        self.needs_atlas
    }

    /// Calls `visit` with every value that the field has in a row: none where it is absent.
    /// `session_id` is without `ids`, countries and autonomous systems are without an `atlas`.
    pub fn each(
        &self,
        (slice, ids): (&SessionRow, &[String]),
        atlas: Option<&Atlas>,
        mut visit: impl FnMut(Reading<'_>),
    ) {
        self.any(&Row { slice, ids, atlas }, &mut |reading| {
            visit(reading);
            false
        });
    }

    /// Whether `test` holds for any of the row's values.
    pub(crate) fn any(&self, row: &Row<'_>, test: &mut Found<'_>) -> bool {
        (self.read)(row, test)
    }

    const fn also(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    const fn by_atlas(mut self, sources: &'static [&'static str]) -> Self {
        self.needs_atlas = true;
        self.from(sources)
    }

    const fn from(mut self, sources: &'static [&'static str]) -> Self {
        self.sources = sources;
        self
    }
}

/// Whether a text is a word of the language that means itself.
fn is_plain(text: &str) -> bool {
    let is_of_word = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_join = ["and", "or", "not"].iter().any(|word| text.eq_ignore_ascii_case(word));
    !text.is_empty() && text.bytes().all(is_of_word) && !is_join
}

/// Names are unique, which a test holds.
impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Field {}

const fn field(
    name: &'static str,
    kind: Kind,
    meaning: &'static str,
    read: fn(&Row<'_>, &mut Found<'_>) -> bool,
) -> Field {
    Field { name, aliases: &[], kind, meaning, sources: &[], needs_atlas: false, read }
}

/// Every field, in the order in which people look for them. Derived ones name their sources.
pub static FIELDS: &[Field] = &[
    field("session_id", Kind::Text, "the session's id, as find shows it", |row, found| {
        row.ids.iter().any(|id| found(Reading::Text(id)))
    }),
    field("community_id", Kind::CommunityId, "community id, version 1, seed 0", |row, found| {
        row.slice.community_ids().any(|id| found(Reading::Text(&id.0)))
    })
    .from(&[
        "proto",
        "orig_ip",
        "resp_ip",
        "orig_port",
        "resp_port",
        "icmp_type",
        "icmp_code",
        "app_detail",
    ]),
    field(
        "proto",
        Kind::Protocol,
        "IP protocol, or EtherType of a session without IP",
        |row, found| found(Reading::Number(row.slice.tuple.proto.0.into())),
    )
    .also(&["proto_name"]),
    field(
        "orig_ip",
        Kind::Address,
        "address of the originator, the sender of the first packet",
        |row, found| address(row.slice.tuple.orig, found),
    ),
    field("resp_ip", Kind::Address, "address of the responder", |row, found| {
        address(row.slice.tuple.resp, found)
    }),
    field("orig_port", Kind::Count, "port of the originator (TCP, UDP and SCTP)", |row, found| {
        has_ports(row) && found(Reading::Number(row.slice.tuple.orig_port.into()))
    })
    .from(&["proto", "orig_port"]),
    field("resp_port", Kind::Count, "port of the responder (TCP, UDP and SCTP)", |row, found| {
        has_ports(row) && found(Reading::Number(row.slice.tuple.resp_port.into()))
    })
    .from(&["proto", "resp_port"]),
    field("host", Kind::Address, "either address", |row, found| {
        address(row.slice.tuple.orig, found) || address(row.slice.tuple.resp, found)
    })
    .also(&["ip"])
    .from(&["orig_ip", "resp_ip"]),
    field("port", Kind::Count, "either port", |row, found| {
        has_ports(row)
            && [row.slice.tuple.orig_port, row.slice.tuple.resp_port]
                .iter()
                .any(|&port| found(Reading::Number(port.into())))
    })
    .from(&["proto", "orig_port", "resp_port"]),
    field("country", Kind::Name, "country of either address, ISO 3166-1 (--mmdb)", |row, found| {
        ends(row).any(|ip| country(row, ip, found))
    })
    .by_atlas(&["orig_ip", "resp_ip"]),
    field("orig_country", Kind::Name, "country of the originator's address", |row, found| {
        country(row, row.slice.tuple.orig, found)
    })
    .by_atlas(&["orig_ip"]),
    field("resp_country", Kind::Name, "country of the responder's address", |row, found| {
        country(row, row.slice.tuple.resp, found)
    })
    .by_atlas(&["resp_ip"]),
    field("asn", Kind::Count, "autonomous system of either address (--mmdb)", |row, found| {
        ends(row).any(|ip| as_number(row, ip, found))
    })
    .by_atlas(&["orig_ip", "resp_ip"]),
    field("orig_asn", Kind::Count, "that of the originator's address", |row, found| {
        as_number(row, row.slice.tuple.orig, found)
    })
    .by_atlas(&["orig_ip"]),
    field("resp_asn", Kind::Count, "that of the responder's address", |row, found| {
        as_number(row, row.slice.tuple.resp, found)
    })
    .by_atlas(&["resp_ip"]),
    field("as_name", Kind::Name, "name of either address's autonomous system", |row, found| {
        ends(row).any(|ip| as_name(row, ip, found))
    })
    .by_atlas(&["orig_ip", "resp_ip"]),
    field("orig_as_name", Kind::Name, "that of the originator's address", |row, found| {
        as_name(row, row.slice.tuple.orig, found)
    })
    .by_atlas(&["orig_ip"]),
    field("resp_as_name", Kind::Name, "that of the responder's address", |row, found| {
        as_name(row, row.slice.tuple.resp, found)
    })
    .by_atlas(&["resp_ip"]),
    field("tag", Kind::Name, "what an alert or a notice said of it (--tags)", |row, found| {
        row.atlas.is_some_and(|atlas| atlas.tags(row.ids).any(|tag| found(Reading::Name(tag))))
    })
    .also(&["tags"])
    .by_atlas(&["session_id"]),
    field("vlan", Kind::Count, "VLAN ids of the first packet, outer and inner", |row, found| {
        row.slice.vlan.iter().flatten().any(|&id| found(Reading::Number(id.into())))
    })
    .from(&["vlan", "vlan_inner"]),
    field("vlan_inner", Kind::Count, "inner VLAN id of the first packet", |row, found| {
        number(row.slice.vlan.last().copied().flatten(), found)
    }),
    field("mpls", Kind::Count, "outermost MPLS label of the first packet", |row, found| {
        number(row.slice.mpls, found)
    }),
    field(
        "tunnel",
        Kind::Name,
        "kind of the outermost tunnel: vxlan, geneve, gre, gtp-u, ...",
        |row, found| {
            row.slice.tunnel.is_some_and(|tunnel| found(Reading::Name(tunnel.kind.name())))
        },
    ),
    field("tunnel_id", Kind::Count, "its VNI, TEID, key or session number", |row, found| {
        number(row.slice.tunnel.map(|tunnel| tunnel.id), found)
    }),
    field("tunnel_src", Kind::Address, "outer source address of the first packet", |row, found| {
        row.slice.tunnel.is_some_and(|tunnel| address(tunnel.src, found))
    }),
    field(
        "tunnel_dst",
        Kind::Address,
        "outer destination address of the first packet",
        |row, found| row.slice.tunnel.is_some_and(|tunnel| address(tunnel.dst, found)),
    ),
    field("vni", Kind::Count, "VNI of a VXLAN or GENEVE tunnel", |row, found| {
        tunnel_id(row, &[TunnelKind::Vxlan, TunnelKind::VxlanGpe, TunnelKind::Geneve], found)
    })
    .from(&["tunnel", "tunnel_id"]),
    field("teid", Kind::Count, "TEID of a GTP-U tunnel", |row, found| {
        tunnel_id(row, &[TunnelKind::GtpU], found)
    })
    .from(&["tunnel", "tunnel_id"]),
    field("icmp_type", Kind::Count, "type of the first ICMP message", |row, found| {
        number(row.slice.icmp.map(|(kind, _)| kind), found)
    }),
    field("icmp_code", Kind::Count, "code of the first ICMP message", |row, found| {
        number(row.slice.icmp.map(|(_, code)| code), found)
    }),
    field(
        "session_start_ns",
        Kind::Time,
        "earliest packet of the session's whole life",
        |row, found| found(Reading::Time(row.slice.session_start)),
    )
    .also(&["session_start"])
    .from(&["session_age_ns", "start_ns"]),
    field(
        "session_age_ns",
        Kind::Duration,
        "time from there to the earliest packet that is left of it",
        |row, found| found(Reading::Number(nanos(row.slice.start.since(row.slice.session_start)))),
    )
    .from(&["session_age_ns", "start_ns"]),
    field("start_ns", Kind::Time, "its earliest packet", |row, found| {
        found(Reading::Time(row.slice.start))
    })
    .also(&["start"]),
    field("end_ns", Kind::Time, "its latest packet", |row, found| {
        found(Reading::Time(row.slice.end))
    })
    .also(&["end"])
    .from(&["duration_ns", "start_ns"]),
    field(
        "duration_ns",
        Kind::Duration,
        "time from its earliest to its latest packet",
        |row, found| found(Reading::Number(nanos(row.slice.end.since(row.slice.start)))),
    )
    .also(&["duration"])
    .from(&["duration_ns", "start_ns"]),
    field("packets", Kind::Count, "packets, both ways", |row, found| {
        both(row, |side| side.packets, found)
    })
    .from(&["orig_packets", "resp_packets"]),
    field("orig_packets", Kind::Count, "packets from the originator", |row, found| {
        found(Reading::Number(row.slice.orig.packets))
    }),
    field("resp_packets", Kind::Count, "packets from the responder", |row, found| {
        found(Reading::Number(row.slice.resp.packets))
    }),
    field(
        "frame_bytes",
        Kind::Bytes,
        "bytes on the wire with the link layer, both ways",
        |row, found| both(row, |side| side.frame_bytes, found),
    )
    .also(&["bytes"])
    .from(&["orig_frame_bytes", "resp_frame_bytes"]),
    field("orig_frame_bytes", Kind::Bytes, "the same from the originator", |row, found| {
        found(Reading::Number(row.slice.orig.frame_bytes))
    })
    .also(&["orig_bytes"]),
    field("resp_frame_bytes", Kind::Bytes, "the same from the responder", |row, found| {
        found(Reading::Number(row.slice.resp.frame_bytes))
    })
    .also(&["resp_bytes"]),
    field("ip_bytes", Kind::Bytes, "bytes of the innermost IP packets, both ways", |row, found| {
        both(row, |side| side.ip_bytes, found)
    })
    .from(&["orig_ip_bytes", "resp_ip_bytes"]),
    field("orig_ip_bytes", Kind::Bytes, "the same from the originator", |row, found| {
        found(Reading::Number(row.slice.orig.ip_bytes))
    }),
    field("resp_ip_bytes", Kind::Bytes, "the same from the responder", |row, found| {
        found(Reading::Number(row.slice.resp.ip_bytes))
    }),
    field("payload_bytes", Kind::Bytes, "bytes of transport payload, both ways", |row, found| {
        both(row, |side| side.payload_bytes, found)
    })
    .from(&["orig_payload_bytes", "resp_payload_bytes"]),
    field("orig_payload_bytes", Kind::Bytes, "the same from the originator", |row, found| {
        found(Reading::Number(row.slice.orig.payload_bytes))
    }),
    field("resp_payload_bytes", Kind::Bytes, "the same from the responder", |row, found| {
        found(Reading::Number(row.slice.resp.payload_bytes))
    }),
    field(
        "state",
        Kind::State,
        "state of the connection in Zeek's words: S0, SF, REJ, ...",
        |row, found| found(Reading::Name(row.slice.state.name())),
    )
    .also(&["conn_state"]),
    field(
        "history",
        Kind::Text,
        "Zeek's history letters, upper case from the originator",
        |row, found| found(Reading::Text(row.slice.history.as_str())),
    ),
    field("continues", Kind::Flag, "it went on when its last row was written", |row, found| {
        found(Reading::Flag(row.slice.continues))
    }),
    field(
        "handshake_ns",
        Kind::Duration,
        "from the SYN to the ACK of the SYN-ACK",
        |row, found| number(row.slice.handshake_ns, found),
    )
    .also(&["handshake", "tcp.handshake"]),
    field(
        "retransmitted_packets",
        Kind::Count,
        "TCP segments whose payload had been seen before, both ways",
        |row, found| both(row, |side| side.retransmitted_packets, found),
    )
    .also(&["tcp.retransmitted", "tcp_retransmitted"])
    .from(&["orig_retransmitted_packets", "resp_retransmitted_packets"]),
    field(
        "orig_retransmitted_packets",
        Kind::Count,
        "the same from the originator",
        |row, found| found(Reading::Number(row.slice.orig.retransmitted_packets)),
    ),
    field(
        "resp_retransmitted_packets",
        Kind::Count,
        "the same from the responder",
        |row, found| found(Reading::Number(row.slice.resp.retransmitted_packets)),
    ),
    field("retransmitted_bytes", Kind::Bytes, "payload bytes of those, both ways", |row, found| {
        both(row, |side| side.retransmitted_bytes, found)
    })
    .from(&["orig_retransmitted_bytes", "resp_retransmitted_bytes"]),
    field("orig_retransmitted_bytes", Kind::Bytes, "the same from the originator", |row, found| {
        found(Reading::Number(row.slice.orig.retransmitted_bytes))
    }),
    field("resp_retransmitted_bytes", Kind::Bytes, "the same from the responder", |row, found| {
        found(Reading::Number(row.slice.resp.retransmitted_bytes))
    }),
    field(
        "out_of_order_packets",
        Kind::Count,
        "TCP segments with new payload that came after later ones, both ways",
        |row, found| both(row, |side| side.out_of_order_packets, found),
    )
    .also(&["tcp.out_of_order", "tcp_out_of_order"])
    .from(&["orig_out_of_order_packets", "resp_out_of_order_packets"]),
    field(
        "orig_out_of_order_packets",
        Kind::Count,
        "the same from the originator",
        |row, found| found(Reading::Number(row.slice.orig.out_of_order_packets)),
    ),
    field("resp_out_of_order_packets", Kind::Count, "the same from the responder", |row, found| {
        found(Reading::Number(row.slice.resp.out_of_order_packets))
    }),
    field("resets", Kind::Count, "TCP segments with RST, both ways", |row, found| {
        both(row, |side| side.resets, found)
    })
    .also(&["tcp.resets", "tcp_resets"])
    .from(&["orig_resets", "resp_resets"]),
    field("orig_resets", Kind::Count, "the same from the originator", |row, found| {
        found(Reading::Number(row.slice.orig.resets))
    }),
    field("resp_resets", Kind::Count, "the same from the responder", |row, found| {
        found(Reading::Number(row.slice.resp.resets))
    }),
    field(
        "zero_windows",
        Kind::Count,
        "TCP segments with a window of zero, both ways",
        |row, found| both(row, |side| side.zero_windows, found),
    )
    .also(&["tcp.zero_windows"])
    .from(&["orig_zero_windows", "resp_zero_windows"]),
    field("orig_zero_windows", Kind::Count, "the same from the originator", |row, found| {
        found(Reading::Number(row.slice.orig.zero_windows))
    }),
    field("resp_zero_windows", Kind::Count, "the same from the responder", |row, found| {
        found(Reading::Number(row.slice.resp.zero_windows))
    }),
    field(
        "missed_bytes",
        Kind::Bytes,
        "bytes acknowledged but never seen, both ways",
        |row, found| both(row, |side| side.missed_bytes, found),
    )
    .also(&["tcp.missed_bytes"])
    .from(&["orig_missed_bytes", "resp_missed_bytes"]),
    field("orig_missed_bytes", Kind::Bytes, "the same of the originator's", |row, found| {
        found(Reading::Number(row.slice.orig.missed_bytes))
    }),
    field("resp_missed_bytes", Kind::Bytes, "the same of the responder's", |row, found| {
        found(Reading::Number(row.slice.resp.missed_bytes))
    }),
    field(
        "orig_tcp_flags",
        Kind::Count,
        "all TCP flags of the originator, or-ed: FIN 1, SYN 2, RST 4, ACK 16",
        |row, found| found(Reading::Number(row.slice.orig.tcp_flags.into())),
    ),
    field("resp_tcp_flags", Kind::Count, "all TCP flags of the responder, or-ed", |row, found| {
        found(Reading::Number(row.slice.resp.tcp_flags.into()))
    }),
    field(
        "tcp_sack",
        Kind::Flag,
        "both SYNs permit SACK; no as soon as one seen does not",
        |row, found| agreed(row, |options| options.sack_permitted, found),
    )
    .also(&["tcp.sack"])
    .from(&["orig_syn_sack_permitted", "resp_syn_sack_permitted"]),
    field(
        "orig_syn_sack_permitted",
        Kind::Flag,
        "the originator's SYN permits SACK",
        |row, found| {
            row.slice
                .orig
                .syn_options
                .is_some_and(|options| found(Reading::Flag(options.sack_permitted)))
        },
    ),
    field(
        "resp_syn_sack_permitted",
        Kind::Flag,
        "the responder's SYN permits SACK",
        |row, found| {
            row.slice
                .resp
                .syn_options
                .is_some_and(|options| found(Reading::Flag(options.sack_permitted)))
        },
    ),
    field(
        "tcp_timestamps",
        Kind::Flag,
        "both SYNs offer timestamps; no as soon as one seen does not",
        |row, found| agreed(row, |options| options.timestamps, found),
    )
    .also(&["tcp.timestamps"])
    .from(&["orig_syn_timestamps", "resp_syn_timestamps"]),
    field(
        "orig_syn_timestamps",
        Kind::Flag,
        "the originator's SYN offers timestamps",
        |row, found| {
            row.slice
                .orig
                .syn_options
                .is_some_and(|options| found(Reading::Flag(options.timestamps)))
        },
    ),
    field(
        "resp_syn_timestamps",
        Kind::Flag,
        "the responder's SYN offers timestamps",
        |row, found| {
            row.slice
                .resp
                .syn_options
                .is_some_and(|options| found(Reading::Flag(options.timestamps)))
        },
    ),
    field(
        "orig_syn_mss",
        Kind::Count,
        "maximum segment size in the originator's SYN",
        |row, found| number(row.slice.orig.syn_options.and_then(|options| options.mss), found),
    ),
    field(
        "resp_syn_mss",
        Kind::Count,
        "maximum segment size in the responder's SYN",
        |row, found| number(row.slice.resp.syn_options.and_then(|options| options.mss), found),
    ),
    field(
        "orig_syn_window_scale",
        Kind::Count,
        "window scale in the originator's SYN",
        |row, found| {
            number(row.slice.orig.syn_options.and_then(|options| options.window_scale), found)
        },
    ),
    field(
        "resp_syn_window_scale",
        Kind::Count,
        "window scale in the responder's SYN",
        |row, found| {
            number(row.slice.resp.syn_options.and_then(|options| options.window_scale), found)
        },
    ),
    field(
        "truncated_packets",
        Kind::Count,
        "packets of which less was captured than was on the wire",
        |row, found| found(Reading::Number(row.slice.truncated_packets)),
    ),
    field("fragments", Kind::Count, "IP fragments", |row, found| {
        found(Reading::Number(row.slice.fragments))
    }),
    field(
        "interface",
        Kind::Interface,
        "interface of the first packet, by number",
        |row, found| found(Reading::Number(row.slice.interface.into())),
    )
    .also(&["frame.interface_id"]),
    field("interface_name", Kind::Text, "its name", |row, found| {
        source_name(row, |source| source.interface.as_deref(), found)
    })
    .also(&["frame.interface_name", "ifname"])
    .from(&["interface"]),
    field("recording", Kind::Text, "name of its recording (record --name)", |row, found| {
        source_name(row, |source| source.recording.as_deref(), found)
    })
    .from(&["interface"]),
    field(
        "app",
        Kind::App,
        "application protocol: tls, http, dns, ... (docs/protocols.md)",
        |row, found| row.slice.app.is_some_and(|known| found(Reading::Name(known.app.name()))),
    )
    .also(&["application", "service"]),
    field(
        "app_by",
        Kind::Name,
        "how the application protocol is known: content, port+content, port",
        |row, found| row.slice.app.is_some_and(|known| found(Reading::Name(known.by.name()))),
    ),
    field("name", Kind::Name, "any of sni, http_host and dns_names", |row, found| {
        let own = &row.slice.names;
        own.sni.as_deref().is_some_and(|name| found(Reading::Name(name)))
            || names(&own.http_host, found)
            || names(&own.dns_names, found)
    })
    .from(&["sni", "http_host", "dns_names"]),
    field("sni", Kind::Name, "TLS server name", |row, found| {
        row.slice.names.sni.as_deref().is_some_and(|name| found(Reading::Name(name)))
    })
    .also(&["tls.sni"]),
    field("alpn", Kind::Name, "ALPN protocols that the client offers", |row, found| {
        names(&row.slice.names.alpn, found)
    })
    .also(&["tls.alpn"]),
    field(
        "alpn_chosen",
        Kind::Name,
        "ALPN protocol that the server chose, up to TLS 1.2",
        |row, found| {
            group_name(row.slice.names.tls.as_deref(), |tls| tls.alpn_chosen.as_deref(), found)
        },
    )
    .also(&["tls.alpn_chosen"]),
    field("tls_version", Kind::TlsVersion, "TLS version", |row, found| {
        number(row.slice.names.tls_version, found)
    })
    .also(&["tls.version", "tls_version_name"]),
    field("tls_cipher", Kind::Cipher, "TLS cipher suite that the server chose", |row, found| {
        number(row.slice.names.tls.as_ref().and_then(|tls| tls.cipher), found)
    })
    .also(&["tls.cipher", "tls_cipher_name"]),
    field("ja3", Kind::Name, "JA3 fingerprint of the client hello", |row, found| {
        group_name(row.slice.names.tls.as_deref(), |tls| tls.ja3.as_deref(), found)
    })
    .also(&["tls.ja3"]),
    field("ja3s", Kind::Name, "JA3S fingerprint of the server hello", |row, found| {
        group_name(row.slice.names.tls.as_deref(), |tls| tls.ja3s.as_deref(), found)
    })
    .also(&["tls.ja3s"]),
    field("ja4", Kind::Name, "JA4 fingerprint of the client hello", |row, found| {
        group_name(row.slice.names.tls.as_deref(), |tls| tls.ja4.as_deref(), found)
    })
    .also(&["tls.ja4"]),
    field(
        "cert_subject",
        Kind::Name,
        "subject of the server's certificate, up to TLS 1.2",
        |row, found| {
            group_name(row.slice.names.tls.as_deref(), |tls| tls.cert_subject.as_deref(), found)
        },
    )
    .also(&["cert.subject", "tls.cert_subject"]),
    field("cert_issuer", Kind::Name, "its issuer", |row, found| {
        group_name(row.slice.names.tls.as_deref(), |tls| tls.cert_issuer.as_deref(), found)
    })
    .also(&["cert.issuer", "tls.cert_issuer"]),
    field("cert_not_before_ns", Kind::Time, "its validity begins", |row, found| {
        let time = row.slice.names.tls.as_ref().and_then(|tls| tls.cert_not_before_ns);
        time.is_some_and(|time| found(Reading::Time(Timestamp(time))))
    })
    .also(&["cert.not_before", "cert_not_before"]),
    field("cert_not_after_ns", Kind::Time, "its validity ends", |row, found| {
        let time = row.slice.names.tls.as_ref().and_then(|tls| tls.cert_not_after_ns);
        time.is_some_and(|time| found(Reading::Time(Timestamp(time))))
    })
    .also(&["cert.not_after", "cert_not_after"]),
    field("http_host", Kind::Name, "HTTP Host", |row, found| {
        names(&row.slice.names.http_host, found)
    })
    .also(&["http.host"]),
    field("http_method", Kind::Name, "HTTP method", |row, found| {
        names(&row.slice.names.http_method, found)
    })
    .also(&["http.method"]),
    field("http_path", Kind::Text, "HTTP request target", |row, found| {
        row.slice.names.http_path.iter().any(|path| found(Reading::Text(path)))
    })
    .also(&["http.path"]),
    field("http_status", Kind::Count, "HTTP status", |row, found| {
        numbers(&row.slice.names.http_status, found)
    })
    .also(&["http.status"]),
    field("http_user_agent", Kind::Name, "HTTP User-Agent", |row, found| {
        names(&row.slice.names.http_user_agent, found)
    })
    .also(&["http.user_agent", "user_agent"]),
    field(
        "http_content_type",
        Kind::Name,
        "HTTP Content-Type, of requests and responses",
        |row, found| names(&row.slice.names.http_content_type, found),
    )
    .also(&["http.content_type", "content_type"]),
    field("dns_names", Kind::Name, "DNS names asked for", |row, found| {
        names(&row.slice.names.dns_names, found)
    })
    .also(&["dns.name", "dns.names", "dns_name"]),
    field("dns_types", Kind::DnsType, "DNS types asked for", |row, found| {
        numbers(&row.slice.names.dns_types, found)
    })
    .also(&["dns.type", "dns.types", "dns_type"]),
    field("dns_rcodes", Kind::DnsRcode, "DNS response codes", |row, found| {
        numbers(&row.slice.names.dns_rcodes, found)
    })
    .also(&["dns.rcode", "dns.rcodes", "dns_rcode"]),
    field("dns_answers", Kind::Name, "addresses and names in DNS answers", |row, found| {
        names(&row.slice.names.dns_answers, found)
    })
    .also(&["dns.answer", "dns.answers", "dns_answer"]),
    field(
        "dns_rtt_ns",
        Kind::Duration,
        "from the first DNS query to the answer with its id",
        |row, found| number(row.slice.names.dns_rtt_ns, found),
    )
    .also(&["dns.rtt", "dns_rtt"]),
    field("ssh_client", Kind::Name, "SSH identification of the originator", |row, found| {
        group_name(row.slice.names.ssh.as_deref(), |ssh| ssh.client.as_deref(), found)
    })
    .also(&["ssh.client"]),
    field("ssh_server", Kind::Name, "SSH identification of the responder", |row, found| {
        group_name(row.slice.names.ssh.as_deref(), |ssh| ssh.server.as_deref(), found)
    })
    .also(&["ssh.server"]),
    field("hassh", Kind::Name, "HASSH fingerprint of the originator's offer", |row, found| {
        group_name(row.slice.names.ssh.as_deref(), |ssh| ssh.hassh.as_deref(), found)
    })
    .also(&["ssh.hassh"]),
    field(
        "hassh_server",
        Kind::Name,
        "HASSH fingerprint of the responder's offer",
        |row, found| {
            group_name(row.slice.names.ssh.as_deref(), |ssh| ssh.hassh_server.as_deref(), found)
        },
    )
    .also(&["ssh.hassh_server"]),
    field(
        "app_detail",
        Kind::Name,
        "what else the application says, as key=value: smb.tree=..., ftp.user=..., ...",
        |row, found| names(&row.slice.names.app_detail, found),
    )
    .also(&["detail"]),
];

fn nanos(signed: i64) -> u64 {
    u64::try_from(signed).unwrap_or(0)
}

fn numbers(values: &[u16], found: &mut Found<'_>) -> bool {
    values.iter().any(|&value| found(Reading::Number(value.into())))
}

fn names(values: &[String], found: &mut Found<'_>) -> bool {
    values.iter().any(|value| found(Reading::Name(value)))
}

/// A text of a group of names that most sessions lack.
fn group_name<T>(
    group: Option<&T>,
    read: impl Fn(&T) -> Option<&str>,
    found: &mut Found<'_>,
) -> bool {
    let name = group.and_then(read);
    name.is_some_and(|name| found(Reading::Name(name)))
}

fn address(address: Address, found: &mut Found<'_>) -> bool {
    address != Address::None && found(Reading::Address(address))
}

fn both(row: &Row<'_>, count: fn(&Direction) -> u64, found: &mut Found<'_>) -> bool {
    let sum = count(&row.slice.orig).saturating_add(count(&row.slice.resp));
    found(Reading::Number(sum))
}

fn tunnel_id(row: &Row<'_>, kinds: &[TunnelKind], found: &mut Found<'_>) -> bool {
    let tunnel = row.slice.tunnel.filter(|tunnel| kinds.contains(&tunnel.kind));
    number(tunnel.map(|tunnel| tunnel.id), found)
}

#[cfg(test)]
mod tests;
