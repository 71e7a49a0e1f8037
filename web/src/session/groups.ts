/** The fields of a session in groups, in the order in which people ask for them. */
export interface Group {
  title: string;
  fields: string[];
}

const words = (text: string) => text.split(/\s+/).filter(Boolean);

const GROUPS: Group[] = [
  {
    title: "Session",
    fields: words(`session_id community_id proto_name proto app app_by state history start_ns end_ns
      duration_ns session_start_ns continues interface interface_name recording
      packets_overwritten provisional`),
  },
  {
    title: "Endpoints",
    fields: words(`orig_ip orig_port resp_ip resp_port vlan vlan_inner mpls tunnel tunnel_id
      tunnel_src tunnel_dst icmp_type icmp_code orig_country resp_country orig_asn resp_asn
      orig_as_name resp_as_name`),
  },
  {
    title: "Amounts",
    fields: words(`orig_packets resp_packets orig_frame_bytes resp_frame_bytes orig_ip_bytes
      resp_ip_bytes orig_payload_bytes resp_payload_bytes truncated_packets fragments`),
  },
  {
    title: "TCP quality",
    fields: words(`handshake_ns orig_retransmitted_packets resp_retransmitted_packets
      orig_retransmitted_bytes resp_retransmitted_bytes orig_out_of_order_packets
      resp_out_of_order_packets orig_resets resp_resets orig_zero_windows resp_zero_windows
      orig_missed_bytes resp_missed_bytes orig_tcp_flags resp_tcp_flags orig_syn_mss resp_syn_mss
      orig_syn_window_scale resp_syn_window_scale orig_syn_sack_permitted
      resp_syn_sack_permitted orig_syn_timestamps resp_syn_timestamps`),
  },
  {
    title: "Names and fingerprints",
    fields: words(`sni alpn alpn_chosen tls_version_name tls_version tls_cipher_name tls_cipher
      ja3 ja3s ja4 ssh_client ssh_server hassh hassh_server app_detail`),
  },
  { title: "DNS", fields: words("dns_names dns_types dns_rcodes dns_answers dns_rtt_ns") },
  {
    title: "HTTP",
    fields: words(`http_host http_method http_path http_status http_user_agent
      http_content_type`),
  },
  {
    title: "Certificate",
    fields: words("cert_subject cert_issuer cert_not_before_ns cert_not_after_ns"),
  },
];

/** Groups with at least one of these fields. What belongs to none comes last. */
export function grouping(present: string[]): Group[] {
  const known = new Set(GROUPS.flatMap((group) => group.fields));
  const others = present.filter((name) => !known.has(name));
  return [...GROUPS, { title: "Other", fields: others }]
    .map(({ title, fields }) => ({
      title,
      fields: fields.filter((name) => present.includes(name)),
    }))
    .filter((group) => group.fields.length > 0);
}

const TCP_FLAGS = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];

/** 18 as "SYN ACK". */
export const flagNames = (flags: number) =>
  TCP_FLAGS.filter((_, bit) => (flags & (1 << bit)) !== 0).join(" ");
