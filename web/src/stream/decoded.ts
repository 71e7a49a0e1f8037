/**
 * What tshark says of packets, as PSML and PDML. Packets of strangers may have taken it over, so
 * that nothing here trusts it: no parser of XML is asked, what is said is text, and bytes are
 * compared before they are marked.
 */

import type { Span } from "./bytes";

/** A line of a packet. */
export interface DecodedLine {
  /** Seconds since 1970. */
  time: number;
  protocol: string;
  info: string;
}

/** A field, or a protocol, with what it is made of; without bytes where they are not known. */
export interface DecodedField extends Span {
  text: string;
  fields: DecodedField[];
}

const TAG = /<(\/?)(packet|section|proto|field)((?:\s+[a-z]+="[^"]*")*)\s*(\/?)>([^<]*)/g;
const ATTRIBUTE = /([a-z]+)="([^"]*)"/g;
const ENTITY = /&(?:#x([0-9a-f]{1,6})|#([0-9]{1,7})|(amp|lt|gt|quot|apos));/gi;
const NAMED: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** Fields lie in fields so deeply that nobody finds them there. */
const DEEPEST = 40;
/** More fields than this of a packet are more than a page shows. */
const MOST_FIELDS = 20_000;
/** What says of the packet what the list says, too. */
const LEFT_OUT = ["geninfo", "fake-field-wrapper"];

function plain(text: string): string {
  return text.replace(ENTITY, (all, hex?: string, decimal?: string, name?: string) => {
    const code = hex ? parseInt(hex, 16) : decimal ? parseInt(decimal, 10) : undefined;
    if (code === undefined) {
      return NAMED[name?.toLowerCase() ?? ""] ?? all;
    }
    return code <= 0x10ffff ? String.fromCodePoint(code) : all;
  });
}

function attributesOf(text: string): Record<string, string> {
  const found = [...text.matchAll(ATTRIBUTE)];
  return Object.fromEntries(found.map(([, name, value]) => [name, plain(value ?? "")]));
}

/** The lines of PSML by the numbers of their packets. */
export function decodedLines(psml: string): Map<number, DecodedLine> {
  const lines = new Map<number, DecodedLine>();
  let sections: string[] | null = null;
  for (const [, closing, tag, , , text] of psml.matchAll(TAG)) {
    if (tag === "packet" && !closing) {
      sections = [];
    } else if (tag === "section" && !closing) {
      sections?.push(plain(text ?? ""));
    } else if (tag === "packet" && sections) {
      const [number = "", time = "", protocol = "", info = ""] = sections;
      lines.set(Number(number), { time: Number(time), protocol, info });
      sections = null;
    }
  }
  return lines;
}

const hex = (bytes: Uint8Array) =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Where it lies in the packet; nowhere if it is of bytes that were put together or unpacked. */
function placeOf(said: Record<string, string>, bytes: Uint8Array): Span {
  const [from, size] = [Number(said["pos"]), Number(said["size"])];
  const to = from + size;
  if (!(from >= 0 && size > 0 && to <= bytes.length)) {
    return { from: 0, to: 0 };
  }
  const values = [said["unmaskedvalue"], said["value"]].filter((value) => value !== undefined);
  const isThere = values.length === 0 || values.includes(hex(bytes.subarray(from, to)));
  return isThere ? { from, to } : { from: 0, to: 0 };
}

/** The protocols of the packet of PDML, whose captured bytes these are. */
export function decodedFields(pdml: string, bytes: Uint8Array): DecodedField[] {
  const protocols: DecodedField[] = [];
  const open: { tag: string; into: DecodedField[] }[] = [];
  let count = 0;
  for (const [, closing, tag = "", attributes = "", isEmpty] of pdml.matchAll(TAG)) {
    if (tag !== "proto" && tag !== "field") {
      continue;
    }
    if (closing) {
      open.pop();
      continue;
    }
    count += 1;
    if (count > MOST_FIELDS) {
      break;
    }
    const said = attributesOf(attributes);
    const into = open.at(-1)?.into ?? protocols;
    const text = said["showname"] || said["show"] || said["name"] || "";
    const field = { text, ...placeOf(said, bytes), fields: [] as DecodedField[] };
    const isShown = said["hide"] !== "yes" && !LEFT_OUT.includes(said["name"] ?? "");
    if (isShown) {
      into.push(field);
    }
    if (!isEmpty) {
      // What lies too deep, or in what has no text of its own, stands beside it.
      const isWrapper = said["name"] === "fake-field-wrapper" || open.length >= DEEPEST;
      open.push({ tag, into: isWrapper ? into : field.fields });
    }
  }
  return protocols;
}

/** All that have bytes, in the order in which they are shown. */
export function spansOf(fields: DecodedField[]): DecodedField[] {
  return fields.flatMap((field) => [...(field.to > 0 ? [field] : []), ...spansOf(field.fields)]);
}

/** Times as numbers are this exact. */
const SECONDS_APART = 5e-6;

/** Whether it is of this packet: the ring may have gone on between two answers. */
export const isOfTime = (seconds: number, packetNs: number): boolean =>
  Math.abs(seconds - packetNs / 1e9) < SECONDS_APART;

/** Seconds since 1970 of the packet of PDML. */
export function decodedTime(pdml: string): number {
  const said = /<field name="timestamp"[^>]* value="([0-9.]+)"/.exec(pdml);
  return Number(said?.[1] ?? NaN);
}
