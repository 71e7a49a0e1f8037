//! The fields of a session: one flat table from which queries, their documentation and `wirespool
//! fields` come.
//!
//! A field is named as in JSON and SQL. It may have no value (absent is not empty), one, or
//! several; a comparison holds if it holds for any of them.

mod ends;
mod reading;
mod several;

use std::sync::LazyLock;

use format::kind::Kind;
use format::session_row::{Direction, SessionRow};
use format::stored_field::{STORED_FIELDS, StoredField};

use wire::TunnelKind;

use crate::atlas::Atlas;
use crate::field::ends::{as_name, as_number, country, ends};
use crate::field::reading::{Found, address, given, number};
use crate::field::several::{agreed, source_name};
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
    /// Whether it was found in payload, as all that it is made of.
    pub(crate) is_of_payload: bool,
    reads: Reads,
}

/// Whether a test holds for any of the values that a row has.
type Read = fn(&Row<'_>, &mut Found<'_>) -> bool;

/// How a field finds its values.
#[derive(Clone, Copy, Debug)]
enum Reads {
    /// The row gives them.
    Stored(&'static StoredField),
    /// By a rule of its own.
    By(Read),
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
        match self.reads {
            Reads::Stored(field) => given(field, row, test),
            Reads::By(read) => read(row, test),
        }
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

const fn field(name: &'static str, kind: Kind, meaning: &'static str, read: Read) -> Field {
    let reads = Reads::By(read);
    let (needs_atlas, is_of_payload) = (false, false);
    Field { name, aliases: &[], kind, meaning, sources: &[], needs_atlas, is_of_payload, reads }
}

/// Where a field of the list comes from.
enum Listed {
    /// It is a stored one.
    Stored(&'static str),
    /// It is, made of these columns, and what a row gives is not all.
    ReadAs(&'static str, &'static [&'static str], Read),
    /// It is made of stored ones, which it names, or of what only the index knows.
    Derived(Field),
}

impl Listed {
    fn name(&self) -> &'static str {
        match self {
            Self::Stored(name) | Self::ReadAs(name, ..) => name,
            Self::Derived(field) => field.name,
        }
    }

    fn field(&self) -> Field {
        match *self {
            Self::Stored(name) => of_stored(stored(name)),
            Self::ReadAs(name, sources, read) => {
                Field { reads: Reads::By(read), ..of_stored(stored(name)) }.from(sources)
            }
            Self::Derived(field) => {
                let mut sources = field.sources.iter().map(|name| StoredField::find(name));
                let is_of_payload = !field.sources.is_empty()
                    && sources.all(|source| source.is_some_and(|it| it.is_of_payload));
                Field { is_of_payload, ..field }
            }
        }
    }
}

fn stored(name: &str) -> &'static StoredField {
    StoredField::find(name).expect("the list names fields of the table")
}

/// What rows give is all there is to it.
fn of_stored(stored: &'static StoredField) -> Field {
    let StoredField { name, aliases, kind, meaning, is_of_payload, .. } = *stored;
    let (needs_atlas, reads) = (false, Reads::Stored(stored));
    Field { name, aliases, kind, meaning, sources: &[], needs_atlas, is_of_payload, reads }
}

/// Every field, in the order in which people look for them.
pub static FIELDS: LazyLock<Vec<Field>> = LazyLock::new(|| {
    let is_listed = |name: &str| LISTED.iter().any(|listed| listed.name() == name);
    let more = STORED_FIELDS.iter().filter(|it| it.is_of_payload && !is_listed(it.name));
    LISTED.iter().map(Listed::field).chain(more.map(of_stored)).collect()
});

use Listed::{Derived, ReadAs, Stored};

/// All but those that are found in payload, which follow in the order of the table.
static LISTED: &[Listed] = &[
    Derived(field("session_id", Kind::Text, "the session's id, as find shows it", |row, found| {
        row.ids.iter().any(|id| found(Reading::Text(id)))
    })),
    Derived(
        field(
            "community_id",
            Kind::CommunityId,
            "community id, version 1, seed 0",
            |row, found| row.slice.community_ids().any(|id| found(Reading::Text(&id.0))),
        )
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
    ),
    Stored("proto"),
    Stored("orig_ip"),
    Stored("resp_ip"),
    ReadAs("orig_port", &["proto", "orig_port"], |row, found| {
        has_ports(row) && found(Reading::Number(row.slice.tuple.orig_port.into()))
    }),
    ReadAs("resp_port", &["proto", "resp_port"], |row, found| {
        has_ports(row) && found(Reading::Number(row.slice.tuple.resp_port.into()))
    }),
    Derived(
        field("host", Kind::Address, "either address", |row, found| {
            address(row.slice.tuple.orig, found) || address(row.slice.tuple.resp, found)
        })
        .also(&["ip"])
        .from(&["orig_ip", "resp_ip"]),
    ),
    Derived(
        field("port", Kind::Count, "either port", |row, found| {
            has_ports(row)
                && [row.slice.tuple.orig_port, row.slice.tuple.resp_port]
                    .iter()
                    .any(|&port| found(Reading::Number(port.into())))
        })
        .from(&["proto", "orig_port", "resp_port"]),
    ),
    Derived(
        field(
            "country",
            Kind::Name,
            "country of either address, ISO 3166-1 (--mmdb)",
            |row, found| ends(row).any(|ip| country(row, ip, found)),
        )
        .by_atlas(&["orig_ip", "resp_ip"]),
    ),
    Derived(
        field("orig_country", Kind::Name, "country of the originator's address", |row, found| {
            country(row, row.slice.tuple.orig, found)
        })
        .by_atlas(&["orig_ip"]),
    ),
    Derived(
        field("resp_country", Kind::Name, "country of the responder's address", |row, found| {
            country(row, row.slice.tuple.resp, found)
        })
        .by_atlas(&["resp_ip"]),
    ),
    Derived(
        field("asn", Kind::Count, "autonomous system of either address (--mmdb)", |row, found| {
            ends(row).any(|ip| as_number(row, ip, found))
        })
        .by_atlas(&["orig_ip", "resp_ip"]),
    ),
    Derived(
        field("orig_asn", Kind::Count, "that of the originator's address", |row, found| {
            as_number(row, row.slice.tuple.orig, found)
        })
        .by_atlas(&["orig_ip"]),
    ),
    Derived(
        field("resp_asn", Kind::Count, "that of the responder's address", |row, found| {
            as_number(row, row.slice.tuple.resp, found)
        })
        .by_atlas(&["resp_ip"]),
    ),
    Derived(
        field("as_name", Kind::Name, "name of either address's autonomous system", |row, found| {
            ends(row).any(|ip| as_name(row, ip, found))
        })
        .by_atlas(&["orig_ip", "resp_ip"]),
    ),
    Derived(
        field("orig_as_name", Kind::Name, "that of the originator's address", |row, found| {
            as_name(row, row.slice.tuple.orig, found)
        })
        .by_atlas(&["orig_ip"]),
    ),
    Derived(
        field("resp_as_name", Kind::Name, "that of the responder's address", |row, found| {
            as_name(row, row.slice.tuple.resp, found)
        })
        .by_atlas(&["resp_ip"]),
    ),
    Derived(
        field("tag", Kind::Name, "what an alert or a notice said of it (--tags)", |row, found| {
            row.atlas.is_some_and(|atlas| atlas.tags(row.ids).any(|tag| found(Reading::Name(tag))))
        })
        .also(&["tags"])
        .by_atlas(&["session_id"]),
    ),
    ReadAs("vlan", &["vlan", "vlan_inner"], |row, found| {
        row.slice.vlan.iter().flatten().any(|&id| found(Reading::Number(id.into())))
    }),
    Stored("vlan_inner"),
    Stored("mpls"),
    Stored("tunnel"),
    Stored("tunnel_id"),
    Stored("tunnel_src"),
    Stored("tunnel_dst"),
    Derived(
        field("vni", Kind::Count, "VNI of a VXLAN or GENEVE tunnel", |row, found| {
            tunnel_id(row, &[TunnelKind::Vxlan, TunnelKind::VxlanGpe, TunnelKind::Geneve], found)
        })
        .from(&["tunnel", "tunnel_id"]),
    ),
    Derived(
        field("teid", Kind::Count, "TEID of a GTP-U tunnel", |row, found| {
            tunnel_id(row, &[TunnelKind::GtpU], found)
        })
        .from(&["tunnel", "tunnel_id"]),
    ),
    Stored("icmp_type"),
    Stored("icmp_code"),
    Derived(
        field(
            "session_start_ns",
            Kind::Time,
            "earliest packet of the session's whole life",
            |row, found| found(Reading::Time(row.slice.session_start)),
        )
        .also(&["session_start"])
        .from(&["session_age_ns", "start_ns"]),
    ),
    ReadAs("session_age_ns", &["session_age_ns", "start_ns"], |row, found| {
        found(Reading::Number(nanos(row.slice.start.since(row.slice.session_start))))
    }),
    Stored("start_ns"),
    Derived(
        field("end_ns", Kind::Time, "its latest packet", |row, found| {
            found(Reading::Time(row.slice.end))
        })
        .also(&["end"])
        .from(&["duration_ns", "start_ns"]),
    ),
    ReadAs("duration_ns", &["duration_ns", "start_ns"], |row, found| {
        found(Reading::Number(nanos(row.slice.end.since(row.slice.start))))
    }),
    Derived(
        field("packets", Kind::Count, "packets, both ways", |row, found| {
            both(row, |side| side.packets, found)
        })
        .from(&["orig_packets", "resp_packets"]),
    ),
    Stored("orig_packets"),
    Stored("resp_packets"),
    Derived(
        field(
            "frame_bytes",
            Kind::Bytes,
            "bytes on the wire with the link layer, both ways",
            |row, found| both(row, |side| side.frame_bytes, found),
        )
        .also(&["bytes"])
        .from(&["orig_frame_bytes", "resp_frame_bytes"]),
    ),
    Stored("orig_frame_bytes"),
    Stored("resp_frame_bytes"),
    Derived(
        field(
            "ip_bytes",
            Kind::Bytes,
            "bytes of the innermost IP packets, both ways",
            |row, found| both(row, |side| side.ip_bytes, found),
        )
        .from(&["orig_ip_bytes", "resp_ip_bytes"]),
    ),
    Stored("orig_ip_bytes"),
    Stored("resp_ip_bytes"),
    Derived(
        field(
            "payload_bytes",
            Kind::Bytes,
            "bytes of transport payload, both ways",
            |row, found| both(row, |side| side.payload_bytes, found),
        )
        .from(&["orig_payload_bytes", "resp_payload_bytes"]),
    ),
    Stored("orig_payload_bytes"),
    Stored("resp_payload_bytes"),
    Stored("state"),
    Stored("history"),
    Stored("continues"),
    Stored("handshake_ns"),
    Derived(
        field(
            "retransmitted_packets",
            Kind::Count,
            "TCP segments whose payload had been seen before, both ways",
            |row, found| both(row, |side| side.retransmitted_packets, found),
        )
        .also(&["tcp.retransmitted", "tcp_retransmitted"])
        .from(&["orig_retransmitted_packets", "resp_retransmitted_packets"]),
    ),
    Stored("orig_retransmitted_packets"),
    Stored("resp_retransmitted_packets"),
    Derived(
        field(
            "retransmitted_bytes",
            Kind::Bytes,
            "payload bytes of those, both ways",
            |row, found| both(row, |side| side.retransmitted_bytes, found),
        )
        .from(&["orig_retransmitted_bytes", "resp_retransmitted_bytes"]),
    ),
    Stored("orig_retransmitted_bytes"),
    Stored("resp_retransmitted_bytes"),
    Derived(
        field(
            "out_of_order_packets",
            Kind::Count,
            "TCP segments with new payload that came after later ones, both ways",
            |row, found| both(row, |side| side.out_of_order_packets, found),
        )
        .also(&["tcp.out_of_order", "tcp_out_of_order"])
        .from(&["orig_out_of_order_packets", "resp_out_of_order_packets"]),
    ),
    Stored("orig_out_of_order_packets"),
    Stored("resp_out_of_order_packets"),
    Derived(
        field("resets", Kind::Count, "TCP segments with RST, both ways", |row, found| {
            both(row, |side| side.resets, found)
        })
        .also(&["tcp.resets", "tcp_resets"])
        .from(&["orig_resets", "resp_resets"]),
    ),
    Stored("orig_resets"),
    Stored("resp_resets"),
    Derived(
        field(
            "zero_windows",
            Kind::Count,
            "TCP segments with a window of zero, both ways",
            |row, found| both(row, |side| side.zero_windows, found),
        )
        .also(&["tcp.zero_windows"])
        .from(&["orig_zero_windows", "resp_zero_windows"]),
    ),
    Stored("orig_zero_windows"),
    Stored("resp_zero_windows"),
    Derived(
        field(
            "missed_bytes",
            Kind::Bytes,
            "bytes acknowledged but never seen, both ways",
            |row, found| both(row, |side| side.missed_bytes, found),
        )
        .also(&["tcp.missed_bytes"])
        .from(&["orig_missed_bytes", "resp_missed_bytes"]),
    ),
    Stored("orig_missed_bytes"),
    Stored("resp_missed_bytes"),
    Stored("orig_tcp_flags"),
    Stored("resp_tcp_flags"),
    Derived(
        field(
            "tcp_sack",
            Kind::Flag,
            "both SYNs permit SACK; no as soon as one seen does not",
            |row, found| agreed(row, |options| options.sack_permitted, found),
        )
        .also(&["tcp.sack"])
        .from(&["orig_syn_sack_permitted", "resp_syn_sack_permitted"]),
    ),
    Stored("orig_syn_sack_permitted"),
    Stored("resp_syn_sack_permitted"),
    Derived(
        field(
            "tcp_timestamps",
            Kind::Flag,
            "both SYNs offer timestamps; no as soon as one seen does not",
            |row, found| agreed(row, |options| options.timestamps, found),
        )
        .also(&["tcp.timestamps"])
        .from(&["orig_syn_timestamps", "resp_syn_timestamps"]),
    ),
    Stored("orig_syn_timestamps"),
    Stored("resp_syn_timestamps"),
    Stored("orig_syn_mss"),
    Stored("resp_syn_mss"),
    Stored("orig_syn_window_scale"),
    Stored("resp_syn_window_scale"),
    Stored("truncated_packets"),
    Stored("fragments"),
    Stored("interface"),
    Derived(
        field("interface_name", Kind::Text, "its name", |row, found| {
            source_name(row, |source| source.interface.as_deref(), found)
        })
        .also(&["frame.interface_name", "ifname"])
        .from(&["interface"]),
    ),
    Derived(
        field("recording", Kind::Text, "name of its recording (record --name)", |row, found| {
            source_name(row, |source| source.recording.as_deref(), found)
        })
        .from(&["interface"]),
    ),
    Stored("app"),
    Stored("app_by"),
    Derived(
        field("name", Kind::Name, "any of sni, http_host and dns_names", |row, found| {
            let own = &row.slice.names;
            own.sni.as_deref().is_some_and(|name| found(Reading::Name(name)))
                || names(&own.http_host, found)
                || names(&own.dns_names, found)
        })
        .from(&["sni", "http_host", "dns_names"]),
    ),
];

fn nanos(signed: i64) -> u64 {
    u64::try_from(signed).unwrap_or(0)
}

fn names(values: &[String], found: &mut Found<'_>) -> bool {
    values.iter().any(|value| found(Reading::Name(value)))
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
