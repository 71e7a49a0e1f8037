-- Tables and views over an archive: run by deploy/trino/engine, statement by statement, in one
-- catalog and schema. ${ARCHIVE} is where the archive is. Columns: docs/archive.md.

CREATE SCHEMA IF NOT EXISTS ${SCHEMA};

CREATE TABLE IF NOT EXISTS session_files (
  volume VARCHAR,
  session_id VARCHAR,
  community_id VARCHAR,
  proto BIGINT,
  proto_name VARCHAR,
  orig_ip VARCHAR,
  orig_port BIGINT,
  resp_ip VARCHAR,
  resp_port BIGINT,
  vlan BIGINT,
  vlan_inner BIGINT,
  mpls BIGINT,
  tunnel VARCHAR,
  tunnel_id BIGINT,
  tunnel_src VARCHAR,
  tunnel_dst VARCHAR,
  icmp_type BIGINT,
  icmp_code BIGINT,
  session_start_ns BIGINT,
  start_ns BIGINT,
  end_ns BIGINT,
  duration_ns BIGINT,
  orig_packets BIGINT,
  resp_packets BIGINT,
  orig_frame_bytes BIGINT,
  resp_frame_bytes BIGINT,
  orig_ip_bytes BIGINT,
  resp_ip_bytes BIGINT,
  orig_payload_bytes BIGINT,
  resp_payload_bytes BIGINT,
  state VARCHAR,
  history VARCHAR,
  continues BOOLEAN,
  handshake_ns BIGINT,
  orig_tcp_flags BIGINT,
  resp_tcp_flags BIGINT,
  orig_retransmitted_packets BIGINT,
  resp_retransmitted_packets BIGINT,
  orig_retransmitted_bytes BIGINT,
  resp_retransmitted_bytes BIGINT,
  orig_out_of_order_packets BIGINT,
  resp_out_of_order_packets BIGINT,
  orig_resets BIGINT,
  resp_resets BIGINT,
  orig_zero_windows BIGINT,
  resp_zero_windows BIGINT,
  orig_missed_bytes BIGINT,
  resp_missed_bytes BIGINT,
  orig_syn_mss BIGINT,
  resp_syn_mss BIGINT,
  orig_syn_window_scale BIGINT,
  resp_syn_window_scale BIGINT,
  orig_syn_sack_permitted BOOLEAN,
  resp_syn_sack_permitted BOOLEAN,
  orig_syn_timestamps BOOLEAN,
  resp_syn_timestamps BOOLEAN,
  truncated_packets BIGINT,
  fragments BIGINT,
  interface BIGINT,
  interface_name VARCHAR,
  recording VARCHAR,
  app VARCHAR,
  app_by VARCHAR,
  sni VARCHAR,
  alpn ARRAY(VARCHAR),
  alpn_chosen VARCHAR,
  tls_version BIGINT,
  tls_version_name VARCHAR,
  tls_cipher BIGINT,
  tls_cipher_name VARCHAR,
  ja3 VARCHAR,
  ja3s VARCHAR,
  ja4 VARCHAR,
  cert_subject VARCHAR,
  cert_issuer VARCHAR,
  cert_not_before_ns BIGINT,
  cert_not_after_ns BIGINT,
  http_host ARRAY(VARCHAR),
  http_method ARRAY(VARCHAR),
  http_path ARRAY(VARCHAR),
  http_status ARRAY(BIGINT),
  http_user_agent ARRAY(VARCHAR),
  http_content_type ARRAY(VARCHAR),
  dns_names ARRAY(VARCHAR),
  dns_types ARRAY(BIGINT),
  dns_rcodes ARRAY(BIGINT),
  dns_answers ARRAY(VARCHAR),
  dns_rtt_ns BIGINT,
  ssh_client VARCHAR,
  ssh_server VARCHAR,
  hassh VARCHAR,
  hassh_server VARCHAR,
  app_detail ARRAY(VARCHAR),
  sensor VARCHAR,
  date VARCHAR,
  hour VARCHAR
) WITH (
  external_location = '${ARCHIVE}/sessions',
  format = 'PARQUET',
  partitioned_by = ARRAY['sensor', 'date', 'hour']
);

CREATE TABLE IF NOT EXISTS loss_files (
  volume VARCHAR,
  cause VARCHAR,
  interface BIGINT,
  packets BIGINT,
  bytes BIGINT,
  from_ns BIGINT,
  to_ns BIGINT,
  slots BIGINT,
  first_stripe VARCHAR,
  last_stripe VARCHAR,
  sensor VARCHAR,
  date VARCHAR
) WITH (
  external_location = '${ARCHIVE}/losses',
  format = 'PARQUET',
  partitioned_by = ARRAY['sensor', 'date']
);

-- Times as an engine shows them, beside the nanoseconds.
CREATE OR REPLACE VIEW sessions AS
SELECT *, from_unixtime_nanos(start_ns) AS start_time, from_unixtime_nanos(end_ns) AS end_time
FROM session_files;

CREATE OR REPLACE VIEW losses AS
SELECT *, from_unixtime_nanos(from_ns) AS from_time, from_unixtime_nanos(to_ns) AS to_time
FROM loss_files;

-- One row for each name that a session asked for.
CREATE OR REPLACE VIEW dns AS
SELECT sensor, date, hour, volume, session_id, from_unixtime_nanos(start_ns) AS start_time,
  start_ns, end_ns, orig_ip, resp_ip, resp_port, translate(name, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ',
  'abcdefghijklmnopqrstuvwxyz') AS name, dns_types, dns_rcodes, dns_answers, dns_rtt_ns
FROM session_files CROSS JOIN UNNEST(dns_names) AS asked(name);

CREATE OR REPLACE VIEW tls AS
SELECT sensor, date, hour, volume, session_id, from_unixtime_nanos(start_ns) AS start_time,
  start_ns, end_ns, orig_ip, orig_port, resp_ip, resp_port,
  translate(sni, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz') AS sni, alpn,
  alpn_chosen, tls_version_name, tls_cipher_name, ja3, ja3s, ja4, cert_subject, cert_issuer,
  from_unixtime_nanos(cert_not_after_ns) AS cert_not_after,
  orig_frame_bytes + resp_frame_bytes AS frame_bytes
FROM session_files WHERE app = 'tls';
