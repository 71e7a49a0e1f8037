/** The answers of the recorder's HTTP interface, as far as the page reads them. */

export interface Whoami {
  name: string;
  scopes: string[];
  filter: string | null;
  /** Null for a token or a certificate. */
  person: Standing | null;
  /** Somebody who has logged in at the identity provider. */
  guest: { role: string; subject: string } | null;
  /** Address of the page at which keys can be used. */
  keys_at: string | null;
  /** The files that the service has. */
  manages: {
    people: boolean;
    tokens: boolean;
    audit: boolean;
    requests: boolean;
    /** Packets are decoded by tshark, too; a service before this page says nothing of it. */
    decodes?: boolean;
  };
  volumes: { name: string; id: string }[];
  version: string;
  now_ns: number;
}

export interface Standing {
  role: string;
  must_change_password: boolean;
  has_second_factor: boolean;
  has_authenticator: boolean;
  keys: { id: string; name: string; since: string }[];
  recovery_codes: number;
}

export interface LoginWays {
  people: boolean;
  tokens: boolean;
  /** What the button of the identity provider says. */
  provider: string | null;
  /** Where browsers find the page. */
  origin: string | null;
}

/** What a key has signed, in base 64 for URLs. */
export interface Signed {
  id: string;
  client_data: string;
  authenticator_data: string;
  signature: string;
}

/** What a browser says of a new key, in base 64 for URLs. */
export interface NewKey {
  client_data: string;
  attestation: string;
}

/** What a browser is to make a key by: the options of Web Authentication, bytes in base 64. */
export interface NewKeyAsked
  extends Omit<PublicKeyCredentialCreationOptions, "challenge" | "user" | "excludeCredentials"> {
  origin: string;
  challenge: string;
  user: { id: string; name: string; displayName: string };
  excludeCredentials: { type: "public-key"; id: string }[];
}

/** What is typed to log in, and to change what is one's own. */
export interface Proof {
  password: string;
  code?: string;
  key?: Signed;
}

export interface Enrolment {
  secret: string;
  link: string;
  /** Modules of a side, and the dark ones as a path. */
  qr: { size: number; path: string } | null;
}

export interface Person {
  name: string;
  role: string;
  must_change_password: boolean;
  has_second_factor: boolean;
  keys: number;
  recovery_codes: number;
  is_disabled: boolean;
  since: string;
}

export interface Role {
  name: string;
  scopes: string[];
  filter: string | null;
}

export interface Staff {
  people: Person[];
  roles: Role[];
}

export interface Token {
  name: string;
  scopes: string[];
  is_certificate: boolean;
  expires: string | null;
  filter: string | null;
}

export interface TokenList {
  tokens: Token[];
  can_change: boolean;
}

export interface AuditCheck {
  is_whole: boolean;
  lines: number;
  first: number | null;
  last: number;
  head: string;
  torn: number;
  faults_count: number;
  faults: { file: string | null; line: number; why: string }[];
}

/** A line of the audit. Which members there are depends on the event. */
export interface AuditLine {
  seq: number;
  time: string;
  event: string;
  credential?: string;
  kind?: string;
  about?: string;
  from?: string;
  method?: string;
  path?: string;
  parameters?: string;
  query?: string;
  volume?: string;
  status?: number;
  bytes?: number;
  ended?: string;
  cut_by?: string;
  sha256?: string;
  took_ms?: number;
  program?: string;
  faults?: number;
  count?: number;
  why?: string;
  refused?: number;
  removed?: { file: string }[];
}

export interface AuditPage {
  lines: { line: AuditLine; has_end: boolean }[];
  next: number | null;
  check: AuditCheck;
}

export interface Field {
  name: string;
  aliases: string[];
  kind: string;
  meaning: string;
}

export interface Times {
  from_ns?: number;
  to_ns?: number;
}

export interface Gap extends Times {
  cause: string;
  interface?: number;
  packets?: number;
  bytes?: number;
}

export interface Completeness {
  gaps?: Gap[];
  recorded?: (Times & { end?: string; interfaces?: string[] })[];
  not_recorded?: Times[];
  not_held?: Times[];
  not_known?: (Times & { why: string })[];
}

export type AnswerState = "complete" | "incomplete" | "unknown" | "broken_off";

export interface Statement {
  state: AnswerState;
  text: string;
  cut_by?: "time" | "bytes" | "limit";
  notes?: string[];
  /** Of an empty answer: which of the names asked for the volume does not know. */
  hint?: string;
  completeness?: Completeness;
}

export type FieldValue = string | number | boolean | (string | number)[];

/** A session has only the fields that have a value. */
export type Session = { session_id: string } & Record<string, FieldValue | undefined>;

export interface SessionPage {
  sessions: Session[];
  next_cursor: string | null;
  count: number;
  answer: string;
  statement: Statement;
}

export interface Amounts {
  sessions: number;
  packets: number;
  bytes: number;
}

export type Measure = keyof Amounts;

export interface TopValue extends Amounts {
  value: string | number | boolean;
  name?: string;
  text: string;
  query: string;
}

export interface TopField {
  field: string;
  distinct: number;
  absent: Amounts;
  /** Of values beyond those that are counted one by one. */
  uncounted?: Amounts;
  values: TopValue[];
}

export interface Traffic {
  width_ns: number;
  buckets: [number, number[]][];
  series: string[];
  /** The last series is no protocol: so many further ones share it. */
  others?: number;
  /** Of values of a field: what selects each. No query selects all others. */
  queries?: (string | null)[];
}

export interface Held {
  hold: { file: string; packets: number };
  statement: Statement;
}

export interface Summary {
  total: Amounts;
  traffic: Traffic;
  top: TopField[];
  answer: string;
  statement: Statement;
}

export interface Packet {
  number: number;
  time_ns: number;
  length: number;
  captured: number;
  /** As pcap numbers them; a service before this page says none. */
  link_type?: number;
  source: string;
  destination: string;
  protocol: string;
  info: string;
  /** Where the payload begins in the captured bytes. */
  payload_at?: number;
  /** Bytes of payload on the wire. */
  payload_len?: number;
  seq?: number;
  ack?: number;
  flags?: number;
  window?: number;
  data: string;
}

export interface PacketAnswer {
  packets: Packet[];
  count: number;
  answer: string;
  statement: Statement;
}

/** What tshark says of them: PSML of all, or PDML of one. */
export interface Decoded {
  xml: string;
  statement: Statement;
}

export interface InterfaceAccount {
  name?: string;
  offered: number;
  stored: number;
  cut: number;
  copies: number;
  headers_only: number;
  kernel_drops: number;
  writer_drops: number;
  in_flight: number;
  interface_drops: number | null;
  filter_rejects: number | null;
  too_long: number;
  is_away: boolean;
  times_down: number;
}

export interface Headroom {
  guaranteed_bytes_per_s: number;
  offered_bytes_per_s: number;
  offered_bytes_per_s_max: number;
  level: "calm" | "near" | "above";
  warnings: number;
}

export interface Device {
  member: number | null;
  path: string;
  writes: number;
  bytes: number;
  p50_ns: number;
  p99_ns: number;
  p99_9_ns: number;
  max_ns: number;
  depth_max: number;
  slow_writes: number;
  slower_than_qualified: number;
  is_slower_than_qualified: boolean;
  /** By 64ths of the surface: writes, bytes, mean and longest latency. */
  places: [number, number, number, number][];
}

export interface Qualified {
  by: string;
  started_ns: number;
  guaranteed_bytes_per_s: number;
  mean_bytes_per_s: number;
  pool_bytes: number;
  longest_write_ns: number;
  report: string;
}

export interface Disks {
  qualified?: Qualified;
  headroom?: Headroom;
  slow_limit_ns: number;
  slow_writes: number;
  devices: Device[];
}

export interface RecorderEvent {
  at_ns: number;
  kind: string;
  text: string;
}

export interface Member {
  path: string;
  state: "whole" | "stale" | "left out" | "absent" | "vacant";
  stale_bytes: number;
}

/** A volume, and its recorder's counters while one answers. */
export interface Volume extends Partial<Omit<InterfaceAccount, "name">> {
  name: string;
  volume_id: string;
  problem?: { title: string; detail?: string };
  path?: string;
  data_columns?: number;
  parity_columns?: number;
  epoch?: number;
  is_open?: boolean;
  clean_stop?: boolean;
  last_alive_ns?: number;
  is_whole?: boolean;
  members?: Member[];
  spares?: { path: string; is_there: boolean }[];
  redundancy?: { first_sequence: number; last_sequence: number; survives_members?: number }[];
  unindexed?: number;
  left_out?: number;
  indexer_deaths?: number;
  long_waits?: string[];
  events?: RecorderEvent[];
  pool_columns?: number;
  pool_columns_free?: number;
  member_bytes?: number;
  elapsed_ns?: number;
  acknowledged?: string;
  holds_ns?: number;
  interfaces?: InterfaceAccount[];
  disks?: Disks;
}

/** What lies in a cell of the ring's map. */
export interface RingCell {
  place: number;
  slots: number;
  zone: number;
  sequence?: number;
  content: "unwritten" | "written" | "left_early" | "opening" | "ahead_of_head" | "damaged";
  /** Tenth by age of what is held; 0 is the newest. */
  age?: number;
  head?: boolean;
  tail?: boolean;
  index?: boolean;
  holds?: number;
  damaged_members?: number[];
}

export interface RingMapAnswer {
  volume_id: string;
  zones: number;
  slots: number;
  columns: number;
  slots_per_cell: number;
  sampled_every: number;
  segments: number;
  written_ns: (number | null)[];
  members: { number: number; path: string; damaged_cells: number }[];
  cells: RingCell[];
}

export interface QualificationReport {
  file: string;
  id: string;
  is_of_volume: boolean;
  /** As `qualify --json` writes it. */
  report: unknown;
}

export interface Qualification {
  volume_id: string;
  reports: QualificationReport[];
}

export interface Finding {
  kind: string;
  severity: string;
  what: string;
  evidence: string[];
  cause: string;
  remedies: { what: string; now?: string[]; for_good?: string[] }[];
}

export interface Diagnosis {
  looked_at?: string[];
  findings: Finding[];
  unseen?: { what: string; needs: string }[];
}

export interface Job {
  id: string;
  kind: "verify" | "scrub" | "hold";
  volume: string;
  query?: string;
  by: string;
  state: "waiting" | "running" | "done" | "failed" | "cancelled";
  made_ns: number;
  begun_ns?: number;
  ended_ns?: number;
  done: number;
  of?: number;
  is_clean?: boolean;
  result?: unknown;
  reason?: string;
}

export interface Tag {
  id: string;
  session_id: string;
  tag: string;
  severity?: number;
  by: string;
  made_ns: number;
}

/** An extract that one asks for and another one approves. */
export interface ExtractRequest {
  id: string;
  state: "waiting" | "approved" | "expired" | "withdrawn" | "refused";
  is_yours: boolean;
  query: string;
  volume: string;
  case: string;
  purpose: string;
  requester: { name: string };
  approver?: { name: string };
  made_ns: number;
  until_ns: number;
}

export interface Setting {
  key: string;
  flag: string;
  value: string | number | string[] | null;
}
