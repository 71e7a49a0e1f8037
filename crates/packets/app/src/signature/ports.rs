//! The ports at which a protocol is at home (IANA, Service Name and Port Number Registry, and where
//! it has none, the port that its makers name). They confirm what payload alone does not prove.

use std::sync::LazyLock;

use wire::App;

use super::payload::{Carrier, Payload};

/// Over TCP.
fn over_tcp(app: App) -> &'static [u16] {
    match app {
        App::Adb => &[5555],
        App::Amqp => &[5672],
        App::Bgp => &[179],
        App::Bitcoin => &[8333, 18333],
        App::Bittorrent => &[6881],
        App::Dcerpc => &[135, 593],
        App::Diameter => &[3868],
        App::Dnp3 => &[20000],
        App::Dns => &[53],
        App::Enip => &[44818],
        App::Ftp => &[21],
        App::H323 => &[1720],
        App::Http => &[80, 8080],
        App::Http2 => &[80],
        App::Iec104 => &[2404],
        App::Imap => &[143],
        App::Irc => &[194, 6667],
        App::Kerberos => &[88],
        App::Ldap => &[389, 3268],
        App::Llmnr => &[5355],
        App::Modbus => &[502],
        App::Mongodb => &[27017],
        App::Mqtt => &[1883],
        App::Mysql => &[3306],
        App::Netbiosssn => &[139],
        App::Nntp => &[119],
        App::Opcua => &[4840],
        App::Openvpn => &[1194],
        App::Oracle => &[1521],
        App::Pop3 => &[110],
        App::Postgresql => &[5432],
        App::Rdp => &[3389],
        App::Redis => &[6379],
        App::Rtmp => &[1935],
        App::Rtsp => &[554],
        App::S7comm => &[102],
        App::Sip => &[5060],
        App::Slp => &[427],
        App::Smb => &[445],
        App::Smpp => &[2775],
        App::Smtp => &[25, 587],
        App::Socks => &[1080],
        App::Someip => &[30490],
        App::Ssh => &[22],
        App::Stun => &[3478],
        App::Sunrpc => &[111, 2049],
        App::Tds => &[1433],
        App::Telnet => &[23],
        App::Tls => &[443, 465, 636, 853, 993, 995],
        App::Xmpp => &[5222, 5269],
        App::Zabbix => &[10050, 10051],
        _ => &[],
    }
}

/// Over UDP.
fn over_udp(app: App) -> &'static [u16] {
    match app {
        App::Bacnet => &[47808],
        App::Bittorrent => &[6881],
        App::Capwap => &[5246],
        App::Cldap => &[389],
        App::Coap => &[5683],
        App::Dcerpc => &[135],
        App::Dhcp => &[67, 68],
        App::Dhcpv6 => &[546, 547],
        App::Dnp3 => &[20000],
        App::Dns => &[53],
        App::Enip => &[44818],
        App::Gtp => &[2123, 2152, 3386],
        App::H323 => &[1719],
        App::Ike => &[500, 4500],
        App::Ipfix => &[4739, 2055, 9995, 9996],
        App::Ipmi => &[623],
        App::Kerberos => &[88],
        App::L2tp => &[1701],
        App::Llmnr => &[5355],
        App::Mdns => &[5353],
        App::Mgcp => &[2427, 2727],
        App::Modbus => &[502],
        App::Natpmp => &[5350, 5351],
        App::Netbiosdgm => &[138],
        App::Netbiosns => &[137],
        App::Netflow => &[2055, 9995, 9996],
        App::Ntp => &[123],
        App::Openvpn => &[1194],
        App::Ptp => &[319, 320],
        App::Quic => &[443],
        App::Radius => &[1812, 1813, 1645, 1646, 3799],
        App::Rdp => &[3389],
        App::Rip => &[520],
        App::Sflow => &[6343],
        App::Sip => &[5060],
        App::Slp => &[427],
        App::Snmp => &[161, 162],
        App::Someip => &[30490],
        App::Ssdp => &[1900],
        App::Stun => &[3478, 19302],
        App::Sunrpc => &[111, 2049],
        App::Syslog => &[514],
        App::Tftp => &[69],
        App::Wireguard => &[51820],
        App::Wsd => &[3702],
        _ => &[],
    }
}

/// The ports of a protocol.
pub(super) fn over(app: App, carrier: Carrier) -> &'static [u16] {
    match carrier {
        Carrier::Tcp => over_tcp(app),
        Carrier::Udp => over_udp(app),
    }
}

/// Whether either end has a port of the protocol.
pub(super) fn is_on_own(app: App, payload: &Payload<'_>) -> bool {
    payload.is_on(over(app, payload.carrier))
}

/// Each port once, in their order, with the protocol that is at home there.
static AT_HOME: [LazyLock<Vec<(u16, App)>>; 2] =
    [LazyLock::new(|| homes(Carrier::Tcp)), LazyLock::new(|| homes(Carrier::Udp))];

/// Of several at one port the first.
fn homes(carrier: Carrier) -> Vec<(u16, App)> {
    let of = |&app: &App| over(app, carrier).iter().map(move |&port| (port, app));
    let mut homes: Vec<(u16, App)> = App::ALL.iter().flat_map(of).collect();
    homes.sort_by_key(|(port, _)| *port);
    homes.dedup_by_key(|(port, _)| *port);
    homes
}

/// The protocol that is at home at a responder's port.
pub(super) fn at_home(carrier: Carrier, port: u16) -> Option<App> {
    let [tcp, udp] = &AT_HOME;
    let homes = if carrier == Carrier::Tcp { tcp } else { udp };
    let place = homes.binary_search_by_key(&port, |(port, _)| *port).ok()?;
    homes.get(place).map(|(_, app)| *app)
}
