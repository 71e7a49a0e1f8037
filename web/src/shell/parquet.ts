import type { FieldValue, Session } from "../api/types";

/**
 * A table as a Parquet file: a row group, and in it a page for each column, neither compressed nor
 * encoded. So it is short, and what reads Parquet reads it.
 * https://github.com/apache/parquet-format: Thrift's compact protocol, and "Data Pages".
 */
export const PARQUET = "application/vnd.apache.parquet";

export type Cell = string | number | boolean | undefined;
export interface Table {
  names: string[];
  /** Of each name its values. */
  columns: Cell[][];
}

/** Numbers of the format: types, encodings, whether a value may be absent, text. */
const TYPES = { boolean: 0, int64: 2, double: 5, text: 6 } as const;
const [PLAIN, RLE] = [0, 3];
const OPTIONAL = 1;
const UTF8 = 0;

type Type = keyof typeof TYPES;

/** Bytes that grow. */
class Bytes {
  #bytes = new Uint8Array(1024);
  length = 0;

  #room(more: number): void {
    if (this.length + more > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(2 * this.#bytes.length, this.length + more));
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
  }

  push(byte: number): this {
    this.#room(1);
    this.#bytes[this.length] = byte;
    this.length += 1;
    return this;
  }

  add(bytes: Uint8Array): this {
    this.#room(bytes.length);
    this.#bytes.set(bytes, this.length);
    this.length += bytes.length;
    return this;
  }

  little(width: 4 | 8, write: (view: DataView) => void): this {
    const view = new DataView(new ArrayBuffer(width));
    write(view);
    return this.add(new Uint8Array(view.buffer));
  }

  u32(value: number): this {
    return this.little(4, (view) => view.setUint32(0, value, true));
  }

  varint(value: number): this {
    let rest = value;
    while (rest >= 128) {
      this.push((rest % 128) + 128);
      rest = Math.floor(rest / 128);
    }
    return this.push(rest);
  }

  get all(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.length);
  }
}

/** A value of Thrift: its type and what writes it. */
interface Thrift {
  type: number;
  write: (out: Bytes) => void;
}

const i32 = (value: number): Thrift => ({ type: 5, write: (out) => out.varint(2 * value) });
const i64 = (value: number): Thrift => ({ type: 6, write: (out) => out.varint(2 * value) });
const encoder = new TextEncoder();
const binary = (text: string): Thrift => ({
  type: 8,
  write: (out) => {
    const bytes = encoder.encode(text);
    out.varint(bytes.length).add(bytes);
  },
});
const list = (type: number, items: Thrift[]): Thrift => ({
  type: 9,
  write: (out) => {
    if (items.length < 15) {
      out.push((items.length << 4) | type);
    } else {
      out.push(0xf0 | type).varint(items.length);
    }
    items.forEach((item) => item.write(out));
  },
});
/** Fields by their numbers, which rise. */
const struct = (fields: Record<number, Thrift>): Thrift => ({
  type: 12,
  write: (out) => {
    let last = 0;
    for (const [name, { type, write }] of Object.entries(fields)) {
      const id = Number(name);
      out.push(((id - last) << 4) | type);
      write(out);
      last = id;
    }
    out.push(0);
  },
});

function typeOf(values: Cell[]): Type {
  const known = values.filter((value) => value !== undefined);
  if (known.every((value) => typeof value === "number")) {
    return known.every((value) => Number.isInteger(value)) ? "int64" : "double";
  }
  return known.every((value) => typeof value === "boolean") ? "boolean" : "text";
}

/** Which values are there: runs of ones and of zeros. */
function levels(values: Cell[]): Uint8Array {
  const out = new Bytes();
  for (let at = 0; at < values.length; ) {
    const isThere = values[at] !== undefined;
    let end = at + 1;
    while (end < values.length && (values[end] !== undefined) === isThere) {
      end += 1;
    }
    out.varint(2 * (end - at)).push(Number(isThere));
    at = end;
  }
  return out.all;
}

function plain(values: Cell[], type: Type): Uint8Array {
  const out = new Bytes();
  const known = values.filter((value) => value !== undefined);
  if (type === "boolean") {
    for (let at = 0; at < known.length; at += 8) {
      const eight = known.slice(at, at + 8);
      out.push(eight.reduce<number>((sum, bit, place) => sum | (Number(bit) << place), 0));
    }
    return out.all;
  }
  for (const value of known) {
    if (type === "int64") {
      out.little(8, (view) => view.setBigInt64(0, BigInt(Number(value)), true));
    } else if (type === "double") {
      out.little(8, (view) => view.setFloat64(0, Number(value), true));
    } else {
      const bytes = encoder.encode(String(value));
      out.u32(bytes.length).add(bytes);
    }
  }
  return out.all;
}

/** A page with its head; the levels stand before the values. */
function page(values: Cell[], type: Type): Uint8Array {
  const [present, data] = [levels(values), plain(values, type)];
  const size = 4 + present.length + data.length;
  const about = struct({ 1: i32(values.length), 2: i32(PLAIN), 3: i32(RLE), 4: i32(RLE) });
  const out = new Bytes();
  struct({ 1: i32(0), 2: i32(size), 3: i32(size), 5: about }).write(out);
  return out.u32(present.length).add(present).add(data).all;
}

export function parquet({ names, columns }: Table): Uint8Array<ArrayBuffer> {
  const magic = encoder.encode("PAR1");
  const out = new Bytes().add(magic);
  const rows = columns[0]?.length ?? 0;
  const chunks = names.map((name, at) => {
    const values = columns[at] ?? [];
    const type = typeOf(values);
    const [offset, bytes] = [out.length, page(values, type)];
    out.add(bytes);
    const meta = struct({
      1: i32(TYPES[type]),
      2: list(5, [i32(PLAIN), i32(RLE)]),
      3: list(8, [binary(name)]),
      4: i32(0),
      5: i64(values.length),
      6: i64(bytes.length),
      7: i64(bytes.length),
      9: i64(offset),
    });
    const text: Record<number, Thrift> = type === "text" ? { 6: i32(UTF8) } : {};
    const leaf = struct({ 1: i32(TYPES[type]), 3: i32(OPTIONAL), 4: binary(name), ...text });
    return { chunk: struct({ 2: i64(offset), 3: meta }), leaf, length: bytes.length };
  });
  const root = struct({ 4: binary("table"), 5: i32(names.length) });
  const group = struct({
    1: list(12, chunks.map(({ chunk }) => chunk)),
    2: i64(chunks.reduce((sum, { length }) => sum + length, 0)),
    3: i64(rows),
  });
  const footer = new Bytes();
  struct({
    1: i32(1),
    2: list(12, [root, ...chunks.map(({ leaf }) => leaf)]),
    3: i64(rows),
    4: list(12, [group]),
    6: binary("wirespool"),
  }).write(footer);
  return out.add(footer.all).u32(footer.length).add(magic).all;
}

const cellOf = (value: FieldValue | undefined): Cell =>
  Array.isArray(value) ? value.join("|") : value;

/** Sessions as a table: a column for each field that one of them has. */
export function tableOf(sessions: Session[]): Table {
  const names = [...new Set(sessions.flatMap((session) => Object.keys(session)))];
  const columns = names.map((name) => sessions.map((session) => cellOf(session[name])));
  return { names, columns };
}
