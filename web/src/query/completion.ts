import type { Field, TopField } from "../api/types";
import { quoted } from "./compose";

export interface Suggestion {
  insert: string;
  /** What kind of word it is, or what it means. */
  meaning: string;
}

export interface Completion {
  /** The part of the text that a suggestion replaces. */
  from: number;
  to: number;
  suggestions: Suggestion[];
}

export interface Known {
  fields: Field[];
  /** Values of fields that answers had, for example from the facets. */
  values: ReadonlyMap<string, string[]>;
}

const LISTED = 12;
const WORD_END = /[\s(){},]/;
const OPERATOR = /^(==?|!=|<=?|>=?|in)$/i;
const JOINING = /^(and|or|not|&&|\|\||!)$/i;
/** Words that a value follows, and what that value is. */
const VALUE_WORDS: Record<string, string> = {
  host: "address",
  net: "address",
  port: "number",
  portrange: "number",
  since: "time",
  after: "time",
  before: "time",
  app: "application",
};

const WORDS: Suggestion[] = [
  { insert: "host", meaning: "either address: host 10.0.0.5" },
  { insert: "net", meaning: "a network: net 10.0.0.0/8" },
  { insert: "port", meaning: "either port: port 443" },
  { insert: "src", meaning: "the sender of a packet: src host 10.0.0.5" },
  { insert: "dst", meaning: "the receiver of a packet: dst port 53" },
  { insert: "orig", meaning: "who opened the session: orig net 10" },
  { insert: "resp", meaning: "who was asked: resp port 22" },
  { insert: "tcp", meaning: "sessions of TCP" },
  { insert: "udp", meaning: "sessions of UDP" },
  { insert: "icmp", meaning: "sessions of ICMP" },
  { insert: "since", meaning: "has packets then or later: since 3h ago" },
  { insert: "after", meaning: "has packets then or later: after 2026-11-20T10:00:00Z" },
  { insert: "before", meaning: "began before: before 2026-11-20T11:00:00Z" },
  { insert: "not", meaning: "all other sessions" },
  { insert: "has", meaning: "the field has a value: has sni" },
];

const JOINS: Suggestion[] = [
  { insert: "and", meaning: "both must hold" },
  { insert: "or", meaning: "one must hold" },
  { insert: "and not", meaning: "the next one must not hold" },
];

const EQUAL: Suggestion[] = [
  { insert: "=", meaning: "equal" },
  { insert: "!=", meaning: "not equal, or without a value" },
  { insert: "in {", meaning: "one of several: in {80, 443}" },
];
const ORDER: Suggestion[] = [
  { insert: ">", meaning: "more than" },
  { insert: "<", meaning: "less than" },
  { insert: ">=", meaning: "at least" },
  { insert: "<=", meaning: "at most" },
];
const ORDERED_KINDS = ["number", "size", "duration", "time", "version"];

const KIND_VALUES: Record<string, string[]> = {
  "yes/no": ["yes", "no"],
  state: "S0 S1 SF REJ S2 S3 RSTO RSTR RSTOS0 RSTRH SH SHR OTH".split(" "),
  protocol: "tcp udp icmp icmp6 sctp arp".split(" "),
  "dns type": "A AAAA CNAME MX NS PTR SOA SRV TXT HTTPS ANY".split(" "),
  "dns rcode": "NOERROR NXDOMAIN SERVFAIL REFUSED FORMERR".split(" "),
  version: ["1.0", "1.1", "1.2", "1.3"],
  application: "dns http tls quic ssh smb ftp smtp dhcp ntp rdp".split(" "),
  time: ["1h ago", "15m ago", "24h ago"],
  duration: ["200ms", "5s", "1m", "1h"],
  size: ["64K", "1M", "100M", "1G"],
};

/** The values that an answer had, as queries take them. */
export function seenValues(top: TopField[]): Map<string, string[]> {
  const word = ({ name, value, text }: TopField["values"][number]) =>
    name ?? (typeof value === "boolean" ? text : String(value));
  return new Map(top.map(({ field, values }) => [field, values.map(word)]));
}

/** What could stand at the cursor of a query. */
export function complete(text: string, cursor: number, known: Known): Completion {
  const from = wordStart(text, cursor);
  const word = text.slice(from, cursor);
  const all = candidates(text.slice(0, from), known);
  const matching = ranked(all, word.toLowerCase()).slice(0, LISTED);
  const isDone = matching.length === 1 && matching[0]?.insert === word;
  return { from, to: wordEnd(text, cursor), suggestions: isDone ? [] : matching };
}

/** The text with a suggestion in it, and where the cursor stands then. */
export function accepted(
  text: string,
  { from, to }: Completion,
  { insert }: Suggestion,
): { text: string; cursor: number } {
  const rest = text.slice(to);
  const blank = insert.endsWith("{") || rest.startsWith(" ") ? "" : " ";
  const before = text.slice(0, from) + insert + blank;
  return { text: before + rest, cursor: before.length };
}

function wordStart(text: string, cursor: number): number {
  let at = cursor;
  while (at > 0 && !WORD_END.test(text.charAt(at - 1))) {
    at -= 1;
  }
  return at;
}

function wordEnd(text: string, cursor: number): number {
  let at = cursor;
  while (at < text.length && !WORD_END.test(text.charAt(at))) {
    at += 1;
  }
  return at;
}

function candidates(before: string, known: Known): Suggestion[] {
  const words = before.match(/"(?:\\.|[^"\\])*"?|[(){},]|[^\s(){},]+/g) ?? [];
  const last = words.at(-1) ?? "";
  const listed = listedField(words, known);
  if (listed) {
    return valuesOf(listed, known);
  }
  if (last === "" || last === "(" || JOINING.test(last)) {
    return [...WORDS, ...fieldWords(known)];
  }
  if (/^has$/i.test(last)) {
    return fieldWords(known);
  }
  const field = fieldOf(OPERATOR.test(last) ? (words.at(-2) ?? "") : last, known);
  if (OPERATOR.test(last)) {
    return field ? valuesOf(field, known) : [];
  }
  const kind = VALUE_WORDS[last.toLowerCase()];
  if (kind) {
    return wordValues(last.toLowerCase(), kind, known);
  }
  return field ? [...operators(field), ...JOINS] : JOINS;
}

/** The field of an open list: "port in {80, ". */
function listedField(words: string[], known: Known): Field | undefined {
  const open = words.lastIndexOf("{");
  const isOpen = open > words.lastIndexOf("}");
  return isOpen ? fieldOf(words[open - 2] ?? "", known) : undefined;
}

function fieldOf(word: string, { fields }: Known): Field | undefined {
  const name = word.toLowerCase();
  return fields.find((field) => field.name === name || field.aliases.includes(name));
}

const fieldWords = ({ fields }: Known): Suggestion[] =>
  fields.map(({ name, meaning }) => ({ insert: name, meaning }));

const operators = ({ kind }: Field): Suggestion[] =>
  ORDERED_KINDS.includes(kind) ? [...EQUAL, ...ORDER] : EQUAL;

function valuesOf({ name, kind }: Field, { values }: Known): Suggestion[] {
  const seen = values.get(name) ?? [];
  const possible = (KIND_VALUES[kind] ?? []).filter((value) => !seen.includes(value));
  return [
    ...seen.map((value) => ({ insert: quoted(value), meaning: "seen in this answer" })),
    ...possible.map((value) => ({ insert: value, meaning: kind })),
  ];
}

/** Values behind words such as "host" come from the fields of both ends. */
function wordValues(word: string, kind: string, known: Known): Suggestion[] {
  const names: Record<string, string[]> = {
    host: ["orig_ip", "resp_ip"],
    port: ["resp_port"],
    app: ["app"],
  };
  const seen = (names[word] ?? []).flatMap((name) => known.values.get(name) ?? []);
  return valuesOf(
    { name: "", kind, aliases: [], meaning: "" },
    { fields: [], values: new Map([["", [...new Set(seen)]]]) },
  );
}

/** Words that begin so before words that contain it. */
function ranked(all: Suggestion[], typed: string): Suggestion[] {
  const lower = (one: Suggestion) => one.insert.toLowerCase();
  const first = all.filter((one) => lower(one).startsWith(typed));
  const others = all.filter((one) => !first.includes(one) && lower(one).includes(typed));
  return typed === "" ? all : [...first, ...others];
}
