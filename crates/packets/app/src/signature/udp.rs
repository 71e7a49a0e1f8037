//! The signatures of what goes over UDP. The first that is sure decides, so the certain and the
//! frequent come first.

use wire::App;

use super::rule::Part::{Bits, In, Is};
use super::rule::Proof::{OnPort, Series, Sure, Weak};
use super::rule::{Rule, rule};
use super::{ber, database, dns, industry, media, system, text, tls, tunnel};

pub(super) static RULES: &[Rule] = &[
    rule(App::Dnscrypt, Sure, &[Is(12, b"\x012\x0ddnscrypt-cert")]),
    rule(App::Netbiosns, OnPort, &[Is(12, &[32])]).len(50, 1500).when(dns::netbios),
    rule(App::Mdns, OnPort, &[]).len(12, 9000).when(dns::on_port),
    rule(App::Llmnr, OnPort, &[]).len(12, 9000).when(dns::on_port),
    rule(App::Dns, OnPort, &[]).len(12, 9000).when(dns::on_port),
    rule(App::Quic, Sure, &[Bits(0, 0xc0, 0xc0)]).len(20, 9000).when(tls::quic),
    rule(App::Quic, Sure, &[Bits(0, 0x80, 0x80), Is(1, &[0, 0, 0, 0])])
        .len(11, 1500)
        .when(tls::quic_negotiation),
    rule(App::Quic, Sure, &[Bits(0, 0xf0, 0xc0)]).len(1200, 9000).when(tls::quic_unknown),
    rule(App::Quic, Sure, &[Bits(0, 0xc9, 0x09)]).len(13, 1500).when(tls::gquic),
    rule(App::Stun, Sure, &[Is(4, &media::STUN_COOKIE)]).when(media::stun),
    rule(App::Dtls, Sure, &[In(0, &[20, 21, 22, 23, 24, 25, 26])]).when(tls::dtls),
    rule(App::Dhcp, Sure, &[In(0, &[1, 2]), Is(1, &[1, 6])]).len(240, 9000).is(system::dhcp),
    rule(App::Dhcp, OnPort, &[In(0, &[1, 2]), Is(1, &[1, 6])]).len(240, 9000).when(system::bootp),
    rule(App::Bittorrent, Sure, &[Is(0, b"BT-SEARCH * HTTP/1.1")]),
    rule(App::Ssdp, Sure, &[In(0, b"MNSH")]).line(text::ssdp),
    rule(App::Sip, Sure, &[Bits(0, 0xe0, 0x40)]).line(text::sip),
    rule(App::Http, Sure, &[Bits(0, 0xe0, 0x40)]).line(text::http),
    rule(App::Netbiosdgm, Sure, &[Bits(0, 0xf8, 0x10), Is(14, &[32])])
        .len(60, 1500)
        .when(dns::netbios_datagram),
    rule(App::Ntp, OnPort, &[]).len(8, 1500).when(system::ntp),
    rule(App::Dhcpv6, OnPort, &[]).len(8, 1500).when(system::dhcpv6),
    rule(App::Snmp, Sure, &[Is(0, &[0x30])]).len(20, 65_535).when(ber::snmp),
    rule(App::Cldap, Sure, &[Is(0, &[0x30])]).when(ber::ldap_certain),
    rule(App::Cldap, OnPort, &[Is(0, &[0x30])]).when(ber::ldap_likely),
    rule(App::Kerberos, Sure, &[Bits(0, 0xe0, 0x60)]).when(ber::kerberos),
    rule(App::Radius, OnPort, &[Bits(0, 0xc0, 0)]).len(20, 4096).when(system::radius),
    rule(App::Syslog, OnPort, &[Is(0, b"<")]).line(text::syslog),
    rule(App::Syslog, Sure, &[Is(0, b"<")]).line(text::syslog_dated),
    rule(App::Tftp, Sure, &[Is(0, &[0]), In(1, &[1, 2])]).when(text::tftp),
    rule(App::Bittorrent, Sure, &[Is(0, b"d")]).is(system::dht),
    rule(App::Bittorrent, Sure, &[Is(0, &[0x41])]).len(20, 64).when(system::utp_first),
    rule(App::Bittorrent, Sure, &[Is(0, &[0, 0, 4, 0x17, 0x27, 0x10, 0x19, 0x80])]).len(16, 16),
    rule(App::Wireguard, Sure, &[Is(0, &[1, 0, 0, 0])]).len(148, 148).when(tunnel::wireguard_first),
    rule(App::Wireguard, Sure, &[Is(0, &[2, 0, 0, 0])]).len(92, 92).when(tunnel::wireguard_answer),
    rule(App::Wireguard, Weak, &[Is(0, &[4, 0, 0, 0])]).len(32, 9000).is(tunnel::wireguard_data),
    rule(App::Openvpn, Sure, &[In(0, &[0x38, 0x50])]).when(tunnel::openvpn_client),
    rule(App::Openvpn, Sure, &[Is(0, &[0x40])]).when(tunnel::openvpn_server),
    rule(App::Ike, Sure, &[]).len(28, 65_535).when(tunnel::ike),
    rule(App::Ike, Sure, &[Is(0, &[0; 4])]).len(32, 65_535).when(tunnel::ike_behind_nat),
    rule(App::L2tp, OnPort, &[Bits(0, 0xc8, 0xc8), Bits(1, 0x0f, 2)]).when(tunnel::l2tp),
    rule(App::Gtp, OnPort, &[Bits(0, 0xe0, 0x20)]).len(8, 9000).when(tunnel::gtp1),
    rule(App::Gtp, OnPort, &[Bits(0, 0xe0, 0)]).len(20, 1500).when(tunnel::gtp1),
    rule(App::Gtp, OnPort, &[Bits(0, 0xe7, 0x40)]).when(tunnel::gtp2),
    rule(App::Rtcp, Sure, &[Bits(0, 0xc0, 0x80), In(1, &[200, 201])])
        .len(8, 1500)
        .when(media::rtcp),
    rule(App::Rtp, Series(media::rtp), &[Bits(0, 0xc0, 0x80)]).len(12, 9000),
    rule(App::Stun, Weak, &[Is(0, &[0]), In(1, &[1, 2])]).when(media::stun_classic),
    rule(App::Stun, Weak, &[Is(0, &[1])]).when(media::stun_classic),
    rule(App::Mpegts, Sure, &[Is(0, &[0x47])]).is(media::mpegts),
    rule(App::Megaco, Sure, &[In(0, b"M!")]).is(text::megaco),
    rule(App::Mgcp, OnPort, &[]).line(text::mgcp),
    rule(App::Rtsp, Sure, &[Bits(0, 0xe0, 0x40)]).line(text::rtsp),
    rule(App::Sunrpc, Sure, &[]).len(40, 65_535).when(system::rpc),
    rule(App::Sunrpc, OnPort, &[]).len(20, 65_535).when(system::rpc_reply),
    rule(App::Dcerpc, Sure, &[Is(0, &[4])]).len(80, 65_535).when(system::dcerpc_datagram),
    rule(App::Dnp3, Sure, &[Is(0, &[5, 0x64])]).when(industry::dnp3),
    rule(App::Enip, Sure, &[In(0, &[0x63, 0x64, 0x65]), Is(1, &[0])])
        .len(24, 1500)
        .when(industry::enip),
    rule(App::Bacnet, OnPort, &[Is(0, &[0x81])]).when(industry::bacnet),
    rule(App::Someip, Sure, &[]).len(16, 9000).when(industry::someip),
    rule(App::Modbus, OnPort, &[Is(2, &[0, 0, 0])]).len(8, 260).when(industry::modbus),
    rule(App::Netflow, Sure, &[Is(0, &[0])]).len(68, 1500).when(system::netflow),
    rule(App::Netflow, OnPort, &[Is(0, &[0, 9])]).len(24, 9000).when(system::netflow9),
    rule(App::Ipfix, OnPort, &[Is(0, &[0, 10])]).len(20, 9000).when(system::ipfix),
    rule(App::Sflow, Sure, &[Is(0, &[0, 0, 0, 5, 0, 0, 0])]).when(system::sflow),
    rule(App::Ptp, OnPort, &[Bits(1, 0x0f, 2)]).len(34, 1500).when(system::ptp),
    rule(App::Natpmp, OnPort, &[]).len(2, 1100).when(system::natpmp),
    rule(App::Rip, OnPort, &[In(0, &[1, 2]), In(1, &[1, 2])]).is(system::rip),
    rule(App::Slp, OnPort, &[In(0, &[1, 2])]).when(system::slp),
    rule(App::Ipmi, OnPort, &[Is(0, &[6, 0]), In(3, &[6, 7, 0x86, 0x87])]).len(8, 1500),
    rule(App::Capwap, OnPort, &[In(0, &[0, 1])]).len(16, 9000).when(system::capwap),
    rule(App::Coap, OnPort, &[Bits(0, 0xc0, 0x40)]).len(4, 1500).when(system::coap),
    rule(App::Wsd, OnPort, &[Is(0, b"<")]).is(text::wsd),
    rule(App::Dnscrypt, Sure, &[Is(0, b"r6fnvWj8")]),
    rule(App::Dropbox, Sure, &[Is(0, b"{")]).is(system::dropbox),
    rule(App::Spotify, Sure, &[Is(0, b"SpotUdp0")]),
    rule(App::Tailscale, Sure, &[Is(0, b"TS\xf0\x9f\x92\xac")]),
    rule(App::Syncthing, Sure, &[Is(0, &[0x2e, 0xa7, 0xd9, 0x0b])]),
    rule(App::Gnutella, Sure, &[Is(0, b"GND")]).when(system::gnutella),
    rule(App::Gnutella, Sure, &[]).len(23, 1500).when(system::gnutella_message),
    rule(App::Zabbix, Sure, &[Is(0, b"ZBXD")]).when(database::zabbix),
    rule(App::Rdp, OnPort, &[]).len(12, 1500).when(system::rdp_over_udp),
    rule(App::Quic, OnPort, &[Bits(0, 0x80, 0)]).len(1200, 1500).when(tls::gquic_rejection),
    rule(App::Dns, Sure, &[]).len(17, 9000).when(dns::anywhere),
];
