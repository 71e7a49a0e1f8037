//! The kinds of values that fields of sessions have.

use core::fmt;

/// How the values of a field are written and compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A whole number, decimal or `0x`.
    Count,
    /// A number of bytes; K, M, G and T are powers of 1024.
    Bytes,
    /// A length of time with its unit.
    Duration,
    /// A point in time.
    Time,
    /// Text in which upper and lower case are the same.
    Name,
    /// Text in which they are not.
    Text,
    /// An address or a network.
    Address,
    /// Yes or no.
    Flag,
    /// An IP protocol or an `EtherType`, by name or number.
    Protocol,
    /// A DNS type, by name or number.
    DnsType,
    /// A DNS response code, by name or number.
    DnsRcode,
    /// A TLS version.
    TlsVersion,
    /// A TLS cipher suite, by name or number.
    Cipher,
    /// An application protocol, by any of its words.
    App,
    /// The state of a connection.
    State,
    /// A community id.
    CommunityId,
    /// An interface, by number; a name is one of the field `interface_name`.
    Interface,
}

impl Kind {
    /// Whether `<` and `>` mean anything.
    pub fn is_ordered(self) -> bool {
        matches!(
            self,
            Self::Count
                | Self::Bytes
                | Self::Duration
                | Self::Time
                | Self::TlsVersion
                | Self::Interface
        )
    }

    /// What a value has to be, for messages: "x is not ...".
    pub fn expected(self) -> &'static str {
        match self {
            Self::Count | Self::Interface => "a number",
            Self::Bytes => "a size such as 1500, 64K or 1.5G",
            Self::Duration => "a duration with its unit, such as 200ms, 5m or 1h30m",
            Self::Time => "a time such as 2026-11-20T10:40:22Z, 1795171222 or 3h ago",
            Self::Name | Self::Text => "a text",
            Self::Address => "an IP address, network or station; names are not resolved",
            Self::Flag => "yes or no",
            Self::Protocol => "a protocol's name or number",
            Self::DnsType => "a DNS type such as AAAA, or its number",
            Self::DnsRcode => "a DNS response code such as NXDOMAIN, or its number",
            Self::TlsVersion => "a TLS version such as 1.3",
            Self::Cipher => "a cipher suite such as TLS_AES_128_GCM_SHA256, or its number",
            Self::App => "an application protocol such as dns (docs/protocols.md lists them)",
            Self::State => {
                "a state: S0, S1, S2, S3, SF, REJ, RSTO, RSTR, RSTOS0, RSTRH, SH, SHR or OTH"
            }
            Self::CommunityId => "a community id such as 1:iM/olWEXeq98jWti2NfJIzAOdM8=",
        }
    }
}

/// The kind in one word, for tables.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Count => "number",
            Self::Bytes => "size",
            Self::Duration => "duration",
            Self::Time => "time",
            Self::Name => "name",
            Self::Text => "text",
            Self::Address => "address",
            Self::Flag => "yes/no",
            Self::Protocol => "protocol",
            Self::DnsType => "dns type",
            Self::DnsRcode => "dns rcode",
            Self::TlsVersion => "version",
            Self::Cipher => "cipher suite",
            Self::App => "application",
            Self::State => "state",
            Self::CommunityId => "community id",
            Self::Interface => "interface",
        })
    }
}
