export function fromBase64(text: string): Uint8Array {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let at = 0; at < raw.length; at += 1) {
    bytes[at] = raw.charCodeAt(at);
  }
  return bytes;
}

/** Printable ASCII; a dot for everything else. */
export const ascii = (byte: number) =>
  byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".";

export interface HexRow {
  offset: string;
  bytes: { hex: string; ascii: string; at: number }[];
}

const ROW = 16;

export function hexRows(bytes: Uint8Array, limit = Infinity): HexRow[] {
  const rows: HexRow[] = [];
  for (let from = 0; from < Math.min(bytes.length, limit); from += ROW) {
    const part = [...bytes.subarray(from, Math.min(from + ROW, limit))];
    rows.push({
      offset: from.toString(16).padStart(4, "0"),
      bytes: part.map((byte, index) => ({
        hex: byte.toString(16).padStart(2, "0"),
        ascii: ascii(byte),
        at: from + index,
      })),
    });
  }
  return rows;
}

/** Bytes of a packet. */
export interface Span {
  from: number;
  /** Behind the last one. */
  to: number;
}

/** Of those with this byte the one with the fewest; of equal ones the first. */
export function narrowest<T extends Span>(spans: T[], at: number): T | null {
  const there = spans.filter(({ from, to }) => at >= from && at < to);
  return there.reduce<T | null>(
    (best, one) => (best && one.to - one.from >= best.to - best.from ? best : one),
    null,
  );
}

/** A hex dump as lines of text. */
export function hexDump(bytes: Uint8Array): string {
  const line = (row: HexRow) => {
    const hex = row.bytes.map((byte) => byte.hex).join(" ");
    return `${row.offset}  ${hex.padEnd(ROW * 3 - 1)}  ${row.bytes.map((b) => b.ascii).join("")}`;
  };
  return hexRows(bytes).map(line).join("\n");
}

/** Text as people read it: line feeds and tabs stay, other control bytes become dots. */
export function readable(bytes: Uint8Array): string {
  const text = new TextDecoder("utf-8").decode(bytes);
  // Controls, marks that change the direction of text, and signs without width.
  const hidden = /[^\P{C}\n\t]|[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffd]/gu;
  return text.replace(/\r\n/g, "\n").replace(hidden, ".");
}
