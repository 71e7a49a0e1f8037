import type { FieldValue, Session } from "../api/types";
import { dnsName } from "../text/dns";
import { bytes, grouped } from "../text/numbers";
import { brief, printable } from "../text/printable";
import { dateTime, duration, type Zone } from "../text/times";

export interface Column {
  name: string;
  title: string;
  /** Least width in rem, and its share of the space that is left. */
  rem: number;
  grow: number;
  isNumber: boolean;
  text: (session: Session, zone: Zone) => string;
}

export const DEFAULT_COLUMNS = [
  "start_ns",
  "duration_ns",
  "proto_name",
  "app",
  "orig",
  "resp",
  "name",
  "packets",
  "bytes",
  "state",
];

const number = (value: FieldValue | undefined) => (typeof value === "number" ? value : 0);
const both = (session: Session, name: string) =>
  number(session[`orig_${name}`]) + number(session[`resp_${name}`]);

/** A value of a field as people read it. */
export function fieldText(name: string, value: FieldValue | undefined, zone: Zone): string {
  if (value === undefined) {
    return "";
  }
  if (Array.isArray(value)) {
    return value.map((one) => dnsName(name, one) ?? brief(String(one))).join(", ");
  }
  if (typeof value === "boolean") {
    return value ? "yes" : "no";
  }
  if (typeof value === "string") {
    return brief(value);
  }
  return numberText(name, value, zone);
}

const TIMES = ["start_ns", "end_ns", "session_start_ns", "cert_not_before_ns", "cert_not_after_ns"];
/** Numbers that are names, not amounts. */
const NAMES = /(^|_)(port|vlan|vlan_inner|mpls|proto|interface|id|type|code|flags|version|cipher)$/;

function numberText(name: string, value: number, zone: Zone): string {
  if (TIMES.includes(name)) {
    return dateTime(value, zone, 6);
  }
  if (name.endsWith("_ns")) {
    return duration(value);
  }
  if (name.endsWith("_bytes")) {
    return bytes(value);
  }
  return NAMES.test(name) ? String(value) : grouped(value);
}

function end(session: Session, side: "orig" | "resp"): string {
  const [ip, port] = [session[`${side}_ip`], session[`${side}_port`]];
  if (ip === undefined) {
    return "";
  }
  const address = printable(String(ip));
  if (port === undefined) {
    return address;
  }
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

function firstName(session: Session): string {
  const names = [session["sni"], session["http_host"], session["dns_names"]];
  return names
    .flat()
    .filter((name) => name !== undefined)
    .map((name) => brief(String(name)))
    .join(", ");
}

type Known = Omit<Column, "name">;

const SPECIAL: Record<string, Known> = {
  start_ns: {
    title: "Start",
    rem: 13.6,
    grow: 0,
    isNumber: false,
    text: (session, zone) => dateTime(number(session["start_ns"]), zone),
  },
  duration_ns: {
    title: "Duration",
    rem: 5.5,
    grow: 0,
    isNumber: true,
    text: (session) => duration(number(session["duration_ns"])),
  },
  proto_name: {
    title: "Proto",
    rem: 4.2,
    grow: 0,
    isNumber: false,
    text: (session) => printable(String(session["proto_name"] ?? session["proto"] ?? "")),
  },
  app: {
    title: "App",
    rem: 4.5,
    grow: 0,
    isNumber: false,
    text: (session) => printable(String(session["app"] ?? "")),
  },
  orig: {
    title: "Originator",
    rem: 10,
    grow: 1.2,
    isNumber: false,
    text: (session) => end(session, "orig"),
  },
  resp: {
    title: "Responder",
    rem: 10,
    grow: 1.2,
    isNumber: false,
    text: (session) => end(session, "resp"),
  },
  name: {
    title: "Name",
    rem: 6.5,
    grow: 1.4,
    isNumber: false,
    text: firstName,
  },
  packets: {
    title: "Packets",
    rem: 5.5,
    grow: 0,
    isNumber: true,
    text: (session) => grouped(both(session, "packets")),
  },
  bytes: {
    title: "Bytes",
    rem: 5.5,
    grow: 0,
    isNumber: true,
    text: (session) => bytes(both(session, "frame_bytes")),
  },
  state: {
    title: "State",
    rem: 4.5,
    grow: 0,
    isNumber: false,
    text: (session) => printable(String(session["state"] ?? "")),
  },
};

const NUMBER_KINDS = ["number", "size", "duration"];

/** A column for a field, or for one of the combined names such as "orig". */
export function column(name: string, kind: string | undefined): Column {
  const known = SPECIAL[name];
  if (known) {
    return { name, ...known };
  }
  return {
    name,
    title: name,
    rem: 8,
    grow: 1,
    isNumber: kind !== undefined && NUMBER_KINDS.includes(kind),
    text: (session, zone) => fieldText(name, session[name], zone),
  };
}

/** As a template of a CSS grid. */
export const template = (columns: Column[]) =>
  columns
    .map(({ rem, grow }) => (grow > 0 ? `minmax(${rem}rem, ${grow}fr)` : `${rem}rem`))
    .join(" ");

export const leastWidth = (columns: Column[]) =>
  `${columns.reduce((sum, column) => sum + column.rem, 0)}rem`;

export const specialColumns = () => Object.keys(SPECIAL);
export const endpointOf = end;
export const amountOf = both;
