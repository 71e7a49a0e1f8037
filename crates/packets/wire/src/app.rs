//! The application protocols that a session may have, and how one was recognised.
//!
//! The words are those of queries, JSON and the Parquet columns `app` and `app_by`
//! (docs/protocols.md).

macro_rules! apps {
    ($($variant:ident $name:literal $alias:tt $doc:literal)*) => {
        /// An application protocol.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum App {
            $(#[doc = $doc] $variant,)*
        }

        impl App {
            /// Every protocol.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The word for it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Other words that people use for it, in lower case.
            pub fn aliases(self) -> &'static [&'static str] {
                match self {
                    $(Self::$variant => &$alias,)*
                }
            }
        }
    };
}

apps! {
    Adb "adb" [] "Android Debug Bridge"
    Amqp "amqp" ["rabbitmq"] "AMQP 0-9 and 1.0"
    Bacnet "bacnet" [] "BACnet/IP"
    Bgp "bgp" [] "Border Gateway Protocol"
    Bitcoin "bitcoin" [] "Bitcoin's network"
    Bittorrent "bittorrent" ["bt", "utp", "dht"] "`BitTorrent`: peers, uTP, DHT and UDP trackers"
    Capwap "capwap" [] "CAPWAP control"
    Cldap "cldap" [] "LDAP over UDP"
    Coap "coap" [] "Constrained Application Protocol"
    Dcerpc "dcerpc" ["msrpc", "dce_rpc"] "DCE/RPC"
    Dhcp "dhcp" ["bootp", "dhcpv4"] "DHCP and BOOTP"
    Dhcpv6 "dhcpv6" ["dhcp6"] "DHCP for IPv6"
    Diameter "diameter" [] "Diameter"
    Dnp3 "dnp3" [] "DNP3"
    Dns "dns" ["domain"] "DNS"
    Dnscrypt "dnscrypt" [] "`DNSCrypt`"
    Dropbox "dropbox" [] "Dropbox's search for others in a LAN"
    Dtls "dtls" [] "TLS over datagrams"
    Elasticsearch "elasticsearch" [] "Elasticsearch between nodes"
    Enip "enip" ["ethernetip", "cip"] "EtherNet/IP"
    Ftp "ftp" [] "FTP, its control connection"
    Gnutella "gnutella" [] "Gnutella"
    Gtp "gtp" ["gtp-c"] "GTP control, and GTP' of charging"
    H323 "h323" ["h225"] "H.323 call signalling"
    Http "http" ["http1"] "HTTP/1"
    Http2 "http2" ["h2", "h2c", "http/2"] "HTTP/2 in the clear"
    Iec104 "iec104" ["iec60870"] "IEC 60870-5-104"
    Ike "ike" ["isakmp", "ipsec"] "IKE of `IPsec`"
    Imap "imap" ["imap4"] "IMAP"
    Ipfix "ipfix" [] "IPFIX"
    Ipmi "ipmi" ["rmcp"] "RMCP of IPMI and ASF"
    Irc "irc" [] "Internet Relay Chat"
    Kerberos "kerberos" ["krb5", "krb"] "Kerberos 5"
    L2tp "l2tp" [] "L2TP control"
    Ldap "ldap" [] "LDAP"
    Llmnr "llmnr" [] "Link-Local Multicast Name Resolution"
    Mdns "mdns" ["bonjour"] "Multicast DNS"
    Megaco "megaco" ["h248"] "Megaco in text"
    Mgcp "mgcp" [] "Media Gateway Control Protocol"
    Modbus "modbus" [] "Modbus/TCP"
    Mongodb "mongodb" ["mongo"] "`MongoDB`"
    Mpegts "mpegts" [] "MPEG transport stream"
    Mqtt "mqtt" [] "MQTT"
    Mysql "mysql" ["mariadb"] "`MySQL`"
    Natpmp "nat-pmp" ["natpmp", "pcp"] "NAT-PMP and PCP"
    Netbiosdgm "netbios-dgm" ["nbdgm", "nbds"] "`NetBIOS` datagrams"
    Netbiosns "netbios-ns" ["nbns"] "`NetBIOS` names"
    Netbiosssn "netbios-ssn" ["nbss"] "`NetBIOS` sessions"
    Netflow "netflow" ["cflow"] "`NetFlow` 1, 5, 7 and 9"
    Nntp "nntp" ["usenet"] "NNTP"
    Ntp "ntp" [] "Network Time Protocol"
    Opcua "opcua" ["opc-ua"] "OPC UA in its binary form"
    Openvpn "openvpn" [] "`OpenVPN`"
    Oracle "oracle" ["tns"] "Oracle's TNS"
    Pop3 "pop3" ["pop"] "POP3"
    Postgresql "postgresql" ["postgres", "pgsql"] "`PostgreSQL`"
    Ptp "ptp" [] "Precision Time Protocol 2"
    Quic "quic" [] "QUIC, Google's versions too"
    Radius "radius" [] "RADIUS"
    Rdp "rdp" [] "Remote Desktop Protocol"
    Redis "redis" ["resp"] "Redis"
    Rip "rip" [] "RIP"
    Rtcp "rtcp" [] "RTP Control Protocol"
    Rtmp "rtmp" [] "RTMP"
    Rtp "rtp" ["srtp"] "RTP, encrypted or not"
    Rtsp "rtsp" [] "RTSP"
    S7comm "s7comm" ["s7"] "Siemens S7 and S7-plus"
    Sflow "sflow" [] "sFlow 5"
    Sip "sip" [] "SIP"
    Slp "slp" ["srvloc"] "Service Location Protocol"
    Smb "smb" ["smb1", "smb2", "smb3", "cifs"] "SMB 1 to 3"
    Smpp "smpp" [] "SMPP"
    Smtp "smtp" [] "SMTP"
    Snmp "snmp" [] "SNMP 1 to 3"
    Socks "socks" ["socks4", "socks5"] "SOCKS 4 and 5"
    Someip "someip" ["some/ip"] "SOME/IP"
    Spotify "spotify" [] "Spotify's search for others in a LAN"
    Ssdp "ssdp" ["upnp"] "SSDP of `UPnP`"
    Ssh "ssh" [] "SSH"
    Stun "stun" ["turn"] "STUN and TURN"
    Sunrpc "sunrpc" ["rpc", "nfs", "portmap", "oncrpc"] "ONC RPC: NFS, portmap and others"
    Syncthing "syncthing" [] "Syncthing's local discovery"
    Syslog "syslog" [] "syslog"
    Tailscale "tailscale" [] "Tailscale's discovery of paths"
    Tds "tds" ["mssql"] "TDS of SQL Server and Sybase"
    Telnet "telnet" [] "Telnet"
    Tftp "tftp" [] "TFTP: a request"
    Thrift "thrift" [] "Thrift in its strict binary form"
    Tls "tls" ["ssl"] "SSL 2 to TLS 1.3"
    Vnc "vnc" ["rfb"] "VNC's RFB"
    Wireguard "wireguard" ["wg"] "`WireGuard`"
    Wsd "wsd" ["ws-discovery"] "WS-Discovery"
    Xmpp "xmpp" ["jabber"] "XMPP"
    Zabbix "zabbix" [] "Zabbix"
}

impl App {
    /// The protocol of this name, exactly.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|app| app.name() == name)
    }

    /// The protocol that a person means: its name or another word for it, in any case.
    pub fn meant_by(word: &str) -> Option<Self> {
        let is_it = |name: &str| name.eq_ignore_ascii_case(word);
        Self::ALL.iter().copied().find(|app| {
            is_it(app.name()) || app.aliases().iter().any(|alias| alias.eq_ignore_ascii_case(word))
        })
    }
}

/// How a protocol was recognised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AppBy {
    /// By the payload, whatever the ports.
    Content,
    /// By payload that alone could be something else, on the protocol's own port.
    PortAndContent,
    /// By the port alone, as none of the payload was seen.
    Port,
}

impl AppBy {
    /// Every way of recognising.
    pub const ALL: [Self; 3] = [Self::Content, Self::PortAndContent, Self::Port];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::PortAndContent => "port+content",
            Self::Port => "port",
        }
    }

    /// The way of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.name() == name)
    }
}

/// A protocol and how it was recognised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recognised {
    /// The protocol.
    pub app: App,
    /// How the protocol was recognised.
    pub by: AppBy,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_word_means_one_protocol() {
        let mut words = BTreeSet::new();
        for &app in App::ALL {
            assert_eq!(App::of_name(app.name()), Some(app));
            for word in app.aliases().iter().chain([&app.name()]) {
                assert!(words.insert(*word), "{word} twice");
                assert_eq!(App::meant_by(&word.to_uppercase()), Some(app));
            }
        }
        assert_eq!((App::of_name("TLS"), App::meant_by("no such")), (None, None));
    }
}
