"""The fields of a session. Made by tools/generate.py; change that instead."""

from __future__ import annotations

from typing import TypedDict


class Session(TypedDict, total=False):
    """A session as `wirespool find --json` prints it; absent fields are left out."""

    session_id: str
    """the session's id, as find shows it"""
    community_id: str
    """community id, version 1, seed 0"""
    proto: int
    """IP protocol, or EtherType of a session without IP"""
    proto_name: str
    orig_ip: str
    """address of the originator, the sender of the first packet"""
    resp_ip: str
    """address of the responder"""
    orig_port: int
    """port of the originator (TCP, UDP and SCTP)"""
    resp_port: int
    """port of the responder (TCP, UDP and SCTP)"""
    vlan: int
    """VLAN ids of the first packet, outer and inner"""
    vlan_inner: int
    """inner VLAN id of the first packet"""
    mpls: int
    """outermost MPLS label of the first packet"""
    tunnel: str
    """kind of the outermost tunnel: vxlan, geneve, gre, gtp-u, ..."""
    tunnel_id: int
    """its VNI, TEID, key or session number"""
    tunnel_src: str
    """outer source address of the first packet"""
    tunnel_dst: str
    """outer destination address of the first packet"""
    icmp_type: int
    """type of the first ICMP message"""
    icmp_code: int
    """code of the first ICMP message"""
    session_start_ns: int
    """earliest packet of the session's whole life"""
    start_ns: int
    """its earliest packet"""
    end_ns: int
    """its latest packet"""
    duration_ns: int
    """time from its earliest to its latest packet"""
    orig_packets: int
    """packets from the originator"""
    resp_packets: int
    """packets from the responder"""
    orig_frame_bytes: int
    """the same from the originator"""
    resp_frame_bytes: int
    """the same from the responder"""
    orig_ip_bytes: int
    """the same from the originator"""
    resp_ip_bytes: int
    """the same from the responder"""
    orig_payload_bytes: int
    """the same from the originator"""
    resp_payload_bytes: int
    """the same from the responder"""
    state: str
    """state of the connection in Zeek's words: S0, SF, REJ, ..."""
    history: str
    """Zeek's history letters, upper case from the originator"""
    continues: bool
    """it went on when its last row was written"""
    handshake_ns: int
    """from the SYN to the ACK of the SYN-ACK"""
    orig_retransmitted_packets: int
    """the same from the originator"""
    resp_retransmitted_packets: int
    """the same from the responder"""
    orig_retransmitted_bytes: int
    """the same from the originator"""
    resp_retransmitted_bytes: int
    """the same from the responder"""
    orig_out_of_order_packets: int
    """the same from the originator"""
    resp_out_of_order_packets: int
    """the same from the responder"""
    orig_resets: int
    """the same from the originator"""
    resp_resets: int
    """the same from the responder"""
    orig_zero_windows: int
    """the same from the originator"""
    resp_zero_windows: int
    """the same from the responder"""
    orig_missed_bytes: int
    """the same of the originator's"""
    resp_missed_bytes: int
    """the same of the responder's"""
    orig_tcp_flags: int
    """all TCP flags of the originator, or-ed: FIN 1, SYN 2, RST 4, ACK 16"""
    resp_tcp_flags: int
    """all TCP flags of the responder, or-ed"""
    orig_syn_sack_permitted: bool
    """the originator's SYN permits SACK"""
    resp_syn_sack_permitted: bool
    """the responder's SYN permits SACK"""
    orig_syn_timestamps: bool
    """the originator's SYN offers timestamps"""
    resp_syn_timestamps: bool
    """the responder's SYN offers timestamps"""
    orig_syn_mss: int
    """maximum segment size in the originator's SYN"""
    resp_syn_mss: int
    """maximum segment size in the responder's SYN"""
    orig_syn_window_scale: int
    """window scale in the originator's SYN"""
    resp_syn_window_scale: int
    """window scale in the responder's SYN"""
    truncated_packets: int
    """packets of which less was captured than was on the wire"""
    fragments: int
    """IP fragments"""
    interface: int
    """interface of the first packet, by number"""
    interface_name: str
    """its name"""
    recording: str
    """name of its recording (record --name)"""
    app: str
    """application protocol: tls, http, dns, ... (docs/protocols.md)"""
    app_by: str
    """how the application protocol is known: content, port+content, port"""
    sni: str
    """TLS server name"""
    alpn: list[str]
    """ALPN protocols that the client offers"""
    alpn_chosen: str
    """ALPN protocol that the server chose, up to TLS 1.2"""
    tls_version: int
    """TLS version"""
    tls_version_name: str
    tls_cipher: int
    """TLS cipher suite that the server chose"""
    tls_cipher_name: str
    ja3: str
    """JA3 fingerprint of the client hello"""
    ja3s: str
    """JA3S fingerprint of the server hello"""
    ja4: str
    """JA4 fingerprint of the client hello"""
    cert_subject: str
    """subject of the server's certificate, up to TLS 1.2"""
    cert_issuer: str
    """its issuer"""
    cert_not_before_ns: int
    """its validity begins"""
    cert_not_after_ns: int
    """its validity ends"""
    http_host: list[str]
    """HTTP Host"""
    http_method: list[str]
    """HTTP method"""
    http_path: list[str]
    """HTTP request target"""
    http_status: list[int]
    """HTTP status"""
    http_user_agent: list[str]
    """HTTP User-Agent"""
    http_content_type: list[str]
    """HTTP Content-Type, of requests and responses"""
    dns_names: list[str]
    """DNS names asked for"""
    dns_types: list[int]
    """DNS types asked for"""
    dns_rcodes: list[int]
    """DNS response codes"""
    dns_answers: list[str]
    """addresses and names in DNS answers"""
    dns_rtt_ns: int
    """from the first DNS query to the answer with its id"""
    ssh_client: str
    """SSH identification of the originator"""
    ssh_server: str
    """SSH identification of the responder"""
    hassh: str
    """HASSH fingerprint of the originator's offer"""
    hassh_server: str
    """HASSH fingerprint of the responder's offer"""
    app_detail: list[str]
    """what else the application says, as key=value: smb.tree=..., ftp.user=..., ..."""
    packets_overwritten: str
    provisional: bool


COLUMNS = {
    "session_id": "text",
    "community_id": "text",
    "proto": "integer",
    "proto_name": "text",
    "orig_ip": "text",
    "resp_ip": "text",
    "orig_port": "integer",
    "resp_port": "integer",
    "vlan": "integer",
    "vlan_inner": "integer",
    "mpls": "integer",
    "tunnel": "text",
    "tunnel_id": "integer",
    "tunnel_src": "text",
    "tunnel_dst": "text",
    "icmp_type": "integer",
    "icmp_code": "integer",
    "session_start_ns": "time",
    "start_ns": "time",
    "end_ns": "time",
    "duration_ns": "duration",
    "orig_packets": "integer",
    "resp_packets": "integer",
    "orig_frame_bytes": "integer",
    "resp_frame_bytes": "integer",
    "orig_ip_bytes": "integer",
    "resp_ip_bytes": "integer",
    "orig_payload_bytes": "integer",
    "resp_payload_bytes": "integer",
    "state": "text",
    "history": "text",
    "continues": "flag",
    "handshake_ns": "duration",
    "orig_retransmitted_packets": "integer",
    "resp_retransmitted_packets": "integer",
    "orig_retransmitted_bytes": "integer",
    "resp_retransmitted_bytes": "integer",
    "orig_out_of_order_packets": "integer",
    "resp_out_of_order_packets": "integer",
    "orig_resets": "integer",
    "resp_resets": "integer",
    "orig_zero_windows": "integer",
    "resp_zero_windows": "integer",
    "orig_missed_bytes": "integer",
    "resp_missed_bytes": "integer",
    "orig_tcp_flags": "integer",
    "resp_tcp_flags": "integer",
    "orig_syn_sack_permitted": "flag",
    "resp_syn_sack_permitted": "flag",
    "orig_syn_timestamps": "flag",
    "resp_syn_timestamps": "flag",
    "orig_syn_mss": "integer",
    "resp_syn_mss": "integer",
    "orig_syn_window_scale": "integer",
    "resp_syn_window_scale": "integer",
    "truncated_packets": "integer",
    "fragments": "integer",
    "interface": "integer",
    "interface_name": "text",
    "recording": "text",
    "app": "text",
    "app_by": "text",
    "sni": "text",
    "alpn": "texts",
    "alpn_chosen": "text",
    "tls_version": "integer",
    "tls_version_name": "text",
    "tls_cipher": "integer",
    "tls_cipher_name": "text",
    "ja3": "text",
    "ja3s": "text",
    "ja4": "text",
    "cert_subject": "text",
    "cert_issuer": "text",
    "cert_not_before_ns": "time",
    "cert_not_after_ns": "time",
    "http_host": "texts",
    "http_method": "texts",
    "http_path": "texts",
    "http_status": "integers",
    "http_user_agent": "texts",
    "http_content_type": "texts",
    "dns_names": "texts",
    "dns_types": "integers",
    "dns_rcodes": "integers",
    "dns_answers": "texts",
    "dns_rtt_ns": "duration",
    "ssh_client": "text",
    "ssh_server": "text",
    "hassh": "text",
    "hassh_server": "text",
    "app_detail": "texts",
    "packets_overwritten": "text",
    "provisional": "flag",
}
"""What each field holds: times and durations are in nanoseconds."""
